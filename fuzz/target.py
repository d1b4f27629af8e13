"""Fuzz one target: ``python fuzz/target.py TARGET [FILE ...] [libFuzzer options]``.

With FILEs those are given to the target, and nothing else is. Needs atheris for anything else.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import warnings
from pathlib import Path


def main() -> int:
    """Returns the exit code."""
    if len(sys.argv) > 2 and Path(sys.argv[2]).is_file():
        from targets import TARGETS

        for path in sys.argv[2:]:
            TARGETS[sys.argv[1]](Path(path).read_bytes())
        return 0
    # What the compiler doesn't know, the fuzzer's counters, would stop it.
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    import atheris

    # Only our own lines guide it: instrumented at their import, so that comes first.
    with atheris.instrument_imports(include=["semiparam_dynamics"], enable_loader_override=False):
        from targets import SEEDS, TARGETS
    warnings.simplefilter("ignore")
    name, *options = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="semiparam_fuzz_seeds_") as corpus:
        for k, seed in enumerate(SEEDS[name]()):
            (Path(corpus) / f"seed_{k}").write_bytes(seed)
        atheris.Setup([sys.argv[0], *options, corpus], TARGETS[name])
        with contextlib.suppress(KeyboardInterrupt):
            atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
