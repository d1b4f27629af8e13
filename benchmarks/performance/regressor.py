"""The time of a regressor and of a sample's filters, one at a time and for recordings."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio as pin
from output import markdown
from serial_arm import measured, serial_arm_urdf
from step import medians_of

from semiparam_dynamics.dynamics.filtering import FilterConfig, SampleFilter
from semiparam_dynamics.robot.model import RobotModel

DESCRIPTION = """\
The regressor of a robot's rigid bodies and friction, and a message's whole way through the
filters, one at a time as they come live and for many at once as in a recording, beside
pinocchio's regressor alone. Medians in microseconds, all measured in turns."""
STATES = 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument(
        "--urdf", type=Path, metavar="FILE", help="the robot (default: a seven-joint arm)"
    )
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="of measuring (default %(default)s)"
    )


def run(args: argparse.Namespace) -> str:
    """Measure; the table."""
    urdf = serial_arm_urdf() if args.urdf is None else str(args.urdf)
    return f"{regressor_table(measure_regressor(urdf, args.seconds))}\n"


@dataclass(frozen=True)
class RegressorTimes:
    """One robot's figures: medians in microseconds, for one state or message.

    Attributes
    ----------
    n_joints, n_columns : of the robot, and of its regressor after reduction, friction included.
    pinocchio : its computeJointTorqueRegressor, all columns, without friction, called from Python.
    one : RobotModel.regressor.
    many : RobotModel.regressors of a thousand states.
    message : SampleFilter.push: checks, filters, differences, regressor and its filter.
    recording : the same by SampleFilter.filter_recording, for a thousand messages.
    """

    n_joints: int
    n_columns: int
    pinocchio: float
    one: float
    many: float
    message: float
    recording: float


def measure_regressor(urdf: str, seconds: float) -> RegressorTimes:
    """Measure all in turns for `seconds` in all."""
    model = RobotModel(urdf)
    stream = measured(model, STATES / 1000.0, 1000.0)
    q, dq, ddq = np.random.default_rng(0).uniform(-1.0, 1.0, (3, STATES, model.n_joints))
    kinematics = model.kinematics
    data = kinematics.createData()
    neutral = pin.neutral(kinematics)
    push, block = SampleFilter(model, FilterConfig()), SampleFilter(model, FilterConfig())
    pushed = 0

    def pinocchio(count: int) -> None:
        for k in range(count):
            pin.computeJointTorqueRegressor(
                kinematics, data, neutral, dq[k % STATES], ddq[k % STATES]
            )

    def one(count: int) -> None:
        for k in range(count):
            model.regressor(q[k % STATES], dq[k % STATES], ddq[k % STATES])

    def many(count: int) -> None:
        for _ in range(count):
            model.regressors(q, dq, ddq)

    def message(count: int) -> None:
        nonlocal pushed
        for _ in range(count):
            if pushed == STATES:
                push.reset()
                pushed = 0
            push.push(stream[pushed])
            pushed += 1

    def recording(count: int) -> None:
        for _ in range(count):
            for _sample in block.filter_recording(stream):
                pass
            block.reset()

    medians = medians_of([pinocchio, one, many, message, recording], seconds)
    medians[2] /= STATES
    medians[4] /= STATES
    return RegressorTimes(model.n_joints, model.n_parameters, *medians)


def regressor_table(times: RegressorTimes) -> str:
    """A line for each of the figures, in Markdown."""
    rows = [
        ("pinocchio's regressor, all columns, one state", times.pinocchio),
        ("regressor, friction included, one state", times.one),
        ("regressor of 1024 states, each", times.many),
        ("a message through the filters, live", times.message),
        ("1024 messages through the filters, each", times.recording),
    ]
    header = [f"{times.n_joints} joints, {times.n_columns} columns", "µs", "/ pinocchio"]
    return markdown(header, [(name, f"{t:.1f}", f"{t / times.pinocchio:.2f}") for name, t in rows])
