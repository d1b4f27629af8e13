"""The rivals' page: its rows, least squares by identification's count, and nothing learned late."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arm_splits import score, windows
from arms import Split, splits
from other_rivals import PACKAGE_DEFAULT, PLAIN_RIGID_BODY, Boosting, axis_factors

from semiparam_dynamics.dynamics.consistent import unconstrained
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.sample import SampleBlock
from semiparam_dynamics.offline.evaluation.protocols import ProtocolRun

from .conftest import command_line

RIVALS = command_line("rivals")
SECONDS = 12.0
QUICK = ["--arms", "sim_small", "--seconds", str(SECONDS), "--steps", "6", "--rounds", "5"]
ARGS = RIVALS.make_parser().parse_args(["DATA", *QUICK])


@pytest.fixture(scope="module")
def split() -> Split:
    pytest.importorskip("mujoco")
    first, _ = splits(Path("DATA"), "sim_small", SECONDS)
    return first


FOUND: dict[str, dict[str, Any]] = {}  # of the split as it is, by method


def results(split: Split, method: str) -> dict[str, Any]:
    for module in RIVALS.NEEDS.get(method, ()):
        pytest.importorskip(module)
    if method not in FOUND:
        FOUND[method] = RIVALS.results(split, method, ARGS)
    return FOUND[method]


@pytest.mark.parametrize("method", RIVALS.METHODS)
def test_no_method_sees_the_efforts_of_the_test_part(split: Split, method: str) -> None:
    rng = np.random.default_rng(0)
    test = [dataclasses.replace(s, y=rng.standard_normal(s.y.shape)) for s in split.test]
    changed = split._replace(test=test)
    before, after = results(split, method), RIVALS.results(changed, method, ARGS)
    assert before.keys() == after.keys() and before
    for name, result in before.items():
        assert np.isfinite(result.predicted).all(), name
        assert np.array_equal(result.predicted, after[name].predicted), name


@pytest.mark.parametrize("method", RIVALS.METHODS)
def test_a_timed_prediction_is_that_of_the_last_sample(split: Split, method: str) -> None:
    for name, result in results(split, method).items():
        alone = result.predict_one()
        if name not in ("URDF", PLAIN_RIGID_BODY, "boosting", "LSTM"):
            continue  # of a state alone, without the friction's memory or what was before
        values = alone[0] if isinstance(alone, tuple) else alone
        expected = result.predicted[-1]
        np.testing.assert_allclose(np.ravel(values), expected, rtol=1e-3, atol=1e-3, err_msg=name)


def test_least_squares_is_scored_as_identification_scores_it(split: Split) -> None:
    assert all(sample.informative for sample in split.test)
    train, test = (axis_factors(split.model, part) for part in (split.train, split.test))
    expected = test.nmse(unconstrained(split.model, train))
    found = score(split, results(split, "identification")["least squares"])
    np.testing.assert_allclose(found.nmse, expected, rtol=1e-6)
    assert 0.0 < expected.mean() < 0.1 and found.microseconds > 0.0


def test_this_package_is_scored_as_its_protocol_scores_it(split: Split) -> None:
    side = split
    run = ProtocolRun(SemiparametricEstimator(side.model, side.config.estimator), "sequential")
    for sample in side.train:
        run.step(sample, score=False)
    frozen = run.branch("frozen")
    for sample in side.test:
        frozen.step(sample)
    found = score(split, results(split, "package")[PACKAGE_DEFAULT])
    np.testing.assert_allclose(found.nmse, frozen.scores.nmse("semiparametric"), rtol=1e-9)
    assert found.online.keys() == {"sequential", "delayed"}


def test_windows_end_at_their_row_and_stay_in_their_recording(split: Split) -> None:
    block = SampleBlock.of(split.train[:80] + split.train[:60])
    rows = windows(block)
    assert np.array_equal(rows[:, -1], np.arange(140))
    assert np.array_equal(rows[70], np.arange(21, 71)) and rows[3].min() == 0
    assert rows[85].min() == 80 and (np.diff(rows, axis=1) <= 1).all()


def test_boosting_that_gains_nothing_leaves_the_rigid_body(split: Split) -> None:
    found = RIVALS.compete(split, Boosting(5, leaves=()), residual=True)
    expected = results(split, "package")["rigid body"].predicted
    # The mean of what the rigid body leaves of the training part is all that is added.
    added = found.predicted - expected
    np.testing.assert_allclose(added, np.broadcast_to(added[0], added.shape), atol=1e-9)
    assert np.abs(added).max() < 0.05


def test_rest_at_the_end_of_the_training_part_changes_nothing(split: Split) -> None:
    train = split.train
    rest = [dataclasses.replace(sample, informative=False) for sample in train[-200:]]
    still = split._replace(train=train + rest)
    for residual in (False, True):
        before, after = (
            RIVALS.compete(one, Boosting(5), residual=residual).predicted for one in (split, still)
        )
        assert np.array_equal(before, after)


def test_the_page_comes_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("mujoco")
    out = tmp_path / "page.md"
    methods = ["--methods", "identification", "package", "boosting", "gru"]
    arms = ["--arms", "ur10", "sim_small"]
    assert RIVALS.main([str(tmp_path), *QUICK, *arms, *methods, "--out", str(out)]) == 0
    text = out.read_text()
    assert text == capsys.readouterr().out
    rows = re.findall(r"^\| (.*?) \| (\d\.\d+) \| .*\|$", text, re.MULTILINE)
    names = {name for name, _ in rows}
    assert {"URDF", PLAIN_RIGID_BODY, PACKAGE_DEFAULT, "boosting"} <= names and "nan" not in text
    assert "no folder robots/ur10" in text
    assert text.index("Where others are better") < text.index("How to read it")
    has_torch = importlib.util.find_spec("torch") is not None
    assert ("GRU on the rigid body" in names) == has_torch
    assert has_torch or "GRU on the rigid body: torch not installed" in text
    cells = [row.strip("| ").split(" | ") for row in text.splitlines() if row.startswith("| URDF")]
    assert cells[0][6] == "", "the URDF learns nothing"
    assert "whose sensor sticks" in text and "not measured" not in text[text.index("## Not run") :]


def test_a_page_that_cannot_be_written_is_told_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RIVALS, "run", lambda *_: pytest.fail("measured"))
    (tmp_path / "file").touch()
    out = tmp_path / "file" / "page.md"
    assert RIVALS.main([str(tmp_path), *QUICK, "--out", str(out)]) == 2
    assert f"rivals: error: can't write {out}" in capsys.readouterr().err
