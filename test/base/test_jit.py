"""The compilers, where numba can keep what it compiled and where it can not."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import llvmlite.binding
import numba
import numpy as np
import pytest

import semiparam_dynamics
from semiparam_dynamics.base import jit
from semiparam_dynamics.base.jit import folder_of, is_kept
from semiparam_dynamics.learning.recursion.features import nystrom_row

WITHOUT_CACHE = """
from numba.core import caching
caching.CacheImpl._locator_classes = []
import numpy as np
from semiparam_dynamics.learning.recursion.features import nystrom_row
phi, centers = np.zeros(2), np.array([[0.0], [1000.0]])
factor = np.array([[2.0, 0.0], [1.0, 1.0]])
print(nystrom_row(centers, factor, np.zeros(1), 1.0, phi, 2), phi)
"""


def test_compiles_where_no_folder_can_be_written_to() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_CACHE], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "0.5 [ 0.5 -0.5]", done.stderr


def test_a_function_keeps_its_rounding_when_a_reordered_one_is_its_first_caller() -> None:
    @jit.compiled_as_written
    def left_of(x: float) -> float:
        return (x + 1e16) - 1e16

    @jit.compiled_in_order
    def left_in_order_of(x: float) -> float:
        return (x + 1e16) - 1e16

    @jit.compiled
    def both(x: float) -> tuple[float, float]:
        return left_of(x), left_in_order_of(x)

    assert both(1.0) == (0.0, 0.0)


def test_a_function_that_asks_for_the_widest_vectors_gets_them() -> None:
    @numba.njit  # not kept: what was kept can not be inspected
    def wide(x: np.ndarray) -> None:
        jit.take_widest_vectors()
        for j in range(x.size):
            x[j] = 2.0 * x[j] + 1.0

    @numba.njit
    def usual(x: np.ndarray) -> None:
        for j in range(x.size):
            x[j] = 2.0 * x[j] + 1.0

    numbers = [np.arange(37.0), np.arange(37.0)]
    wide(numbers[0])
    usual(numbers[1])
    np.testing.assert_array_equal(numbers[0], 2.0 * np.arange(37.0) + 1.0)
    np.testing.assert_array_equal(*numbers)
    asked: dict[str, list[str]] = {
        function.__name__: [*function.inspect_llvm().values(), *function.inspect_asm().values()]
        for function in (wide, usual)  # type: ignore[attr-defined]
    }
    assert '"prefer-vector-width"="512"' in asked["wide"][0]
    assert "prefer-vector-width" not in asked["usual"][0]
    if llvmlite.binding.get_host_cpu_features().get("avx512f"):
        assert "zmm" in asked["wide"][1]


def test_numbers_too_small_are_zero_only_within_the_function_and_its_thread() -> None:
    small = np.array([1e-200])
    at_once, others = [], []

    @jit.subnormals_as_zero
    def product() -> float:
        others.append(float(pool.submit(lambda: small * 1e-120).result()[0]))
        at_once.append(float((small * 1e-120)[0]))
        raise LookupError

    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()  # a thread begins with the settings of the one that starts it
        with pytest.raises(LookupError):
            product()
    intel = platform.machine().lower() in ("x86_64", "amd64")
    assert at_once == [0.0 if intel else 1e-320] and others == [1e-320]
    assert float((small * 1e-120)[0]) == 1e-320


KEEPS = """
import sys
from pathlib import Path
from semiparam_dynamics.base import jit
from semiparam_dynamics.learning.recursion.vectors import powers_of_two
import numpy as np
x = -np.arange(3.0)
powers_of_two(x)
print(powers_of_two.stats.cache_path.startswith(str(jit.KEPT)), len(powers_of_two.stats.cache_hits))
"""


def test_what_was_kept_with_the_installation_is_not_compiled_again(tmp_path: Path) -> None:
    """In a copy of what a compiled function needs, so that nothing else has kept it."""
    package = Path(semiparam_dynamics.__file__).parent
    here = tmp_path / "semiparam_dynamics"
    (here / "compiled").mkdir(parents=True)
    for name in ("base/jit.py", "base/arrays.py", "learning/recursion/vectors.py"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(package / name, here / name)
    for folder in (here, here / "base", here / "learning", here / "learning" / "recursion"):
        (folder / "__init__.py").touch()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    told = [
        subprocess.run(
            [sys.executable, "-c", KEEPS],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env=environment,
        ).stdout.split()
        for _ in range(2)
    ]
    assert told == [["True", "0"], ["True", "1"]]
    assert not list((here / "learning").rglob("*.nbc"))


def test_an_installation_that_is_read_only_is_copied_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, caches = tmp_path / "kept", tmp_path / "caches"
    (kept / "robot_1").mkdir(parents=True)
    (kept / "robot_1" / "fill.nbc").write_bytes(b"code")
    assert folder_of(kept, caches) == kept
    real = os.access
    monkeypatch.setattr(jit.os, "access", lambda path, mode: path != kept and real(path, mode))
    copy = folder_of(kept, caches)
    assert copy.parent == caches and (copy / "robot_1" / "fill.nbc").read_bytes() == b"code"
    assert folder_of(kept, caches) == copy and list(caches.iterdir()) == [copy]
    (kept / "robot_1" / "more.nbc").write_bytes(b"newer")
    assert folder_of(kept, caches) != copy
    # Where a user has no folder either, one for the process.
    (tmp_path / "file").touch()
    only = folder_of(kept, tmp_path / "file" / "caches")
    assert (only / "robot_1" / "fill.nbc").read_bytes() == b"code"


def test_a_copy_that_a_full_disk_ends_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, caches = tmp_path / "kept", tmp_path / "caches"
    kept.mkdir()
    (kept / "fill.nbc").write_bytes(b"code")
    real = shutil.copyfile

    def full(source: str, target: str) -> None:
        real(source, target)
        if str(caches) in target:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(jit.shutil, "copyfile", full)
    monkeypatch.setattr(jit.os, "access", lambda path, mode: path != kept)
    only = folder_of(kept, caches)
    assert (only / "fill.nbc").exists() and list(caches.iterdir()) == []


def test_the_caches_are_the_user_s_or_of_no_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "there"))
    assert jit.user_caches() == tmp_path / "there" / "semiparam_dynamics"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert jit.user_caches() == tmp_path / ".cache" / "semiparam_dynamics"

    def unknown(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", unknown)
    assert jit.user_caches().parent == jit.KEPT


def test_knows_what_an_earlier_process_has_kept(tmp_path: Path) -> None:
    class Stats:
        cache_path = str(tmp_path)

    class Function:
        __name__, stats = "fill", Stats()

    assert not is_kept(Function())
    (tmp_path / "regressor.fill-330.py311.1.nbc").touch()
    assert is_kept(Function())
    assert isinstance(is_kept(nystrom_row), bool)
