"""The learning that is lost when a learner that saves at an interval is killed repeatedly.

    python benchmarks/checkpoint_kills.py --kills 200

Each life is a process that resumes from the newest whole file, learns sample after sample and saves
every `--interval` samples in a thread, as the nodes do, until it gets SIGKILL at a random moment.
In every fourth life the disk is full: of a small file system given with `--folder` by a file that
takes the room, elsewhere by the system's limit of a file's length. After each life the newest file
is loaded and compared, bit by bit, with a learner that nobody ever stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import mmap
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from output import make_parser, parse
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.nodes.autosave import Autosave, Snapshot
from semiparam_dynamics.base.storage import any_saved
from semiparam_dynamics.dynamics import RobotModel
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.sample import Sample

URDF = Path(__file__).resolve().parent.parent / "test" / "data" / "small_arm.urdf"
SETTINGS = {
    "nystrom.window": 0.2,
    "nystrom.max_centers": 40,
    "nystrom.wide_max_centers": 10,
}
FULL_EVERY = 4  # lives
DELAY = 0.005  # s at most, so that the kill falls anywhere in a sample and in a write
SMALL = 64 << 20  # bytes: a file system that may be filled
FIELDS = ("ready", "learned", "saved", "begun", "noticed", "failed")


@dataclass
class Life:
    """Samples known at the start, learned at the kill, in the file afterwards, and its reports.

    saved : in the last write that was over. begun : in the last copy, written or not. noticed : how
    much was learned when `saved` was over.
    """

    full: bool
    start: int
    learned: int
    restored: int
    saved: int
    begun: int
    noticed: int
    failed: bool
    whole: bool
    equal: bool


class Board:
    """Numbers that outlive the process that wrote them."""

    def __init__(self) -> None:
        self._memory = np.frombuffer(mmap.mmap(-1, 8 * len(FIELDS)), dtype=np.int64)
        self._memory[:] = -1

    def __getattr__(self, name: str) -> int:
        return int(self._memory[FIELDS.index(name)])

    def write(self, name: str, value: int) -> None:
        self._memory[FIELDS.index(name)] = value


class Learner:
    """Learns the k-th sample of a motion that only depends on k."""

    def __init__(self, model: RobotModel) -> None:
        self.estimator = SemiparametricEstimator(model, **SETTINGS)
        self._rates = np.linspace(0.7, 2.9, model.n_joints)

    def learn(self) -> None:
        k = self.estimator.n_learned
        t, w = 0.01 * k, self._rates
        q, dq, ddq = np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t)
        regressor = self.estimator.model.regressor(q, dq, ddq)
        y = regressor @ self.estimator.model.prior + np.sin(3.0 * q)
        self.estimator.update(Sample(10**9 + round(t * 1e9), q, dq, ddq, regressor, y))

    def digest(self) -> str:
        digest = hashlib.sha256()
        for name, array in sorted(self.estimator.state().items()):
            digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def live(learner: Learner, path: Path, interval: int, limit: int | None, board: Board) -> None:
    """Go on from the file, learn and save until the end comes from outside."""
    estimator = learner.estimator

    def note() -> None:
        n = estimator.n_learned
        if (saved := n - autosave.unsaved) > board.saved:
            board.write("saved", saved)
            board.write("noticed", n)

    def snapshot() -> Snapshot:
        note()
        board.write("begun", estimator.n_learned)
        return estimator.identity(), {}, estimator.state()

    # Its clock counts samples: what is lost is then counted in samples too.
    autosave = Autosave(path, snapshot, interval, lambda: float(estimator.n_learned))
    if any_saved(path):
        autosave.load(path, estimator.load)
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    board.write("saved", estimator.n_learned)
    board.write("noticed", estimator.n_learned)
    board.write("ready", estimator.n_learned)
    while True:
        learner.learn()
        autosave.changed()
        autosave.step()
        note()
        board.write("learned", estimator.n_learned)
        if autosave.problem:
            board.write("failed", 1)


def main() -> None:
    args = read_arguments()
    rng = np.random.default_rng(args.seed)
    model = RobotModel(str(URDF))
    with threadpool_limits(1), tempfile.TemporaryDirectory(dir=args.folder) as folder:
        path = Path(folder) / "model.npz"
        reference, again = Learner(model), Learner(model)
        for _ in range(200):
            again.learn()  # compiled before the first process is born, and may write no file
        lives = []
        for k in range(args.kills):
            full = k % FULL_EVERY == FULL_EVERY - 1
            lives.append(one_life(model, path, full, reference, again, rng, args))
        left = sorted(entry.name for entry in Path(folder).iterdir())
    report(lives, left, args)


def one_life(
    model: RobotModel,
    path: Path,
    full: bool,
    reference: Learner,
    again: Learner,
    rng: np.random.Generator,
    args: argparse.Namespace,
) -> Life:
    board = Board()
    length, delay = rng.integers(0, args.samples), rng.uniform(0.0, DELAY)
    room = int(rng.uniform(0.0, 1.2) * (path.stat().st_size if path.exists() else 10_000))
    filler = path.with_name("filler")
    filled = full and fill(filler, room)
    process = os.fork()
    if process == 0:
        try:
            limit = room if full and not filled else None
            live(Learner(model), path, args.interval, limit, board)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    # In samples: on a busy machine a life is as long as on a quiet one.
    while board.ready < 0 or board.learned - board.ready < length:
        if os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            break
        time.sleep(0.0005)
    time.sleep(delay)
    os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    filler.unlink(missing_ok=True)
    if not os.WIFSIGNALED(status):
        sys.exit("a learner ended by itself")
    whole, restored = True, 0
    if any_saved(path):
        reader = Autosave(path, lambda: ({}, {}))
        reader.load(path, again.estimator.load)
        whole, restored = not reader.problem, again.estimator.n_learned
    while reference.estimator.n_learned < restored:
        reference.learn()
    equal = restored == 0 or reference.digest() == again.digest()
    learned, failed = max(board.learned, board.ready), board.failed == 1
    reported = (board.saved, board.begun, board.noticed, failed)
    return Life(full, board.ready, learned, restored, *reported, whole, equal)


def fill(filler: Path, room: int) -> bool:
    """Take all but `room` bytes of a small file system; False, and nothing done, on a large one."""
    about = os.statvfs(filler.parent)
    if about.f_blocks * about.f_frsize > SMALL:
        return False
    free = about.f_bavail * about.f_frsize
    filler.write_bytes(bytes(max(free - room, 0)))
    return True


def report(lives: list[Life], left: list[str], args: argparse.Namespace) -> None:
    lost = np.array([life.learned - life.restored for life in lives])
    failed = np.array([life.failed for life in lives])
    there = [life for life in lives if life.restored > 0]
    # What was learned while a write went on, and whether the kill came before its end.
    took = [life.noticed - life.saved for life in lives if life.saved > life.start]
    writing = sum(life.begun > life.saved and not life.failed for life in lives)
    print(f"{len(lives)} kills, an interval of {args.interval} samples")
    print(f"samples in the file at the end: {lives[-1].restored}")
    print(f"lives that saved nothing new: {sum(life.restored == life.start for life in lives)}")
    if took:
        print(f"a write took, in samples: median {np.median(took):.0f}, most {max(took)}")
    print(f"killed in the middle of a write: {writing}")
    for title, which in (("all writes done", ~failed), ("writes refused", failed)):
        if which.any():
            print(
                f"{title}: {which.sum()} lives, samples lost: median "
                f"{np.median(lost[which]):.0f}, most {lost[which].max()}"
            )
    print(f"files: {len(there)}, loaded whole: {sum(life.whole for life in there)}, ", end="")
    print(f"equal to the learner that was never stopped: {sum(life.equal for life in there)}")
    print(f"files left: {', '.join(left)}")
    if args.lives:
        content = {"interval": args.interval, "left": left, "lives": [asdict(x) for x in lives]}
        args.lives.write_text(json.dumps(content, indent=1))


def read_arguments() -> argparse.Namespace:
    parser = make_parser(__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--interval", type=int, default=20, help="samples between two saves")
    parser.add_argument("--samples", type=int, default=200, help="a life's length at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", help="where the files go: a small tmpfs, to fill it up")
    parser.add_argument("--lives", type=Path, help="JSON file with each life's figures")
    return parse(parser)


if __name__ == "__main__":
    main()
