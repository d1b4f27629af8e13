"""A protocol's results: scores, of parts of the samples too, and a trace of errors over time."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping

import numpy as np
from scipy.spatial import cKDTree

from semiparam_dynamics.base.arrays import TURN, Array, Indices, Mask
from semiparam_dynamics.dynamics.consistent import urdf_parameters
from semiparam_dynamics.dynamics.estimator import BlockPrediction
from semiparam_dynamics.dynamics.sample import NEW_STATE, Sample, SampleBlock
from semiparam_dynamics.dynamics.scores import RunningScores
from semiparam_dynamics.learner.learner import MODELS
from semiparam_dynamics.robot.model import RobotModel

IDENTIFIED = ("plain_rigid_body", "batch")  # once, by what was learned before the frozen part
ALL_MODELS = ("urdf", *IDENTIFIED, *MODELS, "persistence")

# Where a motion repeats, the test part has states that were learned, a little shifted, and a model
# that only remembers does well on them. So they are scored apart from the others.
STATE_SPACING = 0.01  # s between the states that are kept
# More of them are thinned to every second one. It is 3 h of motion until states are further apart
# than motion goes in `REPEATED_WITHIN`.
MAX_STATES = 1 << 18
REST_RANGE = 1e-3  # rad or m, and per second
REPEATED_WITHIN = 0.05  # s: a repeated state is nearer to a learned one than motion goes in it


class LearnedStates:
    """Joint states (q, dq) that were learned, thinned to a hundred a second, `MAX_STATES` at most.

    turning : (n_joints,) which joints turn without end: a turn further they are where they were.
    """

    def __init__(self, turning: Mask) -> None:
        self._turning: Mask = np.concatenate((turning, np.zeros_like(turning)))
        self._states, self._stamps = array("d"), array("q")
        self._spacing = STATE_SPACING * 1e9

    def add(self, sample: Sample) -> None:
        """Take in a sample that is learned."""
        if self._stamps and 0 <= sample.stamp - self._stamps[-1] < self._spacing:
            return
        self._stamps.append(sample.stamp)
        self._states.frombytes(np.concatenate((sample.q, sample.dq)).tobytes())
        if len(self._stamps) == MAX_STATES:
            self._stamps, self._spacing = self._stamps[::2], 2.0 * self._spacing
            self._states = array("d", self._rows()[::2].tobytes())

    def _rows(self) -> Array:
        return np.frombuffer(self._states).reshape(-1, len(self._turning))

    def repeats(self) -> Repeats | None:
        """A test of whether a state is among them; None if the arm never moved."""
        return Repeats.of(self._rows().copy(), np.array(self._stamps), self._turning)


def _differences(states: Array, others: Array, turning: Mask) -> Array:
    """Differences, (k, d) or (d,) each; of `turning` entries the shorter way round."""
    ways: Array = states - others
    ways[..., turning] = np.remainder(ways[..., turning] + np.pi, TURN) - np.pi
    return ways


class Repeats:
    """A test of whether a state is as near to a learned one as motion takes it in 50 ms.

    Distances are Euclidean over positions and velocities, each in units of its standard deviation
    while learning. Those of `turning` entries are modulo a turn.
    """

    def __init__(
        self, states: Array, moving: Mask, deviation: Array, radius: float, turning: Mask
    ) -> None:
        self._moving, self._deviation = moving, deviation[moving]
        self._still, self._turning = states[0, ~moving], turning
        # A period for each entry, 0 for none.
        self._periods = np.where(turning[moving], TURN / self._deviation, 0.0)
        periods = self._periods if self._periods.any() else None
        self._tree = cKDTree(self._scaled(states), boxsize=periods)
        self.radius = radius

    @classmethod
    def of(cls, states: Array, stamps: Indices, turning: Mask) -> Repeats | None:
        """The test of learned states (n, 2 n_joints); stamps (n,) ns. None if nothing moved.

        turning : (2 n_joints,) which entries are modulo a turn.
        """
        if len(stamps) < 2:
            return None
        means = np.arctan2(np.sin(states).mean(axis=0), np.cos(states).mean(axis=0))
        around = np.where(turning, means, 0.0)
        deviation = _differences(states, around, turning).std(axis=0)
        moving = deviation > 1e-9 * max(float(np.abs(states).max()), 1e-9)
        if not moving.any():
            return None
        # Pairs of states so far apart in time; not across recordings, whose stamps may jump.
        usual_gap = max(float(np.median(np.diff(stamps))) * 1e-9, 1e-6)
        ahead = np.arange(len(stamps)) + max(round(REPEATED_WITHIN / usual_gap), 1)
        pairs = np.flatnonzero(ahead < len(stamps))
        gaps = (stamps[ahead[pairs]] - stamps[pairs]) * 1e-9
        pairs = pairs[(gaps > 0.0) & (gaps < 2.0 * REPEATED_WITHIN)]
        if not len(pairs):
            return None
        ways = _differences(states[ahead[pairs]], states[pairs], turning)
        steps = np.linalg.norm(ways[:, moving] / deviation[moving], axis=1)
        return cls(states, moving, deviation, float(np.median(steps)), turning)

    def first(self, states: Array) -> Indices:
        """(k,) of learned states, the number of the first one that each repeats, or its own."""
        scaled = self._scaled(states)
        return np.array([min(self._tree.query_ball_point(x, self.radius)) for x in scaled])

    def __call__(self, states: Array) -> Mask:
        """Mask (k,) of the states (q, dq), (k, 2 n_joints), that repeat one that was learned."""
        # A joint at rest while learning makes a state new by moving at all.
        still = ~self._moving
        ways = _differences(states[:, still], self._still, self._turning[still])
        moved = np.any(np.abs(ways) > REST_RANGE, axis=1)
        scaled = self._scaled(states)
        distance, _ = self._tree.query(scaled, distance_upper_bound=self.radius)
        return np.asarray(np.isfinite(distance) & ~moved)

    def _scaled(self, states: Array) -> Array:
        """The moving entries over their deviations, within their periods."""
        scaled: Array = states[:, self._moving] / self._deviation
        around = self._periods > 0.0
        wrapped = np.remainder(scaled[:, around], self._periods[around])
        # A remainder of almost a period may be rounded to one.
        scaled[:, around] = np.where(wrapped < self._periods[around], wrapped, 0.0)
        return scaled


MAX_WINDOWS = 400  # at most; windows double in length when they are used up
MAX_POINTS = 4000  # last samples kept whole


class Trace:
    """Mean squared errors in windows over the whole run, and the last samples as they were."""

    def __init__(self, models: Iterable[str], n_axes: int) -> None:
        self.models = tuple(models)
        self.window = 0.5  # s, of motion
        self._n_axes = n_axes
        self._squares = np.zeros((MAX_WINDOWS, len(self.models), n_axes))
        self._counts = np.zeros((MAX_WINDOWS, n_axes))
        self._elapsed = 0.0
        self._last: int | None = None
        self._points: list[tuple[float, Array, Array, Array]] = []

    def add(self, stamps: Indices, y: Array, predictions: Mapping[str, Array], std: Array) -> None:
        """Take in scored samples: stamps (k,), the others (k, n_axes).

        std is the semiparametric model's.
        """
        last = stamps[0] if self._last is None else self._last
        # Between two bags time passes, but no motion.
        steps = np.diff(stamps, prepend=last) * 1e-9
        steps = np.where((0.0 < steps) & (steps < 1.0), steps, 0.0)
        elapsed = np.cumsum(np.concatenate(([self._elapsed], steps)))[1:]
        self._last, self._elapsed = int(stamps[-1]), float(elapsed[-1])
        values = np.stack([predictions[name] for name in self.models], axis=1)
        while int(self._elapsed / self.window) >= MAX_WINDOWS:
            self._double()
        index = (elapsed / self.window).astype(np.intp)
        # Time increases: samples of one window follow each other.
        starts = np.flatnonzero(np.diff(index, prepend=-1))
        measured = ~np.isnan(y)
        squares = np.where(measured[:, None], (y[:, None] - values) ** 2, 0.0)
        self._squares[index[starts]] += np.add.reduceat(squares, starts, axis=0)
        self._counts[index[starts]] += np.add.reduceat(measured.astype(np.float64), starts, axis=0)
        if len(self._points) >= 2 * MAX_POINTS:
            del self._points[:MAX_POINTS]
        self._points.extend(zip(elapsed.tolist(), y, values, std, strict=True))

    def rmse(self) -> tuple[Array, Array, Mask]:
        """Window centres (k,) in s, RMSE (k, models, n_axes), and what was measured (k, n_axes).

        The RMSE is NaN where an axis was not measured.
        """
        used = np.flatnonzero(self._counts.any(axis=1))
        with np.errstate(invalid="ignore"):
            mean = self._squares[used] / self._counts[used, None]
        centres: Array = (used.astype(np.float64) + 0.5) * self.window
        return centres, np.sqrt(mean), self._counts[used] > 0.0

    def pieces(self, count: int, last: float) -> tuple[Array, Array]:
        """Sums of squares (count, models, n_axes) and counts (count, n_axes) in pieces.

        They fill the `last` seconds of motion, and have a window each at least.
        """
        end = int(self._elapsed / self.window) + 1
        windows = min(max(int(last / self.window), 1), end)
        count = min(count, windows)
        starts = end - windows + np.arange(count) * windows // count
        pieces: list[Array] = [
            np.add.reduceat(sums[:end], starts, axis=0) for sums in (self._squares, self._counts)
        ]
        return pieces[0], pieces[1]

    @property
    def seconds(self) -> float:
        """Of motion, until the last sample."""
        return self._elapsed

    def points(self) -> tuple[Array, Array, Array, Array]:
        """The last samples: time (k,) s, y (k, n_axes), predictions (k, models, n_axes), std."""
        last = self._points[-MAX_POINTS:]
        if not last:
            none = np.zeros((0, self._n_axes))
            return np.zeros(0), none, np.zeros((0, len(self.models), self._n_axes)), none
        time, y, values, std = zip(*last, strict=True)
        return np.array(time), np.array(y), np.array(values), np.array(std)

    def _double(self) -> None:
        half = MAX_WINDOWS // 2
        for sums in (self._squares, self._counts):
            sums[:half] = sums[0::2] + sums[1::2]
            sums[half:] = 0.0
        self.window *= 2.0


MIN_PART = 0.05  # of the samples: fewer aren't scored apart


class ScoredPredictions:
    """Scores of a protocol's predictions as they come, in blocks.

    scores : of all samples.
    rest : of those that were told to be part of it, None before the first.
    repeated, new : of the samples that `repeats` knows, and of the others, if there is one.
    identified : (n_parameters,) of each of the models `IDENTIFIED`, once these are known.
    novel : (n_axes,) in how many samples the state of a joint was new to its models.
    trace : errors over time, and the last predictions.
    """

    def __init__(self, model: RobotModel, protocol: str, repeats: Repeats | None = None) -> None:
        self.model, self.protocol, self.repeats = model, protocol, repeats
        self._urdf = urdf_parameters(model)
        self.scores = RunningScores(ALL_MODELS, model.n_axes)
        self.rest: RunningScores | None = None
        self.repeated, self.new = (
            RunningScores(ALL_MODELS, model.n_axes, whole=self.scores) for _ in range(2)
        )
        self.trace = Trace(ALL_MODELS, model.n_axes)
        self.identified: Mapping[str, Array] = {}
        self.novel: Array = np.zeros(model.n_axes)

    def add(
        self, block: SampleBlock, prediction: BlockPrediction, residuals: Array, rest: Mask
    ) -> None:
        """Score k predictions.

        residuals : (k, n_axes), of the rigid body, the last ones known before each sample.
        rest : (k,), which samples belong to the rest.
        """
        values = dict(prediction.values)
        values["urdf"] = block.regressors @ self._urdf
        for name in IDENTIFIED:
            values[name] = np.full_like(values["urdf"], np.nan)
            if name in self.identified:
                values[name] = block.regressors @ self.identified[name]
        values["persistence"] = values["rigid_body"] + residuals
        y, stds = block.y, prediction.stds
        self.scores.add(y, values, stds)
        if prediction.novelty is not None:
            self.novel += (prediction.novelty > NEW_STATE).sum(axis=0)
        parts: list[tuple[RunningScores, Mask]] = []
        if rest.any():
            if self.rest is None:
                self.rest = RunningScores(ALL_MODELS, self.model.n_axes)
            parts.append((self.rest, rest))
        if self.repeats is not None:
            repeated = self.repeats(np.concatenate((block.q, block.dq), axis=1))
            parts += [(self.repeated, repeated), (self.new, ~repeated)]
        for part, rows in parts:
            if rows.any():
                of = BlockPrediction(values, stds).rows(rows)
                part.add(y[rows], of.values, of.stds)
        self.trace.add(block.stamps, y, values, stds["semiparametric"])

    def repeats_share(self) -> float:
        """Share of the samples whose state was learned before; 0 where that isn't known."""
        return self.repeated.samples / max(self.scores.samples, 1)

    def scores_apart(self) -> dict[str, RunningScores]:
        """The scores of parts of the samples, by the name that they have in the results."""
        parts = {"rest": self.rest}
        if min(self.repeated.samples, self.new.samples) > MIN_PART * self.scores.samples:
            parts |= {"repeated": self.repeated, "new": self.new}
        return {f"{self.protocol}_{name}": s for name, s in parts.items() if s is not None}
