"""The explanations of a stretch of innovations, weighed against each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.changes.causes import FRICTION, OFFSET, PAYLOAD, Causes
from semiparam_dynamics.changes.evidence import Sums, log_evidence, log_evidence_of_anything
from semiparam_dynamics.changes.snapshots import Snapshot

# Blocks that a new cause must explain: a contact looks like an offset for as long as it lasts.
LEAST = {PAYLOAD: 4, FRICTION: 20, OFFSET: 30}
# And what makes it doubtful: a model's own errors, in motion that it doesn't know, look like them.
DOUBT = {FRICTION: 3.0, OFFSET: 3.0}


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A change theta ~ N(mean, root root') in some of the columns."""

    cause: str
    name: str  # of a payload known before
    columns: slice
    mean: Array | None  # (d,); None: 0
    root: Array  # (d, r)

    def evidence(self, sums: Sums) -> Array:
        """(...) the log likelihood ratio against no change."""
        return log_evidence(sums.of(self.columns), self.root, self.mean)


@dataclass(frozen=True, slots=True)
class Finding:
    """The best explanation of a stretch, and by how much nothing else is as good."""

    hypothesis: Hypothesis
    length: int  # blocks
    score: float  # log likelihood ratio against the best that needs no cause, over DOUBT
    margin: float  # against the best other cause
    sums: Sums  # of the stretch


def hypotheses(
    causes: Causes, wanted: set[str], held: Array, known: Mapping[str, Snapshot]
) -> list[Hypothesis]:
    """New causes, and payloads known before in the place of the one that is `held` (10,)."""
    found = []
    for cause in causes.all:
        if cause.name in wanted:
            root = np.diag(cause.prior)
            found.append(Hypothesis(cause.name, "", cause.columns, None, root))
    columns = causes[PAYLOAD].columns
    for name, snapshot in known.items():
        root = _root(snapshot.held_again())
        found.append(Hypothesis(PAYLOAD, name, columns, snapshot.mean - held, root))
    return found


def _root(covariance: Array) -> Array:
    """(n, r) of a covariance that may be 0 in some directions, all of them included."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    safe = np.where(scale > 0.0, scale, 1.0)
    w, V = np.linalg.eigh(covariance / np.outer(safe, safe))
    keep = (w > 1e-12) & (w > 1e-12 * w[-1])
    root: Array = scale[:, None] * V[:, keep] * np.sqrt(w[keep])
    return root


def weigh(
    lengths: Array, sums: Sums, candidates: list[Hypothesis], present: Hypothesis | None
) -> tuple[Finding | None, dict[str, float]]:
    """The best of the candidates over stretches (w,), and every one's best score by its name.

    present: how unsure what is already allowed for still is; None where it is settled. What fits no
    better than errors of any pattern that are just larger is no explanation.
    """
    if not len(lengths) or not candidates:
        return None, {}
    rest = np.maximum(log_evidence_of_anything(sums), 0.0)
    if present is not None:
        rest = np.maximum(rest, present.evidence(sums))
    table = np.array([hypothesis.evidence(sums) for hypothesis in candidates])
    least = np.array([[LEAST.get(h.cause, 0) if not h.name else 0] for h in candidates])
    doubt = np.array([[DOUBT.get(h.cause, 1.0)] for h in candidates])
    scores = np.where(lengths >= least, (table - rest) / doubt, -np.inf)
    best, window = np.unravel_index(int(np.argmax(scores)), scores.shape)
    others = [
        row[window]
        for row, candidate in zip(table, candidates, strict=True)
        if candidate.cause != candidates[best].cause
    ]
    stretch = Sums(*(v[window] for v in (sums.information, sums.moment, sums.square, sums.rows)))
    finding = Finding(
        candidates[best],
        int(lengths[window]),
        float(scores[best, window]),
        float(table[best, window] - max(others, default=0.0)),
        stretch,
    )
    named: dict[str, float] = {}
    for candidate, row in zip(candidates, scores, strict=True):
        key = candidate.name or candidate.cause
        named[key] = max(named.get(key, -np.inf), float(row.max()))
    return finding, named
