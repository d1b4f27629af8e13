"""What is tried, stage after stage; the configured value is always among it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from semiparam_dynamics.dynamics.estimator import EstimatorConfig
from semiparam_dynamics.parameters import to_flat
from semiparam_dynamics.tuning.task import is_kept


@dataclass(frozen=True)
class Grid:
    """A stage's candidates: every combination of `outer`, each with all penalties and sizes."""

    stage: str  # also the name of the function in `screening` that judges them
    outer: Mapping[str, Sequence[float]]
    penalty: str  # the parameters that one pass gives all values of
    penalties: Sequence[float]
    size: str
    sizes: Sequence[int]

    def combinations(self) -> list[dict[str, float]]:
        """Settings of the outer parameters."""
        return [
            dict(zip(self.outer, values, strict=True)) for values in product(*self.outer.values())
        ]

    @property
    def count(self) -> int:
        """Candidates."""
        return len(self.combinations()) * len(self.penalties) * len(self.sizes)

    def restricted(self, config: EstimatorConfig, keep: Sequence[str]) -> Grid:
        """With only the configured value of parameters in `keep`, by name or by group."""

        def values(name: str, tried: Sequence[float]) -> list[float]:
            own = value_of(config, name)
            if is_kept(name, keep):
                return [own]
            return sorted({own, *tried})

        return Grid(
            self.stage,
            {name: values(name, tried) for name, tried in self.outer.items()},
            self.penalty,
            values(self.penalty, self.penalties),
            self.size,
            [int(v) for v in values(self.size, self.sizes)],
        )


def value_of(config: object, name: str) -> float:
    """A number among a configuration's parameters."""
    value = to_flat(config)[name]
    assert isinstance(value, (int, float))
    return value


SHARED = Grid(
    "nystrom",
    {
        "nystrom.length_scale": (0.1, 0.14, 0.2, 0.28, 0.4, 0.56),
        "nystrom.novelty": (0.3, 0.5),
    },
    "nystrom.penalty",
    (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0),
    "nystrom.max_centers",
    (100, 200, 500),
)
JOINTS = Grid(
    "joints",
    {"nystrom.joint_length_scale": (0.05, 0.1, 0.2, 0.4)},
    "nystrom.joint_penalty",
    (25.0, 50.0, 100.0, 200.0),
    "nystrom.joint_max_centers",
    (0, 50, 200),
)
FOURIER = Grid(
    "fourier",
    {"random_fourier.length_scale": (0.3, 0.5, 0.7, 1.0, 1.4, 2.0)},
    "random_fourier.penalty",
    (1.0, 5.0, 25.0, 125.0, 600.0),
    "random_fourier.n_features",
    (200, 500),
)


def group_grid(config: EstimatorConfig, name: str) -> Grid:
    """One group's own width, narrower and wider, with the neighbouring penalties."""
    kind = name.partition(".")[0]
    penalty, size = f"{kind}.penalty", f"{kind}." + SIZES[kind]
    about, width = value_of(config, penalty), value_of(config, name)
    return Grid(
        "nystrom" if kind == "nystrom" else "fourier",
        {name: [width * factor for factor in (0.5, 0.7, 1.4, 2.0)]},
        penalty,
        [about / 2.0, about, 2.0 * about],
        size,
        [int(value_of(config, size))],
    )


SIZES = {"nystrom": "max_centers", "random_fourier": "n_features"}
GROUP_WIDTHS = {
    "nystrom": ("position_width", "velocity_width", "rigid_body_width"),
    "random_fourier": (
        "position_width",
        "velocity_width",
        "acceleration_width",
        "rigid_body_width",
    ),
}
