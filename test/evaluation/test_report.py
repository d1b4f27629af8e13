"""The page is whole, safe, and says what the numbers say."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.evaluation.experiment import Evaluation
from semiparam_dynamics.evaluation.protocols import ProtocolRun
from semiparam_dynamics.evaluation.report import report
from semiparam_dynamics.evaluation.scored_run import ALL_MODELS

from ..dynamics.arms import small_arm
from .conftest import HOSTILE

SECTIONS = ["summary", "errors", "scores", "predictions", "calibration", "parameters", "run"]
VOID = {"meta", "link", "br"}


class Page(HTMLParser):
    """Checks that tags close in order; collects what the tests look at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.text += data


@pytest.fixture(scope="module")
def effort_html(effort_results: Path) -> str:
    return (effort_results / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def wrench_html(wrench_results: Path) -> str:
    return (wrench_results / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("which", ["effort_html", "wrench_html"])
def test_page_is_well_formed_and_complete(which: str, request: pytest.FixtureRequest) -> None:
    page = Page(request.getfixturevalue(which))
    assert page.open == []
    assert [a["id"] for tag, a in page.tags if tag == "section"] == SECTIONS
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    references = re.findall(r'(?:href="|url\()#([^")]+)', request.getfixturevalue(which))
    assert references and set(references) <= set(ids)


@pytest.mark.parametrize("which", ["effort_html", "wrench_html"])
def test_page_loads_nothing_and_runs_nothing(which: str, request: pytest.FixtureRequest) -> None:
    text = request.getfixturevalue(which).replace("http://outside.example/", "")
    assert not re.search(r"https?://|@import|url\((?!#)", text)
    page = Page(text)
    assert not {tag for tag, _ in page.tags} & {"script", "img", "iframe", "object", "embed"}
    for tag, attributes in page.tags:
        assert "src" not in attributes and not any(name.startswith("on") for name in attributes)
        for name in ("href", "xlink:href"):
            target = attributes.get(name) or "#"
            assert target.startswith("#") or (tag == "link" and target == "data:,")


def test_names_from_files_are_text(effort_html: str) -> None:
    page = Page(effort_html)
    assert HOSTILE in page.text
    assert "effort of <i>reach</i> missing" in page.text
    assert "script" not in {tag for tag, _ in page.tags}


def test_plots_keep_names_as_they_are(wrench_html: str, effort_html: str) -> None:
    page = Page(effort_html)
    plots = [a["aria-label"] or "" for tag, a in page.tags if tag == "svg" and "role" in a]
    # 3 protocols, then 4 joints twice, and 3 of the calibration.
    assert len(plots) == 3 + 2 * 4 + 3
    assert f"Predicted, measured: {HOSTILE}" in plots
    assert "Force: RMSE over time, Frozen" in wrench_html
    assert "Torque: RMSE over time, Delayed" in wrench_html


def test_tables_hold_the_scores(effort_evaluation: Evaluation, effort_html: str) -> None:
    text = Page(effort_html).text
    for name in ("delayed", "frozen"):
        for model in ("rigid_body", "semiparametric"):
            nmse = effort_evaluation.runs[name].scores.nmse(model)[0]
            assert f"{nmse:#.3g}" in text or f"{nmse:#.3g}".replace("-", "−") in text
    assert "Delayed, on the frozen part only" in text


def test_units_of_a_wrench(wrench_html: str) -> None:
    page = Page(wrench_html)
    for label in ("RMSE (N)", "RMSE (N m)", "Measured minus predicted (N m)", "fx", "tz"):
        assert label in page.text


def test_diverged_and_constant_outputs_do_not_stop_the_report() -> None:
    model = small_arm()
    run = ProtocolRun(SemiparametricEstimator(model), "sequential")
    rng = np.random.default_rng(0)
    for k in range(50):
        y = np.array([1.0, *rng.standard_normal(3)])
        predictions = {name: np.array([np.nan, np.inf, 1e300, 0.1]) for name in ALL_MODELS}
        predictions["urdf"] = np.zeros(4)
        with np.errstate(over="ignore"):
            run.scores.add(y, predictions, {"semiparametric": np.zeros(4)})
            run.trace.add(k * 10_000_000, y, predictions, np.zeros(4))
    evaluation = Evaluation(model, InverseDynamicsConfig(), {"sequential": run}, samples=50)
    page = Page(report(evaluation))
    assert page.open == []
    assert "The measurement of slew never varied" in page.text
    assert "diverged on slew, lift and reach" in page.text
