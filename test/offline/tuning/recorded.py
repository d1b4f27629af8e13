"""Recordings of the small arm for the tests of tuning."""

from __future__ import annotations

from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.tuning.candidates import Recordings

from ...dynamics.arms import measurements, small_arm

CONFIG = replace(
    InverseDynamicsConfig(),
    **{"nystrom.window": 2.0, "random_fourier.window": 2.0, "filter.cutoff": 8.0},
)


def recordings(
    n: int = 2, seconds: float = 14.0, config: InverseDynamicsConfig = CONFIG, *, same: bool = False
) -> Recordings:
    """`n` recordings, 50 Hz, with an effect that no rigid body has: of the `same` motion or not."""
    model = small_arm(target="effort")
    streams = [
        list(measurements(model, seconds, 50.0, seed=seed, extra=2.0, start=(k + 1) * 10**11))
        for k, seed in enumerate([0] * n if same else range(n))
    ]
    return Recordings(model, config, [f"motion_{k + 1}" for k in range(n)], streams)
