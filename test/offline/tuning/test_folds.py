"""Recordings, what of them is held out, and the rigid body identified along it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from semiparam_dynamics.base.errors import BagError
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.residual import GROUPS, group_sizes
from semiparam_dynamics.dynamics.rigid_body import RigidBodyConfig, RigidBodyIdentifier
from semiparam_dynamics.dynamics.sample import Motion, Sample
from semiparam_dynamics.offline.tuning.choices import memory_errors
from semiparam_dynamics.offline.tuning.folds import (
    REGION_SHARE,
    Recordings,
    Split,
    identify_along,
    motion_splits,
    prepare,
    region_splits,
)
from semiparam_dynamics.offline.tuning.screening import screen_joints, screen_nystrom

from ...dynamics.arms import small_arm
from .recorded import CONFIG, motions, recordings


def test_each_recording_is_held_out_once_and_learned_by_none_meanwhile() -> None:
    recorded = motions(3)
    splits = motion_splits(recorded, ["a", "b", "c"])
    assert [s.name for s in splits] == ["a", "b", "c"]
    for split, motion in zip(splits, recorded, strict=True):
        assert np.array_equal(split.held_out.stamps, motion.stamps)
        assert not np.isin(split.held_out.stamps, split.train.stamps).any()
        assert len(split.train) + len(split.held_out) == sum(map(len, recorded))


def test_more_than_five_recordings_are_held_out_in_five_groups() -> None:
    recorded = motions(1)
    splits = motion_splits([recorded[0]] * 7, list("abcdefg"))
    assert [s.name for s in splits] == ["a f", "b g", "c", "d", "e"]


def test_a_single_recording_is_held_out_in_thirds_that_follow_each_other() -> None:
    recorded = motions(1, 20.0)
    splits = motion_splits(recorded, ["only"])
    assert [s.name for s in splits] == ["part 1 of 3", "part 2 of 3", "part 3 of 3"]
    for split in splits:
        assert split.held_out.seconds == pytest.approx(recorded[0].seconds / 3, abs=0.1)
    held = np.concatenate([s.held_out.stamps for s in splits])
    assert np.array_equal(held, recorded[0].stamps)


def test_a_recording_too_short_to_hold_out_is_refused() -> None:
    recorded = motions(1)
    with pytest.raises(BagError, match=r"needs 4\.5 s"):
        motion_splits([recorded[0].take(slice(0, 200))], ["short"])


def test_regions_are_the_ends_of_the_positions_and_nothing_of_them_is_learned() -> None:
    recorded = motions(2)
    whole = Motion.join(recorded)
    regions = region_splits(whole)
    assert 4 <= len(regions) <= 6 and all(r.kind == "region" for r in regions)
    for region in regions:
        assert len(region.held_out) == pytest.approx(REGION_SHARE * len(whole), abs=2)
        assert len(region.train) + len(region.held_out) == len(whole)
        # A hyperplane parts them: some direction has all of one on one side.
        means = region.held_out.q.mean(axis=0) - region.train.q.mean(axis=0)
        assert np.linalg.norm(means / whole.q.std(axis=0)) > 0.8


def test_joints_that_stand_still_make_no_direction() -> None:
    recorded = motions(1)
    still = recorded[0].take(slice(None))
    still.q[:, 1:] = 0.3
    assert len(region_splits(still)) == 2


@pytest.mark.parametrize("memory", [0.0, 5.0])
def test_the_rigid_body_is_identified_along_a_split_as_sample_by_sample(memory: float) -> None:
    model, config = small_arm(target="effort"), RigidBodyConfig(memory=memory)
    train, held_out = (motion.take(slice(0, 90)) for motion in motions())
    found = identify_along(model, Split("s", "motion", train, held_out), config)
    identifier = RigidBodyIdentifier.of(model, config)
    before, trained = [], identifier.parameters
    for part in (train, held_out):
        trained = identifier.parameters
        rows = part.regressors(), part.y, part.stamps, part.weights
        for regressor, y, stamp, weight in zip(*rows, strict=True):
            before.append(identifier.predict(regressor))
            identifier.update(regressor, y, int(stamp), weight)
    for mine, expected in zip(found, (before, trained, identifier.parameters), strict=True):
        assert np.allclose(mine, expected, rtol=1e-8, atol=1e-9)
    # Both of its errors, as `choices` compares memories by them.
    split, after = Split("s", "motion", train, held_out), held_out.regressors() @ trained
    (errors,) = memory_errors(model, split, RigidBodyConfig(), [memory]).values()
    for error, values in zip(errors, (before[90:], after), strict=True):
        nmse = np.mean((held_out.y - values) ** 2, axis=0) / held_out.y.var(axis=0)
        assert error == pytest.approx(nmse.mean(), rel=1e-8)


def test_bags_of_one_name_in_two_folders_are_told_apart() -> None:
    one = recordings(1)
    measurements = [[*one._measurements[0]]] * 3
    names = ["bag", "other", "bag"]
    found = Recordings(one.model, one.config, names, measurements).names
    assert found == ("bag (1)", "other", "bag (2)")


def test_the_first_seconds_are_those_of_motion() -> None:
    one = recordings(1)
    moving = one._measurements[0]
    stands = [
        dataclasses.replace(moving[0], stamp=moving[0].stamp + k * 20_000_000, dq=np.zeros(4))
        for k in range(500)
    ]
    later = [dataclasses.replace(m, stamp=m.stamp + 500 * 20_000_000) for m in moving]
    waited = Recordings(one.model, one.config, ["waited"], [[*stands, *later]])
    (found,) = waited.motions(8.0, 5.0)
    assert 5.0 <= (found.stamps[-1] - found.stamps[0]) * 1e-9 < 5.0 + 100 * 0.02
    (other,) = waited.motions(4.0, 5.0)
    assert abs(int(other.stamps[-1] - found.stamps[-1])) < 10**9
    with pytest.raises(BagError, match="tune on in still: no sample in motion"):
        Recordings(one.model, one.config, ["still"], [stands]).motions(8.0)
    with pytest.raises(BagError, match="no measurements in empty"):
        Recordings(one.model, one.config, ["full", "empty"], [stands, []])


def test_a_journal_of_other_velocities_is_another_s() -> None:
    one = recordings(1)
    other = [dataclasses.replace(m, dq=None) for m in one._measurements[0]]
    changed = Recordings(one.model, one.config, ["motion_1"], [other])
    assert changed.fingerprint() != one.fingerprint()


def further(motion: Motion, turns: float) -> Motion:
    """The same, with the joint that turns without end so many turns further."""
    q = motion.q + 2.0 * np.pi * turns * np.array([1.0, 0.0, 0.0, 0.0])
    return dataclasses.replace(motion, q=q)


def test_a_split_s_inputs_are_those_of_the_residual() -> None:
    model, (train, held) = small_arm(), motions(2)
    assert model.turning.tolist() == [True, False, False, False]
    fold = prepare(model, Split("", "motion", train, held), CONFIG.estimator.rigid_body, 2.0)
    estimator = SemiparametricEstimator(model, CONFIG.estimator)
    for block in train.blocks(100):
        for k in range(len(block)):
            one = block.rows(slice(k, k + 1))
            state = one.stamps[0], one.q[0], one.dq[0], one.ddq[0], one.regressors[0], one.y[0]
            estimator.update(Sample(int(state[0]), *state[1:]))
    residual = estimator.residual
    raw = residual.inputs(held.q, held.dq, held.ddq, held.rigid_body(np.zeros(model.n_parameters)))
    expected = residual.standardizer.transform(raw)[:, :9]  # without the prediction
    sizes = np.cumsum([0, *group_sizes(GROUPS, 4, 4, 1)])
    assert fold.frozen_inputs.shape[1] == sizes[-1]
    assert np.allclose(fold.frozen_inputs[:, : sizes[2]], expected, atol=1e-9)


def test_turns_change_neither_a_split_nor_its_inputs() -> None:
    model, (train, held) = small_arm(), motions(2)
    rigid = CONFIG.estimator.rigid_body
    folds = [
        prepare(model, Split("", "motion", train, further(held, turns)), rigid, 2.0)
        for turns in (0.0, 3.0)
    ]
    assert np.allclose(folds[0].frozen_inputs, folds[1].frozen_inputs, atol=1e-9)
    scores = [
        screen(fold, CONFIG.estimator, [1.0], [20])[1.0, 20].frozen
        for screen in (screen_nystrom, screen_joints)
        for fold in folds
    ]
    assert np.allclose(scores[0], scores[1]) and np.allclose(scores[2], scores[3])
    regions = [
        region_splits(Motion.join([train, further(held, turns)]), model.turning)
        for turns in (0.0, 3.0)
    ]
    for one, other in zip(*regions, strict=True):
        assert np.array_equal(one.held_out.stamps, other.held_out.stamps)
