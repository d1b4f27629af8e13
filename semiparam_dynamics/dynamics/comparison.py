"""What is left to do of a sample once all that the next prediction needs is learned."""

from __future__ import annotations

from dataclasses import dataclass

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.sample import Prediction, Sample


@dataclass(frozen=True, slots=True)
class Comparison:
    """A sample that the nonparametric model alone has yet to predict, and perhaps to learn.

    Nothing else waits for that model. So it may be asked later, in the samples' order, or in
    another thread; the numbers are the same.
    """

    sample: Sample  # measured
    prediction: Prediction
    spread: Array  # (n_axes,) mean square of y about its mean before this sample
    dt: float  # s since the sample learned before
    learn: bool  # false: it is only predicted, to be scored
