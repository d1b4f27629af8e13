"""Less of each recording for the tests of the doctor."""

from __future__ import annotations

import pytest

from semiparam_dynamics.offline.doctor import messages, physics


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dynamics see the liveliest half minute, a whole one else, and of it fewer rows."""
    monkeypatch.setattr(messages, "MAX_STRETCH", 30.0)
    monkeypatch.setattr(physics, "MAX_ROWS", 1000)
