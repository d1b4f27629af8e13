"""The sequential and the delayed protocol in one pass over the samples."""

from __future__ import annotations

from semiparam_dynamics.dynamics.block_prediction import (
    counted,
    learn_block,
    learns_in_blocks,
    predicted,
    record_block,
)
from semiparam_dynamics.dynamics.sample import Sample
from semiparam_dynamics.evaluation.protocols import BLOCK, ProtocolRun
from semiparam_dynamics.evaluation.scored import WaitingSamples


class JoinedRuns:
    """A sequential run, and a delayed one that goes on from what it knows.

    After each block of the delayed protocol both have learned the same, so that one estimator
    learns for both, and the delayed run's has only errors of its own. Where the models don't learn
    in blocks (see `learns_in_blocks`) there are two, each on its own.
    """

    def __init__(self, sequential: ProtocolRun) -> None:
        self.sequential = sequential
        self.shared = learns_in_blocks(sequential.estimator)
        if self.shared:
            sequential.settle()
            late, last = sequential.estimator.beside(), sequential.last_residual.copy()
            self.delayed = ProtocolRun(late, "delayed", last)
        else:
            self.delayed = sequential.branch("delayed")
        self._waiting = WaitingSamples()
        self._rest = False

    def step(self, sample: Sample) -> None:
        """Take in a sample, for both."""
        if not self.shared:
            self.sequential.step(sample)
            self.delayed.step(sample)
        elif sample.y is not None:
            self._waiting.add(sample, True, self._rest)
            if self._waiting.seconds() >= BLOCK:
                self._advance(whole=True)

    def score_rest(self) -> None:
        """See :meth:`ProtocolRun.score_rest`."""
        self._rest = True
        self.sequential.score_rest()
        self.delayed.score_rest()

    def finish(self) -> None:
        """After the last sample: the last block may be shorter, and is not learned by `delayed`."""
        if len(self._waiting):
            self._advance(whole=False)

    def branch(self, protocol: str) -> ProtocolRun:
        """A run that goes on from a copy of what the sequential one has learned here."""
        run = self.sequential.branch(protocol)
        if len(self._waiting):
            block = self._waiting.block()
            now, _ = learn_block(run.estimator, block)
            counted(run.estimator, block, now)
            run.last_residual = block.y[-1] - now.rigid.values[-1]
        return run

    def _advance(self, whole: bool) -> None:
        block, sequential, delayed = self._waiting.block(), self.sequential, self.delayed
        now, beforehand = learn_block(sequential.estimator, block)
        late = predicted(delayed.estimator, beforehand)
        if whole:
            record_block(delayed.estimator, block, late.values)
        prompt = counted(sequential.estimator, block, now)
        sequential.take(block, prompt, self._waiting, learned=True)
        delayed.take(block, late, self._waiting, learned=whole)
        self._waiting.clear()
