"""The contacts' benchmark learns as the node does, and gives a fixed threshold its due."""

from __future__ import annotations

from types import SimpleNamespace

import contact
import numpy as np
import pytest


class Learner:
    """A learner that notes what it is to learn together."""

    def __init__(self) -> None:
        self.together: list[list[int]] = []
        self.contacts = SimpleNamespace(total=0, events=[])
        self.external = None

    def predict(self, measurement: SimpleNamespace) -> SimpleNamespace:
        return measurement

    def admit(self, step: SimpleNamespace) -> list[SimpleNamespace]:
        return [step]

    def update(self, steps: list[SimpleNamespace]) -> None:
        self.together.append([step.stamp for step in steps])

    def feel(self, step: SimpleNamespace) -> None: ...

    def publish(self) -> None: ...

    def predict_beside_learning(self, enabled: bool) -> None: ...


@pytest.mark.parametrize(("rate", "most"), [(1000, 30), (125, 4), (50, 2), (20, 1)])
def test_what_predictions_lack_is_thirty_milliseconds_old(rate: int, most: int) -> None:
    learner = Learner()
    watched = contact.Watched(learner)
    for k in range(rate):
        watched.take(SimpleNamespace(stamp=10**9 + k * 10**9 // rate))
    sizes = [len(together) for together in learner.together[1:]]
    assert set(sizes) == {most} and sum(sizes) >= rate - 1 - most


def test_a_fixed_threshold_is_in_the_deviations_of_each_axis(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rng = np.random.default_rng(0)
    times = 0.01 * np.arange(10_000)
    external = rng.uniform(-1.0, 1.0, (len(times), 2)) * [10.0, 0.1]
    pushes = []
    for begin in contact.LEARN + 3.0 + 3.0 * np.arange(10):  # each far beyond a quiet axis' errors
        external[(times > begin) & (times < begin + 0.2), 1] = 1.0
        pushes.append(contact.Push(begin, begin + 0.2, 20.0, ""))
    contact.curve(pushes, list(zip(times.tolist(), external, strict=True)))
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.endswith("0 of 10 missed, 0 alarms without a push")
