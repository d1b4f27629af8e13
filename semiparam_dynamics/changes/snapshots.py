"""Payloads known by name: the bare hand, a gripper, this tool."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import ConfigurationError

BARE = "bare"
LONGEST_NAME = 100
MOST = 1000  # names
# How differently a thing is held from one time to the next, as standard deviations.
OTHER_GRIP, OTHER_PLACE = 0.02, 0.005  # of all parameters; m


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A payload's ten parameters and how well they are known, in the frame of the payload link."""

    mean: Array  # (10,)
    covariance: Array  # (10, 10)

    def held_again(self) -> Array:
        """(10, 10) the covariance where it is held again, a little differently."""
        m, r = abs(self.mean[0]), OTHER_PLACE
        shift = np.array([0.0, *[m * r] * 3, *[2.0 * r * np.linalg.norm(self.mean[1:4])] * 6])
        covariance: Array = self.covariance + np.diag(shift**2 + (OTHER_GRIP * self.mean) ** 2)
        return covariance


class Snapshots:
    """Snapshots by name. The bare hand is always among them, under the name `BARE`."""

    def __init__(self) -> None:
        self._known: dict[str, Snapshot] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, the bare hand first."""
        return (BARE, *self._known)

    def __getitem__(self, name: str) -> Snapshot:
        """Raises ConfigurationError where there is none of this name."""
        if name == BARE:
            return Snapshot(np.zeros(10), np.zeros((10, 10)))
        if name not in self._known:
            known = ", ".join(self.names)
            raise ConfigurationError(f"no payload is known as '{name}'; there are: {known}")
        return self._known[name]

    def store(self, name: str, snapshot: Snapshot) -> None:
        """Keep it under this name, in the place of one of the same. Raises ConfigurationError."""
        if name == BARE:
            raise ConfigurationError(f"'{BARE}' is the hand without a payload: choose another name")
        if not name or len(name) > LONGEST_NAME or not name.isprintable():
            raise ConfigurationError(
                f"a payload's name has 1 to {LONGEST_NAME} printable characters, not {name!r:.120}"
            )
        if name not in self._known and len(self._known) >= MOST:
            raise ConfigurationError(f"there are {MOST} payloads already: remove one first")
        self._known[name] = snapshot

    def remove(self, name: str) -> None:
        """Raises ConfigurationError where there is none, or it is the bare hand."""
        if name == BARE:
            raise ConfigurationError(f"'{BARE}' is the hand without a payload: it can't be removed")
        self[name]
        del self._known[name]

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        known = list(self._known.values())
        return {
            "names": as_array("\n".join(self._known)),
            "means": np.array([s.mean for s in known]).reshape(-1, 10),
            "covariances": np.array([s.covariance for s in known]).reshape(-1, 10, 10),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a :meth:`state`. Raises ValueError where its parts don't belong together."""
        text = as_text(state["names"])
        names = text.split("\n") if text else []
        rows = zip(names, state["means"], state["covariances"], strict=True)
        self._known = {name: Snapshot(mean.copy(), cov.copy()) for name, mean, cov in rows}


def as_array(text: str) -> Array:
    """The text's bytes as numbers, to be saved among arrays."""
    return np.array(list(text.encode()), dtype=np.float64)


def as_text(array: Array) -> str:
    """The text of :func:`as_array`. Raises ValueError where it is none."""
    return bytes(array.astype(np.int64).tolist()).decode()
