"""Table 7.1 of the thesis from what was measured: Markdown, and all numbers as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

import numpy as np
from recognition_protocol import ProtocolResult
from recognition_published import published

from semiparam_dynamics import __version__
from semiparam_dynamics.arrays import Array

NAMES = {"naive": "naive", "rebalanced": "rebalanced", "recoding": "recoding"}
SCALES = {
    "max": "inputs divided by the greatest number learned",
    "unit": "each input divided by its norm",
    "none": "inputs as they are in the file",
}


def methods(result: ProtocolResult) -> dict[str, str]:
    """The rows of the table, in their order: each method's name in :class:`Score` and in print."""
    tolerance = result.protocol.tolerance
    if tolerance <= 0.0:
        return NAMES
    return NAMES | {"recoding_tolerance": f"recoding, tolerance {tolerance:g} *"}


def recognition_table(result: ProtocolResult) -> str:
    """The table in Markdown; for MNIST a second one beside the thesis' figures."""
    protocol, file = result.protocol, result.file
    sizes, classes = protocol.sizes, len(file.names)
    drawn = "another at random in each trial"
    new = drawn if protocol.new_class is None else file.names[protocol.new_class]
    apart = "rows of the file's test part" if file.test else "rows used for nothing else"
    lines = [
        f"## {file.path.name}: {classes} classes of {file.train.X.shape[1]} inputs",
        "",
        f"{protocol.trials} trials, seed {protocol.seed}. New class: {new}. Of each of the"
        f" {classes - 1} others {sizes.balanced} examples to learn and {sizes.validation} to choose"
        f" by; tested on {sizes.test} of every class, {apart}; {SCALES[protocol.scale]}; penalties"
        f" {', '.join(f'{one:g}' for one in sorted(protocol.penalties))}. Accuracy in %: mean ±"
        " standard deviation over the trials (standard error of the mean); exponent and penalty:"
        " arithmetic and geometric mean of those chosen.",
        "",
        "| new examples | | total | new class | exponent | penalty |",
        "|---|---|---|---|---|---|",
    ]
    for n in sizes.new:
        for method, name in methods(result).items():
            total = _spread(100.0 * result.values(method, n, "total"))
            fresh = _spread(100.0 * result.values(method, n, "new_class"))
            alpha = result.values(method, n, "alpha").mean()
            shown = "" if method == "rebalanced" else f"{alpha:.2f}"
            penalty = float(np.exp(np.log(result.values(method, n, "penalty")).mean()))
            rounded = f"{float(f'{penalty:.2g}'):g}"
            lines.append(f"| {n} | {name} | {total} | {fresh} | {shown} | {rounded} |")
    if protocol.tolerance > 0.0:
        lines += [
            "",
            f"\\* not the thesis' rule: up to {100.0 * protocol.tolerance:g} points of validation"
            " accuracy are given up for a larger exponent.",
        ]
    return "\n".join([*lines, *_comparison(result)]) + "\n"


def results_json(result: ProtocolResult) -> str:
    """All that was measured, as the text of results.json: shares, not per cent."""
    protocol, names = asdict(result.protocol), result.file.names
    if result.protocol.new_class is not None:
        protocol["new_class"] = names[result.protocol.new_class]
    found = {
        "file": result.file.path.name,
        "classes": list(names),
        "inputs": int(result.file.train.X.shape[1]),
        "protocol": protocol,
        "new_classes": [names[number] for number in result.new_classes],
        "scores": [asdict(score) for score in result.scores],
        "seed": result.protocol.seed,
        "version": __version__,
    }
    return json.dumps(found, indent=1, allow_nan=False) + "\n"


def edge_warnings(result: ProtocolResult) -> list[str]:
    """Sentences on penalties that were the best because there was none beyond."""
    penalties = sorted(result.protocol.penalties)
    if len(penalties) < 2:
        return []
    warnings = []
    for edge, word in ((penalties[0], "smaller"), (penalties[-1], "larger")):
        for method, name in methods(result).items():
            points = result.protocol.sizes.new
            chosen = np.concatenate([result.values(method, n, "penalty") for n in points])
            share = float(np.mean(chosen == edge))
            if share > 0.2:
                warnings.append(
                    f"{name.rstrip(' *')} took the penalty {edge:g} in {share:.0%} of its choices:"
                    f" try {word} ones too"
                )
    return warnings


def _comparison(result: ProtocolResult) -> list[str]:
    """The second table, of what the thesis has too."""
    theirs = published(result)
    if not theirs:
        return []
    lines = [
        "",
        "Beside the thesis (table 7.1). In brackets the difference to it, in standard deviations"
        " of the trials here, and in standard errors of the difference if what the thesis prints"
        " after ± is a standard error too.",
        "",
        "| new examples | | total | thesis | | new class | thesis | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for n, rows in theirs.items():
        for method, name in methods(result).items():
            row = rows[method.partition("_")[0]]
            total = 100.0 * result.values(method, n, "total")
            fresh = 100.0 * result.values(method, n, "new_class")
            lines.append(
                f"| {n} | {name} | {total.mean():.1f} | {row.total} ± {row.total_spread}"
                f" | {_difference(total, row.total, row.total_spread)} | {fresh.mean():.1f}"
                f" | {row.new_class} ± {row.new_class_spread}"
                f" | {_difference(fresh, row.new_class, row.new_class_spread)} |"
            )
    return lines


def _spread(values: Array) -> str:
    if len(values) < 2:
        return f"{values.mean():.1f}"
    return f"{values.mean():.1f} ± {_deviation(values):.1f} ({_error(values):.1f})"


def _difference(values: Array, theirs: float, spread: float) -> str:
    """The difference of the means, and in deviations and in standard errors."""
    difference = float(values.mean()) - theirs
    if abs(difference) < 0.05:
        return "0.0"
    shown = f"{difference:+.1f}"
    if len(values) < 2:
        return shown
    deviation, error = _deviation(values), math.hypot(_error(values), spread)
    parts = [f"{difference / one:+.1f}" if one > 1e-9 else "–" for one in (deviation, error)]
    return f"{shown} ({parts[0]} sd, {parts[1]} se)"


def _deviation(values: Array) -> float:
    return float(values.std(ddof=1))


def _error(values: Array) -> float:
    return _deviation(values) / math.sqrt(len(values))
