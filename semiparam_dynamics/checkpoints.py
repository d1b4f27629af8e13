"""Which of the saved models to go on from: the newest that is whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from semiparam_dynamics.errors import DamagedModelError
from semiparam_dynamics.storage import previous_of


class Loaded(NamedTuple):
    """The file that was loaded, and what is wrong with a newer one; empty if nothing is."""

    path: Path
    problem: str


def any_saved(path: str | Path) -> bool:
    """Whether there is a file at `path`, or one that was there before."""
    return Path(path).exists() or previous_of(path).exists()


def load_newest(path: str | Path, load: Callable[[Path], None]) -> Loaded:
    """Have `load` take the file at `path`; where that is damaged, the one that was there before.

    Where there is only the one before, the process was killed between the two renames of a save:
    nothing is wrong then. A file of another robot, configuration or newer version is no reason to
    take an older one: StorageError. The same where neither can be loaded.
    """
    path, previous = Path(path), previous_of(path)
    try:
        load(path)
    except DamagedModelError as error:
        if not previous.exists():
            raise
        try:
            load(previous)
        except DamagedModelError as other:
            raise DamagedModelError(
                f"{error}, and {other}: move both away to start from nothing"
            ) from None
        problem = f"{error}: goes on from the one before it, {previous}" if path.exists() else ""
        return Loaded(previous, problem)
    return Loaded(path, "")
