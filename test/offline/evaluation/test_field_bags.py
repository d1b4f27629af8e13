"""Recordings as drivers write them, against the same log as it should have been recorded.

The bags are of an arm's first seconds; the log they were made of is beside them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.base.arrays import SECOND
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.evaluation.bags import Bags, evaluate_bags
from semiparam_dynamics.offline.evaluation.experiment import Evaluation
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.bag_writer import write_measurements
from semiparam_dynamics.samples.measurement import Measurement

PERIOD = SECOND // 50

pytestmark = pytest.mark.usefixtures("scores_alone")


@pytest.fixture(scope="module")
def arm(data_folder: Path) -> Path:
    return data_folder / "robots" / "xmate7p"


def evaluated(arm: Path, path: Path) -> Evaluation:
    return evaluate_bags(Bags([path], urdf=arm / "xmate7p.urdf"), InverseDynamicsConfig())


@cache
def clean(arm: Path, folder: Path, count: int) -> Evaluation:
    """The evaluation of the log's first messages, all of them whole."""
    log = np.load(arm / "trajectory_1.npz")
    names = RobotModel(arm / "xmate7p.urdf").joint_names
    rows = zip(log["q"][:count], log["dq"][:count], log["tau"][:count], strict=True)
    measured = [Measurement(SECOND + k * PERIOD, *row) for k, row in enumerate(rows)]
    write_measurements(folder / "clean", names, measured)
    return evaluated(arm, folder / "clean")


def ratio(of: Evaluation, to: Evaluation, protocol: str) -> float:
    """How many times its squared error the semiparametric error of another is."""
    errors = [e.runs[protocol].scores.nmse("semiparametric").mean() for e in (of, to)]
    return float(errors[0] / errors[1])


@pytest.mark.parametrize(
    ("bag", "count", "protocols", "cost"),
    [
        # A second publisher at 10 Hz, of another pose, without velocities and efforts.
        ("jsp_mid", 1750, ("sequential", "delayed", "frozen"), 1.05),
        ("split_two", 1750, ("sequential", "delayed", "frozen"), 1.05),
        # Six seconds are learned, which alone leave four times the error of a minute.
        ("alt_no_velocity", 500, ("sequential", "delayed", "frozen"), 1.15),
        # Learned at the efforts' own rate: half of the readings, so that it takes longer.
        ("empty_effort_half", 500, ("frozen",), 1.6),
    ],
)
def test_messages_that_lack_something_cost_no_more_than_that(
    arm: Path,
    tmp_path_factory: pytest.TempPathFactory,
    bag: str,
    count: int,
    protocols: tuple[str, ...],
    cost: float,
) -> None:
    found = evaluated(arm, arm.parents[1] / "field" / bag)
    wanted = clean(arm, tmp_path_factory.getbasetemp() / str(count), count)
    for protocol in protocols:
        assert ratio(found, wanted, protocol) < cost, protocol
    if bag == "jsp_mid":
        others = [count for reason, count in found.skipped.items() if "another publisher" in reason]
        assert others == [350]


def test_messages_in_batches_are_learned_at_even_times(arm: Path) -> None:
    found = evaluated(arm, arm.parents[1] / "field" / "bursts")
    # Without the first ones, by which the batches are known: as good as one fit allows.
    assert found.runs["delayed"].scores.nmse("semiparametric").mean() < 0.02
    assert found.runs["sequential"].scores.samples > 500


def test_efforts_that_no_driver_has_read_yet_are_not_learned(arm: Path) -> None:
    found = evaluated(arm, arm.parents[1] / "field" / "garbage_start")
    assert found.skipped["efforts not measured yet"] == 42
    assert found.runs["delayed"].scores.nmse("rigid_body").mean() < 0.016
