"""Joint states paired with the wrench of the same instant.

Two topics arrive interleaved in an order that depends on the network and the machine's load. What
is paired with what depends on stamps alone: a joint state waits until the wrench topic has reached
its stamp, or until the joint states themselves have gone on for so long that it never will.
"""

from __future__ import annotations

from collections import deque

from semiparam_dynamics.base.arrays import SECOND, Array
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.samples.reports import Reports

MAX_HELD_MESSAGES = 10_000  # messages held of either topic, for stamps that hardly advance


class WrenchPairer:
    """Pairs joint states with wrenches by stamp; each topic comes in the order of its stamps.

    A joint state gets the wrench of its own stamp, or else the linear interpolation between the
    wrenches before and after it where both lie within `tolerance` and were measured, or else none.
    The result doesn't depend on how the topics interleave, as long as neither runs ahead of the
    other by more than `wait`. Measurements come out in the order of the joint states.

    Parameters
    ----------
    tolerance: in nanoseconds, between a joint state and either wrench around it.
    wait: in nanoseconds, by which one topic may run ahead of the other.
    reports: where ``unpaired joint state`` (passed on without a wrench) and ``unpaired wrench``
        (no joint state within `tolerance` of it) are counted, of wrenches with a sentence on the
        offset between the topics' stamps.
    what: what is paired, in that reason: a wrench, or anything else that has its own stamp.
    """

    def __init__(self, tolerance: int, wait: int, reports: Reports, what: str = "wrench") -> None:
        self._tolerance = tolerance
        self._hold = wait + tolerance
        self._reports = reports
        self._unpaired = f"unpaired {what}"
        self._with_offset = what == "wrench"
        self._newest: int | None = None  # stamp of the newest joint state, and of the newest wrench
        self._newest_wrench: int | None = None
        # The newest wrench's less the newest joint state's, when one of either topic came last.
        self._apart: dict[str, int] = {}
        self._pending: deque[Measurement] = deque()
        self._wrenches: deque[tuple[int, Array | None]] = deque()
        self._released: int | None = None  # stamp of the joint state that left last
        self._oldest_near = False  # the oldest wrench has had a joint state within tolerance

    def joint_state(self, measurement: Measurement) -> list[Measurement]:
        """Take one joint state in; return what is complete now."""
        self._pending.append(measurement)
        self._newest = newest = measurement.stamp
        self._compare("joint state")
        released = self._release()
        while self._pending and (
            newest - self._pending[0].stamp > self._hold or len(self._pending) > MAX_HELD_MESSAGES
        ):
            released.append(self._take())
        return released

    def wrench(self, stamp: int, values: Array | None) -> list[Measurement]:
        """Take one wrench (6,) in, None where it was not measured; return what is complete now."""
        self._wrenches.append((stamp, values))
        self._newest_wrench = stamp
        self._compare("wrench")
        released = self._release()
        while self._wrenches[0][0] < stamp - self._hold or len(self._wrenches) > MAX_HELD_MESSAGES:
            self._discard(None)
        return released

    def restart_joint_states(self, limit: int) -> list[Measurement]:
        """The joint states' clock went back: release those waiting, forget wrenches after limit."""
        released = self.flush()
        self._newest = None
        self._apart.clear()
        self._wrenches = deque(entry for entry in self._wrenches if entry[0] <= limit)
        self._released, self._oldest_near = None, False
        return released

    def restart_wrenches(self, limit: int) -> list[Measurement]:
        """The wrenches' clock went back: forget them, release joint states after `limit`."""
        self._wrenches.clear()
        self._oldest_near = False
        return self.flush() if any(waiting.stamp > limit for waiting in self._pending) else []

    def flush(self) -> list[Measurement]:
        """Release every joint state that still waits: no more wrenches come."""
        return [self._take() for _ in range(len(self._pending))]

    def _release(self) -> list[Measurement]:
        released: list[Measurement] = []
        while self._pending and self._reached(self._pending[0].stamp):
            released.append(self._take())
        return released

    def _reached(self, stamp: int) -> bool:
        return bool(self._wrenches) and self._wrenches[-1][0] >= stamp

    def _take(self) -> Measurement:
        """Release the oldest joint state with what wrench there is for it."""
        measurement = self._pending.popleft()
        stamp, wrenches = measurement.stamp, self._wrenches
        while len(wrenches) > 1 and wrenches[1][0] <= stamp:
            self._discard(stamp)
        if wrenches and wrenches[0][0] <= stamp:
            self._oldest_near |= self._near(wrenches[0][0], stamp)
        self._released = stamp
        y = self._at(stamp)
        if y is None:
            self._count("unpaired joint state")
            return measurement
        return Measurement(stamp, measurement.q, measurement.dq, y)

    def _at(self, stamp: int) -> Array | None:
        """The wrench at `stamp`, between the two oldest wrenches."""
        if not self._reached(stamp) or self._wrenches[0][0] > stamp:
            return None
        before, y = self._wrenches[0]
        if before == stamp:
            return y
        after, following = self._wrenches[1]
        if y is None or following is None:
            return None
        if stamp - before > self._tolerance or after - stamp > self._tolerance:
            return None
        return y + (following - y) * ((stamp - before) / (after - before))

    def _discard(self, following: int | None) -> None:
        """Forget the oldest wrench, counted if no joint state was near it."""
        stamp, _ = self._wrenches.popleft()
        if not (self._oldest_near or self._near(stamp, following)):
            self._count(self._unpaired)
        self._oldest_near = False

    def _near(self, stamp: int, following: int | None) -> bool:
        """True if the joint state released before, or the `following` one, is near to `stamp`."""
        before = self._released is not None and 0 <= stamp - self._released <= self._tolerance
        return before or (following is not None and following - stamp <= self._tolerance)

    def _compare(self, topic: str) -> None:
        if self._newest is not None and self._newest_wrench is not None:
            self._apart[topic] = self._newest_wrench - self._newest

    def _count(self, reason: str) -> None:
        first = self._with_offset and reason not in self._reports.details
        self._reports.drop(reason, self._offset() if first else "")

    def _offset(self) -> str:
        """The offset between the topics' stamps and a remedy; empty while one has none."""
        if not self._apart:
            return ""
        # While one topic pauses the other's stamps go on; clocks differ as each of them comes.
        apart = min(self._apart.values(), key=abs)
        if abs(apart) <= self._hold:
            return (
                "joint states and wrenches do not pair: a joint state needs a wrench before and "
                f"after it within samples.pair_wait ({self._tolerance / SECOND:g} s)"
            )
        where = "ahead of" if apart > 0 else "behind"
        return (
            f"the wrenches' stamps are some {abs(apart) / SECOND:.1f} s {where} the joint states', "
            "and none are paired: if their clocks differ, stamp both by one clock or synchronise "
            "the machines (chrony, PTP); if one topic only comes so late, raise samples.pair_wait "
            f"({(self._hold - self._tolerance) / SECOND:g} s)"
        )
