"""The page and the terminal's lines."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.base.errors import StorageError
from semiparam_dynamics.offline.doctor.page import html_page, summary, verdict, write_examination

from .logs import arm_log, examined

LOG = arm_log(12.0)


def test_without_efforts_the_page_shows_positions_and_says_why() -> None:
    examination = examined(dataclasses.replace(LOG, y=None))
    assert verdict(examination) == "1 fault found: no efforts."
    page = html_page(examination, "bag <1>")
    assert page.count("position as sent") == len(LOG.names)
    left = "Not examined: the efforts beside the robot&#x27;s dynamics: there are no efforts."
    assert left in page
    assert "bag &lt;1&gt;" in page and "bag <1>" not in page
    assert "doctor.yaml" not in summary(examination)


def test_what_is_mended_is_on_the_page_and_on_the_terminal() -> None:
    sign = np.array([1.0, -1.0, 1.0, 1.0])
    examination = examined(dataclasses.replace(LOG, y=sign * LOG.y))
    page = html_page(examination, "bag")
    assert "samples.effort_scale: [1.0, -1.0, 1.0, 1.0]" in page
    assert page.count("<svg viewBox") >= 2 * len(LOG.names)
    said = summary(examination).splitlines()
    assert said[0] == "1 fault found: effort sign."
    assert said[2].startswith("! effort sign: ") and max(map(len, said)) <= 100


def test_a_place_that_can_not_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="file/doctor.html can't be written"):
        write_examination(examined(arm_log(6.0)), tmp_path / "file", "bag")


def test_what_several_joints_need_is_said_once() -> None:
    assert LOG.y is not None
    said = summary(examined(dataclasses.replace(LOG, y=-LOG.y)))
    assert said.count("effort sign: ") == len(LOG.names)
    assert said.count("samples.effort_scale turns it") == 1
