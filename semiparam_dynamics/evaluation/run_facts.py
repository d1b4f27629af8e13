"""The report's last section: step times, messages left out, configuration, version."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics import __version__
from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.evaluation.experiment import Evaluation
from semiparam_dynamics.evaluation.page import cell, head, note, table
from semiparam_dynamics.parameters import parameters, to_flat


def run_facts(evaluation: Evaluation) -> list[str]:
    """The section's parts, as HTML."""
    return [
        note(f"semiparam_dynamics {__version__}, seed {evaluation.config.estimator.seed}."),
        "<h3>Time per sample</h3>",
        _times(evaluation),
        "<h3>Messages not used</h3>",
        _skipped(evaluation),
        "<h3>Configuration</h3>",
        _configuration(evaluation.config),
    ]


def _times(evaluation: Evaluation) -> str:
    times = 1e6 * np.array(evaluation.timing or [np.nan])
    header = [
        head("Filter, predict, learn: the last samples"),
        head("p50"),
        head("p99"),
        head("max"),
    ]
    values = [np.percentile(times, 50), np.percentile(times, 99), times.max()]
    row = [head("µs, on the machine of the evaluation"), *(cell(f"{v:.0f}") for v in values)]
    return table(header, [row])


def _skipped(evaluation: Evaluation) -> str:
    if not evaluation.skipped:
        return "<p>None: every message was used.</p>"
    rows = [[cell(why, style="words"), cell(str(n))] for why, n in evaluation.skipped.most_common()]
    return table([head("Reason", style="words"), head("Messages")], rows)


def _configuration(config: InverseDynamicsConfig) -> str:
    values = to_flat(config)
    rows = []
    for about in parameters(type(config)):
        value = values[about.name]
        rows.append(
            [
                head(about.name),
                cell(_text(value), style="words" if value == about.default else "words best"),
                cell(about.unit, style="unit"),
                cell(about.description, style="words"),
            ]
        )
    header = [head("Parameter"), head("Value", "bold: not the default", "words")]
    header += [head("Unit", style="unit"), head("Meaning", style="words")]
    return table(header, rows)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(map(_text, value)) or "(empty)"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) or "(empty)"
