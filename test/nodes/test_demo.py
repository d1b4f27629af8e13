"""The demo's live part, and that its bag gives the numbers that the node gave live."""

from __future__ import annotations

import json

import numpy as np
import pytest

from semiparam_dynamics.base.config_files import load_yaml
from semiparam_dynamics.base.nodes import processes
from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig
from semiparam_dynamics.learner.learner import InverseDynamicsLearner
from semiparam_dynamics.offline.cli.main import main
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.bag import BagReader, read_measurements
from semiparam_dynamics.simulation.nodes import demo

from .forks import ForkedNode

pytest.importorskip("mujoco", reason="needs the extra 'sim'")


@pytest.mark.usefixtures("no_figures")
def test_the_recorded_bag_gives_the_numbers_of_the_live_node(
    ros_environment, tmp_path, capsys, monkeypatch
):
    for module in (demo, processes):
        monkeypatch.setattr(module, "NodeProcess", ForkedNode)
    out = tmp_path / "out"
    (out / "log").mkdir(parents=True)
    for place in ("robot.urdf", "log/mine.log", "log/inverse_dynamics.log"):
        (out / place).write_text("was here before\n")
    options = ["--seconds", "3", "--seed", "1", "--residual", "random_fourier", "--out", str(out)]
    assert main(["demo", *options]) == 0
    told = capsys.readouterr()
    assert "circle_xy" in told.out and "circle_xz" in told.out
    assert "Traceback" not in told.err
    for place in ("robot.previous.urdf", "log/mine.log"):
        assert (out / place).read_text() == "was here before\n"
    assert "was here before" not in (out / "log" / "inverse_dynamics.log").read_text()
    results = json.loads((out / "results.json").read_text())
    assert results["samples"] > 260 and results["target"] == "wrench"
    assert (out / "report.html").stat().st_size > 10_000

    config = load_yaml(out / "inverse_dynamics.yaml", InverseDynamicsNodeConfig).learner
    model = RobotModel(str(out / "robot.urdf"), config.robot)
    recording = read_measurements(
        out / "bag",
        model.joint_names,
        "wrench",
        config.samples,
        joint_states_topic="/joint_states",
        wrench_topic="/wrench",
    )
    learner = InverseDynamicsLearner(model, config)
    offline: dict[int, np.ndarray] = {}
    for measurement in recording.measurements:
        step = learner.predict(measurement)
        if step is not None:
            offline[step.stamp] = step.prediction.semiparametric
            learner.update(learner.admit(step))
    live: dict[int, np.ndarray] = {}
    with BagReader(out / "bag") as reader:
        for _, message, _ in reader.messages(["/inverse_dynamics/predicted"]):
            stamp = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
            f, t = message.wrench.force, message.wrench.torque
            live[stamp] = np.array([f.x, f.y, f.z, t.x, t.y, t.z])
    assert len(live) > 285 and live.keys() <= offline.keys()
    difference = max(np.abs(live[stamp] - offline[stamp]).max() for stamp in live)
    assert difference < 1e-9
