"""Damaged files, and files made to do harm: refused as such, and nothing else happens."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import pickle
import resource
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semiparam_dynamics.errors import DamagedModelError, StorageError
from semiparam_dynamics.storage import SEAL, SEAL_LENGTH, load_state, save_state

IDENTITY: dict[str, object] = {"urdf": "abc", "joints": ["a", "b"]}
STATE = {"R": np.triu(np.arange(9.0).reshape(3, 3)), "count": np.array(3), "name": np.array(["m"])}
OLD = Path(__file__).resolve().parent / "data" / "format_1" / "random_fourier.npz"
SAME_FOLDER = [HealthCheck.function_scoped_fixture]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "model.npz"
    save_state(path, IDENTITY, STATE)
    return path.read_bytes()


def refused(content: bytes, folder: Path) -> str:
    (folder / "x.npz").write_bytes(content)
    with pytest.raises(DamagedModelError) as caught:
        load_state(folder / "x.npz", IDENTITY)
    return str(caught.value)


def test_every_single_bit_counts(whole: bytes, tmp_path: Path) -> None:
    for i in range(len(whole)):
        damaged = bytearray(whole)
        damaged[i] ^= 1 << i % 8
        refused(bytes(damaged), tmp_path)


@settings(max_examples=300, deadline=None, suppress_health_check=SAME_FOLDER)
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


@settings(max_examples=300, deadline=None, suppress_health_check=SAME_FOLDER)
@given(data=st.data())
def test_damage_of_an_old_file_is_refused_or_harmless(data: st.DataObject, tmp_path: Path) -> None:
    content = bytearray(OLD.read_bytes())
    with np.load(OLD) as archive:
        wanted = {name: archive[name] for name in archive.files}
    identity = json.loads(bytes(wanted.pop("header")))["identity"]
    # Half of the places among the entries' headers and the directory, where there is most to parse.
    ends = st.integers(len(content) - 6000, len(content) - 1)
    for place in data.draw(st.lists(st.integers(0, len(content) - 1) | ends, min_size=1)):
        content[place] ^= data.draw(st.integers(1, 255))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content))) :]
    (tmp_path / "x.npz").write_bytes(content)
    try:
        state = load_state(tmp_path / "x.npz", identity)
    except StorageError:
        return
    assert set(state) == set(wanted)
    assert all(np.array_equal(state[name], wanted[name]) for name in wanted)


def sealed(entries: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """An archive of these entries with a seal that holds."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        archive.comment = bytes(SEAL_LENGTH)
        for name, content in entries.items():
            archive.writestr(name, content)
    body = buffer.getvalue()[:-SEAL_LENGTH]
    return body + SEAL + hashlib.sha256(body).hexdigest().encode()


def npy(array: np.ndarray, **kwargs: bool) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **kwargs)
    return buffer.getvalue()


def header(**changes: object) -> bytes:
    content = {"format": 2, "identity": IDENTITY} | changes
    return npy(np.frombuffer(json.dumps(content).encode(), dtype=np.uint8))


@settings(max_examples=300, deadline=None, suppress_health_check=SAME_FOLDER)
@given(data=st.data())
def test_changed_and_sealed_again_it_is_refused_or_read(
    data: st.DataObject, whole: bytes, tmp_path: Path
) -> None:
    body = bytearray(whole[:-SEAL_LENGTH])
    for place in data.draw(st.lists(st.integers(0, len(body) - 1), min_size=1, max_size=8)):
        body[place] = data.draw(st.integers(0, 255))
    seal = SEAL + hashlib.sha256(body).hexdigest().encode()
    (tmp_path / "x.npz").write_bytes(bytes(body) + seal)
    with contextlib.suppress(StorageError):  # and nothing else
        load_state(tmp_path / "x.npz", IDENTITY)


class Trap:
    """Unpickled, it would leave a file behind."""

    sprung = "sprung"

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (self.sprung, "w")


def huge(shape: tuple[int, ...]) -> bytes:
    """An array's header that promises more than follows."""
    buffer = io.BytesIO()
    about = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, about)
    return buffer.getvalue() + bytes(8)


def test_a_seal_that_holds_is_no_proof_of_the_content(tmp_path: Path, monkeypatch) -> None:
    good = {"header.npy": header(), "x.npy": npy(np.ones(3))}
    (tmp_path / "x.npz").write_bytes(sealed(good))
    assert np.array_equal(load_state(tmp_path / "x.npz", IDENTITY)["x"], np.ones(3))

    monkeypatch.chdir(tmp_path)
    pickled = npy(np.array([Trap()], dtype=object), allow_pickle=True)
    text = np.frombuffer(b"[" * 200_000, dtype=np.uint8)
    bad: list[tuple[str, dict[str, bytes]]] = [
        ("has type object", {"x.npy": pickled}),
        ("is not a saved model", {"x.npy": pickle.dumps(Trap())}),
        ("not as long as it says", {"x.npy": huge((10**12,))}),
        ("not as long as it says", {"x.npy": huge((10**9, 10**9, 10**9))}),
        ("not as long as it says", {"x.npy": huge((-1, -1))}),
        ("has type [('a', '<f8')]", {"x.npy": npy(np.zeros(2, dtype=[("a", "f8")]))}),
        ("is not a saved model", {"x.npy": b""}),
        ("is not a saved model", {"header.npy": npy(np.zeros(3, dtype=np.uint8))}),
        ("'format'", {"header.npy": npy(np.frombuffer(b"{}", dtype=np.uint8))}),
        ("'new'", {"header.npy": header(format="new")}),
        ("is not a saved model", {"header.npy": header(identity=3)}),
        ("recursion", {"header.npy": npy(text)}),
    ]
    for sentence, entries in bad:
        assert sentence in refused(sealed(good | entries), tmp_path)
    assert not (tmp_path / Trap.sprung).exists()
    pickle.loads(pickle.dumps(Trap())).close()
    assert (tmp_path / Trap.sprung).exists()  # it would have worked


def test_no_bomb_is_inflated(tmp_path: Path) -> None:
    zeros = npy(np.zeros(10**6))
    packed = sealed({"header.npy": header(), "x.npy": zeros}, zipfile.ZIP_DEFLATED)
    assert len(packed) < 20_000
    assert "its entries are longer than it" in refused(packed, tmp_path)
    small = sealed({"header.npy": header(), "x.npy": npy(np.ones(2))}, zipfile.ZIP_LZMA)
    assert "an entry is compressed" in refused(small, tmp_path)


def test_memory_is_bounded_by_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(sealed({"header.npy": header(), "x.npy": huge((10**11,))}))
    limits = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 64 * 2**20, limits[1]))
    try:
        with pytest.raises(DamagedModelError, match="not as long as it says"):
            load_state(path, IDENTITY)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
