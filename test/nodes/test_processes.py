"""A ROS domain and parameters for nodes that are started together."""

from __future__ import annotations

import socket
from pathlib import Path

from semiparam_dynamics.base.config_files import dump_yaml
from semiparam_dynamics.base.nodes.processes import free_domain, is_free, write_params
from semiparam_dynamics.base.storage import previous_of
from semiparam_dynamics.learner.config import LivePageNodeConfig


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
