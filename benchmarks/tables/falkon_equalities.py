"""The iterations after which the iterative methods reach their limit.

    python benchmarks/tables/falkon_equalities.py DATA [--sets ...] [--n 4096] [--full]

FALKON's limit is direct Nyström KRLS on the same centres: the tables show the distance of the two
in test predictions, relative to the latter's, after a number of iterations, by penalty, with
that solution's test RMSE beside it: where it is smallest the distance matters. The paper's
bound needs M of the order of 1 / penalty (section 4); beyond, iterations grow. With M = n the
limit is KRLS. The last table has the descents without a penalty, and their limits.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import SCALINGS, Split, adult, data_parser, load, print_table, rmse, split
from sklearn.exceptions import ConvergenceWarning

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.learning.base import Iteration
from semiparam_dynamics.learning.falkon import Falkon
from semiparam_dynamics.learning.kernels import Gaussian
from semiparam_dynamics.learning.krls import KRLS
from semiparam_dynamics.learning.nystrom import NystromKRLS
from semiparam_dynamics.learning.nytro import NYTRO
from semiparam_dynamics.learning.sgm import NystromSGM

SHOWN = (1, 5, 10, 15, 20, 40)
MOST = 200  # iterations in which 1e-6 may be reached
CLOSE = 1e-6
TESTED = 2000  # test rows at most
DESCENT = (10, 100, 1000, 10000)


@dataclass(frozen=True)
class Case:
    """A data set, how its inputs are scaled, and what is tried on it."""

    data: str
    scaling: str
    sigma: float
    n_centers: int
    penalties: tuple[float, ...]


CASES = {
    "pumadyn32nh": (
        Case("pumadyn32nh", "z-scores", 2.66, 1000, (1e-3, 1e-4, 1e-5, 1e-6)),
        Case("pumadyn32nh", "z-scores", 10.0, 1000, (1e-3, 1e-4, 1e-5, 1e-6)),
    ),
    "cpuact": (
        Case("cpuact", "z-scores", 5.0, 1000, (1e-3, 1e-4, 1e-5, 1e-6)),
        Case("cpuact", "[0, 1]", 0.904, 1000, (1e-4, 1e-6, 1e-7, 1e-8)),
        Case("cpuact", "[0, 1]", 0.904, 2000, (1e-4, 1e-6, 1e-7, 1e-8)),
        Case("cpuact", "[0, 1]", 2.0, 1000, (1e-4, 1e-6, 1e-7, 1e-8)),
    ),
    "adult": (Case("adult", "[0, 1]", 6.6, 1000, (1e-3, 1e-4, 1e-5, 1e-6)),),
}


def relative(found: Array, limit: Array) -> float:
    """The norm of the difference of two vectors of predictions over that of the second."""
    return float(np.linalg.norm(found - limit) / np.linalg.norm(limit))


def part_of(data: Path, case: Case, n: int) -> Split:
    """n training rows; on adult the published test rows, elsewhere all others."""
    if case.data == "adult":
        part = adult(data, n)
    else:
        a = load(data, case.data)
        part = split(a["X"], a["y"], n, 0)
    part = SCALINGS[case.scaling](part)
    mean = part.y.mean()  # or else the relative distance is one of the mean
    return Split(part.X, part.y - mean, part.X_test[:TESTED], part.y_test[:TESTED] - mean)


def distances(part: Split, model: Falkon, limit: Array, most: int = MOST) -> dict[int, float]:
    """Of FALKON's test predictions from `limit`, by iteration, until they are `CLOSE`."""
    size = float(np.sqrt(np.mean(limit**2)))

    def enough(state: Iteration) -> bool:
        error = state.validation_error
        done = error is not None and np.sqrt(error) < CLOSE * size
        return done and state.number >= max(SHOWN)

    model.set_params(tolerance=0.0, max_iter=most, callback=enough)
    model.fit(part.X, part.y, validation_data=(part.X_test, limit))
    errors = [float(np.sqrt(error)) / size for error in model.validation_errors_]
    # It ends by itself where rounding lets nothing more be gained.
    errors += errors[-1:] * (max(SHOWN) - len(errors))
    return dict(enumerate(errors, 1))


def cells(found: dict[int, float]) -> list[str]:
    """The distances that are shown, and the iterations to a close one."""
    return [f"{found[t]:.1e}" for t in SHOWN] + [first_close(found)]


def first_close(found: dict[int, float]) -> str:
    """The iterations to a close distance."""
    return next((str(t) for t, d in found.items() if d < CLOSE), f"> {MOST}")


HEADER = ("penalty", *(f"t = {t}" for t in SHOWN), f"t for {CLOSE:g}", "test RMSE", "sd of y")


def nystrom_table(data: Path, case: Case, n: int) -> None:
    """FALKON against direct Nyström KRLS with the same centres."""
    part, kernel = part_of(data, case, n), Gaussian(case.sigma)
    m, rows = min(case.n_centers, len(part.X)), []
    common: dict[str, Any] = {"n_centers": m, "random_state": 0}  # the same centres for all
    direct = NystromKRLS(kernel, **common)
    for setting, predicted in direct.path(
        part.X, part.y, {"penalty": list(case.penalties)}, part.X_test
    ):
        limit, penalty = predicted[:, 0], setting["penalty"]
        found = distances(part, Falkon(kernel, penalty, **common), limit)
        error = f"{rmse(part.y_test, limit):.4g}"
        more = Falkon(kernel, penalty, preconditioner_rows=2 * m, **common)
        helped = first_close(distances(part, more, limit))
        row = (f"{penalty:g}", *cells(found), helped, error, f"{part.y_test.std():.4g}")
        rows.append(row)
    print_table(
        f"{case.data}, inputs {case.scaling}, sigma = {case.sigma}, n = {len(part.X)}, "
        f"M = {m}: |FALKON - direct Nyström| / |direct|",
        (*HEADER[:-2], "with preconditioner_rows = 2 M", *HEADER[-2:]),
        rows,
    )


def exact_table(data: Path, case: Case, n: int) -> None:
    """FALKON with all rows as centres against KRLS."""
    part, kernel, rows = part_of(data, case, n), Gaussian(case.sigma), []
    for penalty in case.penalties:
        limit = KRLS(kernel, penalty).fit(part.X, part.y).predict(part.X_test)
        found = distances(part, Falkon(kernel, penalty, n_centers=n, random_state=0), limit)
        error = f"{rmse(part.y_test, limit):.4g}"
        rows.append((f"{penalty:g}", *cells(found), error, f"{part.y_test.std():.4g}"))
    print_table(
        f"{case.data}, inputs {case.scaling}, sigma = {case.sigma}, n = M = {len(part.X)}: "
        f"|FALKON - KRLS| / |KRLS|",
        HEADER,
        rows,
    )


def least_squares(part: Split, kernel: Gaussian, centers: Array) -> Array:
    """Test predictions of least squares in the span of the centres, without a penalty."""
    coef = np.linalg.lstsq(kernel(part.X, centers), part.y, rcond=None)[0]
    return kernel(part.X_test, centers) @ coef


def along(model: Any, part: Split, counts: Sequence[int], limit: Array) -> list[str]:
    """Distances on test predictions after each number of iterations."""
    path = model.path(part.X, part.y, {"max_iter": list(counts)}, part.X_test)
    return [f"{relative(predicted[:, 0], limit):.1e}" for _, predicted in path]


def limits_table(data: Path, n: int, m: int, sigma: float) -> None:
    """Descents without a penalty, which converge to their ridgeless solutions."""
    case = Case("pumadyn32nh", "z-scores", sigma, m, ())
    part, kernel = part_of(data, case, n), Gaussian(sigma)
    centers = part.X[:m]
    span = least_squares(part, kernel, centers)
    exact = kernel(part.X_test, part.X) @ np.linalg.solve(kernel(part.X), part.y)
    nytro = NYTRO(kernel, centers=centers, step="spectral")
    landweber = KRLS(kernel, filter="landweber")
    nu = KRLS(kernel, filter="nu")
    passes = tuple(t // 10 for t in DESCENT)
    top = float(np.linalg.eigvalsh(kernel(part.X))[-1]) / len(part.X)
    common = {"centers": centers, "batch_size": 32, "step": min(0.5 / top, 1.0)}
    last, mean = NystromSGM(kernel, **common), NystromSGM(kernel, average=True, **common)
    rows = [
        (f"NYTRO, m = {m}: least squares in the span", *along(nytro, part, DESCENT, span)),
        ("Landweber, all rows: interpolation", *along(landweber, part, DESCENT, exact)),
        ("nu-method, all rows: interpolation", *along(nu, part, DESCENT, exact)),
        (f"NystromSGM, m = {m}, t / 10 passes, last iterate", *along(last, part, passes, span)),
        (f"NystromSGM, m = {m}, t / 10 passes, mean iterate", *along(mean, part, passes, span)),
    ]
    print_table(
        f"Without a penalty: pumadyn32nh, n = {len(part.X)}, sigma = {sigma}: distance from the "
        f"limit after t",
        ("method and limit", *(f"t = {t}" for t in DESCENT)),
        rows,
    )


def main() -> None:
    parser = data_parser(__doc__ or "")
    parser.add_argument("--sets", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--n", type=int, default=4096, help="training rows")
    parser.add_argument("--exact-n", type=int, default=1500, help="rows where M = n")
    parser.add_argument("--full", action="store_true", help="adult with all its rows")
    arguments = parser.parse_args()
    data: Path = arguments.data
    warnings.simplefilter("ignore", ConvergenceWarning)  # the tables show it
    for name in arguments.sets:
        for case in CASES[name]:
            whole = arguments.full and name == "adult"
            nystrom_table(data, case, 32562 if whole else arguments.n)
    for name in arguments.sets:
        exact_table(data, CASES[name][0], arguments.exact_n)
    limits_table(data, 500, 30, 4.0)


if __name__ == "__main__":
    main()
