"""What the innovations look like while nothing happens: how large, and how alike in time."""

from __future__ import annotations

import math

import numpy as np

from semiparam_dynamics.arrays import Array

PRIOR_BLOCKS = 40.0  # that what is assumed at first counts
ASSUMED_CORRELATION = 0.5
HIGHEST_CORRELATION = 0.98
DIAGONAL = 0.1  # share of the innovations' covariance that is taken as uncorrelated


class NoiseModel:
    """Each axis' scaled error r_k = e_k / std_k as a first-order autoregression.

        r_k = a r_(k-1) + w_k,   w_k normal, of covariance W over the axes.

    A model's errors come back with its motion: they are neither white, nor as large as predicted,
    nor alike on all axes. Whitened by this, a cause's part in them is weighed against errors as
    they are usually. Followed over about `horizon` seconds.

    Attributes
    ----------
    correlation: (n_axes,) a.
    covariance: (n_axes, n_axes) W.
    """

    def __init__(self, n_axes: int, block_length: float, horizon: float = 120.0) -> None:
        self._keep = math.exp(-block_length / horizon)
        self._square: Array = PRIOR_BLOCKS * np.ones(n_axes)
        self._product: Array = ASSUMED_CORRELATION * self._square
        self._outer: Array = PRIOR_BLOCKS * (1.0 - ASSUMED_CORRELATION**2) * np.eye(n_axes)
        self._weight = PRIOR_BLOCKS
        self._refresh()

    def update(self, scaled: Array, before: Array) -> None:
        """Take in r_k and r_(k-1), each (n_axes,), of blocks in which nothing happened."""
        left = scaled - self.correlation * before
        self._square = self._keep * self._square + before**2
        self._product = self._keep * self._product + scaled * before
        self._outer = self._keep * self._outer + np.outer(left, left)
        self._weight = self._keep * self._weight + 1.0
        self._refresh()

    def _refresh(self) -> None:
        ratio = self._product / np.maximum(self._square, 1e-12)
        self.correlation: Array = np.clip(ratio, 0.0, HIGHEST_CORRELATION)
        covariance = self._outer / self._weight
        spread = np.diag(np.diag(covariance))
        self.covariance: Array = (1.0 - DIAGONAL) * covariance + DIAGONAL * spread
        self.covariance += 1e-6 * np.eye(len(spread))
        self._root = np.linalg.cholesky(self.covariance)

    def whiten(self, rows: Array) -> Array:
        """W^(-1/2) rows for what belongs to w, (n_axes, ...)."""
        white: Array = np.linalg.solve(self._root, rows)
        return white

    def step(self, blocks: int) -> tuple[Array, Array]:
        """a^blocks (n_axes,), and how many times W's standard deviations the errors after it have.

        r_k = a^n r_(k-n) + v with v of about n blocks' worth of w: (1 - a^2n) / (1 - a^2).
        """
        a = self.correlation
        power = a**blocks
        grown: Array = np.sqrt((1.0 - power**2) / np.maximum(1.0 - a**2, 1e-12))
        return power, grown

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        return {
            "square": self._square.copy(),
            "product": self._product.copy(),
            "outer": self._outer.copy(),
            "weight": np.array(self._weight),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a :meth:`state`."""
        self._square, self._product = state["square"].copy(), state["product"].copy()
        self._outer, self._weight = state["outer"].copy(), float(state["weight"])
        self._refresh()
