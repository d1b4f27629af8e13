from __future__ import annotations

import numpy as np
import pytest
from recognition_unknown import HEADS, temperature
from scipy.special import softmax

from semiparam_dynamics.learning import IncrementalRLSC


@pytest.mark.parametrize("head", HEADS)
def test_energies_are_of_the_scores_that_the_probabilities_are_of(head: str) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=400)
    X = rng.standard_normal((400, 5)) + 2.0 * np.eye(4, 5)[y]
    model = IncrementalRLSC(0.3, 0.5, head=head).fit(X, y)
    tempered = model.decision_function(X) / temperature(model)
    np.testing.assert_allclose(softmax(tempered, axis=1), model.predict_proba(X), rtol=1e-9)
