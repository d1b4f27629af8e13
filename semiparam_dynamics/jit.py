"""Compilers of inner loops: plain arrays in, plain arrays changed in place, no allocation.

What is compiled is kept beside the sources, where numba can write there, or in the user's cache.
`semiparam compile` keeps all of it with the installation.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

F = TypeVar("F")
KEPT = Path(__file__).resolve().parent / "compiled"  # what `semiparam compile` keeps


def folder_of(kept: Path, caches: Path) -> Path:
    """The folder to take compiled code from that is in `kept`: itself, or a copy in `caches`.

    A copy where it can't be written to, as numba insists; one that ends with the process where
    `caches` can't be written to either.
    """
    if os.access(kept, os.W_OK):
        return kept
    mark = f"{kept} {max(path.stat().st_mtime_ns for path in (kept, *kept.rglob('*')))}"
    copy = caches / f"compiled-{hashlib.sha256(mark.encode()).hexdigest()[:16]}"
    with suppress(OSError):
        if not copy.is_dir():
            caches.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(dir=caches))
            shutil.copytree(kept, made, dirs_exist_ok=True, copy_function=shutil.copyfile)
            with suppress(OSError):  # another process was first
                made.rename(copy)
            shutil.rmtree(made, ignore_errors=True)
        if os.access(copy, os.W_OK):
            return copy
    _temporary.append(tempfile.TemporaryDirectory(prefix="semiparam_dynamics-"))
    only = Path(_temporary[-1].name)
    shutil.copytree(kept, only, dirs_exist_ok=True, copy_function=shutil.copyfile)
    return only


def is_kept(function: Any) -> bool:
    """Whether a compiled function was kept by an earlier process, so that it need not compile."""
    path = function.stats.cache_path
    return path is not None and any(Path(path).glob(f"*.{function.__name__}-*.nbc"))


_temporary: list[tempfile.TemporaryDirectory[str]] = []

if TYPE_CHECKING:

    def compiled(function: F) -> F:
        """The function, compiled by numba when it is first called."""
        return function

    def compiled_as_written(function: F) -> F:
        """The function, compiled with every operation rounded as it stands there."""
        return function

    def compiled_in_order(function: F) -> F:
        """The function, compiled with sums in their order, whatever the settings of its caller."""
        return function

else:
    import numba

    if not numba.config.CACHE_DIR and KEPT.is_dir():
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
        numba.config.CACHE_DIR = str(folder_of(KEPT, home / "semiparam_dynamics"))

    def _decorator(**options):
        def decorate(function):
            # nogil: a node may learn in one thread while another one serves messages.
            try:
                return numba.njit(cache=True, nogil=True, **options)(function)
            except RuntimeError:  # neither the package's folder nor the user's can be written to
                return numba.njit(nogil=True, **options)(function)

        return decorate

    # "reassoc" lets the dot products vectorise; NaN and infinity keep their meaning.
    compiled = _decorator(fastmath={"reassoc", "contract", "nsz"})
    # x / 0 is infinity here: a check that raises would keep loops from vector instructions.
    compiled_as_written = _decorator(error_model="numpy")
    # A function that says nothing of "reassoc" takes its caller's settings.
    compiled_in_order = _decorator(fastmath={"contract"}, error_model="numpy")
