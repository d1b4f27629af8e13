"""The time that a tuning is expected to take."""

from __future__ import annotations

import pytest

from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.tuning.candidates import Tuning
from semiparam_dynamics.offline.tuning.forecast import Forecast, forecast
from semiparam_dynamics.offline.tuning.work import Journal, Task, Work

from .recorded import CONFIG, recordings

PLANNED = [("a", 10.0), ("b", 30.0), ("a", 20.0), ("c", 40.0)]


class Clock:
    def __init__(self) -> None:
        self.now = 5.0

    def __call__(self) -> float:
        return self.now


def test_the_rest_is_scaled_by_what_the_stages_took() -> None:
    clock = Clock()
    plan = Forecast(PLANNED, clock=clock)
    assert plan.left("a") == 100.0
    clock.now += 5.0  # half of what was planned
    assert plan.left("b") == pytest.approx(45.0)
    clock.now += 75.0  # 80 s for 40 planned
    assert plan.left("a") == pytest.approx(120.0)
    assert plan.left("c") == pytest.approx(40.0 * 80.0 / 60.0)


def test_stages_that_are_left_out_or_not_known_change_little() -> None:
    clock = Clock()
    plan = Forecast(PLANNED, clock=clock)
    plan.left("a")
    clock.now += 10.0
    assert plan.left("c") == pytest.approx(40.0 * 10.0 / 60.0)
    assert plan.left("d") == 0.0


def test_of_a_journal_only_the_plan_is_told() -> None:
    clock = Clock()
    plan = Forecast(PLANNED, resumed=True, clock=clock)
    plan.left("a")
    assert plan.left("b") == 90.0


def planned(keep: tuple[str, ...], seconds: float = 6.0) -> Forecast:
    found = recordings(2, seconds, CONFIG)
    config: InverseDynamicsConfig = found.config
    work = Work(Journal(None, {}))
    tuning = Tuning(config, config, [])
    return forecast(Task(found, work, keep, "delayed", lambda _: lambda share: None, tuning))


def test_more_to_tune_on_takes_in_proportion_and_what_is_kept_takes_nothing() -> None:
    all_of_it = sum(s for _, s in planned(()).planned)
    assert sum(s for _, s in planned((), 12.0).planned) == pytest.approx(2.0 * all_of_it, rel=0.02)
    kept = planned(("filter", "rigid_body", "random_fourier", "residual"))
    titles = [title for title, _ in kept.planned]
    assert titles[:2] == ["rigid body on each fold", "local features"]
    assert "random Fourier features" not in titles
    assert sum(s for _, s in kept.planned) < all_of_it
