"""`semiparam identify`: a URDF that other programs read."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from semiparam_dynamics.base.parameters import from_flat
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.cli.main import main
from semiparam_dynamics.offline.conversion.convert import convert_log
from semiparam_dynamics.offline.evaluation.bags import Bags, robot_of, samples_of
from semiparam_dynamics.offline.identification.identify import identify_on_bags
from semiparam_dynamics.robot.inertia import pseudo_inertia
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.bag_writer import write_measurements

from ...dynamics.arms import URDF, measurements, small_arm
from ...robot.pinocchio_states import rows_of, torques

HEADER = ["name", "urdf", "identified", "standard_deviation", "excitation", "files"]


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bags") / "efforts"
    model = small_arm()
    robot = URDF.read_text().replace('<mass value="0.3"/>', '<mass value="0.5"/>')
    heavier = RobotModel(robot)
    assert heavier.labels == model.labels
    moving = measurements(heavier, 30.0, extra=0.01)
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


def test_the_files_and_the_table(bag, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    options = ["--urdf", str(URDF), "--mjcf", "--out", str(out)]
    assert main(["identify", str(bag), *options]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Use identified.urdf: compared with the URDF given it has")
    assert "of files identified on the first 60 % of each bag" in said
    urdf, file, mujoco_file, everything = errors(said, "mean")
    assert everything < file < 0.5 * urdf
    assert mujoco_file == pytest.approx(file, rel=0.1)
    parameters = table(out)
    assert set(parameters) == set(small_arm().full_labels)
    gripper = parameters["m gripper"]
    assert gripper["urdf"] == pytest.approx(0.3)
    assert abs(gripper["identified"] - 0.5) < 0.2  # so short a motion leaves some to the URDF
    assert all(0.0 <= row["excitation"] <= 1.0 for row in parameters.values())
    robot = pin.buildModelFromUrdf(str(out / "identified.urdf"))
    for body in list(robot.inertias)[1:]:
        assert np.linalg.eigvalsh(body.toPseudoInertia().toMatrix()).min() > 0.0
    again = RobotModel(out / "identified.urdf")
    values = [parameters[label]["files"] for label in again.full_labels]
    assert np.allclose(again.inertial_prior, values[: again.inertial_prior.size], rtol=1e-6)
    mujoco = pytest.importorskip("mujoco").MjModel.from_xml_path(str(out / "identified.xml"))
    for joint in again.joint_names:
        found = mujoco.joint(joint)
        for kind, value in (("rotor_inertia", found.armature[0]), ("viscous", found.damping[0])):
            assert value == pytest.approx(parameters[f"{kind} {joint}"]["files"], rel=1e-5)


def test_a_clock_that_goes_back_holds_a_share_of_the_time_out(tmp_path: Path) -> None:
    model = small_arm()
    moving = list(measurements(model, 6.0, start=1_000_000_000_000))
    moving[300:] = [replace(m, stamp=m.stamp - 900_000_000_000) for m in moving[300:]]
    write_measurements(tmp_path / "bag", model.joint_names, moving, "effort")
    bags = Bags((), (tmp_path / "bag",), urdf=URDF)
    config = InverseDynamicsConfig()
    whole = identify_on_bags(replace(bags, test=bags.train), config).held_out
    # Of the time, in which the filters began anew in motion: 0.4 s of it teach nothing.
    held_out = len(identify_on_bags(bags, config).held_out)
    assert held_out == pytest.approx(0.4 * (len(whole) + 40), rel=0.05)


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


def test_what_is_said_of_a_file_is_what_pinocchio_makes_of_it(bag, tmp_path, capsys) -> None:
    assert main(["identify", str(bag), "--test", str(bag), "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "first 60 %" not in said
    bags = Bags((), (bag,))
    model, config = robot_of(bags, InverseDynamicsConfig())
    samples = [s for _, _, s in samples_of((bag,), bags, model, config) if s.teaches]
    q, dq, ddq, y = (np.array([getattr(s, k) for s in samples]) for k in ("q", "dq", "ddq", "y"))
    robot = pin.buildModelFromUrdf(str(tmp_path / "identified.urdf"))
    rows = rows_of(robot, model.joint_names)
    efforts = torques(robot, model.joint_names, q, dq, ddq) + robot.damping[rows] * dq
    efforts += robot.friction[rows] * np.tanh(dq / config.robot.coulomb_velocity)
    expected = np.mean((efforts - y) ** 2, axis=0) / y.var(axis=0)
    assert [errors(said, joint)[1] for joint in model.joint_names] == pytest.approx(
        expected, rel=1e-3
    )


@pytest.mark.parametrize("kind", [{"sensor_frame": "grip"}, {"effort_gravity": "compensated"}])
def test_what_no_file_can_know_is_not_held_against_it(kind: dict[str, str], tmp_path: Path) -> None:
    """A six-axis sensor's zero, and the weight of a link that the driver takes for massless."""
    target = "wrench" if "sensor_frame" in kind else "effort"
    model = small_arm(**kind, target=target)
    zero = [20.0, -5.0, 9.0, 1.0, 2.0, -3.0] if target == "wrench" else np.zeros(4)
    weight = [label.startswith("weight_m gripper") for label in model.full_labels]
    y = model.base.project(0.3 * np.array(weight))
    moving = []
    for m in measurements(model, 15.0):
        moving.append(replace(m, y=m.y + zero + model.regressor(m.q, m.dq, 0.0 * m.q) @ y))
    write_measurements(tmp_path / "bag", model.joint_names, moving, target)
    bags = Bags((), (tmp_path / "bag",), urdf=URDF)
    config = from_flat(InverseDynamicsConfig, kind | {"target": target})
    found = identify_on_bags(bags, config)
    assert found.trial is not None
    squares = found.held_out.squares(found.files(found.trial, mjcf=False), found.trial)
    assert squares["identified.urdf"].mean() < 0.05


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
    out = tmp_path / "out"
    options += ["--urdf", str(urdf), "--mjcf", "--out", str(out)]
    assert main(["identify", *map(str, bags), *options]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Do not rely on" if arm == "tx40" else "Use identified.urdf")  # 3.6 s
    given, file, mujoco_file, everything = errors(said, "mean")
    assert file < 0.5 * given and mujoco_file < 1.3 * file and everything < 0.1 * given
    again = RobotModel(out / "identified.urdf")
    for body in again.inertial_prior.reshape(-1, 10):
        assert np.linalg.eigvalsh(pseudo_inertia(body)).min() > 0.0
    parameters = table(out)
    for label, row in parameters.items():
        if label.startswith(("viscous", "coulomb", "rotor_inertia")):
            assert row["identified"] >= 0.0
