"""From messages and bags to measurements.

Names are imported when they are first used, so that a node doesn't load what reads bags.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from semiparam_dynamics.samples.bag import BagReader, read_measurements
    from semiparam_dynamics.samples.measurement import Measurement
    from semiparam_dynamics.samples.stream import MeasurementStream
    from semiparam_dynamics.samples.stream_config import StreamConfig

_HOMES = {
    "BagReader": "bag",
    "Measurement": "measurement",
    "MeasurementStream": "stream",
    "StreamConfig": "stream_config",
    "read_measurements": "bag",
}
__all__ = ["BagReader", "Measurement", "MeasurementStream", "StreamConfig", "read_measurements"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
