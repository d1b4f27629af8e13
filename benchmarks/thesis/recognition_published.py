"""Table 7.1 of the thesis by the protocol of its authors' own code, on MNIST or files like it.

It differs from the text (7.6.1, which `recognize` follows): one class is the new one in all trials,
penalties multiply the number of balanced examples, the validation set holds the new class too, the
penalty is chosen by its accuracy there, and that accuracy is what the table shows. Recoding has one
exponent, chosen beforehand. The 1000 examples of each class that are drawn are split: four fifths
are learned, a fifth is the validation set.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from output import header
from recognition_data import NEW, FeatureFile, read_features
from recognition_protocol import (
    Candidates,
    RebalancedRidge,
    Rows,
    exponent_number,
    incremental_candidates,
)
from recognition_results import BALANCED, MNIST, MNIST_COUNTS
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.progress import ProgressBar
from semiparam_dynamics.learning import IncrementalRLSC
from semiparam_dynamics.learning.held_out import EXPONENTS

DESCRIPTION = """\
Table 7.1 of the thesis with the settings of its authors' code: inputs in [-1, 1], the same new
class in all trials, penalties from 0.001 to 100 times the number of balanced examples, validation
with the new class, and the validation set's accuracy as the result. Beside it, of the same
classifiers, the accuracy on test rows that had no part in any choice."""

PENALTIES = tuple(10.0**i for i in range(-3, 3))
LEARNED = 0.8  # of the examples drawn of each class
TEST = 200  # of each class, where the file has a test part


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the protocol's options."""
    parser.add_argument("file", metavar="FEATURES.npz")
    parser.add_argument("--drawn", type=int, default=BALANCED, help="examples of each class (1000)")
    parser.add_argument("--new-class", default="8", metavar="NAME", help="in all trials (8)")
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument(
        "--exponents",
        type=lambda text: [float(part) for part in text.split(",")],
        default=[0.6, 0.7],
        metavar="E,E,...",
        help="of recoding (0.6, 0.7)",
    )
    parser.add_argument("--seed", type=int, default=0)


def run(args: argparse.Namespace) -> None:
    """Run the trials and print the table."""
    file = read_features(args.file)
    new_class = file.class_number(args.new_class)
    least = int(file.train_counts().min())
    if not 5 <= args.drawn <= least:
        raise ConfigurationError(
            f"{file.path} has {least} rows of its smallest class: --drawn must be 5 to that,"
            f" not {args.drawn}"
        )
    if args.trials < 1:
        raise ConfigurationError(f"there must be at least one trial, not {args.trials}")
    if unknown := [e for e in args.exponents if not np.isclose(EXPONENTS, e, 0.0, 1e-9).any()]:
        raise ConfigurationError(
            f"--exponents must be multiples of {EXPONENTS[1]:g} from 0 to 1, not {unknown[0]:g}"
        )
    found: dict[tuple[str, int], list[tuple[float, ...]]] = {}
    with ProgressBar(file.path.name, sys.stderr) as progress, threadpool_limits(limits=1):
        for trial in range(args.trials):
            draw = np.random.default_rng((args.seed, trial))
            for method, point, scores in one_trial(
                file, draw, new_class, args.drawn, args.exponents
            ):
                found.setdefault((method, point), []).append(scores)
            progress((trial + 1) / args.trials)
    print(f"{header()}\n{table(file, args, found)}", flush=True)


def one_trial(
    file: FeatureFile,
    draw: np.random.Generator,
    new_class: int,
    drawn: int,
    exponents: list[float],
) -> Iterator[tuple[str, int, tuple[float, ...]]]:
    """(method, new examples, accuracies) of a trial.

    Accuracies are class-averaged, on the validation set and on the test rows, each followed by the
    new class' own; and the penalty in units of the balanced examples.
    """
    count = round(LEARNED * drawn)
    learned, validation = [], []
    classes = range(len(file.names))
    for number in classes:
        rows = draw.permutation(np.flatnonzero(file.train.numbers == number))[:drawn]
        learned.append(rows[:count])
        validation.append(rows[count:])
    low, high = float(file.train.X.min()), float(file.train.X.max())

    def scaled(X: np.ndarray, numbers: np.ndarray, rows: np.ndarray) -> Rows:
        return Rows((X[rows].astype(float) - low) / (high - low) * 2.0 - 1.0, numbers[rows])

    train, apart = file.train, file.test or file.train
    chosen_by = scaled(train.X, train.numbers, np.concatenate(validation))
    tested = chosen_by
    if file.test is not None:
        parts = [draw.permutation(np.flatnonzero(apart.numbers == c))[:TEST] for c in classes]
        tested = scaled(apart.X, apart.numbers, np.concatenate(parts))
    old = np.concatenate([rows for c, rows in enumerate(learned) if c != new_class])
    balanced = scaled(train.X, train.numbers, old)
    stream = scaled(train.X, train.numbers, learned[new_class])
    n = len(old)
    model = IncrementalRLSC(tuple(n * one for one in PENALTIES), recoding=0.0, hold_out=0)
    model.partial_fit(balanced.X, balanced.y)
    reached = 0
    for point in (point for point in NEW if point <= len(stream.X)):
        new = Rows(stream.X[:point], stream.y[:point])
        model.partial_fit(stream.X[reached:point], stream.y[reached:point])
        reached = point
        penalties = [(n + point) * one for one in PENALTIES]
        scratch = RebalancedRidge(balanced, len(file.names), penalties).candidates(new, chosen_by)
        recursive = incremental_candidates(model, chosen_by)
        choices = [("naive", recursive, 0), ("rebalanced", scratch, 0)]
        choices += [(f"recoding, exponent {e:g}", recursive, exponent_number(e)) for e in exponents]
        for method, candidates, exponent in choices:
            choice = candidates.best(exponent)
            accuracies = [
                share
                for rows in (chosen_by, tested)
                for share in averaged(candidates, choice, rows, new_class)
            ]
            yield method, point, (*accuracies, float(candidates.penalties[choice[0]]) / n)


def averaged(
    candidates: Candidates, choice: tuple[int, int], rows: Rows, new_class: int
) -> tuple[float, float]:
    """The mean over the classes of their accuracies, and the new class' one."""
    (found,) = candidates.predict(rows.X, [choice])
    right = found == rows.y
    shares = [float(right[rows.y == number].mean()) for number in np.unique(rows.y)]
    return float(np.mean(shares)), float(right[rows.y == new_class].mean())


def table(
    file: FeatureFile,
    args: argparse.Namespace,
    found: dict[tuple[str, int], list[tuple[float, ...]]],
) -> str:
    """The table in Markdown, for MNIST with the thesis' figures beside."""
    count = round(LEARNED * args.drawn)
    thesis = MNIST if tuple(file.train_counts().tolist()) == MNIST_COUNTS else {}
    lines = [
        f"## {Path(args.file).name}: table 7.1 by its code's protocol, {args.trials} trials",
        "",
        f"New class {args.new_class}. Of every other class {count} examples are learned;"
        f" {args.drawn - count} of each class, the new one too, choose the penalty, and their"
        " class-averaged accuracy in % is the result, ± its standard deviation over the trials;"
        " in brackets the difference to the thesis in what it prints after ±. Inputs in [-1, 1].",
        "",
        "| new examples | | total | thesis | | new class | thesis | | test, total | new class"
        " | penalty |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (method, point), rows in sorted(found.items(), key=lambda item: item[0][1]):
        values = 100.0 * np.array(rows)
        mean, spread = values.mean(axis=0), values.std(axis=0)
        cells = [f"{m:.1f} ± {s:.1f}" for m, s in zip(mean, spread, strict=True)]
        theirs = thesis.get(point, {}).get(method.partition(",")[0])
        total = fresh = [" ", " "]
        if theirs is not None:
            total = _beside(float(mean[0]), theirs.total, theirs.total_spread)
            fresh = _beside(float(mean[1]), theirs.new_class, theirs.new_class_spread)
        penalty = np.exp(np.log(values[:, 4] / 100.0).mean())
        apart = ["–", "–"] if file.test is None else cells[2:4]
        shown = [cells[0], *total, cells[1], *fresh, *apart, f"{penalty:.2g}"]
        lines.append(f"| {point} | {method} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def _beside(mean: float, theirs: float, spread: float) -> list[str]:
    """The thesis' figure, and how far the mean is from it."""
    off = mean - theirs
    inside = f" ({off / spread:+.1f})" if spread else ""
    return [f"{theirs} ± {spread}", f"{off:+.1f}{inside}"]
