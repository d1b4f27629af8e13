"""Loads given to a robot's driver: which, and when.

The learner's estimate is of what is held beyond what the model has learned. A driver is given all
that hangs on its flange, the tool and the payload, in steps on the line between two loads, whose
points are all bodies. Where the reported efforts no longer contain what the driver was given
(`compensated`), an estimate is what is left of the payload:

    payload = estimate + the driver's load - the tool's load.

Once the driver has all of it, the learner is asked to count nothing as held. Where `compensated` is
set wrongly it weighs the payload again after that: an estimate that would add to a payload that the
driver has is doubted and not given, however late it comes, until nothing is held.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, deque
from functools import partial
from typing import NamedTuple

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError, RobotModelError
from semiparam_dynamics.base.parameters import group, parameter
from semiparam_dynamics.changes.load import Load, LoadFrame, load_of, tool_parameters
from semiparam_dynamics.robot.inertia import compact_body, is_body

AGREEING_ESTIMATES = 3  # in a row, before the payload counts as settled
QUIET_S = 1.5  # without a newer estimate, after which the last one counts as settled
GROWTH_SHARE = 0.2  # of a payload, by which a later estimate may correct it
LEVER_M = 0.1  # at which a shift of the smallest mass counts as much as that mass itself
RELEASE_S = 0.3  # delay of the learner's filters after a change of the driver's load
FOLLOW_S = 3.0  # until an estimate is of efforts with the driver's changed load alone
STEP_PERIOD_S = 0.2  # between two steps to a load
REVERSAL_S = 2.0  # after a load was given, within which the payload's end may be due to that
REVERSALS = 3  # such in a row: the efforts seem to be compensated
MAX_HOLD_S = 60.0  # for which a payload must then be held before it is given again
RESEND_S = 20.0  # until a load whose call was never answered is sent again
NO_TOOL = (
    "no load is given: the parameter tool_mass must say what hangs on the flange, 0 if nothing"
)
DOUBTED = (
    "a payload is estimated beyond the one that the driver has, and not given: if it is the same, "
    "set compensated to false, else put both down"
)
REVERSED = (
    "the payload is gone each time the driver is given it: if the efforts no longer contain it, "
    "set compensated to true"
)
RELEASE_FAILED = "the learner's service release failed ({}): it may count the payload again"
OUTCOMES = ACCEPTED, REFUSED, UNANSWERED = "accepted", "refused", "not answered"

_mass = partial(parameter, unit="kg", low=0.0, high=1e3, live=True)


@dataclasses.dataclass(frozen=True)
class PayloadBridgeConfig:
    """Conditions and bounds under which a payload is given to the driver."""

    compensated: bool = parameter(
        False,
        "true if the efforts that the robot reports no longer contain the load that its driver was "
        "given; false for motor currents and measured joint torques",
    )
    tool_mass: float = parameter(
        -1.0,
        "mass that the driver is to have with nothing held, such as a gripper's, or 0; -1: not "
        "given, and no load is given",
        unit="kg",
        low=-1.0,
        high=1e3,
    )
    tool_center: tuple[float, ...] = parameter(
        (),
        "the tool's centre of mass in the driver's frame; empty: the origin",
        unit="m",
        low=-10.0,
        high=10.0,
    )
    tool_inertia: tuple[float, ...] = parameter(
        (),
        "the tool's Ixx, Ixy, Ixz, Iyy, Iyz, Izz about that centre; empty: those of a compact body",
        unit="kg m^2",
        low=-1e3,
        high=1e3,
    )
    mass_std: float = _mass(
        0.1,
        "largest standard deviation of the mass with which an estimate is passed on to the "
        "driver, and largest difference between three estimates that agree",
    )
    min_mass: float = _mass(
        0.1,
        "lighter payloads count as none, lighter loads with the tool as no load, and smaller "
        "changes aren't passed on",
    )
    max_mass: float = _mass(5.0, "largest mass that is passed on, the tool's included")
    max_distance: float = parameter(
        0.3,
        "largest distance from the frame's origin of a centre that is passed on",
        unit="m",
        low=0.0,
        high=10.0,
        live=True,
    )
    period: float = parameter(
        2.0,
        "shortest time between two loads, and from a refusal to the next try",
        unit="s",
        low=0.0,
        high=3600.0,
        live=True,
    )
    step_share: float = parameter(
        0.05,
        "largest share of any joint's effort limit by which a step may change the efforts against "
        "the load's weight, in any pose; joints without a limit don't count",
        low=1e-3,
        high=1.0,
        live=True,
    )
    timeout: float = parameter(
        3.0, "time within which the driver must answer", unit="s", low=0.01, high=600.0, live=True
    )


@dataclasses.dataclass(frozen=True)
class PayloadBridgeNodeConfig:
    """Parameters of the `payload_bridge` node."""

    driver: str = parameter(
        "ur",
        "driver whose service is called: ur_msgs/srv/SetPayload, or franka_msgs/srv/SetLoad",
        choices=("ur", "franka"),
    )
    service: str = parameter(
        "",
        "the service's name; empty: the driver's own, io_and_status_controller/set_payload or "
        "service_server/set_load",
    )
    frame: str = parameter(
        "", "link in whose frame the driver takes loads, its flange; empty: tool0, or fr3_link8"
    )
    urdf: str = parameter(
        "", "file of the robot's URDF; empty: it comes on the topic robot_description"
    )
    joints: tuple[str, ...] = parameter(
        (), "joints of the learner, in order; empty: all actuated joints of the URDF"
    )
    bridge: PayloadBridgeConfig = group(PayloadBridgeConfig, inline=True)


class Call(NamedTuple):
    """A load for the driver."""

    parameters: Array  # (10,)
    sent: float  # s

    @property
    def load(self) -> Load:
        """The load as the driver takes it."""
        return load_of(self.parameters)


class Estimate(NamedTuple):
    """An estimate's parameters (10,) in the driver's frame; a negative mass is missing."""

    parameters: Array
    mass_std: float  # kg
    received: float  # s

    @property
    def mass(self) -> float:
        """In kg."""
        return float(self.parameters[0])


@dataclasses.dataclass(slots=True, eq=False)
class DriverState:
    """The driver's load (10,): accepted last, or the tool's where it is not known; times in s."""

    load: Array
    known: bool
    changed: float = -np.inf  # when it accepted its load
    call: Call | None = None  # that was not answered yet
    late: bool = False  # whether that call was not answered in time
    failure: str = ""  # of the last call
    retry: float = -np.inf  # time of the next call after it
    ready: bool = False  # whether the service was there
    gone: bool = False  # whether the service went away since the driver accepted a load


class PayloadBridge:
    """The loads of one driver. Times are seconds of one clock that never goes back.

    Pass each estimate to :meth:`estimated`, ask :meth:`advance` often for the call to make and
    :meth:`release_due` whether the learner is to be released, and pass the answers to
    :meth:`answered` and :meth:`release_answered`. The load accepted last stays the driver's where a
    call is refused or not answered. A driver whose service went away may have lost its load, which
    is given again from the tool's on. Raises ConfigurationError on the configured tool.

    Attributes
    ----------
    driver: the driver's state. estimate: the last one. release_failure: why the learner was not
        released. reason: why no load is given now, empty where the driver has it. trouble: whether
        somebody should look at it. counts: of calls, by outcome.
    """

    def __init__(self, frame: LoadFrame, config: PayloadBridgeConfig) -> None:
        if config.tool_mass > config.max_mass:
            raise ConfigurationError("'tool_mass' is more than 'max_mass'")
        self.config, self._frame = config, frame
        tool = config.tool_center, config.tool_inertia
        self._tool = tool_parameters(max(config.tool_mass, 0.0), *tool)
        # A model was learned of what such a driver leaves of the efforts with the tool's load.
        self.driver = DriverState(self._tool, known=config.compensated)
        self.estimate: Estimate | None = None
        self.reason, self.trouble = "no estimate has come yet", False
        self.counts: Counter[str] = Counter()
        self.release_failure = ""
        self._release_at = np.inf  # s, when the learner is asked next to count nothing as held
        self._release_asked = False
        self._masses: deque[float] = deque(maxlen=AGREEING_ESTIMATES)
        self._judged = True  # whether the last estimate was
        self._refusal = ""  # why it is not given
        self._wanted: Array | None = None
        self._aim, self._aimed = self._tool, -np.inf  # of the steps, and s since when
        self._reversals = 0  # in a row
        self._held = -np.inf  # s, since when something is held by the estimates
        self._doubted = False  # whether the driver's payload seems to be estimated again

    def configure(self, config: PayloadBridgeConfig) -> None:
        """Continue with other values of the live parameters."""
        self.config = config

    def estimated(self, now: float, link: str, parameters: Array, mass_std: float) -> None:
        """Take an estimate: parameters (10,) in the frame of a link, zeros for the bare hand.

        Raises RobotModelError where they are not finite, or the link isn't fixed to the flange.
        """
        if not (np.isfinite(parameters).all() and np.isfinite(mass_std)):
            raise RobotModelError("the payload's estimate has numbers that are not finite")
        moved = self._frame.moved(link, parameters)
        if self.estimate is None or abs(self.estimate.mass) < self.config.min_mass:
            self._held = now
        self.estimate = Estimate(moved, float(mass_std), now)
        self._masses.append(float(moved[0]))
        self._judged = False

    def answered(self, now: float, call: Call, accepted: bool, error: str = "") -> None:
        """Take the driver's answer to a call, which counts until another one is made."""
        driver = self.driver
        if driver.call is not call:
            return
        driver.call = None
        if not accepted:
            self._fail(now, REFUSED, f"the driver refused{f' ({error})' if error else ''}")
            return
        self.counts[ACCEPTED] += 1
        self.driver = DriverState(call.parameters, known=True, changed=now, ready=driver.ready)
        if self.config.compensated:
            self._release_at, self._release_asked = now + RELEASE_S, False
            self.release_failure = ""

    def release_due(self, now: float) -> bool:
        """Return whether to ask the learner now to count nothing as held.

        It is due once after each change to a load that efforts no longer contain, and again where
        the learner did not do so within the timeout. No estimate is taken before it did.
        """
        if now < self._release_at or not self._has:
            return False
        if self._release_asked and not self.release_failure:
            unanswered = f"it did not answer within {self.config.timeout:g} s"
            self.release_failure = RELEASE_FAILED.format(unanswered)
        self._release_at, self._release_asked = now + self.config.timeout, True
        return True

    def release_answered(self, accepted: bool, error: str = "") -> None:
        """Take the learner's answer; what it had estimated before no longer counts."""
        if not self._release_asked:
            return  # of before another change
        self.release_failure = "" if accepted else RELEASE_FAILED.format(error)
        if accepted:
            self._release_at, self._release_asked, self.estimate = np.inf, False, None
            self._masses.clear()

    def advance(self, now: float, ready: bool = True) -> Call | None:
        """Return the call to make now, or None. ready: whether the driver's service is there."""
        config, driver = self.config, self.driver
        if driver.ready and not ready:
            self._lose()
        driver.ready = ready
        call = driver.call
        if call is not None and now <= call.sent + config.timeout:
            return None
        if call is not None and not driver.late:
            driver.late = True
            self._fail(now, UNANSWERED, f"the driver did not answer within {config.timeout:g} s")
        self.reason, self.trouble = "", False
        if self._is_held_up(now) or self._wanted is None or self._has:
            return None
        driver.call, driver.late = Call(self._step(), now), False
        return driver.call

    def _is_held_up(self, now: float) -> bool:
        """Set the aim; return whether no load can be given now, and note why."""
        config, driver = self.config, self.driver
        if config.tool_mass < 0.0:
            # Zero as the default would take a gripper's weight off a driver that knows it.
            return self._note(NO_TOOL, trouble=True)
        self._judge(now)
        if driver.gone and not driver.ready:
            return self._note("the driver's service is gone: its load is not known", trouble=True)
        if self._wanted is not None and self._differs(self._wanted):
            if now < self._aimed + config.period:
                return self._note(f"loads are given {config.period:g} s apart at least")
            self._aim, self._aimed = self._wanted, now
        if self._wanted is None or self._has:
            return False
        if driver.failure and now < driver.retry:
            return self._note(driver.failure, trouble=True)
        if now < driver.changed + STEP_PERIOD_S:
            return self._note("the next step follows")
        # Limits may have been lowered since it was judged.
        if self._note(self._implausible(self._aim), trouble=True):
            return True
        if not driver.ready:
            return self._note("the driver's service is not there", trouble=True)
        call = driver.call
        same = call is not None and np.array_equal(call.parameters, self._step())
        if call is not None and same and now < call.sent + RESEND_S:
            # The answer may be late, and a driver that takes calls in turn falls behind by more.
            return self._note(driver.failure, trouble=True)
        return False

    def _note(self, why: str, *, trouble: bool = False) -> bool:
        """Note why no load is given, the first reason or the last trouble; whether there is one."""
        if why:
            self.reason = why if trouble else self.reason or why
            self.trouble = self.trouble or trouble
        return bool(why)

    def sentence(self) -> str:
        """Return the driver's load, the estimate, and why that is not given, in words."""
        driver, estimate = self.driver, self.estimate
        has = "the driver was given no load" + (" again" if driver.gone else "")
        if driver.known:
            has = f"the driver has {driver.load[0]:.2f} kg"
        if driver.call is not None and not driver.late:
            has += f", {driver.call.parameters[0]:.2f} kg is being given"
        held = "nothing is estimated yet" if estimate is None else "nothing is held by the estimate"
        if estimate is not None and estimate.mass:
            held = f"{estimate.mass:.2f} kg is estimated"
        return "; ".join(filter(None, (has, held, self.reason, self.release_failure)))

    def values(self) -> dict[str, str]:
        """Return the figures behind the sentence, by name."""
        loads = {"driver": self.driver.load, "aim": self._aim}
        values = {"frame": self._frame.name}
        if (estimate := self.estimate) is not None:
            loads["estimate"] = estimate.parameters
            values["estimate: mass' standard deviation [kg]"] = f"{estimate.mass_std:.4g}"
        for name, parameters in loads.items():
            load = load_of(parameters)
            values[f"{name}: mass [kg]"] = f"{load.mass:.4g}"
            for axis, value in zip("xyz", load.center.tolist(), strict=True):
                values[f"{name}: centre {axis} [m]"] = f"{value:.4g}"
        return values | {f"calls {name}": str(self.counts[name]) for name in OUTCOMES}

    def _fail(self, now: float, outcome: str, why: str) -> None:
        self.counts[outcome] += 1
        self.driver.retry = now + self.config.period
        self.driver.failure = f"{why}: the load that it accepted before is taken to be its load"

    def _lose(self) -> None:
        """Count the driver's load as lost, which it may be where the driver starts anew."""
        driver = self.driver
        if driver.call is not None and not driver.late:
            self.counts[UNANSWERED] += 1
        driver.call, driver.failure = None, ""
        if driver.known:
            driver.load, driver.known, driver.gone = self._tool, False, True
            self._wanted = self._aim if self._wanted is None else self._wanted

    @property
    def _has(self) -> bool:
        """Return whether the driver has all of the aim."""
        return self.driver.known and np.array_equal(self.driver.load, self._aim)

    def _step(self) -> Array:
        """The load of the next step to the aim; bodies' parameters form a convex cone."""
        change = self._aim - self.driver.load
        share = self._frame.share(change)
        if share <= self.config.step_share:
            return self._aim
        step: Array = self.driver.load + change * (self.config.step_share / share)
        return step

    def _differs(self, wanted: Array) -> bool:
        """Return whether a load is another than the aim, by more than estimates differ."""
        bare = [np.array_equal(load, self._tool) for load in (wanted, self._aim)]
        if any(bare):
            return not all(bare)
        change = wanted - self._aim
        shift = float(np.linalg.norm(change[1:4])) / LEVER_M
        return bool(max(abs(change[0]), shift) > self.config.min_mass)

    def _judge(self, now: float) -> None:
        """Take the last estimate as what is wanted, once it has settled and can be true."""
        if self.estimate is None:
            self.reason = "no estimate has come yet"
        elif not self._note(self._follows(now)):
            if self._doubted:
                self._note(DOUBTED, trouble=True)
            elif self._reversals >= REVERSALS:
                self._note(REVERSED, trouble=True)
            if self._judged:
                self._note(self._refusal, trouble=True)
            elif not self._note(self._unsettled(now, self.estimate)):
                self._judged = True
                self._want(now, self.estimate)

    def _follows(self, now: float) -> str:
        """Return why an estimate may be of efforts with an earlier load, or nothing."""
        driver = self.driver
        if not self.config.compensated:
            return ""
        # A way that was refused goes no further.
        begun = driver.gone or (driver.changed >= self._aimed and not driver.failure)
        if (begun and not self._has) or now < driver.changed + FOLLOW_S:
            return "the estimate has yet to follow the driver's load"
        if not self._has or self._release_at == np.inf:
            return ""
        self.trouble = self.trouble or now > driver.changed + RELEASE_S + self.config.timeout
        return "the learner has yet to take that the driver has the payload: see ~/release"

    def _want(self, now: float, estimate: Estimate) -> None:
        """Set the wanted load by an estimate, or the reason why it can't be true."""
        config, driver, self._refusal = self.config, self.driver, ""
        payload: Array = estimate.parameters
        if config.compensated:
            before = driver.load - self._tool
            payload = before + estimate.parameters
            if estimate.mass * before[0] < 0.0 or not before.any():
                self._doubted = False
            else:
                given = float(abs(self._aim[0] - self._tool[0]))
                most = (1.0 + GROWTH_SHARE) * given + config.min_mass
                self._doubted = self._doubted or bool(abs(payload[0]) > most)
                if self._doubted and estimate.mass:
                    return
                if self._doubted:
                    self._doubted, payload = False, np.zeros(10)
        if abs(payload[0]) < config.min_mass:
            if self._wanted is not None and not np.array_equal(self._wanted, self._tool):
                by_the_call = not config.compensated and now < driver.changed + REVERSAL_S
                self._reversals = self._reversals + 1 if by_the_call else 0
            self._wanted = self._tool
            return
        total = self._tool + payload
        if abs(total[0]) < config.min_mass:
            self._wanted = np.zeros(10)  # the tool was taken off
            return
        self._refusal = self._implausible(total)
        if not self._note(self._refusal, trouble=True):
            compact = compact_body(total[0], total[1:4] / total[0])
            self._wanted = total if is_body(total) else compact

    def _unsettled(self, now: float, estimate: Estimate) -> str:
        """Return why an estimate can't be given yet, or nothing."""
        config, masses = self.config, self._masses
        if not estimate.mass:
            return ""
        # Given and taken back in turn, an arm would nod: twice as long apart each time.
        hold = min(2.0**self._reversals, MAX_HOLD_S)
        if self._reversals >= REVERSALS and now < self._held + hold:
            return f"the payload is given once it was held for {hold:g} s"
        if estimate.mass_std > config.mass_std:
            return (
                f"the mass' standard deviation is {estimate.mass_std:.2g} kg, more than "
                f"{config.mass_std:g}"
            )
        agree = len(masses) == masses.maxlen and max(masses) - min(masses) <= config.mass_std
        settled = agree or now >= estimate.received + QUIET_S
        return "" if settled else "the estimate is not settled"

    def _implausible(self, total: Array) -> str:
        """Return why a load can't be true, or nothing."""
        config, mass = self.config, float(total[0])
        if np.array_equal(total, self._tool) or not total.any():
            return ""
        if not 0.0 < mass <= config.max_mass:
            return f"{mass:.2f} kg with the tool is not between 0 and {config.max_mass:g} kg"
        distance = float(np.linalg.norm(total[1:4])) / mass
        if distance <= config.max_distance:
            return ""
        where = f"its centre is {distance:.2f} m from {self._frame.name}"
        return f"{where}, more than {config.max_distance:g} m"
