"""Blocks of innovations, whitened and summed over the stretches that are tested for changes."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.changes.correction import GAIN_ERROR
from semiparam_dynamics.changes.hypotheses import Sums, Windows

WINDOW_BLOCKS = (2, 4, 7, 12, 20, 30)
USUAL_DELAY_BLOCKS = 12  # after which a block without a finding counts as usual
PRIOR_BLOCKS = 40.0  # weight of the initial noise model
INITIAL_CORRELATION = 0.5
MAX_CORRELATION = 0.98
UNCORRELATED_SHARE = 0.1  # of the innovations' covariance
SLOW_STRETCH_S = 10.0  # over whose mean errors are slow: as long as a payload is estimated
SLOW_HORIZON = 12.0  # stretches after which they are forgotten


class Innovations:
    """Statistics of the last blocks on changes theta (n_columns,) of all causes.

    kinds: (n_axes,) a number for axes of the same kind: forces, moments. Cross-talk of a sensor
    spreads an error on one axis over the others of its kind.
    drive_std: (n_axes,) of the axes' gains, relative: a change counts for less where they are not
    known.

    Attributes
    ----------
    noise: the innovations' usual size and correlation.
    gain_pairs: pairs (i, j) of axes of the same kind, each axis with itself, too.
    slow: their usual means over ten seconds.
    windows: the sums over the stretches that are tested.
    last: the sums of the last block's row, None where the past is too short for one.
    """

    def __init__(
        self,
        n_columns: int,
        kinds: Indices,
        block_length: float,
        drive_std: Array | None = None,
    ) -> None:
        self._drive_square = np.zeros(len(kinds)) if drive_std is None else drive_std**2
        self.noise = NoiseModel(len(kinds), block_length)
        self.slow = SlowErrors(len(kinds), block_length)
        self.windows = Windows(n_columns, WINDOW_BLOCKS)
        first, second = np.nonzero(np.equal.outer(kinds, kinds))
        self.gain_pairs: tuple[Indices, Indices] = first, second
        self._same = np.equal.outer(kinds, kinds) / np.sum(np.equal.outer(kinds, kinds), axis=1)
        self._past: deque[tuple[Array, Array]] = deque(maxlen=Windows.RISE + 1)
        self._usual: deque[tuple[Array, Array, Array]] = deque()
        self._row_before: tuple[Array, Array] | None = None  # columns, white and not, of `last`
        self._std: Array = np.ones(len(kinds))
        self._unchanged = 0  # blocks since the present correction became another
        self.last: Sums | None = None

    def clear(self) -> None:
        """Forget all blocks, as after a pause."""
        self._past.clear()
        self.last = self._row_before = None
        self.restart()

    def restart(self) -> None:
        """Begin new windows, since the correction became another."""
        self.windows.clear()
        self._unchanged = 0
        self.discard_usual()

    def discard_usual(self) -> None:
        """Keep the last blocks out of the noise model."""
        self._usual.clear()

    def push(self, block: Block, present: Array, quiet: bool) -> None:
        """Add a block. present: (n_columns,) the correction's theta. quiet: nothing is detected."""
        if not block.follows:
            self.clear()
        unknown = np.isnan(block.error)
        if unknown.any():  # not measured: it tells nothing of changes, nor of usual errors
            error, columns = block.error.copy(), block.columns.copy()
            error[unknown], columns[unknown], quiet = 0.0, 0.0, False
            block = replace(block, error=error, columns=columns)
        left = block.error - block.columns @ present
        known = block.error - left
        size = left**2 + known**2
        noise = GAIN_ERROR**2 * (self._same @ size) + self._drive_square * size
        std = np.sqrt(block.std**2 + noise)
        r, G = block.error / std, block.columns / std[:, None]
        self._std = std
        self.last = self._row(r, G) if self._past else None
        self._unchanged += 1
        # A stretch may only begin where the blocks before it had the same correction.
        if self.last is not None and self._unchanged > Windows.RISE + 1:
            self.windows.push(self._entry(r, G, present), self.last)
        if self._past and quiet:
            before_r, before_G = self._past[-1]
            self._usual.append((r - G @ present, before_r - before_G @ present, left))
            if len(self._usual) > USUAL_DELAY_BLOCKS:
                scaled, before, error = self._usual.popleft()
                self.noise.update(scaled, before)
                self.slow.update(error, std)
        self._past.append((r, G))

    def _row(self, r: Array, G: Array) -> Sums:
        a = self.noise.correlation
        before_r, before_G = self._past[-1]
        rows = np.column_stack((G - a[:, None] * before_G, r - a * before_r))
        white = self.noise.whiten(rows)
        self._row_before = white[:, :-1], rows[:, :-1]
        return Sums.from_rows(white[:, :-1], white[:, -1])

    def gain_errors(self, columns: Indices, own: slice) -> Array:
        """(pairs, len(columns), d) what gain errors of one make of the last row's moment.

        A gain error e of the axes (i, j), one of :attr:`gain_pairs`, adds e times what a change
        theta (d,) in the columns `own` is on axis j to the measurement of axis i; the moment of
        `columns` is then off by e times this times theta.
        """
        i, j = self.gain_pairs
        if self._row_before is None:
            return np.zeros((len(i), len(columns), own.stop - own.start))
        white, rows = self._row_before
        by_axis = white[:, columns].T @ self.noise.whiten(np.eye(len(self._std)))
        on_axis = rows[:, own] * self._std[:, None]
        found: Array = (by_axis / self._std).T[i][:, :, None] * on_axis[j][:, None, :]
        return found

    def _entry(self, r: Array, G: Array, present: Array) -> Sums:
        power, grown = self.noise.step(Windows.RISE + 1)
        first_r, first_G = self._past[0]
        # The correction held before the rise, too: its part is subtracted there here, and of this
        # block by `Sums.shifted`.
        left = r - power * (first_r - first_G @ present)
        white = self.noise.whiten(np.column_stack((G, left)) / grown[:, None])
        return Sums.from_rows(white[:, :-1], white[:, -1])


@dataclass(frozen=True, slots=True)
class Block:
    """Means over a stretch of time; what is linear stays linear in them."""

    start: int  # ns, stamp of its first sample
    end: int  # ns, of its last
    error: Array  # (n_axes,) measured minus predicted, NaN where one of them was not measured
    columns: Array  # (n_axes, n_columns) each cause's part of it, per unit
    std: Array  # (n_axes,) predicted
    follows: bool  # no pause lies between it and the block before


class BlockMean:
    """Cuts a stream of samples into blocks of `length` seconds and averages each.

    Samples behind a low-pass filter of cut-off f are correlated: about 2 f of them a second are
    independent, and a test of all would be overconfident. So a block is to be 1 / (2 f) long. A
    pause of more than `longest_gap` seconds, or a clock that goes back, begins a new one.
    """

    def __init__(self, length: float, longest_gap: float) -> None:
        self.length = length
        self._gap = round(longest_gap * 1e9)
        self.reset()

    def reset(self) -> None:
        """Discard the block that was begun."""
        self._n = self._step = 0
        self._start = self._last = 0
        self._follows = False

    def add(self, stamp: int, error: Array, columns: Array, std: Array) -> Block | None:
        """Add a sample; returns the block that it completes, if it does."""
        step = stamp - self._last
        if (self._n or self._follows) and not 0 < step <= max(self._gap, round(self.length * 1e9)):
            self.reset()
        elif self._n or self._follows:
            self._step = step  # how long a sample lasts
        if self._n == 0:
            self._start = stamp
            self._sums = [error.copy(), columns.copy(), std**2]
        else:
            for total, value in zip(self._sums, (error, columns, std**2), strict=True):
                total += value
        self._last, self._n = stamp, self._n + 1
        if (stamp - self._start + self._step) * 1e-9 < self.length * (1.0 - 1e-6):
            return None
        error, columns, square = (total / self._n for total in self._sums)
        block = Block(self._start, stamp, error, columns, np.sqrt(square), self._follows)
        self._n, self._follows = 0, True
        return block


class NoiseModel:
    """Each axis' scaled error r_k = e_k / std_k as a first-order autoregression.

        r_k = a r_(k-1) + w_k,   w_k normal, of covariance W over the axes.

    A model's errors recur with its motion: they are neither white, nor as large as predicted, nor
    of one size on all axes. Whitened by this model, a cause is compared with usual errors. The
    estimate follows the last `horizon` seconds.

    Attributes
    ----------
    correlation: (n_axes,) a.
    covariance: (n_axes, n_axes) W.
    """

    def __init__(self, n_axes: int, block_length: float, horizon: float = 120.0) -> None:
        self._keep = math.exp(-block_length / horizon)
        self._square: Array = PRIOR_BLOCKS * np.ones(n_axes)
        self._product: Array = INITIAL_CORRELATION * self._square
        self._outer: Array = PRIOR_BLOCKS * (1.0 - INITIAL_CORRELATION**2) * np.eye(n_axes)
        self._weight = PRIOR_BLOCKS
        self._refresh()

    def update(self, scaled: Array, before: Array) -> None:
        """Learn from r_k and r_(k-1), each (n_axes,), of blocks without a change."""
        left = scaled - self.correlation * before
        self._square = self._keep * self._square + before**2
        self._product = self._keep * self._product + scaled * before
        self._outer = self._keep * self._outer + np.outer(left, left)
        self._weight = self._keep * self._weight + 1.0
        self._refresh()

    def _refresh(self) -> None:
        ratio = self._product / np.maximum(self._square, 1e-12)
        self.correlation: Array = np.clip(ratio, 0.0, MAX_CORRELATION)
        covariance = self._outer / self._weight
        spread = np.diag(np.diag(covariance))
        self.covariance: Array = (
            1.0 - UNCORRELATED_SHARE
        ) * covariance + UNCORRELATED_SHARE * spread
        self.covariance += 1e-6 * np.eye(len(spread))
        self._root = np.linalg.cholesky(self.covariance)

    def whiten(self, rows: Array) -> Array:
        """W^(-1/2) rows, (n_axes, ...)."""
        white: Array = np.linalg.solve(self._root, rows)
        return white

    def step(self, blocks: int) -> tuple[Array, Array]:
        """a^blocks (n_axes,), and the errors' standard deviations after them over W's (n_axes,).

        r_k = a^n r_(k-n) + v with v of about n blocks' worth of w: (1 - a^2n) / (1 - a^2).
        """
        a = self.correlation
        power = a**blocks
        grown: Array = np.sqrt((1.0 - power**2) / np.maximum(1.0 - a**2, 1e-12))
        return power, grown

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        return {
            "square": self._square.copy(),
            "product": self._product.copy(),
            "outer": self._outer.copy(),
            "weight": np.array(self._weight),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`."""
        self._square, self._product = state["square"].copy(), state["product"].copy()
        self._outer, self._weight = state["outer"].copy(), float(state["weight"])
        self._refresh()


class SlowErrors:
    """Means of the errors over `SLOW_STRETCH_S` without a change, root mean square.

    What of a model's errors lasts so long an autoregression of blocks does not know, nor do more
    blocks of a payload average it out. Before the first stretch is over it is taken to be a tenth
    of what is predicted.
    """

    def __init__(self, n_axes: int, block_length: float) -> None:
        self._blocks = max(round(SLOW_STRETCH_S / block_length), 1)
        self._sum: Array = np.zeros(n_axes)
        self._count = 0
        self._square: Array = np.zeros(n_axes)
        self._weight = 0.0
        self._predicted: Array = np.zeros(n_axes)

    def update(self, error: Array, std: Array) -> None:
        """Count a block's error (n_axes,) with its predicted standard deviation."""
        self._sum += error
        self._count += 1
        self._predicted = std
        if self._count < self._blocks:
            return
        keep = 1.0 - 1.0 / SLOW_HORIZON
        self._square = keep * self._square + (self._sum / self._count) ** 2
        self._weight = keep * self._weight + 1.0
        self._sum, self._count = np.zeros_like(self._sum), 0

    @property
    def std(self) -> Array:
        """(n_axes,) N m or N."""
        # The guess counts as a fifth of a stretch.
        guess = 0.2 * (self._predicted / 10.0) ** 2
        std: Array = np.sqrt((self._square + guess) / (self._weight + 0.2))
        return std

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        return {
            "square": self._square.copy(),
            "weight": np.array(self._weight),
            "predicted": self._predicted.copy(),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`; from an empty one, of an earlier version, anew."""
        if not state:
            return
        self._square, self._weight = state["square"].copy(), float(state["weight"])
        self._predicted = state["predicted"].copy()
        self._sum, self._count = np.zeros_like(self._square), 0


RATIO_HORIZON_S = 120.0  # over which errors beside their predicted size are forgotten
RATIO_DELAY_S = 1.0  # after which errors without a contact count
UNKNOWN_MOTION_FACTOR = 2.0  # of the standard deviation in motion that isn't known
MIN_ERROR_RATIO = 0.1  # of errors to predicted standard deviations


class ErrorRatios:
    """Errors beside predicted standard deviations over the last minutes, root mean square."""

    def __init__(self, n_axes: int) -> None:
        self._square: Array = np.ones(n_axes)
        self._weight = 1.0
        self._last = 0  # ns, stamp of the last error counted
        self._pending: deque[tuple[int, Array, float]] = deque()

    def spread(self, std: Array, confidence: float) -> Array:
        """(n_axes,) corrected standard deviations, from predicted ones.

        Smaller errors than predicted reduce them as far as the motion is known. Where it isn't
        (`confidence` 0), a rigid body's errors are no noise: they last as long as the motion stays
        there, and the standard deviations grow.
        """
        size = np.maximum(np.sqrt(self._square), MIN_ERROR_RATIO)
        known = np.maximum(size, 1.0 + confidence * (size - 1.0))
        spread: Array = (
            std * known * (UNKNOWN_MOTION_FACTOR + confidence * (1.0 - UNKNOWN_MOTION_FACTOR))
        )
        return spread

    def push(self, stamp: int, scaled: Array, confidence: float) -> None:
        """Count errors over predicted standard deviations (n_axes,), `RATIO_DELAY_S` later.

        NaN where not measured; `stamp` in ns.
        """
        self._pending.append((stamp, scaled, confidence))
        while stamp - self._pending[0][0] > RATIO_DELAY_S * 1e9:
            self._count(*self._pending.popleft())

    def discard(self) -> None:
        """Do not count the last ones: they may belong to a contact."""
        self._pending.clear()

    def _count(self, stamp: int, scaled: Array, confidence: float) -> None:
        ahead = min(max((stamp - self._last) * 1e-9, 0.0), 1.0) if self._last else 0.0
        self._last = stamp
        self._weight = math.exp(-ahead / RATIO_HORIZON_S) * self._weight + confidence
        step = (scaled**2 - self._square) * (confidence / self._weight)
        np.add(self._square, step, out=self._square, where=~np.isnan(scaled))

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        return {"square": self._square.copy(), "weight": np.array(self._weight)}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`; from an empty one, of an earlier version, anew.

        Raises ValueError where it has another number of axes.
        """
        if not state:
            return
        if state["square"].shape != self._square.shape:
            raise ValueError("the usual errors that were saved are of another number of axes")
        self._square, self._weight = state["square"].copy(), float(state["weight"])
        self._last = 0
        self._pending.clear()
