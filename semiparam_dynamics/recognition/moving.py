"""The box around what moves, or is held, before a still camera."""

from __future__ import annotations

import math
from collections import deque
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from semiparam_dynamics.base.arrays import Mask
from semiparam_dynamics.recognition.backbone import Image, pillow_image

Small = npt.NDArray[np.float32]
SIDE = 96  # pixels of the longer side of the small image that is compared
SCENES = 25  # small images whose median is the background
FIRST_SCENES = 5  # before which nothing is found
SCENE_PERIOD = 5  # frames between two of them, once there are `SCENES`
# Of so many of them one has what is in the box, too: what is put down becomes background, at last.
HELD_PERIOD = 4
# Grey levels: more than noise leaves in the small image, for a region and for motion, which is
# thin at the edges of what is uniform.
MIN_CHANGE, MIN_MOTION = 20.0, 8.0
MIN_SHARE, MAX_SHARE = 0.004, 0.6  # of the image; where more has changed the camera has moved
MOTION_DECAY = 0.9  # of a frame's motion, by the next one
GAP_PIXELS = 2  # pixels of the small image on either side of a gap between parts of one thing
MARGIN = 1.3  # side of the square box by the longer side of what has changed


class Box(NamedTuple):
    """A part of an image, pixels."""

    left: int
    top: int
    width: int
    height: int

    def cut(self, image: Image) -> Image:
        """This part of an image."""
        return image[self.top : self.top + self.height, self.left : self.left + self.width]


class MovingBox:
    """Finds what moves or is held, a frame at a time, by its difference from the background.

    The background is each pixel's median over `SCENES` earlier frames, some of them seconds old;
    what is in the box is left out of it. A change of the light as a whole is divided out. Of
    several regions that differ it is the one in which most has moved lately, and the largest where
    nothing has.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._scenes: deque[Small] = deque(maxlen=SCENES)
        self._background: Any = None
        self._before: Any = None
        self._motion: Any = 0.0
        self._frames = 0

    def find(self, image: Image) -> Box | None:
        """The square box in the next frame, (H, W, 3) uint8; None where nothing has changed.

        It is a margin larger than what it is around, and no larger than the image's shorter side.
        None as well for the first frames, and where most has changed, as when the camera moves: it
        then begins anew.
        """
        factor = math.ceil(max(image.shape[:2]) / SIDE)
        small = np.asarray(pillow_image(image).reduce(factor), np.float32)
        if self._before is None or small.shape != self._before.shape:
            self._begin()
            self._before = small
        moves = _compared(small, self._before)[1] > MIN_MOTION
        self._motion = MOTION_DECAY * self._motion + moves
        self._before = small
        region = None
        if len(self._scenes) >= FIRST_SCENES:
            lit, difference = _compared(small, self._background)
            changed = ndimage.binary_opening(difference > MIN_CHANGE)
            if changed.mean() > MAX_SHARE:
                self._begin()
            else:
                small, region = lit, self._moving(changed)
        self._learn(small, region)
        return None if region is None else _around(region, factor, *image.shape[:2])

    def _moving(self, changed: Mask) -> tuple[slice, slice] | None:
        """The rows and columns of the region that moves most."""
        parts, n = ndimage.label(ndimage.binary_dilation(changed, iterations=GAP_PIXELS))
        numbers = np.arange(1, n + 1)
        large = ndimage.sum_labels(changed, parts, numbers) >= MIN_SHARE * changed.size
        if not np.any(large):
            return None
        moved = ndimage.sum_labels(changed * (self._motion + 0.01), parts, numbers)
        best = int(np.argmax(moved * large)) + 1
        found: tuple[slice, slice] = ndimage.find_objects(parts * changed)[best - 1]
        return found

    def _learn(self, small: Small, region: tuple[slice, slice] | None) -> None:
        """Have the frame be one of the background's where it is time for that."""
        period = SCENE_PERIOD if len(self._scenes) == SCENES else 1
        self._frames += 1
        if self._frames % period:
            return
        if region is not None and self._frames % (period * HELD_PERIOD):
            small = small.copy()
            small[region] = self._background[region]
        self._scenes.append(small)
        self._background = np.median(self._scenes, axis=0)


def _compared(small: Small, before: Small) -> tuple[Small, Small]:
    """An image (h, w, 3) in the light of another one, and the largest difference (h, w) to it.

    What is overexposed in either light tells nothing beyond that.
    """
    gain = np.median((before + 8.0) / (small + 8.0), axis=(0, 1))
    lit, most = small * gain, 255.0 * np.minimum(gain, 1.0)
    return lit, np.abs(np.minimum(lit, most) - np.minimum(before, most)).max(axis=2)


def _around(region: tuple[slice, slice], factor: int, height: int, width: int) -> Box:
    """The square around a region of the small image, within the image."""
    rows, columns = region
    longer = max(rows.stop - rows.start, columns.stop - columns.start)
    side = min(round(MARGIN * factor * longer), height, width)
    left = factor * (columns.start + columns.stop) / 2 - side / 2
    top = factor * (rows.start + rows.stop) / 2 - side / 2
    return Box(
        round(min(max(left, 0), width - side)), round(min(max(top, 0), height - side)), side, side
    )
