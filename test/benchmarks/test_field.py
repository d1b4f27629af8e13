"""Conditions of the field do what they say, and the table measures them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arms import SIMULATED, read_logs, simulated_log
from conditions import CONDITIONS, Truth
from drivers import DRIVERS
from messages import Message, messages

from semiparam_dynamics.base.arrays import SECOND
from semiparam_dynamics.dynamics.effort_trials import FreeFit
from semiparam_dynamics.dynamics.filtering import FilterConfig, SampleFilter
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.offline.doctor.physics import make_columns
from semiparam_dynamics.robot.model import RobotModel, message_checks
from semiparam_dynamics.samples.stream import MeasurementStream

from ..dynamics.arms import small_arm
from ..offline.doctor.logs import arm_log
from ..samples.messages import joint_state

Learned = tuple[dict[int, Sample], str]

LOG = arm_log(12.0)
N = len(LOG)


def put(name: str, seed: int = 0) -> Truth:
    return CONDITIONS[name].change(LOG, np.random.default_rng(seed), small_arm())


@pytest.mark.parametrize("name", list(CONDITIONS))
def test_a_condition_changes_something_the_same_for_a_seed_and_not_in_place(name: str) -> None:
    before = [a.copy() for a in (LOG.stamps, LOG.q, LOG.dq, LOG.y)]
    one, again = put(name), put(name)
    for a, b in zip(before, (LOG.stamps, LOG.q, LOG.dq, LOG.y), strict=True):
        assert np.array_equal(a, b)
    changed = one.settings or any(
        a.shape != b.shape or not np.array_equal(a, b)
        for a, b in zip(before, (one.log.stamps, one.log.q, one.log.dq, one.log.y), strict=True)
    )
    assert changed
    assert np.array_equal(one.log.q, again.log.q) and one.joints == again.joints
    assert np.array_equal(one.log.y, again.log.y, equal_nan=True)
    assert one.log.q.shape == one.log.dq.shape == one.log.y.shape
    assert len(one.log.stamps) == len(one.log.q)


@pytest.mark.parametrize(
    ("name", "seconds"), [("15 s at rest at the start", 15.0), ("2 s at rest at the start", 2.0)]
)
def test_rest_lasts_as_long_as_it_says(name: str, seconds: float) -> None:
    log = put(name).log
    n = round(seconds * 100)
    assert len(log) == N + n and (np.diff(log.stamps) > 0).all()
    assert np.abs(log.q[:n] - LOG.q[0]).max() < 1e-4
    assert np.abs(log.dq[:n]).max() < 1e-3
    assert np.array_equal(log.q[n:], LOG.q)
    for other in ("15 s at rest in the middle", "15 s at rest at the end"):
        longer = put(other).log
        assert longer.times[-1] == pytest.approx(LOG.times[-1] + 15.0, abs=0.02)


def test_messages_are_missing_in_their_share_and_gaps_have_their_length() -> None:
    assert 1.0 - len(put("10 % of messages missing").log) / N == pytest.approx(0.1, abs=0.03)
    for name, seconds in (("a gap of 0.4 s", 0.4), ("a gap of 2 s", 2.0)):
        steps = np.diff(put(name).log.times)
        assert steps.max() == pytest.approx(seconds, abs=0.02) and np.sum(steps > 0.05) == 1


def test_stamps() -> None:
    offsets = (put("stamps +-3 ms").log.stamps - LOG.stamps) * 1e-9
    assert np.abs(offsets).max() < 0.003 and offsets.std() > 0.001
    back = np.diff(put("clock back by 0.5 s").log.times)
    assert back.min() == pytest.approx(-0.49, abs=1e-6) and np.sum(back < 0.0) == 1
    # Messages are truly where their stamps say: the motion is the same function of time.
    uneven = put("uneven stamps, 20 %").log
    expected = np.interp(uneven.times, LOG.times, LOG.q[:, 0])
    assert np.abs(uneven.q[:, 0] - expected).max() < 1e-9
    assert np.diff(uneven.times).std() > 0.001


def test_single_readings() -> None:
    wrong = put("one position 1 rad wrong")
    (row,), (joint,) = np.nonzero(wrong.log.q != LOG.q)
    assert wrong.joints == (LOG.names[joint],)
    assert wrong.log.q[row, joint] - LOG.q[row, joint] == pytest.approx(1.0)
    empty = put("one message of zeros").log
    assert np.sum((empty.q == 0.0).all(axis=1)) == 1
    held = put("last reading repeated for 2 s").log
    assert np.sum((np.diff(held.q, axis=0) == 0.0).all(axis=1)) == pytest.approx(199, abs=2)


def test_units_signs_and_names() -> None:
    turned = put("sign of one effort turned")
    joint = LOG.names.index(turned.joints[0])
    assert np.array_equal(turned.log.y[:, joint], -LOG.y[:, joint])
    assert np.array_equal(np.delete(turned.log.y, joint, 1), np.delete(LOG.y, joint, 1))
    factor = LOG.y / put("efforts as currents").log.y
    assert np.allclose(factor, factor[0]) and factor.min() >= 5.0 and factor.max() <= 15.0
    swapped = put("two joints' efforts exchanged")
    a, b = (LOG.names.index(name) for name in swapped.joints)
    assert np.array_equal(swapped.log.y[:, a], LOG.y[:, b])
    late = put("efforts 20 ms late").log
    assert np.allclose(late.y[2:], LOG.y[:-2])
    q = put("degrees").log.q
    sliding = LOG.names.index("reach")
    assert np.array_equal(q[:, sliding], LOG.q[:, sliding])
    assert np.allclose(np.radians(np.delete(q, sliding, 1)), np.delete(LOG.q, sliding, 1))
    wraps = put("a joint passes +-pi")
    joint = LOG.names.index(wraps.joints[0])
    assert np.allclose(np.exp(1j * wraps.log.q[:, joint]), np.exp(1j * LOG.q[:, joint]))
    assert np.abs(np.diff(wraps.log.q[:, joint])).max() > 6.0


def test_gravity_and_forces() -> None:
    for angle in (5.0, 30.0):
        gravity = np.array(put(f"base tilted by {angle:.0f} degrees").settings["gravity"])
        assert np.linalg.norm(gravity) == pytest.approx(9.81)
        assert np.degrees(np.arccos(-gravity[2] / 9.81)) == pytest.approx(angle)
    left = LOG.y - put("gravity left out of efforts").log.y
    model = small_arm()
    still = np.zeros(model.n_joints)
    expected = np.array([model.inverse_dynamics(q, still, still) for q in LOG.q[::50]])
    scale = expected.std(axis=0)
    assert (np.abs(left[::50] - expected).std(axis=0) < 0.1 * scale.max()).all()
    pushed = put("a contact of 200 ms").log.y - LOG.y
    assert np.sum(pushed.any(axis=1)) == pytest.approx(20, abs=2)
    clipped = put("efforts clipped at 60 %").log.y
    assert np.allclose(np.abs(clipped).max(axis=0), 0.6 * np.abs(LOG.y).max(axis=0))


def test_a_simulated_arm_is_nearly_what_rigid_bodies_with_friction_do() -> None:
    urdf, log = simulated_log(SIMULATED["sim_small"], 12.0)
    model = RobotModel(urdf, joints=log.names)
    columns = make_columns(log, model, 5.0)
    fit = FreeFit(columns, np.ones(model.n_joints, dtype=bool), columns.seen)
    error = np.mean(fit.solve(columns.gravity, columns.y)[1] / columns.y.var(axis=0))
    assert 1e-5 < error < 0.02  # and not quite: transmission and hysteresis are in it


def test_the_table(field, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--logs", "sim_small", "--quick", "--conditions", "by 30 degrees", "steps of 1e-3"]
    assert field([str(tmp_path), *options]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line][2:]
    assert lines[1].startswith("sim_small, nmse") and len(lines) == 4
    rows = [re.split(r"\s{2,}", line) for line in lines[2:]]
    ratios = {name: [float(v) for cell in cells for v in cell.split("/")] for name, *cells in rows}
    same, tilted = (
        ratios[name] for name in ("positions in steps of 1e-3 rad", "base tilted by 30 degrees")
    )
    assert len(same) == len(tilted) == 6
    assert all(0.5 < value < 1.5 for value in same)
    assert min(tilted) > 1.2


@pytest.fixture(scope="module")
def learned(data_folder: Path) -> Callable[[Callable[..., Any]], Learned]:
    """What is learned of an arm's first 10 s as some driver would have sent them, and reports."""
    urdf, logs = read_logs(data_folder / "robots", "xmate7p")
    model = RobotModel(urdf, joints=logs[0].names)
    whole = messages(logs[0].rows(slice(500)))

    def learn(change: Callable[..., Iterable[Message]]) -> Learned:
        stream = MeasurementStream(model.joint_names, **message_checks(model))
        sampler, found = SampleFilter(model, FilterConfig()), []
        for m in change(whole, np.random.default_rng(0)):
            found += stream.joint_state(joint_state(m.stamp, *map(list, m[1:])))
        samples = list(map(sampler.push, found + stream.flush()))
        reports = {*stream.dropped, *stream.details.values(), *sampler.dropped}
        taught = [s for s in samples if s is not None and s.teaches]
        return {s.stamp // (SECOND // 1000): s for s in taught}, "; ".join(reports)

    return learn


@pytest.mark.parametrize("name", DRIVERS)
def test_of_what_drivers_send_the_arm_is_learned_and_nothing_else(learned, name: str) -> None:
    change, share, reason = DRIVERS[name]
    clean, _ = learned(lambda given, rng: given)
    found, reports = learned(change)
    assert share * len(clean) <= len(found) <= 1.01 * len(clean) and reason in reports
    assert found or not share
    errors = [np.abs(s.q - clean[stamp].q).max() for stamp, s in found.items() if stamp in clean]
    assert len(errors) >= 0.9 * len(found) and max(errors, default=0.0) < 0.05
