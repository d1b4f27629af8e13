"""Feature maps of the Gaussian kernel: Nyström features on growing centres, and random Fourier."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from scipy.linalg.lapack import dtrtrs

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.jit import compiled, compiled_as_written
from semiparam_dynamics.recursion.blocks import solve_right


class Basis(Protocol):
    """Nyström features computed in batch: the learning package's `NystromBasis`."""

    centers: Array  # (M, d)
    kept: Indices  # (q,), the numbers of the centres that brought a feature

    @property
    def factor(self) -> Array:
        """L of the kept centres, (q, q)."""


HIGHEST = 0.9  # novelty that is asked of the last centre


class IncrementalNystromFeatures:
    """Features phi(x) = L^-1 k(C, x), with L L' = k(C, C), and centres C added on the way.

    phi'phi' approximates the kernel (thesis 4.2: K_nm K_mm^-1 K_nm'), and |phi(x)|^2 tells how
    much of x the centres explain: 1 on them, 0 far away, where the features vanish and with
    them whatever was learned on them. A point of which less than `1 - novelty` is explained
    becomes a centre: one row appended to L, the earlier features unchanged. The same features
    as `NystromFeatures`, which chooses its centres in one go; :meth:`start` takes them over.

    With `sparing`, once half of `capacity` is used the novelty that is asked rises with what is
    used, up to `HIGHEST`, so that what comes late still finds one.
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
        self.explained = self.nearest = 0.0

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
        used = 2.0 * self.n_centers / self.capacity - 1.0
        if not self.sparing or used <= 0.0:
            return self.novelty
        return self.novelty + used * max(HIGHEST - self.novelty, 0.0)

    def transform(self, x: Array) -> Array:
        """Features (m,) of one input (d,); `explained` and `nearest` are then |phi|^2, max k."""
        m = self.n_centers
        kernel, phi = np.empty(m), np.empty(m)
        gaussian_row(self._centers, x, self.gamma, kernel, m)
        self.explained = solve_lower(self._factor, kernel, phi, m)
        self.nearest = float(kernel.max(initial=0.0))
        return phi

    def grow(self, x: Array, phi: Array) -> bool:
        """Make x (d,), whose features are `phi` (m,), a centre if it is new enough."""
        m = self.n_centers
        rest = 1.0 - float(phi @ phi)
        if m == self.capacity or rest <= self._asked():
            return False
        self._append(x, phi, math.sqrt(rest))
        return True

    def _append(self, x: Array, phi: Array, root: float) -> None:
        m = self.n_centers
        self._centers[m] = x
        self._factor[m, :m] = phi
        self._factor[m, m] = root
        self.n_centers = m + 1

    def transform_rows(self, X: Array) -> Array:
        """:meth:`transform` of inputs (k, d): features (k, m)."""
        m = self.n_centers
        if not m:
            return np.zeros((len(X), 0))
        kernel = gaussian_block(self.centers, X, self.gamma)
        return solve_right(kernel, np.ascontiguousarray(self.factor.T))

    def nearest_rows(self, X: Array, since: int | None = None) -> Array:
        """Kernel of the nearest centre to each of k inputs (k, d), 0 where there is none: (k,).

        since : only of the centres from this number on, which some of X became in turn, and of
            these those that were there before the input.
        """
        nearest = np.zeros(len(X))
        if since is None:
            if self.n_centers:
                np.max(gaussian_block(self.centers, X, self.gamma), axis=1, out=nearest)
            return nearest
        for center in self.centers[since:]:
            after = 1 + int(np.argmax((X == center).all(axis=1)))
            later = gaussian_block(center[None], X[after:], self.gamma)[:, 0]
            np.maximum(nearest[after:], later, out=nearest[after:])
        return nearest

    def grow_rows(self, X: Array) -> Array:
        """Features (k, m) of inputs (k, d), each of which in turn may become a centre.

        The same as :meth:`transform`, :meth:`grow` and, where it grew, :meth:`transform` again for
        each row; a row has zeros for the centres that came after it.
        """
        phi = self.transform_rows(X)
        rest = 1.0 - np.einsum("ij,ij->i", phi, phi)
        new, i = [phi], -1
        while self.n_centers < self.capacity:
            candidates = np.flatnonzero(rest[i + 1 :] > self._asked())
            if not len(candidates):
                break
            i += 1 + int(candidates[0])
            root = math.sqrt(rest[i])
            own = np.concatenate([part[i] for part in new])
            column = np.zeros((len(X), 1))
            later = column[i + 1 :, 0]
            later += gaussian_block(X[i : i + 1], X[i + 1 :], self.gamma)[:, 0]
            for part in new:
                later -= part[i + 1 :] @ part[i]
            later /= root
            column[i] = root
            self._append(X[i], own, root)
            rest[i + 1 :] -= later**2
            new.append(column)
        return phi if len(new) == 1 else np.concatenate(new, axis=1)

    def kernel_weights(self, W: Array) -> Array:
        """L^-T W for weights W (m, T) of the features: phi(x)' W = k(x, C) L^-T W."""
        if not W.size:
            return W.copy()
        # L by rows is L' by columns, as LAPACK has it: nothing is copied but the result.
        solved: Array = dtrtrs(self._factor[: self.n_centers].T, W)[0]
        return solved

    def copy_from(self, other: IncrementalNystromFeatures) -> None:
        """Become a copy of `other`, of the same kernel, in the memory at hand."""
        m = self.n_centers = other.n_centers
        self._centers[:m], self._factor[:m, :m] = other.centers, other.factor

    def start(self, basis: Basis) -> None:
        """Continue from features computed in batch, of the same kernel; at most `capacity`."""
        self.restore({"centers": basis.centers[basis.kept], "factor": basis.factor})

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        m = self.n_centers
        return {"centers": self._centers[:m].copy(), "factor": self._factor[:m, :m].copy()}

    def restore(self, state: dict[str, Array]) -> None:
        """Continue from a :meth:`state`."""
        m = self.n_centers = len(state["centers"])
        self._centers[:m] = state["centers"]
        self._factor[:m, :m] = state["factor"]


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
def gaussian_row(C: Array, x: Array, gamma: float, k: Array, n: int) -> None:
    """k_i = exp(-gamma |x - C_i|^2) for the first n rows of C."""
    for i in range(n):
        centre = C[i]
        distance = 0.0
        for j in range(x.size):
            delta = x[j] - centre[j]
            distance += delta * delta
        k[i] = np.exp(-gamma * distance)


@compiled
def solve_lower(L: Array, k: Array, phi: Array, n: int) -> float:
    """phi = L^-1 k for a lower-triangular L; returns |phi|^2."""
    total = 0.0
    for i in range(n):
        row = L[i, :i]
        dot = 0.0
        for j in range(row.size):
            dot += row[j] * phi[j]
        value = (k[i] - dot) / L[i, i]
        phi[i] = value
        total += value * value
    return total


# -------------------------------------------------------------------------------------------------
# Random Fourier features, and cosines and sines of many angles at once in the processor's vectors.
#
# The C library's take 20 ns each, one at a time. Here both come from one reduction to
# [-pi/4, pi/4] (Cody and Waite) and Cephes' polynomials (S. Moshier, sin.c), right to a unit in the
# last place.

LARGEST = 1e5  # up to which an angle is reduced without loss
# pi / 2 in three parts, whose multiples by the quarter turns that there can be are exact.
_FIRST, _SECOND, _THIRD = 1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21


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
    if phase.dtype == np.float64 and np.abs(phase).max(initial=0.0) <= LARGEST:
        features = np.empty((*phase.shape[:-1], 2 * len(frequencies)))
        scale = 1.0 / math.sqrt(len(frequencies))
        cosines_and_sines(np.atleast_2d(phase), scale, np.atleast_2d(features))
        return features
    return np.concatenate((np.cos(phase), np.sin(phase)), axis=-1) / math.sqrt(len(frequencies))


@compiled_as_written
def cosines_and_sines(angles: Array, scale: float, out: Array) -> None:
    """out (k, 2 n) = scale [cos, sin] of angles (k, n), of magnitude `LARGEST` at most."""
    n = angles.shape[1]
    for i in range(len(angles)):
        row, cosines, sines = angles[i], out[i, :n], out[i, n:]
        for j in range(n):
            x = row[j]
            quarter = np.rint(x * 0.6366197723675814)
            x = ((x - quarter * _FIRST) - quarter * _SECOND) - quarter * _THIRD
            z = x * x
            p = 1.58962301576546568060e-10
            p = p * z - 2.50507477628578072866e-8
            p = p * z + 2.75573136213857245213e-6
            p = p * z - 1.98412698295895385996e-4
            p = p * z + 8.33333333332211858878e-3
            p = p * z - 1.66666666666666307295e-1
            sine = x + x * z * p
            p = -1.13585365213876817300e-11
            p = p * z + 2.08757008419747316778e-9
            p = p * z - 2.75573141792967388112e-7
            p = p * z + 2.48015872888517045348e-5
            p = p * z - 1.38888888888730564116e-3
            p = p * z + 4.16666666666665929218e-2
            cosine = 1.0 - 0.5 * z + z * z * p
            turned = np.int64(quarter)
            odd = (turned & 1) == 1
            a = sine if odd else cosine
            b = cosine if odd else sine
            cosines[j] = -scale * a if ((turned + 1) & 2) == 2 else scale * a
            sines[j] = -scale * b if (turned & 2) == 2 else scale * b
