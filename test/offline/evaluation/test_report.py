"""The page is whole and safe and holds the numbers; so do the other files."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from semiparam_dynamics.base.config_files import load_yaml
from semiparam_dynamics.base.errors import StorageError
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.curves import LOOKS
from semiparam_dynamics.offline.evaluation.experiment import Evaluation, evaluate
from semiparam_dynamics.offline.evaluation.protocols import ALL_MODELS, ProtocolRun
from semiparam_dynamics.offline.evaluation.report import (
    excitation,
    mean_nmse,
    parameter_table,
    report,
    result_files,
    verdict,
    warnings_of,
    write_results,
)
from semiparam_dynamics.robot.model import expected_scales
from semiparam_dynamics.samples.measurement import Measurement

from ...dynamics.arms import measurements, small_arm
from .conftest import HOSTILE
from .judged import untaught

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
    # 3 protocols, of joints that turn and of one that slides, then 4 joints twice, and 3 of the
    # calibration.
    assert len(plots) == 2 * 3 + 2 * 4 + 3
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
    model, run = untaught().model, ProtocolRun(untaught(), "sequential")
    rng = np.random.default_rng(0)
    for k in range(50):
        y = np.array([1.0, *rng.standard_normal(3)])
        predictions = {name: np.array([np.nan, np.inf, 1e300, 0.1]) for name in ALL_MODELS}
        predictions["urdf"] = np.zeros(4)
        with np.errstate(over="ignore"):
            run.scores.add(y, predictions, {"semiparametric": np.zeros(4)})
            rows = {name: values[None] for name, values in predictions.items()}
            run.trace.add(np.array([k * 10_000_000]), y[None], rows, np.zeros((1, 4)))
    evaluation = Evaluation(model, InverseDynamicsConfig(), {"sequential": run}, samples=50)
    page = Page(report(evaluation))
    assert page.open == []
    assert "The measurement of slew never varied" in page.text
    assert "diverged on slew, lift and reach" in page.text


def test_excitation_is_prior_over_posterior_deviation() -> None:
    model = small_arm()
    stream = []
    for m in measurements(model, 3.0):
        assert m.dq is not None
        still = m.dq.copy()
        still[0] = 0.0
        q = m.q.copy()
        q[0] = 0.3
        stream.append(Measurement(m.stamp, q, still, m.y))
    run = evaluate(model, InverseDynamicsConfig(), [stream]).runs["sequential"]
    identified = run.estimator.rigid_body
    factor = excitation(model, identified)
    R = identified.core.R
    posterior = np.sqrt(np.diag(np.linalg.inv(R.T @ R)))
    root = expected_scales(model).root(identified.evidence.precisions)
    prior = np.sqrt(np.diag(np.linalg.inv(root.T @ root)))
    np.testing.assert_allclose(factor, prior / posterior, rtol=1e-6)
    by_label = dict(zip(model.labels, factor, strict=True))
    assert by_label["viscous slew"] < 1.01  # this joint stood still
    assert by_label["viscous lift"] > 2.0
    table = parameter_table(model, identified)
    assert table.count('class="weak"') == 2 * int(np.sum(factor < 2.0))
    assert table.count("<tr>") == 1 + model.n_parameters
    assert "N m s/rad" in table and "kg m²" in table


def refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is not JSON")


def test_files_hold_the_evaluation(wrench_evaluation: Evaluation, wrench_results: Path) -> None:
    folder = wrench_results
    assert {path.name for path in folder.iterdir()} == {
        "results.json",
        "params.yaml",
        "report.html",
    }
    found = json.loads((folder / "results.json").read_text(), parse_constant=refuse)
    assert found == json.loads(json.dumps(wrench_evaluation.results()))
    assert set(found["scores"]) == {"sequential", "delayed", "frozen"}
    config = load_yaml(folder / "params.yaml", InverseDynamicsConfig, "inverse_dynamics")
    assert config == wrench_evaluation.config


@pytest.fixture
def no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files beside the page, whose figures take seconds to draw."""
    monkeypatch.setattr("semiparam_dynamics.offline.evaluation.report.report", lambda _: "")


@pytest.mark.usefixtures("no_page")
def test_json_has_null_where_there_is_no_number(effort_evaluation: Evaluation) -> None:
    none = Evaluation(
        effort_evaluation.model, effort_evaluation.config, effort_evaluation.runs, timing=[]
    )
    found = json.loads(result_files(none)["results.json"], parse_constant=refuse)
    assert found["timing_us"] == {"p50": None, "p99": None, "max": None}
    assert found["rate_hz"] is None
    assert found["scores"]["delayed"]["persistence"]["coverage"] == [None] * 4


def test_the_terminal_says_what_the_page_says_first(effort_evaluation: Evaluation) -> None:
    found, warnings = effort_evaluation.verdict, warnings_of(effort_evaluation)
    text = verdict(effort_evaluation)
    words = " ".join(text.split())
    places = [
        words.index(" ".join(sentence.split()))
        for sentence in (found.why, found.advice, "mean nmse", *warnings)
    ]
    assert places[0] == 0 and places == sorted(places) and warnings
    assert max(map(len, text.splitlines())) <= 120
    scores = effort_evaluation.scores()
    parts = scores["frozen"], scores["delayed_rest"], scores["sequential_rest"]
    for model in ALL_MODELS:
        name = LOOKS[model].name.lower()
        (row,) = (line for line in text.splitlines() if line.startswith(f"{name}  "))
        for value, of in zip(row.removeprefix(name).split(), parts, strict=True):
            assert float(value) == pytest.approx(mean_nmse(of, model), rel=1e-3)


@pytest.mark.usefixtures("no_page")
def test_a_file_in_the_way_is_named(effort_evaluation: Evaluation, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(StorageError, match="taken"):
        write_results(effort_evaluation, tmp_path / "taken")
