"""From messages and bags to measurements."""

from semiparam_dynamics.samples.bag import BagReader, read_measurements
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.samples.stream import MeasurementStream
from semiparam_dynamics.samples.stream_config import StreamConfig

__all__ = ["BagReader", "Measurement", "MeasurementStream", "StreamConfig", "read_measurements"]
