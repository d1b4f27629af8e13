"""What the `inverse_dynamics` node knows of changes at an instant, in numbers and in words."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.changes.status import ESTIMATING, PayloadStatus
from semiparam_dynamics.dynamics.learner import InverseDynamicsLearner, Step
from semiparam_dynamics.nodes.change_messages import number

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
        if monitor is None or step is None or step.y is None or step.learned is None:
            return None
        sure = step.learned.confidence
        spread = monitor.contact.spread(step.prediction.semiparametric_std, sure)
        external: Array = step.y - step.prediction.semiparametric
        return external / np.maximum(spread, 1e-12)

    def summary(self) -> str:
        """What is going on, in a few words; empty where nothing is."""
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
            deviation = 0.0 if deviations is None else float(deviations[k])
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
