"""One instant of a robot arm as it was measured, and the settings of how messages become it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.parameters import parameter

OTHER_PUBLISHER = "position of another publisher, who gives no effort or wrench"
MIN_RUN = 3  # messages in a row that agree: the clock was set back, or positions have jumped
IMPLAUSIBLE = 1e9  # rad, rad/s, N, N m: beyond it a value is a broken message's, not a robot's


@dataclass(frozen=True, slots=True)
class Measurement:
    """One instant, as measured.

    Attributes
    ----------
    stamp: the message's time, in nanoseconds.
    q: (n_joints,) joint positions, rad (m for prismatic joints).
    dq: (n_joints,) joint velocities, rad/s (m/s), NaN where a joint has none at this instant, or
        None where no joint has one.
    y: (n_axes,) measured joint efforts (N m, N for prismatic joints) or the wrench
        (fx, fy, fz in N, tx, ty, tz in N m), or None where it wasn't measured at this instant. NaN
        on an axis whose own reading is none, as of a sensor that sticks.
    """

    stamp: int
    q: Array
    dq: Array | None
    y: Array | None


def number_problem(numbers: Sequence[float]) -> str:
    """The reason for which numbers can't be a measurement; empty where they can."""
    if not all(map(math.isfinite, numbers)):
        return "not finite"
    return "implausible value" if wrong_numbers(numbers) else ""


def wrong_numbers(numbers: Sequence[float]) -> list[tuple[int, float]]:
    """Those of the numbers that can't be a measurement, each with its index."""
    return [(k, value) for k, value in enumerate(numbers) if not abs(value) <= IMPLAUSIBLE]


@dataclass(frozen=True)
class StreamConfig:
    """Rules by which the messages of one robot become measurements."""

    pair_wait: float = parameter(
        0.1,
        "a joint state is paired with the wrenches before and after it where both are this near, "
        "and waits for them until one topic runs ahead of the other by this much more",
        unit="s",
        low=0.0,
        high=10.0,
    )
    wrench_frames: tuple[str, ...] = parameter(
        (),
        "frame_ids of wrenches that read in sensor_frame under another name; those in any further "
        "frame are dropped, an empty frame_id is accepted",
    )
    stuck_after: float = parameter(
        1.0,
        "a reading that stays the same to the last bit for longer than this, while the joint "
        "(of a wrench any joint) moves by more than samples.stuck_motion, comes from a sensor "
        "that sticks, and isn't learned; 0: never",
        unit="s",
        low=0.0,
        high=3600.0,
    )
    stuck_motion: float = parameter(
        0.05,
        "how far the joints must have moved meanwhile, see samples.stuck_after",
        unit="rad or m",
        low=1e-6,
        high=100.0,
        internal="it is 0.05 rad or m; see `samples.stuck_after`",
    )
    saturation: tuple[float, ...] = parameter(
        (),
        "readings of this size or more are saturated and aren't learned: one limit for all axes, "
        "or one for each; empty: no limit",
        unit="N m or N",
        low=0.0,
        high=IMPLAUSIBLE,
    )
    saturation_after: int = parameter(
        6,
        "an effort that stays exactly at the largest or smallest value it ever had for so many "
        "readings, while its joint moves five times as far as while any other value did, is "
        "saturated there, then and later, until one goes beyond; 0: never",
        low=0,
        high=10**6,
        internal="it is 6 readings; name the limits, `samples.saturation`",
    )
    effort_scale: tuple[float, ...] = parameter(
        (1.0,),
        "factor of the joint states' efforts, one for all joints or one for each: N m for a "
        "unit of what the driver gives (of a current, torque constant times gear ratio); "
        "negative where the driver's sign is the opposite",
        low=-1e6,
        high=1e6,
        basic=True,
    )
    effort_delay: float = parameter(
        0.0,
        "by how much efforts come later than the positions that they belong to: each position "
        "is paired with the effort whose stamp is so much later, and outputs are delayed by it; "
        "negative: earlier",
        unit="s",
        low=-0.2,
        high=0.2,
    )
