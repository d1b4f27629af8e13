"""What is known of changes at an instant, and what happened."""

from __future__ import annotations

from dataclasses import dataclass, field

from semiparam_dynamics.arrays import Array

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
    parameters: Array  # (10,) of a real body (or minus one), as multibody.INERTIAL names them
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
