"""The table of cases, and what they share: the data folder, robots, measurements, flat results."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]
Case = Callable[[], Arrays]
ROOT = Path(__file__).resolve().parent.parent.parent
CASES: dict[str, Case] = {}


class NoDataError(Exception):
    """A file of the data folder is missing: the case is skipped."""


def case(
    name: str, /, **arguments: Any
) -> Callable[[Callable[..., Arrays]], Callable[..., Arrays]]:
    """Put a function into the table; several times, with other arguments, if it is to be."""

    def register(function: Callable[..., Arrays]) -> Callable[..., Arrays]:
        assert name not in CASES, f"two cases are called {name}"
        CASES[name] = lambda: function(**arguments)
        return function

    return register


def data(name: str) -> Path:
    """A file of the data folder: SEMIPARAM_DATA, or ../shared/data beside the checkout."""
    folder = Path(os.environ.get("SEMIPARAM_DATA") or ROOT.parent / "shared" / "data")
    if not (folder / name).exists():
        raise NoDataError(f"the data folder has no {name}")
    return folder / name


def log(name: str, rows: slice = slice(None)) -> dict[str, np.ndarray]:
    """Some rows of a log's arrays; `dt` is made to stamps `t`."""
    with np.load(data(f"robots/{name}.npz")) as file:
        arrays = {key: file[key] for key in file.files}
    if "dt" in arrays:
        arrays["t"] = np.arange(len(arrays["q"])) * float(arrays.pop("dt"))
    return {key: values if key == "names" else values[rows] for key, values in arrays.items()}


def measurements(
    arrays: Mapping[str, np.ndarray], output: str = "tau", *, velocities: bool = True
) -> list[Any]:
    """The measurements that a log's arrays are, from 1 s on."""
    from semiparam_dynamics.samples import Measurement

    t, dq = arrays["t"], arrays.get("dq") if velocities else None
    stamps = 1_000_000_000 + np.rint((t - t[0]) * 1e9).astype(np.int64)
    return [
        Measurement(int(stamp), arrays["q"][k], None if dq is None else dq[k], arrays[output][k])
        for k, stamp in enumerate(stamps)
    ]


def small_arm(**overrides: Any) -> Any:
    """The small arm of the tests, which needs no data folder."""
    from semiparam_dynamics.dynamics import RobotModel

    return RobotModel(str(ROOT / "test" / "data" / "small_arm.urdf"), **overrides)


def moving_arm(model: Any, seconds: float, rate: float = 50.0) -> dict[str, np.ndarray]:
    """Arrays of a motion that repeats every 5 s, with an effect that no rigid body has."""
    rng = np.random.default_rng(0)
    t = np.arange(int(seconds * rate)) / rate
    q, dq, ddq = (np.zeros((len(t), model.n_joints)) for _ in range(3))
    for _ in range(4):
        w = 2.0 * np.pi / 5.0 * rng.integers(1, 4, model.n_joints)
        angle, a = t[:, None] * w + rng.uniform(0.0, 6.28, model.n_joints), 0.4 / w
        q += a * np.sin(angle)
        dq += a * w * np.cos(angle)
        ddq -= a * w**2 * np.sin(angle)
    bounded = np.isfinite(model.position_limits).all(axis=0)
    low, high = np.where(bounded, model.position_limits, 0.0)
    scale = np.where(bounded, np.minimum(0.4 * (high - low), 1.0), 1.0)
    q, dq, ddq = 0.5 * (low + high) + scale * q, scale * dq, scale * ddq
    y = model.regressors(q, dq, ddq) @ model.prior
    size = y.std(axis=0)
    y += 0.2 * size * np.sin(3.0 * q[:, :1]) * np.cos(2.0 * q[:, 1:2])
    y += 0.02 * size * rng.standard_normal(y.shape)
    return {"t": t, "q": q, "dq": dq, "ddq": ddq, "tau": y}


def numbers(value: Any, prefix: str = "", without: Sequence[str] = ()) -> Arrays:
    """Every number of nested dicts and lists by the path to it; None is NaN, texts are left out."""
    if isinstance(value, Mapping):
        found: Arrays = {}
        for key, entry in value.items():
            if key not in without:
                found |= numbers(entry, f"{prefix}/{key}" if prefix else str(key), without)
        return found
    if isinstance(value, (list, tuple)) and any(isinstance(v, (Mapping, list)) for v in value):
        return _stacked([numbers(entry, "", without) for entry in value], prefix)
    try:
        return {prefix: np.array(value, dtype=float)}  # None becomes NaN
    except (TypeError, ValueError):
        return {}


def _stacked(entries: list[Arrays], prefix: str) -> Arrays:
    """One array of what all entries of a list have alike; what they don't, by its number."""
    found: Arrays = {}
    for key in dict.fromkeys(key for entry in entries for key in entry):
        values = [entry.get(key) for entry in entries]
        shapes = {None if value is None else value.shape for value in values}
        if len(shapes) == 1:
            found["/".join(filter(None, (prefix, key)))] = np.array(values)
            continue
        for k, value in enumerate(values):
            if value is not None:
                found["/".join(filter(None, (prefix, str(k), key)))] = value
    return found


def state_arrays(state: Mapping[str, Any]) -> Arrays:
    """A state's arrays by name, and the sorted norms of all, which no renaming changes."""
    arrays = {name: np.asarray(value, dtype=float) for name, value in state.items()}
    norms = [float(np.linalg.norm(value)) for value in arrays.values()]
    found = {f"state/{name}": value for name, value in arrays.items()}
    return found | {"state_norms": np.sort(norms)}


def counted(counts: Mapping[str, int], prefix: str = "dropped") -> Arrays:
    """Counts by reason, and how many there are."""
    found = {f"{prefix}/{why}": np.array(float(n)) for why, n in sorted(counts.items())}
    return found | {f"{prefix}/total": np.array(float(sum(counts.values())))}
