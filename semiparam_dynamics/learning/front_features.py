"""The features in front of a recursive learner, from its parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.learning.features import NystromFeatures, RandomFourierFeatures
from semiparam_dynamics.learning.kernels import Gaussian, as_kernel
from semiparam_dynamics.recursion.features import IncrementalNystromFeatures


def fitted_features(
    features: Any, kernel: Any, n_features: int, random_state: Any, X: Array
) -> Any:
    """A fitted transformer, or None for the inputs themselves.

    features : None, "random_fourier", "nystrom" (centres among the rows of X), or a transformer.
        One that is fitted is returned as it is; any other is cloned and fitted to X (n, d).

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
    known = as_kernel(kernel)
    if features == "nystrom":
        return NystromFeatures(kernel=known, n_centers=n_features, random_state=random_state).fit(X)
    if features != "random_fourier":
        raise ConfigurationError(
            f"features must be None, 'random_fourier', 'nystrom' or a transformer, "
            f"not {features!r}."
        )
    scale = gaussian_width(known, "Random Fourier features")
    return RandomFourierFeatures(n_features, scale, random_state).fit(X)


def gaussian_width(kernel: Any, what: str) -> float:
    """The width of a Gaussian kernel. Raises ConfigurationError for any other kernel."""
    known = as_kernel(kernel)
    if not isinstance(known, Gaussian):
        raise ConfigurationError(f"{what} are of a Gaussian kernel only.")
    return float(known.length_scale)


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

    def state(self) -> dict[str, Array]:
        """The random frequencies, where they are its own."""
        return {"frequencies": self._transformer.frequencies_} if self._own else {}

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a :meth:`state`."""
        for name in self.state():
            self._transformer.frequencies_ = state[name]


class GrowingFeatures:
    """Nyström features (thesis 4.2) whose centres are added while rows are learned.

    Always `capacity` features: those of centres that are still to come are zero, so that whatever
    is learned on them keeps its size and needs no reallocation.
    """

    def __init__(self, n_inputs: int, length_scale: float, capacity: int, novelty: float) -> None:
        self._features = IncrementalNystromFeatures(n_inputs, length_scale, capacity, novelty)

    def transform(self, X: Array) -> Array:
        """Features (n, capacity) of inputs (n, d)."""
        Z = np.zeros((len(X), self._features.capacity))
        for z, x in zip(Z, X, strict=True):
            phi = self._features.transform(x)
            z[: len(phi)] = phi
        return Z

    def learn(self, X: Array) -> Array:
        """The same, and each row that the centres don't explain becomes one, before the next."""
        Z = np.zeros((len(X), self._features.capacity))
        for z, x in zip(Z, X, strict=True):
            phi = self._features.transform(x)
            z[: len(phi)] = phi
            if self._features.grow(x, phi):
                z[len(phi)] = np.sqrt(1.0 - float(phi @ phi))
        return Z

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        return self._features.state()

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a :meth:`state`."""
        self._features.restore(state)
