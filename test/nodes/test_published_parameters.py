"""The inertial parameters that the node publishes are those of bodies that can exist."""

from __future__ import annotations

from collections import Counter

import numpy as np
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray

from semiparam_dynamics.base.parameters import replace, to_flat
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig
from semiparam_dynamics.learner.nodes.outputs import Outputs
from semiparam_dynamics.learner.nodes.session import Session
from semiparam_dynamics.robot.model import RobotModel

from .conftest import URDF

PLAIN = {"viscous": False, "coulomb": False, "offset": False}


def learned(model: RobotModel, parameters: np.ndarray, samples: int) -> SemiparametricEstimator:
    """Of small motion about one pose, with noise: little of it says what the inertias are."""
    estimator = SemiparametricEstimator(model)
    rng = np.random.default_rng(0)
    for k in range(samples):
        q, dq, ddq = 0.2 * rng.normal(size=(3, model.n_joints))
        y = model.regressor(q, dq, ddq) @ parameters + 0.5 * rng.normal(size=model.n_axes)
        sample = estimator.sample(q, dq, ddq, y, k)
        estimator.update(sample)
    return estimator


def published(peer, model: RobotModel, estimator: SemiparametricEstimator) -> list:
    node: Node = peer.node
    config = replace(InverseDynamicsNodeConfig(), **to_flat(model.config))
    session = Session(model.urdf_text, config)
    outputs = Outputs(node, session, Counter())
    heard = peer.listen(Float64MultiArray, "/peer/inertial_parameters")

    def told() -> bool:
        outputs.publish_parameters(estimator.rigid_body)
        return len(heard) >= 12

    peer.until(told, "parameters")
    outputs.destroy()
    return [np.array(m.data).reshape(-1, 2) for m in heard]


def test_they_are_real_and_predict_as_well(peer) -> None:
    model = RobotModel(URDF, **PLAIN)
    estimator = learned(model, model.prior, 300)
    free = estimator.rigid_body.parameters
    near = published(peer, model, estimator)
    for message in near:
        assert exists(model, message[:, 0])
    assert not exists(model, free)  # this noise makes an inertia negative
    values, stds = near[-1].T
    np.testing.assert_array_equal(stds, estimator.rigid_body.standard_deviations())
    rng = np.random.default_rng(1)
    states = 0.2 * rng.normal(size=(3, 500, model.n_joints))
    rows = model.regressors(*states).reshape(-1, model.n_parameters)
    truth = rows @ model.prior
    errors = [np.sqrt(np.mean((rows @ p - truth) ** 2)) for p in (values, free)]
    assert errors[0] < 1.1 * errors[1]


def exists(model: RobotModel, base: np.ndarray) -> bool:
    """Whether the mass matrix at q = 0 is positive definite, as that of bodies with mass is."""
    rest = np.zeros((1, 2))
    still = model.regressors(rest, rest, rest)[0] @ base
    columns = [model.regressors(rest, rest, unit[None])[0] @ base - still for unit in np.eye(2)]
    M = np.array(columns)
    return bool(np.linalg.eigvalsh(0.5 * (M + M.T))[0] > 0.0)


def test_a_urdf_without_masses_has_none_to_begin_with(peer) -> None:
    model = RobotModel(URDF.replace('mass value="2.0"', 'mass value="0"').replace("1.0", "0"))
    estimator = SemiparametricEstimator(model)
    for message in published(peer, model, estimator):
        np.testing.assert_array_equal(message[:, 0], estimator.rigid_body.parameters)
