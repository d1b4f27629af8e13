"""`semiparam tune`: from bags to a YAML that the node loads, interrupted and resumed."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from semiparam_dynamics.base.config_files import load_yaml
from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig
from semiparam_dynamics.learner.nodes.session import Session
from semiparam_dynamics.offline.cli.main import main
from semiparam_dynamics.samples.bag_writer import write_measurements

from ...dynamics.arms import URDF, measurements, small_arm

# All but the ridge of the local features stays: one path.
KEPT = ["filter", "rigid_body", "residual", "nystrom.length_scale"]
OPTIONS = ["--urdf", str(URDF), "--target", "effort", "--set", "nystrom.window=2"]
OPTIONS += ["--set", "nystrom.wide_max_centers=0", "--set", "filter.cutoff=8"]
OPTIONS += ["--set", "nystrom.length_scale=0.5", "--set", "nystrom.max_centers=60"]
OPTIONS += [part for name in KEPT for part in ("--keep", name)]
pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder, model = tmp_path_factory.mktemp("bags"), small_arm()
    for k in range(2):
        motion = list(measurements(model, 7.0, 50.0, extra=2.0))
        for start in (100, 200):  # of the second one a fifth of a second is missing twice
            del motion[start : start + 10 * k]
        write_measurements(folder / f"motion_{k}", model.joint_names, motion, "effort")
    return [str(folder / f"motion_{k}") for k in range(2)]


@pytest.fixture(scope="module")
def command(bags: list[str]) -> list[str]:
    """In one process, from a ridge that is much too large."""
    return ["tune", *bags, *OPTIONS, "--set", "nystrom.penalty=20", "--set", "seed=1"]


@pytest.fixture(scope="module")
def tuned(command: list[str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The YAML of one process, and what was printed."""
    out = tmp_path_factory.mktemp("tuned") / "new" / "tuned.yaml"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main([*command, "--jobs", "1", "--out", str(out)]) == 0
    return out, printed.getvalue()


def test_a_yaml_that_the_node_loads(tuned: tuple[Path, str], command: list[str], capsys) -> None:
    out, told = tuned
    assert re.search(r"On motion that was held out, .* times the rigid body's error", told), told
    assert re.search(r"nystrom\.penalty +20 +\d", told)
    doubts = re.findall(r"^- (\S+) has faults \(gaps\): `semiparam doctor \S+ --urdf", told, re.M)
    assert doubts == [command[2]]
    config = load_yaml(out, InverseDynamicsNodeConfig, "inverse_dynamics")
    assert config.learner.estimator.nystrom.penalty < 20.0
    assert config.learner.filter.cutoff == 8.0
    session = Session(Path(config.urdf).read_text(), config)
    steps = [session.learner.predict(m) for m in measurements(small_arm(), 0.5, 50.0)]
    assert any(step is not None for step in steps)
    assert main([*command, "--jobs", "1", "--out", str(out), "--overwrite"]) == 0
    assert "all from the journal" in capsys.readouterr().out


def test_ctrl_c_leaves_what_was_done_and_the_same_command_resumes(bags, tmp_path) -> None:
    out = tmp_path / "tuned.yaml"
    command = ["tune", *bags, *OPTIONS, "--out", str(out), "--jobs"]

    def restore() -> None:  # a background job may have been started with it ignored
        signal.signal(signal.SIGINT, signal.default_int_handler)

    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "semiparam_dynamics", *command, "2"],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=restore,
    )
    journal = out.with_suffix(".journal")

    def scores() -> int:
        return journal.read_text().count('"worst_axis"') if journal.exists() else 0

    deadline = time.monotonic() + 600.0  # only reached when something is broken
    while scores() < 2:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=300.0)
    assert process.returncode == 130, error
    assert "interrupted; the same command resumes from here" in error
    assert "Traceback" not in error
    done = scores()
    assert done >= 2 and not out.exists()
    assert main([*command, "1"]) == 0
    assert out.exists() and scores() > done
