"""Random features of stationary kernels: frequencies from their spectral densities."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import chi2
from sklearn.utils import check_random_state

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.learning.kernels import Bound, Gaussian, Kernel, Laplacian, Matern

KINDS = ("phase", "pair")


class SpectralFeatures:
    """Functions psi_1, psi_2, ... with (1 / m) sum_j psi_j(x) psi_j(x') -> K(x, x').

    With frequencies w from the kernel's spectral density (Bochner's theorem; Rahimi, Recht 2007):
    kind "phase" has psi = sqrt(2) cos(w'x + b), b uniform; kind "pair" has the two functions
    sqrt(2) cos(w'x) and sqrt(2) sin(w'x) of each frequency, next to each other. The first of them
    are the same whatever their number.

    The densities, for width sigma: the Gaussian kernel's is normal of scale 1 / sigma; the
    Laplacian's has independent Cauchy entries; Matern's is Student's t with 2 nu degrees of
    freedom (Rasmussen, Williams 2006, section 4.2.1).

    Raises ConfigurationError for another kernel or kind.
    """

    def __init__(
        self, kernel: Kernel, n_features: int, n_inputs: int, kind: str, random_state: Any
    ) -> None:
        if kind not in KINDS:
            raise ConfigurationError(f'kind must be "phase" or "pair", not "{kind}".')
        if n_features < (2 if kind == "pair" else 1):
            raise ConfigurationError(f'n_features={n_features} is too few for kind="{kind}".')
        if not isinstance(kernel, (Gaussian, Laplacian, Matern)):
            raise ConfigurationError(
                f"Random features need the kernel's spectral density; it is known for Gaussian, "
                f"Laplacian and Matern, not for {type(kernel).__name__}."
            )
        n = n_features if kind == "phase" else n_features // 2
        # Each frequency takes a row of normal draws, so that the first ones don't depend on n.
        draws = check_random_state(random_state).standard_normal((n, n_inputs + 2))
        directions, phase, mixing = draws[:, :-2], ndtr(draws[:, -2]), ndtr(draws[:, -1])
        if isinstance(kernel, Laplacian):
            directions = np.tan(np.pi * (ndtr(directions) - 0.5))
        elif isinstance(kernel, Matern):
            kernel.bind(np.zeros((1, n_inputs)))  # checks nu
            freedom = 2.0 * kernel.nu
            directions = directions * np.sqrt(freedom / chi2.ppf(mixing, freedom))[:, None]
        self.frequencies: Array = directions / kernel_widths(kernel, n_inputs)
        self.offsets: Array | None = 2.0 * np.pi * phase if kind == "phase" else None
        self.n_features = n if kind == "phase" else 2 * n

    def bound(self, dtype: Any) -> Bound:
        """The function X (k, d) -> [psi_1(x), ..., psi_m(x)] (k, m), in `dtype`."""
        return fourier_map(self.frequencies, self.offsets, dtype)


def fourier_map(frequencies: Array, offsets: Array | None, dtype: Any) -> Bound:
    """X (k, d) -> sqrt(2) cos(w'x + b), or pairs of sqrt(2) cos(w'x) and sqrt(2) sin(w'x)."""
    transposed = np.ascontiguousarray(frequencies.T, dtype=dtype)
    shift = None if offsets is None else offsets.astype(dtype)
    root = np.dtype(dtype).type(np.sqrt(2.0))

    def block(X: Array) -> Array:
        angle = X @ transposed
        if shift is not None:
            angle += shift
            result = np.cos(angle, out=angle)
        else:
            result = np.empty((len(X), 2 * angle.shape[1]), dtype)
            np.cos(angle, out=result[:, ::2])
            np.sin(angle, out=result[:, 1::2])
        result *= root
        return result

    return block


def kernel_widths(kernel: Any, n_inputs: int) -> Array:
    """The kernel's width for each input, (d,); binding the kernel checks them."""
    kernel.bind(np.zeros((1, n_inputs)))
    return np.broadcast_to(np.asarray(kernel.length_scale, dtype=float), (n_inputs,))
