"""Table 7.1 of the thesis on files of features."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from output import header
from recognition_data import BALANCED, choose_sizes, read_features
from recognition_protocol import SCALES, Protocol, ProtocolResult, run_protocol
from recognition_results import (
    plot_comparison,
    plot_exponents,
    recognition_table,
    results_json,
)

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.progress import ProgressBar

DESCRIPTION = """\
Table 7.1 of the thesis on a file of features: classes with many examples are learned, then one
more class joins them example by example. Compared are regularised least squares as it is (naive),
its class-rebalanced scores (recoding, what the recognition node learns with), and rebalanced least
squares trained anew each time. Files: npz with X (examples x features) and y, or X_train, y_train,
X_test and y_test; optional `classes` names the labels 0, 1, ... Sizes that aren't given are the
thesis' for MNIST, or what the file has enough of."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the protocol's options."""
    parser.add_argument("files", metavar="FEATURES.npz", nargs="+")
    parser.add_argument(
        "--balanced", type=int, metavar="N", help="learned of each class but the new one (1000)"
    )
    parser.add_argument("--test", type=int, metavar="N", help="to test on, of each class (200)")
    parser.add_argument(
        "--new",
        type=_listed(int),
        metavar="N,N,...",
        help="examples of the new class after which to measure (1,5,10,50,100,500)",
    )
    parser.add_argument(
        "--trials", type=int, default=10, metavar="N", help="each with rows of its own (10)"
    )
    parser.add_argument(
        "--penalties",
        type=_listed(float),
        metavar="P,P,...",
        help="candidates, plain ridges (0.01 to 100000, a factor of ten apart)",
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        default=0.005,
        metavar="SHARE",
        help="accuracy that a second row of recoding may give up (0.005; 0: no such row)",
    )
    parser.add_argument(
        "--scale",
        choices=SCALES,
        default="max",
        help="inputs by the greatest learned (default), each by its norm, or as they are",
    )
    parser.add_argument(
        "--new-class", metavar="NAME", help="the same new class in every trial (default: random)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the rows and new classes (0)")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="for table.md, results.json, figure72.png and figure73.png; of several files each"
        " has a folder in it",
    )


def run(args: argparse.Namespace) -> None:
    """Run the protocol on each file, print its table and write its files."""
    stems = [Path(name).stem for name in args.files]
    if args.out is not None and len(set(stems)) < len(stems):
        raise ConfigurationError("two files have the same name: their results need two --out")
    for name, stem in zip(args.files, stems, strict=True):
        folder = None
        if args.out is not None:
            folder = args.out if len(args.files) == 1 else args.out / stem
            folder.mkdir(parents=True, exist_ok=True)  # before what takes minutes
        result = _measure(args, name)
        table = f"{header()}\n{recognition_table(result)}"
        print(table, flush=True)
        if folder is not None:
            _write(result, table, folder)
            print(f"{folder / 'table.md'}\n{folder / 'figure72.png'}\n{folder / 'figure73.png'}")


def _measure(args: argparse.Namespace, name: str) -> ProtocolResult:
    file = read_features(name)
    new_class = None if args.new_class is None else file.class_number(args.new_class)
    sizes = choose_sizes(file, args.balanced, args.test, args.new, new_class)
    if args.balanced is None and sizes.balanced < BALANCED:
        print(
            f"thesis: {file.path} has rows for {sizes.balanced} balanced examples of each class,"
            f" not the thesis' {BALANCED}",
            file=sys.stderr,
        )
    penalties = {} if args.penalties is None else {"penalties": args.penalties}
    protocol = Protocol(
        sizes,
        trials=args.trials,
        tolerance=args.tolerance,
        scale=args.scale,
        new_class=new_class,
        seed=args.seed,
        **penalties,
    )
    with ProgressBar(file.path.name, sys.stderr) as progress:
        return run_protocol(file, protocol, progress)


def _write(result: ProtocolResult, table: str, folder: Path) -> None:
    (folder / "table.md").write_text(table, encoding="utf-8")
    (folder / "results.json").write_text(results_json(result), encoding="utf-8")
    plot_exponents(result, folder / "figure72.png")
    plot_comparison(result, folder / "figure73.png")


def _listed(kind: type) -> Callable[[str], tuple[Any, ...]]:
    """A parser of numbers with commas between."""

    def parse(text: str) -> tuple[Any, ...]:
        try:
            return tuple(map(kind, text.split(",")))
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} isn't numbers like 1,5,10") from None

    return parse
