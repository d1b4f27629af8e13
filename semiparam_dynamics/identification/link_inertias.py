"""From identified bodies to a URDF's links.

A body is a link with all that is fixed to it, and motion says nothing of how its mass is shared
among them. If the body's pseudo-inertia went from P0 to T P0 T', each link's goes from P0_k to
T P0_k T': they add up to the body's, each is a real body again, their masses all change by the same
factor, and where the data said nothing, T = 1, they are the URDF's. Where a link with mass is no
body that can exist (a mere mass, a plate), there is nothing to share by: the link nearest to the
base then has all of it, and the others none.
"""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.robot import RobotModel
from semiparam_dynamics.dynamics.urdf_tree import parse_urdf
from semiparam_dynamics.identification.consistent import ConsistentParameters
from semiparam_dynamics.identification.log_cholesky import inertial_parameters, pseudo_inertia
from semiparam_dynamics.identification.nearest_body import is_body
from semiparam_dynamics.identification.urdf_inertial import read_inertial


def link_inertias(model: RobotModel, found: ConsistentParameters) -> dict[str, Array | None]:
    """By link, the parameters (10,) in its own frame, None where its mass went to another.

    Links that stand still with the base, and those without mass, are not in it: they stay as they
    are.
    """
    inertials = parse_urdf(model.urdf_text).inertials
    shared: dict[str, Array | None] = {}
    bodies = found.values[: model.inertial_prior.size].reshape(-1, 10)
    for body, T, links in zip(bodies, found.transforms, model.links, strict=True):
        heavy = {}
        for name, pose in links:
            parameters = read_inertial(inertials[name], name)
            if parameters.any():
                heavy[name] = pose, parameters
        if heavy and all(is_body(parameters) for _, parameters in heavy.values()):
            for name, (pose, parameters) in heavy.items():
                to_link: Array = np.linalg.inv(pose) @ T @ pose
                shared[name] = _congruent(to_link, parameters)
        else:
            shared.update(dict.fromkeys(heavy))
            first, pose = links[0]
            from_body: Array = np.asarray(np.linalg.inv(pose))
            shared[first] = _congruent(from_body, body)
    return shared


def _congruent(T: Array, parameters: Array) -> Array:
    """The parameters (10,) of T P T'; a pose T takes them into another frame."""
    return inertial_parameters(T @ pseudo_inertia(parameters) @ T.T)
