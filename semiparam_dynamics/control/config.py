"""The controller's parameters."""

from __future__ import annotations

import dataclasses

from semiparam_dynamics.parameters import group, parameter

FEEDFORWARDS = ("urdf", "rigid_body", "semiparametric")


@dataclasses.dataclass(frozen=True)
class GainsConfig:
    """Feedback, the same for every joint but for its inertia; one number, or one for each joint."""

    bandwidth: tuple[float, ...] = parameter(
        (20.0,),
        "natural frequency of each joint's error: Kp = (M_jj + rotor_inertia) bandwidth^2",
        unit="rad/s",
        low=0.0,
        high=1000.0,
    )
    damping_ratio: tuple[float, ...] = parameter(
        (1.0,),
        "of each joint's error: Kd = 2 damping_ratio bandwidth (M_jj + rotor_inertia)",
        low=0.0,
        high=10.0,
    )
    rotor_inertia: tuple[float, ...] = parameter(
        (0.0,),
        "inertia of each joint's rotor beyond its gear, which a URDF doesn't have; only the gains "
        "know of it",
        unit="kg m^2",
        low=0.0,
        high=1000.0,
    )


@dataclasses.dataclass(frozen=True)
class BoundsConfig:
    """What no command exceeds, and how far and how fast the learner may move the feed-forward."""

    effort_share: float = parameter(
        0.9,
        "commands are clipped to so much of the URDF's effort limits (joints whose limit is 0 or "
        "missing have none)",
        low=0.0,
        high=1.0,
    )
    effort: tuple[float, ...] = parameter(
        (),
        "commands are clipped to this size, too: one number, or one for each joint; empty: no such "
        "bound",
        unit="N m or N",
        low=0.0,
        high=1e9,
    )
    following_error: float = parameter(
        0.3,
        "a joint further off than this has been lost: the motion begins anew, from where the arm "
        "is, instead of being pulled to",
        unit="rad or m",
        low=1e-3,
        high=1e6,
    )
    correction: float = parameter(
        0.5,
        "how far the learner may move the feed-forward from the URDF's, in multiples of the bound "
        "on commands",
        low=0.0,
        high=1.0,
    )
    correction_rate: float = parameter(
        5.0,
        "how fast it may, in multiples of the bound on commands in a second",
        unit="1/s",
        low=0.0,
        high=1000.0,
    )


@dataclasses.dataclass(frozen=True)
class TrustConfig:
    """How far a joint's feed-forward follows the learner.

    The measure is the standard deviation that the learner gives with its answer, divided by the
    root mean square of what the URDF's feed-forward lately lacked.
    """

    sure: float = parameter(
        0.5, "below this the learner is followed in full", low=0.0, high=100.0, live=True
    )
    unsure: float = parameter(
        1.0,
        "from this on not at all, and linearly less in between; at most trust.sure: a step",
        low=0.0,
        high=100.0,
        live=True,
    )
    horizon: float = parameter(
        10.0,
        "over about how long the URDF's error is looked at",
        unit="s",
        low=0.1,
        high=1e5,
        live=True,
    )
    fade_time: float = parameter(
        0.2,
        "in which the feed-forward goes from the learner's to the URDF's, or back",
        unit="s",
        low=0.0,
        high=60.0,
        live=True,
    )


@dataclasses.dataclass(frozen=True)
class ControlConfig:
    """Computed torque: what it feeds forward, its feedback, bounds and fall-back."""

    feedforward: str = parameter(
        "semiparametric",
        "whose efforts at the desired state are fed forward: the URDF's, or what the learner's "
        "rigid body or semiparametric model says",
        choices=FEEDFORWARDS,
        live=True,
    )
    gains: GainsConfig = group(GainsConfig)
    bounds: BoundsConfig = group(BoundsConfig)
    trust: TrustConfig = group(TrustConfig)
