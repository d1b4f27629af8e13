"""Diagnostics tell when predictions were clipped, and what the gate does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from semiparam_dynamics.base.nodes.diagnostics import OK, WARN
from semiparam_dynamics.dynamics.limits import CLIPPED
from semiparam_dynamics.learner.nodes.session import Session
from semiparam_dynamics.learner.nodes.session_report import SessionReport

from .conftest import moving, take


@pytest.fixture
def moved(make_session) -> Callable[..., Session]:
    """A function that makes a session and gives it 150 messages."""

    def moved(**changes: object) -> Session:
        session = make_session(defer_learning=False, **changes)
        for message in moving(150):
            take(session, message)
        return session

    return moved


def test_clipped_predictions_are_counted_and_warned_of(moved) -> None:
    session = moved(**{"output.bound": (0.5,)})
    report = SessionReport(session)
    level, summary = report.summary([])
    assert level == WARN and CLIPPED in summary
    assert int(report.values()[CLIPPED]) == session.learner.bounded[CLIPPED] > 100
    assert report.summary([])[0] == OK  # none since
    assert (session.within_bounds(np.array([np.nan, -9.0])) == [0.0, -0.5]).all()


def test_the_gate_is_shown_where_there_is_one(moved) -> None:
    assert SessionReport(moved(**{"output.gate": 5.0})).values()["gate"] == "open"
    values = SessionReport(moved()).values()
    assert "gate" not in values and CLIPPED not in values
