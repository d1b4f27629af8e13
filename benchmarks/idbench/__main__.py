"""Learning of inverse dynamics on logs of real arms, by any method.

    python benchmarks/idbench DATA --out FOLDER [--arms ...] [--methods ...]
    python benchmarks/idbench --publish FOLDER

DATA holds robots/ARM (`python benchmarks/idbench/fetch.py DATA`); two simulated arms need none. A
method is a file of `methods/`. This package with defaults, as `semiparam evaluate` scores it, is
always run; `settings` is this package with those of config/robots. Figures are kept in
FOLDER/idbench.json case by case: methods that are run later are added, and tables of all are
written to FOLDER/idbench.md. `--publish` writes what README.md and docs/ say by these figures.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))  # what all benchmarks share
from arms import CONFIG, NAMES, SIMULATED  # noqa: E402
from cases import Case, cases, pushed_case  # noqa: E402
from output import commit, machine  # noqa: E402
from page import page, publish, rounded  # noqa: E402
from protocols import (  # noqa: E402
    BUDGET,
    Prepared,
    contact_score,
    contact_values,
    method_scores,
    package_scores,
    prepare,
)
from threadpoolctl import threadpool_limits  # noqa: E402

from semiparam_dynamics.base.config_files import load_yaml  # noqa: E402
from semiparam_dynamics.base.errors import ConfigurationError  # noqa: E402
from semiparam_dynamics.learner.config import InverseDynamicsConfig  # noqa: E402
from semiparam_dynamics.offline.cli.main import run_command  # noqa: E402
from semiparam_dynamics.offline.evaluation.protocols import ALL_MODELS  # noqa: E402

SETTINGS = "settings"
METHODS = sorted(path.stem for path in (Path(__file__).parent / "methods").glob("*.py"))
TUNED = ("rigid_body", "semiparametric")  # what of `settings` is kept


def make_parser() -> argparse.ArgumentParser:
    """The parser."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("idbench", description=__doc__, formatter_class=raw)
    parser.add_argument("data", type=Path, nargs="?", help="folder with robots/")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where the figures are kept")
    parser.add_argument("--arms", nargs="+", choices=NAMES, default=NAMES)
    known = (SETTINGS, *METHODS)
    parser.add_argument("--methods", nargs="*", choices=known, default=known)
    parser.add_argument("--seconds", type=float, default=0.0, help="of a simulated arm, 0: 60")
    parser.add_argument("--publish", type=Path, metavar="FOLDER", help="with the figures there")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure or publish; the exit code is that of `semiparam`, 1 where a method failed."""
    return run_command(lambda: run(make_parser().parse_args(arguments)), "idbench")


def run(args: argparse.Namespace) -> int:
    """Run the methods on the cases, and keep the figures."""
    if args.publish:
        publish(json.loads((args.publish / "idbench.json").read_text()))
        return 0
    if args.data is None or args.out is None:
        raise ConfigurationError("name DATA, the folder with robots/, and --out FOLDER")
    if taken := set(METHODS) & {*ALL_MODELS, SETTINGS, "package"}:
        raise ConfigurationError(f"a row of the package has this name already: {', '.join(taken)}")
    file, figures = args.out / "idbench.json", {"methods": {}, "cases": {}}
    args.out.mkdir(parents=True, exist_ok=True)
    if file.exists():
        figures = json.loads(file.read_text())
    about = {"date": str(datetime.date.today()), "commit": commit(), "machine": machine()}
    failed = False
    with threadpool_limits(limits=1):
        for arm in args.arms:
            if arm not in SIMULATED and not (args.data / "robots" / arm).is_dir():
                print(f"{arm}: no folder {args.data / 'robots' / arm}", file=sys.stderr)
                continue
            for case in cases(args.data, arm, args.seconds):
                print(f"{arm} {case.name}: the package", file=sys.stderr)
                entry = figures["cases"].setdefault(arm, {}).setdefault(case.name, {})
                prepared = prepare(case, InverseDynamicsConfig())
                keep_package(prepared, entry)
                figures["methods"]["package"] = about
                for method in args.methods:
                    print(f"{arm} {case.name}: {method}", file=sys.stderr)
                    try:
                        if method == SETTINGS:
                            keep_settings(case, entry)
                        else:
                            measure(method, prepared, entry)
                        figures["methods"][method] = about
                    except ImportError as error:
                        print(f"{method} is left out: {error}", file=sys.stderr)
                    except Exception:  # in whatever way a method fails, the others go on
                        failed = True
                        traceback.print_exc()
                        print(f"{method} failed on {arm} {case.name}", file=sys.stderr)
                write(file, figures)
            if arm in SIMULATED:
                contacts = figures.setdefault("contacts", {}).setdefault(arm, {})
                keep_contacts(arm, args, contacts)
                write(file, figures)
    if not file.exists():
        raise ConfigurationError(f"{args.data} has no logs of {', '.join(args.arms)}")
    return int(failed)


def write(file: Path, figures: dict[str, Any]) -> None:
    """Write figures and tables."""
    file.write_text(json.dumps(rounded(figures), indent=1) + "\n")
    file.with_suffix(".md").write_text(page(rounded(figures)))


def keep_contacts(arm: str, args: argparse.Namespace, contacts: dict[str, float]) -> None:
    """Put the areas of contacts on a simulated arm into `contacts`, by method."""
    case = pushed_case(arm, args.seconds)
    prepared = prepare(case, InverseDynamicsConfig())
    for name in (None, *(set(args.methods) - {SETTINGS})):
        print(f"{arm} {case.name}: {name or 'the package'}", file=sys.stderr)
        try:
            for model, values in contact_values(name and load(name), prepared).items():
                contacts[model or name] = contact_score(case, prepared, values)
        except Exception as error:  # the others go on
            print(f"{name} failed: {error}", file=sys.stderr)


def keep_package(prepared: Prepared, entry: dict[str, Any]) -> None:
    """Put the figures of the package's models with defaults into a case's entry."""
    entry["samples"] = len(prepared.test)
    for protocol, name, figures in package_scores(prepared.evaluation):
        entry.setdefault(protocol, {})[name] = figures


def keep_settings(case: Case, entry: dict[str, Any]) -> None:
    """Put those with the arm's own settings into it, where there are such."""
    path = CONFIG / f"{case.arm}.yaml"
    if path.exists():
        config = load_yaml(path, InverseDynamicsConfig)
        for protocol, name, figures in package_scores(prepare(case, config).evaluation):
            if name in TUNED:
                entry.setdefault(protocol, {})[f"{name}, tuned"] = figures


def load(method: str) -> Any:
    """A method that has learned nothing. Raises ImportError where it needs what is not there."""
    return importlib.import_module(f"methods.{method}").Method()


def measure(method: str, prepared: Prepared, entry: dict[str, Any]) -> None:
    """Put a method's figures into it."""
    for protocol, figures, seconds in method_scores(load(method), prepared):
        entry.setdefault(protocol, {})[method] = figures | {"seconds": seconds}
    if seconds > BUDGET:
        print(f"{method} took more than the budget of {BUDGET:g} s", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
