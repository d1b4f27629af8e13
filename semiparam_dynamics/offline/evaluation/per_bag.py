"""Many bags, each evaluated for itself: a fleet's worth, spread over processes or a cluster."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from semiparam_dynamics.base.errors import BagError, SemiparamError
from semiparam_dynamics.base.output_files import write_files
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.evaluation.bags import Bags, evaluate_bags
from semiparam_dynamics.offline.evaluation.protocols import PROTOCOLS
from semiparam_dynamics.offline.evaluation.report import EVALUATION_FILES, result_files
from semiparam_dynamics.offline.evaluation.verdict import USE_NAMES
from semiparam_dynamics.offline.page import (
    PROTOCOL_TITLES,
    cell,
    escape,
    head,
    note,
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
