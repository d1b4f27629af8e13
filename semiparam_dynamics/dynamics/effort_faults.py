"""Faults of efforts that the dynamics show: sign, exchanged joints, scale, gravity, delay.

An accusation is a hypothesis beside the same one without it. Both are fitted on one half of a
motion and predict the other half's efforts, and the accused one has to do that better on each half:
the logarithm of the ratio of the squared errors, with a deviation by a jackknife over blocks of
time, since errors close to one another are alike. Two models judge: the URDF's own torques, joint
by joint, and free inertial parameters for all joints; friction can't push in either of them. One
has to show the fault, and predict the efforts then; the other must not contradict. What is accused
of a quantity is compared with the nearest value that is no fault.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.special import stdtrit

from semiparam_dynamics.base.arrays import SECOND, Array, Indices, Mask
from semiparam_dynamics.base.errors import listing
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.regressor import Multibody, Regressor, joint_effects
from semiparam_dynamics.robot.urdf import parse_urdf

FALSE_CHANCE = 1e-3  # of an accusation in a motion without fault, shared by all that are asked
CONTRADICTION = 1.0  # deviation by which a model speaks against what the other shows
BLOCKS = 10  # of each half of the motion, over which evidence is averaged
MOST = float(np.log(2.0))  # log ratio of squared errors: what predicts explains the greater part
MIN_SCALE, MAX_SCALE = 0.3, 20.0  # times the URDF's torque: wrong masses and gears stay within
RIDGE = 1e-5  # of a column's own sum of squares
MIN_ERROR = 1e-4  # of an effort's variance: what is less is as good
EFFECTS = 4  # viscous, Coulomb, constant, rotor
EXCHANGED = "exchanged joints"
UNRELATED = "efforts follow no motion"
SUBSETS = np.array(list(itertools.product((0.0, 1.0), repeat=5)))  # of the columns of a fit


@dataclass(frozen=True)
class Finding:
    """A fault, or a fact worth knowing, with its evidence.

    Attributes
    ----------
    kind: in a few words, the same for every log.
    evidence: a sentence with numbers.
    advice: what to do about it.
    joints: those that it is about; empty: all.
    amount: the size of it, in the unit that the evidence names; NaN where it has none.
    mends: parameters that put it right, by their names.
    fault: False for a fact that may be as it should be.
    """

    kind: str
    evidence: str
    advice: str
    joints: tuple[str, ...] = ()
    amount: float = float("nan")
    mends: Mapping[str, object] = field(default_factory=dict)
    fault: bool = True


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

    def inertial(self, gravity: Array) -> Array:
        """(n, k, p) columns with a gravity vector."""
        columns: Array = self.parts[0] + np.tensordot(gravity, self.parts[1:], axes=1)
        return columns

    def shifted(self, seconds: float) -> Array:
        """(n, k) the efforts measured `seconds` later."""
        at = np.clip(self.times + seconds, self.grid[0], self.grid[-1])
        return np.column_stack([np.interp(at, self.grid, column) for column in self.y_grid.T])


def inertial_parts(model: RobotModel, q: Array, dq: Array, ddq: Array) -> list[Array]:
    """Four (n, k, p) inertial columns: without gravity, and of a unit of it along each axis.

    The model's own working memory is not used.
    """
    still = np.zeros_like(q)
    tree = parse_urdf(model.urdf_text)
    none = joint_effects(
        model.joint_names,
        viscous=False,
        coulomb=False,
        offset=False,
        rotor_inertia=False,
        coulomb_velocity=1.0,
    )
    parts = []
    for gravity in np.vstack((np.zeros(3), np.eye(3))):
        body = Multibody(tree, model.joint_names, model.locked, tuple(gravity.tolist()))
        regressor = Regressor(body, np.arange(model.inertial_prior.size), none)
        out = np.empty((len(q), regressor.size))
        moving = not gravity.any()
        at, speed, acceleration = (
            np.ascontiguousarray(a, dtype=np.float64)
            for a in ((q, dq, ddq) if moving else (q, still, still))
        )
        regressor.fill(at, speed, acceleration, np.zeros((len(q), 0)), out)
        parts.append(out.reshape(len(q), model.n_joints, -1))
    return parts


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
    """Least squares with free inertial parameters and each joint's own friction.

    The fit for any gravity vector and efforts comes from products that are computed once.

    columns: of the motion. used: (k,) the joints whose efforts count. rows: of the columns that are
    fitted. between: called before each joint's products.
    """

    def __init__(
        self,
        columns: Columns,
        used: Mask,
        rows: slice = slice(None),
        between: Callable[[], None] = lambda: None,
    ) -> None:
        self.columns, self.used, self._rows = columns, np.flatnonzero(used), rows
        p, k = columns.prior.size, self.used.size
        self._p, self._all = p, p + EFFECTS * k
        self._grams = np.empty((k, 4 * p + EFFECTS, 4 * p + EFFECTS))
        for gram, joint in zip(self._grams, self.used, strict=True):
            between()
            part = columns.parts[:, rows, joint].transpose(1, 0, 2)
            values = np.hstack((part.reshape(len(part), 4 * p), columns.effects[rows, joint]))
            np.matmul(values.T, values, out=gram)
        own = p + np.arange(EFFECTS * k).reshape(k, EFFECTS)
        self._places = [np.concatenate((np.arange(p), one)) for one in own]
        self._positive = own[:, [0, 1, 3]].ravel()  # friction and rotors can't push

    def with_rows(self, other: FreeFit) -> FreeFit:
        """The fit of all rows, where the other's are those that this one's are not."""
        both = copy(self)
        both._rows, both._grams = slice(None), self._grams + other._grams
        return both

    def products(self, y: Array) -> tuple[Array, Array]:
        """What a fit of y (n, k) needs: (used joints, 4 p + 4) products, (used joints,) squares."""
        rows, parts = y[self._rows], self.columns.parts[:, self._rows]
        effects = self.columns.effects[self._rows]
        found = [
            np.append((rows[:, k] @ parts[:, :, k]).ravel(), rows[:, k] @ effects[:, k])
            for k in self.used
        ]
        return np.array(found), np.sum(rows[:, self.used] ** 2, axis=0)

    def solve(
        self, gravity: Array, y: Array, scale: Array | None = None, *, signed: bool = False
    ) -> tuple[Array, Array]:
        """(p + 4 used,) inertial parameters, then effects, and (used,) squared errors.

        y: (n, k) of all rows. scale: (used,) deviations by which joints weigh; None: of what is
        left of them. signed: friction that pushes is allowed.
        """
        products, rounds = self.products(y), 1
        if scale is None:
            spread = y[self._rows][:, self.used].std(axis=0)
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
        A, b, joints = np.zeros((self._all, self._all)), np.zeros(self._all), []
        for gram, product, size, places in zip(
            self._grams, products[0], scale, self._places, strict=True
        ):
            own, right = np.empty((p + EFFECTS, p + EFFECTS)), product[4 * p :]
            bodies = gram[: 4 * p, : 4 * p].reshape(4, p, 4, p)
            own[:p, :p] = np.tensordot(g, np.tensordot(bodies, g, axes=(2, 0)), axes=1)
            own[:p, p:] = np.tensordot(g, gram[: 4 * p, 4 * p :].reshape(4, p, -1), axes=1)
            own[p:, :p], own[p:, p:] = own[:p, p:].T, gram[4 * p :, 4 * p :]
            right = np.append(g @ product[: 4 * p].reshape(4, p), right)
            A[np.ix_(places, places)] += own / size**2
            b[places] += right / size**2
            joints.append((own, right))
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
        left = [
            square - 2.0 * (one := found[places]) @ right + one @ own @ one
            for square, places, (own, right) in zip(products[1], self._places, joints, strict=True)
        ]
        rows = len(self.columns.y[self._rows])
        return found, np.maximum(left, 0.0) / rows

    def squares(self, gravity: Array, y: Array, found: Array, rows: slice) -> Array:
        """(n, used joints) squared errors of y (n, k) at rows by what was found."""
        p, parts = self._p, self.columns.parts[:, rows]
        bodies = np.tensordot(np.concatenate(([1.0], gravity)), parts @ found[:p], axes=1)
        effects = self.columns.effects[rows][:, self.used]
        own = np.einsum("nke,ke->nk", effects, found[p:].reshape(-1, EFFECTS))
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
    weighed: whether weight has MIN_SCALE of the URDF's at least.
    scaled: (k,) or empty: +1 where inertia and weight have one common factor, -1 where those of
        efforts in N m and a spring may carry some weight, see `bounded_fit`.
    """

    factor: Array
    source: Indices
    gravity: Array
    lag: float = 0.0
    weighed: bool = False
    scaled: tuple[int, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from others."""
        values = (self.factor, self.source, self.gravity)
        return (*(tuple(a.tolist()) for a in values), self.lag, self.weighed, self.scaled)


class Trial:
    """The errors of hypotheses on the half of a motion that they were not fitted on.

    columns: of the motion. used: (k,) the joints with efforts. questions: how many are asked.
    between: called before each fit.
    """

    def __init__(
        self,
        columns: Columns,
        used: Mask,
        between: Callable[[], None] = lambda: None,
    ) -> None:
        self.columns, self.used, self.between = columns, used, between
        half, k = len(columns.y) // 2, int(used.sum())
        self._halves = (slice(0, half), slice(half, None))
        self._known: dict[tuple[object, ...], Array] = {}
        # Signs, scales, pairs, gravity's direction and absence, and a delay; that both halves err
        # has the product of their chances.
        questions = 2 * k + k * (k - 1) // 2 + 3
        self.level = float(stdtrit(BLOCKS - 1, 1.0 - np.sqrt(FALSE_CHANCE / questions)))

    @cached_property
    def free(self) -> list[FreeFit]:
        """The free fits of the halves."""
        return [FreeFit(self.columns, self.used, rows, self.between) for rows in self._halves]

    def efforts(self, h: Hypothesis) -> Array:
        """(n, k) efforts as a hypothesis puts them right."""
        y = self.columns.shifted(h.lag) if h.lag else self.columns.y
        return np.asarray(y[:, h.source] * h.factor)

    def squares(self, h: Hypothesis, model: str) -> Array:
        """(n, used joints) squared errors in units of each effort's variance, in each half.

        model: "urdf", "free", or "none" for a constant.
        """
        h = h if model == "urdf" else replace(h, weighed=False, scaled=())
        key = (model, *h.key)
        if key not in self._known:
            y = self.efforts(h)
            found = np.vstack([self._held_out(h, y, model, half) for half in (0, 1)])
            spread = y[:, self.used].std(axis=0)
            self._known[key] = found / np.where(spread > 0.0, spread, 1.0) ** 2
        return self._known[key]

    def _held_out(self, h: Hypothesis, y: Array, model: str, half: int) -> Array:
        test, train = self._halves[half], self._halves[1 - half]
        if model == "none":
            return np.asarray((y[test] - y[train].mean(axis=0))[:, self.used] ** 2)
        if model == "free":
            self.between()
            free = self.free[1 - half]
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
            values = [a[train] for a in rows]
            fit = bounded_fit(*values) if way < 0 else anchored_fit(*values[:-1])
            errors.append((rows[0] - fit.predicted(*rows[1:]))[test] ** 2)
        return np.column_stack(errors)

    def ratios(self, errors: Array, less: Array) -> tuple[Array, Array]:
        """(2,) mean over the joints of the log ratio of squared errors in each half; deviations."""
        found = []
        for rows in self._halves:
            edges = np.linspace(0, len(errors[rows]), BLOCKS + 1).astype(int)[:-1]
            sums = [np.add.reduceat(a[rows] + MIN_ERROR, edges, axis=0) for a in (errors, less)]
            whole, without = ([f(s) for s in sums] for f in (_total, _all_but_one))
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
        touched = np.flatnonzero((y != as_is).any(axis=0)[self.used])
        each = [[k] for k in touched.tolist()]
        if accused.lag != innocent.lag or (accused.gravity != innocent.gravity).any():
            each = [list(range(int(self.used.sum())))]
        for_it = False
        # Free bodies may be without mass: they can't tell whether there is weight.
        for model in ("urdf",) if innocent.weighed else ("urdf", "free"):
            told, left = self.squares(accused, model), other.squares(innocent, model)
            ratio, deviation = self.ratios(left, told)
            if (ratio / deviation).sum() < -CONTRADICTION * np.sqrt(2.0):
                return False
            if not for_it and self.better(told, left) > self.level:
                none = self.squares(accused, "none")
                predicts = (self.better(told[:, k], none[:, k], MOST) > self.level for k in each)
                for_it = all(predicts)
        return for_it

    def error(self, h: Hypothesis, model: str = "urdf") -> float:
        """Mean over the joints of the held-out squared error."""
        return float(self.squares(h, model).mean())


def _total(sums: Array) -> Array:
    return np.asarray(sums.sum(axis=0))


def _all_but_one(sums: Array) -> Array:
    return np.asarray(sums.sum(axis=0) - sums)


# -------------------------------------------------------------------------------------------------
# The questions

MIN_TILT = 2.5  # degrees: what a base is levelled to
SMALL_DELAY, MIN_DELAY = 0.005, 0.017  # s of delay: worth a note, and a fault
LAGS = 0.01 * np.arange(-4, 7)  # s that are tried
DIRECTIONS = 200  # of gravity that are tried: 15 degrees apart


@dataclass(frozen=True)
class Verdict:
    """What a motion says of its efforts.

    Attributes
    ----------
    findings: the faults. hypothesis: the likeliest. trial: where hypotheses were tried.
    delay: s by which efforts seem to come late, NaN where that was not asked.
    """

    findings: list[Finding]
    hypothesis: Hypothesis
    trial: Trial
    delay: float = float("nan")


def effort_findings(
    names: Sequence[str],
    columns: Columns,
    used: Mask,
    between: Callable[[], None] = lambda: None,
    *,
    delays: bool = False,
) -> Verdict:
    """Ask all questions on the efforts of the joints `used` (k,), on their delay where asked."""
    trial = Trial(columns, used, between)
    as_is = Hypothesis(np.ones(len(names)), np.arange(len(names)), columns.gravity)
    best = _likeliest(trial, as_is)
    findings = [*_exchanged(names, trial, best), *_turned(names, trial, best)]
    scales, best = _scaled(names, trial, best)
    findings += scales
    weighed, weightless = replace(best, weighed=True), replace(best, gravity=np.zeros(3))
    if best.gravity.any() and trial.shown(weightless, weighed):
        findings.append(_weightless(trial, weightless, weighed))
        best = weightless
    elif (best.gravity != columns.gravity).any():
        findings.append(_tilted(trial, best))
    delay = float("nan")
    if delays:
        late, delay = _late(trial, best)
        findings += late
    findings = findings or list(_unrelated(trial, best))
    mend = {"samples.effort_scale": tuple(float(f"{v:.4g}") for v in best.factor)}
    kinds = ("effort sign", "effort scale")
    findings = [replace(f, mends=mend) if f.kind in kinds else f for f in findings]
    return Verdict(findings, best, trial, delay)


def _likeliest(trial: Trial, as_is: Hypothesis) -> Hypothesis:
    """Of signs, exchanged joints and gravity the simplest that nothing is shown against.

    Turned efforts look like another gravity, and the other way round.
    """
    told = _signed(trial, replace(as_is, source=_order(trial, as_is)))
    told = _needed(trial, told, as_is)
    candidates = [told]
    for gravity in _directions(trial, told):
        tilted = replace(told, gravity=gravity, factor=as_is.factor)
        candidates.append(_needed(trial, _signed(trial, tilted), as_is))
    best = as_is
    for candidate in sorted(candidates, key=lambda h: _faults(trial, h, as_is)):
        level = replace(candidate, gravity=_level(candidate.gravity, as_is.gravity))
        beyond = level.key == candidate.key or trial.shown(candidate, level)
        if candidate.key != best.key and beyond and trial.shown(candidate, best):
            best = candidate
    return best


def _level(gravity: Array, told: Array) -> Array:
    """The gravity that is MIN_TILT from what is told towards another."""
    size = float(np.linalg.norm(told))
    if not size or (gravity == told).all():
        return gravity
    away = gravity - (gravity @ told) / size**2 * told
    away = away if np.linalg.norm(away) > 1e-6 * size else _ring(told, np.pi / 2, 1)[0]
    away = away / np.linalg.norm(away)
    tilt = np.radians(MIN_TILT)
    return np.asarray(np.cos(tilt) * told + size * np.sin(tilt) * away)


def _faults(trial: Trial, h: Hypothesis, as_is: Hypothesis) -> int:
    """Number of faults in a hypothesis; the sign of all efforts is one convention."""
    turned = (h.factor < 0.0)[trial.used]
    count = 1 if turned.all() else int(turned.sum())
    pairs = int((h.source != as_is.source).sum()) // 2
    return count + pairs + bool((h.gravity != as_is.gravity).any())


def _needed(trial: Trial, h: Hypothesis, as_is: Hypothesis) -> Hypothesis:
    """The hypothesis with those exchanged joints and signs alone that are shown one by one."""
    first = np.flatnonzero(h.source > as_is.source)
    parts = [np.array((k, h.source[k])) for k in first]
    parts += [np.array((k,)) for k in np.flatnonzero(h.factor < 0.0)]
    for part in parts:
        factor, source = h.factor.copy(), h.source.copy()
        factor[part], source[part] = 1.0, part if len(part) > 1 else source[part]
        without = replace(h, factor=factor, source=source)
        if len(part) > 1:
            without = _signed(trial, without, part)
        if without.key != h.key and not trial.shown(h, without):
            h = without
    return h


def _signed(trial: Trial, h: Hypothesis, joints: Indices | None = None) -> Hypothesis:
    """With the sign of each of the joints' efforts that the URDF's torques explain better."""
    places = np.flatnonzero(trial.used)
    chosen = places if joints is None else joints
    factor = h.factor.copy()
    factor[chosen] *= -1.0
    turned = trial.squares(replace(h, factor=factor), "urdf").mean(axis=0)
    better = places[turned < trial.squares(h, "urdf").mean(axis=0)]
    factor = h.factor.copy()
    factor[better] *= -1.0
    return replace(h, factor=factor)


def _order(trial: Trial, h: Hypothesis) -> Indices:
    """(k,) the place of each joint's effort, where pairs explain each other's better, both."""
    places, efforts = np.flatnonzero(trial.used).tolist(), trial.efforts(h)
    torques = [a.T for a in anchored(trial.columns, h.gravity)]
    k = len(h.source)
    error = np.ones((k, k))  # of the effort j by the torques of joint i, of either sign
    for i, j in itertools.product(places, repeat=2):
        trial.between()
        columns = (torques[0][i], torques[1][i], trial.columns.effects[:, i])
        error[i, j] = min(anchored_fit(s * efforts[:, j], *columns).error for s in (1.0, -1.0))
    source, left = h.source.copy(), set(places)
    pairs = list(itertools.combinations(places, 2))
    own = error.diagonal()
    ratios = {(i, j): (error[i, j] + error[j, i]) / (own[i] + own[j]) for i, j in pairs}
    for i, j in sorted(pairs, key=lambda pair: ratios[pair]):
        if {i, j} <= left and error[i, j] < own[j] and error[j, i] < own[i]:
            left -= {i, j}
            source[[i, j]] = j, i
    return source


def _exchanged(names: Sequence[str], trial: Trial, h: Hypothesis) -> Iterator[Finding]:
    for i, j in enumerate(h.source.tolist()):
        if i < j:
            source = h.source.copy()
            source[[i, j]] = i, j
            before = _share(trial, _signed(trial, replace(h, source=source), h.source[[i, j]]))
            after = _share(trial, h)
            yield Finding(
                EXCHANGED,
                f"the efforts of {names[i]} and {names[j]} are exchanged: "
                f"{50.0 * (before[i] + before[j]):.0f} % of their variance is unexplained as they "
                f"are, {50.0 * (after[i] + after[j]):.1f} % the other way",
                "put the names in the order of the values where the messages are filled",
                (names[i], names[j]),
                amount=(after[i] + after[j]) / (before[i] + before[j]),
            )


def _turned(names: Sequence[str], trial: Trial, h: Hypothesis) -> Iterator[Finding]:
    turned = _share(trial, h)
    as_is = _share(trial, replace(h, factor=np.abs(h.factor)))
    for k in np.flatnonzero(h.factor < 0.0).tolist():
        yield Finding(
            "effort sign",
            f"the effort of {names[k]} has the opposite sign: with the URDF's torques and friction "
            f"{100.0 * as_is[k]:.0f} % of its variance is unexplained as it is, "
            f"{100.0 * turned[k]:.1f} % turned",
            "samples.effort_scale turns it; or the joint's axis in the URDF is the wrong way round",
            (names[k],),
            amount=-1.0,
        )


def _share(trial: Trial, h: Hypothesis) -> Array:
    """(k,) of each effort's variance what the URDF's torques and friction leave."""
    share = np.ones(len(h.factor))
    share[trial.used] = np.minimum(trial.squares(h, "urdf").mean(axis=0), 1.0)
    return share


def _scaled(
    names: Sequence[str], trial: Trial, h: Hypothesis
) -> tuple[list[Finding], Hypothesis]:
    """Efforts that are not in N m, and the hypothesis that they have their factors."""
    k, efforts = len(names), trial.efforts(h)
    inertia, weight = anchored(trial.columns, h.gravity)
    scale = np.ones(k)
    for j in np.flatnonzero(trial.used).tolist():
        total, effects = inertia[:, j] + weight[:, j], trial.columns.effects[:, j]
        scale[j] = anchored_fit(efforts[:, j], total, 0.0 * total, effects).inertia
    wrong = trial.used & (scale > 0.0) & ~((scale > MIN_SCALE) & (scale < MAX_SCALE))
    for j in np.flatnonzero(wrong).tolist():
        factor = np.where(wrong, h.factor / np.where(wrong, scale, 1.0), h.factor)
        way = tuple(np.where(np.arange(k) == j, 1, 0).tolist())
        accused = replace(h, factor=factor, scaled=way)
        factor = np.where(np.arange(k) == j, h.factor, factor)
        innocent = replace(h, factor=factor, scaled=tuple(-one for one in way))
        wrong[j] = trial.shown(accused, innocent)
    if not wrong.any():
        return [], h
    found = np.flatnonzero(wrong).tolist()
    told = ", ".join(f"{names[j]} {scale[j]:.3g}" for j in found)
    right = np.where(wrong, 1.0 / np.where(wrong, scale, 1.0), 1.0)
    guess, unknown = "", ~wrong
    if 2 * wrong.sum() > trial.used.sum() and unknown.any():
        # The same driver most likely: their factor is that of the others till it is known.
        right = np.where(unknown, np.median(right[wrong]), right)
        left = listing([names[j] for j in np.flatnonzero(unknown).tolist()])
        guess = f"; {left} can't be told and got the others'"
    finding = Finding(
        "effort scale",
        f"efforts are not in N m: measured over the URDF's torque {told}",
        "currents need the torque constant times the gear: samples.effort_scale has the factors "
        f"that fit the URDF's masses{guess}",
        tuple(names[j] for j in found),
        amount=float(np.median(right[wrong])),
    )
    return [finding], replace(h, factor=right * h.factor)


def _compared(trial: Trial, accused: Hypothesis, innocent: Hypothesis) -> str:
    """The held-out errors of the model that tells the two apart best."""
    models = ("urdf", "free")
    model = max(models, key=lambda m: trial.error(innocent, m) / trial.error(accused, m))
    by = {"urdf": "the URDF's torques", "free": "free inertial parameters"}[model]
    before, after = (100.0 * trial.error(h, model) for h in (innocent, accused))
    return f"with {by} and friction {after:.2g} % of the efforts' variance is unexplained, " + (
        f"as configured {before:.2g} %"
    )


def _tilted(trial: Trial, h: Hypothesis) -> Finding:
    told = trial.columns.gravity
    angle, text = _angle(h.gravity, told), ", ".join(f"{v:.2f}" for v in h.gravity)
    return Finding(
        "tilted base",
        f"gravity is {angle:.1f} degrees from where it is configured, [{text}]: "
        + _compared(trial, h, replace(h, gravity=told)),
        "gravity is set in the frame of the root link; or the URDF's first joints are turned",
        amount=angle,
        mends={"gravity": tuple(h.gravity.tolist())},
    )


def _weightless(trial: Trial, h: Hypothesis, told: Hypothesis) -> Finding:
    return Finding(
        "gravity left out",
        "the efforts have no gravity in them: without it "
        f"{100.0 * trial.error(h):.2g} % of their variance is unexplained, with {MIN_SCALE:g} of "
        f"the URDF's weight or more {100.0 * trial.error(told):.2g} %",
        "the driver gives what it commands beyond its own gravity compensation: gravity is set "
        "to 0",
        amount=trial.error(h) / trial.error(told),
        mends={"gravity": (0.0, 0.0, 0.0)},
    )


def _late(trial: Trial, h: Hypothesis) -> tuple[list[Finding], float]:
    """The finding on the efforts' delay, if there is one, and the delay as it seems, s."""

    def left(lag: float) -> float:
        squares = trial.squares(replace(h, lag=lag), "free")
        return float(np.log(squares.mean(axis=0) + MIN_ERROR).mean())

    errors = np.array([left(lag) for lag in LAGS])
    k = int(np.argmin(errors))
    if not 0 < k < len(LAGS) - 1:
        return [], 0.0
    a, b, c = errors[k - 1 : k + 2]
    lag = float(LAGS[k] + 0.5 * (LAGS[1] - LAGS[0]) * (a - c) / max(a - 2.0 * b + c, 1e-300))
    late = replace(h, lag=lag)

    def beyond(limit: float) -> bool:
        limit = float(np.copysign(limit, lag))
        return abs(lag) > abs(limit) and trial.shown(late, replace(h, lag=limit))

    if not beyond(SMALL_DELAY):
        return [], lag
    finding = Finding(
        "effort delay",
        f"efforts come about {1e3 * abs(lag):.0f} ms {'late' if lag > 0.0 else 'early'} against "
        f"the positions: shifted, {_compared(trial, late, h)}",
        "read both in one cycle of the driver; or samples.effort_delay shifts them. Elasticity "
        "looks like a few ms",
        amount=lag,
        mends={"samples.effort_delay": round(lag, 4)},
        fault=beyond(MIN_DELAY),
    )
    return [finding], lag


def _unrelated(trial: Trial, h: Hypothesis) -> Iterator[Finding]:
    """Efforts of which on no joint either model predicts the half."""
    left, nothing = {}, trial.squares(h, "none")
    for model in ("urdf", "free"):
        squares = trial.squares(h, model)
        for k in range(int(trial.used.sum())):
            ratio, deviation = trial.ratios(nothing[:, [k]], squares[:, [k]])
            if (ratio + trial.level * deviation > MOST).any():
                return
        left[model] = 100.0 * float(squares.mean())
    yield Finding(
        UNRELATED,
        "the efforts follow no motion of this robot: fitted on one half of the motion, the URDF's "
        f"torques and friction leave {left['urdf']:.0f} % of the other half's variance "
        f"unexplained, free inertial parameters {left['free']:.0f} %",
        "publish measured torques or currents, no external or commanded ones; or the efforts are "
        "of other joints, at another time, or of another robot than the URDF's",
        amount=min(left.values()) / 100.0,
    )


# -------------------------------------------------------------------------------------------------
# Directions of gravity that are tried


def _directions(trial: Trial, h: Hypothesis) -> Iterator[Array]:
    """Where gravity may point by the URDF's masses and by free ones, and the axes near to that.

    On floors, walls and ceilings gravity is along an axis. By free parameters the opposite
    direction, with negative masses, is as good.
    """
    told = h.gravity
    size = float(np.linalg.norm(told))
    if not size:
        return
    tried = [told]
    free = _narrowed(trial, h)
    for direction in (_by_urdf(trial, h), free, -free):
        axis, k = np.zeros(3), int(np.argmax(np.abs(direction)))
        axis[k] = np.sign(direction[k])
        for one in (axis, direction):
            gravity: Array = np.round(size / float(np.linalg.norm(one)) * one, 3) + 0.0  # no -0
            if all(_angle(gravity, other) > MIN_TILT for other in tried):
                tried.append(gravity)
                yield gravity


def _angle(a: Array, b: Array) -> float:
    """Degrees between two directions."""
    cosine = float(a @ b) / float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))


def _by_urdf(trial: Trial, h: Hypothesis) -> Array:
    """(3,) gravity by least squares with the URDF's masses and each joint's own effects."""
    columns, used = trial.columns, np.flatnonzero(trial.used)
    torques, efforts = columns.parts @ columns.prior, trial.efforts(h)
    A, b = np.zeros((3, 3)), np.zeros(3)
    for k in used:
        own = np.column_stack((columns.effects[:, k], torques[0, :, k]))
        basis = np.linalg.qr(own + 1e-12 * np.eye(*own.shape))[0]
        rows = np.column_stack((torques[1:, :, k].T, efforts[:, k])) / max(
            float(efforts[:, k].std()), 1e-300
        )
        rows = rows - basis @ (basis.T @ rows)
        A += rows[:, :3].T @ rows[:, :3]
        b += rows[:, :3].T @ rows[:, 3]
    found = np.asarray(np.linalg.lstsq(A, b, rcond=1e-9)[0], dtype=np.float64)
    return found if found.any() else h.gravity


def _narrowed(trial: Trial, h: Hypothesis) -> Array:
    """(3,) gravity with the least error of free parameters: of many, then by rings around it.

    Where the arm moves little there are several minima, tens of degrees apart.
    """
    fit, y, best = trial.free[0].with_rows(trial.free[1]), trial.efforts(h), h.gravity
    scale = np.sqrt(np.maximum(fit.solve(best, y)[1], MIN_ERROR * y[:, trial.used].var(axis=0)))
    products, size = fit.products(y), float(np.linalg.norm(best))

    def error(gravity: Array) -> float:
        trial.between()
        left = fit.least_squares(gravity, products, scale, signed=True)[1]
        return float(np.mean(left / scale**2))

    around = size * _sphere(DIRECTIONS)
    best = np.asarray(min((best, *around[around @ best > 0.0]), key=error), dtype=np.float64)
    least = error(best)
    for width in np.radians([12.0, 7.0, 4.0, 2.0, 1.0, 0.5]):
        ring = np.asarray(size * _ring(best, float(width)), dtype=np.float64)
        for candidate in ring:
            if (e := error(candidate)) < least:
                best, least = candidate, e
    return best


def _sphere(count: int) -> Array:
    """(count, 3) unit vectors on a spiral, about evenly over all directions."""
    k = np.arange(count) + 0.5
    z, turn = 1.0 - 2.0 * k / count, np.pi * (1.0 + np.sqrt(5.0)) * k
    flat = np.sqrt(1.0 - z**2)
    return np.column_stack((flat * np.cos(turn), flat * np.sin(turn), z))


def _ring(center: Array, width: float, count: int = 8) -> Array:
    """(count, 3) unit vectors `width` rad from `center`."""
    axis = center / np.linalg.norm(center)
    u = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    u /= np.linalg.norm(u)
    turn = 2.0 * np.pi * np.arange(count)[:, None] / count
    around = np.cos(turn) * u + np.sin(turn) * np.cross(axis, u)
    return np.asarray(np.cos(width) * axis + np.sin(width) * around)


# -------------------------------------------------------------------------------------------------
# While a robot learns

MOTION = 30.0  # s of motion that are examined
SPACING_NS = SECOND // 20  # between the samples that are kept: motion goes no faster than that
MAX_STEP = 0.25  # s that count as motion between two of them
FURTHER = "`semiparam doctor BAG` examines a recording of it further: delays, messages"


class FirstMotion:
    """A robot's first motion, whose efforts are compared once with the URDF's torques.

    It takes the samples that are learned, in the thread that learns them. A sample costs a copy,
    and the comparison some seconds, in parts of some milliseconds.

    Attributes
    ----------
    state: how far it is, in a few words.
    faults: of each found a name, and a sentence with what to write into the YAML.
    """

    def __init__(self, model: RobotModel, scale: Array) -> None:
        """For efforts that are the robot's times `scale` (n_joints,), `samples.effort_scale`."""
        self._model, self._scale = model, scale
        self._rows: list[Array] = []
        self._last = 0  # stamp, ns
        self._moved = 0.0  # s
        self._reported = 0
        self.faults: list[tuple[str, str]] = []
        self.state = f"after {MOTION:g} s of motion with efforts"

    def take(self, sample: Sample, between: Callable[[], None] = lambda: None) -> None:
        """Keep a sample in motion; compare all when they are enough, calling `between` its parts.

        Nothing that goes wrong there is raised: `state` says it.
        """
        y, ahead = sample.y, sample.stamp - self._last
        if self._moved >= MOTION or y is None or not sample.informative or 0 <= ahead < SPACING_NS:
            return
        if not np.isfinite(y).any():
            return
        self._last = sample.stamp
        self._moved += min(ahead / SECOND, MAX_STEP) if ahead > 0 else 0.0
        self._rows.append(np.array((sample.q, sample.dq, sample.ddq, y)))
        if self._moved < MOTION:
            self.state = f"{self._moved:.0f} of {MOTION:g} s of motion with efforts"
            return
        try:
            findings, left = self._findings(between)
            self.faults = [(f.kind, self._sentence(f)) for f in findings]
            count = len(self.faults)
            self.state = f"{count or 'no'} fault{'s' * (count != 1)} of efforts{left}; {FURTHER}"
        except Exception as error:  # MemoryError, too: learning goes on without
            self.state = f"not examined: {type(error).__name__}: {error}"
        self._rows = []

    def news(self) -> list[str]:
        """Sentences on the faults that were found since the last call."""
        new, self._reported = self.faults[self._reported :], len(self.faults)
        return [f"{kind}: {sentence}" for kind, sentence in new]

    def values(self) -> dict[str, str]:
        """The state and the faults, for diagnostics."""
        return {"first motion": self.state, **{f"first motion: {k}": s for k, s in self.faults}}

    def _findings(self, between: Callable[[], None]) -> tuple[list[Finding], str]:
        """The findings, and what is to be said of joints that were left out."""
        model, rows = self._model, np.array(self._rows)
        # A joint without an effort is left out, and so is an instant that lacks another's.
        used = np.isfinite(rows[:, 3]).mean(axis=0) > 0.5
        rows = rows[np.isfinite(rows[:, 3, used]).all(axis=1)]
        q, dq, ddq, y = np.where(np.isfinite(rows), rows, 0.0).transpose(1, 0, 2)
        y = np.where(used, y, 0.0)
        used &= np.ptp(y, axis=0) > 0.0
        left = [name for name, own in zip(model.joint_names, used, strict=True) if not own]
        if not used.any() or len(q) < 4 * BLOCKS:
            return [], "; too few instants have the efforts of all joints"
        coulomb = np.tanh(dq / model.config.coulomb_velocity)
        effects = np.stack((dq, coulomb, np.ones_like(dq), ddq), axis=-1)
        between()
        parts = np.array(inertial_parts(model, q, dq, ddq))
        times = np.arange(len(q), dtype=np.float64) * (SPACING_NS / SECOND)
        gravity = np.array(model.config.gravity)
        columns = Columns(
            times, q, dq, parts, effects, y, times, y, model.inertial_prior, gravity
        )
        found = effort_findings(model.joint_names, columns, used, between)
        scale = [float(f"{v:.4g}") for v in found.hypothesis.factor * self._scale]
        findings = [
            replace(f, mends={**f.mends, "samples.effort_scale": scale})
            if "samples.effort_scale" in f.mends
            else f
            for f in found.findings
        ]
        return findings, f"; without {listing(left)}, which has no efforts" if left else ""

    @staticmethod
    def _sentence(finding: Finding) -> str:
        mend = "; ".join(f"{name}: {value}" for name, value in finding.mends.items())
        said = f"{finding.evidence}. To do: {finding.advice}"
        return f"{said}. In the YAML: {mend}" if mend else said
