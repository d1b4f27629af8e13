"""Predictions of an evaluation as a recording for the viewer Rerun."""

from __future__ import annotations

from pathlib import Path

from semiparam_dynamics.base.extras import imported
from semiparam_dynamics.base.output_files import write_files
from semiparam_dynamics.offline.evaluation.experiment import Evaluation
from semiparam_dynamics.offline.page import LOOKS, MEASURED, PROTOCOL_TITLES, axis_units

NEEDED = "a recording for Rerun needs its SDK: pip install rerun-sdk"
TIMELINE = "motion"
SHOWN = ("rigid_body", "semiparametric")


def write_rerun(evaluation: Evaluation, path: Path) -> None:
    """Write the last samples of each protocol to the .rrd file `path`, over seconds of motion.

    Each axis has what was measured, what the rigid body and the semiparametric model predicted, and
    two standard deviations to both sides of the latter; the file says how to lay them out.
    Raises MissingExtraError without Rerun, StorageError where the file can't be written.
    """
    rerun, layout = imported("rerun", NEEDED), imported("rerun.blueprint", NEEDED)
    recording = rerun.RecordingStream("semiparam_dynamics evaluate", send_properties=False)
    stream = recording.binary_stream()
    tabs, units = [], axis_units(evaluation.model)
    for protocol, run in evaluation.runs.items():
        time, y, values, std = run.trace.points()
        if not len(time):
            continue
        models = {name: values[:, run.trace.models.index(name)] for name in SHOWN}
        both = models["semiparametric"]
        curves = {MEASURED: y, **{LOOKS[name]: models[name] for name in SHOWN}}
        lines = [(look.name, look.color, look.width, curve) for look, curve in curves.items()]
        band = LOOKS["semiparametric"].color + "66"
        lines += [(f"{k:+g} deviations", band, 0.8, both + k * std) for k in (-2.0, 2.0)]
        views = []
        for axis, (name, unit) in enumerate(zip(evaluation.model.axes, units, strict=True)):
            origin = rerun.new_entity_path([protocol, name])
            views.append(layout.TimeSeriesView(origin=origin, name=f"{name} ({unit})"))
            for title, color, width, curve in lines:
                entity = rerun.new_entity_path([protocol, name, title])
                rgba = int(color[1:].ljust(8, "f"), 16)
                look = rerun.SeriesLines(colors=rgba, names=title, widths=width)
                recording.log(entity, look, static=True)
                index = rerun.TimeColumn(TIMELINE, duration=time)
                columns = rerun.Scalars.columns(scalars=curve[:, axis])
                recording.send_columns(entity, indexes=[index], columns=columns)
        tabs.append(layout.Grid(*views, name=PROTOCOL_TITLES[protocol]))
    panel = layout.TimePanel(timeline=TIMELINE, state="collapsed")
    recording.send_blueprint(layout.Blueprint(layout.Tabs(*tabs), panel, collapse_panels=True))
    write_files({path: stream.read()})
