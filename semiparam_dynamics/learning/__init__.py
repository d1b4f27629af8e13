"""Large-scale kernel methods as scikit-learn estimators: no robot, no ROS.

Estimators, features, kernels and centres. Rows on a Dask cluster are in
:mod:`semiparam_dynamics.learning.backends.dask_arrays`. Each name's module, and scikit-learn with
it, is imported when the name is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from semiparam_dynamics.base.extras import missing_extra

if TYPE_CHECKING:
    from semiparam_dynamics.learning.aggregation import NystromAggregator
    from semiparam_dynamics.learning.base import ErrorSlope, Iteration
    from semiparam_dynamics.learning.centers import (
        Centers,
        approximate_leverage_scores,
        leverage_scores,
        subsampling_size,
        uniform,
    )
    from semiparam_dynamics.learning.classification import KernelClassifier
    from semiparam_dynamics.learning.falkon import Falkon
    from semiparam_dynamics.learning.feature_sampling import (
        FeatureSampler,
        RandomFeatures,
        SpectralSampler,
    )
    from semiparam_dynamics.learning.features import (
        NystromFeatures,
        RandomFourierFeatures,
        RandomReLUFeatures,
    )
    from semiparam_dynamics.learning.incremental_rlsc import IncrementalRLSC
    from semiparam_dynamics.learning.kernels import (
        Gaussian,
        Kernel,
        Laplacian,
        Linear,
        Matern,
        Polynomial,
    )
    from semiparam_dynamics.learning.krls import KRLS
    from semiparam_dynamics.learning.nystrom import NystromKRLS
    from semiparam_dynamics.learning.nytro import NYTRO
    from semiparam_dynamics.learning.random_features import RandomFeaturesKRLS
    from semiparam_dynamics.learning.recursive_rls import RecursiveRLS
    from semiparam_dynamics.learning.rows import Rows
    from semiparam_dynamics.learning.selection import Selection, select
    from semiparam_dynamics.learning.sgm import SGM, NystromSGM
    from semiparam_dynamics.learning.widths import LearnedWidths, learn_widths

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
    "widths": "LearnedWidths learn_widths",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "KRLS",
    "NYTRO",
    "SGM",
    "Centers",
    "ErrorSlope",
    "Falkon",
    "FeatureSampler",
    "Gaussian",
    "IncrementalRLSC",
    "Iteration",
    "Kernel",
    "KernelClassifier",
    "Laplacian",
    "LearnedWidths",
    "Linear",
    "Matern",
    "NystromAggregator",
    "NystromFeatures",
    "NystromKRLS",
    "NystromSGM",
    "Polynomial",
    "RandomFeatures",
    "RandomFeaturesKRLS",
    "RandomFourierFeatures",
    "RandomReLUFeatures",
    "RecursiveRLS",
    "Rows",
    "Selection",
    "SpectralSampler",
    "approximate_leverage_scores",
    "learn_widths",
    "leverage_scores",
    "select",
    "subsampling_size",
    "uniform",
]


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
