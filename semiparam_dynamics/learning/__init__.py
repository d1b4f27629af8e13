"""Learning by itself: no robot, no ROS. Estimators, features, kernels and centres for any data.

Names are imported when they are first used, so that a node which learns one row at a time
doesn't load the batch methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from semiparam_dynamics.lazy_names import lazy_names

if TYPE_CHECKING:
    from semiparam_dynamics.learning.aggregation import NystromAggregator
    from semiparam_dynamics.learning.centers import (
        Centers,
        approximate_leverage_scores,
        leverage_scores,
        uniform,
    )
    from semiparam_dynamics.learning.classification import KernelClassifier
    from semiparam_dynamics.learning.dask_rows import DaskRows
    from semiparam_dynamics.learning.falkon import Falkon
    from semiparam_dynamics.learning.features import RandomFourierFeatures
    from semiparam_dynamics.learning.incremental_rlsc import IncrementalRLSC
    from semiparam_dynamics.learning.iterations import Iteration
    from semiparam_dynamics.learning.kernels import (
        Gaussian,
        Kernel,
        Laplacian,
        Linear,
        Matern,
        Polynomial,
    )
    from semiparam_dynamics.learning.krls import KRLS
    from semiparam_dynamics.learning.local_features import IncrementalNystromFeatures
    from semiparam_dynamics.learning.nystrom import NystromKRLS
    from semiparam_dynamics.learning.nystrom_features import NystromFeatures
    from semiparam_dynamics.learning.nystrom_sgm import NystromSGM
    from semiparam_dynamics.learning.nytro import NYTRO
    from semiparam_dynamics.learning.random_features import RandomFeaturesKRLS
    from semiparam_dynamics.learning.recursive import RecursiveLeastSquares
    from semiparam_dynamics.learning.recursive_rls import RecursiveRLS
    from semiparam_dynamics.learning.rows import Rows
    from semiparam_dynamics.learning.selection import Selection, select
    from semiparam_dynamics.learning.sgm import SGM
    from semiparam_dynamics.learning.subsampling import subsampling_size

_HOMES = {
    "Centers": "centers",
    "DaskRows": "dask_rows",
    "Falkon": "falkon",
    "Gaussian": "kernels",
    "IncrementalNystromFeatures": "local_features",
    "IncrementalRLSC": "incremental_rlsc",
    "Iteration": "iterations",
    "KRLS": "krls",
    "Kernel": "kernels",
    "KernelClassifier": "classification",
    "Laplacian": "kernels",
    "Linear": "kernels",
    "Matern": "kernels",
    "NYTRO": "nytro",
    "NystromAggregator": "aggregation",
    "NystromFeatures": "nystrom_features",
    "NystromKRLS": "nystrom",
    "NystromSGM": "nystrom_sgm",
    "Polynomial": "kernels",
    "RandomFeaturesKRLS": "random_features",
    "RandomFourierFeatures": "features",
    "RecursiveLeastSquares": "recursive",
    "RecursiveRLS": "recursive_rls",
    "Rows": "rows",
    "SGM": "sgm",
    "Selection": "selection",
    "approximate_leverage_scores": "centers",
    "leverage_scores": "centers",
    "select": "selection",
    "subsampling_size": "subsampling",
    "uniform": "centers",
}
__all__ = [
    "KRLS",
    "NYTRO",
    "SGM",
    "Centers",
    "DaskRows",
    "Falkon",
    "Gaussian",
    "IncrementalNystromFeatures",
    "IncrementalRLSC",
    "Iteration",
    "Kernel",
    "KernelClassifier",
    "Laplacian",
    "Linear",
    "Matern",
    "NystromAggregator",
    "NystromFeatures",
    "NystromKRLS",
    "NystromSGM",
    "Polynomial",
    "RandomFeaturesKRLS",
    "RandomFourierFeatures",
    "RecursiveLeastSquares",
    "RecursiveRLS",
    "Rows",
    "Selection",
    "approximate_leverage_scores",
    "leverage_scores",
    "select",
    "subsampling_size",
    "uniform",
]
__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
