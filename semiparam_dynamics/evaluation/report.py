"""The report: one HTML page that a roboticist can judge an evaluation by, and pass on."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.dynamics.scores import RunningScores
from semiparam_dynamics.evaluation.appearance import (
    LOOKS,
    MEASURED,
    PROTOCOL_MEANINGS,
    PROTOCOL_TITLES,
    axis_groups,
    axis_units,
    number,
)
from semiparam_dynamics.evaluation.error_plots import error_panels
from semiparam_dynamics.evaluation.experiment import Evaluation
from semiparam_dynamics.evaluation.findings import (
    WEAKLY_EXCITED,
    Findings,
    all_scores,
    find,
    mean_nmse,
)
from semiparam_dynamics.evaluation.page import (
    bullets,
    cell,
    escape,
    grid,
    head,
    legend,
    note,
    page,
    section,
    table,
)
from semiparam_dynamics.evaluation.parameter_table import excitation, parameter_table
from semiparam_dynamics.evaluation.prediction_plots import (
    calibration_curve,
    coverage_plot,
    prediction_panels,
    residual_panels,
    score_histogram,
)
from semiparam_dynamics.evaluation.protocols import ProtocolRun
from semiparam_dynamics.evaluation.run_facts import run_facts
from semiparam_dynamics.evaluation.scored import ALL_MODELS

TITLE = "Inverse dynamics, learned and judged"


def report(evaluation: Evaluation) -> str:
    """The whole page, as HTML text."""
    runs = {name: run for name, run in evaluation.runs.items() if run.scores.samples}
    return page(
        TITLE,
        [
            _summary(evaluation, find(evaluation)),
            _errors(evaluation, runs),
            _scores(evaluation),
            _predictions(evaluation, runs),
            _calibration(evaluation, runs),
            _parameters(evaluation),
            section("run", "The run", *run_facts(evaluation)),
        ],
    )


def _summary(evaluation: Evaluation, findings: Findings) -> str:
    warned = findings.warnings
    if warned:
        box = f'<div class="warnings"><h3>Be careful</h3>{bullets(warned)}</div>'
    else:
        box = '<div class="warnings none"><p>Nothing in the figures calls for a warning.</p></div>'
    header = [head("Mean nmse"), *(head(LOOKS[name].name) for name in ALL_MODELS)]
    rows = [
        [
            head(PROTOCOL_TITLES[protocol]),
            *_marked([mean_nmse(scores, name) for name in ALL_MODELS]),
        ]
        for protocol, scores in all_scores(evaluation).items()
    ]
    return (
        f'<section id="summary">\n<h1>{TITLE}</h1>\n'
        f'<p class="headline">{escape(findings.headline)}</p>\n'
        f"<p>{escape(findings.subject)}</p>\n{bullets(findings.verdicts, 'verdicts')}\n"
        f"{table(header, rows)}\n"
        + note(
            "nmse: mean squared error over the variance of the measured axis, 0 perfect, 1 as good "
            "as a constant; here its mean over the axes. Bold: the best of the row. Persistence "
            "needs no model of the residual: the rigid body's prediction plus the last residual."
        )
        + f"\n{box}\n</section>"
    )


def _marked(values: list[float]) -> list[str]:
    finite = [value for value in values if np.isfinite(value)]
    best = min(finite, default=np.nan)
    return [cell(number(value), style="best" if value == best else "") for value in values]


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
    return section("errors", "Error over time", *parts)


def _scores(evaluation: Evaluation) -> str:
    parts = [
        note(
            "Each cell: nmse; below it root mean squared error, and the share of samples within "
            "two predicted standard deviations (95 % where they are right)."
        )
    ]
    for protocol, scores in all_scores(evaluation).items():
        title, meaning = PROTOCOL_TITLES[protocol], PROTOCOL_MEANINGS[protocol]
        parts.append(
            f'<h3 id="scores-{protocol}">{escape(title)} <small>{escape(meaning)}; '
            f"{scores.samples} samples</small></h3>"
        )
        parts.append(_score_table(evaluation, scores))
    return section("scores", "Scores", *parts)


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


def _protocol_to_show(runs: dict[str, ProtocolRun]) -> str:
    return "delayed" if "delayed" in runs else next(iter(runs), "")


def _predictions(evaluation: Evaluation, runs: dict[str, ProtocolRun]) -> str:
    shown = _protocol_to_show(runs)
    if not shown:
        return section("predictions", "Predicted and measured", note("Nothing was scored."))
    looks = [MEASURED, LOOKS["rigid_body"], LOOKS["semiparametric"]]
    panels = prediction_panels(runs[shown], evaluation.model.axes, axis_units(evaluation.model))
    return section(
        "predictions",
        "Predicted and measured",
        note(
            f"The last seconds, {shown}: {PROTOCOL_MEANINGS[shown]}. Both sides are filtered alike."
        ),
        legend(looks, "± 2 predicted standard deviations"),
        grid(panels),
    )


def _calibration(evaluation: Evaluation, runs: dict[str, ProtocolRun]) -> str:
    title = "Residuals and predicted standard deviation"
    shown = _protocol_to_show(runs)
    if not shown:
        return section("calibration", title, note("Nothing was scored."))
    axes, units = evaluation.model.axes, axis_units(evaluation.model)
    samples = len(runs[shown].trace.points()[0])
    return section(
        "calibration",
        title,
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
            "unit, on a square-root scale. The standard deviations take errors of successive "
            "samples as independent; filtered ones are not, so take them as lower bounds. m: "
            "mass, mc: mass times centre of mass, I: moments of inertia at the joint; for "
            "prismatic joints read N for N m and m for rad."
        ),
        parameter_table(model, identified),
    )
