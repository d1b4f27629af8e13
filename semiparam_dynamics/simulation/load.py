"""What the hand meets in the simulation: things it holds, and pushes from outside."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiparam_dynamics.errors import ConfigurationError


class HandLoad:
    """A body fixed to the hand's link, and a force on it; both may change at any time.

    mujoco: the module. model: compiled; its masses are changed in place. body: id of the hand's
    link. Positions and parameters are in that link's frame.
    """

    def __init__(self, mujoco: Any, model: Any, body: int) -> None:
        self._mujoco, self._model, self._body = mujoco, model, body
        turned = np.zeros(9)
        mujoco.mju_quat2Mat(turned, model.body_iquat[body])
        R = turned.reshape(3, 3)
        inertia = R @ np.diag(model.body_inertia[body]) @ R.T
        self._own = _moments(float(model.body_mass[body]), model.body_ipos[body].copy(), inertia)
        self.force = np.zeros(3)
        self.point = np.zeros(3)
        self._pushed = False

    def attach(self, mass: float, center: np.ndarray, inertia: np.ndarray) -> None:
        """Fix a body to the hand in the place of the one before; mass 0: none.

        center (3,) in m; inertia (3, 3) in kg m^2 about it. Raises ConfigurationError where no
        body has these.
        """
        if mass < 0.0 or np.linalg.eigvalsh(inertia)[0] < 0.0:
            raise ConfigurationError("a body's mass and moments of inertia can't be negative")
        inertia = inertia if mass > 0.0 else np.zeros((3, 3))
        own, held = self._own, _moments(mass, center, inertia)
        total, first, second = own[0] + held[0], own[1] + held[1], own[2] + held[2]
        model, body = self._model, self._body
        position = first / total if total > 0.0 else np.zeros(3)
        about = second - total * (position @ position * np.eye(3) - np.outer(position, position))
        moments, axes = np.linalg.eigh(about)
        axes[:, 2] *= np.sign(np.linalg.det(axes))  # a rotation, no reflection
        quaternion = np.zeros(4)
        self._mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(axes).ravel())
        model.body_mass[body], model.body_ipos[body] = total, position
        model.body_inertia[body] = np.maximum(moments, 0.0)
        model.body_iquat[body] = quaternion
        # The compiler may have noted that the inertia's frame is the body's: no longer.
        model.body_sameframe[body] = 0
        self._mujoco.mj_setConst(model, self._mujoco.MjData(model))

    def push(self, force: np.ndarray, point: np.ndarray | None = None) -> None:
        """Push with `force` (3,) in N, base axes, at a `point` (3,) of the hand until told else."""
        self.force = np.asarray(force, dtype=float)
        self.point = np.zeros(3) if point is None else np.asarray(point, dtype=float)

    def apply(self, data: Any, beside: bool) -> None:
        """Put the push into MuJoCo's state; `beside` what already acts on the link."""
        if not self._pushed and not self.force.any():
            return
        self._pushed = bool(self.force.any())
        body = self._body
        place = data.xpos[body] + data.xmat[body].reshape(3, 3) @ self.point
        wrench = np.concatenate((self.force, np.cross(place - data.xipos[body], self.force)))
        data.xfrc_applied[body] = wrench + (data.xfrc_applied[body] if beside else 0.0)


def _moments(
    mass: float, center: np.ndarray, inertia: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, first moments, and inertia about the frame's origin."""
    shift = center @ center * np.eye(3) - np.outer(center, center)
    return mass, mass * center, inertia + mass * shift
