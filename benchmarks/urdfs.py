"""Every URDF below a folder: this package's efforts against pinocchio's rnea, or the sentence.

    python benchmarks/urdfs.py FOLDER

A robot stands on its root link; its joints are in five random states, those that mimic others at 0.
pinocchio reads the file as it is. Equal are efforts that differ by less than 1e-9 of the largest,
by all inertial parameters; base parameters leave out what motion hardly shows (1e-5 of a column).
Where the package replaces bodies that can't exist, pinocchio goes on with them, so efforts differ.
Public URDFs are in the package example-robot-data and in Daniella1/urdf_files_dataset on GitHub.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from textwrap import shorten

import numpy as np
import pinocchio as pin
from output import make_parser, markdown, parse

from semiparam_dynamics.base.errors import SemiparamError
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.urdf import parse_urdf, read_urdf

STATES, TOLERANCE = 5, 1e-9
MOST_JOINTS = 45  # base parameters of more take minutes and gigabytes
PLAIN = {"viscous": False, "coulomb": False, "offset": False, "rotor_inertia": False}


def rnea(model: pin.Model, joints: tuple[str, ...], state: np.ndarray) -> np.ndarray:
    """(n_joints,) efforts of a state (3, n_joints), other joints at rest at 0."""
    q, dq, ddq = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
    rows = []
    for name, angle, velocity, acceleration in zip(joints, *state, strict=True):
        joint = model.joints[model.getJointId(name)]
        pose = angle if joint.nq == 1 else (np.cos(angle), np.sin(angle))  # continuous
        q[joint.idx_q : joint.idx_q + joint.nq] = pose
        dq[joint.idx_v], ddq[joint.idx_v] = velocity, acceleration
        rows.append(joint.idx_v)
    return pin.rnea(model, model.createData(), q, dq, ddq)[rows]


def compared(path: Path) -> tuple[str, str]:
    """A kind of result and its details."""
    try:
        text = read_urdf(path)
        tree = parse_urdf(text)
        if len(tree.actuated()) > MOST_JOINTS:
            return f"not tried, more than {MOST_JOINTS} joints", ""
        model = RobotModel(text, **PLAIN, presliding=())
    except SemiparamError as error:
        return "refused", str(error)
    try:
        other = pin.buildModelFromUrdf(str(path))
    except (ValueError, RuntimeError) as error:
        return "refused by pinocchio alone", str(error).splitlines()[0]
    states = np.random.default_rng(0).standard_normal((STATES, 3, model.n_joints))
    expected = np.array([rnea(other, model.joint_names, state) for state in states])
    ours = np.array([model.inverse_dynamics(*state) for state in states])
    base = np.array([model.regressor(*state) @ model.prior for state in states])
    size = max(float(np.abs(expected).max()), 1e-12)  # of a robot without any mass
    whole, reduced = (float(np.abs(efforts - expected).max()) / size for efforts in (ours, base))
    told = f"difference {whole:.1g}, by base parameters {reduced:.1g}; {' '.join(tree.notes)}"
    if tree.replaced:
        return "bodies replaced", told
    return ("equal" if whole < TOLERANCE else "different") + ", a note" * bool(tree.notes), told


if __name__ == "__main__":
    parser = make_parser(__doc__)
    parser.add_argument("folder", type=Path, help="folder that holds URDFs, at any depth")
    folder = parse(parser).folder
    results = {path: compared(path) for path in sorted(folder.rglob("*.urdf"))}
    kinds = Counter(kind for kind, _ in results.values())
    rows = [(kind, str(count)) for kind, count in kinds.most_common()]
    print(markdown(("of the URDFs", str(len(results))), rows), end="\n\n")
    told = [
        (f"{path.parent.name}/{path.name}", kind, shorten(details, 200))
        for path, (kind, details) in results.items()
        if kind != "equal" and details
    ]
    print(markdown(("file", "result", "told"), sorted(told, key=lambda row: row[1])))
