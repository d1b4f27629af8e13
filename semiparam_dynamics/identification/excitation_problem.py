"""The search for an exciting trajectory as a smooth problem with few constraints.

Positions, velocities and accelerations are linear in the series' coefficients. What depends on
them at one instant (regressor, efforts) has as many arguments as the state has entries, so its
finite differences are taken there, three per joint, and carried to the coefficients by the chain
rule: several times cheaper than differences by every coefficient, and exact in accelerations.
"""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.robot import RobotModel
from semiparam_dynamics.identification.fourier_trajectory import (
    FourierTrajectory,
    resting_directions,
    series_basis,
)
from semiparam_dynamics.identification.information import Scaling, criterion
from semiparam_dynamics.identification.motion_limits import MotionLimits

_STEP = 1e-6  # of the finite differences, rad and its derivatives
_SHARPNESS = 100.0  # of the smooth maximum: it lies above the maximum by log(2 n) / this at most


class ExcitationProblem:
    """Value, gradient, constraints and their Jacobian at a vector of unknowns.

    The unknowns x, (n_joints * (2 harmonics - 1),), are coordinates of the coefficients among
    those that start at rest, in units of half of each joint's allowed range, the offset counted
    from its middle. There are three constraints a joint, met where positive: one minus the smooth
    maximum over a period (Kreisselmeier and Steinhauser, 1979) of position, velocity and effort,
    relative to their limits.

    Parameters
    ----------
    model: the robot whose regressor is to be well conditioned.
    effort_model: the same joints with target effort; the URDF's parameters give the efforts.
    limits: what the motion may use.
    period: s. harmonics: at least 2.
    objective: see `information.criterion`.
    instants: number of instants of a period at which all is evaluated; default 16 in a cycle of
        the highest harmonic.

    """

    def __init__(
        self,
        model: RobotModel,
        effort_model: RobotModel,
        limits: MotionLimits,
        period: float,
        harmonics: int,
        objective: str = "condition",
        instants: int = 0,
    ) -> None:
        self.model, self.effort_model, self.limits = model, effort_model, limits
        self.period, self.harmonics, self.objective = period, harmonics, objective
        self.scaling = Scaling.of(model)
        self._directions = resting_directions(harmonics)
        self.shape = (self._directions.shape[1], model.n_joints)
        n = instants or 16 * harmonics
        t = period / n * np.arange(n)
        self._bases = [b @ self._directions for b in series_basis(t, harmonics, period)]
        self._seen: tuple[bytes, Array, Array, Array] | None = None
        self._slopes_at: tuple[bytes, Array, Array] | None = None

    def trajectory(self, x: Array) -> FourierTrajectory:
        """The motion that the unknowns describe."""
        coefficients = self._directions @ (x.reshape(self.shape) * self.limits.half)
        coefficients[0] += self.limits.middle
        return FourierTrajectory(coefficients, self.period)

    def value(self, x: Array) -> float:
        """What is minimised."""
        regressors = self._forward(x)[1]
        return criterion(regressors, self.scaling, self.objective)[0]

    def gradient(self, x: Array) -> Array:
        """(len(x),) of `value`."""
        return self._backward(x)[0]

    def constraints(self, x: Array) -> Array:
        """(3 n_joints,) of position, velocity and effort; none may be negative."""
        states, _, efforts = self._forward(x)
        return np.concatenate([1.0 - _smooth(r)[0] for r in self._ratios(states, efforts)])

    def jacobian(self, x: Array) -> Array:
        """(3 n_joints, len(x)) of `constraints`."""
        return self._backward(x)[1]

    def _forward(self, x: Array) -> tuple[Array, Array, Array]:
        """States (3, n, n_joints), regressors and efforts (n, n_joints) at x."""
        key = x.tobytes()
        if self._seen is None or self._seen[0] != key:
            unit = x.reshape(self.shape) * self.limits.half
            states = np.stack([basis @ unit for basis in self._bases])
            states[0] += self.limits.middle
            self._seen = (key, states, *self._evaluate(states))
        return self._seen[1:]

    def _evaluate(self, states: Array) -> tuple[Array, Array]:
        regressors = self.model.regressors(*states)
        if self.effort_model is self.model:
            return regressors, regressors @ self.model.prior
        return regressors, self.effort_model.regressors(*states) @ self.effort_model.prior

    def _ratios(self, states: Array, efforts: Array) -> tuple[Array, Array, Array]:
        limits = self.limits
        position = (states[0] - limits.middle) / limits.half
        return position, states[1] / limits.velocity, efforts / limits.effort

    def _backward(self, x: Array) -> tuple[Array, Array]:
        key = x.tobytes()
        if self._slopes_at is None or self._slopes_at[0] != key:
            self._slopes_at = (key, *self._differentiate(x))
        return self._slopes_at[1:]

    def _differentiate(self, x: Array) -> tuple[Array, Array]:
        states, regressors, efforts = self._forward(x)
        slope = criterion(regressors, self.scaling, self.objective)[1]
        half, (k, n) = self.limits.half, self.shape
        weights = [_smooth(ratio)[1] for ratio in self._ratios(states, efforts)]
        gradient = np.zeros((k, n))
        rows = np.zeros((3, n, k, n))
        for kind, basis in enumerate(self._bases):
            for joint in range(n):
                ahead = states.copy()
                ahead[kind, :, joint] += _STEP
                moved, moved_efforts = self._evaluate(ahead)
                by_state = np.einsum("tap,tap->t", slope, moved - regressors) / _STEP
                gradient[:, joint] += half[joint] * (basis.T @ by_state)
                change = weights[2] * (moved_efforts - efforts) / (_STEP * self.limits.effort)
                rows[2, :, :, joint] -= half[joint] * (change.T @ basis)
        for joint in range(n):
            rows[0, joint, :, joint] = -self._bases[0].T @ weights[0][:, joint]
            scale = half[joint] / self.limits.velocity[joint]
            rows[1, joint, :, joint] = -scale * (self._bases[1].T @ weights[1][:, joint])
        return gradient.ravel(), rows.reshape(3 * n, k * n)


def _smooth(ratio: Array) -> tuple[Array, Array]:
    """Smooth maximum of |ratio| over the rows (n, m): its values (m,) and slopes (n, m)."""
    both = _SHARPNESS * np.stack([ratio, -ratio])
    top = both.max(axis=(0, 1))
    weights = np.exp(both - top)
    total = weights.sum(axis=(0, 1))
    slopes: Array = (weights[0] - weights[1]) / total
    return (top + np.log(total)) / _SHARPNESS, slopes
