"""Faults of efforts that the URDF's torques show: sign, exchanged joints, scale, missing gravity.

A joint's effort is fitted by the URDF's inertial and gravity torques and by friction, all with
factors that can't be negative: they can't explain an effort of the wrong sign, or of another joint.
Since the factors are free, wrong masses matter little. The thresholds keep a distance from what the
logs of five real arms show without any fault (benchmarks/results/doctor.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pinocchio as pin

from semiparam_dynamics.base.arrays import SECOND, Array, Mask
from semiparam_dynamics.base.errors import listing
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.robot.model import RobotModel

MAX_ERROR_RATIO = 0.8  # of the errors with the other sign and as it is, from where it is turned
MIN_GAIN = 0.1  # of the effort's variance: what a hypothesis must explain more
MAX_SWAPPED_RATIO = 0.5  # of both errors with two efforts exchanged and as they are
MAX_UNEXPLAINED = 0.15  # of the effort's variance: a larger error is no evidence on scales
MIN_TORQUE_SHARE = 0.3  # of the effort's deviation that the URDF's torque must make
MIN_SCALE, MAX_SCALE = 0.3, 20.0  # times the URDF's torque: wrong masses stay within
MIN_WEIGHT_SHARE = 0.2  # of the effort's deviation that the URDF's weight must make
MAX_GRAVITY_RATIO = 0.6  # of the errors with another gravity and as configured
MIN_GRAVITY_GAIN = 1.1  # times the error with gravity, that an error without has at least
EXCHANGED = "exchanged joints"
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
class AnchoredFit:
    """The fit of one effort by one joint of the URDF with factors that can't be negative.

    error: squared error in units of the effort's variance.
    inertia, gravity: the factors of what the URDF predicts; viscous, coulomb: of friction.
    """

    error: float
    inertia: float
    gravity: float
    viscous: float
    coulomb: float


def anchored_fit(y: Array, inertia: Array, weight: Array, effects: Array) -> AnchoredFit:
    """Fit y (n,) by the URDF's torques (n,) of a joint and its effects (n, 4), a constant too.

    Non-negative least squares: the solution is that of one subset of the columns alone, and there
    are few. (scipy's takes a node a second to import.)
    """
    dq, coulomb, _, rotor = effects.T
    rows = np.column_stack((inertia, weight, dq, coulomb, rotor, y))
    rows = rows - rows.mean(axis=0)
    size = np.sqrt(np.mean(rows**2, axis=0))
    if not size[-1] > 0.0:
        return AnchoredFit(0.0, 0.0, 0.0, 0.0, 0.0)
    size = np.where(size > 1e-9 * max(float(size[:-1].max()), 1e-300), size, np.inf)
    size[-1] = y.std()
    gram = (rows / size).T @ (rows / size) / len(y)
    left_out = (1.0 - SUBSETS)[:, :, None] * np.eye(5)
    within = SUBSETS[:, :, None] * gram[:-1, :-1] * SUBSETS[:, None]
    right = SUBSETS * gram[:-1, -1]
    found = np.linalg.solve(within + left_out + 1e-12 * np.eye(5), right[..., None])[..., 0]
    errors = np.where((found >= 0.0).all(axis=1), 1.0 - (found * right).sum(axis=1), 1.0)
    best = int(np.argmin(errors))
    if not errors[best] < 1.0:
        return AnchoredFit(1.0, 0.0, 0.0, 0.0, 0.0)
    factors = found[best] * size[-1] / size[:-1]
    return AnchoredFit(max(float(errors[best]), 0.0), *factors[:4].tolist())


@dataclass(frozen=True)
class JointEfforts:
    """n instants of k joints: efforts, and what can explain them.

    Attributes
    ----------
    y: (n, k) efforts. inertia, weight: (n, k) by the URDF. effects: (n, k, 4) of each joint its
        viscous, Coulomb, constant and rotor column. between: called before each fit.
    """

    names: tuple[str, ...]
    y: Array
    inertia: Array
    weight: Array
    effects: Array
    between: Callable[[], None] = lambda: None

    def fit(self, effort: int, joint: int, sign: float = 1.0) -> AnchoredFit:
        """Fit an effort, or its opposite, by a joint's columns."""
        self.between()
        inertia, weight = self.inertia[:, joint], self.weight[:, joint]
        return anchored_fit(sign * self.y[:, effort], inertia, weight, self.effects[:, joint])

    def unexplained(self, used: Mask) -> float:
        """Mean share of the variance of the efforts `used` (k,) that their fits leave."""
        errors = [self.fit(k, k).error for k in np.flatnonzero(used).tolist()]
        return float(np.mean(errors)) if errors else 1.0


def turned_or_exchanged(efforts: JointEfforts, used: Mask) -> tuple[list[Finding], Array, Mask]:
    """Findings, signs (k,), and the joints (k,) `used` whose efforts aren't exchanged."""
    findings = list(exchanged_findings(efforts, used))
    mixed = {name for finding in findings for name in finding.joints}
    alone = used & np.array([name not in mixed for name in efforts.names])
    sign = np.ones(len(efforts.names))
    for finding in sign_findings(efforts, alone):
        findings.append(finding)
        sign[efforts.names.index(finding.joints[0])] = -1.0
    return findings, sign, alone


def fault_count(findings: Sequence[Finding], sign: Array, used: Mask) -> int:
    """Number of findings; the sign of all efforts is one convention."""
    return len(findings) - (int(used.sum()) - 1 if (sign[used] < 0.0).all() else 0)


def sign_findings(efforts: JointEfforts, used: Mask) -> Iterator[Finding]:
    """Efforts of the opposite sign, among those of the joints `used` (k,)."""
    for k in np.flatnonzero(used).tolist():
        as_is, turned = (efforts.fit(k, k, sign).error for sign in (1.0, -1.0))
        if turned < MAX_ERROR_RATIO * as_is and as_is - turned > MIN_GAIN:
            yield Finding(
                "effort sign",
                f"the effort of {efforts.names[k]} has the opposite sign: with the URDF's torques "
                f"and friction {100 * as_is:.0f} % of its variance is unexplained as it is, "
                f"{100 * turned:.1f} % turned",
                "samples.effort_scale turns it; or the joint's axis in the URDF is the wrong way "
                "round",
                (efforts.names[k],),
                amount=-1.0,
            )


def exchanged_findings(efforts: JointEfforts, used: Mask) -> Iterator[Finding]:
    """Pairs of efforts, among those of the joints `used` (k,), that are each other's."""
    names, joints = efforts.names, np.flatnonzero(used).tolist()
    # error[i, j]: of the effort j by the torques of joint i, of either sign
    error = np.ones((len(names), len(names)))
    for i, j in itertools.product(joints, repeat=2):
        error[i, j] = min(efforts.fit(j, i, sign).error for sign in (1.0, -1.0))
    pairs = list(itertools.combinations(joints, 2))
    ratios = {(i, j): (error[i, j] + error[j, i]) / (error[i, i] + error[j, j]) for i, j in pairs}
    left = set(joints)
    for i, j in sorted(pairs, key=lambda pair: ratios[pair]):
        before, after = error[i, i] + error[j, j], error[i, j] + error[j, i]
        both = error[i, j] < error[j, j] and error[j, i] < error[i, i]
        gains = ratios[i, j] < MAX_SWAPPED_RATIO and before - after > 2.0 * MIN_GAIN
        if {i, j} <= left and both and gains:
            left -= {i, j}
            yield Finding(
                EXCHANGED,
                f"the efforts of {names[i]} and {names[j]} are exchanged: "
                f"{50 * before:.0f} % of their variance is unexplained as they are, "
                f"{50 * after:.1f} % the other way",
                "put the names in the order of the values where the messages are filled",
                (names[i], names[j]),
                amount=ratios[i, j],
            )


def scale_findings(efforts: JointEfforts, used: Mask) -> Iterator[tuple[Finding, Array]]:
    """Efforts that are no N m; each with the factors (k,) that make them so."""
    names, total = efforts.names, efforts.inertia + efforts.weight
    factors, shares = np.ones(len(names)), np.zeros(len(names))
    for k in np.flatnonzero(used).tolist():
        y = efforts.y[:, k]
        fit = anchored_fit(y, total[:, k], 0.0 * y, efforts.effects[:, k])
        spread = float(y.std())
        share = fit.inertia * float(total[:, k].std()) / spread if spread > 0.0 else 0.0
        if fit.error < MAX_UNEXPLAINED and share > MIN_TORQUE_SHARE and fit.inertia > 0.0:
            factors[k], shares[k] = 1.0 / fit.inertia, share
    wrong = [k for k in np.flatnonzero(shares) if not MIN_SCALE < 1.0 / factors[k] < MAX_SCALE]
    if not wrong:
        return
    all_wrong = len(wrong) == np.count_nonzero(shares)
    told = ", ".join(f"{names[k]} {1.0 / factors[k]:.3g}" for k in wrong)
    mend = np.where(np.isin(np.arange(len(names)), wrong), factors, 1.0)
    unknown = [names[k] for k in range(len(names)) if not shares[k]]
    guess = ""
    if all_wrong and unknown:
        # The same driver most likely: their factor is that of the others till it is known.
        mend = np.where(shares == 0.0, np.median(factors[wrong]), mend)
        guess = f"; {listing(unknown)} can't be told and got the others'"
    yield (
        Finding(
            "effort scale",
            f"efforts are not in N m: measured over the URDF's torque {told}",
            "currents need the torque constant times the gear: samples.effort_scale has the "
            f"factors that fit the URDF's masses{guess}",
            tuple(names[k] for k in wrong),
            amount=float(np.median([factors[k] for k in wrong])),
        ),
        mend,
    )


# -------------------------------------------------------------------------------------------------
# While a robot learns

MOTION = 30.0  # s of motion that are examined
SPACING_NS = SECOND // 20  # between the samples that are kept: motion goes no faster than that
MAX_STEP = 0.25  # s that count as motion between two of them
FURTHER = "`semiparam doctor BAG` examines a recording of it further: delays, tilts, messages"


class FirstMotion:
    """A robot's first motion, whose efforts are compared once with the URDF's torques.

    It takes the samples that are learned, in the thread that learns them. A sample costs a
    product, and the comparison some ten milliseconds, in parts.

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
        self.state = f"after {MOTION:g} s of motion"

    def take(self, sample: Sample, between: Callable[[], None] = lambda: None) -> None:
        """Keep a sample in motion; compare all when they are enough, calling `between` its parts.

        Nothing that goes wrong there is raised: `state` says it.
        """
        y, ahead = sample.y, sample.stamp - self._last
        if self._moved >= MOTION or y is None or not sample.informative or 0 <= ahead < SPACING_NS:
            return
        if not np.isfinite(y).all():
            return
        self._last = sample.stamp
        self._moved += min(ahead / SECOND, MAX_STEP) if ahead > 0 else 0.0
        torque = sample.regressor @ self._model.prior
        self._rows.append(np.concatenate((sample.q, sample.dq, sample.ddq, y, torque)))
        if self._moved < MOTION:
            return
        try:
            self.faults = [(f.kind, self._sentence(f)) for f in self._findings(between)]
            count = len(self.faults)
            self.state = f"{count or 'no'} fault{'s' * (count != 1)} of efforts; {FURTHER}"
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

    def _findings(self, between: Callable[[], None]) -> list[Finding]:
        model = self._model
        q, dq, ddq, y, torque = np.split(np.array(self._rows), 5, axis=1)
        weights = unit_weights(model, q)
        gravity = np.array(model.config.gravity)
        inertia = torque - np.tensordot(gravity, weights, axes=1)
        coulomb = np.tanh(dq / model.config.coulomb_velocity)
        effects = np.stack((dq, coulomb, np.ones_like(dq), ddq), axis=-1)
        used = np.ptp(y, axis=0) > 0.0

        def efforts(gravity: Array) -> JointEfforts:
            weight = np.tensordot(gravity, weights, axes=1)
            return JointEfforts(model.joint_names, y, inertia, weight, effects, between)

        findings, sign, alone, gravity = _with_fewest_faults(efforts, gravity, used)
        right = replace(efforts(gravity), y=sign * y)
        scale = sign.copy()
        for finding, factors in scale_findings(right, alone):
            findings.append(finding)
            scale *= factors
        value = [float(f"{v:.4g}") for v in scale * self._scale]
        mend = {"samples.effort_scale": value}
        kinds = ("effort sign", "effort scale")
        return [replace(f, mends=mend) if f.kind in kinds else f for f in findings]

    @staticmethod
    def _sentence(finding: Finding) -> str:
        mend = "; ".join(f"{name}: {value}" for name, value in finding.mends.items())
        said = f"{finding.evidence}. To do: {finding.advice}"
        return f"{said}. In the YAML: {mend}" if mend else said


def unit_weights(model: RobotModel, q: Array) -> Array:
    """(3, n, k) efforts of the URDF's weight at q (n, k), for 1 m/s^2 along each axis.

    The model's own working memory is not used.
    """
    kinematics = model.kinematics.copy()
    data = kinematics.createData()
    joints = [kinematics.joints[kinematics.getJointId(name)] for name in model.joint_names]
    weights, x = np.empty((3, *q.shape)), pin.neutral(kinematics)
    for axis, gravity in enumerate(np.eye(3)):
        kinematics.gravity.linear = gravity
        for row, positions in zip(weights[axis], q.tolist(), strict=True):
            for joint, at in zip(joints, positions, strict=True):
                pose = [at] if joint.nq == 1 else [np.cos(at), np.sin(at)]
                x[joint.idx_q : joint.idx_q + joint.nq] = pose
            row[:] = pin.computeGeneralizedGravity(kinematics, data, x)[[j.idx_v for j in joints]]
    return weights


def _with_fewest_faults(
    efforts: Callable[[Array], JointEfforts], gravity: Array, used: Mask
) -> tuple[list[Finding], Array, Mask, Array]:
    """Findings, signs (k,), joints that aren't exchanged (k,) and gravity (3,).

    Turned efforts look like another gravity, and the other way round: with the configured gravity,
    or with one along another axis, there are the fewest faults.
    """
    told = efforts(gravity)
    findings, sign, alone = turned_or_exchanged(told, used)
    error = replace(told, y=sign * told.y).unexplained(alone)
    best = fault_count(findings, sign, used), error, findings, sign, alone, gravity
    weighed = used & (told.weight.std(axis=0) > MIN_WEIGHT_SHARE * told.y.std(axis=0))
    if not weighed.any():
        return best[2:]
    doubtful = bool(findings) or error > MAX_UNEXPLAINED
    size = float(np.linalg.norm(gravity)) if doubtful else 0.0
    for other in size * np.vstack((np.eye(3), -np.eye(3))) + 0.0:  # no -0
        if other @ gravity >= 0.9 * size**2:
            continue
        tried = efforts(other)
        found, turned, single = turned_or_exchanged(tried, used)
        left = replace(tried, y=turned * tried.y).unexplained(single)
        faults = fault_count(found, turned, used) + 1
        better = (faults, left) < best[:2]
        better |= not best[2] and not found and left < MAX_GRAVITY_RATIO * error
        if better and left < MAX_UNEXPLAINED:
            text = ", ".join(f"{v:g}" for v in other)
            finding = Finding(
                "gravity",
                f"gravity is rather [{text}] than as configured: with it the URDF's torques and "
                f"friction leave {100 * left:.1f} % of the efforts' variance unexplained, as "
                f"configured {100 * error:.0f} %",
                "gravity is set in the frame of the root link",
                mends={"gravity": other.tolist()},
            )
            best = faults, left, [finding, *found], turned, single, other
    without = replace(told, weight=0.0 * told.weight)
    if not best[2] and without.unexplained(weighed) < MIN_GRAVITY_GAIN * told.unexplained(weighed):
        finding = Finding(
            "gravity",
            "the efforts have nothing of the weight that the URDF's masses have",
            "where the driver reports what it commands beyond its own gravity compensation, set "
            "gravity to 0; else look at the base's tilt",
        )
        return [finding], sign, alone, 0.0 * gravity
    return best[2:]
