"""The recursive step's figures as a Markdown table."""

from __future__ import annotations

from collections.abc import Sequence

from step import StepTimes

HEADER = ["D", "T", "limit, µs", "copy, µs", "compiled step, µs", "/ limit", "step, µs", "/ limit"]


def step_table(found: Sequence[StepTimes]) -> str:
    """A row for each size."""
    rows = [
        (
            str(one.n_features),
            str(one.n_outputs),
            f"{one.limit:.1f}",
            f"{one.copy:.1f}",
            f"{one.kernel:.1f}",
            f"{one.kernel / one.limit:.2f}",
            f"{one.step:.1f}",
            f"{one.step / one.limit:.2f}",
        )
        for one in found
    ]
    lines = [HEADER, ["---"] * len(HEADER), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
