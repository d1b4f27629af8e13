"""Other libraries' Nyström estimators on the same rows, centres' number and penalty.

scikit-learn is always there; falkon (Meanti, Carratino, Rosasco, Rudi 2020) and eigenpro2 (Ma and
Belkin 2019) are measured where they are installed.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from falkon_fits import WIDTH, Problem, estimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from semiparam_dynamics.learning.products import n_threads

Fit = Callable[[Problem, dict[str, Any]], Any]  # returns the predictions on the test inputs
EIGENPRO_ROWS = 2000  # from which it makes its preconditioner
FEW = 500  # rows of the fit before the first that is timed


@dataclass(frozen=True)
class Rival:
    """An estimator's figures: seconds to fit and predict the test inputs (median), error there."""

    name: str
    seconds: float
    error: float
    note: str = ""


def rivals(
    problem: Problem,
    centers: int,
    penalty: float,
    iterations: int,
    limit: int | None,
    repeats: int,
    epochs: int = 2,
) -> list[Rival]:
    """Each estimator's median of `repeats`, FALKON of this package first.

    Each is fitted to a few rows before: what is imported or compiled then is in nobody's time.
    """
    n = len(problem.X)
    fits: list[tuple[str, str, Fit]] = [
        ("Falkon, this package", f"{iterations} iterations", _ours),
        (
            "scikit-learn Nystroem + Ridge",
            f"M = {centers}, exact; features n x M stored",
            _scikit_learn,
        ),
    ]
    if importlib.util.find_spec("falkon"):
        fits.append(("falkon", f"{iterations} iterations", _falkon))
    if importlib.util.find_spec("eigenpro2"):
        fits.append(("eigenpro2", f"{epochs} epochs; all {n} rows are centres", _eigenpro))
    settings = {
        "centers": centers,
        "penalty": penalty,
        "iterations": iterations,
        "limit": limit,
        "epochs": epochs,
    }
    few = Problem(*(part[:FEW] for part in (problem.X, problem.y, problem.X_test, problem.f_test)))
    found = []
    for name, note, fit in fits:
        seconds, predicted = [], None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the iterations are given
            fit(few, settings | {"centers": min(centers, FEW // 5), "iterations": 2, "epochs": 1})
            for _ in range(repeats):
                start = time.perf_counter()
                predicted = fit(problem, settings)
                seconds.append(time.perf_counter() - start)
        found.append(Rival(name, statistics.median(seconds), problem.error(predicted), note))
    return found


def _ours(problem: Problem, asked: dict[str, Any]) -> Any:
    model = estimator(asked["centers"], asked["penalty"], asked["iterations"], asked["limit"])
    return model.fit(problem.X, problem.y).predict(problem.X_test)


def _scikit_learn(problem: Problem, asked: dict[str, Any]) -> Any:
    features = Nystroem(gamma=0.5 / WIDTH**2, n_components=asked["centers"], random_state=0)
    ridge = Ridge(asked["penalty"] * len(problem.X), fit_intercept=False)
    return make_pipeline(features, ridge).fit(problem.X, problem.y).predict(problem.X_test)


def _falkon(problem: Problem, asked: dict[str, Any]) -> Any:
    import falkon
    import torch

    torch.set_num_threads(n_threads())
    options = falkon.FalkonOptions(use_cpu=True, keops_active="no", cg_tolerance=1e-12)
    model = falkon.Falkon(
        falkon.kernels.GaussianKernel(WIDTH),
        asked["penalty"],
        asked["centers"],
        maxiter=asked["iterations"],
        seed=0,
        options=options,
    )
    X, y, new = (torch.from_numpy(part) for part in (problem.X, problem.y, problem.X_test))
    return model.fit(X, y.reshape(-1, 1)).predict(new).numpy()


def _eigenpro(problem: Problem, asked: dict[str, Any]) -> Any:
    import torch
    from eigenpro2.kernels import gaussian
    from eigenpro2.models import KernelModel

    torch.set_num_threads(n_threads())
    X, y, new = (torch.from_numpy(part) for part in (problem.X, problem.y, problem.X_test))
    model = KernelModel(lambda a, b: gaussian(a, b, bandwidth=WIDTH), X, 1, device="cpu")
    with contextlib.redirect_stdout(io.StringIO()):
        model.fit(
            X,
            y[:, None],
            epochs=asked["epochs"],
            mem_gb=4,
            n_subsamples=min(EIGENPRO_ROWS, len(X)),
            run_epoch_eval=False,
        )
    return np.concatenate([model.forward(part).numpy() for part in torch.split(new, 1000)])
