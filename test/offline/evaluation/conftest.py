"""Short evaluations by the real code, shared by the tests of what is made of them."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest

from semiparam_dynamics.base.parameters import from_flat
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.evaluation.experiment import Evaluation, evaluate
from semiparam_dynamics.offline.evaluation.report import write_results
from semiparam_dynamics.robot.model import RobotModel

from ...dynamics.arms import FEW_CENTERS, URDF, measurements, small_arm

HOSTILE = "<script>alert('x')</script> \"lift\" $x_1$ & http://outside.example/"
CONFIG = from_flat(InverseDynamicsConfig, {"nystrom.window": 1.0} | FEW_CENTERS)


@pytest.fixture(scope="module", autouse=True)
def quick(seldom_inferred: None) -> None:
    """What is tested here is what is made of a learner's numbers."""


@pytest.fixture(scope="session")
def effort_evaluation() -> Evaluation:
    """Scored from the first sample on; a joint's name does its worst."""
    urdf = URDF.read_text().replace('"lift"', quoteattr(HOSTILE))
    model = RobotModel(urdf)
    evaluation = evaluate(model, CONFIG, [list(measurements(model, 6.0, extra=1.0))])
    evaluation.skipped["effort of <i>reach</i> missing"] += 7
    return evaluation


@pytest.fixture(scope="session")
def wrench_evaluation() -> Evaluation:
    """Scored after training."""
    model = small_arm(target="wrench", sensor_frame="boom_sensor")
    train = list(measurements(model, 4.0, extra=1.0))
    test = list(measurements(model, 3.0, extra=1.0, seed=1))
    return evaluate(model, CONFIG, [test], [train])


@pytest.fixture(scope="session")
def effort_results(effort_evaluation: Evaluation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the evaluation's files."""
    folder = tmp_path_factory.mktemp("effort") / "new" / "results"
    write_results(effort_evaluation, folder)
    return folder


@pytest.fixture(scope="session")
def wrench_results(wrench_evaluation: Evaluation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the evaluation's files."""
    folder = tmp_path_factory.mktemp("wrench") / "new" / "results"
    write_results(wrench_evaluation, folder)
    return folder
