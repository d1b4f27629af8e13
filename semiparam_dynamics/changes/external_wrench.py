"""The wrench at a frame of the robot, by what the model leaves of the measurements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import ConfigurationError, RobotModelError
from semiparam_dynamics.robot.frames import FrameMotion
from semiparam_dynamics.robot.model import RobotModel

SIZE = (100.0, 20.0)  # N, N m, of a wrench to be expected
UNSEEN = 0.25  # of the variance before, above which a direction is not seen
NAMES = ("force x", "force y", "force z", "torque x", "torque y", "torque z")


class WrenchEstimate(NamedTuple):
    """A wrench that the surroundings exert on the robot at a frame."""

    value: Array  # (6,) force (N) at the frame's origin, and moment about it (N m)
    covariance: Array  # (6, 6)
    prior: Array  # (6,) standard deviations of the wrench before anything was measured


class ExternalWrench:
    """Estimates the wrench at a frame.

    Efforts are those that the model predicts less J' w where the surroundings exert w, so that
    measured minus predicted is -J' w plus an error of the standard deviations predicted. By Bayes'
    rule, with the standard deviations `size` of w before, that is damped least squares weighted by
    the deviations. What a six-axis sensor measures is moved from its frame.

    Parameters
    ----------
    model: the robot. frame, axes: as of `FrameMotion`; by default the tool's, or the sensor's.
    size: of forces (N) and moments (N m) to be expected, along each axis.

    Attributes
    ----------
    frame: the link at whose origin the wrench is. axes: the link in whose axes it is.

    Raises ConfigurationError where there is no such frame, or no learned joint moves it, or `size`
    has not two positive numbers.
    """

    def __init__(
        self,
        model: RobotModel,
        frame: str = "",
        axes: str = "",
        size: Sequence[float] = SIZE,
    ) -> None:
        config = model.config
        if len(size) != 2 or not all(0.0 < one < np.inf for one in size):
            raise ConfigurationError(
                f"external_size needs a force and a moment above 0, not {tuple(size)}"
            )
        self._prior = np.repeat(np.array(size, dtype=np.float64), 3)
        self._sensor = config.sensor_frame if config.target == "wrench" else ""
        try:
            self._motion = FrameMotion(model, frame or self._sensor, axes)
        except RobotModelError as error:
            raise ConfigurationError(f"external_frame or external_axes: {error}") from None
        self.frame, self.axes = self._motion.frame, self._motion.axes
        if not self._sensor and not self._motion.moved.any():
            raise ConfigurationError(
                f"external_frame: none of the learned joints moves '{self.frame}', so that no "
                "effort tells of a wrench there"
            )

    def estimate(self, q: Array, external: Array, stds: Array) -> WrenchEstimate:
        """The wrench at q (n_joints,) that leaves `external`, measured minus predicted, (n_axes,).

        stds : (n_axes,) standard deviations of the predictions. An axis that was not measured, NaN,
        tells nothing; nor does one whose deviation is 0, since nothing was learned yet.
        """
        prior = self._prior
        known = np.isfinite(external) & (stds > 0.0)
        if self._sensor:
            X = self._motion.from_frame(q, self._sensor)
            if not known.all():
                return WrenchEstimate(np.zeros(6), np.diag(prior**2), prior)
            return WrenchEstimate(-X @ external, (X * stds**2) @ X.T, prior)
        # Scaled by the prior, the information is the identity and what efforts add to it.
        rows = (self._motion.jacobian(q)[:, known] * prior[:, None]) / stds[known]
        information = rows @ rows.T
        information[np.diag_indices(6)] += 1.0
        factor, _ = dpotrf(information, lower=1)
        half, _ = dpotri(factor, lower=1)
        scaled = np.tril(half) + np.tril(half, -1).T
        value = -prior * (scaled @ (rows @ (external[known] / stds[known])))
        return WrenchEstimate(value, scaled * np.outer(prior, prior), prior)


def unseen_directions(estimate: WrenchEstimate) -> list[str]:
    """The wrenches that the measurements hardly tell of, in words: one standard deviation of each.

    Such as "80 N force z, 12 N m torque x": a force along z and a moment about x that come with
    one another, of about that size, would not be noticed.
    """
    prior = estimate.prior
    shares, directions = np.linalg.eigh(estimate.covariance / np.outer(prior, prior))
    told = []
    for share, direction in zip(shares, directions.T, strict=True):
        if share > UNSEEN:
            largest = np.abs(direction).max()
            sizes = prior * direction * np.sign(direction[np.abs(direction).argmax()])
            parts = zip(np.sqrt(share) * sizes, np.abs(direction), NAMES, strict=True)
            told.append(
                ", ".join(
                    f"{size:.2g} {'N' if name.startswith('force') else 'N m'} {name}"
                    for size, part, name in parts
                    if part > 0.2 * largest
                )
            )
    return told
