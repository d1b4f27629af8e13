"""Training data as blocks of rows: arrays, memory maps, folders of files, or any chunks.

Methods that read the data in blocks take a :class:`Rows` in place of X, and never hold all of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import wraps
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import psutil
from sklearn import get_config
from sklearn.utils import check_array, validation
from sklearn.utils.validation import check_is_fitted

from semiparam_dynamics.base.arrays import Array, Indices, Mask
from semiparam_dynamics.base.errors import ConfigurationError, LearningError
from semiparam_dynamics.learning.kernels import (
    Kernel,
    as_inputs,
    as_kernel,
    in_format,
    is_sparse,
    require_sparse_form,
    row_numbers,
    stacked,
)

FLOATS = [np.float64, np.float32]  # inputs of another dtype are converted to the first
PROBE_ROWS, NEIGHBOUR_ROWS = 30, 5000  # rows whose nearest ones are looked for, and among how many
MIN_NEIGHBOUR_KERNEL = 1e-6  # of a kernel's largest value, below which the nearest is none
READ_BYTES = 2**26  # of the inputs of arrays that may be on a disk, or need converting, at a time

ONLY_ONCE = (
    "The data are read more than once, and an iterator gives them only once: "
    "pass a list of chunks, or a function that makes the iterator."
)

Chunk = tuple[Any, ...]  # (X, y) or (X, y, sample_weight)


@dataclass(frozen=True)
class Block:
    """Rows X (k, d), their outputs Y (k, T), and their weights (k,) if they have any.

    X is an array, or compressed rows of scipy.sparse.
    """

    X: Array
    Y: Array
    weights: Array | None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def __getitem__(self, rows: slice) -> Block:
        weights = None if self.weights is None else self.weights[rows]
        X = self.X[rows] if is_sparse(self.X) else self.X[rows, ...]
        return Block(X, self.Y[rows, ...], weights)


class Rows:
    """Rows that can be read block by block, again and again.

    Parameters
    ----------
    chunks : chunks (X, y) or (X, y, sample_weight); something that can be gone through more
        than once, such as a list, or a function that returns a new iterator each time. Each X is
        an array, or each is one of scipy.sparse's.
    dtype : float64 or float32, the precision of what is computed from them.

    The first look at the data counts the rows and checks them. Raises LearningError for a chunk
    that doesn't fit the others or holds values that are not finite, and in a later pass over the
    data where that has another number of rows.

    Attributes
    ----------
    sparse : whether the inputs are compressed rows of scipy.sparse.
    row_numbers : the numbers of memory that a row's inputs take, on average; for arrays d.
    """

    sparse = False

    def __init__(
        self, chunks: Iterable[Chunk] | Callable[[], Iterable[Chunk]], dtype: Any = np.float64
    ) -> None:
        if not callable(chunks) and iter(chunks) is chunks:
            raise LearningError(ONLY_ONCE)
        self._chunks = chunks
        self._counted = False
        self.dtype = np.dtype(dtype)
        self.n_samples = 0
        self.total_weight = 0.0
        self.one_output = True
        numbers = 0
        for number, block in enumerate(self._read()):
            if not number:
                self.n_features, self.n_outputs = block.X.shape[1], block.Y.shape[1]
                self.weighted, self.sparse = block.weights is not None, is_sparse(block.X)
            self._check(block)
            self.n_samples += len(block)
            self.total_weight += len(block) if block.weights is None else block.weights.sum()
            numbers += row_numbers(block.X) * len(block)
        self._check_total()
        self._counted = True
        self.row_numbers = -(-numbers // self.n_samples)

    @classmethod
    def from_arrays(cls, X: Any, y: Any, sample_weight: Any = None, dtype: Any = None) -> Rows:
        """Slices of arrays or memory maps; nothing is copied but the slice in use."""
        if not hasattr(X, "dtype"):  # lists, and tables of several columns
            X = as_numbers(X, None, "X")
        if is_sparse(X):
            X = X.tocsr()
        if dtype is None:
            dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
        n = X.shape[0]
        if n != len(y):
            raise LearningError(f"X has {n} rows and y has {len(y)}.")
        size = max(1, READ_BYTES // max(row_numbers(X) * X.dtype.itemsize, 1))

        def chunks() -> Iterator[Chunk]:
            for i in range(0, n, size):
                part = slice(i, i + size)
                weights = () if sample_weight is None else (sample_weight[part],)
                yield (X[part], y[part], *weights)

        return cls(chunks, dtype)

    @classmethod
    def from_folder(cls, folder: str | Path, dtype: Any = np.float64) -> Rows:
        """A folder of .npz files, each a chunk with arrays X, y and perhaps sample_weight; or
        one with X.npy, y.npy and perhaps sample_weight.npy, which are memory-mapped.
        """
        folder = Path(folder)
        if (folder / "X.npy").exists():
            found = {
                name: np.load(folder / f"{name}.npy", mmap_mode="r")
                for name in ("X", "y", "sample_weight")
                if (folder / f"{name}.npy").exists()
            }
            if "y" not in found:
                raise LearningError(f"{folder} has X.npy and no y.npy.")
            return cls.from_arrays(found["X"], found["y"], found.get("sample_weight"), dtype)
        files = sorted(folder.glob("*.npz"))
        if not files:
            raise LearningError(f"{folder} has neither X.npy and y.npy nor any .npz file.")

        def chunks() -> Iterator[Chunk]:
            for path in files:
                with np.load(path) as arrays:
                    if not {"X", "y"} <= set(arrays.files):
                        raise LearningError(f"{path} needs arrays X and y; it has {arrays.files}.")
                    weights = "sample_weight" in arrays.files
                    yield (arrays["X"], arrays["y"], *([arrays["sample_weight"]] * weights))

        return cls(chunks, dtype)

    def like(self, X: Array) -> Rows:
        """Inputs (k, d) without outputs, on the same device and with the same dtype."""
        return ArrayRows(in_format(as_inputs(X, self.dtype), self.sparse))

    def blocks(self, size: int) -> Iterator[Block]:
        """The rows in order, at most `size` at a time."""
        for block in self._read():
            for i in range(0, len(block), size):
                yield block[i : i + size]

    def whole(self) -> Block:
        """All rows as one block, in memory."""
        blocks = list(self.blocks(self.n_samples))
        if len(blocks) == 1:
            return blocks[0]
        X, Y = (stacked([getattr(b, name) for b in blocks]) for name in ("X", "Y"))
        return Block(X, Y, self.weights())

    def take(self, indices: Indices) -> Array:
        """The inputs (k, d) at the given row numbers, in their order; see :meth:`pick`."""
        return self.pick(indices).X

    def pick(self, indices: Indices) -> Block:
        """The rows with the given numbers, in their order, without weights; one pass."""
        start, places, X, Y = 0, [], [], []
        for block in self._read():
            here = np.flatnonzero((indices >= start) & (indices < start + len(block)))
            places.append(here)
            X.append(block.X[indices[here] - start])
            Y.append(block.Y[indices[here] - start])
            start += len(block)
        order = np.argsort(np.concatenate(places))
        return Block(stacked(X)[order], np.concatenate(Y)[order], None)

    def weights(self) -> Array | None:
        """All sample weights, (n,), if there are any."""
        if not self.weighted:
            return None
        return np.concatenate([b.weights for b in self._read() if b.weights is not None])

    def outputs(self) -> Array:
        """All outputs, (n, T), in NumPy and float64."""
        return np.concatenate([to_numpy(b.Y) for b in self.blocks(self.n_samples)]).astype(float)

    def squared_outputs(self) -> Array:
        """The sum of the outputs' squares by the rows' weights, (T,)."""
        Y, weights = self.outputs(), self.weights()
        squares = Y**2 if weights is None else weights[:, None] * Y**2
        return np.asarray(np.sum(squares, axis=0))

    def _read(self) -> Iterator[Block]:
        if not self._counted:
            yield from self._read_chunks()
            return
        found = 0
        for block in self._read_chunks():
            found += len(block)
            if found > self.n_samples:
                break
            yield block
        if not found:
            raise LearningError(ONLY_ONCE)
        if found != self.n_samples:
            some = "more" if found > self.n_samples else str(found)
            raise LearningError(
                f"The data are read more than once, and had {self.n_samples} rows at first and "
                f"{some} now: each pass must bring the same rows."
            )

    def _read_chunks(self) -> Iterator[Block]:
        for chunk in self._chunks() if callable(self._chunks) else self._chunks:
            if not 2 <= len(chunk) <= 3:
                raise LearningError("A chunk must be (X, y) or (X, y, sample_weight).")
            X = chunk[0]
            X = as_inputs(X, self.dtype) if is_sparse(X) else as_numbers(X, self.dtype, "X")
            Y = as_numbers(chunk[1], self.dtype, "y")
            if X.ndim != 2 or Y.ndim not in (1, 2) or len(Y) != X.shape[0]:
                raise LearningError(
                    f"A chunk's X must be (rows, inputs) with as many rows as y; "
                    f"found {X.shape} and {Y.shape}."
                )
            if not X.shape[0]:
                continue
            self.one_output &= Y.ndim == 1
            weights = None
            if len(chunk) == 3:
                weights = as_numbers(chunk[2], self.dtype, "sample_weight")
            yield Block(X, Y.reshape(len(Y), -1), weights)

    def _check_total(self) -> None:
        if not self.n_samples:
            raise LearningError("There are no rows to learn from.")
        if self.total_weight <= 0.0:
            raise LearningError("The sample weights sum to zero: there is nothing to learn from.")

    def _check(self, block: Block) -> None:
        found = (block.X.shape[1], block.Y.shape[1], block.weights is not None)
        if found != (self.n_features, self.n_outputs, self.weighted):
            raise LearningError(
                f"A chunk has {found[0]} inputs and {found[1]} outputs where the first had "
                f"{self.n_features} and {self.n_outputs}, or only one of them has weights."
            )
        if is_sparse(block.X) != self.sparse:
            raise LearningError("Either all chunks' X are of scipy.sparse or none.")
        try:
            check_array(block.X, input_name="X", accept_sparse="csr")
            check_array(block.Y, input_name="y")
        except ValueError as problem:
            raise LearningError(str(problem)) from None
        if block.weights is not None:
            checked_weights(block.weights, len(block), self.dtype)


class ArrayRows(Rows):
    """Rows of arrays in memory that have been checked: X (n, d), y (n,) or (n, T), weights (n,).

    Without y there are no outputs, T = 0: inputs whose predictions are asked for.
    """

    def __init__(self, X: Array, y: Array | None = None, sample_weight: Array | None = None):
        self.dtype = X.dtype
        self.n_samples, self.n_features = n, _ = X.shape
        self.sparse, self.row_numbers = is_sparse(X), row_numbers(X)
        self.one_output, self.weighted = y is not None and y.ndim == 1, sample_weight is not None
        Y = np.empty((n, 0)) if y is None else y.reshape(n, -1)
        self._rows = Block(X, outputs_in(Y, X.dtype), sample_weight)
        self.n_outputs = Y.shape[1]
        self.total_weight = float(n if sample_weight is None else sample_weight.sum())
        if y is not None:
            self._check_total()

    def weights(self) -> Array | None:
        """See :class:`Rows`."""
        return self._rows.weights

    def _read(self) -> Iterator[Block]:
        yield self._rows


def masked(rows: Rows, mask: Mask) -> Rows:
    """The rows of others where `mask` (n,) is true; nothing is copied but the block that is read.

    Raises LearningError where their weights sum to zero.
    """
    size = max(1, READ_BYTES // (rows.row_numbers * rows.dtype.itemsize))

    def chunks() -> Iterator[Chunk]:
        start = 0
        for block in rows.blocks(size):
            some = mask[start : start + len(block)]
            start += len(block)
            Y = block.Y[some, 0] if rows.one_output else block.Y[some]
            yield (block.X[some], Y, *(() if block.weights is None else (block.weights[some],)))

    return Rows(chunks, rows.dtype)


def outputs_in(Y: Array, dtype: np.dtype) -> Array:
    """Outputs in the precision of the inputs.

    Raises LearningError where its range lacks them: they would be infinite, or all of them zero.
    """
    with np.errstate(over="ignore", under="ignore"):
        found: Array = Y.astype(dtype, copy=False)
    if found is Y or found.dtype != np.float32 or not Y.size:
        return found
    given, largest = float(np.max(np.abs(Y))), float(np.max(np.abs(found)))
    lost = np.isfinite(given) and not np.isfinite(largest)
    if lost or (given > 0.0 and largest < np.finfo(np.float32).tiny):
        raise LearningError(
            f"y is as large as {given:.3g}, for which float32, the precision of X, has no numbers: "
            f"scale y, or pass X in float64."
        )
    return found


def training_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, *, on_device: bool = False
) -> Rows:
    """Rows of the arguments of `fit`, checked as scikit-learn does; sets n_features_in_.

    `on_device` : the estimator computes where X is. Otherwise arrays on a device are converted to
    NumPy's. Raises LearningError, or scikit-learn's ValueError, for data that are unusable, and
    ConfigurationError for sparse inputs where the estimator's kernel has no form for them.
    """
    sparse = X.sparse if isinstance(X, Rows) else is_sparse(X)
    if sparse and takes_sparse(estimator):
        require_sparse_form(as_kernel(estimator.kernel))
    if isinstance(X, Rows):
        if y is not None or sample_weight is not None:
            raise LearningError("Rows bring their y and weights; pass nothing else.")
        if sparse and not takes_sparse(estimator):
            raise LearningError(
                f"{type(estimator).__name__} takes no sparse inputs: pass chunks of arrays."
            )
        return noted(estimator, X)
    backend = backend_of(X)
    if backend is not None and (on_device or backend.STAYS):
        rows: Rows = backend.training_rows(estimator, X, y, sample_weight)
        return rows
    if isinstance(X, np.memmap) and X.ndim == 2 and y is not None:
        return noted(estimator, Rows.from_arrays(X, y, sample_weight))
    X, y, sample_weight = to_numpy(X), to_numpy(y), to_numpy(sample_weight)
    X, y = validate_data(estimator, X, y, multi_output=True, y_numeric=True, dtype=FLOATS)
    if sample_weight is not None:
        sample_weight = checked_weights(sample_weight, X.shape[0], X.dtype)
    X = as_inputs(X, X.dtype)
    if not sparse and hasattr(estimator, "kernel"):
        _warn_of_narrow_kernel(as_kernel(estimator.kernel), X)
    return ArrayRows(X, np.asarray(y), sample_weight)


def _warn_of_narrow_kernel(kernel: Kernel, X: Array) -> None:
    """Warn where a kernel with a width is nearly zero between all rows X (n, d).

    Looks at the nearest of some thousand rows to each of a few. Where none is near, predictions are
    the same everywhere but at the rows themselves: inputs that nobody scaled, mostly.
    """
    if not hasattr(kernel, "length_scale") or kernel.needs_scale or len(X) < PROBE_ROWS:
        return
    probes = np.linspace(0, len(X) - 1, PROBE_ROWS).astype(int)
    others = np.unique(np.linspace(0, len(X) - 1, NEIGHBOUR_ROWS).astype(int))
    K = kernel(X[probes], X[others])
    K[probes[:, None] == others] = 0.0
    if np.median(K.max(axis=1)) < MIN_NEIGHBOUR_KERNEL:
        warnings.warn(
            f"{kernel!r} is nearly zero between all rows of X: predictions will hardly depend on "
            f"inputs. Scale them (StandardScaler, say), or take a larger length_scale.",
            UserWarning,
            stacklevel=4,
        )


R = TypeVar("R", bound=Rows)


def noted(estimator: Any, rows: R) -> R:
    """The rows, which the estimator is fitted to: sets n_features_in_, as inputs without names."""
    estimator.n_features_in_ = rows.n_features
    estimator.__dict__.pop("feature_names_in_", None)  # of an earlier fit
    return rows


def checked_weights(sample_weight: Any, n_rows: int, dtype: Any, *, some: bool = False) -> Array:
    """Sample weights as an array (n_rows,); LearningError for a wrong shape or value.

    some : also where all are 0.
    """
    weights: Array = np.asarray(sample_weight, dtype=dtype)
    if weights.shape != (n_rows,) or not (np.isfinite(weights) & (weights >= 0.0)).all():
        raise LearningError("Sample weights must be one for each row, and not negative.")
    if some and not weights.any():
        raise LearningError("The sample weights sum to zero: there is nothing to learn from.")
    return weights


def validate_data(estimator: Any, *args: Any, **settings: Any) -> Any:
    """Check and convert the data as scikit-learn does, and set n_features_in_.

    Sparse inputs become compressed rows for an estimator that takes them, and are refused by
    others, as `check_array` refuses them. LearningError for labels where numbers are learned.
    """
    if takes_sparse(estimator):
        settings.setdefault("accept_sparse", "csr")
    if settings.get("y_numeric") and (label := _first_text(args[1])) is not None:
        name = type(estimator).__name__
        raise LearningError(
            f"{name} learns numbers, and y has labels ('{label}'): "
            f"KernelClassifier({name}(...)) learns classes."
        )
    if hasattr(validation, "validate_data"):
        return validation.validate_data(estimator, *args, **settings)
    return estimator._validate_data(*args, **settings)  # scikit-learn 1.4, of Ubuntu 24.04, and 1.5


def as_numbers(values: Any, dtype: Any, name: str) -> Array:
    """An array of values in `dtype` (None: their own); infinite where its range lacks them.

    Raises LearningError for text, and for rows of different lengths.
    """
    try:
        with np.errstate(over="ignore"):  # infinite ones are refused
            return np.asarray(values, dtype=dtype)
    except (TypeError, ValueError) as problem:
        label = _first_text(values) if name == "y" else None
        if label is None:
            raise LearningError(f"{name} is no array of numbers: {problem}") from None
        raise LearningError(
            f"Regressors learn numbers, and y has labels ('{label}'): KernelClassifier(...), of "
            f"arrays X and y, learns classes."
        ) from None


TEXTS = ("O", "U", "S", "T")  # kinds of dtypes that text may have


def _first_text(y: Any) -> str | None:
    """The first of y that is text and no number."""
    dtype = getattr(y, "dtype", None)
    if dtype is not None and getattr(dtype, "kind", None) not in TEXTS:  # also a device's numbers
        return None
    for value in np.ravel(np.asarray(y, dtype=object)):
        if isinstance(value, str):
            try:
                float(value)
            except ValueError:
                return str(value)
    return None


def takes_sparse(estimator: Any) -> bool:
    """True for an estimator that computes with compressed rows, its kernel permitting."""
    return bool(getattr(estimator, "_takes_sparse", False))


# -------------------------------------------------------------------------------------------------
# Arrays of other libraries. Their modules are imported when the first such array comes. Each has
# training_rows(estimator, X, y, sample_weight) and to_numpy(X). STAYS says whether such arrays stay
# where they are for estimators that compute with NumPy only: then by_chunks(estimator, method, X)
# is there. Else predict(estimator, X) is, and like(X, values): NumPy's values in the library of X.


def backend_of(X: Any) -> Any:
    """The module that computes with X; None for NumPy's arrays, lists, tables and the like.

    With scikit-learn's `array_api_dispatch` off, the default, only Dask's arrays have one.
    """
    if isinstance(X, np.ndarray) or not hasattr(X, "dtype") or is_sparse(X):
        return None
    if type(X).__module__.startswith("dask.array"):
        from semiparam_dynamics.learning.backends import dask_arrays

        return dask_arrays
    if get_config()["array_api_dispatch"]:
        from semiparam_dynamics.learning.backends import devices

        return None if devices.device_of(X) is None else devices
    return None


def to_numpy(X: Any) -> Any:
    """Arrays of other libraries as NumPy's; anything else as it is."""
    backend = backend_of(X)
    return X if backend is None else backend.to_numpy(X)


Method = TypeVar("Method", bound=Callable[..., Any])


def chunk_by_chunk(method: Method) -> Method:
    """A fitted estimator's method of inputs X, which makes a Dask array of a Dask array.

    In the same chunks of rows, each by its worker; nothing is computed before the result is.
    """

    @wraps(method)
    def of_any(estimator: Any, X: Any) -> Any:
        check_is_fitted(estimator)
        backend = backend_of(X)
        if backend is not None and backend.STAYS:
            return backend.by_chunks(estimator, method.__name__, X)
        return method(estimator, X)

    return cast("Method", of_any)


def on_host(block: Block) -> Block:
    """A block with its arrays in NumPy: itself, unless they are another library's."""
    if backend_of(block.X) is None:
        return block
    return Block(to_numpy(block.X), to_numpy(block.Y), to_numpy(block.weights))


# -------------------------------------------------------------------------------------------------
# Memory limits.

FREE_MEMORY_SHARE = 0.25  # of the memory that is free where no limit is given


# What a container may take, what it has taken, and what of that is files' that can be dropped, by
# the second and the first version of Linux' control groups.
CONTROL_GROUPS = Path("/sys/fs/cgroup")
GROUP_FILES = (
    ("memory.max", "memory.current", "memory.stat", ("inactive_file", "active_file")),
    (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "memory/memory.stat",
        ("total_inactive_file", "total_active_file"),
    ),
)


def free_memory() -> int:
    """The bytes that are free on this machine, and within this container's limit."""
    memory = psutil.virtual_memory()
    free = int(memory.available)
    for most, taken, stat, files in GROUP_FILES:
        try:
            limit = int((CONTROL_GROUPS / most).read_text())
            if limit < memory.total:  # elsewhere it is none
                left = limit - int((CONTROL_GROUPS / taken).read_text())
                numbers = dict(
                    line.split() for line in (CONTROL_GROUPS / stat).read_text().splitlines()
                )
                free = min(free, left + sum(int(numbers[name]) for name in files))
        except (OSError, ValueError, KeyError):  # no such group, or "max": no limit
            continue
    return max(free, 0)


def memory_budget(limit: int | None) -> int:
    """The bytes for kernel matrices: `limit`, or a quarter of the free memory for None.

    Raises ConfigurationError for a limit that isn't positive.
    """
    if limit is None:
        return int(FREE_MEMORY_SHARE * free_memory())
    if not isinstance(limit, Real) or not limit > 0:
        raise ConfigurationError(f"memory_limit must be a positive number of bytes, not {limit}.")
    return int(limit)


def rows_within(budget: int, row_bytes: int, what: str) -> int:
    """The number of rows of `row_bytes` that fit into `budget` bytes.

    Raises LearningError, naming `what`, when not even one does.
    """
    rows = budget // max(row_bytes, 1)
    if rows < 1:
        raise LearningError(
            f"{what} needs at least {row_bytes} bytes and memory_limit leaves {budget}: "
            f"raise the limit or use fewer centres."
        )
    return rows


def require(budget: int, needed: int, what: str) -> None:
    """Raise LearningError, naming `what`, when it needs more bytes than the budget has."""
    if needed > budget:
        raise LearningError(
            f"{what} needs {needed / 1e9:.3g} GB and the limit is {budget / 1e9:.3g} GB: raise "
            f"memory_limit, or use NystromKRLS or Falkon, which need less."
        )
