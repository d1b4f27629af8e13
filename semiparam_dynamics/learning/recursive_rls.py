"""Recursive regularised least squares as a scikit-learn regressor (thesis 7.4.2 and 8.2.4)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import LearningError, positive, proper_share
from semiparam_dynamics.learning.base import kernel_sum
from semiparam_dynamics.learning.centers import NystromBasis
from semiparam_dynamics.learning.feature_sampling import RandomFeatures
from semiparam_dynamics.learning.features import (
    BLOCK_VALUES,
    NystromFeatures,
    RandomFourierFeatures,
    feature_option,
)
from semiparam_dynamics.learning.kernels import Kernel, is_sparse
from semiparam_dynamics.learning.random_features import RandomFeaturesKRLS
from semiparam_dynamics.learning.recursion.factor import CholeskyFactor
from semiparam_dynamics.learning.recursion.rls import RecursiveLeastSquares
from semiparam_dynamics.learning.rows import Rows, checked_weights, validate_data

Transform = Callable[[Array], Array]
FACTOR_BLOCK_ROWS = 2048  # rows, and at least four times the features, so that a block outweighs R
# Of features and outputs: the square of an error by weights of such rows would pass all numbers,
# and what is not finite is in the factor for good.
MAX_FEATURE = 1e75


@dataclass(eq=False, repr=False)
class RecursiveRLS(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Ridge regression row by row: `partial_fit` costs the same however many rows came before.

    min_w sum_i |y_i - z_i w|^2 + ridge |w|^2 over the rows z_i = features(x_i), exactly, kept
    as a Cholesky factor that each row is rotated into. No intercept.

    Parameters
    ----------
    kernel : the kernel whose features are used; None is the Gaussian of width 1. Random Fourier
        features know the Gaussian only. Not used where `features` is None or a transformer.
    ridge : of the sum of squares, added once: the number of rows isn't known beforehand. The
        batch estimators' `penalty`, of the mean of squares, is `ridge` over their number of rows.
    features : None (the inputs themselves), "random_fourier", "nystrom" (its centres are chosen
        among the first rows learned), or a transformer. One that is fitted is used as it is, any
        other is fitted to the first rows.
    n_features : how many features, or centres; not used with a transformer.
    forgetting : in (0, 1]: a row that is k rows old counts forgetting^k. The ridge fades with them
        and is put back a feature at a time, so that on each it is between about 0.6 and 1.6 times
        what was asked, once on average; for 1 alone it is exact. May be changed between calls of
        `partial_fit`.
    random_state : seed of the features.

    Attributes
    ----------
    recursion_ : RecursiveLeastSquares, the state.
    features_ : the fitted transformer, or None.
    coef_ : (D,), or (D, T) where y had two dimensions; computed when asked.
    noise_ : (T,), running mean of e^2 / (1 + s): the noise's variance, from the error e that each
        row was met with, and its leverage s.
    n_features_in_ : d.
    """

    kernel: Any = None
    ridge: float = 1.0
    _: KW_ONLY
    features: Any = None
    n_features: int = 500
    forgetting: float = 1.0
    random_state: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RecursiveRLS:
        """Forget everything, then learn rows X (n, d) with y (n,) or (n, T), in their order."""
        return self._learn(X, y, sample_weight, first=True)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> RecursiveRLS:
        """Learn more rows.

        Raises ValueError for another number of inputs or outputs, and LearningError for features
        or outputs beyond 1e75; nothing is learned then.
        """
        return self._learn(X, y, sample_weight, first=not hasattr(self, "recursion_"))

    @classmethod
    def from_batch(
        cls,
        model: Any,
        X: Any,
        y: Any,
        ridge: float | None = None,
        forgetting: float = 1.0,
        *,
        sample_weight: Any = None,
    ) -> RecursiveRLS:
        """Continue a model that was trained in batch on X (n, d), y: it predicts the same.

        model : fitted, of the square loss, with centers_ (KRLS, NystromKRLS, Falkon, NYTRO,
            NystromSGM, ...), or a RandomFeaturesKRLS.
        ridge : None: the model's own penalty times n, the sum of the weights where there are any.
            Where the model was a ridge regression of just that, all later updates are as if nothing
            had been learned in batch.
        sample_weight : (n,), the weights that the model was fitted with; None: it had none.

        Raises LearningError for a model of another kind or loss, one that no penalty regularises,
        one with another number of outputs than y, and for X, y or weights that are no such arrays.
        """
        try:
            check_is_fitted(model)
        except TypeError:
            kind = type(model).__name__
            raise LearningError(f"{kind} is no model that can be continued.") from None
        if hasattr(model, "steps") or hasattr(model, "regressor_"):
            raise LearningError(
                f"{type(model).__name__} holds the model that can be continued: pass that one, "
                "which is fitted, with X and y as what is around it makes them."
            )
        if isinstance(X, Rows) or is_sparse(X):
            what = "Rows" if isinstance(X, Rows) else "sparse inputs"
            raise LearningError(
                f"from_batch needs the training rows X and y as arrays, not as {what}."
            )
        X, y = validate_data(
            model, X, y, reset=False, multi_output=True, y_numeric=True, dtype=np.float64
        )
        row_weights = np.ones(len(X))
        if sample_weight is not None:
            row_weights = checked_weights(sample_weight, len(X), X.dtype, some=True)
        if ridge is None:
            ridge = _used_penalty(model) * float(row_weights.sum()) / _unscaled(model)
        features: Any
        if isinstance(model, RandomFeaturesKRLS):
            features, weights = random_start(model)
        else:
            basis, weights = nystrom_start(model)
            features = NystromFeatures(basis.kernel, centers=basis.centers).fit(X)
        _check_square(model)
        new = cls(ridge=ridge, features=features, forgetting=forgetting)
        new.n_features_in_ = X.shape[1]
        Y = y.reshape(len(X), -1)
        if Y.shape[1] != weights.shape[1]:
            raise LearningError(f"y has {Y.shape[1]} outputs and the model {weights.shape[1]}.")
        new._start(X, Y, one_output=y.ndim == 1)
        roots = None if sample_weight is None else np.sqrt(row_weights)
        new.recursion_ = recursion_from(new._transform, X, weights, ridge, roots=roots)
        new.recursion_.forgetting = forgetting
        outputs, left_out = fitted_rows(new.recursion_, new._transform, X, roots)
        squares = row_weights[:, None] * (Y - outputs) ** 2
        new._squares = np.sum(squares / left_out[:, None], axis=0)
        new._weight = float(row_weights.sum())
        return new

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """f(x), (n,) or (n, T) as y was, for inputs X (n, d).

        With `return_std` also the standard deviation of a new measurement there, of the same
        shape: sqrt(noise (1 + s)), with s the leverage of x.
        """
        check_is_fitted(self, "recursion_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        core = self.recursion_
        mean = np.empty((len(X), core.n_outputs))
        leverage = np.empty(len(X))
        for rows in self._blocks(len(X)):
            mean[rows], leverage[rows] = core.predict_rows(self._transform(X[rows]))
        std = np.sqrt((1.0 + leverage)[:, None] * self.noise_)
        if self._one_output:
            mean, std = mean[:, 0], std[:, 0]
        return (mean, std) if return_std else mean

    @property
    def coef_(self) -> Array:
        """The features' weights, (D,) or (D, T)."""
        weights = self.recursion_.weights()
        return weights[:, 0] if self._one_output else weights

    @property
    def noise_(self) -> Array:
        """The noise's variance, (T,); 0 before anything of positive weight was learned."""
        return self._squares / max(self._weight, np.finfo(float).tiny)

    def _learn(self, X: Any, y: Any, sample_weight: Any, first: bool) -> RecursiveRLS:
        before = self.__dict__.copy()
        X, y = validate_data(
            self, X, y, reset=first, multi_output=True, y_numeric=True, dtype=np.float64
        )
        weights = None
        if sample_weight is not None:
            weights = checked_weights(sample_weight, len(X), X.dtype, some=first)
        Y = np.asarray(y, dtype=float).reshape(len(X), -1)
        if first:
            self._start(X, Y, one_output=np.ndim(y) == 1)
        elif Y.shape[1] != self.recursion_.n_outputs:
            raise LearningError(
                f"y has {Y.shape[1]} outputs, and what was learned before had "
                f"{self.recursion_.n_outputs}."
            )
        self.recursion_.forgetting = self._checked_forgetting()
        blocks = self._blocks(len(X))
        # Of a single block nothing is learned that is refused.
        state = self.recursion_.state() if blocks[1:] and not first else None
        try:
            for rows in blocks:
                w = None if weights is None else weights[rows]
                self._learn_rows(*self._weighed(X[rows], Y[rows], w), w)
        except LearningError:
            self.__dict__ = before
            if state is not None:
                self.recursion_.restore(state)
            raise
        self.recursion_.apply_pending()  # so that predictions in several threads change nothing
        return self

    def _start(self, X: Array, Y: Array, one_output: bool) -> None:
        ridge, forgetting = positive(self.ridge, "ridge"), self._checked_forgetting()
        self.features_ = feature_option(
            self.features, self.kernel, self.n_features, self.random_state, X
        )
        D = X.shape[1] if self.features_ is None else self._transform(X[:1]).shape[1]
        self.recursion_ = RecursiveLeastSquares(D, Y.shape[1], ridge, forgetting=forgetting)
        self._one_output = one_output
        self._squares = np.zeros(Y.shape[1])
        self._weight = 0.0

    def _checked_forgetting(self) -> float:
        return proper_share(self.forgetting, "forgetting")

    def _transform(self, X: Array) -> Array:
        Z = X if self.features_ is None else self.features_.transform(X)
        return np.ascontiguousarray(Z, dtype=float)

    def _blocks(self, n: int) -> list[slice]:
        size = max(1, BLOCK_VALUES // max(self.recursion_.n_features, 1))
        return list(gen_batches(n, size))

    def _weighed(self, X: Array, Y: Array, weights: Array | None) -> tuple[Array, Array]:
        """Features (k, D) and outputs (k, T) times the roots of the weights."""
        root = np.ones((len(X), 1)) if weights is None else np.sqrt(weights)[:, None]
        with np.errstate(over="ignore"):
            Z, Y = self._transform(X) * root, Y * root
        for values, what in ((Z, "Features"), (Y, "Outputs")):
            # NaN, too, is not within.
            if not (
                values.max(initial=0.0) <= MAX_FEATURE and values.min(initial=0.0) >= -MAX_FEATURE
            ):
                raise LearningError(
                    f"{what} beyond {MAX_FEATURE:g} can't be learned: leave out what was not "
                    f"measured."
                )
        return Z, Y

    def _learn_rows(self, Z: Array, Y: Array, weights: Array | None) -> None:
        """Learn rows as :meth:`_weighed` makes them."""
        k, mu = len(Z), self.forgetting
        root = np.ones(k) if weights is None else np.sqrt(weights)
        errors, leverages = self.recursion_.update_rows(Z, Y)
        squares = errors**2 / (1.0 + leverages)[:, None]
        age = mu ** np.arange(k - 1, -1, -1)
        self._squares = math.pow(mu, k) * self._squares + age @ squares
        self._weight = math.pow(mu, k) * self._weight + float(age @ root**2)


# -------------------------------------------------------------------------------------------------
# From a model trained in batch to a recursion that continues it.
#
# A batch model f(x) = phi(x)'W and a recursion with the same features differ only in what they
# keep: the recursion also needs R with R'R = ridge I + sum phi phi' over the rows the model was
# trained on. With it and U = R W it predicts what the model predicts, and each new row counts
# against the old ones as if the recursion had learned them all (thesis 8.2.4). For a ridge model
# of the same ridge this is exact; for one that was stopped early, W is the starting point and R
# says how firmly it is held.


def recursion_from(
    transform: Transform,
    X: Array,
    weights: Array,
    ridge: float,
    capacity: int | None = None,
    roots: Array | None = None,
) -> RecursiveLeastSquares:
    """A recursion that predicts transform(x) @ weights and has learned the rows X.

    transform : inputs (k, d) to features (k, D).
    X : (n, d), the inputs that the weights (D, T) were trained on.
    ridge : of the sum of squares: a batch model's penalty times the n it was trained on.
    capacity : room for features that are added later.
    roots : (n,), of the rows' sample weights; None: ones.
    """
    D, T = weights.shape
    # By QR, block after block: the rounding of Z'Z would be squared.
    factor = CholeskyFactor(D, positive(ridge, "ridge"))
    size = max(FACTOR_BLOCK_ROWS, 4 * D)
    for part in gen_batches(len(X), size):
        Z = transform(X[part])
        factor.learn(Z if roots is None else Z * roots[part, None])
    core = RecursiveLeastSquares(D, T, ridge, capacity=capacity)
    core.restore({"R": factor.R, "U": factor.R @ weights, "refreshed": np.array(0)})
    return core


def nystrom_start(model: Any, capacity: int | None = None) -> tuple[NystromBasis, Array]:
    """Orthonormal features of a fitted kernel model, and its weights (q, T) in them.

    model : anything with centers_ (m, d), coef_ (m,) or (m, T) and the parameter `kernel`.
    capacity : the centres at most. A model with more keeps those that the others explain least,
        and becomes its projection on their span, which agrees with it on them.

    Raises LearningError for a model that is no sum of kernels at centres.
    """
    check_is_fitted(model)
    if not (hasattr(model, "centers_") and hasattr(model, "coef_")):
        raise LearningError(
            f"{type(model).__name__} has no centres: it can't start Nyström features."
        )
    if is_sparse(model.centers_):
        raise LearningError(
            "Recursive learning needs a model of arrays: this one was fitted to sparse inputs."
        )
    if np.any(getattr(model, "intercept_", 0.0)):
        raise LearningError("Recursive learning needs a model without an intercept.")
    kernel = model.kernel_
    centers = np.asarray(model.centers_, dtype=float)
    coefficients = np.asarray(model.coef_, dtype=float).reshape(len(centers), -1)
    if capacity is None or len(centers) <= capacity:
        basis = NystromBasis(kernel, centers)
        return basis, basis.weights(coefficients)
    basis = NystromBasis(kernel, centers[least_explained(kernel, centers, capacity)])
    values = kernel_sum(basis.centers[basis.kept], kernel, centers, coefficients)
    return basis, solve_triangular(basis.factor, values, lower=True)


def least_explained(kernel: Kernel, points: Array, n: int) -> Indices:
    """The numbers (n,) of points (m, d), each the one that those before it explain least.

    The pivots of an incomplete Cholesky factorisation of K(points, points); O(m n^2).
    """
    rest = kernel.diagonal(points).astype(float)
    columns = np.zeros((n, len(points)))
    chosen = np.zeros(n, dtype=np.intp)
    for i in range(n):
        chosen[i] = j = int(np.argmax(rest))
        if rest[j] <= 0.0:
            return chosen[:i]
        column = kernel(points, points[j : j + 1])[:, 0]
        column = column - columns[:i, j] @ columns[:i]
        columns[i] = column / math.sqrt(rest[j])
        rest -= columns[i] ** 2
        rest[chosen[: i + 1]] = -math.inf
    return chosen


def fitted_rows(
    core: RecursiveLeastSquares, transform: Transform, X: Array, roots: Array | None = None
) -> tuple[Array, Array]:
    """Outputs (n, T) at rows X (n, d) that were learned, and what each left out leaves, (n,).

    The second is 1 - h with h = z (R'R)^-1 z', times the row's weight where there are `roots` (n,)
    of weights: an error divided by it is the error that a ridge model trained without that row
    would have made there.
    """
    size = max(FACTOR_BLOCK_ROWS, core.n_features)
    W = core.weights()
    outputs = np.empty((len(X), core.n_outputs))
    left = np.empty(len(X))
    for rows in gen_batches(len(X), size):
        Z = np.ascontiguousarray(transform(X[rows]))
        outputs[rows] = Z @ W
        left[rows] = 1.0 - core.leverages(Z if roots is None else Z * roots[rows, None])
    return outputs, np.maximum(left, np.finfo(float).eps)


def random_start(model: Any) -> tuple[RandomFourierFeatures | RandomFeatures, Array]:
    """The features of a fitted RandomFeaturesKRLS, scaled or not, and their weights (m, T).

    Of pairs the cosines and then the sines; of any sampler, and of a kernel with phases, a function
    each: in pairs these would be twice as many features, with another ridge.

    Raises LearningError for a model of another kind.
    """
    if not isinstance(model, RandomFeaturesKRLS):
        raise LearningError(
            f"{type(model).__name__} has no frequencies: it can't start random Fourier features."
        )
    check_is_fitted(model)
    m = len(model.coef_)
    weights = math.sqrt(_unscaled(model)) * np.asarray(model.coef_, dtype=float).reshape(m, -1)
    if getattr(model, "offsets_", 0.0) is not None:
        return RandomFeatures.of(model._features, model.n_features_in_), weights
    # Both kinds scale by sqrt(2 / number of functions), the pairs here by 1 / sqrt(frequencies)
    pairs = RandomFourierFeatures(m).fit(np.zeros((1, model.n_features_in_)))
    pairs.frequencies_ = np.asarray(model.frequencies_, dtype=float)
    return pairs, np.concatenate((weights[::2], weights[1::2]))


def _check_square(model: Any) -> None:
    """Raise LearningError for a model of another than the square loss."""
    loss = getattr(model, "loss", "square")
    if getattr(loss, "name", loss) != "square":
        raise LearningError(
            f"Recursive learning continues least squares, and this {type(model).__name__} was "
            f"fitted with the loss {loss!r}: fit it with loss='square'."
        )


def _used_penalty(model: Any) -> float:
    """The penalty that regularises a model. Raises LearningError where none does."""
    given = getattr(model, "penalty", None)
    penalty, spectral = getattr(model, "penalty_", given), getattr(model, "filter", "tikhonov")
    if penalty is None:
        raise LearningError(f"{type(model).__name__} has no penalty: pass a ridge.")
    if spectral != "tikhonov":
        raise LearningError(
            f"{type(model).__name__} with the filter {spectral!r} has no penalty that is a ridge: "
            "pass a ridge."
        )
    return float(penalty)


def _unscaled(model: Any) -> int:
    """m where a model of random features has no factor 1 / sqrt(m), and 1 elsewhere.

    In coefficients of scaled features, sqrt(m) times its own, its penalty weighs an m-th.
    """
    return 1 if getattr(model, "scaled", True) else len(model.coef_)
