"""Nyström, random Fourier and ReLU features: transformers, and the feature options of estimators.

Thesis 4.2, chapter 5 and 8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError, positive, positive_count
from semiparam_dynamics.learning.centers import (
    NystromBasis,
    choose_centers,
    nystrom_map,
    scaled_kernel,
)
from semiparam_dynamics.learning.feature_sampling import kernel_widths
from semiparam_dynamics.learning.kernels import Gaussian, HasKernel, Kernel, as_kernel
from semiparam_dynamics.learning.products import evaluate_into
from semiparam_dynamics.learning.recursion.features import (
    IncrementalNystromFeatures,
    draw_frequencies,
    fourier_features,
)
from semiparam_dynamics.learning.rows import FLOATS, ArrayRows, validate_data

BLOCK_VALUES = 2**21  # of features or scores that estimators hold at a time: 16 MB


@dataclass(eq=False, repr=False)
class NystromFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, HasKernel):  # type: ignore[misc]
    """Map inputs to features whose inner products are the kernel's Nyström approximation.

    phi(x)'phi(x') = K(x, C) K(C, C)^+ K(C, x'), exact wherever x or x' is a centre. The features
    of the first centres are the first features. They take the place of
    :class:`RandomFourierFeatures` in a pipeline with any linear method.

    Parameters
    ----------
    kernel : as that of :class:`Falkon`; the width "scale" is the rows' median distance.
    n_centers : m, at most as many as there are rows.
    centers : "uniform", "leverage_scores" (of penalty 1e-3), or the centres themselves, (m, d).
    random_state : seed of the centres.

    Attributes
    ----------
    centers_ : (m, d).
    n_components : q <= m, the number of features: of centres that others don't explain.
    """

    kernel: Any = None
    n_centers: int = 100
    centers: Any = "uniform"
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> NystromFeatures:
        """Choose centres among inputs (n, d).

        Raises LearningError if the kernel is zero at every centre.
        """
        X = validate_data(self, X, dtype=FLOATS)
        self.kernel_ = kernel = scaled_kernel(self.kernel, ArrayRows(X))
        self.centers_ = choose_centers(
            self.centers, ArrayRows(X), self.n_centers, kernel, 1e-3, self.random_state
        ).points
        self._basis = NystromBasis(kernel, self.centers_)
        return self

    @property
    def n_components(self) -> int:
        """q, the number of features."""
        check_is_fitted(self)
        return self._basis.n_features

    @property
    def _n_features_out(self) -> int:
        return self.n_components

    def transform(self, X: Any) -> Array:
        """Features (n, q) of inputs X (n, d), in the dtype of X."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=FLOATS, reset=False)
        features = nystrom_map(self._basis, self._basis.dtype)
        K = np.empty((len(X), features.n_features), self._basis.dtype)
        # In the fit's precision: L may have too large a condition for a lower one.
        evaluate_into(features.evaluate, X.astype(K.dtype, copy=False), K)
        phi = K if features.finish is None else features.finish(K)
        return np.ascontiguousarray(phi, dtype=X.dtype)


@dataclass(eq=False, repr=False)
class RandomFourierFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Map inputs to random features whose inner products approximate a Gaussian kernel.

    Parameters
    ----------
    n_features : features, half cosines and half sines (an odd number is rounded down, 1 up).
    length_scale : the kernel's width sigma, in the inputs' unit; or one width for each input, (d,);
        "scale": the rows' median distance.
    random_state : seed or generator of the frequencies.

    Attributes
    ----------
    frequencies_ : (n_features / 2, d).
    """

    n_features: int = 500
    length_scale: Any = "scale"
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> RandomFourierFeatures:
        """Draw the frequencies for inputs (n, d).

        Raises ConfigurationError for widths or a number of features that aren't positive.
        """
        X = validate_data(self, X, dtype=FLOATS)
        half = max(positive_count(self.n_features, "n_features") // 2, 1)
        widths = kernel_widths(scaled_kernel(Gaussian(self.length_scale), ArrayRows(X)), X.shape[1])
        random = check_random_state(self.random_state)
        self.frequencies_ = draw_frequencies(half, X.shape[1], 1.0, random) / widths
        self._n_features_out = 2 * half
        return self

    def transform(self, X: Any) -> Array:
        """Features (n, n_features) of inputs (n, d)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=FLOATS, reset=False)
        return fourier_features(X, self.frequencies_.astype(X.dtype))


@dataclass(eq=False, repr=False)
class RandomReLUFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Map inputs to the positive parts of random projections, sqrt(2 / M) max(w'x, 0).

    The w are standard normal. Inner products approximate the arc-cosine kernel of degree 1,
    |x| |x'| (sin t + (pi - t) cos t) / pi with t the angle between x and x' (Cho and Saul: Kernel
    methods for deep learning, NIPS 2009, equations 1 and 6), so that lengths stay as they were.
    RanPAC has these features before its least squares (McDonnell et al., NeurIPS 2023, section 4).

    Parameters
    ----------
    n_features : M.
    random_state : seed or generator of the w.

    Attributes
    ----------
    directions_ : (M, d), the w times sqrt(2 / M).
    """

    n_features: int = 500
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> RandomReLUFeatures:
        """Draw the directions for inputs (n, d)."""
        X = validate_data(self, X, dtype=FLOATS)
        size = positive_count(self.n_features, "n_features")
        random = check_random_state(self.random_state)
        self.directions_ = random.standard_normal((size, X.shape[1])) * np.sqrt(2.0 / size)
        self._n_features_out = size
        return self

    def transform(self, X: Any) -> Array:
        """Features (n, n_features) of inputs (n, d), in the dtype of X."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=FLOATS, reset=False)
        Z: Array = X @ self.directions_.T.astype(X.dtype, copy=False)
        return np.maximum(Z, 0.0, out=Z)


def feature_option(features: Any, kernel: Any, n_features: int, random_state: Any, X: Array) -> Any:
    """The fitted transformer of a `features` parameter, or None for the inputs themselves.

    features : None, "random_fourier", "random_relu", "nystrom" (centres among the rows of X), or
        a transformer. One that is fitted is returned as it is; any other is cloned and fitted to
        X (n, d).

    Raises ConfigurationError for another value, and for random Fourier features of a kernel that
    is not Gaussian.
    """
    if features is None:
        return None
    if not isinstance(features, str):
        try:
            check_is_fitted(features)
        except NotFittedError:
            return clone(features).fit(X)
        return features
    if features == "random_relu":
        return RandomReLUFeatures(n_features, random_state).fit(X)
    known = _stream_kernel(kernel, X)
    if features == "nystrom":
        return NystromFeatures(kernel=known, n_centers=n_features, random_state=random_state).fit(X)
    if features != "random_fourier":
        raise ConfigurationError(
            "features must be None, 'random_fourier', 'random_relu', 'nystrom' or a transformer, "
            f"not {features!r}."
        )
    scale = _gaussian(known, "Random Fourier features").length_scale
    return RandomFourierFeatures(n_features, scale, random_state).fit(X)


def gaussian_width(kernel: Any, what: str, X: Array) -> float:
    """The width of a Gaussian kernel, for rows X (n, d).

    Raises ConfigurationError for any other kernel, and for one with a width for each input.
    """
    scale = _gaussian(_stream_kernel(kernel, X), what).length_scale
    if np.ndim(scale):
        raise ConfigurationError(
            f"{what} have one width for all inputs: divide the inputs by the kernel's widths, and "
            f"take Gaussian(1.0)."
        )
    return positive(scale, "length_scale")


def _stream_kernel(kernel: Any, X: Array) -> Kernel:
    """The kernel of a learner of rows that come one by one: only "scale" looks at the first X."""
    return Gaussian(1.0) if kernel is None else scaled_kernel(kernel, ArrayRows(X))


def _gaussian(kernel: Any, what: str) -> Gaussian:
    known = as_kernel(kernel)
    if not isinstance(known, Gaussian):
        raise ConfigurationError(f"{what} are of a Gaussian kernel only.")
    return known


DRAWN = ("frequencies", "directions")  # what transformers draw at random, with a "_" after it


class FixedFeatures:
    """A fitted transformer's features, or with None the inputs themselves.

    own : the transformer was made here and belongs to what is saved; another is the caller's.
    """

    def __init__(self, transformer: Any, own: bool) -> None:
        self._transformer = transformer
        self._own = own

    def transform(self, X: Array) -> Array:
        """Features (n, D) of inputs (n, d)."""
        Z = X if self._transformer is None else self._transformer.transform(X)
        return np.ascontiguousarray(Z, dtype=float)

    learn = transform

    def unexplained(self, Z: Array) -> Array:
        """Zeros (k,) for features Z (k, D), of which nothing is known to be missing."""
        return np.zeros(len(Z))

    def state(self) -> dict[str, Array]:
        """The random frequencies or directions, where they are its own."""
        if not self._own:
            return {}
        fitted = vars(self._transformer)
        return {name: fitted[name + "_"] for name in DRAWN if name + "_" in fitted}

    def restore(self, state: dict[str, Array]) -> None:
        """Resume from a :meth:`state`."""
        for name in self.state():
            setattr(self._transformer, name + "_", state[name])


class GrowingFeatures:
    """Nyström features (thesis 4.2) whose centres are added while rows are learned.

    Always `capacity` features: those of centres that are still to come are zero, so that whatever
    is learned on them keeps its size and needs no reallocation.
    """

    def __init__(self, n_inputs: int, length_scale: float, capacity: int, novelty: float) -> None:
        room = positive_count(capacity, "n_features")
        self._features = IncrementalNystromFeatures(n_inputs, length_scale, room, novelty)

    def learn(self, X: Array) -> Array:
        """Features, and each row that the centres don't explain becomes one, before the next."""
        return self.transform(X, grow=True)

    def transform(self, X: Array, grow: bool = False) -> Array:
        """Features (n, capacity) of inputs (n, d)."""
        Z = np.zeros((len(X), self._features.capacity))
        for z, x in zip(Z, X, strict=True):
            phi = self._features.transform(x)
            z[: len(phi)] = phi
            if grow and self._features.grow(x, phi):
                z[len(phi)] = np.sqrt(1.0 - float(phi @ phi))
        return Z

    def unexplained(self, Z: Array) -> Array:
        """Residuals k(x, x) - |z|^2, (k,), of inputs with features Z (k, capacity)."""
        left: Array = np.maximum(1.0 - np.einsum("ij,ij->i", Z, Z), 0.0)
        return left

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        return self._features.state()

    def restore(self, state: dict[str, Array]) -> None:
        """Resume from a :meth:`state`."""
        self._features.restore(state)
