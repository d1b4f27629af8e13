"""Whatever a robot_description holds, it gives a model with finite numbers, or a sentence."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semiparam_dynamics.errors import RobotModelError
from semiparam_dynamics.robot.model import RobotModel, message_checks
from semiparam_dynamics.robot.urdf import LONGEST

TEXT = (Path(__file__).resolve().parent.parent / "data/small_arm.urdf").read_text()
VALUES = list(re.finditer(r'"([^"]*)"', TEXT))
TAGS = list(re.finditer(r"<(\w+)[^>]*>", TEXT))
WRONG = st.sampled_from(
    ["", "x", "nan", "inf", "-inf", "1e400", "-1", "0", "1 2", "1 2 3 4", "base", "0x1", "1,5"]
)
SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def tried(text: str) -> None:
    for config in ({}, {"target": "wrench", "sensor_frame": "boom_sensor"}):
        try:
            model = RobotModel(text, **config)
            checks = message_checks(model)
        except RobotModelError as error:
            assert str(error)
            continue
        zeros = np.zeros(model.n_joints)
        assert np.isfinite(model.regressor(zeros + 0.1, zeros + 0.2, zeros + 0.3)).all()
        assert np.isfinite(model.prior).all()
        assert not np.isnan(checks["effort_limits"]).any()


@given(st.integers(0, len(VALUES) - 1), WRONG)
@SETTINGS
def test_a_value_that_is_wrong(which, value) -> None:
    found = VALUES[which]
    tried(f'{TEXT[: found.start()]}"{value}"{TEXT[found.end() :]}')


@given(st.integers(0, len(TAGS) - 1), st.sampled_from(["", "<link/>", "<joint/>", "<x>", "]]>"]))
@SETTINGS
def test_a_tag_that_is_another(which, tag) -> None:
    found = TAGS[which]
    tried(TEXT[: found.start()] + tag + TEXT[found.end() :])


@given(st.integers(0, len(TEXT)), st.integers(0, 3), st.text(max_size=3), st.booleans())
@SETTINGS
def test_characters_that_are_others_or_missing(at, removed, text, cut) -> None:
    tried(TEXT[:at] + text + ("" if cut else TEXT[at + removed :]))


def chain(n: int) -> str:
    links = "".join(f"<link name='l{k}'/>" for k in range(n + 1))
    joints = "".join(
        f"<joint name='j{k}' type='fixed'><parent link='l{k}'/><child link='l{k + 1}'/></joint>"
        for k in range(n)
    )
    return f"<robot name='r'>{links}{joints}</robot>"


@pytest.mark.parametrize(
    ("n", "why"), [(5, "no joint that moves"), (1900, "no joint that moves"), (2001, "than 2000")]
)
def test_a_chain_however_long_is_answered_in_a_sentence(n, why) -> None:
    with pytest.raises(RobotModelError, match=why):
        RobotModel(chain(n))


def test_entities_that_grow_are_refused() -> None:
    grown = [f'<!ENTITY e{k} "{f"&e{k - 1};" * 9}">' for k in range(1, 12)]
    entities = f'<!ENTITY e0 "{"x" * 10}">{"".join(grown)}'
    with pytest.raises(RobotModelError):
        RobotModel(f"<!DOCTYPE robot [{entities}]><robot name='&e11;'/>")


@pytest.mark.parametrize(
    "declared",
    ['<!ENTITY e "x">', '<!ENTITY e SYSTEM "file:///etc/passwd">', '<!ENTITY % e SYSTEM "x"> %e;'],
)
def test_a_document_type_is_refused_whatever_it_declares(declared) -> None:
    with pytest.raises(RobotModelError, match="document type"):
        RobotModel(f'<?xml version="1.0"?><!DOCTYPE robot [{declared}]>{TEXT}')


def test_a_text_that_is_too_long_is_refused_unread() -> None:
    with pytest.raises(RobotModelError, match="10000001 characters"):
        RobotModel("<" * (LONGEST + 1))
