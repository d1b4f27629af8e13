"""`semiparam identify`: a URDF that other programs read."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.cli.main import main
from semiparam_dynamics.offline.conversion.convert import convert_log
from semiparam_dynamics.offline.evaluation.bags import Bags
from semiparam_dynamics.offline.evaluation.identification import identify_on_bags
from semiparam_dynamics.robot.inertia import pseudo_inertia
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.bag_writer import write_measurements

from ...dynamics.arms import URDF, measurements, small_arm

HEADER = ["name", "urdf", "identified", "standard_deviation", "excitation"]


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bags") / "efforts"
    model = small_arm()
    robot = URDF.read_text().replace('<mass value="0.3"/>', '<mass value="0.5"/>')
    heavier = RobotModel(robot)
    assert heavier.labels == model.labels
    moving = measurements(heavier, 8.0, extra=0.05)
    write_measurements(path, model.joint_names, moving, "effort", robot_description=robot)
    return path


def table(folder: Path) -> dict[str, dict[str, float]]:
    with (folder / "parameters.csv").open() as file:
        reader = csv.DictReader(file)
        assert reader.fieldnames == HEADER
        return {row.pop("name"): {k: float(v) for k, v in row.items()} for row in reader}


def errors(text: str, name: str) -> list[float]:
    (line,) = (line for line in text.splitlines() if line.split()[:1] == [name])
    return [float(value) for value in line.split()[1:]]


def test_the_files_and_the_table(
    bag: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    options = ["--urdf", str(URDF), "--hold-out", "0.4", "--mjcf", "--out", str(out)]
    assert main(["identify", str(bag), *options]) == 0
    said = capsys.readouterr().out
    urdf, free, consistent, file = errors(said, "mean")[4:]
    assert consistent < 0.3 * urdf and free < 0.3 * urdf
    assert consistent < 0.99 * file  # which has no offsets, rotor inertias or presliding
    parameters = table(out)
    assert set(parameters) == set(small_arm().full_labels)
    gripper = parameters["m gripper"]
    assert gripper["urdf"] == pytest.approx(0.3)
    assert abs(gripper["identified"] - 0.5) < 0.2  # so short a motion leaves some to the URDF
    assert all(0.0 <= row["excitation"] <= 1.0 for row in parameters.values())
    robot = pin.buildModelFromUrdf(str(out / "identified.urdf"))
    for body in list(robot.inertias)[1:]:
        assert np.linalg.eigvalsh(body.toPseudoInertia().toMatrix()).min() > 0.0
    # The table's consistent nmse is that of the file: the same parameters again.
    again = RobotModel(out / "identified.urdf")
    values = [parameters[label]["identified"] for label in again.full_labels]
    assert np.allclose(again.inertial_prior, values[: again.inertial_prior.size], rtol=1e-6)
    mujoco = pytest.importorskip("mujoco").MjModel.from_xml_path(str(out / "identified.xml"))
    for joint in again.joint_names:
        found = mujoco.joint(joint)
        for kind, value in (
            ("rotor_inertia", found.armature[0]),
            ("viscous", found.damping[0]),
        ):
            assert value == pytest.approx(parameters[f"{kind} {joint}"]["identified"], rel=1e-5)


def test_a_clock_that_goes_back_holds_nothing_out(tmp_path: Path) -> None:
    model = small_arm()
    moving = list(measurements(model, 6.0, start=1_000_000_000_000))
    moving[300:] = [replace(m, stamp=m.stamp - 900_000_000_000) for m in moving[300:]]
    write_measurements(tmp_path / "bag", model.joint_names, moving, "effort")
    bags = Bags((), (tmp_path / "bag",), urdf=URDF)
    config = InverseDynamicsConfig()
    whole = identify_on_bags(bags, config)
    assert whole.test.n_samples == 0
    held_out = identify_on_bags(bags, config, hold_out=0.4).test.n_samples
    # Of the time, in which the filters began anew in motion: 0.4 s of it teach nothing.
    assert held_out == pytest.approx(0.4 * (whole.train.n_samples + 40), rel=0.05)


@pytest.mark.parametrize("verb", ["identify", "train", "tune"])
def test_a_joint_without_efforts_is_named_where_nothing_can_be_learned(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = small_arm()
    dead = [replace(m, y=m.y * [1.0, np.nan, 1.0, 1.0]) for m in measurements(model, 4.0)]
    write_measurements(tmp_path / "bag", model.joint_names, dead, "effort")
    out = ["--urdf", str(URDF), "--out", str(tmp_path / "out.yaml")]
    assert main([verb, str(tmp_path / "bag"), *out]) == 2
    said = capsys.readouterr().err
    assert f"the effort of {model.joint_names[1]} is nan" in said
    if verb != "train":  # which has reasons of its own
        assert "left out of the parameter joints" in said


def test_bags_to_test_on(bag: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["identify", str(bag), "--out", str(tmp_path)]) == 0
    alone = errors(capsys.readouterr().out, "mean")
    assert len(alone) == 4
    again = ["--test", str(bag), "--out", str(tmp_path), "--overwrite"]
    assert main(["identify", str(bag), *again]) == 0
    assert (tmp_path / "identified.previous.urdf").exists()
    both = errors(capsys.readouterr().out, "mean")
    assert both == alone + alone


def thinned(log: Path, folder: Path) -> Path:
    """Every fifth sample of a log at 5 kHz, of which most are not used anyway."""
    with np.load(log) as arrays:
        kept = {k: v[::5] if v.ndim else v for k, v in arrays.items()}
    if "dt" in kept:
        kept["dt"] = 5 * kept["dt"]
    np.savez(folder / "thinned.npz", **kept)
    return folder / "thinned.npz"


@pytest.mark.parametrize("arm", ["xmate7p", "ur10", "tx40"])
def test_real_arms(
    arm: str,
    data_file: Callable[[str], Path],
    repository: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    urdf = data_file(f"robots/{arm}/{'ur10_robot' if arm == 'ur10' else arm}.urdf")
    options = ["--params", str(repository / "config" / "robots" / f"{arm}.yaml")]
    if arm == "ur10":
        bags = [data_file("robots/ur10/ur10_exciting_trajectory.db3")]
    else:
        names = ["trajectory_1", "trajectory_2", "trajectory_3"] if arm == "xmate7p" else ["tx40"]
        bags = [tmp_path / name for name in names]
        for path in bags:
            log = data_file(f"robots/{arm}/{path.name}.npz")
            convert_log(thinned(log, tmp_path) if arm == "tx40" else log, path, urdf=urdf)
    if arm == "xmate7p":
        options += ["--test", str(bags.pop())]
    else:
        options += ["--hold-out", "0.4"]
    out = tmp_path / "out"
    options += ["--urdf", str(urdf), "--out", str(out)]
    assert main(["identify", *map(str, bags), *options]) == 0
    of_urdf, free, consistent, _ = errors(capsys.readouterr().out, "mean")[4:]
    assert consistent < 1.15 * free < 0.115 * of_urdf
    again = RobotModel(out / "identified.urdf")
    for body in again.inertial_prior.reshape(-1, 10):
        assert np.linalg.eigvalsh(pseudo_inertia(body)).min() > 0.0
    parameters = table(out)
    for label, row in parameters.items():
        if label.startswith(("viscous", "coulomb", "rotor_inertia")):
            assert row["identified"] >= 0.0
