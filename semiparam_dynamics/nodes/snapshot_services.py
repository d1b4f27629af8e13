"""The services by which payloads get names: snapshot, recall, release, forget_snapshot."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rclpy.node import Node
from std_srvs.srv import Trigger

from semiparam_dynamics.changes.snapshots import BARE
from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.nodes.model_services import answering
from semiparam_dynamics.nodes.session import Session

if TYPE_CHECKING:  # it takes its time to load, and is there when it is needed
    from semiparam_dynamics.changes.monitor import ChangeMonitor


class SnapshotServices:
    """`~/snapshot`, `~/recall`, `~/release` and `~/forget_snapshot`, of the type std_srvs/Trigger.

    A Trigger carries no text: the name is that of the live parameter `snapshot_name`. It is a name
    inside the model's file and never one of a file. What the services change is saved as soon as
    the disk allows, where the model is saved by itself.

    Parameters
    ----------
    node: the node that offers them.
    session: returns the session; raises SemiparamError with the reason while there is none.
    name: returns the name that the services are about.
    changed: called after each change, to publish it.
    """

    def __init__(
        self,
        node: Node,
        session: Callable[[], Session],
        name: Callable[[], str],
        changed: Callable[[], None],
    ) -> None:
        self._session, self._name, self._changed = session, name, changed
        services = {
            "snapshot": self._snapshot,
            "recall": self._recall,
            "release": self._release,
            "forget_snapshot": self._forget,
        }
        for service, act in services.items():
            node.create_service(Trigger, f"~/{service}", answering(self._keeping(act)))

    def _keeping(self, act: Callable[[ChangeMonitor], str]) -> Callable[[], str]:
        def act_and_keep() -> str:
            session = self._session()
            monitor = session.learner.changes
            if monitor is None:
                raise ConfigurationError("set the parameter changes.detect to know of payloads")
            answer = act(monitor)
            session.autosave.changed()
            session.autosave.request()
            session.autosave.step()
            self._changed()
            return answer

        return act_and_keep

    def _wanted(self) -> str:
        if not self._name():
            raise ConfigurationError("set the parameter snapshot_name first: it is empty")
        return self._name()

    def _snapshot(self, monitor: ChangeMonitor) -> str:
        name, held = self._wanted(), monitor.payload
        if held is None:
            raise ConfigurationError(
                "nothing is held beyond what the model has learned: there is no payload to keep"
            )
        monitor.remember(name)
        unsure = "" if held.settled else "; it is still being estimated, call again when it settled"
        return f"kept {held.mass:.3g} kg, give or take {held.mass_std:.2g} kg, as '{name}'{unsure}"

    def _recall(self, monitor: ChangeMonitor) -> str:
        monitor.recall(self._wanted())
        return f"'{self._wanted()}' is held from now on"

    def _release(self, monitor: ChangeMonitor) -> str:
        monitor.recall(BARE)
        return "nothing is held from now on"

    def _forget(self, monitor: ChangeMonitor) -> str:
        name = self._wanted()
        monitor.snapshots.remove(name)
        if monitor.correction.name == name:
            # It stays what is held, without a name.
            monitor.correction.name = ""
        return f"forgot '{name}'"
