"""Diagnostics of the `inverse_dynamics` node."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

import numpy as np

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import listing
from semiparam_dynamics.base.nodes.diagnostics import (
    ERROR,
    OK,
    WARN,
    how_often,
    number,
    stopped,
    timing_values,
)
from semiparam_dynamics.changes.config import ESTIMATING, PayloadStatus
from semiparam_dynamics.dynamics.filtering import (
    AFTER_GAP,
    BETWEEN,
    IN_MOTION,
    PARTIAL,
    STANDING,
    UNREAD,
    UNSETTLED,
)
from semiparam_dynamics.dynamics.gate import LACKING
from semiparam_dynamics.dynamics.sample import NEW_STATE
from semiparam_dynamics.learner.learner import KEPT_OUT, InverseDynamicsLearner, Step
from semiparam_dynamics.learner.nodes.session import LEFT_OUT, STOPPED, Session
from semiparam_dynamics.samples.sensors import NO_EFFORT, NO_VELOCITY, SUSPECTED

# No reason for a warning while predictions are made: the messages of another publisher, such as a
# gripper's, and velocities and efforts that a driver does not know, which `news` reports once.
OTHERS = ("missing joint", "velocity not finite", NO_VELOCITY, NO_EFFORT)

# As it is meant to be, or what follows from a fault that is counted by itself.
INTENDED = (
    *("learning switched off", KEPT_OUT, STANDING, BETWEEN, PARTIAL, STOPPED, SUSPECTED),
    *(LEFT_OUT, LACKING, UNREAD, AFTER_GAP, UNSETTLED, IN_MOTION),
)


MIN_RATE_PERIOD_S = 0.2  # the shortest time over which a rate is reported
SILENT = 0.05  # confidence below which the residual has no part in a prediction worth naming


class SessionReport:
    """Sums a session up, once a second, and notices what went wrong since the last time.

    `lost` counts messages that were not taken and predictions that were not published.
    """

    def __init__(self, session: Session, lost: Counter[str] | None = None) -> None:
        self._session = session
        self._lost: Counter[str] = Counter() if lost is None else lost
        self._before: Counter[str] = Counter()
        self._predicted = self._learned = 0
        self._clocks = clocks()
        self._rank = 0, 0  # samples that had been learned, and the rank of their excitation

    def summary(self, silent: Iterable[str]) -> tuple[bytes, str]:
        """Level and one sentence; `silent` says which topics bring nothing."""
        session = self._session
        dropped = session.dropped() + session.learner.bounded + self._lost
        details = session.stream.recent_details()
        since = dropped - self._before
        learned = session.learner.estimator.n_learned
        if session.predicted < self._predicted:  # by ~/reset
            self._predicted = self._learned = 0
        new = session.predicted - self._predicted
        taught = min(max(learned - self._learned, 0), new)  # not what ~/load brings
        self._before, self._predicted, self._learned = dropped, session.predicted, learned
        pace = self._pace(taught)
        if since[LEFT_OUT]:
            pace += f", {since[LEFT_OUT]} more would go beyond learning_share"
        doing = self._doing(new, since, taught, pace)
        others = OTHERS if new > 0 else ()
        for intended in (*INTENDED, *others):
            since.pop(intended, None)
        if session.problem:
            return ERROR, stopped("learning", session.problem)
        if trouble := session.autosave.trouble():
            return WARN, trouble
        if problems := list(silent):
            return WARN, "; ".join(problems)
        if since and since.total() > max(1, new // 100):
            reason, count = since.most_common(1)[0]
            detail = details.get(reason, "")
            return WARN, f"{how_often(count)} in the last second: {detail or reason}"
        if not session.predicted:
            return WARN, "messages arrive, no complete sample yet"
        if not session.learning:
            return OK, f"predicting, learning is switched off after {learned} samples"
        # At rest efforts hardly change, and errors relative to that say nothing.
        errors = self._errors() if taught else ""
        return OK, f"{learned} samples learned; {errors}{doing}"

    def _errors(self) -> str:
        """Sum up the recent errors of both models, over the axes that were measured."""
        learner = self._session.learner
        if not learner.telling:
            return "too little motion yet for errors; "
        recent = learner.recent
        told = [
            f"{words} {np.mean(nmse[known]):.3g}"
            for name, words in (("rigid_body", "rigid body"), ("semiparametric", "semiparametric"))
            if (known := np.isfinite(nmse := recent.nmse(name))).any()
        ]
        return f"recent normalised MSE: {', '.join(told)}; " if told else ""

    def _doing(self, new: int, since: Counter[str], taught: int, pace: str) -> str:
        """Sum up the time since the last call, with `new` samples predicted, `taught` learned.

        since: how many were left out, by reason.
        """
        session = self._session
        residual = session.learner.estimator.residual
        if not new:
            return "no new samples"
        # Whether one that comes too soon to be learned is at rest is not looked at.
        if since[STANDING] > 0.9 * (new - since[BETWEEN]):
            return "standing still, waiting for motion"
        told = f"learns {taught} of {new} samples{pace}"
        if not residual.standardizer.ready:
            seen, first = residual.standardizer.seen, residual.standardizer.first
            return f"{told}; the residual is silent until {first:g} s of motion, {seen:.1f} so far"
        if session.last is not None and session.last.prediction.confidence < SILENT:
            told += "; the residual is silent: this motion is new to it"
            used, most = residual.centers
            if most and used == most:
                told += f", and its {most} centres are all in use (nystrom.max_centers)"
        return told + self._novel_states()

    def _novel_states(self) -> str:
        """Name the joints whose last state was not learned near."""
        if (last := self._session.last) is None:
            return ""
        new = np.flatnonzero(last.prediction.residual.novelty > NEW_STATE)
        axes = self._session.model.axes
        return f"; new to it: where {listing([axes[i] for i in new])} is" if len(new) else ""

    def _pace(self, taught: int) -> str:
        """Return the rate of learning since the last call, and its share of a core."""
        before, self._clocks = self._clocks, clocks()
        seconds, busy = (now - then for now, then in zip(self._clocks, before, strict=True))
        if seconds < MIN_RATE_PERIOD_S:
            return ""
        cutoff = self._session.learner.config.filter.cutoff
        times = f" ({taught / seconds / cutoff:.2g} times the cut-off)" if cutoff > 0.0 else ""
        return f"{times} with {busy / seconds:.2f} of a core"

    def _excited(self) -> int:
        """The rank of the excitation: it takes a millisecond, and changes ever more slowly."""
        estimator = self._session.learner.estimator
        learned, rank = self._rank
        if not learned <= estimator.n_learned <= 1.1 * learned:
            rank = estimator.rigid_body.excitation_rank()
            self._rank = estimator.n_learned, rank
        return rank

    def values(self) -> dict[str, str]:
        """Counts, timings, scores per axis and the rank of the excitation."""
        session = self._session
        learner = session.learner
        values = {
            "samples seen": str(session.measured),
            "samples predicted": str(session.predicted),
            "samples learned": str(learner.estimator.n_learned),
            "samples waiting": str(len(session.thread)),
            "predicted before the last was learned": str(session.deferred),
            "learning": str(session.learning).lower(),
            **session.autosave.values(),
        }
        if session.delays:
            delays = np.fromiter(session.delays, np.float64, len(session.delays))
            behind = float(np.sort(delays)[len(delays) // 2])  # np.median takes ten times as long
            values["outputs behind the joint states [ms]"] = f"{behind:.1f}"
            accurate, fast = learner.config.filter.lags
            values["delay of ~/predicted, ~/external [ms]"] = f"{behind + 1e3 * accurate:.1f}"
            values["delay of ~/external_fast [ms]"] = f"{behind + 1e3 * fast:.1f}"
        if learner.changes is None:
            values["contact"] = str(learner.contacts.touched).lower()
        for reason, count in sorted((session.dropped() + self._lost).items()):
            values[f"dropped: {reason}"] = str(count)
        for reason, count in sorted(session.learner.bounded.items()):
            values[reason] = str(count)
        gate = learner.estimator.gate
        if gate.config.gate > 0.0:
            values["gate"] = "closed" if gate.closed else "open"
        values |= timing_values({"predict": session.predict_us, "learn": session.learn_us})
        if (centers := learner.estimator.residual.centers)[1]:
            values["centres"] = f"{centers[0]} of {centers[1]}"
        values["rank of the excitation"] = f"{self._excited()} of {session.model.n_parameters}"
        for model in learner.compared:
            for axis, nmse in zip(session.model.axes, learner.scores.nmse(model), strict=True):
                values[f"nmse {model} {axis}"] = f"{nmse:.6g}"
        return values


def clocks() -> tuple[float, float]:
    """Seconds that passed, and that this process was running on all cores together."""
    return time.monotonic(), time.process_time()


# -------------------------------------------------------------------------------------------------
# Changes.

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
