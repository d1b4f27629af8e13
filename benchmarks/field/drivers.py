"""Messages as drivers and recorders were reported to send them, made of an arm's own.

Each is a function of whole messages, which gives those that came instead; where it was reported is
in benchmarks/results/field.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from messages import Message, halves

from semiparam_dynamics.base.arrays import SECOND, Array

NONE = np.empty(0)
MS = SECOND // 1000
Messages = Sequence[Message]
Change = Callable[[Messages, np.random.Generator], Iterable[Message]]


class Driver(NamedTuple):
    """What one sends.

    Attributes
    ----------
    change: makes it of whole messages.
    learned: share of the samples that is learned at least of those of the whole messages.
    reason: that is counted or reported of others, empty where nothing is.
    """

    change: Change
    learned: float
    reason: str


def _beside(make: Callable[[Message], Message], *, first: bool = False, every: int = 1) -> Change:
    """A further message beside each of so many."""

    def change(given: Messages, rng: np.random.Generator) -> Iterable[Message]:
        for k, m in enumerate(given):
            others = [make(m)] if k % every == every // 2 else []
            yield from ([*others, m] if first else [m, *others])

    return change


def _each(make: Callable[[int, Message, Messages], Message]) -> Change:
    return lambda given, rng: (make(k, m, given) for k, m in enumerate(given))


def _between(*rest: Array, names: tuple[str, ...] = ()) -> Change:
    return _beside(lambda m: Message(m.stamp + 3 * MS, names, *rest))


def _twin(m: Message) -> Message:
    names = tuple(f"UR20245301303{name}" for name in reversed(m.names))
    return Message(m.stamp, names, *(values[::-1] for values in m[2:]))


def _made_up(m: Message) -> Message:
    return Message(m.stamp, m.names, 0.0 * m.q, NONE, NONE)


def _apart(given: Messages, rng: np.random.Generator) -> Iterable[Message]:
    for m in given:
        yield m._replace(y=NONE)
        yield Message(m.stamp, m.names, NONE, NONE, m.y)


def _parts(given: Messages, rng: np.random.Generator) -> Iterable[Message]:
    for k, m in enumerate(halves(given)):
        yield m._replace(stamp=m.stamp + k % 2 * MS // 10)


def _two_arms(given: Messages, rng: np.random.Generator) -> Iterable[Message]:
    for k, m in enumerate(given):
        yield m
        yield given[k - len(given) // 2]._replace(stamp=m.stamp + 7 * MS)


def _more_joints(k: int, m: Message, given: Messages) -> Message:
    further = ([1.0, 1.7e9], [0.0, np.nan], [np.nan, np.nan])
    values = (np.append(own, more) for own, more in zip(m[2:], further, strict=True))
    return Message(m.stamp, (*m.names, "gpio_1", "timestamp"), *values)


def _corrupt(k: int, m: Message, given: Messages) -> Message:
    return m._replace(q=np.full(len(m.q), -4.7e226)) if k % 100 == 50 else m


def _tiny(given: Messages, rng: np.random.Generator) -> Iterable[Message]:
    return (m._replace(y=1e-308 * rng.standard_normal(len(m.y))) for m in given)


def _held(k: int, m: Message, given: Messages) -> Message:
    return given[len(given) // 2]._replace(stamp=m.stamp) if k > len(given) // 2 else m


def _loop(given: Messages, rng: np.random.Generator) -> Iterable[Message]:
    n = len(given) // 2
    return [*given[:n], *given[: n // 2], given[n - 1], *given[n // 2 :]]


DRIVERS = {
    "the same under prefixed names": Driver(_beside(_twin, first=True), 1.0, "missing joint"),
    "made-up positions of the same stamp before": Driver(
        _beside(_made_up, first=True), 0.99, "repeated stamp"
    ),
    "made-up positions of the same stamp after": Driver(_beside(_made_up), 1.0, "repeated stamp"),
    "made-up positions before one of seven": Driver(
        _beside(_made_up, first=True, every=7), 0.99, "repeated stamp"
    ),
    "efforts in a message of their own": Driver(_apart, 0.95, "wrong length"),
    "halves of an arm 0.1 ms apart": Driver(_parts, 1.0, ""),
    "two arms with the same names": Driver(_two_arms, 0.98, "jumped by more"),
    "also by a controller, 7 ms late": Driver(
        _beside(lambda m: m._replace(stamp=m.stamp + 7 * MS), every=5), 0.98, "reading repeated"
    ),
    "corrupted positions": Driver(_each(_corrupt), 0.97, "implausible value"),
    "efforts of 1e-308": Driver(_tiny, 0.0, "no effort has changed yet"),
    "efforts always 0": Driver(
        _each(lambda k, m, given: m._replace(y=0.0 * m.y)), 0.0, "no effort has changed yet"
    ),
    "velocities always 0": Driver(_each(lambda k, m, given: m._replace(dq=0.0 * m.dq)), 1.0, ""),
    "the last reading for ever": Driver(_each(_held), 0.45, "position stuck"),
    "10 Hz": Driver(lambda given, rng: given[::5], 0.19, ""),
    "sensors and a time among the joints": Driver(_each(_more_joints), 1.0, ""),
    "empty messages between": Driver(_between(NONE, NONE, NONE), 1.0, "missing joint"),
    "a gripper's messages between": Driver(
        _between(np.zeros(1), NONE, NONE, names=("finger",)), 1.0, "missing joint"
    ),
    "messages without positions between": Driver(
        _beside(lambda m: m._replace(stamp=m.stamp + 3 * MS, q=NONE, y=NONE)), 1.0, "wrong length"
    ),
    "a bag that loops, its end late": Driver(_loop, 0.9, "clock jumped"),
    "time that begins late": Driver(
        _each(lambda k, m, given: m._replace(stamp=given[max(k, 50)].stamp)), 0.85, "repeated stamp"
    ),
    "stamps 0 at first": Driver(
        _each(lambda k, m, given: m._replace(stamp=m.stamp * (k >= 50))), 0.85, "zero stamp"
    ),
    "three seconds without messages": Driver(
        lambda given, rng: [*given[:200], *given[350:]], 0.6, "restarted after a pause"
    ),
    "each message twice": Driver(_beside(lambda m: m), 1.0, "repeated stamp"),
    "two that overtook each other in twenty": Driver(
        _each(lambda k, m, given: m if k % 20 > 1 else given[min(k ^ 1, len(given) - 1)]),
        0.9,
        "out of order",
    ),
    "each reading three times": Driver(
        _each(lambda k, m, given: given[k // 3 * 3]._replace(stamp=m.stamp)),
        0.3,
        "reading repeated",
    ),
    "no number before the first reading": Driver(
        _each(lambda k, m, given: m if k >= 50 else m._replace(q=np.nan * m.q)), 0.85, "not finite"
    ),
    "a publisher whose clock is 47 s ahead": Driver(
        _beside(lambda m: m._replace(stamp=m.stamp + 47 * SECOND, dq=NONE, y=NONE), every=10),
        1.0,
        "another publisher",
    ),
    "half the joints 0 twice in a hundred": Driver(
        _each(
            lambda k, m, given: m._replace(q=m.q * (np.arange(len(m.q)) > 3)) if k % 100 > 97 else m
        ),
        0.8,
        "jumped by more",
    ),
}
# The samples are not those of the arm, or not learned: what is missing is in results/field.md.
NOT_CURED: dict[str, Change] = {
    "halves of an arm half a step apart": lambda given, rng: (
        m._replace(stamp=m.stamp + k % 2 * 10 * MS) for k, m in enumerate(halves(given))
    ),
    "four that come in any order": lambda given, rng: (
        given[i] for k in range(0, len(given), 4) for i in k + rng.permutation(4) if i < len(given)
    ),
}
