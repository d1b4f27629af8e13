"""Launch files of this package: arguments that several have, and settings of all their nodes.

Needs ROS 2's launch alone: the Python that runs a launch may have nothing that the nodes need.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from launch import LaunchContext, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, Shutdown
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.substitutions import FindPackageShare

PACKAGE = "semiparam_dynamics"
SWITCH = ("true", "false")  # choices of an argument that is given as a boolean
LEVELS = ("debug", "info", "warn", "error", "fatal")


def argument(
    name: str, default: Any, meaning: str, choices: Sequence[str] | None = None
) -> DeclareLaunchArgument:
    """An argument with its default, description and choices."""
    allowed = None if choices is None else list(choices)
    return DeclareLaunchArgument(name, default_value=default, description=meaning, choices=allowed)


def params_file(file: str, whose: str = "its", prefix: str = "") -> DeclareLaunchArgument:
    """The argument `params_file`, whose default is a file of the folder config."""
    place = PathJoinSubstitution([FindPackageShare(PACKAGE), "config", file])
    return argument(f"{prefix}params_file", place, f"YAML file of {whose} parameters")


def namespace_and_level(namespace: str = "the node's namespace") -> list[DeclareLaunchArgument]:
    """The arguments `namespace`, with its meaning, and `log_level`."""
    level = argument("log_level", "info", "lowest level of the log messages shown", LEVELS)
    return [argument("namespace", "", namespace), level]


def managed(name: str, topics: Sequence[str]) -> list[DeclareLaunchArgument]:
    """The arguments of a node that learns: those above, its name, time and topics."""
    clock = (
        "take the time from /clock (a simulator, a bag player; empty: as in params_file)",
        ("", *SWITCH),
    )
    return [
        params_file(f"{name}.yaml"),
        argument("name", name, "the node's name"),
        *namespace_and_level(),
        argument("use_sim_time", "", *clock),
        *(argument(topic, topic, f"topic to take {topic} from") for topic in topics),
    ]


def optional(
    meanings: Mapping[str, str], choices: Mapping[str, Sequence[str]]
) -> list[DeclareLaunchArgument]:
    """Arguments for parameters that are as params_file has them where they are left empty."""
    return [
        argument(
            name,
            "",
            f"{meaning} (empty: as in params_file)",
            ("", *choices[name]) if name in choices else None,
        )
        for name, meaning in meanings.items()
    ]


def given(
    context: LaunchContext, names: Iterable[str], choices: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """The parameters of these names that were not left empty, see :func:`optional`."""
    texts = {name: LaunchConfiguration(name).perform(context) for name in names}
    return {
        name: text == "true" if choices.get(name) == SWITCH else text
        for name, text in texts.items()
        if text
    }


def settings(prefix: str | None = "") -> dict[str, Any]:
    """The arguments of a `Node`; prefix: of its params_file, None: it has none."""
    # A file that is not there is refused by the node, where it comes as an argument of ROS.
    file = [] if prefix is None else ["--params-file", LaunchConfiguration(f"{prefix}params_file")]
    return {
        "package": PACKAGE,
        "namespace": LaunchConfiguration("namespace"),
        "ros_arguments": [*file, "--log-level", LaunchConfiguration("log_level")],
        "output": "both",
        "emulate_tty": True,
    }


def included(file: str, **arguments: str) -> IncludeLaunchDescription:
    """Another launch file of the package, which takes all arguments of the one that has it."""
    place = PathJoinSubstitution([FindPackageShare(PACKAGE), "launch", file])
    return IncludeLaunchDescription(place, launch_arguments=arguments.items())


def end(event: ProcessExited, context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Shut down, unless that is why a process has ended: a second time would be an error."""
    return [] if context.is_shutdown else [Shutdown(reason=f"{event.process_name} has ended")]
