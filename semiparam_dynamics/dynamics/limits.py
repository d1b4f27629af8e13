"""Limits of the estimator: predictions are finite and bounded, and contacts are not learned."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.parameters import one_or_each, parameter
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.urdf import joint_limits, parse_urdf

NOT_FINITE = "prediction not finite, replaced"
CLIPPED = "prediction clipped (output.bound, output.bound_efforts)"
NO_BOUND = 1e300  # the bound where there is none: an infinite value is beyond it


@dataclass(frozen=True)
class OutputConfig:
    """Bounds of predictions, and of the errors of samples that are learned."""

    bound_efforts: float = parameter(
        10.0,
        "predictions are clipped to so many times the URDF's effort limits (effort target; joints "
        "whose limit is 0 or missing have none); 0: those limits don't matter",
        low=0.0,
        high=1e6,
        live=True,
    )
    bound: tuple[float, ...] = parameter(
        (),
        "predictions are clipped to this size: one number for all axes, or one for each; empty: no "
        "such bound",
        unit="N m or N",
        low=0.0,
        high=1e9,
        live=True,
    )
    gate: float = parameter(
        0.0,
        "samples whose external effort or wrench is beyond so many predicted standard deviations "
        "on any axis, such as contacts, aren't learned, after the first 500 samples learned; "
        "0: all are",
        low=0.0,
        high=1e6,
        live=True,
    )
    gate_longest: float = parameter(
        5.0,
        "what stays beyond output.gate for longer than this is how the robot is now, such as a new "
        "load, and is learned",
        unit="s",
        low=0.0,
        high=1e6,
        live=True,
        internal="what stays beyond `output.gate` for 5 s is learned",
    )


class OutputBound:
    """Clips predictions (n_axes,) and replaces what isn't finite; see `OutputConfig`.

    Raises ConfigurationError where `config.bound` has neither one number nor one for each axis,
    and RobotModelError where the URDF's effort limits are no numbers.

    Attributes
    ----------
    limit: (n_axes,) that no prediction's magnitude exceeds.
    counts: how many predictions were clipped, and how many replaced, by these sentences.
    """

    def __init__(self, model: RobotModel, config: OutputConfig) -> None:
        self.limit: Array = np.full(model.n_axes, NO_BOUND)
        self.counts: Counter[str] = Counter()
        if config.bound:
            bound = one_or_each("output.bound", config.bound, model.n_axes)
            self.limit = np.minimum(self.limit, bound)
        if config.bound_efforts > 0.0 and model.config.target == "effort":
            limits = joint_limits(parse_urdf(model.urdf_text), model.joint_names, "effort")
            self.limit = np.minimum(self.limit, config.bound_efforts * limits)

    def __call__(self, values: Array, otherwise: Array) -> Array:
        """`values` within bounds; `otherwise` stands in for what isn't finite. Counts both."""
        if self._holds(values):
            return values
        finite = np.isfinite(values)
        if not finite.all():
            self.counts[NOT_FINITE] += 1
            values = np.where(finite, values, otherwise)
        if (np.abs(values) > self.limit).any():
            self.counts[CLIPPED] += 1
        return self.within(values)

    def block(self, values: Array, otherwise: Array) -> Array:
        """:meth:`__call__` of k predictions, (k, n_axes)."""
        if (np.abs(values) <= self.limit).all():  # the usual case
            return values
        return np.array([self(*rows) for rows in zip(values, otherwise, strict=True)])

    def within(self, values: Array) -> Array:
        """`values` (n_axes,) within bounds, not counted; 0 for what is not a number."""
        if self._holds(values):
            return values
        clipped: Array = np.clip(np.nan_to_num(values, nan=0.0), -self.limit, self.limit)
        return clipped

    def _holds(self, values: Array) -> bool:
        """True if no value is beyond its limit; false where one is not a number."""
        # For a handful of numbers plain Python is faster than NumPy.
        limits = self.limit.tolist()
        return all(
            -most <= value <= most for value, most in zip(values.tolist(), limits, strict=True)
        )


BEYOND = "beyond the gate (output.gate)"
MIN_LEARNED = 500  # samples learned before the standard deviations are relied on


class LearningGate:
    """Keeps samples too far from their predictions, such as contacts, from being learned.

    It closes with the first sample beyond, and opens with the first one within, or when it was
    closed for longer than `config.gate_longest`: what lasts is no contact. It then stays open
    until a sample was within again. See `OutputConfig`.

    Attributes
    ----------
    config: may be changed at any time.
    dropped: counts the samples kept out, under one reason.
    closed: whether the last sample was kept out.
    """

    def __init__(self, config: OutputConfig) -> None:
        self.config = config
        self.dropped: Counter[str] = Counter()
        self.closed = False
        self._since: int | None = None  # stamp of the first sample beyond, ns

    def refuses(self, stamp: int, error: Array, std: Array, n_learned: int) -> bool:
        """True if the sample at `stamp` (ns) isn't learned. Ask once for each sample, in order.

        error: (n_axes,) measured minus predicted, NaN where not measured.
        std: (n_axes,) of the prediction.
        n_learned: samples learned so far; none is refused before there are `MIN_LEARNED`.
        """
        self.closed = False
        limit = self.config.gate
        size = np.where(np.isnan(error), 0.0, np.abs(error))
        if limit <= 0.0 or n_learned < MIN_LEARNED or (size <= limit * std).all():
            self._since = None
            return False
        if self._since is None or stamp < self._since:
            self._since = stamp
        if stamp - self._since > self.config.gate_longest * 1e9:
            return False
        self.closed = True
        self.dropped[BEYOND] += 1
        return True
