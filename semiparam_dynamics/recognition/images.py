"""The pixels in an image message."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.errors import ImageError

Image = npt.NDArray[np.uint8]

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
    is_bigendian: int = 0,
) -> Image:
    """The image, (height, width, 3) uint8, red, green and blue, of sensor_msgs/Image's fields.

    data: `height` rows of `step` bytes each; what lies past the row's pixels is passed over.
    is_bigendian: without meaning here, since a sample of these encodings is one byte.

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
