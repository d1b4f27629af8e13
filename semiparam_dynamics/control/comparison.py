"""The three feed-forwards side by side: the same arm, motion and noise, one after the other."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.control.computed_torque import ComputedTorque
from semiparam_dynamics.control.config import FEEDFORWARDS, ControlConfig
from semiparam_dynamics.control.plan import Answer, Approach, Plan, trajectory_of
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.learner import InverseDynamicsLearner
from semiparam_dynamics.parameters import group, replace
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.urdf import parse_xml
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.simulation.arm import ArmSimulator
from semiparam_dynamics.simulation.config import SimulatorConfig

# -------------------------------------------------------------------------------------------------
# Learner, controller and simulated arm in one process: the same numbers at every run.
#
# In order of time, as on the network: a measurement comes; the controller answers with a command,
# which acts from the next instant on; the learner predicts and learns. What the controller asks
# about
# a block of instants ahead is answered at once, with what was learned until then.

START = 1_000_000_000  # ns: a stamp of zero is none


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """A controlled motion of k instants.

    Attributes
    ----------
    time: (k,) s. error: (k, n_joints) rad, desired position minus that of the motors, without the
    sensors' noise. link_error: the same of the links, beyond the elastic transmissions.
    effort, correction: (k, n_joints) N m, commanded, and what the learner added to it.
    share: (k, n_joints), from 0 to 1, in which the learner was followed.
    asked, late: blocks of instants that the learner was asked about, and not answered in time.
    """

    time: Array
    error: Array
    link_error: Array
    effort: Array
    correction: Array
    share: Array
    asked: int
    late: int

    def rms(self, since: float, links: bool = False) -> Array:
        """Root mean square error (n_joints,) in rad, from a time in s on."""
        chosen = (self.link_error if links else self.error)[self.time >= since]
        rms: Array = np.sqrt(np.mean(chosen**2, axis=0))
        return rms


def run(
    arm: ArmSimulator,
    plan: Plan,
    controller: ComputedTorque,
    learner: InverseDynamicsLearner | None,
    seconds: float,
    *,
    learner_ends: float = np.inf,
) -> ClosedLoop:
    """Let the arm, which takes efforts, make so many seconds of the plan's motion.

    learner_ends: time in s at which the learner answers and learns no more, as if it were killed.
    """
    k, n = round(seconds / arm.period), len(arm.joint_names)
    time, error, link_error = np.zeros(k), np.zeros((k, n)), np.zeros((k, n))
    effort, correction, share = np.zeros((k, n)), np.zeros((k, n)), np.zeros((k, n))
    for i in range(k):
        reading = arm.advance()
        t = reading.time
        for block in plan.ahead(t):
            if learner is None or t >= learner_ends:
                continue
            said = learner.feedforward(block.q, block.dq, block.ddq)
            model = controller.config.feedforward
            if model != "urdf":
                plan.take(block.first, Answer(said.values[model], said.stds[model]))
        point = plan.at(t)
        arm.command(controller.command(t, reading.q, reading.dq, point))
        if learner is not None and t < learner_ends:
            stamp = START + round(t * 1e9)
            step = learner.predict(Measurement(stamp, reading.q, reading.dq, reading.effort))
            if step is not None:
                learner.update(learner.admit(step))
        time[i] = t
        error[i], link_error[i] = point.q - reading.q_motor, point.q - reading.q_true
        effort[i] = reading.effort_true
        correction[i], share[i] = controller.correction.value, controller.correction.share
    return ClosedLoop(time, error, link_error, effort, correction, share, plan.begun, plan.late)


# -------------------------------------------------------------------------------------------------
# A URDF whose masses are off, as those from CAD are.


def with_wrong_masses(urdf: str, least: float, most: float, seed: int) -> str:
    """The URDF's text with each link heavier or lighter by a random part of its mass.

    The part lies between `least` and `most`, such as 0.1 and 0.3, its sign is random; moments of
    inertia go with the mass, centres of mass stay. Raises ConfigurationError where 0 <= least <=
    most < 1 doesn't hold, and RobotModelError where the URDF is no XML.
    """
    if not 0.0 <= least <= most < 1.0:
        raise ConfigurationError(
            f"masses can be wrong by 0 to less than 1 of themselves, not by {least:g} to {most:g}"
        )
    rng = np.random.default_rng([seed, 4])
    root = parse_xml(urdf)
    for inertial in root.iter("inertial"):
        factor = float(1.0 + rng.choice((-1.0, 1.0)) * rng.uniform(least, most))
        for name in ("mass", "inertia"):
            for element in inertial.findall(name):
                for key, value in element.attrib.items():
                    element.set(key, repr(float(value) * factor))
    return ET.tostring(root, encoding="unicode")


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
