"""Labelled rows that the benchmarks of recognition learn: images' features, pixels, and objects.

Objects are views of emoji, turned, moved, lit and set before other backgrounds. The pictures are
Google's Noto emoji (Apache License 2.0), 64 x 64 pixels, from the npm package
emoji-datasource-google (``npm pack emoji-datasource-google@16.0.0``), of which an archive is read
as it is. A class is one emoji of animals, food, activities, travel and objects, so that
neighbouring classes are often alike (24 books, 19 vegetables). Its views stand for frames of one
object that a teacher moves before a camera; train and test views are drawn alike.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import PIL.Image

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.recognition.backbone import Backbone
from semiparam_dynamics.recognition.config import BackboneConfig

CATEGORIES = ("Animals & Nature", "Food & Drink", "Activities", "Travel & Places", "Objects")
SIDE = 224  # pixels of a view
VIEWS = 50  # of each class

NAMES = ("mnist", "cifar10", "objects")

Picture = npt.NDArray[np.uint8]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which rows."""
    parser.add_argument("data", type=Path, help="folder that holds images/NAME.npz")
    parser.add_argument("--objects", type=Path, help="archive of the emoji's pictures")
    parser.add_argument("--cache", type=Path, default=Path("objects.npz"), help="their features")
    parser.add_argument("--sets", nargs="+", default=NAMES, choices=NAMES)
    add_network(parser)


def add_network(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the network of pictures."""
    parser.add_argument("--network", default="", help="ONNX file of an image network of your own")


def rows_of(name: str, args: argparse.Namespace, classes: int) -> tuple[Array, Indices]:
    """Rows (n, d) of length 1 and labels (n,): MNIST's pixels, CIFAR-10's features, or objects.

    classes : of objects. Ends the program where their archive is missing.
    """
    if name == "objects":
        if args.objects is None:
            sys.exit("the set objects needs --objects, the archive of their pictures")
        return object_features(args.objects, classes, args.cache, args.network)
    if name == "mnist":
        with np.load(args.data / "images" / "mnist.npz") as arrays:
            X, y = arrays["X_train"][:20_000] / 255.0, arrays["y_train"][:20_000]
    else:
        with np.load(args.data / "images" / "cifar10_mobilenetv2.npz") as arrays:
            X, y = arrays["X"].astype(float), arrays["y"]
    return X / np.linalg.norm(X, axis=1, keepdims=True), y.astype(np.intp)


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation over the trials."""
    return f"{np.mean(values):.1f} +- {np.std(values):.1f}"


def object_features(
    archive: Path, classes: int, cache: Path, network: str
) -> tuple[Array, Indices]:
    """Features (classes * VIEWS, d) of a network, length 1, and labels; VIEWS a class.

    Kept in the file `cache`, as npz, from where they are read the next time that the same classes
    of the same archive are asked for, by the same network.
    """
    backbone = Backbone(BackboneConfig(file=network))
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    made_of = json.dumps([digest, classes, VIEWS, backbone.identity], sort_keys=True)
    y = np.repeat(np.arange(classes), VIEWS)
    if cache.exists():
        with np.load(cache) as arrays:
            if "made_of" in arrays and arrays["made_of"] == made_of:
                return arrays["X"].astype(float), y
    X = []
    for label, picture in enumerate(pictures(archive, classes)):
        rng = np.random.default_rng(label)
        X += [backbone.features(view(picture, rng)) for _ in range(VIEWS)]
    part = cache.with_name(f".{cache.name}.part")  # what was interrupted is not read the next time
    with part.open("wb") as file:
        np.savez(file, X=np.array(X), made_of=made_of)
    part.replace(cache)
    return np.array(X, dtype=float), y


def pictures(archive: Path, classes: int) -> list[Any]:
    """The pictures, RGBA, of as many emoji, drawn at random but always the same."""
    with tarfile.open(archive) as tar:
        listed = json.load(_member(tar, "package/emoji.json"))
        own = [one["image"] for one in listed if one["category"] in CATEGORIES]
        chosen = np.random.default_rng(0).permutation(sorted(own))[:classes]
        names = [f"package/img/google/64/{name}" for name in chosen]
        return [PIL.Image.open(_member(tar, name)).convert("RGBA") for name in names]


def _member(tar: tarfile.TarFile, name: str) -> io.BytesIO:
    file = tar.extractfile(name)
    if file is None:
        raise FileNotFoundError(name)
    return io.BytesIO(file.read())


def view(picture: Any, rng: np.random.Generator) -> Picture:
    """A view (SIDE, SIDE, 3) of an object: turned by 40 degrees at most, half to full size."""
    size = round(SIDE * rng.uniform(0.5, 1.0))
    turned = picture.resize((size, size), PIL.Image.Resampling.BICUBIC).rotate(
        rng.uniform(-40.0, 40.0), PIL.Image.Resampling.BICUBIC
    )
    corners = rng.integers(0, 256, (3, 3, 3), np.uint8)
    canvas = PIL.Image.fromarray(corners).resize((SIDE, SIDE), PIL.Image.Resampling.BICUBIC)
    left, top = rng.integers(-SIDE // 10, SIDE - size + SIDE // 10 + 1, 2)
    canvas.paste(turned, (int(left), int(top)), turned)
    lit = np.asarray(canvas, float) * rng.uniform(0.5, 1.3) * rng.uniform(0.85, 1.15, 3)
    noisy = lit + rng.normal(0.0, 8.0, lit.shape)
    return np.clip(noisy, 0.0, 255.0).astype(np.uint8)
