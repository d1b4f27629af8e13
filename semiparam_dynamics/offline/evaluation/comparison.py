"""Evaluations beside each other: many bags, each for itself, and results that are compared.

A fleet's worth of bags is spread over processes or a cluster.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from semiparam_dynamics.base.errors import BagError, ConfigurationError, SemiparamError, listing
from semiparam_dynamics.base.output_files import write_files
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.curves import LOOKS
from semiparam_dynamics.offline.evaluation.bags import Bags, evaluate_bags
from semiparam_dynamics.offline.evaluation.protocols import ALL_MODELS, PROTOCOLS
from semiparam_dynamics.offline.evaluation.report import EVALUATION_FILES, result_files
from semiparam_dynamics.offline.evaluation.verdict import USE_NAMES
from semiparam_dynamics.offline.page import (
    PROTOCOL_TITLES,
    cell,
    escape,
    head,
    note,
    number,
    page,
    plain,
    table,
    warning_box,
)
from semiparam_dynamics.samples.bag_files import COMPRESSED, STORAGES

BAGS_TITLE = "Inverse dynamics, each bag for itself"
SUMMARY_MODELS = ("rigid_body", "semiparametric")


@dataclass(frozen=True)
class BagResult:
    """The result of one bag; after an error without results and files."""

    name: str  # of its folder among the results
    path: str
    results: Mapping[str, Any] = field(default_factory=dict)  # the contents of results.json
    files: Mapping[str, str] = field(default_factory=dict)  # results.json, params.yaml, report.html
    warnings: tuple[str, ...] = ()
    error: str = ""

    def summary(self) -> dict[str, Any]:
        """The bag's entry in bags.json: what to use, and mean nmse by protocol and model."""
        scores = self.results.get("scores", {})
        return {
            "bag": self.path,
            "folder": self.name,
            "error": self.error,
            "use": self.results.get("verdict", {}).get("use", ""),
            "samples": self.results.get("samples", 0),
            "mean_nmse": {
                protocol: {
                    model: _mean(scores.get(protocol, {}).get(model, {}).get("nmse", []))
                    for model in SUMMARY_MODELS
                }
                for protocol in PROTOCOLS
            },
        }


def _mean(nmse: Sequence[float | None]) -> float | None:
    """Over the axes; None where there is none."""
    known = [value for value in nmse if value is not None]
    return float(np.mean(known)) if known else None


def each_files(bags: Bags, directory: Path) -> list[Path]:
    """The files that :func:`write_each` writes where every bag can be evaluated."""
    own = [directory / name / file for name in _names(bags.test) for file in EVALUATION_FILES]
    return [directory / "bags.json", directory / "report.html", *own]


def evaluate_each(
    bags: Bags,
    config: InverseDynamicsConfig,
    executor: Executor | None = None,
    progress: Callable[[float], None] = lambda share: None,
    *,
    start: str | Path = "",
) -> list[BagResult]:
    """Evaluate each of `bags.test` as if it were the only one, all from the same `start`.

    executor : runs the bags; None: this process, one after the other. Its workers must find the
        bags, the URDF and `start` under the same paths.
    Returns a result for each bag, in their order. A bag that can't be evaluated has an `error`.
    """
    alone = [
        replace(bags, test=[str(path)], train=(), warnings=[], doubts=[]) for path in bags.test
    ]
    tasks = [(*each, config, start) for each in zip(_names(bags.test), alone, strict=True)]
    run = map if executor is None else executor.map
    results: list[BagResult] = []
    for result in run(evaluate_one, *zip(*tasks, strict=True)):
        results.append(result)
        progress(len(results) / len(tasks))
    return results


def evaluate_one(
    name: str, bags: Bags, config: InverseDynamicsConfig, start: str | Path
) -> BagResult:
    """The files of the only one of `bags`; any process can do it."""
    path = str(bags.test[0])
    try:
        evaluation = evaluate_bags(bags, config, start=start)
        files = result_files(evaluation)
    except SemiparamError as error:
        return BagResult(name, path, warnings=tuple(bags.warnings), error=str(error))
    warnings = *bags.warnings, *evaluation.doubts
    return BagResult(name, path, evaluation.results(), files, warnings)


def write_each(results: Sequence[BagResult], directory: Path) -> None:
    """Write each bag's files to a folder of its name, and bags.json and report.html next to them.

    Raises StorageError where that fails, BagError if no bag could be evaluated.
    """
    if not any(result.files for result in results):
        told = "; ".join(f"{result.path}: {result.error}" for result in results)
        raise BagError(f"none of the bags could be evaluated: {told}")
    contents = {
        directory / result.name / name: content
        for result in results
        for name, content in result.files.items()
    }
    summary = [result.summary() for result in results]
    contents[directory / "bags.json"] = json.dumps(summary, indent=2) + "\n"
    contents[directory / "report.html"] = bags_page(summary)
    write_files(contents)


def bags_page(summary: Sequence[Mapping[str, Any]]) -> str:
    """The page, as HTML text; `summary` is what bags.json holds."""
    header = [head("Bag"), head("Use"), head("Samples")]
    header += [head(PROTOCOL_TITLES[p], "semiparametric / rigid body, nmse") for p in PROTOCOLS]
    evaluated = [bag for bag in summary if not bag["error"]]
    rows = [
        [
            _link(bag),
            cell(USE_NAMES[bag["use"]], style="words"),
            cell(str(bag["samples"])),
            *(_score(**bag["mean_nmse"][protocol]) for protocol in PROTOCOLS),
        ]
        for bag in evaluated
    ]
    uses = Counter(bag["use"] for bag in evaluated)
    told = ", ".join(f"{words} on {uses[use]}" for use, words in USE_NAMES.items() if uses[use])
    failed = [f"{bag['bag']}: {bag['error']}" for bag in summary if bag["error"]]
    heading = f"{len(failed)} of {len(summary)} bags could not be evaluated"
    sections = [
        f'<section id="summary">\n<h1>{BAGS_TITLE}</h1>\n'
        f'<p class="headline">To be used: {told} of {len(rows)} bags.</p>\n',
        *([warning_box(heading, failed)] if failed else []),
        table(header, rows),
        note(
            "Each bag was evaluated as if it were the only one, from the same start. Mean over the "
            "axes; below 1 the residual helps. The bag's name leads to its own report."
        ),
        "</section>",
    ]
    return page(BAGS_TITLE, sections)


def _link(bag: Mapping[str, Any]) -> str:
    target = escape(quote(f"{bag['folder']}/report.html"))
    return f'<th><a href="{target}">{escape(bag["folder"])}</a></th>'


def _score(rigid_body: float | None, semiparametric: float | None) -> str:
    share = "-"
    if rigid_body and semiparametric is not None:
        share = f"{semiparametric / rigid_body:.3f}"
    return cell(share, plain(semiparametric))


def results_table(results: Sequence[BagResult]) -> str:
    """Each bag's mean nmse of the rigid body and the semiparametric model, for a terminal."""
    width = max(len(result.name) for result in results)
    lines = [
        "mean normalised squared error, rigid body -> semiparametric",
        " ".join([f"{'bag':<{width}}", *(f"{name:>20}" for name in PROTOCOLS), "  use"]),
    ]
    for bag in (result.summary() for result in results):
        name = f"{bag['folder']:<{width}}"
        if bag["error"]:
            lines.append(f"{name} {bag['error']}")
            continue
        pairs = (" -> ".join(map(plain, nmse.values())) for nmse in bag["mean_nmse"].values())
        lines.append(" ".join([name, *(f"{p:>20}" for p in pairs), f"  {USE_NAMES[bag['use']]}"]))
    return "\n".join(lines)


def _names(paths: Sequence[str | Path]) -> list[str]:
    """A folder's name for each bag: its own, with a number where several have the same.

    No number makes the name of another bag.
    """
    own = [_name(Path(path).resolve()) for path in paths]
    names: list[str] = []
    for name in own:
        numbered = (f"{name}.{n}" for n in itertools.count(2))
        free = (choice for choice in numbered if choice not in {*own, *names})
        names.append(next(free) if name in names else name)
    return names


def _name(path: Path) -> str:
    """A bag's own name: a folder's may have points, and a file's ends with its kind."""
    name = path.name
    if not path.is_dir():
        for ending in (COMPRESSED, *STORAGES):
            name = name.removesuffix(ending)
    return name or "bag"


# -------------------------------------------------------------------------------------------------
# Results of evaluations compared: ratios of errors, settings, comparability


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
