"""Mutants of single files, each tested by the test that mirrors the file: a survivor is told.

    pip install cosmic-ray
    python tools/mutate.py dynamics/limits samples/pairing --most 60

Of each place one mutant is drawn, of all places `--most`; exits with 1 where fewer than `--least`
of a file's mutants are killed. A file is changed on disk while its mutant is tested.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "semiparam_dynamics"
# Of these no mutant changes what runs: unions are annotations, decorators compile; nor of
# `strict=`, which is for mistakes to come.
EQUIVALENT = ("core/ReplaceBinaryOperator_BitOr", "core/RemoveDecorator")


def mutants(module: Path, most: int, seed: int) -> list[Any]:
    """One of each place that can be mutated, of at most so many places."""
    from cosmic_ray.commands.init import init  # not installed with the rest
    from cosmic_ray.work_db import WorkDB, use_db

    with TemporaryDirectory() as folder, use_db(f"{folder}/db", WorkDB.Mode.create) as database:
        init([module], database, {})
        found = [mutant for item in database.work_items for mutant in item.mutations]
    draw, lines = random.Random(seed), module.read_text().splitlines()  # nosec B311: no secret
    by_place: dict[tuple[int, int], list[Any]] = {}
    for mutant in sorted(found, key=lambda m: (m.start_pos, m.operator_name)):
        row, column = mutant.start_pos
        strict = lines[row - 1][:column].endswith("strict=")
        if not (strict or mutant.operator_name.startswith(EQUIVALENT)):
            by_place.setdefault(mutant.start_pos, []).append(mutant)
    one = [draw.choice(each) for each in by_place.values()]
    return sorted(draw.sample(one, min(most, len(one))), key=lambda m: m.start_pos)


def test(name: str, most: int, seed: int) -> float:
    """The share of a file's mutants that its tests kill; says which they don't."""
    from cosmic_ray.mutating import mutate_and_test

    module = PACKAGE / f"{name}.py"
    tests = ROOT / "test" / Path(name).with_name(f"test_{Path(name).name}.py")
    # Compiled code that is kept elsewhere holds what it calls as that was: all is interpreted.
    os.environ["NUMBA_DISABLE_JIT"] = str(int("jit import" in module.read_text()))
    words = [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", str(tests)]
    began = time.monotonic()
    subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    limit = 30.0 + 5.0 * (time.monotonic() - began)
    left, drawn = 0, mutants(module, most, seed)
    for mutant in drawn:
        result = mutate_and_test([mutant], shlex.join(words), limit)
        if not result.is_killed:
            left += 1
            lines = (result.diff or "").splitlines()[3:]
            told = [line for line in lines if line.startswith(("@@", "-", "+"))]
            print(f"{name} survives:", *told, sep="\n", flush=True)
    print(f"{name}: {len(drawn) - left} of {len(drawn)} killed", flush=True)
    return 1.0 - left / max(len(drawn), 1)


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", metavar="ROOM/FILE")
    parser.add_argument("--most", type=int, default=60, help="mutants of a file (default 60)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--least", type=float, default=0.9, help="share killed (default 0.9)")
    args = parser.parse_args()
    shares = [test(name, args.most, args.seed) for name in args.files]
    return int(min(shares) < args.least)


if __name__ == "__main__":
    sys.exit(main())
