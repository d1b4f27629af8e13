"""The robot's errors while it holds a payload, in addition to the payload's own part of them.

Links that twist under a load turn the weight of the arm itself, and friction grows with what the
joints carry: no body at the hand explains that. It is learned apart, and dropped with the load.
"""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.storage import sub_state
from semiparam_dynamics.changes.hypotheses import Causes
from semiparam_dynamics.dynamics.residual import KernelResidual, NystromConfig
from semiparam_dynamics.dynamics.rigid_body import RigidBodyBlock
from semiparam_dynamics.dynamics.sample import Prediction, ResidualPrediction, Sample
from semiparam_dynamics.robot.model import RobotModel, expected_scales

# Twice as local as the arm's own residual, whose errors a load changes from place to place; what is
# learned in seconds must count soon, so less ridge.
CONFIG = NystromConfig(
    max_centers=200, length_scale=0.1, novelty=0.2, penalty=0.05, wide_max_centers=0, window=10.0
)
GROUPS = ("position", "velocity")


class HeldResidual:
    """A local kernel model of the errors under a load, for whatever the load is said to be.

    Regressed are the errors of the learned model and the columns of all causes, so that what is
    left by today's estimate theta of the changes is known (`dynamics.residual.KernelResidual`):
    while a payload is weighed theta moves with each block. Where nothing was learned it is 0.

    Parameters
    ----------
    model: the robot. causes: of its changes.

    Attributes
    ----------
    n_learned: samples since the load is held.
    """

    def __init__(self, model: RobotModel, causes: Causes) -> None:
        self._n = causes.n_held
        self._combination: Array = causes.combination[:, : self._n]
        moved = expected_scales(model).active.astype(float) @ np.abs(self._combination)
        active = (moved > 0.0).astype(np.float64)
        self._residual = KernelResidual(CONFIG, GROUPS, model, active=active)
        self._blank = self._residual.model.state()
        self._last: tuple[Sample, Array, ResidualPrediction] | None = None
        self.n_learned = 0

    def observe(self, sample: Sample, prediction: Prediction) -> None:
        """Take the inputs' scales from the first seconds of motion; after them this does nothing.

        prediction: of the learned model.
        """
        standardizer = self._residual.standardizer
        if not standardizer.settled and sample.teaches:
            x = self._inputs(sample, prediction)
            if standardizer.observe(sample.stamp, x) and self.n_learned:
                self.drop()

    def drop(self) -> None:
        """Forget all that was learned: the load is gone, or another."""
        self._last = None
        if self.n_learned:
            self._residual.model.restore(self._blank)
            self.n_learned = 0

    def value(self, sample: Sample, prediction: Prediction, theta: Array) -> Array:
        """(n_axes,) N m or N, what is left at a sample of the changes theta (n_columns,).

        prediction: of the learned model.
        """
        return self._predict(sample, prediction, theta).value

    def learn(self, sample: Sample, prediction: Prediction) -> None:
        """Learn a measured sample under the load; prediction: of the learned model."""
        if not self._residual.standardizer.settled or not sample.teaches:
            return
        assert sample.y is not None
        self._residual.update(
            sample.stamp,
            self._inputs(sample, prediction),
            sample.y - prediction.semiparametric,
            sample.regressor @ self._combination,
            prediction.rigid_body,
            RigidBodyBlock.none(sample.y[None], np.array([sample.weight])),
        )
        self._last = None
        self.n_learned += 1

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        own = {"learned": np.array(self.n_learned)}
        if self.n_learned:
            return self._residual.state() | own
        scales = self._residual.standardizer.state()
        return {f"standardizer.{name}": value for name, value in scales.items()} | own

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`."""
        self.drop()
        self.n_learned = int(state["learned"])
        if self.n_learned:
            self._residual.restore(state)
        else:
            self._residual.standardizer.restore(sub_state(state, "standardizer."))

    def _inputs(self, sample: Sample, prediction: Prediction) -> Array:
        return self._residual.inputs(sample.q, sample.dq, sample.ddq, prediction.rigid_body)

    def _predict(self, sample: Sample, prediction: Prediction, theta: Array) -> ResidualPrediction:
        last = self._last
        if last is not None and last[0] is sample and last[1] is theta:
            return last[2]
        x = self._inputs(sample, prediction)
        known = self._residual.predict(x, theta[: self._n])
        self._last = sample, theta, known
        return known
