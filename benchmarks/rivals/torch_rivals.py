"""Rivals that need torch: recurrent networks, a sparse Gaussian process and xRFM.

No network's step, no round of xRFM is what is learned so far: the mean, or least squares.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from other_rivals import MOST, Predict, Problem

from semiparam_dynamics.base.arrays import Array, Indices

CHECKS = 16  # times that a network's error on what is held out is looked at
BATCH = 64
RATE = 3e-3  # of learning, falling to 0 by half a cosine


class Size(NamedTuple):
    """A network's hidden units, and the noise on its standardised inputs while it learns."""

    hidden: int
    noise: float


class Network(torch.nn.Module):
    """A recurrent layer and a linear one, which begins with 0."""

    def __init__(self, cell: type, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.cell = cell(inputs, hidden, batch_first=True)
        self.out = torch.nn.Linear(hidden, outputs)
        torch.nn.init.zeros_(self.out.weight)
        torch.nn.init.zeros_(self.out.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Outputs (m, window, k) after each input of windows (m, window, d)."""
        return self.out(self.cell(x)[0])


@dataclass(frozen=True)
class Recurrent:
    """LSTM or GRU over a window of samples; chosen are its size and how long it learns.

    The second half of each window is learned, and the last output is the prediction.
    """

    cell: type
    steps: int
    sizes: tuple[Size, ...] = (Size(64, 0.0), Size(64, 0.1))

    def tune(self, problem: Problem) -> tuple[Size, int]:
        """Size and number of steps."""
        found = []
        for size in self.sizes:
            network, errors = self._network(problem, size), []

            def check(step: int, network: Network = network, errors: list[Any] = errors) -> None:
                predicted = _in_parts(network, problem)
                errors.append((float(problem.error(predicted).mean()), step))

            self._learn(network, problem, size, self.steps, check)
            error, step = min(errors)
            found.append((error, size, step))
        _, size, step = min(found)
        return size, step

    def train(self, problem: Problem, chosen: tuple[Size, int]) -> Predict:
        """A network that learned all of the training part."""
        size, steps = chosen
        network = self._network(problem, size)
        self._learn(network, problem, size, steps)
        return lambda inputs: _last(network, inputs)

    def _network(self, problem: Problem, size: Size) -> Network:
        torch.manual_seed(0)
        return Network(self.cell, problem.X.shape[1], size.hidden, problem.T.shape[1])

    def _learn(
        self,
        network: Network,
        problem: Problem,
        size: Size,
        steps: int,
        check: Callable[[int], None] = lambda step: None,
    ) -> None:
        X, T = _tensor(problem.X), _tensor(problem.T)
        taught = _tensor(problem.taught)
        half = problem.windows.shape[1] // 2

        def loss(rows: Indices) -> torch.Tensor:
            window = problem.windows[rows]
            x, late = X[window], window[:, half:]
            x = x + size.noise * torch.randn_like(x)
            errors = ((network(x)[:, half:] - T[late]) ** 2).mean(dim=2)
            return (errors * taught[late]).sum() / taught[late].sum()

        _descend(network.parameters(), loss, problem.fitted, steps, self.steps, check)


@dataclass(frozen=True)
class SparseGP:
    """A variational Gaussian process for each joint on inducing points (Hensman et al. 2013).

    Its kernel, inducing points and noise are learned with it; chosen is how long.
    """

    steps: int
    inducing: int = 128

    def tune(self, problem: Problem) -> int:
        """Number of steps."""
        model, errors = self._model(problem), []
        rows = _tensor(problem.X[problem.validation])

        def check(step: int) -> None:
            errors.append((float(problem.error(_mean(model, rows)).mean()), step))

        self._learn(model, problem, self.steps, check)
        return min(errors)[1]

    def train(self, problem: Problem, chosen: int) -> Predict:
        """A process that learned all of the training part."""
        model = self._model(problem)
        self._learn(model, problem, chosen)
        return lambda inputs: _mean(model, _tensor(inputs[:, -1]))

    def _model(self, problem: Problem) -> Any:
        import gpytorch

        torch.manual_seed(0)
        (_, d), k = problem.X.shape, problem.T.shape[1]
        batch, rows = torch.Size([k]), problem.fitted
        chosen = np.random.default_rng(0).choice(rows, min(self.inducing, len(rows)), False)
        points = _tensor(problem.X[chosen]).repeat(k, 1, 1)

        class Process(gpytorch.models.ApproximateGP):
            def __init__(self) -> None:
                variational = gpytorch.variational
                own = variational.CholeskyVariationalDistribution(points.shape[1], batch)
                strategy = variational.VariationalStrategy(self, points, own)
                super().__init__(variational.IndependentMultitaskVariationalStrategy(strategy, k))
                self.mean_module = gpytorch.means.ZeroMean(batch)
                kernel = gpytorch.kernels.RBFKernel(ard_num_dims=d, batch_shape=batch)
                kernel.lengthscale = math.sqrt(d)
                self.covar_module = gpytorch.kernels.ScaleKernel(kernel, batch_shape=batch)
                self.likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(k)

            def forward(self, x: torch.Tensor) -> Any:
                covariance = self.covar_module(x)
                return gpytorch.distributions.MultivariateNormal(self.mean_module(x), covariance)

        return Process()

    def _learn(
        self,
        model: Any,
        problem: Problem,
        steps: int,
        check: Callable[[int], None] = lambda step: None,
    ) -> None:
        import gpytorch

        rows = problem.fitted
        X, T = _tensor(problem.X), _tensor(problem.T)
        bound = gpytorch.mlls.VariationalELBO(model.likelihood, model, len(rows))
        model.train()

        def loss(batch: Indices) -> torch.Tensor:
            model.train()
            return -bound(model(X[batch]), T[batch])

        _descend(model.parameters(), loss, rows, steps, self.steps, check, batch=256, rate=0.02)


def _mean(model: Any, x: torch.Tensor) -> Array:
    import gpytorch

    model.eval()
    with torch.no_grad(), gpytorch.settings.skip_posterior_variances():
        return model(x).mean.numpy().astype(float)


@dataclass(frozen=True)
class FeatureMachine:
    """xRFM (Beaglehole et al. 2025), a kernel machine whose metric is learned in rounds.

    Chosen are the ridge, the bandwidth and the rounds. Of more rows than `most`, as many evenly.
    """

    most: int = MOST
    rounds: int = 4
    ridges: tuple[float, ...] = (1e-3, 1e-1, 10.0)
    bandwidths: tuple[float, ...] = (3.0, 10.0)

    def tune(self, problem: Problem) -> tuple[float, float, int] | None:
        """Ridge, bandwidth and rounds; None where nothing is better than no prediction."""
        rows = self._thinned(problem.fitted)
        held = self._thinned(problem.validation)
        best = float(np.mean(problem.T[held] ** 2)), None
        for ridge in self.ridges:
            for bandwidth in self.bandwidths:
                model = self._fitted(problem, rows, held, (ridge, bandwidth, self.rounds), True)
                error = float(np.mean((_rfm(model, problem.X[held]) - problem.T[held]) ** 2))
                if error < best[0]:
                    best = error, (ridge, bandwidth, model.trees[0]["model"].best_iter)
        return best[1]

    def train(self, problem: Problem, chosen: tuple[float, float, int] | None) -> Predict:
        """A machine that learned all of the training part."""
        if chosen is None:
            return lambda inputs: np.zeros((len(inputs), problem.T.shape[1]))
        rows = self._thinned(problem.fitted)
        model = self._fitted(problem, rows, rows[:2], chosen, False)
        return lambda inputs: _rfm(model, inputs[:, -1])

    def _thinned(self, rows: Indices) -> Indices:
        return rows[:: -(-len(rows) // self.most)]

    def _fitted(
        self,
        problem: Problem,
        rows: Indices,
        held: Indices,
        chosen: tuple[float, float, int],
        stop: bool,
    ) -> Any:
        from xrfm import xRFM

        ridge, bandwidth, rounds = chosen
        how = {"reg": ridge, "iters": rounds, "return_best_params": stop, "early_stop_rfm": stop}
        kernel = {"kernel": "l2", "bandwidth": bandwidth, "exponent": 1.0, "diag": False}
        model = xRFM(
            {"model": kernel, "fit": how},
            device="cpu",
            tuning_metric="mse",
            n_threads=1,
            random_state=0,
            verbose=False,
            use_temperature_tuning=False,
        )
        return model.fit(*(_tensor(a[r]) for r in (rows, held) for a in (problem.X, problem.T)))


def _rfm(model: Any, x: Array) -> Array:
    return np.asarray(model.predict(_tensor(x)), dtype=float)


def _last(network: Network, inputs: Array) -> Array:
    with torch.no_grad():
        hidden = network.cell(_tensor(inputs))[0][:, -1]
        return network.out(hidden).numpy().astype(float)


def _in_parts(network: Network, problem: Problem) -> Array:
    rows = problem.windows[problem.validation]
    parts = np.array_split(rows, len(rows) // 512 + 1)
    return np.concatenate([_last(network, problem.X[part]) for part in parts])


def _descend(
    parameters: Any,
    loss: Callable[[Indices], torch.Tensor],
    rows: Indices,
    steps: int,
    planned: int,
    check: Callable[[int], None],
    batch: int = BATCH,
    rate: float = RATE,
) -> None:
    """Take `steps` of the `planned` ones on random batches of rows; check now and then."""
    parameters = list(parameters)
    rng = np.random.default_rng(0)
    optimizer = torch.optim.Adam(parameters, lr=rate)
    every = max(planned // CHECKS, 1)
    check(0)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * 0.5 * (1.0 + math.cos(math.pi * step / planned))
        optimizer.zero_grad()
        loss(rng.choice(rows, min(batch, len(rows)))).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        if (step + 1) % every == 0:
            check(step + 1)


def _tensor(values: Array) -> torch.Tensor:
    return torch.from_numpy(np.asarray(values, dtype=np.float32))
