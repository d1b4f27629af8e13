"""Hypotheses on efforts, tried on the half of a motion that they were not fitted on."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, fields, replace

import numpy as np
from scipy.special import stdtrit

from semiparam_dynamics.base.arrays import Array, Indices, Mask
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.regressor import Multibody, Regressor, sensor_offsets
from semiparam_dynamics.robot.urdf import parse_urdf

# Of a false accusation in a motion, for each of six kinds: sign, scale, exchanged joints, direction
# of gravity, no weight, delay.
FALSE_CHANCE = 1e-3 / 6
CONTRADICTION = 1.0  # deviation of both halves by which a model speaks against the other
BLOCKS = 10  # of each half of the motion, over which evidence is averaged
MOST = float(np.log(2.0))  # log ratio of squared errors: what predicts explains the greater part
TILTS = 6  # directions of gravity that are asked: three, and the axes near to them
MIN_EVIDENCE_S = 3.0  # of motion that tell something
MIN_SCALE, MAX_SCALE = 0.3, 20.0  # times the URDF's torque: wrong masses and gears stay within
RIDGE = 1e-5  # of a column's own sum of squares
MIN_ERROR = 1e-4  # of an effort's variance: what is less is as good
EFFECTS = 4  # viscous, Coulomb, constant, rotor
SUBSETS = np.array(list(itertools.product((0.0, 1.0), repeat=5)))  # of the columns of a fit


@dataclass(frozen=True)
class Columns:
    """n filtered instants of k joints.

    Attributes
    ----------
    times: (n,) s. q, dq: (n, k) filtered.
    parts: (4, n, k, p) inertial columns: without gravity, and for a unit of gravity along each axis
        of the root link; with a gravity vector g they are
        ``parts[0] + g[0] parts[1] + g[1] parts[2] + g[2] parts[3]``.
    effects: (n, k, 4) of each joint its viscous, Coulomb, constant and rotor column.
    y: (n, k) efforts. y_grid: (m, k) the same on the whole grid, at `grid` (m,) s.
    prior: (p,) the URDF's inertial parameters. gravity: (3,) as configured.
    seen: (n, k) whether an effort is evidence: neither it nor what filters and the delays that are
        tried mix with it was saturated, stuck or absent.
    """

    times: Array
    q: Array
    dq: Array
    parts: Array
    effects: Array
    y: Array
    grid: Array
    y_grid: Array
    prior: Array
    gravity: Array
    seen: Mask

    @property
    def enough(self) -> Mask:
        """(k,) whether each half of the motion has evidence of a joint for long enough."""
        step = float(np.median(np.diff(self.times)))
        halves = np.array_split(self.seen, [len(self.seen) // 2])
        return np.asarray(
            step * np.min([h.sum(axis=0) for h in halves], axis=0) > MIN_EVIDENCE_S / 2
        )

    def inertial(self, gravity: Array) -> Array:
        """(n, k, p) columns with a gravity vector."""
        columns: Array = self.parts[0] + np.tensordot(gravity, self.parts[1:], axes=1)
        return columns

    def shifted(self, seconds: float) -> Array:
        """(n, k) the efforts measured `seconds` later."""
        at = np.clip(self.times + seconds, self.grid[0], self.grid[-1])
        return np.column_stack([np.interp(at, self.grid, column) for column in self.y_grid.T])


def inertial_parts(model: RobotModel, q: Array, dq: Array, ddq: Array) -> Array:
    """(4, n, k, p) inertial columns: without gravity, and of a unit of it along each axis.

    The model's own working memory is not used.
    """
    none = sensor_offsets((), model.n_joints, wanted=False)
    body = Multibody(parse_urdf(model.urdf_text), model.joint_names, model.locked, [0.0] * 3)
    regressor = Regressor(body, np.arange(model.inertial_prior.size), none)
    out = np.empty((4, len(q), regressor.size))
    stops, still = np.zeros((len(q), 0)), np.zeros(q.shape)
    q, dq, ddq = (np.ascontiguousarray(a, dtype=np.float64) for a in (q, dq, ddq))
    regressor.fill(q, dq, ddq, stops, out[0])
    for part, gravity in zip(out[1:], np.eye(3), strict=True):
        body.set_gravity(gravity)
        regressor.fill(q, still, still, stops, part)
    return out.reshape(4, len(q), model.n_joints, -1)


# -------------------------------------------------------------------------------------------------
# The two models


@dataclass(frozen=True)
class AnchoredFit:
    """The fit of one effort by one joint of the URDF with factors that can't be negative.

    error: squared error in units of the effort's variance.
    inertia, gravity: the factors of what the URDF predicts; viscous, coulomb, rotor: of friction
    and rotor. constant: in the effort's unit. spring: what it changes by with the joint's position.
    """

    error: float
    inertia: float = 0.0
    gravity: float = 0.0
    viscous: float = 0.0
    coulomb: float = 0.0
    rotor: float = 0.0
    constant: float = 0.0
    spring: float = 0.0

    def predicted(self, inertia: Array, weight: Array, effects: Array, q: Array) -> Array:
        """(n,) efforts of the URDF's torques (n,), effects (n, 4) and positions (n,)."""
        own = effects @ (self.viscous, self.coulomb, self.constant, self.rotor) + self.spring * q
        return np.asarray(self.inertia * inertia + self.gravity * weight + own)


def anchored_fit(
    y: Array, inertia: Array, weight: Array, effects: Array, spring: Array | None = None
) -> AnchoredFit:
    """Fit y (n,) by the URDF's torques (n,) of a joint and its effects (n, 4), a constant too.

    spring: (n,) positions, to which a part of the effort of either sign may be proportional.

    Non-negative least squares: the solution is that of one subset of the columns alone, and there
    are few. (scipy's takes a node a second to import.)
    """
    dq, coulomb, _, rotor = effects.T
    rows = np.column_stack((inertia, weight, dq, coulomb, rotor, y))
    signed = np.ones((len(y), 1 if spring is None else 2))
    if spring is not None:
        signed[:, 1] = spring
    own = np.linalg.lstsq(signed, rows, rcond=None)[0]
    rows = rows - signed @ own
    size = np.sqrt(np.mean(rows**2, axis=0))
    size = np.where(size > 1e-9 * max(float(size[:-1].max()), 1e-300), size, np.inf)
    spread = float(y.std())
    factors = np.zeros(5)
    if spread > 0.0:
        size[-1] = spread
        gram = (rows / size).T @ (rows / size) / len(y)
        left_out = (1.0 - SUBSETS)[:, :, None] * np.eye(5)
        within = SUBSETS[:, :, None] * gram[:-1, :-1] * SUBSETS[:, None]
        right = SUBSETS * gram[:-1, -1]
        found = np.linalg.solve(within + left_out + 1e-12 * np.eye(5), right[..., None])[..., 0]
        gains = np.where((found >= 0.0).all(axis=1), (found * right).sum(axis=1), 0.0)
        best = int(np.argmax(gains))
        factors = found[best] * size[-1] / size[:-1] if gains[best] > 0.0 else factors
    left = float(np.mean((rows[:, -1] - rows[:, :-1] @ factors) ** 2))
    constant = [*(own[:, -1] - own[:, :-1] @ factors).tolist(), 0.0]
    return AnchoredFit(left / max(spread**2, 1e-300), *factors.tolist(), *constant[:2])


def bounded_fit(
    y: Array, inertia: Array, weight: Array, effects: Array, spring: Array
) -> AnchoredFit:
    """The same with the factors of inertia and weight between MIN_SCALE and MAX_SCALE."""
    torques, fixed = np.array((inertia, weight)), np.array((False, False))
    factors = np.full(2, MIN_SCALE)
    for _ in range(3):  # a factor at its upper bound stays there
        free = np.where(fixed, 0.0, 1.0)[:, None] * torques
        fit = anchored_fit(y - factors @ torques, free[0], free[1], effects, spring)
        found = factors + np.where(fixed, 0.0, (fit.inertia, fit.gravity))
        if not (found > MAX_SCALE).any():
            break
        fixed |= found > MAX_SCALE
        factors = np.where(fixed, MAX_SCALE, MIN_SCALE)
    return replace(fit, inertia=float(found[0]), gravity=float(found[1]))


class FreeFit:
    """Least squares with free inertial parameters and each joint's own e effects.

    The fit for any gravity vector and efforts comes from products that are computed once.

    columns: of the motion. used: (k,) the joints whose efforts count. fitted: (n, k) the efforts
    that are fitted. between: called before each joint's products.
    """

    def __init__(
        self, columns: Columns, used: Mask, fitted: Mask, between: Callable[[], None] = lambda: None
    ) -> None:
        self.columns, self.used = columns, np.flatnonzero(used)
        p, k, e = columns.prior.size, self.used.size, columns.effects.shape[2]
        self._p, self._all = p, p + e * k
        # Of each joint its rows, and in these the inertial parts (of inertia, and of gravity along
        # each axis) beside the effects; (k, 4 p + e, 4 p + e) products of all with one another.
        self._rows: list[tuple[Indices, Array]] = []
        for joint in self.used:
            between()
            at = np.flatnonzero(fitted[:, joint])
            self._rows.append(
                (at, np.hstack((*columns.parts[:, at, joint], columns.effects[at, joint])))
            )
        self._products: Array = np.array([design.T @ design for _, design in self._rows])
        own = p + np.arange(e * k).reshape(k, e)
        self._places = [np.concatenate((np.arange(p), one)) for one in own]
        self._positive = own[:, [0, 1, 3]].ravel()  # friction and rotors can't push

    def with_rows(self, other: FreeFit) -> FreeFit:
        """The fit of all rows, where the other's are those that this one's are not."""
        both = copy(self)
        both._rows = [
            (np.append(a[0], b[0]), np.vstack((a[1], b[1])))
            for a, b in zip(self._rows, other._rows, strict=True)
        ]
        both._products = self._products + other._products
        return both

    def _fitted(self, y: Array) -> list[Array]:
        """Of each joint the efforts that are fitted."""
        return [y[at, k] for k, (at, _) in zip(self.used, self._rows, strict=True)]

    def products(self, y: Array) -> tuple[Array, Array]:
        """Sums for a fit of y (n, k): (used joints, 4 p + e) products, (used joints,) squares."""
        each = self._fitted(y)
        found = [own @ design for own, (_, design) in zip(each, self._rows, strict=True)]
        return np.array(found), np.array([own @ own for own in each])

    def solve(
        self, gravity: Array, y: Array, scale: Array | None = None, *, signed: bool = False
    ) -> tuple[Array, Array]:
        """(p + e used,) inertial parameters, then effects, and (used,) squared errors.

        y: (n, k) of all rows. scale: (used,) deviations by which joints weigh; None: of what is
        left of them. signed: friction that pushes is allowed.
        """
        products, rounds = self.products(y), 1
        if scale is None:
            spread = np.array([own.std() for own in self._fitted(y)])
            floor = 1e-9 * max(float(spread.max()), 1e-300)
            scale, rounds = np.where(spread > floor, spread, 1.0), 2
        least = MIN_ERROR * scale**2
        for _ in range(rounds):
            found, errors = self.least_squares(gravity, products, scale, signed=signed)
            scale = np.sqrt(np.maximum(errors, least))
        return found, errors

    def least_squares(
        self, gravity: Array, products: tuple[Array, Array], scale: Array, *, signed: bool
    ) -> tuple[Array, Array]:
        """See `solve`; products: of the efforts."""
        g, p = np.concatenate(([1.0], gravity)), self._p

        def summed(rows: Array) -> Array:
            """(k, p + e, m) of rows (k, 4 p + e, m), the inertial parts with that gravity."""
            parts = rows[:, : 4 * p].reshape(len(rows), 4, p, -1)
            return np.concatenate((np.einsum("a,kapm->kpm", g, parts), rows[:, 4 * p :]), axis=1)

        right = summed(products[0][:, :, None])[:, :, 0]
        own = summed(summed(self._products).swapaxes(1, 2))
        A, b = np.zeros((self._all, self._all)), np.zeros(self._all)
        for one, product, size, places in zip(own, right, scale, self._places, strict=True):
            A[np.ix_(places, places)] += one / size**2
            b[places] += product / size**2
        diagonal = A.diagonal().copy()
        A[np.diag_indices(self._all)] += RIDGE * diagonal + (1e-12 * diagonal.sum() or 1.0)
        found, free = np.zeros(self._all), np.ones(self._all, dtype=bool)
        while True:
            found[:] = 0.0
            found[free] = np.linalg.solve(A[np.ix_(free, free)], b[free])
            pushing = found[self._positive] * np.sqrt(diagonal[self._positive])
            if signed or not (pushing < 0.0).any():
                break
            free[self._positive[int(np.argmin(pushing))]] = False
        each = found[np.array(self._places)]
        left = products[1] - np.einsum("ki,ki->k", each, 2.0 * right)
        left += np.einsum("ki,kij,kj->k", each, own, each)
        return found, np.maximum(left, 0.0) / [len(at) for at, _ in self._rows]

    def squares(self, gravity: Array, y: Array, found: Array, rows: Mask) -> Array:
        """(rows, used joints) squared errors of y (n, k) at rows by what was found."""
        p, parts = self._p, self.columns.parts[:, rows]
        bodies = np.tensordot(np.concatenate(([1.0], gravity)), parts @ found[:p], axes=1)
        effects = self.columns.effects[rows][:, self.used]
        own = np.einsum("nke,ke->nk", effects, found[p:].reshape(len(self.used), -1))
        return np.asarray((y[rows][:, self.used] - bodies[:, self.used] - own) ** 2)


def anchored(columns: Columns, gravity: Array) -> tuple[Array, Array]:
    """(n, k) inertial and gravity efforts by the URDF's own parameters."""
    torques = columns.parts @ columns.prior
    return torques[0], np.asarray(np.tensordot(gravity, torques[1:], axes=1))


# -------------------------------------------------------------------------------------------------
# Hypotheses, and what shows one


@dataclass(frozen=True)
class Hypothesis:
    """A recording's k efforts as they would be right.

    Attributes
    ----------
    factor: (k,) times the efforts. source: (k,) the place of each joint's effort.
    gravity: (3,) m/s^2. lag: s by which efforts come late.
    weighed: whether weight has MIN_SCALE of the URDF's at least. sprung: whether a spring at each
        joint may hold a part of the effort.
    scaled: (k,) or empty: +1 where inertia and weight have one common factor, -1 where those of
        efforts in N m and a spring may carry some weight, see `bounded_fit`.
    """

    factor: Array
    source: Indices
    gravity: Array
    lag: float = 0.0
    weighed: bool = False
    sprung: bool = False
    scaled: tuple[int, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """Its values, different from every other one's."""
        values = (getattr(self, entry.name) for entry in fields(self))
        return tuple(tuple(v.tolist()) if isinstance(v, np.ndarray) else v for v in values)


class Trial:
    """The errors of hypotheses on the half of a motion that they were not fitted on.

    columns: of the motion. used: (k,) the joints with efforts; those with too little evidence are
    left out. between: called before each fit.
    """

    def __init__(
        self, columns: Columns, used: Mask, between: Callable[[], None] = lambda: None
    ) -> None:
        self.columns, self.used, self.between = columns, used & columns.enough, between
        self._half = np.arange(len(columns.y)) >= len(columns.y) // 2
        self._known: dict[tuple[object, ...], Array] = {}
        springs = columns.q[:, :, None] - columns.q.mean(axis=0)[:, None]
        effects = np.concatenate((columns.effects, springs), axis=2)
        self._sprung = replace(columns, effects=effects)
        self._free: dict[tuple[bytes, bool], list[FreeFit]] = {}

    def level(self, questions: int) -> float:
        """Deviations on each half that show one of a kind's questions: both err by chance."""
        return float(stdtrit(BLOCKS - 1, 1.0 - np.sqrt(FALSE_CHANCE / questions)))

    def free(self, y: Array, *, sprung: bool = False) -> list[FreeFit]:
        """The free fits of the halves, for efforts (n, k) of which NaN are no evidence."""
        seen, columns = np.isfinite(y), self._sprung if sprung else self.columns
        if (key := (seen.tobytes(), sprung)) not in self._free:
            halves = [seen & (self._half == half)[:, None] for half in (0, 1)]
            self._free[key] = [FreeFit(columns, self.used, h, self.between) for h in halves]
        return self._free[key]

    def efforts(self, h: Hypothesis) -> Array:
        """(n, k) efforts as a hypothesis puts them right, NaN where they are no evidence."""
        y = self.columns.shifted(h.lag) if h.lag else self.columns.y
        y = np.where(self.columns.seen, y, np.nan)
        return np.asarray(y[:, h.source] * h.factor)

    def fit(self, h: Hypothesis, k: int, efforts: Array, *, whole: bool = False) -> AnchoredFit:
        """Fit efforts (n,) by what the URDF makes of joint k's motion.

        whole: inertia and weight have one factor.
        """
        seen = np.isfinite(efforts)
        inertia, weight = (a[seen, k] for a in anchored(self.columns, h.gravity))
        if whole:
            inertia, weight = inertia + weight, 0.0 * weight
        return anchored_fit(efforts[seen], inertia, weight, self.columns.effects[seen, k])

    def squares(self, h: Hypothesis, model: str) -> Array:
        """(n, used joints) squared errors in units of each effort's variance, in each half.

        NaN where an effort is no evidence. model: "urdf", "free", or "none" for a constant.
        """
        h = h if model == "urdf" else replace(h, weighed=False, scaled=())
        key = (model, *h.key)
        if key not in self._known:
            y = self.efforts(h)
            found = np.vstack([self._held_out(h, y, model, half) for half in (0, 1)])
            spread = np.nanstd(y[:, self.used], axis=0)
            self._known[key] = found / np.where(spread > 0.0, spread, 1.0) ** 2
        return self._known[key]

    def _held_out(self, h: Hypothesis, y: Array, model: str, half: int) -> Array:
        test, train = self._half == half, self._half != half
        if model == "none":
            own = y[:, self.used]
            return np.asarray((own[test] - np.nanmean(own[train], axis=0)) ** 2)
        if model == "free":
            self.between()
            free = self.free(y, sprung=h.sprung)[1 - half]
            return free.squares(h.gravity, y, free.solve(h.gravity, y)[0], test)
        torques = anchored(self.columns, h.gravity)
        errors = []
        for k in np.flatnonzero(self.used).tolist():
            self.between()
            inertia, weight = (a[:, k] for a in torques)
            effects, way = self.columns.effects[:, k], h.scaled[k] if h.scaled else 0
            if way > 0:
                inertia, weight = inertia + weight, 0.0 * weight
            least = MIN_SCALE * weight if h.weighed else 0.0 * weight
            rows = (y[:, k] - least, inertia, weight, effects, self.columns.q[:, k])
            values = [a[train & np.isfinite(y[:, k])] for a in rows]
            given = values if h.sprung else values[:-1]
            fit = bounded_fit(*values) if way < 0 else anchored_fit(*given)
            errors.append((rows[0] - fit.predicted(*rows[1:]))[test] ** 2)
        return np.column_stack(errors)

    def ratios(self, errors: Array, less: Array) -> tuple[Array, Array]:
        """(2,) mean over the joints of the log ratio of squared errors in each half; deviations.

        Blocks of time have the same amount of evidence each.
        """
        found = []
        seen = np.isfinite(errors) & np.isfinite(less)
        kept = [np.where(seen, a + MIN_ERROR, 0.0) for a in (errors, less)]
        for half in (0, 1):
            rows = self._half == half
            count = np.cumsum(seen[rows].sum(axis=1))
            edges = np.searchsorted(count, np.linspace(0, count[-1], BLOCKS + 1)[:-1], "right")
            sums = [np.add.reduceat(a[rows], edges, axis=0) for a in kept]
            whole = [s.sum(axis=0) for s in sums]
            without = [total - s for total, s in zip(whole, sums, strict=True)]
            left = np.log(without[0] / without[1]).mean(axis=1)
            deviation = np.sqrt((BLOCKS - 1) / BLOCKS * np.sum((left - left.mean()) ** 2))
            found.append((np.log(whole[0] / whole[1]).mean(), max(deviation, 1e-12)))
        ratio, deviation = np.array(found).T
        return ratio, deviation

    def better(self, accused: Array, innocent: Array, beyond: float = 0.0) -> float:
        """The least over the halves of the evidence in deviations, for a log ratio `beyond`."""
        ratio, deviation = self.ratios(innocent, accused)
        return float(((ratio - beyond) / deviation).min())

    def shown(
        self, accused: Hypothesis, innocent: Hypothesis, elsewhere: Trial | None = None
    ) -> bool:
        """Test whether one model shows what is accused, predicting then, and none contradicts.

        elsewhere: the trial of what is innocent, where joints have other names in it.
        """
        other = elsewhere or self
        y, as_is = self.efforts(accused), other.efforts(innocent)
        differ = (y != as_is) & ~(np.isnan(y) & np.isnan(as_is))
        each = [[k] for k in np.flatnonzero(differ.any(axis=0)[self.used]).tolist()]
        if accused.lag != innocent.lag or (accused.gravity != innocent.gravity).any():
            each = [list(range(int(self.used.sum())))]
        level = self.level(self._questions(accused, innocent, renamed=elsewhere is not None))
        for_it = False
        # Free bodies may be without mass: they can't tell whether there is weight.
        models = ("urdf",) if innocent.weighed else ("urdf", "free")
        for model in models:
            told, left = self.squares(accused, model), other.squares(innocent, model)
            ratio, deviation = self.ratios(left, told)
            least, whole = (ratio / deviation).min(), (ratio / deviation).sum()
            own = min(self.better(told[:, joints], left[:, joints]) for joints in each)
            if whole < -CONTRADICTION * np.sqrt(2.0) or min(least, own) < -level:
                return False
            if for_it or least < level:
                continue
            rival = np.zeros(2)
            if model == "urdf" and len(models) > 1:
                # By as much as other masses explain, the URDF's may be wrong instead.
                rival = self.ratios(told, other.squares(innocent, "free"))[0]
            if _tilts(accused, innocent):  # or there may be springs, that explain more on each half
                springs = self.ratios(told, self.squares(replace(innocent, sprung=True), model))[0]
                rival = np.maximum(rival, springs.min())
            ratio = ratio - np.maximum(rival, 0.0)
            none = self.squares(accused, "none")
            for_it = bool((ratio / deviation).min() > level) and all(
                self.better(told[:, joints], none[:, joints], MOST) > level for joints in each
            )
        return for_it

    def _questions(self, accused: Hypothesis, innocent: Hypothesis, *, renamed: bool) -> int:
        """The number of questions of the same kind as what is accused, of which one is asked."""
        k = int(self.used.sum())
        asked = (
            (renamed or (accused.source != innocent.source).any(), k * (k - 1) // 2),
            ((accused.factor != innocent.factor).any(), k),
            (_tilts(accused, innocent), max(k, TILTS)),
        )
        return max((count for differs, count in asked if differs), default=1) or 1

    def error(self, h: Hypothesis, model: str = "urdf") -> float:
        """Mean over the joints of the held-out squared error."""
        return float(self.each(h, model).mean())

    def each(self, h: Hypothesis, model: str) -> Array:
        """(used joints,) mean of the held-out squared error."""
        return np.asarray(np.nanmean(self.squares(h, model), axis=0))


def _tilts(accused: Hypothesis, innocent: Hypothesis) -> bool:
    """Test whether another direction of gravity is accused."""
    return bool(accused.gravity.any() and (accused.gravity != innocent.gravity).any())
