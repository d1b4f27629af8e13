"""Joint states taken in as blocks against the same ones taken in one by one."""

from __future__ import annotations

import copy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semiparam_dynamics.samples.bag import JOINT_STATE, BagReader, read_measurements
from semiparam_dynamics.samples.bag_writer import write_measurements
from semiparam_dynamics.samples.joint_state_block import JointStateBlock
from semiparam_dynamics.samples.measurement import Measurement
from semiparam_dynamics.samples.stream import MeasurementStream
from semiparam_dynamics.samples.stream_config import StreamConfig

from .messages import SECOND, joint_state

NAMES = ("elbow", "shoulder")
CONFIG = StreamConfig(stuck_after=0.2, stuck_motion=0.05, saturation=(40.0,))
STEP = SECOND // 100


def block_of(messages: list[SimpleNamespace]) -> JointStateBlock:
    stamps = [m.header.stamp.sec * SECOND + m.header.stamp.nanosec for m in messages]
    columns = (
        np.array([getattr(m, name) for m in messages], dtype=np.float64).reshape(len(messages), -1)
        for name in ("position", "velocity", "effort")
    )
    names = messages[0].name
    return JointStateBlock(names, np.array(stamps), *columns, messages.__getitem__)


def assert_same(a: MeasurementStream, b: MeasurementStream) -> None:
    """In every number and list of their state."""
    assert plain(a) == plain(b)


def plain(value: object) -> object:
    """Arrays, lists and the package's objects as what can be compared."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if type(value).__module__.startswith("semiparam_dynamics") and hasattr(value, "__dict__"):
        return plain(vars(value))
    return value


def bits(measurements: list[Measurement]) -> list[tuple[object, ...]]:
    return [
        (m.stamp, *(None if part is None else part.tobytes() for part in (m.q, m.dq, m.y)))
        for m in measurements
    ]


def both_ways(batches: list[list[SimpleNamespace]], config: StreamConfig = CONFIG) -> list[int]:
    """Checks that both say the same; how many messages were asked for by themselves, by block."""
    one, many = MeasurementStream(NAMES, config=config), MeasurementStream(NAMES, config=config)
    asked = []
    for messages in batches:
        block = block_of(messages)
        looked_at: list[int] = []

        def message(i: int, given=messages, seen=looked_at) -> SimpleNamespace:
            seen.append(i)
            return given[i]

        block = JointStateBlock(
            block.names, block.stamps, block.position, block.velocity, block.effort, message
        )
        expected = [m for message in messages for m in one.joint_state(message)]
        assert bits(many.joint_states(block)) == bits(expected)
        assert_same(one, many)
        asked.append(len(looked_at))
    return asked


def motion(n: int, start: int = 1, seed: int = 0, **other: object) -> list[SimpleNamespace]:
    rng = np.random.default_rng(seed)
    rows = {name: rng.normal(size=(n, 3)).tolist() for name in ("position", "velocity", "effort")}
    rows |= other
    names = ["shoulder", "other", "elbow"]
    columns = (rows[name] for name in ("position", "velocity", "effort"))
    return [
        joint_state((start + k) * STEP, names, *row)
        for k, row in enumerate(zip(*columns, strict=True))
    ]


def test_ordinary_motion_is_taken_at_once() -> None:
    asked = both_ways([motion(50), motion(50, 51, 1), motion(50, 101, 2)])
    assert asked == [8, 0, 0]  # what a velocity means is seen from the first, and where all begin


def test_a_joint_or_effort_that_rests_now_and_then() -> None:
    batches = []
    for k in range(3):
        messages = motion(60, 60 * k + 1, k)
        for i in range(10, 22):  # for less than 0.2 s
            messages[i].effort[0] = messages[i].position[2] = 0.25
        batches.append(messages)
    assert both_ways(batches)[1:] == [0, 0]


@pytest.mark.parametrize("what", ["position", "velocity", "effort"])
def test_a_value_that_stays_for_longer_than_it_may(what: str) -> None:
    fast = np.random.default_rng(5).normal(3.0, 0.1, (120, 3)).tolist()
    messages = motion(120, velocity=fast)
    for message in messages[20:80]:
        getattr(message, what)[0] = 3.0
    stream = MeasurementStream(NAMES, config=CONFIG)
    for message in messages:
        stream.joint_state(message)
    least = {"position": 39, "velocity": 0, "effort": 30}[what]  # joints may be where they were
    assert least <= stream.dropped[f"{what} stuck"] <= 39 * bool(least)
    both_ways([messages[:50], messages[50:]])


def test_velocities_that_are_never_filled_and_none_at_all() -> None:
    n = 40
    zeros = both_ways([motion(n, 1, velocity=[[0.0] * 3] * n), motion(n, 1 + n, 1)])
    assert zeros[0] <= 8
    assert both_ways([motion(n, 1, velocity=[[]] * n), motion(n, 1 + n, 1)])[0] <= 8


def test_messages_of_no_use_are_given_one_by_one() -> None:
    both_ways([motion(20, effort=[[]] * 20), motion(20, 30, position=[[1.0]] * 20)])
    wrong = motion(20)
    for message in wrong:
        message.name = ["shoulder", "other", "else"]
    assert both_ways([wrong]) == [20]


def test_with_a_wrench_target_they_wait_for_their_wrench() -> None:
    one, many = MeasurementStream(NAMES, "wrench"), MeasurementStream(NAMES, "wrench")
    messages = motion(80)
    expected = [m for message in messages for m in one.joint_state(message)]
    assert bits(many.joint_states(block_of(messages))) == bits(expected)


VALUES = st.sampled_from([0.0, -0.0, 1.0, 1.5, -2.0, 40.0, 5e8, 1e10, np.nan, np.inf, -np.inf])
ROWS = st.lists(VALUES, min_size=2, max_size=2)
STEPS = st.sampled_from([STEP, STEP, STEP, 15 * STEP, 0, -STEP, -200 * STEP, 300 * STEP])


@settings(max_examples=300)
@given(
    st.lists(
        st.lists(st.tuples(STEPS, ROWS, ROWS, ROWS, st.booleans()), min_size=1, max_size=40),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([CONFIG, StreamConfig(), StreamConfig(stuck_after=0.0)]),
)
def test_any_messages(batches, config) -> None:
    """Each is, at times, the one before with another stamp, so that something may stick."""
    stamp, before, streams = 500 * STEP, None, []
    for batch in batches:
        messages = []
        for step, *rows, again in batch:
            stamp = max(stamp + step, -5)
            before = rows if before is None or not again else before
            messages.append(joint_state(stamp, NAMES, *copy.deepcopy(before)))
        streams.append(messages)
    both_ways(streams, config)


def test_a_bag_s_messages_come_as_blocks_and_say_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    written = [Measurement(STEP * (k + 1), *rng.normal(size=(3, 2))) for k in range(1500)]
    write_measurements(tmp_path / "arm", NAMES, written)
    with BagReader(tmp_path / "arm") as bag:
        topic = bag.choose(JOINT_STATE)
        single = [message for _, message, _ in bag.messages([topic])]
        parts = list(bag.joint_states(topic))
    blocks = [part for part in parts if isinstance(part, JointStateBlock)]
    assert sum(map(len, blocks)) > 1480 and len(blocks) < 12
    unfolded = [
        part.message(i) if isinstance(part, JointStateBlock) else part
        for part in parts
        for i in range(len(part) if isinstance(part, JointStateBlock) else 1)
    ]
    for given_, expected in zip(unfolded, single, strict=True):
        assert given_.header == expected.header and given_.name == expected.name
        for name in ("position", "velocity", "effort"):
            assert getattr(given_, name).tobytes() == getattr(expected, name).tobytes()
    for block in blocks:
        for i in range(len(block)):
            message = block.message(i)
            assert block.position[i].tobytes() == message.position.tobytes()
            assert (
                block.stamps[i] == message.header.stamp.sec * SECOND + message.header.stamp.nanosec
            )
    stream = MeasurementStream(NAMES)
    expected_ = [m for message in single for m in stream.joint_state(message)]
    assert bits(read_measurements(tmp_path / "arm", NAMES).measurements) == bits(expected_)
