"""Compilation of all that nodes and evaluations call, half of it in a second process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from semiparam_dynamics.base.jit import cache_of, is_kept, of_this_package
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.base.storage import locked
from semiparam_dynamics.changes.config import ChangesConfig
from semiparam_dynamics.changes.contact import ContactDetector
from semiparam_dynamics.changes.hypotheses import Sums, log_evidence
from semiparam_dynamics.dynamics.baseline import NonparametricBaseline
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.filtering import FilterConfig, SampleFilter, filter_row
from semiparam_dynamics.dynamics.rigid_body import learn_samples
from semiparam_dynamics.dynamics.sample import SampleBlock
from semiparam_dynamics.learner.config import InverseDynamicsConfig, InverseDynamicsNodeConfig
from semiparam_dynamics.learner.nodes.session import warm_up
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.measurement import Measurement

# The joints of a small arm: the compiled code is the same for every robot.
URDF = """<robot name="compiled"><link name="base"/>{}</robot>"""
LINK = """<link name="link{k}"><inertial><origin xyz="0.1 0.02 0.1"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="joint{k}" type="revolute"><parent link="{parent}"/><child link="link{k}"/>
<origin xyz="0 0 0.3"/><axis xyz="{axis}"/><limit lower="-3" upper="3" effort="50" velocity="5"/>
</joint>"""
AXES = ("0 0 1", "0 1 0", "0 1 0")
SECONDS = 6.0  # of motion
BLOCK = 50  # samples that are learned together
RESIDUALS = ("nystrom", "random_fourier")
TARGETS = ({"target": "effort"}, {"target": "wrench", "sensor_frame": "joint2"})
MAX_WAIT = 300.0  # s: a process that takes longer is given up
# For libraries that would otherwise use all cores.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def compile_all() -> None:
    """Lead each kind of learner through a motion, live and as a recording."""
    compile_together(RESIDUALS)
    for target in TARGETS:
        for residual in RESIDUALS:
            node, model = small_arm({**target, "residual": residual})
            warm_up(model, node)
            _learn_in_blocks(model, node.learner)


def _learn_in_blocks(model: RobotModel, config: InverseDynamicsConfig) -> None:
    """Filter, predict and learn a recording in blocks, as an evaluation does."""
    window = f"{config.estimator.residual}__window"
    estimator = replace(config.estimator, **{window: 0.2 * SECONDS})
    learned = SemiparametricEstimator(model, estimator), NonparametricBaseline(model, estimator)
    samples = list(SampleFilter(model, config.filter).filter_recording(_motion(model)))
    for start in range(0, len(samples), BLOCK):
        block = SampleBlock.of(samples[start : start + BLOCK])
        for each in learned:
            each.predict_block(block)
            each.update_block(block)


def is_compiled() -> bool:
    """Test whether an earlier process kept the code of a node: the last of each half is there."""
    return is_kept(filter_row) and is_kept(learn_samples)


def compile_together(residuals: Sequence[str]) -> None:
    """Compile the filter and the detectors here, and in another process what learns `residuals`.

    On return this process finds both. Another one that compiles them already is waited for. Does
    nothing where they are kept, or could not be kept, or where there is one core alone.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    caches = cache_of(learn_samples)
    if cores in (1, None) or caches is None:
        return
    caches.mkdir(parents=True, exist_ok=True)
    with locked(caches):
        if not is_compiled():
            _compile_both(residuals)


def _compile_both(residuals: Sequence[str]) -> None:
    called = f"compile_learners({list(residuals)})"
    program = f"from semiparam_dynamics.learner.nodes.compilation import compile_learners; {called}"
    quiet = subprocess.DEVNULL
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", of_this_package(program)],
        stdin=quiet,
        stdout=quiet,
        stderr=quiet,
        env={**os.environ, **dict.fromkeys(THREADS, "1")},
    ) as process:
        try:
            # None of what the other compiles before it has ended: of one function that two
            # processes keep at once numba may keep the wrong code.
            _compile_filter_and_detectors()
            with suppress(subprocess.TimeoutExpired):  # what it has not compiled this one does
                process.wait(MAX_WAIT)
        finally:
            process.kill()


def compile_learners(residuals: Sequence[str]) -> None:
    """Lead a learner with each residual through a motion, without filter and detectors."""
    for residual in residuals:
        node, model = small_arm({"residual": residual})
        alone = replace(node, changes__detect=False, changes__contact=0.0)
        warm_up(model, alone, filtered=True)


def _compile_filter_and_detectors() -> None:
    """Filter a motion, message by message and as a recording, and look for changes in noise."""
    model = small_arm({})[1]
    log = _motion(model)[:200]
    live = SampleFilter(model, FilterConfig(), fast=True)
    contacts = ContactDetector(ChangesConfig(), np.ones(model.n_axes), by_speed=True)
    for measurement in log:
        live.push(measurement)
        # A cut-off so low that messages this far apart can be sharpened.
        q, dq = measurement.q, measurement.dq
        contacts.add(measurement.stamp, q, 1.0, dq, expected=q, cutoff=1.0)
    list(SampleFilter(model, FilterConfig()).filter_recording(log))
    log_evidence(Sums.from_rows(np.eye(3), np.ones(3)), np.eye(3))


def small_arm(values: dict[str, str]) -> tuple[InverseDynamicsNodeConfig, RobotModel]:
    """A node's configuration with these values, and a small arm's model under it."""
    parents = ("base", "link0", "link1")
    links = (
        LINK.format(k=k, parent=parent, axis=axis)
        for k, (parent, axis) in enumerate(zip(parents, AXES, strict=True))
    )
    node = replace(InverseDynamicsNodeConfig(), changes__detect=True, **values)
    return node, RobotModel(URDF.format("".join(links)), node.learner.robot)


def _motion(model: RobotModel) -> list[Measurement]:
    rng = np.random.default_rng(0)
    times = np.arange(0.0, SECONDS, 0.01)
    q = np.sin(np.outer(times, [1.0, 1.7, 2.3]))
    y = rng.normal(size=(len(times), model.n_axes))
    return [
        Measurement(round(1e9 * (1.0 + t)), *row)
        for t, *row in zip(times, q, np.gradient(q, 0.01, axis=0), y, strict=True)
    ]
