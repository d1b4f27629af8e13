"""The mean over frames, beside a mean over dictionaries that is written out."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from semiparam_dynamics.recognition.recognizer import MeanOfLast, Smoothing

FRAMES = st.lists(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 100), min_size=1), max_size=12
)


def arrays(frame: dict[str, float]) -> tuple[tuple[str, ...], np.ndarray]:
    values = np.array([frame[label] for label in sorted(frame)], dtype=float)
    return tuple(sorted(frame)), values / values.sum()


def naive(frames: list[dict[str, float]], labels: tuple[str, ...]) -> np.ndarray:
    """What a frame gave to classes that have left since is shared by the others, step by step."""
    kept: list[dict[str, float]] = []
    for frame in frames:
        for old in kept:
            for label in set(old) - set(frame):
                del old[label]
            total = sum(old.values())
            for label in old:
                old[label] /= total
        kept = [old for old in kept if old]
        names, values = arrays(frame)
        kept.append(dict(zip(names, values, strict=True)))
    return np.mean([[old.get(label, 0.0) for label in labels] for old in kept], axis=0)


@given(FRAMES)
def test_is_the_mean_over_all_frames_while_classes_come_and_go(frames):
    smoothing = Smoothing(100)
    for k, frame in enumerate(frames):
        labels, values = arrays(frame)
        mean = smoothing.add(labels, values)
        np.testing.assert_allclose(mean, naive(frames[: k + 1], labels), atol=1e-12)
        np.testing.assert_allclose(mean.sum(), 1.0)


def test_looks_back_over_so_many_frames_and_forgets_when_told_to():
    smoothing = Smoothing(3)
    rows = np.random.default_rng(0).dirichlet(np.ones(4), size=10)
    labels = ("a", "b", "c", "d")
    means = [smoothing.add(labels, row) for row in rows]
    np.testing.assert_allclose(means[0], rows[0])
    np.testing.assert_allclose(means[9], rows[7:].mean(axis=0))
    smoothing.frames = 2
    np.testing.assert_allclose(smoothing.add(labels, rows[0]), rows[[9, 0]].mean(axis=0))
    smoothing.restart()
    np.testing.assert_array_equal(smoothing.add(labels, rows[1]), rows[1])


def test_the_mean_of_the_last_numbers():
    mean = MeanOfLast(3)
    assert [mean.add(value) for value in (1.0, 3.0, 5.0, 7.0)] == [1.0, 2.0, 3.0, 5.0]
    mean.resize(2)
    assert mean.add(9.0) == 8.0
    mean.restart()
    assert mean.add(4.0) == 4.0
