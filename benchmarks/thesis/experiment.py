"""The thesis' validation experiment (8.4.3, figure 8.4): learn one motion, then meet another.

The models start from zero and learn circles of the hand in the XY plane. The circles in the XZ
plane are cut into parts; on each part, from the models trained on XY, every sample is predicted,
scored and learned.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from output import header, markdown

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.extras import require
from semiparam_dynamics.base.output_files import reserved
from semiparam_dynamics.base.parameters import from_flat, replace, to_flat
from semiparam_dynamics.base.progress import ProgressBar, processes
from semiparam_dynamics.dynamics.baseline import NonparametricBaseline
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.filtering import SampleFilter
from semiparam_dynamics.dynamics.sample import SampleBlock
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.curves import LOOKS, ModelLook
from semiparam_dynamics.learner.learner import MODELS
from semiparam_dynamics.learning.recursive_rls import RecursiveRLS
from semiparam_dynamics.offline.cli.options import add_config_options, node_config
from semiparam_dynamics.offline.evaluation.prediction_plots import plot_line, scale_axis
from semiparam_dynamics.offline.page import STYLE, number
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.measurement import Measurement

DESCRIPTION = """\
The thesis' experiment (8.4.3) on the simulated iCub arm: learn circles in the XY plane from zero,
then meet circles in the XZ plane in ten parts, each from the models trained on XY. Prints the
errors of the models over several seeds, which draw the circles and the sensor's bias, drift and
noise, and writes them and figure 8.4."""
# What differs from the defaults: ten samples a second, as in the thesis, are a tenth of what they
# are made for, so that a centre must reach further. Motion in another plane comes at once: three
# seconds of it are not to be taken for a contact.
SETTINGS = {
    "filter.max_rate": 10.0,
    "nystrom.length_scale": 0.5,
    "nystrom.novelty": 0.1,
    "rigid_body.prior": "zero",
    "rigid_body.unusual": 0.0,
}
WINDOW = 30  # samples over which an error is averaged
KINDS = {"force": slice(0, 3), "torque": slice(3, 6)}
PANELS = {"force": "Force RMSE (N)", "torque": "Torque RMSE (N m)"}
RESIDUALS = {"nystrom": "Nyström", "random_fourier": "random Fourier"}
# P of equation 8.4 as it stands. The thesis does not give its ridge: from 1e-4 to this one it
# changes no error by half a percent.
LITERAL, LITERAL_RIDGE = "literal", 1.0
SHORT = {LITERAL: "literal P", "rigid_body": "P", "nonparametric": "NP", "semiparametric": "SP"}
LINES = LOOKS | {LITERAL: ModelLook("equation 8.4", "#e08b00", 1.6, (1.2, 1.2))}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the experiment's options."""
    parser.add_argument("--train", type=int, default=10_000, help="samples of XY (default 10000)")
    parser.add_argument("--part", type=int, default=1_000, help="samples a part (default 1000)")
    seeds = {"choices": range(1, 1001), "metavar": "N", "default": 10}
    parser.add_argument("--seeds", type=int, **seeds, help="of the simulator, from 0 (10)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="seeds at a time (1)")
    out = {"default": Path("experiment_out"), "metavar": "DIR"}
    parser.add_argument("--out", type=Path, **out, help="for experiment.md and figure84.png")
    add_config_options(parser, InverseDynamicsConfig)


def run(args: argparse.Namespace) -> None:
    """Run the experiment with each seed, print a table, and write it and the figure."""
    require("The thesis' experiment", "sim")
    values, size = settings(args), ExperimentSize(args.train, 10, args.part)
    experiment = partial(simulated_experiment, values, size)
    page, figure = args.out / "experiment.md", args.out / "figure84.png"
    with (
        reserved([page, figure], overwrite=True),
        processes(args.jobs, args.seeds) as executor,
        ProgressBar("seeds", sys.stderr) as progress,
    ):
        found = []
        for result in (executor.map if executor else map)(experiment, range(args.seeds)):
            found.append(result)
            progress(len(found) / args.seeds)
        rate = float(str(values["filter.max_rate"]))
        results = {}
        for residual in RESIDUALS:
            squares = {m: np.stack([one[residual][m] for one in found]) for m in SHORT}
            results[residual] = ExperimentResult(squares, rate)
        plot_experiment(results, figure)
        text = f"{header()}\n{table(results)}\n\n![Figure 8.4](figure84.png)"
        page.write_text(text + "\n", encoding="utf-8")
    print(text)


def settings(args: argparse.Namespace) -> dict[str, object]:
    """The experiment's settings, and in their place what a file has otherwise or `--set` names."""
    defaults = to_flat(InverseDynamicsConfig())
    named = {setting.partition("=")[0].strip() for setting in args.settings}
    asked = to_flat(node_config(args, InverseDynamicsConfig))
    return SETTINGS | {n: v for n, v in asked.items() if n in named or v != defaults[n]}


@dataclass(frozen=True)
class ExperimentSize:
    """The numbers of samples learned first, of parts that follow, and of samples in a part.

    Raises ConfigurationError where nothing is learned, or a part has no window.
    """

    train: int = 10_000
    parts: int = 10
    part: int = 1_000

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.train < 1 or self.part < WINDOW:
            raise ConfigurationError(
                f"the experiment needs a sample to learn and {WINDOW} in a part at least, not "
                f"{self.train} and {self.part}"
            )


@dataclass(frozen=True)
class ExperimentResult:
    """Squared errors (..., samples, 6) of each model, in N^2 and (N m)^2, and the sample rate."""

    squares: dict[str, Array]
    rate: float

    def times(self) -> Array:
        """(k,) s since a part's beginning, at which the windows end."""
        samples = next(iter(self.squares.values())).shape[-2]
        return np.arange(WINDOW, samples + 1) / self.rate

    def curve(self, kind: str, model: str) -> Array:
        """RMSE averaged over the components, (..., k): figure 8.4's vertical axis."""
        sums = np.cumsum(self.squares[model][..., KINDS[kind]], axis=-2)
        sums[..., WINDOW:, :] -= sums[..., :-WINDOW, :].copy()
        return np.sqrt(sums[..., WINDOW - 1 :, :] / WINDOW).mean(axis=-1)

    def steady(self, kind: str, model: str) -> Array:
        """RMSE (...) over each part's last half."""
        squares = self.squares[model][..., KINDS[kind]]
        last = squares[..., squares.shape[-2] // 2 :, :]
        return np.sqrt(last.mean(axis=-2)).mean(axis=-1)


def simulated_experiment(
    values: Mapping[str, object], size: ExperimentSize, seed: int
) -> dict[str, dict[str, Array]]:
    """:func:`thesis_experiment` on the simulated iCub, with settings by their names."""
    from semiparam_dynamics.simulation.arm import ArmSimulator, simulated

    first, second = (
        ArmSimulator(motion=motion, seed=seed + k)
        for k, motion in enumerate(("circle_xy", "circle_xz"))
    )
    robot = {"target": "wrench", "joints": first.joint_names, "sensor_frame": first.sensor_frame}
    config = from_flat(InverseDynamicsConfig, {**values, **robot})
    model = RobotModel(first.urdf, config.robot)
    motions = simulated(first, "wrench"), simulated(second, "wrench", start=10**13)
    return thesis_experiment(model, config, *motions, size)


def thesis_experiment(
    model: RobotModel,
    config: InverseDynamicsConfig,
    first_motion: Iterable[Measurement],
    second_motion: Iterable[Measurement],
    size: ExperimentSize,
) -> dict[str, dict[str, Array]]:
    """Squared errors (parts, samples, n_axes) of each model, by the residual and its name.

    Motions are endless; `config.filter.max_rate` is the sample rate. Every sample is predicted
    before it is learned.
    """
    first = _samples(model, config, first_motion, size.train)
    second = _samples(model, config, second_motion, size.parts * size.part)
    parts = [second.rows(slice(k, k + size.part)) for k in range(0, len(second), size.part)]
    y, literal, found = np.array([p.y for p in parts]), literal_squares(first, parts), {}
    for residual in RESIDUALS:
        chosen = replace(config.estimator, residual=residual)
        trained = SemiparametricEstimator(model, chosen)
        alone = NonparametricBaseline(model, chosen)
        for each in (trained, alone):
            each.update_block(first)
        values = [
            trained.copy().update_block(part)[0].values | alone.copy().update_block(part).values
            for part in parts
        ]
        squares = {name: (y - np.array([v[name] for v in values])) ** 2 for name in MODELS}
        found[residual] = {LITERAL: literal} | squares
    return found


def literal_squares(first: SampleBlock, parts: Sequence[SampleBlock]) -> Array:
    """Squared errors of the thesis' own P: equation 8.4, updated by the rows of each sample.

    All rows weigh the same, N beside N m, and the ridge is a multiple of the identity.
    """
    flat = -1, first.regressors.shape[2]
    trained = RecursiveRLS(ridge=LITERAL_RIDGE).fit(first.regressors.reshape(flat), first.y.ravel())
    squares = []
    for part in parts:
        model = copy.deepcopy(trained)
        for rows, y in zip(part.regressors, part.y, strict=True):
            squares.append((y - model.predict(rows)) ** 2)
            model.partial_fit(rows, y)
    return np.reshape(squares, (len(parts), *parts[0].y.shape))


def _samples(
    model: RobotModel, config: InverseDynamicsConfig, motion: Iterable[Measurement], count: int
) -> SampleBlock:
    """The motion's first samples that are measured."""
    pushed = map(SampleFilter(model, config.filter).push, motion)
    measured = (s for s in pushed if s is not None and s.y is not None)
    return SampleBlock.of(list(islice(measured, count)))


def plot_experiment(results: Mapping[str, ExperimentResult], path: Path) -> None:
    """Plot RMSE over time: the mean over seeds as a line, from least to most as a band.

    A seed's RMSE is its mean over the parts. A row of panels for force, one for torque; a column
    for each residual.
    """
    with rc_context({**STYLE, "savefig.dpi": 130, "font.size": 9.0}):
        figure = Figure(figsize=(7.0, 5.4), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(2, len(results), sharex=True, sharey="row")
        for row, (kind, label) in zip(panels, PANELS.items(), strict=True):
            for axes, result in zip(row, results.values(), strict=True):
                _draw(axes, result, kind)
            scale_axis(row[0], *row[0].get_ylim(), True)
            row[0].set_ylabel(label)
        for axes, residual in zip(panels[0], results, strict=True):
            axes.set_title(f"With {RESIDUALS[residual]} features")
        figure.supxlabel("Time since the motion changed (s)", size=9.0)
        names = [f"{short}: {LINES[model].name.lower()}" for model, short in SHORT.items()]
        figure.legend(panels[0, 0].lines, names, loc="outside upper center", ncols=4, frameon=False)
        figure.savefig(path)


def _draw(axes: Axes, result: ExperimentResult, kind: str) -> None:
    times = result.times()
    axes.set_yscale("log")
    axes.margins(x=0.0)
    for model in SHORT:
        seeds, look = result.curve(kind, model).mean(axis=1), LINES[model]
        band = seeds.min(axis=0), seeds.max(axis=0)
        axes.fill_between(times, *band, color=look.color, alpha=0.2, linewidth=0.0)
        plot_line(axes, times, seeds.mean(axis=0), look)


def table(results: Mapping[str, ExperimentResult]) -> str:
    """Errors and their ratios: the mean over seeds, and the least and the most of them."""

    def errors(residual: str, model: str) -> Array:
        """(4, seeds): force and torque in the first window, and in the last half."""
        result = results[residual]
        first = [result.curve(kind, model)[..., 0] for kind in KINDS]
        return np.mean(first + [result.steady(kind, model) for kind in KINDS], axis=-1)

    def row(name: str, values: Array) -> list[str]:
        ends = zip(values.mean(axis=1), values.min(axis=1), values.max(axis=1), strict=True)
        return [name, *(f"{number(m)} ({number(low)}, {number(high)})" for m, low, high in ends)]

    some = next(iter(results))
    rows = [row(SHORT[model], errors(some, model)) for model in (LITERAL, "rigid_body")]
    ratios = []
    for residual, name in RESIDUALS.items():
        nonparametric, both = (errors(residual, m) for m in ("nonparametric", "semiparametric"))
        rows += [row(f"NP, {name}", nonparametric), row(f"SP, {name}", both)]
        ratios.append(row(f"SP / NP, {name}", both / nonparametric))
        ratios.append(row(f"SP / P, {name}", both / errors(some, "rigid_body")))
    columns = "first 30 samples, force (N)", "torque (N m)", "last half, force (N)", "torque (N m)"
    return markdown(["", *columns], rows + ratios)
