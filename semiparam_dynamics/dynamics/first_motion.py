"""The first motion of a robot that learns: its efforts are compared once with the dynamics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from semiparam_dynamics.base.arrays import SECOND, Array
from semiparam_dynamics.base.errors import listing
from semiparam_dynamics.dynamics.effort_faults import (
    Finding,
    effort_findings,
)
from semiparam_dynamics.dynamics.effort_trials import (
    Columns,
    inertial_parts,
)
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.robot.model import RobotModel

MOTION = 30.0  # s of motion that are examined
SPACING_NS = SECOND // 20  # between the samples that are kept: motion goes no faster than that
MAX_STEP = 0.25  # s that count as motion between two of them
FURTHER = "`semiparam doctor BAG` examines a recording of it further: delays, messages"


class FirstMotion:
    """A robot's first motion, whose efforts are compared once with the URDF's torques.

    It takes the samples that are learned, each of which costs a copy. The comparison takes a second
    of a core, in some hundred parts, and may be made in a thread of its own.

    Attributes
    ----------
    state: how far it is, in a few words.
    findings: on the efforts, once they were compared.
    """

    def __init__(self, model: RobotModel, scale: Array) -> None:
        """For efforts that are the robot's times `scale` (n_joints,), `samples.effort_scale`."""
        self._model, self._scale = model, scale
        self._rows: list[Array] = []
        self._last = 0  # stamp, ns
        self._moved = 0.0  # s
        self._reported = 0
        self.findings: list[Finding] = []
        self.state = f"after {MOTION:g} s of motion with efforts"

    def take(self, sample: Sample) -> bool:
        """Keep a sample in motion; True where they are enough, and :meth:`examine` is to follow."""
        y, ahead = sample.y, sample.stamp - self._last
        if self._moved >= MOTION or y is None or not sample.informative or 0 <= ahead < SPACING_NS:
            return False
        if not np.isfinite(y).any():
            return False
        self._last = sample.stamp
        self._moved += min(ahead / SECOND, MAX_STEP) if ahead > 0 else 0.0
        self._rows.append(np.array((sample.q, sample.dq, sample.ddq, y)))
        self.state = f"{self._moved:.0f} of {MOTION:g} s of motion with efforts"
        return self._moved >= MOTION

    def examine(self, between: Callable[[], None] = lambda: None) -> None:
        """Compare all that was kept, calling `between` the parts.

        Nothing that goes wrong there is raised: `state` says it.
        """
        try:
            self.findings, left = self._findings(between)
            count = len(self.findings)
            self.state = f"{count or 'no'} fault{'s' * (count != 1)} of efforts{left}; {FURTHER}"
        except Exception as error:  # MemoryError, too: learning goes on without
            self.state = f"not examined: {type(error).__name__}: {error}"
        self._rows = []

    @property
    def faults(self) -> list[tuple[str, str]]:
        """Of each finding its name, and a sentence with what to write into the YAML."""
        return [(finding.kind, self._sentence(finding)) for finding in self.findings]

    def news(self) -> list[str]:
        """Sentences on the faults that were found since the last call."""
        new, self._reported = self.faults[self._reported :], len(self.faults)
        return [f"{kind}: {sentence}" for kind, sentence in new]

    def values(self) -> dict[str, str]:
        """The state and the faults, for diagnostics."""
        return {"first motion": self.state, **{f"first motion: {k}": s for k, s in self.faults}}

    def _findings(self, between: Callable[[], None]) -> tuple[list[Finding], str]:
        """The findings, and what is to be said of joints that were left out."""
        model, rows = self._model, np.array(self._rows)
        q, dq, ddq, y = np.where(np.isfinite(rows), rows, 0.0).transpose(1, 0, 2)
        times = np.arange(len(q), dtype=np.float64) * (SPACING_NS / SECOND)
        coulomb = np.tanh(dq / model.config.coulomb_velocity)
        effects = np.stack((dq, coulomb, np.ones_like(dq), ddq), axis=-1)
        between()
        parts = inertial_parts(model, q, dq, ddq)
        prior, gravity, seen = model.inertial_prior, model.gravity, np.isfinite(rows[:, 3])
        columns = Columns(times, q, dq, parts, effects, y, times, y, prior, gravity, seen)
        used = columns.enough & (np.ptp(y, axis=0) > 0.0)
        left = [name for name, own in zip(model.joint_names, used, strict=True) if not own]
        if not used.any():
            return [], "; too few instants have efforts"
        found = effort_findings(model.joint_names, columns, used, between)
        scale = [float(f"{v:.4g}") for v in found.hypothesis.factor * self._scale]
        findings = [
            replace(f, mends={**f.mends, "samples.effort_scale": scale})
            if "samples.effort_scale" in f.mends
            else f
            for f in found.findings
        ]
        return findings, f"; without {listing(left)}, which has no efforts" if left else ""

    @staticmethod
    def _sentence(finding: Finding) -> str:
        mend = "; ".join(f"{name}: {value}" for name, value in finding.mends.items())
        said = f"{finding.evidence}. To do: {finding.advice}"
        return f"{said}. In the YAML: {mend}" if mend else said
