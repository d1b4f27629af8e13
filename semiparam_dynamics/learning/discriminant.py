"""Linear discriminant analysis from the recursion of least squares, an example at a time.

The within-class scatter needs no matrix of its own. With A = Z'Z + ridge I, the classes' sums B,
their counts N, and G = B'A^-1 B, the matrix E = diag(N) - G is the scatter of the errors that
regularised least squares leaves on one-hot codes. An example z of class t that least squares
predicts as s = B'A^-1 z, with leverage h = z'A^-1 z, adds (e_t - s)(e_t - s)' / (1 + h) to it. The
inverse of the within-class scatter S_w + ridge I = A - B N^-1 B' is A^-1 + A^-1 B E^-1 B'A^-1, so
that with K = E^-1 all that a discriminant needs follows from s and h:

    z'(S_w + ridge I)^-1 m_c = (s K)_c,    m_c'(S_w + ridge I)^-1 m_d = K_cd - [c = d] / N_c,
    z'(S_w + ridge I)^-1 z = h + s K s'.

T. Hastie, R. Tibshirani, A. Buja: Flexible discriminant analysis by optimal scoring, JASA 1994, is
the batch form; T. Hayes, C. Kanan, CVPR Workshops 2020, the streaming one with a matrix inverse.

A class of few examples has an uncertain mean, which is a draw from N(m_0, tau S) with m_0 and tau
those of all classes and S the within-class covariance. So its mean is drawn towards m_0 by
g = tau / (tau + 1 / N_c), and what it predicts is wider by 1 + tau (1 - g). Without the second, a
class of one example is never recognised; of many examples it is plain discriminant analysis.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dsymm, dsymv, dsyr
from scipy.linalg.lapack import dpotrf, dpotri

from semiparam_dynamics.base.arrays import Array, Indices

REWORK = 1000  # updates after which the inverse is computed anew from the scatter
USUAL_SPREAD = 1.0  # tau while there are fewer than two classes
LEAST_SPREAD = 1e-3


class ResidualScatter:
    """E = diag(N) - B'A^-1 B (T, T) of the classes, and its inverse K, of one ridge."""

    def __init__(self) -> None:
        self._E: Array = np.zeros((0, 0), order="F")  # lower halves
        self._K: Array = np.zeros((0, 0), order="F")
        self._updates = REWORK  # of the inverse since it was computed anew

    def __len__(self) -> int:
        return len(self._E)

    @property
    def E(self) -> Array:
        """(T, T), symmetric; a copy."""
        lower: Array = np.tril(self._E)
        return lower + np.tril(lower, -1).T

    def resize(self, n_classes: int) -> None:
        """Make room for classes that are new."""
        if (before := len(self._E)) < n_classes:
            for name in ("_E", "_K"):
                grown = np.zeros((n_classes, n_classes), order="F")
                grown[:before, :before] = getattr(self, name)
                setattr(self, name, grown)

    def learn(self, predicted: Array, leverage: float, number: int) -> None:
        """Add an example of class `number`, predicted as s (T,) before least squares learned it."""
        first = self._E[number, number] == 0.0
        error, scale = -predicted, 1.0 / (1.0 + leverage)
        error[number] += 1.0
        self._E = dsyr(scale, error, lower=1, a=self._E, overwrite_a=1)
        self._updates += 1
        if self._updates >= REWORK:
            return
        if first:  # E has a new row, and the Schur complement of its diagonal is E as it was
            solved = dsymv(1.0, self._K, predicted, lower=1)
            self._K[number, :number], self._K[number:, number] = solved[:number], solved[number:]
            self._K[number, number] = 1.0 / scale + predicted @ solved
        else:
            solved = dsymv(1.0, self._K, error, lower=1)
            factor = -scale / (1.0 + scale * float(error @ solved))
            self._K = dsyr(factor, solved, lower=1, a=self._K, overwrite_a=1)

    def replace(self, E: Array) -> None:
        """Take another E (T, T)."""
        self._E = np.array(E, order="F")
        self._K = np.zeros_like(self._E)
        self._updates = REWORK

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs: E, the inverse as it is, and how old that is."""
        return {"E": self.E, "K": np.tril(self._K), "updates": np.array(self._updates)}

    def restore(self, state: dict[str, Array]) -> None:
        """Go on from a :meth:`state`; one without the inverse, of an earlier version, will do."""
        self.replace(state["E"])
        if "K" in state:
            self._K = np.array(state["K"], order="F")
            self._updates = int(state["updates"])

    def renumber(self, new: Indices) -> None:
        """Give each class its new number, new[old]: equal ones are added, those of -1 leave."""
        onto = np.zeros((len(new), int(new.max(initial=-1)) + 1))
        stay = np.flatnonzero(new >= 0)
        onto[stay, new[stay]] = 1.0
        self.replace(onto.T @ self.E @ onto)

    def diagonal(self) -> Array:
        """Of K, (T,); zeros for classes without examples."""
        self._invert()
        return self._K.diagonal().copy()

    def errors(self) -> Array:
        """The diagonal of E, (T,): squares that least squares leaves of each class' code."""
        return self._E.diagonal().copy()

    def solve(self, rows: Array) -> Array:
        """Rows (k, T) times K; those of classes without examples are zero."""
        self._invert()
        product: Array = dsymm(1.0, self._K, rows.T, lower=1).T
        return product

    def _invert(self) -> None:
        if self._updates < REWORK:
            return
        seen = np.flatnonzero(self._E.diagonal() > 0.0)
        part = np.ix_(seen, seen)
        factor, failed = dpotrf(self._E[part], lower=1)
        if not failed:
            factor, failed = dpotri(factor, lower=1)
        if failed:  # least squares fits every code to rounding: no scatter is left to tell by
            factor = np.diag(1.0 / self._E.diagonal()[seen])
        self._K = np.zeros_like(self._E)
        self._K[part] = factor
        self._updates = 0


class ClassMeans:
    """The classes' means as a discriminant needs them, drawn towards their middle.

    Parameters
    ----------
    scatter : of the least squares that make the predictions. counts : N (T,).
    dimension : tr(S_w (S_w + ridge I)^-1), the number of directions in which examples scatter.

    Attributes
    ----------
    spread : tau, the variance of the classes' means in units of that within a class.
    """

    def __init__(self, scatter: ResidualScatter, counts: Array, dimension: float) -> None:
        self._scatter, self._dimension = scatter, dimension
        self._seen = seen = counts > 0.0
        self._n, few = counts.sum(), int(np.count_nonzero(seen))
        inverse_counts = np.where(seen, 1.0 / np.where(seen, counts, 1.0), 0.0)
        self._average = seen / max(few, 1)
        square = self._n * (scatter.diagonal() - inverse_counts)
        with_middle = self._n * (scatter.solve(self._average[None])[0] - inverse_counts / few)
        self._middle = float(self._average @ with_middle)
        self.spread = USUAL_SPREAD
        if few > 1:
            between = (square[seen].sum() - few * self._middle) / ((few - 1) * dimension)
            self.spread = max(between - inverse_counts.sum() / few, LEAST_SPREAD)
        self._draw = draw = np.where(seen, self.spread / (self.spread + inverse_counts), 0.0)
        self._width = 1.0 + self.spread * (1.0 - draw)
        apart = square - 2.0 * with_middle + self._middle
        self._square = self._middle + 2.0 * draw * (with_middle - self._middle) + draw**2 * apart
        self._prior = np.log(np.where(seen, counts, 1.0) / self._n)

    def scores(self, distances: Array) -> Array:
        """Logarithms of N_c p(z | c), (k, T), but for what is the same for all classes.

        Of examples with these :meth:`distances`.
        """
        found = distances / (-2.0 * self._width)
        found += self._prior - 0.5 * self._dimension * np.log(self._width)
        return found

    def familiarity(self, distances: Array, leverages: Array) -> Array:
        """How much nearer examples are to each class than to all at once, (k, T).

        See :mod:`semiparam_dynamics.learning.unknown`.
        """
        found: Array = self._n * leverages[:, None] - distances
        return found

    def withheld(self, predicted: Array, numbers: Indices) -> Array:
        """What familiarity has more, (k,), if each example's class, of that number, is unknown.

        Zero for a class without examples, or of which least squares leaves nothing.
        """
        errors = self._scatter.errors()[numbers]
        own = predicted[np.arange(len(predicted)), numbers]
        found: Array = self._n * own**2 / np.where(errors > 0.0, errors, np.inf)
        return found

    def distances(self, predicted: Array, leverages: Array) -> Array:
        """Squared Mahalanobis distances (k, T) of the examples from the means that are drawn.

        Of examples that least squares predicts as s (k, T), with leverages z'A^-1 z (k,).
        """
        crossed = self._n * self._scatter.solve(predicted)
        own = (self._n * leverages + np.einsum("ij,ij->i", predicted, crossed))[:, None]
        middle = (crossed @ self._average)[:, None]
        found: Array = own - 2.0 * (middle + self._draw * (crossed - middle)) + self._square
        return found
