"""The Cramer-Rao bound of a payload's mass and centre, by the errors of the model without it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semiparam_dynamics.base.arrays import Array


class Noise(NamedTuple):
    """Errors e_k = a e_(k-1) + w_k, with w_k normal and of covariance W over the axes."""

    correlation: Array  # (n_axes,) a
    covariance: Array  # (n_axes, n_axes) W


def noise_of(errors: Array) -> Noise:
    """Of errors (k, n_axes) of consecutive blocks, by least squares."""
    before, after = errors[:-1], errors[1:]
    a = np.sum(before * after, axis=0) / np.maximum(np.sum(before**2, axis=0), 1e-300)
    left = after - np.clip(a, 0.0, 0.98) * before
    return Noise(np.clip(a, 0.0, 0.98), left.T @ left / len(left))


def parameters_bound(columns: Array, noise: Noise) -> Array:
    """(10, 10) the least covariance of a payload's parameters, estimated without a bias.

    columns: (k, n_axes, 10) of consecutive blocks, what a unit of each parameter adds. Fisher's
    information of normal errors of this covariance and correlation in time; of the first block
    nothing is told, since what came before it is not known.
    """
    rows = columns[1:] - noise.correlation[None, :, None] * columns[:-1]
    information = np.einsum("kia,ij,kjb->ab", rows, np.linalg.inv(noise.covariance), rows)
    scale = 1.0 / np.sqrt(np.diag(information))
    scaled = np.linalg.inv(information * np.outer(scale, scale))
    covariance: Array = scaled * np.outer(scale, scale)
    return covariance


def center_bound(covariance: Array, mass: float, center: Array) -> Array:
    """(3, 3) m^2, of the centre of mass, from that of mass and mass times centre (4, 4)."""
    J = np.column_stack((-center, np.eye(3))) / mass
    bound: Array = J @ covariance[:4, :4] @ J.T
    return bound


def share_within(covariance: Array, radius: float, draws: int = 20_000) -> float:
    """How probably a normal error (3,) of this covariance is no longer than a radius."""
    root = np.linalg.cholesky(covariance + 1e-18 * np.eye(3))
    errors = np.random.default_rng(0).standard_normal((draws, 3)) @ root.T
    return float(np.mean(np.linalg.norm(errors, axis=1) <= radius))
