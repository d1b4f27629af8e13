"""Fuzz the targets one after the other, each in a process of its own, and say what was found."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

from targets import TARGETS

FOLDER = Path(__file__).resolve().parent


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=60, help="for each (default 60)")
    parser.add_argument("--memory", type=int, default=2048, help="most, in MB (default 2048)")
    args = parser.parse_args()
    if unknown := [name for name in args.targets if name not in TARGETS]:
        parser.error(f"no target {', '.join(unknown)}; there are: {', '.join(TARGETS)}")
    found = FOLDER / "found"
    found.mkdir(exist_ok=True)
    failed = []
    for name in args.targets or TARGETS:
        command = [sys.executable, str(FOLDER / "target.py"), name]
        command += [f"-max_total_time={args.seconds}", f"-rss_limit_mb={args.memory}"]
        command += ["-timeout=20", "-max_len=20000", f"-artifact_prefix={found}/{name}-"]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        inputs = re.findall(r"^#(\d+)", done.stderr, re.MULTILINE)
        print(f"{name}: {inputs[-1] if inputs else 0} inputs, exit code {done.returncode}")
        if done.returncode:
            failed.append(name)
            print((done.stdout + done.stderr)[-3000:])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
