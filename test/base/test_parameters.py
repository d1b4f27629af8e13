"""One definition of each parameter, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from write_config import NODES

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.parameters import (
    from_flat,
    group,
    parameter,
    parameters,
    replace,
    to_flat,
)


@dataclass(frozen=True)
class Inner:
    rate: float = parameter(2.0, "a rate", unit="Hz", low=0.0, high=10.0)
    count: int = parameter(3, "a count", low=1)


@dataclass(frozen=True)
class Outer:
    inner: Inner = group(Inner)
    flat: Inner = group(Inner, inline=True)
    kind: str = parameter("a", "a kind", choices=("a", "b"))
    on: bool = parameter(True, "a switch")
    names: tuple[str, ...] = parameter((), "names")
    point: tuple[float, ...] = parameter((0.0, 1.0), "a point", high=5.0)


def test_names_are_dotted_and_inline_groups_have_no_prefix() -> None:
    names = [entry.name for entry in parameters(Outer)]
    assert names == [
        "inner.rate", "inner.count", "rate", "count", "kind", "on", "names", "point",
    ]  # fmt: skip


def test_values_survive_the_way_to_flat_names_and_back() -> None:
    values = {"inner.rate": 5, "count": 7, "kind": "b", "names": ["x"], "point": np.arange(2)}
    config = from_flat(Outer, values)
    assert config.inner == Inner(rate=5.0)
    assert config.flat == Inner(count=7)
    assert config.names == ("x",)
    assert config.point == (0.0, 1.0)
    assert from_flat(Outer, to_flat(config)) == config
    assert replace(config, inner__rate=1.0).inner.rate == 1.0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"inner.rat": 1.0}, "there is no parameter 'inner.rat'; did you mean 'inner.rate'?"),
        ({"inner.rate": 11.0}, "'inner.rate' must lie between 0 and 10 Hz, not 11.0"),
        ({"inner.rate": float("nan")}, "must lie between"),
        ({"inner.rate": "fast"}, "'inner.rate' must be a number, not 'fast'"),
        ({"inner.rate": True}, "must be a number"),
        ({"count": 2.5}, "'count' must be a whole number, not 2.5"),
        ({"inner.rate": 10**400}, "'inner.rate' must be a number, not 10000"),
        ({"count": 0}, "must lie between 1 and inf"),
        ({"kind": "c"}, "'kind' must be one of a, b, not 'c'"),
        ({"on": 1}, "'on' must be true or false, not 1"),
        ({"names": "x"}, "'names' must be a list of strings, not 'x'"),
        ({"point": [1.0, 6.0]}, "'point' must lie between"),
        ({"point": {"a": 1}}, "'point' must be a list of numbers"),
    ],
)
def test_what_is_wrong_is_said(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message.replace("?", r"\?")):
        from_flat(Outer, values)


@pytest.mark.parametrize("kind", NODES.values(), ids=list(NODES))
def test_what_a_node_still_has_is_not_refused_as_removed(kind: type) -> None:
    values = {entry.name: entry.default for entry in parameters(kind)}
    assert to_flat(from_flat(kind, values, internal=False)) == to_flat(kind())
