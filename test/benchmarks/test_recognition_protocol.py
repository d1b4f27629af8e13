"""Table 7.1's protocol against formulas (7.16), (7.21) and (7.22), solved anew each time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from recognition_data import Sizes, draw_split, read_features
from recognition_protocol import (
    Protocol,
    ProtocolResult,
    Rows,
    incremental_candidates,
    run_protocol,
)

from semiparam_dynamics.learning import IncrementalRLSC

from .recognition_files import one_part, two_parts

SIZES = Sizes(balanced=40, test=20, new=(1, 6, 20))
PENALTIES = (0.1, 1.0, 10.0)
TOLERANCE = 0.05
METHODS = ("naive", "recoding", "recoding_tolerance", "rebalanced", "alpha_0.5")


def protocol(**changes) -> Protocol:
    return Protocol(
        SIZES, **{"trials": 3, "penalties": PENALTIES, "tolerance": TOLERANCE} | changes
    )


def independent(result: ProtocolResult, trial: int, new: int, scale: str) -> dict[str, tuple]:
    """Each method's answers on the test rows by its formula, from all rows at once."""
    file = result.file
    split = draw_split(file, SIZES, result.protocol.seed, trial)
    rows = np.concatenate([split.learned, split.stream[:new]])
    X, y = file.train.X.astype(float), file.train.numbers
    test = file.test or file.train
    T = test.X.astype(float)
    if scale == "max":
        largest = np.abs(X[split.learned]).max()
        X, T = X / largest, T / largest
    elif scale == "unit":
        X = X / np.sqrt((X**2).sum(axis=1))[:, None]
        T = T / np.sqrt((T**2).sum(axis=1))[:, None]
    Y = np.eye(4)[y[rows]]
    gamma = len(rows) / Y.sum(axis=0)
    V, truth = X[split.validation], y[split.validation]
    alphas = [i / 20 for i in range(21)]
    accuracy, answers = {}, {}
    for penalty in PENALTIES:
        ridge = penalty * np.eye(X.shape[1])
        W = np.linalg.solve(X[rows].T @ X[rows] + ridge, X[rows].T @ Y)
        for alpha in alphas:
            recoded = W * gamma**alpha
            accuracy[penalty, alpha] = np.mean((V @ recoded).argmax(axis=1) == truth)
            answers[penalty, alpha] = (T[split.test] @ recoded).argmax(axis=1)
        S = np.diag(gamma[y[rows]])
        W = np.linalg.solve(X[rows].T @ S @ X[rows] + ridge, X[rows].T @ S @ Y)
        accuracy[penalty, "S"] = np.mean((V @ W).argmax(axis=1) == truth)
        answers[penalty, "S"] = (T[split.test] @ W).argmax(axis=1)

    def best(alpha) -> float:
        return max(PENALTIES, key=lambda penalty: (accuracy[penalty, alpha], penalty))

    def rule(given_up: float) -> float:
        floor = accuracy[best(0.0), 0.0] - given_up - 1e-9
        return max(alpha for alpha in alphas if accuracy[best(alpha), alpha] >= floor)

    chosen = {
        "naive": 0.0,
        "recoding": rule(0.0),
        "recoding_tolerance": rule(TOLERANCE),
        "rebalanced": "S",
        "alpha_0.5": 0.5,
    }
    y_test = test.numbers[split.test]
    scored = {}
    for method, alpha in chosen.items():
        right = answers[best(alpha), alpha] == y_test
        fresh = y_test == split.new_class
        scored[method] = (
            *(right.mean(), right[fresh].mean(), right[~fresh].mean()),
            *(best(alpha), 0.0 if alpha == "S" else alpha),
        )
    return scored


@pytest.mark.parametrize(("make", "scale"), [(one_part, "max"), (two_parts, "unit")])
def test_every_score_is_what_the_formulas_give(tmp_path: Path, make, scale) -> None:
    result = run_protocol(read_features(make(tmp_path / "a.npz")), protocol(scale=scale))
    for new in SIZES.new:
        for trial in range(3):
            expected = independent(result, trial, new, scale)
            for method in METHODS:
                found = [
                    result.values(method, new, quantity)[trial]
                    for quantity in ("total", "new_class", "balanced", "penalty", "alpha")
                ]
                np.testing.assert_allclose(found, expected[method], atol=1e-12, err_msg=method)
    # It compares something: the methods differ, and recoding pays.
    last = SIZES.new[1]
    naive, tolerant = (result.values(m, last, "new_class") for m in ("naive", METHODS[2]))
    assert tolerant.mean() > naive.mean() + 0.1


def test_the_candidates_are_the_classifiers_own(tmp_path: Path) -> None:
    file = read_features(one_part(tmp_path / "a.npz"))
    split = draw_split(file, SIZES, seed=0, trial=0)
    X, y = file.train.X.astype(float), file.train.numbers
    model = IncrementalRLSC(PENALTIES, hold_out=0, tolerance=TOLERANCE)
    # Classes come in another order than their numbers'.
    for rows in (split.learned[::-1], split.stream[:6]):
        model.partial_fit(X[rows], y[rows])
    validation = Rows(X[split.validation], y[split.validation])
    candidates = incremental_candidates(model, validation)
    choice = candidates.recoded(TOLERANCE)
    model.validate(validation.X, validation.y)
    assert candidates.penalties[choice[0]] == model.ridge_
    assert candidates.alphas[choice[1]] == model.recoding_ > 0.0
    (found,) = candidates.predict(X, [choice])
    np.testing.assert_array_equal(found, model.predict(X))


def test_a_seed_repeats_and_trials_do_not_depend_on_their_number(tmp_path: Path) -> None:
    file = read_features(one_part(tmp_path / "a.npz"))
    three, again, two = (run_protocol(file, protocol(trials=n)) for n in (3, 3, 2))
    assert three.scores == again.scores and three.new_classes == again.new_classes
    assert two.scores == [score for score in three.scores if score.trial < 2]
    assert run_protocol(file, protocol(seed=1)).scores != three.scores
    fixed = run_protocol(file, protocol(new_class=2))
    assert fixed.new_classes == [2, 2, 2]


def test_without_a_tolerance_there_is_no_row_of_it(tmp_path: Path) -> None:
    file = read_features(one_part(tmp_path / "a.npz"))
    shares: list[float] = []
    result = run_protocol(file, protocol(tolerance=0.0), shares.append)
    assert len(result.values("recoding", 1, "total")) == 3
    assert len(result.values("recoding_tolerance", 1, "total")) == 0
    assert shares == sorted(shares) and shares[0] > 0.0 and shares[-1] == pytest.approx(1.0)
