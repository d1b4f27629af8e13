"""What the motors are told when the simulated arm takes efforts instead of making its motion."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.errors import SampleError

ROUNDING = 1e-9  # s


class EffortCommands:
    """The last commanded efforts, for as long as they are fresh.

    Parameters
    ----------
    n_joints: of the arm. timeout: how long a command holds, s.

    Attributes
    ----------
    begun: whether there was a command at all.
    """

    def __init__(self, n_joints: int, timeout: float) -> None:
        self._timeout = timeout
        self._effort = np.zeros(n_joints)
        self._given = 0.0
        self.begun = False

    def give(self, effort: np.ndarray, time: float) -> None:
        """Take efforts (n,) in N m at a time in s. Raises SampleError on a wrong size or NaN."""
        effort = np.array(effort, dtype=float)
        if effort.shape != self._effort.shape or not np.isfinite(effort).all():
            raise SampleError(
                f"a command needs {len(self._effort)} finite efforts, one for each joint"
            )
        self._effort, self._given, self.begun = effort, time, True

    def at(self, time: float) -> np.ndarray | None:
        """The efforts (n,) that hold at a time in s, if there are any."""
        fresh = self.begun and time - self._given <= self._timeout + ROUNDING
        return self._effort if fresh else None
