"""Kernel ridge regression on samples of all of the time, with each axis' own width and ridge.

The kernel, exp(-|x - x'| / l) (Rasmussen and Williams 2006, Gaussian Processes for Machine
Learning, equation 4.18), is rough at every scale, so that a few widths l serve what is smooth and
what is not. Each axis has the width and the ridge by which pieces are best predicted from the
others (Geisser 1975, "The predictive sample reuse method"), if that is better than to predict
nothing. Pieces are of the time, as errors that follow one another are alike, and as many of the
states: where a motion repeats, all of the time is predicted by the rest, and another motion is not
(Roberts et al. 2017, "Cross-validation strategies for data with temporal, spatial, hierarchical, or
phylogenetic structure").
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.jit import compiled
from semiparam_dynamics.base.lapack import solve_positive
from semiparam_dynamics.dynamics.evidence import EVIDENCE_START
from semiparam_dynamics.dynamics.exact_targets import ExactTargets, rows_of, subtract_columns
from semiparam_dynamics.learning.recursion.features import kernel_row_times
from semiparam_dynamics.learning.recursion.vectors import LOG2_E, powers_of_two

# The widths, of the motion's, and ridges, in independent samples, among which an axis chooses.
LENGTHS = (1.0, 0.3)
RIDGES = 4.0 ** np.arange(-5, 8)
# Of a sample, that centres do not explain, for it to become one.
LEAST_SHARE = 1e-4
# Samples that are kept: one of each half of an independent sample, and when there are so many every
# second one is dropped, and one kept of twice as many from then on.
KEPT_SAMPLES, FIRST_STRIDE = 1000, 0.5
# It solves, and it chooses, when there are so many times the independent samples there were. If it
# solves at 1.1 a Baxter's errors half a second ahead are 1.25 to 1.4 times as large.
SOLUTION_GROWTH, CHOICE_GROWTH = 1.02, 1.25
PIECES = 10  # of the time, and as many of the states, each of which is predicted by the others

SEEN, DUE, PASSED, STRIDE, KEPT, CHOICE_DUE = range(6)


class InferredKernel:
    """y - Phi pi of each axis by its own kernel; inferred now and then, and fixed in between.

    y and the columns of Phi that are active are regressed, so that what is known of y - Phi pi
    follows today's parameters pi. Samples are kept, at most `KEPT_SAMPLES`, from all of the time;
    :meth:`infer` solves for weights at centres among them, by a width and a ridge that are chosen
    less often.

    metric : (n_axes, d) by which an axis' kernel of width 1 multiplies the inputs.
    exact : of the columns that are active. most : centres at most; 0: it learns nothing.
    predicted : so many inputs, the last ones, are Phi pi; they follow the parameters, too.

    Attributes
    ----------
    metrics : (n_axes, d) of the chosen widths. centers : (n_axes, m, d), multiplied by these.
    weights : (m, T) at them, of the targets.
    """

    def __init__(self, metric: Array, exact: ExactTargets, most: int, predicted: int) -> None:
        self.most = most
        self._metric, self._predicted = metric, predicted
        n_axes, n_inputs = metric.shape
        self._exact = exact
        rows, outputs = KEPT_SAMPLES if most else 0, len(self._exact)
        self._inputs, self._targets = np.zeros((rows, n_inputs)), np.zeros((rows, outputs))
        self._weights = np.zeros(rows)
        # Samples seen, at how many it is due, those since the last one kept, the stride, rows kept,
        # at how many it chooses.
        self._counts: Array = np.array([0.0, EVIDENCE_START, 0.0, FIRST_STRIDE, 0.0, 0.0])
        # From which of `RIDGES` the search for each axis' begins, by width; and what was chosen:
        # width, 0 for none, and ridge.
        self._first: Indices = np.full((n_axes, len(LENGTHS)), len(RIDGES) // 2)
        self._chosen: Array = np.zeros((n_axes, 2))
        self.metrics: Array = metric.copy()
        self.centers: Array = np.zeros((n_axes, 0, n_inputs))
        self.weights: Array = np.zeros((0, outputs))

    @property
    def n_centers(self) -> int:
        """Centres of an axis."""
        return len(self.weights)

    def weights_of(self, parameters: Array) -> Array:
        """(m, n_axes) weights of y - Phi pi."""
        return self._exact.residuals(self.weights, parameters)

    def predict(self, X: Array, parameters: Array) -> Array:
        """y - Phi pi (k, n_axes) at inputs (k, d), by parameters (k, n) or, of all, (n,)."""
        found = np.zeros((len(X), len(self.metrics)))
        if self.n_centers:
            model = self.centers, self.metrics, self.weights, *self._exact.arrays()
            _predict(X, rows_of(parameters), *model, found)
        return found

    def learn(self, x: Array, targets: Array, weight: float) -> None:
        """Look at a sample of such a weight: inputs (d,) as they are, and targets (T,)."""
        counts = self._counts
        counts[SEEN] += weight
        counts[PASSED] += weight
        if counts[PASSED] < counts[STRIDE] or not self.most:
            return
        row = int(counts[KEPT])
        self._inputs[row], self._targets[row] = x, targets
        # However much it stands for, it is one sample.
        self._weights[row] = min(counts[PASSED], 1.0)
        counts[PASSED], counts[KEPT] = 0.0, row + 1
        if row + 1 == KEPT_SAMPLES:
            self._drop_every_second()

    def _drop_every_second(self) -> None:
        half = KEPT_SAMPLES // 2
        for rows in (self._inputs, self._targets):
            rows[:half] = rows[1::2]
        self._weights[:half] = np.minimum(self._weights[::2] + self._weights[1::2], 1.0)
        self._counts[STRIDE] *= 2.0
        self._counts[KEPT] = half

    @property
    def due(self) -> bool:
        """True if so much was learned that :meth:`infer` is due."""
        return bool(self.most and self._counts[SEEN] >= self._counts[DUE])

    def samples(
        self, transform: Callable[[Array], Array], parameters: Array
    ) -> tuple[Array, Array, Array]:
        """Those kept: inputs (n, d), standardized by `transform`, targets (n, T), weights (n,)."""
        rows, n = slice(int(self._counts[KEPT])), len(self.metrics)
        inputs, targets = self._inputs[rows].copy(), self._targets[rows]
        if self._predicted:
            rigid = targets[:, :n] - self._exact.residuals(targets, parameters)
            inputs[:, -n:] = np.where(rigid != 0.0, rigid, inputs[:, -n:])
        return transform(inputs), targets, self._weights[rows]

    def infer(
        self, transform: Callable[[Array], Array], parameters: Array, *, choose: bool = False
    ) -> None:
        """Solve for each axis' weights at centres among the samples that are kept.

        With `choose`, and where that is due, each axis' width and ridge are chosen before, or no
        weights for it. transform : standardizes inputs (n, d). parameters : (n_parameters,) pi.
        """
        counts = self._counts
        counts[DUE] = SOLUTION_GROWTH * counts[SEEN]
        inputs, targets, weights = self.samples(transform, parameters)
        if len(inputs) < PIECES:
            return
        if choose or counts[SEEN] >= counts[CHOICE_DUE]:
            counts[CHOICE_DUE] = CHOICE_GROWTH * counts[SEEN]
            for j, errors in enumerate(self._exact.residuals(targets, parameters).T):
                self._chosen[j] = self._choose(inputs * self._metric[j], errors, weights, j)
        most = min(self.most, len(inputs))
        self.centers = np.zeros((len(self.metrics), most, inputs.shape[1]))
        self.weights = np.zeros((most, len(self._exact)))
        for j, (length, ridge) in enumerate(self._chosen):
            if length == 0.0:
                continue
            own, self.metrics[j] = self._exact.axis == j, self._metric[j] / length
            X = inputs * self.metrics[j]
            features, pivots = self._features(X)
            weighted, m = features.T * weights, len(pivots)
            products = weighted @ features + ridge * np.eye(m)
            solved = solve_positive(products, weighted @ targets[:, own])
            self.centers[j, :m] = X[pivots]
            solved = solve_triangular(features[pivots], solved, lower=True, trans=1)
            self.weights[:m, own] = solved

    def held_out(self, transform: Callable[[Array], Array], parameters: Array) -> Array:
        """(2, n_axes, PIECES) of each axis, with what it chose, `Pieces.of_states`.

        Zeros where nothing was inferred. The arguments are those of :meth:`infer`.
        """
        found = np.zeros((2, len(self.metrics), PIECES))
        if self.n_centers:
            inputs, targets, weights = self.samples(transform, parameters)
            for j, errors in enumerate(self._exact.residuals(targets, parameters).T):
                length, ridge = self._chosen[j]
                features = self._features(inputs * self._metric[j] / (length or 1.0))
                found[:, j] = Pieces(*features, errors, weights).of_states(ridge)
        return found

    def _choose(self, X: Array, errors: Array, weights: Array, axis: int) -> tuple[float, float]:
        """The width and the ridge that leave least of each piece; zeros where nothing does."""
        best, least = (0.0, 0.0), float(weights @ errors**2)
        for i, length in enumerate(LENGTHS):
            pieces = Pieces(*self._features(X / length), errors, weights)
            # Downhill among the ridges, from that of the last time.
            k = int(self._first[axis, i])
            while (near := min((k - 1, k, k + 1), key=lambda n: (pieces.left(n), n != k))) != k:
                k = near
            self._first[axis, i] = k
            if pieces.left(k) < least:
                best, least = (length, float(RIDGES[k])), pieces.left(k)
        return best

    def _features(self, X: Array) -> tuple[Array, Indices]:
        """Nyström features (n, m) of multiplied inputs (n, d), and the m of them that are centres.

        A Cholesky factor of their kernel, pivoted by what is explained least (Fine and Scheinberg
        2001, "Efficient SVM training using low-rank kernel representations", section 4).
        """
        rows = np.empty((min(self.most, len(X)), len(X)))
        pivots = np.empty(len(rows), dtype=np.intp)
        m = _pivoted_factor(np.ascontiguousarray(X.T), rows, pivots)
        return np.ascontiguousarray(rows[:m].T), pivots[:m]

    def copy_from(self, other: InferredKernel) -> None:
        """Become a copy of `other`, of the same configuration, in the memory at hand."""
        self.restore(other._arrays())

    def _arrays(self) -> dict[str, Array]:
        rows = slice(int(self._counts[KEPT]))
        kept = {"inputs": self._inputs, "targets": self._targets, "kept": self._weights}
        state = {name: array[rows] for name, array in kept.items()}
        chosen = {"first": self._first.astype(float), "chosen": self._chosen}
        chosen |= {"counts": self._counts, "metrics": self.metrics}
        solved = {"centers": self.centers, "weights": self.weights}
        return state | chosen | solved

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        return {name: value.copy() for name, value in self._arrays().items()}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`. Raises ValueError for arrays of other shapes."""
        self._counts[:] = state["counts"]
        rows = slice(int(self._counts[KEPT]))
        self._inputs[rows], self._targets[rows] = state["inputs"], state["targets"]
        self._weights[rows] = state["kept"]
        self._first[:], self._chosen[:] = state["first"], state["chosen"]
        self.metrics[:] = state["metrics"]
        self.centers, self.weights = state["centers"].copy(), state["weights"].copy()


class Pieces:
    """Errors of ridge regressions, of each piece of the time, and of the states, by the others.

    A piece of the states is what is nearest to one of the first pivots, which are far apart.

    features, pivots : (n, m) and (m,) of `InferredKernel`. errors, weights : (n,).
    """

    def __init__(self, features: Array, pivots: Indices, errors: Array, weights: Array) -> None:
        self._features, self._errors, self._weights = features, errors, weights
        n, near = len(errors), features @ features[pivots[:PIECES]].T
        self._piece = np.array([PIECES * np.arange(n) // n, PIECES + np.argmax(near, axis=1)])
        parts = [(self._piece == k).any(axis=0) for k in range(2 * PIECES)]
        weighted = features * weights[:, None]
        grams = np.array([weighted[part].T @ features[part] for part in parts])
        sides = np.array([weighted[part].T @ errors[part] for part in parts])
        # Of all others: the pieces of the time are all there is.
        self._grams = grams[:PIECES].sum(axis=0) - grams
        self._sides = sides[:PIECES].sum(axis=0) - sides
        self._found: dict[int, float] = {}

    def left(self, k: int) -> float:
        """Weighted sum of squares that the k-th of `RIDGES` leaves, mean of both; inf: no such."""
        if not 0 <= k < len(RIDGES):
            return np.inf
        if k not in self._found:
            self._found[k] = float(np.mean(self._errors_left(RIDGES[k]) ** 2 @ self._weights))
        return self._found[k]

    def _errors_left(self, ridge: float) -> Array:
        """(2, n) errors that are left of pieces of the time, and of the states."""
        penalized = self._grams + ridge * np.eye(self._grams.shape[1])
        solved = np.array([*map(solve_positive, penalized, self._sides)])
        told = np.einsum("ij,pij->pi", self._features, solved[self._piece])
        left: Array = self._errors - told
        return left

    def of_states(self, ridge: float) -> Array:
        """(2, PIECES) weighted sums of squares in pieces of the states: all, and what is left.

        ridge : 0 of an axis that is silent; it leaves all.
        """
        errors = np.array([self._errors, self._errors])
        if ridge:
            errors[1] = self._errors_left(ridge)[1]
        of_piece = self._piece[1] == PIECES + np.arange(PIECES)[:, None]
        sums: Array = (self._weights * errors**2) @ of_piece.T
        return sums


@compiled
def _pivoted_factor(columns: Array, rows: Array, pivots: Indices) -> int:
    """Fill rows (m, n) of the factor of n points' kernel, and pivots (m,); how many there are.

    columns : (d, n) the points.
    """
    d, n = columns.shape
    rest = np.ones(n)
    for m in range(len(rows)):
        pivot = int(np.argmax(rest))
        if rest[pivot] < LEAST_SHARE:
            return m
        row = rows[m]
        row[:] = 0.0
        for k in range(d):
            column, at = columns[k], columns[k, pivot]
            for i in range(n):
                row[i] += (column[i] - at) ** 2
        for i in range(n):
            row[i] = -LOG2_E * math.sqrt(row[i])
        powers_of_two(row)
        for k in range(m):
            before, share = rows[k], rows[k, pivot]
            for i in range(n):
                row[i] -= share * before[i]
        scale = 1.0 / math.sqrt(rest[pivot])
        for i in range(n):
            row[i] *= scale
            rest[i] -= row[i] ** 2
        rest[pivot], pivots[m] = 0.0, pivot
    return len(rows)


@compiled
def _predict(
    X: Array,
    parameters: Array,
    centers: Array,
    metrics: Array,
    weights: Array,
    starts: Indices,
    column: Indices,
    found: Array,
) -> None:
    """:meth:`InferredKernel.predict`; parameters (1 or k, n)."""
    own = np.empty((len(weights), found.shape[1]))
    for s in range(len(X)):
        if s < len(parameters):
            subtract_columns(weights, parameters[s : s + 1], starts, column, own)
        sum_kernels(centers, metrics, X[s], own, found[s])


@compiled
def sum_kernels(centers: Array, metrics: Array, x: Array, weights: Array, found: Array) -> None:
    """Fill the sums (n_axes,) of each axis' kernel at its centres, by weights (m, n_axes)."""
    scaled = np.empty(x.size)
    for j in range(found.size):
        for i in range(x.size):
            scaled[i] = x[i] * metrics[j, i]
        kernel_row_times(centers[j], scaled, 1.0, True, weights[:, j : j + 1], found[j : j + 1])
