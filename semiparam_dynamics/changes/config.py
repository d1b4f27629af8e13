"""Parameters of what notices changes."""

from __future__ import annotations

from dataclasses import dataclass, field

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.parameters import parameter

# -------------------------------------------------------------------------------------------------
# What is known of changes at an instant, and what happened.

SETTLING, WATCHING, DISTURBED, ESTIMATING = "settling", "watching", "disturbed", "estimating"
CONTACT, OVER, UNEXPLAINED = "contact", "contact over", "unexplained"


@dataclass(frozen=True, slots=True)
class ChangeEvent:
    """Something that was noticed."""

    stamp: int  # ns, of the sample at which it was
    onset: int  # ns, when it began, as far as that can be told
    cause: str  # payload, friction, offset, contact, unexplained; "contact over"
    name: str = ""  # of the payload, where it is one known before; "bare" for none
    evidence: float = 0.0  # log likelihood ratio, or standard deviations of a contact


@dataclass(frozen=True, slots=True)
class PayloadStatus:
    """What is held beyond what the model has learned; in the frame of `link`, SI units."""

    link: str
    name: str  # of the snapshot, "" where it is none
    mass: float  # kg; negative where something that was learned with the link is gone
    center: Array  # (3,) m, from the link's origin
    inertia: Array  # (6,) kg m^2 about the centre: Ixx, Ixy, Iyy, Ixz, Iyz, Izz
    mass_std: float
    center_std: Array  # (3,)
    inertia_std: Array  # (6,)
    parameters: Array  # (10,) of a real body (or minus one), as regressor.INERTIAL names them
    settled: bool  # no longer estimated: learning goes on beside it


@dataclass(frozen=True, slots=True)
class ChangeStatus:
    """The state of affairs after a sample."""

    stamp: int = 0  # ns
    phase: str = SETTLING  # settling, watching, disturbed (something is there), estimating
    cause: str = ""  # that is being estimated, or "contact" while disturbed
    since: int = 0  # ns, onset of that
    learning: bool = True  # whether samples of now are learned
    contact: bool = False
    deviation: float = 0.0  # the largest |external| of an axis, in standard deviations
    external: Array | None = None  # (n_axes,) measured minus predicted, N m or N
    evidence: dict[str, float] = field(default_factory=dict)  # of each cause, of the last block
    threshold: float = 0.0  # that the evidence is compared with


@dataclass(frozen=True)
class ChangesConfig:
    """What is looked for, how surely, and what follows from it. The defaults suit arms of a hand.

    Alarms are counted in an hour of ordinary motion; docs/changes.md has what was measured.
    """

    detect: bool = parameter(
        False,
        "notice payloads, changed friction, sensor offsets and contacts, take their part off what "
        "is learned, and add what is held to the predictions",
    )
    settle: float = parameter(
        20.0,
        "seconds of learning before anything is looked for, so that predictions and their "
        "standard deviations are worth something",
        unit="s",
        low=0.0,
        high=1e6,
        live=True,
    )
    false_alarms: float = parameter(
        0.1,
        "false alarms an hour that errors as they were so far would raise; fewer means later",
        unit="1/h",
        low=1e-12,
        high=1e6,
        live=True,
    )
    payload_link: str = parameter("", "moving link that payloads are fixed to; empty: the last one")
    payload_mass: float = parameter(
        2.0, "what payloads usually weigh, as a standard deviation", unit="kg", low=1e-4, high=1e4
    )
    payload_reach: float = parameter(
        0.3,
        "how far a payload's centre of mass usually is from the origin of payload_link",
        unit="m",
        low=1e-3,
        high=10.0,
    )
    payload_time: float = parameter(
        10.0,
        "for how long a new payload, friction or offset is estimated before learning goes on",
        unit="s",
        low=0.5,
        high=3600.0,
        live=True,
    )
    friction: bool = parameter(True, "look for changed friction (effort target)", live=True)
    offset: bool = parameter(True, "look for changed offsets", live=True)
    contact: float = parameter(
        6.0,
        "a contact is where the external effort or wrench is beyond so many predicted standard "
        "deviations on any axis; nothing is learned meanwhile; 0: contacts aren't looked for",
        low=0.0,
        high=1e6,
        live=True,
    )
    contact_longest: float = parameter(
        10.0,
        "what stays beyond changes.contact for longer than this and that nothing explains is how "
        "the robot is now, and is learned",
        unit="s",
        low=0.0,
        high=1e6,
        live=True,
    )
