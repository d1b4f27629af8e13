"""Measured and predicted values as curves: their names and colours, and Rerun's plots of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.extras import imported

NEEDS_RERUN = "Rerun needs its SDK: pip install rerun-sdk"
TIMELINE = "motion"


@dataclass(frozen=True)
class ModelLook:
    """The name and the line of a model."""

    name: str
    color: str
    width: float  # points
    dashes: tuple[float, ...] = ()  # points on and off; none: solid. Colour alone fails in print.


# Green, red and blue are those of the thesis' figure 8.4.
LOOKS = {
    "urdf": ModelLook("URDF", "#9a6700", 1.0, (1.5, 1.5)),
    "plain_rigid_body": ModelLook("Plain rigid body", "#6f9a2a", 1.0, (4.0, 1.0, 1.0, 1.0)),
    "batch": ModelLook("Least squares", "#7a5fa8", 1.0, (1.0, 2.0)),
    # Wider than what is drawn over it: two lines that agree are both seen.
    "rigid_body": ModelLook("Rigid body", "#2a8f3c", 2.8),
    "nonparametric": ModelLook("Nonparametric", "#d1342b", 1.1, (5.0, 1.5)),
    "semiparametric": ModelLook("Semiparametric", "#1f5fc4", 1.2),
    "persistence": ModelLook("Persistence", "#8c959f", 0.9, (2.5, 1.5)),
}
MEASURED = ModelLook("Measured", "#1f2328", 0.8)
# What Rerun and the live page have curves of.
COMPARED = {"measured": MEASURED} | {n: LOOKS[n] for n in ("rigid_body", "semiparametric")}


class RerunPlots:
    """Plots in tabs, an axis each, over seconds of motion, in a recording of Rerun's.

    name: the recording's. units: each axis with its unit. tabs: titles, by the names that
    :meth:`send` takes. recording : Rerun's, which goes to a file or viewer.

    Raises MissingExtraError without Rerun.
    """

    def __init__(
        self, name: str, units: Sequence[tuple[str, str]], tabs: Mapping[str, str]
    ) -> None:
        self._rerun = rerun = imported("rerun", NEEDS_RERUN)
        layout = imported("rerun.blueprint", NEEDS_RERUN)
        self._axes = [axis for axis, _ in units]
        self._known: set[tuple[str, ModelLook]] = set()
        self.recording = rerun.RecordingStream(name, send_properties=False)
        panel = layout.TimePanel(timeline=TIMELINE, state="collapsed")
        views = (
            layout.Grid(
                *(
                    layout.TimeSeriesView(
                        origin=rerun.new_entity_path([tab, axis]), name=f"{axis} ({unit})"
                    )
                    for axis, unit in units
                ),
                name=title,
            )
            for tab, title in tabs.items()
        )
        self._blueprint = layout.Blueprint(layout.Tabs(*views), panel, collapse_panels=True)

    def lay_out(self) -> None:
        """Send how the plots are laid out."""
        self.recording.send_blueprint(self._blueprint)

    def send(self, tab: str, times: Iterable[float], curves: Mapping[ModelLook, Array]) -> None:
        """Add samples at `times` (s) to curves of a tab, each (samples, axes)."""
        rerun, index = self._rerun, self._rerun.TimeColumn(TIMELINE, duration=times)
        for look, curve in curves.items():
            for axis, values in zip(self._axes, curve.T, strict=True):
                entity = rerun.new_entity_path([tab, axis, look.name])
                if (tab, look) not in self._known:
                    rgba = int(look.color[1:].ljust(8, "f"), 16)
                    line = rerun.SeriesLines(colors=rgba, names=look.name, widths=look.width)
                    self.recording.log(entity, line, static=True)
                columns = rerun.Scalars.columns(scalars=values)
                self.recording.send_columns(entity, indexes=[index], columns=columns)
            self._known.add((tab, look))
