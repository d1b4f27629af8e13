"""The live part of `semiparam objects`: two node processes, and this one that watches them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TextIO

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String

from semiparam_dynamics.base.errors import SemiparamError
from semiparam_dynamics.base.nodes import runtime
from semiparam_dynamics.base.nodes.processes import (
    NodeProcess,
    make_logs,
    use_own_network,
    write_params,
)
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.learner.nodes.config import (
    ObjectRecognitionNodeConfig,
    ObjectStreamNodeConfig,
)
from semiparam_dynamics.recognition.script import Round, Shown, Tally

# -------------------------------------------------------------------------------------------------
# Watching the recognition of objects from outside, over its topics alone.

QUEUE = QoSProfile(depth=1000)
LATCHED = QoSProfile(depth=1000, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class ObjectMonitor(Node):  # type: ignore[misc]
    """Keeps a tally of what is in view, taught or asked, and of what is recognised.

    Parameters
    ----------
    recognition: the recognition's node name.
    done: called with each object that goes out of view, and the answers there were.
    """

    def __init__(self, recognition: str, done: Callable[[Shown], None]) -> None:
        super().__init__("object_monitor")
        self.status: DiagnosticStatus | None = None
        self.tally = Tally()
        self.begun = False  # something was in view
        self._recognition = recognition
        self._done = done
        self._label = ""
        self._answers = f"{recognition}/label"
        self.create_subscription(String, self._answers, self._recognised, QUEUE)
        self.create_subscription(String, "truth", self._in_view, LATCHED)
        self.create_subscription(DiagnosticArray, "/diagnostics", self._diagnosed, QUEUE)
        self._waiting = self.create_timer(0.05, self._listen_when_connected)

    def _listen_when_connected(self) -> None:
        """Subscribe the teacher's label once the recognition's answers can be heard.

        The stream waits for its subscribers, so that not even the first answer is missed.
        """
        if self.count_publishers(self._answers):
            self.destroy_timer(self._waiting)
            self.create_subscription(String, "label", self._taught, LATCHED)

    def figures(self) -> dict[str, str]:
        """The recognition's last diagnostics by name."""
        return {pair.key: pair.value for pair in self.status.values} if self.status else {}

    def end(self) -> None:
        """Nothing is in view any more."""
        self._show("")

    def _recognised(self, message: String) -> None:
        # What is in view and what is said are topics of their own; both have come before a frame.
        shown = self.tally.now
        self.tally.answer(message.data, teach=bool(shown and shown.name == self._label))

    def _taught(self, message: String) -> None:
        self._label = message.data

    def _in_view(self, message: String) -> None:
        self.begun = True
        self._show(message.data)

    def _show(self, name: str) -> None:
        before = self.tally.show(name)
        if before is not None:
            self._done(before)

    def _diagnosed(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name == self._recognition:
                self.status = status


# -------------------------------------------------------------------------------------------------
# The progress of teaching and asking on a terminal or in a file, and what came of it.

WIDTH = 100  # characters of a line of the summary; with more objects it has only their mean
WIDEST = 12  # characters of a name in it
WORST = 2  # objects whose confusion is told
ANSWERS = 3  # of those they were taken for


class ObjectTable:
    """A line for each object shown: what it was recognised as, before it was learned if it was."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._waiting = ""
        self._begin = time.monotonic()

    def row(self, shown: Shown) -> None:
        """Add what came of an object that has gone out of view."""
        frames = len(shown.answers)
        if shown.teach:
            first = shown.known_from
            since = f"all from frame {first} on" if first else "not the last one"
            self._print("")
            what = f"taught, {frames} frames: {shown.right} recognised before learned, {since}"
        else:
            right = f"{shown.right} of {frames} {shown.expected or 'right'}"
            what = f"{'never taught' if shown.expected else 'asked'}, {right}"
            what += _taken_for(shown.wrong)
        elapsed = time.monotonic() - self._begin
        self.note(f"{elapsed:6.1f} s  {_short(shown.name):{WIDEST}}  {what}")

    def waiting(self, what: str) -> None:
        """Say what is awaited, unless it was said before."""
        if what != self._waiting:
            self._waiting = what
            self.note(what)

    def note(self, text: str) -> None:
        """Add a line of text."""
        self._print(f"  {text}".rstrip())

    def summary(self, tally: Tally, figures: dict[str, str]) -> None:
        """Say how many pictures were recognised after each teaching, and what was confused."""
        asked = [one for one in tally.rounds if one.asked]
        if asked:
            self._print("\nright answers in %, to pictures that were never taught:")
            self._rounds(asked)
            self._confusion(asked[-1])
        dropped = figures.get("frames dropped", "0")
        self._print(f"{tally.answers} frames recognised, {dropped} dropped")
        refused = [name for name in figures if name.startswith("last refused: ")]
        for name in refused:
            self._print(f"{name.removeprefix('last ')}: {figures[name]}")
        for act, what in (("frame", "a frame, from message to answer"), ("learn", "to learn it")):
            if f"{act} p50 [us]" in figures:
                p50, p99 = (float(figures[f"{act} {p} [us]"]) / 1000 for p in ("p50", "p99"))
                self._print(f"{what}: {p50:.1f} ms (median), {p99:.1f} ms (99 %)")

    def _rounds(self, asked: Sequence[Round]) -> None:
        names = list(dict.fromkeys(name for one in asked for name in _order(one)))
        widths = [max(5, len(_short(name))) for name in names]
        fits = WIDEST + sum(width + 2 for width in widths) + 9 <= WIDTH
        columns, widths = (names, widths) if fits else ([], [])
        head = [f"{_short(name):>{w}}" for name, w in zip(columns, widths, strict=True)]
        self._print("  ".join([f"  {'after':{WIDEST}}", *head, "  all"]))
        for one in asked:
            scores = one.scores()
            cells = [
                f"{_percent(scores.get(name, (0, 0))):>{width}}"
                for name, width in zip(columns, widths, strict=True)
            ]
            title = f"  {_short(one.taught or '(nothing)'):{WIDEST}}"
            self._print("  ".join([title, *cells, f"{_percent(one.score()):>5}"]))

    def _confusion(self, last: Round) -> None:
        """The objects that did worst in the last round, and what they were taken for."""
        scores = last.scores()
        wrong = last.wrong()
        worst = sorted(scores, key=lambda name: scores[name][0] / scores[name][1])[:WORST]
        for name in worst:
            right, frames = scores[name]
            if right < frames:
                taken = _taken_for(wrong[name])
                self._print(f"worst in the end: {name}, {right} of {frames} right{taken}")
        if all(right == frames for right, frames in scores.values()):
            self._print("in the end nothing was confused")

    def _print(self, text: str) -> None:
        self._out.write(text + "\n")
        self._out.flush()


def _order(one: Round) -> list[str]:
    """The round's objects in the order of their teaching as far as the round tells it."""
    others = [name for name in one.scores() if name != one.taught]
    return [*others, *([one.taught] if one.taught in one.scores() else [])]


def _taken_for(wrong: Counter[str]) -> str:
    if not wrong:
        return ""
    told = [f"{count} {_short(answer)}" for answer, count in wrong.most_common(ANSWERS)]
    return f", taken for: {', '.join(told)}"


def _percent(score: tuple[int, int]) -> str:
    right, frames = score
    return f"{100 * right / frames:.0f}" if frames else "-"


def _short(name: str) -> str:
    return name if len(name) <= WIDEST else name[: WIDEST - 3] + "..."


RECOGNITION, STREAM = "object_recognition", "object_stream"
LISTENERS = 2  # of the label: the recognition and the monitor
PATIENCE = 300.0  # s without an answer: the first start compiles, and makes the network's file
DRAIN = 1.2  # s after the last frame: its answer, and diagnostics of all


@dataclass(frozen=True)
class Watched:
    """Summary of a run: the tally, the recognition's last figures, and whether the script ended."""

    tally: Tally
    figures: dict[str, str]
    complete: bool


def run_objects(out: Path, config: ObjectStreamNodeConfig, *, features: bool) -> Watched:
    """Run the script that `config` describes; logs and the nodes' parameters go to `out`.

    features: the source has feature vectors and no pictures.

    Each answer is to one picture: the recognition does not smooth over several. Ctrl-C ends the
    script early. Raises SemiparamError where a node ends by itself or no answer comes.
    """
    domain = use_own_network()
    logs = make_logs(out, (RECOGNITION, STREAM))
    stream_yaml = write_params(out, STREAM, replace(config, wait_for_subscribers=LISTENERS))
    recognition_yaml = write_params(out, RECOGNITION, recognition_config(features))
    print(f"starting the recognition and the pictures (ROS_DOMAIN_ID={domain}, logs in {logs})")
    table = ObjectTable(sys.stdout)
    with (
        runtime.open_network() as interrupted,
        NodeProcess(RECOGNITION, {}, logs / f"{RECOGNITION}.log", recognition_yaml) as answers,
        # It waits until the recognition listens.
        NodeProcess(STREAM, {}, logs / f"{STREAM}.log", stream_yaml) as pictures,
    ):
        monitor = ObjectMonitor(RECOGNITION, table.row)
        executor = SingleThreadedExecutor()
        executor.add_node(monitor)
        complete = _follow(executor, monitor, table, interrupted, answers, pictures)
        runtime.spin_for(executor, DRAIN)
        monitor.end()
        monitor.destroy_node()
    table.summary(monitor.tally, monitor.figures())
    return Watched(monitor.tally, monitor.figures(), complete)


def recognition_config(features: bool) -> ObjectRecognitionNodeConfig:
    """The recognition's parameters: the defaults, but every picture is answered by itself."""
    kind = "features" if features else "image"
    return replace(ObjectRecognitionNodeConfig(), input=kind, reliable=True, smoothing__frames=1)


def _follow(
    executor: Executor,
    monitor: ObjectMonitor,
    table: ObjectTable,
    interrupted: Event,
    recognition: NodeProcess,
    stream: NodeProcess,
) -> bool:
    """Spin until the script has ended; False if the user ended it before."""
    progress, answers = time.monotonic(), 0
    while not _ended(stream):
        executor.spin_once(timeout_sec=0.1)
        if interrupted.is_set():
            if not monitor.tally.answers:
                raise KeyboardInterrupt
            return False
        recognition.check()
        why = monitor.status.message if monitor.status else "the nodes are starting"
        if not monitor.tally.answers:
            table.waiting(why)
        now, paused = time.monotonic(), monitor.begun and monitor.tally.now is None
        if monitor.tally.answers > answers or paused:
            progress, answers = now, monitor.tally.answers
        if now - progress > PATIENCE:
            raise SemiparamError(f"no picture was recognised for {PATIENCE:g} s: {why}")
    return True


def _ended(stream: NodeProcess) -> bool:
    """Whether the script has come to its end; raises SemiparamError if it ended otherwise."""
    try:
        code = stream.wait(0.0)
    except subprocess.TimeoutExpired:
        return False
    if code:
        stream.check()
    return True
