"""Fixtures that all tests share: the data folder, and a ROS 2 network of the test's own."""

from __future__ import annotations

import fcntl
import gc
import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Of what is imported and collected nothing can go: looking for it took a quarter of that time.
gc.disable()

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

# Generated messages read the first when they are imported, so a fixture would set it too late:
# with it, an int or a numpy.float32 in a float field raises instead of arriving as garbage.
os.environ["ROS_PYTHON_CHECK_FIELDS"] = "1"
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
os.environ.setdefault("MPLBACKEND", "Agg")
if "PYTEST_XDIST_WORKER" in os.environ:
    # Several test processes fill the cores: BLAS' threads would only wait for one another.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# A machine that is busy for a moment is no error of what is tested; and the examples are the same
# each time: fuzz/ looks for others.
settings.register_profile(
    "any machine", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

# Half of the test processes collect the tests from the end: what has no bytecode yet is compiled by
# one of them and read by the others.
BACKWARDS = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 2 == 1

_starts = itertools.count(os.getpid() * 7)  # another first domain in each process and each test


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if BACKWARDS and isinstance(collector, pytest.Directory):
        report.result.reverse()
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path)  # the same in all processes
    gc.freeze()  # what is imported by now stays
    gc.enable()


@pytest.fixture(scope="session")
def repository() -> Path:
    """The repository's root."""
    return ROOT


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of recorded logs: SEMIPARAM_DATA or ../shared/data; skips where there is none."""
    folder = Path(os.environ.get("SEMIPARAM_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no recorded logs: {folder} is not a folder (SEMIPARAM_DATA names another)")
    return folder


@pytest.fixture(scope="session")
def data_file(data_folder: Path) -> Callable[[str], Path]:
    """A function from a path inside the data folder to the file; skips where it is missing."""

    def find(name: str) -> Path:
        path = data_folder / name
        if not path.exists():
            pytest.skip(f"the data folder has no {name}")
        return path

    return find


@pytest.fixture
def ros_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The environment for child processes, on a ROS domain that no other test uses meanwhile.

    The same variables hold in the test's own process, before its `rclpy.init()`.
    """
    domain, claim = _claim_domain()
    try:
        monkeypatch.setenv("ROS_DOMAIN_ID", str(domain))
        monkeypatch.setenv("ROS_LOG_DIR", str(tmp_path / "ros_log"))
        yield dict(os.environ)
    finally:
        os.close(claim)


@pytest.fixture(scope="session")
def simulator() -> None:
    """Skips where the extra 'sim' is not installed."""
    for name in ("mujoco", "icub_models"):
        pytest.importorskip(name, reason="needs the extra 'sim'")


@pytest.fixture(scope="module")
def no_figures() -> Iterator[None]:
    """Evaluations' pages have empty figures: of a short bag, drawing them is most of the work.

    `test_report` and `test_report_in_browser` look at those that are drawn.
    """
    from semiparam_dynamics.offline.evaluation import prediction_plots

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prediction_plots, "draw", lambda *given: "<svg></svg>")
        yield


@pytest.fixture(scope="module")
def seldom_inferred() -> Iterator[None]:
    """Learners infer less often what is not recursive, which of short motions is most of the work.

    Evidence and kernels are looked at again after a third and a fifth more samples, and not after a
    twentieth and a fiftieth. A module whose child processes must give the same has its own fixture.
    """
    from semiparam_dynamics.dynamics import inferred_kernel, rigid_body

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rigid_body, "EVIDENCE_GROWTH", 1.33)
        patch.setattr(inferred_kernel, "SOLUTION_GROWTH", 1.2)
        patch.setattr(inferred_kernel, "CHOICE_GROWTH", 1.6)
        yield


@pytest.fixture
def scores_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluations have no page, no times and no model without a URDF: half of their work."""
    from semiparam_dynamics.base.parameters import replace
    from semiparam_dynamics.offline.evaluation import experiment, report

    learner = experiment.InverseDynamicsLearner

    def uncompared(model: Any, config: Any) -> Any:
        return learner(model, replace(config, comparison=False))

    monkeypatch.setattr(experiment, "InverseDynamicsLearner", uncompared)
    monkeypatch.setattr(experiment, "_live_steps", lambda take, samples: [0.0])
    monkeypatch.setattr(report, "report", lambda evaluation: "")


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a Dask cluster of two processes; skips where Dask is not installed.

    It ends with its module: a cluster that has nothing to do takes an eighth of a core.
    """
    distributed = pytest.importorskip("distributed", reason="needs the extra 'distributed'")
    import dask

    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    # A result that was on a worker that has died is looked for there as long as this.
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "5s"}),
        distributed.LocalCluster(processes=True, **settings) as cluster,
    ):
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def near_scheduler() -> Iterator[str]:
    """The address of a Dask cluster whose two workers are threads here, to which tasks go by TCP.

    For those who use a cluster: `scheduler`'s processes import everything anew.
    """
    distributed = pytest.importorskip("distributed", reason="needs the extra 'distributed'")
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(processes=False, protocol="tcp://", **settings) as cluster:
        yield cluster.scheduler_address


def _claim_domain() -> tuple[int, int]:
    """Lock one of the domains 1 to 101 against every other test process on this machine.

    One in which somebody else has a node is left out. Higher domains' ports would fall among those
    that the system hands out. The lock goes with the process however it ends.
    """
    # Imported at the top, it would load numpy, whose BLAS reads the number of threads then.
    from semiparam_dynamics.base.nodes.processes import is_free

    folder = Path(tempfile.gettempdir()) / f"semiparam_domains_{os.getuid()}"
    folder.mkdir(exist_ok=True)
    start = next(_starts)
    for offset in range(101):
        domain = (start + offset) % 101 + 1
        claim = os.open(folder / str(domain), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(claim)
            continue
        if is_free(domain):
            return domain, claim
        os.close(claim)
    pytest.fail(f"all 101 ROS domains are claimed by other tests: see {folder}")
