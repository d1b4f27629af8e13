"""KRLS and KOLS of the thesis' table 4.3 on adult: as many rows as time and memory allow.

    python benchmarks/tables/adult_exact.py DATA [--rows 2000 4000 8000] [--factor]

The published settings: inputs in [-1, 1], sigma 6.6, a fifth of the rows held out, fits to the
other four fifths tested as they are. For each number of training rows KRLS with the best of 100
penalties, from one eigendecomposition, and KOLS, the pseudo-inverse, from another; each takes
O(n^3) time and three n x n matrices. With --factor KRLS on all rows, one Cholesky factor for each
of three penalties, the published one first: one matrix, 8 n^2 bytes. Rows are printed as they end.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from common import Split, adult, data_parser, held_out, measured, print_table, rmse

from semiparam_dynamics.learning.kernels import Gaussian
from semiparam_dynamics.learning.krls import KRLS
from semiparam_dynamics.learning.selection import select

PENALTIES = list(np.logspace(-15, 0, 100))
SIGMA, PUBLISHED = 6.6, 4.04e-5
MEMORY = 2**33  # bytes for matrices at most
HEADER = ("method", "rows learned", "lambda", "validation RMSE", "test RMSE", "thesis", "s", "MB")


def main() -> None:
    parser = data_parser(__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[2000, 4000, 8000])
    parser.add_argument("--factor", action="store_true", help="KRLS on all rows")
    parser.add_argument("--n", type=int, help="rows in place of all with --factor")
    args = parser.parse_args()
    found: list[tuple[object, ...]] = []
    for n in args.rows:
        part = adult(args.data, n, 0).symmetric_range()
        inner = held_out(part)
        model = KRLS(Gaussian(SIGMA), memory_limit=MEMORY)
        given = (inner.X_test, inner.y_test)
        chosen, spent = measured(
            lambda m=model, i=inner, g=given: select(
                m, i.X, i.y, {"penalty": PENALTIES}, validation=g, refit=False
            )
        )
        model.set_params(penalty=chosen.best["penalty"])
        add(found, "KRLS, 100 penalties", part, model, "0.645", spent)
        add(found, "KOLS", part, KRLS(Gaussian(SIGMA), filter="ols", memory_limit=MEMORY), "1765")
    for factor in (1.0, 0.25, 4.0) if args.factor else ():
        part = adult(args.data, args.n, 0).symmetric_range()
        model = KRLS(Gaussian(SIGMA), factor * PUBLISHED, memory_limit=MEMORY)
        add(found, "KRLS, one factor", part, model, "0.645")
    print_table("adult, KRLS and KOLS, published settings (thesis, table 4.3)", HEADER, found)


def add(
    found: list[tuple[object, ...]],
    name: str,
    part: Split,
    model: Any,
    thesis: str,
    selection: Any = None,
) -> None:
    """Fit to four fifths of the rows, and add a row; its seconds are of the selection, if given."""
    inner = held_out(part)
    _, fit = measured(lambda: model.fit(inner.X, inner.y))
    spent = selection or fit
    row = (
        name,
        len(inner.X),
        "-" if model.filter == "ols" else f"{model.penalty:.3g}",
        f"{rmse(inner.y_test, model.predict(inner.X_test)):.4g}",
        f"{rmse(part.y_test, model.predict(part.X_test)):.4g}",
        thesis,
        f"{spent.seconds:.1f}",
        f"{spent.megabytes:.0f}",
    )
    print(", ".join(map(str, row)), file=sys.stderr, flush=True)
    found.append(row)


if __name__ == "__main__":
    main()
