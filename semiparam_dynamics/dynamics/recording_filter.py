"""A whole recording's samples, a block at a time: the numbers of `SampleFilter.push`, sooner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.arrays import Array, Stamps
from semiparam_dynamics.dynamics.filtering import NANO, SampleFilter
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.samples.measurement import Measurement

LEAST, MOST = 16, 256  # messages of a block: more would not stay in the processor's cache


class RecordingFilter(SampleFilter):
    """A `SampleFilter` that is given many measurements at once.

    Filters, differences and regressors of a block are computed in a few calls. A message that is
    out of order, implausible or after a pause goes through :meth:`push`, so that every decision
    is made in one place. The samples are those of :meth:`push`, to the last bit.
    """

    def filter_recording(self, measurements: Sequence[Measurement]) -> Iterator[Sample]:
        """The samples of `measurements`, in order; may be called again with what comes next.

        A sample's arrays are parts of its block's: who keeps one of them keeps all.
        """
        start, size = 0, LEAST
        while start < len(measurements):
            block = measurements[start : start + size]
            stamps = np.array([m.stamp for m in block], dtype=np.int64)
            # Whether a start without velocities is one in motion, push sees from the first two.
            beginning = len(self._past) < 2 and block[0].dq is None
            regular = 0 if beginning else self._regular(block, stamps)
            yield from self._block(block[:regular], stamps[:regular])
            start += regular
            size = min(2 * size, MOST)
            if regular < len(block):
                sample = self.push(block[regular])
                start += 1
                size = LEAST
                if sample is not None:
                    yield sample

    def _regular(self, block: Sequence[Measurement], stamps: Stamps) -> int:
        """How many of the first measurements :meth:`push` would take without a word."""
        q = np.array([m.q for m in block])
        strange = np.any((q < self._lowest) | (q > self._highest), axis=1)
        dt, moves = np.ones(len(block)), np.array([m.dq is not None for m in block])
        before = np.concatenate((moves[:1], moves[:-1]))
        dt[1:] = np.diff(stamps) * NANO
        dt[0] = self._config.max_gap
        if self._past:
            dt[0] = (int(stamps[0]) - self._past[-1][0]) * NANO
            before[0] = self._past[-1][2]
        strange |= ~((dt > 0.0) & (dt <= self._config.max_gap)) | (moves != before)
        return int(np.argmax(strange)) if strange.any() else len(block)

    def _block(self, block: Sequence[Measurement], stamps: Stamps) -> Iterator[Sample]:
        if not block:
            return
        wide, measured = self._signals_of(block, stamps)
        steps = np.zeros(len(block))
        steps[1:] = np.diff(stamps) * NANO
        if self._past:
            steps[0] = (int(stamps[0]) - self._past[-1][0]) * NANO
        self._wide.filter_rows(wide, steps)
        past, has_velocity = self._past, block[0].dq is not None
        stamps = np.concatenate((np.array([p[0] for p in past], dtype=np.int64), stamps))
        wide = np.concatenate((np.array([p[1] for p in past]).reshape(-1, wide.shape[1]), wide))
        measured = np.concatenate((np.array([p[3] for p in past], dtype=bool), measured))
        last = range(max(len(stamps) - 2, 0), len(stamps))
        self._past = [(int(stamps[i]), wide[i], has_velocity, bool(measured[i])) for i in last]
        if len(stamps) < 3:
            return
        rows, back = self._rows(stamps, wide, has_velocity)
        for i, row in enumerate(rows):
            stamp, known = int(stamps[i + 1]), bool(measured[i + 1])
            sample = self._sample(stamp, float(back[i]), row, known)
            if sample is not None:
                yield sample

    def _signals_of(
        self, block: Sequence[Measurement], stamps: Stamps
    ) -> tuple[Array, npt.NDArray[np.bool_]]:
        """What the wide filter is fed (k, 2 n_joints + n_axes), and what counts as measured."""
        n, there = self._model.n_joints, np.array([m.y is not None for m in block])
        signals = np.zeros((len(block), 2 * n + self._model.n_axes))
        signals[:, :n] = [m.q for m in block]
        if block[0].dq is not None:
            signals[:, n : 2 * n] = [m.dq for m in block]
        # Where nothing was measured, the last measurement stands; row 0 is from before the block.
        held = np.array([self._held_y, *(m.y for m in block if m.y is not None)])
        signals[:, 2 * n :] = held[np.cumsum(there)]
        self._held_y = held[-1]
        counts = np.arange(1, len(block) + 1)
        missing = np.maximum.accumulate(np.where(there, 0, counts))
        unmeasured = np.concatenate(([self._unmeasured], stamps))[missing]
        self._unmeasured = int(unmeasured[-1])
        return signals, stamps > unmeasured + min(self._settling, 1 << 61)

    def _rows(self, stamps: Stamps, wide: Array, has_velocity: bool) -> tuple[Array, Array]:
        """Filtered rows of all instants but the first and the last, and each one's step (s)."""
        n, axes = self._model.n_joints, self._model.n_axes
        dt = np.diff(stamps) * NANO
        back, ahead = dt[:-1, None], dt[1:, None]
        a, b, c = wide[:-2], wide[1:-1], wide[2:]
        q = np.ascontiguousarray(b[:, :n])
        if has_velocity:
            dq = np.ascontiguousarray(b[:, n : 2 * n])
            ddq = (c[:, n : 2 * n] - a[:, n : 2 * n]) / (back + ahead)
        else:
            before, after = (q - a[:, :n]) / back, (c[:, :n] - q) / ahead
            dq = (c[:, :n] - a[:, :n]) / (back + ahead)
            ddq = (after - before) * (2.0 / (back + ahead))
        rows = np.empty((len(q), self._size))
        for k, values in enumerate((q, dq, ddq)):
            rows[:, k * n : (k + 1) * n] = values
        rows[:, 3 * n : 3 * n + axes] = b[:, 2 * n :]
        self._model.fill_regressors(q, dq, ddq, rows, 3 * n + axes)
        steps = np.ascontiguousarray(back[:, 0])
        self._narrow.filter_rows(rows, steps)
        return rows, steps
