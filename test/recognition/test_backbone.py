"""Image messages, their preprocessing, and image networks: small ONNX models made here."""

from __future__ import annotations

import array
import dataclasses
import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper  # noqa: E402

from semiparam_dynamics.base.errors import (
    BackboneError,
    ConfigurationError,
    ImageError,
    MissingExtraError,
)
from semiparam_dynamics.recognition.backbone import (
    ENCODINGS,
    Backbone,
    Preprocessing,
    described,
    image_array,
)
from semiparam_dynamics.recognition.config import BackboneConfig

# Where red, green and blue stand in a pixel, as sensor_msgs' image_encodings.hpp names them.
ORDER = {"rgb8": "rgb", "bgr8": "bgr", "rgba8": "rgba", "bgra8": "bgra", "mono8": "m"}
ORDER |= {"8UC1": "m", "8UC3": "bgr", "mono16": "xm"}


def pixel_by_pixel(data: bytes, height: int, width: int, encoding: str, step: int) -> list[int]:
    order = ORDER[encoding]
    values = []
    for row, column, color in itertools.product(range(height), range(width), "rgb"):
        at = order.index("m" if "m" in order else color)
        values.append(data[row * step + column * len(order) + at])
    return values


@settings(deadline=None)
@given(
    st.data(),
    st.sampled_from(sorted(ENCODINGS)),
    st.integers(1, 7),
    st.integers(1, 7),
    st.integers(0, 9),
)
def test_equals_a_loop_over_the_bytes(
    draw: st.DataObject, encoding: str, height: int, width: int, padding: int
) -> None:
    step = width * len(ORDER[encoding]) + padding
    data = draw.draw(st.binary(min_size=height * step, max_size=height * step))
    image = image_array(data, height, width, encoding, step)
    assert image.shape == (height, width, 3)
    assert image.dtype == np.uint8
    assert image.ravel().tolist() == pixel_by_pixel(data, height, width, encoding, step)


@pytest.mark.parametrize("encoding", sorted(ORDER))
def test_nothing_is_copied(encoding: str) -> None:
    data = np.arange(2 * 20, dtype=np.uint8)
    image = image_array(data, 2, 3, encoding, 20)
    assert np.shares_memory(image, data)


@pytest.mark.parametrize("encoding", ["yuv422", "yuv422_yuy2", "nv12", "nv21"])
def test_luma_and_colour_differences_are_read_as_pillow_does(encoding: str) -> None:
    """Pillow's have the full range, and the camera's 16 to 235 and 16 to 240."""
    pillow = pytest.importorskip("PIL.Image", reason="needs the extra 'vision'")
    rng = np.random.default_rng(4)
    small = rng.integers(0, 256, (3, 4, 3), dtype=np.uint8)
    wanted = small.repeat(2, axis=0).repeat(2, axis=1)  # two by two pixels share a colour
    full = np.array(pillow.fromarray(wanted).convert("YCbCr"), dtype=np.float64)
    y, u, v = np.moveaxis(np.rint((full - 128.0) * [219, 224, 224] / 255.0 + 128.0), -1, 0)
    y -= 2.0  # the middle of luma is 125.5
    step = 10 if encoding.startswith("nv") else 18
    rows = np.zeros((9 if step == 10 else 6, step), dtype=np.uint8)
    if step == 10:
        rows[:6, :8] = y
        pair = (u, v) if encoding == "nv12" else (v, u)
        rows[6:, 0:8:2], rows[6:, 1:8:2] = (each[::2, ::2] for each in pair)
    else:
        first = 1 if encoding == "yuv422" else 0
        rows[:, first:16:2] = y
        rows[:, 1 - first : 16 : 4], rows[:, 3 - first : 16 : 4] = u[:, ::2], v[:, ::2]
    image = image_array(rows.tobytes(), 6, 8, encoding, step)
    assert image.dtype == np.uint8
    assert np.abs(image.astype(int) - wanted).max() <= 5  # both are rounded to whole numbers
    with pytest.raises(ImageError, match="has even sizes, not 7 x 6"):
        image_array(rows.tobytes(), 6, 7, encoding, step)


@pytest.mark.parametrize(
    ("encoding", "remedy"),
    [("bayer_rggb8", "debayer"), ("16UC1", "depth camera"), ("yuv444", "republish the image")],
)
def test_what_is_not_read_has_a_remedy(encoding: str, remedy: str) -> None:
    with pytest.raises(ImageError, match=remedy):
        image_array(bytes(24), 2, 4, encoding, 12)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda b: array.array("B", b)])
def test_takes_every_kind_of_bytes(kind: type) -> None:
    data = bytes(range(12))
    assert image_array(kind(data), 2, 2, "rgb8", 6).ravel().tolist() == list(data)


@pytest.mark.parametrize(
    ("change", "reason", "message"),
    [
        ({"encoding": "16UC1"}, "image encoding", "'16UC1' is not one of rgb8, bgr8, rgba8, "),
        ({"encoding": ""}, "image encoding", "'' is not one of"),
        ({"height": 0}, "image size", "no pixels: 4 x 0"),
        ({"width": 0}, "image size", "no pixels: 0 x 2"),
        ({"height": -2}, "image size", "no pixels"),
        ({"step": 11}, "image step", "step of 11 bytes is too short for 4 pixels in rgb8"),
        ({"step": 0}, "image step", "too short"),
        ({"width": 2**32 - 1}, "image step", "too short"),
        ({"step": 13}, "image data length", "24 bytes of data instead of 2 rows of 13"),
        ({"data": bytes(23)}, "image data length", "23 bytes"),
        ({"data": bytes(25)}, "image data length", "25 bytes"),
        ({"data": b""}, "image data length", "0 bytes"),
        ({"height": 2**32 - 1}, "image data length", "instead of 4294967295 rows"),
    ],
)
def test_refuses_what_is_no_image(change: dict[str, object], reason: str, message: str) -> None:
    fields = {"data": bytes(24), "height": 2, "width": 4, "encoding": "rgb8", "step": 12}
    with pytest.raises(ImageError, match=message) as refused:
        image_array(**(fields | change))
    assert refused.value.reason == reason


def test_reasons_stay_few_and_messages_short_whatever_comes() -> None:
    errors = []
    for number in range(100):
        with pytest.raises(ImageError) as refused:
            image_array(b"", 1, 1, f"encoding {number} " * 1000, 3)
        errors.append(refused.value)
    assert {error.reason for error in errors} == {"image encoding"}
    assert max(len(str(error)) for error in errors) < 300


pytest.importorskip("PIL", reason="needs the extra 'vision'")
WHOLE = BackboneConfig(crop=1.0)


def random_image(height: int, width: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


def test_without_scaling_each_pixel_is_normalised() -> None:
    config = BackboneConfig(crop=1.0, mean=(10.0, 20.0, 30.0), std=(2.0, 3.0, 4.0))
    image = random_image(5, 7)
    pixels = Preprocessing(config, 5, 7, channels_first=True, raw=False)(image)
    assert pixels.shape == (1, 3, 5, 7)
    assert pixels.dtype == np.float32
    for channel, (mean, std) in enumerate(zip(config.mean, config.std, strict=True)):
        expected = (image[:, :, channel].astype(float) - mean) / std
        assert pixels[0, channel] == pytest.approx(expected, abs=1e-4)


def test_channels_last_and_raw_pixels() -> None:
    image = random_image(6, 6)
    first = Preprocessing(WHOLE, 6, 6, channels_first=True, raw=False)(image)
    last = Preprocessing(WHOLE, 6, 6, channels_first=False, raw=False)(image)
    assert np.array_equal(last.transpose(0, 3, 1, 2), first)
    raw = Preprocessing(WHOLE, 6, 6, channels_first=False, raw=True)(image)
    assert raw.dtype == np.uint8 and np.array_equal(raw[0], image)


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("channels_first", [False, True])
def test_blue_comes_first_where_it_is_to(raw: bool, channels_first: bool) -> None:
    image, shape = random_image(6, 6), {"raw": raw, "channels_first": channels_first}
    given = {"crop": 1.0, "mean": (10.0, 20.0, 30.0), "std": (2.0, 3.0, 4.0)}
    red_first = Preprocessing(BackboneConfig(**given), 6, 6, **shape)(image)
    blue_first = Preprocessing(BackboneConfig(**given, channels="bgr"), 6, 6, **shape)(image)
    assert np.array_equal(blue_first, np.flip(red_first, 1 if channels_first else 3))
    assert blue_first.flags.c_contiguous


@pytest.mark.parametrize(("height", "width"), [(40, 64), (64, 40)])
def test_the_crop_is_the_centre(height: int, width: int) -> None:
    image = random_image(height, width)
    preprocess = Preprocessing(BackboneConfig(crop=0.5), 20, 20, channels_first=False, raw=True)
    top, left = (height - 20) // 2, (width - 20) // 2
    assert np.array_equal(preprocess(image)[0], image[top : top + 20, left : left + 20])


def test_the_crop_has_the_networks_shape() -> None:
    image = random_image(40, 64)
    preprocess = Preprocessing(WHOLE, 20, 10, channels_first=False, raw=True)
    inside = image.copy()
    inside[:, :22], inside[:, 42:] = 0, 255  # 20 of 64 columns are looked at
    assert np.array_equal(preprocess(image), preprocess(inside))


@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 500), (3, 2), (31, 33), (1500, 700)])
def test_an_even_colour_stays_that_colour_at_any_size(height: int, width: int) -> None:
    image = np.full((height, width, 3), (10, 120, 250), np.uint8)
    pixels = Preprocessing(WHOLE, 24, 24, channels_first=False, raw=True)(image)
    assert np.array_equal(pixels[0], np.full((24, 24, 3), (10, 120, 250)))


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((4, 4), np.uint8),
        np.zeros((4, 4, 4), np.uint8),
        np.zeros((4, 4, 3)),
        np.zeros((0, 4, 3), np.uint8),
    ],
)
def test_preprocessing_refuses_what_is_no_image(image: np.ndarray) -> None:
    preprocess = Preprocessing(BackboneConfig(), 16, 16, channels_first=True, raw=False)
    with pytest.raises(ImageError, match=r"must be \(height, width, 3\) uint8") as refused:
        preprocess(image)
    assert refused.value.reason == "image shape"


@pytest.mark.parametrize("name", ["mean", "std"])
def test_three_colours_need_three_numbers(name: str) -> None:
    config = BackboneConfig(**{name: (1.0, 2.0)})
    with pytest.raises(ConfigurationError, match=f"'backbone.{name}' must have 3 numbers.*not 2"):
        Preprocessing(config, 16, 16, channels_first=True, raw=False)


pytest.importorskip("onnxruntime", reason="needs the extra 'vision'")
onnx = pytest.importorskip("onnx", reason="needs the extra 'vision'")

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


def test_the_length_is_one_but_of_zero_features(network: Network) -> None:
    plain = Backbone(network(MEAN_COLOUR, FLAT, normalize=True)).features(IMAGE)
    assert plain == pytest.approx(COLOUR / np.linalg.norm(COLOUR), rel=1e-6)
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
    other = Backbone(network(MEAN_COLOUR, FLAT, channels="bgr")).identity
    assert base | other == other and set(other) - set(base) == {"backbone.channels"}
    other = Backbone(network(COPY)).identity
    assert [name for name in base if base[name] != other[name]] == ["backbone"]


def test_says_what_to_install(monkeypatch: pytest.MonkeyPatch, network: Network) -> None:
    config = network(MEAN_COLOUR, FLAT)
    for module, package in (("PIL.Image", "pillow"), ("onnxruntime", "onnxruntime")):
        monkeypatch.setitem(sys.modules, module, None)  # importing it raises ImportError
        with pytest.raises(MissingExtraError, match=f"pip install {package}"):
            Backbone(config)


def description(config: BackboneConfig, **told: object) -> None:
    settings = {
        "image_mean": [0.5, 0.4, 0.3],
        "image_std": [0.2, 0.25, 0.5],
        "rescale_factor": 1.0 / 255.0,
        "size": {"shortest_edge": 64},
        "crop_size": {"height": 48, "width": 48},
        "do_center_crop": True,
    }
    kept = {name: value for name, value in (settings | told).items() if value is not None}
    (Path(config.file).parent / "preprocessor_config.json").write_text(json.dumps(kept))


def test_what_lies_beside_the_file_says_how_images_are_prepared(network: Network) -> None:
    config = network(COPY, shape=(1, 3, "h", "w"))
    description(config)
    found = described(config)
    assert (found.size, found.crop) == (48, 0.75)
    np.testing.assert_allclose(found.mean, 255.0 * np.array([0.5, 0.4, 0.3]))
    np.testing.assert_allclose(found.std, 255.0 * np.array([0.2, 0.25, 0.5]))
    expected = ((IMAGE / 255.0 - [0.5, 0.4, 0.3]) / [0.2, 0.25, 0.5]).mean(axis=(0, 1))
    plain = network(MEAN_COLOUR, FLAT)
    description(plain, do_center_crop=False)
    np.testing.assert_allclose(Backbone(plain).features(IMAGE), expected, rtol=1e-5)
    kept = dataclasses.replace(plain, preprocessing="parameters")
    np.testing.assert_allclose(Backbone(kept).features(IMAGE), COLOUR, rtol=1e-6)
    description(plain, size=64, crop_size=None, do_center_crop=None, do_normalize=False)
    np.testing.assert_allclose(Backbone(plain).features(IMAGE), COLOUR / 255.0, rtol=1e-5)


def test_a_description_tells_of_blue_first_and_of_a_crop_by_its_share(network: Network) -> None:
    config = network(COPY, shape=(1, 3, "h", "w"))
    told = {"crop_size": None, "do_center_crop": None, "crop_pct": 0.875}
    description(config, size={"shortest_edge": 224}, do_flip_channel_order=True, **told)
    found = described(config)
    assert (found.size, found.crop, found.channels) == (224, 0.875, "bgr")
    description(config, size={"shortest_edge": 384}, **told)
    found = described(config)
    assert (found.size, found.crop, found.channels) == (384, 1.0, "rgb")


@pytest.mark.parametrize("told", [{"size": None}, {"image_std": [0.0, 1.0, 1.0]}, {"size": "big"}])
def test_a_description_that_says_nothing_of_use_is_refused(network: Network, told: Any) -> None:
    config = network(MEAN_COLOUR, FLAT)
    description(config, **told)
    with pytest.raises(ConfigurationError):
        Backbone(config)
    assert Backbone(dataclasses.replace(config, preprocessing="parameters")).n_features == 3
