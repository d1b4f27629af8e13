"""Classification: a regressor on the classes' codes, all of them at once."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.preprocessing import LabelEncoder
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning.base import LOSSES_OF_LABELS, Grid, Path
from semiparam_dynamics.learning.falkon import Falkon
from semiparam_dynamics.learning.kernels import as_kernel, is_sparse, require_sparse_form
from semiparam_dynamics.learning.rows import (
    FLOATS,
    checked_weights,
    chunk_by_chunk,
    takes_sparse,
    validate_data,
)

PREFIX = "estimator__"


@dataclass(frozen=True)
class Coded:
    """Training data of a regressor: inputs X, codes (n,) or (n, C) less their offsets.

    `weights` is the argument sample_weight of its fit, if there are any.
    """

    X: Array
    codes: Array
    weights: dict[str, Array]
    classes: Array
    offsets: Array


def _has_probabilities(classifier: Any) -> bool:
    if getattr(classifier.estimator, "loss", None) == "logistic":
        return True
    raise AttributeError(
        'Probabilities come with an estimator whose loss is "logistic", such as '
        'Falkon(loss="logistic"), or from scikit-learn\'s CalibratedClassifierCV.'
    )


def _takes_weights(regressor: Any) -> bool:
    parameters = signature(regressor.fit).parameters.values()
    return any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in parameters)


@dataclass(eq=False, repr=False)
class KernelClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classification with any of the library's regressors.

    The classes' codes are 1 for the class and -1 for all others, one column each (one column in
    all for two classes); the regressor learns all columns in one fit, and the class with the
    largest prediction wins (thesis 7.2; the paper on FALKON classifies so in section 5). The
    codes' weighted mean is an offset and isn't penalised: far from all data, where kernels
    vanish, it leaves the class of the largest weight.

    A regressor whose loss is "logistic", "hinge" or "exponential" (:class:`Falkon`, :class:`SGM`,
    :class:`NystromSGM`) learns the codes themselves, without an offset: one class against the
    rest, C problems in all. The logistic loss gives probabilities.

    Parameters
    ----------
    estimator : the regressor; None: ``Falkon(random_state=0)``. Its parameters are
        `estimator__penalty` and so on in a search.
    class_weight : None; "balanced": rows count in inverse proportion to their class' size; or a
        dict from class to weight. The estimator's fit must then accept sample weights.

    Attributes
    ----------
    classes_ : (C,), sorted.
    estimator_ : the fitted regressor, of codes less their mean.
    intercept_ : (C,), the codes' weighted mean; (1,) for two classes. Zeros with a loss of labels.
    n_features_in_ : d.
    """

    estimator: Any = None
    class_weight: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelClassifier:
        """Fit to X (n, d) and labels y (n,); weights (n,) multiply those of the classes.

        Raises LearningError for labels of one class only, ConfigurationError for weights where the
        estimator takes none.
        """
        coded, regressor = self._coded(X, y, sample_weight), self._regressor()
        regressor.fit(coded.X, coded.codes, **coded.weights)
        self.estimator_, self.classes_, self.intercept_ = regressor, coded.classes, coded.offsets
        self.__dict__.pop("n_iter_", None)  # of an earlier fit
        if hasattr(regressor, "n_iter_"):
            self.n_iter_ = regressor.n_iter_
        return self

    @chunk_by_chunk
    def decision_function(self, X: Any) -> Array:
        """Scores of inputs (n, d): (n, C), or (n,) for two classes, positive for the second.

        Of a Dask array a Dask array, in the same chunks of rows; so are labels and probabilities.
        """
        X = validate_data(self, X, dtype=FLOATS, reset=False)
        offset = self.intercept_[0] if len(self.classes_) == 2 else self.intercept_
        scores: Array = self.estimator_.predict(X) + offset
        return scores

    @chunk_by_chunk
    def predict(self, X: Any) -> Any:
        """Labels, (n,), of inputs (n, d)."""
        scores = self.decision_function(X)
        return self.classes_[_winners(scores)]

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @chunk_by_chunk
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, (n, C), of inputs (n, d), with the logistic loss.

        1 / (1 + exp(-score)); of more than two classes, divided by their sum.
        """
        p: Array = expit(self.decision_function(X))
        if p.ndim == 1:
            return np.column_stack((1.0 - p, p))
        # Scores that all underflow say that no class is likely: each as likely as the others.
        total = p.sum(axis=1, keepdims=True)
        even = np.full_like(p, 1.0 / p.shape[1])
        return np.asarray(np.divide(p, total, out=even, where=total > 0.0))

    def path(
        self, X: Any, y: Any, grid: Grid, X_validation: Any, *, sample_weight: Any = None
    ) -> Path:
        """Labels (n_val,) on X_validation along the regressor's own path over `grid`.

        The names are those of `path_parameters`, `estimator__penalty` for instance. The classifier
        stays as it is. Raises ConfigurationError for a regressor that has no such path.
        """
        regressor = self._regressor()
        if not (hasattr(regressor, "path") and set(grid) <= set(self.path_parameters)):
            raise ConfigurationError(
                f"{type(regressor).__name__} has a regularisation path over "
                f"{self.path_parameters or 'nothing'}, not over {tuple(grid)}."
            )
        inner = {name.removeprefix(PREFIX): values for name, values in grid.items()}
        other = copy.copy(self)  # for checks, which set attributes
        coded = other._coded(X, y, sample_weight)
        X_validation = validate_data(other, X_validation, dtype=FLOATS, reset=False)
        for found, scores in regressor.path(
            coded.X, coded.codes, inner, X_validation, **coded.weights
        ):
            setting = {PREFIX + name: value for name, value in found.items()}
            yield setting, coded.classes[_winners(scores + coded.offsets)]

    @property
    def path_parameters(self) -> tuple[str, ...]:
        """The regressor's, as they are called here."""
        inner = getattr(self._regressor(), "path_parameters", ())
        return tuple(PREFIX + name for name in inner)

    def set_params(self, **params: Any) -> KernelClassifier:
        """Set parameters, those of the estimator too; of None they are those of its default."""
        if any(name.startswith(PREFIX) for name in params):
            if params.get("estimator", self.estimator) is None:
                params["estimator"] = self._default()
        super().set_params(**params)
        return self

    @staticmethod
    def _default() -> Falkon:
        return Falkon(random_state=0)

    def _regressor(self) -> Any:
        return self._default() if self.estimator is None else clone(self.estimator)

    @property
    def _takes_sparse(self) -> bool:
        return self.estimator is None or takes_sparse(self.estimator)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags  # of 1.6 on, as this method

        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self._regressor()).input_tags.sparse
        return tags

    def _coded(self, X: Any, y: Any, sample_weight: Any) -> Coded:
        if is_sparse(X) and self._takes_sparse:
            require_sparse_form(as_kernel(self._regressor().kernel))
        X, y = validate_data(self, X, y, dtype=FLOATS)
        check_classification_targets(y)
        encoder = LabelEncoder()
        labels: Indices = encoder.fit_transform(y)
        classes = encoder.classes_
        if len(classes) < 2:
            raise LearningError(
                f"The labels are of one class, {classes[0]}: a classifier needs two or more."
            )
        weights = None
        if sample_weight is not None:
            weights = checked_weights(sample_weight, len(y), X.dtype)
        if self.class_weight is not None:
            weights = np.ones(len(y), X.dtype) if weights is None else weights
            weights = weights * self._class_weights(classes, y, weights)[labels].astype(X.dtype)
        if weights is not None and not weights.sum() > 0.0:
            raise LearningError("The weights sum to zero: there is nothing to learn from.")
        if weights is not None and not _takes_weights(self._regressor()):
            raise ConfigurationError(
                f"{type(self.estimator).__name__} takes no sample weights: leave out sample_weight "
                f"and class_weight, or take another estimator, such as Falkon."
            )
        binary = len(classes) == 2
        columns = np.arange(1, 2) if binary else np.arange(len(classes))
        codes = np.where(labels[:, None] == columns, 1.0, -1.0)
        offsets: Array = np.average(codes, axis=0, weights=weights)
        if getattr(self.estimator, "loss", None) in LOSSES_OF_LABELS:
            offsets = np.zeros_like(offsets)
        codes = (codes - offsets).astype(X.dtype)
        given = {} if weights is None else {"sample_weight": weights}
        return Coded(X, codes[:, 0] if binary else codes, given, classes, offsets)

    def _class_weights(self, classes: Array, y: Any, weights: Array) -> Array:
        """(C,); "balanced" counts the rows with their weights, so that weight 2 is a row twice."""
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            sizes = np.array([weights[y == label].sum() for label in classes], dtype=float)
            counted = np.maximum(sizes, np.finfo(float).tiny)
            return np.where(sizes > 0.0, sizes.sum() / (len(sizes) * counted), 0.0)
        if isinstance(self.class_weight, Mapping):
            chosen: Array = compute_class_weight(dict(self.class_weight), classes=classes, y=y)
            return chosen
        raise ConfigurationError(
            f'class_weight must be None, "balanced" or a dict, not {self.class_weight!r}.'
        )


def _winners(scores: Array) -> Indices:
    """The class' number, (n,), from scores (n,), (n, 1) or (n, C)."""
    if scores.ndim == 1 or scores.shape[1] == 1:
        return (scores.reshape(-1) > 0.0).astype(np.intp)
    winners: Indices = np.argmax(scores, axis=1)
    return winners
