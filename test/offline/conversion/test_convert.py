from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from semiparam_dynamics.base.errors import RobotModelError, SampleError
from semiparam_dynamics.offline.conversion.convert import convert_log, read_log
from semiparam_dynamics.samples.bag import BagReader, read_measurements

N, JOINTS = 20, 2
URDF = """<robot name="r"><link name="base"/><link name="l1"/><link name="l2"/>
<joint name="hip" type="continuous"><parent link="base"/><child link="l1"/></joint>
<joint name="knee" type="continuous"><parent link="l1"/><child link="l2"/></joint></robot>"""


def arrays(**changes: object) -> dict[str, np.ndarray]:
    """A good log; None leaves an array out."""
    rng = np.random.default_rng(1)
    log = {"dt": 0.01, "q": rng.normal(size=(N, JOINTS)), "tau": rng.normal(size=(N, JOINTS))}
    return {k: np.asarray(v) for k, v in {**log, **changes}.items() if v is not None}


@pytest.fixture
def log(tmp_path: Path):
    def save(**changes: object) -> Path:
        np.savez(tmp_path / "log.npz", **arrays(**changes))
        return tmp_path / "log.npz"

    return save


def test_every_array_arrives_in_the_bag(log, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    dq, wrench = rng.normal(size=(N, JOINTS)), rng.normal(size=(N, 6))
    path = log(dq=dq, wrench=wrench, names=["hip", "knee"])
    done = convert_log(path, tmp_path / "bag", wrench_frame="sensor")
    assert (done.names, done.samples, done.warnings) == (("hip", "knee"), N, ())
    assert done.rate == pytest.approx(100.0)
    effort = read_measurements(tmp_path / "bag", ["hip", "knee"])
    wrenches = read_measurements(tmp_path / "bag", ["knee", "hip"], "wrench", wrench_frame="sensor")
    for k, (e, w) in enumerate(zip(effort.measurements, wrenches.measurements, strict=True)):
        assert e.stamp == 1_000_000_000 + 10_000_000 * k
        np.testing.assert_array_equal(e.q, arrays()["q"][k])
        np.testing.assert_array_equal(e.dq, dq[k])
        np.testing.assert_array_equal(e.y, arrays()["tau"][k])
        np.testing.assert_array_equal(w.q, arrays()["q"][k, ::-1])
        np.testing.assert_array_equal(w.y, wrench[k])
    assert not wrenches.dropped


def test_times_count_from_the_start_whatever_they_begin_with(log, tmp_path: Path) -> None:
    t = 1e9 + np.cumsum(np.linspace(0.001, 0.02, N))
    convert_log(log(dt=None, t=t), tmp_path / "bag", start=5.0)
    given = read_measurements(tmp_path / "bag", ["joint_1", "joint_2"]).measurements
    stamps = [m.stamp for m in given]
    assert given[-1].dq is None  # as in the log
    np.testing.assert_allclose(stamps, 5e9 + (t - t[0]) * 1e9, atol=1)


def test_a_log_of_one_joint_may_be_flat(log, tmp_path: Path) -> None:
    q, tau = np.arange(5.0), np.ones(5)
    assert convert_log(log(q=q, tau=tau), tmp_path / "bag").names == ("joint_1",)


def test_names_may_be_bytes(log, tmp_path: Path) -> None:
    names = ["hüfte", "knee"]
    path = log(names=[name.encode() for name in names])
    assert convert_log(path, tmp_path / "bag").names == tuple(names)


def test_a_urdf_names_the_joints_and_goes_into_the_bag(log, tmp_path: Path) -> None:
    assert convert_log(log(), tmp_path / "bag", urdf=URDF).names == ("hip", "knee")
    with BagReader(tmp_path / "bag") as bag:
        assert bag.robot_description() == URDF


def test_names_given_come_before_the_log_s_and_the_urdf_s(log, tmp_path: Path) -> None:
    path = log(names=["x", "y"])
    done = convert_log(path, tmp_path / "bag", names=["knee", "hip"], urdf=URDF)
    assert done.names == ("knee", "hip")
    with pytest.raises(SampleError, match="no joint x, y that moves; it has: hip, knee"):
        convert_log(path, tmp_path / "other", urdf=URDF)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"q": None}, "no array 'q' .*; it has: dt, tau"),
        ({"q": np.zeros((1, JOINTS)), "tau": np.zeros((1, JOINTS))}, "at least two rows"),
        ({"q": np.zeros((N, JOINTS, 1))}, r"'q' has shape \(20, 2, 1\), it must be \(samples, jo"),
        ({"q": np.array([["a"]])}, "'q' holds <U1, not numbers"),
        ({"q": np.full((N, JOINTS), np.nan)}, "40 values of 'q' are not finite, .* row 0, colu"),
        ({"tau": None}, "neither 'tau' nor 'wrench'"),
        ({"tau": np.zeros((N, 3))}, r"'tau' has shape \(20, 3\), it must be \(20, 2\)"),
        ({"dq": np.zeros((N - 1, JOINTS))}, r"'dq' has shape \(19, 2\)"),
        ({"wrench": np.zeros((N, 3))}, r"'wrench' has shape \(20, 3\), it must be \(20, 6\)"),
        ({"dt": None}, "neither 't' .* nor 'dt'"),
        ({"dt": 0.0}, "'dt' is 0;"),
        ({"dt": 20.0}, r"'dt' is 20; .* in seconds, .*\(20 ms are 0.02\)"),
        ({"dt": 1.0}, r"'dt' is 1; .* in seconds"),  # of 1 kHz, in ms
        ({"dt": None, "t": 20.0 * np.arange(N)}, "steps of 't' are 20 s: is it in seconds"),
        ({"dt": np.nan}, "'dt' are not finite"),
        ({"dt": np.ones(N)}, "'dt' is one number"),
        ({"t": np.zeros(N)}, "'t' doesn't increase at row 1"),
        ({"t": np.arange(N - 1.0)}, r"'t' has shape \(19,\), it must be \(20, 1\)"),
        ({"names": ["a"]}, "'names' of .*: 1 names for 2 joints"),
        ({"names": ["a", "a"]}, "each joint needs a name of its own"),
        ({"names": [b"a", b"\xff"]}, "'names' is text in another encoding than UTF-8"),
        (
            {"names": np.array(["a", "b"], dtype=object)},
            "'names' holds Python objects, which are never read",
        ),
    ],
)
def test_a_bad_log_is_explained_and_writes_nothing(log, tmp_path, changes, message) -> None:
    with pytest.raises(SampleError, match=message):
        convert_log(log(**changes), tmp_path / "bag")
    assert not (tmp_path / "bag").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no file"),
        (b"", r"log\.npz: the file is empty$"),
        (b"\x00\x01\x02", "neither an npz file nor text, or damaged: "),
        (b"t,q1,q2\n0,1.5,-2e-3\n0.1,1,1\n", "has neither 'tau' nor 'wrench'"),
        (b"\x89HDF\r\n\x1a\n", "neither an npz file nor text.*h5py for HDF5"),
        (b"PK\x03\x04broken", "is a damaged npz file"),
    ],
)
def test_what_is_no_npz_is_explained(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "log.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SampleError, match=message) as told:
        convert_log(path, tmp_path / "bag")
    assert "pickle" not in str(told.value)


def test_files_of_numpy_and_matlab_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "q.npy", np.zeros((3, 2)))
    savemat(tmp_path / "q.mat", {"q": np.zeros((3, 2))})
    for name in ("q.npy", "q.mat"):
        with pytest.raises(SampleError, match="neither an npz file nor text.*loadmat.*numpy.savez"):
            convert_log(tmp_path / name, tmp_path / "bag")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"names": ["a"]}, SampleError, "the names given: 1 names for 2 joints"),
        ({"urdf": "<robot"}, RobotModelError, "well-formed"),
        ({"start": 0.0}, SampleError, "the start must be positive"),
        ({"start": float("nan")}, SampleError, "the start must be positive"),
        ({"start": 3e9}, SampleError, "before the year 2038"),
    ],
)
def test_bad_options_are_explained(log, tmp_path, options, error, message) -> None:
    with pytest.raises(error, match=message):
        convert_log(log(), tmp_path / "bag", **options)


def test_a_urdf_with_other_joints_asks_for_names(log, tmp_path: Path) -> None:
    path = log(q=np.zeros((N, 3)), tau=np.zeros((N, 3)))
    with pytest.raises(SampleError, match="the log has 3 joints, the URDF 2 that move"):
        convert_log(path, tmp_path / "bag", urdf=URDF)


def test_degrees_and_unused_arrays_are_pointed_out(log, tmp_path: Path) -> None:
    path = log(q=np.full((N, JOINTS), 90.0), temperature=np.zeros(N))
    unused, degrees = convert_log(path, tmp_path / "bag").warnings
    assert "temperature" in unused and "degrees" in degrees


SLIDING = URDF.replace('"hip" type="continuous"', '"hip" type="prismatic"')


def test_degrees_are_those_of_joints_that_turn(log, tmp_path: Path) -> None:
    """A slide's metres stay, in any log; without a URDF it is said that they don't."""
    q = np.tile([0.3, 90.0], (N, 1))
    path = log(q=q, dq=2.0 * q, names=["hip", "knee"])
    done = convert_log(path, tmp_path / "bag", urdf=SLIDING, degrees=True)
    assert done.warnings == ()
    first = read_measurements(tmp_path / "bag", ["hip", "knee"]).measurements[0]
    np.testing.assert_allclose(first.q, [0.3, np.pi / 2.0])
    np.testing.assert_allclose(first.dq, [0.6, np.pi])
    (warned,) = convert_log(path, tmp_path / "other", degrees=True).warnings
    assert "every joint's positions and velocities were taken as degrees" in warned
    first = read_measurements(tmp_path / "other", ["hip", "knee"]).measurements[0]
    np.testing.assert_allclose(first.q, np.deg2rad([0.3, 90.0]))


def test_a_joint_that_follows_another_is_one_of_the_urdf(log, tmp_path: Path) -> None:
    text = URDF.replace('<child link="l2"/>', '<child link="l2"/><mimic joint="hip"/>')
    done = convert_log(log(names=["hip", "knee"]), tmp_path / "bag", urdf=text)
    assert done.names == ("hip", "knee")
    with pytest.raises(SampleError, match="no joint ankle that moves; it has: hip, knee;"):
        convert_log(log(names=["hip", "ankle"]), tmp_path / "other", urdf=text)
    with pytest.raises(SampleError, match=r"the log has 2 joints, the URDF 1 that move \(hip\)"):
        convert_log(log(), tmp_path / "other", urdf=text)


@pytest.mark.parametrize("name", ["t", "q", "dq", "tau", "wrench", "names", "dt"])
def test_an_unused_column_of_an_array_s_name_takes_no_array_s_place(tmp_path, name: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"time,q1,tau1,{name}\n0,1,2,7\n0.1,3,4,8\n")
    log = read_log(path)
    assert log.warnings == (f"not used: {name}",)
    assert log.names == () and log.dq is None and log.wrench is None
    np.testing.assert_array_equal(log.time, [0, 100_000_000])
    np.testing.assert_array_equal(log.q, [[1.0], [3.0]])
    np.testing.assert_array_equal(log.tau, [[2.0], [4.0]])


def test_a_recorded_robot(data_file, tmp_path: Path) -> None:
    path, urdf = (data_file(f"robots/xmate7p/{n}") for n in ("trajectory_1.npz", "xmate7p.urdf"))
    done = convert_log(path, tmp_path / "bag", urdf=str(urdf))
    given = read_measurements(tmp_path / "bag", done.names)
    with np.load(path) as log:
        assert done.rate == pytest.approx(1 / float(log["dt"]))
        q, tau = np.array([m.q for m in given.measurements]), [m.y for m in given.measurements]
        np.testing.assert_array_equal(q, log["q"])
        np.testing.assert_array_equal(tau, log["tau"])
    assert given.measurements[-1].dq is not None
    assert not given.dropped
