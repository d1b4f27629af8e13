"""What noticing changes costs on logs of real arms, on which nothing changed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from forgetting import split

from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.evaluation.protocols import ProtocolRun
from semiparam_dynamics.learner import InverseDynamicsLearner, Step
from semiparam_dynamics.parameters import replace


def on_logs(robots: Path, settle: float = 5.0) -> None:
    """Prints nmse (mean over joints) with detection, over what it is without; and what was named.

    Learned with detection; then sequential by the learner itself, delayed and frozen as a model
    that was learned so is worth.
    """
    print(f"{'log':<9}{'sequential':>12}{'delayed':>12}{'frozen':>12}  noticed, not learned")
    for log in ("xmate7p", "ur10", "tx40"):
        model, config, train, test = split(robots, log)
        scores = []
        for detect in (False, True):
            changed = replace(config, changes__detect=detect, changes__settle=settle)
            learner = InverseDynamicsLearner(model, changed)
            _learn(learner, train)
            runs = [ProtocolRun(learner.estimator.copy(), name) for name in ("delayed", "frozen")]
            for run in runs:
                for sample in test:
                    run.step(sample)
            errors = np.array(_learn(learner, test))
            y = np.array([sample.y for sample in test])
            nmse = [float(np.mean(np.mean(errors**2, axis=0) / y.var(axis=0)))]
            nmse += [float(run.scores.nmse("semiparametric").mean()) for run in runs]
            scores.append(nmse)
        cells = "".join(f"{on / off:>12.4f}" for off, on in zip(*scores, strict=True))
        assert learner.changes is not None
        named = dict(learner.changes.counts)
        print(f"{log:<9}{cells}  {named}, {sum(learner.dropped.values())}", flush=True)


def _learn(learner: InverseDynamicsLearner, samples: list[Sample]) -> list[np.ndarray]:
    """As `observe` and `learn`, of samples that are filtered already; returns the errors."""
    errors = []
    for sample in samples:
        prediction = learner.estimator.predict(sample, alone=False)
        step = Step(sample, prediction)
        if learner.changes is not None:
            learner.changes.watch(sample, prediction)
            changed = learner.changes.correction.apply(prediction, sample.regressor)
            step = Step(sample, changed, prediction)
        errors.append(sample.y - step.prediction.semiparametric)
        learner.update(learner.admit(step))
    return errors
