"""The parametric part: recursive identification of the base parameters (thesis 8.2.1, 8.2.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.learning.recursive import RecursiveLeastSquares
from semiparam_dynamics.parameters import parameter


@dataclass(frozen=True)
class RigidBodyConfig:
    """How the rigid body's parameters are identified."""

    penalty: float = parameter(
        1.0,
        "ridge on the parameters, each in units of what an ordinary motion would make it "
        "contribute; 1 weighs as much as one sample",
        low=1e-12,
        high=1e12,
        live=True,
    )
    prior: str = parameter(
        "zero",
        "where identification starts and what the ridge pulls to: zero, or the URDF's parameters",
        choices=("zero", "urdf"),
    )


class RigidBodyIdentifier:
    """y = Phi(x) pi, learned row by row; predicts and updates at a cost fixed by len(pi).

    Rows are divided by their output's scale and the ridge acts on scaled columns, so that
    newtons and newton metres, kilograms and friction coefficients weigh alike. A scale is the
    running root mean square of the output, begun with the one that the URDF expects.
    """

    SCALE_SAMPLES = 100.0  # weight of the expected scale, in samples

    def __init__(
        self, output_scale: Array, column_scale: Array, prior: Array, config: RigidBodyConfig
    ) -> None:
        self.n_parameters = len(prior)
        self.core = RecursiveLeastSquares(self.n_parameters, 1, config.penalty)
        self.core.set_prior(prior[:, None], column_scale)
        self.parameters: Array = prior.copy()
        self._column_scale = column_scale
        self._square = self.SCALE_SAMPLES * output_scale**2
        self._count = self.SCALE_SAMPLES
        self._error_square = 0.0
        self._rows = 0

    def penalties(self, config: RigidBodyConfig) -> list[tuple[RecursiveLeastSquares, float]]:
        """The recursions of this model, with the ridge that `config` wants for each."""
        return [(self.core, config.penalty)]

    def predict(self, regressor: Array) -> Array:
        """Phi pi, (n_axes,)."""
        value: Array = regressor @ self.parameters
        return value

    def leverage(self, regressor: Array) -> Array:
        """How unsure the parameters make each output, (n_axes,), in units of its noise variance."""
        scale = np.sqrt(self._square / self._count)
        return self.core.leverages(regressor / scale[:, None])

    def update(self, regressor: Array, y: Array) -> None:
        """Learn from Phi (n_axes, n_parameters) and y (n_axes,)."""
        self._square += y**2
        self._count += 1.0
        weight = np.sqrt(self._count / self._square)
        rows = regressor * weight[:, None]
        errors = (y - regressor @ self.parameters) * weight
        self._error_square += float(np.sum(errors**2 / (1.0 + self.core.leverages(rows))))
        self._rows += len(y)
        self.core.update_rows(rows, (y * weight)[:, None])
        self.parameters = self.core.weights()[:, 0]

    def standard_deviations(self) -> Array:
        """Of each parameter, (n_parameters,), in the parameter's own unit."""
        noise = self._error_square / max(self._rows, 1)
        return np.sqrt(noise * self.core.covariance_diagonal())

    def excitation_rank(self) -> int:
        """How many independent combinations of parameters the motion has made visible.

        Those along which the data weigh more than the ridge, out of n_parameters.
        """
        scaled = self.core.R / (self._column_scale * np.sqrt(self.core.penalty))
        return int(np.sum(np.linalg.svd(scaled, compute_uv=False) ** 2 > 2.0))

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        return {
            **{f"core.{name}": value for name, value in self.core.state().items()},
            "square": self._square.copy(),
            "sums": np.array([self._count, self._error_square, self._rows], dtype=float),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a :meth:`state`."""
        self.core.restore({n.removeprefix("core."): v for n, v in state.items() if "core." in n})
        self._square = state["square"].copy()
        self._count, self._error_square = state["sums"][:2].tolist()
        self._rows = int(state["sums"][2])
        self.parameters = self.core.weights()[:, 0]
