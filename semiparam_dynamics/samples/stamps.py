"""The order of one topic's stamps: repeated, late, of another clock, of another unit."""

from __future__ import annotations

from semiparam_dynamics.base.arrays import SECOND
from semiparam_dynamics.samples.reports import Reports

MAX_STEP_BACK = SECOND  # ns; stamps that go back by more are of a restarted clock
MIN_LATE_RUN = 3  # late messages, in order among themselves: the clock was set back
MIN_WHOLE_SECONDS = 20  # stamps without a fraction in a row: the driver leaves it out
COARSE = (
    "stamps are whole seconds: the driver leaves the fraction out; have it stamp with the time of "
    "the reading, in nanoseconds"
)


class StampOrder:
    """Checks that stamps of one topic increase; messages that do not are dropped and counted.

    Parameters
    ----------
    reports: where what is dropped is counted.

    Attributes
    ----------
    newest: the last stamp that went on, ns; 0 before the first.
    """

    def __init__(self, reports: Reports) -> None:
        self._reports = reports
        self.newest = 0
        self._late: list[int] = []  # stamps since the last one in time
        self._whole = 0  # stamps without a fraction of a second, in a row

    def __call__(self, stamp: int) -> bool | None:
        """None: refused and counted; True: the clock has gone back; False: the stamp goes on."""
        last, late = self.newest, self._late
        self._whole = self._whole + 1 if stamp % SECOND == 0 else 0
        if stamp > max(last, 0):
            late.clear()
            self.newest = stamp
            return False
        if stamp <= 0:
            self._reports.drop("zero stamp")
            return None
        if stamp == last:
            self._reports.drop("repeated stamp", COARSE if self._whole >= MIN_WHOLE_SECONDS else "")
            return None
        if late and stamp <= late[-1]:
            late.clear()
        late.append(stamp)
        if last - stamp <= MAX_STEP_BACK and len(late) < MIN_LATE_RUN:
            self._reports.drop("out of order")
            return None
        late.clear()
        back = (last - stamp) / SECOND
        told = f"stamps went back by {back:.3f} s: a restarted clock or bag"
        self._reports.drop("clock jumped", told)
        self.newest = stamp
        return True
