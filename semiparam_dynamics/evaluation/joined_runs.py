"""The sequential and the delayed protocol in one pass over the samples."""

from __future__ import annotations

from concurrent.futures import Executor, Future

from semiparam_dynamics.dynamics.block_prediction import (
    beside,
    counted,
    learn_block,
    learn_nonparametric,
    learn_rigid_body,
    learns_in_blocks,
    predicted,
    record_block,
)
from semiparam_dynamics.dynamics.rigid_body import RigidBodyBlock
from semiparam_dynamics.dynamics.sample import Sample, SampleBlock
from semiparam_dynamics.evaluation.protocols import BLOCK, ProtocolRun
from semiparam_dynamics.evaluation.scored import WaitingSamples


class JoinedRuns:
    """A sequential run, and a delayed one that goes on from what it knows.

    After each block of the delayed protocol both have learned the same, so that one estimator
    learns for both, and the delayed run's has only errors of its own. Where the models don't learn
    in blocks (see `learns_in_blocks`) there are two, each on its own.

    worker : of one thread, does what the rigid body doesn't wait for: the nonparametric models and
        the scores of a block while the next one comes. The numbers are the same to the last bit.
    """

    def __init__(self, sequential: ProtocolRun, worker: Executor | None = None) -> None:
        self.sequential = sequential
        self._worker = worker
        self._working: Future[None] | None = None
        self.shared = learns_in_blocks(sequential.estimator)
        if self.shared:
            sequential.settle()
            late, last = beside(sequential.estimator), sequential.last_residual.copy()
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
        self._join()

    def branch(self, protocol: str) -> ProtocolRun:
        """A run that goes on from a copy of what the sequential one has learned here."""
        self._join()
        run = self.sequential.branch(protocol)
        if len(self._waiting):
            block = self._waiting.block()
            now, _ = learn_block(run.estimator, block)
            counted(run.estimator, block, now)
            run.last_residual = block.y[-1] - now.rigid.values[-1]
        return run

    def _advance(self, whole: bool) -> None:
        waiting, self._waiting = self._waiting, WaitingSamples()
        block = waiting.block()
        rigid = learn_rigid_body(self.sequential.estimator, block)
        self._join()
        if self._worker is None:
            self._learn(waiting, block, rigid, whole)
        else:
            self._working = self._worker.submit(self._learn, waiting, block, rigid, whole)

    def _join(self) -> None:
        """Wait until the last block is learned, and raise what went wrong with it."""
        if self._working is not None:
            self._working.result()
            self._working = None

    def _learn(
        self, waiting: WaitingSamples, block: SampleBlock, rigid: RigidBodyBlock, whole: bool
    ) -> None:
        sequential, delayed = self.sequential, self.delayed
        now, beforehand = learn_nonparametric(sequential.estimator, block, rigid)
        late = predicted(delayed.estimator, beforehand)
        if whole:
            record_block(delayed.estimator, block, late.values)
        prompt = counted(sequential.estimator, block, now)
        sequential.take(block, prompt, waiting, learned=True)
        delayed.take(block, late, waiting, learned=whole)
