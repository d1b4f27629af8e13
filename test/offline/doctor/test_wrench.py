"""A six-axis sensor's readings: what is wrong with them, and what was not looked at."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.parameters import replace as configured
from semiparam_dynamics.dynamics.effort_faults import Finding
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.doctor.messages import JointLog
from semiparam_dynamics.offline.doctor.wrench import WrenchLog, wrench_findings

from ...dynamics.arms import URDF, motion, small_arm
from .logs import arm_log

SENSOR = "boom_sensor"


@cache
def logs() -> tuple[WrenchLog, JointLog]:
    """What a sensor with noise and an offset reads of the URDF's masses, and the joints."""
    joints = arm_log(20.0)
    model = small_arm(target="wrench", sensor_frame=SENSOR)
    q, dq, ddq = motion(model, joints.times, 0)
    rng = np.random.default_rng(1)
    wrench: Array = model.regressors(q, dq, ddq) @ model.prior
    wrench = wrench + 0.02 * rng.standard_normal(wrench.shape) + [3.0, -1.0, 2.0, 0.1, 0.2, -0.1]
    return WrenchLog(joints.stamps, wrench, (SENSOR,)), joints


def found(values: Array | None = None, **changes: object) -> tuple[list[Finding], str]:
    log, joints = logs()
    log = replace(log, **changes) if values is None else replace(log, values=values, **changes)
    return wrench_findings(log, joints, URDF.read_text(), InverseDynamicsConfig())


def faults(*arguments: Array, **changes: object) -> list[str]:
    return [finding.kind for finding in found(*arguments, **changes)[0] if finding.fault]


def test_good_readings_have_no_finding_and_all_was_examined() -> None:
    assert found() == ([], "")


def test_conventions_are_told() -> None:
    values = logs()[0].values
    assert faults(-values) == ["wrench: sign"]
    turned = values[:, [1, 2, 0, 4, 5, 3]]
    assert faults(turned) == ["wrench: axes"]
    assert (
        "x is the URDF's y, y is the URDF's z and z is the URDF's x" in found(turned)[0][0].evidence
    )
    assert faults(1000.0 * values) == ["wrench: unit of forces"]  # mN and N mm
    model = small_arm(target="wrench", sensor_frame=SENSOR)
    q = logs()[1].q
    slow: Array = model.regressors(q, 0.0 * q, 0.0 * q) @ model.prior
    slow = slow + 0.001 * np.random.default_rng(0).standard_normal(slow.shape)
    assert faults(slow) == []
    assert faults(slow * [1, 1, 1, 1000, 1000, 1000]) == ["wrench: unit of moments"]


def test_broken_readings_are_told() -> None:
    values = logs()[0].values

    def changed(rows: slice, columns: slice, by: object) -> Array:
        other = values.copy()
        other[rows, columns] = by
        return other

    everything = slice(None)
    assert faults(changed(everything, slice(2, 3), 0.0))[0] == "wrench: axis missing"
    assert faults(changed(slice(500, 700), slice(1, 2), 1.0)) == ["wrench: stuck"]
    assert faults(changed(slice(10, 20), slice(0, 1), np.nan)) == ["wrench: not a number"]
    assert faults(changed(slice(100, 2000, 400), slice(4, 5), 500.0))[0] == "wrench: wrong readings"
    top = np.quantile(values[:, 2], 0.9)
    assert "wrench: clipped" in faults(np.minimum(values, [9e9, 9e9, top, 9e9, 9e9, 9e9]))
    assert faults(np.repeat(values[::2], 2, axis=0)) == ["wrench: repeated readings"]


def test_stamps_and_frames_are_told() -> None:
    log, _ = logs()
    early = log.stamps + 10**15
    assert faults(stamps=early) == ["wrench: another clock"]
    gap = np.where(np.arange(len(log)) > 500, log.stamps + 10**9, log.stamps)
    assert "wrench: gaps" in faults(stamps=gap)
    kinds, why = found(frames=("camera",))
    assert [f.kind for f in kinds] == ["wrench: frame"] and why
    kinds, why = found(frames=("",))
    assert not kinds and "name the sensor's frame" in why
    elsewhere = configured(InverseDynamicsConfig(), sensor_frame=SENSOR)
    other = replace(log, frames=("camera",))
    (finding,), _ = wrench_findings(other, logs()[1], URDF.read_text(), elsewhere)
    assert finding.kind == "wrench: frame" and "all of them are dropped" in finding.advice


@pytest.mark.parametrize("rows", [0, 2, 40])
def test_few_readings_are_not_examined_and_that_is_told(rows: int) -> None:
    log, _ = logs()
    kinds, why = found(values=log.values[:rows], stamps=log.stamps[:rows])
    assert why and all(f.kind == "no wrench" for f in kinds)
