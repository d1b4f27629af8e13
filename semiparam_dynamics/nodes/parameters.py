"""From the one definition of every parameter to ROS parameters, and back to a configuration."""

from __future__ import annotations

import math
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
)
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from semiparam_dynamics.parameters import Parameter, Value, from_flat, parameters, to_flat

C = TypeVar("C")
# Keys that rclpy itself understands besides those that a node declares.
RCLPY_KEYS = ("use_sim_time", "start_type_description_service")
RCLPY_PREFIXES = ("qos_overrides.",)
INT64 = 2**63


def declare(node: Node, config_type: type[C]) -> C:
    """Declare every parameter of `config_type` on the node; return the configuration as given.

    A whole number given for a real one is taken as one, which plain rclpy refuses.

    Raises ConfigurationError for a key that nothing declares, which rclpy would ignore in silence,
    and for a value of the wrong type or outside its range.
    """
    given = {name: value for name, value in overrides(node).items() if not _is_rclpys(name)}
    config = from_flat(config_type, given)
    values = to_flat(config)
    for parameter in parameters(config_type):
        kind = ros_type(parameter)
        # Declared by type and set afterwards: rclpy takes an empty list for a list of bytes.
        node.declare_parameter(parameter.name, kind, ParameterDescriptor(), ignore_override=True)
        node.set_parameters([RosParameter(parameter.name, kind, ros_value(values[parameter.name]))])
        node.set_descriptor(parameter.name, descriptor(parameter))
    return config


def overrides(node: Node) -> dict[str, object]:
    """What the command line and the parameter files set for this node, declared or not."""
    # rclpy keeps no public record of it. An empty list arrives without a type and value.
    given: Mapping[str, RosParameter] = node._parameter_overrides
    return {name: () if entry.value is None else entry.value for name, entry in given.items()}


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


def ros_value(value: Value) -> Any:
    """A parameter's value as ROS wants it: lists for tuples."""
    return list(value) if isinstance(value, tuple) else value


def _is_rclpys(name: str) -> bool:
    return name in RCLPY_KEYS or name.startswith(RCLPY_PREFIXES)
