"""Where the hand is, and which joint positions bring it somewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from semiparam_dynamics.errors import ConfigurationError, RobotModelError


class HandKinematics:
    """Position of the hand as a function of the moving joints (all others in position zero).

    The hand is the point `offset` (m) of the frame `hand_frame`.
    Attributes: `lower`, `upper` (n,) position limits in rad or m, `middle` (n,) between them.
    Raises RobotModelError where pinocchio can't read the URDF.
    """

    def __init__(
        self,
        urdf: str,
        joints: tuple[str, ...],
        hand_frame: str,
        offset: Sequence[float] = (0, 0, 0),
    ) -> None:
        try:
            self._model = pin.buildModelFromXML(urdf)
        except (ValueError, RuntimeError) as error:
            raise RobotModelError(f"the URDF can't be read: {error}") from None
        self._data = self._model.createData()
        index = [self._model.joints[self._model.getJointId(name)].idx_q for name in joints]
        self._order = np.array(index)
        self._frame = self._model.getFrameId(hand_frame)
        self._offset = np.array(offset, dtype=float)
        self.lower = self._model.lowerPositionLimit[self._order].copy()
        self.upper = self._model.upperPositionLimit[self._order].copy()
        if not np.all(self.lower < self.upper):
            raise RobotModelError("every moving joint needs a lower limit below its upper limit")
        self.middle = 0.5 * (self.lower + self.upper)

    def position(self, q: np.ndarray) -> np.ndarray:
        """The hand's position (3,) in the base frame, m, at joint positions q (n,)."""
        pin.framesForwardKinematics(self._model, self._data, self._full(q))
        return np.array(self._data.oMf[self._frame].act(self._offset))

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        """The derivative (3, n) of :meth:`position`; also updates the position."""
        full = pin.computeFrameJacobian(
            self._model, self._data, self._full(q), self._frame, pin.LOCAL_WORLD_ALIGNED
        )
        lever = self._data.oMf[self._frame].rotation @ self._offset
        return np.array((full[:3] - pin.skew(lever) @ full[3:])[:, self._order])

    def solve(self, target: np.ndarray, rest: np.ndarray, start: np.ndarray) -> np.ndarray:
        """Joint positions (n,) that bring the hand to `target` (3,), nearest to the posture `rest`.

        Of all solutions it is (locally) the one with least ||q - rest||, each joint measured by its
        range, so that a closed path of the hand closes in the joints too: Gauss-Newton steps,
        damped while the hand is far off, and the null space's pull to `rest`. Raises
        ConfigurationError out of reach.
        """
        q = np.array(start, dtype=float)
        eye, span = np.eye(len(q)), self.upper - self.lower
        for _ in range(200):
            jacobian = self.jacobian(q) * span
            error = target - self._data.oMf[self._frame].act(self._offset)
            damping = 1e-12 + 1e-2 * min(error @ error, 0.01)
            gram = jacobian @ jacobian.T + damping * np.eye(3)
            inverse = np.linalg.solve(gram, jacobian).T
            step = inverse @ error + (eye - inverse @ jacobian) @ ((rest - q) / span)
            size = float(np.abs(step).max())
            q += span * step * min(1.0, 0.15 / max(size, 1e-12))
            if size < 1e-9:
                return q
        raise ConfigurationError(
            f"the hand can't reach ({', '.join(f'{x:.3f}' for x in target)}) m: "
            "move 'center' or choose a smaller 'radius'"
        )

    def check_limits(self, q: np.ndarray) -> None:
        """Raise ConfigurationError where one of the positions q (..., n) is outside the limits."""
        if np.any(q < self.lower) or np.any(q > self.upper):
            raise ConfigurationError(
                "the motion would leave the joints' limits: move 'center', or choose a smaller "
                "'radius' or 'variation'"
            )

    def _full(self, q: np.ndarray) -> np.ndarray:
        full = np.zeros(self._model.nq)
        full[self._order] = q
        return full
