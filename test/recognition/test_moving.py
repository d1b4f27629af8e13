"""The box around what moves, in films drawn here: a square before noise of the size of textures."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("PIL", reason="needs the extra 'vision'")

from semiparam_dynamics.recognition.moving import Box, MovingBox

HEIGHT, WIDTH, SIDE = 120, 160, 32
rng = np.random.default_rng(0)
COARSE = rng.uniform(40.0, 200.0, (2, HEIGHT // 8, WIDTH // 8, 3))
GROUNDS = COARSE.repeat(8, axis=1).repeat(8, axis=2)


def picture(
    corner: tuple[int, int] | None = None, light: float = 1.0, ground: int = 0
) -> np.ndarray:
    made = GROUNDS[ground].copy()
    if corner is not None:
        left, top = corner
        made[top : top + SIDE, left : left + SIDE] = (250.0, 10.0, 120.0)
    noisy = made * light + rng.normal(0.0, 4.0, made.shape)
    return noisy.clip(0.0, 255.0).astype(np.uint8)


def around(box: Box | None, corner: tuple[int, int]) -> bool:
    """Whether a box has the square whole, in its middle, and is not much larger."""
    if box is None:
        return False
    middle = np.array([box.left + box.width / 2, box.top + box.height / 2])
    near = np.abs(middle - np.array(corner) - SIDE / 2).max() <= 6.0
    return bool(near and box.width == box.height and SIDE <= box.width <= 1.6 * SIDE)


@pytest.fixture
def moving() -> MovingBox:
    """One that has seen the scene alone."""
    made = MovingBox()
    assert [made.find(picture()) for _ in range(15)] == [None] * 15
    return made


@pytest.mark.parametrize("light", [1.0, 0.7, 1.25])
def test_what_moves_is_found_and_stays_found_while_it_is_held_still(moving, light) -> None:
    paths = [(20 + 2 * k, 30 + k) for k in range(40)] + [(98, 69)] * 100
    for k, corner in enumerate(paths):  # and the light changes on the way
        now = 1.0 + (light - 1.0) * min(1.0, k / 20)
        assert around(moving.find(picture(corner, now)), corner), k
    assert moving.find(picture(None, light)) is None


def test_where_it_was_held_at_the_beginning_is_not_taken_for_it() -> None:
    moving = MovingBox()
    for _ in range(12):
        moving.find(picture((10, 10)))
    found = [around(moving.find(picture((10 + 3 * k, 60))), (10 + 3 * k, 60)) for k in range(30)]
    assert np.mean(found) > 0.8


def test_a_camera_that_has_moved_shows_another_scene(moving) -> None:
    assert [moving.find(picture(ground=1)) for _ in range(10)] == [None] * 10
    assert around(moving.find(picture((60, 50), ground=1)), (60, 50))
    assert moving.find(picture((60, 50))[:60]) is None  # another size


def test_a_box_at_the_edge_stays_within_the_image(moving) -> None:
    for corner in ((0, 0), (WIDTH - SIDE, HEIGHT - SIDE)):
        for _ in range(3):
            box = moving.find(picture(corner))
        assert box is not None and box.cut(picture()).shape == (box.height, box.width, 3)
