"""What the figures of a benchmark were measured on."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path

from threadpoolctl import threadpool_info

from semiparam_dynamics.learning.rows import n_threads


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
