"""Messages and bags to measurements.

What reads bags is imported from :mod:`semiparam_dynamics.samples.bag`, so that a node doesn't
load it.
"""

from semiparam_dynamics.samples.measurement import Measurement, StreamConfig
from semiparam_dynamics.samples.stream import MeasurementStream

__all__ = ["Measurement", "MeasurementStream", "StreamConfig"]
