"""The command lines of benchmarks/performance, and that its figures are of what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bags
import numpy as np
import pytest
from serial_arm import moving, serial_arm_urdf
from step import _Loop, stream

from semiparam_dynamics.learning.recursion.rls import RecursiveLeastSquares
from semiparam_dynamics.robot.model import RobotModel

BAGS = ["bags", "--seconds", "1", "--rate", "400", "--features", "20"]
FALKON = ["falkon", "--inputs", "5", "--iterations", "3", "--repeats", "1"]
STEP = ["step", "--seconds", "0.01"]


def test_bags_has_both_residuals_and_is_written(
    performance, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned, learning = [], bags._learning

    def noted(model: Any, config: Any, samples: Any) -> Any:
        learned.append(len(samples))
        return learning(model, config, samples)

    monkeypatch.setattr(bags, "_learning", noted)
    monkeypatch.setattr(bags, "WARM_UP", 0.5)
    out = tmp_path / "bags.md"
    assert performance([*BAGS, "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert told == out.read_text() and " cores, " in told
    lines = [line.strip("| ").split(" | ") for line in told.splitlines()[4:]]
    assert lines[0][-1] == "times real time"
    assert [line[:1] for line in lines[2:]] == [["random_fourier"], ["nystrom"]]
    assert lines[2][1] == "20"
    assert all(float(number) >= 0.0 for line in lines[2:] for number in line[2:])  # 0.0: rounded
    # Of 400 messages a second an evaluation learns 100, and no other sample is part of the times.
    assert len(learned) == 4 and all(samples < 105 for samples in learned)


def test_falkon_has_all_sizes_and_are_written(performance, tmp_path: Path, capsys) -> None:
    out = tmp_path / "falkon.md"
    sizes = ["--rows", "1500", "2500", "--centers", "40", "70", "--kept", "--out", str(out)]
    assert performance([*FALKON, *sizes, "--memory-limit", "100000"]) == 0
    told = capsys.readouterr()
    assert told.out == out.read_text()
    assert "Penalty 1e-06, 1 fits.\n" in told.out and " cores, " in told.out
    for n in (1500, 2500):
        for centers in (40, 70):
            for kernel in ("anew each time", "kept"):
                assert told.out.count(f"| {n} | 5 | float32 | {centers} | 3 | {kernel} |") == 1
    assert told.out.count("scikit-learn Nystroem + Ridge") == 1
    assert "n = 1500, d = 5, float32, M = 40\n" in told.out


def test_step_has_all_sizes_and_is_written(performance, tmp_path: Path, capsys) -> None:
    out = tmp_path / "step.md"
    sizes = ["--sizes", "3", "20", "--outputs", "1", "9", "--out", str(out)]
    assert performance([*STEP, *sizes]) == 0
    told = capsys.readouterr()
    assert told.out == out.read_text()
    assert " cores, " in told.out and "numba" in told.out
    lines = told.out.splitlines()
    assert len(lines) == 4 + 2 + 4
    for n in (3, 20):
        for outputs in (1, 9):
            assert told.out.count(f"| {n} | {outputs} |") == 1


def test_the_compiled_loop_is_the_recursion() -> None:
    rng = np.random.default_rng(0)
    rows, targets = rng.standard_normal((6, 11)), rng.standard_normal((6, 2))
    loop, core = _Loop(11, 2), RecursiveLeastSquares(11, 2)
    loop.run(rows, targets, 9)
    loop.run(rows, targets, 1)  # settles the ninth, and asks the first again
    for k in range(9):
        core.predict(rows[k % 6])
        core.update(rows[k % 6], targets[k % 6])
    core.apply_pending()
    assert np.array_equal(loop.R[:11, :11], core.R) and np.array_equal(loop.U[:11, :2], core.U)
    np.testing.assert_array_equal(-loop.side[1, :2], core.predict(rows[0])[0])


def test_the_limit_touches_the_whole_triangle_and_nothing_else() -> None:
    R = np.ones((7, 9))
    stream(R, 7, 2.0, 3)
    wanted = np.ones((7, 9))
    wanted[:, :7][np.triu_indices(7)] = 8.0
    np.testing.assert_array_equal(R, wanted)


def test_velocities_are_the_positions_derivatives_and_all_is_excited() -> None:
    model = RobotModel(serial_arm_urdf())
    t, q, dq, y = moving(model, 20.0, 200.0)
    assert q.shape == dq.shape == y.shape == (4000, 7) and t[1] == 0.005
    np.testing.assert_allclose((q[2:] - q[:-2]) / 0.01, dq[1:-1], atol=2e-3)
    low, high = model.position_limits
    assert np.all((q > low) & (q < high)) and np.all(q.std(axis=0) > 0.05)
    assert np.all(y.std(axis=0) > 0.1)
