"""A row of the live comparison is of the feed-forward that it names, or there is none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from semiparam_dynamics.base.errors import SemiparamError

pytest.importorskip("rclpy")
import controller_live
from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import SetParameters


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (None, "doesn't answer whether"),
        (SetParametersResult(successful=False, reason="not now"), "doesn't take rigid_body: not n"),
        (SetParametersResult(successful=True), ""),
    ],
)
def test_a_feedforward_that_is_not_taken_ends_it(
    monkeypatch: pytest.MonkeyPatch, result: Any, problem: str
) -> None:
    asked = []

    def call(request: Any) -> SimpleNamespace:
        asked.append(request.parameters[0].value.string_value)
        answer = None if result is None else SetParameters.Response(results=[result])
        return SimpleNamespace(result=lambda: answer)

    client = SimpleNamespace(wait_for_service=lambda timeout: True, call_async=call)
    monkeypatch.setattr(controller_live.rclpy, "spin_until_future_complete", lambda *_, **__: None)
    watcher = SimpleNamespace(_set=client)
    if problem:
        with pytest.raises(SemiparamError, match=problem):
            controller_live.Watcher.switch(watcher, "rigid_body")
    else:
        controller_live.Watcher.switch(watcher, "rigid_body")
    assert asked == ["rigid_body"]
