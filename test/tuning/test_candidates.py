"""The choice: harmless first, then best."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.tuning.candidates import FoldScore, Outcome, choose


def scored(
    delayed: float, frozen: float, region: float, axis: float | None = None, evidence: float = 0.0
) -> Outcome:
    ones, course = np.ones(2), np.full(40, delayed)
    motion = FoldScore("m", frozen * ones, ones, delayed * ones, ones, course, evidence)
    both = np.array([2.0 * region - axis, axis]) if axis is not None else region * ones
    place = FoldScore("r", both, ones, None, ones, np.zeros(0), np.nan)
    return Outcome({}, (motion, place))


def test_the_best_that_does_no_harm_is_chosen() -> None:
    wide, narrow, dull = scored(0.3, 0.5, 1.2), scored(0.5, 0.9, 0.99), scored(0.9, 0.95, 1.0)
    assert choose([wide, dull, narrow]) is narrow
    assert wide.harm == pytest.approx(0.2) and narrow.harm == 0.0


def test_harm_to_a_single_axis_counts() -> None:
    lopsided, dull = scored(0.3, 0.5, 0.9, 1.1), scored(0.9, 0.95, 1.0)
    assert lopsided.worst_mean < 1.0 and lopsided.worst_axis == pytest.approx(1.1)
    assert choose([lopsided, dull]) is dull


def test_where_all_do_harm_the_least_is_chosen() -> None:
    assert choose([scored(0.3, 0.5, 1.3), scored(0.8, 0.9, 1.1)]).delayed == pytest.approx(0.8)


def test_other_criteria_choose_by_other_figures() -> None:
    a, b = scored(0.4, 0.9, 0.9, evidence=1.0), scored(0.5, 0.7, 0.9, evidence=2.0)
    assert choose([a, b]) is a
    assert choose([a, b], "frozen") is b and choose([a, b], "evidence") is b


def test_a_gain_is_told_with_its_error() -> None:
    rng = np.random.default_rng(0)
    ones = np.ones(1)

    def noisy(course: np.ndarray) -> Outcome:
        return Outcome({}, (FoldScore("m", ones, ones, ones, ones, course, 0.0),))

    before = 1.0 + 0.1 * rng.standard_normal(1000)
    gain, error = noisy(before - 0.2 + 0.1 * rng.standard_normal(1000)).gain_over(noisy(before))
    assert gain == pytest.approx(0.2, abs=3 * error)
    assert error == pytest.approx(0.1 / np.sqrt(1000), rel=0.3)
