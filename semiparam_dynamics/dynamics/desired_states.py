"""What the models say of states that a controller wants to bring about; nothing is learned.

No filter is passed: what is learned from filtered signals holds for unfiltered ones, too, see
:mod:`semiparam_dynamics.dynamics.filtering`.
"""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.block_prediction import BlockGuesses, BlockPrediction, predicted
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.learner import InverseDynamicsLearner


def feedforward(
    estimator: SemiparametricEstimator, q: Array, dq: Array, ddq: Array
) -> BlockPrediction:
    """Values and standard deviations (k, n_axes) of `rigid_body` and `semiparametric`.

    q, dq, ddq: (k, n_joints), rad, rad/s and rad/s^2. The nonparametric model alone isn't asked:
    it is NaN. All values are finite and within the estimator's bound. No learned number changes,
    and a sample that was predicted and waits to be learned is learned as if nothing had been asked.
    """
    rigid = estimator.rigid_body.ask_block(estimator.model.regressors(q, dq, ddq))
    states = (q, dq) if estimator.config.residual == "nystrom" else (q, dq, ddq)
    inputs = np.concatenate((*states, rigid.values), axis=1)
    residual = estimator.residual.ask_block(inputs, rigid.parameters)
    residual = residual.weighed(estimator.trust.weight)
    said = predicted(estimator, BlockGuesses(rigid, residual, None))
    within = [estimator.bound.within(row) for row in said.values["rigid_body"]]
    said.values["rigid_body"] = np.array(within).reshape(rigid.values.shape)
    return said


def learner_feedforward(
    learner: InverseDynamicsLearner, q: Array, dq: Array, ddq: Array
) -> BlockPrediction:
    """:func:`feedforward` with what the learner noticed of changes, such as a payload."""
    said = feedforward(learner.estimator, q, dq, ddq)
    if learner.changes is None or not learner.changes.correction.active:
        return said
    estimator = learner.estimator
    for k, state in enumerate(zip(q, dq, ddq, strict=True)):
        sample = estimator.sample(*state)
        known = estimator.predict(sample, alone=False)
        changed = learner.changes.correction.apply(known, sample.regressor)
        for name in ("rigid_body", "semiparametric"):
            said.values[name][k] = estimator.bound.within(getattr(changed, name))
            said.stds[name][k] = getattr(changed, f"{name}_std")
    return said
