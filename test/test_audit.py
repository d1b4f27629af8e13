"""What the audit makes of pip-audit's reports: only one that looked something up says anything."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

FLAW = {"id": "PYSEC-1", "fix_versions": ["1.2"]}
SAFE = {"name": "safe", "version": "1.0", "vulns": []}
UNSAFE = {"name": "unsafe", "version": "1.1", "vulns": [FLAW]}
UNKNOWN = {"name": "unknown", "skip_reason": "not found"}


@pytest.fixture(scope="module")
def audit(repository: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("audit", repository / ".ci" / "audit.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("packages", "said", "code"),
    [
        ([SAFE, UNKNOWN], "no known vulnerability in 1 packages; 1 others", 0),
        ([SAFE, UNSAFE], "unsafe 1.1: PYSEC-1, mended in 1.2", 1),
        ([UNKNOWN, UNKNOWN], "nothing was audited: the database knows none of 2", 2),
    ],
)
def test_a_report(audit: ModuleType, packages: list[dict], said: str, code: int) -> None:
    sentence, exit_code = audit.verdict(json.dumps({"dependencies": packages, "fixes": []}))
    assert said in sentence and exit_code == code


@pytest.mark.parametrize("report", ["", "ERROR", "{}"])
def test_no_report(audit: ModuleType, report: str) -> None:
    told = "nothing was audited: the database of vulnerabilities can't be reached"
    assert audit.verdict(report) == (told, 2)
