"""A simulated arm as an endless source of measurements."""

from __future__ import annotations

from collections.abc import Iterator

from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.simulation.arm import ArmSimulator


def simulated(arm: ArmSimulator, target: str, start: int = 0) -> Iterator[Measurement]:
    """The arm's readings from now on, `target` being "wrench" or "effort"; `start` in ns."""
    while True:
        reading = arm.advance()
        y = reading.wrench if target == "wrench" else reading.effort
        yield Measurement(start + round(reading.time * 1e9), reading.q, reading.dq, y)
