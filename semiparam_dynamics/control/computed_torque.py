"""Feed-forward at the desired state, and feedback of the error: one command for each measurement.

tau = ff(q_d, dq_d, ddq_d) + Kp (q_d - q) + Kd (dq_d - dq)

"Computed torque control with calculated feed-forward" (An, Atkeson and Hollerbach 1988, Model-Based
Control of a Robot Manipulator, section 6.2): the model is asked at the desired state, so that the
measured one's noise doesn't pass through it, and the answer can be asked for ahead of time.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.control.config import ControlConfig
from semiparam_dynamics.control.correction import LearnedCorrection
from semiparam_dynamics.control.per_joint import per_joint
from semiparam_dynamics.control.plan import Point
from semiparam_dynamics.dynamics.effort_limits import effort_limits
from semiparam_dynamics.dynamics.robot import RobotModel
from semiparam_dynamics.dynamics.spread import RunningSquare
from semiparam_dynamics.dynamics.urdf_tree import parse_urdf

LARGEST = 1e300  # N m: the bound where there is none, finite so that products with it are
LONGEST = 0.1  # s: a longer pause between two measurements counts as this
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
    correction: what the learner adds to the URDF's feed-forward.
    counts: how many commands were clipped, and how many had no feedback.
    commands: how many were made.
    followed: sum over the commands of the mean share in which the learner was followed.

    Raises
    ------
    ConfigurationError: a parameter has neither one number nor one for each joint.
    RobotModelError: the URDF's effort limits are no numbers.
    """

    def __init__(self, model: RobotModel, config: ControlConfig) -> None:
        n = model.n_joints
        self.config = config
        gains = config.gains
        self._bandwidth = per_joint("gains.bandwidth", gains.bandwidth, n)
        self._damping = 2.0 * per_joint("gains.damping_ratio", gains.damping_ratio, n)
        self._rotors = per_joint("gains.rotor_inertia", gains.rotor_inertia, n)
        limits = effort_limits(parse_urdf(model.urdf_text), model.joint_names)
        self.limit: Array = np.minimum(config.bounds.effort_share * limits, LARGEST)
        if config.bounds.effort:
            bound = per_joint("bounds.effort", config.bounds.effort, n)
            self.limit = np.minimum(self.limit, bound)
        bounds = config.bounds
        self.correction = LearnedCorrection(
            bounds.correction * self.limit, bounds.correction_rate * self.limit, config.trust
        )
        self._lacked = RunningSquare(n, config.trust.horizon)
        self._last: float | None = None
        self.counts: Counter[str] = Counter()
        self.commands = 0
        self.followed = 0.0

    def configure(self, config: ControlConfig) -> None:
        """Go on with other values of the live parameters."""
        self.config = config
        self.correction.config = config.trust
        self._lacked.horizon = config.trust.horizon

    @property
    def urdf_error(self) -> Array:
        """Root mean square of what the URDF's feed-forward lately lacked, (n_joints,) in N m."""
        return np.sqrt(self._lacked.value)

    def command(self, time: float, q: Array, dq: Array, point: Point) -> Array:
        """Efforts (n_joints,) in N m for the state measured at a `time` in s.

        q, dq: (n_joints,) measured, rad and rad/s. point: of the plan, at that time.
        """
        dt = 0.0 if self._last is None else min(max(time - self._last, 0.0), LONGEST)
        self._last = time
        urdf, answer = point.urdf, point.answer
        if self.config.feedforward == "urdf":
            answer = None
        learned, std = (None, None) if answer is None else (answer.values, answer.stds)
        before = self.correction.counts.copy() if self.config.feedforward == "urdf" else None
        moved = self.correction.advance(dt, urdf, learned, std, self.urdf_error)
        if before is not None:
            self.correction.counts = before  # nobody was asked
        w, inertia = self._bandwidth, point.inertia + self._rotors
        feedback = inertia * w * (w * (point.q - q) + self._damping * (point.dq - dq))
        if not np.isfinite(feedback).all():
            self.counts[NOT_MEASURED] += 1
            feedback = np.zeros(len(urdf))
        wanted = urdf + moved + feedback
        effort: Array = np.clip(wanted, -self.limit, self.limit)
        self.counts[BOUNDED] += bool((effort != wanted).any())
        if dt > 0.0:
            self._lacked.update(effort - urdf, dt)
        self.commands += 1
        self.followed += float(self.correction.share.mean())
        return effort
