"""PyTorch's old file format: what is in it, and that nothing in it is executed."""

from __future__ import annotations

import os
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.errors import BackboneError
from semiparam_dynamics.recognition.default_backbone import (
    MAGIC_NUMBER,
    PROTOCOL_VERSION,
    read_state_dict,
)

NUMBERS = np.arange(12, dtype="<f4") * 0.5


def head(protocol: int = PROTOCOL_VERSION, little_endian: bool = True) -> bytes:
    parts = (MAGIC_NUMBER, protocol, {"little_endian": little_endian})
    return b"".join(pickle.dumps(part, protocol=2) for part in parts)


def tensor(shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> bytes:
    """The opcodes that torch.save writes for a tensor in the storage 'a' of 12 numbers."""

    def numbers(values: tuple[int, ...]) -> bytes:
        return b"(" + b"".join(b"I%d\n" % value for value in values) + b"t"

    storage = b"(Vstorage\nctorch\nFloatStorage\nVa\nVcpu\nI12\nNtQ"
    arguments = b"(%sI%d\n%s%sI00\nccollections\nOrderedDict\n)Rt"
    return b"ctorch._utils\n_rebuild_tensor_v2\n" + (
        arguments % (storage, offset, numbers(shape), numbers(strides)) + b"R"
    )


def state_dict(tensor: bytes) -> bytes:
    return b"\x80\x02ccollections\nOrderedDict\n)RVw\n" + tensor + b"s."


def write(path: Path, body: bytes, head: bytes = head(), count: int = 12, cut: int = 0) -> Path:  # noqa: B008
    data = count.to_bytes(8, "little") + NUMBERS.tobytes()
    data = data[: len(data) - cut]
    path.write_bytes(head + body + pickle.dumps(["a"], protocol=2) + data)
    return path


@pytest.mark.parametrize(
    ("shape", "strides", "offset"),
    [
        ((12,), (1,), 0),
        ((3, 4), (4, 1), 0),
        ((4, 3), (1, 4), 0),
        ((2, 2), (3, 1), 5),
        ((2, 3, 2), (1, 2, 6), 0),
        ((), (), 7),
    ],
)
def test_a_tensor_is_a_view_of_its_storage(
    tmp_path: Path, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> None:
    path = write(tmp_path / "w.pth", state_dict(tensor(shape, strides, offset)))
    array = read_state_dict(path)["w"]
    assert array.shape == shape
    assert array.dtype == np.float32
    for index in np.ndindex(shape):
        at = offset + sum(i * stride for i, stride in zip(index, strides, strict=True))
        assert array[index] == 0.5 * at


@pytest.mark.parametrize(
    ("shape", "strides", "offset"),
    [
        ((13,), (1,), 0),
        ((3, 4), (4, 1), 1),
        ((2,), (100,), 0),
        ((2,), (-1,), 0),
        ((2,), (1,), -1),
        ((10**9, 10**9), (0, 0), 0),
    ],
)
def test_a_tensor_outside_its_storage_is_refused(
    tmp_path: Path, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> None:
    path = write(tmp_path / "w.pth", state_dict(tensor(shape, strides, offset)))
    with pytest.raises(BackboneError, match="is not a state dict"):
        read_state_dict(path)


class Touch:
    """What a malicious file would hold: unpickled as usual, it makes a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("first", [b"", head()], ids=["at once", "after the head"])
def test_nothing_is_executed(tmp_path: Path, first: bytes) -> None:
    body = pickle.dumps({"w": Touch(tmp_path / "made")}, protocol=2)
    pickle.loads(body)
    (tmp_path / "made").rmdir()  # so it would have worked
    path = write(tmp_path / "w.pth", body, head=first)
    with pytest.raises(BackboneError, match=r"it names \w+\.mkdir, which no state dict needs"):
        read_state_dict(path)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "name", ["builtins\neval", "torch\nload", "collections\ndeque", "torch._utils\n__builtins__"]
)
def test_other_names_are_refused(tmp_path: Path, name: str) -> None:
    body = b"\x80\x02c%s\n." % name.encode()
    with pytest.raises(BackboneError, match=re.escape(name.replace("\n", "."))):
        read_state_dict(write(tmp_path / "w.pth", body))


WHOLE = state_dict(tensor((12,), (1,)))


@pytest.mark.parametrize(
    "changed",
    [
        {"head": b""},
        {"head": head(protocol=1002)},
        {"head": head(little_endian=False)},
        {"count": 11},
        {"count": 2**62},
        {"cut": 1},
        {"cut": 56},
        {"body": pickle.dumps([1, 2], protocol=2)},
        {"body": pickle.dumps({"w": 1}, protocol=2)},
        {"body": b"", "head": b"PK\x03\x04"},
    ],
)
def test_another_or_a_damaged_file_is_refused(tmp_path: Path, changed: dict[str, bytes]) -> None:
    arguments = {"body": WHOLE} | changed
    path = write(tmp_path / "w.pth", **arguments)
    with pytest.raises(BackboneError, match=r"w\.pth is not a state dict as PyTorch"):
        read_state_dict(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BackboneError, match="can't read the weights .*none.pth: No such file"):
        read_state_dict(tmp_path / "none.pth")
