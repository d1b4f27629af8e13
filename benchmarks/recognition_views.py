"""Views made of the teacher's frames: whether a few more of each help where frames are few.

    python benchmarks/recognition_views.py emoji-datasource-google-16.0.0.tgz

Of 60 objects (recognition_objects.py) one frame or five are learned, as they are or with views
made of each: mirrored, two crops of 85 % somewhere, darker and lighter, or one of each. 30 other
views of each are asked for. Last, one object after the other has a single frame and the rest five.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from recognition_objects import Picture, pictures, view
from tables.common import print_table
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.learning import IncrementalRLSC
from semiparam_dynamics.recognition.backbone import Backbone

OBJECTS, FRAMES, TESTED = 60, 5, 30
HEADS = ("least_squares", "discriminant")


def crop(picture: Picture, share: float, right: float, down: float) -> Picture:
    """A square of this share of the shorter side, from -1 to 1 to the right and down."""
    height, width = picture.shape[:2]
    side = int(share * min(height, width))
    top = int((height - side) / 2 * (1.0 + down))
    left = int((width - side) / 2 * (1.0 + right))
    return picture[top : top + side, left : left + side]


def lit(picture: Picture, gain: float) -> Picture:
    """The picture in other light."""
    return np.clip(picture * gain, 0.0, 255.0).astype(np.uint8)


VIEWS: dict[str, Callable[[Picture, np.random.Generator], list[Picture]]] = {
    "none": lambda p, rng: [],
    "mirrored": lambda p, rng: [p[:, ::-1]],
    "two crops": lambda p, rng: [crop(p, 0.85, *rng.uniform(-1.0, 1.0, 2)) for _ in range(2)],
    "darker, lighter": lambda p, rng: [lit(p, 0.7), lit(p, 1.3)],
    "four of all": lambda p, rng: [
        p[:, ::-1],
        crop(p, 0.85, *rng.uniform(-1.0, 1.0, 2)),
        lit(crop(p, 0.9, 0.0, 0.0), 0.75),
        lit(p[:, ::-1], 1.25),
    ],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("archive", type=Path, help="the emoji's pictures")
    args = parser.parse_args()
    backbone = Backbone()

    def features(images: Iterable[Picture]) -> list[Array]:
        return [backbone.features(np.ascontiguousarray(one)).astype(float) for one in images]

    made: dict[tuple[int, int, str], list[Array]] = {}
    tested, truth = [], []
    with threadpool_limits(1):
        for label, picture in enumerate(pictures(args.archive, OBJECTS)):
            rng, random = np.random.default_rng(label), np.random.default_rng(1000 + label)
            for k in range(FRAMES):
                frame = view(picture, rng)
                own = features([frame])
                for name, views in VIEWS.items():
                    made[label, k, name] = own + features(views(frame, random))
            tested += features(view(picture, rng) for _ in range(TESTED))
            truth += TESTED * [label]
        X, y = np.array(tested), np.array(truth)
        rows = []
        for name in VIEWS:
            cells = [
                f"{100.0 * (learned(made, name, head, {}, frames).predict(X) == y).mean():.1f}"
                for frames in (1, FRAMES)
                for head in HEADS
            ]
            for head in HEADS:
                shares = []
                for rare in range(0, OBJECTS, 3):
                    model = learned(made, name, head, {rare: 1}, FRAMES)
                    shares.append((model.predict(X[y == rare]) == rare).mean())
                cells.append(f"{100.0 * np.mean(shares):.1f}")
            rows.append([name, *cells])
    heads = [head.replace("_", " ") for head in HEADS]
    columns = [f"{of}, {head}" for of in ("1 frame", "5 frames", "1 beside 5") for head in heads]
    print_table("Right answers, %", ("views", *columns), rows)


def learned(
    made: dict[tuple[int, int, str], list[Array]],
    name: str,
    head: str,
    fewer: dict[int, int],
    frames: int,
) -> IncrementalRLSC:
    """A classifier of all objects, of each so many frames or `fewer`, and their views."""
    rows, labels = [], []
    for label in range(OBJECTS):
        for k in range(fewer.get(label, frames)):
            rows += made[label, k, name]
            labels += len(made[label, k, name]) * [label]
    model = IncrementalRLSC(0.3, 1.0, hold_out=0, head=head)
    return model.fit(np.array(rows), np.array(labels))


if __name__ == "__main__":
    main()
