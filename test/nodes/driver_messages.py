"""The drivers' services, by the published definitions of their packages.

ur_msgs (ros-industrial/ur_msgs) until 2026 and since then, and franka_msgs (frankarobotics/
franka_ros2).
"""

from __future__ import annotations

import importlib
import os
import time
from pathlib import Path
from typing import Any

import pytest

from semiparam_dynamics.base.storage import locked

from .interfaces import make_package

UR = """float32 mass
geometry_msgs/Vector3 center_of_gravity
---
bool success
"""
LATER_UR = """geometry_msgs/Inertia payload
builtin_interfaces/Duration transition_time
---
bool success
"""
FRANKA = """# The mass of the object
float64 mass
# Position of the center of mass
float64[3] center_of_mass
# Inertia of the object - the provided 3x3 matrix is in column major form.
float64[9] load_inertia
---
bool success
string error
"""


@pytest.fixture(scope="session")
def message_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages, and ur_msgs' later definition as `later_ur_msgs`.

    The first test process that needs them makes them for all, as they are compiled for seconds.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "driver_messages"
    with locked(shared):
        if not folder.exists():
            make_package("ur_msgs", {"SetPayload": UR}, folder)
            make_package("later_ur_msgs", {"SetPayload": LATER_UR}, folder, sent=False)
            make_package("franka_msgs", {"SetLoad": FRANKA}, folder)
    return folder


@pytest.fixture
def driver_messages(
    message_folder: Path, ros_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The packages can be imported, here and by nodes that are started."""
    before = [one for one in (os.environ.get("PYTHONPATH"),) if one]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(message_folder), *before]))
    monkeypatch.syspath_prepend(message_folder)
    return message_folder


class Driver:
    """A driver's service: keeps what it accepts."""

    def __init__(self, peer: Any, package: str, name: str, service: str) -> None:
        self.loads: list[Any] = []
        self.refused = 0
        self.accepts = True
        self.delay = 0.0  # s, until it answers
        kind = getattr(importlib.import_module(f"{package}.srv"), name)
        self._node = peer.node
        self._service = peer.node.create_service(kind, service, self._set)

    def end(self) -> None:
        """Take the service away."""
        self._node.destroy_service(self._service)

    def _set(self, request: Any, response: Any) -> Any:
        time.sleep(self.delay)
        response.success = self.accepts
        if hasattr(response, "error"):
            response.error = "" if self.accepts else "the robot is moving"
        self.refused += not self.accepts
        if self.accepts:
            self.loads.append(request)
        return response
