"""Objects moved before a still camera: taught and recognised in their boxes, and in whole images.

    python benchmarks/recognition_boxes.py emoji-datasource-google-16.0.0.tgz

Videos are drawn: emoji (see recognition_objects.py), 10 to 30 % of the width large, are moved and
turned before a photograph of scikit-learn's, under a light that drifts, with noise; each after 1 s
of the scene alone. In each trial five are taught for 3 s each on the left half of the scene, then
all are shown for 2 s each on its right half, and before the other photograph; and so is one that
was never taught. The recognizer has the node's defaults, but for `--alone`: single frames, without
smoothing. Of frames with an object:

- recognised: the share answered rightly, where an answer may be unknown;
- likeliest: the share of which the likeliest object is the right one;
- unknown passed: of the object not taught, the share answered by a name;
- found, overlap: the share with a box, and the mean overlap (intersection over union) with the
  object's own square: some 59 % for a box that fits, as it has a margin.

`--size` draws other sizes, and `--shake` moves the camera by so many pixels from frame to frame.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import PIL.Image
from output import make_parser, parse
from recognition_objects import Picture, add_network, pictures, spread
from sklearn.datasets import load_sample_images
from tables.common import print_table
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.recognition.backbone import Backbone
from semiparam_dynamics.recognition.config import BackboneConfig, RecognitionConfig
from semiparam_dynamics.recognition.moving import Box, MovingBox
from semiparam_dynamics.recognition.recognizer import Recognizer

WIDTH, HEIGHT, RATE = 320, 240, 10  # pixels, frames a second
ALONE, TAUGHT, TESTED = RATE, 3 * RATE, 2 * RATE  # frames
OBJECTS = 5
FIRST_SEED = 100  # the finder's constants were set on the seeds 0 to 3


class Shown(NamedTuple):
    """A frame, and the square of the object in it; None where there is none."""

    picture: Picture
    square: Box | None


class Scene:
    """A photograph before which objects are moved; its light drifts as time goes on."""

    def __init__(
        self, number: int, rng: np.random.Generator, sizes: tuple[float, float], shake: float
    ) -> None:
        photograph = PIL.Image.fromarray(load_sample_images().images[number])
        left, top = rng.uniform(0.0, 100.0, 2)  # another part of it in each trial
        box = (left, top, left + 1.5 * 320, top + 1.5 * 215)
        edge = 20  # for the camera to shake in
        size = WIDTH + 2 * edge, HEIGHT + 2 * edge
        self._ground = photograph.resize(size, PIL.Image.Resampling.BICUBIC, box).convert("RGB")
        self._edge, self._rng, self._sizes, self._shake = edge, rng, sizes, shake
        self._phases = rng.uniform(0.0, 2.0 * np.pi, 4)
        self._time = 0

    def show(self, picture: Any, frames: int, left: float, right: float) -> Iterator[Shown]:
        """The scene alone, then an object, its middle between these shares of the width."""
        for _ in range(ALONE):
            yield self._frame(None, 0, 0.0, 0.0, 0.0)
        turn, x, y, grow, speed = self._rng.uniform(0.0, 2.0 * np.pi, 5)
        low, high = self._sizes
        for k in range(frames):
            t = k / RATE * (1.0 + 0.2 * np.sin(speed))
            size = WIDTH * (low + (high - low) * (0.5 + 0.5 * np.sin(1.1 * t + grow)))
            at = left + (right - left) * (0.5 + 0.5 * np.sin(1.7 * t + x))
            up = HEIGHT * (0.5 + 0.25 * np.sin(1.3 * t + y))
            yield self._frame(picture, round(size), 30.0 * np.sin(1.5 * t + turn), WIDTH * at, up)

    def _frame(self, picture: Any, size: int, angle: float, x: float, y: float) -> Shown:
        rng, square = self._rng, None
        corner = self._edge + np.clip(rng.normal(0.0, self._shake, 2), -self._edge, self._edge)
        canvas = self._ground.crop((*corner, corner[0] + WIDTH, corner[1] + HEIGHT))
        if picture is not None:
            turned = picture.resize((size, size), PIL.Image.Resampling.BICUBIC).rotate(
                angle, PIL.Image.Resampling.BICUBIC
            )
            square = Box(round(x - size / 2), round(y - size / 2), size, size)
            canvas.paste(turned, square[:2], turned)
        self._time += 1
        drift = np.sin(2.0 * np.pi * self._time / (20 * RATE) + self._phases)
        light = (1.0 + 0.15 * drift[0]) * (1.0 + 0.04 * drift[1:])
        lit = np.asarray(canvas, float) * light + rng.normal(0.0, 4.0, (HEIGHT, WIDTH, 3))
        return Shown(np.clip(lit, 0.0, 255.0).astype(np.uint8), square)


def trial(
    backbone: Backbone, emoji: list[Any], seed: int, args: argparse.Namespace, boxes: bool
) -> dict[str, float]:
    """Shares in % of frames, by what is measured; see the module's description."""
    rng = np.random.default_rng(seed)
    chosen = [emoji[k] for k in rng.permutation(len(emoji))[: OBJECTS + 1]]
    config = replace(RecognitionConfig(), **({"smoothing.frames": 1} if args.alone else {}))
    recognizer, finder = Recognizer(config, {}), MovingBox()
    found: dict[str, list[float]] = {}

    def show(shown: Iterator[Shown], answer: Callable[[Any], object]) -> None:
        recognizer.restart_smoothing()
        for picture, square in shown:
            begun = time.process_time()
            box = finder.find(picture) if boxes else None
            found.setdefault("box [ms]", []).append(time.process_time() - begun)
            if square is None and recognizer.labels:
                continue
            if boxes and square is not None:
                found.setdefault("found", []).append(box is not None)
                if box is not None:
                    found.setdefault("overlap", []).append(overlap(box, square))
            x = backbone.features(picture if box is None else box.cut(picture)).astype(float)
            (recognizer.recognize if square is None else answer)(x)
        while recognizer.refresh():  # as the node between frames
            pass

    first, other = (Scene(number, rng, tuple(args.size), args.shake) for number in (0, 1))
    for k, picture in enumerate(chosen[:OBJECTS]):
        show(
            first.show(picture, TAUGHT, 0.15, 0.45),
            lambda x, k=k: recognizer.learn(x, f"object {k}"),
        )
    for name, scene, places in (
        ("same scene", first, (0.6, 0.85)),
        ("other scene", other, (0.15, 0.85)),
    ):
        for k, picture in enumerate(chosen):

            def answer(x: Any, k: int = k, name: str = name) -> None:
                answered = recognizer.recognize(x)
                best = answered.labels[int(answered.probabilities.argmax())]
                taught = f"object {k}"
                if k == OBJECTS:
                    passed = answered.label != config.unknown
                    found.setdefault(f"{name}: unknown passed", []).append(passed)
                else:
                    found.setdefault(f"{name}: recognised", []).append(answered.label == taught)
                    found.setdefault(f"{name}: likeliest", []).append(best == taught)

            show(scene.show(picture, TESTED, *places), answer)
    factors = {"box [ms]": 1000.0}
    return {name: factors.get(name, 100.0) * float(np.mean(v)) for name, v in found.items()}


def overlap(one: Box, other: Box) -> float:
    """Intersection over union."""
    both = np.array([one, other])
    starts, sizes = both[:, :2], both[:, 2:]
    inner = np.prod(np.clip((starts + sizes).min(axis=0) - starts.max(axis=0), 0, None))
    return float(inner / (np.prod(sizes, axis=1).sum() - inner))


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("archive", type=Path, help="archive of the emoji's pictures")
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--size", nargs=2, type=float, default=(0.1, 0.3), metavar=("LOW", "HIGH"))
    parser.add_argument("--shake", type=float, default=0.0, metavar="PIXELS")
    parser.add_argument("--alone", action="store_true", help="single frames")
    add_network(parser)
    args = parse(parser)
    emoji, backbone = pictures(args.archive, 200), Backbone(BackboneConfig(file=args.network))
    with threadpool_limits(1):
        results = [
            [trial(backbone, emoji, seed, args, boxes) for boxes in (False, True)]
            for seed in range(FIRST_SEED, FIRST_SEED + args.trials)
        ]
    rows = []
    for name in results[0][1]:
        cells = [[one[k][name] for one in results if name in one[k]] for k in (0, 1)]
        rows.append([name, *(spread(cell) if cell else "" for cell in cells)])
    print_table("Boxes", ["% of frames", "whole images", "boxes"], rows)


if __name__ == "__main__":
    main()
