"""Changes of a small arm: found, named, corrected, taken back, saved and loaded."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semiparam_dynamics.base.errors import ConfigurationError, StorageError
from semiparam_dynamics.base.storage import save_state
from semiparam_dynamics.changes.config import EXCLUDE, UNEXPLAINED
from semiparam_dynamics.changes.hypotheses import FRICTION, hypotheses
from semiparam_dynamics.changes.innovations import BlockMean, Sums
from semiparam_dynamics.changes.monitor import ChangeMonitor, LearningExclusions
from semiparam_dynamics.samples.measurement import Measurement

from ..dynamics.arms import motion
from .changing_arm import (
    MODEL,
    ON,
    RATE,
    START,
    by_hand,
    errors,
    follow,
    held,
    largest_weight,
    learner,
    monitor,
    moving,
    nothing,
    pushed,
    seconds,
)

OFF, END = ON + 16.0, ON + 20.0
PUSH = largest_weight() * np.array([1.0, 1.0, 0.0, 0.5])
EXCLUDED = "during a change (changes.detect)"


@pytest.fixture(scope="module")
def released(holding, grasp, warm_run, body):
    """The payload that is held since ON, known by no name, is released at OFF."""
    of = holding()
    monitor(of).snapshots.remove("cup")
    monitor(of).correction.name = ""
    steps = follow(of, moving(END, held(body, ON, OFF), begin=ON + 15.0))
    return of, warm_run[1] + grasp[1] + steps


def test_a_payload_is_found_within_a_second_and_its_release_at_once(released) -> None:
    of, _ = released
    events = [e for e in monitor(of).events if e.cause == "payload"]
    assert [e.name for e in events] == ["", "bare"]
    delays = [seconds(e.stamp) - t for e, t in zip(events, (ON, OFF), strict=True)]
    assert 0.0 < delays[0] < 1.0 and 0.0 < delays[1] < 0.6
    assert monitor(of).payload is None and not monitor(of).correction.theta.any()


def test_predictions_are_as_good_as_before_with_the_payload_and_after_it(released) -> None:
    _, steps = released
    before = errors(steps, ON - 5.0, ON)
    for begin, end in ((ON + 3.0, OFF), (OFF + 1.0, END)):
        assert np.all(errors(steps, begin, end) < 1.5 * before + 0.03 * before.max())
    assert np.max(errors(steps, ON, ON + 0.5) / before) > 3.0


def test_standard_deviations_cover_what_is_not_known_yet(released) -> None:
    _, steps = released
    chosen = [s for s in steps if ON + 1.0 < seconds(s.stamp) < ON + 3.0]
    left = np.array([s.y - s.prediction.semiparametric for s in chosen])
    std = np.array([s.prediction.semiparametric_std for s in chosen])
    assert np.mean(np.abs(left) < 2.0 * std) > 0.85


def test_the_estimate_is_the_body_and_that_of_least_squares(grasp, body) -> None:
    of, steps, _ = grasp
    found = monitor(of).payload
    assert found is not None and found.settled and found.link == MODEL.bodies[-1]
    assert found.mass == pytest.approx(0.5, rel=0.05)
    assert np.linalg.norm(found.center - body[1:4] / 0.5) < 0.01
    assert abs(found.mass - 0.5) < 4.0 * found.mass_std
    # All samples since the filters let the payload through, each as good as any other.
    chosen = [s for s in steps if ON + 0.5 < seconds(s.stamp) < ON + 10.0]
    columns = monitor(of).causes.combination[:, :10]
    rows = np.array([s.sample.regressor @ columns for s in chosen])
    left = np.array([s.y - s.unchanged.semiparametric for s in chosen])
    size = left.std(axis=0)
    batch = np.linalg.lstsq((rows / size[:, None]).reshape(-1, 10), (left / size).ravel())[0]
    assert found.mass == pytest.approx(batch[0], abs=4.0 * found.mass_std)


def test_nothing_of_a_payload_gets_into_the_model(grasp, warm_run, body) -> None:
    _, _, loaded = grasp
    bare = warm_run[0].estimator.rigid_body.parameters
    step = np.abs(MODEL.base.combination[:, -10:] @ body)
    # Some samples are learned before anything can be suspected.
    assert np.linalg.norm(loaded - bare) < 0.03 * np.linalg.norm(step)


def test_a_known_payload_is_recognized_by_name(grasp, warm, body) -> None:
    known = monitor(grasp[0])
    assert known.payload is not None and known.payload.name == "cup"
    again = warm()
    monitor(again).snapshots.restore(known.snapshots.state())
    follow(again, moving(ON + 2.0, held(body, ON), begin=ON, seed=5))
    names = [e.name for e in monitor(again).events if e.cause == "payload"]
    assert names == ["cup"] and monitor(again).payload.settled
    monitor(again).recall("bare")
    assert monitor(again).payload is None
    with pytest.raises(ConfigurationError, match="no payload is known as 'mug'"):
        monitor(again).recall("mug")
    with pytest.raises(ConfigurationError, match="nothing is held"):
        monitor(again).remember("mug")


def test_a_payload_is_found_although_one_joint_has_no_effort(warm_run, body) -> None:
    of, full = learner(), monitor(warm_run[0]).innovations

    def base_unknown(t: float, dq: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return held(body, ON)(t, dq, columns) + np.array([np.nan, 0.0, 0.0, 0.0])

    follow(of, moving(ON, base_unknown))
    found = monitor(of).innovations
    # The usual errors of the other joints are learned as ever.
    of_others = (np.diag(each.noise.covariance)[1:] for each in (found, full))
    np.testing.assert_allclose(*of_others, rtol=0.3)
    np.testing.assert_allclose(found.slow.std[1:], full.slow.std[1:], rtol=0.5)
    follow(of, moving(ON + 5.0, base_unknown, begin=ON))
    assert [e.cause for e in monitor(of).events] == ["contact", "payload"]
    assert ON < seconds(monitor(of).events[-1].stamp) < ON + 1.0
    assert monitor(of).payload.mass == pytest.approx(0.5, rel=0.05)


def test_a_joint_whose_effort_comes_late_has_usual_errors_of_its_size(warm_run) -> None:
    of, full = learner(), monitor(warm_run[0]).ratios

    def late(t: float, dq: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.array([np.nan if t < ON - 8.0 else 0.0, 0.0, 0.0, 0.0])

    follow(of, moving(ON, late))
    assert not monitor(of).events
    one = np.ones(4)
    found, usual = (ratios.spread(one, 1.0) for ratios in (monitor(of).ratios, full))
    assert np.all(found < 3.0 * usual)


def test_a_payload_whose_name_is_forgotten_stays_without_one(holding) -> None:
    of = monitor(holding())
    assert of.payload.name == "cup"
    of.forget("cup")
    assert of.payload.name == "" and of.payload.mass > 0.0 and of.snapshots.names == ("bare",)
    with pytest.raises(ConfigurationError, match="known as 'cup'"):
        of.forget("cup")


def test_a_payload_is_still_found_after_pushes(warm, body) -> None:
    of = warm()
    pushes = by_hand(np.array([0.3, 0.0, 1.0]) * largest_weight(), ON, ON + 2.0)
    holding = held(body, ON + 6.0)

    def change(t: float, dq: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return pushes(t, dq, columns) + holding(t, dq, columns)

    follow(of, moving(ON + 12.0, change, begin=ON))
    found = [e for e in monitor(of).events if e.cause in ("payload", "friction", "offset")]
    assert [e.cause for e in found] == ["payload"] and seconds(found[0].stamp) < ON + 7.0
    assert monitor(of).payload.mass == pytest.approx(0.5, rel=0.1)


def friction(t: float, dq: np.ndarray, columns: np.ndarray) -> np.ndarray:
    rough = 0.3 * largest_weight() * np.tanh(dq / 0.02)
    return (rough if t >= ON else 0.0 * dq) * np.array([0, 1, 0, 0])


@pytest.mark.parametrize(
    ("cause", "change", "most"),
    [
        (
            "offset",
            pushed(0.5 * largest_weight() * np.array([0.0, 1.0, 0.0, 0.0]), ON, np.inf),
            1.5,
        ),
        # At 50 Hz friction changes sign between two messages, which no filter can know better.
        ("friction", friction, 3.0),
    ],
)
def test_an_offset_and_friction_are_named_and_corrected(
    warm, warm_run, cause, change, most
) -> None:
    of = warm()
    steps = warm_run[1] + follow(of, moving(ON + 18.0, change, begin=ON))
    found = [e.cause for e in monitor(of).events if e.cause in ("payload", "offset", "friction")]
    assert found[-1] == cause
    after, before = errors(steps, ON + 14.0, ON + 18.0), errors(steps, ON - 6.0, ON)
    assert np.all(after < most * before + 0.03 * before.max())


def test_a_payload_that_becomes_another_again_and_again_is_told_once_and_uncertain(
    warm, body
) -> None:
    """As one that swings, or a bucket that is filled: five steps of 0.3 kg, every 2 s."""

    def change(t: float, dq: np.ndarray, columns: np.ndarray) -> np.ndarray:
        steps = min(int((t - ON) / 2.0) + 1, 5)
        return held(0.6 * steps * body, ON)(t, dq, columns)

    of = warm()
    follow(of, moving(ON + 10.0, change, begin=ON))
    causes = [e.cause for e in monitor(of).events if not e.cause.startswith("contact")]
    assert causes == ["payload"] * 4 + [UNEXPLAINED]
    found = monitor(of).payload
    assert not found.settled and found.mass == pytest.approx(1.5, rel=0.1)
    assert found.mass_std > 0.2
    # What lasts is weighed to the end, as certain as any other, and so is its release.
    follow(of, moving(ON + 20.0, change, begin=ON + 10.0))
    found = monitor(of).payload
    assert found.settled and monitor(of).status.learning
    assert found.mass == pytest.approx(1.5, rel=0.05) and found.mass_std < 0.05
    follow(of, moving(ON + 21.0, nothing, begin=ON + 20.0))
    assert [e.name for e in monitor(of).events if e.cause == "payload"][-1] == "bare"


def begin_friction(watching: ChangeMonitor) -> None:
    """Have changed friction be estimated, as where it was found."""
    (found,) = hypotheses(watching.causes, {FRICTION}, watching.correction.held.mean, {})
    watching.correction.begin(found, Sums.empty(len(watching.correction.theta)))
    watching._restart_windows()


@pytest.mark.parametrize("name", ["cup", "bare"])
def test_a_payload_told_while_friction_is_estimated_is_held_from_then_on(
    warm, grasp, body, name: str
) -> None:
    of = warm()
    watching = monitor(of)
    watching.snapshots.restore(monitor(grasp[0]).snapshots.state())
    load = held(body, 0.0)
    if name == "bare":
        watching.recall("cup")

    def before(t: float, dq: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return friction(t, dq, columns) + (name == "bare") * load(t, dq, columns)

    def after(t: float, dq: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return friction(t, dq, columns) + (name == "cup") * load(t, dq, columns)

    begin_friction(watching)
    follow(of, moving(ON + 1.0, before, begin=ON))
    assert watching.correction.estimating.cause == FRICTION
    watching.recall(name)
    follow(of, moving(ON + 4.0, after, begin=ON + 1.0))
    assert watching.correction.estimating.cause == FRICTION
    assert watching.correction.name == name
    assert (watching.payload is None) == (name == "bare")
    # Errors under a payload are learned beside it, and only there.
    assert (watching.held.n_learned > 0) == (name == "cup")


def test_a_change_that_nothing_shows_is_withdrawn(warm) -> None:
    of = warm()
    watching = monitor(of)
    begin_friction(watching)
    follow(of, moving(ON + 5.0, nothing, begin=ON))
    assert [e.cause for e in watching.events] == [UNEXPLAINED]
    assert watching.correction.estimating is None and not watching.correction.theta.any()


def test_a_contact_is_seen_within_50_ms_and_nothing_of_it_is_learned(warm, undisturbed) -> None:
    touched, (free, steps) = warm(), undisturbed
    follow(touched, moving(ON + 5.0, pushed(PUSH, ON, ON + 0.4), begin=ON))
    begins = [e for e in monitor(touched).events if e.cause == "contact"]
    ends = [e for e in monitor(touched).events if e.cause == "contact over"]
    assert len(begins) == len(ends) == 1
    assert seconds(begins[0].stamp) - ON <= 0.05 and 0.4 < seconds(ends[0].stamp) - ON < 1.2
    assert touched.dropped[EXCLUDED] > 10
    last = steps[-1].sample
    one, other = (of.estimator.predict(last) for of in (touched, free))
    assert np.all(np.abs(one.semiparametric - other.semiparametric) < 0.1 * one.semiparametric_std)


@pytest.mark.parametrize("push", [False, True])
def test_in_motion_that_is_not_known_what_no_push_explains_is_learned(warm, push: bool) -> None:
    """There a model's own errors look like contacts; kept from learning they would stay."""
    of, rng = warm(), np.random.default_rng(0)
    force = by_hand(np.array([0.0, 30.0, 20.0]), ON + 1.0, ON + 2.0)

    def noise(t: float, dq: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.abs(PUSH) * rng.standard_normal(MODEL.n_axes) * (ON + 1.0 <= t < ON + 2.0)

    before = of.estimator.n_learned
    for step in map(of.predict, moving(ON + 4.0, force if push else noise, begin=ON)):
        assert step is not None
        step.unchanged.residual.confidence = 0.3
        of.update(of.admit(step))
    assert [e.cause for e in monitor(of).events][:2] == ["contact", "contact over"]
    left_out = of.dropped[EXCLUDED]
    assert 40 < left_out < 100 if push else left_out == 0
    assert of.estimator.n_learned - before > 4.0 * RATE - 5 - left_out


@pytest.mark.parametrize(
    ("length", "shift"), [(0.4, 0.0), (np.inf, 0.0), (np.inf, 30.0)], ids=["over", "again", "pause"]
)
def test_a_contact_ends_with_its_recording(warm, length: float, shift: float) -> None:
    """The next one, from earlier stamps on or later, has none at the same instants."""
    of = warm()
    follow(of, moving(ON + 1.5, pushed(PUSH, ON, ON + length), begin=ON))
    assert [e.cause for e in monitor(of).events][:1] == ["contact"]
    again = [
        dataclasses.replace(m, stamp=m.stamp + round(shift * 1e9))
        for m in moving(ON + 1.5, nothing, begin=ON - 4.0)
    ]
    dropped = of.dropped[EXCLUDED]
    follow(of, iter(again))
    assert [e.cause for e in monitor(of).events] == ["contact", "contact over"]
    assert not monitor(of).contact.active and monitor(of).status.learning
    assert of.dropped[EXCLUDED] == dropped


def test_a_recording_that_is_played_again_and_again_leaves_nothing_waiting(warm) -> None:
    of = warm()
    for _ in range(2):
        follow(of, moving(ON, nothing, begin=ON - 2.0))
    assert len(monitor(of).ratios._pending) <= 1.1 * RATE


def test_where_nothing_happens_everything_is_learned(undisturbed) -> None:
    watched, blind = undisturbed[0], learner(**{"changes.detect": False})
    follow(blind, moving(ON + 5.0, nothing))
    assert not monitor(watched).events and blind.changes is None
    assert watched.estimator.n_learned == blind.estimator.n_learned
    one, other = (of.estimator.rigid_body.parameters for of in (watched, blind))
    np.testing.assert_allclose(one, other, rtol=1e-9)


def test_a_restored_monitor_continues_alike(holding) -> None:
    one, other = monitor(holding()), monitor(learner())
    other.restore(one.state())
    assert other.payload.mass == one.payload.mass
    assert other.snapshots.names == ("bare", "cup")
    for name, value in one.state().items():
        assert np.array_equal(other.state()[name], value), name
    noise, same = one.innovations.noise, other.innovations.noise
    assert np.array_equal(same.covariance, noise.covariance)
    assert np.array_equal(same.correlation, noise.correlation)
    for each in (one, other):
        each.contact.reset()
        each.contact.add(10**12, np.ones(4), speeds=np.ones(4))
    assert other.contact.deviation == one.contact.deviation > 0.0


def test_what_is_saved_meanwhile_is_locked_while_it_is_used(holding, body, monkeypatch) -> None:
    """The learner's thread may copy the state while messages are answered."""
    of, used = holding(), []
    for name in ("watch", "apply", "effort", "learn_held"):
        call = getattr(monitor(of), name)

        def locked(*arguments, name: str = name, call=call):
            assert of._changes_lock.locked()
            used.append(name)
            return call(*arguments)

        monkeypatch.setattr(monitor(of), name, locked)
    follow(of, moving(ON + 15.2, held(body, ON), begin=ON + 15.0))
    assert {"watch", "apply", "effort", "learn_held"} <= set(used)
    used.clear()
    of.feedforward(*np.zeros((3, 2, 4)))
    assert used == ["apply", "apply"]


def test_a_link_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="payload_link.*slider.*not 'hand'"):
        learner(**{"changes.payload_link": "hand"})
    assert monitor(learner(**{"changes.payload_link": "slider"})).causes.link == "slider"


@pytest.fixture(scope="module")
def path(grasp, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a learner that holds the cup."""
    file = tmp_path_factory.mktemp("model") / "model.npz"
    grasp[0].save(file)
    return file


def test_a_loaded_learner_predicts_the_same_with_the_same_payload(holding, path, body) -> None:
    of, other = holding(), learner()
    other.load(path)
    assert monitor(other).payload.name == "cup"
    assert monitor(other).payload.mass == monitor(of).payload.mass
    measured = list(moving(2.0, held(body, 0.0), seed=3))
    predictions = []
    for one in (of, other):
        one.filter.reset()
        steps = [one.predict(measurement) for measurement in measured]
        predictions.append([s.prediction.semiparametric for s in steps if s is not None])
    np.testing.assert_allclose(*predictions, rtol=1e-9, atol=1e-11)


def test_a_learner_without_detection_loads_the_bare_model(grasp, path) -> None:
    other = learner(**{"changes.detect": False})
    other.load(path)
    same = grasp[0].estimator.rigid_body.parameters
    np.testing.assert_allclose(other.estimator.rigid_body.parameters, same, rtol=1e-9, atol=1e-13)


def test_a_model_without_changes_is_loaded_with_the_bare_hand(grasp, tmp_path: Path) -> None:
    grasp[0].estimator.save(tmp_path / "bare.npz")
    other = learner()
    other.load(tmp_path / "bare.npz")
    assert monitor(other).payload is None and monitor(other).snapshots.names == ("bare",)


def test_changes_of_other_columns_are_refused_and_nothing_is_lost(
    grasp, path, tmp_path: Path
) -> None:
    of = grasp[0]
    state = of.state() | {"changes.correction.theta": np.zeros(3)}
    save_state(tmp_path / "broken.npz", of.identity(), state)
    other = learner()
    other.load(path)
    with pytest.raises(StorageError, match="other columns"):
        other.load(tmp_path / "broken.npz")
    assert monitor(other).payload.name == "cup"


def test_payloads_of_another_link_are_refused_and_nothing_is_lost(grasp, path) -> None:
    of = monitor(grasp[0])
    link = next(body for body in MODEL.bodies if body != of.causes.link)
    other = learner(**{"changes.payload_link": link})
    monitor(other).snapshots.store("own", of.snapshots["cup"])
    monitor(other).exclusions.exclude(10**9)  # as in a contact
    with pytest.raises(StorageError, match=f"changes.payload_link' makes it '{link}'"):
        other.load(path)
    assert "own" in monitor(other).snapshots.names and monitor(other).payload is None
    assert monitor(other).verdict(2 * 10**9) == EXCLUDE
    assert other.estimator.n_learned == 0


def test_forgetting_everything_keeps_the_names(path) -> None:
    other = learner()
    other.load(path)
    other.reset()
    assert monitor(other).payload is None and "cup" in monitor(other).snapshots.names


EXCLUSIONS = {
    "defer 10, defer 20": (True, "9 learn, 10 defer, 25 defer"),
    "defer 10, release": (False, "9 learn, 10 learn, 25 learn"),
    "defer 10, exclude 20, release": (True, "9 learn, 10 exclude, 25 exclude"),
    "defer 10, exclude 20, resume 30": (False, "9 learn, 10 exclude, 30 exclude, 31 learn"),
    "exclude 100, resume 150, exclude 200, resume 250": (
        False,
        "120 exclude, 160 learn, 220 exclude, 270 learn",
    ),
    "exclude 100, defer 150, exclude 160, resume 200": (
        False,
        "99 learn, 100 exclude, 155 exclude, 200 exclude, 201 learn",
    ),
    "exclude 100, resume 200, defer 300, restart 5": (False, "5 learn, 150 learn, 300 learn"),
    "exclude 150, restart 5": (True, "5 exclude, 150 exclude"),
    "exclude 150, restart 5, resume 60": (False, "5 exclude, 60 exclude, 61 learn, 150 learn"),
}


@pytest.mark.parametrize("calls", EXCLUSIONS)
def test_samples_are_learned_by_their_stamps_however_late(calls: str) -> None:
    exclusions, (active, verdicts) = LearningExclusions(), EXCLUSIONS[calls]
    for call in calls.split(", "):
        name, *stamp = call.split()
        getattr(exclusions, name)(*map(int, stamp))
    assert exclusions.active is active
    for stamp, verdict in (each.split() for each in verdicts.split(", ")):
        assert exclusions.verdict(int(stamp)) == verdict, stamp


def test_deviations_of_a_payload_include_the_drives_gains(body) -> None:
    """Efforts by gains that are off by what their deviations say: the payload's cover it."""
    off = np.array([0.08, -0.06, 0.05, -0.08])[: MODEL.n_axes]
    covered = {}
    for std in (0.0, 0.07):
        settings = {"changes.effort_gain_std": (std,), "changes.effort_gain_common_std": std}
        of = learner(**settings, **{"changes.settle": 6.0, "nystrom.window": 5.0})
        measured = moving(24.0, held(body, 12.0))
        follow(of, (dataclasses.replace(m, y=m.y * (1.0 + off)) for m in measured))
        found = monitor(of).payload
        assert found is not None
        error = np.append(found.center - body[1:4] / body[0], found.mass - body[0])
        covered[std] = np.abs(error) / np.append(found.center_std, found.mass_std)
        assert found.mass_std > std * found.mass
    assert covered[0.0].max() > covered[0.07].max()
    assert covered[0.07].max() < 2.5


def test_gains_need_a_deviation_for_each_joint() -> None:
    with pytest.raises(ConfigurationError, match=r"changes\.effort_gain_std"):
        learner(**{"changes.effort_gain_std": (0.1, 0.1)})


def test_a_payload_taken_in_a_pause_is_found(warm, body) -> None:
    of = warm()
    later = (
        dataclasses.replace(m, stamp=m.stamp + 3_000_000_000)
        for m in moving(ON + 6.0, held(body, 0.0), begin=ON)
    )
    follow(of, later)
    found = monitor(of).payload
    assert found is not None and found.mass == pytest.approx(body[0], rel=0.1)


def test_a_likely_payload_waits_until_its_evidence_has_halved() -> None:
    of = monitor(learner())
    of._now.likely = 40.0
    for evidence, waits in ((39.0, True), (21.0, True), (19.0, False), (30.0, False)):
        of._now.evidence = {"payload": -5.0, "bare": evidence}
        assert of._payload_is_likely() is waits


def test_at_a_kilohertz_blocks_are_means_of_the_samples_that_are_learned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of = learner(**{"nystrom.window": 1.0, "changes.settle": 1.0})
    watching, seen, kept, felt = monitor(of), [], [], 0
    add = BlockMean.add

    def noted(self: BlockMean, stamp: int, *rest: Any, **more: Any) -> Any:
        seen.append(stamp)
        return add(self, stamp, *rest, **more)

    monkeypatch.setattr(BlockMean, "add", noted)
    times = np.arange(4000) * 1e-3
    q, dq, ddq = motion(MODEL, times)
    y = MODEL.regressors(q, dq, ddq) @ MODEL.prior
    for k, instant in enumerate(times):
        if k == 2505:
            continue  # after it those that are learned are not among each other one
        step = of.predict(Measurement(START + round(instant * 1e9), q[k], dq[k], y[k]))
        if step is None:
            continue
        before = watching.status
        of.update(of.admit(step))
        if step.prediction.residual.ready:
            felt += watching.status is not before
            if not step.sample.between:
                kept.append(step.stamp)
    assert seen == kept and len(kept) == pytest.approx(0.1 * len(times), rel=0.4)
    assert felt == pytest.approx(5 * len(kept), rel=0.05)  # contacts are looked for in more
