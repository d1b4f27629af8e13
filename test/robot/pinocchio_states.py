"""States as pinocchio counts them, of any joints in any order; for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pinocchio as pin


def state_of(
    model: pin.Model, joints: Mapping[str, Sequence[float]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, dq and ddq of the whole robot; by name those of some joints, the others stand at 0."""
    q, dq, ddq = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
    for name, (angle, velocity, acceleration) in joints.items():
        joint = model.joints[model.getJointId(name)]
        pose = angle if joint.nq == 1 else (np.cos(angle), np.sin(angle))  # continuous
        q[joint.idx_q : joint.idx_q + joint.nq] = pose
        dq[joint.idx_v], ddq[joint.idx_v] = velocity, acceleration
    return q, dq, ddq


def rows_of(model: pin.Model, names: Sequence[str]) -> list[int]:
    """Where the joints' velocities and torques stand."""
    return [model.joints[model.getJointId(name)].idx_v for name in names]


def torques(model: pin.Model, names: Sequence[str], *states: np.ndarray) -> np.ndarray:
    """(n, n_joints) by rnea, for q, dq and ddq (n, n_joints) of the named joints."""
    data, rows, found = model.createData(), rows_of(model, names), []
    for state in np.swapaxes(states, 0, 1):
        whole = state_of(model, dict(zip(names, state.T, strict=True)))
        found.append(pin.rnea(model, data, *whole)[rows])
    return np.array(found)
