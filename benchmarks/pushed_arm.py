"""A picture of the markers: the iCub's arm pushed in MuJoCo, the true and the estimated force.

The arm moves and is learned by its force-torque sensor; then three pushes come. Each is drawn while
it lasts, by MuJoCo's renderer: green the force that acts, orange the arrow and the ellipsoid of
`~/markers`. A machine without a screen needs MUJOCO_GL=egl or osmesa.

    MUJOCO_GL=egl python benchmarks/pushed_arm.py --out docs/pushed_arm.png
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np
import pinocchio as pin
from PIL import Image
from visualization_msgs.msg import Marker

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.changes.external_wrench import ExternalWrench, FrameMotion
from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig
from semiparam_dynamics.learner.learner import Step
from semiparam_dynamics.learner.nodes.markers import METRES_PER_N, wrench_markers
from semiparam_dynamics.learner.nodes.session import Session
from semiparam_dynamics.robot.urdf import parse_urdf
from semiparam_dynamics.simulation.arm import ArmSimulator, simulated
from semiparam_dynamics.simulation.urdf import ICUB_HAND as HAND

LEARN = 40.0  # s before the first push
PUSHES = ((20.0, 0.0, 0.0), (0.0, 25.0, 0.0), (0.0, -10.0, 20.0))  # N, along the base's axes
LASTS, BETWEEN = 1.0, 3.0  # s
SIZE = 480  # pixels
GREY, GREEN = (0.55, 0.58, 0.62, 1.0), (0.1, 0.7, 0.2, 1.0)
SCENE = f"""
<mujoco>
  <visual><global offwidth="{SIZE}" offheight="{SIZE}"/><headlight ambient=".5 .5 .5"/></visual>
  <asset>
    <texture type="skybox" builtin="flat" rgb1="1 1 1" rgb2="1 1 1" width="8" height="8"/>
  </asset>
  <worldbody><light pos="0 0 3"/></worldbody>
</mujoco>
"""


class Instant(NamedTuple):
    """An instant to draw: positions in the base's frame."""

    joints: list[Array]
    acts: tuple[Array, Array]  # from, to
    markers: list[Marker]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("pushed_arm.png"))
    arguments = parser.parse_args()
    pictures = [drawn(instant) for instant in instants()]
    Image.fromarray(np.concatenate(pictures, axis=1)).save(arguments.out)


def instants() -> Iterator[Instant]:
    """The middle of each push."""
    arm = ArmSimulator(rate=200.0)
    base = "root_link"
    config = replace(
        InverseDynamicsNodeConfig(),
        target="wrench",
        joints=arm.joint_names,
        sensor_frame=arm.sensor_frame,
        external_frame=HAND,
        external_axes=base,
        defer_learning=False,
        changes__detect=True,
    )
    session = Session(arm.urdf, config)
    learner, external, source = session.learner, session.external, simulated(arm, "wrench")
    tree = parse_urdf(arm.urdf)
    links = [tree.joints[name].child for name in arm.joint_names]
    places = [FrameMotion(session.model, link, base) for link in (*links, HAND)]

    def until(end: float) -> Step:
        for measurement in source:
            if (step := learner.predict(measurement)) is not None:
                learner.update(learner.admit(step))
                if measurement.stamp * 1e-9 >= end:
                    return step
        raise AssertionError

    until(now := LEARN)
    for push in PUSHES:
        arm.hand.push(np.array(push))
        step = until(now + 0.5 * LASTS)
        yield instant(step, np.array(push), external, [p.origin(step.sample.q) for p in places])
        until(now + LASTS)
        arm.hand.push(np.zeros(3))
        until(now := now + LASTS + BETWEEN)


def instant(step: Step, push: Array, external: ExternalWrench, joints: list[Array]) -> Instant:
    """The arm's joints at a step, with the estimated and the true force."""
    left, std = step.y - step.prediction.semiparametric, step.prediction.semiparametric_std
    estimate = external.estimate(step.sample.q, left, std, step.stamp)
    shown = wrench_markers(external, step.sample.q, estimate)
    error = float(np.linalg.norm(estimate.value[:3] - push))
    print(f"acts {push} N, estimated {estimate.value[:3].round(1)} N, off by {error:.2f} N")
    origin = external.origin(step.sample.q)
    return Instant(joints, (origin, origin + METRES_PER_N * push), shown)


def drawn(shown: Instant) -> Array:
    """The picture (SIZE, SIZE, 3), by MuJoCo."""
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    camera = mujoco.MjvCamera()
    camera.lookat, camera.distance = shown.joints[-1], 1.0
    camera.azimuth, camera.elevation = 200.0, -20.0
    with mujoco.Renderer(model, SIZE, SIZE) as renderer:
        renderer.update_scene(data, camera)
        scene = renderer.scene
        scene.flags[mujoco.mjtRndFlag.mjRND_HAZE] = 0
        for one, next_one in pairwise(shown.joints):
            add(scene, mujoco.mjtGeom.mjGEOM_CAPSULE, 0.014, one, next_one, GREY)
        add(scene, mujoco.mjtGeom.mjGEOM_ARROW, 0.012, *shown.acts, GREEN)
        for marker in shown.markers:
            c = marker.color
            color = (c.r, c.g, c.b, c.a)
            if marker.type == Marker.ARROW:
                begin, end = (np.array([p.x, p.y, p.z]) for p in marker.points)
                add(scene, mujoco.mjtGeom.mjGEOM_ARROW, 0.012, begin, end, color)
            else:
                place, s, r = marker.pose.position, marker.scale, marker.pose.orientation
                turn = pin.Quaternion(np.array([r.x, r.y, r.z, r.w])).matrix()
                geom = scene.geoms[scene.ngeom]
                half = np.array([s.x, s.y, s.z]) / 2.0
                center = np.array([place.x, place.y, place.z])
                kind = mujoco.mjtGeom.mjGEOM_ELLIPSOID
                mujoco.mjv_initGeom(geom, kind, half, center, turn.ravel(), np.float32(color))
                scene.ngeom += 1
        picture: Array = renderer.render()
    return picture


def add(scene: Any, kind: Any, width: float, begin: Array, end: Array, color: Any) -> None:
    """Add a capsule or an arrow between two points."""
    if kind == mujoco.mjtGeom.mjGEOM_ARROW:
        end = 2.0 * end - begin  # it is drawn half as long as a connector is
    geom = scene.geoms[scene.ngeom]
    blank = np.zeros(3), np.zeros(3), np.eye(3).ravel()
    mujoco.mjv_initGeom(geom, kind, *blank, np.float32(color))
    mujoco.mjv_connector(geom, kind, width, begin, end)
    scene.ngeom += 1


if __name__ == "__main__":
    main()
