"""Networks and processes that learn by gradient descent (torch), for the files of `methods/`."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from cases import Data

from semiparam_dynamics.base.arrays import Array, Indices

STEPS, CHECKS = 240, 16  # batches at most, and times that the error on what is held out is asked


@dataclass(frozen=True)
class Scaled:
    """Inputs X (n, d) and residuals T (n, k) in units of what is learned: mean 0, variance 1.

    taught: rows to learn: in motion, with all axes measured. fitted, held: taught, and not or held
    out. first: (n,) of each row the first row of its recording.
    """

    X: torch.Tensor
    T: torch.Tensor
    taught: Indices
    fitted: Indices
    held: Indices
    first: Indices
    units: tuple[Array, Array, Array, Array]

    @classmethod
    def of(cls, train: Data) -> Scaled:
        """The problem of what is learned."""
        known, held = train.moving & np.isfinite(train.y).all(axis=1), train.held_out()
        X, T = train.inputs[known], train.residual[known]
        units = X.mean(axis=0), _spread(X), T.mean(axis=0), _spread(T)
        rows = (np.flatnonzero(chosen) for chosen in (known, known & ~held, known & held))
        return cls(*_scaled(train, units), *rows, _first(train), units)

    def other(self, test: Data) -> Scaled:
        """Other samples in the same units."""
        X, T = _scaled(test, self.units)
        return dataclasses.replace(self, X=X, T=T, first=_first(test))

    def windows(self, rows: Indices | slice, length: int) -> torch.Tensor:
        """(m, length) rows up to each row; the first of a recording stands for those before it."""
        last = np.arange(len(self.X))[rows]
        steps = last[:, None] - np.arange(length)[::-1]
        return torch.from_numpy(np.maximum(steps, self.first[last][:, None]))

    def output(self, T: torch.Tensor) -> Array:
        """Residuals in their own units."""
        return T.double().numpy() * self.units[3] + self.units[2]


def _spread(values: Array) -> Array:
    spread = values.std(axis=0)
    return np.where(spread > 0.0, spread, 1.0)


def _first(data: Data) -> Indices:
    return np.searchsorted(data.recordings, data.recordings)


def _scaled(data: Data, units: tuple[Array, Array, Array, Array]) -> tuple[torch.Tensor, ...]:
    x_mean, x_spread, t_mean, t_spread = units
    both = (data.inputs - x_mean) / x_spread, (data.residual - t_mean) / t_spread
    return tuple(torch.from_numpy(np.asarray(values, dtype=np.float32)) for values in both)


class Descent(ABC):
    """A method that learns what the rigid body leaves by gradient descent.

    A subclass says what model, by `make`, `loss` and `outputs`, and which of `SETTINGS` it may
    choose on what is held out; the number of batches, `STEPS` at most, is chosen, too.
    """

    SETTINGS: tuple[float, ...] = (0.0,)
    BATCH, RATE = 64, 3e-3  # the rate falls to 0 by half a cosine
    setting = 0.0

    @abstractmethod
    def make(self, rows: Indices) -> Any:
        """A model that has learned nothing and predicts 0, for these rows of `scaled`."""

    @abstractmethod
    def loss(self, model: Any, batch: Indices, n: int) -> torch.Tensor:
        """The loss on a batch of n rows."""

    @abstractmethod
    def outputs(self, model: Any, rows: Indices | slice, scaled: Scaled) -> torch.Tensor:
        """(m, k) what a model predicts of T."""

    def fit(self, train: Data) -> None:
        """Choose, and learn all."""
        self.scaled, found = Scaled.of(train.choosing), []
        for setting in self.SETTINGS:
            self.setting, errors = setting, list[float]()
            self._learn(self.scaled.fitted, STEPS, errors)
            k = int(np.argmin(errors))
            found.append((errors[k], k * (STEPS // CHECKS), setting))
        _, steps, self.setting = min(found)
        self.scaled = Scaled.of(train)
        self.model = self._learn(self.scaled.taught, steps)

    def predict(self, test: Data) -> Array:
        """The rigid body's efforts and the model's for the rest."""
        with torch.no_grad():
            T = self.outputs(self.model, slice(None), self.scaled.other(test))
        return test.base + self.scaled.output(T)

    def _learn(self, rows: Indices, steps: int, errors: list[float] | None = None) -> Any:
        """A model after so many batches of the rows; errors: of what is held out, on the way."""
        torch.manual_seed(0)
        model, rng, every = self.make(rows), np.random.default_rng(0), STEPS // CHECKS
        parameters, held = list(model.parameters()), self.scaled.held
        optimizer = torch.optim.Adam(parameters)
        for step in range(steps + 1):
            if errors is not None and step % every == 0:
                with torch.no_grad():
                    left = self.outputs(model, held, self.scaled) - self.scaled.T[held]
                errors.append(float(left.square().mean()))
            if step < steps:
                rate = self.RATE * 0.5 * (1.0 + math.cos(math.pi * step / STEPS))
                optimizer.param_groups[0]["lr"] = rate
                optimizer.zero_grad()
                batch = rng.choice(rows, min(self.BATCH, len(rows)))
                self.loss(model, batch, len(rows)).backward()
                torch.nn.utils.clip_grad_norm_(parameters, 1.0)
                optimizer.step()
        return model
