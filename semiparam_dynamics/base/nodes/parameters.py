"""From the one definition of every parameter to ROS parameters, and back to a configuration."""

from __future__ import annotations

import math
import sys
import typing
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.exceptions import NameValidationException, ParameterNotDeclaredException
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter
from rclpy.validate_topic_name import validate_topic_name

from semiparam_dynamics.base.config_files import ROS_PARAMETERS, applies, parameter_names
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.parameters import (
    Parameter,
    from_flat,
    hint,
    parameters,
    replacement,
    to_flat,
)

C = TypeVar("C")
QOS_PREFIX = "qos_overrides."  # of keys that rclpy declares itself, like ROS_PARAMETERS
INT64 = 2**63
AT_START = "is read when the node starts: set it in the node's YAML, and start the node again"
LISTS = tuple(kind for kind in RosParameter.Type if kind.name.endswith("ARRAY"))


def declare(node: Node, config_type: type[C], arguments: Sequence[str] | None = None) -> C:
    """Declare every parameter of `config_type` on the node; return the configuration as given.

    Given is what the command line, the parameter files and the node's `parameter_overrides` set for
    this node. A whole number for a real one is accepted, which rclpy alone refuses. Logged are
    parameter files of which nothing is for this node, and unknown keys that a file sets for every
    node. What is set later is answered with the same sentences where it is unknown, and with one
    where it is not live; whole numbers are then accepted for real ones, and an empty list of any
    type. Not in Humble, which has no callback for it.

    arguments: the process' command line; None: as it was started.

    Raises ConfigurationError for any other unknown key, which rclpy would ignore without a warning,
    and for a value of the wrong type or outside its range.
    """
    # Not automatically_declare_parameters_from_overrides, which fails at an empty list: that has
    # neither a type nor a value.
    with node.handle:
        overrides = node.handle.get_parameters(RosParameter)
    overrides |= getattr(node, "_parameter_overrides", {})  # those of its constructor, too
    given = {
        name: () if override.value is None else override.value
        for name, override in overrides.items()
        if _is_own(name)
    }
    log, known = node.get_logger(), {entry.name for entry in parameters(config_type)}
    shared: set[str] = set()
    for path, found in _files(sys.argv if arguments is None else arguments):
        own = {one: names for one, names in found.items() if applies(one, _full_name(node))}
        if found and not own:
            log.warning(
                f"{path} sets parameters for {', '.join(sorted(found))} and none for this node, "
                f"{_full_name(node)}: with /** in place of the name they are for every node"
            )
        shared.update(*(names for pattern, names in own.items() if "*" in pattern))
    if foreign := sorted(n for n in set(given) & shared - known if not replacement(config_type, n)):
        listed = ", ".join(name + hint(name, known) for name in foreign)
        log.warning(f"parameters for every node that this one does not have: {listed}")
    wanted = {k: v for k, v in given.items() if k not in foreign}
    config = from_flat(config_type, wanted, internal=False)
    values = to_flat(config)
    for parameter in parameters(config_type):
        kind = ros_type(parameter)
        # Declared by type and set afterwards: rclpy takes an empty list for a list of bytes.
        node.declare_parameter(parameter.name, kind, ParameterDescriptor(), ignore_override=True)
        value: Any = values[parameter.name]
        value = list(value) if isinstance(value, tuple) else value
        node.set_parameters([RosParameter(parameter.name, kind, value)])
        node.set_descriptor(parameter.name, descriptor(parameter))
    if hasattr(node, "add_pre_set_parameters_callback"):  # not Humble
        node.add_pre_set_parameters_callback(partial(_to_be_set, config_type))
    return config


def check_name(node: Node, parameter: str, name: str) -> str:
    """A parameter's value that names another node or a service.

    Raises ConfigurationError where ROS cannot take it, which would show as a traceback as soon
    as a topic of that name is subscribed.
    """
    try:
        validate_topic_name(name)
        node.resolve_topic_name(name)
    except (NameValidationException, RuntimeError) as error:  # RCLError has no public name
        told = " ".join(str(error).split()).partition("topic name ")[2].partition(", at /")[0]
        why = told.partition(": '")[0] or "is what ROS takes"
        raise ConfigurationError(f"{parameter}: '{name}' is no name in ROS: a name {why}") from None
    return name


def _files(arguments: Sequence[str]) -> Iterator[tuple[str, dict[str, set[str]]]]:
    """Each readable parameter file of a command line, with its names by section."""
    for flag, path in pairwise(arguments):
        if flag == "--params-file":
            with suppress(ConfigurationError):  # rclpy itself reports what it can't read
                yield path, parameter_names(path)


def _full_name(node: Node) -> str:
    name: str = node.get_fully_qualified_name()
    return name


def _is_own(name: str) -> bool:
    """Test whether a parameter is not one that rclpy declares itself."""
    return name not in ROS_PARAMETERS and not name.startswith(QOS_PREFIX)


class _RefusedError(ParameterNotDeclaredException):  # type: ignore[misc]
    """A reason that is answered as it is: what rclpy catches before a parameter is looked up."""

    def __init__(self, reason: str) -> None:
        Exception.__init__(self, reason)


def _to_be_set(config_type: type, given: list[RosParameter]) -> list[RosParameter]:
    """Values set after the start, in the parameters' own types. Raises _RefusedError."""
    known = {parameter.name: parameter for parameter in parameters(config_type)}
    unknown = {one.name: "" for one in given if one.name not in known and _is_own(one.name)}
    try:
        from_flat(config_type, unknown, internal=False)
    except ConfigurationError as error:
        raise _RefusedError(str(error)) from None
    for one in given:
        if one.name in known and not known[one.name].live:
            raise _RefusedError(f"{one.name} {AT_START}")
    return [in_own_type(one, known[one.name]) if one.name in known else one for one in given]


def follow(
    node: Node,
    config: C,
    changed: Callable[[C], None],
    refuse: Callable[[C], None] = lambda config: None,
) -> None:
    """Let the parameters marked `live` be set while the node runs; call `changed` when they were.

    Parameters set together are checked together, by the rules and with the sentences of the start.
    `changed` gets the whole configuration.

    config: the one returned by `declare` for this node.
    refuse: raises ConfigurationError for a configuration that the node can't continue with.
    """
    known = {parameter.name: parameter for parameter in parameters(type(config))}
    current = config

    def changes(given: list[RosParameter]) -> C:
        values = {one.name: one.value for one in given if one.name in known}
        return from_flat(type(config), {**to_flat(current), **values})

    def check(given: list[RosParameter]) -> SetParametersResult:
        try:
            refuse(changes(given))
        except ConfigurationError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def take(given: list[RosParameter]) -> None:
        nonlocal current
        before, current = current, changes(given)
        if current != before:
            changed(current)

    def check_and_take(given: list[RosParameter]) -> SetParametersResult:
        result = check(given)
        if result.successful:
            take(given)
        return result

    if not hasattr(node, "add_post_set_parameters_callback"):  # Humble
        node.add_on_set_parameters_callback(check_and_take)
        return
    node.add_on_set_parameters_callback(check)
    node.add_post_set_parameters_callback(take)


def in_own_type(given: RosParameter, parameter: Parameter) -> RosParameter:
    """A value that was given with the parameter's type, where that is one of the same numbers.

    `ros2 param set` sends [2, 3] as whole numbers, and [] as a list of booleans.
    """
    kind, types = ros_type(parameter), RosParameter.Type
    if (kind, given.type_) == (types.DOUBLE, types.INTEGER):
        return RosParameter(given.name, kind, float(given.value))
    if (kind, given.type_) == (types.DOUBLE_ARRAY, types.INTEGER_ARRAY):
        return RosParameter(given.name, kind, [float(number) for number in given.value])
    if kind in LISTS and given.type_ in LISTS and not len(given.value):
        return RosParameter(given.name, kind, [])
    return given


def descriptor(parameter: Parameter) -> ParameterDescriptor:
    """The ROS descriptor: type, description with unit, range, choices, read-only unless live."""
    unit = f" [{parameter.unit}]" if parameter.unit else ""
    described = ParameterDescriptor(
        name=parameter.name,
        type=ros_type(parameter).value,
        description=parameter.description + unit,
        read_only=not parameter.live,
    )
    if parameter.choices:
        described.additional_constraints = f"one of {', '.join(parameter.choices)}"
    if parameter.low is None and parameter.high is None:
        return described
    low = -math.inf if parameter.low is None else parameter.low
    high = math.inf if parameter.high is None else parameter.high
    if parameter.type is float:
        described.floating_point_range = [
            FloatingPointRange(from_value=float(low), to_value=float(high))
        ]
    elif parameter.type is int:
        described.integer_range = [
            IntegerRange(from_value=int(max(low, -INT64)), to_value=int(min(high, INT64 - 1)))
        ]
    else:
        described.additional_constraints = f"each from {low:g} to {high:g}"
    return described


def ros_type(parameter: Parameter) -> RosParameter.Type:
    """The ROS type of a parameter."""
    kind = parameter.type
    if typing.get_origin(kind) is tuple:
        strings = typing.get_args(kind)[0] is str
        return RosParameter.Type.STRING_ARRAY if strings else RosParameter.Type.DOUBLE_ARRAY
    types = RosParameter.Type
    plain = {bool: types.BOOL, int: types.INTEGER, float: types.DOUBLE, str: types.STRING}
    return plain[kind]
