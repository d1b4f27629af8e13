"""The feed-forwards compared: with each in turn the same simulated arm, motion and noise.

Learner, controller and arm run in one process, so that the numbers are the same at every run. As on
the network, a measurement comes, the controller answers with a command that acts from the next
instant on, and the learner predicts and learns. Questions about a block of instants ahead are
answered at once, with what was learned until then.
"""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ET
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.base.arrays import Array, Mask
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.parameters import group, replace
from semiparam_dynamics.control.computed_torque import BOUNDED, ComputedTorque
from semiparam_dynamics.control.config import FEEDFORWARDS, ControlConfig
from semiparam_dynamics.control.plan import Answer, Approach, Plan, Reference, trajectory_of
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.learner import InverseDynamicsLearner
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.urdf import parse_xml
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.simulation.arm import ArmSimulator
from semiparam_dynamics.simulation.config import SimulatorConfig

START_NS = 1_000_000_000  # a stamp of zero is none
APPROACH_SPEED = 1.0  # rad/s
BLOCK_INSTANTS = 10  # in one question to the learner
MIN_CENTERS = 1  # of a residual that isn't used


@dataclasses.dataclass(frozen=True)
class ComparisonConfig:
    """The simulated arm, its controller and its learner."""

    simulator: SimulatorConfig = group(SimulatorConfig, inline=True)
    controller: ControlConfig = group(ControlConfig)
    learner: InverseDynamicsConfig = group(InverseDynamicsConfig)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The joints, and the controlled motion with each feed-forward by its name.

    since: s, from which on errors count; the learner learns the motion before.
    following_error: rad or m, of a joint, at which a controller gives the motion up.
    """

    joint_names: tuple[str, ...]
    since: float
    runs: dict[str, ClosedLoop]
    following_error: float

    def rms(self, links: bool = False) -> dict[str, Array]:
        """Root mean square errors (n_joints,) in rad by feed-forward."""
        return {name: done.rms(self.since, links) for name, done in self.runs.items()}

    def lost(self) -> dict[str, tuple[str, float]]:
        """The feed-forwards with which the arm did not follow, at any time.

        Each with the joint that was farthest off and its error, rad or m.
        """
        found = {}
        for name, done in self.runs.items():
            largest = np.abs(done.error).max(axis=0)
            joint = int(largest.argmax())
            if largest[joint] > self.following_error:
                found[name] = self.joint_names[joint], float(largest[joint])
        return found

    def ratio(self, name: str) -> float:
        """A feed-forward's error over the URDF's, both averaged over the joints."""
        rms = self.rms()
        return float(rms[name].mean() / rms["urdf"].mean())


def compare(
    urdf: str,
    config: ComparisonConfig,
    seconds: float,
    since: float,
    *,
    mass_error: tuple[float, float] = (0.0, 0.0),
) -> Comparison:
    """Simulate `seconds` of the arm's motion with each feed-forward.

    urdf: text or file of the simulated arm; "": the iCub's. mass_error: smallest and largest share
    by which the masses are wrong in the URDF of controller and learner. Raises RobotModelError,
    ConfigurationError, MissingExtraError.
    """
    simulator = replace(config.simulator, control="effort")
    runs = {}
    for name in FEEDFORWARDS:
        arm = ArmSimulator(urdf, simulator)
        given = with_wrong_masses(arm.urdf, *mass_error, simulator.seed)
        model = RobotModel(given, config.learner.robot, joints=arm.joint_names, target="effort")
        plan = plan_of(model, motion_of(arm), arm.period)
        controller = ComputedTorque(model, replace(config.controller, feedforward=name))
        learner = None if name == "urdf" else _learner(model, config.learner, name)
        runs[name] = run(arm, plan, controller, learner, seconds)
    bound = config.controller.bounds.following_error
    return Comparison(arm.joint_names, since, runs, bound)


def motion_of(arm: ArmSimulator) -> Approach:
    """The arm's configured motion, approached from where it stands."""
    config = arm.config
    hand = config.hand_frame, config.hand_offset
    reference = trajectory_of(arm.urdf, arm.joint_names, config.motion, config.seed, *hand)
    return Approach(arm.advance().q_motor, reference, APPROACH_SPEED)


def plan_of(model: RobotModel, motion: Reference, period: float) -> Plan:
    """A plan of a motion, a command each period (s)."""
    return Plan(model, motion, period, BLOCK_INSTANTS, period, BLOCK_INSTANTS * period)


def _learner(
    model: RobotModel, config: InverseDynamicsConfig, feedforward: str
) -> InverseDynamicsLearner:
    """A learner for a feed-forward; the rigid body's doesn't depend on the residual."""
    changes: dict[str, object] = {"comparison": False}
    if feedforward == "rigid_body":
        changes |= {"nystrom__max_centers": MIN_CENTERS, "nystrom__wide_max_centers": 0}
    return InverseDynamicsLearner(model, replace(config, **changes))


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """A controlled motion of k instants.

    Attributes
    ----------
    time: (k,) s. error: (k, n_joints) rad, desired position minus that of the motors, without the
    sensors' noise. link_error: the same of the links, beyond the elastic transmissions.
    effort, correction: (k, n_joints) N m, commanded, and the learner's part of it.
    share: (k, n_joints), of the learner, from 0 to 1.
    clipped: (k,), whether a joint's command was wanted beyond its bound.
    asked, late: blocks of instants in questions to the learner, and those not answered in time.
    """

    time: Array
    error: Array
    link_error: Array
    effort: Array
    correction: Array
    share: Array
    clipped: Mask
    asked: int
    late: int

    def rms(self, since: float, links: bool = False) -> Array:
        """Root mean square error (n_joints,) in rad, from a time in s on."""
        chosen = (self.link_error if links else self.error)[self.time >= since]
        return np.sqrt(np.mean(chosen**2, axis=0))


def run(
    arm: ArmSimulator,
    plan: Plan,
    controller: ComputedTorque,
    learner: InverseDynamicsLearner | None,
    seconds: float,
    *,
    learner_ends: float = np.inf,
) -> ClosedLoop:
    """Simulate so many seconds of the plan's motion with an arm that takes efforts.

    learner_ends: s, from which on the learner neither answers nor learns, as if it were killed.
    """
    k, n = round(seconds / arm.period), len(arm.joint_names)
    time, error, link_error = np.zeros(k), np.zeros((k, n)), np.zeros((k, n))
    effort, correction, share = np.zeros((k, n)), np.zeros((k, n)), np.zeros((k, n))
    clipped: Mask = np.zeros(k, dtype=bool)
    for i in range(k):
        reading = arm.advance()
        t = reading.time
        for block in plan.ahead(t):
            if learner is None or t >= learner_ends:
                continue
            learned = learner.feedforward(block.q, block.dq, block.ddq)
            model = controller.config.feedforward
            if model != "urdf":
                plan.take(block.first, Answer(learned.values[model], learned.told_stds()[model]))
        point = plan.at(t)
        before = controller.counts[BOUNDED]
        arm.command(controller.command(t, reading.q, reading.dq, point))
        clipped[i] = controller.counts[BOUNDED] > before
        if learner is not None and t < learner_ends:
            stamp = START_NS + round(t * 1e9)
            step = learner.predict(Measurement(stamp, reading.q, reading.dq, reading.effort))
            if step is not None:
                learner.update(learner.admit(step))
        time[i] = t
        error[i], link_error[i] = point.q - reading.q_motor, point.q - reading.q_true
        effort[i] = reading.effort_true
        correction[i], share[i] = controller.correction.value, controller.correction.share
    arrays = time, error, link_error, effort, correction, share, clipped
    return ClosedLoop(*arrays, plan.begun, plan.late)


def with_wrong_masses(urdf: str, least: float, most: float, seed: int) -> str:
    """The URDF's text with each link heavier or lighter by a random share of its mass.

    The share lies between `least` and `most`, such as 0.1 and 0.3, its sign is random; moments of
    inertia change by the same share, centres of mass stay. Raises ConfigurationError where
    0 <= least <= most < 1 doesn't hold, and RobotModelError where the URDF is no XML.
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
