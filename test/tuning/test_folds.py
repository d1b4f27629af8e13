"""Recordings, what of them is held out, and the rigid body identified along it."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.dynamics.rigid_body import RigidBodyConfig, RigidBodyIdentifier
from semiparam_dynamics.dynamics.sample import Motion
from semiparam_dynamics.errors import BagError
from semiparam_dynamics.tuning.folds import (
    REGION_SHARE,
    Recordings,
    Split,
    identify_along,
    motion_splits,
    region_splits,
)

from ..dynamics.arms import small_arm
from .recorded import motions, recordings


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
        for regressor, y, stamp in zip(part.regressors(), part.y, part.stamps, strict=True):
            before.append(identifier.predict(regressor))
            identifier.update(regressor, y, int(stamp))
    for mine, expected in zip(found, (before, trained, identifier.parameters), strict=True):
        assert np.allclose(mine, expected, rtol=1e-8, atol=1e-9)


def test_bags_of_one_name_in_two_folders_are_told_apart() -> None:
    one = recordings(1)
    measurements = [[*one._measurements[0]]] * 3
    names = ["bag", "other", "bag"]
    found = Recordings(one.model, one.config, names, measurements).names
    assert found == ("bag (1)", "other", "bag (2)")
