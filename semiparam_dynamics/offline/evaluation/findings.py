"""The findings of an evaluation in words, the unwelcome ones included."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from semiparam_dynamics.base.errors import listing
from semiparam_dynamics.dynamics.filtering import AFTER_GAP, BETWEEN, PARTIAL, STANDING, UNREAD
from semiparam_dynamics.dynamics.gate import LACKING
from semiparam_dynamics.dynamics.scores import RunningScores
from semiparam_dynamics.offline.evaluation.experiment import UNSCORED, Evaluation
from semiparam_dynamics.offline.evaluation.protocols import ProtocolRun
from semiparam_dynamics.offline.evaluation.scored_run import MIN_PART
from semiparam_dynamics.offline.evaluation.verdict import CONTRARY_NMSE
from semiparam_dynamics.offline.page import PROTOCOL_TITLES, number

LOW_COVERAGE = 0.85  # where 95 % are promised
WORSE_RATIO = 1.01  # less is not worth a word
# Reasons why messages are skipped that are no fault, or follow from one that is counted itself.
ORDINARY = (BETWEEN, STANDING, UNSCORED, PARTIAL, LACKING, UNREAD, AFTER_GAP)

NOTICING = (
    "Changes were looked for and corrected as the node does it (changes.detect), frozen too, where "
    "nothing is learned. Delayed is left out: its errors are not the node's, and other changes "
    "would be noticed in them."
)
JUDGED = ("delayed", "frozen", "sequential")  # protocols, in the order of their warnings


def warnings_of(evaluation: Evaluation) -> list[str]:
    """Facts to be careful about, in sentences."""
    judged = {name: evaluation.runs[name] for name in JUDGED if name in evaluation.runs}
    judged = {name: run for name, run in judged.items() if run.scores.samples}
    return [
        *_contradictions(evaluation),  # first: where there is one, the rest means little
        *evaluation.doubts,
        *_model_warnings(evaluation, judged),
        *_data_warnings(evaluation),
    ]


def mean_nmse(scores: RunningScores, model: str) -> float:
    """Over the axes that have one; NaN where none has."""
    nmse = scores.nmse(model)
    finite = nmse[np.isfinite(nmse)]
    return float(finite.mean()) if finite.size else np.nan


def subject_of(evaluation: Evaluation) -> str:
    """The motion that was judged, and what was learned before it, in words."""
    model, samples = evaluation.model, evaluation.samples
    if model.config.target == "wrench":
        what = f"the six-axis reading at {model.config.sensor_frame}"
    else:
        joints = "joint" if model.n_axes == 1 else "joints"
        what = f"the efforts of {model.n_axes} {joints} ({listing(model.axes)})"
    motion = evaluation.motion
    rate = f" at {samples / motion:.0f} Hz" if motion > 0.0 else ""
    scored = evaluation.runs["sequential"].scores.samples
    of_them = f" ({scored} of them scored)" if scored != samples else ""
    rest = f" and {evaluation.standing:.1f} s at rest" if evaluation.standing >= 0.1 else ""
    moving = motion - evaluation.standing
    amount = f"{samples} samples{of_them}, {moving:.1f} s of motion{rest}{rate}"
    source = f" of {listing(evaluation.tested_on)}" if evaluation.tested_on else ""
    told = f"{amount}{source}, predicting {what}. {_split(evaluation)}"
    return f"{told} {NOTICING}" if evaluation.config.changes.detect else told


def _split(evaluation: Evaluation) -> str:
    frozen, sequential = evaluation.runs.get("frozen"), evaluation.runs["sequential"].scores
    if frozen is None:
        return "The models knew nothing at the first of them."
    if frozen.scores.samples != sequential.samples:
        return (
            f"The models knew nothing at the first of them; frozen are the last "
            f"{frozen.scores.samples}, predicted by what was learned before."
        )
    # Something was learned before the first sample: frozen has all of them then.
    learned = listing(evaluation.trained_on) if evaluation.trained_on else "other recordings"
    if evaluation.origin and (given := evaluation.origin.model):
        learned = " and ".join(["what is in " + Path(given).name, *evaluation.trained_on])
    return f"The models had learned {learned} before."


def _contradictions(evaluation: Evaluation) -> Iterator[str]:
    run, axes = evaluation.runs["sequential"], evaluation.model.axes
    yield from run.faults or ()
    nmse = run.scores.nmse("urdf")
    contrary = [f"{axes[i]} ({number(nmse[i])})" for i in np.flatnonzero(nmse > CONTRARY_NMSE)]
    if contrary and not run.faults:
        yield (
            "The URDF's own parameters are far from the measurement, nmse above "
            f"{CONTRARY_NMSE:g}, on {listing(contrary)}: its masses and <dynamics> may be guesses, "
            "or a sensor reads in another frame. Learning hides such a mistake."
        )


def _model_warnings(evaluation: Evaluation, judged: dict[str, ProtocolRun]) -> Iterator[str]:
    axes = evaluation.model.axes
    for protocol, run in judged.items():
        scores, title = run.scores, PROTOCOL_TITLES[protocol]
        semi, rigid, last, urdf = (
            mean_nmse(scores, name)
            for name in ("semiparametric", "rigid_body", "persistence", "urdf")
        )
        if protocol != "sequential" and semi > WORSE_RATIO * last:  # there it nearly always is
            yield (
                f"{title}: persistence, the rigid body's prediction plus the last residual, is "
                f"better than the semiparametric model (nmse {number(last)} against "
                f"{number(semi)})."
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = scores.rmse("semiparametric") ** 2 / scores.rmse("rigid_body") ** 2
        worse = [i for i in np.argsort(-ratios) if ratios[i] > WORSE_RATIO]
        if worse:
            named = listing([f"{axes[i]} ({ratios[i]:.2f} ×)" for i in worse])
            yield f"{title}: semiparametric is worse than the rigid body alone on {named}."
        if urdf < rigid:
            yield (
                f"{title}: the URDF's own parameters predict better than the identified rigid "
                f"body (nmse {number(urdf)} against {number(rigid)})."
            )
        lost = scores.measured & ~np.isfinite(scores.rmse("semiparametric"))
        diverged = [axes[i] for i in np.flatnonzero(lost)]
        if diverged:
            yield f"{title}: the semiparametric model diverged on {listing(diverged)}."
        useless = [axes[i] for i in np.flatnonzero(scores.nmse("semiparametric") >= 1.0)]
        if useless:
            yield f"{title}: no better than a constant on {listing(useless)} (nmse 1 or more)."
        coverage = scores.coverage("semiparametric")
        low = [i for i in np.argsort(coverage) if coverage[i] < LOW_COVERAGE]
        if low:
            named = listing([f"{axes[i]} ({100 * coverage[i]:.0f} %)" for i in low])
            yield (
                f"{title}: the predicted standard deviation is too small: fewer than the "
                f"promised 95 % of the samples lie within two of them on {named}."
            )


def _novel_states(evaluation: Evaluation) -> Iterator[str]:
    if (frozen := evaluation.runs.get("frozen")) is None or not frozen.scores.samples:
        return
    shares = frozen.scored.novel / frozen.scores.samples
    new = [i for i in np.argsort(-shares) if shares[i] > MIN_PART]
    if new:
        named = listing(
            [f"{evaluation.model.axes[i]} ({100.0 * shares[i]:.0f} % of the time)" for i in new]
        )
        yield (
            f"Frozen: what was learned before does not show the positions, speeds and efforts that "
            f"{named} came to. Predictions are less sure there: record such motion, too."
        )


def _leakage(evaluation: Evaluation) -> Iterator[str]:
    share, frozen = evaluation.repeated_share(), evaluation.runs.get("frozen")
    if share is None or frozen is None or share < MIN_PART:
        return
    words = (
        f"Frozen: {100 * share:.0f} % of the samples repeat states that were learned, so that the "
        "figure is better than on new motion"
    )
    if share > 1.0 - MIN_PART:
        yield f"{words}. There is hardly anything else: test on another motion."
        return
    told = [
        f"{ratio:.2f} × the rigid body's on {which}"
        for which, scores in (("those", frozen.scored.repeated), ("the others", frozen.scored.new))
        if np.isfinite(ratio := _ratio(scores))
    ]
    figures = f": the semiparametric squared error is {' and '.join(told)}" if told else ""
    yield f"{words}{figures}."


def _ratio(scores: RunningScores) -> float:
    semi, rigid = (mean_nmse(scores, name) for name in ("semiparametric", "rigid_body"))
    return semi / rigid if rigid > 0.0 else np.nan


def _data_warnings(evaluation: Evaluation) -> Iterator[str]:
    run = evaluation.runs["sequential"]
    estimator, model = run.estimator, evaluation.model
    rank = estimator.rigid_body.excitation_rank()
    if rank < model.n_parameters:
        yield (
            f"The motion made only {rank} of {model.n_parameters} independent combinations of "
            "parameters visible; the others stay near where identification started. A motion "
            "that is rich in accelerations and postures excites more."
        )
    yield from _novel_states(evaluation)
    yield from _leakage(evaluation)
    if not (estimator.residual.standardizer.ready and estimator.residual.n_features):
        yield "The residual model never began to learn: the motion was shorter than its window."
    nmse, rmse = run.scores.nmse("urdf"), run.scores.rmse("urdf")
    constant = [model.axes[i] for i in np.flatnonzero(np.isfinite(rmse) & ~np.isfinite(nmse))]
    if constant:
        yield f"The measurement of {listing(constant)} never varied: there is no nmse of it."
    never = [model.axes[i] for i in np.flatnonzero(~run.scores.measured)]
    if never:
        yield f"{listing(never)}: never measured, so that nothing was learned or scored of it."
    # These are predicted, and no fault: at 1 kHz nine in ten are not learned.
    skipped = [(r, n) for r, n in evaluation.skipped.most_common() if r not in ORDINARY]
    if skipped:
        # One message may count under several reasons, and of efforts once for each joint, so that
        # no sum of the counts is a number of messages.
        received = max(evaluation.received, evaluation.samples, 1)
        counts = [(reason, min(count, received)) for reason, count in skipped]
        share = 100.0 * counts[0][1] / received
        percent = f"{share:.0f}" if share >= 10.0 else f"{share:.2g}"
        reasons = [f"{reason}: {count}" for reason, count in counts]
        reasons[0] += f" ({percent} %)"
        yield f"Of {received} messages some were not used in full: {listing(reasons)}."
    if evaluation.timing and evaluation.motion > 0.0:
        period = evaluation.motion / evaluation.samples
        slow = float(np.percentile(evaluation.timing, 99))
        if slow > period:
            yield (
                f"One step in a hundred took longer ({1e3 * slow:.2f} ms) than the time between "
                f"two samples ({1e3 * period:.2f} ms): a node on this machine would have to leave "
                "out updates."
            )
