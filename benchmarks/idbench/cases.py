"""The cases of the benchmark: what is learned and what is tested of each arm's logs.

Of several logs whole ones are tested: each by each of the others, and, of three, by both of the
others. Of a single log the first 60 % of its time is learned and the rest tested, as `semiparam
evaluate LOG` does, and the other way round; of one that repeats, the first 60 % of its period too.
Where there is a log of another motion on another day, it is tested after learning all of these.
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from arms import ARMS, SIMULATED, read_arm_log, read_logs, simulated_log

from semiparam_dynamics.base.arrays import SECOND, Array, Indices, Mask
from semiparam_dynamics.dynamics.sample import SampleBlock
from semiparam_dynamics.offline.doctor.messages import JointLog
from semiparam_dynamics.offline.evaluation.experiment import TRAINING_SHARE

PUSHES, PUSH_S, PUSH_PERIOD_S = (1.0, 20.0), 0.5, 2.0  # N, s
HELD_OUT = 0.2  # of what is learned, its end, where there is one recording


@dataclass(frozen=True)
class Case:
    """Logs to learn and one to test.

    train: none where the first 60 % of `test` are learned and the rest is tested.
    pushed: (n,) in which of the test's rows a force acts on the hand; None: in none.
    """

    arm: str
    name: str
    urdf: str
    train: tuple[JointLog, ...]
    test: JointLog
    pushed: Mask | None = None


def cases(data: Path, arm: str, seconds: float = 0.0) -> Iterator[Case]:
    """The cases of an arm; `seconds` > 0 leaves that much of a simulated arm's minute."""
    if arm in SIMULATED:
        urdf, log = simulated_log(SIMULATED[arm], seconds or 60.0)
        logs, period = [log], 0.0
    else:
        urdf, logs = read_logs(data / "robots", arm)
        period = ARMS[arm].period
    if len(logs) == 1:
        (log,) = logs
        yield Case(arm, "first 60 % → rest", urdf, (), log)
        if period:
            yield Case(arm, "60 % of the period → rest", urdf, (), log.rows(log.times <= period))
        else:
            late = log.times > (1.0 - TRAINING_SHARE) * log.times[-1]
            yield Case(arm, "last 60 % → rest", urdf, (log.rows(late),), log.rows(~late))
    for count in range(len(logs) - 1, 0, -1):
        for chosen in itertools.combinations(range(len(logs)), count):
            for k in set(range(len(logs))) - set(chosen):
                name = f"{', '.join(str(j + 1) for j in chosen)} → {k + 1}"
                yield Case(arm, name, urdf, tuple(logs[j] for j in chosen), logs[k])
    if arm in ARMS and ARMS[arm].other:
        if (path := data / "robots" / arm / ARMS[arm].other).is_file():
            yield Case(arm, "all → another motion", urdf, tuple(logs), read_arm_log(path, urdf))
        else:
            print(f"{arm}: no {path.name}, one case less than in the documents", file=sys.stderr)


def pushed_case(arm: str, seconds: float = 0.0) -> Case:
    """A simulated arm's minute, and another motion in which its hand is pushed.

    Half a second of every two, by 1 to 20 N in any direction.
    """
    rate, seconds = 100.0, seconds or 60.0
    urdf, first = simulated_log(SIMULATED[arm], seconds, rate)
    rng, on = np.random.default_rng(0), round(PUSH_S * rate)
    pushed = np.arange(len(first)) % round(PUSH_PERIOD_S * rate) < on
    begins = pushed & ~np.roll(pushed, 1)
    ways = rng.standard_normal((len(first), 3))
    sizes = PUSHES[0] * (PUSHES[1] / PUSHES[0]) ** rng.uniform(size=(len(first), 1))
    forces = sizes * ways / np.linalg.norm(ways, axis=1, keepdims=True)
    forces = forces[np.maximum.accumulate(np.where(begins, np.arange(len(first)), 0))]
    forces = np.where(pushed[:, None], forces, 0.0)
    _, second = simulated_log(SIMULATED[arm], seconds, rate, 1, lambda k: forces[k])
    return Case(arm, "pushed", urdf, (first,), second, np.roll(pushed, 1))


@dataclass(frozen=True)
class Data:
    """n filtered samples, as a method is given them.

    Attributes
    ----------
    times: (n,) s. recordings: (n,) number of the recording that each is of.
    q, dq, ddq: (n, n_joints) rad or m, and per s and s^2.
    base: (n, n_axes) what the identified rigid body predicts, with all kinds of friction of this
        package; N m or N.
    y: (n, n_axes) the measured efforts, NaN where one is missing.
    moving: (n,) whether the arm moves; no one has to learn the others.
    choosing: of what is learned, the same with a rigid body that has not seen what `held_out`
        names: settings are chosen by errors there.
    """

    times: Array
    recordings: Indices
    q: Array
    dq: Array
    ddq: Array
    base: Array
    y: Array
    moving: Mask
    choosing: Data | None = None

    def __post_init__(self) -> None:
        for entry in dataclasses.fields(self)[:-1]:  # what one method writes another would read
            array: Array = getattr(self, entry.name)
            array.flags.writeable = False

    @classmethod
    def of(cls, blocks: list[SampleBlock], base: list[Array]) -> Data:
        """The samples of recordings."""
        numbers = np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])
        states = [
            np.concatenate([getattr(block, name) for block in blocks])
            for name in ("stamps", "q", "dq", "ddq", "y", "informative")
        ]
        stamps, q, dq, ddq, y, moving = states
        return cls(stamps / SECOND, numbers, q, dq, ddq, np.concatenate(base), y, moving)

    def __len__(self) -> int:
        return len(self.times)

    def rows(self, chosen: Mask | Indices | slice) -> Data:
        """Some of the samples."""
        return Data(*(getattr(self, entry.name)[chosen] for entry in dataclasses.fields(self)[:-1]))

    @property
    def inputs(self) -> Array:
        """(n, 3 n_joints + n_axes) positions, velocities, accelerations and `base`."""
        return np.hstack((self.q, self.dq, self.ddq, self.base))

    @property
    def residual(self) -> Array:
        """(n, n_axes) what the rigid body leaves of the efforts."""
        return self.y - self.base

    def held_out(self) -> Mask:
        """The last recording, or of a single one the last fifth: to choose settings on."""
        held: Mask = self.recordings == self.recordings[-1]
        if held.all():
            held = np.cumsum(self.moving) > (1.0 - HELD_OUT) * np.count_nonzero(self.moving)
        return held
