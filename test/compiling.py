"""What numba compiles, in parts: in a fresh clone each part by one test process, then read by all.

Otherwise all of them compile everything, at the same time, and so does each node's process.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path

import numpy as np

from semiparam_dynamics.config import InverseDynamicsConfig
from semiparam_dynamics.dynamics.filtering import FilterConfig, SampleFilter
from semiparam_dynamics.dynamics.rigid_body import RigidBodyConfig, RigidBodyIdentifier
from semiparam_dynamics.learner import InverseDynamicsLearner
from semiparam_dynamics.learning.gaussian_blocks import GaussianBlocks
from semiparam_dynamics.parameters import replace
from semiparam_dynamics.robot.model import ExpectedScales

from .dynamics.arms import measurements, small_arm

DRAWN = np.random.default_rng(0).standard_normal((40, 6))


def filtering() -> None:
    """The regressor and the filter."""
    model = small_arm()
    list(SampleFilter(model, FilterConfig()).filter_recording(list(measurements(model, 0.1))))


def recursion() -> None:
    """The rigid body's recursion, without the regressor."""
    scales = ExpectedScales(np.ones(2), np.ones(6), np.ones((2, 6)), np.eye(6))
    dry, stops = np.arange(6) > 2, np.arange(-5, 1)
    rigid_body = RigidBodyIdentifier(scales, np.zeros(6), RigidBodyConfig(), dry, stops)
    for rows in DRAWN.reshape(-1, 2, 6):
        rigid_body.leverage(rows)
        rigid_body.update(rows, rows[:, 0])


def kernels(dtype: type) -> None:
    """Products with Gaussian kernels."""
    X = DRAWN.astype(dtype)
    blocks = GaussianBlocks(X[:20], np.ones(6))
    blocks.transposed(X, blocks.multiply(X, DRAWN[:20]))
    blocks.normal(X, DRAWN[:20], None, None)
    blocks(X)


def learner() -> None:
    """What is left of a prediction and of an update."""
    model = small_arm()
    for residual in ("nystrom", "random_fourier"):
        config = replace(InverseDynamicsConfig(), residual=residual)
        learner = InverseDynamicsLearner(model, config)
        for measurement in measurements(model, 0.6):
            if (step := learner.predict(measurement)) is not None:
                learner.update(learner.admit(step))


PARTS = (
    (filtering,),
    (recursion,),
    (kernels, np.float64),
    (kernels, np.float32),
)


def compile_in_parts(process: int, processes: int) -> None:
    """Begin with the parts that are this process', of so many; wait for others' and read them."""
    folder = Path(tempfile.gettempdir()) / f"semiparam_compiling_{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for part, *arguments in (*PARTS[process::processes], *PARTS, (learner,)):
        # The lock goes with the process however it ends.
        with (folder / "_".join([part.__name__, *map(str, arguments)])).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            part(*arguments)
