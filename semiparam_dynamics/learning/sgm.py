"""The stochastic gradient method in an RKHS (thesis chapter 6; Lin, Camoriano, Rosasco 2016).

With all rows as centres, or within the span of Nyström centres on mini-batches (Lin, Rosasco 2017).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from itertools import chain, product
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state, gen_batches

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.base.errors import (
    ConfigurationError,
    LearningError,
    not_negative,
    positive,
    positive_count,
)
from semiparam_dynamics.base.jit import compiled
from semiparam_dynamics.learning.base import (
    HeldOut,
    Loss,
    Path,
    StoppedEarly,
    as_loss,
    fitted_rows,
    predictor,
    slope,
)
from semiparam_dynamics.learning.centers import NystromBasis, basis_of, nystrom_map
from semiparam_dynamics.learning.kernels import FAR_ROWS, Kernel
from semiparam_dynamics.learning.products import (
    MATRIX_SPEEDUP,
    evaluate_into,
    largest_diagonal,
    map_in_order,
    n_threads,
)
from semiparam_dynamics.learning.rows import Rows, memory_budget, rows_within

DIVERGENCE_FACTOR = 1e9  # times the largest target: beyond that, a path's predictions are cut off
UNWEIGHTED = "Rows are drawn uniformly here: sample weights have no place. Use Falkon or NYTRO."
FIXED = "fixed"  # the replacement that is none, in one order
# -------------------------------------------------------------------------------------------------
# Descents for several columns of coefficients at once: on single rows, with a coefficient for each
# of them, and on mini-batches within the span of Nyström centres.

KEPT_KERNEL_SHARE = 0.75  # of the memory limit, at most, for a kernel matrix that is kept
BLOCKS_SHARE = 0.125  # for blocks of it that are in work; as much at least is for validation
BLOCK_DRAWS = 256  # draws whose kernel rows are evaluated together
SMALL_BATCH_ROWS = 32  # batches below this size are gone through in blocks, by their inner products


@compiled
def descend(
    F: Array,
    G: Array,
    Y: Array,
    steps: Array,
    batch: int,
    loss: int,
    epsilon: float,
    change: Array,
) -> None:
    """Gradient steps over k drawn rows, `batch` of them at a time, from inner products alone.

    The last batch has those that are left.

    F: (P, k), what the function predicts at the rows before the first step, for P columns; each
    row's entry is then kept up to date until its own step. G: (k, k), the rows' inner products.
    Y: (T, k); column p = s T + t has the target t and the step size s. steps: (batches, S).
    change: (P, k), what each row is multiplied by when it is added to the weights.
    """
    P, k = F.shape
    T = len(Y)
    for start in range(0, k, batch):
        end = min(start + batch, k)
        for p in range(P):
            step = -steps[start // batch, p // T] / (end - start)
            for i in range(start, end):
                change[p, i] = step * slope(loss, epsilon, Y[p % T, i], F[p, i])
            rest = F[p, end:]
            for i in range(start, end):
                amount = change[p, i]
                if amount != 0.0:
                    row = G[i, end:]
                    for j in range(rest.size):
                        rest[j] += amount * row[j]


@compiled
def scatter(change: Array, done: Array, drawn: Indices, T: int, coef: Array, moved: Array) -> None:
    """Add each draw's change (P, k) to its row of coef (n, P), and change times done to `moved`.

    done: (k, S), the sum of the step sizes up to and including each draw's.
    """
    P, k = change.shape
    for i in range(k):
        for p in range(P):
            coef[drawn[i], p] += change[p, i]
            moved[drawn[i], p] += change[p, i] * done[i, p // T]


@dataclass(frozen=True)
class Task:
    """Problem of a descent: the loss of these rows, within `budget` bytes.

    Step sizes are step * t^-decay for t = 1, 2, ..., of S settings (thesis 6.3). There will be so
    many `passes`; from two on, the kernel matrix is kept if it fits. Rows are drawn with
    `replacement` (True), without it in an order of each pass' own (False), or in one order that is
    drawn once and kept ("fixed").
    """

    rows: Rows
    kernel: Kernel
    loss: Loss
    step: Array  # (S,)
    decay: Array  # (S,)
    passes: int
    draw: np.random.RandomState
    budget: int
    replacement: bool | str = True


def drawn_rows(task: Task, count: int) -> Iterator[Indices]:
    """The rows of each pass, as `Task.replacement` says: `count` with it, or all n without."""
    n, draw = task.rows.n_samples, task.draw
    kept = draw.permutation(n) if task.replacement == "fixed" else None
    while True:
        if kept is not None:
            yield kept
        else:
            yield draw.randint(n, size=count) if task.replacement else draw.permutation(n)


class Descent(ABC):
    """Gradient descents that advance together, one for each of P = S T columns.

    These are S step settings times T outputs.

    Attributes
    ----------
    centers : (m, d).
    memory : bytes of the kernel matrix that is kept, or zero.
    """

    centers: Array
    _targets: Array  # (T, n)

    def __init__(self, task: Task, n_columns: int, size: int) -> None:
        """`n_columns` of the kernel matrix, and `size` numbers that are learned in each of P."""
        self._task, self._rows, self._loss = task, task.rows, task.loss
        n, S = task.rows.n_samples, len(task.step)
        row_bytes = n_columns * task.rows.dtype.itemsize
        keep = task.passes > 1 and n * row_bytes <= KEPT_KERNEL_SHARE * task.budget
        self.memory = n * row_bytes if keep else 0
        self._fitting = block_rows(task.budget, row_bytes)
        self._learned = np.zeros((size, S * task.rows.n_outputs))
        self._moved = np.zeros_like(self._learned)
        self._done = 0  # steps
        self._total = np.zeros(S)  # the sum of the step sizes so far

    @property
    def rest(self) -> int:
        """Bytes of the memory limit that are left for validation."""
        return int(self._task.budget * (1.0 - BLOCKS_SHARE)) - self.memory

    def iterates(self, average: bool) -> Iterator[Array]:
        """Coefficients of the kernels at the centres after each pass, (m, S T), by settings.

        With `average` the mean over t of w_t, before its draw, weighted by its step: the change
        at draw i is in all later iterates, whose weights sum to a_t - a_i.
        """
        for _ in range(self._task.passes):
            with np.errstate(over="ignore", invalid="ignore"):  # what diverged is found afterwards
                self.run_pass()
            learned = self._learned
            if average:
                learned = learned - self._moved / np.repeat(self._total, self._rows.n_outputs)
            yield self.coefficients(learned)

    @abstractmethod
    def run_pass(self) -> None:
        """One pass: as many draws as there are rows."""

    @abstractmethod
    def coefficients(self, learned: Array) -> Array:
        """Coefficients of the kernels at the centres, (m, S T), a copy, of the learned (., S T)."""

    def used(self) -> Any:
        """Index of the centres that belong to the function."""
        return slice(None)

    def _descend(self, F: Array, G: Array, J: Indices, batch: int) -> tuple[Array, Array]:
        """Steps of batches of the draws J (k,), from predictions F (k, P) and products G (k, k).

        Each step changes the later predictions, so that the long products are done for all at once.
        Returns changes of the draws, (P, k), and the sums of the step sizes by then, (k, S).
        """
        F, G = np.ascontiguousarray(F.T, dtype=float), np.ascontiguousarray(G, dtype=float)
        sizes = self._next_sizes(-(-len(J) // batch))
        change, Y = np.empty_like(F), np.ascontiguousarray(self._targets[:, J])
        descend(F, G, Y, sizes, batch, self._loss.code, self._loss.epsilon, change)
        sums = self._total + np.cumsum(sizes, axis=0)
        self._total = sums[-1]
        return change, np.repeat(sums, batch, axis=0)[: len(J)]

    def _next_sizes(self, count: int) -> Array:
        """The step sizes (count, S) of the next steps."""
        t = np.arange(self._done + 1.0, self._done + count + 1.0)[:, None]
        self._done += count
        return self._task.step * t**-self._task.decay


class KernelDescent(Descent):
    """Coefficients of all rows.

    The rows are put into the order of their first draw, so that in the first pass, where most
    coefficients are still zero, only the rows drawn so far need to be evaluated.
    """

    def __init__(self, task: Task) -> None:
        block, n = task.rows.whole(), task.rows.n_samples
        super().__init__(task, n, n)
        self._kernel = task.kernel
        draws = drawn_rows(task, n)
        first = next(draws)
        self._draws = chain((first,), draws)
        drawn, when = np.unique(first, return_index=True)
        order = np.concatenate((drawn[np.argsort(when)], np.setdiff1d(np.arange(n), drawn)))
        self._rank = np.empty(n, dtype=np.intp)
        self._rank[order] = np.arange(n)
        self._seen = np.zeros(n, dtype=bool)
        self._reach = 0  # rows beyond have not been drawn
        self.centers = block.X[order]
        self._targets = np.ascontiguousarray(block.Y[order].T, dtype=float)
        self._kept: Array | None = None
        if self.memory:
            self._kept = np.empty((n, n), block.X.dtype)
            evaluate_into(task.kernel.bind(self.centers), self.centers, self._kept)
        self._block = min(BLOCK_DRAWS, self._fitting, max(32, n // 8))

    def run_pass(self) -> None:
        """See :class:`Descent`."""
        drawn = self._rank[next(self._draws)]
        self._seen[drawn] = True
        for J, K in map_in_order(self._evaluate, self._blocks(drawn)):
            self._step(J, K)

    def coefficients(self, learned: Array) -> Array:
        """See :class:`Descent`."""
        return learned.copy()

    def used(self) -> Any:
        """See :class:`Descent`: the rows that have been drawn."""
        return self._seen.copy()

    def _blocks(self, drawn: Indices) -> Iterator[tuple[Indices, int]]:
        """Draws (k,), and how many leading rows have been drawn by their end."""
        for i in range(0, len(drawn), self._block):
            J = drawn[i : i + self._block]
            self._reach = max(self._reach, int(J.max()) + 1)
            yield J, self._reach

    def _evaluate(self, item: tuple[Indices, int]) -> tuple[Indices, Array]:
        J, reach = item
        if self._kept is not None:
            return J, self._kept.take(J, axis=0)[:, :reach]
        return J, self._kernel(self.centers[J], self.centers[:reach])

    def _step(self, J: Indices, K: Array) -> None:
        """Go through the draws J (k,), with K (k, r) of them and the first r rows."""
        F = K @ self._learned[: K.shape[1]].astype(K.dtype)
        change, done = self._descend(F, K[:, J], J, 1)
        scatter(change, done, J, len(self._targets), self._learned, self._moved)


class NystromDescent(Descent):
    """Weights of the span's features.

    There are two ways to the same iterates. With the features of every drawn row, at O(q^2) a
    row, a step is a product with them. With the kernels as they are, a step needs K(C, C)^+ of
    the batch's gradient, at O(q^2) a batch. The cheaper one is taken.

    Parameters
    ----------
    task : targets of its rows are kept in memory, inputs are not.
    batch : rows in each step. Without replacement the last one of a pass has those that are left.
    features : which way; None: the cheaper one.
    """

    def __init__(
        self, task: Task, basis: NystromBasis, batch: int, features: bool | None = None
    ) -> None:
        rows, n, q = task.rows, task.rows.n_samples, basis.n_features
        super().__init__(task, q, q)
        self._basis, self._batch = basis, batch
        self._draws = drawn_rows(task, -(-n // batch) * batch)
        self.centers = basis.centers.astype(rows.dtype)
        self._targets = rows.outputs().T
        self._features = features
        if features is None:
            # Solves for all draws, or once for all rows; or two for every batch and column.
            rows_solved = n if self.memory else task.passes * n
            batches, P = task.passes * -(-n // batch), self._learned.shape[1]
            self._features = (
                rows_solved <= 2 * batches * max(MATRIX_SPEEDUP, P) or batch < SMALL_BATCH_ROWS
            )
        self._map = nystrom_map(basis, rows.dtype)
        self._block = min(BLOCK_DRAWS, self._fitting)
        self._gradient = np.zeros_like(self._learned)
        self._kept = self._evaluate_all() if self.memory else None

    def run_pass(self) -> None:
        """See :class:`Descent`."""
        drawn = next(self._draws)
        total = len(drawn)
        if self._features and self._batch < SMALL_BATCH_ROWS:
            size = max(self._block // self._batch, 1) * self._batch
            for J, Z in self._evaluate(drawn, list(gen_batches(total, size))):
                self._small_batches(J, Z)
            return
        parts = [
            slice(i, min(i + self._block, batch.stop))
            for batch in gen_batches(total, self._batch)
            for i in range(batch.start, batch.stop, self._block)
        ]
        seen = first = 0
        for J, Z in self._evaluate(drawn, parts):
            self._add_gradient(J, Z)
            seen += len(J)
            if seen - first == self._batch or seen == total:
                self._large_step(seen - first)
                first = seen

    def coefficients(self, learned: Array) -> Array:
        """See :class:`Descent`."""
        weights = self._basis.to_coefficients(learned) if self._features else learned
        result = np.zeros((self._basis.n_centers, weights.shape[1]))
        result[self._basis.kept] = weights
        return result

    def _small_batches(self, J: Indices, Z: Array) -> None:
        """The steps of the batches that the draws J (k,) are made of, with features Z (k, q)."""
        F = Z @ self._learned.astype(Z.dtype)
        change, done = self._descend(F, Z @ Z.T, J, self._batch)
        late = change * np.repeat(done.T, len(self._targets), axis=0)
        self._learned += Z.T @ change.T.astype(Z.dtype)
        self._moved += Z.T @ late.T.astype(Z.dtype)

    def _add_gradient(self, J: Indices, Z: Array) -> None:
        F = (Z @ self._learned.astype(Z.dtype)).astype(float)
        Y = np.tile(self._targets[:, J].T, len(self._task.step))
        slopes = self._loss.derivative(Y, F)
        self._gradient += Z.T @ slopes.astype(Z.dtype)

    def _large_step(self, batch: int) -> None:
        """The step of a batch of so many rows, from the sum of their gradients."""
        sizes = self._next_sizes(1)
        gradient = self._gradient / batch
        if not self._features:
            gradient = self._basis.to_coefficients(self._basis.from_coefficients(gradient))
        T = len(self._targets)
        change = -np.repeat(sizes[0], T) * gradient
        self._total = self._total + sizes[0]
        self._learned += change
        self._moved += change * np.repeat(self._total, T)
        self._gradient[:] = 0.0

    def _evaluate(self, drawn: Indices, parts: list[slice]) -> Iterator[tuple[Indices, Array]]:
        """Each part of the draws, and its features or kernels (k, q)."""
        if self._kept is not None:
            kept = self._kept
            yield from map_in_order(lambda part: (drawn[part], kept[drawn[part]]), parts)
            return
        yield from map_in_order(
            lambda item: (item[0], self._matrix(item[1])), self._inputs(drawn, parts)
        )

    def _inputs(self, drawn: Indices, parts: list[slice]) -> Iterator[tuple[Indices, Array]]:
        """The inputs of each part, read for as many parts at once as the memory limit allows."""
        row_bytes = self._rows.row_numbers * self._rows.dtype.itemsize
        most = max(block_rows(self._task.budget, row_bytes), self._block)
        i = 0
        while i < len(parts):
            j = i + 1
            while j < len(parts) and parts[j].stop - parts[i].start <= most:
                j += 1
            start = parts[i].start
            X = self._rows.take(drawn[start : parts[j - 1].stop])
            for part in parts[i:j]:
                yield drawn[part], X[part.start - start : part.stop - start]
            i = j

    def _matrix(self, X: Array) -> Array:
        X = X if self._rows.sparse else np.ascontiguousarray(X)
        return self._map(X) if self._features else self._map.evaluate(X)

    def _evaluate_all(self) -> Array:
        result = np.empty((self._rows.n_samples, self._basis.n_features), self._rows.dtype)
        start = 0
        for Z in map_in_order(lambda block: self._matrix(block.X), self._rows.blocks(self._block)):
            result[start : start + len(Z)] = Z
            start += len(Z)
        return result


def block_rows(budget: int, row_bytes: int) -> int:
    """The number of kernel rows of `row_bytes` in a block, for a memory limit of `budget`.

    Two blocks a thread are in flight, and a block takes about twice its size in the making.
    """
    share = int(BLOCKS_SHARE * budget)
    return rows_within(share, 4 * n_threads() * row_bytes, "A block of kernel rows")


# -------------------------------------------------------------------------------------------------
# The estimators.


@dataclass(eq=False, repr=False)
class StochasticRegressor(StoppedEarly):
    """Base of the stochastic gradient estimators, with the parameters of :class:`SGM`."""

    _: KW_ONLY
    loss: str = "square"
    step: float | None = None
    decay: float = 0.0
    max_iter: int = 10
    average: bool = False
    epsilon: float = 0.1
    replacement: bool | str = True
    path_parameters: ClassVar[tuple[str, ...]] = ("step", "decay", "max_iter")

    def fit(self, X: Any, y: Any = None, *, validation_data: Any = None) -> Any:
        """Learn from inputs X (n, d) and outputs y (n,) or (n, T); X may be Rows, without y.

        With validation data (X, y), or a share held out by the parameter `validation`, the
        function of the pass with the smallest validation error is kept. Raises LearningError
        where the steps diverge, and for sample weights, which uniform draws don't have.
        """
        passes = positive_count(self.max_iter, "max_iter")
        rows = fitted_rows(self, X, y)
        loss = self._loss(rows)
        draw = check_random_state(self.random_state)
        rows, held = self._split(rows, validation_data, draw)
        if held is not None and validation_data is not None:  # else they are of the rows
            loss.check(held)
        log = self._log(passes, "passes", self.tolerance, self.loss == "square")
        task = self._task(rows, loss, [(self.step, self.decay)], passes, draw)
        descent, check = self._descent(task), None
        if held is not None:
            predict = predictor(held, task.kernel, descent.centers, descent.rest)
            check = HeldOut(held, predict, loss.error)

        def iterates() -> Iterator[tuple[Array, Any]]:
            for coefficients in descent.iterates(self.average):
                if not np.isfinite(coefficients).all():
                    raise LearningError(self._diverged())
                yield coefficients, descent.used()

        coefficients, used = self._best(iterates(), log, check, itemgetter(0))
        self._keep(rows, descent.centers[used], coefficients[used])
        return self

    def _path(self, rows: Rows, chosen: dict[str, list[Any]], X_validation: Array) -> Path:
        """All step sizes advance together, from the same draws, and share each block of the kernel
        matrix; passes come in increasing order. The predictions are those of fits without
        validation data. A step that diverges gives predictions far beyond all targets.
        """
        counts = sorted(set(chosen["max_iter"]))
        settings = list(product(chosen["step"], chosen["decay"]))
        draw = check_random_state(self.random_state)
        task = self._task(rows, self._loss(rows), settings, counts[-1], draw)
        descent = self._descent(task)
        keep = len(counts) > 1
        asked = rows.like(X_validation)
        predict = predictor(asked, task.kernel, descent.centers, descent.rest, keep)
        limit = DIVERGENCE_FACTOR * max(1.0, float(np.abs(rows.outputs()).max()))
        T = rows.n_outputs
        for number, found in enumerate(descent.iterates(self.average), 1):
            if number not in counts:
                continue
            coefficients = np.nan_to_num(found, nan=np.inf)
            finite = np.clip(coefficients, -limit, limit)
            predicted = predict(finite)
            diverged = (np.abs(coefficients) > limit).any(axis=0)
            predicted[:, diverged] = limit
            for s, (step, decay) in enumerate(settings):
                setting = {"step": step, "decay": decay, "max_iter": number}
                yield setting, predicted[:, s * T : (s + 1) * T]

    def _diverged(self) -> str:
        advice = "take a smaller step. With the square loss any below 2 / max K(x, x) is safe"
        if self.step is not None:
            advice += "; None chooses one"
        return f"The iteration diverged with step={self.step}: {advice}. {FAR_ROWS}"

    def _loss(self, rows: Rows) -> Loss:
        """The loss, for which the rows' outputs must be fit."""
        loss = as_loss(self.loss, self.epsilon)
        if rows.weighted:
            raise LearningError(UNWEIGHTED)
        loss.check(rows)
        return loss

    def _task(
        self,
        rows: Rows,
        loss: Loss,
        settings: list[tuple[float | None, float]],
        passes: int,
        draw: np.random.RandomState,
    ) -> Task:
        """Problem that the descents of all settings have in common."""
        if not (isinstance(self.replacement, bool | np.bool_) or self.replacement == FIXED):
            raise ConfigurationError(
                f'replacement must be True, False or "{FIXED}", not {self.replacement!r}.'
            )
        kernel, n = self.kernel_, rows.n_samples
        default = universal_step(n, self._batch(n), largest_diagonal(rows, kernel))
        steps = [default if step is None else positive(step, "step") for step, _ in settings]
        decays = [not_negative(decay, "decay") for _, decay in settings]
        each, budget = (np.array(steps), np.array(decays)), memory_budget(self.memory_limit)
        return Task(rows, kernel, loss, *each, passes, draw, budget, self.replacement)

    def _batch(self, n: int) -> int:
        """The number of rows in a step, of n."""
        return 1

    @abstractmethod
    def _descent(self, task: Task) -> Descent:
        """The descents, before their first pass."""


@dataclass(eq=False, repr=False)
class SGM(StochasticRegressor):
    """Stochastic gradient steps from zero, on one row at a time, drawn uniformly.

    w <- w - step t^-decay l'(y_j, f(x_j)) K(x_j, .) at the t-th draw j (thesis 6.3). There is no
    penalty: the step size and the number of passes regularise. One pass with a tuned step is the
    thesis' SGM; a fixed step with the number of passes tuned, by `validation` or
    `validation_data`, is its SIGM: step=None, or step=0.25 with decay=0.5.

    Parameters
    ----------
    kernel : as that of :class:`~.falkon.Falkon`.
    loss : "square", "hinge", "logistic", "absolute", "epsilon_insensitive" or "exponential"; for
        "hinge", "logistic" and "exponential" y is -1 or 1, and a prediction's sign is the class.
    step : the first step size; None: 1 / (kappa^2 sqrt(n)) with kappa^2 = max K(x, x).
    decay : the exponent theta of the step sizes, 0 or more; 0: they are constant.
    max_iter : passes, of n draws each.
    average : False: the last iterate; True: the mean of the iterates that the draws met,
        weighted by the step sizes (thesis 6.4).
    epsilon : of the loss "epsilon_insensitive".
    replacement : True: rows are drawn with it, independently; False: each once a pass, in an order
        that is drawn anew; "fixed": each once, in one order that is drawn once and kept (the
        three of the thesis' experiments).
    validation : a share of the rows, held out to choose the pass whose function is kept.
    tolerance, patience : stop when the validation error hasn't fallen by the relative
        `tolerance` for `patience` passes; None: run all passes.
    stopping : a rule in their place: an :class:`ErrorSlope`, or a function of the validation
        errors so far (for "square" their roots) that is true where to stop.
    random_state : of the draws.
    memory_limit : bytes that kernel matrices may take; None: a quarter of what is free. The
        n x n matrix is kept where it fits and there is more than one pass.
    callback, verbose : called after each pass; whether to show a progress bar.

    Attributes
    ----------
    centers_ : (m, d), the rows that were drawn, in the order of their first draw.
    coef_ : (m,) or (m, T).
    n_iter_ : the pass whose function is kept.
    validation_errors_ : (passes,), mean losses (for "square", mean squared errors), where there
        were validation data.
    """

    kernel: Any = None

    def _descent(self, task: Task) -> KernelDescent:
        return KernelDescent(task)


@dataclass(eq=False, repr=False)
class NystromSGM(StochasticRegressor):
    """Stochastic gradient steps within the span of m kernels, on mini-batches drawn uniformly.

    beta <- beta - (eta_t / b) sum_i l'(y_i, phi_i' beta) phi_i over the b rows of a batch, with
    eta_t = step t^-decay and phi = S'K(C, x), S S' = K(C, C)^+ (Lin, Rosasco 2017, 2.2 and 2.3).
    With no penalty, the step, the batch and the number of passes regularise. With m of the
    order of sqrt(n) log n centres one pass is optimal for b = 1 with a step of 1 / sqrt(n), and
    for b = sqrt(n) with a step of 1 (theorem 3.1), in units of 1 / kappa^2, kappa^2 = max K(x, x):
    these are batch_size=1 and batch_size=None, each with step=None. Where the target is less
    smooth than that theorem asks for, more passes help: choose them on validation data.

    Parameters
    ----------
    kernel : as that of :class:`~.falkon.Falkon`.
    n_centers : m; all rows if there are no more.
    centers : "uniform", "leverage_scores", or the centres themselves, (m, d).
    loss : "square", or another of :class:`SGM`'s.
    step : the first step size; None: min(b / sqrt(n), 1) / kappa^2.
    batch_size : b; None: sqrt(n), rounded.
    max_iter : passes, of n / b batches each, rounded up.
    replacement : as in :class:`SGM`. Without it the last batch of a pass has the rows that are
        left.
    decay, average, epsilon, validation, tolerance, patience, stopping, random_state, callback,
        verbose : as in :class:`SGM`.
    memory_limit : bytes that kernel matrices may take; None: a quarter of what is free. The
        n x m matrix is kept where it fits and there is more than one pass.

    Attributes
    ----------
    centers_ : (m, d).
    coef_ : (m,) or (m, T).
    n_iter_, validation_errors_ : as in :class:`SGM`.
    """

    kernel: Any = None
    n_centers: int = 1000
    centers: Any = "uniform"
    batch_size: int | None = None

    def _batch(self, n: int) -> int:
        batch = self.batch_size
        return round(np.sqrt(n)) if batch is None else positive_count(batch, "batch_size")

    def _descent(self, task: Task) -> NystromDescent:
        basis = basis_of(self, task.rows, self.n_centers, task.draw, task.budget)
        return NystromDescent(task, basis, self._batch(task.rows.n_samples))


def universal_step(n: int, batch: int, squared_norm: float) -> float:
    """b / (kappa^2 sqrt(n)), and at most 1 / kappa^2, for batches of b rows.

    kappa^2 is `squared_norm`. For b = 1 it is 1 / sqrt(n), for b = sqrt(n) it is 1, both in units
    of 1 / kappa^2: the two choices that are optimal after one pass over n rows (Lin, Rosasco
    2017, theorem 3.1).
    """
    return min(batch / math.sqrt(n), 1.0) / (squared_norm or 1.0)
