"""What the `inverse_dynamics` node publishes of each sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.learner import Step
from semiparam_dynamics.dynamics.rigid_body import RigidBodyIdentifier
from semiparam_dynamics.dynamics.robot import RobotModel
from semiparam_dynamics.errors import RobotModelError
from semiparam_dynamics.nodes.messages import ReusedEffort, ReusedWrench, parameters_message
from semiparam_dynamics.nodes.publishing import Outlet

if TYPE_CHECKING:
    from semiparam_dynamics.changes.real_bodies import RealBodies

DEPTH = 50


class Outputs:
    """The node's publishers: wrenches in the sensor's frame, or joint efforts with names.

    `within_bounds` is what predictions pass that the estimator hasn't bounded itself; `lost`
    counts what the network did not take. With `real_bodies` the parameters published are the
    nearest that real bodies have, where the URDF has masses to begin with.
    """

    def __init__(
        self,
        node: Node,
        model: RobotModel,
        within_bounds: Callable[[Array], Array],
        lost: Counter[str],
        real_bodies: bool = False,
    ) -> None:
        self._model = model
        self._bodies = _bodies(model) if real_bodies else None
        self._within_bounds = within_bounds
        wrench = model.config.target == "wrench"
        kind = WrenchStamped if wrench else JointState
        self._message: Callable[[int, Array], WrenchStamped | JointState] = (
            ReusedWrench(model.config.sensor_frame) if wrench else ReusedEffort(model.joint_names)
        )
        self._predicted = Outlet(node, kind, "~/predicted", DEPTH, lost)
        self._rigid_body = Outlet(node, kind, "~/rigid_body", DEPTH, lost)
        self._external = Outlet(node, kind, "~/external", DEPTH, lost)
        self._parameters = Outlet(node, Float64MultiArray, "~/inertial_parameters", 1, lost)

    def publish(self, step: Step) -> None:
        """Publish a sample's predictions and, where it was measured, the difference."""
        predicted = step.prediction.semiparametric
        # Making a message costs as much as half a prediction: only where somebody listens.
        if self._predicted.heard():
            self._predicted.publish(self._message(step.stamp, predicted))
        if self._rigid_body.heard():
            rigid_body = self._within_bounds(step.prediction.rigid_body)
            self._rigid_body.publish(self._message(step.stamp, rigid_body))
        if step.y is not None and self._external.heard():
            self._external.publish(self._message(step.stamp, step.y - predicted))

    def publish_parameters(self, identifier: RigidBodyIdentifier) -> None:
        """Publish the base parameters as they stand, where somebody listens."""
        if not self._parameters.heard():
            return
        values = identifier.parameters
        if self._bodies is not None:
            # One step a second: it takes some milliseconds, for which predictions wait.
            self._bodies.follow(identifier, steps=1)
            values = self._bodies.base
        message = parameters_message(self._model.labels, values, identifier.standard_deviations())
        self._parameters.publish(message)

    def destroy(self) -> None:
        """Take the topics down."""
        for outlet in (self._predicted, self._rigid_body, self._external, self._parameters):
            outlet.destroy()


def _bodies(model: RobotModel) -> RealBodies | None:
    # Only here: loading it would make every start of a node longer.
    from semiparam_dynamics.changes.real_bodies import RealBodies

    try:
        return RealBodies(model)
    except RobotModelError:
        return None
