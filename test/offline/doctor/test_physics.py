"""Faults that the dynamics show, on an arm whose truth is known."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.base.arrays import SECOND
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics.effort_trials import Hypothesis, Trial
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.conversion.convert import read_log
from semiparam_dynamics.offline.doctor.examination import examine
from semiparam_dynamics.offline.doctor.messages import JointLog
from semiparam_dynamics.offline.doctor.physics import make_columns
from semiparam_dynamics.simulation.arm import ArmSimulator, simulated

from ...dynamics.arms import URDF, small_arm
from .logs import arm_log, examined, kinds

SEVEN = Path(__file__).resolve().parents[2] / "data" / "seven_joint_arm.urdf"


def found(examination, kind):
    (finding,) = (finding for finding in examination.findings if finding.kind == kind)
    return finding


@pytest.mark.parametrize(("seed", "velocities"), [(0, True), (1, False)])
def test_an_arm_without_faults_is_accused_of_none(seed: int, velocities: bool) -> None:
    examination = examined(arm_log(seed=seed, velocities=velocities))
    assert kinds(examination) == []
    assert examination.mended == ()
    assert examination.physics is not None
    assert examination.physics.explained.min() > 0.95


@pytest.mark.parametrize(
    ("change", "fault", "joints", "scale"),
    [
        (lambda y: y * [-1.0, 1.0, 1.0, 1.0], "effort sign", [0], [-1.0, 1.0, 1.0, 1.0]),
        (lambda y: -y, "effort sign", [0, 1, 2, 3], [-1.0] * 4),  # no arm on the ceiling
        (lambda y: y[:, [1, 0, 2, 3]], "exchanged joints", [0, 1], None),
        (lambda y: 2.0 * y, "", [], None),  # as of masses that are wrong
        (lambda y: 0.5 * y, "", [], None),
    ],
)
def test_faults_of_efforts_are_named_and_mended(change, fault, joints, scale) -> None:
    log = arm_log()
    examination = examined(dataclasses.replace(log, y=change(log.y)))
    faults = [finding for finding in examination.findings if finding.fault]
    assert {finding.kind for finding in faults} == ({fault} if fault else set())
    assert {name for f in faults for name in f.joints} == {log.names[k] for k in joints}
    assert scale is None or np.array_equal(examination.config.samples.effort_scale, scale)


def test_efforts_that_were_not_measured_are_no_evidence_of_their_joint_alone() -> None:
    log, model = arm_log(), small_arm()
    columns = make_columns(log, model, 5.0)
    assert columns.seen.all() and columns.enough.all()
    y = log.y.copy()
    y[(log.times > 4.0) & (log.times < 6.0), 1] = np.nan
    some = make_columns(dataclasses.replace(log, y=y), model, 5.0)
    times = some.times[~some.seen[:, 1]]
    assert some.seen[:, [0, 2, 3]].all() and some.enough.all()
    assert times.min() == pytest.approx(3.84, abs=0.03)  # filters and delays mix it with the others
    assert times.max() == pytest.approx(6.16, abs=0.03)
    trials = [Trial(one, np.ones(4, dtype=bool)) for one in (columns, some)]
    as_is = Hypothesis(np.ones(4), np.arange(4), columns.gravity)
    for model_name in ("urdf", "free", "none"):
        whole, part = (trial.squares(as_is, model_name) for trial in trials)
        assert (np.isnan(part) == ~some.seen).all() and np.isfinite(whole).all()
    y[log.times > 6.0, 1] = np.nan
    (told,) = examined(dataclasses.replace(log, y=y)).not_examined
    assert told == f"the effort of {log.names[1]}: too little of it is as measured"


def test_a_joint_whose_own_effort_is_explained_worse_is_not_accused() -> None:
    columns = make_columns(arm_log(), small_arm(), 5.0)
    trial, rng = Trial(columns, np.ones(4, dtype=bool)), np.random.default_rng(0)
    as_is = Hypothesis(np.ones(4), np.arange(4), columns.gravity)
    turned = dataclasses.replace(as_is, factor=np.array([-1.0, 1.0, 1.0, 1.0]))
    noise = rng.uniform(0.9, 1.1, columns.y.shape)
    errors = {"none": 1.0 + 0.0 * noise, "urdf": 0.1 * noise, "free": 0.1 * noise}
    for own, told in ((0.05, True), (0.2, False)):
        better = np.where(np.arange(4) == 0, own, 0.02) * noise
        trial.squares = lambda h, model, better=better: (
            better if h.factor[0] < 0.0 and model != "none" else errors[model]
        )
        assert trial.shown(turned, as_is) == told


def test_currents_are_named_and_the_factors_are_those_of_the_truth() -> None:
    log = arm_log()
    for sign, faults in ((1.0, {"effort scale"}), (-1.0, {"effort sign", "effort scale"})):
        constant = np.linspace(7.0, 12.0, log.q.shape[1]) * [1.0, sign, 1.0, 1.0]
        examination = examined(dataclasses.replace(log, y=log.y / constant))
        assert set(kinds(examination)) == faults
        named = [log.names.index(n) for n in found(examination, "effort scale").joints]
        assert named
        scale = np.array(examination.config.samples.effort_scale)
        assert np.allclose(scale[named], constant[named], rtol=0.15)


def test_exchanged_names() -> None:
    """Positions are the other joint's as well as efforts: every joint's effort is off."""
    log, pair = arm_log(), (1, 3)
    order = np.arange(log.q.shape[1])
    order[list(pair)] = pair[::-1]
    dq = None if log.dq is None else log.dq[:, order]
    other = dataclasses.replace(log, q=log.q[:, order], dq=dq, y=log.y[:, order])
    examination = examined(other)
    assert kinds(examination) == ["exchanged joints"]
    finding = found(examination, "exchanged joints")
    assert set(finding.joints) == {log.names[k] for k in pair}
    assert "each other's names" in finding.evidence and finding.amount < 0.5


def test_gravity_left_out_of_the_efforts() -> None:
    examination = examined(arm_log(gravity=(0.0, 0.0, 0.0)))
    assert kinds(examination) == ["gravity left out"]
    assert examination.config.robot.effort_gravity == "compensated"


def tilted(angle: float) -> tuple[float, float, float]:
    away = np.radians(angle)
    return (9.81 * np.sin(away), 0.0, -9.81 * np.cos(away))


@pytest.mark.parametrize(
    ("gravity", "angle", "seed"),
    [
        *((tilted(angle), angle, 0) for angle in (4.0, 180.0)),
        (tilted(-135.0), -135.0, 1),
        # The opposite direction fits free parameters as well: the URDF's weight decides.
        ((0.0, 9.81, 0.0), 90.0, 1),
        ((-9.81, 0.0, 0.0), 90.0, 0),
    ],
)
def test_a_tilted_base_is_named_with_its_angle_and_mended(gravity, angle, seed) -> None:
    examination = examined(arm_log(gravity=gravity, seed=seed))
    assert kinds(examination) == ["tilted base"]
    assert found(examination, "tilted base").amount == pytest.approx(abs(angle), abs=3.0)
    assert np.allclose(examination.config.robot.gravity, gravity, atol=0.5)


def test_a_tilt_that_free_parameters_can_put_on_is_told_by_the_urdfs(data_folder) -> None:
    folder = data_folder / "robots" / "airbot"
    data = read_log(folder / "unloaded.npz")
    log = JointLog(data.names, data.time + SECOND, data.q, data.dq, data.tau)
    urdf = (folder / "airbot.urdf").read_text()
    away = (0.5, 0.0, -np.sqrt(0.75))
    config = replace(InverseDynamicsConfig(), gravity=tuple(9.81 * g for g in away))
    examination = examine(log, urdf, config)
    assert kinds(examination) == ["tilted base"]
    assert found(examination, "tilted base").amount == pytest.approx(30.0)
    assert np.allclose(examination.config.robot.gravity, (0.0, 0.0, -9.81), atol=1e-3)


def test_the_tilt_of_an_arm_that_moves_little_is_the_least_of_several_minima() -> None:
    pytest.importorskip("mujoco", reason="needs the extra 'sim'")
    effects = {
        "friction_coulomb": 1.0,
        "friction_stribeck": 0.5,
        "friction_viscous": 1.0,
        "rotor_inertia": 0.1,
        "compliance": 1e-4,
        "hardening_torque": 30.0,
        "hysteresis": 3e-4,
        "noise_effort": 0.1,
        "noise_position": 2e-5,
        "noise_velocity": 1e-3,
    }
    overrides = {f"effects__{name}": value for name, value in effects.items()}
    arm = ArmSimulator(str(SEVEN), motion="exciting", rate=100.0, excitation=0.1, **overrides)
    readings = list(itertools.islice(simulated(arm, "effort", SECOND), 1500))
    q, dq, y = (np.array([getattr(m, name) for m in readings]) for name in ("q", "dq", "y"))
    log = JointLog(tuple(arm.joint_names), np.array([m.stamp for m in readings]), q, dq, y)
    away = np.array([0.5 * np.cos(1.644), 0.5 * np.sin(1.644), -np.sqrt(0.75)])
    config = replace(InverseDynamicsConfig(), gravity=tuple((9.81 * away).tolist()))
    examination = examine(log, arm.urdf, config)
    assert kinds(examination) == ["tilted base"]
    assert np.allclose(examination.config.robot.gravity, (0.0, 0.0, -9.81), atol=1e-3)


def test_what_leaves_no_message_is_told_and_the_dynamics_are_not_examined() -> None:
    log = arm_log(4.0)
    q = np.where(np.arange(4) == 3, np.nan, log.q)  # a gripper's position that is never read
    for fault, broken in (
        ("stamps stand", dataclasses.replace(log, stamps=0 * log.stamps)),
        ("not a number", dataclasses.replace(log, q=q)),
    ):
        examination = examined(broken)
        assert kinds(examination) == [fault]
        assert examination.physics is None and "no message" in examination.skipped


def test_messages_in_bursts_do_not_end_an_examination() -> None:
    log = arm_log(5.0, rate=1000.0)
    rows = np.cumsum(np.resize([50, 50, 50, 1, 1], 120))
    examination = examined(log.rows(rows))
    assert "uneven stamps" in kinds(examination)
    assert examination.physics is None and "too few to look at" in examination.skipped


def test_what_is_configured_already_is_no_fault_and_is_kept() -> None:
    log = arm_log()
    constant = np.array([10.0, -10.0, 10.0, 10.0])
    broken = dataclasses.replace(log, y=log.y / constant)
    told = {"samples__effort_scale": tuple(constant.tolist())}
    assert kinds(examined(broken, **told)) == []
    half = {"samples__effort_scale": (10.0, 10.0, 10.0, 10.0)}
    examination = examined(broken, **half)
    assert kinds(examination) == ["effort sign"]
    assert np.allclose(examination.config.samples.effort_scale, constant)


@pytest.mark.parametrize("delay", [0.02, -0.02, 0.01])
def test_late_and_early_efforts_are_mended(delay: float) -> None:
    examination = examined(arm_log(delay=delay))
    assert kinds(examination) == ["effort delay"] * (abs(delay) > 0.01)  # else it is a note
    finding, config = found(examination, "effort delay"), examination.config
    assert finding.amount == pytest.approx(delay, abs=0.004)
    assert ("late" if delay > 0.0 else "early") in finding.evidence
    assert config.samples.effort_delay == pytest.approx(delay, abs=0.004)


def test_a_delay_that_is_configured_is_no_fault_and_half_of_it_is_made_whole() -> None:
    log = arm_log(delay=0.02)
    half = examined(log, samples__effort_delay=0.01).config.samples.effort_delay
    assert half == pytest.approx(0.02, abs=0.004)
    again = examined(log, samples__effort_delay=half)
    assert "effort delay" not in [finding.kind for finding in again.findings]
    assert again.config.samples.effort_delay == half


def test_a_joint_whose_readings_stand_makes_no_fault_of_gravity() -> None:
    log = arm_log(gravity=(9.81 * np.sin(0.2), 0.0, -9.81 * np.cos(0.2)))
    q = log.q.copy()
    q[:, 2] = q[0, 2]
    dq = log.dq * [1.0, 1.0, 0.0, 1.0]
    examination = examined(dataclasses.replace(log, q=q, dq=dq))
    assert "tilted base" not in kinds(examination)
    assert "gravity" not in examination.mended


def test_a_joint_that_follows_a_learned_one_is_a_note() -> None:
    log = arm_log(3.0)
    names = tuple(name for name in log.names if name != "grip")
    kept = [log.names.index(name) for name in names]
    part = JointLog(names, log.stamps, log.q[:, kept], None, log.y[:, kept])
    heavy = URDF.read_text().replace('<mass value="0.3"/>', '<mass value="3.0"/>')
    text = heavy.replace('<origin xyz="0.02 0.03 0.01"', '<origin xyz="0.2 0.03 0.01"')
    for mimic in (True, False):
        followed = '<axis xyz="1 1 0"/>' + ('<mimic joint="lift"/>' if mimic else "")
        urdf = text.replace('<axis xyz="1 1 0"/>', followed)
        assert (urdf != text) == mimic
        told = [f.evidence for f in examine(part, urdf, InverseDynamicsConfig()).findings]
        assert any("grip moves with lift (<mimic>)" in one for one in told) == mimic
