"""What an image becomes before the network sees it."""

from __future__ import annotations

import numpy as np
import pytest

from semiparam_dynamics.errors import ConfigurationError, ImageError
from semiparam_dynamics.recognition.backbone import Preprocessing
from semiparam_dynamics.recognition.config import BackboneConfig

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


def test_channels_last() -> None:
    image = random_image(6, 6)
    first = Preprocessing(WHOLE, 6, 6, channels_first=True, raw=False)(image)
    last = Preprocessing(WHOLE, 6, 6, channels_first=False, raw=False)(image)
    assert last.shape == (1, 6, 6, 3)
    assert np.array_equal(last.transpose(0, 3, 1, 2), first)


def test_raw_pixels_stay_as_they_are() -> None:
    image = random_image(6, 6)
    pixels = Preprocessing(WHOLE, 6, 6, channels_first=False, raw=True)(image)
    assert pixels.dtype == np.uint8
    assert np.array_equal(pixels[0], image)


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


@pytest.mark.parametrize("factor", [2, 5])
def test_a_ramp_stays_a_ramp_when_scaled_down(factor: int) -> None:
    ramp = np.arange(20 * factor, dtype=np.uint8)
    image = np.broadcast_to(ramp[:, None, None], (len(ramp), len(ramp), 3))
    pixels = Preprocessing(WHOLE, 20, 20, channels_first=False, raw=True)(image)
    centres = (np.arange(20) + 0.5) * factor - 0.5
    inner = slice(3, -3)  # at the borders a scaled ramp bends
    assert pixels[0, inner, 9, 1] == pytest.approx(centres[inner], abs=1.01)


def test_views_of_every_order_give_what_a_copy_gives() -> None:
    image = random_image(48, 48)
    preprocess = Preprocessing(BackboneConfig(), 16, 16, channels_first=True, raw=False)
    for view in (
        image[:, :, ::-1],
        image[::2, ::-1],
        np.broadcast_to(image[:, :, :1], (48, 48, 3)),
    ):
        assert np.array_equal(preprocess(view), preprocess(view.copy()))


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((4, 4), np.uint8),
        np.zeros((4, 4, 4), np.uint8),
        np.zeros((4, 4, 3)),
        np.zeros((0, 4, 3), np.uint8),
    ],
)
def test_refuses_what_is_no_image(image: np.ndarray) -> None:
    preprocess = Preprocessing(BackboneConfig(), 16, 16, channels_first=True, raw=False)
    with pytest.raises(ImageError, match=r"must be \(height, width, 3\) uint8") as refused:
        preprocess(image)
    assert refused.value.reason == "image shape"


@pytest.mark.parametrize("name", ["mean", "std"])
def test_three_colours_need_three_numbers(name: str) -> None:
    config = BackboneConfig(**{name: (1.0, 2.0)})
    with pytest.raises(ConfigurationError, match=f"'backbone.{name}' must have 3 numbers.*not 2"):
        Preprocessing(config, 16, 16, channels_first=True, raw=False)
