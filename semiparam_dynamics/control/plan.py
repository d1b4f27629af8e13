"""The desired motion in blocks, ahead of time, with the learner's feed-forward for them.

The desired motion is known, so that the learner is asked before its answer is needed: the way to it
and back costs no delay, and a block of instants costs hardly more than one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError, SampleError
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.simulation.config import MotionConfig
from semiparam_dynamics.simulation.trajectories import HandKinematics, Motion, make_trajectory
from semiparam_dynamics.simulation.urdf import SimulatedArm, without_meshes

PEAK_VELOCITY = 1.875  # over the mean, of 10 x^3 - 15 x^4 + 6 x^5
MIN_DURATION_S = 0.5  # of the way to the motion's first position
Reference = Callable[[Array], Motion]


@dataclass(frozen=True, slots=True)
class Answer:
    """The learner's efforts at some instants, (k, n_joints), or at one, (n_joints,); N m."""

    values: Array
    stds: Array  # their standard deviations


@dataclass(slots=True)
class Block:
    """Some instants of the desired motion, a period apart, with the models' efforts."""

    first: int  # index of its first instant: time / period
    q: Array  # (k, n_joints) rad
    dq: Array
    ddq: Array
    urdf: Array  # (k, n_joints) N m
    inertia: Array  # (n_joints,) kg m^2, diagonal of the mass matrix at its middle
    answer: Answer | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """The desired state at one instant, and the feed-forward from then on; all (n_joints,)."""

    q: Array
    dq: Array
    urdf: Array
    inertia: Array
    answer: Answer | None


class Plan:
    """Blocks of a desired motion, from the present on.

    Parameters
    ----------
    model: the URDF's, of joint efforts. reference: q, dq, ddq (k, n_joints) at times (k,) in s.
    period: between its instants, s. size: instants of a block.
    delay: of a command until it acts, s: the feed-forward is that of so much later.
    lead: by which a block is made before it begins, s.

    Attributes
    ----------
    begun: blocks that have begun. late: those of them without an answer by then.
    """

    def __init__(
        self,
        model: RobotModel,
        reference: Reference,
        period: float,
        size: int,
        delay: float = 0.0,
        lead: float = 0.0,
    ) -> None:
        self._model, self._reference = model, reference
        self._period, self._size, self._delay, self._lead = period, size, delay, lead
        self._blocks: deque[Block] = deque()
        self._counted = -1  # first index of the last block that was counted
        self.begun = self.late = 0

    def ahead(self, time: float) -> list[Block]:
        """New blocks, for which to ask the learner now. Removes those that have passed.

        Raises SampleError where the motion isn't finite.
        """
        now = self._index(time)
        last = self._index(time + self._delay + self._lead) // self._size
        while self._blocks and self._blocks[0].first + self._size <= now:
            self._blocks.popleft()
        if self._blocks and self._blocks[0].first > now:
            self._blocks.clear()  # the clock went back
            self._counted = -1
        first = now // self._size
        if self._blocks:
            first = self._blocks[-1].first // self._size + 1
        made = [self._make(index * self._size) for index in range(first, last + 1)]
        self._blocks += made
        return made

    def take(self, first: int, answer: Answer) -> bool:
        """Keep the answer for the block that begins at index `first`; False where none does.

        Raises SampleError where its size isn't the block's.
        """
        for block in self._blocks:
            if block.first == first:
                if not block.urdf.shape == answer.values.shape == answer.stds.shape:
                    raise SampleError(
                        f"the answer for a block of shape {block.urdf.shape} has the shapes "
                        f"{answer.values.shape} and {answer.stds.shape}"
                    )
                block.answer = answer
                return True
        return False

    def at(self, time: float) -> Point:
        """The desired state at a time in s, and the feed-forward then.

        Raises SampleError where :meth:`ahead` wasn't called with that time.
        """
        index, acting = self._index(time), self._index(time + self._delay)
        block, later = self._block(index), self._block(acting)
        if later.first > self._counted:
            self._counted = later.first
            self.begun += 1
            self.late += later.answer is None
        k, m, since = index - block.first, acting - later.first, time - index * self._period
        q, dq, ddq = block.q[k], block.dq[k], block.ddq[k]
        answer = later.answer
        return Point(
            q=q + since * (dq + 0.5 * since * ddq),
            dq=dq + since * ddq,
            urdf=later.urdf[m],
            inertia=later.inertia,
            answer=None if answer is None else Answer(answer.values[m], answer.stds[m]),
        )

    def _index(self, time: float) -> int:
        return max(0, round(time / self._period))

    def _block(self, index: int) -> Block:
        for block in self._blocks:
            if block.first <= index < block.first + self._size:
                return block
        raise SampleError("the plan doesn't reach this time: call 'ahead' with it first")

    def _make(self, first: int) -> Block:
        """The block that begins at an index, with the URDF's efforts."""
        times: Array = self._period * np.arange(first, first + self._size, dtype=np.float64)
        q, dq, ddq = self._reference(times)
        if not all(np.isfinite(part).all() for part in (q, dq, ddq)):
            raise SampleError(f"the desired motion is not finite from {times[0]:g} s on")
        n, middle = self._model.n_joints, self._size // 2
        # The mass matrix' columns are the efforts that a unit acceleration adds.
        states = (
            np.concatenate((q, np.repeat(q[middle : middle + 1], n + 1, axis=0))),
            np.concatenate((dq, np.zeros((n + 1, n)))),
            np.concatenate((ddq, np.zeros((1, n)), np.eye(n))),
        )
        said = self._model.regressors(*states) @ self._model.prior
        inertia = np.diagonal(said[-n:] - said[-n - 1]).copy()
        return Block(first, q, dq, ddq, said[: self._size], inertia)


class Approach:
    """A trajectory, after a motion to its first position from where the arm is at rest.

    On the way all joints follow 10 x^3 - 15 x^4 + 6 x^5, whose velocity and acceleration are zero
    at both ends (Craig 2005, Introduction to Robotics, section 7.3).

    Parameters
    ----------
    start: (n,) rad. trajectory: q, dq, ddq (k, n) at times (k,) in s, from rest. speed: largest
        joint velocity on the way, rad/s.

    Attributes
    ----------
    duration: s, of the way; the trajectory begins after it.
    """

    def __init__(self, start: Array, trajectory: Reference, speed: float) -> None:
        self._start, self._trajectory = start, trajectory
        self._way: Array = trajectory(np.zeros(1))[0][0] - start
        self.duration = max(MIN_DURATION_S, PEAK_VELOCITY * float(np.abs(self._way).max()) / speed)

    def __call__(self, t: Array) -> Motion:
        """q, dq and ddq (k, n) at times t (k,) in s, t >= 0."""
        T = self.duration
        q, dq, ddq = (part.copy() for part in self._trajectory(np.maximum(np.asarray(t) - T, 0.0)))
        on_the_way = np.asarray(t) < T
        x = (np.asarray(t)[on_the_way] / T)[:, None]
        q[on_the_way] = self._start + (10 * x**3 - 15 * x**4 + 6 * x**5) * self._way
        dq[on_the_way] = (30 * x**2 - 60 * x**3 + 30 * x**4) * self._way / T
        ddq[on_the_way] = (60 * x - 180 * x**2 + 120 * x**3) * self._way / T**2
        return q, dq, ddq


def trajectory_of(
    urdf: str,
    joints: Sequence[str],
    config: MotionConfig,
    seed: int,
    hand_frame: str = "",
    hand_offset: Sequence[float] = (),
) -> Reference:
    """The configured motion of a robot's `joints`, from rest.

    `urdf` is the URDF's text or its file's path. Raises RobotModelError and ConfigurationError.
    """
    if len(hand_offset) not in (0, 3):
        raise ConfigurationError(
            f"parameter 'hand_offset' must have 3 numbers, not {len(hand_offset)}"
        )
    arm = SimulatedArm(without_meshes(urdf), tuple(joints), "", hand_frame)
    offset = hand_offset or (0.0, 0.0, 0.0)
    hand = HandKinematics(arm.moving_part(), arm.joints, arm.hand_frame, offset)
    return make_trajectory(config, hand, seed, config.center)
