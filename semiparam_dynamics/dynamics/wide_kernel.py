"""A wide kernel, for what the rigid body lacks between and around what was measured.

The local residual knows what was measured nearby, and says nothing elsewhere. What changes slowly
with the arm's state, as a friction that depends on position and load, reaches further: it is
learned by a kernel as wide as the motion, exp(-|x - x'| / l) (Rasmussen and Williams 2006, Gaussian
Processes for Machine Learning, equation 4.18). That kernel is rough at every scale, so that one
width serves what is smooth and what is not. Each axis' ridge is the most probable one; or the
kernel is silent.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.dynamics.evidence import EVIDENCE_START
from semiparam_dynamics.learning.recursion.features import kernel_row_times

# Of a sample's information, beside that of independent errors. With more, a model that goes through
# all samples has a likelihood without bound, whatever they are (`WideKernel.infer`). On 30 cases of
# eight arms a joint's error is at most 1.14 times the rigid body's, with twice as much 1.35.
INFORMATION_SHARE = 0.5
PENALTIES = 4.0 ** np.arange(-6, 8)  # ridges among which it chooses, in independent samples
# Of what the rigid body leaves, that it leaves at least; and of a sample, that centres do not
# explain, for it to become one.
LEAST_SHARE = 1e-4
# Samples that are kept: one of each half of an independent sample, and when there are so many every
# second one is dropped, and one kept of twice as many from then on.
KEPT_SAMPLES, FIRST_STRIDE = 1000, 0.5
# It infers when there are so many times the independent samples there were. With 1.05 a Baxter's
# errors half a second ahead are 1.1 to 1.3 times as large.
INFERENCE_GROWTH = 1.02

SEEN, DUE, PASSED, STRIDE, KEPT = range(5)


class WideKernel:
    """Kernel ridge regression with each axis' own ridge: sparse Gaussian processes of one kernel.

    The outputs are those of `KernelModel.targets`, y and the columns of Phi that are active, so
    that what is known of y - Phi pi follows today's parameters pi. Samples are kept, at most
    `KEPT_SAMPLES`, from all of the time; when :meth:`infer` is due the centres are chosen among
    them, and all is solved for. In between it stays as it is.

    axis : (T,) that of each output. most : centres at most; 0: it learns nothing.

    Attributes
    ----------
    centers : (m, d). weights : (m, T), of the kernel at the centres. gamma : 1 / l^2.
    """

    def __init__(self, n_inputs: int, length_scale: float, axis: Indices, most: int) -> None:
        self.most = most
        self.gamma = 1.0 / length_scale**2
        self._axis = axis
        rows = KEPT_SAMPLES if most else 0
        self._inputs, self._targets = np.zeros((rows, n_inputs)), np.zeros((rows, len(axis)))
        self._weights = np.zeros(rows)
        # Samples seen, at how many it is due, those since the last one kept, the stride, rows kept.
        self._counts: Array = np.array([0.0, EVIDENCE_START, 0.0, FIRST_STRIDE, 0.0])
        self.centers: Array = np.zeros((0, n_inputs))
        self.weights: Array = np.zeros((0, len(axis)))

    def predict(self, x: Array) -> Array:
        """Outputs (T,) at an input (d,)."""
        found = np.empty(self.weights.shape[1])
        kernel_row_times(self.centers, x, self.gamma, True, self.weights, found)
        return found

    def predict_rows(self, X: Array) -> Array:
        """:meth:`predict` of inputs (k, d), (k, T)."""
        found: Array = self._kernel(X, self.centers) @ self.weights
        return found

    def _kernel(self, X: Array, Z: Array) -> Array:
        kernel: Array = np.exp(-np.sqrt(self.gamma) * cdist(X, Z))
        return kernel

    def until_due(self, weights: Array) -> int:
        """The number of k samples, of weights (k,), that are learned until it is due."""
        seen = np.cumsum(np.append(self._counts[SEEN], weights))[1:]
        due = int(np.searchsorted(seen, self._counts[DUE])) if self.most else len(weights)
        return min(due + 1, len(weights))

    def learn(self, X: Array, targets: Array, weights: Array) -> None:
        """Look at inputs (k, d) and targets (k, T) of k samples, counted weights (k,)."""
        counts = self._counts
        for x, z, weight in zip(X, targets, weights, strict=True):
            counts[SEEN] += weight
            counts[PASSED] += weight
            if counts[PASSED] < counts[STRIDE] or not self.most:
                continue
            row = int(counts[KEPT])
            # However much it stands for, it is one sample.
            self._inputs[row], self._targets[row] = x, z
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

    def infer(self, parameters: Array, column: Indices) -> None:
        """Choose centres, and each axis' most probable ridge of `PENALTIES`, or no weights for it.

        With features F of the samples kept, W their weights, a_i the eigenvalues of F'WF, b_i what
        F'W (y - Phi pi) is along its eigenvectors, and s the sum of squares of y - Phi pi, a ridge
        p explains a share r = sum b_i^2 / (a_i + p) / s. With the noise that is then most probable
        the evidence is, but for constants,

            -(c S log(1 - r) + sum log(1 + a_i / p)) / 2

        (MacKay 1992, "Bayesian interpolation", equation 4.1), S being the sum of weights, and c
        `INFORMATION_SHARE`: as p falls 1 - r falls with p^2 at most and the sum rises with as many
        log 1 / p as there are features, so that with c at most a half, and as many features as
        samples, going through all of them is never the most probable.

        parameters : (n_parameters,) pi. column : (T - n_axes,) the parameter of each column.
        """
        counts = self._counts
        if not counts[KEPT]:
            return
        counts[DUE] = INFERENCE_GROWTH * counts[SEEN]
        rows, n = slice(int(counts[KEPT])), int(self._axis.max(initial=-1)) + 1
        targets, weights = self._targets[rows], self._weights[rows]
        features, pivots = self._features(self._inputs[rows])
        size, V = np.linalg.eigh((features.T * weights) @ features)
        size = np.maximum(size, 0.0)[:, None]
        B = V.T @ ((features.T * weights) @ targets)
        on_axis = self._axis[n:, None] == np.arange(n)

        def residuals(outputs: Array) -> Array:
            moved: Array = (outputs[:, n:] * parameters[column]) @ on_axis
            return outputs[:, :n] - moved

        square, total = residuals(B) ** 2, weights @ residuals(targets) ** 2
        spent = np.log1p(size / PENALTIES).sum(axis=0)
        solved = np.zeros_like(B)
        for j in np.flatnonzero(total):
            explained = (square[:, j, None] / (size + PENALTIES)).sum(axis=0) / total[j]
            left = np.log(np.maximum(1.0 - explained, LEAST_SHARE))
            evidence = -(INFORMATION_SHARE * weights.sum() * left + spent)
            best = int(np.argmax(evidence))
            if evidence[best] > 0.0:
                own = self._axis == j
                solved[:, own] = B[:, own] / (size + PENALTIES[best])
        self.centers = self._inputs[pivots]
        factor = features[pivots]
        solved = solve_triangular(factor, V @ solved, lower=True, trans=1)
        self.weights = np.ascontiguousarray(solved)  # of one layout: what takes it is compiled once

    def _features(self, X: Array) -> tuple[Array, Indices]:
        """Nyström features (n, m) of inputs (n, d), and the m of them that are centres.

        A Cholesky factor of their kernel, pivoted by what is explained least (Fine and Scheinberg
        2001, "Efficient SVM training using low-rank kernel representations", section 4).
        """
        rest, factor = np.ones(len(X)), np.zeros((len(X), min(self.most, len(X))))
        pivots: list[int] = []
        for m in range(factor.shape[1]):
            pivot = int(np.argmax(rest))
            if rest[pivot] < LEAST_SHARE:
                break
            column = self._kernel(X, X[pivot : pivot + 1])[:, 0]
            column -= factor[:, :m] @ factor[pivot, :m]
            factor[:, m] = column / np.sqrt(rest[pivot])
            rest -= factor[:, m] ** 2
            rest[pivot] = 0.0
            pivots.append(pivot)
        return factor[:, : len(pivots)], np.array(pivots, dtype=np.intp)

    def copy_from(self, other: WideKernel) -> None:
        """Become a copy of `other`, of the same configuration, in the memory at hand."""
        self.restore(other._arrays())

    def _arrays(self) -> dict[str, Array]:
        rows = slice(int(self._counts[KEPT]))
        kept = {"inputs": self._inputs, "targets": self._targets, "kept": self._weights}
        state = {name: array[rows] for name, array in kept.items()}
        return state | {"counts": self._counts, "centers": self.centers, "weights": self.weights}

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        return {name: value.copy() for name, value in self._arrays().items()}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`. Raises ValueError for arrays of other shapes."""
        self._counts[:] = state["counts"]
        rows = slice(int(self._counts[KEPT]))
        self._inputs[rows], self._targets[rows] = state["inputs"], state["targets"]
        self._weights[rows] = state["kept"]
        self.centers, self.weights = state["centers"].copy(), state["weights"].copy()
