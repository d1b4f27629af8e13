"""Random features by any psi(x, omega) and its sampler, drawn uniformly or by importance.

A kernel K(x, x') = E psi(x, omega) psi(x', omega), for omega of a distribution theta, is
approximated by the mean over m draws (thesis 5.3, equation 5.6). Draws of theta q with the
functions psi / sqrt(q) have the same mean, and fewer may do (the same, remark 1; Bach 2017).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import ndtr
from scipy.stats import chi2
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from semiparam_dynamics.base.arrays import Array, Mask
from semiparam_dynamics.base.errors import (
    ConfigurationError,
    LearningError,
    positive_count,
    positive_penalty,
)
from semiparam_dynamics.learning.centers import scaled_kernel
from semiparam_dynamics.learning.kernels import Gaussian, Laplacian, Matern, as_kernel
from semiparam_dynamics.learning.ridge import FeatureMap
from semiparam_dynamics.learning.rows import FLOATS, ArrayRows, Rows, memory_budget, validate_data

KINDS = ("phase", "pair")
IMPORTANCE_ROWS = 1000  # that an importance sees, at most


def kernel_widths(kernel: Any, n_inputs: int) -> Array:
    """The kernel's width for each input, (d,); binding the kernel checks them."""
    kernel.bind(np.zeros((1, n_inputs)))
    return np.broadcast_to(np.asarray(kernel.length_scale, dtype=float), (n_inputs,))


class FeatureSampler(Protocol):
    """A feature psi(x, omega), and the distribution theta of omega."""

    def sample(self, n: int, n_inputs: int, random: np.random.RandomState) -> Array:
        """omega of n independent draws of theta, (n, p), for inputs of dimension `n_inputs`.

        For an estimator's path over the number of features to equal its fits, the first draws must
        not depend on n.
        """

    def psi(self, X: Array, omega: Array) -> Array:
        """psi(x_i, omega_j), (k, n), of inputs X (k, d)."""


@dataclass(frozen=True)
class SpectralSampler:
    """Features of a stationary kernel, with frequencies w from its spectral density.

    By Bochner's theorem (Rahimi, Recht 2007). The densities, for width sigma: the Gaussian kernel's
    is normal of scale 1 / sigma; the Laplacian's has independent Cauchy entries; Matern's is
    Student's t with 2 nu degrees of freedom (Rasmussen, Williams 2006, section 4.2.1).

    Parameters
    ----------
    kernel : Gaussian, Laplacian or Matern; None: ``Gaussian(1.0)``.
    kind : "phase", sqrt(2) cos(w'x + b), b uniform; omega is (w, b), (d + 1,). Or "pair": the two
        functions sqrt(2) cos(w'x) and sqrt(2) sin(w'x) of each w, which is there twice.
    """

    kernel: Any = None
    kind: str = "phase"

    def sample(self, n: int, n_inputs: int, random: np.random.RandomState) -> Array:
        """See :class:`FeatureSampler`; ConfigurationError for another kernel or kind."""
        kernel = Gaussian(1.0) if self.kernel is None else as_kernel(self.kernel)
        if self.kind not in KINDS:
            raise ConfigurationError(f'kind must be "phase" or "pair", not "{self.kind}".')
        if not isinstance(kernel, (Gaussian, Laplacian, Matern)):
            raise ConfigurationError(
                f"Random features need the kernel's spectral density; it is known for Gaussian, "
                f"Laplacian and Matern, not for {type(kernel).__name__}."
            )
        count = n if self.kind == "phase" else n // 2
        # Each frequency takes a row of normal draws, so that the first ones don't depend on n.
        draws = random.standard_normal((count, n_inputs + 2))
        directions, phase, mixing = draws[:, :-2], ndtr(draws[:, -2]), ndtr(draws[:, -1])
        if isinstance(kernel, Laplacian):
            directions = np.tan(np.pi * (ndtr(directions) - 0.5))
        elif isinstance(kernel, Matern):
            kernel.bind(np.zeros((1, n_inputs)))  # checks nu
            freedom = 2.0 * kernel.nu
            directions = directions * np.sqrt(freedom / chi2.ppf(mixing, freedom))[:, None]
        frequencies = directions / kernel_widths(kernel, n_inputs)
        if self.kind == "pair":
            return np.repeat(frequencies, 2, axis=0)
        return np.column_stack((frequencies, 2.0 * np.pi * phase))

    def psi(self, X: Array, omega: Array) -> Array:
        """See :class:`FeatureSampler`."""
        w, b = self.parts(omega)
        angle = X @ np.ascontiguousarray(w.T, dtype=X.dtype)
        if b is None:
            values = np.empty((len(X), len(omega)), X.dtype)
            np.cos(angle, out=values[:, ::2])
            np.sin(angle, out=values[:, 1::2])
        else:
            angle += b.astype(X.dtype)
            values = np.cos(angle, out=angle)
        values *= X.dtype.type(np.sqrt(2.0))
        return values

    def parts(self, omega: Array) -> tuple[Array, Array | None]:
        """Frequencies, each once, and offsets; None of the kind "pair"."""
        return (omega[::2], None) if self.kind == "pair" else (omega[:, :-1], omega[:, -1])


@dataclass(frozen=True)
class DrawnFeatures:
    """The functions psi(., omega_j) weights_j, j = 1, ..., m.

    Attributes
    ----------
    omega : (m, p).
    weights : (m,), q^-1/2; None: ones.
    """

    sampler: FeatureSampler
    omega: Array
    weights: Array | None

    def map(self, dtype: Any) -> FeatureMap:
        """Feature map whose results are in `dtype`. Raises LearningError for a wrong shape."""
        weights = None if self.weights is None else self.weights.astype(dtype)

        def evaluate(X: Array) -> Array:
            values: Array = evaluated(self.sampler, X, self.omega).astype(dtype, copy=False)
            return values if weights is None else values * weights

        return FeatureMap(len(self.omega), evaluate)

    def squares(self, X: Array) -> float:
        """The largest of the means over the m functions of their squares, at inputs X (k, d)."""
        values = self.map(float).evaluate(X)
        return float(np.mean(values**2, axis=1).max())


def draw_features(
    sampler: Any,
    n_features: int,
    rows: Rows,
    importance: Any,
    n_candidates: int,
    penalty: float,
    random_state: Any,
    memory_limit: int | None = None,
) -> DrawnFeatures:
    """`n_features` draws of the sampler's theta, or of theta q.

    q is `importance`: a function of omega (N, p) and some rows' inputs (k, d), known up to a
    factor; or "leverage", the q of theorem 11's exponent alpha = gamma: the leverage score of a
    feature among all (Bach 2017, section 4.2), (1/k) psi' (K/k + penalty I)^-1 psi at k rows.

    Since theta q can seldom be drawn from, `n_candidates` are drawn from theta, and among them,
    with replacement, the features, with probabilities p_i in proportion to q. Weights
    (N p_i)^-1/2 leave the mean of the features' products that of the candidates. An importance
    sees 1000 rows, or as many as the candidates' values at them leave room for within
    `memory_limit` bytes; None: a quarter of what is free.

    Raises ConfigurationError for what is no sampler or importance, and LearningError for a q that
    is negative, not finite, or zero where a feature is not zero on the data.
    """
    if not (hasattr(sampler, "sample") and hasattr(sampler, "psi")):
        raise ConfigurationError(
            f"features must have sample(n, n_inputs, random) and psi(X, omega), not {sampler!r}."
        )
    random = check_random_state(random_state)
    count = positive_count(n_features, "n_features")
    if importance is None:
        return DrawnFeatures(sampler, _sampled(sampler, count, rows.n_features, random), None)
    if not (callable(importance) or (isinstance(importance, str) and importance == "leverage")):
        raise ConfigurationError(
            f'importance must be None, "leverage" or a function of omega and inputs, not '
            f"{importance!r}."
        )
    N = positive_count(n_candidates, "n_candidates")
    candidates = _sampled(sampler, N, rows.n_features, random)
    # Of the candidates' values at a row, four copies on the way.
    n_rows = max(1, min(IMPORTANCE_ROWS, memory_budget(memory_limit) // (32 * N)))
    X, weights = _some(rows, random.randint(2**31 - 1), n_rows)
    values = evaluated(sampler, X, candidates)
    if isinstance(importance, str):
        q = leverage_importance(values, penalty, weights)
    else:
        q = np.asarray(importance(candidates, X), dtype=float)
    p = _probabilities(q, np.asarray(values.any(axis=0)))
    chosen = random.choice(N, size=count, p=p)
    return DrawnFeatures(sampler, candidates[chosen], (N * p[chosen]) ** -0.5)


def leverage_importance(values: Array, penalty: float, weights: Array | None = None) -> Array:
    """q (N,) of features' values at k rows, (k, N): their leverage scores (Bach 2017, 4.2).

    (1/k) psi_i' (K/k + penalty I)^-1 psi_i, with K the mean of all psi psi'; with weights (k,) a
    row has its share of their sum in place of 1/k. Time O(k^2 N).
    """
    k, N = values.shape
    share = np.full(k, 1.0 / k) if weights is None else weights / weights.sum()
    scaled = values * np.sqrt(share)[:, None]
    gram: Array = scaled @ scaled.T / N
    # A penalty below rounding leaves no Cholesky factor.
    least = k * float(np.finfo(float).eps) * float(np.trace(gram))
    gram[np.diag_indices(k)] += max(positive_penalty(penalty), least)
    factor = cho_factor(gram, lower=True, overwrite_a=True)
    return np.asarray(np.einsum("ij,ij->j", scaled, cho_solve(factor, scaled)))


def evaluated(sampler: FeatureSampler, X: Array, omega: Array) -> Array:
    """psi(X, omega), (k, n). Raises LearningError for another shape, or values not finite."""
    values = np.asarray(sampler.psi(X, omega))
    if values.shape != (len(X), len(omega)):
        raise LearningError(
            f"psi returned {values.shape} for {len(X)} rows and {len(omega)} draws of omega; it "
            f"must return a column for each draw, ({len(X)}, {len(omega)})."
        )
    if not np.isfinite(values).all():
        raise LearningError("psi returned a value that is not finite.")
    return values


def _sampled(
    sampler: FeatureSampler, n: int, n_inputs: int, random: np.random.RandomState
) -> Array:
    omega = np.asarray(sampler.sample(n, n_inputs, random))
    if not omega.ndim or len(omega) != n:
        raise LearningError(f"sample returned {omega.shape} where {n} draws were asked for.")
    return omega


def _some(rows: Rows, seed: int, n_rows: int) -> tuple[Array, Array | None]:
    """Inputs (k, d) of at most `n_rows` rows, and their weights, if there are any.

    They are drawn uniformly among those whose weight isn't zero.
    """
    weights = rows.weights()
    order = check_random_state(seed).permutation(rows.n_samples)
    if weights is None:
        return rows.take(order[:n_rows]).astype(float), None
    order = order[weights[order] > 0.0][:n_rows]
    return rows.take(order).astype(float), weights[order].astype(float)


def _probabilities(q: Array, used: Mask) -> Array:
    """q (N,) over its sum, checked against which candidates are not zero at some rows, (N,)."""
    N = len(used)
    if q.shape != (N,) or not (np.isfinite(q) & (q >= 0.0)).all():
        raise LearningError(
            f"importance must return a number for each of the {N} candidates, finite and not "
            f"negative; it returned {q.shape} from {np.min(q, initial=0.0):.3g} on."
        )
    missed = np.flatnonzero((q == 0.0) & used)
    if len(missed) or not q.any():
        raise LearningError(
            f"importance is zero for {len(missed)} of {N} candidates that are not zero on the "
            f"data, so that the features would lack what those have: raise it above zero."
        )
    result: Array = q / q.sum()
    return result


@dataclass(eq=False, repr=False)
class RandomFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Map inputs to psi(x, omega_j) / sqrt(m q(omega_j)), whose inner products approximate K.

    :class:`RandomFeaturesKRLS` on the same draws is ridge regression on them.

    Parameters
    ----------
    features : a sampler with sample(n, n_inputs, random) and psi(X, omega), see
        :class:`FeatureSampler`; None: those of a Gaussian as wide as the rows' median distance.
    n_features : m.
    importance : None, "leverage", or a function q of omega (N, p) and inputs (k, d) that returns
        (N,) numbers, known up to a factor: see :func:`draw_features`.
    n_candidates : N, among which importance draws.
    penalty : lambda, of the importance "leverage".
    random_state : seed of the draws.

    Attributes
    ----------
    omega_ : (m, p).
    weights_ : (m,), q^-1/2; None without importance.
    """

    features: Any = None
    n_features: int = 500
    importance: Any = None
    n_candidates: int = 5000
    penalty: float = 1e-3
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> RandomFeatures:
        """Draw features for inputs X (n, d).

        Raises as :func:`draw_features`.
        """
        X = validate_data(self, X, dtype=FLOATS)
        rows, features = ArrayRows(X), self.features
        drawn = draw_features(
            SpectralSampler(scaled_kernel(None, rows)) if features is None else features,
            self.n_features,
            rows,
            self.importance,
            self.n_candidates,
            self.penalty,
            self.random_state,
        )
        self._drawn, self.omega_, self.weights_ = drawn, drawn.omega, drawn.weights
        return self

    @classmethod
    def of(cls, drawn: DrawnFeatures, n_inputs: int) -> RandomFeatures:
        """A fitted transformer of functions that were drawn already, for so many inputs."""
        new = cls(features=drawn.sampler, n_features=len(drawn.omega))
        new._drawn, new.omega_, new.weights_ = drawn, drawn.omega, drawn.weights
        new.n_features_in_ = n_inputs
        return new

    @property
    def _n_features_out(self) -> int:
        return len(self.omega_)

    def transform(self, X: Any) -> Array:
        """Features (n, m) of inputs X (n, d), in the dtype of X."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=FLOATS, reset=False)
        values = self._drawn.map(X.dtype).evaluate(X)
        result: Array = values / X.dtype.type(np.sqrt(len(self.omega_)))
        return result
