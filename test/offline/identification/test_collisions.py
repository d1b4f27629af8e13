"""Distances along motions: against all pairs at finer times, and shapes whose distance is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from semiparam_dynamics.base.errors import ConfigurationError, RobotModelError
from semiparam_dynamics.offline.identification.collisions import CollisionConfig, Collisions
from semiparam_dynamics.offline.identification.excitation import (
    ExcitationConfig,
    optimize_excitation,
)
from semiparam_dynamics.offline.identification.joint_motion import FourierTrajectory, motion_limits
from semiparam_dynamics.robot.model import RobotModel


def link(name: str, shape: str, at: str = "0 0 0.2") -> str:
    inertia = '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/>'
    return (
        f'<link name="{name}"><inertial><origin xyz="{at}"/><mass value="1"/>{inertia}</inertial>'
        f'<collision><origin xyz="{at}"/><geometry>{shape}</geometry></collision></link>'
    )


def joint(name: str, parent: str, child: str, at: str, kind: str = "revolute") -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{at}"/><axis xyz="0 1 0"/>'
        '<limit lower="-3" upper="3" effort="100" velocity="2"/></joint>'
    )


ROD, HEAD = '<cylinder radius="0.03" length="0.4"/>', '<sphere radius="0.05"/>'
# Three rods in a plane, each 0.4 m long, that can fold back to the post and down to the floor.
ARM = (
    "<robot name='rods'>"
    + link("post", '<box size="0.1 0.1 0.3"/>', "0 0 0.15")
    + joint("j1", "post", "upper", "0 0 0.35")
    + link("upper", ROD)
    + joint("j2", "upper", "fore", "0 0 0.45")
    + link("fore", ROD)
    + joint("j3", "fore", "head", "0 0 0.45", "continuous")
    + link("head", HEAD, "0 0 0.08")
    + "</robot>"
)


def made(text: str = ARM, **options: object) -> tuple[RobotModel, Collisions]:
    model = RobotModel(text)
    return model, Collisions(model, CollisionConfig(**options))


def motion(seed: int, n: int = 3, size: float = 0.5) -> FourierTrajectory:
    return FourierTrajectory(size * np.random.default_rng(seed).standard_normal((5, n)), 4.0)


def test_the_pairs_are_those_that_can_meet() -> None:
    _, collisions = made()
    assert set(collisions.pairs) == {
        ("post", "fore"),
        ("post", "head"),
        ("upper", "head"),
        ("upper", "the floor"),
        ("fore", "the floor"),
        ("head", "the floor"),
    }
    assert collisions.floor == 0.0 and not collisions.notes


def test_distances_of_a_ball_from_the_floor_are_its_height() -> None:
    model, collisions = made(ARM.replace(ROD, '<sphere radius="0.01"/>'), floor="-0.5")
    q = np.array([[2.0, 0.5, -0.3], [0.1, 0.2, 0.3], [2.6, 0.1, 0.0]])
    angles = q.cumsum(axis=1)
    height = 0.35 + 0.45 * np.cos(angles[:, 0]) + 0.45 * np.cos(angles[:, 1])
    height += 0.08 * np.cos(angles[:, 2]) + 0.5 - 0.05
    found = [collisions._distances(row)[collisions.pairs.index(("head", "the floor"))] for row in q]
    np.testing.assert_allclose(found, height, atol=1e-9)
    assert model.n_joints == 3


def test_a_capsule_is_the_cylinder_around_it() -> None:
    """URDF 1.1; its length is that between the balls' centres."""
    capsule, cylinder = '<capsule radius="0.03" length="0.34"/>', ROD
    _, collisions = made(ARM.replace(cylinder, capsule))
    _, same = made()
    q = np.array([0.4, 0.7, -0.2])
    np.testing.assert_allclose(collisions._distances(q), same._distances(q), atol=1e-9)
    with pytest.raises(RobotModelError, match="capsule of link 'upper' needs a radius"):
        made(ARM.replace(cylinder, capsule.replace("0.34", "long")))


@pytest.mark.parametrize("seed", range(6))
def test_the_nearest_is_that_of_every_pair_at_fine_times(seed: int) -> None:
    """Brute force: pinocchio's computeDistances of all pairs on its own model, 4000 times."""
    _, collisions = made(floor="none", clearance=0.0)
    trajectory = motion(seed)
    arm = pin.buildModelFromXML(ARM.replace('type="continuous"', 'type="revolute"'))
    shapes = pin.buildGeomFromUrdfString(arm, ARM, pin.COLLISION)
    names = [shape.name.removesuffix("_0") for shape in shapes.geometryObjects]
    for pair in [("post", "fore"), ("post", "head"), ("upper", "head")]:
        shapes.addCollisionPair(pin.CollisionPair(*(names.index(name) for name in pair)))
    data, distances = arm.createData(), shapes.createData()
    lowest = np.inf
    for q in trajectory(np.linspace(0.0, 4.0, 4000))[0]:
        pin.computeDistances(arm, data, shapes, distances, q)
        lowest = min(lowest, *(result.min_distance for result in distances.distanceResults))
    found = collisions.nearest(trajectory)
    assert found.distance == pytest.approx(lowest, abs=2e-3)
    assert found.margin == pytest.approx(found.distance)


def test_a_touch_between_the_instants_is_found() -> None:
    """The arm sweeps past the floor within a fraction of a second, one time in a period."""
    _, collisions = made(floor="-0.2", clearance=0.0)
    fast = np.zeros((21, 3))
    fast[0] = [0.9, 0.0, 0.0]
    fast[[5, 10], 0] = 0.8  # sines of 5 and 10 times the base frequency
    trajectory = FourierTrajectory(fast, 20.0)
    q = trajectory(np.linspace(0.0, 20.0, 20001))[0]
    lowest = collisions.margins(q[np.argsort(-q[:, 0])[:200]]).min()
    assert collisions.nearest(trajectory).margin == pytest.approx(lowest, abs=1e-3)


def test_slopes_are_those_of_finite_differences() -> None:
    _, collisions = made(floor="-0.4")
    rng = np.random.default_rng(3)
    q, step = rng.uniform(-1.0, 1.0, (10, 3)), 1e-6 * rng.standard_normal((10, 3))
    pairs = range(len(collisions.pairs))
    change = collisions.smooth_margin(q + step, pairs) - collisions.smooth_margin(q - step, pairs)
    value, slope = collisions.smooth_margin(q, pairs), collisions.smooth_slope(q, pairs)
    assert np.sum(2 * step * slope) == pytest.approx(change, rel=1e-3, abs=1e-10)
    assert value <= collisions.margins(q).min()


def test_the_search_keeps_the_clearance_where_it_would_collide() -> None:
    model, collisions = made(clearance=0.03)
    config = ExcitationConfig(8.0, 3, starts=1, iterations=25, seed=2)
    limits = motion_limits(ARM, model)
    free = optimize_excitation(model, model, limits, config)
    assert collisions.nearest(free.trajectory).margin < 0.0  # else nothing is tested
    kept = optimize_excitation(model, model, limits, config, collisions=collisions)
    assert kept.approach is not None and kept.approach.margin >= 0.0 and kept.use.kept
    times = np.linspace(0.0, 8.0, 1000)
    assert collisions.margins(kept.trajectory(times)[0]).min() >= -1e-3
    assert kept.condition <= kept.start_condition
    assert kept.approach.text().startswith(f"smallest distance {kept.approach.distance:.3f} m")


def test_no_floor_where_the_base_stands_on_none() -> None:
    hanging, model = CollisionConfig(), RobotModel(ARM, gravity=(0.0, 0.0, 9.81))
    assert Collisions(model, hanging).floor is None
    assert "tilted" in Collisions(model, hanging).notes[0]
    deep = ARM.replace('<origin xyz="0 0 0.15"/>', '<origin xyz="0 0 -0.15"/>')
    assert made(deep)[1].floor is None
    assert made(deep, floor="-0.3")[1].floor == -0.3
    with pytest.raises(ConfigurationError, match="height in m"):
        made(floor="low")


def test_where_everything_collides_it_is_said() -> None:
    model, collisions = made()
    down = motion_limits(ARM, model, ranges={"j1": (2.7, 2.9)})
    with pytest.raises(ConfigurationError, match=r"no posture free of collisions.*the floor"):
        optimize_excitation(model, model, down, ExcitationConfig(8.0, 2), collisions=collisions)


def test_a_slide_without_limits_in_the_urdf_goes_as_far_as_its_range() -> None:
    """A rotary joint's lever arm is finite then, so that the search for the nearest ends."""
    limited = 'lower="-3" upper="3" '
    slide = joint("z", "fore", "head", "0 0 0.25", "prismatic").replace(limited, "")
    text = ARM[: ARM.index('<joint name="j3"')] + slide + link("head", HEAD, "0 0 0.08")
    model = RobotModel(text + "</robot>")
    limits = motion_limits(model.urdf_text, model, ranges={"z": (0.1, 0.3)})
    collisions = Collisions(model, limits=limits)
    assert np.isfinite(collisions._reach).all()
    assert (collisions._reach[1], collisions._reach[2]) == pytest.approx((0.68, 1.0))
    assert (collisions._neutral[2], collisions._middle[2]) == pytest.approx((0.1, 0.2))
    coefficients = 0.1 * np.random.default_rng(0).standard_normal((5, 3))
    coefficients[0, 2] = 0.2
    assert np.isfinite(collisions.nearest(FourierTrajectory(coefficients, 4.0)).distance)
    with pytest.raises(RobotModelError, match="'z' has no position limits"):
        Collisions(model)


def test_a_mesh_that_is_missing_is_named_and_the_others_are_checked() -> None:
    text = ARM.replace(HEAD, '<mesh filename="package://arm/head.stl"/>')
    _, collisions = made(text)
    assert "collision meshes of head can't be found" in collisions.notes[0]
    assert ("post", "fore") in collisions.pairs
    assert not any("head" in pair for pair in collisions.pairs)


def test_a_mesh_is_found_in_its_package(tmp_path: Path) -> None:
    """A tetrahedron beside a ball of its size: the distance is that of the corner."""
    corners = np.array([[0, 0, 0.2], [0.1, 0, 0], [-0.1, 0.1, 0], [-0.1, -0.1, 0]], dtype=float)
    faces = [(0, 1, 2), (0, 2, 3), (0, 3, 1), (1, 3, 2)]
    lines = [f"v {x} {y} {z}" for x, y, z in corners]
    lines += ["f " + " ".join(str(k + 1) for k in face) for face in faces]
    (tmp_path / "arm" / "meshes").mkdir(parents=True)
    (tmp_path / "arm" / "meshes" / "head.obj").write_text("\n".join(lines))
    text = ARM.replace(HEAD, '<mesh filename="package://arm/meshes/head.obj"/>')
    model = RobotModel(text)
    collisions = Collisions(model, CollisionConfig(floor="-0.1"), [tmp_path / "arm" / "urdf"])
    assert not collisions.notes
    index = collisions.pairs.index(("head", "the floor"))
    assert collisions._distances(np.zeros(3))[index] == pytest.approx(0.35 + 0.9 + 0.08 + 0.1)


def test_a_real_arm_s_meshes(simulator: None) -> None:
    """The iCub's right arm: what hangs beside the body meets it when it swings in."""
    from icub_models import get_model_file

    path = Path(str(get_model_file("iCubGazeboV2_7")))
    model = RobotModel(path, joints=("r_shoulder_pitch", "r_shoulder_roll", "r_elbow"))
    collisions = Collisions(model, CollisionConfig(), [path.parent])
    assert collisions.floor is None and len(collisions.pairs) > 100
    standing = FourierTrajectory(np.array([[0.0, 1.0, 0.5]]), 1.0)
    swinging = FourierTrajectory(np.array([[-0.3, 0.3, 1.5], [0, 0.3, 0], [0, 0, 0]]), 1.0)
    assert collisions.nearest(standing).distance > 0.0
    found = collisions.nearest(swinging)
    assert found.margin < 0.0
    q = swinging(np.linspace(0.0, 1.0, 400))[0]
    lowest = collisions.margins(q, below=0.02).min()  # beyond that, bounds are enough
    assert lowest == pytest.approx(found.margin, abs=2e-3)
