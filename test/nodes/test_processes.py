"""A ROS domain and parameters for nodes that are started together, and the end of tests' nodes."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from semiparam_dynamics.base.config_files import dump_yaml
from semiparam_dynamics.base.nodes.processes import free_domain, is_free, write_params
from semiparam_dynamics.base.storage import previous_of
from semiparam_dynamics.learner.config import LivePageNodeConfig

from .conftest import TIMEOUT


def test_a_domain_whose_first_node_has_ended_and_others_have_not_is_not_free(
    ros_environment: dict[str, str],
) -> None:
    domain = int(ros_environment["ROS_DOMAIN_ID"])
    assert is_free(domain)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as third:
        third.bind(("", 7400 + 250 * domain + 14))
        assert not is_free(domain)
        assert free_domain((domain, 232)) == 232
    assert free_domain((domain,)) == domain


def test_parameters_that_a_user_wrote_are_kept_beside_the_demos(tmp_path: Path) -> None:
    config = LivePageNodeConfig()
    path = write_params(tmp_path, "page", config)
    assert write_params(tmp_path, "page", config) == path
    assert list(tmp_path.iterdir()) == [path]
    path.write_text("mine")
    write_params(tmp_path, "page", config)
    assert previous_of(path).read_text() == "mine"
    assert path.read_text() == dump_yaml(config)


KILLED = """
import os, signal, sys
from pathlib import Path
from test.nodes.forks import ForkedNode
node = ForkedNode("live_page", {"port": 0}, Path(sys.argv[1]))
print(node.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_node_does_not_outlive_tests_that_were_killed(
    ros_environment: dict[str, str], repository: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path / "log")]
    done = subprocess.run(command, cwd=repository, stdout=subprocess.PIPE, text=True)
    assert done.returncode == -signal.SIGKILL
    stat, end = Path(f"/proc/{int(done.stdout)}/stat"), time.monotonic() + TIMEOUT
    while stat.exists() and stat.read_text().rpartition(") ")[2][0] != "Z":
        assert time.monotonic() < end
        time.sleep(0.05)
