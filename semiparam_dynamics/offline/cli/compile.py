"""`semiparam compile`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from semiparam_dynamics.base import jit
from semiparam_dynamics.base.errors import StorageError

DESCRIPTION = """\
Compile the numerical core now and keep it with the installation. Without it each user's first start
compiles for 20 to 50 s, and so does every start of a user without a folder to keep it in, as in
a container. Run it once after installing, as the user who installed, on the kind of processor that
the robot has: for another kind the core is compiled again."""
PROGRESS_PERIOD_S = 10.0  # between lines of how far it is
EXAMPLES = ("semiparam compile",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments: there are none."""


def run(args: argparse.Namespace) -> int:
    """Compile in a process that keeps the result where every later one looks for it."""
    if elsewhere := os.environ.get("NUMBA_CACHE_DIR"):
        raise StorageError(f"NUMBA_CACHE_DIR is set to {elsewhere}: unset it, or all is kept there")
    try:
        jit.KEPT.mkdir(exist_ok=True)
        (jit.KEPT / "written").touch()
        begun = (jit.KEPT / "written").stat().st_mtime
    except OSError as error:
        raise StorageError(
            f"{jit.KEPT} can't be written to ({error.strerror}): run this as the user who installed"
        ) from None
    print("compiling, 20 to 50 s on two cores that do nothing else", flush=True)
    program = "from semiparam_dynamics.learner.nodes.compilation import compile_all; compile_all()"
    command = [sys.executable, "-c", jit.of_this_package(program)]
    with subprocess.Popen(command) as process:  # noqa: S603
        while process.poll() is None:
            try:
                process.wait(PROGRESS_PERIOD_S)
            except subprocess.TimeoutExpired:
                new = [one for one in jit.KEPT.rglob("*.nbc") if one.stat().st_mtime > begun]
                print(f"  {len(new)} compiled", flush=True)
    if process.returncode == 0:
        kept = [path.stat().st_size for path in jit.KEPT.rglob("*.nbc")]
        print(f"kept in {jit.KEPT}: {sum(kept) / 1e6:.1f} MB")
    return process.returncode
