"""Parameters of the detection of changes, and its results."""

from __future__ import annotations

from dataclasses import dataclass, field

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.parameters import parameter

# Phases and causes of a status or an event, in addition to the causes of `hypotheses`.
SETTLING, WATCHING, DISTURBED, ESTIMATING = "settling", "watching", "disturbed", "estimating"
CONTACT, OVER, UNEXPLAINED = "contact", "contact over", "unexplained"
COLLISION, GIVEN_UP = "collision", "contact given up"
BARE = "bare"  # name of the hand without a payload
# Verdicts on whether a sample is learned.
LEARN, DEFER, EXCLUDE = "learn", "defer", "exclude"


@dataclass(frozen=True)
class ChangesConfig:
    """Changes that are detected, and the certainty asked for.

    The defaults suit arms of human size. benchmarks/results/changes.md has measured alarm rates.
    """

    detect: bool = parameter(
        False,
        "detect payloads, changed friction, sensor offsets and contacts, take their part off what "
        "is learned, and add what is held to the predictions",
        basic=True,
    )
    settle: float = parameter(
        20.0,
        "time of learning before detection begins, so that predictions and their standard "
        "deviations are reliable",
        unit="s",
        low=0.0,
        high=1e6,
        live=True,
    )
    payload_link: str = parameter(
        "",
        "moving link that payloads are fixed to; empty: the one on the largest number of learned "
        "joints",
    )
    payload_time: float = parameter(
        10.0,
        "time for which a new payload, friction or offset is estimated before learning continues",
        unit="s",
        low=0.5,
        high=3600.0,
        live=True,
    )
    effort_gain_std: tuple[float, ...] = parameter(
        (0.0,),
        "relative standard deviation of samples.effort_scale beside the other joints', one for all "
        "joints or one for each: a payload's deviations then include it (semiparam gains)",
        low=0.0,
        high=10.0,
    )
    effort_gain_common_std: float = parameter(
        0.0,
        "relative standard deviation of the factor that all of samples.effort_scale share",
        low=0.0,
        high=10.0,
    )
    contact: float = parameter(
        6.0,
        "a contact is an external effort or wrench beyond so many standard deviations of the "
        "usual errors on any axis; it is published on ~/contact, and with changes.detect "
        "nothing is learned during it; 0: contacts aren't detected",
        low=0.0,
        high=1e6,
        live=True,
    )
    contact_longest: float = parameter(
        10.0,
        "a deviation beyond changes.contact that lasts longer than this without another "
        "explanation is taken as the robot's own, and learned",
        unit="s",
        low=0.0,
        high=1e6,
        live=True,
        internal="a deviation that lasts for 10 s is learned",
    )


@dataclass(frozen=True, slots=True)
class ChangeEvent:
    """A detected change."""

    stamp: int  # ns, of the sample at which it was detected
    onset: int  # ns, estimated beginning
    cause: str  # payload, friction, offset, contact, unexplained; "contact over"
    name: str = ""  # of the payload, where it is a known one; "bare" for none
    evidence: float = 0.0  # log likelihood ratio, or standard deviations of a contact


@dataclass(frozen=True, slots=True)
class ChangeStatus:
    """The state of the detection after a sample."""

    stamp: int = 0  # ns
    phase: str = SETTLING  # settling, watching, disturbed (in contact), estimating
    cause: str = ""  # that is being estimated, or "contact" while disturbed
    since: int = 0  # ns, onset of that
    learning: bool = True  # whether present samples are learned
    contact: bool = False
    deviation: float = 0.0  # the largest |external| of an axis, in standard deviations
    external: Array | None = None  # (n_axes,) measured minus predicted, N m or N
    evidence: dict[str, float] = field(default_factory=dict)  # of each cause, of the last block
    threshold: float = 0.0  # that the evidence is compared with


@dataclass(frozen=True, slots=True)
class PayloadStatus:
    """The payload held beyond what the model has learned, in the frame of `link`; SI units."""

    link: str
    name: str  # of the snapshot, "" where it is none
    mass: float  # kg; negative where something that was learned with the link is gone
    center: Array  # (3,) m, from the link's origin
    inertia: Array  # (6,) kg m^2 about the centre: Ixx, Ixy, Iyy, Ixz, Iyz, Izz
    mass_std: float
    center_std: Array  # (3,)
    inertia_std: Array  # (6,)
    parameters: Array  # (10,) of a real body (or minus one), as regressor.INERTIAL names them
    settled: bool  # no longer estimated: learning continues
