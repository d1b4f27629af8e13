"""The explanations of a stretch of innovations, compared by their likelihood.

For whitened innovations b = A theta + w, w of unit variance, and theta ~ N(mu, S) the logarithm of
p(b | cause) / p(b | no change) is, with G = A'A and g = A'b (D. MacKay, "Bayesian interpolation",
Neural Computation 4(3), 1992, eq. 2.9 ff.),

    mu'g - mu'G mu / 2 + h'(G + S^-1)^-1 h / 2 - log det(1 + S G) / 2,    h = g - G mu.

It penalizes free parameters only where the motion excites them, and a known payload, whose S is
small, wins over a new one that is fitted. It is a likelihood ratio: without a change, it exceeds c
with a probability of at most exp(-c) (Ville's inequality), from which thresholds follow.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.jit import compiled_in_turn
from semiparam_dynamics.changes.config import ChangesConfig
from semiparam_dynamics.changes.external_wrench import SHARES, SIZE, FrameMotion
from semiparam_dynamics.changes.payload import TYPICAL_MASS_KG, TYPICAL_REACH_M, Snapshot
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.robot.model import RobotModel, expected_scales
from semiparam_dynamics.robot.urdf import parse_urdf

PAYLOAD, FRICTION, OFFSET = "payload", "friction", "offset"
PUSH = "push"  # by the surroundings: it explains errors, and is no change of the robot
EFFECT_SHARE = 0.2  # of an axis' expected output: usual change by friction or offsets
# Blocks that a new cause must explain: a contact looks like an offset for as long as it lasts.
MIN_BLOCKS = {PAYLOAD: 4, FRICTION: 20, OFFSET: 30}
# A cause may be of one of these shares of its prior's size, each as probable as another: what is
# light has small moments, too.
SIZES = {PAYLOAD: (0.1, 0.3, 1.0), PUSH: tuple(SHARES[1:].tolist())}
# Divisor of the evidence: a model's own errors in unknown motion look like these causes.
EVIDENCE_DIVISOR = {FRICTION: 3.0, OFFSET: 3.0}
# Standard deviations of innovations without a pattern: a contact, or a motion that is not known.
UNPATTERNED_STDS = np.array([2.0, 4.0, 8.0, 16.0])


@dataclass(frozen=True)
class Cause:
    """A change that is linear in its parameters theta, with a normal prior of mean 0."""

    name: str
    columns: slice  # its own among those of `Causes`
    prior: Array  # (d,) standard deviations


class Causes:
    """The causes that are considered, with their columns side by side.

    payload: the ten inertial parameters of what is fixed to `link` (`regressor.INERTIAL`). Its
        weight is in the efforts also where the driver takes out the robot's.
    friction: viscous and Coulomb friction of each joint. offset: a constant for each axis.
    push: a constant wrench of the surroundings, in the axes of the base, at that link's origin or
        at the sensor. No regressor has its columns.

    Attributes
    ----------
    combination: (n_parameters, n_columns) the base parameters of a unit of each column, so that
        ``regressor @ combination @ theta`` is the change of the output that the robot's own
        parameters explain.
    n_held: how many columns are the robot's own; a push's follow.
    link: the link that payloads are fixed to.

    Raises ConfigurationError where `config.payload_link` is no moving link.
    """

    def __init__(self, model: RobotModel, config: ChangesConfig) -> None:
        self.link = _link(model, config.payload_link)
        body = model.bodies.index(self.link)
        m, r = TYPICAL_MASS_KG, TYPICAL_REACH_M
        priors = [np.array([m, *[m * r] * 3, *[m * r**2] * 6])]
        columns = [model.added(body)]
        names = [PAYLOAD]
        output = expected_scales(model).output
        for name, kinds in ((FRICTION, ("viscous ", "coulomb ")), (OFFSET, ("offset ",))):
            own = [
                i
                for i, label in enumerate(model.full_labels)
                if label.startswith(kinds) and not label.endswith(model.couplings)
            ]
            if own:
                names.append(name)
                columns.append(model.base.combination[:, own])
                rows = [_row(model, model.full_labels[i]) for i in own]
                priors.append(EFFECT_SHARE * output[rows])
        self.n_held = sum(len(own) for own in priors)
        names.append(PUSH)
        priors.append(np.repeat(SIZE, 3))
        ends = np.cumsum([len(own) for own in priors]).tolist()
        self.all = tuple(
            Cause(name, slice(end - len(prior), end), prior)
            for name, prior, end in zip(names, priors, ends, strict=True)
        )
        self.n_columns = int(ends[-1])
        self.combination: Array = np.zeros((model.n_parameters, self.n_columns))
        self.combination[:, : self.n_held] = np.concatenate(columns, axis=1)
        self._sensor = model.config.sensor_frame if model.config.target == "wrench" else ""
        base = parse_urdf(model.urdf_text).root
        self._motion = FrameMotion(model, self._sensor or self.link, base)

    def columns_of(self, sample: Sample) -> Array:
        """(n_axes, n_columns) what a unit of each column does to a sample's measurement."""
        columns: Array = sample.regressor @ self.combination
        if self._sensor:
            columns[:, self.n_held :] = self._motion.from_frame(sample.q, self._sensor).T
        else:
            columns[:, self.n_held :] = self._motion.jacobian(sample.q).T
        return columns

    def __getitem__(self, name: str) -> Cause:
        return next(cause for cause in self.all if cause.name == name)


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """An explanation theta ~ N(mean, root root') in some of the columns."""

    cause: str
    name: str  # of a known payload
    columns: slice | Indices
    mean: Array  # (d,)
    root: Array  # (d, r)

    def evidence(self, sums: Sums) -> Array:
        """(...) the log likelihood ratio against no change."""
        return log_evidence(sums.restrict(self.columns), self.root, self.mean)

    def beside(self, columns: slice, std: Array, mean: Array | None = None) -> Hypothesis:
        """The same beside normal errors in other `columns` (k,) of these `std`, about `mean`."""
        n, r = self.root.shape
        root = np.zeros((n + len(std), r + len(std)))
        root[:n, :r], root[n:, r:] = self.root, np.diag(std)
        both = np.concatenate((self.mean, np.zeros(len(std)) if mean is None else mean))
        return Hypothesis(self.cause, self.name, np.r_[self.columns, columns], both, root)


@dataclass(frozen=True, slots=True)
class Finding:
    """The best explanation of a stretch, and how far it is ahead of the others."""

    hypothesis: Hypothesis
    length: int  # blocks
    score: float  # log likelihood ratio against the best without a cause, over EVIDENCE_DIVISOR
    margin: float  # against the best other cause
    sums: Sums  # of the stretch

    def explains(self) -> bool:
        """Return whether a known payload leaves only expected errors of the stretch."""
        shift = np.zeros(self.sums.moment.shape[-1])
        shift[self.hypothesis.columns] = self.hypothesis.mean
        return bool(log_evidence_unpatterned(self.sums.shifted(shift)) <= 0.0)


def hypotheses(
    causes: Causes, wanted: set[str], held: Array, known: Mapping[str, Snapshot]
) -> list[Hypothesis]:
    """New causes, and known payloads instead of the one that is `held` (10,)."""
    found = []
    for cause in causes.all:
        if cause.name in wanted:
            for share in SIZES.get(cause.name, (1.0,)):
                mean, root = np.zeros(len(cause.prior)), np.diag(share * cause.prior)
                found.append(Hypothesis(cause.name, "", cause.columns, mean, root))
    columns = causes[PAYLOAD].columns
    for name, snapshot in known.items():
        root = _root(snapshot.held_again())
        found.append(Hypothesis(PAYLOAD, name, columns, snapshot.mean - held, root))
    return found


def _root(covariance: Array) -> Array:
    """(n, r) root of a covariance (n, n) that may be 0 in some or all directions."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    safe = np.where(scale > 0.0, scale, 1.0)
    w, V = np.linalg.eigh(covariance / np.outer(safe, safe))
    keep = (w > 1e-12) & (w > 1e-12 * w[-1])
    root: Array = scale[:, None] * V[:, keep] * np.sqrt(w[keep])
    return root


def weigh(
    lengths: Array,
    sums: Sums,
    candidates: list[Hypothesis],
    present: Hypothesis | None,
    longest: Mapping[str, int],
) -> tuple[Finding | None, dict[str, float]]:
    """The best of the candidates over stretches (w,), and each one's best score by its name.

    present: the uncertainty of the change that is being estimated; None without one. A cause that
    fits no better than larger errors without a pattern is no explanation.
    longest: blocks that a stretch may have to tell of these causes.
    """
    if not len(lengths) or not candidates:
        return None, {}
    rest = np.maximum(log_evidence_unpatterned(sums), 0.0)
    if present is not None:
        rest = np.maximum(rest, present.evidence(sums))
    table = np.array([hypothesis.evidence(sums) for hypothesis in candidates])
    least = np.array([[MIN_BLOCKS.get(h.cause, 0) if not h.name else 0] for h in candidates])
    doubt = np.array([[EVIDENCE_DIVISOR.get(h.cause, 1.0)] for h in candidates])
    most = np.array([[longest.get(h.cause, np.inf)] for h in candidates])
    valid = (least <= lengths) & (lengths <= most)
    scores = np.where(valid, (table - rest) / doubt, -np.inf)
    best, window = np.unravel_index(int(np.argmax(scores)), scores.shape)
    others = [
        row[window]
        for row, candidate in zip(table, candidates, strict=True)
        if candidate.cause != candidates[best].cause
    ]
    stretch = Sums(*(values[window] for values in _fields(sums)))
    finding = Finding(
        candidates[best],
        int(lengths[window]),
        float(scores[best, window]),
        float(table[best, window] - max(others, default=0.0)),
        stretch,
    )
    named: dict[str, float] = {}
    for candidate, row in zip(candidates, scores, strict=True):
        key = candidate.name or candidate.cause
        named[key] = max(named.get(key, -np.inf), float(row.max()))
    return finding, named


@dataclass(frozen=True, slots=True)
class Sums:
    """Sufficient statistics of theta in whitened rows [A b], of one stretch or of several (...)."""

    information: Array  # (..., n, n) A'A
    moment: Array  # (..., n) A'b
    square: Array  # (...) b'b
    rows: Array  # (...) how many

    @classmethod
    def from_rows(cls, A: Array, b: Array) -> Sums:
        """The sums of rows A (k, n) and b (k,)."""
        return cls(A.T @ A, A.T @ b, np.asarray(b @ b), np.asarray(float(len(b))))

    @classmethod
    def empty(cls, n: int) -> Sums:
        """The sums of no rows of n columns."""
        return cls(np.zeros((n, n)), np.zeros(n), np.asarray(0.0), np.asarray(0.0))

    def shifted(self, theta: Array) -> Sums:
        """The sums of innovations less A theta, for theta (n,)."""
        part = self.information @ theta
        square = self.square - 2.0 * self.moment @ theta + part @ theta
        return Sums(self.information, self.moment - part, np.maximum(square, 0.0), self.rows)

    def restrict(self, columns: slice | Indices) -> Sums:
        """The sums of these columns alone, in this order."""
        rows = columns if isinstance(columns, slice) else columns[:, None]
        information = self.information[..., rows, columns]
        return Sums(information, self.moment[..., columns], self.square, self.rows)

    def __add__(self, other: Sums) -> Sums:
        return Sums(*(a + b for a, b in zip(_fields(self), _fields(other), strict=True)))


def log_evidence(sums: Sums, root: Array, mean: Array | None = None) -> Array:
    """(...) the logarithm of p(b | cause) / p(b | no change) for stretches (...).

    root: (n, r) of the prior's covariance S = root root'. mean: (n,) mu, None for 0.
    """
    moment = np.ascontiguousarray(sums.moment)
    stretches, n = moment.shape[:-1], moment.shape[-1]
    information = np.ascontiguousarray(sums.information).reshape(-1, n, n)
    value = np.zeros(len(information))
    prior_mean = np.zeros(n) if mean is None else mean
    # A step of an arm's detection asks for dozens: as NumPy's calls they would keep messages
    # waiting for half a millisecond.
    _fill_evidence(
        information, moment.reshape(-1, n), np.ascontiguousarray(root), prior_mean, value
    )
    found: Array = value.reshape(stretches)
    return found


@compiled_in_turn
def _fill_evidence(information: Array, moment: Array, root: Array, mean: Array, out: Array) -> None:
    """See `log_evidence`; -inf where the information is no covariance's, of numbers too large."""
    n, r = root.shape
    product, inner, solved = np.empty(n), np.empty((r, r)), np.empty(r)
    left = np.empty(n)
    for w in range(len(information)):
        value = 0.0
        for i in range(n):
            part = 0.0
            for j in range(n):
                part += information[w, i, j] * mean[j]
            left[i] = moment[w, i] - part
            value += (moment[w, i] - 0.5 * part) * mean[i]
        for k in range(r):
            for i in range(n):
                product[i] = 0.0
                for j in range(n):
                    product[i] += information[w, i, j] * root[j, k]
            for row in range(k, r):
                total = 1.0 if row == k else 0.0
                for i in range(n):
                    total += root[i, row] * product[i]
                inner[row, k] = total
        # The Cholesky factor of I + S G, in place, and the solution beside it.
        for k in range(r):
            pivot, total = inner[k, k], 0.0
            for j in range(k):
                pivot -= inner[k, j] ** 2
            if not pivot > 0.0:
                value = -np.inf
                break
            inner[k, k] = math.sqrt(pivot)
            for row in range(k + 1, r):
                entry = inner[row, k]
                for j in range(k):
                    entry -= inner[row, j] * inner[k, j]
                inner[row, k] = entry / inner[k, k]
            for i in range(n):
                total += root[i, k] * left[i]
            for j in range(k):
                total -= inner[k, j] * solved[j]
            solved[k] = total / inner[k, k]
            value += 0.5 * solved[k] ** 2 - 0.5 * math.log(pivot)
        out[w] = value


def log_evidence_unpatterned(sums: Sums) -> Array:
    """(...) the same of unpatterned innovations: normal, of one of the `UNPATTERNED_STDS`."""
    precision = 1.0 / UNPATTERNED_STDS**2
    terms = 0.5 * np.multiply.outer(sums.square, 1.0 - precision)
    terms -= np.multiply.outer(sums.rows, np.log(UNPATTERNED_STDS))
    largest = terms.max(axis=-1)
    value: Array = largest + np.log(np.mean(np.exp(terms - largest[..., None]), axis=-1))
    return value


class Windows:
    """The sums over the last `lengths` blocks, updated block by block.

    A change that begins within a block and passes filters takes `RISE` blocks until it is complete.
    So a stretch that begins with the change has a first row of its own, which compares the
    innovation with the last one before the rise (`entry`); all others compare with the one before
    (`row`).
    """

    RISE = 2

    def __init__(self, n_columns: int, lengths: tuple[int, ...]) -> None:
        self.lengths, self._n = np.array(lengths), n_columns
        # The last blocks' sums, packed.
        self._entries: deque[Array] = deque(maxlen=max(lengths))
        self._rows: deque[Array] = deque(maxlen=max(lengths))

    def clear(self) -> None:
        """Forget all blocks, as after a pause."""
        self._entries.clear()
        self._rows.clear()

    def push(self, entry: Sums, row: Sums) -> None:
        """Add the next block: its sums as a first row, and as a later one."""
        for packed, sums in ((self._entries, entry), (self._rows, row)):
            packed.append(np.concatenate([np.ravel(v) for v in _fields(sums)]))

    def sums(self, *, begins: bool) -> tuple[Array, Sums]:
        """The available lengths (w,), and the sums over each stretch.

        begins: whether the change begins with the stretch, or was there before.
        """
        rows, end = np.array(self._rows), len(self._rows)
        lengths, n, square = self.lengths[self.lengths <= end], self._n, self._n**2
        found = np.empty((len(lengths), square + n + 2))
        total, summed = np.zeros(found.shape[1]), 0
        for k, length in enumerate(lengths):
            later = length - 1 if begins else length
            total = total + rows[end - later : end - summed].sum(axis=0)
            summed = later
            found[k] = total + self._entries[end - length] if begins else total
        information = found[:, :square].reshape(-1, n, n)
        return lengths, Sums(information, found[:, square:-2], found[:, -2], found[:, -1])


def _fields(sums: Sums) -> tuple[Array, Array, Array, Array]:
    return sums.information, sums.moment, sums.square, sums.rows


def _link(model: RobotModel, wanted: str) -> str:
    if not wanted:
        return _last(model)
    for body, links in zip(model.bodies, model.links, strict=True):
        if wanted == body or wanted in {name for name, _ in links}:
            return body
    raise ConfigurationError(
        f"parameter 'changes.payload_link' must be a moving link: {', '.join(model.bodies)}; "
        f"not '{wanted}'"
    )


def _last(model: RobotModel) -> str:
    """The body that most learned joints carry, of several the last: not all are named in order."""
    tree = parse_urdf(model.urdf_text)

    def carried_by(body: str) -> int:
        return sum(joint.name in model.joint_names for joint in tree.above(body))

    return max(reversed(model.bodies), key=carried_by)


def _row(model: RobotModel, label: str) -> int:
    """The axis that an effect acts on: the end of its label. Names may contain spaces."""
    ends = [axis for axis in model.axes if label.endswith(f" {axis}")]
    return model.axes.index(max(ends, key=len))
