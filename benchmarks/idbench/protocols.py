"""A case, scored: this package's models by `semiparam evaluate`, and other methods beside them.

A method is told the filtered samples and what the identified rigid body predicts of each. `frozen`:
it learns nothing of the test. `delayed` and `sequential`, for one that has `update`: it predicts
half a second, or one sample, before it learns that; the rigid body learns sample by sample.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from arms import measurements
from cases import Case, Data
from sklearn.metrics import roc_auc_score

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.rigid_body import RigidBodyIdentifier
from semiparam_dynamics.dynamics.sample import SampleBlock
from semiparam_dynamics.dynamics.scores import RunningScores
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.evaluation.experiment import (
    TRAINING_SHARE,
    Evaluation,
    Filtered,
    evaluate,
)
from semiparam_dynamics.offline.evaluation.protocols import ALL_MODELS, DELAYED_BLOCK_S, PROTOCOLS
from semiparam_dynamics.robot.model import RobotModel

TICK = 1e-6  # s: times so near are one, but for rounding
BUDGET = 120.0  # s of one core that a method may take to learn a case, its choices included


class Method(Protocol):
    """What a file of `methods/` calls `Method`."""

    def fit(self, train: Data) -> None:
        """Learn."""

    def predict(self, test: Data) -> Array:
        """(n, n_axes) efforts; `test.y` is NaN."""


@dataclass(frozen=True)
class Prepared:
    """A case whose rigid body is identified.

    before: (k,) s, times of what is learned of the recording that is tested.
    """

    evaluation: Evaluation
    train: Data
    test: Data
    test_block: SampleBlock
    before: Array


def prepare(case: Case, config: InverseDynamicsConfig) -> Prepared:
    """Evaluate this package as its command does, and keep what other methods are given."""
    config = replace(config, joints=case.test.names)
    model = RobotModel(case.urdf, config.robot)
    test, *learned = (measurements(log, model, config) for log in (case.test, *case.train))
    evaluation = evaluate(model, config, [test], learned)
    frozen = evaluation.runs["frozen"]
    blocks, block = blocks_of(case, model, config, frozen.scores.samples)
    known = frozen.estimator.rigid_body.parameters
    train, tested = _data(blocks, known), _data([block], known)
    rigid = RigidBodyIdentifier.of(model, config.estimator.rigid_body)
    ends = np.cumsum([len(each) for each in blocks])[:-1]
    for each, held in zip(blocks, np.split(train.held_out(), ends), strict=True):
        if (seen := each.rows(each.informative & ~held)).stamps.size:
            rigid.update_block(seen.regressors, seen.y, seen.stamps, seen.weights)
    train = dataclasses.replace(train, choosing=_data(blocks, rigid.parameters))
    before = train.times[: 0 if case.train else len(train)]
    return Prepared(evaluation, train, tested, block, before)


def _data(blocks: list[SampleBlock], parameters: Array) -> Data:
    return Data.of(blocks, [block.regressors @ parameters for block in blocks])


def blocks_of(
    case: Case, model: RobotModel, config: InverseDynamicsConfig, tested: int = 0
) -> tuple[list[SampleBlock], SampleBlock]:
    """The filtered samples of each recording to learn, and those to test.

    tested: how many at the end are tested where the case is one recording; 0: its last 40 %.
    """
    blocks = []
    for log in (*case.train, case.test):
        recording = measurements(log, model, config)
        samples = (s for s, _, _ in Filtered(model, config.filter, recording, between=False))
        blocks.append(SampleBlock.of([sample for sample in samples if sample.y is not None]))
    if len(blocks) == 1:
        (whole,) = blocks
        begin = len(whole) - (tested or round((1.0 - TRAINING_SHARE) * len(whole)))
        blocks = [whole.rows(slice(begin)), whole.rows(slice(begin, None))]
    return blocks[:-1], blocks[-1]


def package_scores(evaluation: Evaluation) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Protocol, model and figures of each of the package's models, as results.json has them."""
    apart = evaluation.scores()
    for protocol in PROTOCOLS:
        scores = apart.get(f"{protocol}_rest", apart[protocol])
        for name in ALL_MODELS:
            if np.isfinite(nmse := scores.nmse(name)).any():
                yield protocol, name, _figures(nmse, scores.nmse("rigid_body"), scores, name)


def _figures(
    nmse: Array, rigid: Array, scores: RunningScores | None = None, name: str = ""
) -> dict[str, object]:
    """Mean nmse; of the axes the largest ratio to the rigid body's; what two deviations cover."""
    figures: dict[str, object] = {
        "nmse": float(np.nanmean(nmse)),
        "worst": float(np.nanmax(nmse / rigid)),
    }
    covered = np.array([np.nan]) if scores is None else scores.coverage(name)
    if np.isfinite(covered).any():
        figures["covered"] = [float(np.nanmean(covered)), float(np.nanmin(covered))]
    return figures


def method_scores(
    method: Method, prepared: Prepared
) -> Iterator[tuple[str, dict[str, object], float]]:
    """Protocol, figures and seconds of learning of another method.

    Raises ConfigurationError where its predictions are not finite or have another shape than `y`.
    """
    started = time.perf_counter()
    method.fit(prepared.train)
    seconds = time.perf_counter() - started
    data = prepared.test
    rigid = _nmse(data.base, data.y)
    yield "frozen", _figures(_nmse(_predicted(method, data), data.y), rigid), seconds
    if not hasattr(method, "update"):
        return
    estimator = prepared.evaluation.runs["frozen"].estimator.copy()
    in_turn = estimator.update_block(prepared.test_block)[1].values
    data = dataclasses.replace(data, base=in_turn)
    rigid = _nmse(in_turn, data.y)
    for protocol, length in (("delayed", DELAYED_BLOCK_S), ("sequential", 0.0)):
        method.fit(prepared.train)
        found = []
        for rows in _parts(prepared.before, data.times, length):
            part = data.rows(rows)
            found.append(_predicted(method, part))
            method.update(part)
        yield protocol, _figures(_nmse(np.concatenate(found), data.y), rigid), seconds


def contact_score(case: Case, prepared: Prepared, values: Array) -> float:
    """The area under the receiver operating characteristic of contacts, by predictions alone.

    A sample is called a contact by its largest error, each axis in units of what the rigid body
    leaves of what is learned; 0.5 is chance.
    """
    scale = np.sqrt(np.nanmean(prepared.train.residual**2, axis=0))
    size = np.nanmax(np.abs(prepared.test.y - values) / scale, axis=1)
    truth = np.isin(prepared.test_block.stamps, case.test.stamps[case.pushed])
    return float(roc_auc_score(truth, size))


def contact_values(method: Method | None, prepared: Prepared) -> dict[str, Array]:
    """Predictions of a pushed arm with learning off: of a method, or None, of the package."""
    if method is not None:
        method.fit(prepared.train)
        return {"": _predicted(method, prepared.test)}
    estimator = prepared.evaluation.runs["frozen"].estimator
    return dict(estimator.predict_block(prepared.test_block).values)


def _predicted(method: Method, data: Data) -> Array:
    """What a method predicts, to which the efforts are hidden."""
    blind = dataclasses.replace(data, y=np.full_like(data.y, np.nan))
    values = np.asarray(method.predict(blind))
    if values.shape != data.y.shape or not np.isfinite(values).all():
        finite = "finite" if np.isfinite(values).all() else "not all finite"
        raise ConfigurationError(
            f"predict has to return finite efforts of shape {data.y.shape}; these are {finite}, "
            f"of shape {values.shape}"
        )
    return values


def _parts(before: Array, times: Array, length: float) -> Iterator[slice]:
    """Rows of the test in parts of so many seconds, each of one sample at least.

    They go on from those of the samples `before`, as the package's do.
    """
    whole, first, begin = np.concatenate((before, times)), len(before), 0
    while begin < len(whole):
        end = int(np.searchsorted(whole, whole[begin] + length - TICK)) + 1
        end = max(end, begin + 1)
        if end > first:
            yield slice(max(begin - first, 0), end - first)
        begin = end


def _nmse(predicted: Array, y: Array) -> Array:
    """(n_axes,) mean squared error over variance, of the samples that were measured."""
    return np.nanmean((predicted - y) ** 2, axis=0) / np.nanvar(y, axis=0)
