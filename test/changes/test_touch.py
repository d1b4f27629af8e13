"""Contacts as events, and the link that was touched."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pinocchio as pin
import pytest

from semiparam_dynamics.base.arrays import SECOND, Array
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.changes.config import COLLISION, CONTACT, GIVEN_UP, OVER, ChangesConfig
from semiparam_dynamics.changes.contact import ContactDetector
from semiparam_dynamics.changes.touch import (
    LOOKED_AT,
    WINDOWS,
    ContactEvents,
    Touch,
    TouchedLink,
    at_sensor,
)
from semiparam_dynamics.learner.learner import InverseDynamicsLearner
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.measurement import Measurement

from ..dynamics.arms import small_arm
from .changing_arm import follow, largest_weight, learner, moving, nothing, pushed, seconds

STEP = 1_000_000  # ns
N, BEGIN = 3, 10**12  # axes; ns
LINK = (
    '<link name="{0}"><inertial><origin xyz="0 0 0.15"/><mass value="1"/>'
    '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    '<joint name="j{0}" type="{3}"><parent link="{1}"/><child link="{0}"/><origin xyz="0 0 0.3"/>'
    '<axis xyz="{2}"/><limit lower="-3" upper="3" effort="50" velocity="5"/></joint>'
)
AXES = ("0 0 1", "0 1 0", "0 1 0", "1 0 0", "0 1 0")


@pytest.fixture(scope="module")
def arm() -> RobotModel:
    """Five joints, and a hand fixed to the last link."""
    names = ("base", "a", "b", "c", "d", "e")
    kinds = ("revolute", "revolute", "continuous", "revolute", "revolute")
    links = [LINK.format(*row) for row in zip(names[1:], names, AXES, kinds, strict=False)]
    hand = LINK.format("hand", "e", "1 0 0", "fixed")
    return RobotModel(f'<robot name="r"><link name="base"/>{"".join(links)}{hand}</robot>')


def efforts(model: RobotModel, q: Array, link: str, at: Array, force: Array) -> Array:
    """What motors exert less where a force (3,) in the base's axes pushes a link at a point."""
    full = model.kinematics
    data = full.createData()
    places = np.concatenate(
        [[np.cos(v), np.sin(v)] if t else [v] for v, t in zip(q, model.turning, strict=True)]
    )
    pin.computeJointJacobians(full, data, places)
    pin.updateFramePlacements(full, data)
    J = pin.getFrameJacobian(full, data, full.getFrameId(link), pin.LOCAL_WORLD_ALIGNED)
    lever = data.oMf[full.getFrameId(link)].rotation @ at
    found: Array = -(J[:3] - pin.skew(lever) @ J[3:]).T @ force
    return found


def found(find: TouchedLink, q: Array, external: Array) -> Touch:
    """Of one window, with efforts known to 0.02 N m."""
    return find.find(q[None], external[None], 0.02**2 * np.eye(5), np.ones(1))


def test_the_link_is_found_and_the_force(arm: RobotModel) -> None:
    find = TouchedLink(arm)
    assert find.links == ("a", "b", "c", "d", "e")
    rng = np.random.default_rng(0)
    right, near, errors = 0, 0, []
    for _ in range(200):
        k = int(rng.integers(1, 5))
        q = rng.uniform(-1.5, 1.5, 5)
        force = rng.standard_normal(3)
        force *= 30.0 / np.linalg.norm(force)
        at = np.array([*rng.uniform(-0.03, 0.03, 2), rng.uniform(0.1, 0.28)])
        external = efforts(arm, q, find.links[k], at, force) + 0.02 * rng.standard_normal(5)
        touch = found(find, q, external)
        right += touch.link == find.links[k]
        near += abs(find.links.index(touch.link) - k) <= 1
        errors.append(np.linalg.norm(touch.force - force) / 30.0)
        assert 0.2 <= touch.sure <= 1.0
    assert right >= 130 and near >= 185
    assert np.median(errors) < 0.5


def test_the_whole_of_a_contact_tells_more_than_its_beginning(arm: RobotModel) -> None:
    find, rng, std, windows = TouchedLink(arm), np.random.default_rng(1), 1.0, 8
    first, all_of_it = 0, 0
    for _ in range(60):
        k, force = int(rng.integers(1, 5)), rng.standard_normal(3)
        force *= 30.0 / np.linalg.norm(force)
        at = np.array([*rng.uniform(-0.03, 0.03, 2), rng.uniform(0.1, 0.28)])
        q = rng.uniform(-1.5, 1.5, 5) + np.outer(np.linspace(0.0, 0.5, windows), rng.normal(size=5))
        external = np.array([efforts(arm, each, find.links[k], at, force) for each in q])
        external += std * rng.standard_normal(external.shape)
        covariance, shares = std**2 * np.eye(5), np.ones(windows)
        early = find.find(q[:1], external[:1], covariance, shares[:1])
        first += early.link == find.links[k]
        all_of_it += find.find(q, external, covariance, shares).link == find.links[k]
    assert all_of_it >= first + 8 and all_of_it >= 45


def test_half_the_weight_is_twice_the_covariance(arm: RobotModel) -> None:
    find, rng = TouchedLink(arm), np.random.default_rng(2)
    q, external = rng.uniform(-1.0, 1.0, (3, 5)), rng.standard_normal((3, 5))
    one = find.find(q, external, 0.02 * np.eye(5), 0.5 * np.ones(3))
    other = find.find(q, external, 0.04 * np.eye(5), np.ones(3))
    assert one.link == other.link and one.sure == pytest.approx(other.sure)
    np.testing.assert_allclose(one.force, other.force)


def test_a_joint_whose_effort_was_not_measured_tells_nothing(arm: RobotModel) -> None:
    find, q = TouchedLink(arm), np.array([0.3, 0.5, -0.4, 0.2, 0.1])
    force = np.array([0.0, 20.0, -10.0])
    external = efforts(arm, q, "c", np.array([0.0, 0.0, 0.25]), force)
    external[4] = np.nan
    assert found(find, q, external).link in ("b", "c")
    with np.errstate(all="raise"):
        found(find, q, np.full(5, np.nan))


def test_of_one_joint_its_link_was_touched() -> None:
    find = TouchedLink(RobotModel(small_arm().urdf_text, joints=("lift",)))
    touch = find.find(np.zeros((1, 1)), np.array([[3.0]]), 0.01 * np.eye(1), np.ones(1))
    assert touch.link == "boom_root" and touch.sure == 1.0 and np.linalg.norm(touch.force) > 1.0


@functools.cache
def calmed() -> ContactDetector:
    """A detector that has seen calm errors for 12 s, until BEGIN. Not to be changed."""
    detector, rng = (
        ContactDetector(ChangesConfig(contact=6.0), np.ones(N)),
        np.random.default_rng(0),
    )
    for k in range(-12_000, 0):
        noise = np.clip(rng.standard_normal(N), -3.0, 3.0)
        detector.add(BEGIN + k * STEP, noise, tested=False)
    return detector


class Watched(NamedTuple):
    """Events, each one's time in s and kind, and what was asked for as a touch: efforts, shares."""

    events: ContactEvents
    detector: ContactDetector
    told: list[tuple[float, str]]
    asked: list[tuple[Array, Array]]


def watch(sizes: list[float], longest: float = 10.0, first: int = 0) -> Watched:
    """After calm, errors of these sizes on one axis; of the `first` ones events know nothing."""
    detector = copy.deepcopy(calmed())
    detector.config = ChangesConfig(contact=6.0, contact_longest=longest)
    asked: list[tuple[Array, Array]] = []

    def find(q: Array, external: Array, covariance: Array, shares: Array) -> Touch:
        asked.append((external, shares))
        return Touch("arm", np.average(external, axis=0, weights=shares), 1.0)

    events = ContactEvents(find)
    for k, size in enumerate(sizes):
        stamp, external = BEGIN + k * STEP, np.array([size, 0.0, 0.0])
        detector.add(stamp, external)
        if k >= first:
            events.follow(stamp, np.zeros(N), external, detector)
    assert events.total == len(events.events)
    told = [(round((e.stamp - BEGIN) * 1e-9, 3), e.kind) for e in events.events]
    return Watched(events, detector, told, asked)


def test_a_contact_is_told_when_it_begins_with_its_link_later_and_when_it_is_over() -> None:
    events, _, told, _ = watch([0.0] * 10 + [10.0] * 200 + [0.0] * 400)
    kinds = [kind for _, kind in told]
    assert kinds == [CONTACT, CONTACT, OVER] and not events.touched
    assert 0.01 <= told[0][0] < 0.014 and told[1][0] == pytest.approx(0.01 + LOOKED_AT * 1e-9)
    begun, looked, over = events.events
    assert begun.touch is None and looked.touch is not None and over.touch is not None
    np.testing.assert_allclose(over.touch.force, [10.0, 0.0, 0.0])  # not what came after
    assert 0.45 < over.seconds < 0.55


def test_what_lasts_too_long_is_given_up_which_is_not_over() -> None:
    events, _, told, _ = watch(
        [0.0] * 10 + [10.0] * 1500 + [0.0] * 400 + [10.0] * 200 + [0.0] * 400, 1.0
    )
    kinds = [kind for _, kind in told]
    assert kinds == [CONTACT, CONTACT, GIVEN_UP, CONTACT, CONTACT, OVER] and not events.touched
    assert events.events[2].seconds == pytest.approx(1.0, abs=0.01)
    assert events.events[2].touch is not None and told[3][0] > 1.9


def test_a_long_contact_has_longer_windows_and_all_of_its_time() -> None:
    (early, first), (whole, last) = watch([20.0] * 2500 + [0.0] * 500).asked
    assert 0.4 < first.sum() < 0.6
    assert len(last) <= WINDOWS and last.sum() == pytest.approx(25.0, abs=0.1)
    for external in (early, whole):
        np.testing.assert_allclose(external, [[20.0, 0.0, 0.0]] * len(external))


def test_a_contact_that_is_weak_when_it_is_looked_at_first_is_told_all_the_same() -> None:
    # The force is gone, and the contact not yet over.
    _, _, told, asked = watch([15.0] * 100 + [0.0] * 900, first=100)
    assert [kind for _, kind in told] == [CONTACT, CONTACT, OVER]
    assert [external.shape for external, _ in asked] == [(1, N), (1, N)]


def test_a_hard_contact_is_a_collision() -> None:
    events, _, told, _ = watch([10.0] * 5 + [100.0] * 20 + [0.0] * 400)
    assert [kind for _, kind in told] == [CONTACT, COLLISION, COLLISION, OVER][: len(told)]
    assert told[1] == (0.005, COLLISION) and not events.hard
    assert watch([0.5] * 100).told == []


@pytest.mark.parametrize("later", [3600 * SECOND, -20 * SECOND])
def test_a_contact_lasts_until_its_recording_ends(later: int) -> None:
    """As long as it was seen, whatever stamps follow."""
    events, detector, *_ = watch([20.0] * 200)
    detector.reset()
    events.follow(BEGIN + 200 * STEP + later, np.zeros(N), np.zeros(N), detector)
    assert events.events[-1].kind == OVER
    assert events.events[-1].seconds == pytest.approx(0.2, abs=0.01)


# Contacts alone, looked for from 6 s on.
SOON = {"changes.detect": False, "nystrom.window": 3.0, "changes.settle": 3.0}
AT = 9.0  # s, of a contact
HARD = 2.0 * largest_weight() * np.ones(4)


def lead(of: InverseDynamicsLearner, measurements: Iterator[Measurement]) -> None:
    """Predict, test for contacts and learn."""
    for measurement in measurements:
        if (step := of.predict(measurement, contacts=True)) is not None:
            of.detect_contact(step)
            of.update(of.admit(step))


@pytest.fixture(scope="module")
def quiet() -> dict[str, InverseDynamicsLearner]:
    """Learners of nothing but the arm until AT, by what they look for. Not to be changed."""
    looking = {
        "contacts": {},
        "changes": {"changes.detect": True},
        "none": {"changes.contact": 0.0},
    }
    found = {name: learner(**SOON | values) for name, values in looking.items()}
    for of in found.values():
        lead(of, moving(AT, nothing))
    return found


def test_a_learner_that_looks_for_nothing_else_tells_contacts_and_learns_all(quiet) -> None:
    """By default: what is learned is, to the last bit, what it is without contacts."""
    watching, blind = copy.deepcopy(quiet["contacts"]), copy.deepcopy(quiet["none"])
    for of in (watching, blind):
        lead(of, moving(AT + 3.0, pushed(HARD, AT, AT + 1.0), begin=AT))
    told = [(seconds(event.stamp) - AT, event.kind) for event in watching.contacts.events]
    assert {kind for _, kind in told} == {CONTACT, COLLISION, OVER} and told[-1][1] == OVER
    assert 0.0 <= told[0][0] <= 0.08 and 1.0 < told[-1][0] < 2.0
    assert not blind.contacts.events and blind.external is None
    one, other = watching.estimator.state(), blind.estimator.state()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)


@pytest.fixture(scope="module")
def heavier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a learner to which the arm always was twice as heavy, and more."""
    of, path = learner(**SOON), tmp_path_factory.mktemp("model") / "arm.npz"
    follow(of, moving(8.0, pushed(HARD, 0.0, np.inf)))
    of.save(path)
    return path


def test_a_loaded_model_is_not_judged_by_the_usual_errors_of_the_one_before(
    heavier: Path, quiet
) -> None:
    of = copy.deepcopy(quiet["contacts"])
    assert not of.contacts.total
    of.load(heavier)
    lead(of, moving(AT + 2.0, nothing, begin=AT))  # for less than `changes.settle`
    assert not of.contacts.total


def test_a_contact_ends_with_the_model_that_detected_it(heavier: Path, quiet) -> None:
    of = copy.deepcopy(quiet["contacts"])
    lead(of, moving(AT + 0.5, pushed(HARD, AT, np.inf), begin=AT))
    assert of.contacts.touched
    of.load(heavier)
    told = of.contacts.events[-1]
    assert not of.contacts.touched and told.kind == OVER
    assert AT < seconds(told.stamp) < AT + 0.5


def test_a_contact_is_over_where_contacts_are_switched_off(quiet) -> None:
    of = copy.deepcopy(quiet["contacts"])
    lead(of, moving(AT + 0.5, pushed(HARD, AT, np.inf), begin=AT))
    assert of.contacts.touched
    of.configure(replace(of.config, **{"changes.contact": 0.0}))
    lead(of, moving(AT + 0.6, pushed(HARD, AT, np.inf), begin=AT + 0.5))
    assert not of.contacts.touched and of.contacts.events[-1].kind == OVER


@pytest.mark.parametrize(
    ("detect", "rate", "share"), [(True, 1000, 0.5), (False, 500, 1.0), (True, 50, 1.0)]
)
def test_no_more_steps_are_tested_than_is_of_use(detect: bool, rate: int, share: float) -> None:
    of = learner(**{"changes.detect": detect})
    tested = []
    for k, measurement in enumerate(moving(4.0, nothing)):
        at = dataclasses.replace(measurement, stamp=SECOND + k * SECOND // rate)
        if (step := of.predict(at, contacts=True)) is not None:
            tested.append(step.tested is not None)
            assert (step.unchanged.fast is not None) == tested[-1]
            of.update(of.admit(step))
    assert sum(tested) == pytest.approx(share * len(tested), abs=2)


def test_a_sensor_feels_the_force_but_not_the_link() -> None:
    touch = at_sensor(
        np.zeros((1, 7)), np.array([[1.0, -2.0, 3.0, 9.0, 9.0, 9.0]]), np.eye(6), np.ones(1)
    )
    assert touch.link == "" and touch.force.tolist() == [-1.0, 2.0, -3.0]


@pytest.mark.parametrize("looks_for", ["contacts", "changes"])
def test_a_contact_is_over_once_nothing_is_measured_any_more(looks_for: str, quiet) -> None:
    """As where a sensor's driver ends: joint states alone go on, and nobody knows."""
    of, lost = copy.deepcopy(quiet[looks_for]), AT + 0.5
    lead(of, moving(lost, pushed(HARD, AT, np.inf), begin=AT))
    assert of.contacts.touched
    later = moving(lost + 1.0, pushed(HARD, AT, np.inf), begin=lost)
    lead(of, (dataclasses.replace(measurement, y=None) for measurement in later))
    over = of.contacts.events[-1]
    assert not of.contacts.touched and over.kind == OVER
    assert seconds(over.stamp) == pytest.approx(lost, abs=0.05)
    if of.changes is not None:
        assert not of.changes.contact.active and of.changes.events[-1].cause == OVER
