"""Errors of several models on one stream, summed up as it goes by."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from semiparam_dynamics.base.arrays import Array, Mask
from semiparam_dynamics.base.jit import compiled_as_written
from semiparam_dynamics.dynamics.sample import Sample

ROUNDING = 1e-12  # of a mean square: a variance below it is none


def varies(variance: Array, mean_square: Array) -> Mask:
    """Mask of measurements that vary at all: of the others only rounding is left about the mean."""
    varied: Mask = variance > ROUNDING * mean_square
    return varied


def variances(y: Array) -> Array:
    """(n_axes,) of measurements y (k, n_axes) about their means; infinite where they are constant.

    Errors over them are normalised: of what never varies they count as 0.
    """
    variance: Array = y.var(axis=0)
    return np.where(varies(variance, np.mean(y**2, axis=0)), variance, np.inf)


class ScoredSamples:
    """The rule of which samples are scored, live and offline alike: not those before any motion.

    Errors of models that have learned nothing would be most of all scores to come.

    knows: whether something was learned before, by what was resumed from, say: all are scored.
    """

    def __init__(self, *, knows: bool = False) -> None:
        self._begun = knows

    def take(self, sample: Sample) -> bool:
        """Test whether a sample is scored; call it for all, in order."""
        self._begun = self._begun or sample.informative
        return self._begun


class RunningScores:
    """Root and normalised mean squared errors per axis, and coverage, without a history.

    `keep` below 1 makes it follow the recent samples: each one fades by that factor a sample.
    Of a part of the samples, errors are normalised by the variance of `whole`, all of them: a part
    may hardly vary. An axis of a sample that was not measured, NaN in y, is passed over.
    """

    def __init__(
        self,
        models: Iterable[str],
        n_axes: int,
        keep: float = 1.0,
        *,
        whole: RunningScores | None = None,
    ) -> None:
        self._keep = keep
        self._whole = whole or self
        self._row = {name: row for row, name in enumerate(models)}
        self._counts = np.zeros(n_axes)  # of each axis
        self._mean = np.zeros(n_axes)
        self._spread = np.zeros(n_axes)
        self._errors = np.zeros((len(self._row), n_axes))
        self._covered = np.zeros((len(self._row), n_axes))
        self._has_std: set[str] = set()
        self.samples = 0

    def add(self, y: Array, predictions: Mapping[str, Array], stds: Mapping[str, Array]) -> None:
        """Take in samples in turn: measured y and, by the models' names, predictions and stds.

        All (k, n_axes), or (n_axes,) of one sample; a model may have no std.
        """
        self._has_std.update(stds)
        shape = (-1, len(self._mean))
        y = y.reshape(shape)
        nothing = np.full(y.shape, -1.0)
        self.add_arrays(
            y,
            np.stack([predictions[name].reshape(shape) for name in self._row], axis=1),
            np.stack([stds.get(name, nothing).reshape(shape) for name in self._row], axis=1),
        )

    def add_arrays(self, y: Array, predictions: Array, stds: Array) -> None:
        """:meth:`add` of k samples in turn: y (k, n_axes), predictions, stds (k, models, n_axes).

        A negative std covers nothing; :meth:`coverage` is of models whose std :meth:`add` or
        :meth:`expect_stds` has named.
        """
        self.samples += len(y)
        sums = self._counts, self._mean, self._spread, self._errors, self._covered
        _add(y, predictions, stds, self._keep, *sums)

    def expect_stds(self) -> RunningScores:
        """Note that standard deviations of all models will come; returns itself."""
        self._has_std.update(self._row)
        return self

    @property
    def measured(self) -> Mask:
        """Mask (n_axes,) of axes that were measured in a sample at least."""
        measured: Mask = self._counts > 0.0
        return measured

    def rmse(self, model: str) -> Array:
        """Root mean squared error per axis, (n_axes,); NaN where nothing was measured."""
        return np.sqrt(self._share(self._errors[self._row[model]]))

    def nmse(self, model: str) -> Array:
        """Mean squared error over the variance of the measured axis, (n_axes,).

        NaN where the axis was not measured, or never varied.
        """
        whole = self._whole
        varied = varies(whole._spread, whole._spread + whole._counts * whole._mean**2)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = 1.0 if whole is self else self._counts / whole._counts
            nmse: Array = self._errors[self._row[model]] / (share * whole._spread)
        return np.where(varied & self.measured, nmse, np.nan)

    def coverage(self, model: str) -> Array:
        """Share of samples within two predicted standard deviations, (n_axes,)."""
        if model not in self._has_std:
            return np.full(len(self._mean), np.nan)
        return self._share(self._covered[self._row[model]])

    def _share(self, sums: Array) -> Array:
        return np.where(self.measured, sums / np.maximum(self._counts, 1e-300), np.nan)


@compiled_as_written
def _add(
    y: Array,
    predictions: Array,
    stds: Array,
    keep: float,
    counts: Array,
    mean: Array,
    spread: Array,
    errors: Array,
    covered: Array,
) -> None:
    """Samples into all sums, in turn: it runs for every sample."""
    for i in range(len(y)):
        for j in range(y.shape[1]):
            if math.isnan(y[i, j]):
                continue
            counts[j] = keep * counts[j] + 1.0
            delta = y[i, j] - mean[j]
            mean[j] += delta / counts[j]
            spread[j] = keep * spread[j] + delta * (y[i, j] - mean[j])
            for k in range(len(errors)):
                error = y[i, j] - predictions[i, k, j]
                errors[k, j] = keep * errors[k, j] + error * error
                inside = 1.0 if abs(error) <= 2.0 * stds[i, k, j] else 0.0
                covered[k, j] = keep * covered[k, j] + inside
