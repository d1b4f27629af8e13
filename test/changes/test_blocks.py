"""Blocks of about one independent observation each."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.changes.innovations import Block, BlockMean

ONES = np.ones(2)


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
