"""Less of each recording for the tests of the doctor."""

from __future__ import annotations

import pytest

from semiparam_dynamics.offline.doctor import messages, physics


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dynamics see the liveliest quarter of a minute, a whole one else, and of it few rows."""
    monkeypatch.setattr(messages, "MAX_STRETCH", 15.0)
    monkeypatch.setattr(physics, "MAX_ROWS", 600)
