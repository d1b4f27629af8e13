"""How a node process lives: start, spin with learning in the pauses, end cleanly."""

from __future__ import annotations

import gc
import math
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread, current_thread
from typing import Any, Generic, Protocol, TypeVar

import rclpy
import rclpy.logging
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from threadpoolctl import threadpool_limits

from semiparam_dynamics.errors import SemiparamError

# -------------------------------------------------------------------------------------------------
# Work that waits for a pause between messages.

T = TypeVar("T")


class Backlog(Generic[T]):
    """Work that waits until no message does; bounded, so that it never falls far behind.

    When it is full the oldest entry gives way: what is learned stays recent.

    Parameters
    ----------
    work: does an entry. capacity: how many may wait, which may be changed.
    patience: how long work may be kept waiting by messages that don't cease, s.
    spare: a piece of work for when nothing waits; returns whether there is more. It is called
        after each entry, and when `stir` was.
    """

    def __init__(
        self,
        work: Callable[[T], None],
        capacity: int,
        *,
        patience: float = math.inf,
        spare: Callable[[], bool] | None = None,
    ) -> None:
        self._work = work
        self._patience = patience
        self._spare = spare
        self._more = False
        self._since = 0.0  # when the entries that wait began to
        self._waiting: deque[T] = deque()
        self.capacity = capacity
        self.interruptions = 0  # messages taken; tells the loop whether one was waiting
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def __bool__(self) -> bool:
        """Whether there is anything to do, spare work included."""
        return self._more or bool(self._waiting)

    def stir(self) -> None:
        """Note that there may be spare work."""
        self._more = self._spare is not None

    def late(self) -> bool:
        """Whether an entry has waited long enough to go before messages."""
        return bool(self._waiting) and time.monotonic() - self._since >= self._patience

    def interrupted(self) -> None:
        """Note that a message was taken. Every message callback calls it first."""
        self.interruptions += 1

    def add(self, entry: T) -> None:
        """Put work in; drop and count the oldest where there is no room."""
        if not self._waiting:
            self._since = time.monotonic()
        while len(self._waiting) >= self.capacity:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(entry)

    def do_one(self) -> None:
        """Do the oldest piece of work, or a piece of the spare work where nothing waits."""
        if not self._waiting:
            self._more = self._spare is not None and self._spare()
            return
        self._work(self._waiting.popleft())
        self._since = time.monotonic()
        self.stir()

    def do_all(self) -> None:
        """Do everything that waits."""
        while self._waiting:
            self.do_one()

    def clear(self) -> None:
        """Forget the work that waits."""
        self._waiting.clear()


# -------------------------------------------------------------------------------------------------
# Work that messages need not wait for, in a thread of its own.


class Worker(Generic[T]):
    """Does entries one after the other in a thread, while the one that puts them goes on.

    It is worth it where the work releases the interpreter's lock, as compiled loops do. The thread
    has the others' priority: with a lower one it would be kept from running while it has that lock,
    and all would wait for it. When too many wait the oldest gives way. What the work raises is
    raised again by the next :meth:`put` or :meth:`wait`.

    Parameters
    ----------
    work: does an entry. capacity: how many may wait, which may be changed.

    Attributes
    ----------
    dropped: how many entries gave way.
    """

    def __init__(self, work: Callable[[T], None], capacity: int) -> None:
        self._work = work
        self._waiting: SimpleQueue[T | Event | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._error: BaseException | None = None
        self._put = self._done = self._discarded = 0  # entries; each is counted by one thread
        self._at_work = Lock()
        self._may_begin = Event()
        self._may_begin.set()
        self.capacity = capacity
        self.dropped = 0

    def __len__(self) -> int:
        return self._waiting.qsize()

    @property
    def busy(self) -> bool:
        """Whether anything waits or is being done."""
        return self._put != self._done + self._discarded

    @contextmanager
    def still(self) -> Iterator[None]:
        """Nothing is done meanwhile; it begins when the entry that is being done is over."""
        self._may_begin.clear()  # the lock alone would go to the thread that just had it
        try:
            with self._at_work:
                yield
        finally:
            self._may_begin.set()

    def put(self, entry: T) -> None:
        """Have an entry done; the thread begins with the first one."""
        self._raise()
        if self._thread is None:
            self._thread = Thread(target=self._run, daemon=True)
            self._thread.start()
        while self._waiting.qsize() >= self.capacity:
            self.dropped += self._discard()
        self._put += 1
        self._waiting.put(entry)

    def wait(self) -> None:
        """Until all that was put is done; called by the work itself, not at all."""
        if self._thread is current_thread():
            return
        if self._thread is not None:
            done = Event()
            self._waiting.put(done)
            done.wait()
        self._raise()

    def clear(self) -> None:
        """Forget what waits; returns when nothing is done any more."""
        while self._discard():
            pass
        self.wait()

    def close(self) -> None:
        """Do what waits and end the thread; a later :meth:`put` begins another."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join()
            self._thread = None
        self._raise()

    def _discard(self) -> int:
        """Take the oldest entry out; how many there were, 0 or 1."""
        try:
            self._waiting.get_nowait()
        except Empty:
            return 0
        self._discarded += 1
        return 1

    def _run(self) -> None:
        while (entry := self._waiting.get()) is not None:
            if isinstance(entry, Event):
                entry.set()
                continue
            self._may_begin.wait()
            try:
                with self._at_work:
                    self._work(entry)
            except BaseException as error:  # told to the thread that puts entries
                self._error = error
            self._done += 1

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error


N = TypeVar("N", bound=Node)
IDLE_WAIT = 0.1  # s: a bound on how long a signal can go unseen
# That may be before a pause's mark and are no messages: a service that awaits something is asked
# again and again by EventsExecutor, each time at the end of the queue.
CALLBACKS = 4


def make_executor() -> Executor:
    """The executor with the smaller latency that this rclpy has.

    Measured at 1 kHz, a JointState in and out, two busy cores: EventsExecutor 546 us at the median
    and no message lost, SingleThreadedExecutor 598 us, up to 1.7 % of the messages lost and 1.4
    times the processor time; an empty `spin_once(0)` takes 90 and 151 us. EventsExecutor's `spin()`
    runs no callback in some releases, `spin_once` does; Jazzy has no EventsExecutor.
    """
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor()
    executor: Executor = EventsExecutor()
    return executor


def spin_for(executor: Executor, seconds: float) -> None:
    """Run callbacks for so long."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        executor.spin_once(timeout_sec=left)


class Pause:
    """Tells whether no message waits, at the moment when it is asked.

    EventsExecutor runs what is ready in the order of its coming. So a mark is put at the end of
    its queue: if it comes up at once, nothing else was there. That costs 10 us, an empty
    `spin_once(0)` 70 us. SingleThreadedExecutor, which has no such order, is asked the long way.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._in_order = not isinstance(executor, SingleThreadedExecutor)
        self._marked = self._came_up = False

    def now(self, backlog: Backlog[Any]) -> bool:
        """Run at most one message's callback; True if there was no message to run."""
        before = backlog.interruptions
        if not self._in_order:
            # The first call may only finish the round of the last one, without looking again.
            self._executor.spin_once(timeout_sec=0)
            if backlog.interruptions == before:
                self._executor.spin_once(timeout_sec=0)
            return backlog.interruptions == before
        fresh = not self._marked
        if fresh:
            self._marked, self._came_up = True, False
            self._executor.create_task(self._mark)
        for _ in range(CALLBACKS):
            self._executor.spin_once(timeout_sec=0)
            if not self._marked or backlog.interruptions != before:
                break
        # A mark from before the last message says nothing of messages that came after it.
        return fresh and self._came_up and backlog.interruptions == before

    def _mark(self) -> None:
        self._marked, self._came_up = False, True


def spin(executor: Executor, current: Callable[[], Backlog[Any] | None]) -> None:
    """Run callbacks until shutdown, and the backlog one entry at a time while no message waits.

    With pauses between messages the order is message k, its work, message k + 1: a run's numbers
    don't depend on timing. Under load messages go first, for as long as the backlog is patient.
    `current` gives the backlog, which may change in a callback.
    """
    pause = Pause(executor)
    while rclpy.ok():
        backlog = current()
        if not backlog:
            executor.spin_once(timeout_sec=IDLE_WAIT)
        elif (pause.now(backlog) or backlog.late()) and backlog:
            backlog.do_one()


class Work(Protocol):
    """What has a backlog."""

    @property
    def backlog(self) -> Backlog[Any]:
        """Its work that waits for pauses."""


class LearningNode(Protocol):
    """A lifecycle node that has a session while it is configured."""

    @property
    def session(self) -> Work | None:
        """What it does between messages."""

    def start(self) -> bool:
        """Bring it up; False if that failed."""

    def close(self) -> bool:
        """End it; False if that failed."""


def spin_learner(node: LearningNode, executor: Executor) -> int:
    """Bring the node up, run it until shutdown and end it; returns the exit code."""
    closed = False
    try:
        started = node.start() or not rclpy.ok()  # interrupted is not failed
        if started:
            # What is there now stays: looking through it for garbage would keep messages waiting.
            gc.freeze()
            with suppress(ExternalShutdownException):
                spin(executor, lambda: node.session.backlog if node.session else None)
    finally:
        closed = node.close()
    return int(not (started and closed))


def run(
    name: str,
    make_node: Callable[[], N],
    spin_node: Callable[[N, Executor], int],
    arguments: Sequence[str] | None = None,
) -> int:
    """Start ROS and a node, spin it, and end cleanly on SIGINT and SIGTERM.

    A SemiparamError becomes one line of the log. Returns the process' exit code, which is that of
    `spin_node`.
    """
    # A sample's products are small: spread over threads they wait for each other, and take the
    # cores from everybody else.
    threadpool_limits(limits=1)
    # rclpy ends its context on SIGINT, and the loops end with it. A KeyboardInterrupt on top would
    # abort the process where EventsExecutor is just calling into Python, and nothing be saved.
    signal.signal(signal.SIGINT, lambda *_: None)
    rclpy.init(args=None if arguments is None else [sys.argv[0], *arguments])
    node: N | None = None
    try:
        node = make_node()
        executor = make_executor()
        executor.add_node(node)
        return spin_node(node, executor)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except SemiparamError as error:
        rclpy.logging.get_logger(name).fatal(str(error))
        return 1
    except Exception:
        # A signal that comes while rclpy calls into Python, to compile the core say, ends the
        # network first and is then seen as an error of whatever used it next.
        if rclpy.ok():
            raise
    finally:
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()
        # The interpreter looks through all that is loaded once more before it ends, which takes
        # longer (0.6 s) than all of the above (5 ms): a supervisor may not wait.
        gc.freeze()
    return 0
