"""Detection of objects that were not taught, among those that were, by several scores.

    python benchmarks/recognition_unknown.py DATA --objects emoji-datasource-google-16.0.0.tgz

DATA and the archive are those of recognition_heads.py. Some classes are held out, drawn anew in
each trial; the others are learned example by example as the node has them. Then rows of both, which
had no part in anything, are asked for:

- the area under the curve of the true positive over the false positive rate, by familiarity
  (`familiarity`), by the largest probability, and by novelty (`novelty`);
- at `false_accepts` of 1, 5 and 20 %: the share of rows of classes held out that pass, and of rows
  of classes taught the share that is recognised rightly, of all and of what it was without a limit;
- the probability that an object was taught, in bins, beside the share that was, with as many rows
  of both kinds.

Then one class alone is taught to the node's recognizer, single frames without smoothing, after rows
of half of the other classes came as background (0: none did): the share recognised of its other
rows, and of rows of these classes and of the classes never seen.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from output import make_parser, parse
from recognition_objects import add_arguments, rows_of, spread
from sklearn.metrics import roc_auc_score
from tables.common import print_table
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.learning import IncrementalRLSC
from semiparam_dynamics.recognition.config import RecognitionConfig
from semiparam_dynamics.recognition.recognizer import Recognizer

SHARES = (0.01, 0.05, 0.2)
BINS = np.linspace(0.0, 1.0, 6)
RIDGE = 0.3  # the node's
HEADS = ("discriminant", "least_squares")


def main() -> None:
    parser = make_parser(__doc__)
    add_arguments(parser)
    parser.add_argument("--heads", nargs="+", default=HEADS, choices=HEADS)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--figure", type=Path, help="a picture of the probabilities")
    args = parse(parser)
    predicted: dict[str, list[list[str]]] = {}
    with threadpool_limits(1):
        for name in args.sets:
            title, sizes = f"{name}, 3 of 10 classes held out", (3, 300)
            if name == "objects":
                title, sizes = "150 objects, 50 held out", (50, 30)
            X, y = rows_of(name, args, 150)
            predicted[title] = report(title, X, y, sizes, args)
            report_alone(name, X, y, args.trials)
    if args.figure is not None:
        draw(predicted, args.figure)


def report(
    title: str, X: Array, y: Indices, sizes: tuple[int, int], args: argparse.Namespace
) -> list[list[str]]:
    """Print the tables of a set of rows: `sizes` classes held out, and rows a class learned.

    Returns the last one, of probabilities.
    """
    curves, limits, calibration = [], [], []
    for head in args.heads:
        found = [trial(X, y, sizes, head, k) for k in range(args.trials)]
        areas = {name: [one["areas"][name] for one in found] for name in found[0]["areas"]}
        curves.append([head, *(spread([100.0 * a for a in areas[name]]) for name in areas)])
        for k, share in enumerate(SHARES):
            columns = np.transpose([one["limits"][k] for one in found])
            limits.append([head, f"{share:.0%}", *(spread((100.0 * c).tolist()) for c in columns)])
        predicted = np.concatenate([one["predicted"] for one in found])
        truth = np.concatenate([one["truth"] for one in found])
        bins = np.clip(np.digitize(predicted, BINS) - 1, 0, len(BINS) - 2)
        for b in range(len(BINS) - 1):
            inside = bins == b
            if inside.any():
                row = [f"{predicted[inside].mean():.2f}", f"{truth[inside].mean():.2f}"]
                calibration.append([head, f"{BINS[b]:.1f} to {BINS[b + 1]:.1f}", *row])
    print_table(f"{title}: area under the curve [%]", ("head", *areas), curves)
    header = ("head", "asked", "held out that pass [%]", "taught, right [%]", "without a limit [%]")
    print_table(f"{title}: false accepts", header, limits)
    print_table(
        f"{title}: probability", ("head", "predicted", "mean predicted", "taught"), calibration
    )
    return calibration


def report_alone(name: str, X: Array, y: Indices, trials: int) -> None:
    """Print the shares recognised as the only object taught."""
    rows = []
    for before in (0, 60, 200):
        for taught in (10, 30):
            found = np.array([alone(X, y, before, taught, k) for k in range(2 * trials)])
            shares = (spread((100.0 * column).tolist()) for column in found.T)
            rows.append([str(before), str(taught), *shares])
    header = ("frames before", "taught", "the object [%]", "the background [%]", "others [%]")
    print_table(f"{name}: one object taught, recognised in rows of", header, rows)


def alone(X: Array, y: Indices, before: int, taught: int, seed: int) -> list[float]:
    """The shares of rows of the object, of the background's classes and of others recognised."""
    rng = np.random.default_rng(seed)
    own, *others = rng.permutation(np.unique(y))
    half = len(others) // 2
    parts = [
        rng.permutation(np.flatnonzero(np.isin(y, c))) for c in (own, others[:half], others[half:])
    ]
    config = replace(RecognitionConfig(), smoothing__frames=1)
    recognizer = Recognizer(config, {"input": "features"})
    for row in parts[1][:before]:
        recognizer.recognize(X[row])
    for row in parts[0][:taught]:
        recognizer.learn(X[row], "object")
    while recognizer.refresh():
        pass
    asked = (parts[0][taught:], parts[1][before:], parts[2])
    return [
        float(np.mean([recognizer.recognize(x).label == "object" for x in X[rows[:300]]]))
        for rows in asked
    ]


def draw(predicted: dict[str, list[list[str]]], path: Path) -> None:
    """Save a picture of predicted probabilities beside the shares that were taught."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2 * len(predicted), 3.3), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, len(predicted)))
    for ax, (title, rows) in zip(axes, predicted.items(), strict=True):
        ax.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        for head in dict.fromkeys(row[0] for row in rows):
            points = np.array([[float(v) for v in row[2:]] for row in rows if row[0] == head])
            ax.plot(*points.T, marker="o", label=head.replace("_", " "))
        ax.set(
            title=title, xlabel="predicted probability", xlim=(0, 1), ylim=(0, 1), aspect="equal"
        )
        ax.title.set_fontsize(9)
    figure.axes[0].set_ylabel("share that was taught")
    figure.axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)


def trial(X: Array, y: Indices, sizes: tuple[int, int], head: str, seed: int) -> dict[str, object]:
    """Areas, shares at each limit, and probabilities beside the truth."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.unique(y))
    strangers, known = labels[: sizes[0]], labels[sizes[0] :]
    learned, asked, strange = [], [], []
    for label in known:
        rows = rng.permutation(np.flatnonzero(y == label))
        learned.append(rows[: sizes[1]])
        asked.append(rows[sizes[1] : 2 * sizes[1]])
    for label in strangers:
        strange.append(rng.permutation(np.flatnonzero(y == label))[: 2 * sizes[1]])
    order = rng.permutation(np.concatenate(learned))
    own, others = np.concatenate(asked), np.concatenate(strange)
    count = min(len(own), len(others))
    own, others = rng.permutation(own)[:count], rng.permutation(others)[:count]
    model = IncrementalRLSC(RIDGE, tolerance=0.01, head=head)
    model.fit(X[order], y[order])
    rows = np.concatenate((own, others))
    truth = np.arange(2 * count) < count
    right = model.predict(X[own]) == y[own]
    familiarity = model.familiarity(X[rows])
    areas = {
        "familiarity": roc_auc_score(truth, familiarity),
        "largest probability": roc_auc_score(truth, model.predict_proba(X[rows]).max(axis=1)),
        "novelty": roc_auc_score(truth, -model.novelty(X[rows])),
    }
    limits = []
    for share in SHARES:
        least = model.least_familiarity(share)
        passed = familiarity > (least if least is not None else -np.inf)
        limits.append((passed[count:].mean(), (passed[:count] & right).mean(), right.mean()))
    return {
        "areas": areas,
        "limits": limits,
        "predicted": model.known_at(model.familiarity(X[rows])),
        "truth": truth,
    }


if __name__ == "__main__":
    main()
