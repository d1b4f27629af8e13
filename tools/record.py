"""The regression record: numbers of fixed cases, to prove that a change of the code changes none.

    python tools/record.py write FILE [--only NAME ...]
    python tools/record.py compare FILE_A FILE_B [--tolerance 1e-10] [--only NAME ...]

`write` runs the cases of `tools/recorded/` on the package beside this folder and writes one npz of
named float arrays. `compare` says of each case whether it is bitwise equal, and exits with 1 where
something differs by more than the tolerance, relative to its array's largest number, or is missing.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import json
import os
import pkgutil
import sys
import time
import traceback
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

# Of this checkout, whatever is installed; and matplotlib has no screen to draw on here.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("MPLBACKEND", "Agg")

import numpy as np  # noqa: E402

METADATA = "metadata"
SHOWN = 20  # arrays of a case that are listed
Arrays = dict[str, np.ndarray]


def main(argv: Sequence[str] | None = None) -> int:
    """Write a record, or compare two."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(required=True, dest="verb")
    writer = verbs.add_parser("write", help="run the cases")
    writer.add_argument("file", type=Path)
    comparer = verbs.add_parser("compare", help="compare two records")
    comparer.add_argument("files", type=Path, nargs=2)
    comparer.add_argument("--tolerance", type=float, default=1e-10)
    for each in (writer, comparer):
        each.add_argument("--only", nargs="+", default=[], metavar="NAME", help=chosen.__doc__)
    listing = verbs.add_parser("list", help="the names of all cases")
    listing.set_defaults(only=[])
    args = parser.parse_args(argv)
    if args.verb == "list":
        print("\n".join(cases()))
        return 0
    if args.verb == "write":
        return write(args.file, args.only)
    return compare(*args.files, args.tolerance, args.only)


def cases() -> dict[str, Any]:
    """All cases by name; their own imports wait until they run."""
    import recorded
    from recorded.table import CASES

    for module in pkgutil.iter_modules(recorded.__path__):
        importlib.import_module(f"recorded.{module.name}")

    return CASES


def chosen(names: Iterable[str], only: Sequence[str]) -> list[str]:
    """Cases of this name, below it (live: live/...), or that a pattern matches; default: all"""
    return [
        name
        for name in names
        if not only
        or any(
            name == each or name.startswith(each.rstrip("/") + "/") or fnmatch.fnmatch(name, each)
            for each in only
        )
    ]


def write(file: Path, only: Sequence[str]) -> int:
    """Run the cases and write what they give; 1 where one of them failed."""
    from recorded.table import NoDataError
    from threadpoolctl import threadpool_limits

    table = cases()
    names = chosen(table, only)
    if unknown := [each for each in only if not chosen(table, [each])]:
        print(f"no case is called {' or '.join(unknown)}")
        return 2
    arrays: Arrays = {}
    about: dict[str, Any] = {"cases": {}, "skipped": {}, "failed": {}}
    began = time.perf_counter()
    for name in names:
        started = time.perf_counter()
        try:
            # How a product is shared out among cores is not to decide how it is rounded.
            with threadpool_limits(limits=1), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # few iterations are meant to be few
                found = table[name]()
        except NoDataError as error:
            about["skipped"][name] = str(error)
            print(f"{'skipped':>8}  {name}: {error}", flush=True)
            continue
        except Exception as error:  # the other cases are recorded all the same
            about["failed"][name] = repr(error)
            print(f"{'FAILED':>8}  {name}: {error!r}\n{traceback.format_exc()}", flush=True)
            continue
        seconds = time.perf_counter() - started
        about["cases"][name] = {"seconds": round(seconds, 3), "arrays": sorted(found)}
        arrays |= {f"{name}/{key}": np.asarray(v, dtype=float) for key, v in found.items()}
        print(f"{seconds:>6.1f} s  {name}: {len(found)} arrays", flush=True)
    about |= versions()
    np.savez_compressed(file, **arrays, **{METADATA: np.array(json.dumps(about))})
    total = time.perf_counter() - began
    print(f"{total:>6.1f} s  {len(about['cases'])} cases, {len(about['failed'])} failed: {file}")
    return int(bool(about["failed"]))


def versions() -> dict[str, Any]:
    """Cores and versions, on which the numbers depend, too."""
    import numba
    import scipy
    import sklearn

    import semiparam_dynamics

    modules = (semiparam_dynamics, np, scipy, sklearn, numba)
    return {"cores": os.cpu_count(), **{m.__name__: m.__version__ for m in modules}}


def read(file: Path) -> tuple[Arrays, dict[str, Any]]:
    """A record's arrays and its metadata."""
    with np.load(file, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return arrays, json.loads(str(arrays.pop(METADATA)))


def compare(first: Path, second: Path, tolerance: float, only: Sequence[str]) -> int:
    """Print a line for each case; 1 where anything differs or is missing."""
    (a, about_a), (b, about_b) = read(first), read(second)
    for key in (name for name in about_a if not isinstance(about_a[name], dict)):
        if about_a[key] != about_b.get(key):
            print(f"note: {key} is {about_a[key]} and {about_b.get(key)}")
    names = chosen(dict.fromkeys((*about_a["cases"], *about_b["cases"])), only)
    wrong = sum(_differs(name, a, b, about_a, about_b, tolerance) for name in names)
    print(f"{len(names)} cases, {wrong} of them differ by more than {tolerance:g} or lack arrays")
    return int(wrong > 0 or not names)


def _differs(name: str, a: Arrays, b: Arrays, about_a: Any, about_b: Any, tolerance: float) -> bool:
    """Print a case's line, and below it what is wrong with it, if anything is."""
    if name not in about_a["cases"] or name not in about_b["cases"]:
        there, about = ("first", about_b) if name in about_a["cases"] else ("second", about_a)
        why = about["failed"].get(name) or about["skipped"].get(name) or "not run"
        print(f"{name}: only in the {there} ({why})")
        return True
    keys_a, keys_b = (about["cases"][name]["arrays"] for about in (about_a, about_b))
    both = sorted(set(keys_a) & set(keys_b))
    pairs = {key: (a[f"{name}/{key}"], b[f"{name}/{key}"]) for key in both}
    apart = {key: difference(*pair) for key, pair in pairs.items()}
    other = [key for key, pair in pairs.items() if not bitwise_equal(*pair)]
    if other:
        worst = max(other, key=lambda key: apart[key])
        verdict = f"largest relative difference {apart[worst]:.2g} ({worst}), {len(other)} arrays"
    else:
        verdict = "bitwise equal"
    print(f"{name}: {verdict}")
    missing = [f"    only in the first: {key}" for key in keys_a if key not in both]
    missing += [f"    only in the second: {key}" for key in keys_b if key not in both]
    beyond = sorted(
        (key for key in both if not apart[key] <= tolerance), key=lambda key: apart[key]
    )[::-1]
    for key in beyond[:SHOWN]:
        print(f"    {apart[key]:.2g}  {key}, {pairs[key][0].shape} and {pairs[key][1].shape}")
    if missing:
        print("\n".join(missing[:SHOWN]))
    if (more := sum(max(len(each) - SHOWN, 0) for each in (beyond, missing))) > 0:
        print(f"    and {more} more")
    return bool(missing or beyond)


def bitwise_equal(a: np.ndarray, b: np.ndarray) -> bool:
    """The same shape and the same bytes, NaN and the zeros' signs included."""
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """The largest |a - b| over the largest |a|; infinite for another shape or another NaN."""
    if a.shape != b.shape:
        return float("inf")
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return 0.0
    with np.errstate(invalid="ignore"):
        gap = np.abs(a - b)[~same].max()
    scale = np.abs(a[np.isfinite(a)]).max(initial=1e-300)
    return float(gap / scale) if np.isfinite(gap) else float("inf")


if __name__ == "__main__":
    sys.exit(main())
