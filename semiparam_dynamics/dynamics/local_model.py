"""Ridge regression on growing local features, for a residual whose rigid-body part moves."""

from __future__ import annotations

from typing import Any

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.local_features import IncrementalNystromFeatures
from semiparam_dynamics.learning.recursive import RecursiveLeastSquares
from semiparam_dynamics.learning.row_blocks import BlockAnswer, ask_block, learn_block

LEAST_BLOCK = 256  # samples that are learned at once, or as many as there are features


class LocalModel:
    """Learns y and the columns of Phi as functions of x, so that residuals never go stale.

    A residual y - Phi pi_t stored at time t goes stale as pi moves. So the outputs regressed are
    y and the columns of Phi themselves: they share one gain, and the residual for today's pi is
    phi'(w_y - W_Phi pi). Columns that never act on an axis are left out: `active` (n_axes,
    n_parameters) marks those that do; None makes it a plain regression of y.
    """

    def __init__(
        self,
        n_inputs: int,
        n_axes: int,
        active: Array | None,
        *,
        length_scale: float,
        capacity: int,
        novelty: float,
        penalty: float,
    ) -> None:
        self.n_axes = n_axes
        self.axis, self.column = np.nonzero(np.zeros((1, 1)) if active is None else active)
        self.features = IncrementalNystromFeatures(n_inputs, length_scale, capacity, novelty)
        self.core = RecursiveLeastSquares(0, n_axes + len(self.axis), penalty, capacity=capacity)

    def targets(self, y: Array, regressor: Array) -> Array:
        """What is regressed: y (n_axes,) and the active columns of Phi, in one vector."""
        return np.concatenate((y, regressor[self.axis, self.column]))

    def residual(self, outputs: Array, parameters: Array) -> Array:
        """y - Phi pi, (n_axes,), from a vector laid out as :meth:`targets`."""
        value = outputs[: self.n_axes]
        if not len(self.axis):
            return value
        moved = outputs[self.n_axes :] * parameters[self.column]
        return value - np.bincount(self.axis, moved, self.n_axes)

    def predict(self, x: Array) -> tuple[Array, float, Array]:
        """Outputs (laid out as targets), confidence in [0, 1] and features, at inputs x (d,).

        The confidence is one minus the posterior variance of a Gaussian process with this
        kernel: near 1 among many samples, 0 far from all.
        """
        phi = self.features.transform(x)
        if not len(phi):
            return np.zeros(self.core.n_outputs), 0.0, phi
        outputs = self.core.predict(phi)
        variance = 1.0 - self.features.explained + self.core.penalty * self.core.leverage
        return outputs, min(max(1.0 - variance, 0.0), 1.0), phi

    def update(self, x: Array, phi: Array, targets: Array, share: float = 0.0) -> None:
        """Learn targets at x (d,); `phi` may be from before the centres last grew.

        share : of what is known at x that gives way to this sample: see `update_replacing`.
        """
        if len(phi) != self.features.n_centers:
            phi = self.features.transform(x)
        if self.features.grow(x, phi):
            self.core.add_feature()
            phi = self.features.transform(x)
        if share > 0.0:
            self.core.update_replacing(phi, targets, share)
        else:
            self.core.update(phi, targets)

    def ask_block(self, X: Array) -> tuple[Array, Array]:
        """:meth:`predict` of inputs (k, d): outputs (k, T) and confidence (k,)."""
        phi = self.features.transform_rows(X)
        outputs, leverages = ask_block(self.core, phi)
        return outputs, self._confidence(phi, leverages)

    def learn_block(self, X: Array, targets: Array) -> tuple[BlockAnswer, Array, Array]:
        """Predict and then :meth:`update`, in turn, inputs (k, d) and targets (k, T).

        Returns the recursion's answer and the confidences (k,), of each sample before it was
        learned and before any of them was. A row has zeros for the centres that came after it; its
        own centre's weights are zero until it is learned, and what the new feature adds to the
        leverage is what it explains.
        """
        phi = self.features.grow_rows(X)
        for _ in range(phi.shape[1] - self.core.n_features):
            self.core.add_feature()
        answer = learn_block(self.core, phi, targets, most=max(phi.shape[1], LEAST_BLOCK))
        confident = self._confidence(phi, answer.leverage)
        return answer, confident, self._confidence(phi, answer.leverage_before)

    def _confidence(self, phi: Array, leverages: Array) -> Array:
        variance = 1.0 - np.einsum("ij,ij->i", phi, phi) + self.core.penalty * leverages
        confidence: Array = np.clip(1.0 - variance, 0.0, 1.0)
        return confidence

    def start(self, model: Any, X: Array) -> tuple[Array, Array]:
        """Go on from a kernel model trained in batch on inputs X (n, d).

        model : has centers_, coef_ (m, T), its targets laid out as :meth:`targets`, and this
            model's Gaussian kernel. More centres than the capacity are projected on half as many
            as that, so that new places can have some.
        Returns what :func:`fitted_rows` does: outputs (n, T), and 1 - leverage (n,).
        """
        # Not at the top: it needs scikit-learn, which a node would load for nothing.
        from semiparam_dynamics.learning.warm_start import (
            fitted_rows,
            nystrom_start,
            recursion_from,
        )

        penalty, capacity = self.core.penalty, self.features.capacity
        fits = len(model.centers_) <= capacity
        basis, weights = nystrom_start(model, capacity if fits else capacity - capacity // 2)
        self.features.start(basis)
        self.core = recursion_from(basis.transform, X, weights, penalty, capacity)
        return fitted_rows(self.core, basis.transform, X)

    def residuals(self, outputs: Array, parameters: Array) -> Array:
        """:meth:`residual` of many rows of outputs, (n, n_axes), for one pi or each row's own."""
        on_axis = np.zeros((len(self.axis), self.n_axes))
        on_axis[np.arange(len(self.axis)), self.axis] = 1.0
        moved = outputs[:, self.n_axes :] * parameters[..., self.column]
        value: Array = outputs[:, : self.n_axes] - moved @ on_axis
        return value

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        features = {f"features.{name}": value for name, value in self.features.state().items()}
        return features | {f"core.{name}": value for name, value in self.core.state().items()}

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a :meth:`state`."""
        self.features.restore(part(state, "features."))
        self.core.restore(part(state, "core."))
        if self.features.n_centers != self.core.n_features:
            raise ValueError("a local model has another number of centres than of weights")


def part(state: dict[str, Array], prefix: str) -> dict[str, Array]:
    """The entries of a state whose names begin with `prefix`, without it."""
    return {n.removeprefix(prefix): v for n, v in state.items() if n.startswith(prefix)}
