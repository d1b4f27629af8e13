"""Processes beside each other, and the threads that each may take."""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from semiparam_dynamics.base.progress import ProgressBar, processes


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_shows_the_share_done_and_removes_itself() -> None:
    stream = Terminal()
    with ProgressBar("learning", stream) as bar:
        bar(0.0)
        time.sleep(0.11)  # it is drawn ten times a second at most
        bar(0.25)
    assert "learning  25% |" in stream.getvalue() and " left" in stream.getvalue()
    assert stream.getvalue().endswith("\r")


def test_where_there_is_no_terminal_short_work_prints_nothing() -> None:
    stream = io.StringIO()
    with ProgressBar("learning", stream) as bar:
        for k in range(80):
            bar(k / 80)
    assert stream.getvalue() == ""


def threads() -> dict[str, int]:
    """By library, the threads of a worker's products, where SciPy is loaded by its task."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    return {found["filepath"]: found["num_threads"] for found in threadpool_info()}


def test_each_process_computes_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "2")
    with processes(2) as executor:
        assert executor is not None
        found = executor.submit(threads).result()
    assert found
    assert set(found.values()) == {1}


INTERRUPTED = """
import signal, sys, threading, time
from semiparam_dynamics.base.progress import processes

# Tests may run where a shell has it ignored, in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
if __name__ == "__main__":
    try:
        with processes(2) as executor:
            waiting = [executor.submit(time.sleep, 60.0) for _ in range(2)]
            # While it waits: an exception between two of Python's own steps, as `result` takes its
            # lock, would leave the lock taken for ever.
            threading.Timer(float(sys.argv[1]), print, ("begun",), {"flush": True}).start()
            waiting[0].result()
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.parametrize("delay", [0.1, 1.5], ids=["starting", "working"])
def test_ctrl_c_on_a_terminal_ends_all_processes_without_tracebacks(
    tmp_path: Path, delay: float
) -> None:
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED)
    started = subprocess.Popen(
        [sys.executable, str(script), str(delay)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "begun\n"
    os.killpg(started.pid, signal.SIGINT)
    _, told = started.communicate(timeout=300.0)
    assert (started.returncode, told) == (130, "")


ENDED = """
import os, socket, sys
from semiparam_dynamics.base.progress import processes

def work(port):
    with socket.create_connection(("127.0.0.1", port)) as told:
        told.sendall(b"%12d" % os.getpid())
        told.recv(1)  # until the test ends it

if __name__ == "__main__":
    with processes(2) as executor:
        list(executor.map(work, [int(sys.argv[1])] * 2))
"""


def test_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    script = tmp_path / "ended.py"
    script.write_text(ENDED)
    connections, workers = [], []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(300.0)
        port = str(server.getsockname()[1])
        started = subprocess.Popen([sys.executable, str(script), port])
        try:
            for _ in range(2):
                connection, _ = server.accept()
                connection.settimeout(60.0)
                connections.append(connection)
                workers.append(int(connection.recv(12, socket.MSG_WAITALL)))
            started.kill()
            assert started.wait(60.0) == -signal.SIGKILL
            # The system closes a process' connections when it ends.
            assert [connection.recv(1) for connection in connections] == [b"", b""]
            workers.clear()
        finally:
            started.kill()
            started.wait()
            for worker in workers:
                os.kill(worker, signal.SIGKILL)
            for connection in connections:
                connection.close()


def test_one_process_is_this_one() -> None:
    with processes(1) as executor:
        assert executor is None
