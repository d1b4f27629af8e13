"""Many bags, each evaluated for itself: a fleet's worth, spread over processes or a cluster."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from semiparam_dynamics.base.errors import BagError, SemiparamError
from semiparam_dynamics.base.output_files import write_files
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.evaluation.bags import Bags, evaluate_bags
from semiparam_dynamics.offline.evaluation.protocols import PROTOCOLS
from semiparam_dynamics.offline.evaluation.report import FILES, result_files
from semiparam_dynamics.offline.evaluation.verdict import NAMES
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

TITLE = "Inverse dynamics, each bag for itself"


def bags_page(summary: Sequence[Mapping[str, Any]]) -> str:
    """The page, as HTML text; `summary` is what bags.json holds."""
    protocols = list(summary[0]["mean_nmse"])
    titles = [(PROTOCOL_TITLES[p], "semiparametric / rigid body, nmse") for p in protocols]
    header = [head("Bag"), head("Use"), head("Samples")]
    header += [head(title, detail) for title, detail in titles]
    rows = [
        [
            _link(bag),
            cell(NAMES[bag["use"]], style="words"),
            cell(str(bag["samples"])),
            *(_score(bag["mean_nmse"][p]) for p in protocols),
        ]
        for bag in summary
        if not bag["error"]
    ]
    failed = [bag for bag in summary if bag["error"]]
    uses = Counter(bag["use"] for bag in summary if not bag["error"])
    told = ", ".join(f"{words} on {uses[use]}" for use, words in NAMES.items() if uses[use])
    sections = [
        f'<section id="summary">\n<h1>{TITLE}</h1>\n'
        f'<p class="headline">To be used: {told} of {len(rows)} bags.</p>\n',
        table(header, rows),
        note(
            "Each bag was evaluated as if it were the only one, from the same start. Mean over the "
            "axes; below 1 the residual helps. The bag's name leads to its own report."
        ),
        "</section>",
    ]
    if failed:
        heading = f"{len(failed)} of {len(summary)} bags could not be evaluated"
        items = [f"{bag['bag']}: {bag['error']}" for bag in failed]
        sections.insert(1, warning_box(heading, items))
    return page(TITLE, sections)


def _link(bag: Mapping[str, Any]) -> str:
    target = escape(quote(f"{bag['folder']}/report.html"))
    return f'<th><a href="{target}">{escape(bag["folder"])}</a></th>'


def _share(nmse: Mapping[str, float | None]) -> float | None:
    rigid, both = nmse["rigid_body"], nmse["semiparametric"]
    return both / rigid if rigid and both is not None else None


def _score(nmse: Mapping[str, float | None]) -> str:
    share, both = _share(nmse), nmse["semiparametric"]
    return cell("-" if share is None else f"{share:.3f}", "-" if both is None else f"{both:.4g}")


COMPARED = ("rigid_body", "semiparametric")


@dataclass(frozen=True)
class BagResult:
    """The result of one bag."""

    name: str  # of its folder among the results
    path: str
    files: dict[str, str]  # results.json, params.yaml and report.html; none after an error
    warnings: tuple[str, ...] = ()
    error: str = ""

    def results(self) -> dict[str, Any]:
        """The contents of results.json; empty after an error."""
        return dict(json.loads(self.files["results.json"])) if self.files else {}

    @property
    def use(self) -> str:
        """The verdict's; empty after an error."""
        return str(self.results().get("verdict", {}).get("use", ""))

    def mean_nmse(self, protocol: str, model: str) -> float | None:
        """Over the axes; None where there is none."""
        values = self.results().get("scores", {}).get(protocol, {}).get(model, {}).get("nmse", [])
        known = [value for value in values if value is not None]
        return float(np.mean(known)) if known else None


def each_files(bags: Bags, directory: Path) -> list[Path]:
    """The files that :func:`write_each` writes where every bag can be evaluated."""
    own = [directory / name / file for name in _names(bags.test) for file in FILES]
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
        bags, the URDF and `start` under the same paths. What a bag costs and what it gives does
        not depend on the others, so a worker that dies costs time only.
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
        return BagResult(name, path, {}, tuple(bags.warnings), str(error))
    return BagResult(name, path, files, (*bags.warnings, *evaluation.doubts))


def write_each(results: Sequence[BagResult], directory: Path) -> None:
    """Write each bag's files to a folder of its name, and bags.json and report.html next to them.

    Raises StorageError where that fails, BagError if no bag could be evaluated.
    """
    if not any(result.files for result in results):
        told = "; ".join(f"{result.path}: {result.error}" for result in results)
        raise BagError(f"none of the bags could be evaluated: {told}")
    summary = [
        {
            "bag": result.path,
            "folder": result.name,
            "error": result.error,
            "use": result.use,
            "samples": result.results().get("samples", 0),
            "mean_nmse": {
                protocol: {model: result.mean_nmse(protocol, model) for model in COMPARED}
                for protocol in PROTOCOLS
            },
        }
        for result in results
    ]
    contents = {
        directory / result.name / name: content
        for result in results
        for name, content in result.files.items()
    }
    contents[directory / "bags.json"] = json.dumps(summary, indent=2) + "\n"
    contents[directory / "report.html"] = bags_page(summary)
    write_files(contents)


def results_table(results: Sequence[BagResult]) -> str:
    """Each bag's mean nmse of the rigid body and the semiparametric model, for a terminal."""
    width = max(len(result.name) for result in results)
    lines = [
        "mean normalised squared error, rigid body -> semiparametric",
        " ".join([f"{'bag':<{width}}", *(f"{name:>20}" for name in PROTOCOLS), "  use"]),
    ]
    for result in results:
        if result.error:
            lines.append(f"{result.name:<{width}} {result.error}")
            continue
        pairs = (
            " -> ".join(plain(result.mean_nmse(protocol, model)) for model in COMPARED)
            for protocol in PROTOCOLS
        )
        cells = [f"{result.name:<{width}}", *(f"{pair:>20}" for pair in pairs)]
        lines.append(" ".join([*cells, f"  {NAMES[result.use]}"]))
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
