"""Feature maps of the Gaussian kernel: Nyström features on growing centres, and random Fourier."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.lapack import dtrtrs

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.jit import compiled
from semiparam_dynamics.learning.recursion.triangular import solve_right
from semiparam_dynamics.learning.recursion.vectors import (
    LOG2_E,
    MAX_ANGLE,
    cosines_and_sines,
    powers_of_two,
)

MAX_NOVELTY = 0.9  # novelty that is asked of the last centre


class IncrementalNystromFeatures:
    """Features phi(x) = L^-1 k(C, x), with L L' = k(C, C), and centres C added on the way.

    phi'phi' approximates the kernel (thesis 4.2: K_nm K_mm^-1 K_nm'), and |phi(x)|^2 says how
    much of x the centres explain: 1 on them, 0 far away, where the features vanish and with
    them whatever was learned on them. A point of which less than `1 - novelty` is explained
    becomes a centre: one row appended to L, the earlier features unchanged. The same features
    as `NystromFeatures`, which chooses its centres in one go.

    With `sparing`, once half of `capacity` is used the novelty that is asked rises with what is
    used, up to `MAX_NOVELTY`, so that what comes late still finds one.
    """

    def __init__(
        self,
        n_inputs: int,
        length_scale: float,
        capacity: int,
        novelty: float,
        *,
        sparing: bool = False,
    ) -> None:
        self.n_centers = 0
        self.sparing = sparing
        self.capacity = capacity
        self.novelty = novelty
        self.length_scale = length_scale
        self.gamma = 0.5 / length_scale**2
        self._centers = np.zeros((capacity, n_inputs))
        self._factor = np.zeros((capacity, capacity))
        self.explained = 0.0
        self.explained_rows: Array = np.zeros(0)  # (k,) of the inputs of `transform_rows`

    @property
    def centers(self) -> Array:
        """The centres so far, (m, d)."""
        return self._centers[: self.n_centers]

    @property
    def factor(self) -> Array:
        """L of these centres, (m, m)."""
        return self._factor[: self.n_centers, : self.n_centers]

    def _asked(self) -> float:
        """The novelty above which the next point becomes a centre."""
        if not self.sparing:
            return self.novelty
        return sparing_novelty(self.n_centers, self.capacity, self.novelty)

    def transform(self, x: Array) -> Array:
        """Features (m,) of one input (d,); `explained` is then |phi|^2."""
        m = self.n_centers
        phi = np.empty(m)
        self.explained = nystrom_row(self._centers, self._factor, x, self.gamma, phi, m)
        return phi

    def grow(self, x: Array, phi: Array) -> bool:
        """Make x (d,), whose features are `phi` (m,), a centre if it is new enough."""
        if self.n_centers == self.capacity:
            return False
        rest = 1.0 - float(phi @ phi)
        if rest <= self._asked():
            return False
        m = self.n_centers
        self._centers[m] = x
        self._factor[m, :m] = phi
        self._factor[m, m] = math.sqrt(rest)
        self.n_centers = m + 1
        return True

    def transform_rows(self, X: Array) -> Array:
        """:meth:`transform` of inputs (k, d): features (k, m); sets the attributes of rows."""
        phi = np.zeros((len(X), 0))
        if self.n_centers:
            kernel = gaussian_block(self.centers, X, self.gamma)
            phi = solve_right(kernel, self.factor.T)
        self.explained_rows = np.einsum("ij,ij->i", phi, phi)
        return phi

    def weights(self, W: Array) -> Array:
        """L^-T W for weights W (m, T) of the features: phi(x)' W = k(x, C) L^-T W.

        See :func:`kernel_row_times`.
        """
        if not W.size:
            return W.copy()
        # L by rows is L' by columns, as LAPACK has it: nothing is copied but the result.
        solved: Array = dtrtrs(self._factor[: self.n_centers].T, W)[0]
        return solved

    def copy_from(self, other: IncrementalNystromFeatures) -> None:
        """Become a copy of `other`, of the same kernel, in the memory at hand."""
        m = self.n_centers = other.n_centers
        self._centers[:m], self._factor[:m, :m] = other.centers, other.factor

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        m = self.n_centers
        return {"centers": self._centers[:m].copy(), "factor": self._factor[:m, :m].copy()}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`: centres, or the kept ones of a basis, and their factor."""
        m = self.n_centers = len(state["centers"])
        self._centers[:m] = state["centers"]
        self._factor[:m, :m] = state["factor"]


def sparing_novelty(used: int, capacity: int, novelty: float) -> float:
    """The novelty that is asked where so many centres are used, see the class."""
    beyond = max(2.0 * used / capacity - 1.0, 0.0)
    return novelty + beyond * max(MAX_NOVELTY - novelty, 0.0)


def gaussian_block(centers: Array, X: Array, gamma: float) -> Array:
    """exp(-gamma |x - c|^2) of inputs X (k, d) and centres (m, d), (k, m)."""
    # Distances from products have rounding errors of their terms' size: so from the centres' mean.
    mean = centers.mean(axis=0)
    C, D = centers - mean, X - mean
    exponent = D @ (2.0 * gamma * C.T)
    exponent -= gamma * np.einsum("ij,ij->i", C, C)
    exponent -= gamma * np.einsum("ij,ij->i", D, D)[:, None]
    np.minimum(exponent, 0.0, out=exponent)
    kernel: Array = np.exp(exponent, out=exponent)
    return kernel


@compiled
def nystrom_row(C: Array, L: Array, x: Array, gamma: float, phi: Array, n: int) -> float:
    """phi (n,) = L^-1 k(C, x) for the first n rows of C and L; returns |phi|^2."""
    _kernel_row(C, x, gamma, False, phi, n)
    return _solve_lower(L, phi, n)


@compiled
def kernel_row_times(C: Array, x: Array, gamma: float, rough: bool, W: Array, out: Array) -> None:
    """out (T,) = k(C, x)' W of the first rows of C, as many as W (m, T) has."""
    kernel = np.empty(len(W))
    _kernel_row(C, x, gamma, rough, kernel, len(W))
    _row_times(kernel, W, out)


@compiled
def _row_times(row: Array, W: Array, out: Array) -> None:
    """out (T,) = row' W."""
    for t in range(out.size):
        out[t] = 0.0
    for i in range(len(W)):
        for t in range(out.size):
            out[t] += row[i] * W[i, t]


@compiled
def _kernel_row(C: Array, x: Array, gamma: float, rough: bool, kernel: Array, n: int) -> None:
    """The kernel exp(-s) (n,) of x and n rows of C, s = gamma |x - c|^2 or, if rough, its root."""
    for i in range(n):
        centre = C[i]
        distance = 0.0
        for j in range(x.size):
            delta = x[j] - centre[j]
            distance += delta * delta
        size = gamma * distance
        kernel[i] = -LOG2_E * (math.sqrt(size) if rough else size)
    powers_of_two(kernel)


@compiled
def _solve_lower(L: Array, phi: Array, n: int) -> float:
    """phi (n,) becomes L^-1 phi for a lower triangle L; returns its squared norm.

    Four rows at a time, which come from memory side by side.
    """
    total = 0.0
    whole = n // 4 * 4
    for i in range(0, whole, 4):
        a, b, c, d = L[i], L[i + 1], L[i + 2], L[i + 3]
        dot_a = dot_b = dot_c = dot_d = 0.0
        for j in range(i):
            value = phi[j]
            dot_a += a[j] * value
            dot_b += b[j] * value
            dot_c += c[j] * value
            dot_d += d[j] * value
        x = (phi[i] - dot_a) / a[i]
        y = (phi[i + 1] - dot_b - b[i] * x) / b[i + 1]
        z = (phi[i + 2] - dot_c - c[i] * x - c[i + 1] * y) / c[i + 2]
        w = (phi[i + 3] - dot_d - d[i] * x - d[i + 1] * y - d[i + 2] * z) / d[i + 3]
        phi[i], phi[i + 1], phi[i + 2], phi[i + 3] = x, y, z, w
        total += x * x + y * y + z * z + w * w
    for i in range(whole, n):
        row, dot = L[i], 0.0
        for j in range(i):
            dot += row[j] * phi[j]
        phi[i] = (phi[i] - dot) / row[i]
        total += phi[i] * phi[i]
    return total


# -------------------------------------------------------------------------------------------------
# Random Fourier features.


def draw_frequencies(
    n: int, n_inputs: int, length_scale: float, seed: int | np.random.RandomState
) -> Array:
    """Frequencies (n, d) ~ N(0, length_scale^-2 I): the Gaussian kernel's spectral density.

    Thesis (8.9) prints the variance as sigma^2; the kernel of width sigma needs sigma^-2.
    """
    random = seed if isinstance(seed, np.random.RandomState) else np.random.RandomState(seed)
    return random.standard_normal((n, n_inputs)) / length_scale


def fourier_features(X: Array, frequencies: Array) -> Array:
    """[cos(X w'), sin(X w')] / sqrt(n) for inputs (d,) or (k, d): features (2n,) or (k, 2n).

    Their inner products approximate exp(-|x - x'|^2 / 2 sigma^2), and their norm is 1.
    """
    phase = X @ frequencies.T
    if phase.dtype == np.float64 and np.abs(phase).max(initial=0.0) <= MAX_ANGLE:
        features = np.empty((*phase.shape[:-1], 2 * len(frequencies)))
        scale = 1.0 / math.sqrt(len(frequencies))
        cosines_and_sines(np.atleast_2d(phase), scale, np.atleast_2d(features))
        return features
    return np.concatenate((np.cos(phase), np.sin(phase)), axis=-1) / math.sqrt(len(frequencies))


@compiled
def fourier_row_times(frequencies: Array, x: Array, W: Array, out: Array) -> None:
    """out (T,) = :func:`fourier_features` of one input (d,), times weights W (2n, T)."""
    n, largest = len(frequencies), 0.0
    phase, features, scale = np.empty((1, n)), np.empty((1, 2 * n)), 1.0 / math.sqrt(n)
    for i in range(n):
        total = 0.0
        for j in range(x.size):
            total += frequencies[i, j] * x[j]
        phase[0, i] = total
        largest = max(largest, abs(total))
    if largest <= MAX_ANGLE:
        cosines_and_sines(phase, scale, features)
    else:
        for i in range(n):
            features[0, i] = scale * math.cos(phase[0, i])
            features[0, n + i] = scale * math.sin(phase[0, i])
    _row_times(features[0], W, out)
