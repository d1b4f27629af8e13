"""The residual's hyperparameters, stage after stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from semiparam_dynamics.dynamics.estimator import EstimatorConfig
from semiparam_dynamics.parameters import Value, replace, to_flat
from semiparam_dynamics.tuning import screening
from semiparam_dynamics.tuning.candidates import Outcome, Step, choose
from semiparam_dynamics.tuning.folds import Fold
from semiparam_dynamics.tuning.task import Task, is_kept
from semiparam_dynamics.tuning.work import pack_scores, unpack_scores

# -------------------------------------------------------------------------------------------------
# What is tried, stage after stage; the configured value is always among it.


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
    {"nystrom.joint_length_scale": tuple(0.1414213562373095 * k for k in (0.5, 1.0, 2.0, 4.0))},
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


SIMPLER = 0.03  # a smaller or more regularised candidate may be worse by this share
SCREENS = {
    "nystrom": screening.screen_nystrom,
    "joints": screening.screen_joints,
    "fourier": screening.screen_fourier,
}


@dataclass(frozen=True)
class ResidualChoice:
    """Chooses on folds; `about` is all that the folds themselves depend on."""

    task: Task
    folds: list[Fold]
    about: dict[str, Value]

    def choose(self, config: EstimatorConfig) -> tuple[Outcome, EstimatorConfig]:
        """The best of both kinds of features, and the configuration with it."""
        kinds = [config.residual] if self.task.kept("residual") else ["nystrom", "random_fourier"]
        window = getattr(config, config.residual).window
        best: list[tuple[Outcome, EstimatorConfig]] = []
        for kind in kinds:
            # One window for both kinds: the folds are standardised by it.
            tried = replace(config, residual=kind, **{f"{kind}.window": window})
            if kind == "nystrom":
                outcome, tried = self._grid("local features", SHARED, tried)
            else:
                outcome, tried = self._grid("random Fourier features", FOURIER, tried)
            outcome, tried = self._groups(kind, outcome, tried)
            if kind == "nystrom" and self.task.recordings.arm.target == "effort":
                outcome, tried = self._grid("each joint's own level", JOINTS, tried)
            best.append((outcome, tried))
        chosen = choose([outcome for outcome, _ in best], None, self.task.criterion)
        return next((o, c) for o, c in best if o is chosen)

    def _groups(
        self, kind: str, best: Outcome, config: EstimatorConfig
    ) -> tuple[Outcome, EstimatorConfig]:
        for group in GROUP_WIDTHS[kind]:
            name = f"{kind}.{group}"
            if self.task.kept(name):
                continue
            title = f"own width: {group.removesuffix('_width').replace('_', ' ')}"
            outcome, tried = self._grid(title, group_grid(config, name), config)
            best, config = outcome, tried
        return best, config

    def _grid(
        self, title: str, grid: Grid, config: EstimatorConfig
    ) -> tuple[Outcome, EstimatorConfig]:
        grid = grid.restricted(config, self.task.keep)
        combinations = grid.combinations()
        function = SCREENS[grid.stage]
        tasks = []
        for settings in combinations:
            tried = replace(config, **settings)
            for fold in self.folds:
                names = (fold.name, to_flat(tried), self.about, grid.penalties, grid.sizes)
                tasks.append(((fold, tried, grid.penalties, grid.sizes), names))
        found = self.task.work(function, tasks, pack_scores, unpack_scores, self.task.stage(title))
        outcomes = []
        for k, settings in enumerate(combinations):
            scores = found[k * len(self.folds) : (k + 1) * len(self.folds)]
            for penalty, size in scores[0]:
                both = {grid.penalty: penalty, grid.size: size}
                outcomes.append(
                    Outcome({**settings, **both}, tuple(s[penalty, size] for s in scores))
                )
        # The configured one, with the ridge and the size that it has now.
        named = [*grid.outer, grid.penalty, grid.size]
        mine = {name: value_of(config, name) for name in named}
        own = next(o for o in outcomes if o.settings == mine)
        chosen = choose(outcomes, own, self.task.criterion)
        if chosen is not own:
            chosen = _simplest(chosen, own, outcomes, grid)
        self.task.tuning.steps.append(Step(title, tuple(outcomes), chosen))
        self.task.tuning.candidates += grid.count
        return chosen, replace(config, **chosen.settings)

    def screened(self, config: EstimatorConfig) -> Outcome:
        """A whole configuration, screened."""
        flat = to_flat(config)
        two_levels = config.residual == "nystrom" and self.task.recordings.arm.target == "effort"
        stage = "joints" if two_levels else config.residual.removeprefix("random_")
        group = "nystrom.joint_" if two_levels else f"{config.residual}."
        size = f"{group}{'max_centers' if two_levels else SIZES[config.residual]}"
        penalty = value_of(config, f"{group}penalty")
        key = (penalty, int(value_of(config, size)))
        tasks = [
            ((f, config, [key[0]], [key[1]]), (f.name, flat, self.about, [key[0]], [key[1]]))
            for f in self.folds
        ]
        found = self.task.work(SCREENS[stage], tasks, pack_scores, unpack_scores)
        return Outcome({}, tuple(scores[key] for scores in found))


def _simplest(best: Outcome, own: Outcome, outcomes: Sequence[Outcome], grid: Grid) -> Outcome:
    """Nearly as good as the best, with fewer features, or else with a larger ridge."""
    alike = [
        o
        for o in outcomes
        if all(o.settings[name] == best.settings[name] for name in grid.outer)
        and o.harm <= best.harm
        and o.delayed <= (1.0 + SIMPLER) * best.delayed
        and o.frozen <= (1.0 + SIMPLER) * best.frozen
        and (own.harm > 0.0 or o.betters(own))
    ]
    least = min(alike, key=lambda o: (o.settings[grid.size], -o.settings[grid.penalty]))
    if least.settings[grid.size] == 0:  # no features: their other settings mean nothing
        return Outcome({grid.size: 0}, least.scores)
    return least
