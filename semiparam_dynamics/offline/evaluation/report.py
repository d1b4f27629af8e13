"""The findings of an evaluation in words, its files, its page, and its table for a terminal."""

from __future__ import annotations

import json
import math
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from semiparam_dynamics import __version__
from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.config_files import dump_yaml
from semiparam_dynamics.base.errors import listing
from semiparam_dynamics.base.output_files import write_files
from semiparam_dynamics.dynamics.filtering import AFTER_GAP, BETWEEN, PARTIAL, STANDING, UNREAD
from semiparam_dynamics.dynamics.gate import LACKING
from semiparam_dynamics.dynamics.rigid_body import RigidBodyIdentifier
from semiparam_dynamics.dynamics.scores import RunningScores
from semiparam_dynamics.learner.curves import COMPARED, LOOKS, MEASURED, ModelLook, RerunPlots
from semiparam_dynamics.offline.evaluation.experiment import UNSCORED, Evaluation
from semiparam_dynamics.offline.evaluation.prediction_plots import (
    calibration_curve,
    coverage_plot,
    error_panels,
    prediction_panels,
    residual_panels,
    score_histogram,
)
from semiparam_dynamics.offline.evaluation.protocols import (
    ALL_MODELS,
    MIN_PART,
    PROTOCOLS,
    ProtocolRun,
)
from semiparam_dynamics.offline.evaluation.verdict import BASELINES, CONTRARY_NMSE, USE_NAMES, Ratio
from semiparam_dynamics.offline.page import (
    PROTOCOL_MEANINGS,
    PROTOCOL_TITLES,
    axis_groups,
    axis_units,
    bullets,
    cell,
    escape,
    grid,
    head,
    legend,
    note,
    number,
    page,
    plain,
    section,
    table,
    warning_box,
)
from semiparam_dynamics.robot.model import RobotModel, expected_scales
from semiparam_dynamics.robot.regressor import ASYMMETRY, LOADED, PRESLIDING, STRIBECK, WEIGHT

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


# -------------------------------------------------------------------------------------------------
# The files of an evaluation


TERMINAL_WIDTH = 100  # letters
EVALUATION_FILES = ("results.json", "params.yaml", "report.html")


def result_files(evaluation: Evaluation) -> dict[str, str]:
    """The texts of results.json, params.yaml and report.html by these names.

    The first is strict JSON, null where there is no number.
    """
    results = json.dumps(evaluation.results(), indent=2, allow_nan=False) + "\n"
    contents = results, dump_yaml(evaluation.config), report(evaluation)
    return dict(zip(EVALUATION_FILES, contents, strict=True))


def write_results(evaluation: Evaluation, directory: Path) -> None:
    """Write the `result_files` into `directory`, made if need be.

    Raises StorageError where that fails.
    """
    write_files({directory / name: text for name, text in result_files(evaluation).items()})


def write_rerun(evaluation: Evaluation, path: Path) -> None:
    """Write the last samples of each protocol to the .rrd file `path`, over seconds of motion.

    Each axis has what was measured, what the rigid body and the semiparametric model predicted, and
    two standard deviations to both sides of the latter; the file says how to lay them out.
    Raises MissingExtraError without Rerun, StorageError where the file can't be written.
    """
    units = list(zip(evaluation.model.axes, axis_units(evaluation.model), strict=True))
    traces = {p: (run.trace, run.trace.points()) for p, run in evaluation.runs.items()}
    traces = {p: (trace, points) for p, (trace, points) in traces.items() if len(points[0])}
    tabs = {protocol: PROTOCOL_TITLES[protocol] for protocol in traces}
    plots = RerunPlots("semiparam_dynamics evaluate", units, tabs)
    stream = plots.recording.binary_stream()
    band = LOOKS["semiparametric"].color + "66"
    for protocol, (trace, (time, y, values, std)) in traces.items():
        models = {name: values[:, k] for k, name in enumerate(trace.models)}
        curves = {look: models.get(name, y) for name, look in COMPARED.items()}
        for k in (-2.0, 2.0):
            look = ModelLook(f"{k:+g} deviations", band, 0.8)
            curves[look] = models["semiparametric"] + k * std
        plots.send(protocol, time, curves)
    plots.lay_out()
    write_files({path: stream.read()})


# -------------------------------------------------------------------------------------------------
# The terminal's table.


def summary_table(results: Mapping[str, Any]) -> str:
    """Normalised mean squared errors, a line per protocol and model, from results.json's dict."""
    axes = results["axes"]
    width = max(12, *(len(axis) for axis in axes)) if len(axes) <= 8 else 0
    shown = axes if width else []
    lines = [f"normalised mean squared error, {results['samples']} samples"]
    header = "".join(f" {axis:>{width}}" for axis in shown)
    lines.append(f"{'protocol':<16} {'model':<15} {'mean':>9}{header}")
    for protocol, models in results["scores"].items():
        for name in (name for name in ALL_MODELS if name in models):
            values = models[name]["nmse"]
            known = [value for value in values if value is not None]
            mean = sum(known) / len(known) if known else float("nan")
            cells = "".join(f" {plain(value):>{width}}" for value in values) if width else ""
            lines.append(f"{protocol:<16} {name.replace('_', ' '):<15} {plain(mean):>9}{cells}")
    return "\n".join([*lines, *_facts(results)])


def verdict(evaluation: Evaluation, *, facts: bool = True) -> str:
    """The report's head as text: what to use, mean errors, and what to be careful about.

    facts : also step times and what was skipped, with which :func:`summary_table` ends, too.
    """
    found, compared = evaluation.verdict, compared_scores(evaluation)
    lines = [*_wrapped(found.why), *_wrapped(found.advice), ""]
    width = max(len(LOOKS[name].name) for name in ALL_MODELS)
    lines.append(f"{'mean nmse':<{width}}" + "".join(f"  {p:>10}" for p in compared))
    for name in ALL_MODELS:
        cells = "".join(f"  {plain(mean_nmse(of, name)):>10}" for of in compared.values())
        lines.append(f"{LOOKS[name].name.lower():<{width}}{cells}")
    for protocol in compared:
        gains = {of: ratios[protocol] for of, ratios in found.gains.items() if protocol in ratios}
        told = [f"{_relative(ratio)} of {BASELINES[name]}" for name, ratio in gains.items()]
        if told:
            lines += _wrapped(f"{protocol}, {USE_NAMES[found.use]} has {'; '.join(told)}.", "- ")
    if warnings := warnings_of(evaluation):
        lines += ["", "Be careful:"]
        for sentence in warnings:
            lines += _wrapped(sentence, "- ")
    return "\n".join([*lines, "", *_facts(evaluation.results())] if facts else lines)


def compared_scores(evaluation: Evaluation) -> dict[str, RunningScores]:
    """By protocol the scores of the samples that all of them are scored on."""
    scores = evaluation.scores()
    parts = {p: scores.get(f"{p}_rest", scores.get(p)) for p in reversed(PROTOCOLS)}
    return {protocol: of for protocol, of in parts.items() if of is not None}


def _relative(ratio: Ratio) -> str:
    value, low, high = (number(x, 2) for x in (ratio.value, ratio.low, ratio.high))
    return f"{value} × ({low} to {high})"


def _wrapped(text: str, bullet: str = "") -> list[str]:
    return textwrap.wrap(
        bullet + text, TERMINAL_WIDTH, subsequent_indent=" " * len(bullet), break_on_hyphens=False
    )


def _facts(results: Mapping[str, Any]) -> list[str]:
    p50, p99 = (results["timing_us"][name] or math.nan for name in ("p50", "p99"))
    lines = [f"step: p50 {p50:.0f} us, p99 {p99:.0f} us"]
    if "changes" in results:
        lines.append(f"noticed: {_noticed(results['changes'])}")
    if results["skipped"]:
        skipped = ", ".join(f"{count} x {why}" for why, count in results["skipped"].items())
        lines.append(f"skipped: {skipped}")
    return lines


def _noticed(changes: Sequence[Mapping[str, Any]]) -> str:
    counts = Counter((c["protocol"], c["name"] or c["cause"]) for c in changes)
    told = [f"{count} x {cause} ({protocol})" for (protocol, cause), count in counts.items()]
    told += [
        f"at {c['onset']:.1f} s {payload_words(c['payload'])}" for c in changes if c["payload"]
    ]
    return ", ".join(told) or "no change"


def payload_words(payload: Mapping[str, Any] | None) -> str:
    """Mass and centre of mass of a payload, with their standard deviations."""
    if payload is None:
        return ""
    place = ", ".join(
        f"{1e3 * x:.0f} ± {1e3 * std:.0f}"
        for x, std in zip(payload["center"], payload["center_std"], strict=True)
    )
    mass = f"{payload['mass']:.3g} ± {payload['mass_std']:.2g} kg"
    return f"{mass} at ({place}) mm of {payload['link']}"


# -------------------------------------------------------------------------------------------------
# The page.

REPORT_TITLE = "Inverse dynamics, learned and judged"
MOST_CHANGES = 200  # that the page lists


def report(evaluation: Evaluation) -> str:
    """The whole page, as HTML text."""
    runs = {name: run for name, run in evaluation.runs.items() if run.scores.samples}
    bags = f": {listing(evaluation.tested_on)}" if evaluation.tested_on else ""
    shown = _protocol_to_show(runs)
    chosen = _chosen(compared_scores(evaluation)[shown])
    panels = prediction_panels(runs[shown], evaluation.model.axes, axis_units(evaluation.model))
    return page(
        f"{REPORT_TITLE}{bags}",
        [
            _summary(evaluation, shown, [panels[axis] for axis in chosen]),
            _errors(evaluation, runs),
            _scores(evaluation),
            *([_changes(evaluation)] if evaluation.config.changes.detect else []),
            _predictions(shown, [p for axis, p in enumerate(panels) if axis not in chosen]),
            _calibration(evaluation, runs),
            _parameters(evaluation),
            _run(evaluation),
        ],
    )


def _chosen(scores: RunningScores) -> list[int]:
    """The axes that gain most and least by the residual; none where none was measured."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = scores.rmse("semiparametric") / scores.rmse("rigid_body")
    if not np.isfinite(ratios).any():
        return []
    return list(dict.fromkeys((int(np.nanargmin(ratios)), int(np.nanargmax(ratios)))))


def _summary(evaluation: Evaluation, shown: str, panels: list[str]) -> str:
    warnings = warnings_of(evaluation)
    title = "Be careful" if warnings else "Nothing in the figures calls for a warning."
    found, compared = evaluation.verdict, compared_scores(evaluation)
    best = {
        p: np.nanmin([mean_nmse(of, name) for name in ALL_MODELS], initial=np.inf)
        for p, of in compared.items()
    }
    rows = []
    for name in ALL_MODELS:
        cells = []
        for protocol, of in compared.items():
            ratio, nmse = found.gains.get(name, {}).get(protocol), mean_nmse(of, name)
            detail = "" if ratio is None else _relative(ratio)
            cells.append(cell(number(nmse), detail, "best" if nmse == best[protocol] else ""))
        rows.append([head(LOOKS[name].name), *cells])
    header = [head("Mean nmse"), *(head(PROTOCOL_TITLES[protocol]) for protocol in compared)]
    relative = "Below a figure: the error relative to it of {}, and what chance explains."
    relative = relative.format(USE_NAMES[found.use]) if found.gains else ""
    pictures = [PREDICTION_LEGEND, grid(panels, pairs=True)] if panels else []
    return (
        f'<section id="summary">\n<h1>{REPORT_TITLE}</h1>\n'
        f'<p class="headline">{escape(found.why)}</p>\n<p>{escape(found.advice)}</p>\n'
        + "\n".join(pictures)
        + note(f"What gains most and least by the residual, {shown}, the last seconds.")
        + table(header, rows)
        + note(
            "nmse: mean squared error over the variance of the measured axis, 0 perfect, 1 as good "
            "as a constant; here its mean over the axes. Frozen: nothing is learned; delayed: half "
            "a second is predicted before it is learned; sequential: each sample. Persistence: the "
            f"rigid body plus the last residual. {relative}"
        )
        + f"\n{warning_box(title, warnings)}\n<p>{escape(subject_of(evaluation))}</p>"
        + "\n</section>"
    )


def _errors(evaluation: Evaluation, runs: dict[str, ProtocolRun]) -> str:
    parts = [
        note(
            "Root mean squared error in windows, averaged over the axes. Where models learn, their "
            "curves should fall; all panels of a row have one scale."
        ),
        legend(LOOKS[name] for name in ALL_MODELS),
    ]
    for group in axis_groups(evaluation.model):
        parts += [f"<h3>{escape(group.name)}</h3>", grid(error_panels(runs, group))]
    return section("errors", "Error over time", *parts, folded=True)


def _scores(evaluation: Evaluation) -> str:
    parts = [
        note(
            "Each cell: nmse; below it root mean squared error, and the share of samples within "
            "two predicted standard deviations (95 % where they are right)."
        )
    ]
    for protocol, scores in evaluation.scores().items():
        title, meaning = PROTOCOL_TITLES[protocol], PROTOCOL_MEANINGS[protocol]
        parts.append(
            f'<h3 id="scores-{protocol}">{escape(title)} <small>{escape(meaning)}; '
            f"{scores.samples} samples</small></h3>"
        )
        parts.append(_score_table(evaluation, scores))
    return section("scores", "Scores", *parts, folded=True)


def _score_table(evaluation: Evaluation, scores: RunningScores) -> str:
    model = evaluation.model
    units = axis_units(model)
    header = [head("Model"), head("Mean"), *map(head, model.axes)]
    nmse = np.array([[mean_nmse(scores, name), *scores.nmse(name)] for name in ALL_MODELS])
    marks = np.where(nmse == np.nanmin(nmse, axis=0, initial=np.inf), "best", "")
    rows = []
    for i, name in enumerate(ALL_MODELS):
        rmse, coverage = scores.rmse(name), scores.coverage(name)
        details = [_percent(float(coverage.mean()))]
        for axis in range(model.n_axes):
            parts = (f"{number(rmse[axis])} {units[axis]}", _percent(coverage[axis]))
            details.append(" · ".join(filter(None, parts)))
        cells = map(cell, map(number, nmse[i]), details, marks[i])
        rows.append([head(LOOKS[name].name), *cells])
    return table(header, rows)


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} %" if np.isfinite(share) else ""


def _changes(evaluation: Evaluation) -> str:
    names, noticed = evaluation.tested_on, evaluation.noticed
    header = [head(title) for title in ("Noticed", "Began", "Protocol", "Recording", "What")]
    rows = [
        [
            cell(f"{change.time:.2f} s"),
            cell(f"{change.onset:.2f} s"),
            cell(PROTOCOL_TITLES[change.protocol], style="words"),
            cell(names[change.recording] if names else str(change.recording + 1)),
            cell(f"{change.cause} {change.name}".rstrip(), payload_words(change.payload), "words"),
        ]
        for change in noticed[:MOST_CHANGES]
    ]
    more = f" The first {MOST_CHANGES} of {len(noticed)}." if len(noticed) > MOST_CHANGES else ""
    return section(
        "changes",
        "Changes noticed",
        note(f"Times are from the beginning of the recording; results.json has all.{more}"),
        table(header, rows) if rows else "<p>None.</p>",
        folded=True,
    )


def _protocol_to_show(runs: dict[str, ProtocolRun]) -> str:
    return "delayed" if "delayed" in runs else next(iter(runs))


PREDICTION_LEGEND = legend(
    [MEASURED, LOOKS["rigid_body"], LOOKS["semiparametric"]], "± 2 predicted standard deviations"
)


def _predictions(shown: str, panels: list[str]) -> str:
    return section(
        "predictions",
        "Predicted and measured",
        note(
            f"The others' last seconds, {shown}: {PROTOCOL_MEANINGS[shown]}. Both sides are "
            "filtered alike."
        ),
        PREDICTION_LEGEND,
        grid(panels),
        folded=True,
    )


def _calibration(evaluation: Evaluation, runs: dict[str, ProtocolRun]) -> str:
    shown = _protocol_to_show(runs)
    axes, units = evaluation.model.axes, axis_units(evaluation.model)
    samples = len(runs[shown].trace.points()[0])
    return section(
        "calibration",
        "Residuals and predicted standard deviation",
        note(
            "Of the semiparametric model. Narrower than the normal distribution, or above the "
            "diagonal: the standard deviation is too cautious; the other way round it promises too "
            f"much. Histograms and calibration are of the last {samples} samples at most, coverage "
            "is of all."
        ),
        grid([score_histogram(runs), calibration_curve(runs), coverage_plot(runs, axes)]),
        f"<h3>Residuals per axis <small>{escape(shown)}</small></h3>",
        legend([LOOKS["rigid_body"], LOOKS["semiparametric"]]),
        grid(residual_panels(runs[shown], axes, units)),
        folded=True,
    )


def _parameters(evaluation: Evaluation) -> str:
    model, identified = evaluation.model, evaluation.runs["sequential"].estimator.rigid_body
    weak = int(np.sum(excitation(model, identified) < WEAKLY_EXCITED))
    prior = evaluation.config.estimator.rigid_body.prior
    start = "the URDF's values" if prior == "urdf" else "zero"
    return section(
        "parameters",
        "Identified parameters",
        f"<p>{model.n_parameters} base parameters, identified from {escape(start)} on. The motion "
        f"excited {identified.excitation_rank()} independent combinations of them. Known hardly "
        f"better than at the start (sd shrank by less than {WEAKLY_EXCITED:g}, marked): "
        f"{weak or 'none'}.</p>",
        note(
            "As they are at the end of the sequential run. A base parameter is a combination that "
            "motion can tell from the others: single links' masses need not be positive or equal "
            "the URDF's. Share in the output: value times what an ordinary motion makes of one "
            "unit, on a square-root scale. m: "
            "mass, mc: mass times centre of mass, I: moments of inertia at the joint; for "
            "prismatic joints read N for N m and m for rad."
        ),
        parameter_table(model, identified),
        folded=True,
    )


def _run(evaluation: Evaluation) -> str:
    """The last section: the command, the files that were read where they are known, and figures."""
    command = f"<p><code>{escape(evaluation.command)}</code></p>" if evaluation.command else ""
    told = []
    if (origin := evaluation.origin) is not None:
        for use, recordings in (("learned", origin.trained), ("judged", origin.tested)):
            for one in recordings:
                began = datetime.fromtimestamp(one.begin * 1e-9, timezone.utc)
                told.append(
                    f"{use}: {one.path}, {one.seconds:.1f} s, {one.measurements} measurements, the "
                    f"first stamped {began:%Y-%m-%d %H:%M:%S} UTC"
                )
        told.append(f"URDF: from {origin.urdf}, SHA-256 {origin.urdf_sha256[:12]}")
        told += [f"begun from {origin.model}"] if origin.model else []
    told += _facts(evaluation.results())
    settings = f"semiparam_dynamics {__version__}, seed {evaluation.config.estimator.seed}."
    return section(
        "run",
        "The run",
        command,
        bullets(told),
        note(f"{settings} All settings are in params.yaml, which the node and --params take."),
        folded=True,
    )


# -------------------------------------------------------------------------------------------------
# The identified and the URDF's parameters, and how well the motion excited each.

PARAMETER_UNITS = {"m": "kg", "viscous": "N m s/rad", LOADED: "N m/(N m)", "rotor_inertia": "kg m²"}
PARAMETER_UNITS |= dict.fromkeys(("mcx", "mcy", "mcz"), "kg m")
PARAMETER_UNITS |= dict.fromkeys(("coulomb", STRIBECK, ASYMMETRY, "offset"), "N m")
WEAKLY_EXCITED = 2.0  # the standard deviation shrank by less than this factor
BAR = 170.0  # width of a row's plot, px


def parameter_table(model: RobotModel, identified: RigidBodyIdentifier) -> str:
    """A table of the base parameters, with a small plot in each row."""
    columns = expected_scales(model).column
    deviations = identified.standard_deviations()
    excited = excitation(model, identified)
    share = np.stack([identified.parameters, deviations, model.prior]) * columns
    reach = float(np.max(np.abs(np.concatenate((share[0], share[2]))), initial=0.0)) or 1.0
    rows = []
    for j, label in enumerate(model.labels):
        weak = excited[j] < WEAKLY_EXCITED
        rows.append(
            [
                cell(label, style="weak" if weak else ""),
                cell(number(identified.parameters[j])),
                cell(f"± {number(deviations[j], 2)}"),
                cell(number(model.prior[j]) if _inertial(label) else "–"),
                cell(_unit(label), style="unit"),
                f"<td>{_bar(*(share[:, j] / reach), from_urdf=_inertial(label))}</td>",
                cell(f"{number(excited[j])} ×", style="weak" if weak else ""),
            ]
        )
    header = [
        head("Parameter"),
        head("Identified"),
        head("sd"),
        head("URDF"),
        head("Unit", style="unit"),
        head("Share in the output", "● ± 2 sd identified, ◇ URDF", "words"),
        head("Excited", "sd shrank by"),
    ]
    return table(header, rows, "parameters")


def excitation(model: RobotModel, identified: RigidBodyIdentifier) -> Array:
    """Factors by which the motion shrank the parameters' prior deviations, (n_parameters,)."""
    before = expected_scales(model).parameter(identified.evidence.precisions)
    return np.asarray(before / identified.standard_deviations())


def _inertial(label: str) -> bool:
    kind = label.split()[0]
    return kind == "m" or kind.startswith(("mc", "I"))


def _unit(label: str) -> str:
    kind = label.split()[0].removeprefix(f"{WEIGHT}_")
    if kind.startswith(PRESLIDING) or label in ("offset fx", "offset fy", "offset fz"):
        return "N m" if kind.startswith(PRESLIDING) else "N"
    return PARAMETER_UNITS.get(kind, "kg m²")


def _bar(value: float, deviation: float, prior: float, *, from_urdf: bool) -> str:
    def x(at: float) -> float:
        # A square-root scale: many parameters matter little, and would lie on one spot.
        root = math.copysign(math.sqrt(min(abs(at), 1.1)), at)
        return BAR / 2 + root * (BAR / 2 - 9.0)

    rigid, urdf = LOOKS["rigid_body"].color, LOOKS["urdf"].color
    marks = [
        f'<line x1="{BAR / 2:g}" y1="0" x2="{BAR / 2:g}" y2="16" stroke="#d8dee4"/>',
        f'<line x1="{x(value - 2 * deviation):.1f}" y1="8" x2="{x(value + 2 * deviation):.1f}" '
        f'y2="8" stroke="{rigid}" stroke-width="1.5"/>',
        f'<circle cx="{x(value):.1f}" cy="8" r="3" fill="{rigid}"/>',
    ]
    if from_urdf:
        p = x(prior)
        diamond = f"{p - 4.5:.1f},8 {p:.1f},3.5 {p + 4.5:.1f},8 {p:.1f},12.5"
        marks.append(f'<polygon points="{diamond}" fill="none" stroke="{urdf}"/>')
    return f'<svg class="bar" viewBox="0 0 {BAR:g} 16" aria-hidden="true">{"".join(marks)}</svg>'
