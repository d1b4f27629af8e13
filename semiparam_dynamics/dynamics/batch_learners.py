"""The batch estimators that a residual can be trained with, by name."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.fourier_residual import FourierResidual
from semiparam_dynamics.dynamics.local_model import LocalModel
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.learning.kernels import Gaussian
from semiparam_dynamics.learning.local_features import IncrementalNystromFeatures

# Name: (module, class, the residual whose features it has).
LEARNERS = {
    "nystrom_krls": ("nystrom", "NystromKRLS", "nystrom"),
    "falkon": ("falkon", "Falkon", "nystrom"),
    "nytro": ("nytro", "NYTRO", "nystrom"),
    "nystrom_sgm": ("nystrom_sgm", "NystromSGM", "nystrom"),
    "krls": ("krls", "KRLS", "nystrom"),
    "random_features": ("random_features", "RandomFeaturesKRLS", "random_fourier"),
}
DEFAULTS = {"nystrom": "nystrom_krls", "random_fourier": "random_features"}
CENTERS = ("novelty", "uniform", "leverage_scores")


def batch_learner(name: str) -> Any:
    """An unfitted estimator by its name in LEARNERS."""
    if name not in LEARNERS:
        raise ConfigurationError(f"learner must be one of {', '.join(LEARNERS)}, not '{name}'.")
    module, class_name, _ = LEARNERS[name]
    return getattr(importlib.import_module(f"semiparam_dynamics.learning.{module}"), class_name)()


def residual_of(learner: Any) -> str:
    """Which residual has an estimator's features: `nystrom` or `random_fourier`."""
    for _, class_name, residual in LEARNERS.values():
        if type(learner).__name__ == class_name:
            return residual
    return "random_fourier" if hasattr(learner, "frequencies_") else "nystrom"


@dataclass(frozen=True)
class BatchFit:
    """Fits copies of an estimator with the hyperparameters of the model that each will start.

    template : an estimator; its kernel, penalty, centres and seed are replaced, the rest stays.
    centers : how centres are chosen: by "novelty", as the recursion would add them, or
        "uniform" or "leverage_scores", half as many as there may be: the other half is left to
        places that the training data don't show.
    """

    template: Any
    centers: str = "novelty"
    seed: int = 0

    def __call__(self, start: LocalModel | FourierResidual, X: Array, Z: Array) -> Any:
        """The estimator fitted to inputs X (n, d) and targets Z (n, T)."""
        values: dict[str, Any] = {"penalty": start.core.penalty / len(X)}
        if isinstance(start, LocalModel):
            width = start.features.length_scale
            values |= self._centers(start.features, X) | {"random_state": self.seed}
        else:
            width = start.length_scale
            values |= {"n_features": start.n_features, "random_state": start.seed, "kind": "pair"}
        values |= {"kernel": Gaussian(width), "length_scale": width}
        estimator = clone(self.template)
        known = estimator.get_params(deep=False)
        estimator.set_params(**{name: value for name, value in values.items() if name in known})
        return estimator.fit(X, Z)

    def _centers(self, features: IncrementalNystromFeatures, X: Array) -> dict[str, Any]:
        if self.centers != "novelty":
            return {
                "centers": self.centers,
                "n_centers": min(features.capacity - features.capacity // 2, len(X)),
            }
        chosen = novel_centers(features, X)
        return {"centers": chosen, "n_centers": len(chosen)}


def novel_centers(features: IncrementalNystromFeatures, X: Array) -> Array:
    """The rows of X (n, d) that `features`, begun anew, would make centres, in their order."""
    d = X.shape[1]
    trial = IncrementalNystromFeatures(
        d, features.length_scale, features.capacity, features.novelty
    )
    for x in np.ascontiguousarray(X):
        trial.grow(x, trial.transform(x))
        if trial.n_centers == trial.capacity:
            break
    return trial.centers.copy()
