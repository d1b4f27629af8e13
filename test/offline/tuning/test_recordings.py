"""Recordings, and what of them is held out."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from semiparam_dynamics.base.errors import BagError
from semiparam_dynamics.offline.tuning.candidates import Recordings, thin
from semiparam_dynamics.samples.measurement import Measurement

from ...dynamics.arms import measurements, small_arm
from .recorded import CONFIG, recordings


def stamps(motions: object) -> np.ndarray:
    return np.concatenate([motion.stamps for motion in motions])


def test_each_recording_is_held_out_once_and_not_learned_meanwhile() -> None:
    recorded = recordings(3)
    folds = recorded.folds(8.0, thinned=False)
    assert [fold.name for fold in folds] == ["motion_1", "motion_2", "motion_3"]
    whole = np.concatenate([stamps(fold.scored) for fold in folds])
    for fold in folds:
        assert fold.scored[0] is fold.learned[0]
        assert not np.isin(stamps(fold.scored), stamps(fold.train)).any()
        assert len(stamps(fold.scored)) + len(stamps(fold.train)) == len(whole)
    assert recorded.n_folds == 3 and len(np.unique(whole)) == len(whole)


def test_more_than_five_recordings_are_held_out_in_five_groups() -> None:
    folds = recordings(7, 5.0).folds(8.0, thinned=True)
    names = [f"motion_{k}" for k in (3, 4, 5)]
    assert [fold.name for fold in folds] == ["motion_1 motion_6", "motion_2 motion_7", *names]
    assert [len(fold.train) for fold in folds] == [5, 5, 6, 6, 6]


def test_a_single_recording_is_held_out_in_thirds_with_what_repeats_them() -> None:
    folds = recordings(1, 20.0).folds(8.0, thinned=False)
    assert [fold.name for fold in folds] == ["part 1 of 3", "part 2 of 3", "part 3 of 3"]
    assert [fold.seconds for fold in folds] == pytest.approx([6.6] * 3, abs=0.3)
    for k, fold in enumerate(folds):  # the motion comes back every 5 s
        thirds = ((stamps(fold.scored) - 10**11) * 3e-9 / 5.0 - k + 0.5) % 3.0 - 0.5
        assert (np.abs(thirds - 0.5) < 0.6).all()


def test_all_cut_offs_are_judged_on_the_same_signals() -> None:
    recorded = recordings(2)
    own, other = (recorded.folds(cutoff, thinned=True)[0] for cutoff in (8.0, 2.0))
    assert np.array_equal(own.scored[0].y, other.scored[0].y)
    assert own.learned[0].y.std() > other.learned[0].y.std()
    assert own.train[0].y.std() > other.train[0].y.std()


def test_samples_that_are_left_out_are_counted_by_those_that_stay() -> None:
    [motion, *_] = recordings(2).folds(1.0, thinned=False)[0].train
    assert motion.weights[1:].max() == pytest.approx(2.0 / 25.0)  # two a period of 1 Hz
    thinned = thin(motion, 12.0)
    assert np.array_equal(thinned.stamps, motion.stamps[::2])
    assert thinned.weights.sum() == pytest.approx(motion.weights.sum(), rel=0.05)
    assert len(thin(motion, 0.0)) == len(thin(motion, 1000.0)) == len(motion)


def of(*streams: list[Measurement], names: str = "abc") -> Recordings:
    return Recordings(small_arm(target="effort"), CONFIG, list(names[: len(streams)]), streams)


def test_recordings_that_nothing_can_be_learned_from_are_refused() -> None:
    moving = list(measurements(small_arm(), 4.0, 50.0))
    at_rest = [
        dataclasses.replace(moving[0], stamp=moving[0].stamp + k * 20_000_000, dq=np.zeros(4))
        for k in range(500)
    ]
    with pytest.raises(BagError, match=r"needs 4\.5 s"):
        of(moving).folds(8.0, thinned=True)
    with pytest.raises(BagError, match="tune on in b: no sample in motion"):
        of(moving, at_rest).folds(8.0, thinned=True)
    with pytest.raises(BagError, match="no measurements in b"):
        of(moving, [])


def test_bags_of_one_name_in_two_folders_are_told_apart() -> None:
    moving = list(measurements(small_arm(), 4.0, 50.0))
    assert of(moving, moving, moving, names="aba").names == ("a (1)", "b", "a (2)")


def test_recordings_that_differ_have_other_fingerprints() -> None:
    moving = list(measurements(small_arm(), 4.0, 50.0))
    no_velocities = [dataclasses.replace(m, dq=None) for m in moving]
    assert of(moving).fingerprint() == of(moving).fingerprint()
    assert of(moving).fingerprint() != of(no_velocities).fingerprint()
