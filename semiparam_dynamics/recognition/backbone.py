"""Features of images: any ONNX image network, in ONNX Runtime on the processor."""

from __future__ import annotations

import hashlib
import json
from array import array
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.base.errors import (
    BackboneError,
    ConfigurationError,
    ImageError,
    MissingExtraError,
)
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.base.storage import MALFORMED
from semiparam_dynamics.recognition.config import BackboneConfig
from semiparam_dynamics.recognition.default_backbone import default_identity, default_model

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
    identity: what the features depend on, in values for JSON, so that a learner that was saved can
    refuse another network's features. Of a model in several files only the first counts in it.

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
        """Where the channels are; returns the input's height and width, `size` where it is open."""
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
    """The network's session, what to call it in a message, and what identifies it."""
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtraError(
            "an image network needs onnxruntime: pip install onnxruntime"
        ) from None
    if config.file:
        path = Path(config.file).expanduser()
        name = str(path)
        model: str | bytes = name  # not the bytes: weights may lie in files beside it
        try:
            identity = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise BackboneError(
                f"can't read the image network {path}, which the parameter backbone.file names: "
                f"{error.strerror}"
            ) from error
    else:
        name, identity = "the default image network", default_identity()
        model = default_model(config.size)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = config.threads
    options.log_severity_level = 4  # what goes wrong comes as an exception, and nothing is printed
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise BackboneError(
            f"{name} is not an ONNX model that this onnxruntime runs: {_first_line(error)}"
        ) from None
    return session, name, identity


DESCRIPTION = "preprocessor_config.json"
WHOLE_FROM = 384.0  # pixels of an input's side, from which on ConvNeXt's `crop_pct` crops nothing


def described(config: BackboneConfig) -> BackboneConfig:
    """The configuration with what a description beside the network's file says of its images.

    The file is that of Hugging Face's image processors. Raises ConfigurationError where it says
    something else than numbers.
    """
    path = Path(config.file).expanduser().parent / DESCRIPTION
    if not config.file or config.preprocessing != "auto" or not path.is_file():
        return config
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        scale = float(told.get("rescale_factor", 1.0 / 255.0)) if _does(told, "rescale") else 1.0
        mean: tuple[float, ...] = (0.0, 0.0, 0.0)
        std: tuple[float, ...] = (1.0, 1.0, 1.0)
        if _does(told, "normalize"):
            mean = tuple(float(value) for value in told["image_mean"])
            std = tuple(float(value) for value in told["image_std"])
        sizes = told["size"]
        if not isinstance(sizes, dict):
            sizes = {"shortest_edge": sizes}
        shorter = float(sizes.get("shortest_edge", sizes.get("height", 0)))
        kept, share = shorter, 1.0
        if told.get("do_center_crop", "crop_size" in told):
            crop = told["crop_size"]
            kept = float(crop["height"] if isinstance(crop, dict) else crop)
            share = kept / shorter
        elif shorter < WHOLE_FROM and "crop_pct" in told:
            share = float(told["crop_pct"])
        return replace(
            config,
            size=round(kept),
            crop=min(1.0, share),
            mean=tuple(value / scale for value in mean),
            std=tuple(value / scale for value in std),
            channels="bgr" if told.get("do_flip_channel_order") else "rgb",
        )
    except (*MALFORMED, ArithmeticError, AttributeError, OSError) as error:
        raise ConfigurationError(
            f"{path} does not say how images are prepared ({type(error).__name__}: {error}); with "
            "backbone.preprocessing: parameters it is not read"
        ) from None


def _does(told: dict[str, Any], action: str) -> bool:
    return bool(told.get(f"do_{action}", True))


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
}


def image_array(
    data: bytes | array[int] | npt.NDArray[Any],
    height: int,
    width: int,
    encoding: str,
    step: int,
) -> Image:
    """The image, (height, width, 3) uint8, red, green and blue, of sensor_msgs/Image's fields.

    data: `height` rows of `step` bytes each; what lies past the row's pixels is passed over.

    The result is a view of `data`, whatever the encoding: nothing is copied, and it may be
    read-only. Raises ImageError for an encoding that is not one of `ENCODINGS`, for an image
    without pixels, and where `step` or the length of `data` don't fit the size.
    """
    if encoding not in ENCODINGS:
        raise ImageError(
            f"image encoding {encoding[:40]!r} is not one of {', '.join(ENCODINGS)}",
            reason="image encoding",
        )
    if height < 1 or width < 1:
        raise ImageError(f"the image has no pixels: {width} x {height}", reason="image size")
    depth, channels = ENCODINGS[encoding]
    if step < width * depth:
        raise ImageError(
            f"the image's step of {step} bytes is too short for {width} pixels in {encoding}",
            reason="image step",
        )
    length = memoryview(data).nbytes  # type: ignore[arg-type]  # numpy's arrays are buffers too
    if length != height * step:
        raise ImageError(
            f"the image has {length} bytes of data instead of {height} rows of {step}",
            reason="image data length",
        )
    pixels = np.ndarray((height, width, depth), np.uint8, data, strides=(step, depth, 1))
    return np.broadcast_to(pixels[:, :, channels], (height, width, 3))


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
        try:
            import PIL.Image
        except ImportError:
            raise MissingExtraError("scaling images needs pillow: pip install pillow") from None
        for name, values in (("mean", config.mean), ("std", config.std)):
            if len(values) != 3:
                raise ConfigurationError(
                    f"parameter 'backbone.{name}' must have 3 numbers, for red, green and blue, "
                    f"not {len(values)}"
                )
        self._pillow = PIL.Image
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
        picture = self._pillow.fromarray(_contiguous(self._centre(image)))
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


def _contiguous(image: Image) -> Image:
    """A copy in C order, a channel at a time: numpy takes five times as long for all at once."""
    copy = np.empty(image.shape, np.uint8)
    for channel in range(3):
        copy[:, :, channel] = image[:, :, channel]
    return copy
