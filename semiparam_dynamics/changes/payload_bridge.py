"""What a robot's driver is told about its payload, and when.

The estimate is of what is held beyond what the model has learned. A driver is told all that hangs
on its flange: the tool's load, and the payload. Where the efforts that the robot reports contain no
longer what the driver was told (`compensated`), an estimate is what is left of the payload:

    payload = estimate + what the driver has - the tool's load,

with what the driver had when that estimate was made. Nothing is left once the driver has it all,
so the estimator is told then that nothing is held: what it had estimated before would be wrong, and
it would take the driver's change for one of the robot. Loads are told in steps, on the line between
two loads, whose points all are bodies; each changes the joints' efforts by a bounded share.

Where `compensated` is wrong the estimator, told that nothing is held, weighs the payload again. So
an estimate that is like the one that was told last, and would lead further from the tool's load, is
doubted and not added. No time ends that: on a robot that stands still nothing is weighed. A second
thing of the same mass looks alike. While there is doubt, estimates are taken as with `compensated`
false, as all that is held. What is told by them is right where `compensated` is wrong; else the
estimator then finds what is missing, which is not like it and is added.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, deque

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError, RobotModelError
from semiparam_dynamics.base.parameters import parameter
from semiparam_dynamics.changes.load import Load, LoadFrame, load_of, tool_parameters
from semiparam_dynamics.robot.inertia import compact_body, is_body

ALIKE_SHARE = 0.2  # of a mass, by which two estimates of one payload may differ
ALIKE_STDS = 3.0  # standard deviations, by which they may
LEVER_M = 0.1  # at which a shift of the smallest mass counts as much as that mass itself
RELEASE_S = 0.3  # until the estimator's filters have seen what the driver does
REVERSAL_S = 2.0  # after a call, within which a payload that is gone may be gone by the call
REVERSALS = 3  # such in a row: the efforts seem to be compensated
LATE_CALLS = 10  # of the same load, that may still be answered
LONGEST_WAIT_S = 60.0  # until a load that was not answered is told again
LONGEST_HOLD_S = 60.0  # that a payload must then be held before it is told again
GONE = "the driver's service is gone: what it has is not known"
NO_TOOL = "nothing is told: the parameter tool_mass must say what hangs on the flange, 0 if nothing"
OUTCOMES = ACCEPTED, REFUSED, UNANSWERED = "accepted", "refused", "not answered"


@dataclasses.dataclass(frozen=True)
class PayloadBridgeConfig:
    """When a payload is told to the driver, and within which bounds."""

    compensated: bool = parameter(
        False,
        "true if the efforts that the robot reports no longer contain the load that its driver was "
        "given; false for motor currents and measured joint torques",
    )
    tool_mass: float = parameter(
        -1.0,
        "mass that the driver is to have with nothing held, such as a gripper's, or 0; -1: not "
        "given, and the driver is told nothing",
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
    mass_std: float = parameter(
        0.1,
        "largest standard deviation of the mass with which an estimate is passed on to the "
        "driver, and largest difference between estimates that agree",
        unit="kg",
        low=0.0,
        high=1e3,
        live=True,
    )
    agreeing: int = parameter(
        3, "messages in a row that must agree, while a payload is estimated", low=1, high=100
    )
    quiet: float = parameter(
        1.5,
        "time without a newer estimate after which the last one is final, whether others agree "
        "or not",
        unit="s",
        low=0.0,
        high=600.0,
        live=True,
    )
    min_mass: float = parameter(
        0.1,
        "lighter payloads count as none, lighter loads with the tool as no load, and smaller "
        "changes aren't passed on",
        unit="kg",
        low=0.0,
        high=1e3,
        live=True,
    )
    max_mass: float = parameter(
        5.0,
        "largest mass that is passed on, the tool's included",
        unit="kg",
        low=0.0,
        high=1e4,
        live=True,
    )
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
        "shortest time between two loads, and after a refusal, or a call that was not answered, "
        "until the next try; twice as long after each further call that was not answered",
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
    step_period: float = parameter(
        0.2,
        "shortest time between two steps on the way to a load",
        unit="s",
        low=0.0,
        high=60.0,
        live=True,
    )
    timeout: float = parameter(
        3.0, "time within which the driver must answer", unit="s", low=0.01, high=600.0, live=True
    )
    follow: float = parameter(
        3.0,
        "with compensated: time that the estimate is given to follow what the driver was told",
        unit="s",
        low=0.0,
        high=600.0,
        live=True,
    )


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A load for the driver; its answer is given back with the number."""

    number: int
    parameters: Array  # (10,)
    sent: float  # s

    @property
    def load(self) -> Load:
        """The load as the driver takes it."""
        return load_of(self.parameters)


@dataclasses.dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate's parameters (10,) in the driver's frame."""

    parameters: Array
    mass_std: float  # kg
    received: float  # s

    @property
    def mass(self) -> float:
        """In kg; negative where something is missing."""
        return float(self.parameters[0])

    @property
    def bare(self) -> bool:
        """Whether nothing is held, which the estimator says with zeros."""
        return self.parameters[0] == 0.0 and self.mass_std == 0.0


class PayloadBridge:
    """The state of one driver's load. Times are seconds of one clock that never goes back.

    Pass each estimate to :meth:`estimated`, ask :meth:`advance` often for the call to make, and
    pass its outcome to :meth:`answered`. A call that is not answered in time counts as refused:
    the load accepted last stays what the driver has. A driver whose service went away may have
    forgotten it: from the tool's load on it is told again.

    Parameters
    ----------
    frame: of the loads. config: the configuration. Raises ConfigurationError on its tool.

    Attributes
    ----------
    driver: (10,) the load accepted last, or the tool's where nothing was told yet, or not since
        the driver's service was gone. known: whether the driver has it. estimate: the last one.
    reason: why nothing is told now, empty where all is. trouble: whether somebody should look at
        it. counts: of calls, by outcome.
    """

    def __init__(self, frame: LoadFrame, config: PayloadBridgeConfig) -> None:
        self.config, self._frame = config, frame
        tool = config.tool_center, config.tool_inertia
        self._tool = tool_parameters(max(config.tool_mass, 0.0), *tool)
        self._nothing = np.zeros_like(self._tool)  # where the tool was taken off, too
        if config.tool_mass > config.max_mass:
            raise ConfigurationError("'tool_mass' is more than 'max_mass'")
        self.driver: Array = self._tool
        # A model was learned of what such a driver leaves of the efforts with the tool's load.
        self.known = config.compensated
        self.estimate: Estimate | None = None
        self.reason, self.trouble = "no estimate has come yet", False
        self.counts: Counter[str] = Counter()
        self._masses: deque[float] = deque(maxlen=config.agreeing)
        self._judged = True  # whether the last estimate was
        self._wanted: Array | None = None
        self._aim: Array = self._tool  # the load that the steps lead to
        self._aimed = -np.inf  # s, since when
        self._call: Call | None = None
        # Those of the same load that were not answered in time.
        self._late: deque[Call] = deque(maxlen=LATE_CALLS)
        self._numbers = 0
        self._ready = False  # whether the driver's service was there when last looked at
        self._gone = False  # whether it went away since the driver was told
        self._changed = -np.inf  # s, when the driver accepted its load
        self._next = -np.inf  # s, of the next step
        self._failure, self._again = "", -np.inf
        self._refusal = ""  # why the last estimate that was judged isn't told
        self._reversals = 0  # in a row
        self._held = -np.inf  # s, since when something is held by the estimates
        self._released = True  # whether the estimator knows that the driver has it all
        self._releasing = False  # whether it has yet to answer that
        self._release_again = -np.inf  # s, when to tell it again where it refused
        # s, when it was told, and when it answered; or the driver's last answer if that is later.
        self._release_sent = self._release_heard = -np.inf
        self._counted = self._counted_next = 0.0  # kg, of the estimates behind the aim and _wanted
        self._doubted = False  # whether what the driver has seems to be estimated again

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
        last = self.estimate
        if last is None or abs(last.parameters[0]) < self.config.min_mass:
            self._held = now
        self.estimate = Estimate(moved, float(mass_std), now)
        self._masses.append(float(moved[0]))
        self._judged = False

    def answered(self, now: float, number: int, accepted: bool, error: str = "") -> None:
        """Take the driver's answer to a call.

        One that comes late counts unless another load was told since: a driver that is always
        late answers an earlier call while the same load is being told again.
        """
        call = next((one for one in self._calls() if one.number == number), None)
        if call is None:
            return
        if call in self._late and not accepted:
            newest = self._call is None and call is self._late[-1]
            self._late.remove(call)
            if not newest:
                return
        self._late.clear()
        self._call = None
        if not accepted:
            self._fail(now, REFUSED, f"the driver refused{f' ({error})' if error else ''}")
            return
        self.counts[ACCEPTED] += 1
        self.driver, self.known, self._gone = call.parameters, True, False
        self._changed, self._next = now, now + self.config.step_period
        self._failure, self._again = "", -np.inf
        self._released = self._releasing = False
        self._release_sent = self._release_heard = now
        # Estimates of what it has now tell anew.
        self._doubted = self._doubted and not np.array_equal(self.driver, self._aim)

    def release_due(self, now: float) -> bool:
        """Whether to tell the estimator now that nothing is held; true once after a change.

        That is where efforts no longer contain what the driver has been told in whole. True again
        a period after :meth:`release_answered` was told that it failed. No estimate is taken until
        it was told of a success.
        """
        waits = self.config.compensated and not self._released and not self._releasing
        due = waits and self._has and now >= max(self._changed + RELEASE_S, self._release_again)
        self._releasing = self._releasing or due
        return due

    def release_answered(self, now: float, sent: float, accepted: bool) -> None:
        """Take the estimator's answer to what it was told at `sent`, or that none came in time."""
        if self._changed > sent:
            return  # it is due anyway
        self._releasing, self._released = False, accepted
        if accepted:
            self._release_sent, self._release_heard = sent, now
        else:
            self._release_again = now + self.config.period

    def advance(self, now: float, ready: bool = True) -> Call | None:
        """The call to make now, or None. ready: whether the driver's service is there."""
        config = self.config
        if self._ready and not ready:
            self._lose()
        self._ready = ready
        if self._call is not None:
            if now - self._call.sent <= config.timeout:
                return None
            # Repeated ever later: a driver that takes its calls in turn would fall ever farther
            # behind, since each repetition takes it as long as the first call.
            wait = min(config.period * 2.0 ** len(self._late), LONGEST_WAIT_S)
            self._late.append(self._call)
            self._call = None
            self._fail(now, UNANSWERED, f"the driver did not answer within {config.timeout:g} s")
            self._again = now + max(wait, config.period)
        if config.tool_mass < 0.0:
            # Zero as the default would take a gripper's weight off a driver that knows it.
            self.reason, self.trouble = NO_TOOL, True
            return None
        self.reason, self.trouble = "", False
        self._judge(now)
        if self._gone and not ready:
            self.reason, self.trouble = GONE, True
            return None
        wanted = self._wanted
        if wanted is None:
            return None
        if self._differs(wanted):
            if now < self._aimed + config.period:
                self._wait(f"loads are told {config.period:g} s apart at least")
                return None
            self._aim, self._aimed, self._counted = wanted, now, self._counted_next
            self._again = min(self._again, now + config.period)  # no repetition
        if self.known and np.array_equal(self.driver, self._aim):
            return None
        if self._failure and now < self._again:
            self.reason, self.trouble = self._failure, True
            return None
        if now < self._next:
            self._wait("the next step follows")
            return None
        # Limits may have been lowered since it was judged.
        checked = self._aim is not self._tool and self._aim is not self._nothing
        if checked and (why := self._implausible(self._aim)):
            self.reason, self.trouble = why, True
            return None
        if not ready:
            self.reason, self.trouble = "the driver's service is not there", True
            return None
        self._numbers += 1
        self._call = Call(self._numbers, self._step(), now)
        if self._late and not np.array_equal(self._late[-1].parameters, self._call.parameters):
            self._late.clear()
        return self._call

    @property
    def awaited(self) -> frozenset[int]:
        """The numbers of the calls whose answers count."""
        return frozenset(call.number for call in self._calls())

    def sentence(self) -> str:
        """What the driver has, what is estimated, and why that is not told."""
        untold = "the driver was not told"
        untold += " again" if self._gone else ""
        has = f"the driver has {self.driver[0]:.2f} kg" if self.known else untold
        if self._call is not None:
            has += f", {self._call.parameters[0]:.2f} kg is being told"
        held = "nothing is estimated yet"
        if (estimate := self.estimate) is not None:
            held = f"{estimate.parameters[0]:.2f} kg is estimated"
            held = "nothing is held by the estimate" if estimate.bare else held
        return "; ".join(filter(None, (has, held, self.reason)))

    def values(self) -> dict[str, str]:
        """The figures behind the sentence, by name."""
        loads = {"driver": self.driver, "aim": self._aim}
        values = {"frame": self._frame.name}
        if (estimate := self.estimate) is not None:
            loads["estimate"] = estimate.parameters
            values["estimate: mass' standard deviation [kg]"] = f"{estimate.mass_std:.4g}"
        for name, parameters in loads.items():
            mass = float(parameters[0])
            values[f"{name}: mass [kg]"] = f"{mass:.4g}"
            center = parameters[1:4] / mass if mass else np.zeros(3)
            for axis, value in zip("xyz", center.tolist(), strict=True):
                values[f"{name}: centre {axis} [m]"] = f"{value:.4g}"
        return values | {f"calls {name}": str(self.counts[name]) for name in OUTCOMES}

    def _fail(self, now: float, outcome: str, why: str) -> None:
        self.counts[outcome] += 1
        self._again = now + self.config.period
        self._failure = f"{why}: what it accepted before is taken to be what it has"

    def _lose(self) -> None:
        """Count what the driver was told as forgotten, which it may be where it starts anew."""
        if self._call is not None:
            self.counts[UNANSWERED] += 1
        self._call = None
        self._late.clear()
        self._failure, self._again = "", -np.inf
        if self.known:
            self.driver, self.known, self._gone = self._tool, False, True
            self._wanted = self._aim if self._wanted is None else self._wanted

    @property
    def _has(self) -> bool:
        """Whether the driver has all of the aim."""
        return self.known and np.array_equal(self.driver, self._aim)

    def _calls(self) -> list[Call]:
        """Those whose answers count."""
        return [*self._late, *([] if self._call is None else [self._call])]

    def _wait(self, why: str) -> None:
        self.reason = self.reason or why

    def _step(self) -> Array:
        """The load of the next step to the aim; bodies' parameters form a convex cone."""
        change = self._aim - self.driver
        share = self._frame.share(change)
        if share <= self.config.step_share:
            return self._aim
        step: Array = self.driver + change * (self.config.step_share / share)
        return step

    def _differs(self, wanted: Array) -> bool:
        """Whether a load is another than the aim, by more than estimates differ."""
        if wanted is self._tool or self._aim is self._tool:
            return wanted is not self._aim
        change = wanted - self._aim
        shift = float(np.linalg.norm(change[1:4])) / LEVER_M
        return bool(max(abs(change[0]), shift) > self.config.min_mass)

    def _judge(self, now: float) -> None:
        """Take the last estimate as what is wanted, once it has settled and can be true."""
        estimate, config = self.estimate, self.config
        if estimate is None:
            self.reason = "no estimate has come yet"
            return
        # Of a way that has begun and goes on, estimates have seen some steps and not others.
        begun = self._gone or (self._changed >= self._aimed and not self._failure)
        on_the_way = begun and not self._has
        if config.compensated and (on_the_way or now < self._changed + config.follow):
            self._wait("the estimate has yet to follow what the driver was told")
            return
        self._warn_of_efforts(estimate)
        if self._judged:
            self._refuse_again()
            return
        if config.compensated and self._has and not self._released:
            # What the driver has would be counted once more.
            self._wait("the learner has yet to take that the driver has the payload: see ~/release")
            late = now > self._changed + RELEASE_S + config.timeout
            self.trouble = self.trouble or late
            return
        # The bare hand that follows from the release often comes before the answer to it; any
        # other estimate that does may be an older one.
        since = self._release_sent if estimate.bare else self._release_heard
        if config.compensated and estimate.received < since:
            # Of efforts without what the driver had then, which is not what it has now.
            self._wait("the estimate has yet to follow what the driver was told")
            return
        if why := self._unsettled(now, estimate):
            self._wait(why)
            return
        self._judged = True
        payload = self._payload(estimate)
        if payload is None:
            self._want(self._aim, self._counted)
            return
        if abs(payload[0]) < config.min_mass:
            if self._wanted is not None and self._wanted is not self._tool:
                by_the_call = not config.compensated and now < self._changed + REVERSAL_S
                self._reversals = self._reversals + 1 if by_the_call else 0
            self._want(self._tool, estimate.mass)
            return
        total = self._tool + payload
        if abs(total[0]) < config.min_mass:
            self._want(self._nothing, estimate.mass)
            return
        self._refusal = self._implausible(total)
        if self._refusal:
            self._refuse_again()
            return
        body = is_body(total)
        load = total if body else compact_body(total[0], total[1:4] / total[0])
        self._want(load, estimate.mass)

    def _want(self, load: Array, counted: float) -> None:
        self._wanted, self._counted_next, self._refusal = load, counted, ""

    def _payload(self, estimate: Estimate) -> Array | None:
        """What is held by an estimate (10,); None where that is what the driver has."""
        if not self.config.compensated:
            return estimate.parameters
        before: Array = self.driver - self._tool
        # What is told is bounded from the aim on, which may be refused halfway.
        beyond = abs(estimate.mass + before[0]) - abs(self._aim[0] - self._tool[0])
        begun = self._changed >= self._aimed
        if begun and beyond > self.config.min_mass and self._alike(estimate, self._counted):
            self._doubted = True
        if self._doubted and self._alike(estimate, float(before[0])):
            return None
        # Less than with the bare hand is found only where the driver's load is not in the efforts.
        if self._doubted and estimate.mass * before[0] >= 0.0:
            return estimate.parameters
        return before + estimate.parameters

    def _alike(self, estimate: Estimate, mass: float) -> bool:
        """Whether an estimate may be of a payload of this mass (kg)."""
        most = max(ALIKE_STDS * estimate.mass_std, ALIKE_SHARE * abs(mass), self.config.mass_std)
        return estimate.mass * mass > 0.0 and abs(estimate.mass - mass) <= most

    def _refuse_again(self) -> None:
        if self._refusal:
            self.reason, self.trouble = self._refusal, True

    def _unsettled(self, now: float, estimate: Estimate) -> str:
        """Why an estimate can't be told yet, or nothing."""
        config = self.config
        if estimate.bare:
            return ""
        # Told and taken back in turn, an arm would nod: twice as long apart each time.
        hold = min(2.0**self._reversals, LONGEST_HOLD_S)
        if self._reversals >= REVERSALS and now < self._held + hold:
            return f"the payload is told once it was held for {hold:g} s"
        if estimate.mass_std > config.mass_std:
            return (
                f"the mass' standard deviation is {estimate.mass_std:.2g} kg, more than "
                f"{config.mass_std:g}"
            )
        masses = self._masses
        agree = len(masses) == masses.maxlen and max(masses) - min(masses) <= config.mass_std
        if agree or now - estimate.received >= config.quiet:
            return ""
        return "the estimate is not settled"

    def _implausible(self, total: Array) -> str:
        """Why a load can't be true, or nothing."""
        config, mass = self.config, float(total[0])
        if not 0.0 < mass <= config.max_mass:
            return f"{mass:.2f} kg with the tool is not between 0 and {config.max_mass:g} kg"
        distance = float(np.linalg.norm(total[1:4])) / mass
        if distance > config.max_distance:
            return (
                f"its centre is {distance:.2f} m from {self._frame.name}, more than "
                f"{config.max_distance:g} m"
            )
        return ""

    def _warn_of_efforts(self, estimate: Estimate) -> None:
        """Say that `compensated` seems to be wrong, where estimates behave so."""
        if self._doubted:
            self.trouble = True
            self._wait(
                "what the driver was told is estimated again, and not added: compensated seems to "
                "be wrong; set compensated to false, unless another of the same mass was taken"
            )
        told = not np.array_equal(self.driver, self._tool)
        if self.config.compensated and told and estimate.received < self._aimed:
            self.trouble = True
            self._wait(
                "the estimate did not change when the driver was told: if the efforts contain the "
                "payload, set compensated to false"
            )
        if self._reversals >= REVERSALS:
            self.trouble = True
            self._wait(
                "the payload is gone each time the driver is told: if the efforts no longer "
                "contain it, set compensated to true"
            )
