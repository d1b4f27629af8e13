"""Wrenches at the tools of simulated arms, before and after a kilogram is picked up.

    python benchmarks/external_wrench_arms.py DATA [--arms ur10 xmate7p airbot seven]

DATA holds robots. MuJoCo moves each arm by a controller that follows a motion which does not
repeat, with friction, soft gears and noise as in contact.py. After a minute that is learned, known
wrenches act at the tool, in base axes, as in external_wrench.py, whose methods and figures these
are. Then a kilogram is fixed to the tool, 5 cm before it, and ten seconds later they go on.

Two learners see the same messages. One stays as it is after the first minute: the load's own
weight and inertia are part of the wrench, for it and for all methods beside it; `load told` is the
same model with what they need taken off, so that they are not. The other goes on learning with
`changes.detect`, which is to keep pushes out of what is learned and weighs the load, whose weight
then is no part of the wrench.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from arms import SEVEN, SMALL_EFFECTS
from changes import UR10, learner_of
from external_wrench import (
    HOLD,
    OWN,
    SETTLED,
    Methods,
    drawn_wrenches,
    header,
    lstm,
    say_what_is_missing,
)

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.changes.external_wrench import tool_frame
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.learner.learner import InverseDynamicsLearner, Step
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.urdf import parse_urdf
from semiparam_dynamics.simulation.arm import ArmSimulator, simulated

LEARN, PICKED = 60.0, 10.0  # s before the first wrench, and between the load and the next
MASS, CENTER = 1.0, np.array([0.0, 0.0, 0.05])  # kg, m from the tool's frame
INERTIA = 1e-3 * np.eye(3)  # kg m^2
MOTION = {"motion": "exciting", "max_velocity": 1.0, "excitation": 0.4, "period": 300.0}
SMALL = {key.replace(".", "__"): value for key, value in SMALL_EFFECTS.items()}
ARMS: dict[str, tuple[str, dict[str, Any]]] = {
    "ur10": ("ur10/ur10_robot.urdf", UR10),
    "xmate7p": ("xmate7p/xmate7p.urdf", UR10),
    "airbot": ("airbot/airbot.urdf", SMALL),
    "seven": ("", SMALL),
}
JOINTS = {"airbot": 6, "seven": 7}  # the first ones of these


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--arms", nargs="+", choices=tuple(ARMS), default=list(ARMS))
    parser.add_argument("--seconds", type=float, default=60.0, help="of wrenches, twice")
    parser.add_argument("--learn", type=float, default=LEARN, help="s before them")
    args = parser.parse_args()
    say_what_is_missing()
    header("arm, load")
    for name in args.arms:
        tell(name, args)


def tell(name: str, args: argparse.Namespace) -> None:
    """The rows of an arm."""
    arm = arm_of(name, args.data)
    base = parse_urdf(arm.urdf).root
    frozen = learner_of(arm, **{"changes.detect": False})
    going_on = learner_of(arm)
    train: list[Sample] = []
    for step, other in along(arm, frozen, going_on, 0.0, args.learn):
        train.append(step.sample)
        frozen.update(frozen.admit(step))
        going_on.update(going_on.admit(other))
    now = args.learn
    for load in ("none", "1 kg"):
        if load != "none":
            arm.hand.attach(MASS, CENTER, INERTIA)
            for _, other in along(arm, frozen, going_on, now, now + PICKED):
                going_on.update(going_on.admit(other))
            now += PICKED
        methods, told, watching = (Methods(frozen.model, base) for _ in range(3))
        kinds = methods, told, watching
        counted(arm, (frozen, going_on), kinds, train, now, args.seconds, load)
        now += args.seconds
        methods.tell(f"{name}, {load}")
        told.tell(f"{name}, {load} told")
        watching.tell(f"{name}, {load}, changes.detect")
    assert going_on.changes is not None
    weighed = going_on.changes.payload
    said = "none" if weighed is None else f"{weighed.mass:.2f} kg"
    print(f"| {name} | payload told: {said} | | | | | | |", flush=True)


def arm_of(name: str, data: Path) -> ArmSimulator:
    """The simulated arm, its hand where wrenches are told."""
    path, effects = ARMS[name]
    urdf = (data / "robots" / path).read_text() if path else SEVEN.read_text()
    joints = tuple(j.name for j in parse_urdf(urdf).below(parse_urdf(urdf).root) if j.actuated)
    joints = joints[: JOINTS.get(name, len(joints))]
    tool = tool_frame(parse_urdf(urdf), joints)
    values = effects | MOTION | {"hand_frame": tool, "joints": joints, "rate": 100.0}
    return ArmSimulator(urdf, **values)


def along(
    arm: ArmSimulator,
    frozen: InverseDynamicsLearner,
    going_on: InverseDynamicsLearner,
    begin: float,
    end: float,
    wrenches: Array | None = None,
) -> Iterator[tuple[Step, Step]]:
    """Each sample up to a time (s), predicted by both; wrenches (n, 6) act from `begin` on."""
    acting = -1
    for measurement in simulated(arm, "effort"):
        now = measurement.stamp * 1e-9
        one, other = frozen.predict(measurement), going_on.predict(measurement)
        if one is not None and other is not None:
            yield one, other
        if wrenches is not None and (hold := int((now - begin) / HOLD)) != acting:
            acting = hold
            w = wrenches[hold] if hold < len(wrenches) else np.zeros(6)
            arm.hand.push(w[:3], moment=w[3:])
        if now >= end:
            break
    arm.hand.push(np.zeros(3))


def counted(
    arm: ArmSimulator,
    learners: tuple[InverseDynamicsLearner, InverseDynamicsLearner],
    kinds: tuple[Methods, Methods, Methods],
    train: list[Sample],
    begin: float,
    seconds: float,
    load: str,
) -> None:
    """Let wrenches act for so long, and find them."""
    frozen, going_on = learners
    methods, told, watching = kinds
    wrenches = drawn_wrenches(int(seconds / HOLD), seed=0 if load == "none" else 1)
    both = []
    for step, other in along(arm, frozen, going_on, begin, begin + seconds, wrenches):
        both.append((step, other))
        going_on.update(going_on.admit(other))
    held = Load(frozen.model, methods.motion.frame) if load != "none" else None
    config = frozen.config
    recurrent = lstm(frozen.model, config, train, [step.sample for step, _ in both])
    for (step, other), network in zip(both, recurrent, strict=True):
        since = step.stamp * 1e-9 - begin
        sample, p = step.sample, step.prediction
        urdf = frozen.model.inverse_dynamics(sample.q, sample.dq, sample.ddq)
        efforts: dict[str, Any] = {"URDF": (urdf, None)}
        efforts |= {"rigid body": (p.rigid_body, p.rigid_body_std)} | network
        efforts |= {OWN: (p.semiparametric, p.semiparametric_std)}
        applied, acts = None, False
        hold = int(since / HOLD)
        if since >= 0.0 and since % HOLD >= SETTLED and hold < len(wrenches):
            applied = wrenches[hold]
            acts = bool(applied.any())
        whole = applied
        if held is not None:
            weight = held.wrench(sample)
            whole = None if applied is None else applied + weight
            lifting = p.semiparametric - methods.motion.jacobian(sample.q).T @ weight
            told.find(sample, {OWN: (lifting, p.semiparametric_std)}, applied, acts)
        methods.find(sample, efforts, whole, acts or held is not None)
        p = other.prediction
        mine = {OWN: (p.semiparametric, p.semiparametric_std)}
        watching.find(other.sample, mine, applied, acts)


class Load:
    """What a body fixed to a frame exerts on the robot, by its weight and inertia."""

    def __init__(self, model: RobotModel, frame: str) -> None:
        self._model, self._data = model.kinematics, model.kinematics.createData()
        self._frame = self._model.getFrameId(frame, pin.FrameType.BODY)
        self._body = pin.Inertia(MASS, CENTER, INERTIA)

    def wrench(self, sample: Sample) -> Array:
        """(6,) about the frame's origin, in base axes, at a sample's state."""
        model, data = self._model, self._data
        pin.forwardKinematics(model, data, sample.q, sample.dq, sample.ddq)
        place = pin.updateFramePlacement(model, data, self._frame)
        velocity = pin.getFrameVelocity(model, data, self._frame, pin.LOCAL)
        acceleration = pin.getFrameAcceleration(model, data, self._frame, pin.LOCAL)
        acceleration = acceleration - place.actInv(model.gravity)
        force = self._body * acceleration + velocity.cross(self._body * velocity)
        turn = place.rotation
        return -np.concatenate((turn @ force.linear, turn @ force.angular))


if __name__ == "__main__":
    main()
