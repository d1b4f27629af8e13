"""Where the benchmarks' tables go: the terminal, and a file if one is named."""

from __future__ import annotations

import argparse
from pathlib import Path

from semiparam_dynamics.errors import StorageError


def add_out(parser: argparse.ArgumentParser) -> None:
    """Add ``--out``."""
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the table there, too")


def show(text: str, out: Path | None) -> None:
    """Print a table, and write it where `out` says. Raises StorageError where that fails."""
    print(text, end="")
    if out is None:
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"can't write {out}: {error.strerror}") from error
