from __future__ import annotations

import numpy as np

from semiparam_dynamics.robot.regressor import joint_effects, sensor_offsets

DQ, DDQ = np.array([0.3, -0.1]), np.array([5.0, 7.0])


def test_columns_by_kind_then_joint() -> None:
    effects = joint_effects(
        ["a", "b"],
        viscous=True,
        coulomb=True,
        offset=True,
        rotor_inertia=True,
        coulomb_velocity=0.2,
    )
    assert effects.labels == (
        *("viscous a", "viscous b", "coulomb a", "coulomb b"),
        *("offset a", "offset b", "rotor_inertia a", "rotor_inertia b"),
    )
    np.testing.assert_array_equal(effects.rows, [0, 1] * 4)
    expected = [0.3, -0.1, np.tanh(1.5), np.tanh(-0.5), 1, 1, 5, 7]
    np.testing.assert_allclose(effects.values(DQ, DDQ), expected)


def test_kinds_and_columns_can_be_chosen() -> None:
    effects = joint_effects(
        ["a", "b"],
        viscous=False,
        coulomb=False,
        offset=True,
        rotor_inertia=True,
        coulomb_velocity=0.2,
    ).select(np.array([1, 2]))
    assert effects.labels == ("offset b", "rotor_inertia a")
    np.testing.assert_array_equal(effects.rows, [1, 0])
    np.testing.assert_allclose(effects.values(DQ, DDQ), [1, 5])


def test_sensor_offsets_are_unit_columns() -> None:
    offsets = sensor_offsets(["fx", "fy"], 2, wanted=True)
    assert offsets.labels == ("offset fx", "offset fy")
    np.testing.assert_array_equal(offsets.rows, [0, 1])
    np.testing.assert_allclose(offsets.values(DQ, DDQ), [1, 1])
    none = sensor_offsets(["fx", "fy"], 2, wanted=False)
    assert none.labels == () and none.values(DQ, DDQ).size == 0


def test_a_shared_motor_moves_with_the_sum_or_difference_and_acts_on_both_joints() -> None:
    effects = joint_effects(
        ["a", "b"],
        viscous=True,
        coulomb=True,
        offset=True,
        rotor_inertia=True,
        coulomb_velocity=0.2,
        couplings=[(0, 1, -1.0)],
    )
    assert effects.labels[8:] == (
        *("viscous a-b on a", "viscous a-b on b", "coulomb a-b on a", "coulomb a-b on b"),
        *("rotor_inertia a-b on a", "rotor_inertia a-b on b"),
    )
    np.testing.assert_array_equal(effects.rows[8:], [0, 1] * 3)
    values = effects.values(DQ, DDQ)
    np.testing.assert_allclose(values[:8], [0.3, -0.1, np.tanh(1.5), np.tanh(-0.5), 1, 1, 5, 7])
    np.testing.assert_allclose(values[8:], [0.4, 0.4, np.tanh(2.0), np.tanh(2.0), -2, -2])
