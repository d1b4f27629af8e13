"""What all stages of a tuning share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.parameters import to_flat
from semiparam_dynamics.tuning.candidates import Tuning
from semiparam_dynamics.tuning.motion import Recordings
from semiparam_dynamics.tuning.work import Work


@dataclass(frozen=True)
class Task:
    """What is tuned on and by what, and where the findings are collected."""

    recordings: Recordings
    work: Work
    keep: tuple[str, ...]
    criterion: str
    stage: Callable[[str], Callable[[float], None]]
    tuning: Tuning

    def kept(self, name: str) -> bool:
        """Whether a parameter stays as it is."""
        return is_kept(name, self.keep)


def is_kept(name: str, keep: Sequence[str]) -> bool:
    """Whether `keep` has a parameter, or a group that it is in."""
    return any(name == k or name.startswith(f"{k}.") for k in keep)


def check_keep(keep: Sequence[str], config: InverseDynamicsConfig) -> None:
    """Raise ConfigurationError for a name that is neither a parameter nor a group."""
    for name in keep:
        if not any(is_kept(known, [name]) for known in to_flat(config)):
            raise ConfigurationError(f"--keep {name}: there is no such parameter or group of them")
