"""Corrections: begun, switched to another cause, accepted and withdrawn."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.changes.config import ChangesConfig
from semiparam_dynamics.changes.correction import Correction
from semiparam_dynamics.changes.hypotheses import OFFSET, PAYLOAD, Causes, Sums, hypotheses
from semiparam_dynamics.changes.payload import Snapshot, Snapshots

from .changing_arm import MODEL, ON, errors, follow, held, monitor, moving

CAUSES = Causes(MODEL, ChangesConfig())
NEW = {h.cause: h for h in hypotheses(CAUSES, {PAYLOAD, OFFSET}, np.zeros(10), {})}


def seen(seed: int):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((200, CAUSES.n_columns))
    return Sums.from_rows(A, A[:, CAUSES[PAYLOAD].columns] @ np.arange(1.0, 11.0))


def test_what_was_estimated_is_taken_back_with_its_name() -> None:
    correction = Correction(CAUSES)
    correction.begin(NEW[PAYLOAD], seen(0))
    assert correction.active and correction.name == "" and correction.theta.any()
    correction.add(seen(1))
    correction.retract()
    assert not correction.active and correction.name == "bare" and not correction.theta.any()
    assert correction.estimating is None and correction.seen.rows == 0.0


def test_accepted_changes_stay() -> None:
    correction = Correction(CAUSES)
    correction.begin(NEW[PAYLOAD], seen(0))
    correction.accept()
    before = correction.theta.copy()
    correction.begin(NEW[OFFSET], seen(1))
    assert correction.name == "" and not np.array_equal(correction.theta, before)
    correction.retract()
    np.testing.assert_array_equal(correction.theta, before)
    assert correction.name == ""


def test_a_payload_that_is_estimated_keeps_its_name_until_another_cause_is() -> None:
    correction = Correction(CAUSES)
    correction.begin(NEW[PAYLOAD], seen(0))
    correction.name = "cup"
    correction.add(seen(1))
    correction.switch(NEW[PAYLOAD])  # as after each block
    assert correction.name == "cup"
    correction.switch(NEW[OFFSET])
    assert correction.name == "bare" and not correction.held.mean.any()
    correction.switch(NEW[PAYLOAD])
    assert correction.name == ""


def test_saved_while_it_is_estimated_a_payload_takes_its_offset_along() -> None:
    correction, other = Correction(CAUSES), Correction(CAUSES)
    offsets = len(correction.offset_before)
    correction.begin(NEW[PAYLOAD], seen(0), np.full(offsets, 0.5))
    assert correction.offset.any()
    other.restore(correction.state())
    other.set_payload("bare", Snapshots()["bare"])
    assert not other.theta.any()


@pytest.mark.parametrize("ends", ["block", "withdrawn", "accepted"])
@pytest.mark.parametrize("name", ["cup", "bare"])
def test_a_payload_taken_or_released_beside_an_offset_stays(name: str, ends: str) -> None:
    cup = Snapshot(np.arange(1.0, 11.0), np.zeros((10, 10)))
    correction = Correction(CAUSES)
    correction.set_payload(*{"cup": ("bare", Snapshots()["bare"]), "bare": ("cup", cup)}[name])
    correction.begin(NEW[OFFSET], seen(0))
    correction.set_payload(name, cup if name == "cup" else Snapshots()["bare"])
    correction.switch(NEW[OFFSET])  # as after each block
    if ends != "block":
        correction.retract() if ends == "withdrawn" else correction.accept()
    assert correction.name == name
    assert correction.held.mean.any() == (name == "cup")


@pytest.mark.parametrize("withdrawn", [False, True])
def test_a_payload_named_or_forgotten_beside_an_offset_stays_so(withdrawn: bool) -> None:
    correction = Correction(CAUSES)
    correction.begin(NEW[PAYLOAD], seen(0))
    correction.accept()
    correction.begin(NEW[OFFSET], seen(1))
    names = []
    for change in (lambda: correction.call("cup"), lambda: correction.forget("cup")):
        change()
        correction.retract() if withdrawn else correction.switch(NEW[OFFSET])
        names.append(correction.name)
        correction.begin(NEW[OFFSET], seen(1))
    assert names == ["cup", ""]


def test_a_forgotten_name_does_not_come_back_with_a_withdrawal() -> None:
    correction = Correction(CAUSES)
    correction.set_payload("cup", Snapshot(np.arange(1.0, 11.0), np.zeros((10, 10))))
    correction.begin(NEW[PAYLOAD], seen(0))
    correction.forget("cup")
    correction.retract()
    assert correction.name == ""


@pytest.mark.parametrize("withdrawn", [False, True])
def test_a_further_payload_that_was_none_leaves_the_deviations_of_the_one_held(
    withdrawn: bool,
) -> None:
    gains = np.diag(np.arange(1.0, 11.0))
    correction = Correction(Causes(MODEL, ChangesConfig(effort_gain_common_std=0.1)))
    correction.set_payload("cup", Snapshot(np.arange(1.0, 11.0), np.zeros((10, 10)), gains))
    correction.begin(NEW[PAYLOAD], seen(0))
    assert not np.array_equal(correction.held.gains, gains)
    correction.retract() if withdrawn else correction.switch(NEW[OFFSET])
    np.testing.assert_array_equal(correction.held.gains, gains)


@pytest.mark.parametrize("length", [0.3, 0.7])
def test_a_jerk_that_looked_like_a_payload_leaves_nothing(warm, warm_run, body, length) -> None:
    """It ends before it is found, or before it has been estimated."""
    of = warm()
    steps = follow(of, moving(ON + 6.0, held(body, ON, ON + length), begin=ON))
    causes = [e.cause for e in monitor(of).events]
    assert monitor(of).payload is None and monitor(of).status.learning, causes
    assert not monitor(of).correction.theta.any()
    before, after = errors(warm_run[1], ON - 5.0, ON), errors(steps, ON + 3.0, ON + 6.0)
    assert np.all(after < 1.5 * before + 0.03 * before.max())
