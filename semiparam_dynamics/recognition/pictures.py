"""Objects to show without a camera: pictures, or feature vectors, by class."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.base.errors import ConfigurationError, MissingExtraError, RefusedError
from semiparam_dynamics.base.storage import MALFORMED
from semiparam_dynamics.recognition.config import RecognitionConfig
from semiparam_dynamics.recognition.labels import checked_label

if TYPE_CHECKING:
    from PIL import Image

# A picture, (H, W, 3) or grey (H, W) uint8, or a feature vector, (d,) float32.
View = npt.NDArray[Any]

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
PAPER = 255
BORDER = 2  # pixels around a digit, before it is scaled
SIDE = 224  # of a digit's picture, pixels


@dataclass(frozen=True)
class Objects:
    """Views of each class; no view is both among those to teach and those to ask.

    taught, asked: class name -> its views, at least one each, in the order of the source.
    skipped: files that could not be read.
    """

    taught: Mapping[str, Sequence[View]]
    asked: Mapping[str, Sequence[View]]
    skipped: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The classes."""
        return tuple(self.taught)

    @property
    def features(self) -> bool:
        """Whether the views are feature vectors and not pictures."""
        return self.taught[self.names[0]][0].ndim == 1


def load_objects(source: str = "", *, classes: int = 5, views: int = 120) -> Objects:
    """The first `classes` classes of a source, and at most `views` views of each.

    source: a folder whose subfolders are the classes; an npz file (see `objects_of_arrays`); empty:
    scikit-learn's handwritten digits.

    The first half of a class is for teaching and the second for asking, in the source's own order:
    neighbours there, frames of one video or digits of one hand, don't end on both sides.

    Names are as the recogniser keeps them, see `checked_label`: its answers are compared with them.

    Raises ConfigurationError where the source can't be read, a class has less than two views or a
    name that a recognition with the usual limits refuses, or two names are kept as the same, and
    MissingExtraError where a folder's pictures need Pillow.
    """
    objects = _load_objects(source, classes, views)
    usual = RecognitionConfig()
    kept: dict[str, str] = {}  # the names as the recogniser keeps them -> as the source has them
    for name in objects.names:
        try:
            label = checked_label(name, usual.limits, usual.unknown)
        except RefusedError as error:
            raise ConfigurationError(
                f"an object of {source} has a name that can't be taught, rename it: {error}"
            ) from None
        if label in kept:
            raise ConfigurationError(
                f"two objects of {source} would both be taught as '{label}', rename one: "
                f"{ascii(kept[label])} and {ascii(name)}"
            )
        kept[label] = name
    return Objects(
        {label: objects.taught[name] for label, name in kept.items()},
        {label: objects.asked[name] for label, name in kept.items()},
        objects.skipped,
    )


def _load_objects(source: str, classes: int, views: int) -> Objects:
    if not source:
        return _digits(classes, views)
    path = Path(source).expanduser()
    if path.is_dir():
        found, skipped = read_folder(path, classes, views)
        return _halves(found, views, skipped)
    if not path.is_file():
        raise ConfigurationError(f"there is no folder or file {path} to take pictures from")
    if not zipfile.is_zipfile(path):
        raise ConfigurationError(f"{path} is neither a folder of pictures nor an npz file")
    try:
        # Arrays of Python objects would run code of the file's: they are refused.
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (*MALFORMED, OSError, zlib.error):
        raise ConfigurationError(
            f"{path} is damaged, or has something else in it than arrays of numbers or text"
        ) from None
    try:
        return objects_of_arrays(arrays, classes, views)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None


def objects_of_arrays(arrays: Mapping[str, npt.NDArray[Any]], classes: int, views: int) -> Objects:
    """Objects of arrays by name: X and y, or X_train, y_train and, to be asked, X_test, y_test.

    X: pictures in uint8, (n, H, W), (n, H, W, 3) or square ones as rows, (n, h h); or feature
    vectors in floating point, (n, d). y: the n classes, as numbers or text. `classes`, if there:
    the names of the numbers 0, 1, ...; those of one name are one class.

    Raises ConfigurationError where they are not such.
    """
    suffix = "" if "X" in arrays else "_train"
    names = arrays.get("classes")
    known = _by_class(arrays, suffix, names)
    chosen = dict(list(known.items())[:classes])
    if suffix and "X_test" in arrays:
        others = _by_class(arrays, "_test", names)
        taught, asked = (next(iter(found.values()))[0] for found in (known, others))
        if taught.dtype != asked.dtype or (
            taught.dtype != np.uint8 and taught.shape != asked.shape
        ):
            raise ConfigurationError(
                f"X_test is {arrays['X_test'].dtype} of shape {arrays['X_test'].shape} where "
                f"X_train is {arrays['X_train'].dtype} of shape {arrays['X_train'].shape}: what "
                "is asked must be of the same kind and length as what is taught"
            )
        for name in chosen:
            if name not in others:
                raise ConfigurationError(f"'{name}' stands in y_train, but not in y_test")
        half = max(1, views // 2)
        return Objects(
            {name: _spread(found, half) for name, found in chosen.items()},
            {name: _spread(others[name], half) for name in chosen},
        )
    return _halves(chosen, views)


def _by_class(
    arrays: Mapping[str, npt.NDArray[Any]], suffix: str, names: npt.NDArray[Any] | None
) -> dict[str, list[View]]:
    """The views of each class, in the classes' order."""
    for name in ("X" + suffix, "y" + suffix):
        if name not in arrays:
            raise ConfigurationError(
                f"has no array {name}; it has: {', '.join(arrays) or 'none at all'}"
            )
    X = _views(arrays["X" + suffix], "X" + suffix)
    y = _text(arrays["y" + suffix], "y" + suffix)
    if y.shape != X.shape[:1] or not len(y):
        raise ConfigurationError(
            f"y{suffix} has the shape {y.shape} where X{suffix} has {len(X)} rows"
        )
    if y.dtype.kind == "f" and np.isnan(y).any():
        raise ConfigurationError(f"y{suffix} has values that are no number")
    if y.dtype.kind == "f" and (y == np.rint(y)).all():
        y = y.astype(np.int64)  # as a table of numbers keeps them
    if names is not None:
        names = _text(names, "classes")
    found: dict[str, list[View]] = {}
    for label in np.unique(y):
        name = str(label)
        if names is not None and y.dtype.kind in "iu":
            if names.ndim != 1 or not 0 <= label < len(names):
                raise ConfigurationError(f"y{suffix} has {label}, which `classes` doesn't name")
            name = str(names[label])
        found.setdefault(name, []).extend(X[y == label])
    return found


def _text(array: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """The array, bytes as text."""
    try:
        return np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array
    except UnicodeDecodeError:
        raise ConfigurationError(f"{name} holds bytes that are no UTF-8") from None


def _views(X: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """X as pictures or feature vectors, one a row."""
    if X.dtype.kind == "f" and X.ndim == 2 and X.shape[1]:
        with np.errstate(over="ignore"):
            rows = X.astype(np.float32)
        if len(bad := np.flatnonzero(~np.isfinite(rows).all(axis=1))):
            raise ConfigurationError(
                f"{name} has {len(bad)} rows with numbers that are not finite, the first is "
                f"row {bad[0]}: leave them out"
            )
        return rows
    if X.dtype == np.uint8 and X.size:
        if X.ndim == 3 or (X.ndim == 4 and X.shape[3] == 3):
            return X
        side = round(X.shape[1] ** 0.5) if X.ndim == 2 else 0
        if side and side * side == X.shape[1]:
            return X.reshape(-1, side, side)
    raise ConfigurationError(
        f"{name} is {X.dtype} of shape {X.shape}; it must be pictures in uint8, (n, H, W), "
        "(n, H, W, 3) or square ones as rows, or feature vectors in floating point, (n, d)"
    )


def _digits(classes: int, views: int) -> Objects:
    """Scikit-learn's 8 x 8 digits, as dark ink on paper."""
    from sklearn.datasets import load_digits

    data = load_digits()
    ink = np.round(data.images * (255 / 16)).astype(np.uint8)
    few = {
        name: _spread(list(ink[data.target == digit]), views)
        for digit, name in enumerate(DIGITS[:classes])
    }
    return _halves({name: [_enlarged(one) for one in found] for name, found in few.items()}, views)


def _enlarged(ink: npt.NDArray[np.uint8]) -> View:
    """A digit as a camera would see it: smooth, with paper around it."""
    from scipy.ndimage import zoom

    paper = (PAPER - np.pad(ink, BORDER)).astype(float)
    smooth = zoom(paper, SIDE / len(paper), order=3, mode="nearest", grid_mode=True)
    picture: View = np.clip(np.round(smooth), 0, 255).astype(np.uint8)
    return picture


def _halves(found: Mapping[str, Sequence[View]], views: int, skipped: int = 0) -> Objects:
    taught, asked = {}, {}
    for name, all_views in found.items():
        if len(all_views) < 2:
            raise ConfigurationError(
                f"'{name}' has too few pictures or vectors, {len(all_views)}: two are needed at "
                "least, one to teach and one to ask"
            )
        some = _spread(all_views, views)
        half = len(some) // 2
        taught[name], asked[name] = some[:half], some[half:]
    return Objects(taught, asked, skipped)


def _spread(views: Sequence[View], most: int) -> list[View]:
    """At most so many, evenly over all."""
    if len(views) <= most:
        return list(views)
    places = np.linspace(0, len(views) - 1, most).round().astype(int).tolist()
    return [views[place] for place in places]


# -------------------------------------------------------------------------------------------------
# Pictures in a folder whose subfolders are the classes.

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp")
LONGEST = 320  # pixels of the longer side; an image network looks at about 224


def read_folder(
    folder: Path, classes: int, views: int
) -> tuple[dict[str, list[npt.NDArray[np.uint8]]], int]:
    """Class name -> at most `views` pictures, (H, W, 3) uint8; and how many files were broken.

    The classes are the first `classes` subfolders that aren't hidden, in alphabetical order. Large
    pictures are made smaller.

    Raises ConfigurationError where there are no subfolders with pictures, and MissingExtraError
    without Pillow.
    """
    found: dict[str, list[npt.NDArray[np.uint8]]] = {}
    skipped = 0
    for subfolder in _subfolders(folder)[:classes]:
        files = picture_files(subfolder)
        # Those left out at first come after the others, in place of broken ones.
        first = sorted(set(np.linspace(0, len(files) - 1, min(views, len(files))).astype(int)))
        order = [*first, *sorted(set(range(len(files))) - set(first))]
        read: dict[int, npt.NDArray[np.uint8]] = {}
        for place in order:
            if len(read) == views:
                break
            picture = read_picture(files[place])
            if picture is None:
                skipped += 1
            else:
                read[place] = picture
        found[subfolder.name] = [read[place] for place in sorted(read)]
    return found, skipped


def _subfolders(folder: Path) -> list[Path]:
    try:
        inside = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
        classes = [path for path in inside if path.is_dir() and picture_files(path)]
    except OSError as error:
        raise ConfigurationError(f"can't read the folder {folder}: {error.strerror}") from None
    if not classes:
        raise ConfigurationError(
            f"{folder} has no subfolder with pictures ({', '.join(SUFFIXES)}); each object's "
            "pictures belong in a folder of their own, which is called as the object"
        )
    return classes


def picture_files(folder: Path) -> list[Path]:
    """A folder's pictures in alphabetical order."""
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)


def read_picture(path: Path, longest: int = LONGEST) -> npt.NDArray[np.uint8] | None:
    """The picture, (H, W, 3) uint8, as a viewer shows it; None if it is broken.

    longest: pixels of its longer side at most. Raises MissingExtraError without Pillow.
    """
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise MissingExtraError("reading pictures needs pillow: pip install pillow") from None
    broken: tuple[Any, ...] = (OSError, ValueError, SyntaxError, Image.DecompressionBombError)
    try:
        with Image.open(path) as picture:
            picture.draft("RGB", (longest, longest))  # a large JPEG is decoded to fewer pixels
            upright = to_rgb(ImageOps.exif_transpose(picture))
            upright.thumbnail((longest, longest))
            return np.asarray(upright)
    except broken:
        return None


def to_rgb(picture: Image.Image) -> Image.Image:
    """Convert a picture of Pillow's to RGB, 16 bits to 8 and what is transparent to white.

    Raises ValueError where its numbers are not within 16 bits.
    """
    from PIL import Image

    if picture.mode.startswith(("I", "F")):  # Pillow's own conversion cuts these off at 255
        values = np.asarray(picture)
        if not (values.min() >= 0 and values.max() < 2**16):
            raise ValueError("its numbers are not those of a picture of 16 bits")
        return Image.fromarray((values.astype(np.int64) >> 8).astype(np.uint8)).convert("RGB")
    if picture.has_transparency_data:
        paper = Image.new("RGBA", picture.size, "white")
        return Image.alpha_composite(paper, picture.convert("RGBA")).convert("RGB")
    return picture.convert("RGB")
