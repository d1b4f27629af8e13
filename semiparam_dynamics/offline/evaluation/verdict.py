"""The model to use on a robot now, by what an evaluation measured, and whether that may be chance.

Errors of filtered signals are alike for about a second, and may be so for longer. So the motion is
cut into pieces, the longer the more of it there is (T^(1/3) s of T s: Hall, Horowitz and Jing 1995,
On blocking rules for the bootstrap with dependent data), and a ratio of errors is worked out again
without each of these in turn: by how much it changes then tells how far chance takes it (the
jackknife: Efron and Tibshirani 1993, An introduction to the bootstrap, chapter 11; with blocks,
Kuensch 1989). The interval is Student's, of the logarithm, so that with few pieces it is wide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import listing
from semiparam_dynamics.offline.evaluation.protocols import MIN_PART, ProtocolRun
from semiparam_dynamics.offline.page import number
from semiparam_dynamics.robot.model import RobotModel

USE_LEARNER, USE_RIGID_BODY, USE_NOTHING = "semiparametric", "rigid_body", "nothing"
MIN_PIECES = 2  # the least that an interval can be had of: with one degree of freedom it is wide
MIN_JUDGED_S = 2.0  # of motion, in which there are as many
CONFIDENCE = 0.9  # of the intervals, two-sided
CONTRARY_NMSE = 2.0  # of the URDF: a guess of the measurement's own size has that, a wrong sign 4
MAX_RIGID_BODY_NMSE = 0.2  # mean of the identified rigid body: arms in order are far below
MAX_JOINT_NMSE = 0.5  # of a joint that contradicts the URDF: one whose sign is wrong has more
BASELINES = {
    "urdf": "the URDF's own parameters",
    "plain_rigid_body": "a rigid body with viscous and Coulomb friction",
    "rigid_body": "the identified rigid body",
}
USE_NAMES = {
    USE_LEARNER: "the learner",
    USE_RIGID_BODY: BASELINES["rigid_body"],
    USE_NOTHING: "nothing yet",
}


@dataclass(frozen=True, slots=True)
class Ratio:
    """A model's mean squared error relative to another's, and the interval that chance explains."""

    value: float
    low: float
    high: float

    def words(self) -> str:
        """Such as "12 % less squared error (9 to 15 % less)" or "1/40 of the squared error"."""
        if self.value < 0.1:
            return f"1/{number(1.0 / self.value, 2)} of the squared error"
        if self.value > 2.0:
            return f"{number(self.value, 2)} times the squared error"
        near, far = sorted((self.low, self.high), key=lambda ratio: abs(1.0 - ratio))
        head, near_words, far_words = map(_percent, (self.value, near, far))
        if head == near_words == far_words:
            return f"{head} squared error"
        if near_words.split()[-1] == far_words.split()[-1]:  # both less, or both more
            near_words = near_words.split()[0]
        return f"{head} squared error ({near_words} to {far_words})"


def _percent(ratio: float) -> str:
    percent = round(100.0 * (1.0 - ratio))
    return f"{abs(percent)} % {'less' if percent > 0 else 'more'}" if percent else "the same"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The model to use, why, what to do next, and what it gains."""

    use: str  # `USE_LEARNER`, `USE_RIGID_BODY` or `USE_NOTHING`
    why: str  # a sentence, which names it
    advice: str
    gains: Mapping[str, Mapping[str, Ratio]]  # of errors, by baseline and protocol


def judge(model: RobotModel, runs: Mapping[str, ProtocolRun]) -> Verdict:
    """Judge the runs of an evaluation.

    The learner is to be used where it gains by more than chance on the URDF and on the identified
    rigid body, while it learns, and has no larger error than that with learning off, nor on states
    that are held out of it; else the rigid body where it gains on the URDF.
    """
    if doubt := _doubt(model, runs["sequential"]):
        return Verdict(USE_NOTHING, doubt, DOCTOR, {})  # learning hides the mistake
    pieces = Pieces(runs)
    if pieces.count < MIN_PIECES:
        return Verdict(USE_NOTHING, f"Nothing to use yet: {TOO_SHORT}.", RECORD_MORE, {})
    known = REPEATS if runs["frozen"].scored.repeats_share() > 1.0 - MIN_PART else ""
    learner, rigid = pieces.gains("semiparametric"), pieces.gains("rigid_body")
    stopped = learner.get("rigid_body", {}).get("frozen")
    late = learner.get("rigid_body", {}).get("delayed", stopped)
    urdf = rigid.get("urdf", {}).get("frozen")
    ahead = "with learning off" if late is stopped else "half a second ahead while it learns"
    held = pieces.held_out() or stopped
    harmless = all(each and round(each.value, 3) <= 1.0 for each in (stopped, held))
    if late and stopped and late.high < 1.0 and harmless:
        over = learner.get("urdf", {})
        if over and over.get("delayed", over["frozen"]).high < 1.0:
            off = "" if late is stopped else f", and {stopped.words()} with learning off"
            sentence = (
                f"Use the learner: compared with the identified rigid body it has {late.words()} "
                f"{ahead}{off}."
            )
            return Verdict(USE_LEARNER, sentence + known, RUN, learner)
    if urdf is None or urdf.high >= 1.0 or pieces.error("rigid_body") >= 1.0:
        why = "the identified rigid body predicts no better than a constant"
        if urdf is not None and urdf.high >= 1.0:
            why = f"the identified rigid body has {urdf.words()} compared with the URDF as it is"
        return Verdict(USE_NOTHING, f"Nothing to use yet: {why}.", RECORD_MORE, {})
    why = "The learner diverged"
    if late and stopped and held:
        worse, where = late, ahead
        if late.high < 1.0:
            harms = (stopped, "with learning off"), (held, "on states that are held out of it")
            worse, where = max(harms, key=lambda each: each[0].value)
        chance = ", which may be chance" if worse.low <= 1.0 <= worse.high else ""
        why = f"The learner has {worse.words()} compared with that {where}{chance}"
    sentence = (
        f"Use the identified rigid body: {urdf.words()} compared with the URDF as it is. {why}."
    )
    return Verdict(USE_RIGID_BODY, sentence + known, IDENTIFY, rigid)


REPEATS = " All of this is on motion that repeats what was learned: record other motion, too."
TOO_SHORT = (
    f"less than {MIN_JUDGED_S:g} s of motion follow what was learned first, so that all "
    "figures may be chance"
)
RECORD_MORE = (
    "Record a few minutes of motion that moves all joints through their ranges, slowly and fast "
    "(semiparam excite plans one), and try again."
)
DOCTOR = "Run semiparam doctor on the recording before anything else."
RUN = (
    "Run the node with the params.yaml beside the report: ros2 launch semiparam_dynamics "
    "inverse_dynamics.launch.py params_file:=params.yaml."
)
IDENTIFY = (
    "Run semiparam identify for a URDF of it. The node may run, too: record a few minutes of what "
    "the robot does and evaluate again to see whether the learner gains."
)


def _doubt(model: RobotModel, run: ProtocolRun) -> str:
    """The verdict where the efforts contradict the URDF; empty where they do not."""
    if run.faults is None:  # a wrench's: a sensor's offset may put a true reading as far away
        return ""
    faults = [finding for finding in run.faults.values() if finding.fault]
    kinds = list(dict.fromkeys(finding.kind for finding in faults))
    joints = {joint for finding in faults for joint in finding.joints or model.axes}
    nmse, rigid = run.scores.nmse("urdf"), run.scores.nmse("rigid_body")
    far = np.flatnonzero(nmse > CONTRARY_NMSE)
    if not joints and far.size:
        # With two joints' names exchanged one may contradict, but no parameters fit the others.
        fits = float(np.mean(rigid[~np.isnan(nmse)])) <= MAX_RIGID_BODY_NMSE
        if not fits or float(rigid[far].max()) > MAX_JOINT_NMSE:
            kinds, joints = ["no rigid body's parameters fit"], {model.axes[i] for i in far}
    if not joints:
        return ""
    number_of = f"{len(joints)} of {model.n_axes} joints"
    return f"The measurement contradicts the URDF on {number_of}: {listing(kinds)}."


class Pieces:
    """Squared errors in pieces of the motion that the frozen run is scored on, by protocol.

    count: of the frozen run's pieces; 0 without one.
    """

    def __init__(self, runs: Mapping[str, ProtocolRun]) -> None:
        self._runs = {p: runs[p] for p in ("frozen", "delayed") if p in runs}
        self._sums: dict[str, tuple[Array, Array]] = {}
        if (frozen := runs.get("frozen")) is not None and frozen.scores.samples:
            last = frozen.trace.seconds
            self._sums = {
                p: run.trace.pieces(number_of_pieces(last), last) for p, run in self._runs.items()
            }
            mean_square = frozen.scores.rmse("rigid_body") ** 2
            with np.errstate(divide="ignore", invalid="ignore"):
                self._variance = mean_square / frozen.scores.nmse("rigid_body")
            self._axes = np.isfinite(self._variance) & (self._variance > 0.0)
        self.count = len(self._sums["frozen"][1]) if self._sums else 0

    def _errors(self, protocol: str, model: str, weights: Array) -> Array:
        """(b,) mean nmse over the axes, of pieces that count `weights` (b, k) times."""
        squares, counts = self._sums[protocol]
        row = self._runs[protocol].trace.models.index(model)
        with np.errstate(invalid="ignore"):  # of a model that diverged
            sums = weights @ (squares[:, row, self._axes] / self._variance[self._axes])
        return np.asarray((sums / np.maximum(weights @ counts[:, self._axes], 1.0)).mean(axis=1))

    def error(self, model: str) -> float:
        """Mean nmse of the frozen run's pieces; NaN where no axis has one."""
        ones = np.ones((1, self.count))
        return float(self._errors("frozen", model, ones)[0]) if self._axes.any() else np.nan

    def gains(self, model: str) -> dict[str, dict[str, Ratio]]:
        """:meth:`ratios` of a model's error to that of each of the others in `BASELINES`."""
        found = {other: self.ratios(model, other) for other in BASELINES if other != model}
        return {other: ratios for other, ratios in found.items() if ratios}

    def held_out(self) -> Ratio | None:
        """The learner's error over the rigid body's on pieces of the states that it learned.

        Each is predicted by the others: where motion repeats, all that is scored was learned
        before, and this tells of other motion (see `inferred_kernel`). None without such a kernel.
        """
        if not (self.count and self._axes.any()):
            return None
        estimator = self._runs["frozen"].estimator
        residual, parameters = estimator.residual, estimator.rigid_body.parameters
        squares = residual.inferred.held_out(residual.standardizer.transform, parameters)
        sums = (squares[:, self._axes] / self._variance[self._axes, None]).sum(axis=1)
        rigid, mine = sums @ left_out(sums.shape[1]).T
        return jackknife(mine, rigid)

    def ratios(self, model: str, other: str) -> dict[str, Ratio]:
        """The ratios of two models' errors by protocol; none where one of them has no error."""
        found = {}
        for protocol, (_, counts) in self._sums.items():
            if (k := len(counts)) >= MIN_PIECES and self._axes.any():
                weights = left_out(k)
                errors = (self._errors(protocol, name, weights) for name in (model, other))
                if (ratio := jackknife(*errors)) is not None:
                    found[protocol] = ratio
        return found


def number_of_pieces(seconds: float) -> int:
    """Pieces of so much motion, by which chance is judged."""
    return max(round(float(np.cbrt(seconds)) ** 2), 1)


def left_out(k: int) -> Array:
    """(1 + k, k) how often each of k pieces counts: all, then without each in turn."""
    return np.concatenate((np.ones((1, k)), 1.0 - np.eye(k)))


def jackknife(mine: Array, others: Array) -> Ratio | None:
    """The ratio of two models' errors (1 + k,), of k pieces weighed by `left_out`.

    With a single error each, k = 0, it has no interval. None where one is infinite or 0.
    """
    k, reach = len(mine) - 1, 0.0
    if not all(((0.0 < errors) & (errors < np.inf)).all() for errors in (mine, others)):  # nor NaN
        return None
    logs = np.log(mine) - np.log(others)
    if k > 0:
        deviation = np.sqrt((k - 1.0) * np.mean((logs[1:] - logs[1:].mean()) ** 2))
        reach = deviation * stdtrit(k - 1, 0.5 * (1.0 + CONFIDENCE))  # Student's t
    low, value, high = np.exp(logs[0] + reach * np.array([-1.0, 0.0, 1.0]))
    return Ratio(float(value), float(low), float(high))
