"""Diagnostics tell when predictions were clipped, and what the gate does."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.config import InverseDynamicsNodeConfig
from semiparam_dynamics.dynamics.limits import CLIPPED
from semiparam_dynamics.nodes.diagnostics import OK, WARN, SessionReport
from semiparam_dynamics.nodes.messages import joint_state_message
from semiparam_dynamics.nodes.session import Session
from semiparam_dynamics.parameters import replace

from .conftest import take


def moved(urdf, **changes: object) -> Session:
    """A session that was given 150 messages."""
    config = replace(InverseDynamicsNodeConfig(), defer_learning=False, **changes)
    session = Session(str(urdf), config)
    for k in range(150):
        q = np.sin(0.3 + 0.01 * k * np.array([2.0, 3.1]))
        stamp = 1_000_000_000 + 10_000_000 * k
        message = joint_state_message(stamp, ("shoulder", "elbow"), q, 0.1 * q, 5.0 * q)
        take(session, message)
    return session


def test_clipped_predictions_are_counted_and_warned_of(urdf) -> None:
    session = moved(urdf, **{"output.bound": (0.5,)})
    report = SessionReport(session)
    level, summary = report.summary([])
    assert level == WARN and CLIPPED in summary
    assert int(report.values()[CLIPPED]) == session.learner.bounded[CLIPPED] > 100
    assert report.summary([])[0] == OK  # none since
    assert (session.within_bounds(np.array([np.nan, -9.0])) == [0.0, -0.5]).all()


def test_the_gate_is_shown_where_there_is_one(urdf) -> None:
    assert SessionReport(moved(urdf, **{"output.gate": 5.0})).values()["gate"] == "open"
    values = SessionReport(moved(urdf)).values()
    assert "gate" not in values and CLIPPED not in values
