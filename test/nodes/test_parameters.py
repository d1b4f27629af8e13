"""The bridge between the parameters' definition and ROS, on a real node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import rclpy
import write_config
from rcl_interfaces.srv import SetParameters
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.nodes import parameters as bridge
from semiparam_dynamics.base.parameters import group, parameter, to_flat


@dataclass(frozen=True)
class Inner:
    gain: float = parameter(2.0, "how much", unit="N", low=0.0, high=10.0, live=True)
    names: tuple[str, ...] = parameter((), "which")


@dataclass(frozen=True)
class Config:
    count: int = parameter(3, "how many", low=1)
    kind: str = parameter("a", "which kind", choices=("a", "b"))
    inner: Inner = group(Inner)


@dataclass(frozen=True)
class Live:
    gain: float = parameter(2.0, "how much", low=0.0, high=10.0, live=True)
    mode: str = parameter("a", "which", choices=("a", "b"), live=True)
    gains: tuple[float, ...] = parameter((), "several", low=0.0, live=True)


@pytest.fixture
def make_node(ros_environment: dict[str, str]) -> Iterator[Callable[..., Node]]:
    contexts: list[Context] = []

    def make(*arguments: str) -> Node:
        contexts.append(Context())
        rclpy.init(context=contexts[-1], args=["--ros-args", *arguments])
        return Node("tested", context=contexts[-1])

    yield make
    for context in contexts:
        rclpy.try_shutdown(context=context)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("/left/inverse dynamics", "must not contain characters other than .*'}'$"),
        ("", "must not be empty string$"),
        ("left/", "must not end with a forward slash$"),
        ("left//learner", "must not contain repeated '/'$"),
        ("left/1st", "token must not start with a number$"),
    ],
)
def test_a_name_that_ros_does_not_take_is_refused_in_a_sentence(make_node, name, why) -> None:
    node = make_node()
    for good in ("learner", "/left/learner", "~/learner"):
        assert bridge.check_name(node, "learner", good) == good
    with pytest.raises(ConfigurationError, match=f"learner: '{name}' is no name in ROS: .*{why}"):
        bridge.check_name(node, "learner", name)


def test_declares_type_range_choices_and_description(make_node):
    node = make_node()
    config = bridge.declare(node, Config)
    assert config == Config()
    assert node.get_parameter("inner.names").type_ == Parameter.Type.STRING_ARRAY
    gain = node.describe_parameter("inner.gain")
    assert gain.description == "how much [N]" and not gain.read_only
    assert (gain.floating_point_range[0].from_value, gain.floating_point_range[0].to_value) == (
        0.0,
        10.0,
    )
    count = node.describe_parameter("count")
    assert count.read_only and count.integer_range[0].from_value == 1
    assert node.describe_parameter("kind").additional_constraints == "one of a, b"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("count", "count is read when the node starts: set it in the node's YAML"),
        ("inner.gian", "there is no parameter 'inner.gian'; did you mean 'inner.gain'?"),
    ],
)
def test_what_can_not_be_set_live_is_answered_with_a_sentence(make_node, name: str, told: str):
    node = make_node()
    bridge.declare(node, Config)
    request = SetParameters.Request(parameters=[Parameter(name, value=4).to_parameter_msg()])
    client = node.create_client(SetParameters, "tested/set_parameters")
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    future = client.call_async(request)
    executor.spin_until_future_complete(future, 60.0)
    (result,) = future.result().results
    assert not result.successful and result.reason.startswith(told)
    assert node.set_parameters([Parameter("use_sim_time", value=False)])[0].successful


def test_takes_the_command_lines_and_the_files_values(make_node, tmp_path):
    params = tmp_path / "params.yaml"
    params.write_text("tested:\n  ros__parameters:\n    kind: b\n    inner: {names: []}\n")
    node = make_node("--params-file", str(params), "-p", "inner.gain:=3")
    assert bridge.declare(node, Config) == Config(kind="b", inner=Inner(gain=3.0))
    assert node.get_parameter("inner.gain").value == 3.0


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("inner.gian:=3.0", "did you mean 'inner.gain'"),
        ("inner.force:=[]", "there is no parameter 'inner.force'"),
        ("count:=0", "between 1 and inf"),
        ("count:=two", "whole number"),
        ("kind:=c", "one of a, b"),
    ],
)
def test_refuses_mistakes_with_a_sentence(make_node, argument, reason):
    with pytest.raises(ConfigurationError, match=reason):
        bridge.declare(make_node("-p", argument), Config)


def test_takes_what_the_node_was_made_with(make_node):
    """As two nodes of one process are, which have one command line."""
    context = make_node("-p", "kind:=b", "-p", "count:=5").context
    given = [Parameter("count", value=7), Parameter("inner.gain", value=3)]
    node = Node("other", context=context, parameter_overrides=given)
    assert bridge.declare(node, Config) == Config(count=7, kind="b", inner=Inner(gain=3.0))
    node = Node("wrong", context=context, parameter_overrides=[Parameter("cuont", value=7)])
    with pytest.raises(ConfigurationError, match="did you mean 'count'"):
        bridge.declare(node, Config)


def test_rclpys_own_keys_are_no_mistakes(make_node):
    node = make_node("-p", "use_sim_time:=true", "-p", "qos_overrides./tf.publisher.depth:=3")
    assert bridge.declare(node, Config) == Config()


def test_live_parameters_are_set_together_or_not_at_all(make_node):
    node = make_node()
    taken: list[Live] = []
    bridge.follow(node, bridge.declare(node, Live), taken.append)

    def put(**values: object) -> tuple[bool, str]:
        given = [Parameter(name, value=value) for name, value in values.items()]
        result = node.set_parameters_atomically(given)
        return result.successful, result.reason

    assert put(gain=3, mode="b") == (True, "")  # a whole number, as `ros2 param set` sends it
    assert taken == [Live(gain=3.0, mode="b")]
    assert node.get_parameter("gain").value == 3.0
    for bad in ({"mode": "c"}, {"gain": 99.0}, {"gain": "high"}):
        successful, reason = put(gains=(1.0, 2.0), **bad)
        assert not successful and reason
    assert put(gain=1.0, gains=(1.0, -1.0)) == (
        False,
        "parameter 'gains' must lie between 0 and inf, not -1.0",
    )
    assert "one of a, b" in put(gain=1.0, mode="c")[1]
    assert len(taken) == 1 and node.get_parameter("gain").value == 3.0
    assert node.get_parameter("gains").value == []
    assert put(gain=3.0) == (True, "")  # nothing changes
    assert put(gains=(1.0, 2.0)) == (True, "")
    assert taken[1:] == [Live(gain=3.0, mode="b", gains=(1.0, 2.0))]
    assert put(gains=[3, 4]) == (True, "")  # and these, as it sends [3, 4]
    assert list(node.get_parameter("gains").value) == [3.0, 4.0]
    nothing = Parameter("gains", Parameter.Type.BOOL_ARRAY, [])  # and [] as that
    assert node.set_parameters([nothing])[0].successful
    assert [one.gains for one in taken[2:]] == [(3.0, 4.0), ()]
    assert not put(gains=("a",))[0] and not put(gains=(True,))[0]


def test_live_parameters_need_no_callbacks_that_humble_lacks(make_node, monkeypatch):
    for when in ("pre", "post"):
        monkeypatch.delattr(Node, f"add_{when}_set_parameters_callback")
    node, taken = make_node(), []
    bridge.follow(node, bridge.declare(node, Live), taken.append)
    given = [Parameter("gain", value=3.0), Parameter("mode", value="b")]
    assert node.set_parameters_atomically(given).successful
    refused = node.set_parameters_atomically([Parameter("gain", value=99.0)])
    assert not refused.successful and taken == [Live(gain=3.0, mode="b")]


@pytest.mark.parametrize("name", write_config.FILES)
def test_the_yaml_files_are_those_of_the_definition(make_node, repository: Path, name: str):
    path = repository / "config" / name
    text = path.read_text(encoding="utf-8")
    assert text == write_config.contents(name), write_config.__doc__
    config = write_config.FILES[name]
    taken = bridge.declare(make_node("--params-file", str(path)), type(config))
    assert to_flat(taken) == to_flat(config)


def test_a_file_for_another_node_is_told(make_node, tmp_path, capfd):
    params = tmp_path / "params.yaml"
    params.write_text("other:\n  ros__parameters: {kind: b}\n")
    given = ("--params-file", str(params))
    assert bridge.declare(make_node(*given), Config, given) == Config()
    said = capfd.readouterr().err
    assert "sets parameters for /other and none for this node, /tested" in said


def test_an_unknown_key_for_every_node_is_told_and_one_for_this_node_refused(
    make_node, tmp_path, capfd
):
    params = tmp_path / "params.yaml"
    params.write_text("/**:\n  ros__parameters: {kind: b, of_another: 1, inner: {size: 2}}\n")
    given = ("--params-file", str(params))
    assert bridge.declare(make_node(*given), Config, given) == Config(kind="b")
    said = capfd.readouterr().err
    assert "this one does not have: inner.size" in said and "of_another" in said
    params.write_text("/tested:\n  ros__parameters: {of_another: 1}\n")
    with pytest.raises(ConfigurationError, match="of_another"):
        bridge.declare(make_node(*given), Config, given)
