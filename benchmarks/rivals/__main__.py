"""This package and other methods on the same splits of logs of real arms and a simulated one.

    python benchmarks/rivals DATA --out page.md

DATA holds robots/{xmate7p,ur10,tx40,airbot,tiago}. Each method learns a split's training part and
predicts its test part; the page has errors, training times and times of a prediction, and says
first where a rival is better. Rivals need torch, gpytorch and xrfm (the extra `rivals`); without
one the others are run, and the page says what is missing.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))  # what all benchmarks share
from arm_splits import (  # noqa: E402
    ARMS,
    CALLS,
    DEFAULT,
    REPEATS,
    WINDOW,
    Score,
    score,
)
from arms import Split  # noqa: E402
from arms import splits as arm_splits  # noqa: E402
from other_rivals import (  # noqa: E402
    HELD_OUT,
    MOST,
    PACKAGE_DEFAULT,
    PLAIN_RIGID_BODY,
    RIGID_BODY,
    Boosting,
    Result,
    Rival,
    compete,
    identification,
    package,
)
from output import make_parser as parser_of  # noqa: E402
from output import markdown, parse  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

from semiparam_dynamics.base.errors import MissingExtraError  # noqa: E402
from semiparam_dynamics.offline.cli.main import run_command  # noqa: E402

Scores = dict[str, dict[str, dict[str, Score]]]  # by arm, split and method

NEEDS = {
    "lstm": ("torch",),
    "gru": ("torch",),
    "gp": ("torch", "gpytorch"),
    "xrfm": ("torch", "xrfm"),
}
RIVALS = {
    "boosting": ("boosting", f"boosting on {RIGID_BODY}"),
    "lstm": ("LSTM",),
    "gru": (f"GRU on {RIGID_BODY}",),
    "gp": (f"sparse GP on {RIGID_BODY}",),
    "xrfm": (f"xRFM on {RIGID_BODY}",),
}
METHODS = ("identification", "package", *RIVALS)

HEADER = (
    "method",
    "nmse, frozen",
    "worst joint",
    "rms [N m]",
    "nmse, sequential",
    "nmse, delayed",
    "training [s]",
    "prediction [us]",
)


def make_parser() -> argparse.ArgumentParser:
    """The parser."""
    parser = parser_of(__doc__)
    parser.prog = "rivals"
    parser.add_argument("data", type=Path, help="folder with robots/")
    parser.add_argument("--arms", nargs="+", choices=tuple(ARMS), default=list(DEFAULT))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--steps", type=int, default=240, help="of a network and of the GP")
    parser.add_argument("--rounds", type=int, default=100, help="of boosting, at most")
    parser.add_argument(
        "--seconds", type=float, default=0.0, help="of a log without settings, 0: all"
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the page and write it; the exit code is that of `semiparam`."""
    return run_command(lambda: measure(parse(make_parser(), arguments)), "rivals")


def measure(args: argparse.Namespace) -> None:
    """Each method on each split of the arms; then the page."""
    found: Scores = {}
    left_out: list[str] = []
    methods = []
    for method in args.methods:
        missing = [name for name in NEEDS.get(method, ()) if not importlib.util.find_spec(name)]
        if missing:
            left_out.append(f"{' and '.join(RIVALS[method])}: {', '.join(missing)} not installed")
        else:
            methods.append(method)
    with threadpool_limits(limits=1):
        for arm in args.arms:
            if not arm.startswith("sim_") and not (args.data / "robots" / arm).is_dir():
                left_out.append(f"{ARMS[arm]}: no folder robots/{arm}")
                continue
            try:
                for split in arm_splits(args.data, arm, args.seconds):
                    found.setdefault(arm, {})[split.name] = run(arm, split, methods, args)
            except MissingExtraError as error:
                left_out.append(f"{ARMS[arm]}: {error}")
    print(page(found, left_out, args), end="")


def run(
    arm: str, split: Split, methods: Sequence[str], args: argparse.Namespace
) -> dict[str, Score]:
    """The scores of each method."""
    scores = {}
    for method in methods:
        started = time.perf_counter()
        for name, result in results(split, method, args).items():
            scores[name] = score(split, result)
        took = time.perf_counter() - started
        print(f"{arm} {split.name}: {method}, {took:.0f} s", file=sys.stderr, flush=True)
    return scores


def results(split: Split, method: str, args: argparse.Namespace) -> dict[str, Result]:
    """The predictions of a method, under the name or the names of its rows."""
    if method == "identification":
        return identification(split)
    if method == "package":
        return package(split)
    rival = _rival(method, args)
    return {
        name: compete(split, rival, residual=name.endswith(RIGID_BODY)) for name in RIVALS[method]
    }


def _rival(method: str, args: argparse.Namespace) -> Rival:
    if method == "boosting":
        return Boosting(args.rounds)
    import torch
    from torch_rivals import FeatureMachine, Recurrent, SparseGP

    torch.set_num_threads(1)
    make: dict[str, Callable[[], Rival]] = {
        "lstm": partial(Recurrent, torch.nn.LSTM, args.steps),
        "gru": partial(Recurrent, torch.nn.GRU, args.steps),
        "gp": partial(SparseGP, args.steps),
        "xrfm": FeatureMachine,
    }
    return make[method]()


# The page.


def page(found: Scores, left_out: Sequence[str], args: argparse.Namespace) -> str:
    """Everything in Markdown."""
    parts = [
        "# Rivals, side by side",
        "Methods that learn inverse dynamics, each on the same training parts of the same logs,\n"
        "and their errors on the test parts, of which nothing is learned (frozen); one thread.",
        "## Where others are better",
        *better(found),
        "## How to read it",
        READ.format(calls=CALLS, repeats=REPEATS),
        *(table for arm, splits in found.items() for table in tables(arm, splits)),
        "## What each method was given",
        GIVEN.format(
            held=f"{HELD_OUT:.0%}".replace("%", " %"),
            window=WINDOW,
            steps=args.steps,
            rounds=args.rounds,
            most=MOST,
        ),
        "## Not run, and left out",
        *(f"- {one}" for one in left_out),
        NOT_RUN,
    ]
    return "\n\n".join(parts) + "\n"


def better(found: Scores) -> list[str]:
    """A sentence for each arm: which rows have a lower frozen error than this package's default."""
    rivals = {name for names in RIVALS.values() for name in names}
    lines, wins = [], Counter[str]()
    for arm, splits in found.items():
        means = {name: mean_nmse(splits, name) for name in methods_of(splits)}
        if PACKAGE_DEFAULT not in means:
            continue
        own = means[PACKAGE_DEFAULT]
        lower = [name for name in sorted(means, key=lambda name: means[name]) if means[name] < own]
        named = [
            ", ".join(f"{name} {_number(means[name])}" for name in lower if name in kind)
            for kind in (rivals, set(means) - rivals)
        ]
        present = rivals & set(means)
        wins.update(present & set(lower))
        won = sum(
            any(scores[name].nmse.mean() < scores[PACKAGE_DEFAULT].nmse.mean() for name in present)
            for scores in splits.values()
        )
        known = ""
        if PLAIN_RIGID_BODY in means:
            known = f", a {PLAIN_RIGID_BODY} {_number(means[PLAIN_RIGID_BODY])}"
        lines.append(
            f"- **{ARMS[arm]}**: this package's default leaves {_number(own)}{known}. "
            + (f"Better rivals: {named[0]}" if named[0] else "No rival is better")
            + f"; split by split, one is on {won} of {len(splits)}."
            + (f" Better rows of the package's own: {named[1]}." if named[1] else "")
        )
    counts = ", ".join(f"{name} on {count}" for name, count in wins.most_common())
    return [
        f"Of {len(lines)} arms, better than this package's default: {counts or 'no rival on any'}.",
        "Normalised mean squared error, frozen, mean over an arm's splits and joints.",
        "\n".join(lines) or "Nothing was compared with this package.",
    ]


def tables(arm: str, splits: dict[str, dict[str, Score]]) -> list[str]:
    """An arm's means over its splits, and the errors split by split."""
    names = methods_of(splits)
    rows = []
    for name in names:
        scores = [of_split[name] for of_split in splits.values()]
        online = [
            _number(np.mean([one.online[protocol] for one in scores])) if scores[0].online else ""
            for protocol in ("sequential", "delayed")
        ]
        rows.append(
            [
                name,
                _number(mean_nmse(splits, name)),
                _number(np.mean([one.nmse.max() for one in scores])),
                f"{np.mean([one.rms.mean() for one in scores]):.3g}",
                *online,
                ""
                if np.isnan(scores[0].seconds)
                else f"{np.mean([s.seconds for s in scores]):.2g}",
                f"{min(one.microseconds for one in scores):.0f}",
            ]
        )
    by_split = [
        [
            name,
            *(
                f"{_number(s[name].nmse.mean())} ({_number(s[name].nmse.max())})"
                for s in splits.values()
            ),
        ]
        for name in names
    ]
    count = len(splits)
    return [
        f"## {ARMS[arm]}",
        f"Means over {count} split{'s' * (count > 1)}; of a prediction's time the least.",
        markdown(HEADER, rows),
        "Split by split: nmse, frozen (worst joint).",
        markdown(["method", *splits], by_split),
    ]


def methods_of(splits: dict[str, dict[str, Score]]) -> list[str]:
    """The methods that all splits have."""
    first, *rest = splits.values()
    return [name for name in first if all(name in scores for scores in rest)]


def mean_nmse(splits: dict[str, dict[str, Score]], name: str) -> float:
    """Mean over joints and splits."""
    return float(np.mean([scores[name].nmse.mean() for scores in splits.values()]))


def _number(value: float) -> str:
    return f"{value:.4f}" if value < 1.0 else f"{value:.2f}"


READ = """\
nmse is the mean squared error over the variance of the measured effort, averaged over the joints:
1 is what predicting the mean would leave. `worst joint` is the largest; rms is in N m, averaged
over the joints. All methods see the same filtered samples, with the settings of `config/robots/`
or the defaults; they learn those in motion, and are scored on all of the test part. A sample of
which an axis was not measured, as of TIAGo's fifth joint, whose sensor sticks, is left out for all.

- **URDF**: its parameters as they stand. **least squares**: base parameters with all columns of the
  package, in batch. **consistent parameters**: the same of bodies that can exist
  ([identification](identification.md)).
- **plain rigid body** down to **+ random features**: this package's learner, each sample once: with
  viscous and Coulomb friction, offsets and rotor inertias, with all columns, and with a residual.
  **persistence** is the rigid body plus its last error: no model of the rest at all, and what a
  sequential figure is to be compared with.
- **on the rigid body**: the rival learns what this rigid body, of the same columns, leaves.

Sequential, each sample is predicted and then learned; delayed, half a second is predicted before
any of it is learned ([results](results.md)). That is what this package is for. The others learn
once, so that these columns compare its own parts only.

Training is one run with the choice of hyperparameters (of this package and of identification the
faster of two, without a choice). A prediction's time is that of one sample alone, from its state to
efforts, with what the library needs for a call: medians of {calls}, the least of {repeats}. Other
work ran on the machine, so all times are upper bounds."""

GIVEN = """\
A rival's settings were chosen on the last {held} of the training part up to the end of its motion;
with these it learned all of it. Inputs and targets are standardised by what is learned. No log here
has commanded positions, so the inputs are positions, velocities and accelerations, and the rigid
body's prediction where a rival is on it. Each may choose not to learn, which leaves the mean, or
the rigid body.

- **LSTM, GRU**: a layer of 64 units over {window} samples, Adam, at most {steps} batches of 64
  windows; chosen are noise on the inputs (0 or 0.1) and the number of batches.
- **boosting**: scikit-learn's HistGradientBoosting, one for each joint; chosen are 6 or 31 leaves
  and the rounds, at most {rounds}.
- **sparse GP**: gpytorch, for each joint 128 inducing points and a kernel with a width for each
  input; chosen is the number of batches of 256, at most {steps}.
- **xRFM**: at most {most} rows, taken evenly; chosen are the ridge (of 3), the bandwidth (of 2) and
  the rounds, at most 4.
- **This package**: `config/robots/` and the defaults, of which nothing was chosen here. Some of
  them were once set with these logs in view ([results](results.md)), which no rival's were.

The xMate's trajectories are one motion three times each, so that the last fifth repeats what was
learned and favours settings of the rivals that fit it too closely. A whole trajectory held out
would be a better choice there, and is to be had only where two are learned."""

NOT_RUN = """\
- GRU, sparse GP and xRFM as whole models: the package's own nonparametric model, also a kernel
  method, leaves 1 and more on motion never seen ([results](results.md)).
- Longer training and larger grids: the whole page was to take about half an hour of one core."""


if __name__ == "__main__":
    sys.exit(main())
