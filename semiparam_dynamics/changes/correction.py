"""What is added to the predictions and taken off what is learned: the changes found so far."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.changes.hypotheses import PAYLOAD, Causes, Hypothesis, Sums, nothing
from semiparam_dynamics.changes.payload import BARE, Snapshot, as_array, as_text
from semiparam_dynamics.dynamics.sample import Prediction

# -------------------------------------------------------------------------------------------------
# A normal estimate of what changed, refined block after block.


@dataclass(frozen=True, slots=True)
class Estimate:
    """theta ~ N(mean, covariance) in coordinates of `scale` (d,), as information."""

    information: Array  # (d, d) of theta / scale
    moment: Array  # (d,)
    scale: Array  # (d,)

    @classmethod
    def prior(cls, scale: Array, mean: Array | None = None) -> Estimate:
        """Independent, of standard deviations `scale` (d,) about `mean`."""
        d = len(scale)
        return cls(np.eye(d), np.zeros(d) if mean is None else mean / scale, scale)

    @classmethod
    def of(cls, mean: Array, covariance: Array, scale: Array) -> Estimate:
        """Of a known mean (d,) and covariance (d, d)."""
        scaled = covariance / np.outer(scale, scale)
        information = np.linalg.inv(scaled + 1e-12 * np.eye(len(scale)))
        information = 0.5 * (information + information.T)
        return cls(information, information @ (mean / scale), scale)

    def __add__(self, sums: Sums) -> Estimate:
        """With what more rows of these d columns say; `sums` are of them, not scaled."""
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

    @property
    def root(self) -> Array:
        """(d, d) of the covariance: root root'."""
        lower = np.linalg.cholesky(self.information)
        root: Array = self.scale[:, None] * np.asarray(np.linalg.inv(lower)).T
        return root


DISTRUST = 0.1  # of a change's effort is taken as noise: sensors and models have errors of gain


class Correction:
    """theta (n_columns,) of all causes: what settled, and what is being estimated on top of it.

    A change is never put into the model itself. The rigid body's parameters and the residual stay
    those of the robot that was learned, so that taking it back costs nothing, and the residual's
    inputs stay where it was trained.

    Attributes
    ----------
    settled: (n_columns,) before what is being estimated.
    name: of the payload held, "" for one without a name, "bare" for none.
    """

    def __init__(self, causes: Causes) -> None:
        self._causes = causes
        n = causes.n_columns
        self.settled: Array = np.zeros(n)
        self._settled_covariance: Array = np.zeros((n, n))
        self.name = self._name_before = BARE
        self._sums: Sums = nothing(n)
        self._found: Hypothesis | None = None
        self._refresh()

    @property
    def estimating(self) -> Hypothesis | None:
        """The change that is being estimated, if one is."""
        return self._found

    @property
    def payload(self) -> slice:
        """The payload's columns."""
        return self._causes[PAYLOAD].columns

    def begin(self, found: Hypothesis, sums: Sums) -> None:
        """Estimate a change; `sums`, relative to `theta`, are of the stretch it was found in."""
        self.settle()
        self._found, self._sums, self._name_before = found, sums, self.name
        self._rename(found)
        self._refresh()

    def retract(self) -> None:
        """What was being estimated has not happened."""
        self._found, self._sums, self.name = None, nothing(len(self.theta)), self._name_before
        self._refresh()

    def add(self, sums: Sums) -> None:
        """Take in a further block; `sums` of what was measured, nothing taken off."""
        self._sums = self._sums + sums.shifted(self.settled)
        self._refresh()

    def switch(self, found: Hypothesis) -> None:
        """Explain what was seen since the change began by another cause."""
        self._found, self.name = found, self._name_before
        self._rename(found)
        self._refresh()

    @property
    def seen(self) -> Sums:
        """What was seen since the change began, relative to `settled`."""
        return self._sums

    def _rename(self, found: Hypothesis) -> None:
        if found.cause == PAYLOAD:
            self.name = found.name

    def settle(self) -> None:
        """What was estimated stands from now on."""
        self.settled, self._settled_covariance = self.theta, self.covariance
        self._found, self._sums = None, nothing(len(self.theta))
        self._refresh()

    def hold(self, name: str, snapshot: Snapshot) -> None:
        """Another payload, from now on: one known before, or none."""
        if self._found is not None and self._found.cause == PAYLOAD:
            self._found, self._sums = None, nothing(len(self.theta))
        own = self.payload
        self.settled = self.settled.copy()
        self.settled[own] = snapshot.mean
        self._settled_covariance = self._settled_covariance.copy()
        self._settled_covariance[own, own] = snapshot.covariance
        self.name = name
        self._refresh()

    def _refresh(self) -> None:
        self.theta: Array = self.settled
        self.covariance: Array = self._settled_covariance
        if self._found is not None:
            own = self._found.columns
            estimate = self._estimate(self._found)
            self.theta, self.covariance = self.settled.copy(), self._settled_covariance.copy()
            self.theta[own] += estimate.mean
            self.covariance[own, own] = estimate.covariance
        self.active = bool(self.theta.any() or self.covariance.any())
        self._base: Array = self._causes.combination @ self.theta
        w, V = np.linalg.eigh(self.covariance)
        keep = w > 1e-14 * max(float(w[-1]), 1e-300)
        spread = V[:, keep] * np.sqrt(w[keep])
        self._spread: Array = self._causes.combination @ spread if self.active else spread[:0]

    def _estimate(self, found: Hypothesis) -> Estimate:
        scale = np.sqrt(np.sum(found.root**2, axis=1))
        scale = np.where(scale > 0.0, scale, 1e-6)
        prior = Estimate.of(
            np.zeros(len(scale)) if found.mean is None else found.mean,
            found.root @ found.root.T,
            scale,
        )
        return prior + self._sums.of(found.columns)

    @property
    def held(self) -> Snapshot:
        """The payload as it is known now."""
        own = self.payload
        return Snapshot(self.theta[own].copy(), self.covariance[own, own].copy())

    @property
    def uncertainty(self) -> Hypothesis | None:
        """How unsure what is being estimated still is, None where nothing is."""
        if self._found is None:
            return None
        own = self._found.columns
        root = self._estimate(self._found).root
        return Hypothesis(self._found.cause, "", own, None, root)

    def effort(self, regressor: Array) -> Array:
        """(n_axes,) what the changes add to what is measured."""
        added: Array = regressor @ self._base
        return added

    def apply(self, prediction: Prediction, regressor: Array) -> Prediction:
        """The prediction of the changed robot from that of the one that was learned."""
        if not self.active:
            return prediction
        added = self.effort(regressor)
        variance = np.sum((regressor @ self._spread) ** 2, axis=1) + (DISTRUST * added) ** 2
        return dataclasses.replace(
            prediction,
            rigid_body=prediction.rigid_body + added,
            semiparametric=prediction.semiparametric + added,
            rigid_body_std=np.sqrt(prediction.rigid_body_std**2 + variance),
            semiparametric_std=np.sqrt(prediction.semiparametric_std**2 + variance),
        )

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs; what is being estimated counts as settled."""
        return {
            "theta": self.theta.copy(),
            "covariance": self.covariance.copy(),
            "name": as_array(self.name),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a :meth:`state`. Raises ValueError where it is of another robot."""
        if state["theta"].shape != self.theta.shape:
            raise ValueError("the changes that were saved are of other columns")
        self.settled, self._settled_covariance = state["theta"].copy(), state["covariance"].copy()
        self.name = as_text(state["name"])
        self._found, self._sums = None, nothing(len(self.settled))
        self._refresh()
