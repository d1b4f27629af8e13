"""Each effect against its formula, written anew here."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from semiparam_dynamics.simulation.config import EffectsConfig
from semiparam_dynamics.simulation.effects import (
    Bypass,
    Friction,
    Hysteresis,
    Transmission,
    WrenchSensor,
)

from .no_effects import NO_EFFECTS


def only(**effects: float | tuple[float, ...]) -> EffectsConfig:
    return dataclasses.replace(NO_EFFECTS, **effects)  # type: ignore[arg-type]


def test_friction_is_coulomb_stribeck_and_viscous() -> None:
    config = only(friction_coulomb=0.3, friction_stribeck=0.2, friction_viscous=0.1)
    friction = Friction(config, np.ones(2), 1e-4)
    dq = np.array([0.2, -2.0])
    # well above the sign's smoothing (0.03 rad/s)
    expected = [0.3 + 0.2 * math.exp(-4.0) + 0.02, -0.3 - 0.2]
    np.testing.assert_allclose(friction(dq), expected, atol=1e-5)
    np.testing.assert_array_equal(friction(np.zeros(2)), 0.0)


def test_friction_never_reverses_a_light_joint_within_a_step() -> None:
    inertia, timestep = np.array([1e-3]), 0.002
    friction = Friction(only(friction_coulomb=1.0), inertia, timestep)
    dq = np.array([0.5])
    for _ in range(100):
        slower = dq - timestep * friction(dq) / inertia
        assert 0.0 <= slower[0] < dq[0]
        dq = slower


def test_transmission_settles_at_the_twist_of_its_torque() -> None:
    spring = Transmission(only(compliance=0.01, hardening_torque=0.0), 2, 0.002)
    torque = np.array([2.0, -1.0])
    twists = []
    for _ in range(500):
        spring.step(torque)
        twists.append(spring.twist)
    np.testing.assert_allclose(spring.twist, 0.01 * torque, rtol=1e-9)
    # first order: 1 - 1/e of the way after the time constant, 10 steps of 2 ms
    np.testing.assert_allclose(twists[9], (1.0 - math.exp(-1.0)) * 0.01 * torque, rtol=1e-9)


def test_transmission_is_twice_as_stiff_at_the_hardening_torque() -> None:
    spring = Transmission(only(compliance=0.01, hardening_torque=3.0), 1, 0.002)
    small = 1e-5

    def slope(torque: float) -> float:
        ends = spring.rest(np.array([torque + small])) - spring.rest(np.array([torque - small]))
        return float(ends[0]) / (2.0 * small)

    assert slope(0.0) == pytest.approx(0.01, rel=1e-6)
    assert slope(3.0) == pytest.approx(0.005, rel=1e-6)


def test_hysteresis_loses_its_half_width_after_each_reversal() -> None:
    gap = Hysteresis(only(hysteresis=0.01), 1)
    ways = np.concatenate([np.linspace(0.0, 0.5, 300), np.linspace(0.5, -0.5, 600)])
    read = []
    for x in ways:
        gap.step(np.array([x]))
        read.append(x - gap.lost[0])
        assert 0.0 <= gap.passed()[0] <= 1.0
        if len(read) == 300:
            assert gap.lost[0] == pytest.approx(0.01, rel=1e-6)
    assert gap.lost[0] == pytest.approx(-0.01, rel=1e-6)
    # right after the reversal the sensor stands nearly still, later it moves as the motor does
    assert abs(read[302] - read[299]) < 0.2 * abs(ways[302] - ways[299])
    assert read[-1] - read[-2] == pytest.approx(ways[-1] - ways[-2], rel=1e-6)


def test_hysteresis_does_not_depend_on_the_steps() -> None:
    coarse, fine = Hysteresis(only(hysteresis=0.01), 1), Hysteresis(only(hysteresis=0.01), 1)
    for gap, count in ((coarse, 3), (fine, 300)):
        for x in np.linspace(0.0, 0.015, count):
            gap.step(np.array([x]))
    np.testing.assert_allclose(coarse.lost, fine.lost, rtol=1e-12)


def test_cable_pulls_towards_its_anchor_as_a_soft_spring() -> None:
    config = only(
        cable_stiffness=200.0,
        cable_slack=0.5,
        cable_softness=0.01,
        cable_attachment=(0.1, 0.0, 0.0),
    )
    bypass = Bypass(config, np.array([0.0, 0.0, 0.4]), np.zeros(3), np.eye(3))
    way = np.array([-0.1, 0.0, 0.4])
    length = np.linalg.norm(way)
    tension = 200.0 * 0.01 * math.log(1.0 + math.exp(0.5 * length / 0.01))
    force = tension * way / length
    wrench = bypass.wrench(np.eye(3), np.zeros(3), np.zeros(3))
    np.testing.assert_allclose(wrench[:3], force, rtol=1e-12)
    np.testing.assert_allclose(wrench[3:], np.cross([0.1, 0.0, 0.0], force), rtol=1e-12)


def test_slack_cable_does_not_pull() -> None:
    config = only(cable_stiffness=200.0, cable_slack=2.0)
    bypass = Bypass(config, np.array([0.0, 0.0, 0.6]), np.zeros(3), np.eye(3))
    wrench = bypass.wrench(np.eye(3), np.zeros(3), np.zeros(3))
    assert np.abs(wrench).max() < 1e-12


def rotation_z(angle: float) -> np.ndarray:
    cosine, sine = math.cos(angle), math.sin(angle)
    return np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]])


def test_sleeve_moment_is_the_slope_of_its_potential() -> None:
    config = only(sleeve_stiffness=2.0, sleeve_hardening=0.5)
    reference = rotation_z(0.3)
    bypass = Bypass(config, np.ones(3), np.zeros(3), reference)

    def potential(theta: float) -> float:
        e = 1.0 - math.cos(theta)
        return 2.0 * (e + 0.5 * e**2 / 2.0)

    for theta in (-2.0, 0.4, 1.5, 3.0):
        wrench = bypass.wrench(rotation_z(0.3 + theta), np.zeros(3), np.zeros(3))
        slope = (potential(theta + 1e-6) - potential(theta - 1e-6)) / 2e-6
        np.testing.assert_allclose(wrench, [0.0, 0.0, 0.0, 0.0, 0.0, -slope], atol=1e-8)


def test_sleeve_friction_opposes_the_links_turning() -> None:
    config = only(sleeve_friction=0.5, sleeve_velocity=0.3)
    bypass = Bypass(config, np.ones(3), np.zeros(3), np.eye(3))
    velocity = np.array([0.0, 0.4, 0.0])  # in base axes; the link's y axis is the base's -x
    wrench = bypass.wrench(rotation_z(0.5 * math.pi), np.zeros(3), velocity)
    np.testing.assert_allclose(wrench[3:], [-0.5 * 0.4 / 0.5, 0.0, 0.0], atol=1e-12)
    assert wrench[3:] @ (rotation_z(0.5 * math.pi).T @ velocity) < 0.0


def test_sensor_gain_crosstalk_offset_and_drift() -> None:
    wrench = np.array([10.0, -5.0, 2.0, 0.5, -1.0, 2.0])
    units = np.array([10.0, 10.0, 10.0, 1.0, 1.0, 1.0])

    def reading(time: float = 0.0, seed: int = 1, **effects: float) -> np.ndarray:
        return WrenchSensor(only(**effects), np.random.default_rng(seed))(wrench, time)

    np.testing.assert_array_equal(reading(), wrench)
    load = (wrench / units) ** 2
    gained = wrench * (1.0 + 0.1 * load / (1.0 + load))
    np.testing.assert_allclose(reading(nonlinearity=0.1), gained, rtol=1e-12)

    # Cross-talk is linear, belongs to the sensor and is as large as its parameter says.
    crossed = reading(crosstalk=0.05) - wrench
    np.testing.assert_allclose(reading(crosstalk=0.1) - wrench, 2.0 * crossed, rtol=1e-9)
    np.testing.assert_array_equal(reading(crosstalk=0.05, seed=2) - wrench, crossed)
    assert 0.02 < np.sqrt(np.mean((crossed / units) ** 2)) / np.linalg.norm(wrench / units) < 0.1

    assert np.abs(reading(bias_force=2.0)[3:] - wrench[3:]).max() == 0.0
    assert np.abs(reading(bias_force=2.0)[:3] - wrench[:3]).min() > 0.0
    start, late = (reading(time, drift_torque=0.1, drift_time=100.0) for time in (0.0, 100.0))
    final = reading(1e6, drift_torque=0.1, drift_time=100.0)
    np.testing.assert_array_equal(start, wrench)
    np.testing.assert_allclose(late - wrench, (1.0 - math.exp(-1.0)) * (final - wrench))


def test_sensor_noise_has_the_given_size() -> None:
    sensor = WrenchSensor(only(noise_force=0.3, noise_torque=0.03), np.random.default_rng(3))
    readings = np.array([sensor(np.zeros(6), 0.0) for _ in range(4000)])
    np.testing.assert_allclose(readings.std(axis=0), [0.3] * 3 + [0.03] * 3, rtol=0.06)
