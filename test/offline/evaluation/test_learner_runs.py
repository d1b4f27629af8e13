"""Evaluations led by a whole learner are the node's predictions in turn, to the last bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.parameters import from_flat, replace
from semiparam_dynamics.changes.config import DEFER, LEARN
from semiparam_dynamics.changes.monitor import ChangeMonitor
from semiparam_dynamics.learner.config import InverseDynamicsConfig, InverseDynamicsNodeConfig
from semiparam_dynamics.learner.learner import Step
from semiparam_dynamics.learner.nodes.session import Session
from semiparam_dynamics.offline.evaluation.bags import Bags, evaluate_bags
from semiparam_dynamics.offline.evaluation.experiment import Evaluation, evaluate
from semiparam_dynamics.offline.evaluation.report import (
    NOTICING,
    payload_words,
    report,
    summary_table,
    verdict,
)
from semiparam_dynamics.robot.inertia import compact_body
from semiparam_dynamics.samples.bag import BagReader
from semiparam_dynamics.samples.bag_writer import write_measurements
from semiparam_dynamics.samples.joint_states import JOINT_STATE
from semiparam_dynamics.samples.measurement import Measurement

from ...changes.changing_arm import MODEL, Change, held, largest_weight, moving, nothing, pushed
from ...dynamics.arms import URDF

pytestmark = pytest.mark.usefixtures("no_figures")
QUICK = {"nystrom.window": 3.0, "nystrom.wide_max_centers": 0, "filter.learn_ratio": 5.0}
QUICK["nystrom.max_centers"] = 200
DETECTING = QUICK | {"changes.detect": True, "changes.settle": 5.0, "changes.payload_time": 3.0}
BODY = compact_body(0.5, np.array([0.05, 0.02, 0.03]))
ON, END = 8.0, 14.0  # s
PUSH = largest_weight() * np.ones(4)


def bag(folder: Path, change: Change) -> Path:
    """One joint's effort is missing for some seconds, and another's all the while."""
    stream = list(moving(END, change))
    for k, m in enumerate(stream):
        m.y[[1, 2] if 560 <= k < 680 else 2] = np.nan
    write_measurements(folder / "bag", MODEL.joint_names, stream, "effort")
    return folder / "bag"


@threadpool_limits.wrap(limits=1)
def live(path: Path, settings: dict[str, object]) -> list[Step]:
    """The steps of a node that learns in turn, which `path` is played to."""
    config = from_flat(InverseDynamicsNodeConfig, settings | {"defer_learning": False})
    session, steps = Session(str(URDF), config), []
    with BagReader(path) as recorded:
        for _, message, _ in recorded.messages([recorded.choose(JOINT_STATE)]):
            for step in session.joint_state(message):
                steps.append(step)
                session.learn(step)
    session.finish()
    return steps


def offline(path: Path, settings: dict[str, object]) -> Evaluation:
    return evaluate_bags(Bags([path], urdf=URDF), from_flat(InverseDynamicsConfig, settings))


@pytest.mark.parametrize(
    ("change", "settings"),
    [
        (held(BODY, ON), DETECTING),
        (pushed(PUSH, ON, ON + 0.5), QUICK | {"output.gate": 3.0}),
        (held(BODY, ON), QUICK | {"nystrom.memory": 5.0}),
    ],
    ids=["detect", "gate", "memory"],
)
def test_an_evaluation_has_the_node_s_numbers(tmp_path, change, settings) -> None:
    path = bag(tmp_path, change)
    steps = [step for step in live(path, settings) if not step.sample.between]
    found = offline(path, settings)
    run = found.runs["sequential"]
    _, y, values, stds = run.trace.points()
    # All but what the plots do not keep.
    assert len(y) == len(steps) == found.samples == run.scores.samples
    for name in ("rigid_body", "semiparametric"):
        k = run.trace.models.index(name)
        told = np.array([getattr(step.prediction, name) for step in steps])
        assert np.array_equal(values[:, k], told), name
    assert np.array_equal(stds, [step.prediction.semiparametric_std for step in steps])
    assert np.isfinite(stds).all()
    assert np.isnan(y).any(axis=0).tolist() == [False, True, True, False]
    for name, nmse in ((n, run.scores.nmse(n)) for n in ("semiparametric", "persistence")):
        assert np.isnan(nmse).tolist() == [False, False, True, False], name
    assert sum(found.skipped.values()) > 0 or "nystrom.memory" in settings


@pytest.fixture(scope="module")
def loaded() -> tuple[list[Measurement], Evaluation]:
    """A recording with a payload from ON on, evaluated with detection."""
    recording = list(moving(END, held(BODY, ON)))
    return recording, evaluate(MODEL, from_flat(InverseDynamicsConfig, DETECTING), [recording])


def test_a_payload_is_noticed_and_corrected_frozen_too(loaded) -> None:
    recording, noticing = loaded
    without = from_flat(InverseDynamicsConfig, DETECTING | {"changes.detect": False})
    trained = list(moving(ON, nothing))
    frozen = {
        detect: evaluate(
            MODEL, replace(without, **{"changes.detect": detect}), [recording], [trained]
        ).runs["frozen"]
        for detect in (True, False)
    }
    squares = {k: np.sum(run.scores.rmse("semiparametric") ** 2) for k, run in frozen.items()}
    assert squares[True] < 0.5 * squares[False]
    assert frozen[True].estimator.n_learned == frozen[False].estimator.n_learned
    assert frozen[True].learner.changes.held.n_learned == 0  # nor of the errors under the payload
    (first,) = [c for c in noticing.noticed if c.cause == "payload"][:1]
    assert first.protocol == "sequential" and first.recording == 0
    assert ON < first.time < ON + 2.0 and ON - 0.5 < first.onset < first.time
    assert first.payload is not None and first.payload["link"] == MODEL.bodies[-1]
    mass, std = first.payload["mass"], first.payload["mass_std"]
    assert abs(mass - 0.5) < 4.0 * std < 0.2
    away = np.subtract(first.payload["center"], [0.05, 0.02, 0.03])
    assert (np.abs(away) < 4.0 * np.array(first.payload["center_std"])).all()
    [row] = [change for change in noticing.results()["changes"] if change["cause"] == "payload"][:1]
    assert row["payload"] == first.payload
    said = payload_words(first.payload)
    assert said.startswith(f"{mass:.3g} ± ") and f"mm of {MODEL.bodies[-1]}" in said
    assert said in report(noticing) and said in verdict(noticing).replace("\n", " ")


def test_after_a_change_the_corrected_errors_are_lower(loaded) -> None:
    _, noticing = loaded
    plain = replace(noticing.config, **{"changes.detect": False})
    # What is learned of a payload is gone with it: it is put down again for the last seconds.
    errors = []
    for config in (noticing.config, plain):
        released = list(moving(END + 4.0, held(BODY, ON, END)))
        trace = evaluate(MODEL, config, [released]).runs["sequential"].trace
        time, y, values, _ = trace.points()
        told, after = values[:, trace.models.index("semiparametric")], time > END + 1.0
        errors.append(np.mean((y - told)[after] ** 2))
    assert errors[0] < 0.5 * errors[1]


def test_the_report_tells_what_was_noticed_and_what_was_left_out(loaded) -> None:
    _, noticing = loaded
    assert set(noticing.runs) == {"sequential", "frozen"}
    results = noticing.results()
    changes = results["changes"]
    keys = {"protocol", "recording", "time", "onset", "cause", "name", "payload"}
    assert changes[0].keys() == keys
    assert "1 x payload (sequential)" in summary_table(results)
    page = report(noticing)
    assert NOTICING.split(":")[0] in page and "Changes noticed" in page and ">payload<" in page
    quiet = evaluate(MODEL, from_flat(InverseDynamicsConfig, QUICK), [list(moving(4.0, nothing))])
    assert "changes" not in quiet.results() and "Changes noticed" not in report(quiet)


def test_a_second_recording_s_changes_have_its_number() -> None:
    config = from_flat(InverseDynamicsConfig, DETECTING)
    one, two = list(moving(ON, nothing)), list(moving(ON, held(BODY, 5.0), seed=1))
    found = evaluate(MODEL, config, [one, two])
    changes = [c for c in found.noticed if c.protocol == "sequential" and c.cause == "payload"]
    assert [c.recording for c in changes[:1]] == [1]
    assert 5.0 < changes[0].time < 7.0


def test_what_waits_at_the_end_is_scored_frozen_too(monkeypatch: pytest.MonkeyPatch) -> None:
    trained, tested = list(moving(5.0, nothing)), list(moving(4.0, nothing, seed=1))
    undecided = tested[-100].stamp
    monkeypatch.setattr(
        ChangeMonitor, "verdict", lambda self, stamp: DEFER if stamp > undecided else LEARN
    )
    runs = evaluate(MODEL, from_flat(InverseDynamicsConfig, DETECTING), [tested], [trained]).runs
    assert runs["frozen"].scores.samples == runs["sequential"].scores.samples > 0
