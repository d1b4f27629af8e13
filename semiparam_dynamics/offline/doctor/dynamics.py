"""Columns of a recorded motion for the comparison of hypotheses, and least squares on them.

Offline there is no need to be causal: filters are of zero phase, on an even grid of time. As in
the learner, positions and efforts pass a wide low-pass, the columns are computed, and both sides
pass the same narrow one. The inertial columns are kept in four parts, without gravity and for a
unit of gravity along each axis of the root link: with a gravity vector g the columns are
``parts[0] + g[0] parts[1] + g[1] parts[2] + g[2] parts[3]``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import binary_dilation, binary_opening
from scipy.signal import butter, sosfiltfilt

from semiparam_dynamics.base.arrays import Array, Mask
from semiparam_dynamics.base.errors import BagError
from semiparam_dynamics.offline.doctor.joint_log import JointLog
from semiparam_dynamics.offline.doctor.messages import REST_VELOCITY
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.regressor import Multibody, Regressor, joint_effects
from semiparam_dynamics.robot.urdf import parse_urdf

MAX_RATE = 100.0  # Hz, of the grid at most
WIDE_RATIO = 4.0  # times the cut-off
MIN_ROWS = 100  # rows of the grid, half of them between its ends, that least squares needs
MAX_ROWS = 2500  # rows of the grid that least squares gets
RIDGE = 1e-5  # of a column's own sum of squares
MIN_ERROR = 1e-4  # of an effort's variance: a joint's error at least, as a scale
EFFECTS = 4  # viscous, Coulomb, constant, rotor


@dataclass(frozen=True)
class Columns:
    """n filtered instants of k joints.

    Attributes
    ----------
    times: (n,) s. q, dq: (n, k) filtered.
    parts: (4, n, k, p) inertial columns, see the module.
    effects: (n, k, 4) of each joint its viscous, Coulomb, constant and rotor column.
    y: (n, k) efforts. y_grid: (m, k) the same on the whole grid, at `grid` (m,) s.
    prior: (p,) the URDF's inertial parameters. gravity: (3,) as configured.
    """

    times: Array
    q: Array
    dq: Array
    parts: Array
    effects: Array
    y: Array
    grid: Array
    y_grid: Array
    prior: Array
    gravity: Array

    @property
    def scale(self) -> Array:
        """(k,) standard deviations of the efforts; 1 where one never varies."""
        spread = self.y.std(axis=0)
        return np.where(spread > 1e-9 * max(float(spread.max()), 1e-300), spread, 1.0)

    def inertial(self, gravity: Array) -> Array:
        """(n, k, p) columns with a gravity vector."""
        columns: Array = self.parts[0] + np.tensordot(gravity, self.parts[1:], axes=1)
        return columns

    def shifted(self, seconds: float) -> Array:
        """(n, k) the efforts measured `seconds` later."""
        at = np.clip(self.times + seconds, self.grid[0], self.grid[-1])
        return np.column_stack([np.interp(at, self.grid, column) for column in self.y_grid.T])


def make_columns(log: JointLog, model: RobotModel, cutoff: float) -> Columns:
    """The columns of a log without faults in single messages; its efforts must be there.

    `model` is of the log's joints in their order. Raises BagError where the log is too short.
    """
    assert log.y is not None
    if len(log) < 3:
        raise BagError(f"{len(log)} joint states in order are too few to look at")
    times = log.times
    rate = min(1.0 / float(np.median(np.diff(times))), MAX_RATE)
    n = int((times[-1] - times[0]) * rate) + 1
    edge = int(0.5 * rate)  # what the filters know nothing before or after
    if n < MIN_ROWS or n - 2 * edge < MIN_ROWS // 2:
        raise BagError(f"{times[-1] - times[0]:.2f} s of joint states are too few to look at")
    own = 1.0 / float(np.median(np.diff(times)))
    wide, narrow = (min(f, 0.4 * rate) for f in (WIDE_RATIO * cutoff, cutoff))
    grid = times[0] + np.arange(n) / rate
    q, y = (_on_grid(times, a, own, grid, wide) for a in (log.q, log.y))
    dq = np.gradient(q, 1.0 / rate, axis=0)
    ddq = np.gradient(dq, 1.0 / rate, axis=0)
    kept = np.arange(edge, n - edge)
    lively = kept[~_resting(dq, rate)[kept]]
    kept = lively if lively.size > n // 10 else kept
    kept = kept[:: max(1, kept.size // MAX_ROWS)]

    def smooth(values: Array) -> Array:
        flat = _low_pass(values.reshape(n, -1), narrow, rate)
        return flat.reshape(values.shape)

    v = model.config.coulomb_velocity
    effects = np.stack((dq, np.tanh(dq / v), np.ones_like(dq), ddq), axis=-1)
    parts = [smooth(part)[kept] for part in inertial_parts(model, q, dq, ddq)]
    y_grid = smooth(y)
    return Columns(
        grid[kept],
        smooth(q)[kept],
        smooth(dq)[kept],
        np.array(parts),
        smooth(effects)[kept],
        y_grid[kept],
        grid,
        y_grid,
        model.inertial_prior,
        np.array(model.config.gravity),
    )


def inertial_parts(model: RobotModel, q: Array, dq: Array, ddq: Array) -> list[Array]:
    """Four (n, k, p) inertial columns: without gravity, and of a unit of it along each axis."""
    still = np.zeros_like(q)
    tree = parse_urdf(model.urdf_text)
    none = joint_effects(
        model.joint_names,
        viscous=False,
        coulomb=False,
        offset=False,
        rotor_inertia=False,
        coulomb_velocity=1.0,
    )
    parts = []
    for gravity in np.vstack((np.zeros(3), np.eye(3))):
        body = Multibody(tree, model.joint_names, model.locked, tuple(gravity.tolist()))
        regressor = Regressor(body, np.arange(model.inertial_prior.size), none)
        out = np.empty((len(q), regressor.size))
        moving = not gravity.any()
        at, speed, acceleration = (
            np.ascontiguousarray(a, dtype=np.float64)
            for a in ((q, dq, ddq) if moving else (q, still, still))
        )
        regressor.fill(at, speed, acceleration, np.zeros((len(q), 0)), out)
        parts.append(out.reshape(len(q), model.n_joints, -1))
    return parts


def _resting(dq: Array, rate: float) -> Mask:
    """(n,) whether the arm rests for more than a second, or did or will within half a second."""
    still = (np.abs(dq) < REST_VELOCITY).all(axis=1)
    second = np.ones(max(1, round(rate)), dtype=bool)
    resting: Mask = binary_dilation(binary_opening(still, second), second)
    return resting


def _on_grid(times: Array, values: Array, rate: float, grid: Array, cutoff: float) -> Array:
    """Values on the grid, after a low-pass at their own rate."""
    even = times[0] + np.arange(int((times[-1] - times[0]) * rate) + 1) / rate
    at_rate = np.column_stack([np.interp(even, times, column) for column in values.T])
    smooth = _low_pass(at_rate, cutoff, rate)
    return np.column_stack([np.interp(grid, even, column) for column in smooth.T])


def _low_pass(values: Array, cutoff: float, rate: float) -> Array:
    filtered: Array = sosfiltfilt(butter(2, cutoff, fs=rate, output="sos"), values, axis=0)
    return filtered


# -------------------------------------------------------------------------------------------------
# Least squares


class FreeFit:
    """Least squares with free inertial parameters and each joint's own friction.

    The squares for any gravity vector come from products that are computed once.

    used: (k,) the joints whose efforts count.
    scale: (used joints,) of the errors; None: the efforts' standard deviations.
    """

    def __init__(self, columns: Columns, used: Mask, scale: Array | None = None) -> None:
        self.columns, self.used = columns, used
        scale = columns.scale[used] if scale is None else scale
        self._scale = scale
        self._y = (columns.y[:, used] / scale).ravel()
        n, k = len(columns.y), int(used.sum())
        blocks = np.zeros((n, k, k * EFFECTS))
        for j, joint in enumerate(np.flatnonzero(used)):
            blocks[:, j, j * EFFECTS : (j + 1) * EFFECTS] = columns.effects[:, joint] / scale[j]
        effects = blocks.reshape(n * k, -1)
        # What friction and offsets explain is taken out of everything once.
        self._basis = np.linalg.qr(effects + 1e-12 * np.eye(*effects.shape))[0]
        parts = columns.parts[:, :, used] / scale[:, None]
        self._parts = np.array([self._without(part.reshape(n * k, -1)) for part in parts])
        self._left = self._without(self._y)
        p = self._parts.shape[2]
        self._grams = np.empty((4, 4, p, p))
        for a in range(4):
            for b in range(a, 4):
                self._grams[a, b] = self._parts[a].T @ self._parts[b]
                self._grams[b, a] = self._grams[a, b].T
        self._products = np.array([part.T @ self._left for part in self._parts])
        self._total = float(self._left @ self._left)
        size = np.trace(self._grams.diagonal(axis1=2, axis2=3).sum(axis=2))
        self._floor = 1e-12 * float(size) if size > 0.0 else 1.0

    def _without(self, rows: Array) -> Array:
        left: Array = rows - self._basis @ (self._basis.T @ rows)
        return left

    def parameters(self, gravity: Array, products: Array | None = None) -> Array:
        """(p,) least squares with a little ridge."""
        g = np.concatenate(([1.0], gravity))
        gram = np.einsum("a,b,abij->ij", g, g, self._grams)
        right = np.einsum("a,ai->i", g, self._products if products is None else products)
        ridge = RIDGE * gram.diagonal() + self._floor
        found: Array = np.linalg.solve(gram + np.diag(ridge), right)
        return found

    def error(self, gravity: Array) -> float:
        """Mean over the joints of the squared error in units of `scale`."""
        g = np.concatenate(([1.0], gravity))
        found = self.parameters(gravity)
        gram = np.einsum("a,b,abij->ij", g, g, self._grams)
        right = np.einsum("a,ai->i", g, self._products)
        left = self._total - 2.0 * float(found @ right) + float(found @ gram @ found)
        return max(left, 0.0) / self._y.size

    def errors(self, gravity: Array) -> Array:
        """(used joints,) the same for each joint."""
        left = self._left - np.tensordot(
            np.concatenate(([1.0], gravity)), self._parts, axes=1
        ) @ self.parameters(gravity)
        mean: Array = np.mean(left.reshape(-1, len(self._scale)) ** 2, axis=0)
        return mean

    def sharpened(self, gravities: Iterable[Array]) -> FreeFit:
        """The same with each joint's own error under the best of the gravity vectors as its scale.

        So weighed, a joint that is known well counts for more, and a wrong hypothesis shows there.
        """
        errors = self.errors(min(gravities, key=self.error))
        scale = self._scale * np.sqrt(np.maximum(errors, MIN_ERROR))
        return FreeFit(self.columns, self.used, scale)

    def delayed_squares(self, seconds: float) -> Array:
        """(n,) sums of the squared errors where the efforts are those measured `seconds` later."""
        columns = self.columns
        y = columns.shifted(seconds)[:, self.used]
        left = self._without((y / self._scale).ravel())
        gravity = columns.gravity
        part = np.tensordot(np.concatenate(([1.0], gravity)), self._parts, axes=1)
        products = np.array([p.T @ left for p in self._parts])
        rest = left - part @ self.parameters(gravity, products)
        squares: Array = np.sum(rest.reshape(y.shape) ** 2, axis=1)
        return squares


def anchored(columns: Columns, gravity: Array) -> tuple[Array, Array]:
    """(n, k) inertial and gravity efforts by the URDF's own parameters."""
    inertia = columns.parts[0] @ columns.prior
    weight = np.tensordot(gravity, columns.parts[1:] @ columns.prior, axes=1)
    return inertia, weight
