"""What the `object_recognition` node says on `/diagnostics`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus

from semiparam_dynamics.nodes.diagnostics import timing_values
from semiparam_dynamics.nodes.recognition_session import RecognitionSession

OK, WARN = DiagnosticStatus.OK, DiagnosticStatus.WARN
LISTED = 40  # classes


class RecognitionReport:
    """Sums a session up, once a second, and notices what was refused since the last time.

    `unsent` counts answers that were not published.
    """

    def __init__(self, session: RecognitionSession, unsent: Counter[str] | None = None) -> None:
        self._session = session
        self._unsent: Counter[str] = Counter() if unsent is None else unsent
        self._before: Counter[str] = Counter()

    def summary(self, silent: Iterable[str]) -> tuple[bytes, str]:
        """Level and one sentence; `silent` says which topics bring nothing."""
        session = self._session
        since = session.refusals.counts - self._before
        self._before = session.refusals.counts.copy()
        if trouble := session.autosave.trouble():
            return WARN, trouble
        if since:
            reason, count = since.most_common(1)[0]
            detail = session.refusals.details[reason]
            return WARN, f"refused {count} times in the last second: {detail}"
        if problems := list(silent):
            return WARN, "; ".join(problems)
        if session.teacher.label and not session.learning:
            return OK, f"'{session.teacher.label}' is named, but learning is switched off"
        if session.teacher.label:
            return OK, f"learning '{session.teacher.label}'; {session.learned()}"
        return OK, f"recognising; {session.learned()}"

    def values(self) -> dict[str, str]:
        """Counts, timings, refusals, what was chosen, and each class' figures."""
        session = self._session
        recognizer = session.recognizer
        values = {
            "label": session.teacher.label,
            "frames seen": str(session.seen),
            "frames recognised": str(session.recognized),
            "frames taught": str(session.taught),
            "frames dropped": str(session.backlog.dropped),
            "frames not learned, learning switched off": str(session.not_learned),
            "learning": str(session.learning).lower(),
            "objects": str(len(recognizer.labels)),
            "examples": str(recognizer.n_examples),
            "last edit": session.last_edit,
            **session.autosave.values(),
        }
        values |= {reason: str(count) for reason, count in self._unsent.items()}
        if (last := session.last) is not None:
            values["last recognised"] = last.label
            values["its probability"] = f"{last.confidence:.3f}"
            values["its novelty"] = f"{last.novelty:.2f}"
        for reason, count in sorted(session.refusals.counts.items()):
            values[f"refused: {reason}"] = str(count)
            values[f"last refused: {reason}"] = session.refusals.details[reason]
        values |= timing_values(session.timings)
        if recognizer.labels:
            values |= self._chosen() | self._classes()
        return values

    def _chosen(self) -> dict[str, str]:
        model = self._session.recognizer.model
        return {
            "recoding exponent": f"{model.alpha_:.2f}",
            "penalty": f"{model.penalty_:g}",
            "held-out examples to look at again": str(model.recursion_.outdated()),
        }

    def _classes(self) -> dict[str, str]:
        """The classes that do worst on held-out examples first; not all where there are many."""
        recognizer = self._session.recognizer
        shares, sizes = recognizer.model.class_accuracy()
        counts = recognizer.model.class_count_
        order = np.argsort(np.where(np.isnan(shares), np.inf, shares), kind="stable")
        values = {}
        for i in order[:LISTED].tolist():
            held = f"{shares[i]:.3f} of {sizes[i]:.0f} held out" if sizes[i] else "none held out"
            values[f"object: {recognizer.labels[i]}"] = f"{counts[i]:.0f} learned, {held}"
        if len(order) > LISTED:
            values["objects not listed"] = str(len(order) - LISTED)
        return values
