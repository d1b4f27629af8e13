"""A simulator that is an exact rigid-body system; for tests."""

from __future__ import annotations

from semiparam_dynamics.base.parameters import from_flat, parameters
from semiparam_dynamics.simulation.config import EffectsConfig

#: Every effect turned off.
NO_EFFECTS = from_flat(
    EffectsConfig, {entry.name: 0.0 for entry in parameters(EffectsConfig) if entry.low == 0.0}
)
