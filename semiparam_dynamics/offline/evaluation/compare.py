"""Comparison of evaluations by their results.json: ratios of errors, settings, comparability."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semiparam_dynamics.base.errors import ConfigurationError, listing
from semiparam_dynamics.learner.curves import LOOKS
from semiparam_dynamics.offline.evaluation.protocols import ALL_MODELS
from semiparam_dynamics.offline.page import PROTOCOL_TITLES, number

EQUAL_RATIO = 1e-6  # relative difference of errors that are called equal
# Share of the scored samples that may lack: a stand before the first motion is not scored where
# nothing was learned before.
MAX_LACKING = 0.05
JUDGED_MODEL = "semiparametric"
# Settings that change what is measured and scored, not only what is predicted.
MEASURING = ("filter.", "samples.", "target", "joints", "sensor_frame", "gravity")


@dataclass(frozen=True)
class Result:
    """An evaluation's results.json, and the folder it was found in."""

    name: str
    values: Mapping[str, Any]


def read_result(place: Path) -> Result:
    """The results of an evaluation's folder, or of the file itself.

    Raises ConfigurationError where there are none, or not an evaluation's.
    """
    path = place / "results.json" if place.is_dir() else place
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"{place}: no results of an evaluation can be read ({error}); name the folder that "
            "`semiparam evaluate --out` wrote"
        ) from None
    result = Result(str(place), values)
    try:
        comparison_text([result, result])  # looks at all that a comparison needs
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ConfigurationError(
            f"{path} is damaged, or not the results.json of `semiparam evaluate`: evaluate again"
        ) from None
    return result


def settings_that_differ(results: Sequence[Result]) -> dict[str, list[object]]:
    """The parameters that are not the same in all, with each one's value; None: it has none.

    Among them what was learned before, by files' names, and the version that did it.
    """
    flat = [_before(r) | r.values["parameters"] for r in results]
    names = dict.fromkeys(name for one in flat for name in one)
    found = {name: [one.get(name) for one in flat] for name in names}
    return {name: values for name, values in found.items() if any(v != values[0] for v in values)}


def obstacles(results: Sequence[Result]) -> list[str]:
    """Reasons why figures of the results do not compare, in sentences; none where they do.

    Bags are the same where their measurements begin at one stamp and have the same positions,
    wherever they lie; URDFs by their text.
    """
    first = results[0]
    measuring = _measuring(results)
    found = [told for other in results[1:] for told in _between(first, other, bool(measuring))]
    if measuring:
        found.append(
            f"What is measured is treated otherwise ({', '.join(measuring)}), so that errors are "
            "those of other signals."
        )
    return found


def _measuring(results: Sequence[Result]) -> list[str]:
    """The settings that differ and change what is measured and scored."""
    first = results[0]
    # What is scored are the axes: an empty list of joints stands for those that are measured.
    same = {"joints"} if all(r.values["axes"] == first.values["axes"] for r in results) else set()
    differing = settings_that_differ(results)
    return [name for name in differing if name.startswith(MEASURING) and name not in same]


def _between(first: Result, other: Result, measuring: bool) -> Iterator[str]:
    """Sentences on why figures of two results do not compare, settings apart.

    measuring: whether what is measured is treated otherwise, so that numbers of samples differ.
    """
    others = [
        what
        for key, what in (("target", "targets"), ("axes", "axes"))
        if first.values[key] != other.values[key]
    ]
    if others:
        yield from (f"{other.name} has other {what} than {first.name}." for what in others)
        return
    found = (
        ratios(first, other, protocol, model)
        for protocol in first.values["scores"]
        for model in ALL_MODELS
    )
    if not any(math.isfinite(ratio) for axes in found for ratio in axes):
        yield f"{other.name} and {first.name} have no scores in common."
    if unnamed := [r.name for r in (first, other) if r.values["origin"] is None]:
        yield f"{listing(unnamed)} names no bags and URDF: they may be others."
        return
    yield from _other_origin(first, other)
    if not measuring:
        for protocol, (here, there) in _scored_otherwise(first, other).items():
            title = PROTOCOL_TITLES.get(protocol, protocol)
            yield (
                f"{title}: {other.name} was scored on {there} samples, {first.name} on {here}: "
                "they do not compare."
            )


def _before(result: Result) -> dict[str, object]:
    """The bags and the model learned before the scoring, and the version."""
    found: dict[str, object] = {"semiparam_dynamics": result.values["version"]}
    if origin := result.values["origin"]:
        names = ", ".join(Path(bag["path"]).name for bag in origin["trained"])
        found |= {"bags learned before": names, "saved model": origin["model"]}
    return found


def _other_origin(first: Result, other: Result) -> Iterator[str]:
    """Sentences on the files that differ between two results."""
    here, there = (r.values["origin"] for r in (first, other))
    a, b = ([(bag["begin"], bag["states"]) for bag in origin["tested"]] for origin in (here, there))
    if a != b:
        names = [", ".join(bag["path"] for bag in origin["tested"]) for origin in (there, here)]
        yield f"{other.name} was scored on other bags ({names[0]}) than {first.name} ({names[1]})."
    if here["urdf_sha256"] != there["urdf_sha256"]:
        yield (
            f"{other.name} has another URDF ({there['urdf']}) than {first.name} ({here['urdf']})."
        )


def _scored_otherwise(first: Result, other: Result) -> dict[str, tuple[int, int]]:
    """The protocols of both that scored other samples of the same bags, with both numbers.

    Of other bags or URDFs the numbers tell nothing more.
    """
    if not (first.values["origin"] and other.values["origin"]) or any(_other_origin(first, other)):
        return {}
    here, there = (r.values["scored"] for r in (first, other))
    pairs = {name: (here[name], there[name]) for name in here if name in there}
    return {name: (a, b) for name, (a, b) in pairs.items() if abs(a - b) > MAX_LACKING * max(a, b)}


def ratios(first: Result, other: Result, protocol: str, model: str) -> list[float]:
    """Squared error in `other` by that in `first`, of each of `first`'s axes.

    NaN where one of them has none, or not this axis.
    """
    a, b = (
        dict(zip(r.values["axes"], scores.get("rmse") or [], strict=False))
        for r in (first, other)
        for scores in [r.values["scores"].get(protocol, {}).get(model, {})]
    )
    pairs = [(a.get(axis), b.get(axis)) for axis in first.values["axes"]]
    return [(y / x) ** 2 if x and y is not None else math.nan for x, y in pairs]


def mean_ratio(values: Sequence[float]) -> float:
    """The geometric mean of the ratios that are known, NaN where none is."""
    known = [value for value in values if math.isfinite(value) and value > 0.0]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else math.nan


def protocols(results: Sequence[Result]) -> list[str]:
    """The protocols that all results have and scored on the same samples, in the report's order."""
    left_out: set[str] = set()
    if not _measuring(results):  # else all numbers may differ, which is reported once
        left_out = {p for other in results[1:] for p in _scored_otherwise(results[0], other)}
    shared = (p for p in PROTOCOL_TITLES if all(p in r.values["scores"] for r in results))
    return [p for p in shared if p not in left_out]


def verdicts(results: Sequence[Result]) -> list[str]:
    """A sentence on the semiparametric model for each protocol and result but the first."""
    first, told = results[0], []
    for other in results[1:]:
        for protocol in protocols(results):
            axes = ratios(first, other, protocol, JUDGED_MODEL)
            mean = mean_ratio(axes)
            if math.isnan(mean):
                continue
            named = zip(axes, first.values["axes"], strict=True)
            worst = max((r, name) for r, name in named if math.isfinite(r))
            if all(math.isnan(ratio) or abs(ratio - 1.0) < EQUAL_RATIO for ratio in axes):
                sentence = "the same errors"
            else:
                sentence = (
                    f"{number(mean)} × the squared error (worst axis {worst[1]}: "
                    f"{number(worst[0])} ×)"
                )
            told.append(f"{PROTOCOL_TITLES[protocol]}: {other.name} has {sentence}.")
    return told


def comparison_text(results: Sequence[Result]) -> str:
    """The comparison in words, and tables of ratios and of settings."""
    first, lines = results[0], [f"compared with {results[0].name}, semiparametric model:"]
    if hindered := obstacles(results):
        lines = ["These figures do not compare:", *(f"- {one}" for one in hindered), "", *lines]
    lines += [f"- {one}" for one in verdicts(results)]
    lines += [
        "",
        "squared error relative to the first: mean over axes, and least and largest axis:",
    ]
    for other in results[1:]:
        lines.append(other.name)
        for protocol in protocols(results):
            for model in ALL_MODELS:
                axes = ratios(first, other, protocol, model)
                known = [axis for axis in axes if math.isfinite(axis)]
                span = f"{number(min(known)):>9} to {number(max(known))}" if known else ""
                row = f"  {PROTOCOL_TITLES[protocol]:<36} {LOOKS[model].name:<16}"
                lines.append(f"{row} {number(mean_ratio(axes)):>9} {span}".rstrip())
    if differing := settings_that_differ(results):
        lines += ["", "settings that differ:"]
        lines += [f"  {n}: {', '.join(map(str, values))}" for n, values in differing.items()]
    else:
        lines += ["", "no setting differs"]
    return "\n".join(lines)
