"""The benchmarks still import what they measure, and the quick ones run on little data."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import excitation
import numpy as np
import pytest
from matplotlib.image import imread
from recognition_heads import LEARNERS, StreamingLDA
from recognition_heads import run as compare_heads
from threadpoolctl import threadpool_limits

from semiparam_dynamics.offline.identification.excitation import ExcitationConfig

from ..documents import ROOT, commands
from .conftest import command_line

SCRIPTS = sorted(
    path
    for folder in ("benchmarks", "fuzz", "tools")
    for path in (ROOT / folder).rglob("*.py")
    if '__name__ == "__main__"' in path.read_text() and "import atheris" not in path.read_text()
)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """A function that runs a script of benchmarks/ in this process; returns its output."""

    def run(script: str, *arguments: str) -> str:
        path = ROOT / "benchmarks" / script
        monkeypatch.syspath_prepend(str(path.parent))
        monkeypatch.setattr(sys, "argv", [str(path), *arguments])
        with threadpool_limits(1):
            runpy.run_path(str(path), run_name="__main__")
        return capsys.readouterr().out

    return run


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    """The help of each script, by its path in the repository."""
    parts = {}
    for script in SCRIPTS:
        with (
            pytest.MonkeyPatch.context() as patch,
            contextlib.redirect_stdout(io.StringIO()) as printed,
            pytest.raises(SystemExit) as end,
        ):
            patch.syspath_prepend(str(script.parent))
            patch.setattr(sys, "argv", [str(script), "--help"])
            runpy.run_path(str(script), run_name="__main__")
        assert not end.value.code, script
        parts[str(script.relative_to(ROOT))] = printed.getvalue()
    return parts


def test_each_says_what_it_does(said: dict[str, str]) -> None:
    assert len(said) == len(SCRIPTS) > 20
    for script, text in said.items():
        name = Path(script).parent.name if script.endswith("__main__.py") else Path(script).name
        assert f"usage: {name}" in text


def test_documents_give_them_options_that_they_have(said: dict[str, str]) -> None:
    folders = {
        f"benchmarks/{folder}": command_line(folder).make_parser()
        for folder in ("performance", "thesis")
    }
    shown = [(name, words) for name, words, _ in commands("python") if words[0] != "-c"]
    assert len(shown) > 40
    for name, (script, *words) in shown:
        if script in folders:
            folders[script].parse_args(words)
        else:
            text = said.get(script) or said[f"{script}/__main__.py"]
            options = set(re.findall(r"--[a-z-]+", text))
            assert {word for word in words if word.startswith("--")} <= options, (name, script)


@pytest.mark.parametrize(
    ("name", "arguments", "shown"),
    [
        (
            "table_4_3",
            ["--sets", "adult", "--n", "400", "--m", "50", "--full", "--published-trials", "1"],
            "early stopping, published settings",
        ),
        (
            "table_4_3",
            [
                *("--sets", "adult", "--n", "400", "--m", "50", "--trials", "0"),
                *("--published-trials", "1"),
                *("--published-methods", "KOLS", "KRLS", "KRLS, one factor"),
            ],
            "KRLS, one factor",
        ),
        (
            "table_6_2",
            ["--published", "--sets", "breast cancer", "--trials", "1", "--passes", "2"],
            "one order",
        ),
    ],
)
def test_a_table_comes_out(run, name, arguments, shown: str, data_folder: Path) -> None:
    output = run(f"tables/{name}.py", str(data_folder), *arguments)
    assert shown in output and "nan" not in output


def test_more_passes_of_nysgm_come_near_ridge_regression(run, tmp_path: Path) -> None:
    sizes = ["--trials", "1", "--n", "400", "--passes", "20", "--out", str(tmp_path)]
    output = run("tables/nysgm_figure_1.py", *sizes)
    rows = {row.split("|")[1].strip(): row.split("|") for row in output.splitlines()[3:]
            if row.count("|") > 5}  # fmt: skip
    once, best = (float(rows["m=32"][column].split()[0]) for column in (2, 3))
    assert best < 0.5 * once and float(rows["m=32"][6]) < 3.0 < float(rows["m=2"][6])
    assert imread(tmp_path / "nysgm_figure_1.png").std() > 0.05
    output = run("tables/nysgm_figure_1.py", "--trials", "1", "--n", "60", "--passes", "8")
    assert "| 8 passes " in output


def test_the_figures_that_need_no_data_are_drawn(run, tmp_path: Path) -> None:
    output = run("tables/theory_figures.py", "--out", str(tmp_path), "--samples", "400")
    assert output.count("## Figure") == 3 and "nan" not in output
    for name in ("figure_4_3", "figure_5_1", "figure_7_1"):
        assert imread(tmp_path / f"{name}.png")[..., :3].std() > 0.1


def test_recognition_beside_its_rivals_comes_out(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=400)
    X = np.abs(rng.standard_normal((400, 8)) + 2.0 * np.eye(4, 8)[y])
    args = Namespace(learners=list(LEARNERS), units=[20], trials=1, new=5)
    compare_heads("blobs", X, y, (20, 10, 20), args)
    rows = [line.split("|") for line in capsys.readouterr().out.splitlines()[5:] if line]
    assert [row[1].strip() for row in rows] == list(LEARNERS)
    assert all(float(row[2].split()[0]) > 50.0 for row in rows)


@pytest.mark.parametrize("shrinkage", [1e-4, 0.3])
def test_streaming_lda_is_what_its_paper_says(shrinkage: float) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=60)
    X = rng.standard_normal((60, 6)) + 2.0 * np.eye(4, 6)[y]
    learner = StreamingLDA(6, shrinkage)
    means, counts, covariance = np.zeros((4, 6)), np.zeros(4), np.zeros((6, 6))
    for t, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
        learner.learn(x, label)
        delta = t * np.outer(x - means[label], x - means[label]) / (t + 1)
        covariance = (t * covariance + delta) / (t + 1)
        means[label] = (counts[label] * means[label] + x) / (counts[label] + 1)
        counts[label] += 1
    W = np.linalg.pinv((1 - shrinkage) * covariance + shrinkage * np.eye(6)) @ means.T
    scores = X @ W - 0.5 * np.sum(means.T * W, axis=0)
    np.testing.assert_allclose(learner.scores(X), scores[:, learner.labels], rtol=1e-9, atol=1e-9)
    assert np.array_equal(learner.predict(X), scores.argmax(axis=1))


def test_the_learners_round_trip_comes_out(run, ros_environment) -> None:
    pytest.importorskip("rclpy")
    options = ["--seconds", "1", "--first", "0.5", "--rate", "200", "--features", "20"]
    options += ["--target", "wrench", "--arms", "2"]
    options += ["--set", "deadline=10.0"]  # a machine that is busy loses nothing either
    echo, learner = run("node_latency.py", *options).splitlines()[-2:]
    cells = [cell.strip() for cell in learner.strip("|").split("|")]
    assert "echo" in echo and cells[:3] == ["learner", "events", "200"] and "nan" not in echo
    assert cells[4:6] == ["0", "0"]  # lost


def test_an_exciting_motion_tells_parameters_better_than_random_ones(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    short = ExcitationConfig(period=5.0, harmonics=2, starts=1, iterations=20)
    monkeypatch.setattr(excitation, "ExcitationConfig", lambda: short)
    excitation.measure("arm", ROOT / "test" / "data" / "small_arm.urdf", ())
    shown = capsys.readouterr().out
    pairs = re.findall(r"random ([\d.]+) .*?result ([\d.]+)", shown, re.DOTALL)
    of_parameters, of_efforts = (tuple(map(float, pair)) for pair in pairs[-2:])
    # Noise is 5 % of an effort, in hundreds of rows: columns that are alike have larger errors.
    assert of_parameters[1] < min(of_parameters[0], 0.05) and of_efforts[1] < of_efforts[0]


def test_the_soak_counts_the_answers_that_it_hears(run, ros_environment) -> None:
    pytest.importorskip("rclpy")
    times = ["--seconds", "4", "--every", "2", "--rate", "200", "--warm-up", "0"]
    rows = [line.strip("|").split("|") for line in run("soak.py", *times).splitlines()]
    head, *lines = ([cell.strip() for cell in row] for row in rows if len(row) > 9)
    last = dict(zip(head, lines[-1], strict=True))
    # Not lines of the table; a slow machine answers a part.
    assert last["sent"] == "800" and 2 * len(lines) < int(last["heard"]) <= 800


def test_learned_efforts_in_a_trajectory_halve_the_tracking_error(run, simulator: None) -> None:
    sizes = ["--seeds", "1", "--learning", "6", "--seconds", "4", "--spacings", "0.5"]
    output = run("trajectory_efforts.py", "--arms", "seven", *sizes)
    means = re.findall(r"^\| mean \| (.*) \|$", output, re.MULTILINE)
    assert len(means) == 2 and "nan" not in output
    for without, _, learned, *_ in (map(float, row.split(" | ")) for row in means):
        assert learned < 0.5 * without
    without, as_given, resampled = map(float, output.splitlines()[-1].split("|")[2:5])
    assert resampled < as_given < without


def test_wrenches_at_a_simulated_tool_come_out(run, simulator: None, data_folder: Path) -> None:
    sizes = ["--learn", "6", "--seconds", "4", "--arms", "seven"]
    output = run("external_wrench.py", "arms", "--data", str(data_folder), *sizes)
    rows = {tuple(row.split(" | ")[:2]): row.split(" | ") for row in output.splitlines()}
    force = {row: float(cells[2]) for row, cells in rows.items() if "seven, " in row[0]}
    own = "~/external_wrench"
    assert force["| seven, none", own] < 0.5 * force["| seven, none", "URDF"]
    assert force["| seven, 1 kg known", own] < force["| seven, 1 kg", own] < np.inf


def test_an_alarm_in_what_was_kept_is_told_with_the_joints_that_turned_round(
    run: Callable[..., str], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    times = 1.0 + 0.01 * np.arange(3000)
    errors, speeds = rng.standard_normal((3000, 2)), np.ones((3000, 2))
    errors[2000:2050, 1] += 20.0  # a push, and then what is none
    errors[2800:2850, 0] += 20.0
    speeds[2790:, 1] = -1.0
    predicted = np.full((3000, 2), np.nan)  # not needed at this rate
    tested, confidence, cutoff = np.ones(3000), np.ones(3000), np.zeros(3000)
    shown = np.column_stack((times, tested, confidence, errors, speeds, predicted, cutoff))
    pushes = np.array([[times[2000] - 0.005, times[2050], 10.0]])
    np.savez(tmp_path / "kept.npz", shown=shown, pushes=pushes, scales=np.ones(2))
    said = run("contact.py", "again", "--kept", str(tmp_path / "kept.npz"))
    assert re.search(r"^kept: 29\.0\d s, axis 0 beyond 6\.\d; .*: 1 1\d\d ms$", said, re.MULTILINE)
    assert re.search(
        r"^changes\.contact 6: 1 of 1 of 10 N seen, .* 1 alarms in 0\.5 min$", said, re.MULTILINE
    )
