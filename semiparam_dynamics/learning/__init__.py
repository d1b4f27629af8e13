"""Large-scale kernel methods as scikit-learn estimators: no robot, no ROS.

Estimators, features, kernels and centres. Rows on a Dask cluster are in
:mod:`semiparam_dynamics.learning.backends.dask_arrays`. Each name's module, and scikit-learn with
it, is imported when the name is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from semiparam_dynamics.base.extras import missing_extra

if TYPE_CHECKING:
    from semiparam_dynamics.learning.aggregation import NystromAggregator as NystromAggregator
    from semiparam_dynamics.learning.base import ErrorSlope as ErrorSlope
    from semiparam_dynamics.learning.base import Iteration as Iteration
    from semiparam_dynamics.learning.centers import Centers as Centers
    from semiparam_dynamics.learning.centers import (
        approximate_leverage_scores as approximate_leverage_scores,
    )
    from semiparam_dynamics.learning.centers import leverage_scores as leverage_scores
    from semiparam_dynamics.learning.centers import subsampling_size as subsampling_size
    from semiparam_dynamics.learning.centers import uniform as uniform
    from semiparam_dynamics.learning.classification import KernelClassifier as KernelClassifier
    from semiparam_dynamics.learning.falkon import Falkon as Falkon
    from semiparam_dynamics.learning.feature_sampling import FeatureSampler as FeatureSampler
    from semiparam_dynamics.learning.feature_sampling import RandomFeatures as RandomFeatures
    from semiparam_dynamics.learning.feature_sampling import SpectralSampler as SpectralSampler
    from semiparam_dynamics.learning.features import NystromFeatures as NystromFeatures
    from semiparam_dynamics.learning.features import RandomFourierFeatures as RandomFourierFeatures
    from semiparam_dynamics.learning.features import RandomReLUFeatures as RandomReLUFeatures
    from semiparam_dynamics.learning.incremental_rlsc import IncrementalRLSC as IncrementalRLSC
    from semiparam_dynamics.learning.kernels import Gaussian as Gaussian
    from semiparam_dynamics.learning.kernels import Kernel as Kernel
    from semiparam_dynamics.learning.kernels import Laplacian as Laplacian
    from semiparam_dynamics.learning.kernels import Linear as Linear
    from semiparam_dynamics.learning.kernels import Matern as Matern
    from semiparam_dynamics.learning.kernels import Polynomial as Polynomial
    from semiparam_dynamics.learning.krls import KRLS as KRLS
    from semiparam_dynamics.learning.nystrom import NystromKRLS as NystromKRLS
    from semiparam_dynamics.learning.nytro import NYTRO as NYTRO
    from semiparam_dynamics.learning.random_features import RandomFeaturesKRLS as RandomFeaturesKRLS
    from semiparam_dynamics.learning.recursive_rls import RecursiveRLS as RecursiveRLS
    from semiparam_dynamics.learning.rows import Rows as Rows
    from semiparam_dynamics.learning.selection import Selection as Selection
    from semiparam_dynamics.learning.selection import select as select
    from semiparam_dynamics.learning.sgm import SGM as SGM
    from semiparam_dynamics.learning.sgm import NystromSGM as NystromSGM

# The public names, by their modules.
_NAMES = {
    "aggregation": "NystromAggregator",
    "base": "ErrorSlope Iteration",
    "centers": "Centers approximate_leverage_scores leverage_scores subsampling_size uniform",
    "classification": "KernelClassifier",
    "falkon": "Falkon",
    "feature_sampling": "FeatureSampler RandomFeatures SpectralSampler",
    "features": "NystromFeatures RandomFourierFeatures RandomReLUFeatures",
    "incremental_rlsc": "IncrementalRLSC",
    "kernels": "Gaussian Kernel Laplacian Linear Matern Polynomial",
    "krls": "KRLS",
    "nystrom": "NystromKRLS",
    "nytro": "NYTRO",
    "random_features": "RandomFeaturesKRLS",
    "recursive_rls": "RecursiveRLS",
    "rows": "Rows",
    "selection": "Selection select",
    "sgm": "SGM NystromSGM",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    """Import a public name's module (PEP 562); MissingExtraError where scikit-learn is missing."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"{__name__}.{_MODULES[name]}")
    except ModuleNotFoundError as error:
        raise (missing_extra("semiparam_dynamics.learning", error) or error) from error
    return globals().setdefault(name, getattr(module, name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
