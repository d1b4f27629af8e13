"""The one definition of every parameter.

A stage's configuration is a frozen dataclass whose fields are made with :func:`parameter` and
:func:`group`. From that single definition come the dataclass itself, the YAML files, the ROS
descriptors, the command-line flags and the documentation's tables. Nested groups give dotted
names (``filter.cutoff``); a group marked ``inline`` adds its fields without a prefix.

An unknown name is refused with the known one that is most like it, or, where it was given up, with
what replaces it.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError

C = TypeVar("C")
# Parameters that are nowhere any more, by the end of their dotted names, with what replaces them.
REMOVED = {
    "rigid_body.penalty": "how far parameters may be from the URDF's follows from the data",
    "rigid_body.forgetting": "a memory forgets what newer motion shows again",
    "error_horizon": "standard deviations always follow the last 20 s",
    "random_fourier.memory": "a residual that forgets is `nystrom`, see `nystrom.memory`",
    "nystrom.joint_penalty": "a joint's kernel and its ridge follow from the data",
    "nystrom.joint_length_scale": "a joint's kernel and its ridge follow from the data",
    "nystrom.joint_max_centers": "each joint's kernel has at most `nystrom.wide_max_centers`",
    **dict.fromkeys(
        ("trust.memory", "trust.threshold", "trust.learning"),
        "the residual always counts in full",
    ),
    **dict.fromkeys(
        ("position_width", "velocity_width", "acceleration_width", "rigid_body_width"),
        "inputs are standardized; `length_scale` is the width of all",
    ),
    "agreeing": "three estimates in a row must agree",
    "quiet": "an estimate counts as settled after 1.5 s without a newer one",
    "step_period": "steps are 0.2 s apart at least; step_share bounds each",
    "pair_tolerance": "wrenches are paired by interpolation within samples.pair_wait",
    "autoload": "`model_file` is always resumed from; name another one to begin anew",
    "real_bodies": "~/inertial_parameters are always the nearest that bodies can have",
    "clock_jump": "stamps that go back by over 1 s are a restarted clock",
    "saturation_share": "name the limits themselves, `samples.saturation`",
    "filter.prefilter_ratio": "the low-pass before differences follows `filter.cutoff`, times 4",
    "changes.false_alarms": "a false alarm is expected every ten hours",
    "changes.payload_mass": "payloads of any mass are estimated",
    "changes.payload_reach": "it is 0.3 m, from `changes.payload_link`",
    "changes.friction": "`changes.detect` includes friction",
    "changes.offset": "`changes.detect` includes offsets",
    "prototypes": "teach each object by pictures, or by vectors on `features` (input: features)",
    "features": "the node's classifier is linear; in Python IncrementalRLSC(features=...) is not",
    "new_classes_per_second": "`max_classes` bounds the objects that a teacher may name",
    "friction_presliding": "the simulated friction is Coulomb's, Stribeck's and viscous",
    "presliding_way": "the simulated friction is Coulomb's, Stribeck's and viscous",
    "search.objective": "the condition number is minimised",
    "damping_ratio": "the feedback is critically damped",
    "approach_speed": "joints come to the motion's beginning at 0.5 rad/s at most",
    "follow": "the estimate is given 3 s to follow a change of the driver's load",
}
Value = bool | int | float | str | tuple[str, ...] | tuple[float, ...]
_hints: Callable[[Any], dict[str, Any]] = functools.cache(typing.get_type_hints)  # from text: ms


@dataclasses.dataclass(frozen=True)
class Parameter:
    """The definition of one parameter: enough to check it, describe it and declare it."""

    name: str
    type: Any
    default: Value
    description: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    live: bool = False
    basic: bool = False
    internal: str = ""

    def check(self, value: object) -> Value:
        """Return `value` in the parameter's type; raise ConfigurationError where it can't be."""
        try:
            checked = _coerce(self.type, value)
        except (TypeError, ValueError, OverflowError):
            raise ConfigurationError(
                f"parameter '{self.name}' must be {_type_name(self.type)}, not {_told(value)}"
            ) from None
        if self.choices and checked not in self.choices:
            raise ConfigurationError(
                f"parameter '{self.name}' must be one of {', '.join(self.choices)}, not "
                f"{_told(value)}"
            )
        for number in checked if isinstance(checked, tuple) else (checked,):
            if isinstance(number, (int, float)) and not isinstance(number, bool):
                self._check_range(number)
        return checked

    def _check_range(self, number: float) -> None:
        below = self.low is not None and number < self.low
        above = self.high is not None and number > self.high
        if not math.isfinite(number) or below or above:
            low = "-inf" if self.low is None else f"{self.low:g}"
            high = "inf" if self.high is None else f"{self.high:g}"
            unit = f" {self.unit}" if self.unit else ""
            raise ConfigurationError(
                f"parameter '{self.name}' must lie between {low} and {high}{unit}, not "
                f"{_told(number)}"
            )


def _told(value: object) -> str:
    try:
        return repr(value)
    except ValueError:  # Python writes no whole number of more than 4300 digits
        return "a number of thousands of digits"


def parameter(
    default: Any,
    description: str,
    *,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    choices: Sequence[str] = (),
    live: bool = False,
    basic: bool = False,
    internal: str = "",
) -> Any:
    """Make a dataclass field that is a parameter.

    live : may be changed while a node runs. basic : one of the few that most users set; the others
    suit most robots as they are. internal : not empty for a constant for which no robot is
    known to need another value: studies may change it in Python, but a file, command or node that
    sets it is refused with this sentence, on what holds or what to set instead.
    """
    about = {
        "description": description,
        "unit": unit,
        "low": low,
        "high": high,
        "choices": tuple(choices),
        "live": live,
        "basic": basic,
        "internal": internal,
    }
    return dataclasses.field(default=default, metadata={"parameter": about})


def group(config_type: type[C], *, inline: bool = False) -> C:
    """Make a dataclass field that is a group of parameters, with or without a name prefix."""
    field: Any = dataclasses.field(default_factory=config_type, metadata={"inline": inline})
    return typing.cast(C, field)


def parameters(config_type: type, *, internal: bool = False) -> list[Parameter]:
    """All parameters of a configuration class, groups flattened, in the order of definition.

    internal : also those that are internal.
    """
    return [entry for entry, _ in _walk(config_type) if internal or not entry.internal]


def from_flat(config_type: type[C], values: Mapping[str, object], *, internal: bool = True) -> C:
    """Build a configuration from dotted names.

    internal : whether internal parameters may be set; not by what a user writes.
    Raises ConfigurationError for unknown names, with a suggestion, and for values that don't fit.
    """
    known = {entry.name: entry for entry in parameters(config_type, internal=internal)}
    if unknown := [name for name in values if name not in known]:
        name = unknown[0]
        if sentence := replacement(config_type, name):
            raise ConfigurationError(f"parameter '{name}' was removed: {sentence}")
        raise ConfigurationError(f"there is no parameter '{name}'{hint(name, known)}")
    checked = {name: known[name].check(value) for name, value in values.items()}
    config = config_type()
    for entry, path in _walk(config_type):
        if (value := checked.get(entry.name, entry.default)) != entry.default:
            config = _changed(config, path, value)
    return config


def hint(name: str, known: Iterable[str]) -> str:
    """The question whether a known name was meant, to be put behind an unknown one; or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean '{close[0]}'?" if close else ""


def replacement(config_type: type, name: str) -> str:
    """Return the sentence on what replaces a parameter that was given up; empty for another."""
    internal = {entry.name: entry.internal for entry in parameters(config_type, internal=True)}
    removed = (why for end, why in REMOVED.items() if f".{name}".endswith(f".{end}"))
    return internal.get(name) or next(removed, "")


def to_flat(config: object) -> dict[str, Value]:
    """The configuration's values under their dotted names, in the order of definition."""
    flat: dict[str, Value] = {}
    for entry, path in _walk(type(config)):
        value: Any = config
        for attribute in path:
            value = getattr(value, attribute)
        flat[entry.name] = value
    return flat


def replace(config: C, **changes: object) -> C:
    """Return `config` with some parameters (dotted names, ``__`` for the dot) changed, checked."""
    named = {name.replace("__", "."): value for name, value in changes.items()}
    return from_flat(type(config), {**to_flat(config), **named})


def one_or_each(name: str, given: Sequence[float], count: int, of: str = "axes") -> Array:
    """(count,) one number for all, or one for each of the `count` joints or axes (`of`).

    Raises ConfigurationError, which names the parameter, where `given` has another length.
    """
    if len(given) not in (1, count):
        raise ConfigurationError(
            f"parameter '{name}' needs one number, or one for each of the {count} {of}, "
            f"not {len(given)}"
        )
    return np.broadcast_to(np.asarray(given, dtype=np.float64), (count,)).copy()


def _walk(config_type: type, prefix: str = "") -> Iterator[tuple[Parameter, tuple[str, ...]]]:
    for field in dataclasses.fields(config_type):
        kind = _hints(config_type)[field.name]
        if "parameter" in field.metadata:
            about = field.metadata["parameter"]
            default = typing.cast(Value, field.default)
            yield Parameter(prefix + field.name, kind, default, **about), (field.name,)
        elif "inline" in field.metadata:
            inner = prefix if field.metadata["inline"] else f"{prefix}{field.name}."
            for entry, path in _walk(kind, inner):
                yield entry, (field.name, *path)


def _changed(config: Any, path: Sequence[str], value: Value) -> Any:
    """A configuration with another value of the field at the end of a path of fields."""
    first, *rest = path
    inner = _changed(getattr(config, first), rest, value) if rest else value
    return dataclasses.replace(config, **{first: inner})


def _coerce(kind: Any, value: object) -> Value:
    if typing.get_origin(kind) is tuple:
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            _refuse()
        item = typing.get_args(kind)[0]
        return tuple(_coerce(item, entry) for entry in value)  # type: ignore[return-value]
    if kind is bool:
        return value if isinstance(value, bool) else _refuse()
    if kind is str:
        return value if isinstance(value, str) else _refuse()
    if isinstance(value, (bool, str)):
        _refuse()
    number = float(value)  # type: ignore[arg-type]
    if kind is int:
        return int(number) if number.is_integer() else _refuse()
    return number


def _refuse() -> typing.NoReturn:
    raise TypeError


def _type_name(kind: Any) -> str:
    if typing.get_origin(kind) is tuple:
        return f"a list of {'strings' if typing.get_args(kind)[0] is str else 'numbers'}"
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}
    return names[kind]
