from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.offline.cli.main import main
from semiparam_dynamics.samples.bag import read_measurements


@pytest.fixture
def log(tmp_path: Path) -> Path:
    q = np.arange(6.0).reshape(3, 2)
    np.savez(tmp_path / "log.npz", q=q, tau=2 * q, dt=0.5, note=np.zeros(1))
    return tmp_path / "log.npz"


def test_a_log_becomes_a_bag_and_the_user_is_told(log, tmp_path: Path, capsys) -> None:
    bag = tmp_path / "bag"
    assert main(["convert", str(log), str(bag), "--names", "hip, knee", "--start", "2"]) == 0
    told = capsys.readouterr()
    assert told.out == f"{bag}: 3 samples at 2 Hz on /joint_states; joints hip, knee\n" + (
        f"next: semiparam evaluate {bag} --out results --urdf FILE\n"
    )
    assert told.err == "semiparam: warning: not used: note\n"
    given = read_measurements(bag, ["hip", "knee"]).measurements
    assert [m.stamp for m in given] == [2_000_000_000, 2_500_000_000, 3_000_000_000]
    np.testing.assert_array_equal([m.y for m in given], 2 * np.arange(6.0).reshape(3, 2))


def test_a_bag_is_replaced_only_where_asked(log, tmp_path: Path, capsys) -> None:
    arguments = ["convert", str(log), str(tmp_path / "bag")]
    assert main(arguments) == 0
    assert main(arguments) == 2
    assert "exists already" in capsys.readouterr().err
    assert main([*arguments, "--overwrite", "--names", "a,b"]) == 0
    assert len(read_measurements(tmp_path / "bag", ["a", "b"]).measurements) == 3
