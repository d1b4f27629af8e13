"""Computed torque: feed-forward at the desired state, and feedback of the error.

tau = ff(q_d, dq_d, ddq_d) + Kp (q_d - q) + Kd (dq_d - dq)

"Computed torque control with calculated feed-forward" (An, Atkeson and Hollerbach 1988, Model-Based
Control of a Robot Manipulator, section 6.2): the model is evaluated at the desired state, so that
the measured one's noise doesn't pass through it, and ahead of time.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from semiparam_dynamics.base.arrays import Array, Mask
from semiparam_dynamics.base.parameters import one_or_each
from semiparam_dynamics.control.config import ControlConfig, TrustConfig
from semiparam_dynamics.control.plan import Point
from semiparam_dynamics.dynamics.deviations import RunningSquare
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.urdf import joint_limits, parse_urdf

NO_LIMIT = 1e300  # N m: finite, so that products with it are
MAX_STEP_S = 0.1  # a longer pause between two measurements counts as this
# Counted reasons.
NO_ANSWER = "no answer of the learner in time"
NOT_FINITE = "answer of the learner not finite"
UNSURE = "the learner is unsure of a joint"
CLIPPED = "correction clipped (bounds.correction)"
BOUNDED = "command clipped (bounds.effort_share, bounds.effort)"
NOT_MEASURED = "measured state not finite: no feedback"


class ComputedTorque:
    """The controller of one robot; see the module's equation.

    Parameters
    ----------
    model: the URDF's, of joint efforts.
    config: the configuration.

    Attributes
    ----------
    limit: (n_joints,) N m, that no command exceeds.
    correction: the learner's correction of the URDF's feed-forward.
    counts: of clipped commands, and of commands without feedback.
    commands: their number.
    followed: sum over the commands of the joints' mean share of the learner.

    Raises
    ------
    ConfigurationError: a parameter has neither one number nor one for each joint.
    RobotModelError: the URDF's effort limits are no numbers.
    """

    def __init__(self, model: RobotModel, config: ControlConfig) -> None:
        n = model.n_joints
        self.config = config
        gains = config.gains
        self._bandwidth = one_or_each("gains.bandwidth", gains.bandwidth, n, "joints")
        self._rotors = one_or_each("gains.rotor_inertia", gains.rotor_inertia, n, "joints")
        bounds = config.bounds
        self.limit = effort_bound(model, bounds.effort_share, "bounds.effort", bounds.effort)
        self.correction = LearnedCorrection(
            bounds.correction * self.limit, bounds.correction_rate * self.limit, config.trust
        )
        self._urdf_square = RunningSquare(n, config.trust.horizon)
        self._last: float | None = None
        self.counts: Counter[str] = Counter()
        self.commands = 0
        self.followed = 0.0

    def configure(self, config: ControlConfig) -> None:
        """Continue with other values of the live parameters."""
        self.config = config
        self.correction.config = config.trust
        self._urdf_square.horizon = config.trust.horizon

    @property
    def urdf_error(self) -> Array:
        """Recent root mean square of the efforts less the URDF's, (n_joints,) in N m."""
        return np.sqrt(self._urdf_square.value)

    def command(self, time: float, q: Array, dq: Array, point: Point) -> Array:
        """Efforts (n_joints,) in N m for the state measured at a `time` in s.

        q, dq: (n_joints,) measured, rad and rad/s. point: of the plan, at that time.
        """
        dt = 0.0 if self._last is None else min(max(time - self._last, 0.0), MAX_STEP_S)
        self._last = time
        urdf, answer = point.urdf, point.answer
        if self.config.feedforward == "urdf":
            correction = self.correction.fade(dt)
        else:
            learned, std = (None, None) if answer is None else (answer.values, answer.stds)
            correction = self.correction.advance(dt, urdf, learned, std, self.urdf_error)
        w, inertia = self._bandwidth, point.inertia + self._rotors
        feedback = inertia * w * (w * (point.q - q) + 2.0 * (point.dq - dq))
        if not np.isfinite(feedback).all():
            self.counts[NOT_MEASURED] += 1
            feedback = np.zeros(len(urdf))
        wanted = urdf + correction + feedback
        effort: Array = np.clip(wanted, -self.limit, self.limit)
        self.counts[BOUNDED] += bool((effort != wanted).any())
        if dt > 0.0:
            self._urdf_square.update(effort - urdf, dt)
        self.commands += 1
        self.followed += float(self.correction.share.mean())
        return effort


def effort_bound(model: RobotModel, share: float, name: str, bound: tuple[float, ...]) -> Array:
    """(n_joints,) N m: the share of the URDF's effort limits, and no more than `bound`.

    bound: of the parameter `name`, for all joints or for each; empty: none. Raises as
    `ComputedTorque`.
    """
    limits = joint_limits(parse_urdf(model.urdf_text), model.joint_names, "effort")
    limit: Array = share * np.minimum(limits, NO_LIMIT)
    if bound:
        limit = np.minimum(limit, one_or_each(name, bound, model.n_joints, "joints"))
    return limit


def unbounded(limit: Array) -> Mask:
    """(n_joints,) of which joints an :func:`effort_bound` bounds nothing."""
    endless: Mask = limit >= 1e-9 * NO_LIMIT  # a share of it
    return endless


class LearnedCorrection:
    """The correction of the URDF's feed-forward: share * (learned - urdf), joint by joint.

    The share, from 0 to 1, moves to the value of :func:`trust` within the fade time, and to 0
    without an answer, while the last difference is kept. The correction's size and rate are
    bounded, so that nothing the learner does, nor its end, makes the feed-forward jump.

    Parameters
    ----------
    largest: (n_joints,) N m, bound of the correction's size. rate: (n_joints,) N m/s.

    Attributes
    ----------
    value: (n_joints,) N m, the present correction. share: (n_joints,), from 0 to 1.
    counts: reasons why the learner was not followed.
    """

    def __init__(self, largest: Array, rate: Array, config: TrustConfig) -> None:
        self.config = config
        self._largest, self._rate = largest, rate
        self.value: Array = np.zeros(len(largest))
        self.share: Array = np.zeros(len(largest))
        self._difference: Array = np.zeros(len(largest))
        self.counts: Counter[str] = Counter()

    def advance(
        self, dt: float, urdf: Array, learned: Array | None, std: Array | None, usual: Array
    ) -> Array:
        """The correction (n_joints,) in N m, `dt` seconds after the last one.

        urdf, learned: (n_joints,) feed-forwards in N m; None where there is no answer. std: the
        learned one's standard deviation. usual: the URDF's usual error, both (n_joints,) in N m.
        """
        if learned is None or std is None:
            self.counts[NO_ANSWER] += 1
            return self.fade(dt)
        if not (np.isfinite(learned).all() and np.isfinite(std).all()):
            self.counts[NOT_FINITE] += 1
            return self.fade(dt)
        difference = learned - urdf
        self._difference = np.clip(difference, -self._largest, self._largest)
        wanted = trust(std, usual, self.config)
        self.counts[CLIPPED] += bool((self._difference != difference).any())
        self.counts[UNSURE] += bool((wanted < 1.0).any())
        return self._move(dt, wanted)

    def fade(self, dt: float) -> Array:
        """The same without an answer of the learner: the share moves to 0."""
        return self._move(dt, np.zeros(len(self.share)))

    def _move(self, dt: float, wanted: Array) -> Array:
        most = dt / self.config.fade_time if self.config.fade_time > dt else 1.0
        self.share = self.share + np.clip(wanted - self.share, -most, most)
        step = self.share * self._difference - self.value
        self.value = self.value + np.clip(step, -dt * self._rate, dt * self._rate)
        return self.value


def trust(std: Array, usual: Array, config: TrustConfig) -> Array:
    """The share of the learner, (n_joints,) from 0 to 1.

    std: its standard deviation. usual: the URDF's usual error, both (n_joints,) in N m.

    A standard deviation of 0 is that of a learner that has learned nothing of a joint yet, and is
    not followed.
    """
    ratio = np.where(std > 0.0, std / np.maximum(usual, 1e-12), np.inf)
    if config.unsure <= config.sure:
        return (ratio <= config.sure).astype(float)
    known: Array = np.clip((config.unsure - ratio) / (config.unsure - config.sure), 0.0, 1.0)
    return known
