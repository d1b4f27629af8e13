"""The correction of predictions and measurements by the changes found so far."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.changes.config import BARE
from semiparam_dynamics.changes.hypotheses import OFFSET, PAYLOAD, Causes, Hypothesis, Sums
from semiparam_dynamics.changes.payload import Snapshot, as_array, as_text
from semiparam_dynamics.dynamics.sample import Prediction

GAIN_ERROR = 0.1  # of a change's effort counts as noise: sensors and models have gain errors
# The same where it lasts: of an axis' gain, as calibration leaves it, and of what it feels of the
# others of its kind, as the frame of a sensor turns under a load.
LASTING_GAIN_ERROR, LASTING_TURN = 0.01, 0.03


class Correction:
    """theta (n_columns,) of all causes: the accepted changes, and the one being estimated.

    A change is never put into the model itself, so that it is withdrawn at no cost, and the
    residual's inputs stay where it was trained.

    Attributes
    ----------
    accepted: (n_columns,) theta without the change that is being estimated.
    theta, covariance: (n_columns,) and (n_columns, n_columns), of all changes together.
    gain_covariance: (10, 10) of the payload by the axes' gain errors, which make no prediction
        uncertain, but what the payload is.
    active: whether there is any change. estimating: the one that is, if there is one.
    seen: the sums since it began, relative to `accepted`.
    name: of the payload held, "" for one without a name, "bare" for none.
    offset_before: (n,) in `accepted`, that the payload held before the estimation came with.

    gain_std: (pairs,) of the axes' gain errors that last, as `Innovations.gain_errors` has them.
    common_std: of a factor of all axes.

    A payload is estimated beside an offset of each axis of the size of the usual slow errors: what
    a model's own errors are for as long is no weight. It is corrected while the payload is held.
    """

    def __init__(
        self, causes: Causes, gain_std: Array | None = None, common_std: float = 0.0
    ) -> None:
        self._causes = causes
        # Columns that a payload is estimated with: its own, and the offsets.
        beside = [np.r_[c.columns] for c in causes.all if c.name in (PAYLOAD, OFFSET)]
        self.nuisance: Indices = np.concatenate(beside)
        self._gain_std: Array = np.zeros(0) if gain_std is None else gain_std
        self._common_std = common_std
        n = causes.n_columns
        self.accepted: Array = np.zeros(n)
        self._accepted_covariance: Array = np.zeros((n, n))
        self.name = self._name_before = BARE
        self.seen: Sums = Sums.empty(n)
        self.estimating: Hypothesis | None = None
        self._slow: Array = np.zeros(len(self.nuisance) - 10)
        self.offset_before: Array = np.zeros_like(self._slow)
        self._gain_moments: Array | None = None
        self._scatter: Array = np.zeros((10, 10))
        self.gain_covariance: Array = np.zeros((10, 10))
        self._gains_before = self.gain_covariance  # of the payload held before this change
        self._refresh()

    @property
    def payload(self) -> slice:
        """The payload's columns."""
        return self._causes[PAYLOAD].columns

    def begin(self, found: Hypothesis, sums: Sums, slow: Array | None = None) -> None:
        """Estimate a change from `sums` of the stretch it was found in, relative to `theta`.

        slow: standard deviations (n_axes,) of the usual slow errors; None: there are none.
        """
        self.accept()
        self.seen, self._name_before, self._gains_before = sums, self.name, self.gain_covariance
        self._gain_moments = None
        self._scatter = np.zeros((10, 10))
        if slow is not None and len(slow) == len(self._slow):
            self._slow = slow
        self.switch(found)

    def retract(self) -> None:
        """Withdraw the change that is being estimated: it has not happened."""
        self.estimating, self.seen, self.name = None, Sums.empty(len(self.theta)), self._name_before
        self.gain_covariance = self._gains_before
        self._refresh()

    def add(self, sums: Sums, gain_errors: Array | None = None) -> None:
        """Add a further block, by its sums before any correction.

        gain_errors: (pairs, columns, 10) as `Innovations.gain_errors` of the columns `nuisance`.
        """
        self.seen = self.seen + sums.shifted(self.accepted)
        if gain_errors is not None:
            before = self._gain_moments
            self._gain_moments = gain_errors if before is None else before + gain_errors
        self._refresh()

    def widen(self, scatter: Array) -> None:
        """Add to the covariance (10, 10) of a payload while it is being estimated."""
        self._scatter = scatter
        self._refresh()

    def switch(self, found: Hypothesis) -> None:
        """Explain everything since the change began by another cause.

        A payload whose estimation continues keeps the name that it was given meanwhile.
        """
        before, self.estimating = self.estimating, found
        if found.cause != PAYLOAD:
            self.name, self.gain_covariance = self._name_before, self._gains_before
        elif before is None or before.cause != PAYLOAD:
            self.name = found.name
        self._refresh()

    def accept(self) -> None:
        """End the estimation: the change stays as it is estimated now."""
        if self.estimating is not None and self.estimating.cause == PAYLOAD:
            beside = self.nuisance[10:]
            self.offset_before = self.offset_before + self.theta[beside] - self.accepted[beside]
        self.accepted, self._accepted_covariance = self.theta, self.covariance
        self.estimating, self.seen = None, Sums.empty(len(self.theta))
        self._refresh()

    def set_payload(self, name: str, snapshot: Snapshot) -> None:
        """Replace the payload by a known one, or by none."""
        if self.estimating is not None and self.estimating.cause == PAYLOAD:
            self.estimating, self.seen = None, Sums.empty(len(self.theta))
        own = self.payload
        self.accepted = self.accepted.copy()
        self.accepted[own] = snapshot.mean
        self.accepted[self.nuisance[10:]] -= self.offset_before
        self.offset_before = np.zeros_like(self.offset_before)
        self._accepted_covariance = self._accepted_covariance.copy()
        self._accepted_covariance[own, own] = snapshot.covariance
        self.gain_covariance = self._gains_before = snapshot.gains.copy()
        # Friction or an offset may still be estimated: what follows it holds this payload, too.
        self.name = self._name_before = name
        self._refresh()

    def call(self, name: str) -> None:
        """Name the payload held. One that is being estimated is withdrawn with its name."""
        if self.estimating is None or self.estimating.cause != PAYLOAD:
            self._name_before = name
        self.name = name

    def forget(self, name: str) -> None:
        """Leave the payload of this name without one: held, or held again after a withdrawal."""
        self.name = "" if self.name == name else self.name
        self._name_before = "" if self._name_before == name else self._name_before

    def _refresh(self) -> None:
        self.theta: Array = self.accepted
        self.covariance: Array = self._accepted_covariance
        if self.estimating is not None:
            own = self.estimating.columns
            estimate = self._estimate(self.estimating)
            d = len(self.estimating.root)
            covariance = estimate.covariance
            self.theta, self.covariance = self.accepted.copy(), self._accepted_covariance.copy()
            self.theta[own] += estimate.mean[:d]
            self.covariance[own, own] = covariance[:d, :d]
            if self.estimating.cause == PAYLOAD:
                self.covariance[own, own] += self._scatter
                if len(covariance) > d:
                    self.theta[self.nuisance[d:]] += estimate.mean[d:]
                self._refresh_gains(covariance[:d])
        self.active = bool(self.theta.any() or self.covariance.any())
        self._base: Array = self._causes.combination @ self.theta
        w, V = np.linalg.eigh(self.covariance)
        keep = w > 1e-14 * max(float(w[-1]), 1e-300)
        spread = V[:, keep] * np.sqrt(w[keep])
        self._spread: Array = self._causes.combination @ spread if self.active else spread[:0]

    def _refresh_gains(self, covariance: Array) -> None:
        """From the covariance (10, n) of the payload with all that is estimated beside it."""
        held = self.theta[self.payload]
        found = self._common_std**2 * np.outer(held, held)
        moments = self._gain_moments
        if moments is not None and len(self._gain_std):
            shifts = self._gain_std[:, None] * (
                (moments[:, : covariance.shape[1]] @ held) @ covariance.T
            )
            found = found + shifts.T @ shifts
        self.gain_covariance = found

    def _estimate(self, found: Hypothesis) -> Estimate:
        """A payload's has the offsets beside it, after its own parameters."""
        scale = np.sqrt(np.sum(found.root**2, axis=1))
        scale = np.where(scale > 0.0, scale, 1e-6)
        mean, seen = found.mean, self.seen.restrict(found.columns)
        covariance = found.root @ found.root.T
        if found.cause == PAYLOAD and self._slow.any():
            slow = np.maximum(self._slow, 1e-9)
            scale, mean = np.concatenate((scale, slow)), np.concatenate((mean, 0.0 * slow))
            d = len(covariance)
            whole = np.diag(scale**2)
            whole[:d, :d] = covariance
            covariance, seen = whole, self.seen.restrict(self.nuisance)
        return Estimate.from_moments(mean, covariance, scale) + seen

    @property
    def offset(self) -> Array:
        """(n,) N m or N, the offset that the payload held came with."""
        beside = self.nuisance[10:]
        if self.estimating is not None and self.estimating.cause == PAYLOAD:
            return self.offset_before + self.theta[beside] - self.accepted[beside]
        return self.offset_before

    @property
    def held(self) -> Snapshot:
        """The payload as it is known now."""
        own = self.payload
        mean, covariance = self.theta[own].copy(), self.covariance[own, own].copy()
        return Snapshot(mean, covariance, self.gain_covariance.copy())

    @property
    def uncertainty(self) -> Hypothesis | None:
        """The uncertainty of the change that is being estimated; None without one."""
        if self.estimating is None:
            return None
        own = self.estimating.columns
        covariance = self._estimate(self.estimating).covariance[: len(self.estimating.root)]
        scale = np.sqrt(np.diag(covariance))
        scaled = covariance[:, : len(scale)] / np.outer(scale, scale)
        root = scale[:, None] * np.linalg.cholesky(scaled + 1e-12 * np.eye(len(scale)))
        return Hypothesis(self.estimating.cause, "", own, np.zeros(len(scale)), root)

    def effort(self, regressor: Array) -> Array:
        """(n_axes,) the changes' part of the measurement."""
        part: Array = regressor @ self._base
        return part

    def apply(self, prediction: Prediction, regressor: Array) -> Prediction:
        """The prediction of the changed robot, from that of the learned one."""
        if not self.active:
            return prediction
        added = self.effort(regressor)
        variance = np.sum((regressor @ self._spread) ** 2, axis=1) + (GAIN_ERROR * added) ** 2
        return dataclasses.replace(
            prediction,
            rigid_body=prediction.rigid_body + added,
            semiparametric=prediction.semiparametric + added,
            rigid_body_std=np.sqrt(prediction.rigid_body_std**2 + variance),
            semiparametric_std=np.sqrt(prediction.semiparametric_std**2 + variance),
        )

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs; the change being estimated counts as accepted."""
        held = slice(self._causes.n_held)  # a push is never held
        return {
            "theta": self.theta[held].copy(),
            "covariance": self.covariance[held, held].copy(),
            "name": as_array(self.name),
            "gains": self.gain_covariance.copy(),
            "beside": self.offset.copy(),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`. Raises ValueError where it is of another robot."""
        n, n_held = len(self.theta), self._causes.n_held
        if state["theta"].shape != (n_held,):
            raise ValueError("the changes that were saved are of other columns")
        self.accepted, self._accepted_covariance = np.zeros(n), np.zeros((n, n))
        self.accepted[:n_held] = state["theta"]
        self._accepted_covariance[:n_held, :n_held] = state["covariance"]
        self.name = as_text(state["name"])
        self.gain_covariance = state["gains"].copy()
        self._gains_before = self.gain_covariance
        self.offset_before = state["beside"].copy()
        self.estimating, self.seen = None, Sums.empty(len(self.accepted))
        self._refresh()


@dataclass(frozen=True, slots=True)
class Estimate:
    """A normal estimate theta ~ N(mean, covariance), as information in units of `scale` (d,)."""

    information: Array  # (d, d) of theta / scale
    moment: Array  # (d,)
    scale: Array  # (d,)

    @classmethod
    def prior(cls, scale: Array) -> Estimate:
        """Independent, with standard deviations `scale` (d,) about 0."""
        return cls(np.eye(len(scale)), np.zeros(len(scale)), scale)

    @classmethod
    def from_moments(cls, mean: Array, covariance: Array, scale: Array) -> Estimate:
        """From a mean (d,) and covariance (d, d)."""
        scaled = covariance / np.outer(scale, scale)
        information = np.linalg.inv(scaled + 1e-12 * np.eye(len(scale)))
        information = 0.5 * (information + information.T)
        return cls(information, information @ (mean / scale), scale)

    def __add__(self, sums: Sums) -> Estimate:
        """The estimate with further rows of these d columns, whose `sums` are not scaled."""
        scale = self.scale
        information = self.information + scale[:, None] * sums.information * scale
        return Estimate(information, self.moment + scale * sums.moment, scale)

    @property
    def mean(self) -> Array:
        """(d,), SI units."""
        mean: Array = self.scale * np.linalg.solve(self.information, self.moment)
        return mean

    @property
    def covariance(self) -> Array:
        """(d, d), SI units."""
        inverse = np.linalg.inv(self.information)
        covariance: Array = 0.5 * (inverse + inverse.T) * np.outer(self.scale, self.scale)
        return covariance
