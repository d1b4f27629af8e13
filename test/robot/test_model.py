"""The robot model: reduced columns, joints, gravity, sensors, refusals."""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from semiparam_dynamics.base.errors import ConfigurationError, RobotModelError, SampleError
from semiparam_dynamics.robot.inertia import body_spreads, pseudo_inertia
from semiparam_dynamics.robot.model import BODY_WEIGHT, RobotConfig, RobotModel, expected_scales

ARMS = Path(__file__).resolve().parent.parent / "data"
SMALL = (ARMS / "small_arm.urdf").read_text()
SEVEN = str(ARMS / "seven_joint_arm.urdf")


def states(model: RobotModel, n: int = 20, seed: int = 3) -> np.ndarray:
    """(3, n, n_joints): q, dq and ddq of n random states."""
    return np.random.default_rng(seed).standard_normal((3, n, model.n_joints))


MODELS = {
    "effort": lambda: RobotModel(SMALL),
    "effort without effects": lambda: RobotModel(
        SMALL, viscous=False, coulomb=False, offset=False, rotor_inertia=False
    ),
    "seven joints": lambda: RobotModel(SEVEN),
    "wrench": lambda: RobotModel(SMALL, target="wrench", sensor_frame="boom_sensor"),
    "tilted wrench without offsets": lambda: RobotModel(
        SEVEN, target="wrench", sensor_frame="joint4", sensor_offset=False, gravity=(5.0, -7.0, 3.0)
    ),
    "no gravity": lambda: RobotModel(SMALL, gravity=(0.0, 0.0, 0.0)),
    "gravity taken out": lambda: RobotModel(SEVEN, effort_gravity="compensated"),
    "wrench, gravity taken out": lambda: RobotModel(
        SMALL, target="wrench", sensor_frame="boom_sensor", effort_gravity="compensated"
    ),
}


@pytest.fixture(scope="module", params=MODELS.values(), ids=MODELS.keys())
def model(request: pytest.FixtureRequest) -> RobotModel:
    return request.param()


# --- the reduced regressor ------------------------------------------------------------------


def test_reduced_columns_are_independent_and_span_all(model: RobotModel) -> None:
    q, dq, ddq = states(model, 400)
    stops = np.random.default_rng(3).uniform(-1.0, 1.0, (400, model.n_stops))
    reduced = model.regressors(q, dq, ddq, stops).reshape(-1, model.n_parameters)
    reduced = reduced / np.linalg.norm(reduced, axis=0)
    inertial = [model.inertial_regressor(*state) for state in zip(q, dq, ddq, strict=True)]
    stack = np.hstack([np.vstack(inertial), reduced])
    lengths = np.linalg.norm(stack, axis=0)
    lengths[lengths < 1e-12] = 1.0  # mere rounding: such a column is zero
    singular = np.linalg.svd(stack / lengths, compute_uv=False)
    assert np.count_nonzero(singular > 1e-9 * singular[0]) == model.n_parameters
    assert np.linalg.matrix_rank(reduced, tol=1e-4) == model.n_parameters


def test_any_full_parameters_have_base_parameters(model: RobotModel) -> None:
    full = np.random.default_rng(1).standard_normal(len(model.full_labels))
    n_inertial = model.inertial_prior.size
    full[n_inertial:] = 0
    for state in zip(*states(model), strict=True):
        expected = model.inertial_regressor(*state) @ full[:n_inertial]
        actual = model.regressor(*state) @ model.base.project(full)
        np.testing.assert_allclose(actual, expected, atol=1e-9)


def test_batch_equals_single(model: RobotModel) -> None:
    q, dq, ddq = states(model)
    batch = model.regressors(q, dq, ddq)
    assert batch.shape == (20, model.n_axes, model.n_parameters)
    single = [model.regressor(*state) for state in zip(q, dq, ddq, strict=True)]
    np.testing.assert_array_equal(batch, single)  # each call returns a new array


def test_every_column_has_its_own_name(model: RobotModel) -> None:
    assert len(model.labels) == model.n_parameters == len(model.prior)
    assert len(set(model.labels)) == model.n_parameters
    assert max(map(len, model.labels)) <= 80


# --- columns beside the inertial ones -------------------------------------------------------


def test_friction_columns_survive_on_their_own_row() -> None:
    model = RobotModel(SMALL, coulomb_velocity=0.1)
    q, dq, ddq = states(model)[:, 0]
    regressor = model.regressor(q, dq, ddq)
    for i, joint in enumerate(model.joint_names):
        viscous = regressor[:, model.labels.index(f"viscous {joint}")]
        coulomb = regressor[:, model.labels.index(f"coulomb {joint}")]
        np.testing.assert_allclose(viscous, np.eye(4)[i] * dq[i])
        np.testing.assert_allclose(coulomb, np.eye(4)[i] * math.tanh(dq[i] / 0.1))


def test_prior_of_friction_and_offsets_is_zero() -> None:
    model = RobotModel(SMALL)
    for label, value in zip(model.labels, model.prior, strict=True):
        if label.startswith(("viscous", "coulomb", "offset", "rotor_inertia")):
            assert value == 0


def test_rotor_inertia_of_the_first_joint_joins_its_inertia() -> None:
    """Joint 1's row has no other column in ddq_1 alone: no motion could tell them apart."""
    labels = RobotModel(SMALL).labels
    assert not any(label.startswith("rotor_inertia slew") for label in labels)
    assert any("+ rotor_inertia slew" in label for label in labels)
    assert "rotor_inertia grip" in labels


def test_effects_can_be_left_out() -> None:
    none = {"viscous": False, "coulomb": False, "offset": False, "rotor_inertia": False}
    model = RobotModel(SMALL, **none, presliding=())
    assert model.full_labels == RobotModel(SMALL).full_labels[:40]
    offsets = [f"offset {axis}" for axis in ("fx", "fy", "fz", "tx", "ty", "tz")]
    wrench = RobotModel(SMALL, target="wrench", sensor_frame="boom")
    assert list(wrench.labels[-6:]) == offsets
    np.testing.assert_array_equal(wrench.regressor(*states(wrench)[:, 0])[:, -6:], np.eye(6))


# --- joints ---------------------------------------------------------------------------------


def test_links_may_be_called_as_joints_are() -> None:
    """As on public robots; with some joints locked, before and behind those that are learned."""
    text = SMALL
    for link, joint in (("column", "slew"), ("boom", "boom_sensor"), ("gripper", "grip")):
        text = text.replace(f'"{link}"', f'"{joint}"')
    options: dict[str, object] = {
        "joints": ("lift", "reach"),
        "locked": {"slew": 0.3, "grip": -0.2},
    }
    model, same = RobotModel(text, **options), RobotModel(SMALL, **options)  # type: ignore[arg-type]
    np.testing.assert_array_equal(model.inertial_prior, same.inertial_prior)
    names = [name for links in model.links for name, _ in links]
    assert names == ["boom_root", "boom_sensor", "mark", "slider", "grip"]


def test_joints_follow_the_order_asked_for() -> None:
    names = ("grip", "slew", "reach", "lift")
    model, ordered = RobotModel(SMALL, joints=names), RobotModel(SMALL)
    assert ordered.joint_names == ("slew", "lift", "reach", "grip")
    assert model.joint_names == model.axes == names


def test_a_continuous_joint_takes_an_angle() -> None:
    """A full turn changes nothing, half a turn under a tilted gravity does."""
    model = RobotModel(SMALL, gravity=(3.0, 0.0, -9.0))
    q, dq, ddq = states(model)[:, 0]
    turn = np.array([2 * math.pi, 0, 0, 0])
    here = model.inverse_dynamics(q, dq, ddq)
    np.testing.assert_allclose(model.inverse_dynamics(q + turn, dq, ddq), here, atol=1e-12)
    assert abs(model.inverse_dynamics(q + turn / 2, dq, ddq) - here).max() > 0.1


def test_mimic_and_fixed_joints_are_not_learned_by_default() -> None:
    mimic = SMALL.replace('<axis xyz="1 1 0"/>', '<axis xyz="1 1 0"/><mimic joint="lift"/>')
    assert RobotModel(mimic).joint_names == ("slew", "lift", "reach")
    assert RobotModel(mimic, joints=("lift", "grip")).n_joints == 2


# --- gravity and the sensor -----------------------------------------------------------------


def test_sensor_at_rest_reads_the_weight_held_up() -> None:
    """f = -m g in the sensor frame: 0.83 kg of hand and finger hang down, z points down."""
    model = RobotModel(
        SEVEN, target="wrench", sensor_frame="wrist_sensor", joints=("joint2", "joint6")
    )
    assert model.bodies == ("hand",)  # neither joint lies beyond the sensor: one lump
    wrench = model.inverse_dynamics([0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
    np.testing.assert_allclose(wrench[:3], [0, 0, -0.83 * 9.81], atol=1e-12)


@pytest.mark.parametrize("joint", ["joint1", "joint3", "joint6", "finger_joint"])
def test_joint_effort_is_the_wrench_along_its_axis(joint: str) -> None:
    joints = tuple(f"joint{i}" for i in range(1, 8)) + ("finger_joint",)
    effort = RobotModel(SEVEN, joints=joints)
    wrench = RobotModel(SEVEN, target="wrench", joints=joints, sensor_frame=joint)
    component = 1 if joint == "finger_joint" else 5  # prismatic along y; revolute about z
    for state in states(effort).transpose(1, 0, 2):
        expected = effort.inverse_dynamics(*state)[joints.index(joint)]
        np.testing.assert_allclose(wrench.inverse_dynamics(*state)[component], expected)


def test_a_sensor_splits_its_link() -> None:
    """The reading before the cut is the reading at the cut plus what lies between."""
    options = {"target": "wrench", "joints": ("slew",), "gravity": (1.0, 2.0, -9.0)}
    at_boom = RobotModel(SMALL, sensor_frame="boom_sensor", **options)
    at_lift = RobotModel(SMALL, sensor_frame="lift", **options)
    assert at_boom.inertial_prior[0] == pytest.approx(1.1 + 0.5 + 0.3)
    assert at_lift.inertial_prior[0] == pytest.approx(0.8 + 1.1 + 0.5 + 0.3)


# --- refusals -------------------------------------------------------------------------------


def test_wrong_sizes_are_refused() -> None:
    model = RobotModel(SMALL)
    q = np.zeros(4)
    for state in ((q[:3], q, q), (q, np.zeros(5), q), (q, q, np.zeros((1, 4)))):
        with pytest.raises(SampleError, match="4 joints"):
            model.regressor(*state)
    with pytest.raises(SampleError, match=r"\(n, 4\)"):
        model.regressors(np.zeros((2, 4)), np.zeros((3, 4)), np.zeros((2, 4)))
    with pytest.raises(SampleError, match=r"\(n, 4\)"):
        model.regressors(q, q, q)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"joints": ("slwe",)}, "no joint 'slwe'; did you mean 'slew'.*lift, reach, grip"),
        ({"joints": ("slew", "slew")}, "'slew' is named twice"),
        ({"joints": ("boom_sensor",)}, "'boom_sensor' is fixed: only joints with one degree"),
        ({"locked": {"lfit": 0.1}, "joints": ("slew",)}, "did you mean 'lift'"),
        ({"locked": {"lift": 0.1}}, "both learned and locked"),
        ({"locked": {"lift": math.nan}, "joints": ("slew",)}, "can't be locked at nan"),
        ({"target": "wrench"}, "needs 'sensor_frame'.*: --set sensor_.*, at a node -p sensor_"),
        ({"target": "wrench", "sensor_frame": "bom_sensor"}, "did you mean 'boom_sensor'"),
        ({"target": "wrench", "sensor_frame": "base"}, "root: nothing carries it"),
        ({"target": "wrench", "sensor_frame": "mark"}, "'boom_sensor' lies in the same place"),
    ],
)
def test_what_the_urdf_lacks_is_said(options: dict[str, object], message: str) -> None:
    with pytest.raises(RobotModelError, match=message):
        RobotModel(SMALL, **options)


def test_a_gravity_of_other_than_three_numbers_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="needs 3 numbers"):
        RobotModel(SMALL, gravity=(0.0, -9.81))


def test_overrides_change_the_configuration_given() -> None:
    config = RobotConfig(joints=("lift", "grip"), viscous=False)
    model = RobotModel(SMALL, config, coulomb=False)
    assert model.joint_names == ("lift", "grip")
    assert not any(label.startswith(("viscous", "coulomb")) for label in model.full_labels)
    assert config.coulomb


def test_text_and_file_are_the_same_robot() -> None:
    text, file = RobotModel(SMALL), RobotModel(ARMS / "small_arm.urdf")
    assert text.urdf_sha256 == file.urdf_sha256 == hashlib.sha256(SMALL.encode()).hexdigest()
    assert text.fingerprint() == file.fingerprint()
    np.testing.assert_array_equal(text.prior, file.prior)


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    """Neither on a URDF that strict parsers complain of, nor on one that they refuse."""
    mesh = '<visual><geometry><mesh filename="package://none/arm.stl"/></geometry></visual>'
    odd = SMALL.replace('<link name="mark"/>', f'<link name="mark">{mesh}</link>')
    odd = odd.replace('<limit lower="-2" upper="2" effort="87" velocity="2"/>', "")
    assert odd != SMALL
    RobotModel(odd)
    with pytest.raises(RobotModelError):
        RobotModel(odd.replace('child link="grip', 'child link="nowhere'))
    assert capfd.readouterr() == ("", "")


def test_the_last_two_joints_that_turn_may_share_a_motor() -> None:
    assert RobotModel(SMALL).couplings == ()  # its hand turns behind a joint that slides
    model = RobotModel((ARMS / "seven_joint_arm.urdf").read_text())
    a, b = model.joint_names[5:7]  # the finger slides
    assert model.couplings == (f"{a}+{b}", f"{a}-{b}")
    takes = dict(zip(model.labels, model.dissipative, strict=True))
    assert takes[f"coulomb {a}+{b}"] and takes[f"coulomb {a}-{b}"]
    # Of two viscous motors only the difference shows beside the joints' own: of any sign.
    assert not takes[f"viscous {a}+{b} - viscous {a}-{b}"]


def test_coupled_joints_are_named_by_the_user_and_checked() -> None:
    plain = RobotModel(SMALL)
    first, second = plain.joint_names[:2]
    coupled = RobotModel(SMALL, coupled_joints=[f"{first}+{second}"])
    assert coupled.couplings == (f"{first}+{second}",)
    assert f"viscous {first}+{second}" in coupled.labels
    with pytest.raises(RobotModelError, match="coupled_joints is not two learned joints"):
        RobotModel(SMALL, coupled_joints=[f"{first}*{second}"])


# --- what a ridge expects -------------------------------------------------------------------


def test_a_body_carries_what_pinocchio_finds_on_the_mean_over_postures() -> None:
    """Its composite bodies at all quarters of the joints' turns."""
    robot = RobotModel(SMALL)
    model = robot.kinematics
    data, places = model.createData(), []
    for joint in model.joints.tolist()[1:]:
        turns = [(0.5 * math.pi * k,) for k in range(4)]
        circle = [(math.cos(x), math.sin(x)) for (x,) in turns]
        slides = joint.shortname().startswith("JointModelP")
        places.append(circle if joint.nq == 2 else [(0.0,)] if slides else turns)
    found = []
    for posture in itertools.product(*places):
        pin.crba(model, data, np.concatenate(posture))
        bodies = [Y.toDynamicParameters() for Y in data.Ycrb.tolist()[1:]]
        found.append([pseudo_inertia(body) for body in bodies])
    order = [model.getJointId(name) - 1 for name in robot.joint_names]
    expected = np.mean(found, axis=0)[order]
    np.testing.assert_allclose(robot.carried_bodies(), expected, atol=1e-12)


def test_the_ridge_on_bodies_does_not_depend_on_which_parameters_are_kept() -> None:
    """It is the least that bodies of the same base parameters cost, in any order of the joints."""
    none = {"viscous": False, "coulomb": False, "offset": False, "rotor_inertia": False}
    found = []
    for joints in (RobotModel(SMALL).joint_names, RobotModel(SMALL).joint_names[::-1]):
        robot = RobotModel(SMALL, joints=joints, presliding=(), **none)
        found.append(np.linalg.norm(expected_scales(robot).root() @ robot.prior) ** 2)
        bodies = robot.carried_bodies()
        parts = np.split(robot.base.combination, len(bodies), axis=1)
        moves = [part @ body_spreads(body).T for part, body in zip(parts, bodies, strict=True)]
        least = np.linalg.lstsq(np.hstack(moves), robot.prior, rcond=None)[0]
        np.testing.assert_allclose(found[-1], 0.5 * BODY_WEIGHT * least @ least, rtol=1e-9)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


def test_a_urdf_without_mass_has_a_ridge_by_columns() -> None:
    scales = expected_scales(RobotModel(re.sub('<mass value="[^"]*"', '<mass value="0"', SMALL)))
    sizes = np.diag(scales.root())  # some have two steps, a rotor's and a body's
    assert np.all(sizes > 0.7 * scales.column) and np.all(sizes < 1.001 * scales.column)
    np.testing.assert_allclose(scales.root(), np.diag(sizes), rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(scales.parameter(), 1.0 / scales.column, rtol=0.5)


def test_a_link_without_mass_counts_as_the_mean_of_the_others() -> None:
    """Its parameters are not held to be as nothing."""
    last = SMALL.rindex("<inertial")
    end = SMALL.index("</inertial>", last) + len("</inertial>")
    bare = RobotModel(SMALL[:last] + SMALL[end:], loaded=False)  # its joint would have no load
    whole = RobotModel(SMALL, loaded=False)
    (body,) = np.flatnonzero(bare.inertial_prior.reshape(-1, 10)[:, 0] == 0.0)
    assert whole.inertial_prior.reshape(-1, 10)[body, 0] > 0.0
    P = bare.carried_bodies()[body]
    masses = np.delete(bare.inertial_prior.reshape(-1, 10)[:, 0], body)
    assert P[3, 3] == pytest.approx(masses.mean())
    assert np.linalg.eigvalsh(P)[0] > 0.0 and not P[:3, 3].any()
    assert np.all(expected_scales(bare).parameter() > 0.1 * expected_scales(whole).parameter())
