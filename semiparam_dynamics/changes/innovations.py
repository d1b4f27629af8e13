"""Blocks of innovations, whitened and summed over the stretches that are tested for changes."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from semiparam_dynamics.base.arrays import Array, Indices, Mask
from semiparam_dynamics.changes.correction import GAIN_ERROR
from semiparam_dynamics.changes.hypotheses import Sums, Windows
from semiparam_dynamics.changes.usual_errors import USUAL_DELAY_S, USUAL_HORIZON_S

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

    kinds: (n_axes,) a number for axes of the same kind, forces or moments: cross-talk of a sensor
        spreads an error on one axis over the others of its kind.
    drive_std: (n_axes,) of the axes' gains, relative: a change counts for less where it is large.
    noise: what is usual, if others learn it.

    Attributes
    ----------
    noise: the innovations' usual size and correlation. slow: their usual means over ten seconds.
    gain_pairs: pairs (i, j) of axes of the same kind, each axis with itself, too.
    windows: the sums over the stretches that are tested.
    last: the sums of the last block's row, None where the past is too short for one.
    """

    def __init__(
        self,
        n_columns: int,
        kinds: Indices,
        block_length: float,
        drive_std: Array | None = None,
        noise: NoiseModel | None = None,
    ) -> None:
        self._drive_square = np.zeros(len(kinds)) if drive_std is None else drive_std**2
        self.noise = NoiseModel(len(kinds), block_length) if noise is None else noise
        self.slow = SlowErrors(len(kinds), block_length)
        self.windows = Windows(n_columns, WINDOW_BLOCKS)
        first, second = np.nonzero(np.equal.outer(kinds, kinds))
        self.gain_pairs: tuple[Indices, Indices] = first, second
        self._same = np.equal.outer(kinds, kinds) / np.sum(np.equal.outer(kinds, kinds), axis=1)
        self._past: deque[tuple[Array, Array, Mask]] = deque(maxlen=Windows.RISE + 1)
        self._usual: deque[Usual] = deque()
        # Columns, white and not, of `last`, and the axes that it knows.
        self._row_before: tuple[Array, Array, Mask] | None = None
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
        """Add a block. present: (n_columns,) the correction's theta. quiet: nothing is detected.

        An axis that was not measured tells nothing of changes, nor of usual errors; others do.
        """
        if not block.follows:
            self.clear()
        known_now = ~np.isnan(block.error)
        if not known_now.all():
            error = np.where(known_now, block.error, 0.0)
            columns = np.where(known_now[:, None], block.columns, 0.0)
            block = replace(block, error=error, columns=columns)
        left = block.error - block.columns @ present
        known = block.error - left
        size = left**2 + known**2
        noise = GAIN_ERROR**2 * (self._same @ size) + self._drive_square * size
        std = np.sqrt(block.std**2 + noise)
        r, G = block.error / std, block.columns / std[:, None]
        self._std = std
        self.last = self._row(r, G, known_now) if self._past else None
        self._unchanged += 1
        # A stretch may only begin where the blocks before it had the same correction.
        if self.last is not None and self._unchanged > Windows.RISE + 1:
            self.windows.push(self._entry(r, G, present, known_now), self.last)
        if self._past and quiet:
            before_r, before_G, known_before = self._past[-1]
            both = r - G @ present, before_r - before_G @ present
            self._usual.append(Usual(*both, left, known_now, known_before))
            if len(self._usual) > USUAL_DELAY_BLOCKS:
                usual = self._usual.popleft()
                self.noise.update(usual.scaled, usual.before, usual.known & usual.known_before)
                self.slow.update(usual.error, std, usual.known)
        self._past.append((r, G, known_now))

    def _row(self, r: Array, G: Array, known: Mask) -> Sums:
        a = self.noise.correlation
        before_r, before_G, known_before = self._past[-1]
        rows = np.column_stack((G - a[:, None] * before_G, r - a * before_r))
        known = known & known_before
        sums, white = self._whitened(rows, known)
        self._row_before = white, rows[:, :-1], known
        return sums

    def _whitened(self, rows: Array, known: Mask) -> tuple[Sums, Array]:
        """The sums of rows [A b], (n_axes, ...), and A, whitened; 0 on axes that are not known."""
        white = self.noise.whiten(rows, known)
        told = white if known.all() else white[known]
        return Sums.from_rows(told[:, :-1], told[:, -1]), white[:, :-1]

    def gain_errors(self, columns: Indices, own: slice) -> Array:
        """(pairs, len(columns), d) what gain errors of one make of the last row's moment.

        A gain error e of the axes (i, j), one of :attr:`gain_pairs`, adds e times what a change
        theta (d,) in the columns `own` is on axis j to the measurement of axis i; the moment of
        `columns` is then off by e times this times theta.
        """
        i, j = self.gain_pairs
        if self._row_before is None:
            return np.zeros((len(i), len(columns), own.stop - own.start))
        white, rows, known = self._row_before
        by_axis = white[:, columns].T @ self.noise.whiten(np.eye(len(self._std)), known)
        on_axis = rows[:, own] * self._std[:, None]
        found: Array = (by_axis / self._std).T[i][:, :, None] * on_axis[j][:, None, :]
        return found

    def _entry(self, r: Array, G: Array, present: Array, known: Mask) -> Sums:
        power, grown = self.noise.step(Windows.RISE + 1)
        first_r, first_G, known_first = self._past[0]
        # The correction held before the rise, too: its part is subtracted there here, and of this
        # block by `Sums.shifted`.
        left = r - power * (first_r - first_G @ present)
        rows = np.column_stack((G, left)) / grown[:, None]
        return self._whitened(rows, known & known_first)[0]


class Usual(NamedTuple):
    """A block that may turn out to be usual; (n_axes,) each."""

    scaled: Array  # error in standard deviations
    before: Array  # the same of the block before
    error: Array
    known: Mask  # axes that were measured
    known_before: Mask  # in the block before


@dataclass(frozen=True, slots=True)
class Block:
    """Means over a stretch of time; what is linear stays linear in them."""

    start: int  # ns, stamp of its first sample
    end: int  # ns, of its last
    error: Array  # (n_axes,) measured minus predicted, NaN where one of them was not measured
    columns: Array  # (n_axes, n_columns) each cause's part of it, per unit
    std: Array  # (n_axes,) predicted
    follows: bool  # no pause lies between it and the block before
    still: bool = False  # the robot stood for some of it


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
        self._follows = self._still = False

    def add(
        self, stamp: int, error: Array, columns: Array, std: Array, *, still: bool = False
    ) -> Block | None:
        """Add a sample; returns the block that it completes, if it does. still: it is at rest."""
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
        self._still |= still
        if (stamp - self._start + self._step) * 1e-9 < self.length * (1.0 - 1e-6):
            return None
        error, columns, square = (total / self._n for total in self._sums)
        std, follows = np.sqrt(square), self._follows
        block = Block(self._start, stamp, error, columns, std, follows, self._still)
        self._n, self._follows, self._still = 0, True, False
        return block


class NoiseModel:
    """Each axis' scaled error r_k = e_k / std_k as a first-order autoregression.

        r_k = a r_(k-1) + w_k,   w_k normal, of covariance W over the axes.

    A model's errors recur with its motion. The estimate follows the last `horizon` seconds, of each
    axis those in which it was measured.

    Attributes
    ----------
    correlation: (n_axes,) a. covariance: (n_axes, n_axes) W.
    """

    def __init__(self, n_axes: int, block_length: float, horizon: float = USUAL_HORIZON_S) -> None:
        self._keep = math.exp(-block_length / horizon)
        self._square: Array = PRIOR_BLOCKS * np.ones(n_axes)
        self._product: Array = INITIAL_CORRELATION * self._square
        self._outer: Array = PRIOR_BLOCKS * (1.0 - INITIAL_CORRELATION**2) * np.eye(n_axes)
        self._weights: Array = np.full(n_axes, PRIOR_BLOCKS)
        self._refresh()

    def update(self, scaled: Array, before: Array, known: Mask) -> None:
        """Learn from r_k and r_(k-1), each (n_axes,), of blocks without a change.

        known: (n_axes,) axes that were measured in both; others keep what is known of them.
        """
        keep, one = np.where(known, self._keep, 1.0), known.astype(np.float64)
        left = (scaled - self.correlation * before) * one
        # The products of an axis that was measured and one that was not are kept in part, so that
        # all remain a covariance.
        mixed = self._keep if known.all() else np.sqrt(np.multiply.outer(keep, keep))
        self._square = keep * self._square + before**2 * one
        self._product = keep * self._product + scaled * before * one
        self._outer = mixed * self._outer + np.outer(left, left)
        self._weights = keep * self._weights + one
        self._refresh()

    def _refresh(self) -> None:
        ratio = self._product / np.maximum(self._square, 1e-12)
        self.correlation: Array = np.clip(ratio, 0.0, MAX_CORRELATION)
        covariance = self._outer / np.sqrt(np.multiply.outer(self._weights, self._weights))
        spread = np.diag(np.diag(covariance))
        kept = (1.0 - UNCORRELATED_SHARE) * covariance
        self.covariance: Array = kept + UNCORRELATED_SHARE * spread + 1e-6 * np.eye(len(spread))
        self._white = np.linalg.inv(np.linalg.cholesky(self.covariance))

    def whiten(self, rows: Array, known: Mask) -> Array:
        """W^(-1/2) rows, (n_axes, ...); of the axes that are `known` alone, others' are 0."""
        if known.all():
            white: Array = self._white @ rows
            return white
        white = np.zeros_like(rows)
        if known.any():
            root = np.linalg.cholesky(self.covariance[np.ix_(known, known)])
            white[known] = np.linalg.solve(root, rows[known])
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
        sums = {"square": self._square, "product": self._product}
        sums |= {"outer": self._outer, "weight": self._weights}
        return {name: value.copy() for name, value in sums.items()}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`."""
        names = ("square", "product", "outer", "weight")
        self._square, self._product, self._outer, self._weights = (state[n].copy() for n in names)
        self._refresh()


class SlowErrors:
    """Means of the errors over `SLOW_STRETCH_S` without a change, root mean square.

    An autoregression of blocks does not know them, nor do more blocks of a payload average them
    out. Before the first stretch, of blocks in which an axis was measured, is over they are taken
    to be a tenth of what is predicted.
    """

    def __init__(self, n_axes: int, block_length: float) -> None:
        self._blocks = max(round(SLOW_STRETCH_S / block_length), 1)
        self._sum: Array = np.zeros(n_axes)
        self._counts: Array = np.zeros(n_axes)
        self._square: Array = np.zeros(n_axes)
        self._weights: Array = np.zeros(n_axes)
        self._predicted: Array = np.zeros(n_axes)

    def update(self, error: Array, std: Array, known: Mask) -> None:
        """Count a block's error (n_axes,) with its predicted standard deviation.

        known: (n_axes,) axes that were measured.
        """
        one = known.astype(np.float64)
        self._sum += error * one
        self._counts += one
        self._predicted = std
        over = self._counts >= self._blocks
        if not over.any():
            return
        keep = 1.0 - 1.0 / SLOW_HORIZON
        mean = self._sum[over] / self._counts[over]
        self._square[over] = keep * self._square[over] + mean**2
        self._weights[over] = keep * self._weights[over] + 1.0
        self._sum[over], self._counts[over] = 0.0, 0.0

    @property
    def std(self) -> Array:
        """(n_axes,) N m or N."""
        # The guess counts as a fifth of a stretch.
        guess = 0.2 * (self._predicted / 10.0) ** 2
        std: Array = np.sqrt((self._square + guess) / (self._weights + 0.2))
        return std

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        square, weight = self._square.copy(), self._weights.copy()
        return {"square": square, "weight": weight, "predicted": self._predicted.copy()}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`."""
        self._square, self._weights = state["square"].copy(), state["weight"].copy()
        self._predicted = state["predicted"].copy()
        self._sum, self._counts = np.zeros_like(self._square), np.zeros_like(self._square)


UNKNOWN_MOTION_FACTOR = 2.0  # of the standard deviation in motion that isn't known
MIN_ERROR_RATIO = 0.1  # of errors to predicted standard deviations


class ErrorRatios:
    """Ratios of errors to predicted standard deviations over the last minutes, root mean square."""

    def __init__(self, n_axes: int) -> None:
        self._square: Array = np.ones(n_axes)
        self._weight = 1.0
        self._last = 0  # ns, stamp of the last error counted
        self._pending: deque[tuple[int, Array, float]] = deque()

    def spread(self, std: Array, confidence: float) -> Array:
        """(n_axes,) corrected standard deviations, from predicted ones.

        Smaller errors than predicted reduce them as far as the motion is known. Where it isn't
        (`confidence` 0) errors last as long as the motion stays there, and they grow.
        """
        size = np.maximum(np.sqrt(self._square), MIN_ERROR_RATIO)
        known = np.maximum(size, 1.0 + confidence * (size - 1.0))
        unknown = UNKNOWN_MOTION_FACTOR + confidence * (1.0 - UNKNOWN_MOTION_FACTOR)
        spread: Array = std * known * unknown
        return spread

    def push(self, stamp: int, scaled: Array, confidence: float) -> None:
        """Count errors over predicted standard deviations (n_axes,), `USUAL_DELAY_S` later.

        NaN where not measured; `stamp` in ns.
        """
        self._pending.append((stamp, scaled, confidence))
        while stamp - self._pending[0][0] > USUAL_DELAY_S * 1e9:
            self._count(*self._pending.popleft())

    def discard(self) -> None:
        """Do not count the last ones: they may belong to a contact."""
        self._pending.clear()

    def _count(self, stamp: int, scaled: Array, confidence: float) -> None:
        ahead = min(max((stamp - self._last) * 1e-9, 0.0), 1.0) if self._last else 0.0
        self._last = stamp
        self._weight = math.exp(-ahead / USUAL_HORIZON_S) * self._weight + confidence
        step = (scaled**2 - self._square) * (confidence / self._weight)
        np.add(self._square, step, out=self._square, where=~np.isnan(scaled))

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        return {"square": self._square.copy(), "weight": np.array(self._weight)}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`. Raises ValueError where it has another number of axes."""
        if state["square"].shape != self._square.shape:
            raise ValueError("the usual errors that were saved are of another number of axes")
        self._square, self._weight = state["square"].copy(), float(state["weight"])
        self._last = 0
        self._pending.clear()
