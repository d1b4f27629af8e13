"""Methods compared without torch: identification, this package's parts, and gradient boosting.

A rival that learns from rows of inputs is asked twice: `tune` chooses what it leaves open on the
held-out last fifth of the training part, and `train` learns all of the training part with that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from arm_splits import WINDOW, Result, windows
from arms import Split
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.preprocessing import StandardScaler

from semiparam_dynamics.base.arrays import Array, Indices, Mask
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.consistent import AxisFactors, consistent, unconstrained
from semiparam_dynamics.dynamics.estimator import EstimatorConfig, SemiparametricEstimator
from semiparam_dynamics.dynamics.rigid_body import RigidBodyIdentifier
from semiparam_dynamics.dynamics.sample import Sample, SampleBlock
from semiparam_dynamics.offline.evaluation.protocols import ProtocolRun
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.regressor import OPTIONAL

HELD_OUT = 0.2  # of the training part, its end
MOST = 2000  # rows that a method whose cost is cubic in them learns

RIGID_BODY = "the rigid body"
PLAIN_RIGID_BODY = "plain rigid body"
PACKAGE_DEFAULT = "+ Nyström residual (the default)"


# Parameters identified in batch.


def identification(split: Split) -> dict[str, Result]:
    """The URDF, and least squares without and with the condition that the bodies can exist."""
    return {
        "URDF": _predicted(split, split.model.prior, np.nan),
        "least squares": _linear(split, unconstrained),
        "consistent parameters": _linear(
            split, lambda model, factors: consistent(model, factors).base
        ),
    }


def _linear(split: Split, identify: Callable[[RobotModel, AxisFactors], Array]) -> Result:
    seconds = np.inf
    for _ in range(2):  # the first time code is compiled, or read
        started = time.perf_counter()
        parameters = identify(split.model, axis_factors(split.model, split.train))
        seconds = min(seconds, time.perf_counter() - started)
    return _predicted(split, parameters, seconds)


def _predicted(split: Split, parameters: Array, seconds: float) -> Result:
    predicted = SampleBlock.of(split.test).regressors @ parameters
    model, (q, dq, ddq) = split.model, _state(split.test[-1])
    return Result(predicted, seconds, lambda: model.regressor(q, dq, ddq) @ parameters)


def axis_factors(model: RobotModel, samples: list[Sample]) -> AxisFactors:
    """The factors that identification keeps of samples."""
    factors = AxisFactors(model.n_axes, model.n_parameters)
    for sample in samples:
        factors.add(sample)
    return factors


def _state(sample: Sample) -> tuple[Array, Array, Array]:
    return sample.q, sample.dq, sample.ddq


# This package's parts.


def package(split: Split) -> dict[str, Result]:
    """A rigid body with viscous and Coulomb friction, one with all columns, and each residual."""
    both = _learned(split, "nystrom")
    features = _learned(split, "random_fourier")
    rigid, seconds = identified(split.model, split.config.estimator, split.train)
    kept = np.array([not label.startswith(OPTIONAL) for label in split.model.labels])
    return {
        PLAIN_RIGID_BODY: _predicted(split, rigid.restricted(kept), seconds),
        "rigid body": both["rigid_body"],
        PACKAGE_DEFAULT: both["semiparametric"],
        "+ random features": features["semiparametric"],
        "persistence": both["persistence"],
    }


def _learned(side: Split, residual: str) -> dict[str, Result]:
    """The models of an estimator that learned the training part in turn."""
    config = replace(side.config.estimator, residual=residual)
    seconds = dict.fromkeys(("semiparametric", "rigid_body"), np.inf)
    for _ in range(2):  # the first time code is compiled, or read
        run = ProtocolRun(SemiparametricEstimator(side.model, config), "sequential")
        started = time.perf_counter()
        for sample in side.train:
            run.step(sample, score=False)
        run.finish()
        seconds["semiparametric"] = min(seconds["semiparametric"], time.perf_counter() - started)
        rigid, alone = identified(side.model, side.config.estimator, side.train)
        seconds["rigid_body"] = min(seconds["rigid_body"], alone)
    seconds["persistence"] = seconds["rigid_body"]
    estimator, model = run.estimator.copy(), side.model
    block = SampleBlock.of(side.test)
    predicted = estimator.predict_block(block).values
    predicted["persistence"] = predicted["rigid_body"] + run.last_residual
    last = side.test[-1]
    q, dq, ddq = _state(last)
    one = {
        "semiparametric": lambda: estimator.predict(estimator.sample(q, dq, ddq, None, last.stamp)),
        "rigid_body": lambda: rigid.predict(model.regressor(q, dq, ddq)),
    }
    one["persistence"] = one["rigid_body"]
    online: dict[str, dict[str, float]] = {name: {} for name in predicted}
    for protocol in ("sequential", "delayed"):
        branch = run.branch(protocol)
        for sample in side.test:
            branch.step(sample)
        for name in predicted:
            online[name][protocol] = float(branch.scores.nmse(name).mean())
    return {
        name: Result(values, seconds[name], one[name], online[name])
        for name, values in predicted.items()
    }


def identified(
    model: RobotModel, config: EstimatorConfig, samples: list[Sample]
) -> tuple[RigidBodyIdentifier, float]:
    """The rigid body without a residual, and the seconds that it takes to learn."""
    rigid = RigidBodyIdentifier.of(model, config.rigid_body)
    block = SampleBlock.of([sample for sample in samples if sample.teaches])
    started = time.perf_counter()
    rigid.update_block(block.regressors, block.y, block.stamps, block.weights)
    return rigid, time.perf_counter() - started


# Rivals that learn from inputs alone, or what the rigid body leaves.


@dataclass(frozen=True)
class Problem:
    """Standardised inputs X (n, d) and targets T (n, k) of a training part.

    windows : (n, WINDOW) rows of X that a prediction of each row may see, itself last.
    taught : (n,) the rows that may be learned: not those at rest.
    held : (n,) the rows of the last fifth.
    """

    X: Array
    T: Array
    windows: Indices
    taught: Mask
    held: Mask

    @property
    def fitted(self) -> Indices:
        """The rows to learn where others are held out."""
        return np.flatnonzero(self.taught & ~self.held)

    @property
    def validation(self) -> Indices:
        """The rows that are held out."""
        return np.flatnonzero(self.taught & self.held)

    def error(self, predicted: Array) -> Array:
        """(k,) mean squared errors on the rows held out."""
        errors: Array = np.mean((self.T[self.validation] - predicted) ** 2, axis=0)
        return errors


Predict = Callable[[Array], Array]  # windows of inputs (m, WINDOW, d) to targets (m, k)


class Rival(Protocol):
    """A method that learns a problem."""

    def tune(self, problem: Problem) -> Any:
        """Choose on the rows held out what `train` is to use."""

    def train(self, problem: Problem, chosen: Any) -> Predict:
        """Learn all rows that may be learned."""


def compete(split: Split, rival: Rival, *, residual: bool) -> Result:
    """A rival as the whole model, or on what the package's rigid body leaves."""
    side = split
    # Rest at the end teaches nothing, and could be all that is held out.
    n = 1 + max(row for row, sample in enumerate(side.train) if sample.teaches)
    side = side._replace(train=side.train[:n])
    held = np.arange(n) >= round((1.0 - HELD_OUT) * n)
    train, test = SampleBlock.of(side.train), SampleBlock.of(side.test)
    started = time.perf_counter()
    first = [sample for sample, out in zip(side.train, held, strict=True) if not out]
    chosen = rival.tune(Units(side, first, residual).problem(train, held))
    units = Units(side, side.train, residual)
    predict = rival.train(units.problem(train, np.zeros(n, dtype=bool)), chosen)
    seconds = time.perf_counter() - started
    inputs, base = units.inputs(test)
    rows = windows(test)
    parts = [predict(inputs[part]) for part in np.array_split(rows, len(rows) // 512 + 1)]
    predicted = base + units.outputs.inverse_transform(np.concatenate(parts))
    window = inputs[rows[-1:]]
    state = _state(side.test[-1])

    def one() -> Array:
        window[0, -1], base = units.input(*state)
        value: Array = base + units.outputs.inverse_transform(predict(window))
        return value

    return Result(predicted, seconds, one)


class Units:
    """Inputs and targets in units of some samples: zero mean, unit variance.

    Of a residual the targets are what the rigid body of these samples leaves, and the inputs have
    its prediction beside positions, velocities and accelerations.
    """

    def __init__(self, side: Split, samples: list[Sample], residual: bool) -> None:
        self._model, self._residual = side.model, residual
        taught = SampleBlock.of([sample for sample in samples if sample.teaches])
        self._parameters = np.zeros(side.model.n_parameters)
        if residual:
            rigid, _ = identified(side.model, side.config.estimator, samples)
            self._parameters = rigid.parameters
        raw, base = self._raw(taught)
        self._inputs = StandardScaler().fit(raw)
        self.outputs = StandardScaler().fit(taught.y - base)

    def _raw(self, block: SampleBlock) -> tuple[Array, Array]:
        base = block.regressors @ self._parameters
        states = [block.q, block.dq, block.ddq]
        return np.hstack(states + [base] * self._residual), base

    def inputs(self, block: SampleBlock) -> tuple[Array, Array]:
        """Inputs (n, d), and what targets are added to (n, n_axes)."""
        raw, base = self._raw(block)
        return self._inputs.transform(raw), base

    def input(self, q: Array, dq: Array, ddq: Array) -> tuple[Array, Array]:
        """The same of one state."""
        states, base = [q, dq, ddq], np.zeros(self._model.n_axes)
        if self._residual:
            base = self._model.regressor(q, dq, ddq) @ self._parameters
            states.append(base)
        raw = np.concatenate(states)
        return (raw - self._inputs.mean_) / self._inputs.scale_, base

    def problem(self, block: SampleBlock, held: Mask) -> Problem:
        """The problem of the samples of a training part."""
        inputs, base = self.inputs(block)
        targets = self.outputs.transform(block.y - base)
        return Problem(inputs, targets, windows(block), block.informative, held)


@dataclass(frozen=True)
class Boosting:
    """scikit-learn's HistGradientBoosting, one for each joint; chosen are leaves and rounds."""

    rounds: int
    leaves: tuple[int, ...] = (6, 31)

    def tune(self, problem: Problem) -> list[tuple[int, int]]:
        """Leaves and rounds of each joint."""
        fit, held = problem.fitted, problem.validation
        chosen = []
        for target in problem.T.T:
            # No round at all is what is learned so far: the mean, or the rigid body.
            found = [(float(np.mean(target[held] ** 2)), 0, 0)]
            for leaves in self.leaves:
                model = self._model(leaves, self.rounds).fit(problem.X[fit], target[fit])
                stages = model.staged_predict(problem.X[held])
                errors = [float(np.mean((target[held] - stage) ** 2)) for stage in stages]
                found.append((min(errors), leaves, int(np.argmin(errors)) + 1))
            chosen.append(min(found)[1:])
        return chosen

    def train(self, problem: Problem, chosen: list[tuple[int, int]]) -> Predict:
        """All joints' models as one function."""
        rows = problem.fitted
        models = [
            self._model(*one).fit(problem.X[rows], target[rows]) if one[1] else None
            for one, target in zip(chosen, problem.T.T, strict=True)
        ]

        def predict(inputs: Array) -> Array:
            x = inputs[:, WINDOW - 1]
            nothing = np.zeros(len(x))
            return np.column_stack([nothing if m is None else m.predict(x) for m in models])

        return predict

    @staticmethod
    def _model(leaves: int, rounds: int) -> HistGradientBoostingRegressor:
        return HistGradientBoostingRegressor(
            max_iter=rounds, max_leaf_nodes=leaves, early_stopping=False, random_state=0
        )
