"""The simulated arm: MuJoCo's rigid-body dynamics, and the effects that a real arm adds.

The wrench is the force and moment that the part before the sensor exerts on the part behind it, in
the sensor's frame and about its origin: at rest it holds the weight of the part behind it, -m g.
Forces that act on that part past the sensor, such as a cable's, appear with their sign changed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pinocchio as pin

from semiparam_dynamics.base import parameters
from semiparam_dynamics.base.arrays import NANO
from semiparam_dynamics.base.errors import ConfigurationError, RobotModelError, SampleError
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.simulation import effects
from semiparam_dynamics.simulation import urdf as urdfs
from semiparam_dynamics.simulation.config import SimulatorConfig
from semiparam_dynamics.simulation.effects import Bypass
from semiparam_dynamics.simulation.trajectories import HandKinematics, Motion, make_trajectory

_CHUNK_STEPS = 2000  # control steps whose desired motion is computed at once


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """One instant, as measured and as it truly is. n joints; SI units.

    `q_motor` is q without noise: links plus twist, less the hysteresis. Wrenches are zero without a
    sensor. `effort` is exerted by the motors: it moves the links, accelerates the rotors and
    overcomes friction. `wrench_rigid` moves the bodies behind the sensor, and `wrench_bypass` is
    the part of it that cable and sleeve exert.
    """

    time: float
    q: np.ndarray
    dq: np.ndarray
    effort: np.ndarray
    wrench: np.ndarray
    q_motor: np.ndarray
    q_true: np.ndarray
    dq_true: np.ndarray
    ddq_true: np.ndarray
    effort_true: np.ndarray
    wrench_rigid: np.ndarray
    wrench_bypass: np.ndarray


class ArmSimulator:
    """An arm that follows its configured motion; each :meth:`advance` gives the next reading.

    With ``control="effort"`` it takes efforts by :meth:`command` instead; until the first of them
    it is held where its motion would begin.

    `urdf` is a URDF's text or its file's path, "" the iCub's right arm. `overrides` are
    parameters, with ``__`` for the dot: ``ArmSimulator(motion="circle_xz", effects__crosstalk=0)``.
    Attributes: `urdf` (its text without meshes, for a learner of this arm), `joint_names`,
    `sensor_frame` ("" without one), `period` (s) between readings, `config`, `hand` (its load).
    Raises RobotModelError, ConfigurationError, and MissingExtraError without mujoco or icub-models.
    """

    def __init__(
        self, urdf: str = "", config: SimulatorConfig | None = None, **overrides: object
    ) -> None:
        config = parameters.replace(config or SimulatorConfig(), **overrides)
        self._mujoco = urdfs.require("mujoco")
        center: tuple[float, ...] = config.motion.center
        rest: tuple[float, ...] = ()
        offset = config.hand_offset or (0.0, 0.0, 0.0)
        names = (config.joints, config.sensor_frame, config.hand_frame)
        if not urdf:
            if not any(names) and not config.hand_offset:
                offset = urdfs.ICUB_HAND_OFFSET
                circle = urdfs.ICUB_CIRCLES.get(config.motion.motion)
                if circle is not None:
                    center, rest = center or circle[0], circle[1]
            icub = (urdfs.ICUB_JOINTS, urdfs.ICUB_SENSOR, urdfs.ICUB_HAND)
            names = (names[0] or icub[0], names[1] or icub[1], names[2] or icub[2])
        points = {
            "hand_offset": offset,
            "effects.cable_anchor": config.effects.cable_anchor,
            "effects.cable_attachment": config.effects.cable_attachment,
        }
        for name, point in points.items():
            if len(point) != 3:
                raise ConfigurationError(
                    f"parameter '{name}' must have 3 numbers, not {len(point)}"
                )
        arm = urdfs.SimulatedArm(urdfs.without_meshes(urdf or urdfs.icub_urdf()), *names)
        self.config = config
        self.urdf = arm.urdf
        self.joint_names = arm.joints
        self.sensor_frame = arm.sensor_frame
        self.period = 1.0 / config.rate
        self._steps = max(1, int(np.ceil(self.period / config.timestep - 1e-9)))
        self._dt = self.period / self._steps
        text = arm.moving_part()
        self._hand = HandKinematics(text, arm.joints, arm.hand_frame, offset)
        self._trajectory = make_trajectory(config.motion, self._hand, config.seed, center, rest)
        self._build(text, arm)
        self._start()

    def _build(self, text: str, arm: urdfs.SimulatedArm) -> None:
        """Compile MuJoCo's model, with a site at the sensor."""
        mujoco = self._mujoco
        options = '<mujoco><compiler fusestatic="false" balanceinertia="true"/></mujoco></robot>'
        try:
            spec = mujoco.MjSpec.from_string(text.replace("</robot>", options))
            if arm.sensor_link:
                site = spec.body(arm.sensor_link).add_site(name="sensor")
                for kind in (mujoco.mjtSensor.mjSENS_FORCE, mujoco.mjtSensor.mjSENS_TORQUE):
                    spec.add_sensor(type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=site.name)
            spec.option.timestep = self._dt
            spec.option.gravity = urdfs.GRAVITY
            spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
            self._model: Any = spec.compile()
        except (ValueError, RuntimeError) as error:
            raise RobotModelError(f"MuJoCo can't simulate this URDF: {error}") from None
        model = self._model
        joints = [model.joint(name) for name in arm.joints]
        # The tree's order may differ from that of `arm.joints`, which all arrays here have.
        self._order = np.array([joint.dofadr[0] for joint in joints])
        self._sensor_body = model.body(arm.sensor_link).id if arm.sensor_link else -1
        self._first_body = model.body(model.jnt_bodyid[joints[0].id]).id
        model.dof_armature[:] = self.config.effects.rotor_inertia
        hand = model.body(arm.hand_link).id
        self.hand = HandLoad(mujoco, model, hand)

    def _start(self) -> None:
        """Put the arm at rest at the beginning of its motion, and set up the effects."""
        mujoco, model, config = self._mujoco, self._model, self.config.effects
        self._data: Any = mujoco.MjData(model)
        count = len(self.joint_names)
        self._data.qpos[self._order] = self._hand.middle
        mujoco.mj_forward(model, self._data)
        mass = np.zeros((count, count))
        mujoco.mj_fullM(model, self._data, mass)
        inertia = mass.diagonal()[self._order]
        self._commanded: tuple[np.ndarray, float] | None = None  # the efforts, and since when
        self._friction = effects.Friction(config, inertia, self._dt)
        self._transmission = effects.Transmission(config, count, self._dt)
        self._hysteresis = effects.Hysteresis(config, count)
        self._bypass = None
        if self._sensor_body >= 0:
            self._place = self._data.site_xmat[0].reshape(3, 3), self._data.site_xpos[0]
            anchor = self._data.xpos[self._first_body] + np.array(config.cable_anchor)
            bypass = Bypass(config, anchor, self._place[1], self._place[0])
            self._bypass = bypass if bypass.active else None
            self._pull_past_sensor()  # compiles it, so that no reading has to wait for that
        self._rng = np.random.default_rng([self.config.seed, 2])
        self._sensor = effects.WrenchSensor(config, np.random.default_rng([self.config.seed, 3]))
        self._step = 0
        self._chunk = -1
        self._motion: Motion = self._trajectory(np.zeros(1))
        self._data.qpos[self._order] = self._motion[0][0]
        mujoco.mj_forward(model, self._data)
        self._transmission.twist = self._transmission.rest(self._data.qfrc_bias[self._order])

    def command(self, effort: np.ndarray) -> None:
        """Exert `effort` (n,) in N m from the next step on, with ``control="effort"``.

        Raises SampleError on a wrong size or a value that isn't finite; otherwise without effect.
        """
        effort = np.array(effort, dtype=float)
        if effort.shape != self._order.shape or not np.isfinite(effort).all():
            raise SampleError(
                f"a command needs {len(self._order)} finite efforts, one for each joint"
            )
        self._commanded = effort, self._step * self._dt

    def advance(self) -> Reading:
        """The reading one sampling period further (the first one is at time 0, at rest)."""
        for _ in range(self._steps - 1 if self._step else 0):
            self._control_step()
        q, dq, seen, seen_velocity, torque, bypass = self._control_step()
        config, rng, count = self.config.effects, self._rng, len(q)
        time = (self._step - 1) * self._dt
        wrench = rigid = np.zeros(6)
        if self._sensor_body >= 0:
            structure = self._data.sensordata.copy()  # exerted by the body before the sensor's
            rigid = structure + bypass
            wrench = self._sensor(structure, time)
        return Reading(
            time=time,
            q=seen + config.noise_position * rng.standard_normal(count),
            dq=seen_velocity + config.noise_velocity * rng.standard_normal(count),
            effort=torque + config.noise_effort * rng.standard_normal(count),
            wrench=wrench,
            q_motor=seen,
            q_true=q,
            dq_true=dq,
            ddq_true=self._data.qacc[self._order],
            effort_true=torque,
            wrench_rigid=rigid,
            wrench_bypass=bypass,
        )

    def _desired(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Desired q, dq, ddq (n,) of this step."""
        if self.config.control == "effort":
            zero = np.zeros(len(self._order))
            return self._motion[0][0], zero, zero
        chunk, within = divmod(self._step, _CHUNK_STEPS)
        if chunk != self._chunk:
            self._chunk = chunk
            self._motion = self._trajectory(
                self._dt * (chunk * _CHUNK_STEPS + np.arange(_CHUNK_STEPS))
            )
        return self._motion[0][within], self._motion[1][within], self._motion[2][within]

    def _control_step(self) -> tuple[np.ndarray, ...]:
        """One step of controller, dynamics and effects; the state before it, and its loads.

        MuJoCo's acceleration and sensors belong to the state before the step, so they are exactly
        those of q, dq and the torque: q, dq, measured q and dq, torque, bypass.
        """
        data, order = self._data, self._order
        self._mujoco.mj_step1(self._model, data)
        q, dq = data.qpos[order], data.qvel[order]
        seen, seen_velocity = self._encoders(q, dq)
        torque = self._exerted(q, dq, seen)
        passed_on = torque - self._friction(dq) if self._friction.active else torque
        data.qfrc_applied[order] = passed_on
        bypass = self._pull_past_sensor()
        self.hand.apply(data, -1 if self._bypass is None else self._sensor_body)
        self._mujoco.mj_step2(self._model, data)
        if self._transmission.active:
            rotors = self.config.effects.rotor_inertia * data.qacc[order]
            self._transmission.step(passed_on - rotors)
        self._step += 1
        return q, dq, seen, seen_velocity, torque, bypass

    def _exerted(self, q: np.ndarray, dq: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """The motors' efforts (n,) in N m: as commanded, or to follow the desired motion."""
        commanded = self._commanded if self.config.control == "effort" else None
        if commanded is not None:
            age = self._step * self._dt - commanded[1]
            if age <= self.config.command_timeout + NANO:
                return commanded[0]
        data, order = self._data, self._order
        desired, velocity, acceleration = self._desired()
        # Computed torque: the controller knows the rigid-body model, but not the effects. It uses
        # the motors' positions, but the links' velocity, because the twist is quasi-static.
        w = self.config.motion.stiffness
        demand = acceleration + 2.0 * w * (velocity - dq) + w**2 * (desired - seen)
        bias: np.ndarray = data.qfrc_bias
        if commanded is not None:
            # The commands have stopped: the joints are damped, and the arm sinks slowly.
            demand, bias = -w * dq, 0.0 * bias
        full = np.zeros(len(order))
        full[order] = demand
        needed = np.zeros(len(order))
        self._mujoco.mj_mulM(self._model, data, needed, full)
        torque: np.ndarray = (needed + bias)[order]
        return torque

    def _encoders(self, q: np.ndarray, dq: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities that the motors' sensors see, before noise."""
        if self._transmission.active:
            q, dq = q + self._transmission.twist, dq + self._transmission.rate
        if self._hysteresis.active:
            self._hysteresis.step(q)
            q, dq = q - self._hysteresis.lost, dq * self._hysteresis.passed()
        return q, dq

    def _pull_past_sensor(self) -> np.ndarray:
        """Apply cable and sleeve to the sensor's link; their wrench (6,) in the sensor's frame.

        It bypasses the sensor, which feels only the link's reaction.
        """
        if self._bypass is None:
            return np.zeros(6)
        data, body = self._data, self._sensor_body
        rotation, position = self._place
        wrench = self._bypass.wrench(rotation, position, data.cvel[body, :3])
        # MuJoCo wants it in base axes, about the body's centre of mass.
        force = rotation @ wrench[:3]
        moment = rotation @ wrench[3:] + _cross(position - data.xipos[body], force)
        data.xfrc_applied[body, :3] = force
        data.xfrc_applied[body, 3:] = moment
        return wrench


def simulated(arm: ArmSimulator, target: str, start: int = 0) -> Iterator[Measurement]:
    """The arm's readings as an endless source of measurements; `start` in ns.

    target: "wrench" or "effort".
    """
    while True:
        reading = arm.advance()
        y = reading.wrench if target == "wrench" else reading.effort
        yield Measurement(start + round(reading.time * 1e9), reading.q, reading.dq, y)


class HandLoad:
    """A body held by the hand, and a force that pushes it; both may change at any time.

    mujoco: the module. model: compiled; its masses are changed in place. body: id of the hand's
    link. Positions and parameters are in that link's frame.
    """

    def __init__(self, mujoco: Any, model: Any, body: int) -> None:
        self._mujoco, self._model, self._body = mujoco, model, body
        turned = np.zeros(9)
        mujoco.mju_quat2Mat(turned, model.body_iquat[body])
        R = turned.reshape(3, 3)
        inertia = R @ np.diag(model.body_inertia[body]) @ R.T
        self._own = pin.Inertia(model.body_mass[body], model.body_ipos[body], inertia)
        self.force = np.zeros(3)
        self.point = np.zeros(3)
        self.moment = np.zeros(3)
        self._pushed_body = body
        self._pushed = False

    def attach(self, mass: float, center: np.ndarray, inertia: np.ndarray) -> None:
        """Fix a body to the hand, instead of the last one; mass 0: none.

        center (3,) in m; inertia (3, 3) in kg m^2 about it. Raises ConfigurationError where no
        body has these.
        """
        if mass < 0.0 or np.linalg.eigvalsh(inertia)[0] < 0.0:
            raise ConfigurationError("a body's mass and moments of inertia can't be negative")
        held = pin.Inertia(mass, np.asarray(center, dtype=float), np.asarray(inertia, dtype=float))
        total = self._own + held if mass > 0.0 else self._own
        model, body = self._model, self._body
        moments, axes = np.linalg.eigh(total.inertia)
        axes[:, 2] *= np.sign(np.linalg.det(axes))  # a rotation, no reflection
        quaternion = np.zeros(4)
        self._mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(axes).ravel())
        model.body_mass[body], model.body_ipos[body] = total.mass, total.lever
        model.body_inertia[body] = np.maximum(moments, 0.0)
        model.body_iquat[body] = quaternion
        # The compiler may have found that the inertia's frame is the body's, which no longer holds.
        model.body_sameframe[body] = 0
        self._mujoco.mj_setConst(model, self._mujoco.MjData(model))

    def push(
        self,
        force: np.ndarray,
        point: np.ndarray | None = None,
        link: str = "",
        moment: np.ndarray | None = None,
    ) -> None:
        """Push with `force` (3,) in N, base axes, at a `point` (3,) of a link, from now on.

        link: of the URDF; empty: the hand. moment: (3,) in N m, base axes, beside that of the
        force; None: none.
        """
        body = self._model.body(link).id if link else self._body
        if body != self._pushed_body and self._pushed:
            raise ConfigurationError("end a push on one link before you push another")
        self._pushed_body = body
        self.force = np.asarray(force, dtype=float)
        self.point = np.zeros(3) if point is None else np.asarray(point, dtype=float)
        self.moment = np.zeros(3) if moment is None else np.asarray(moment, dtype=float)

    def apply(self, data: Any, pulled: int) -> None:
        """Set the push in MuJoCo's state; beside what acts on the body `pulled` already, if any."""
        acts = bool(self.force.any() or self.moment.any())
        if not self._pushed and not acts:
            return
        self._pushed = acts
        body = self._pushed_body
        place = data.xpos[body] + data.xmat[body].reshape(3, 3) @ self.point
        moment = self.moment + np.cross(place - data.xipos[body], self.force)
        wrench = np.concatenate((self.force, moment))
        data.xfrc_applied[body] = wrench + (data.xfrc_applied[body] if body == pulled else 0.0)


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a x b of two vectors (3,); numpy's own takes ten times as long."""
    return np.array(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    )
