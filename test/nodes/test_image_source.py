"""The image source over DDS: a folder's pictures in their order, and its end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sensor_msgs.msg import Image
from std_msgs.msg import String
from std_srvs.srv import SetBool

from semiparam_dynamics.base.nodes.messages import stamp_of
from semiparam_dynamics.recognition.backbone import image_array

from .conftest import TIMEOUT

Pillow = pytest.importorskip("PIL.Image", reason="needs the extra 'vision'")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four pictures; each one's red is its number."""
    made = tmp_path / "pictures"
    made.mkdir()
    for k in range(4):
        pixels = np.full((12, 20, 3), (k, 60, 120), np.uint8)
        Pillow.fromarray(pixels).save(made / f"{k}.png")
    return made


def reds(images: list[Image]) -> list[int]:
    return [
        int(image_array(m.data, m.height, m.width, m.encoding, m.step)[0, 0, 0]) for m in images
    ]


def test_a_source_is_shown_once_in_full_for_who_waits_for_it(peer, start, folder: Path) -> None:
    images = peer.listen(Image, "image")
    given = {"source": folder, "rate": 50.0, "loop": False, "wait_for_subscribers": 1}
    process = start("image_source", frame_id="eye", **given)
    peer.until(lambda: len(images) == 4, "four images")
    assert process.wait(TIMEOUT) == 0
    assert reds(images) == [0, 1, 2, 3]
    first = images[0]
    assert (first.height, first.width, first.encoding) == (12, 20, "rgb8")
    assert first.header.frame_id == "eye"
    stamps = [stamp_of(m) for m in images]
    assert stamps == sorted(set(stamps))


def test_it_teaches_what_subfolders_show_each_frame_under_its_label(peer, start, folder) -> None:
    (folder / "mug").mkdir()
    for k in (0, 1):
        (folder / f"{k}.png").rename(folder / "mug" / f"{k}.png")
    came: list[object] = []
    peer.node.create_subscription(Image, "image", came.append, 10)
    peer.node.create_subscription(String, "label", lambda m: came.append(m.data), 10)
    given = {"source": folder, "rate": 50.0, "teach": 1, "wait_for_subscribers": 1}
    start("image_source", **given)
    peer.until(lambda: len(came) >= 8, "the lesson, and the pictures once more")
    found = [one if isinstance(one, str) else reds([one])[0] for one in came]
    assert found[:8] == [2, 3, "mug", 0, "", 1, 2, 3]


def test_it_begins_again_at_its_end_and_stays_at_a_frame_while_it_pauses(
    peer, start, folder: Path
) -> None:
    images = peer.listen(Image, "image")
    start("image_source", source=folder, rate=100.0, wait_for_subscribers=1)
    pause = peer.node.create_client(SetBool, "image_source/pause")
    peer.until(lambda: len(images) >= 10 and pause.service_is_ready(), "ten images")
    assert reds(images)[:10] == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
    for paused in (True, False):
        answer = pause.call_async(SetBool.Request(data=paused))
        peer.until(answer.done, "an answer")
        images.clear()
        peer.until(lambda: len(images) >= 20, "twenty images")
        assert (len(set(reds(images)[5:])) == 1) == paused
