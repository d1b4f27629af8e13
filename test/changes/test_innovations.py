"""Blocks of about one independent observation each, and the noise model against its process."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.changes.innovations import (
    UNCORRELATED_SHARE,
    Block,
    BlockMean,
    Innovations,
    NoiseModel,
    SlowErrors,
)


def blocks(mean: BlockMean, stamps: list[int], errors: np.ndarray) -> list[Block]:
    columns = np.stack((errors, 2.0 * errors), axis=-1)
    found = [
        mean.add(stamp, error, column, error)
        for stamp, error, column in zip(stamps, errors, columns, strict=True)
    ]
    return [block for block in found if block is not None]


@pytest.mark.parametrize("rate", [50, 100, 333, 1000])
def test_as_many_a_second_at_any_rate_and_they_are_the_means(rate: int) -> None:
    n = 10 * rate
    stamps = [round(k * 1e9 / rate) for k in range(n)]
    errors = np.random.default_rng(0).standard_normal((n, 2))
    found = blocks(BlockMean(0.1, 0.5), stamps, errors)
    assert 95 <= len(found) <= 100
    for block in found:
        inside = [block.start <= stamp <= block.end for stamp in stamps]
        np.testing.assert_allclose(block.error, errors[inside].mean(axis=0))
        np.testing.assert_allclose(block.columns[:, 1], 2.0 * block.error)
        np.testing.assert_allclose(block.std, np.sqrt((errors[inside] ** 2).mean(axis=0)))
    assert [block.follows for block in found] == [False] + [True] * (len(found) - 1)


def test_slower_samples_than_blocks_are_blocks_themselves() -> None:
    stamps = [k * 1_000_000_000 for k in range(5)]
    found = blocks(BlockMean(0.1, 2.0), stamps, np.ones((5, 2)))
    # Of the first nobody knows how long it lasts, so that the second is with it.
    assert [(block.start, block.end) for block in found] == [
        (k * 1_000_000_000, max(k, 1) * 1_000_000_000) for k in (0, 2, 3, 4)
    ]


@pytest.mark.parametrize("jump", [5_000_000_000, -3_000_000_000])
def test_after_a_pause_or_a_clock_that_goes_back_nothing_follows(jump: int) -> None:
    mean = BlockMean(0.1, 0.5)
    before = [k * 10_000_000 for k in range(15)]
    after = [before[-1] + jump + k * 10_000_000 for k in range(25)]
    found = blocks(mean, before + after, np.ones((40, 2)))
    assert [block.follows for block in found] == [False, False, True]
    assert found[1].start == after[0]


def process(a: np.ndarray, root: np.ndarray, n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    r = np.zeros((n, len(a)))
    for k in range(1, n):
        r[k] = a * r[k - 1] + root @ rng.standard_normal(len(a))
    return r


A = np.array([0.9, 0.3, 0.0])
EVERY = np.ones(3, dtype=bool)  # axis was measured
ROOT = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.2, 2.0]])


def fitted(r: np.ndarray) -> NoiseModel:
    model = NoiseModel(3, 0.1, horizon=1000.0)
    for before, after in zip(r[:-1], r[1:], strict=True):
        model.update(after, before, EVERY)
    return model


@pytest.fixture(scope="module")
def long_run() -> tuple[NoiseModel, np.ndarray]:
    r = process(A, ROOT, 10_000)
    return fitted(r), r


def test_correlation_and_covariance_are_found(long_run) -> None:
    model, _ = long_run
    np.testing.assert_allclose(model.correlation, A, atol=0.03)
    expected = ROOT @ ROOT.T
    expected = (1.0 - UNCORRELATED_SHARE) * expected + UNCORRELATED_SHARE * np.diag(
        np.diag(expected)
    )
    np.testing.assert_allclose(model.covariance, expected, atol=0.15)


def test_what_is_whitened_is_white(long_run) -> None:
    model, r = long_run
    white = model.whiten((r[1:] - model.correlation * r[:-1]).T, EVERY).T[-5000:]
    # The covariance is taken as a tenth less correlated than it is.
    np.testing.assert_allclose(np.var(white, axis=0), 1.0, atol=0.25)
    np.testing.assert_allclose(np.mean(white[1:] * white[:-1], axis=0), 0.0, atol=0.06)


def test_errors_after_some_blocks_are_as_large_as_predicted(long_run) -> None:
    model, r = long_run
    power, grown = model.step(3)
    left = r[3:] - power * r[:-3]
    ratio = left.std(axis=0) / np.sqrt(np.diag(model.covariance))
    np.testing.assert_allclose(ratio, grown, rtol=0.1)


BLOCKS = 400


def watched(errors: np.ndarray, columns: np.ndarray) -> Innovations:
    """What is known after blocks of these errors, all of them without a change."""
    n_axes, n_columns = columns.shape[1:]
    found = Innovations(n_columns, np.arange(n_axes), 0.1)
    for k, (error, column) in enumerate(zip(errors, columns, strict=True)):
        block = Block(k, k, error, column, np.ones(n_axes), k > 0)
        found.push(block, np.zeros(n_columns), quiet=True)
    return found


def test_an_axis_that_was_never_measured_is_as_if_there_were_none() -> None:
    errors = process(A, ROOT, BLOCKS)
    columns = np.random.default_rng(1).standard_normal((BLOCKS, 3, 4))
    for missing in range(3):
        rest = np.delete(np.arange(3), missing)
        without = errors.copy()
        without[:, missing] = np.nan
        whole, alone = watched(without, columns), watched(errors[:, rest], columns[:, rest])
        own = np.ix_(rest, rest)
        np.testing.assert_allclose(whole.noise.covariance[own], alone.noise.covariance)
        np.testing.assert_allclose(whole.noise.correlation[rest], alone.noise.correlation)
        np.testing.assert_allclose(whole.slow.std[rest], alone.slow.std)
        before, slow = NoiseModel(3, 0.1), SlowErrors(3, 0.1)
        slow.update(np.zeros(3), np.ones(3), EVERY)
        assert whole.noise.correlation[missing] == before.correlation[missing]
        np.testing.assert_allclose(whole.noise.covariance[missing], before.covariance[missing])
        assert whole.slow.std[missing] == slow.std[missing]
        for begins in (True, False):
            (lengths, found), (_, expected) = (
                of.windows.sums(begins=begins) for of in (whole, alone)
            )
            assert len(lengths) > 0
            for name in ("information", "moment", "square", "rows"):
                np.testing.assert_allclose(getattr(found, name), getattr(expected, name))
        i, j = whole.gain_pairs
        kept = (i != missing) & (j != missing)
        gains, fewer = (of.gain_errors(np.arange(4), slice(0, 2)) for of in (whole, alone))
        np.testing.assert_allclose(gains[kept], fewer)
        assert not gains[~kept].any()


def test_what_is_known_of_an_axis_stays_while_it_is_not_measured() -> None:
    errors = process(A, ROOT, BLOCKS)
    columns = np.zeros((BLOCKS, 3, 1))
    before = watched(errors[:200], columns[:200])
    errors[200:, 1] = np.nan
    after = watched(errors, columns)
    # Twelve blocks wait until they count as usual; they count in the second case.
    assert after.noise.correlation[1] == pytest.approx(before.noise.correlation[1], abs=0.03)
    variance, kept = (of.noise.covariance[1, 1] for of in (before, after))
    assert kept == pytest.approx(variance, rel=0.1)
    assert np.linalg.eigvalsh(after.noise.covariance)[0] > 0.0
    # What the others tell of it is not changed by that it was taken for 0.
    white = after.noise.whiten(np.eye(3), np.array([True, False, True]))
    own = np.ix_([0, 2], [0, 2])
    np.testing.assert_allclose(
        white[own].T @ white[own], np.linalg.inv(after.noise.covariance[own]), rtol=1e-9
    )
    assert not white[1].any() and not white[:, 1].any()


def test_two_blocks_tell_of_an_axis_that_was_measured_in_both() -> None:
    errors = process(A, ROOT, BLOCKS)
    errors[::2, 1] = np.nan
    found = watched(errors, np.ones((BLOCKS, 3, 1)))
    assert found.last is not None and found.last.rows == 2.0
    before = NoiseModel(3, 0.1)
    assert found.noise.correlation[1] == before.correlation[1]
    assert found.noise.covariance[1, 1] == pytest.approx(before.covariance[1, 1])
    lengths, first = found.windows.sums(begins=True)
    np.testing.assert_array_equal(first.rows, 2.0 * lengths)
