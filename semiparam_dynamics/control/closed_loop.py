"""Learner, controller and simulated arm in one process: the same numbers at every run.

In order of time, as on the network: a measurement comes; the controller answers with a command,
which acts from the next instant on; the learner predicts and learns. What the controller asks about
a block of instants ahead is answered at once, with what was learned until then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.control.computed_torque import ComputedTorque
from semiparam_dynamics.control.plan import Answer, Plan
from semiparam_dynamics.dynamics.desired_states import learner_feedforward
from semiparam_dynamics.dynamics.learner import InverseDynamicsLearner
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.simulation.arm import ArmSimulator

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
            said = learner_feedforward(learner, block.q, block.dq, block.ddq)
            model = controller.config.feedforward
            if model != "urdf":
                plan.take(block.first, Answer(said.values[model], said.stds[model]))
        point = plan.at(t)
        arm.command(controller.command(t, reading.q, reading.dq, point))
        if learner is not None and t < learner_ends:
            stamp = START + round(t * 1e9)
            step = learner.observe(Measurement(stamp, reading.q, reading.dq, reading.effort))
            if step is not None:
                learner.learn(step)
        time[i] = t
        error[i], link_error[i] = point.q - reading.q_motor, point.q - reading.q_true
        effort[i] = reading.effort_true
        correction[i], share[i] = controller.correction.value, controller.correction.share
    return ClosedLoop(time, error, link_error, effort, correction, share, plan.begun, plan.late)
