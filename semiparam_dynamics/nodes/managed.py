"""A lifecycle node whose transitions fail with a reason."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn

from semiparam_dynamics.errors import SemiparamError
from semiparam_dynamics.nodes.publishing import Outlet


class ManagedNode(LifecycleNode):  # type: ignore[misc]
    """Lifecycle node with four steps to override, and `/diagnostics` once a second.

    A step that raises SemiparamError fails its transition; the sentence is logged once and kept in
    `problem`. `state` is the lifecycle state's name.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.state = "unconfigured"
        self.problem = ""
        self._diagnostics = Outlet(self, DiagnosticArray, "/diagnostics", 10, Counter())
        # Not the node's clock: with use_sim_time and no /clock it would never tell.
        self.create_timer(1.0, self._tell, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def set_up(self) -> None:
        """What configuring does."""

    def begin(self) -> None:
        """What activating does."""

    def pause(self) -> None:
        """What deactivating does."""

    def tear_down(self) -> None:
        """What cleaning up does, and ending in any state."""

    def report(self) -> DiagnosticStatus:
        """The node's state, for `/diagnostics`; a node with more to say overrides it."""
        level = DiagnosticStatus.ERROR if self.problem else DiagnosticStatus.OK
        return self.status(level, self.problem or f"the node is {self.state}", {})

    def bring_to(self, state: str) -> bool:
        """Go to ``active``, ``inactive`` or ``unconfigured``; False if that failed on the way."""
        ladder = ("unconfigured", "inactive", "active")
        up = {"unconfigured": self.trigger_configure, "inactive": self.trigger_activate}
        down = {"active": self.trigger_deactivate, "inactive": self.trigger_cleanup}
        while self.state != state:
            triggers = up if ladder.index(self.state) < ladder.index(state) else down
            if triggers[self.state]() != TransitionCallbackReturn.SUCCESS:
                return False
        return True

    def close(self) -> bool:
        """At the end of the process, when no transition can be made any more; False on failure."""
        return self._attempt("finalized", self.tear_down) is None

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:  # noqa: D102
        return self._attempt("inactive", self.set_up) or super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:  # noqa: D102
        return self._attempt("active", self.begin) or super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:  # noqa: D102
        return self._attempt("inactive", self.pause) or super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:  # noqa: D102
        return self._attempt("unconfigured", self.tear_down) or super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:  # noqa: D102
        return self._attempt("finalized", self.tear_down) or super().on_shutdown(state)

    def _attempt(
        self, next_state: str, step: Callable[[], None]
    ) -> TransitionCallbackReturn | None:
        """None where the step succeeded, for the caller to go on with."""
        try:
            step()
        except SemiparamError as error:
            self.problem = str(error)
            self.get_logger().error(self.problem)
            return TransitionCallbackReturn.FAILURE
        except Exception:
            # rclpy swallows it: without this line a mistake in here would leave no trace.
            self.get_logger().fatal(traceback.format_exc())
            raise
        self.state, self.problem = next_state, ""
        return None

    def _tell(self) -> None:
        message = DiagnosticArray(status=[self.report()])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(message)

    def status(self, level: bytes, summary: str, values: dict[str, str]) -> DiagnosticStatus:
        """A status of this node."""
        pairs = [KeyValue(key="state", value=self.state)]
        pairs += [KeyValue(key=key, value=value) for key, value in values.items()]
        # With its namespace: nodes of one name must be told apart.
        name = self.get_fully_qualified_name().removeprefix("/")
        return DiagnosticStatus(level=level, name=name, message=summary, values=pairs)
