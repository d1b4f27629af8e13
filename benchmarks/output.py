"""Tables of benchmarks, written to the terminal and to a file, and the machine they are of."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from threadpoolctl import threadpool_info

from semiparam_dynamics.base.errors import StorageError
from semiparam_dynamics.learning.products import n_threads


def add_out(parser: argparse.ArgumentParser) -> None:
    """Add ``--out``."""
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the table there, too")


def show(text: str, out: Path | None) -> None:
    """Print a table, and write it where `out` says. Raises StorageError where that fails."""
    print(text, end="")
    if out is not None:
        write(text, out)


def write(text: str, out: Path, mode: str = "w") -> None:
    """Write a file, or with the mode "a" add to it. Raises StorageError where that fails."""
    try:
        with out.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise StorageError(f"can't write {out}: {error.strerror}") from error


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, without a line's end."""
    return "\n".join(map(row, [header, ["---"] * len(header), *rows]))


def row(cells: Sequence[str]) -> str:
    """A table's row in Markdown."""
    return f"| {' | '.join(cells)} |"


def machine(*packages: str) -> str:
    """One line: processor, cores, Python, versions of numpy, numba, `packages` and BLAS."""
    libraries = sorted(
        {f"{b['internal_api']} {b['version']}" for b in threadpool_info() if b["version"]}
    )
    found = [f"{name} {version(name)}" for name in ("numpy", "numba", *packages)]
    return ", ".join(
        [f"{_processor()}, {n_threads()} cores, Python {platform.python_version()}", *found]
        + libraries
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
