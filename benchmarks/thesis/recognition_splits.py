"""Which rows of a feature file a trial of table 7.1's protocol learns, chooses by and tests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from recognition_data import FeatureFile

from semiparam_dynamics.arrays import Indices
from semiparam_dynamics.errors import ConfigurationError

# What the thesis took of MNIST (7.6.2), and the numbers of examples of table 7.1.
BALANCED, TEST = 1000, 200
NEW = (1, 5, 10, 50, 100, 500)
VALIDATION_SHARE = 5  # the validation set has n_bal / 5 examples of each balanced class


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
