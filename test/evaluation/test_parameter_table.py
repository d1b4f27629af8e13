"""How well the motion showed each parameter."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.evaluation.experiment import evaluate
from semiparam_dynamics.evaluation.report import excitation, parameter_table
from semiparam_dynamics.robot.model import expected_scales
from semiparam_dynamics.samples.measurement import Measurement

from ..dynamics.arms import measurements, small_arm


def test_excitation_is_prior_over_posterior_deviation() -> None:
    model = small_arm()
    stream = []
    for m in measurements(model, 3.0):
        assert m.dq is not None
        still = m.dq.copy()
        still[0] = 0.0
        q = m.q.copy()
        q[0] = 0.3
        stream.append(Measurement(m.stamp, q, still, m.y))
    run = evaluate(model, InverseDynamicsConfig(), [stream]).runs["sequential"]
    identified = run.estimator.rigid_body
    factor = excitation(model, identified)
    n = model.n_parameters
    R = identified.core.R[:n, :n]
    posterior = np.sqrt(np.diag(np.linalg.inv(R.T @ R)))
    prior = 1.0 / expected_scales(model).column  # penalty 1
    np.testing.assert_allclose(factor, prior / posterior, rtol=1e-6)
    by_label = dict(zip(model.labels, factor, strict=True))
    assert by_label["viscous slew"] < 1.01  # this joint stood still
    assert by_label["viscous lift"] > 2.0
    table = parameter_table(model, identified)
    assert table.count('class="weak"') == 2 * int(np.sum(factor < 2.0))
    assert table.count("<tr>") == 1 + n
    assert "N m s/rad" in table and "kg m²" in table
