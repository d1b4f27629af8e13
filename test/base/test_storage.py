"""Saved models: whole, checked, of one robot, with one owner; damaged and hostile files."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import io
import json
import os
import pickle
import resource
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semiparam_dynamics.base.errors import (
    ConfigurationError,
    DamagedModelError,
    ForeignModelError,
    StorageError,
)
from semiparam_dynamics.base.storage import (
    QUOTED,
    SEAL,
    SEAL_LENGTH,
    ModelLock,
    any_saved,
    check_finite,
    load_newest,
    load_state,
    lock_of,
    previous_of,
    resuming,
    save_state,
    set_aside,
    sub_state,
)

IDENTITY: dict[str, object] = {"urdf": "abc", "joints": ("a", "b"), "width": 0.2}
STATE = {"R": np.triu(np.arange(9.0).reshape(3, 3)), "count": np.array(3), "name": np.array(["m"])}
DAMAGE = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "deep" / "model.npz"
    save_state(path, IDENTITY, STATE)
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "model.npz"
    save_state(path, IDENTITY, STATE)
    return path.read_bytes()


def save(path: Path, value: float) -> None:
    save_state(path, IDENTITY, {"x": np.array([value])}, keep_previous=True)


def value_in(path: Path) -> float:
    return float(load_state(path, IDENTITY)["x"][0])


# -------------------------------------------------------------------------------------------------
# Saving and loading.


def test_a_state_is_read_back_by_numpy_too_and_makes_the_same_file_again(saved: Path) -> None:
    state = load_state(saved, IDENTITY)
    assert set(state) == set(STATE)
    assert all(np.array_equal(state[name], STATE[name]) for name in STATE)
    with np.load(saved, allow_pickle=False) as archive:
        assert json.loads(bytes(archive["header"]))["identity"]["joints"] == ["a", "b"]
        assert all(np.array_equal(archive[name], STATE[name]) for name in STATE)
    before = saved.read_bytes()
    save_state(saved, IDENTITY, STATE)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == ["model.npz"] and saved.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3).T,
        np.zeros((0, 4)),
        np.array(["mug", "brush"]),
        np.array([True]),
        np.float32(2.5),
        np.arange(8.0)[::2],
    ],
)
def test_arrays_of_every_kind_come_back_and_may_be_changed(tmp_path: Path, array) -> None:
    save_state(tmp_path / "x.npz", IDENTITY, {"x": np.asarray(array)})
    back = load_state(tmp_path / "x.npz", IDENTITY)["x"]
    assert back.dtype == np.asarray(array).dtype and back.shape == np.shape(array)
    assert np.array_equal(back, array) and back.flags.writeable


def test_another_identity_is_refused_with_what_differs(saved: Path) -> None:
    with pytest.raises(StorageError, match="urdf is 'abc' there, 'xyz' here; name another"):
        load_state(saved, {**IDENTITY, "urdf": "xyz"})
    with pytest.raises(ForeignModelError, match="kind is None there, 'local' here; name another"):
        load_state(saved, {**IDENTITY, "kind": "local"})
    assert load_state(saved, {**IDENTITY, "width": 1.0}, ignore=["width"])


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_anything_but_a_file_is_refused_at_once(tmp_path: Path, make) -> None:
    with pytest.raises(DamagedModelError, match="there is no saved model"):
        load_state(tmp_path / "model.npz", IDENTITY)
    make(tmp_path / "model.npz")
    with pytest.raises(DamagedModelError, match="is not a file"):
        load_state(tmp_path / "model.npz", IDENTITY)


def test_a_state_that_makes_no_model_is_refused_with_the_files_name() -> None:
    for error, sentence in (
        (KeyError("R"), r"cannot resume from a\.npz: KeyError\('R'\)"),
        (
            ConfigurationError("the gain is wrong"),
            r"cannot resume from a\.npz: the gain is wrong; take",
        ),
        (StorageError("nothing was taught"), "^nothing was taught$"),
    ):
        with pytest.raises(StorageError, match=sentence), resuming("a.npz"):
            raise error
    with pytest.raises(StorageError, match=r"ValueError\('x is not finite'\)"), resuming("a.npz"):
        check_finite({"n": np.array(1), "x": np.array([1.0, np.inf])})


def test_a_part_of_a_state_has_names_that_start_with_its_prefix() -> None:
    state = {"core.R": np.ones(1), "other.core.R": np.zeros(1), "core": np.zeros(1)}
    assert sub_state(state, "core.") == {"R": np.ones(1)}


# -------------------------------------------------------------------------------------------------
# The old file or the new one, whatever happens.


def test_a_failed_write_keeps_the_old_file(saved: Path) -> None:
    before = saved.read_bytes()
    with pytest.raises(TypeError):
        save_state(saved, {"not": object()}, STATE)
    with pytest.raises(TypeError):
        save_state(saved, IDENTITY, {"x": np.array([object()])})
    assert saved.read_bytes() == before and os.listdir(saved.parent) == ["model.npz"]
    with pytest.raises(StorageError, match="can't write the model"):
        save_state(saved / "model.npz", IDENTITY, STATE)  # in a folder that is a file


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
def test_a_full_disk_changes_nothing_and_is_reported(saved: Path, share: float) -> None:
    before = saved.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(share * len(before)), limits[1]))
    try:
        with pytest.raises(StorageError, match=r"can't write the model to .*: File too large"):
            save_state(saved, IDENTITY, STATE, keep_previous=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert saved.read_bytes() == before and os.listdir(saved.parent) == ["model.npz"]


def test_content_is_on_the_disk_before_it_gets_its_name_and_the_name_after(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, str]] = []

    def note(module, name: str, label: Callable[..., tuple[str, str]]) -> None:
        function = getattr(module, name)

        def noted(*arguments) -> None:
            function(*arguments)
            done.append(label(*arguments))

        monkeypatch.setattr(module, name, noted)

    def name_of(handle: int, *_: int) -> str:
        return Path(os.readlink(f"/proc/self/fd/{handle}")).name

    note(os, "fsync", lambda handle: ("fsync", name_of(handle)))
    note(os, "replace", lambda source, target: (source.name, target.name))
    note(fcntl, "flock", lambda handle, how: ("flock", name_of(handle)))
    saved.with_name("model.npz.part").write_bytes(b"half")  # of a process that was killed
    save_state(saved, IDENTITY, STATE, keep_previous=True)
    assert done == [
        ("flock", "deep"),
        ("fsync", "model.npz.part"),
        ("model.npz", "model.previous.npz"),
        ("model.npz.part", "model.npz"),
        ("fsync", "deep"),
    ]
    assert sorted(os.listdir(saved.parent)) == ["model.npz", "model.previous.npz"]


def test_saves_at_the_same_time_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"

    def load(file: Path) -> None:
        assert len(np.unique(load_state(file, IDENTITY)["x"])) == 1

    def save_often(value: float) -> None:
        for _ in range(20):
            state = {"x": np.full(20_000, value)}
            save_state(path, IDENTITY, state, keep_previous=True)
            load_newest(path, load)  # between another's two renames, the one before

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(save_often, [1.0, 2.0, 3.0]))
    load(path)
    load(previous_of(path))


def test_a_link_stays_a_link_and_what_it_leads_to_is_written_locked_and_set_aside(
    tmp_path: Path,
) -> None:
    target, link = tmp_path / "volume" / "real.npz", tmp_path / "links" / "model.npz"
    target.parent.mkdir()
    link.parent.mkdir()
    link.symlink_to(Path("..") / "volume" / "real.npz")  # to nothing yet
    for value in (1.0, 2.0):
        save_state(link, IDENTITY, {"x": np.array([value])}, keep_previous=True)
    assert link.is_symlink() and value_in(target) == value_in(link) == 2.0
    assert value_in(target.with_name("real.previous.npz")) == 1.0
    assert os.listdir(link.parent) == ["model.npz"]

    owner, other = ModelLock(link), ModelLock(target)
    assert owner.take() == ""
    with pytest.raises(StorageError, match="is in use by"):
        other.take()
    owner.close()

    target.write_bytes(b"damaged")
    values: list[float] = []
    loaded, _ = load_newest(link, lambda file: values.append(value_in(file)))
    assert loaded == previous_of(target) and values == [1.0]
    kept = set_aside(link)
    assert kept == target.with_name("real.set-aside.npz") and kept.read_bytes() == b"damaged"
    assert link.is_symlink() and not any_saved(link)
    save(link, 3.0)
    assert link.is_symlink() and value_in(target) == 3.0


def test_the_newest_file_is_loaded_and_a_damaged_one_replaces_no_other(tmp_path: Path) -> None:
    path, values = tmp_path / "model.npz", []

    def load(file: Path) -> None:
        values.append(value_in(file))

    for value in (1.0, 2.0):
        save(path, value)
    assert load_newest(path, load) == (path, "") and values == [2.0]

    path.write_bytes(path.read_bytes()[:-1])
    loaded, problem = load_newest(path, load)
    assert loaded == previous_of(path) and values == [2.0, 1.0]
    assert str(path) in problem and "damaged" in problem and f"before it, {loaded}" in problem
    save(path, 3.0)
    assert value_in(path) == 3.0 and value_in(previous_of(path)) == 1.0

    path.unlink()  # as between the two renames
    assert any_saved(path) and load_newest(path, load) == (previous_of(path), "")
    previous_of(path).unlink()
    assert not any_saved(path)
    with pytest.raises(DamagedModelError, match="there is no saved model"):
        load_newest(path, load)

    path.write_bytes(b"")
    previous_of(path).write_bytes(b"")
    with pytest.raises(DamagedModelError, match="move both away"):
        load_newest(path, load)
    save(path, 1.0)
    os.replace(path, previous_of(path))
    save_state(path, {"urdf": "xyz"}, {"x": np.array([3.0])})
    with pytest.raises(StorageError, match="urdf is 'xyz' there, 'abc' here"):
        load_newest(path, load)  # no reason to take the one before
    assert values == [2.0, 1.0, 1.0]


# -------------------------------------------------------------------------------------------------
# Damaged files, and files made to do harm.


def refused(content: bytes, folder: Path) -> str:
    (folder / "x.npz").write_bytes(content)
    with pytest.raises(DamagedModelError) as caught:
        load_state(folder / "x.npz", IDENTITY)
    return str(caught.value)


def sealed(entries: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """An archive of these entries with a seal that holds."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        archive.comment = bytes(SEAL_LENGTH)
        for name, content in entries.items():
            archive.writestr(name, content)
    return seal(buffer.getvalue()[:-SEAL_LENGTH])


def seal(body: bytes) -> bytes:
    return body + SEAL + hashlib.sha256(body).hexdigest().encode()


def npy(array: np.ndarray, **kwargs: bool) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **kwargs)
    return buffer.getvalue()


def header(**changes: object) -> bytes:
    content = {"identity": IDENTITY} | changes
    return npy(np.frombuffer(json.dumps(content).encode(), dtype=np.uint8))


def huge(shape: tuple[int, ...]) -> bytes:
    """An array's header that promises more than follows."""
    buffer = io.BytesIO()
    about = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, about)
    return buffer.getvalue() + bytes(8)


def test_every_single_bit_counts(whole: bytes, tmp_path: Path) -> None:
    for i in range(len(whole)):
        damaged = bytearray(whole)
        damaged[i] ^= 1 << i % 8
        assert "checksum" in refused(bytes(damaged), tmp_path)


@DAMAGE
@given(data=st.data())
def test_damage_of_every_kind_is_refused(data: st.DataObject, whole: bytes, tmp_path: Path) -> None:
    place = data.draw(st.integers(0, len(whole) - 1))
    length = data.draw(st.integers(1, len(whole)))
    kind = data.draw(st.sampled_from(("cut", "zeros", "noise", "out", "in", "more")))
    content = {
        "cut": whole[:place],
        "zeros": whole[:place] + bytes(length) + whole[place + length :],
        "noise": whole[:place] + data.draw(st.binary(max_size=64)) + whole[place + 64 :],
        "out": whole[:place] + whole[place + length :],
        "in": whole[:place] + data.draw(st.binary(min_size=1, max_size=64)) + whole[place:],
        "more": whole + whole[place:],
    }[kind]
    if content != whole:
        refused(content, tmp_path)


@DAMAGE
@given(data=st.data())
def test_changed_and_sealed_again_it_is_refused_or_read(
    data: st.DataObject, whole: bytes, tmp_path: Path
) -> None:
    body = bytearray(whole[:-SEAL_LENGTH])
    for place in data.draw(st.lists(st.integers(0, len(body) - 1), min_size=1, max_size=8)):
        body[place] = data.draw(st.integers(0, 255))
    (tmp_path / "x.npz").write_bytes(seal(bytes(body)))
    with contextlib.suppress(StorageError):  # and nothing else
        load_state(tmp_path / "x.npz", IDENTITY)


class Trap:
    """Unpickled, it would leave a file behind."""

    sprung = "sprung"

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (self.sprung, "w")


def test_a_right_checksum_is_no_proof_of_the_content(tmp_path: Path, monkeypatch) -> None:
    good = {"header.npy": header(), "x.npy": npy(np.ones(3))}
    (tmp_path / "x.npz").write_bytes(sealed(good))
    assert np.array_equal(load_state(tmp_path / "x.npz", IDENTITY)["x"], np.ones(3))

    monkeypatch.chdir(tmp_path)
    pickled = npy(np.array([Trap()], dtype=object), allow_pickle=True)
    text = np.frombuffer(b"[" * 200_000, dtype=np.uint8)
    bad: list[tuple[str, dict[str, bytes]]] = [
        ("has type object", {"x.npy": pickled}),
        ("is not a saved model", {"x.npy": pickle.dumps(Trap())}),
        ("cannot reshape", {"x.npy": huge((10**12,))}),
        ("is not a saved model", {"x.npy": huge((10**9, 10**9, 10**9))}),
        ("one unknown dimension", {"x.npy": huge((-1, -1))}),
        ("has type [('a', '<f8')]", {"x.npy": npy(np.zeros(2, dtype=[("a", "f8")]))}),
        ("is not a saved model", {"x.npy": b""}),
        ("is not a saved model", {"header.npy": npy(np.zeros(3, dtype=np.uint8))}),
        ("'identity'", {"header.npy": npy(np.frombuffer(b"{}", dtype=np.uint8))}),
        ("is not a saved model", {"header.npy": header(identity=3)}),
        ("recursion", {"header.npy": npy(text)}),
    ]
    for sentence, entries in bad:
        assert sentence in refused(sealed(good | entries), tmp_path)
    assert not (tmp_path / Trap.sprung).exists()
    pickle.loads(pickle.dumps(Trap())).close()
    assert (tmp_path / Trap.sprung).exists()  # it would have worked


def test_nothing_is_inflated(tmp_path: Path) -> None:
    zeros = npy(np.zeros(10**6))
    packed = sealed({"header.npy": header(), "x.npy": zeros}, zipfile.ZIP_DEFLATED)
    assert len(packed) < 20_000
    assert "its entries are longer than it" in refused(packed, tmp_path)
    small = sealed({"header.npy": header(), "x.npy": npy(np.ones(2))}, zipfile.ZIP_LZMA)
    assert "an entry is compressed" in refused(small, tmp_path)


def test_memory_is_bounded_by_the_file(tmp_path: Path) -> None:
    content = sealed({"header.npy": header(), "x.npy": huge((10**11,))})
    limits = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 64 * 2**20, limits[1]))
    try:
        assert "cannot reshape" in refused(content, tmp_path)
        with (tmp_path / "x.npz").open("wb") as file:
            file.truncate(2**40)
        with pytest.raises(DamagedModelError, match="can't read the model .* MemoryError"):
            load_state(tmp_path / "x.npz", IDENTITY)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


# -------------------------------------------------------------------------------------------------
# One owner, as long as it lives.

HOLD = """
import sys
from semiparam_dynamics.base.storage import ModelLock
assert ModelLock(sys.argv[1], "the other").take() == ""
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_owner_is_refused_until_the_first_has_closed(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "model.npz"
    first, second = ModelLock(path, "/left/arm, process 7"), ModelLock(path, "/right/arm")
    assert first.take() == "" and first.take() == ""  # once more is no other
    for _ in range(2):
        with pytest.raises(StorageError, match="in use by /left/arm, process 7: give each node"):
            second.take()
        second.close()  # has nothing to close
    first.close()
    assert second.take() == ""
    with pytest.raises(StorageError, match="in use by /right/arm: "):
        first.take()
    assert ModelLock(tmp_path / "deep" / "other.npz").take() == ""
    (tmp_path / "link").symlink_to(tmp_path / "deep")
    with pytest.raises(StorageError, match="in use"):
        ModelLock(tmp_path / "link" / "model.npz").take()


def test_a_killed_process_owns_nothing(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        with pytest.raises(StorageError, match="in use by the other"):
            ModelLock(path).take()
        process.send_signal(signal.SIGKILL)
    assert lock_of(path).exists() and ModelLock(path).take() == ""


def test_children_do_not_keep_it(tmp_path: Path) -> None:
    lock = ModelLock(tmp_path / "model.npz")
    lock.take()
    with subprocess.Popen(["sleep", "60"], close_fds=False) as child:
        lock.close()
        assert ModelLock(tmp_path / "model.npz").take() == ""
        child.kill()


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_reported_and_written_to(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(handle: int, how: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    lock, before = ModelLock(tmp_path / "model.npz"), len(os.listdir("/proc/self/fd"))
    warning = lock.take()
    assert os.strerror(code) in warning and "no other node has this model_file" in warning
    save(tmp_path / "model.npz", 1.0)
    assert value_in(tmp_path / "model.npz") == 1.0
    assert len(os.listdir("/proc/self/fd")) == before
    monkeypatch.undo()
    assert lock.take() == ""


def test_only_a_file_of_its_own_is_opened_for_a_lock(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("content")
    lock_of(tmp_path / "model.npz").symlink_to(precious)
    assert "can't lock" in ModelLock(tmp_path / "model.npz").take()
    assert "can't lock" in ModelLock(precious / "model.npz").take()
    assert precious.read_text() == "content"


def test_a_hostile_note_is_quoted_in_part(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    lock = ModelLock(path)
    lock.take()
    lock_of(path).write_bytes(b"\x1b[2J\n\xff" + b"x" * 10 * QUOTED)
    with pytest.raises(StorageError) as caught:
        ModelLock(path).take()
    sentence = str(caught.value)
    assert sentence.isprintable() and len(sentence) < QUOTED + len(str(path)) + 100
