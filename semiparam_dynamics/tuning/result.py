"""What tuning found."""

from __future__ import annotations

from dataclasses import dataclass, field

from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.parameters import Value, to_flat
from semiparam_dynamics.tuning.candidates import Outcome
from semiparam_dynamics.tuning.splits import Split


@dataclass(frozen=True)
class Step:
    """A stage: what was tried, and what was taken."""

    title: str
    outcomes: tuple[Outcome, ...]
    chosen: Outcome


@dataclass(frozen=True)
class Curve:
    """A parameter of the rigid body alone: held-out nmse for each value."""

    name: str
    errors: dict[float, float]
    chosen: float


@dataclass
class Tuning:
    """What tuning found."""

    before: InverseDynamicsConfig
    config: InverseDynamicsConfig
    splits: list[Split]
    curves: list[Curve] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    screened: dict[str, Outcome] = field(default_factory=dict)  # "configured" and "tuned"
    confirmed: dict[str, Outcome] = field(default_factory=dict)  # the same, by the learner itself
    candidates: int = 0
    computed: int = 0  # results that weren't in the journal
    seconds: float = 0.0

    @property
    def changes(self) -> dict[str, tuple[Value, Value]]:
        """Parameters that differ from before: both values."""
        old, new = to_flat(self.before), to_flat(self.config)
        return {name: (old[name], new[name]) for name in new if new[name] != old[name]}
