"""Any ONNX network as a function from images to features, on small networks made here."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semiparam_dynamics.errors import BackboneError, ImageError, MissingExtraError
from semiparam_dynamics.parameters import from_flat, parameters
from semiparam_dynamics.recognition.backbone import Backbone
from semiparam_dynamics.recognition.config import BackboneConfig

pytest.importorskip("onnxruntime", reason="needs the extra 'vision'")
onnx = pytest.importorskip("onnx", reason="needs the extra 'vision'")
from onnx import TensorProto, helper  # noqa: E402

Shape = tuple[int | str, ...]
Node = tuple[str, list[str], list[str], dict[str, Any]]
Network = Callable[..., BackboneConfig]

MEAN_COLOUR: Node = ("GlobalAveragePool", ["image"], ["map"], {})
FLAT: Node = ("Flatten", ["map"], ["vector"], {})
AS_THEY_ARE = {"crop": 1.0, "mean": (0.0,) * 3, "std": (1.0,) * 3, "normalize": False}
IMAGE = np.random.default_rng(3).integers(0, 256, (8, 8, 3), dtype=np.uint8)
COLOUR = IMAGE.mean(axis=(0, 1))


@pytest.fixture
def network(tmp_path: Path) -> Network:
    """Writes a network of the given nodes and returns its configuration."""

    def write(
        *nodes: Node,
        shape: Shape = (1, 3, 8, 8),
        kind: int = TensorProto.FLOAT,
        inputs: tuple[str, ...] = ("image",),
        outputs: tuple[str, ...] = ("vector",),
        **config: Any,
    ) -> BackboneConfig:
        graph = helper.make_graph(
            [helper.make_node(op, into, out, **attributes) for op, into, out, attributes in nodes],
            "small",
            [helper.make_tensor_value_info(name, kind, shape) for name in inputs],
            [helper.make_empty_tensor_value_info(name) for name in outputs],
        )
        opsets = [helper.make_opsetid("", 13)]
        model = helper.make_model(graph, ir_version=7, opset_imports=opsets)
        path = tmp_path / "small.onnx"
        path.write_bytes(model.SerializeToString())
        return BackboneConfig(file=str(path), **(AS_THEY_ARE | config))

    return write


def test_a_vector(network: Network) -> None:
    backbone = Backbone(network(MEAN_COLOUR, FLAT))
    features = backbone.features(IMAGE)
    assert features.dtype == np.float32
    assert features == pytest.approx(COLOUR, rel=1e-6)
    assert backbone.n_features == 3


def test_length_one_unless_told_otherwise(network: Network) -> None:
    features = Backbone(network(MEAN_COLOUR, FLAT, normalize=True)).features(IMAGE)
    assert features == pytest.approx(COLOUR / np.linalg.norm(COLOUR), rel=1e-6)


def test_the_length_of_huge_and_of_zero_features(network: Network) -> None:
    config = network(MEAN_COLOUR, FLAT, normalize=True, std=(1e-3,) * 3)
    assert np.array_equal(Backbone(config).features(np.zeros_like(IMAGE)), np.zeros(3))
    square: Node = ("Mul", ["image", "image"], ["square"], {})
    fourth: Node = ("Mul", ["square", "square"], ["fourth"], {})
    mean: Node = ("GlobalAveragePool", ["fourth"], ["map"], {})
    huge = Backbone(network(square, fourth, mean, FLAT, normalize=True, std=(1e-3,) * 3))
    assert np.linalg.norm(huge.features(IMAGE)) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("shape", [(1, 3, 8, 8), (1, 8, 8, 3)], ids=["NCHW", "NHWC"])
def test_of_a_map_the_mean_over_its_places(network: Network, shape: Shape) -> None:
    config = network(("Identity", ["image"], ["vector"], {}), shape=shape)
    assert Backbone(config).features(IMAGE) == pytest.approx(COLOUR, rel=1e-6)


def test_uint8_pixels_are_not_normalised(network: Network) -> None:
    cast: Node = ("Cast", ["image"], ["vector"], {"to": TensorProto.FLOAT})
    config = network(cast, kind=TensorProto.UINT8, shape=(1, 8, 8, 3), mean=(50.0,) * 3)
    assert Backbone(config).features(IMAGE) == pytest.approx(COLOUR, rel=1e-6)


@pytest.mark.parametrize("shape", [("n", 3, "h", "w"), ("n", "h", "w", 3), (1, 3, "h", 8)])
def test_open_sides_take_the_parameter(network: Network, shape: Shape) -> None:
    copy: Node = ("Identity", ["image"], ["vector"], {})
    backbone = Backbone(network(copy, shape=shape, size=32))
    sides = backbone.identity["backbone.input size"]
    assert sides == ([32, 8] if shape[3] == 8 else [32, 32])
    assert backbone.features(np.full((50, 50, 3), (1, 2, 3), np.uint8)) == pytest.approx([1, 2, 3])


def test_the_first_output_or_the_named_one(network: Network) -> None:
    negative: Node = ("Neg", ["vector"], ["other"], {})
    nodes = (MEAN_COLOUR, FLAT, negative)
    for output, sign in (("", 1), ("vector", 1), ("other", -1)):
        config = network(*nodes, outputs=("vector", "other"), output=output)
        assert Backbone(config).features(IMAGE) == pytest.approx(sign * COLOUR, rel=1e-6)
    with pytest.raises(BackboneError, match="no output 'third'.*it has: vector, other"):
        Backbone(network(*nodes, outputs=("vector", "other"), output="third"))


def test_threads_change_nothing_but_time(network: Network) -> None:
    one, two = (Backbone(network(MEAN_COLOUR, FLAT, threads=n)) for n in (1, 2))
    assert one.features(IMAGE) == pytest.approx(two.features(IMAGE), rel=1e-6)
    assert one.identity == two.identity


def test_features_that_are_not_finite_are_refused(network: Network) -> None:
    nodes: tuple[Node, ...] = (MEAN_COLOUR, FLAT, ("Log", ["vector"], ["log"], {}))
    backbone = Backbone(network(*nodes, outputs=("log",)))
    with pytest.raises(ImageError, match="not finite") as refused:
        backbone.features(np.zeros_like(IMAGE))
    assert refused.value.reason == "features not finite"
    assert backbone.features(IMAGE) == pytest.approx(np.log(COLOUR), rel=1e-5)


ADD: Node = ("Add", ["image", "second"], ["vector"], {})
TEXT: Node = ("Cast", ["map"], ["vector"], {"to": TensorProto.STRING})
COPY: Node = ("Identity", ["image"], ["vector"], {})
SHAPE: Node = ("Shape", ["image"], ["vector"], {})


@pytest.mark.parametrize(
    ("nodes", "options", "message"),
    [
        ([ADD], {"inputs": ("image", "second")}, r"has 2 inputs \(image, second\)"),
        ([COPY], {"shape": (1, 3, 8)}, r"takes \[1, 3, 8\] where images go in"),
        ([COPY], {"shape": (1, 1, 8, 8)}, r"takes \[1, 1, 8, 8\] where images go in"),
        ([COPY], {"shape": ("n", "c", "h", "w")}, "where images go in"),
        ([COPY], {"shape": (4, 3, 8, 8)}, "takes 4 images at a time"),
        ([COPY], {"kind": TensorProto.DOUBLE}, r"takes tensor\(double\) where float or uint8"),
        ([MEAN_COLOUR, TEXT], {}, "gives no array of numbers in 'vector'"),
        ([SHAPE], {}, r"gives \(4,\) in 'vector' where a vector .* backbone.output names another"),
    ],
)
def test_other_networks_are_refused(
    network: Network, nodes: list[Node], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(BackboneError, match=message):
        Backbone(network(*nodes, **options))


def test_a_network_that_fails_is_refused(network: Network) -> None:
    reshape: Node = ("Reshape", ["image", "shape"], ["vector"], {})
    shape: Node = ("Constant", [], ["shape"], {"value_ints": [1, 5]})
    with pytest.raises(BackboneError, match=r"small.onnx fails on images of \(1, 3, 32, 32\): "):
        Backbone(network(shape, reshape, shape=("n", 3, "h", "w"), size=32))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BackboneError, match="can't read .*none.onnx.*backbone.file.*No such file"):
        Backbone(BackboneConfig(file=str(tmp_path / "none.onnx")))
    with pytest.raises(BackboneError, match="can't read .*Is a directory"):
        Backbone(BackboneConfig(file=str(tmp_path)))


@pytest.mark.parametrize("content", [b"", b"no network", bytes(1000)])
def test_a_file_of_another_kind(
    tmp_path: Path, content: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(BackboneError, match=r"model.onnx is not an ONNX model .*: .+"):
        Backbone(BackboneConfig(file=str(tmp_path / "model.onnx")))
    assert capfd.readouterr() == ("", "")


def test_the_identity_tells_what_changes_the_features(network: Network) -> None:
    base = Backbone(network(MEAN_COLOUR, FLAT)).identity
    assert json.loads(json.dumps(base)) == base
    for change in ({"crop": 0.5}, {"mean": (1.0,) * 3}, {"std": (2.0,) * 3}, {"normalize": True}):
        other = Backbone(network(MEAN_COLOUR, FLAT, **change)).identity
        (differing,) = (name for name in base if base[name] != other[name])
        assert differing == f"backbone.{next(iter(change))}"
    other = Backbone(network(COPY)).identity
    assert [name for name in base if base[name] != other[name]] == ["backbone"]


def test_says_what_to_install(monkeypatch: pytest.MonkeyPatch, network: Network) -> None:
    config = network(MEAN_COLOUR, FLAT)
    for module in ("PIL", "PIL.Image", "onnxruntime"):
        monkeypatch.setitem(sys.modules, module, None)  # importing it raises ImportError
        with pytest.raises(MissingExtraError, match=r"pip install 'semiparam_dynamics\[vision\]'"):
            Backbone(config)


def test_the_parameters_defaults_lie_in_their_ranges() -> None:
    defaults = {entry.name: entry.default for entry in parameters(BackboneConfig)}
    assert from_flat(BackboneConfig, defaults) == BackboneConfig()
