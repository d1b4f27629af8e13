"""The regressor against pinocchio's on real arms and random trees, and columns of effects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from semiparam_dynamics.base.errors import SampleError
from semiparam_dynamics.robot.model import (
    FrictionMemory,
    RobotConfig,
    RobotModel,
    expected_scales,
    joint_effects,
)
from semiparam_dynamics.robot.regressor import (
    DISSIPATIVE,
    GEOMETRY,
    MOTION,
    OPTIONAL,
    PRESLIDING,
    Coupling,
    EffectColumns,
    fill,
    sensor_offsets,
)

from .pinocchio_states import rows_of, state_of, torques

ARMS = ("xmate7p/xmate7p.urdf", "ur10/ur10_robot.urdf", "tx40/tx40.urdf")
DQ, DDQ = np.array([0.3, -0.1]), np.array([5.0, 7.0])
KINDS = ("revolute", "continuous", "prismatic", "fixed")


def random_tree(seed: int, n_joints: int = 9) -> str:
    """A URDF whose joints hang anywhere, turn or slide about any axis, or stand still."""
    rng = np.random.default_rng(seed)
    links, joints = ['<link name="l0"/>'], []
    for i in range(1, n_joints + 1):
        kind = "revolute" if i == 1 else KINDS[rng.integers(len(KINDS))]
        A = rng.standard_normal((3, 3))
        inertia = A @ A.T + np.eye(3)
        xyz, rpy, axis, com = (" ".join(map(str, rng.standard_normal(3))) for _ in range(4))
        names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        values = zip(names, inertia[np.triu_indices(3)], strict=True)
        moments = " ".join(f'{name}="{value}"' for name, value in values)
        links.append(
            f'<link name="l{i}"><inertial><origin xyz="{com}"/>'
            f'<mass value="{rng.uniform(0.1, 3)}"/><inertia {moments}/></inertial></link>'
        )
        joints.append(
            f'<joint name="j{i}" type="{kind}"><origin xyz="{xyz}" rpy="{rpy}"/>'
            f'<parent link="l{rng.integers(i)}"/><child link="l{i}"/><axis xyz="{axis}"/>'
            '<limit lower="-2" upper="2" effort="1" velocity="1"/></joint>'
        )
    return f'<robot name="tree">{"".join(links + joints)}</robot>'


def pinocchio_regressors(model: RobotModel, states: np.ndarray) -> np.ndarray:
    """(n, n_axes, 10 * bodies) by pinocchio, rows and columns in the order of the robot model."""
    kinematics, full = model.kinematics, []
    data = kinematics.createData()
    for state in np.swapaxes(states, 0, 1):
        whole = state_of(kinematics, dict(zip(model.joint_names, state.T, strict=True)))
        full.append(pin.computeJointTorqueRegressor(kinematics, data, *whole).copy())
    rows = rows_of(kinematics, model.joint_names)
    if model.config.target == "wrench":
        first = kinematics.joints[int(model.body_joints[0])].idx_v
        rows = list(range(first, first + 6))
    columns = np.concatenate([10 * (i - 1) + np.arange(10) for i in model.body_joints])
    return np.array(full)[:, rows][:, :, columns]


def agree(model: RobotModel, seed: int) -> None:
    states = 2.0 * np.random.default_rng(seed).standard_normal((3, 20, model.n_joints))
    wanted = pinocchio_regressors(model, states)
    size = np.abs(wanted).max()
    got = np.array([model.inertial_regressor(*state) for state in np.swapaxes(states, 0, 1)])
    np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12 * size)
    kept = model.base.independent[model.base.independent < wanted.shape[2]]
    reduced = model.regressors(*states)[:, :, : len(kept)]
    np.testing.assert_allclose(reduced, wanted[:, :, kept], rtol=1e-12, atol=1e-12 * size)


@pytest.mark.parametrize("name", ARMS)
def test_equals_pinocchio_on_real_arms(name: str, data_file: Callable[[str], Path]) -> None:
    agree(RobotModel(str(data_file(f"robots/{name}"))), 0)


@pytest.mark.parametrize("seed", range(8))
def test_equals_pinocchio_on_random_trees_and_at_a_sensor_in_them(seed: int) -> None:
    agree(RobotModel(random_tree(seed), gravity=(1.0, -2.0, 9.0)), seed)
    agree(RobotModel(random_tree(seed), target="wrench", sensor_frame="j1"), seed)


def test_read_only_and_transposed_states_are_taken() -> None:
    model = RobotModel(random_tree(2))
    states = np.random.default_rng(0).standard_normal((3, 5, model.n_joints))
    turned = [np.asfortranarray(values) for values in states]
    for values in turned:
        values.setflags(write=False)
    np.testing.assert_array_equal(model.regressors(*turned), model.regressors(*states))
    single = model.regressor(*(values[2] for values in turned))
    np.testing.assert_array_equal(single, model.regressors(*states)[2])


def test_always_zero_entries_are_zero_whatever_was_there() -> None:
    model = RobotModel(random_tree(3))
    states = np.random.default_rng(0).standard_normal((3, 4, model.n_joints))
    stops = np.random.default_rng(1).uniform(-1.0, 1.0, (4, model.n_stops))
    size = model.n_axes * model.n_parameters
    out = np.full((4, 7 + size), np.nan)
    fill(*states, stops, out, 7, *model.regressor_arguments)
    np.testing.assert_array_equal(out[:, 7:], model.regressors(*states, stops).reshape(4, -1))
    assert np.isnan(out[:, :7]).all()


AXES, SHARED = 2, ("rotor_inertia", "viscous", "coulomb")


def effects_of(couplings: Sequence[Coupling] = (), **chosen: object) -> EffectColumns:
    """Columns of two joints: the basic kinds and others that are chosen."""
    others = {"stribeck_velocity": 0.0, "asymmetry": False, "loaded": False, "presliding": ()}
    config = RobotConfig(**{"coulomb_velocity": 0.2, **others, **chosen})
    return joint_effects(["a", "b"], config, couplings)


def values(effects: EffectColumns, stops: Sequence[float] = ()) -> np.ndarray:
    """The columns (2, n) at DQ, DDQ, of a robot without bodies."""
    n, (rows, columns, source) = len(effects.labels), effects.entries.T
    out, still = np.empty((1, AXES * n)), np.zeros((1, 3), dtype=np.intp)
    states = np.zeros((1, 2)), DQ[None], DDQ[None], np.array([stops], dtype=np.float64)
    units, nothing = np.zeros((AXES, 7)), [np.zeros((0, k), dtype=np.intp) for k in (2, 3)]
    places = np.column_stack((rows * n + columns, source))
    per_velocity, work = 1.0 / np.array(effects.velocities), np.zeros((n + 6, MOTION))
    own = effects.mixing, places, per_velocity, np.zeros(0), work
    fill(*states, out, 0, np.zeros((1, GEOMETRY)), still, units, *nothing, *own)
    return out.reshape(AXES, n)


def own_of(effects: EffectColumns, stops: Sequence[float] = ()) -> np.ndarray:
    """The only entries (n,) of columns by kind, then joint."""
    found = values(effects, stops)
    rows = np.arange(found.shape[1]) % 2
    assert not found[1 - rows, np.arange(found.shape[1])].any()
    return found[rows, np.arange(found.shape[1])]


def test_columns_by_kind_then_joint() -> None:
    effects = effects_of()
    assert effects.labels == (
        *("offset a", "offset b", "rotor_inertia a", "rotor_inertia b"),
        *("viscous a", "viscous b", "coulomb a", "coulomb b"),
    )
    expected = [1, 1, 5, 7, 0.3, -0.1, np.tanh(1.5), np.tanh(-0.5)]
    np.testing.assert_allclose(own_of(effects), expected)


def test_kinds_and_columns_can_be_chosen() -> None:
    effects = effects_of(viscous=False, coulomb=False).select(np.array([1, 2]))
    assert effects.labels == ("offset b", "rotor_inertia a")
    np.testing.assert_allclose(values(effects), [[0, 5], [1, 0]])


def test_sensor_offsets_are_unit_columns() -> None:
    offsets = sensor_offsets(["fx", "fy"], 2, wanted=True)
    assert offsets.labels == ("offset fx", "offset fy")
    np.testing.assert_allclose(values(offsets), np.eye(2))
    none = sensor_offsets(["fx", "fy"], 2, wanted=False)
    assert none.labels == () and values(none).size == 0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_shared_motor_acts_on_both_joints_with_the_power_of_its_motion(sign: float) -> None:
    effects = effects_of(couplings=[(0, 1, sign)])
    shared = [effects.labels.index(f"{k} a{'+-'[sign < 0]}b") for k in SHARED]
    assert len(effects.labels) == 11
    speed = DQ[0] + sign * DQ[1]
    expected = [DDQ[0] + sign * DDQ[1], speed, np.tanh(speed / 0.2)]
    found = values(effects)[:, shared]
    np.testing.assert_allclose(found, np.outer([1.0, sign], expected))
    np.testing.assert_allclose(DQ @ found[:, 1:], speed * np.array(expected[1:]))


def test_stops_come_last_kind_by_kind() -> None:
    effects = effects_of(viscous=False, offset=False, presliding=(1e-3, 0.1))
    assert effects.labels[-4:] == (
        *("presliding_0.001 a", "presliding_0.001 b", "presliding_0.1 a", "presliding_0.1 b"),
    )
    stops = [0.1, -0.2, 0.3, -0.4]
    np.testing.assert_allclose(own_of(effects, stops)[-4:], stops)


def test_dry_friction_may_differ_near_standstill_and_between_the_directions() -> None:
    effects = effects_of(stribeck_velocity=0.5, asymmetry=True)
    own = slice(4, 8)  # what only takes energy is behind them
    assert effects.labels[own] == ("stribeck a", "stribeck b", "asymmetry a", "asymmetry b")
    dry, fading = np.tanh([1.5, -0.5]), np.exp([-(0.6**2), -(0.2**2)])
    np.testing.assert_allclose(own_of(effects)[own], [*dry * fading, *np.abs(dry)])
    without = effects_of(coulomb=False, stribeck_velocity=0.5, asymmetry=True)
    assert not any(label.startswith(("stribeck", "asymmetry")) for label in without.labels)


def test_friction_that_goes_with_the_load_is_by_what_pinocchio_s_rnea_says_of_the_urdf() -> None:
    model = RobotModel(random_tree(3), coulomb_velocity=0.2)
    states = np.random.default_rng(4).standard_normal((3, model.n_joints))
    columns = [model.labels.index(f"loaded {joint}") for joint in model.joint_names]
    load = torques(model.kinematics, model.joint_names, *states[:, None])[0]
    found = model.regressor(*states)[:, columns]
    np.testing.assert_allclose(found, np.diag(np.abs(load) * np.tanh(states[1] / 0.2)), atol=1e-9)
    assert model.dissipative[columns].all() and np.abs(load).min() > 0.0


def test_friction_builds_up_over_its_way_and_turns_with_the_motion() -> None:
    model = RobotModel(random_tree(3), presliding=(0.1, 0.4))
    n, memory = model.n_joints, FrictionMemory(model)
    assert np.all(memory.advance(np.zeros(n)) == 0.0)
    half = np.repeat([0.5, 0.125], n)
    np.testing.assert_allclose(memory.advance(np.full(n, 0.05)), half)
    np.testing.assert_allclose(memory.advance(np.full(n, 1.0)), 1.0)
    back = memory.advance(np.full(n, 0.9))
    np.testing.assert_allclose(back, np.repeat([0.0, 0.75], n), atol=1e-12)
    np.testing.assert_allclose(memory.advance(np.full(n, -9.0)), -1.0)


def test_without_a_history_stops_are_those_of_a_long_way() -> None:
    model = RobotModel(random_tree(3))
    states = np.random.default_rng(0).standard_normal((3, 4, model.n_joints))
    stops = np.tile(np.tanh(states[1] / model.config.coulomb_velocity), (1, 2))
    np.testing.assert_array_equal(model.regressors(*states), model.regressors(*states, stops))
    with pytest.raises(SampleError, match="stops must be"):
        model.regressors(*states, stops[:, 1:])
    for wrong in (stops[0, 1:], stops[0, :1], 0.5):
        with pytest.raises(SampleError, match="stops must be"):
            model.regressor(*states[:, 0], wrong)


def test_friction_that_only_takes_energy_is_known_by_its_columns() -> None:
    model = RobotModel(random_tree(3), presliding=(0.1, 0.4))
    found = {
        label.split()[0] for label, is_ in zip(model.labels, model.dissipative, strict=True) if is_
    }
    assert found == {*DISSIPATIVE, "presliding_0.1", "presliding_0.4"} - {PRESLIDING}
    assert sum(model.dissipative) == len(found) * model.n_joints + len(model.couplings)
    wrench = RobotModel(random_tree(3), target="wrench", sensor_frame="j1")
    assert wrench.n_stops == 0 and not wrench.dissipative.any()


def test_parameters_deviate_in_groups_of_a_body_and_of_a_joint_s_kinds_of_friction() -> None:
    model = RobotModel(random_tree(3), presliding=(0.1, 0.4))
    scales, by_group = expected_scales(model), {}
    for step, group in zip(scales.deviations, scales.groups.tolist(), strict=True):
        labels = {model.labels[i] for i in np.flatnonzero(step)}
        by_group[group] = by_group.get(group, set()) | labels
    kinds = 1 + len(OPTIONAL)
    assert len(by_group) == len(model.bodies) + kinds * model.n_joints + len(model.couplings)
    stops = [{f"presliding_{way} {j}" for way in (0.1, 0.4)} for j in model.joint_names]
    assert all(wanted in by_group.values() for wanted in stops)
    assert all({f"stribeck {j}"} in by_group.values() for j in model.joint_names)


def test_a_root_s_square_is_the_precision_of_the_steps_together() -> None:
    scales = expected_scales(RobotModel(random_tree(3)))
    precisions = np.random.default_rng(0).uniform(0.1, 10.0, int(scales.groups.max()) + 1)
    root = scales.root(precisions)
    covariance = scales.deviations.T @ (scales.deviations / precisions[scales.groups, None])
    np.testing.assert_allclose(root.T @ root @ covariance, np.eye(len(root)), atol=1e-6)
    assert np.array_equal(root, np.triu(root)) and np.all(np.diag(root) > 0.0)
