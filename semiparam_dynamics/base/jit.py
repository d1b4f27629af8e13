"""Compilers of inner loops: plain arrays in, plain arrays changed in place, no allocation.

What is compiled is kept beside the sources, where numba can write there, or in the user's cache.
`semiparam compile` keeps all of it with the installation.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir
from numba.extending import intrinsic

F = TypeVar("F")
ROOT = Path(__file__).resolve().parents[2]  # holds this package
KEPT = Path(__file__).resolve().parents[1] / "compiled"  # what `semiparam compile` keeps


def folder_of(kept: Path, caches: Path) -> Path:
    """The folder to take compiled code from that is in `kept`: itself, or a copy in `caches`.

    A copy where it can't be written to, as numba insists; one that ends with the process where
    `caches` can't be written to either. Where nothing can be copied, numba looks elsewhere.
    """
    if os.access(kept, os.W_OK):
        return kept
    mark = f"{kept} {max(path.stat().st_mtime_ns for path in (kept, *kept.rglob('*')))}"
    copy = caches / f"compiled-{hashlib.sha256(mark.encode()).hexdigest()[:16]}"
    with suppress(OSError):
        if not copy.is_dir():
            caches.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(dir=caches))
            try:
                shutil.copytree(kept, made, dirs_exist_ok=True, copy_function=shutil.copyfile)
                with suppress(OSError):  # another process was first
                    made.rename(copy)
            finally:  # on a full disk, too
                shutil.rmtree(made, ignore_errors=True)
        if os.access(copy, os.W_OK):
            return copy
    with suppress(OSError):
        _temporary.append(tempfile.TemporaryDirectory(prefix="semiparam_dynamics-"))
        only = Path(_temporary[-1].name)
        shutil.copytree(kept, only, dirs_exist_ok=True, copy_function=shutil.copyfile)
        return only
    return kept


def user_caches() -> Path:
    """The folder of this package in the user's cache; where no home is known, one of no use."""
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    except RuntimeError:  # in a container, for a user without a name
        home = KEPT
    return Path(home) / "semiparam_dynamics"


def cache_of(function: Any) -> Path | None:
    """The folder that a compiled function is kept in; None where it can't be kept."""
    path = function.stats.cache_path
    return None if path is None else Path(path)


def of_this_package(program: str) -> str:
    """A program for `python -c` that imports this very package, whatever folder it is run in.

    Where that is a clone, Python would import the clone in place of what is installed.
    """
    return f"import sys; sys.path[0] = {str(ROOT)!r}; {program}"


def is_kept(function: Any) -> bool:
    """True if a compiled function was kept by an earlier process, so that it need not compile."""
    cache = cache_of(function)
    return cache is not None and any(cache.glob(f"*.{function.__name__}-*.nbc"))


_temporary: list[tempfile.TemporaryDirectory[str]] = []

if not numba.config.CACHE_DIR and KEPT.is_dir():
    numba.config.CACHE_DIR = str(folder_of(KEPT, user_caches()))


def _compiler(fastmath: set[str], *, nogil: bool = True) -> Callable[[F], F]:
    # Every setting is said: of those left out numba takes those of the first caller.
    # x / 0 is infinity: a check that raises would keep loops from vector instructions.
    # nogil: a node may learn in one thread while another one serves messages.
    options = {"fastmath": fastmath or False, "error_model": "numpy", "nogil": nogil}

    def compile_lazily(function: F) -> F:
        try:
            return cast(F, numba.njit(cache=True, **options)(function))
        except RuntimeError:  # neither the package's folder nor the user's can be written to
            return cast(F, numba.njit(**options)(function))

    return compile_lazily


# "reassoc" lets the dot products vectorise; NaN and infinity keep their meaning.
compiled = _compiler({"reassoc", "contract", "nsz"})
# It keeps Python's lock, for a message's few ten microseconds: to give the lock up and get it back
# takes as long as a learner in another thread does with it in between, at each call.
compiled_in_turn = _compiler({"reassoc", "contract", "nsz"}, nogil=False)
compiled_as_written = _compiler(set())  # every operation is rounded as it stands there
compiled_in_order = _compiler({"contract"})  # sums are in their order


@intrinsic  # type: ignore[untyped-decorator]
def take_widest_vectors(_: Any) -> Any:
    """Have the loops of the compiled function that calls this take 512 bits at a time.

    LLVM takes 256 on most processors that have more: products with numbers that have just been
    multiplied by 512, as BLAS does, then take a seventh longer than they need to.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # llvmlite's own `add` knows only attributes that are a single word.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return numba.void(), generate


@intrinsic  # type: ignore[untyped-decorator]
def _control_word(_: Any, kept: Any, added: Any) -> Any:
    """The bits of MXCSR until now, of which those `kept` stay, with others `added`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
        kind, place = ir.FunctionType(ir.VoidType(), [pointer]), builder.alloca(word)

        def access(name: str) -> None:
            function = builder.module.declare_intrinsic(f"llvm.x86.sse.{name}", (), kind)
            builder.call(function, [builder.bitcast(place, pointer)])

        access("stmxcsr")
        before = builder.load(place)
        builder.store(builder.or_(builder.and_(before, arguments[0]), arguments[1]), place)
        access("ldmxcsr")
        return before

    return numba.uint32(numba.uint32, numba.uint32), generate


@compiled
def _exchange(kept: int, added: int) -> int:
    return int(_control_word(numba.uint32(kept), numba.uint32(added)))


def subnormals_as_zero(function: F) -> F:
    """The function, within which the processor takes numbers below 2.2e-308 as zero.

    Kernels of far points are full of them, and each takes an Intel processor a hundred times
    as long: learning takes half the time without. ARM's take them as fast as others.
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return function

    as_zero = 0x8040  # bits of the control register MXCSR: of results (FTZ), of operands (DAZ)

    @functools.wraps(function)  # type: ignore[arg-type]
    def run(*arguments: Any, **options: Any) -> Any:
        before = _exchange(-1, as_zero)  # of this thread; all others stay
        try:
            return function(*arguments, **options)  # type: ignore[operator]
        finally:
            _exchange(0, before)

    return run  # type: ignore[return-value]
