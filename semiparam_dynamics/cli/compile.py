"""`semiparam compile`."""

from __future__ import annotations

import argparse
import subprocess
import sys

from semiparam_dynamics import jit
from semiparam_dynamics.errors import StorageError

DESCRIPTION = """\
Compile the numerical core now and keep it with the installation. Without it each user's first start
compiles for half a minute, and so does every start of a user without a folder to keep it in, as in
a container. Run it once after installing, as the user who installed, on the kind of processor that
the robot has: for another kind the core is compiled anew."""
EXAMPLES = ("semiparam compile",)

# The joints of a small arm: the compiled code is the same for every robot.
URDF = """<robot name="compiled"><link name="base"/>{}</robot>"""
LINK = """<link name="link{k}"><inertial><origin xyz="0.1 0.02 0.1"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="joint{k}" type="revolute"><parent link="{parent}"/><child link="link{k}"/>
<origin xyz="0 0 0.3"/><axis xyz="{axis}"/><limit lower="-3" upper="3" effort="50" velocity="5"/>
</joint>"""
AXES = ("0 0 1", "0 1 0", "0 1 0")
SECONDS = 20.0  # of motion


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb's arguments: there are none."""


def run(args: argparse.Namespace) -> int:
    """Compile in a process that keeps the result where every later one looks for it."""
    try:
        jit.KEPT.mkdir(exist_ok=True)
        (jit.KEPT / "written").touch()
    except OSError as error:
        raise StorageError(
            f"{jit.KEPT} can't be written to ({error.strerror}): run this as the user who installed"
        ) from None
    print("compiling, about half a minute", flush=True)
    program = "from semiparam_dynamics.cli.compile import compile_all; compile_all()"
    done = subprocess.run([sys.executable, "-c", program], check=False)  # noqa: S603
    if done.returncode == 0:
        size = sum(path.stat().st_size for path in jit.KEPT.rglob("*")) / 1e6
        print(f"kept in {jit.KEPT}: {size:.1f} MB")
    return done.returncode


def compile_all() -> None:
    """Lead each kind of learner through a motion, live and as a recording."""
    import numpy as np

    from semiparam_dynamics.config import InverseDynamicsConfig, InverseDynamicsNodeConfig
    from semiparam_dynamics.evaluation.experiment import evaluate
    from semiparam_dynamics.nodes.session import warm_up
    from semiparam_dynamics.parameters import replace
    from semiparam_dynamics.robot.model import RobotModel
    from semiparam_dynamics.samples.measurement import Measurement

    parents = ("base", "link0", "link1")
    links = (
        LINK.format(k=k, parent=parent, axis=axis)
        for k, (parent, axis) in enumerate(zip(parents, AXES, strict=True))
    )
    urdf, rng = URDF.format("".join(links)), np.random.default_rng(0)
    for target in ({"target": "effort"}, {"target": "wrench", "sensor_frame": "joint2"}):
        for residual in ("nystrom", "random_fourier"):
            values = {**target, "residual": residual}
            node = replace(InverseDynamicsNodeConfig(), **values)
            model = RobotModel(urdf, node.learner.robot)
            warm_up(model, replace(node, changes__detect=True))
            times = np.arange(0.0, SECONDS, 0.01)
            q = np.sin(np.outer(times, [1.0, 1.7, 2.3]))
            y = rng.normal(size=(len(times), model.n_axes))
            log = [
                Measurement(round(1e9 * (1.0 + t)), *row)
                for t, *row in zip(times, q, np.gradient(q, 0.01, axis=0), y, strict=True)
            ]
            evaluate(model, replace(InverseDynamicsConfig(), **values), [log], [log])
