"""Predictions of an evaluation as a recording for the viewer Rerun."""

from __future__ import annotations

from pathlib import Path

from semiparam_dynamics.base.output_files import write_files
from semiparam_dynamics.learner.curves import COMPARED, LOOKS, ModelLook, RerunPlots
from semiparam_dynamics.offline.evaluation.experiment import Evaluation
from semiparam_dynamics.offline.page import PROTOCOL_TITLES, axis_units


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
