"""What the `inverse_dynamics` node publishes of each sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.learner import Step
from semiparam_dynamics.dynamics.rigid_body import RigidBodyIdentifier
from semiparam_dynamics.dynamics.robot import RobotModel
from semiparam_dynamics.nodes.messages import ReusedEffort, ReusedWrench, parameters_message
from semiparam_dynamics.nodes.publishing import Outlet

DEPTH = 50


class Outputs:
    """The node's publishers: wrenches in the sensor's frame, or joint efforts with names.

    `within_bounds` is what predictions pass that the estimator hasn't bounded itself; `lost`
    counts what the network did not take.
    """

    def __init__(
        self,
        node: Node,
        model: RobotModel,
        within_bounds: Callable[[Array], Array],
        lost: Counter[str],
    ) -> None:
        self._model = model
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
        """Publish the base parameters as they stand."""
        deviations = identifier.standard_deviations()
        message = parameters_message(self._model.labels, identifier.parameters, deviations)
        self._parameters.publish(message)

    def destroy(self) -> None:
        """Take the topics down."""
        for outlet in (self._predicted, self._rigid_body, self._external, self._parameters):
            outlet.destroy()
