"""The nonparametric baseline beside the estimator."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.dynamics.baseline import NonparametricBaseline
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator

from .arms import samples, small_arm

MODEL = small_arm()
pytestmark = pytest.mark.usefixtures("seldom_inferred")


@pytest.mark.parametrize("kind", ["nystrom", "random_fourier"])
def test_it_learns_more_slowly_than_the_semiparametric_model(kind: str) -> None:
    options = {"nystrom.window": 2.0, "random_fourier.window": 2.0}
    options |= {"random_fourier.n_features": 100}
    estimator = SemiparametricEstimator(MODEL, residual=kind, **options)
    baseline = NonparametricBaseline(MODEL, estimator.config)
    errors, stds = {"baseline": [], "estimator": []}, []
    stream = samples(MODEL, 14.0, extra=1.0)
    for sample in stream:
        told, own = estimator.predict(sample), baseline.predict(sample)
        estimator.update(sample, told)
        baseline.update(sample, own)
        errors["baseline"].append(sample.y - own.nonparametric)
        errors["estimator"].append(sample.y - told.semiparametric)
        stds.append(own.nonparametric_std)
    last = {name: np.array(rows[-400:]) for name, rows in errors.items()}
    y = np.array([sample.y for sample in stream[-400:]])
    early = {name: np.sqrt(np.mean(np.square(rows[400:1000]))) for name, rows in errors.items()}
    assert early["estimator"] < 0.5 * early["baseline"]
    assert np.sqrt(np.mean(last["baseline"] ** 2)) < 0.5 * y.std()
    assert np.mean(np.abs(last["baseline"]) <= 2.0 * np.array(stds[-400:])) > 0.8
    assert baseline.n_learned == estimator.n_learned == len(stream)
    # The spread of the measurement is the same as the estimator's.
    np.testing.assert_array_equal(baseline.errors["y"].value, estimator.errors["y"].value)


def test_it_draws_other_random_features_than_the_residual() -> None:
    estimator = SemiparametricEstimator(MODEL, residual="random_fourier", seed=3)
    baseline = NonparametricBaseline(MODEL, estimator.config)
    mine = baseline.kernel_model.model.features.frequencies
    theirs = estimator.residual.model.features.frequencies
    turning = 1  # the slew, which has a sine and a cosine
    assert mine.shape[1] == 3 * MODEL.n_joints + turning == theirs.shape[1] - MODEL.n_axes
    assert not np.isclose(mine[0, 0] / mine[0, 1], theirs[0, 0] / theirs[0, 1])


@pytest.mark.parametrize("kind", ["nystrom", "random_fourier"])
def test_a_copy_continues_bit_by_bit_on_its_own(kind: str) -> None:
    options = {"nystrom.window": 1.0, "random_fourier.window": 1.0}
    config = SemiparametricEstimator(MODEL, residual=kind, **options).config
    baseline, stream = NonparametricBaseline(MODEL, config), samples(MODEL, 5.0, extra=1.0)
    for sample in stream[:300]:
        baseline.update(sample)
    copied = baseline.copy()
    before = copied.predict(stream[300]).nonparametric
    for sample in stream[300:]:
        baseline.update(sample)
    np.testing.assert_array_equal(copied.predict(stream[300]).nonparametric, before)
    for sample in stream[300:]:
        copied.update(sample)
    a, b = (each.predict(stream[-1]) for each in (baseline, copied))
    np.testing.assert_array_equal(a.nonparametric, b.nonparametric)
    np.testing.assert_array_equal(a.nonparametric_std, b.nonparametric_std)
