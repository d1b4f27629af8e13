"""The three feed-forwards side by side: the same arm, motion and noise, one after the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.control.closed_loop import ClosedLoop, run
from semiparam_dynamics.control.computed_torque import ComputedTorque
from semiparam_dynamics.control.config import FEEDFORWARDS, ControlConfig
from semiparam_dynamics.control.plan import Plan
from semiparam_dynamics.control.reference import Approach, trajectory_of
from semiparam_dynamics.control.wrong_masses import with_wrong_masses
from semiparam_dynamics.dynamics.learner import InverseDynamicsLearner
from semiparam_dynamics.dynamics.robot import RobotModel
from semiparam_dynamics.parameters import group, replace
from semiparam_dynamics.simulation.arm import ArmSimulator
from semiparam_dynamics.simulation.config import SimulatorConfig

APPROACH_SPEED = 1.0  # rad/s
BLOCK = 10  # instants that the learner is asked about at once
FEW = 1  # centres of a residual that nobody asks


@dataclasses.dataclass(frozen=True)
class ComparisonConfig:
    """The simulated arm, its controller and its learner."""

    simulator: SimulatorConfig = group(SimulatorConfig, inline=True)
    controller: ControlConfig = group(ControlConfig)
    learner: InverseDynamicsConfig = group(InverseDynamicsConfig)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What came out: the joints, and a motion for each feed-forward by its name.

    since: s, from when on the errors count; before it the learner meets the motion.
    """

    joint_names: tuple[str, ...]
    since: float
    runs: dict[str, ClosedLoop]

    def rms(self, links: bool = False) -> dict[str, Array]:
        """Root mean square errors (n_joints,) in rad by feed-forward."""
        return {name: done.rms(self.since, links) for name, done in self.runs.items()}

    def ratio(self, name: str) -> float:
        """A feed-forward's error over the URDF's, the joints' root mean squares averaged."""
        rms = self.rms()
        return float(rms[name].mean() / rms["urdf"].mean())


def compare(
    urdf: str,
    config: ComparisonConfig,
    seconds: float,
    since: float,
    *,
    mass_error: tuple[float, float] = (0.0, 0.0),
    told: Callable[[str, ClosedLoop], None] = lambda name, done: None,
) -> Comparison:
    """Let the arm make `seconds` of its motion with each feed-forward.

    urdf: text or file of the arm that is simulated; "": the iCub's. mass_error: by what part, at
    least and at most, the masses are wrong in the URDF that controller and learner are given.
    told: called as each is done. Raises RobotModelError, ConfigurationError, MissingExtraError.
    """
    simulator = replace(config.simulator, control="effort")
    runs = {}
    for name in FEEDFORWARDS:
        arm = ArmSimulator(urdf, simulator)
        given = with_wrong_masses(arm.urdf, *mass_error, simulator.seed)
        model = RobotModel(given, config.learner.robot, joints=arm.joint_names, target="effort")
        reference = trajectory_of(
            arm.urdf,
            arm.joint_names,
            simulator.motion,
            simulator.seed,
            simulator.hand_frame,
            simulator.hand_offset,
        )
        approach = Approach(arm.advance().q_motor, reference, APPROACH_SPEED)
        plan = Plan(model, approach, arm.period, BLOCK, arm.period, BLOCK * arm.period)
        controller = ComputedTorque(model, replace(config.controller, feedforward=name))
        learner = None if name == "urdf" else _learner(model, config.learner, name)
        runs[name] = run(arm, plan, controller, learner, seconds)
        told(name, runs[name])
    return Comparison(arm.joint_names, since, runs)


def _learner(
    model: RobotModel, config: InverseDynamicsConfig, asked: str
) -> InverseDynamicsLearner:
    """A learner of what is asked: the rigid body never sees the residual, which may be missing."""
    changes: dict[str, object] = {"comparison": False}
    if asked == "rigid_body":
        changes |= {"nystrom__max_centers": FEW, "nystrom__joint_max_centers": 0}
    return InverseDynamicsLearner(model, replace(config, **changes))
