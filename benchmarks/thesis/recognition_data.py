"""Feature files of labelled examples, and the rows of one that a trial of table 7.1 takes."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.base.arrays import Indices
from semiparam_dynamics.base.errors import ConfigurationError, SampleError
from semiparam_dynamics.base.storage import MALFORMED

LISTED = 5  # class names that a message quotes
# What the thesis took of MNIST (7.6.2), and the numbers of examples of table 7.1.
BALANCED, TEST = 1000, 200
NEW = (1, 5, 10, 50, 100, 500)
VALIDATION_SHARE = 5  # the validation set has n_bal / 5 examples of each balanced class


@dataclass(frozen=True)
class LabelledRows:
    """Inputs X (n, d) of any type of number, as the file has them, and their classes (n,)."""

    X: npt.NDArray[Any]
    numbers: Indices


@dataclass(frozen=True)
class FeatureFile:
    """A file's examples, checked: all numbers are finite, there are at least two classes.

    train : rows to learn and to choose by. test : rows set apart by the file, or None.
    names : (T,), what the classes are called; `numbers` are indices of these.
    path : the file.
    """

    path: Path
    names: tuple[str, ...]
    train: LabelledRows
    test: LabelledRows | None

    def class_number(self, name: str) -> int:
        """The number of the class of that name. Raises SampleError where there is none."""
        if name not in self.names:
            more = ", ..." if len(self.names) > LISTED else ""
            known = ", ".join(self.names[:LISTED]) + more
            raise SampleError(f"{self.path} has no class {name!r}; it has: {known}")
        return self.names.index(name)

    def train_counts(self) -> Indices:
        """(T,): rows of each class to learn and to choose by."""
        return np.bincount(self.train.numbers, minlength=len(self.names))

    def test_counts(self) -> Indices | None:
        """(T,): rows of each class that the file has set apart, or None."""
        rows = self.test
        return None if rows is None else np.bincount(rows.numbers, minlength=len(self.names))


def read_features(path: str | Path) -> FeatureFile:
    """Read and check an npz file; SampleError says what is missing or wrong in it.

    Arrays: ``X`` (n, ...) and ``y`` (n,), or ``X_train``, ``y_train``, ``X_test`` and ``y_test``;
    each input is flattened. Labels are whole numbers or text; optional ``classes`` (T,) names
    those that are 0 to T - 1. Capital and small letters of the arrays' names are all the same.
    """
    path = Path(path).expanduser()
    arrays = _load(path)
    parts = ["_train", "_test"] if "x_train" in arrays else [""]
    rows = [_rows(path, arrays, part) for part in parts]
    labels, numbers = np.unique(np.concatenate([y for _, y in rows]), return_inverse=True)
    if len(labels) < 2:
        raise SampleError(f"{path} has only the class {labels[0]}: there is none to add to it")
    ends = np.cumsum([len(y) for _, y in rows])[:-1]
    read = [
        LabelledRows(X, part) for (X, _), part in zip(rows, np.split(numbers, ends), strict=True)
    ]
    if len({rows.X.shape[1] for rows in read}) > 1:
        widths = " and ".join(str(rows.X.shape[1]) for rows in read)
        raise SampleError(f"{path}: inputs to learn and to test have {widths} numbers")
    return FeatureFile(
        path=path,
        names=_names(path, labels, arrays.get("classes")),
        train=read[0],
        test=read[1] if len(read) > 1 else None,
    )


def _load(path: Path) -> dict[str, npt.NDArray[Any]]:
    if not path.is_file():
        raise SampleError(f"there is no file {path}")
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name.lower(): file[name] for name in file.files}
    except (*MALFORMED, OSError, AttributeError, zlib.error) as error:
        # A bare .npy array, pickled objects or a broken archive.
        raise SampleError(f"{path} is no npz file of plain arrays: {error}") from None


def _rows(
    path: Path, arrays: Mapping[str, npt.NDArray[Any]], part: str
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Inputs (n, d) and labels (n,) of one part, checked."""
    for name in ("X" + part, "y" + part):
        if name.lower() not in arrays:
            found = ", ".join(arrays) or "nothing"
            raise SampleError(f"{path} has no array '{name}'; it has: {found}")
    X, y = arrays["x" + part], arrays["y" + part]
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if X.ndim < 2 or y.ndim != 1 or len(X) != len(y) or X.size == 0:
        raise SampleError(
            f"{path}: 'X{part}' has shape {X.shape} and 'y{part}' {y.shape}; they must be"
            " (examples, features) and (examples,)"
        )
    if X.dtype.kind not in "fiub":
        raise SampleError(f"{path}: 'X{part}' holds {X.dtype}, not numbers")
    X = X.reshape(len(X), -1)
    bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
    if len(bad):
        raise SampleError(
            f"{path}: {len(bad)} rows of 'X{part}' are not finite, the first is row {bad[0]}"
        )
    if y.dtype.kind == "f" and np.array_equal(y, np.rint(y)):
        y = y.astype(np.int64)
    if y.dtype.kind not in "iubU":
        raise SampleError(f"{path}: 'y{part}' must hold whole numbers or text, not {y.dtype}")
    return X, y


def _names(
    path: Path, labels: npt.NDArray[Any], classes: npt.NDArray[Any] | None
) -> tuple[str, ...]:
    if classes is None or labels.dtype.kind not in "iu":
        return tuple(str(label) for label in labels)
    if classes.ndim != 1 or labels[0] < 0 or labels[-1] >= len(classes):
        raise SampleError(
            f"{path}: 'classes' has shape {classes.shape}, and the labels are {labels[0]} to"
            f" {labels[-1]}; it needs a name for each"
        )
    names = tuple(str(classes[label]) for label in labels)
    if len(set(names)) < len(names):
        raise SampleError(f"{path}: two of 'classes' have the same name")
    return names


@dataclass(frozen=True)
class Sizes:
    """Examples a trial takes.

    balanced : n_bal, of each class but the new one. test : n_test, of every class.
    new : the numbers n_imb of the new class' examples after which accuracy is measured, ascending.
    """

    balanced: int
    test: int
    new: tuple[int, ...]

    @property
    def validation(self) -> int:
        """Of each class but the new one."""
        return self.balanced // VALIDATION_SHARE


@dataclass(frozen=True)
class Split:
    """One trial's rows, all different; `test` are rows of the file's test part if it has one.

    new_class : its number. learned, validation : of the other classes. stream : of the new one,
    in the order of their coming.
    """

    new_class: int
    learned: Indices
    validation: Indices
    stream: Indices
    test: Indices


def choose_sizes(
    file: FeatureFile,
    balanced: int | None = None,
    test: int | None = None,
    new: Sequence[int] | None = None,
    new_class: int | None = None,
) -> Sizes:
    """Sizes as asked for; those that aren't (None) are the thesis' for MNIST, or what there is.

    new_class : the class that is new in every trial; None: it may be any.

    Raises ConfigurationError, with what is possible, where the file hasn't as many.
    """
    rows, apart = file.train_counts(), file.test_counts()
    classes = np.arange(len(rows))
    others = rows if new_class is None else rows[classes != new_class]
    first = rows if new_class is None else rows[[new_class]]
    least, stream = int(others.min()), int(first.min())
    if test is None:
        test = min(TEST, min(least, stream) // 5 if apart is None else int(apart.min()))
    if test < 1:
        raise ConfigurationError(f"{file.path}: every class needs rows to test on")
    if apart is not None and apart.min() < test:
        raise ConfigurationError(
            f"{file.path} has {apart.min()} test rows of class"
            f" {file.names[int(apart.argmin())]}, fewer than {test}: ask for fewer test examples"
        )
    taken = test if apart is None else 0
    possible = (least - taken) * VALIDATION_SHARE // (VALIDATION_SHARE + 1)
    if balanced is None:
        balanced = min(BALANCED, possible // VALIDATION_SHARE * VALIDATION_SHARE)
    if balanced < VALIDATION_SHARE or balanced + balanced // VALIDATION_SHARE > least - taken:
        raise ConfigurationError(
            f"{file.path} has {least} rows of its smallest class, {taken} of them to test on:"
            f" enough for {max(possible, 0)} balanced examples and a fifth to choose by, not"
            f" {balanced} (at least {VALIDATION_SHARE})"
        )
    points = sorted(set(NEW if new is None else new))
    if new is None:
        points = [n for n in points if n <= stream - taken]
    if not points or points[0] < 1 or points[-1] > stream - taken:
        raise ConfigurationError(
            f"{file.path} has {max(stream - taken, 0)} rows to learn of the new class: the numbers"
            f" of new examples must lie between 1 and that, not be {points}"
        )
    return Sizes(balanced, test, tuple(points))


def draw_split(
    file: FeatureFile, sizes: Sizes, seed: int, trial: int, new_class: int | None = None
) -> Split:
    """The rows of a trial, drawn at random; `new_class` too where it is None."""
    random = np.random.default_rng((seed, trial))
    drawn = int(random.integers(len(file.names)))
    new_class = drawn if new_class is None else new_class
    learned, validation, test = [], [], []
    stream = np.empty(0, dtype=np.intp)
    for number in range(len(file.names)):
        rows = random.permutation(np.flatnonzero(file.train.numbers == number))
        if file.test is None:
            test.append(rows[: sizes.test])
            rows = rows[sizes.test :]
        else:
            apart = random.permutation(np.flatnonzero(file.test.numbers == number))
            test.append(apart[: sizes.test])
        if number == new_class:
            stream = rows[: sizes.new[-1]]
        else:
            learned.append(rows[: sizes.balanced])
            validation.append(rows[sizes.balanced : sizes.balanced + sizes.validation])
    return Split(
        new_class=new_class,
        learned=np.concatenate(learned),
        validation=np.concatenate(validation),
        stream=stream,
        test=np.concatenate(test),
    )
