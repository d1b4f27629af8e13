"""FALKON's figures as Markdown tables."""

from __future__ import annotations

from collections.abc import Sequence

from falkon import FalkonTimes
from falkon_rivals import Rival

TIMES = ["n", "M", "iterations", "kernel", "fit, s (min to max)", "before iteration 1, s"]
TIMES += [
    "its GEMMs, s",
    "fastest fit / GEMMs",
    "cores busy",
    "peak, MB",
    "2 M² doubles, MB",
    "test error",
]
RIVALS = ("estimator", "fit and predict, s", "beside FALKON", "test error", "")


def times_table(found: Sequence[FalkonTimes]) -> str:
    """A row for each size."""
    rows = [
        (
            str(one.n),
            str(one.centers),
            str(one.iterations),
            "kept" if one.stored else "anew each time",
            f"{one.seconds:.2f} ({min(one.fits):.2f} to {max(one.fits):.2f})",
            f"{one.setup:.2f}",
            f"{one.gemm.fit(one.iterations):.2f}",
            f"{one.ratio:.2f}",
            f"{one.busy:.2f}",
            f"{one.peak_bytes / 1e6:.0f}",
            f"{16e-6 * one.centers**2:.0f}",
            f"{one.error:.4f}",
        )
        for one in found
    ]
    return _table(TIMES, rows)


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
    return _table(RIVALS, rows)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
