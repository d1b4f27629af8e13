"""What the doctor's benchmark counts as named."""

from __future__ import annotations

import re
from types import SimpleNamespace

import doctor
import numpy as np
import pytest
from conditions import Condition, Truth

from semiparam_dynamics.dynamics.effort_faults import Finding
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.doctor.messages import JointLog


def test_a_fault_that_a_log_has_as_it_is_counts_as_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = JointLog(("a",), np.arange(3), np.zeros((3, 1)), None, np.zeros((3, 1)))
    config = InverseDynamicsConfig()
    split = SimpleNamespace(name="arm", urdf="", config=config, train=[log], test=log)
    told = [Finding(kind, "", "", fault=False) for kind in ("rest", "wraps")]

    def examine(seen: JointLog, urdf: str, config: InverseDynamicsConfig) -> SimpleNamespace:
        return SimpleNamespace(findings=told[: 1 + (seen is not log)], physics=None, config=config)

    def condition(kind: str) -> Condition:
        return Condition(f"a {kind}", lambda log, *_: Truth(log.rows(slice(None)), kind), False)

    monkeypatch.setattr(doctor, "log_splits", lambda *_: [split])
    monkeypatch.setattr(doctor, "examine", examine)
    monkeypatch.setattr(doctor, "RobotModel", lambda *_: None)
    monkeypatch.setattr(doctor, "CONDITIONS", {k: condition(k) for k in ("rest", "wraps")})
    assert doctor.main(["DATA", "--faults", "20"]) == 0
    shown = capsys.readouterr().out
    found = re.search(r"^wraps +(\d+) +(\d+) ", shown, re.MULTILINE)
    assert found is not None and found[1] == found[2] and int(found[1]) < 20
    assert re.search(r"^\(a rest\) +\d+ +- ", shown, re.MULTILINE)
    assert re.search(rf"^all +20 +{found[2]} ", shown, re.MULTILINE)
