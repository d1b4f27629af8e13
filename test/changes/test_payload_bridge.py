"""What the driver is told and when, as times go by that the test sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semiparam_dynamics.base.errors import ConfigurationError, RobotModelError
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.changes.load import LoadFrame, load_of, parameters_of
from semiparam_dynamics.changes.payload_bridge import Call, PayloadBridge, PayloadBridgeConfig
from semiparam_dynamics.robot.inertia import compact_body, is_body

URDF = Path(__file__).resolve().parents[1] / "data" / "seven_joint_arm.urdf"
FRAME = LoadFrame(str(URDF), tuple(f"joint{i}" for i in range(1, 8)), "hand")
CENTER = np.array([0.0, 0.02, 0.08])
TICK = 0.05  # s


class Robot:
    """A bridge, and a driver and a learner that answer at once; `says` is the driver's answer and
    `takes` the learner's to a release, None for none."""

    def __init__(self, **config: Any) -> None:
        self.bridge = PayloadBridge(
            FRAME, replace(PayloadBridgeConfig(), **{"tool_mass": 0.0, **config})
        )
        self.now = 100.0
        self.says: bool | None = True
        self.takes: bool | None = True
        self.calls: list[Call] = []
        self.releases: list[float] = []

    def estimate(self, mass: float, std: float = 0.01, center: np.ndarray = CENTER) -> None:
        body = compact_body(abs(mass), center) * np.sign(mass) if mass else np.zeros(10)
        self.bridge.estimated(self.now, "hand", body, std if mass else 0.0)

    def estimates(self, mass: float, times: int = 3, **values: Any) -> None:
        for _ in range(times):
            self.estimate(mass, **values)
            self.go(0.5)

    def go(self, seconds: float, ready: bool = True) -> None:
        for _ in range(round(seconds / TICK)):
            self.now += TICK
            call = self.bridge.advance(self.now, ready)
            if self.bridge.release_due(self.now):
                self.releases.append(self.now)
                if self.takes is not None:
                    self.bridge.release_answered(self.takes)
            if call is not None:
                self.calls.append(call)
                if self.says is not None:
                    error = "" if self.says else "payload too heavy"
                    self.bridge.answered(self.now, call, self.says, error)

    @property
    def masses(self) -> list[float]:
        return [round(call.load.mass, 6) for call in self.calls]

    @property
    def told(self) -> float:
        return load_of(self.bridge.driver.load).mass


class Learner:
    """Says what the efforts hold, once that was another for `delay` s, then twice a second.

    excluded: whether the efforts are without what the driver has.
    """

    def __init__(self, robot: Robot, excluded: bool, delay: float = 1.0) -> None:
        self.robot, self.excluded, self.delay = robot, excluded, delay
        self.said, self.released, self.ticks = 0.0, 0, 0

    def go(self, held: float, seconds: float) -> None:
        robot = self.robot
        for _ in range(round(seconds / TICK)):
            robot.go(TICK)
            if len(robot.releases) > self.released:
                self.released, self.said, self.ticks = len(robot.releases), 0.0, 0
                robot.estimate(0.0)
            found = held - (robot.told if self.excluded else 0.0)
            if abs(found - self.said) > 0.05:
                self.ticks += 1
                if self.ticks * TICK < self.delay:
                    continue
                self.said, self.ticks = (found if abs(found) > 1e-3 else 0.0), 0
                robot.estimate(self.said)
            elif self.said:
                self.ticks += 1
                if self.ticks % 10 == 0 and self.ticks * TICK < 10.0:
                    robot.estimate(self.said)
            else:
                self.ticks = 0


def test_told_in_steps_when_estimates_agree_and_taken_back_on_release() -> None:
    robot = Robot()
    robot.go(5.0)
    assert not robot.calls and "no estimate has come" in robot.bridge.sentence()
    robot.estimate(0.0)
    robot.go(2.5)
    assert robot.masses == [0.0] and "nothing is held" in robot.bridge.sentence()
    for mass in (1.4, 1.9, 2.0):
        robot.estimate(mass)
        robot.go(0.5)
    assert robot.masses == [0.0] and robot.bridge.reason == "the estimate is not settled"
    robot.estimates(2.01, times=2)
    robot.go(2.0)
    steps = np.diff([call.parameters for call in robot.calls], axis=0)
    shares = [FRAME.share(step) for step in steps]
    assert max(shares) <= 0.05 * (1 + 1e-9) and len(steps) == np.ceil(sum(shares) / 0.05)
    assert robot.told == pytest.approx(2.01) and not robot.bridge.trouble
    sent = [call.sent for call in robot.calls]
    assert np.min(np.diff(sent)) >= 0.2
    assert all(is_body(call.parameters) for call in robot.calls[1:])
    robot.estimates(2.05)  # no more than estimates differ
    robot.go(5.0)
    assert robot.told == pytest.approx(2.01)
    robot.estimate(0.0)
    robot.go(2.0)
    assert robot.told == 0.0 and not robot.bridge.driver.load.any()


@pytest.mark.parametrize(
    ("mass", "values", "reason"),
    [
        (2.0, {"std": 0.2}, "standard deviation is 0.2 kg, more than 0.1"),
        (9.0, {}, "9.50 kg with the tool is not between 0 and 5 kg"),
        (-1.0, {}, "-0.50 kg with the tool is not between 0 and 5 kg"),
        (2.0, {"center": np.array([0.5, 0.0, 0.0])}, "its centre is 0.40 m from hand"),
    ],
)
def test_what_cannot_be_true_is_never_sent(mass, values, reason: str) -> None:
    robot = Robot(tool_mass=0.5, step_share=1.0)
    robot.estimate(0.0)
    robot.go(3.0)
    robot.estimates(mass, **values)
    robot.go(5.0)
    assert robot.masses == [0.5] and reason in robot.bridge.sentence()
    robot.estimates(1.0)
    robot.go(3.0)
    assert robot.masses == [0.5, 1.5] and not robot.bridge.reason


@pytest.mark.parametrize("mass", [-1.0, -1.05, -0.92])
def test_a_tool_that_was_taken_off_is_no_load(mass: float) -> None:
    robot = Robot(tool_mass=1.0, tool_center=tuple(CENTER))
    robot.estimate(0.0)
    robot.go(3.0)
    robot.estimates(mass)
    robot.go(5.0)
    assert robot.told == 0.0 and not robot.bridge.driver.load.any() and not robot.bridge.trouble
    steps = np.diff([call.parameters for call in robot.calls], axis=0)
    assert max(FRAME.share(step) for step in steps) <= 0.05 * (1 + 1e-9)
    assert all(is_body(call.parameters) for call in robot.calls[:-1])
    count = len(robot.calls)
    robot.estimates(mass - 0.02)
    robot.go(3.0)
    assert len(robot.calls) == count
    robot.estimate(0.0)  # it is back
    robot.go(3.0)
    assert robot.told == 1.0


def test_the_tool_and_the_payload_are_one_load_of_a_body_that_can_exist() -> None:
    robot = Robot(tool_mass=1.0, tool_center=(0.0, 0.0, 0.05), step_share=1.0)
    flat = parameters_of(2.0, CENTER, np.array([0.1, 0.0, 0.01, 0.0, 0.0, 0.01]))
    assert not is_body(flat)
    robot.bridge.estimated(robot.now, "hand", flat, 0.01)
    robot.go(3.0)
    load = robot.calls[-1].load
    assert load.mass == pytest.approx(3.0) and is_body(robot.calls[-1].parameters)
    expected = (2.0 * CENTER + np.array([0.0, 0.0, 0.05])) / 3.0
    np.testing.assert_allclose(load.center, expected, atol=1e-12)


def test_refused_and_not_answered_the_last_load_stays() -> None:
    robot = Robot(step_share=1.0)
    robot.estimates(1.0)
    assert robot.told == pytest.approx(1.0)
    robot.says = False
    robot.go(3.0)
    robot.estimates(3.0)
    robot.go(1.0)
    assert robot.told == pytest.approx(1.0) and robot.bridge.trouble
    assert (
        "the driver refused (payload too heavy): the load that it accepted"
        in robot.bridge.sentence()
    )
    robot.go(4.0)  # told again, 2 s apart
    times = [call.sent for call in robot.calls if call.load.mass > 2.0]
    assert len(times) >= 3 and np.min(np.diff(times)) >= 2.0 - 1e-9

    robot.says = None
    robot.go(6.0)
    last = robot.calls[-1]
    robot.go(last.sent + 3.2 - robot.now)
    assert "did not answer within 3 s" in robot.bridge.sentence()
    assert robot.bridge.counts["not answered"] and robot.told == pytest.approx(1.0)
    robot.bridge.answered(robot.now, last, True)  # late, and nothing was asked since
    robot.go(0.1)
    assert robot.told == pytest.approx(3.0) and not robot.bridge.trouble
    assert robot.bridge.advance(robot.now) is None
    robot.bridge.answered(robot.now, robot.calls[0], True)  # long forgotten
    assert robot.told == pytest.approx(3.0)


def slow(robot: Robot, delay: float, in_turn: bool, seconds: float) -> None:
    """Go on with a driver that takes `delay` s for a call, of each for itself or in turn."""
    robot.says = None
    waiting: list[tuple[float, Call]] = []  # when it is answered
    end = 0.0
    for _ in range(round(seconds / TICK)):
        count = len(robot.calls)
        robot.go(TICK)
        for call in robot.calls[count:]:
            end = (max(end, call.sent) if in_turn else call.sent) + delay
            waiting.append((end, call))
        while waiting and robot.now >= waiting[0][0]:
            robot.bridge.answered(robot.now, waiting.pop(0)[1], True)


# The timeout is 3 s, and it is called again after 2 s.
@pytest.mark.parametrize(("delay", "in_turn"), [(2.0, False), (6.0, True), (17.0, True)])
def test_a_driver_that_is_always_late_gets_all_steps(delay: float, in_turn: bool) -> None:
    robot = Robot()
    robot.estimate(0.0)
    robot.go(3.0)
    robot.estimates(2.0, times=3)
    slow(robot, delay, in_turn, 100.0 * (delay + 1.0))
    assert robot.told == pytest.approx(2.0) and not robot.bridge.trouble
    steps = np.diff([call.parameters for call in robot.calls], axis=0)
    assert max(FRAME.share(step) for step in steps) <= 0.05 * (1 + 1e-9)


def test_an_answer_to_an_earlier_load_does_not_count() -> None:
    robot = Robot(step_share=1.0)
    robot.says = None
    robot.estimates(1.0)
    robot.go(4.0)
    robot.estimates(2.0)
    robot.go(6.0)
    first, last = robot.calls
    assert first.load.mass == pytest.approx(1.0) and last.load.mass == pytest.approx(2.0)
    robot.bridge.answered(robot.now, first, True)
    assert robot.told == 0.0
    robot.bridge.answered(robot.now, last, True)
    assert robot.told == pytest.approx(2.0)


def test_a_call_that_is_never_answered_is_made_again_seldom() -> None:
    robot = Robot(step_share=1.0)
    robot.says = None
    robot.estimates(1.0)
    robot.go(60.0)
    sent = [call.sent for call in robot.calls]
    assert len(sent) == 4 and np.min(np.diff(sent)) >= 20.0 - 1e-9
    robot.estimate(0.0)  # another load does not wait as long as a repetition
    robot.go(5.1)  # the timeout of a call under way, and the period
    assert robot.masses[-1] == 0.0


def test_a_refusal_that_comes_late_is_one() -> None:
    robot = Robot(step_share=1.0)
    robot.says = None
    robot.estimates(1.0)
    robot.go(10.0)
    count = len(robot.calls)
    robot.bridge.answered(robot.now, robot.calls[-1], False, "busy")
    assert robot.bridge.counts["refused"] == 1
    robot.go(0.1)
    assert "the driver refused (busy)" in robot.bridge.sentence()
    robot.go(2.1)
    assert len(robot.calls) == count + 1


def test_one_refused_step_ends_neither_the_way_nor_the_bound_on_it() -> None:
    robot = Robot()
    robot.estimate(0.0)
    robot.go(3.0)
    robot.estimates(2.0, times=2)
    robot.estimate(2.0)
    robot.go(0.1)
    robot.says = False
    robot.go(0.3)
    halfway = robot.told
    assert 0.0 < halfway < 1.0
    robot.says = True
    robot.go(6.0)
    assert robot.told == pytest.approx(2.0)
    accepted = [c.parameters for c in robot.calls if c.load.mass != robot.calls[2].load.mass]
    steps = np.diff(accepted, axis=0)
    assert robot.masses[2] == robot.masses[3]  # the one refused was told again
    assert max(FRAME.share(step) for step in steps) <= 0.1 + 1e-9


def test_released_on_the_way_no_more_is_added() -> None:
    robot = Robot(period=5.0)
    robot.estimate(0.0)
    robot.go(6.0)
    robot.estimates(2.0, times=2)
    robot.estimate(2.0)
    robot.go(0.3)
    halfway, count = robot.told, len(robot.calls)
    assert 0.0 < halfway < 2.0
    robot.estimate(0.0)
    robot.go(2.0)
    assert len(robot.calls) == count and "5 s apart" in robot.bridge.reason
    robot.go(6.0)
    assert robot.told == 0.0 and max(robot.masses) <= halfway + 1e-6


def test_a_driver_that_was_gone_is_told_again_in_steps() -> None:
    robot = Robot(tool_mass=0.5)
    robot.estimate(1.5)
    robot.go(3.0, ready=False)
    assert not robot.calls and robot.bridge.trouble
    assert "was given no load; 1.50 kg is estimated; the driver's service is not there" in (
        robot.bridge.sentence()
    )
    robot.go(3.0)
    assert robot.told == pytest.approx(2.0)
    first, robot.calls = robot.masses, []
    robot.go(10.0, ready=False)
    assert not robot.calls and robot.bridge.trouble
    gone = "the driver was given no load again; 1.50 kg is estimated; the driver's service is gone"
    assert f"{gone}: its load is not known" in robot.bridge.sentence()
    robot.estimates(1.55)  # a change that isn't passed on
    robot.go(3.0)
    assert robot.masses == first and robot.told == pytest.approx(2.0)
    steps = np.diff([call.parameters for call in robot.calls], axis=0)
    assert max(FRAME.share(step) for step in steps) <= 0.05 * (1 + 1e-9)
    assert not robot.bridge.trouble and robot.bridge.sentence().startswith("the driver has 2.00")
    robot.calls = []
    robot.go(2.0, ready=False)
    robot.estimate(0.0)  # put down while it is gone
    robot.go(1.0, ready=False)
    robot.go(3.0)
    assert robot.masses == [0.5] and robot.bridge.driver.known


def test_a_call_under_way_when_the_driver_goes_does_not_count() -> None:
    robot = Robot(step_share=1.0)
    robot.says = None
    robot.estimates(1.0)
    (call,) = robot.calls
    robot.go(0.1, ready=False)
    robot.bridge.answered(robot.now, call, True)
    assert robot.told == 0.0 and robot.bridge.counts["not answered"] == 1
    robot.says = True
    robot.go(0.1)
    assert robot.masses == [1.0, 1.0] and robot.told == 1.0


def test_compensated_no_estimate_is_taken_while_what_the_driver_has_is_not_known() -> None:
    robot = Robot(compensated=True, tool_mass=0.5)
    robot.estimates(2.0)
    robot.go(5.0)
    assert robot.told == pytest.approx(2.5) and len(robot.releases) == 1
    robot.calls = []
    robot.go(1.0, ready=False)
    assert robot.bridge.trouble and "its load is not known" in robot.bridge.sentence()
    robot.estimate(2.0)  # it has forgotten the load, which the efforts contain again
    robot.go(5.0, ready=False)
    robot.go(2.0)
    assert max(robot.masses) == pytest.approx(2.5) and robot.told == pytest.approx(2.5)
    assert len(robot.releases) == 2
    robot.estimate(0.0)
    robot.go(10.0)
    assert robot.told == pytest.approx(2.5) and not robot.bridge.trouble


@pytest.mark.parametrize("says", [False, None])
def test_compensated_a_driver_that_is_back_and_refuses_first_gets_its_load(
    says: bool | None,
) -> None:
    robot = Robot(compensated=True, tool_mass=0.5)
    robot.estimates(2.0)
    robot.go(5.0)
    robot.go(1.0, ready=False)
    robot.says = says
    robot.estimate(0.0)  # made of efforts before it was gone
    robot.go(0.5)
    robot.says = True
    robot.go(30.0)
    assert robot.told == pytest.approx(2.5) and not robot.bridge.trouble


def test_compensated_a_driver_that_was_gone_before_anything_was_told_gets_the_tool() -> None:
    robot = Robot(compensated=True, tool_mass=0.5)
    robot.go(1.0)
    robot.go(0.1, ready=False)
    robot.estimate(2.0)
    robot.go(2.0, ready=False)
    assert robot.bridge.trouble and not robot.calls
    robot.go(1.0)
    assert robot.masses == [0.5] and robot.bridge.driver.known


def test_compensated_what_is_left_adds_to_what_the_driver_has() -> None:
    robot = Robot(compensated=True, tool_mass=0.5)
    robot.estimate(0.0)
    robot.go(3.0)
    assert not robot.calls  # it has the tool's load, of which efforts are without
    robot.estimates(2.0)
    robot.go(1.0)
    assert robot.told == pytest.approx(2.5) and len(robot.releases) == 1
    last = robot.calls[-1].sent
    assert last + 0.3 <= robot.releases[0] < last + 0.5
    count = len(robot.calls)
    robot.estimate(0.0)  # it compensates all of it
    robot.go(30.0)
    assert len(robot.calls) == count and robot.told == pytest.approx(2.5)
    for times in range(2, 7):  # taken and put down, again and again
        robot.estimates(-2.0 if times % 2 == 0 else 2.0)
        robot.go(2.5)
        assert robot.told == pytest.approx(0.5 if times % 2 == 0 else 2.5)
        assert len(robot.releases) == times and not robot.bridge.trouble
        robot.estimate(0.0)
        robot.go(5.0)


@pytest.mark.parametrize("accepted", [0, 1])
def test_compensated_refused_and_put_down_nothing_is_told_later(accepted: int) -> None:
    robot = Robot(compensated=True)
    robot.estimates(2.0, times=2)
    robot.estimate(2.0)
    robot.go(0.1 if accepted else 0.0)
    robot.says = False
    robot.go(5.0)
    halfway = robot.told
    assert (halfway > 0.0) == bool(accepted)
    robot.estimate(-halfway)  # what the driver holds up, and no more
    robot.go(2.5)
    robot.says = True
    robot.go(10.0)
    assert robot.told == 0.0 and max(robot.masses[accepted:]) < 2.0


def test_limits_that_are_lowered_hold_on_the_way() -> None:
    robot = Robot()
    robot.estimates(2.0, times=2)
    robot.estimate(2.0)
    robot.go(0.2)
    halfway = robot.told
    robot.bridge.configure(replace(robot.bridge.config, max_mass=1.0))
    robot.go(5.0)
    assert 0.0 < halfway < 1.0 and robot.told == halfway and robot.bridge.trouble
    with pytest.raises(ConfigurationError, match="more than 'max_mass'"):
        Robot(tool_mass=6.0)


@pytest.mark.parametrize("delay", [1.0, 5.0, 120.0])  # in which the robot may stand still
def test_compensated_wrongly_a_payload_counts_once_until_it_is_put_down(delay: float) -> None:
    robot = Robot(compensated=True)
    learner = Learner(robot, False, delay)
    learner.go(0.0, 5.0)
    for mass in (1.0, 2.0, 2.3, 0.4):
        learner.go(mass, 3.0 * delay + 40.0)
        assert robot.told == pytest.approx(1.0) and max(robot.masses) <= 1.2
        assert robot.bridge.trouble and "set compensated to false" in robot.bridge.sentence()
    learner.go(0.0, delay + 20.0)
    assert robot.told == 0.0 and not robot.bridge.trouble
    learner.go(1.5, 2.0 * delay + 20.0)
    assert robot.told == pytest.approx(1.5) and robot.bridge.trouble


def test_compensated_a_second_payload_waits_until_the_first_is_put_down() -> None:
    robot = Robot(compensated=True)
    learner = Learner(robot, True)
    learner.go(1.0, 20.0)
    assert robot.told == pytest.approx(1.0) and not robot.bridge.trouble
    learner.go(2.5, 20.0)
    assert robot.told == pytest.approx(1.0) and robot.bridge.trouble
    assert "else put both down" in robot.bridge.sentence()
    learner.go(0.0, 20.0)
    assert robot.told == 0.0 and not robot.bridge.trouble
    learner.go(2.5, 20.0)
    assert robot.told == pytest.approx(2.5) and not robot.bridge.trouble
    learner.go(1.0, 20.0)  # a part of it was put down
    assert robot.told == pytest.approx(1.0) and not robot.bridge.trouble


def test_compensated_wrongly_and_refused_halfway_it_counts_once() -> None:
    robot = Robot(compensated=True)
    learner = Learner(robot, False)
    for _ in range(200):
        if robot.told > 0.2:
            break
        learner.go(1.0, TICK)
    assert 0.2 < robot.told < 0.8
    robot.says = False
    learner.go(1.0, 20.0)
    assert robot.told < 0.8 and max(robot.masses) <= 1.2
    robot.says = True
    learner.go(1.0, 30.0)
    assert robot.told == pytest.approx(1.0) and max(robot.masses) <= 1.2


def test_compensated_wrongly_a_part_of_the_tool_is_taken_off_once() -> None:
    robot = Robot(compensated=True, tool_mass=1.0)
    Learner(robot, False).go(-0.3, 60.0)
    assert robot.told == pytest.approx(0.7) and min(robot.masses) >= 0.65
    assert robot.bridge.trouble and "set compensated to false" in robot.bridge.sentence()


def test_compensated_a_learner_that_starts_again_with_the_payload_is_not_counted_twice() -> None:
    robot = Robot(compensated=True)
    learner = Learner(robot, True)
    learner.go(1.0, 20.0)
    learner.said = 1.0  # of a file from before the release
    robot.estimate(1.0)
    learner.go(1.0, 0.5)
    learner.delay = 4.0
    learner.go(1.0, 30.0)
    assert robot.told == pytest.approx(1.0) and max(robot.masses) <= 1.0 + 1e-6
    assert not robot.bridge.trouble


@pytest.mark.parametrize("takes", [False, None])
def test_compensated_before_the_learner_is_released_nothing_is_added(takes: bool | None) -> None:
    robot = Robot(compensated=True)
    robot.takes = takes
    robot.estimates(2.0)
    while not robot.releases:
        robot.go(TICK)
    robot.estimates(3.0)  # what it had estimated, refined
    robot.go(30.0)
    assert robot.told == pytest.approx(2.0) and max(robot.masses) <= 2.0 + 1e-6
    assert robot.bridge.trouble and "~/release" in robot.bridge.sentence()
    robot.takes = True
    robot.go(10.0)
    assert robot.told == pytest.approx(2.0) and not robot.bridge.trouble
    assert "release failed" not in robot.bridge.sentence()
    robot.estimates(-2.0)
    robot.go(10.0)
    assert robot.told == 0.0


def test_wrongly_not_compensated_it_says_so_and_takes_its_time() -> None:
    robot = Robot(step_share=1.0)
    starts = []
    for _ in range(5):
        robot.go(2.0)
        before, begin = len(robot.calls), robot.now
        while len(robot.calls) == before:
            robot.estimates(2.0, times=1)
        starts.append(robot.now - begin)
        robot.go(0.5)
        robot.estimate(0.0)  # the driver was told, and compensates
        robot.go(3.0)
        assert robot.told == 0.0
    assert robot.bridge.trouble and "set compensated to true" in robot.bridge.sentence()
    np.testing.assert_allclose(starts, [1.5, 1.5, 1.5, 8.5, 16.5], atol=0.51)
    robot.go(2.0)
    robot.estimates(2.0, times=90)
    robot.go(10.0)
    assert robot.told == pytest.approx(2.0)
    robot.estimate(0.0)  # held for long: the hand itself has let it go
    robot.go(3.0)
    assert robot.told == 0.0 and not robot.bridge.trouble


def test_live_parameters_and_estimates_that_are_no_numbers() -> None:
    robot = Robot(tool_mass=-1.0)
    robot.estimates(2.0)
    assert not robot.calls and robot.bridge.trouble
    assert "the parameter tool_mass must say" in robot.bridge.sentence()
    robot = Robot(step_share=1.0)
    robot.estimates(2.0, std=0.2)
    assert not robot.calls
    robot.bridge.configure(replace(robot.bridge.config, mass_std=0.3))
    robot.go(1.0)
    assert robot.masses == [2.0]
    with pytest.raises(RobotModelError, match="not finite"):
        robot.bridge.estimated(robot.now, "hand", np.full(10, np.nan), 0.1)
    with pytest.raises(RobotModelError, match="not fixed"):
        robot.bridge.estimated(robot.now, "link2", np.zeros(10), 0.1)
    values = robot.bridge.values()
    assert values["driver: mass [kg]"] == "2" and values["calls accepted"] == "1"
