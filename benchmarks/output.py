"""Shared by all benchmarks: the parser with ``--out``, the header of a result, and tables.

A result in benchmarks/results/NAME.md is what the benchmark printed with ``--out`` and that file.
"""

from __future__ import annotations

import argparse
import datetime
import io
import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TextIO

from threadpoolctl import threadpool_info

from semiparam_dynamics.base.errors import StorageError
from semiparam_dynamics.learning.products import n_threads

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "pin", "torch")


def make_parser(doc: str | None) -> argparse.ArgumentParser:
    """A parser whose help begins with a docstring, with ``--out``."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=doc, formatter_class=raw)
    add_out(parser)
    return parser


def add_out(parser: argparse.ArgumentParser) -> None:
    """Add ``--out``."""
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="where to write what is printed, too: a file, or a folder, also for figures",
    )


def parse(parser: argparse.ArgumentParser, argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line, print the header, and have all output written to ``--out``, too.

    A name without an ending is a folder's, in which NAME.md is written. Raises StorageError where
    that fails.
    """
    args = parser.parse_args(argv)
    sys.stdout = getattr(sys.stdout, "terminal", sys.stdout)  # not into an earlier result
    if args.out is not None:
        path = args.out if args.out.suffix else args.out / f"{_script().stem}.md"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("w", encoding="utf-8", buffering=1)
        except OSError as error:
            raise StorageError(f"can't write {path}: {error.strerror}") from error
        sys.stdout = _Copied(sys.stdout, file)
    print(header(), flush=True)
    return args


class _Copied(io.TextIOBase):
    """Standard output that goes to a file, too."""

    def __init__(self, terminal: TextIO, file: TextIO) -> None:
        self.terminal, self._file = terminal, file

    def write(self, text: str) -> int:
        """Write to both."""
        self.terminal.write(text)
        return self._file.write(text)

    def flush(self) -> None:
        """Flush both."""
        self.terminal.flush()
        self._file.flush()


def header() -> str:
    """The command, the date, the commit and the machine, each for a result to be judged by.

    Of a path that is absolute the command has the last part, since it is this machine's.
    """
    script = _script()
    name = str(script.relative_to(ROOT)) if script.is_relative_to(ROOT) else script.name
    words = [Path(word).name if word.startswith("/") else word for word in sys.argv[1:]]
    about = f"{datetime.date.today()}, commit {commit()}; {machine()}."
    return f"    {shlex.join(['python', name, *words])}\n\n{about}\n"


def commit() -> str:
    """The commit that is measured."""
    describe = ["git", "describe", "--always", "--dirty= (modified)"]
    asked = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True, check=False)
    return asked.stdout.strip() or "unknown"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, without a line's end."""
    return "\n".join(map(row, [header, ["---"] * len(header), *rows]))


def row(cells: Sequence[str]) -> str:
    """A table's row in Markdown."""
    return f"| {' | '.join(cells)} |"


def _script() -> Path:
    """The script, or the folder that is run."""
    path = Path(sys.argv[0]).resolve()
    return path.parent if path.name == "__main__.py" else path


def machine() -> str:
    """One line: processor, cores, and versions of Python, the libraries and BLAS."""
    blas = {f"{b['internal_api']} {b['version']}" for b in threadpool_info() if b["version"]}
    python = f"{_processor()}, {n_threads()} cores, Python {platform.python_version()}"
    return ", ".join([python, *filter(None, map(_version, LIBRARIES)), *sorted(blas)])


def _version(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
