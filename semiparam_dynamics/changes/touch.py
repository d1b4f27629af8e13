"""Contacts as events: when, how hard, and which link was touched."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from semiparam_dynamics.base.arrays import NANO, Array
from semiparam_dynamics.changes.config import COLLISION, CONTACT, GIVEN_UP, OVER
from semiparam_dynamics.changes.contact import PAUSE, ContactDetector
from semiparam_dynamics.changes.external_wrench import LearnedJoints
from semiparam_dynamics.changes.usual_errors import MEAN_S
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.urdf import parse_urdf

PRIOR_FORCE_N = 30.0  # of a contact, as a standard deviation
PRIOR_LEVER_M = 0.05  # between a point of a link and the line along it, as a standard deviation
PLACES = (0.2, 0.4, 0.6, 0.8, 1.0)  # of the way to the next joint, where a link may be touched
# Standard deviations of a force, N, and of its moment about a point of that line, N m.
PRIOR = PRIOR_FORCE_N * np.array([1.0, 1.0, 1.0, *(3 * [math.sqrt(2.0) * PRIOR_LEVER_M])])
LAST_LINK_LENGTH_M = 0.1  # of the last link, where nothing is fixed to it
COLLISION_SHARE = 3.0  # times its threshold that a contact's deviation exceeds in a collision
LOOKED_AT = 50_000_000  # ns after which a contact that lasts is reported with link and force
MAX_EVENTS = 50  # events
WINDOW = 50_000_000  # ns, of a contact, over which positions and efforts are averaged
WINDOWS = 20  # of a contact at most: where it lasts, they are twice as long


class ContactEvent(NamedTuple):
    """A report of a contact: its beginning, a collision, its place, or its end."""

    stamp: int  # ns, of the sample
    since: int  # ns, of the contact's first sample
    kind: str  # "contact", "collision", "contact over" or "contact given up"
    deviation: float  # the largest so far, in multiples of the threshold
    touch: Touch | None = None  # where and how hard, on the mean; None while it is too early

    @property
    def seconds(self) -> float:
        """For how long the contact has lasted."""
        return (self.stamp - self.since) * NANO


class ContactEvents:
    """Turns a detector's state, sample by sample, into events.

    Parameters
    ----------
    find: the touch of means over windows: q (n_windows, n_joints), external efforts or wrench
        (n_windows, n_axes), the covariance (n_axes, n_axes) of such a mean over `MEAN_S`, and each
        window's length (n_windows,) as a share of that.

    Attributes
    ----------
    events: the last ones, oldest first. total: of all.
    touched, hard: whether there is a contact, and one that is a collision.
    """

    def __init__(self, find: Callable[[Array, Array, Array, Array], Touch]) -> None:
        self._find = find
        self.events: deque[ContactEvent] = deque(maxlen=MAX_EVENTS)
        self.total = 0
        self.touched = self.hard = False
        self._located = False  # with its touch
        self._windows: list[Window] = []
        self._since = 0

    def follow(self, stamp: int, q: Array, external: Array, detector: ContactDetector) -> None:
        """Take the detector's state after a sample with these external efforts or wrench."""
        if not self.touched and not detector.active:
            return
        began = detector.active and not self.touched
        if began:
            self._since, self._largest = detector.since, 0.0
            self._windows, self._length, self._last = [], WINDOW, detector.since
            self.hard = self._located = False
        if detector.active:
            self._largest = max(self._largest, float(detector.nearest["share"]))
            # Not what comes after a push is over; but a contact that is weak from the first sample
            # looked at has no other.
            if detector.pressed or not self._windows:
                self._gather(stamp, q, external)
            self._last = stamp
        if began:
            self._record(stamp, CONTACT)
        if detector.active and not self.hard and detector.largest > COLLISION_SHARE:
            self.hard = True
            self._record(stamp, COLLISION)
        if detector.active and not self._located and stamp - self._since >= LOOKED_AT:
            self._located = True
            self._record(stamp, COLLISION if self.hard else CONTACT, self._touch(detector))
        if not detector.active:
            # It ends with its recording: before a pause, or before the clock went back.
            at = stamp if 0 <= stamp - self._last <= PAUSE else self._last
            self._end(at, detector)
        self.touched = detector.active

    def end(self, detector: ContactDetector) -> None:
        """End a contact that is under way: no sample follows that could."""
        if self.touched:
            self._end(self._last, detector)

    def _end(self, stamp: int, detector: ContactDetector) -> None:
        # What lasts too long may still press: that it is over would not be true.
        kind = GIVEN_UP if detector.given_up else OVER
        self._record(stamp, kind, self._touch(detector))
        self.touched = self.hard = False

    def _gather(self, stamp: int, q: Array, external: Array) -> None:
        """Add a sample to its window."""
        seconds = max(stamp - self._last, 1) * NANO
        if not self._windows or self._windows[-1].seconds >= self._length * NANO:
            if len(self._windows) == WINDOWS:
                pairs = zip(self._windows[::2], self._windows[1::2], strict=True)
                self._windows = [one.joined(other) for one, other in pairs]
                self._length *= 2
            self._windows.append(Window(seconds, 1, q.copy(), external.copy()))
        else:
            self._windows[-1] = self._windows[-1].joined(Window(seconds, 1, q, external))

    def _touch(self, detector: ContactDetector) -> Touch:
        means = [(w.q / w.number, w.external / w.number) for w in self._windows]
        q, external = (np.array(each) for each in zip(*means, strict=True))
        shares = np.array([w.seconds for w in self._windows]) / MEAN_S
        return self._find(q, external, detector.mean_covariance(), shares)

    def _record(self, stamp: int, kind: str, touch: Touch | None = None) -> None:
        self.events.append(ContactEvent(stamp, self._since, kind, self._largest, touch))
        self.total += 1


class Window(NamedTuple):
    """Sums over a part of a contact."""

    seconds: float
    number: int  # of samples
    q: Array  # (n_joints,)
    external: Array  # (n_axes,)

    def joined(self, other: Window) -> Window:
        """Both as one."""
        seconds, number = self.seconds + other.seconds, self.number + other.number
        return Window(seconds, number, self.q + other.q, self.external + other.external)


def at_sensor(q: Array, external: Array, covariance: Array, shares: Array) -> Touch:
    """The touch that a sensor's external wrenches (n_windows, 6) show, in its axes; no link."""
    return Touch("", -np.average(external[:, :3], axis=0, weights=shares), 1.0)


# -------------------------------------------------------------------------------------------------
# Which link was touched.


class Touch(NamedTuple):
    """The best explanation of external efforts: one force at a point of one link."""

    link: str  # empty where it isn't known
    force: Array  # (3,) N, that the surroundings exert, in the base's or the sensor's axes
    sure: float  # the link's probability among the links


class TouchedLink:
    """Finds the link that was touched, by Bayes' rule over a force at any point of any link.

    A force moves the joints between the base and its link, but for those through whose axis it
    goes. So each link is weighed by how probable the efforts are with a force of any direction at a
    point near the line to the next joint, beside usual errors. The force and the point are taken to
    stay while the arm moves. Not thread-safe. Joints that are not learned are locked.
    """

    def __init__(self, model: RobotModel) -> None:
        tree = parse_urdf(model.urdf_text)
        self._joints = LearnedJoints(model, tree)
        self._model, self._data, self._ids = self._joints.model, self._joints.data, self._joints.ids
        self.links = tuple(tree.joints[name].child for name in model.joint_names)
        self._ends = [self._end(k) for k in self._ids]

    def _end(self, joint: int) -> Array:
        """End of a joint's link, in its frame: at the next joint, or at what is fixed to it."""
        ends = [
            self._model.jointPlacements[k].translation
            for k in range(1, self._model.njoints)
            if self._model.parents[k] == joint
        ]
        ends += [
            frame.placement.translation
            for frame in self._model.frames
            if frame.parentJoint == joint and frame.type == pin.FrameType.BODY
        ]
        furthest: Array = max(ends, key=np.linalg.norm, default=np.zeros(3))
        center = self._model.inertias[joint].lever
        if np.linalg.norm(furthest) < 1e-6 and np.linalg.norm(center) > 1e-6:
            furthest = LAST_LINK_LENGTH_M * center / np.linalg.norm(center)
        return furthest.copy()

    def find(self, q: Array, external: Array, covariance: Array, shares: Array) -> Touch:
        """The touch that explains `external` efforts best, means over windows of a contact.

        q, external : (n_windows, n_joints); measured minus predicted, NaN where not measured.
        covariance : (n_joints, n_joints) of usual errors. shares : (n_windows,) weights: a window
        of half the weight has errors of twice that covariance.
        """
        n_links, places = len(self._ids), np.array(PLACES)
        information: Array = np.zeros((n_links, len(places), 6, 6))
        weighted: Array = np.zeros((n_links, len(places), 6))
        for at, efforts, share in zip(q, external, shares, strict=True):
            self._joints.place(at)
            pin.computeJointJacobians(self._model, self._data, self._joints.q)
            known = np.flatnonzero(~np.isnan(efforts))
            inverse = share * np.linalg.inv(covariance[np.ix_(known, known)])
            for k, joint in enumerate(self._ids):
                J = pin.getJointJacobian(self._model, self._data, joint, pin.LOCAL_WORLD_ALIGNED)
                J, own = J.reshape(6, -1), self._joints.columns  # of one joint it comes as (6,)
                linear, angular = J[:3, own], J[3:, own]
                end = self._data.oMi[joint].rotation @ self._ends[k]
                moved = pin.skew(end) @ angular
                # Of a force at each place, and of moments about it.
                columns: Array = np.empty((len(places), len(efforts), 6))
                columns[:, :, :3] = -(linear - places[:, None, None] * moved).transpose(0, 2, 1)
                columns[:, :, 3:] = -angular.T
                columns = columns[:, known] * PRIOR
                right = inverse @ columns
                information[k] += columns.transpose(0, 2, 1) @ right
                weighted[k] += efforts[known] @ right
        # The log probability of the efforts, but for what is the same for all.
        root = np.linalg.cholesky(information + np.eye(6))
        white = np.linalg.solve(root, weighted[..., None])[..., 0]
        logs = np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)
        scores = 0.5 * (white**2).sum(axis=-1) - logs
        weights = np.exp(scores - scores.max())
        links = weights.sum(axis=1)
        best = int(np.argmax(links))
        place = int(np.argmax(scores[best]))
        found = np.linalg.solve(root[best, place].T, white[best, place])
        force: Array = PRIOR[:3] * found[:3]
        return Touch(self.links[best], force, float(links[best] / links.sum()))
