"""Changes in words and figures for the diagnostics, and the services that name payloads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from rclpy.node import Node
from std_srvs.srv import Trigger

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.nodes.diagnostics import number
from semiparam_dynamics.base.nodes.model_services import answering
from semiparam_dynamics.changes.config import BARE, ESTIMATING, PayloadStatus
from semiparam_dynamics.learner.learner import InverseDynamicsLearner, Step

if TYPE_CHECKING:
    from semiparam_dynamics.changes.monitor import ChangeMonitor
    from semiparam_dynamics.learner.nodes.session import Session

LISTED = 20  # payloads and counts


class ChangeReport:
    """Sums up what a learner's monitor says, as long as it looks for changes.

    Attributes
    ----------
    step: the last one.
    payload: what is held, as it was published last.
    """

    def __init__(self, learner: InverseDynamicsLearner) -> None:
        self._learner = learner
        self.step: Step | None = None
        self.payload: PayloadStatus | None = None

    def deviations(self) -> Array | None:
        """(n_axes,) the last step's external effort or wrench in standard deviations.

        They are those that contacts are looked for with; None without a measurement.
        """
        monitor, step = self._learner.changes, self.step
        if monitor is None or step is None or step.y is None:
            return None
        return monitor.contact.scaled

    def summary(self) -> str:
        """The change under way, in a few words; empty where there is none."""
        if (monitor := self._learner.changes) is None:
            return ""
        if monitor.status.contact:
            return "in contact"
        if monitor.status.phase == ESTIMATING:
            return f"a changed {monitor.status.cause} is being estimated"
        if (held := self.payload) is None:
            return ""
        what = f"'{held.name}'" if held.name else "something without a name"
        return f"holds {what}, {held.mass:.3g} kg"

    def values(self) -> dict[str, str]:
        """The monitor's state, for the diagnostics: always the same keys, but for names and counts.

        Evidence is a log likelihood ratio; 0 where none was weighed yet.
        """
        if (monitor := self._learner.changes) is None:
            return {}
        status, contact, held = monitor.status, monitor.contact, self.payload
        values = {
            "changes": status.phase,
            "changes: cause": status.cause,
            "changes: for [s]": number((status.stamp - status.since) * 1e-9 if status.since else 0),
            "changes: learning paused": str(not status.learning).lower(),
            "changes: threshold": number(monitor.threshold),
        }
        for cause in monitor.causes.all:
            evidence = status.evidence.get(cause.name, 0.0)
            values[f"changes: evidence of {cause.name}"] = number(evidence)
        values |= {
            "contact": str(status.contact).lower(),
            "contact: deviation [std]": number(contact.deviation),
            "contact: threshold [std]": number(contact.threshold),
        }
        deviations = self.deviations()
        for k, axis in enumerate(self._learner.model.axes):
            deviation = 0.0 if deviations is None else float(np.nan_to_num(deviations[k]))
            values[f"deviation {axis} [std]"] = number(deviation)
        values |= {
            "payload": "bare" if held is None else held.name,
            "payload: settled": str(held is None or held.settled).lower(),
            "payload: mass [kg]": number(0.0 if held is None else held.mass),
            "payload: mass, std [kg]": number(0.0 if held is None else held.mass_std),
        }
        names = monitor.snapshots.names
        more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
        values["payloads known"] = ", ".join(names[:LISTED]) + more
        for what, count in monitor.counts.most_common(LISTED):
            values[f"noticed: {what}"] = str(count)
        return values


class SnapshotServices:
    """`~/snapshot`, `~/recall`, `~/release` and `~/forget_snapshot`, which name payloads.

    They are of the type std_srvs/Trigger, which carries no text: the name is that of the live
    parameter `snapshot_name`, a name inside the model's file and never one of a file. Where the
    model is saved automatically, a change by these services is saved at once.

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
        for service in ("snapshot", "recall", "release", "forget_snapshot"):
            node.create_service(Trigger, f"~/{service}", answering(partial(self._act, service)))

    def _act(self, service: str) -> str:
        session, name = self._session(), self._name()
        if (monitor := session.learner.changes) is None:
            raise ConfigurationError("set the parameter changes.detect to know of payloads")
        if not name and service != "release":
            raise ConfigurationError("set the parameter snapshot_name first: it is empty")
        with session.paused():
            if service == "snapshot":
                answer = _remembered(monitor, name)
            elif service == "forget_snapshot":
                monitor.forget(name)
                answer = f"forgot '{name}'"
            else:
                released = service == "release"
                monitor.recall(BARE if released else name)
                answer = f"{'nothing' if released else repr(name)} is held from now on"
            session.forget_standing()
            session.note_changes()
            session.autosave.changed()  # a name alone, too
            session.autosave.request()
            session.autosave.step()
        self._changed()
        return answer


def _remembered(monitor: ChangeMonitor, name: str) -> str:
    """Keep the present payload under a name; returns a sentence."""
    held = monitor.payload
    monitor.remember(name)
    assert held is not None  # noqa: S101 # else it was refused
    unsure = "" if held.settled else "; it is still being estimated, call again when it settled"
    return f"kept {held.mass:.3g} kg, give or take {held.mass_std:.2g} kg, as '{name}'{unsure}"
