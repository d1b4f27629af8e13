from __future__ import annotations

import pytest

from semiparam_dynamics.base.nodes.pacing import Pacer


def test_steps_are_due_a_period_apart():
    pacer = Pacer(0.01)
    assert pacer.delay(5.0) == 0.0
    pacer.stepped()
    assert pacer.delay(5.004) == pytest.approx(0.006)
    assert pacer.delay(5.01) == 0.0
    assert pacer.given_up == 0.0


def test_a_short_stall_is_caught_up():
    pacer = Pacer(0.01, patience=0.1)
    pacer.delay(0.0)
    steps = 0
    while pacer.delay(0.05) == 0.0:
        pacer.stepped()
        steps += 1
    assert steps == 6  # those of 0, 10, ... 50 ms
    assert pacer.given_up == 0.0


def test_a_long_stall_is_given_up_and_not_raced_after():
    pacer = Pacer(0.01, patience=0.1)
    pacer.delay(0.0)
    pacer.stepped()
    assert pacer.delay(1.0) == 0.0
    pacer.stepped()
    assert pacer.delay(1.0) == pytest.approx(0.01)
    assert pacer.given_up == pytest.approx(0.99)
