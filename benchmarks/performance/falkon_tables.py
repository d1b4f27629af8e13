"""Tables of FALKON's time, that of its multiplications, and that of its rivals."""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
from falkon_fits import FalkonTimes, measure, synthetic
from falkon_rivals import Rival, rivals
from output import markdown

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.progress import ProgressBar

DESCRIPTION = """\
FALKON's time on synthetic data beside that of its multiplications alone (NumPy's, with all cores,
the fastest of several block sizes, each iteration's right after it), its memory, and other
estimators at the same rows, centres and penalty: scikit-learn's Nystroem and Ridge, and falkon
and eigenpro2 where they are installed. --memory-limit says what the kernel matrix may take:
within it, it is kept and read again, beyond it each iteration computes it anew."""
PRECISIONS = ("float32", "float64")
KEPT = 2**33  # bytes of --kept's limit
TIMES = ["n", "d", "precision", "M", "iterations", "kernel", "fit, s (min to max)"]
TIMES += [
    "before iteration 1, s",
    "its GEMMs, s",
    "fit / GEMMs",
    "iteration / GEMMs (quartiles)",
    "cores busy",
    "peak, MB",
    "2 M² doubles, MB",
    "test error",
]
QUARTILES = (0.25, 0.5, 0.75)
RIVALS = ("estimator", "fit and predict, s", "beside FALKON", "test error", "")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000], metavar="N")
    parser.add_argument("--centers", type=int, nargs="+", default=[1000, 3000], metavar="M")
    parser.add_argument("--inputs", type=int, nargs="+", default=[28], metavar="D")
    parser.add_argument("--iterations", type=int, default=10, help="default %(default)s")
    parser.add_argument("--penalty", type=float, default=1e-6, help="default %(default)s")
    parser.add_argument("--dtype", choices=PRECISIONS, nargs="+", default=["float32"])
    parser.add_argument("--repeats", type=int, default=3, help="fits (default %(default)s)")
    parser.add_argument(
        "--memory-limit",
        type=int,
        default=10**8,
        metavar="BYTES",
        help="for the kernel matrix (default %(default)s)",
    )
    parser.add_argument("--kept", action="store_true", help="measure with the matrix kept, too")
    parser.add_argument(
        "--theorem",
        action="store_true",
        help="M, penalty and iterations by the number of rows, and the exponent of the seconds",
    )
    parser.add_argument(
        "--rivals",
        type=int,
        default=1,
        metavar="COUNT",
        help="sizes, the first ones, at which others are measured (default %(default)s)",
    )
    parser.add_argument("--figure", type=Path, metavar="FILE", help="error against time, a PNG")


def run(args: argparse.Namespace) -> str:
    """Measure; the tables."""
    if args.iterations < 2:
        raise ConfigurationError("The time before the first iteration needs two: ask for more.")
    limits = [args.memory_limit, *([KEPT] if args.kept else [])]
    given = args.penalty, args.iterations
    sizes = [(n, M, *given) for n in args.rows for M in args.centers if M <= n]
    if args.theorem:
        sizes = [(n, *theorem_3(n)) for n in args.rows]
    if not sizes:
        raise ConfigurationError("No number of centres is at most that of the rows: ask for fewer.")
    cases = list(product(args.inputs, args.dtype, sizes))
    steps = len(cases) * len(limits) + min(args.rivals, len(cases))
    times: list[FalkonTimes] = []
    others: list[str] = []
    points: list[Rival] = []
    with ProgressBar("falkon", sys.stderr) as progress:
        for number, (d, dtype, (n, M, *given)) in enumerate(cases):
            problem = synthetic(n, d, np.dtype(dtype))
            for limit in limits:
                progress((len(times) + len(others)) / steps)
                times.append(measure(problem, M, *given, limit, args.repeats))
            if number < args.rivals:
                progress((len(times) + len(others)) / steps)
                found = rivals(problem, M, *given, args.memory_limit, args.repeats)
                points += found[1:]
                others.append(f"n = {n}, d = {d}, {dtype}, M = {M}\n\n{rivals_table(found)}")
    penalty = "1/sqrt(n)" if args.theorem else f"{args.penalty:g}"
    about = f"Penalty {penalty}, {args.repeats} fits."
    if args.figure is not None:
        draw(times, points, args.figure)
    parts = [about, times_table(times), *others]
    if args.theorem and len(times) > 1:
        slope = np.polyfit(*np.log([[one.n, one.seconds] for one in times]).T, 1)[0]
        parts.append(f"seconds ~ n^{slope:.2f}")
    return "\n\n".join(parts) + "\n"


def theorem_3(n: int) -> tuple[int, float, int]:
    """Centres, penalty and iterations for n rows (Rudi, Carratino, Rosasco 2017, theorem 3)."""
    root, log = math.sqrt(n), math.log(n)
    return min(round(root * log), n), 1.0 / root, round(log)


def times_table(found: Sequence[FalkonTimes]) -> str:
    """A row for each size."""
    rows = [
        (
            str(one.n),
            str(one.inputs),
            one.dtype,
            str(one.centers),
            str(one.iterations),
            "kept" if one.stored else "anew each time",
            f"{one.seconds:.2f} ({min(one.fits):.2f} to {max(one.fits):.2f})",
            f"{one.setup:.2f}",
            f"{statistics.median(one.gemms):.2f}",
            f"{one.ratio:.2f}",
            "{1:.2f} ({0:.2f} to {2:.2f})".format(*np.quantile(one.step_ratios, QUARTILES)),
            f"{one.busy:.2f}",
            f"{one.peak_bytes / 1e6:.0f}",
            f"{16e-6 * one.centers**2:.0f}",
            f"{one.error:.4f}",
        )
        for one in found
    ]
    return markdown(TIMES, rows)


def rivals_table(found: Sequence[Rival]) -> str:
    """A row for each estimator; times beside the first one's."""
    rows = [
        (
            one.name,
            f"{one.seconds:.2f}",
            f"{one.seconds / found[0].seconds:.1f}",
            f"{one.error:.4f}",
            one.note,
        )
        for one in found
    ]
    return markdown(RIVALS, rows)


def draw(times: Sequence[FalkonTimes], others: Sequence[Rival], path: Path) -> None:
    """Test error against seconds, a line for each estimator, its points in the order measured."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    lines: dict[str, list[tuple[float, float, str]]] = {}
    for one in times:
        kept = ", kernel kept" if one.stored else ""
        label = f"Falkon, n = {one.n}{kept}"
        lines.setdefault(label, []).append((one.seconds, one.error, f"M = {one.centers}"))
    for other in others:
        lines.setdefault(other.name, []).append((other.seconds, other.error, other.note))
    figure, axes = plt.subplots(figsize=(6.5, 4.2))
    for label, found in lines.items():
        found.sort()
        axes.plot([s for s, _, _ in found], [e for _, e, _ in found], "o-", label=label)
        for seconds, error, name in found:
            below = (-10, -14) if label.startswith("Falkon") else (4, 5)
            axes.annotate(name, (seconds, error), below, textcoords="offset points", fontsize=8)
    axes.set(xscale="log", xlabel="seconds (Falkon: fit; others: fit and predict)")
    axes.set(ylabel="test error, root mean square", ylim=(0.0, 1.1 * axes.get_ylim()[1]))
    axes.set_xlim(None, 3.0 * axes.get_xlim()[1])  # room for the last names
    axes.grid(alpha=0.3)
    axes.legend(loc="lower left")
    figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)
