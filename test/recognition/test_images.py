"""Pixels of image messages against a loop over bytes, and everything that must be refused."""

from __future__ import annotations

import array
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semiparam_dynamics.errors import ImageError
from semiparam_dynamics.recognition.backbone import ENCODINGS, image_array

# Where red, green and blue stand in a pixel, as sensor_msgs' image_encodings.hpp names them.
ORDER = {"rgb8": "rgb", "bgr8": "bgr", "rgba8": "rgba", "bgra8": "bgra", "mono8": "m"}


def pixel_by_pixel(data: bytes, height: int, width: int, encoding: str, step: int) -> list[int]:
    order = ORDER[encoding]
    values = []
    for row, column, color in itertools.product(range(height), range(width), "rgb"):
        at = order.index("m" if order == "m" else color)
        values.append(data[row * step + column * len(order) + at])
    return values


@settings(deadline=None)
@given(
    st.data(),
    st.sampled_from(sorted(ORDER)),
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


def test_every_encoding_is_in_the_loop() -> None:
    assert set(ORDER) == set(ENCODINGS)


@pytest.mark.parametrize("encoding", sorted(ORDER))
def test_nothing_is_copied(encoding: str) -> None:
    data = np.arange(2 * 20, dtype=np.uint8)
    image = image_array(data, 2, 3, encoding, 20)
    assert np.shares_memory(image, data)


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
    assert max(len(str(error)) for error in errors) < 200


def test_the_reason_survives_a_pickle() -> None:
    error = pickle.loads(pickle.dumps(ImageError("too dark", reason="light")))
    assert (str(error), error.reason) == ("too dark", "light")
