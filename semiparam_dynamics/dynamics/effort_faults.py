"""Faults of efforts that the dynamics show: sign, exchanged joints, scale, gravity, delay.

An accusation is a hypothesis beside the same one without it. Both are fitted on one half of a
motion, and the accused one has to predict the other half's efforts better, on each half, by a
jackknife over blocks of time (`effort_trials`). Two models judge: the URDF's own torques, joint by
joint, and free inertial parameters for all joints; friction can't push in either of them. One has
to show the fault, and predict the efforts then; the other must not contradict. `FirstMotion` asks
them of the first motion that a learner meets, `doctor/physics.py` of a recording.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from semiparam_dynamics.base.arrays import SECOND, Array, Indices, Mask
from semiparam_dynamics.base.errors import listing
from semiparam_dynamics.dynamics.effort_trials import (
    MAX_SCALE,
    MIN_ERROR,
    MIN_SCALE,
    MOST,
    Columns,
    Hypothesis,
    Trial,
    inertial_parts,
)
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.robot.model import COMPENSATED, RobotModel

EXCHANGED = "exchanged joints"
UNRELATED = "efforts follow no motion"


@dataclass(frozen=True)
class Finding:
    """A fault, or a fact worth knowing, with its evidence."""

    kind: str  # in a few words, the same for every log
    evidence: str  # a sentence with numbers
    advice: str  # what to do about it
    joints: tuple[str, ...] = ()  # those that it is about; empty: all
    amount: float = float("nan")  # in the unit that the evidence names; NaN where it has none
    mends: Mapping[str, object] = field(default_factory=dict)  # parameters that put it right
    fault: bool = True  # False for a fact that may be as it should be


MIN_TILT = 2.5  # degrees: what a base is levelled to
SMALL_DELAY, MIN_DELAY = 0.005, 0.017  # s of delay: worth a note, and a fault
LAGS = 0.01 * np.arange(-4, 7)  # s that are tried
DIRECTIONS = 200  # of gravity that are tried: 15 degrees apart


@dataclass(frozen=True)
class Verdict:
    """The evidence of a motion on its efforts."""

    findings: list[Finding]
    hypothesis: Hypothesis  # the likeliest
    trial: Trial  # in which hypotheses were tried
    delay: float = float("nan")  # s by which efforts seem to come late; NaN: that was not asked


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
    scales, scaled = _scaled(names, trial, best)
    if scales and not _beyond(trial, scaled, as_is):  # units explain what looked like a tilt
        scales, scaled = _scaled(names, trial, replace(best, gravity=as_is.gravity))
    findings, best = findings + scales, scaled
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
        new = candidate.key != best.key and _beyond(trial, candidate, as_is)
        if new and trial.shown(candidate, best):
            best = candidate
    return best


def _beyond(trial: Trial, h: Hypothesis, as_is: Hypothesis) -> bool:
    """Test whether a tilt, if there is one, is shown beside the nearest one that is no fault."""
    if (h.gravity == as_is.gravity).all():
        return True
    return trial.shown(h, replace(h, gravity=_level(h.gravity, as_is.gravity)))


def _level(gravity: Array, told: Array) -> Array:
    """The gravity at an angle of MIN_TILT from the configured one, towards another."""
    size = float(np.linalg.norm(told))
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
    turned = trial.each(replace(h, factor=factor), "urdf")
    better = places[turned < trial.each(h, "urdf")]
    factor = h.factor.copy()
    factor[better] *= -1.0
    return replace(h, factor=factor)


def _order(trial: Trial, h: Hypothesis) -> Indices:
    """(k,) the place of each joint's effort, where pairs explain each other's better, both."""
    places, efforts = np.flatnonzero(trial.used).tolist(), trial.efforts(h)
    k = len(h.source)
    error = np.ones((k, k))  # of the effort j by the torques of joint i, of either sign
    for i, j in itertools.product(places, repeat=2):
        trial.between()
        error[i, j] = min(trial.fit(h, i, s * efforts[:, j]).error for s in (1.0, -1.0))
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
    share[trial.used] = np.minimum(trial.each(h, "urdf"), 1.0)
    return share


def _scaled(names: Sequence[str], trial: Trial, h: Hypothesis) -> tuple[list[Finding], Hypothesis]:
    """Efforts that are not in N m, and the hypothesis that they have their factors."""
    k, efforts = len(names), trial.efforts(h)
    scale = np.ones(k)
    for j in np.flatnonzero(trial.used).tolist():
        scale[j] = trial.fit(h, j, efforts[:, j], whole=True).inertia
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
        "the driver takes gravity out by its own model: effort_gravity says so, and its errors are "
        "learned",
        amount=trial.error(h) / trial.error(told),
        mends={"effort_gravity": COMPENSATED},
    )


def _late(trial: Trial, h: Hypothesis) -> tuple[list[Finding], float]:
    """The finding on the efforts' delay, if there is one, and the delay as it seems, s."""

    def left(lag: float) -> float:
        return float(np.log(trial.each(replace(h, lag=lag), "free") + MIN_ERROR).mean())

    errors = np.array([left(lag) for lag in LAGS])
    k = int(np.argmin(errors))
    if not 0 < k < len(LAGS) - 1:
        return [], 0.0
    a, b, c = errors[k - 1 : k + 2]
    lag = float(LAGS[k] + 0.5 * (LAGS[1] - LAGS[0]) * (a - c) / max(a - 2.0 * b + c, 1e-300))
    late = replace(h, lag=lag)

    def beyond(limit: float) -> bool:
        # What errs less by one value than by its mirror image at the limit is beyond the limit.
        innocent = float(np.sign(lag)) * max(2.0 * limit - abs(lag), -limit)
        return abs(lag) > limit and trial.shown(late, replace(h, lag=innocent))

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
    left, nothing, joints = {}, trial.squares(h, "none"), int(trial.used.sum())
    for model in ("urdf", "free"):
        squares = trial.squares(h, model)
        for k in range(joints):
            ratio, deviation = trial.ratios(nothing[:, [k]], squares[:, [k]])
            if (ratio + trial.level(joints) * deviation > MOST).any():
                return
        left[model] = 100.0 * trial.error(h, model)
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
    """Directions of gravity by the URDF's masses and by free ones, and the axes near to these.

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
        seen = np.isfinite(efforts[:, k])
        own = np.column_stack((columns.effects[seen, k], torques[0, seen, k]))
        basis = np.linalg.qr(own + 1e-12 * np.eye(*own.shape))[0]
        rows = np.column_stack((torques[1:, seen, k].T, efforts[seen, k]))
        rows = rows / max(float(rows[:, 3].std()), 1e-300)
        rows = rows - basis @ (basis.T @ rows)
        A += rows[:, :3].T @ rows[:, :3]
        b += rows[:, :3].T @ rows[:, 3]
    found = np.asarray(np.linalg.lstsq(A, b, rcond=1e-9)[0], dtype=np.float64)
    return found if found.any() else h.gravity


def _narrowed(trial: Trial, h: Hypothesis) -> Array:
    """(3,) gravity with the least error of free parameters: of many, then by rings around it.

    Where the arm moves little there are several minima, tens of degrees apart.
    """
    y, best = trial.efforts(h), h.gravity
    halves = trial.free(y)
    fit, least_error = (
        halves[0].with_rows(halves[1]),
        MIN_ERROR * np.nanvar(y[:, trial.used], axis=0),
    )
    scale = np.sqrt(np.maximum(fit.solve(best, y)[1], least_error))
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
# The first motion of a robot that learns

EXAMINED_S = 30.0  # s of motion that are examined
SPACING_NS = SECOND // 20  # between the samples that are kept: motion goes no faster than that
MAX_STEP = 0.25  # s that count as motion between two of them
FURTHER = "`semiparam doctor BAG` examines a recording of it further: delays, messages"


class FirstMotion:
    """A robot's first motion, whose efforts are compared once with the URDF's torques.

    It takes the samples that are learned, each of which costs a copy. The comparison takes a second
    of a core, in some hundred parts, and may be made in a thread of its own.

    Attributes
    ----------
    state: how far it is, in a few words.
    findings: on the efforts, once they were compared.
    """

    def __init__(self, model: RobotModel, scale: Array) -> None:
        """For efforts that are the robot's times `scale` (n_joints,), `samples.effort_scale`."""
        self._model, self._scale = model, scale
        self._rows: list[Array] = []
        self._last = 0  # stamp, ns
        self._moved = 0.0  # s
        self._reported = 0
        self.findings: list[Finding] = []
        self.state = f"after {EXAMINED_S:g} s of motion with efforts"

    def take(self, sample: Sample) -> bool:
        """Keep a sample in motion; True where they are enough, and :meth:`examine` is to follow."""
        y, ahead = sample.y, sample.stamp - self._last
        if self._moved >= EXAMINED_S or not sample.informative or 0 <= ahead < SPACING_NS:
            return False
        if y is None or not np.isfinite(y).any():
            return False
        self._last = sample.stamp
        self._moved += min(ahead / SECOND, MAX_STEP) if ahead > 0 else 0.0
        self._rows.append(np.array((sample.q, sample.dq, sample.ddq, y)))
        self.state = f"{self._moved:.0f} of {EXAMINED_S:g} s of motion with efforts"
        return self._moved >= EXAMINED_S

    def examine(self, between: Callable[[], None] = lambda: None) -> None:
        """Compare all that was kept, calling `between` the parts.

        Nothing that goes wrong there is raised: `state` says it.
        """
        try:
            self.findings, left = self._findings(between)
            count = len(self.findings)
            self.state = f"{count or 'no'} fault{'s' * (count != 1)} of efforts{left}; {FURTHER}"
        except Exception as error:  # MemoryError, too: learning goes on without
            self.state = f"not examined: {type(error).__name__}: {error}"
        self._rows = []

    @property
    def faults(self) -> list[tuple[str, str]]:
        """Of each finding its name, and a sentence with what to write into the YAML."""
        return [(finding.kind, self._sentence(finding)) for finding in self.findings]

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
        q, dq, ddq, y = np.where(np.isfinite(rows), rows, 0.0).transpose(1, 0, 2)
        times = np.arange(len(q), dtype=np.float64) * (SPACING_NS / SECOND)
        coulomb = np.tanh(dq / model.config.coulomb_velocity)
        effects = np.stack((dq, coulomb, np.ones_like(dq), ddq), axis=-1)
        between()
        parts = inertial_parts(model, q, dq, ddq)
        prior, gravity, seen = model.inertial_prior, model.gravity, np.isfinite(rows[:, 3])
        columns = Columns(times, q, dq, parts, effects, y, times, y, prior, gravity, seen)
        used = columns.enough & (np.ptp(y, axis=0) > 0.0)
        left = [name for name, own in zip(model.joint_names, used, strict=True) if not own]
        if not used.any():
            return [], "; too few instants have efforts"
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
