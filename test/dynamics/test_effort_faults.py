"""Faults of efforts that a robot's first motion shows, beside a truth that is known."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.optimize import nnls

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.dynamics.effort_faults import EXAMINED_S, FirstMotion
from semiparam_dynamics.dynamics.effort_trials import anchored_fit
from semiparam_dynamics.dynamics.filtering import FilterConfig, SampleFilter
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.samples.measurement import Measurement

from ..offline.doctor.logs import arm_log
from .arms import small_arm

N = 4  # joints


def samples(gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)) -> list[Sample]:
    """A motion of the small arm under a gravity that it may not be configured for."""
    log, model = arm_log(EXAMINED_S + 2.0, gravity=gravity), small_arm()
    measured = [
        Measurement(int(stamp), *row)
        for stamp, *row in zip(log.stamps, log.q, log.dq, log.y, strict=True)
    ]
    found = SampleFilter(model, FilterConfig()).filter_recording(measured)
    return [sample.copy() for sample in found if not sample.between]


@pytest.fixture(scope="module")
def motion() -> list[Sample]:
    return samples()


def examined(motion: list[Sample], matrix: Array | None = None, scale: float = 1.0) -> FirstMotion:
    """The motion with efforts that are `matrix` times the true ones."""
    first = FirstMotion(small_arm(), np.full(N, scale))
    for sample in motion:
        y = sample.y if matrix is None else matrix @ sample.y
        if first.take(dataclasses.replace(sample, y=y)):
            first.examine()
    return first


def test_right_efforts_are_no_fault_however_wrong_the_masses(motion) -> None:
    for factor in (0.5, 2.0):
        first = examined(motion, factor * np.eye(N))
        assert first.faults == first.news() == []
        assert first.state.startswith("no faults") and "semiparam doctor" in first.state


@pytest.mark.parametrize("joint", [0, 1])
def test_a_turned_effort_is_told_once_with_what_to_write(motion, joint: int) -> None:
    sign = np.ones(N)
    sign[joint] = -1.0
    first = examined(motion, np.diag(sign), scale=2.0)
    ((kind, sentence),) = first.faults
    assert kind == "effort sign" and small_arm().joint_names[joint] in sentence
    assert f"In the YAML: samples.effort_scale: {(2.0 * sign).tolist()}" in sentence
    assert first.news() == [f"effort sign: {sentence}"] and first.news() == []
    assert first.values() == {"first motion": first.state, "first motion: effort sign": sentence}


def test_the_sign_of_all_efforts_is_no_arm_on_the_ceiling(motion) -> None:
    assert [kind for kind, _ in examined(motion, -np.eye(N)).faults] == N * ["effort sign"]


def test_currents_and_exchanged_efforts(motion) -> None:
    ((kind, sentence),) = examined(motion, 0.1 * np.eye(N)).faults
    assert kind == "effort scale" and "currents need the torque constant" in sentence
    ((kind, _),) = examined(motion, np.eye(N)[[1, 0, 2, 3]]).faults
    assert kind == "exchanged joints"


@pytest.mark.parametrize("gravity", [(0.0, 0.0, 9.81), (0.0, -9.81, 0.0)])
def test_gravity_along_another_axis(gravity) -> None:
    ((kind, sentence),) = examined(samples(gravity)).faults
    assert kind == "tilted base" and f"In the YAML: gravity: {gravity}" in sentence


def test_gravity_left_out_of_the_efforts() -> None:
    ((kind, sentence),) = examined(samples((0.0, 0.0, 0.0))).faults
    assert kind == "gravity left out" and "In the YAML: effort_gravity: compensated" in sentence


def test_it_waits_for_motion_that_is_measured(motion) -> None:
    first = FirstMotion(small_arm(), np.ones(N))
    for sample in motion:
        first.take(dataclasses.replace(sample, informative=False))
        first.take(dataclasses.replace(sample, y=None))
        first.take(dataclasses.replace(sample, y=np.full(N, np.nan)))
    assert first.values() == {"first motion": f"after {EXAMINED_S:g} s of motion with efforts"}


def test_a_joint_without_efforts_is_left_out_by_name_and_the_others_are_examined(motion) -> None:
    lacking, turned = np.diag([1.0, 1.0, np.nan, 1.0]), np.diag([1.0, -1.0, 1.0, 1.0])
    for matrix, expected in ((np.eye(N), []), (turned, ["effort sign"])):
        first = FirstMotion(small_arm(), np.ones(N))
        for sample in motion:
            y = np.where(np.isnan(lacking.diagonal()), np.nan, matrix @ sample.y)
            if first.take(dataclasses.replace(sample, y=y)):
                first.examine()
        assert [kind for kind, _ in first.faults] == expected
        assert f"without {small_arm().joint_names[2]}, which has no efforts" in first.state


def test_it_says_how_much_motion_it_has_seen(motion) -> None:
    first = FirstMotion(small_arm(), np.ones(N))
    for sample in motion[: len(motion) // 2]:
        first.take(sample)
    seen = float(first.state.split()[0])
    assert first.state.endswith(f"of {EXAMINED_S:g} s of motion with efforts")
    assert seen == pytest.approx(EXAMINED_S / 2, abs=2.0)


def test_a_fit_is_that_of_scipy() -> None:
    rng = np.random.default_rng(0)
    for k in range(20):
        inertia, weight, y = rng.standard_normal((3, 50))
        effects = rng.standard_normal((50, 4))
        effects[:, 2] = 1.0
        weight *= k % 5 > 0  # of a joint that carries nothing
        y += rng.standard_normal(3) @ (inertia, weight, effects[:, 0])
        design = np.column_stack(
            (inertia, weight, effects[:, [0, 1, 3]], np.ones(50), -np.ones(50))
        )
        found, left = nnls(design, y)
        fit = anchored_fit(y, inertia, weight, effects)
        assert fit.error == pytest.approx(left**2 / 50 / y.var(), abs=1e-8)
        factors = fit.inertia, fit.gravity, fit.viscous, fit.coulomb
        np.testing.assert_allclose(factors, found[:4], atol=1e-6)
