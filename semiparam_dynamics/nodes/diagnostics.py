"""What the `inverse_dynamics` node says on `/diagnostics`."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus

from semiparam_dynamics.dynamics.learner import KEPT_OUT, MODELS
from semiparam_dynamics.nodes.session import Session

OK, WARN = DiagnosticStatus.OK, DiagnosticStatus.WARN


class SessionReport:
    """Sums a session up, once a second, and notices what went wrong since the last time.

    `lost` counts messages that were not taken and predictions that were not published.
    """

    def __init__(self, session: Session, lost: Counter[str] | None = None) -> None:
        self._session = session
        self._lost: Counter[str] = Counter() if lost is None else lost
        self._before: Counter[str] = Counter()
        self._predicted = 0

    def summary(self, silent: Iterable[str]) -> tuple[bytes, str]:
        """Level and one sentence; `silent` says which topics bring nothing."""
        session = self._session
        dropped = session.dropped() + session.bounded() + self._lost
        since = dropped - self._before
        new = session.predicted - self._predicted
        self._before, self._predicted = dropped, session.predicted
        for intended in ("learning switched off", KEPT_OUT):
            since.pop(intended, None)
        if trouble := session.autosave.trouble():
            return WARN, trouble
        if problems := list(silent):
            return WARN, "; ".join(problems)
        if since and since.total() > max(1, new // 100):
            reason, count = since.most_common(1)[0]
            detail = session.stream.details.get(reason, "")
            return WARN, f"{count} times in the last second: {detail or reason}"
        if not session.predicted:
            return WARN, "messages arrive, no complete sample yet"
        learned = session.learner.estimator.n_learned
        if not session.learning:
            return OK, f"predicting, learning is switched off after {learned} samples"
        recent = session.learner.recent
        errors = {name: float(np.mean(recent.nmse(name))) for name in MODELS}
        return OK, (
            f"{learned} samples learned; recent normalised MSE: rigid body "
            f"{errors['rigid_body']:.3g}, semiparametric {errors['semiparametric']:.3g}"
        )

    def values(self) -> dict[str, str]:
        """Counts, timings, scores per axis and the rank of the excitation."""
        session = self._session
        learner = session.learner
        values = {
            "samples seen": str(session.measured),
            "samples predicted": str(session.predicted),
            "samples learned": str(learner.estimator.n_learned),
            "samples waiting": str(session.waiting),
            "predicted before the last was learned": str(session.deferred),
            "learning": str(session.learning).lower(),
            **session.autosave.values(),
        }
        for reason, count in sorted((session.dropped() + self._lost).items()):
            values[f"dropped: {reason}"] = str(count)
        for reason, count in sorted(session.bounded().items()):
            values[reason] = str(count)
        gate = learner.estimator.gate
        if gate.config.gate > 0.0:
            values["gate"] = "closed" if gate.closed else "open"
        values |= timing_values({"predict": session.predict_us, "learn": session.learn_us})
        rank, full = learner.estimator.rigid_body.excitation_rank(), session.model.n_parameters
        values["rank of the excitation"] = f"{rank} of {full}"
        for model in MODELS:
            for axis, nmse in zip(session.model.axes, learner.scores.nmse(model), strict=True):
                values[f"nmse {model} {axis}"] = f"{nmse:.6g}"
        return values


def timing_values(timings: Mapping[str, deque[float]]) -> dict[str, str]:
    """Median and 99th percentile of each kind's times, in us, as text; none of empty ones."""
    values = {}
    for name, times in timings.items():
        if times:
            p50, p99 = np.percentile(times, (50, 99))
            values[f"{name} p50 [us]"] = f"{p50:.0f}"
            values[f"{name} p99 [us]"] = f"{p99:.0f}"
    return values
