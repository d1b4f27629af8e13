"""The results as a short table for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MODELS = {
    "urdf": "URDF",
    "rigid_body": "rigid body",
    "nonparametric": "nonparametric",
    "semiparametric": "semiparametric",
    "persistence": "persistence",
}


def summary_table(results: Mapping[str, Any]) -> str:
    """Normalised mean squared errors, a line per protocol and model, from results.json's dict."""
    axes = results["axes"]
    width = max(12, *(len(axis) for axis in axes)) if len(axes) <= 8 else 0
    shown = axes if width else []
    lines = [f"normalised mean squared error, {results['samples']} samples"]
    header = "".join(f" {axis:>{width}}" for axis in shown)
    lines.append(f"{'protocol':<16} {'model':<15} {'mean':>9}{header}")
    for protocol, models in results["scores"].items():
        for name, label in MODELS.items():
            values = models[name]["nmse"]
            known = [value for value in values if value is not None]
            mean = sum(known) / len(known) if known else float("nan")
            cells = "".join(f" {_number(value):>{width}}" for value in values) if width else ""
            lines.append(f"{protocol:<16} {label:<15} {_number(mean):>9}{cells}")
    timing = results["timing_us"]
    lines.append(f"step: p50 {timing['p50']:.0f} us, p99 {timing['p99']:.0f} us")
    if results["skipped"]:
        skipped = ", ".join(f"{count} x {why}" for why, count in results["skipped"].items())
        lines.append(f"skipped: {skipped}")
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
