"""Changes of a small arm, noticed, named, allowed for and taken back."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from semiparam_dynamics.changes.payload import compact_body
from semiparam_dynamics.errors import ConfigurationError

from .changing_arm import errors, follow, held, learner, monitor, moving, pushed, seconds, small_arm

MODEL = small_arm()
BODY = compact_body(0.5, np.array([0.05, 0.02, 0.03]))
ON, OFF, END = 22.0, 35.0, 42.0


def nothing(t: float, dq: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return np.zeros(MODEL.n_axes)


@pytest.fixture(scope="module")
def grasped():
    """A payload is held from ON to OFF."""
    of = learner(MODEL)
    steps = follow(of, moving(MODEL, END, held(BODY, ON, OFF)))
    return of, steps


def test_a_payload_is_found_within_a_second_and_its_release_at_once(grasped) -> None:
    of, _ = grasped
    events = [e for e in monitor(of).events if e.cause == "payload"]
    assert [e.name for e in events] == ["", "bare"]
    delays = [seconds(e.stamp) - t for e, t in zip(events, (ON, OFF), strict=True)]
    assert 0.0 < delays[0] < 1.0 and 0.0 < delays[1] < 0.6
    assert monitor(of).payload is None and not monitor(of).correction.theta.any()


def test_its_predictions_are_as_good_as_before_with_it_and_after_it(grasped) -> None:
    _, steps = grasped
    before = errors(steps, ON - 5.0, ON)
    for begin, end in ((ON + 3.0, OFF), (OFF + 1.0, END)):
        assert np.all(errors(steps, begin, end) < 1.5 * before + 0.03 * before.max())
    assert np.max(errors(steps, ON, ON + 0.5) / before) > 3.0


def test_its_standard_deviations_cover_what_is_not_known_yet(grasped) -> None:
    _, steps = grasped
    chosen = [s for s in steps if ON + 1.0 < seconds(s.stamp) < ON + 3.0]
    left = np.array([s.y - s.prediction.semiparametric for s in chosen])
    std = np.array([s.prediction.semiparametric_std for s in chosen])
    assert np.mean(np.abs(left) < 2.0 * std) > 0.85


def test_the_estimate_is_the_body_and_that_of_least_squares() -> None:
    of = learner(MODEL)
    steps = follow(of, moving(MODEL, ON + 11.0, held(BODY, ON)))
    found = monitor(of).payload
    assert found is not None and found.settled and found.link == MODEL.bodies[-1]
    assert found.mass == pytest.approx(0.5, rel=0.05)
    assert np.linalg.norm(found.center - BODY[1:4] / 0.5) < 0.01
    assert abs(found.mass - 0.5) < 4.0 * found.mass_std
    # All samples since the filters let the payload through, each as good as any other.
    chosen = [s for s in steps if ON + 0.5 < seconds(s.stamp) < ON + 10.0]
    columns = monitor(of).causes.combination[:, :10]
    rows = np.array([s.sample.regressor @ columns for s in chosen])
    left = np.array([s.y - s.learned.semiparametric for s in chosen])
    size = left.std(axis=0)
    batch = np.linalg.lstsq((rows / size[:, None]).reshape(-1, 10), (left / size).ravel())[0]
    assert found.mass == pytest.approx(batch[0], abs=4.0 * found.mass_std)


def test_nothing_of_a_payload_gets_into_the_model() -> None:
    loaded, bare = learner(MODEL), learner(MODEL)
    follow(loaded, moving(MODEL, ON + 9.0, held(BODY, ON)))
    follow(bare, moving(MODEL, ON, nothing))
    one, other = (of.estimator.rigid_body.parameters for of in (loaded, bare))
    step = np.abs(MODEL.base.combination[:, -10:] @ BODY)
    # Some samples are learned before anything can be suspected.
    assert np.linalg.norm(one - other) < 0.03 * np.linalg.norm(step)


def test_a_payload_known_before_is_known_again_by_name() -> None:
    of = learner(MODEL)
    follow(of, moving(MODEL, ON + 11.0, held(BODY, ON)))
    monitor(of).remember("cup")
    assert monitor(of).payload is not None and monitor(of).payload.name == "cup"
    again = learner(MODEL)
    monitor(again).snapshots.restore(monitor(of).snapshots.state())
    follow(again, moving(MODEL, ON + 2.0, held(BODY, ON), seed=5))
    names = [e.name for e in monitor(again).events if e.cause == "payload"]
    assert names == ["cup"] and monitor(again).payload.settled
    monitor(again).recall("bare")
    assert monitor(again).payload is None
    with pytest.raises(ConfigurationError, match="no payload is known as 'mug'"):
        monitor(again).recall("mug")


def test_an_offset_and_friction_are_named_and_allowed_for() -> None:
    size = np.abs(MODEL.regressors(*(np.zeros((1, 4)),) * 3)[0] @ MODEL.prior).max()
    offset = np.array([0.0, 0.5 * size, 0.0, 0.0])
    rough = 0.3 * size

    def friction(t: float, dq: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return (rough * np.tanh(dq / 0.02) if t >= ON else 0.0 * dq) * np.array([0, 1, 0, 0])

    for cause, change in (("offset", pushed(offset, ON, np.inf)), ("friction", friction)):
        of = learner(MODEL)
        steps = follow(of, moving(MODEL, ON + 18.0, change))
        found = [
            e.cause for e in monitor(of).events if e.cause in ("payload", "offset", "friction")
        ]
        assert found[-1] == cause
        after, before = errors(steps, ON + 14.0, ON + 18.0), errors(steps, ON - 6.0, ON)
        assert np.all(after < 1.5 * before + 0.03 * before.max())


def test_a_contact_is_seen_within_50_ms_and_nothing_of_it_is_learned() -> None:
    size = np.abs(MODEL.regressors(*(np.zeros((1, 4)),) * 3)[0] @ MODEL.prior).max()
    push = size * np.array([1.0, 1.0, 0.0, 0.5])
    touched, free = learner(MODEL), learner(MODEL)
    follow(touched, moving(MODEL, ON + 5.0, pushed(push, ON, ON + 0.4)))
    steps = follow(free, moving(MODEL, ON + 5.0, nothing))
    begins = [e for e in monitor(touched).events if e.cause == "contact"]
    ends = [e for e in monitor(touched).events if e.cause == "contact over"]
    assert len(begins) == len(ends) == 1
    assert seconds(begins[0].stamp) - ON <= 0.05 and 0.4 < seconds(ends[0].stamp) - ON < 1.2
    assert touched.dropped["during a change (changes.detect)"] > 10
    last = steps[-1].sample
    one, other = (of.estimator.predict(last) for of in (touched, free))
    assert np.all(np.abs(one.semiparametric - other.semiparametric) < 0.1 * one.semiparametric_std)


@pytest.mark.parametrize(
    ("length", "shift"), [(0.4, 0.0), (np.inf, 0.0), (np.inf, 30.0)], ids=["over", "again", "pause"]
)
def test_a_contact_ends_with_its_recording(length: float, shift: float) -> None:
    """The next one, from the same stamps on or later, has none at the same instants."""
    size = np.abs(MODEL.regressors(*(np.zeros((1, 4)),) * 3)[0] @ MODEL.prior).max()
    push = size * np.array([1.0, 1.0, 0.0, 0.5])
    of = learner(MODEL)
    follow(of, moving(MODEL, ON + 1.5, pushed(push, ON, ON + length)))
    assert [e.cause for e in monitor(of).events][:1] == ["contact"]
    again = [
        dataclasses.replace(m, stamp=m.stamp + round(shift * 1e9))
        for m in moving(MODEL, ON + 1.5, nothing)
    ]
    dropped = of.dropped["during a change (changes.detect)"]
    follow(of, iter(again))
    assert [e.cause for e in monitor(of).events] == ["contact", "contact over"]
    assert not monitor(of).contact.active and monitor(of).status.learning
    assert of.dropped["during a change (changes.detect)"] == dropped


def test_where_nothing_happens_everything_is_learned() -> None:
    watched, blind = learner(MODEL), learner(MODEL, **{"changes.detect": False})
    follow(watched, moving(MODEL, 28.0, nothing))
    follow(blind, moving(MODEL, 28.0, nothing))
    assert not monitor(watched).events and blind.changes is None
    assert watched.estimator.n_learned == blind.estimator.n_learned
    one, other = (of.estimator.rigid_body.parameters for of in (watched, blind))
    np.testing.assert_allclose(one, other, rtol=1e-9)


def test_a_restored_monitor_goes_on_alike() -> None:
    one, other = learner(MODEL), learner(MODEL)
    measured = list(moving(MODEL, ON + 14.0, held(BODY, ON)))
    cut = round(len(measured) * (ON + 12.0) / (ON + 14.0))
    follow(one, iter(measured[:cut]))
    monitor(one).remember("cup")
    monitor(other).restore(monitor(one).state())
    assert monitor(other).payload.mass == monitor(one).payload.mass
    assert monitor(other).snapshots.names == ("bare", "cup")
    assert monitor(other).contact.threshold == monitor(one).contact.threshold


def test_a_link_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="payload_link.*slider.*not 'hand'"):
        learner(MODEL, **{"changes.payload_link": "hand"})
    assert monitor(learner(MODEL, **{"changes.payload_link": "slider"})).causes.link == "slider"
