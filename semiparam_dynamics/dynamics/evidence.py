"""Evidence: the data's own ridge on the rigid body's parameters, and each axis' noise.

The rigid body's parameters are pi = pi_0 + D'u with the URDF's pi_0, the steps D of
:class:`~semiparam_dynamics.robot.model.ExpectedScales` and u ~ N(0, 1 / a_g) for the steps of group
g: bodies, a joint's basic friction, its friction that remembers, and so on. Axis j measures y_j =
Phi_j pi + e_j with e_j ~ N(0, s_j^2). The precisions a_g and the noises s_j^2 make the data most
probable (MacKay 1992, "Bayesian interpolation", equations 4.3 and 4.6; Tipping 2001, "Sparse
Bayesian learning", equation 16): a kind of friction that a joint does not have is pressed to
nothing, and a motion that excites little leaves what it does not show as the URDF has it.

What the model's form lacks is not noise: it lasts as long as the motion that shows it. So a sample
counts as `INFORMATION_SHARE` of one of noise, in the fixed point and in the posterior alike.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.lapack import solve_positive
from semiparam_dynamics.dynamics.moments import ROUNDING, Moments
from semiparam_dynamics.robot.model import ExpectedScales

# Of an independent sample's information, beside that of one whose errors are noise. On 30 cases of
# eight real arms the mean errors on motion never seen differ by 3 % between 0.1 and 0.5, and with
# 0.1 two standard deviations cover most.
INFORMATION_SHARE = 0.1
# The steps' precision and the noise, of an output's mean square, before any data.
STEP_PRECISION, FIRST_NOISE_SHARE = 1.0, 0.01
# Then a group counts as if so many of its steps had been seen to be of that size, and an axis as if
# so many samples had shown noise of a hundredth of its output: of no arm is it less.
STEP_COUNT, NOISE_COUNT, NOISE_SHARE = 0.02, 1.0, 1e-4
# It is looked at again when there are so many times the independent samples there were, from so
# many on. In between, what a sample says is learned with the evidence as it was.
EVIDENCE_GROWTH, EVIDENCE_START = 1.05, 4.0
MAX_ITERATIONS, MAX_CHANGE = 20, 0.02  # of the fixed point; relative, of a precision or noise


class Evidence(NamedTuple):
    """Precisions of the steps' groups, and the axes' noises."""

    precisions: Array  # (groups,)
    noises: Array  # (n_axes,) s_j^2, (N m)^2 or N^2

    @classmethod
    def before_data(cls, scales: ExpectedScales) -> Evidence:
        """As it is expected."""
        groups = int(scales.groups.max()) + 1
        return cls(np.full(groups, STEP_PRECISION), FIRST_NOISE_SHARE * scales.output**2)

    @property
    def information(self) -> Array:
        """(n_axes,) of a row with weight 1, by which it is multiplied in a posterior."""
        value: Array = INFORMATION_SHARE / self.noises
        return value

    def improve(
        self, moments: Moments, scales: ExpectedScales, mean: Array, output: Array
    ) -> Evidence:
        """The fixed point, from here on.

        mean : (n,) pi_0. output : (n_axes,) mean square of each output, (N m)^2 or N^2.
        """
        D, groups, now = scales.deviations, scales.groups, self
        whole = moments.whole()
        rows, n = whole.reshape(len(whole), -1), len(mean)
        for _ in range(MAX_ITERATIONS):
            products = (now.information @ rows).reshape(n, n)
            products[np.diag_indices(n)] *= 1.0 + ROUNDING
            targets = now.information @ moments.targets
            # u = a^(-1/2) Q w with w ~ N(0, 1), and pi = pi_0 + S'w.
            size = 1.0 / np.sqrt(now.precisions[groups])
            Q, S = np.linalg.qr(size[:, None] * D)
            right = np.column_stack((S @ (targets - products @ mean), Q.T, S))
            solved = solve_positive(np.eye(n) + S @ products @ S.T, right)
            w, QC, SC = solved[:, 0], solved[:, 1:-n].T, solved[:, -n:]
            u, parameters = size * (Q @ w), mean + S.T @ w
            known = np.bincount(groups, np.einsum("ij,ij->i", Q - QC, Q))
            precisions = (np.maximum(known, 0.0) + STEP_COUNT) / (
                np.bincount(groups, u**2) + STEP_COUNT / STEP_PRECISION
            )
            # Of its samples' information, what an axis has spent on parameters.
            spent = (rows @ (S.T @ SC).ravel()) * now.information
            left = np.maximum(INFORMATION_SHARE * moments.weights - spent, 0.0)
            squares = moments.squares + (whole @ parameters - 2.0 * moments.targets) @ parameters
            errors = INFORMATION_SHARE * np.maximum(squares, 0.0)
            noises = (errors + NOISE_COUNT * NOISE_SHARE * output) / (left + NOISE_COUNT)
            change = max(
                float(np.abs(np.log(new / old)).max())
                for new, old in zip((precisions, noises), now, strict=True)
            )
            now = Evidence(precisions, noises)
            if change < MAX_CHANGE:
                break
        return now

    def posterior(
        self, moments: Moments, scales: ExpectedScales, mean: Array
    ) -> tuple[Array, Array]:
        """R (n, n) upper triangular with R'R the parameters' precision, and U (n,): R pi = U."""
        root = scales.root(self.precisions)
        products, targets = moments.total(self.information)
        R = np.linalg.cholesky(products + root.T @ root).T
        U = np.linalg.solve(R.T, targets + root.T @ (root @ mean))
        return np.triu(R), U
