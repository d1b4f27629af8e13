"""A bag of the small arm's efforts, shared by the tests of the verbs that read bags."""

from __future__ import annotations

from pathlib import Path

import pytest

from semiparam_dynamics.samples.bag_writer import write_measurements

from ...dynamics.arms import URDF, measurements, small_arm


@pytest.fixture(scope="session")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bags") / "efforts"
    model = small_arm()
    moving = measurements(model, 6.0, extra=2.0)
    write_measurements(
        path, model.joint_names, moving, "effort", robot_description=URDF.read_text()
    )
    return path


@pytest.fixture(scope="module", autouse=True)
def quick(seldom_inferred: None) -> None:
    """What is tested here is what is made of a learner's numbers."""
