"""Pictures in a folder whose subfolders are the classes."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.errors import ConfigurationError, MissingExtraError

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp")
LONGEST = 320  # pixels of the longer side; an image network looks at about 224


def read_folder(
    folder: Path, classes: int, views: int
) -> tuple[dict[str, list[npt.NDArray[np.uint8]]], int]:
    """Class name -> at most `views` pictures, (H, W, 3) uint8; and how many files were broken.

    The classes are the first `classes` subfolders that aren't hidden, in alphabetical order; names
    are composed (Unicode's NFC), as the recogniser has them. Large pictures are made smaller.

    Raises ConfigurationError where there are no subfolders with pictures, and MissingExtraError
    without Pillow.
    """
    found: dict[str, list[npt.NDArray[np.uint8]]] = {}
    skipped = 0
    for subfolder in _subfolders(folder)[:classes]:
        files = _files(subfolder)
        # Those left out at first come after the others, in place of broken ones.
        first = sorted(set(np.linspace(0, len(files) - 1, min(views, len(files))).astype(int)))
        order = [*first, *sorted(set(range(len(files))) - set(first))]
        read: dict[int, npt.NDArray[np.uint8]] = {}
        for place in order:
            if len(read) == views:
                break
            picture = _read(files[place])
            if picture is None:
                skipped += 1
            else:
                read[place] = picture
        found[unicodedata.normalize("NFC", subfolder.name)] = [
            read[place] for place in sorted(read)
        ]
    return found, skipped


def _subfolders(folder: Path) -> list[Path]:
    try:
        inside = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
        classes = [path for path in inside if path.is_dir() and _files(path)]
    except OSError as error:
        raise ConfigurationError(f"can't read the folder {folder}: {error.strerror}") from None
    if not classes:
        raise ConfigurationError(
            f"{folder} has no subfolder with pictures ({', '.join(SUFFIXES)}); each object's "
            "pictures belong in a folder of their own, which is called as the object"
        )
    return classes


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)


def _read(path: Path) -> npt.NDArray[np.uint8] | None:
    """The picture as a viewer shows it; None if it is broken."""
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise MissingExtraError(
            "reading pictures needs pillow: pip install 'semiparam_dynamics[vision]'"
        ) from None
    broken: tuple[Any, ...] = (OSError, ValueError, SyntaxError, Image.DecompressionBombError)
    try:
        with Image.open(path) as picture:
            picture.draft("RGB", (LONGEST, LONGEST))  # a large JPEG is decoded to fewer pixels
            upright = ImageOps.exif_transpose(picture).convert("RGB")
            upright.thumbnail((LONGEST, LONGEST))
            return np.asarray(upright)
    except broken:
        return None
