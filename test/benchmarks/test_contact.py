"""The fixed threshold that the contacts' benchmark compares with."""

from __future__ import annotations

import contact
import numpy as np
import pytest


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
