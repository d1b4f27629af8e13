"""Changes while the arm stands: brakes that hold it, and loads that are taken and put down."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

import numpy as np
import pytest

from semiparam_dynamics.changes.config import ChangesConfig
from semiparam_dynamics.changes.hypotheses import Causes
from semiparam_dynamics.learner.learner import InverseDynamicsLearner
from semiparam_dynamics.samples.measurement import Measurement

from ..dynamics.arms import motion
from .changing_arm import (
    MODEL,
    NOISE,
    ON,
    RATE,
    START,
    Change,
    follow,
    held,
    largest_weight,
    monitor,
    moving,
    nothing,
    seconds,
)
from .conftest import Make

STANDS = 3.0  # s that it stands


def stopping(
    change: Change,
    end: float,
    *,
    begin: float = ON,
    goes: float = ON + STANDS,
    brake: float = 0.4,
    off: tuple[float, float] = (np.inf, np.inf),
    seed: int = 0,
) -> Iterator[Measurement]:
    """The arm of `moving`, which comes to rest within `brake` s from ON on, until it `goes` on.

    off: between these times drives have no current, and brakes hold the arm.
    """
    t = np.arange(int(ON * RATE), int(end * RATE)) / RATE
    stopped, started = ((t - ON) / brake).clip(0.0, 1.0), ((t - goes) / 0.4).clip(0.0, 1.0)
    rate = 1.0 - stopped**2 * (3.0 - 2.0 * stopped) + started**2 * (3.0 - 2.0 * started)
    path = ON + np.append(0.0, np.cumsum(0.5 * (rate[1:] + rate[:-1]) / RATE))
    q, dq, ddq = motion(MODEL, path)
    ddq = ddq * rate[:, None] ** 2 + dq * np.gradient(rate, 1.0 / RATE)[:, None]
    dq = dq * rate[:, None]
    regressors = MODEL.regressors(q, dq, ddq)
    whole = motion(MODEL, np.arange(int(5.0 * RATE)) / RATE)
    size = (MODEL.regressors(*whole) @ MODEL.prior).std(axis=0)
    y = regressors @ MODEL.prior + 0.2 * size * np.sin(3.0 * q[:, :1]) * np.cos(2.0 * q[:, 1:2])
    columns = regressors @ Causes(MODEL, ChangesConfig()).combination
    rng = np.random.default_rng(seed)
    for k, instant in enumerate(t):
        effort = y[k] + change(float(instant), dq[k], columns[k])
        effort *= not off[0] <= instant < off[1]
        effort += NOISE * size * rng.standard_normal(len(size))
        if instant >= begin:
            yield Measurement(START + round(instant * 1e9), q[k], dq[k], effort)


def named(of: InverseDynamicsLearner, since: float = ON) -> list[tuple[str, str]]:
    """The events since a time that are no contacts."""
    events = [e for e in monitor(of).events if seconds(e.stamp) >= since]
    return [(e.cause, e.name) for e in events if not e.cause.startswith("contact")]


def fed_forward(of: InverseDynamicsLearner, measured: list[Measurement]) -> np.ndarray:
    """(n_axes,) the effort that holds the posture of the last measurement."""
    still = np.zeros((1, MODEL.n_joints))
    found: np.ndarray = of.feedforward(measured[-1].q[None], still, still).values["semiparametric"]
    return found[0]


@pytest.mark.parametrize(("brake", "delay"), [(0.1, 0.0), (0.2, 1.0), (0.4, 0.0)])
def test_an_arm_that_brakes_hold_without_current_has_no_payload(
    warm: Make, brake: float, delay: float
) -> None:
    of = warm()
    off = ON + delay, ON + STANDS
    measured = list(stopping(nothing, ON + STANDS, brake=brake, off=off))
    needed = fed_forward(of, measured)
    follow(of, iter(measured))
    assert not named(of) and monitor(of).payload is None
    np.testing.assert_allclose(fed_forward(of, measured), needed, atol=0.1 * largest_weight())
    again = stopping(nothing, ON + STANDS + 6.0, begin=ON + STANDS, brake=brake, off=off)
    follow(of, again)
    assert not named(of) and not monitor(of).correction.theta.any()
    assert monitor(of).status.learning


def later(by: float, measurements: Iterable[Measurement]) -> Iterator[Measurement]:
    """The same a multiple of five seconds later, after which the motion repeats."""
    for m in measurements:
        yield dataclasses.replace(m, stamp=m.stamp + round(by * 1e9))


def test_brakes_do_not_change_a_payload_that_is_being_estimated(warm, body) -> None:
    of = warm()
    follow(of, moving(ON + 5.0, held(body, ON), begin=ON))
    before = monitor(of).payload
    assert before is not None and not before.settled
    off = ON, ON + STANDS
    follow(of, later(5.0, stopping(held(body, 0.0), ON + STANDS, brake=0.1, off=off)))
    found = monitor(of).payload
    assert found is not None and not named(of, ON + 5.0)
    assert found.mass == pytest.approx(before.mass, rel=0.01)
    # It is weighed to the end when the arm moves again.
    again = stopping(held(body, 0.0), ON + STANDS + 8.0, begin=ON + STANDS, brake=0.1, off=off)
    follow(of, later(5.0, again))
    found = monitor(of).payload
    assert found is not None and not named(of, ON + 5.0) and found.settled
    assert found.mass == pytest.approx(0.5, rel=0.05)


def test_brakes_do_not_take_a_payload_away(holding, body) -> None:
    of = holding()
    assert monitor(of).payload.settled
    off = ON, ON + STANDS
    follow(of, later(15.0, stopping(held(body, 0.0), ON + STANDS + 3.0, off=off)))
    assert not named(of, ON + 15.0)
    assert monitor(of).payload.mass == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize("lasts", [3.0, 15.0], ids=["short", "longer than a contact"])
def test_a_load_that_a_standing_arm_takes_is_found_as_soon_as_it_moves(
    warm: Make, body: np.ndarray, lasts: float
) -> None:
    of = warm()
    goes = ON + 1.0 + lasts
    follow(of, stopping(held(body, ON + 1.0), goes + 2.0, goes=goes))
    (event,) = [e for e in monitor(of).events if e.cause == "payload"]
    assert 0.0 < seconds(event.stamp) - goes < 0.6
    assert monitor(of).payload.mass == pytest.approx(0.5, rel=0.05)


def test_known_payloads_are_taken_and_put_down_where_the_arm_stands(
    warm: Make, holding: Make, body: np.ndarray
) -> None:
    of = holding()
    follow(of, later(15.0, stopping(held(body, 0.0, ON + 1.0), ON + 2.0)))
    assert named(of, ON + 15.0) == [("payload", "bare")] and monitor(of).payload is None
    other = warm()
    monitor(other).snapshots.restore(monitor(of).snapshots.state())
    follow(other, stopping(held(body, ON + 1.0), ON + 2.0))
    assert named(other) == [("payload", "cup")]


@pytest.mark.parametrize("times", [0.6, 1.4])
def test_another_load_at_rest_is_not_taken_for_a_known_one_that_explains_most_of_it(
    warm: Make, holding: Make, body: np.ndarray, times: float
) -> None:
    of = holding()
    other = warm()
    monitor(other).snapshots.restore(monitor(of).snapshots.state())
    follow(other, stopping(held(times * body, ON + 1.0), ON + STANDS))
    assert not named(other)


def test_no_new_payload_is_named_in_the_first_blocks_of_a_contact(
    warm: Make, body: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brakes hold an arm within a few blocks: what a single one shows may be theirs."""
    of, found = warm(), []
    accept = monitor(of)._accept
    monkeypatch.setattr(
        monitor(of),
        "_accept",
        lambda finding, block: (found.append(finding), accept(finding, block)),
    )
    follow(of, moving(ON + 1.0, held(body, ON), begin=ON))
    other = warm()
    monitor(other)._restart_windows()  # no block of before is left to be tested
    monkeypatch.setattr(monitor(other), "_best_explanation", lambda: (found[0], {}))
    follow(other, moving(ON + 1.0, held(body, ON), begin=ON))
    contact, payload, *_ = monitor(other).events
    assert (contact.cause, payload.cause) == ("contact", "payload")
    assert payload.stamp - contact.stamp >= round(3 * monitor(other)._blocks.length * 1e9)
