"""Payloads by name."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.changes.payload import BARE, LONGEST_NAME, Snapshot, Snapshots
from semiparam_dynamics.errors import ConfigurationError


def tool(mass: float = 1.0) -> Snapshot:
    return Snapshot(mass * np.arange(1.0, 11.0), mass * np.eye(10))


def test_they_are_kept_replaced_and_removed() -> None:
    snapshots = Snapshots()
    assert snapshots.names == (BARE,) and not snapshots[BARE].mean.any()
    snapshots.store("gripper", tool())
    snapshots.store("drill", tool(2.0))
    snapshots.store("gripper", tool(3.0))
    assert snapshots.names == (BARE, "gripper", "drill")
    assert snapshots["gripper"].mean[0] == 3.0
    snapshots.remove("gripper")
    with pytest.raises(ConfigurationError, match="known as 'gripper'; there are: bare, drill"):
        snapshots["gripper"]


@pytest.mark.parametrize("name", ["", "two\nlines", "x" * (LONGEST_NAME + 1), BARE])
def test_names_that_can_not_be_written_down_are_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="name"):
        Snapshots().store(name, tool())


def test_the_bare_hand_stays() -> None:
    with pytest.raises(ConfigurationError, match="can't be removed"):
        Snapshots().remove(BARE)


def test_held_again_it_is_less_well_known() -> None:
    known = Snapshot(np.array([1.0, *[0.1] * 3, *[0.01] * 6]), np.zeros((10, 10)))
    again = known.held_again()
    assert again[0, 0] == pytest.approx(0.02**2)
    assert np.all(np.diag(again)[1:4] >= 0.005**2)
    assert not Snapshots()[BARE].held_again().any()


def test_they_come_back_from_their_state() -> None:
    one, other = Snapshots(), Snapshots()
    other.restore(one.state())
    assert other.names == (BARE,)
    one.store("Schraubenzieher für Köpfe", tool(0.3))
    one.store("b", tool())
    other.restore(one.state())
    assert other.names == one.names
    assert np.array_equal(other["b"].covariance, one["b"].covariance)
    broken = one.state() | {"means": np.zeros((1, 10))}
    with pytest.raises(ValueError, match="zip"):
        other.restore(broken)
