"""A script's steps as what is held before the camera, one object after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.recognition.pictures import Objects, View
from semiparam_dynamics.recognition.script import Step


@dataclass(frozen=True)
class Showing:
    """An object in view for some frames, its name said if `teach`; or a pause of some seconds."""

    name: str = ""
    views: tuple[View, ...] = ()
    teach: bool = False
    pause: float = 0.0


class Show:
    """Makes showings of steps; each view is shown once before any of its class comes again.

    objects: what can be shown.
    hold: frames for which an object that is asked stays in view.
    seed: of the views' and the objects' order.
    """

    def __init__(self, objects: Objects, hold: int = 10, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self._taught = self._pools(objects.taught)
        self._asked = self._pools(objects.asked)
        self._hold = hold

    def showings(self, steps: Sequence[Step]) -> Iterator[Showing]:
        """The script once. Objects that are asked together come in rounds of a random order."""
        for step in steps:
            if not step.frames:
                yield Showing(pause=step.pause)
            elif step.teach:
                yield self._showing(step.names[0], step.frames, teach=True)
            else:
                yield from self._rounds(step)

    def _rounds(self, step: Step) -> Iterator[Showing]:
        each, more = divmod(step.frames, len(step.names))
        left = dict.fromkeys(step.names, each)
        for name in self._shuffled(step.names)[:more]:
            left[name] += 1
        while any(left.values()):
            for name in self._shuffled([name for name in left if left[name]]):
                frames = min(self._hold, left[name])
                left[name] -= frames
                yield self._showing(name, frames, teach=False)

    def _showing(self, name: str, frames: int, teach: bool) -> Showing:
        pool = (self._taught if teach else self._asked)[name]
        return Showing(name, tuple(next(pool) for _ in range(frames)), teach)

    def _pools(self, views: Mapping[str, Sequence[View]]) -> dict[str, Iterator[View]]:
        return {name: self._endlessly(some) for name, some in views.items()}

    def _endlessly(self, views: Sequence[View]) -> Iterator[View]:
        while True:
            yield from (views[place] for place in self._rng.permutation(len(views)))

    def _shuffled(self, names: Sequence[str]) -> list[str]:
        return [names[place] for place in self._rng.permutation(len(names))]
