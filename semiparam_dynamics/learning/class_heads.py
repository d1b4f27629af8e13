"""The classes of an incremental classifier, and its heads: scores from one recursion.

A head has one ridge. With A = Z'Z + ridge I of all features Z that were learned, and the classes'
sums B, least squares predicts the one-hot codes of features z as s = B'A^-1 z. Those are the scores
of :class:`LeastSquaresHead` (thesis 7.5). :class:`DiscriminantHead` is linear discriminant analysis
from the same recursion.

The within-class scatter needs no matrix of its own. With the counts N and G = B'A^-1 B the matrix
E = diag(N) - G is the scatter of the errors that least squares leaves. An example z of class t that
is predicted as s, with leverage h = z'A^-1 z, adds (e_t - s)(e_t - s)' / (1 + h) to it. The
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

from collections.abc import Hashable, Iterable
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dsymm, dsymv, dsyr
from scipy.linalg.lapack import dpotrf, dpotri

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import LearningError
from semiparam_dynamics.learning.recursion.factor import CholeskyFactor

# -------------------------------------------------------------------------------------------------
# The classes: labels, sums of features and counts; and recoding, which keeps a class of few
# examples from being ignored (thesis 7.5.2 and 7.6.3).

SUMMED = ("sums", "counts", "shown")  # arrays with a row for each class


class ClassSums:
    """Columns of b = Z'Y (thesis 7.19) and counts gamma, a class at a time; classes come and go.

    A class' column is kept as a row of `sums`, so that an example touches D numbers that lie side
    by side. Numbers of classes, in the order of their coming, are what `sums`, `counts` and
    scores are indexed by; they close up when a class leaves.

    Attributes
    ----------
    sums : (T, D), the sum of each class' features.
    counts, shown : (T,), gamma, how many examples of each class were learned; and how many came.
    """

    def __init__(self, n_features: int) -> None:
        self.labels: list[Hashable] = []
        self._numbers: dict[Hashable, int] = {}
        self._order: Indices | None = None
        self.sums: Array = np.zeros((0, n_features))
        self.counts: Array = np.zeros(0)
        self.shown: Array = np.zeros(0)

    def __len__(self) -> int:
        return len(self.labels)

    def __contains__(self, label: Hashable) -> bool:
        return label in self._numbers

    @property
    def order(self) -> Indices:
        """(T,): the classes' numbers, sorted by their labels."""
        if self._order is None:
            self._order = np.argsort(np.asarray(self.labels), kind="stable")
        return self._order

    def number(self, label: Hashable) -> int:
        """The class' number. Raises LearningError, naming some that there are, for no class."""
        if label not in self._numbers:
            known = ", ".join(str(one) for one in self.labels[:5]) or "none yet"
            more = ", ..." if len(self.labels) > 5 else ""
            raise LearningError(f"There is no class {str(label)[:80]!r}; known: {known}{more}.")
        return self._numbers[label]

    def add(self, labels: Iterable[Hashable]) -> Indices:
        """The classes' numbers (n,); those never seen get columns of zeros (thesis 7.20)."""
        numbers = [self._numbers.setdefault(label, len(self._numbers)) for label in labels]
        if new := len(self._numbers) - len(self.labels):
            self.labels, self._order = list(self._numbers), None
            for name in SUMMED:
                array = getattr(self, name)
                zeros = np.zeros((new, *array.shape[1:]))
                setattr(self, name, np.concatenate((array, zeros)))
        return np.array(numbers, dtype=np.intp)

    def show(self, numbers: Indices, hold_out: int) -> npt.NDArray[np.bool_]:
        """Count that examples of these classes (n,) came; returns which are to be held out.

        Each class' every `hold_out`-th, none for 0: a class' first examples are learned.
        """
        held = np.zeros(len(numbers), dtype=bool)
        for i, number in enumerate(numbers):
            self.shown[number] += 1.0
            held[i] = hold_out > 0 and self.shown[number] % hold_out == 0
        return held

    def learn(self, rows: Array, numbers: Indices) -> None:
        """Add inputs (k, D) to the classes of these numbers (k,)."""
        if len(rows) == 1:
            self.sums[numbers[0]] += rows[0]
            self.counts[numbers[0]] += 1.0
            return
        for number in np.unique(numbers):
            own = numbers == number
            self.sums[number] += rows[own].sum(axis=0)
            self.counts[number] += np.count_nonzero(own)

    def rename(self, label: Hashable, new: Hashable) -> None:
        """Rename a class. Raises LearningError if there is a class of the new name."""
        number = self.number(label)
        if new != label and new in self._numbers:
            raise LearningError(f"There is a class {new!r} already: merge the two instead.")
        self.labels[number] = new
        self._renumber()

    def merge(self, label: Hashable, into: Hashable) -> Indices:
        """Add a class' sum and count to another's, and remove it; returns as :meth:`forget`."""
        source, target = self.number(label), self.number(into)
        if source == target:
            raise LearningError(f"The class {label!r} can't be merged with itself.")
        for name in SUMMED:
            getattr(self, name)[target] += getattr(self, name)[source]
        numbers = self.forget(label)
        numbers[source] = numbers[target]
        return numbers

    def forget(self, label: Hashable) -> Indices:
        """Remove a class' sum and count; returns the new number of each old one, or -1."""
        number, old = self.number(label), np.arange(len(self.labels))
        for name in SUMMED:
            setattr(self, name, np.delete(getattr(self, name), number, axis=0))
        del self.labels[number]
        self._renumber()
        return np.where(old == number, -1, old - (old > number))

    def _renumber(self) -> None:
        self._numbers = {label: i for i, label in enumerate(self.labels)}
        self._order = None

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs, without the labels."""
        return {name: getattr(self, name).copy() for name in SUMMED}

    def restore(self, labels: Iterable[Hashable], state: dict[str, Array]) -> None:
        """Resume from labels and a :meth:`state`."""
        self.__init__(self.sums.shape[1])  # type: ignore[misc]
        self.add(labels)
        for name in SUMMED:
            getattr(self, name)[:] = state[name]


def class_weights(counts: Array, recoding: float) -> Array:
    """The diagonal of Gamma^recoding, (T,): (k / gamma_t)^recoding, k the sum of the counts gamma.

    recoding = 0 leaves scores as they are, 1 undoes the imbalance wholly. A class without examples
    has a score of zero whatever its weight, which is 1.
    """
    seen = counts > 0.0
    return np.where(seen, counts.sum() / np.where(seen, counts, 1.0), 1.0) ** recoding


def exponent_weights(counts: Array, exponents: Array) -> Array:
    """:func:`class_weights` for each exponent, (exponents, T); NaN for classes without examples.

    These can't win.
    """
    weights = np.array([class_weights(counts, recoding) for recoding in exponents])
    weights[:, counts <= 0.0] = np.nan
    return weights


def winners(scores: Array, weights: Array, recode: np.ufunc = np.multiply) -> Indices:
    """The winning class for each exponent, (n, exponents), from scores (n, T) without recoding.

    weights : (exponents, T), see :func:`exponent_weights`, with which `recode` recodes scores.
    """
    impossible = np.isnan(weights[0])
    found = np.empty((len(scores), len(weights)), dtype=np.intp)
    for j, weight in enumerate(weights):
        recoded = recode(scores, weight)
        if impossible.any():
            recoded[:, impossible] = -np.inf
        found[:, j] = recoded.argmax(axis=1)
    return found


# -------------------------------------------------------------------------------------------------
# The heads.


class Judged(NamedTuple):
    """Inputs (k, D) by one ridge.

    scores : (k, T), before recoding. predicted : (k, T), the codes by least squares.
    familiarity : (k, T), where that isn't a multiple of the recoded scores.
    """

    scores: Array
    predicted: Array
    familiarity: Array | None = None


class LeastSquaresHead:
    """Scores z'A^-1 b of each class, which recoding multiplies.

    Parameters
    ----------
    n_features : D. ridge : in A. classes : their sums and counts, which the caller keeps.
    """

    one_by_one = False  # whether few examples are learned one by one
    arrays: tuple[str, ...] = ("R",)  # the names of a state
    recode: ClassVar[np.ufunc] = np.multiply

    def __init__(self, n_features: int, ridge: float, classes: ClassSums) -> None:
        self.factor = CholeskyFactor(n_features, ridge)
        self.classes = classes

    @property
    def ridge(self) -> float:
        """The ridge of this head."""
        return self.factor.penalty

    def learn(self, Z: Array) -> None:
        """Learn features Z (k, D), which the classes' sums have already."""
        self.factor.learn(Z)

    def learn_one(self, z: Array, number: int) -> None:
        """Learn features z (1, D) of a class' example, which its sum doesn't have yet."""
        self.factor.learn(z)

    def judge(self, Z: Array, solved: Array | None = None) -> Judged:
        """Features Z (k, D) by this head, from `solved`, A^-1 z as rows (k, D), where known."""
        sums = self.classes.sums
        if solved is None and len(Z) <= len(sums):
            solved = self.factor.solve_rows(Z)
        # Either k or T systems are solved, whichever are fewer.
        scores: Array = Z @ self.factor.solve_rows(sums).T if solved is None else solved @ sums.T
        return Judged(scores, scores)

    def familiarity(self, judged: Judged, recoded: Array, recoding: float) -> Array:
        """Familiarity of inputs with each class, (k, T), given their recoded scores."""
        return np.array(self.without_empty(recoded / self.level(recoding)))

    def withheld(self, judged: Judged, numbers: Indices) -> Array:
        """The amount, (k,), that familiarity is larger by where the example's class is unknown."""
        return np.zeros(len(numbers))

    def without_empty(self, scores: Array) -> Array:
        """Scores (n, T), those of classes that no example was learned of below all others."""
        empty = self.classes.counts <= 0.0
        return np.where(empty, -np.inf, scores) if empty.any() and not empty.all() else scores

    def recoding_of(self, weights: Array) -> Array:
        """Operands of `recode` for the classes' weights."""
        return weights

    def level(self, recoding: float) -> float:
        """Divisor of recoded scores, in addition to the temperature.

        Recoding multiplies the scores of balanced classes by T^recoding: so one temperature fits
        all T.
        """
        return float(max(len(self.classes), 1) ** recoding)

    def renumber(self, new: Indices) -> None:
        """Follow the classes, which were given these numbers, new[old], -1 for one that left."""

    def note_change(self) -> None:
        """Drop what was derived from the classes' sums and counts."""

    def state(self) -> dict[str, Array]:
        """The arrays that :meth:`restore` needs."""
        return {"R": self.factor.state()}

    def restore(self, state: dict[str, Array]) -> None:
        """Resume from a :meth:`state`. Raises KeyError for one of another kind of head."""
        self.factor.restore(state["R"])


LOG_LEVEL = 50.0  # temperatures of scores that are logarithms: from 1 to this
TRACE_PROBES = 16  # random vectors by which the number of scattering directions is estimated
DIMENSION_GROWTH = 1.05  # times as many examples, and it is estimated again
REFACTOR_AFTER = 1000  # updates of the inverse, whose rounding errors would add up
DEFAULT_SPREAD = 1.0  # tau while there are fewer than two classes
MIN_SPREAD = 1e-3  # tau, whose estimate from few classes may be negative


class DiscriminantHead(LeastSquaresHead):
    """Logarithms of N_c p(z | c), to which recoding adds the logarithms of its weights.

    Familiarity is the relative Mahalanobis distance (J. Ren et al.: A simple fix to Mahalanobis
    distance for improving near-OOD detection, 2021, section 3), x'A^-1 x less the squared distance
    from the class' mean, both in units of the covariance within classes: of two inputs as far from
    all means, the one in a direction in which classes differ is the less familiar. Without class c
    the first term is that of A less the class' mean (Sherman and Morrison), larger by s_c^2 / E_cc.
    """

    one_by_one = True
    arrays = ("R", "E", "K", "updates", "dimension")
    recode = np.add

    def __init__(self, n_features: int, ridge: float, classes: ClassSums) -> None:
        super().__init__(n_features, ridge, classes)
        # E (T, T) of the module's docstring and its inverse K: lower halves.
        self._E: Array = np.zeros((0, 0), order="F")
        self._K: Array = np.zeros((0, 0), order="F")
        self._updates = REFACTOR_AFTER  # of the inverse since it was computed anew
        self._means: ClassMeans | None = None
        self._dimension = (0.0, 0.0)  # its estimate, and the number of examples at that time

    def learn(self, Z: Array) -> None:
        """See :class:`LeastSquaresHead`."""
        super().learn(Z)
        sums = self.classes.sums
        self._replace(np.diag(self.classes.counts) - sums @ self.factor.solve_rows(sums).T)

    def learn_one(self, z: Array, number: int) -> None:
        """See :class:`LeastSquaresHead`."""
        solved = self.factor.solve_rows(z)[0]
        self._resize(len(self.classes))
        self._add_error(self.classes.sums @ solved, float(z[0] @ solved), number)
        super().learn_one(z, number)

    def judge(self, Z: Array, solved: Array | None = None) -> Judged:
        """See :class:`LeastSquaresHead`."""
        solved = self.factor.solve_rows(Z) if solved is None else solved
        predicted, leverages = solved @ self.classes.sums.T, np.einsum("ij,ij->i", Z, solved)
        distances = self.means.distances(predicted, leverages)
        # The distance from all classes at once less that from each.
        familiarity = self.classes.counts.sum() * leverages[:, None] - distances
        return Judged(self.means.scores(distances), predicted, familiarity)

    def familiarity(self, judged: Judged, recoded: Array, recoding: float) -> Array:
        """See :class:`LeastSquaresHead`."""
        assert judged.familiarity is not None
        return np.array(self.without_empty(judged.familiarity))

    def withheld(self, judged: Judged, numbers: Indices) -> Array:
        """See :class:`LeastSquaresHead`.

        Zero for a class without examples, or of which least squares leaves nothing.
        """
        errors = self._E.diagonal()[numbers]
        own = judged.predicted[np.arange(len(numbers)), numbers]
        n = self.classes.counts.sum()
        return np.asarray(n * own**2 / np.where(errors > 0.0, errors, np.inf))

    def recoding_of(self, weights: Array) -> Array:
        """See :class:`LeastSquaresHead`."""
        return np.asarray(np.log(weights))

    def level(self, recoding: float) -> float:
        """See :class:`LeastSquaresHead`."""
        return LOG_LEVEL

    def renumber(self, new: Indices) -> None:
        """See :class:`LeastSquaresHead`: merged classes' entries of E are added."""
        self._resize(len(new))
        onto = np.zeros((len(new), int(new.max(initial=-1)) + 1))
        stay = np.flatnonzero(new >= 0)
        onto[stay, new[stay]] = 1.0
        self._replace(onto.T @ self.E @ onto)

    def note_change(self) -> None:
        """See :class:`LeastSquaresHead`."""
        self._means = None

    @property
    def means(self) -> ClassMeans:
        """The means as they are now."""
        if self._means is None:
            self._resize(len(self.classes))
            self._means = ClassMeans(self, self.classes.counts, self.dimension())
        return self._means

    def dimension(self) -> float:
        """tr(S_w (S_w + ridge I)^-1), estimated by the traces of random vectors.

        M. Hutchinson: A stochastic estimator of the trace of the influence matrix, 1989.
        """
        found, then = self._dimension
        now = float(self.classes.counts.sum())
        if not then <= now <= DIMENSION_GROWTH * then:
            D = len(self.factor.R)
            signs = np.random.default_rng(0).choice([-1.0, 1.0], (TRACE_PROBES, D))
            solved = self.factor.solve_rows(signs)
            predicted = solved @ self.classes.sums.T
            crossed = self.times_inverse(predicted)
            trace = (np.sum(signs * solved) + np.sum(predicted * crossed)) / TRACE_PROBES
            found = max(D - self.ridge * trace, 1.0)
            self._dimension = found, now
        return found

    def state(self) -> dict[str, Array]:
        """See :class:`LeastSquaresHead`."""
        own = {"E": self.E, "K": np.tril(self._K), "updates": np.array(self._updates)}
        return super().state() | own | {"dimension": np.array(self._dimension)}

    def restore(self, state: dict[str, Array]) -> None:
        """See :class:`LeastSquaresHead`."""
        super().restore(state)
        self._replace(state["E"])
        self._K = np.array(state["K"], order="F")
        self._updates = int(state["updates"])
        found, then = state["dimension"].tolist()
        self._dimension = found, then
        self._means = None

    @property
    def E(self) -> Array:
        """diag(N) - B'A^-1 B, (T, T), symmetric; a copy."""
        lower: Array = np.tril(self._E)
        return lower + np.tril(lower, -1).T

    def times_inverse(self, rows: Array) -> Array:
        """Rows (k, T) times K = E^-1; those of classes without examples are zero."""
        product: Array = dsymm(1.0, self.inverse, rows.T, lower=1).T
        return product

    def _resize(self, n_classes: int) -> None:
        """Make room for classes that are new."""
        if (before := len(self._E)) < n_classes:
            for name in ("_E", "_K"):
                grown = np.zeros((n_classes, n_classes), order="F")
                grown[:before, :before] = getattr(self, name)
                setattr(self, name, grown)

    def _replace(self, E: Array) -> None:
        self._E = np.array(E, order="F")
        self._K = np.zeros_like(self._E)
        self._updates = REFACTOR_AFTER

    def _add_error(self, predicted: Array, leverage: float, number: int) -> None:
        """Add an example of class `number`, predicted as s (T,) before least squares learned it."""
        first = self._E[number, number] == 0.0
        error, scale = -predicted, 1.0 / (1.0 + leverage)
        error[number] += 1.0
        self._E = dsyr(scale, error, lower=1, a=self._E, overwrite_a=1)
        self._updates += 1
        if self._updates >= REFACTOR_AFTER:
            return
        if first:  # E has a new row, and the Schur complement of its diagonal is E as it was
            solved = dsymv(1.0, self._K, predicted, lower=1)
            self._K[number, :number], self._K[number:, number] = solved[:number], solved[number:]
            self._K[number, number] = 1.0 / scale + predicted @ solved
        else:
            solved = dsymv(1.0, self._K, error, lower=1)
            factor = -scale / (1.0 + scale * float(error @ solved))
            self._K = dsyr(factor, solved, lower=1, a=self._K, overwrite_a=1)

    @property
    def inverse(self) -> Array:
        """K = E^-1 (T, T), its lower half; zeros for classes without examples."""
        if self._updates < REFACTOR_AFTER:
            return self._K
        seen = np.flatnonzero(self._E.diagonal() > 0.0)
        part = np.ix_(seen, seen)
        factor, failed = dpotrf(self._E[part], lower=1)
        if not failed:
            factor, failed = dpotri(factor, lower=1)
        if failed:  # least squares fits every code to rounding: there is no scatter left
            factor = np.diag(1.0 / self._E.diagonal()[seen])
        self._K = np.zeros_like(self._E)
        self._K[part] = factor
        self._updates = 0
        return self._K


class ClassMeans:
    """The classes' means, drawn towards their middle, and distances from them.

    Parameters
    ----------
    head : of the least squares that make the predictions. counts : N (T,).
    dimension : tr(S_w (S_w + ridge I)^-1), the number of directions in which examples scatter.

    Attributes
    ----------
    spread : tau, the variance of the classes' means in units of that within a class.
    """

    def __init__(self, head: DiscriminantHead, counts: Array, dimension: float) -> None:
        self._head, self._dimension = head, dimension
        self._seen = seen = counts > 0.0
        self._n, few = counts.sum(), int(np.count_nonzero(seen))
        inverse_counts = np.where(seen, 1.0 / np.where(seen, counts, 1.0), 0.0)
        self._average = seen / max(few, 1)
        crossed = head.times_inverse(self._average[None])[0]
        square = self._n * (head.inverse.diagonal() - inverse_counts)
        with_middle = self._n * (crossed - inverse_counts / few)
        self._middle = float(self._average @ with_middle)
        self.spread = DEFAULT_SPREAD
        if few > 1:
            between = (square[seen].sum() - few * self._middle) / ((few - 1) * dimension)
            self.spread = max(between - inverse_counts.sum() / few, MIN_SPREAD)
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

    def distances(self, predicted: Array, leverages: Array) -> Array:
        """Squared Mahalanobis distances (k, T) of the examples from the means that are drawn.

        Of examples that least squares predicts as s (k, T), with leverages z'A^-1 z (k,).
        """
        crossed = self._n * self._head.times_inverse(predicted)
        own = (self._n * leverages + np.einsum("ij,ij->i", predicted, crossed))[:, None]
        middle = (crossed @ self._average)[:, None]
        found: Array = own - 2.0 * (middle + self._draw * (crossed - middle)) + self._square
        return found
