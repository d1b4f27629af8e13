"""From messages and bags to measurements.

Names are imported when they are first used, so that a node doesn't load what reads bags.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from semiparam_dynamics.lazy_names import lazy_names

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
__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
