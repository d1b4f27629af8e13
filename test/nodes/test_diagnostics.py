"""What the learner says of itself, in one sentence a second."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sensor_msgs.msg import JointState

from semiparam_dynamics.base.nodes.diagnostics import OK, WARN
from semiparam_dynamics.base.nodes.messages import joint_state_message
from semiparam_dynamics.dynamics.filtering import PARTIAL, UNSETTLED
from semiparam_dynamics.dynamics.limits import CLIPPED
from semiparam_dynamics.learner.nodes import session_report
from semiparam_dynamics.learner.nodes.session import Session
from semiparam_dynamics.learner.nodes.session_report import SILENT, SessionReport
from semiparam_dynamics.samples.sensors import NO_EFFORT, NO_VELOCITY

from .conftest import moving, take

JOINTS = ("shoulder", "elbow")


def standing(count: int, begin: int, period: int = 10_000_000) -> list[JointState]:
    """Messages a period apart of the two links at rest, from the stamp `begin` on, both in ns."""
    stamps = begin + period * np.arange(count)
    noise = np.random.default_rng(0).normal(size=(count, 2))
    q, effort = [0.3, 0.4] + 1e-6 * noise, [4.0, 2.0] + 0.01 * noise
    rows = zip(stamps.tolist(), q, 0.0 * q, effort, strict=True)
    return [joint_state_message(stamp, JOINTS, *values) for stamp, *values in rows]


@pytest.fixture
def say(make_session) -> Callable[[list[JointState]], tuple[bytes, str]]:
    """A function that gives a session messages and returns what it says then."""
    session = make_session(defer_learning=False)
    report = SessionReport(session)

    def say(messages: list[JointState]) -> tuple[bytes, str]:
        for message in messages:
            take(session, message)
        return report.summary([])

    say.session = session
    return say


def test_errors_are_told_of_motion_and_not_of_rest_where_efforts_hardly_change(say) -> None:
    waiting = (OK, "0 samples learned; standing still, waiting for motion")
    assert say(standing(50, 500_000_000)) == waiting
    level, sentence = say(moving(600))
    learned = say.session.learner.estimator.n_learned
    assert level == OK and sentence.startswith(f"{learned} samples learned; recent normalised MSE")
    assert "nan" not in sentence
    say(standing(100, 8_000_000_000))  # forgets the jump
    learned = say.session.learner.estimator.n_learned
    level, sentence = say(standing(100, 9_000_000_000))
    assert sentence == f"{learned} samples learned; standing still, waiting for motion"


def test_rest_is_told_at_a_kilohertz_too(say) -> None:
    say(moving(300))
    say(standing(1000, 8_000_000_000, 1_000_000))
    level, sentence = say(standing(1000, 9_000_000_000, 1_000_000))
    assert level == OK and sentence.endswith("standing still, waiting for motion")


def test_what_is_told_after_a_reset_or_a_load_is_of_the_samples_since(say, tmp_path) -> None:
    say(moving(300))
    say.session.save(tmp_path / "model.npz")
    say.session.reset()
    _, sentence = say(moving(60))
    assert "learns 58 of 58 samples" in sentence
    say.session.load(tmp_path / "model.npz")
    _, sentence = say(moving(80)[60:])
    assert sentence.startswith("318 samples learned") and "learns 20 of 20 samples" in sentence


def test_errors_are_told_once_there_was_motion_enough_for_their_variance(say, tmp_path) -> None:
    early = "too little motion yet for errors; learns"
    messages = moving(1200)
    _, sentence = say(messages[:400])
    assert early in sentence and "MSE" not in sentence
    _, sentence = say(messages[400:600])
    assert "recent normalised MSE: rigid body" in sentence and early not in sentence
    say.session.save(tmp_path / "model.npz")
    say.session.load(tmp_path / "model.npz")  # known motion, but its variance is not yet
    _, sentence = say(messages[600:650])
    assert early in sentence and "MSE" not in sentence
    _, sentence = say(messages[650:])
    assert "recent normalised MSE: rigid body" in sentence and early not in sentence


def test_errors_after_a_load_are_of_the_model_that_was_loaded(say, tmp_path) -> None:
    """Those of the model before it, which knew nothing, are gone from both kinds of scores."""
    say(moving(600))
    learner = say.session.learner
    say.session.save(tmp_path / "model.npz")
    say.session.reset()
    say(moving(100))
    begun = learner.recent.nmse("rigid_body").max(), learner.scores.nmse("rigid_body").max()
    say.session.load(tmp_path / "model.npz")
    assert learner.scores.samples == learner.recent.samples == 0
    assert np.isnan(learner.scores.nmse("rigid_body")).all()
    say(moving(200)[100:])
    assert learner.scores.samples == learner.recent.samples == 100
    for scores, before in zip((learner.recent, learner.scores), begun, strict=True):
        assert scores.nmse("rigid_body").max() < 0.1 * before


def test_the_pace_of_learning_and_its_cost_are_told_of_a_second(say, monkeypatch) -> None:
    times = iter([(10.0, 3.0), (11.0, 3.45), (11.1, 3.5)])
    monkeypatch.setattr(session_report, "clocks", lambda: next(times))
    report = SessionReport(say.session)
    for message in moving(200):
        take(say.session, message)
    cutoff, learned = 5.0, say.session.learner.estimator.n_learned
    _, sentence = report.summary([])
    pace = f"learns {learned} of {say.session.predicted} samples ({learned / cutoff:.2g} times the"
    assert sentence.endswith(f"{pace} cut-off) with 0.45 of a core")
    _, sentence = report.summary([])
    assert sentence.endswith("no new samples")


def test_a_wrong_effort_is_told_while_it_is_wrong_and_errors_are_those_of_the_others(say) -> None:
    messages = moving(700)
    for message in messages[:600]:
        message.effort[1] = float("nan")
    level, sentence = say(messages[:600])
    assert level == WARN and "the effort of elbow is nan" in sentence
    level, sentence = say(messages[600:610])
    assert say.session.dropped()[PARTIAL] > 0
    assert level == OK and "MSE: rigid body" in sentence and "nan" not in sentence


def test_a_joint_without_an_effort_is_no_lasting_warning(say) -> None:
    messages = moving(400)
    for message in messages:
        message.effort[1] = float("nan")
    level, sentence = say(messages[:150])
    assert level == WARN and "the effort of elbow is nan" in sentence
    say(messages[150:250])
    assert len(say.session.stream.news()) == 1
    level, sentence = say(messages[250:])
    assert level == OK and not say.session.stream.news()
    assert say.session.dropped()[NO_EFFORT] == 201


def test_a_joint_whose_velocities_nobody_fills_is_told_once_and_no_warning(say) -> None:
    messages = moving(400)
    for message in messages:
        message.velocity[1] = 0.0
    say(messages[:200])
    (told,) = say.session.stream.news()
    assert told.startswith("elbow: every velocity has been 0, though the joint moves")
    level, _ = say(messages[200:])
    assert level == OK and not say.session.stream.news()
    assert say.session.dropped()[NO_VELOCITY] > 200


def test_a_start_in_motion_without_velocities_is_no_warning(say) -> None:
    messages = moving(400)
    for message in messages:
        message.velocity = []
    say(messages[:150])
    level, _ = say(messages[230:350])  # a pause
    assert level == OK
    assert say.session.dropped()[UNSETTLED] == 20


def test_a_sentence_is_about_the_last_second_alone(say) -> None:
    messages = moving(300)
    for part, joint, told in ((100, 1, "elbow"), (200, 0, "shoulder")):
        for message in messages[part : part + 50]:
            message.effort[joint] = float("nan")
        say(messages[part - 100 : part])
        _, sentence = say(messages[part : part + 100])
        assert sentence == f"50 times in the last second: the effort of {told} is nan"


def test_what_was_wrong_most_often_is_told_with_how_often(say) -> None:
    messages = moving(60)
    messages[20].position[0] = messages[30].position[0] = float("nan")
    messages[40].header.stamp = messages[39].header.stamp
    told = "the position of shoulder is nan"
    assert say(messages) == (WARN, f"2 times in the last second: {told}")
    messages = moving(120)[60:]
    messages[20].position[0] = float("nan")
    messages[40].header.stamp = messages[39].header.stamp
    assert say(messages) == (WARN, f"once in the last second: {told}")


def test_centres_that_are_all_in_use_are_told_where_the_motion_is_new(make_session) -> None:
    session = make_session(
        defer_learning=False, nystrom__max_centers=4, nystrom__wide_max_centers=0
    )
    report = SessionReport(session)
    for message in moving(1200, 0.02):
        take(session, message)
    used, most = session.learner.estimator.residual.centers
    assert (used, most) == (4, 4) and report.values()["centres"] == "4 of 4"
    report.summary([])
    for message in moved_away(1200, 100):
        take(session, message)
    assert session.last.prediction.confidence < SILENT
    _, sentence = report.summary([])
    assert "this motion is new to it, and its 4 centres are all in use (nystrom." in sentence


def moved_away(begin: int, count: int) -> list[JointState]:
    """The motion that follows `moving(begin)`, and leads away from where it was."""
    messages = moving(begin + count, 0.02)[begin:]
    for k, message in enumerate(messages):
        ramp = 0.01 * k
        message.position = (np.array(message.position) + ramp).tolist()
        message.velocity = (np.array(message.velocity) + 1.0).tolist()
    return messages


def told_of(make_session, **changes: object) -> Session:
    """A session that was given 150 messages."""
    session = make_session(defer_learning=False, **changes)
    for message in moving(150):
        take(session, message)
    return session


def test_clipped_predictions_are_counted_and_warned_of(make_session) -> None:
    session = told_of(make_session, **{"output.bound": (0.5,)})
    report = SessionReport(session)
    level, summary = report.summary([])
    assert level == WARN and CLIPPED in summary
    assert int(report.values()[CLIPPED]) == session.learner.bounded[CLIPPED] > 100
    assert report.summary([])[0] == OK  # none since
    bound = session.learner.estimator.bound
    assert (bound.within(np.array([np.nan, -9.0])) == [0.0, -0.5]).all()


def test_the_gate_is_shown_where_there_is_one(make_session) -> None:
    assert SessionReport(told_of(make_session, **{"output.gate": 5.0})).values()["gate"] == "open"
    values = SessionReport(told_of(make_session)).values()
    assert "gate" not in values and CLIPPED not in values
