"""The page and the terminal's lines."""

from __future__ import annotations

import dataclasses

from semiparam_dynamics.offline.doctor.examination import html_page, summary, verdict

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


def test_what_several_joints_need_is_said_once() -> None:
    assert LOG.y is not None
    said = summary(examined(dataclasses.replace(LOG, y=-LOG.y)))
    assert said.count("effort sign: ") == len(LOG.names)
    assert said.count("samples.effort_scale turns it") == 1
