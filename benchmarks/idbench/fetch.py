"""Logs and URDFs of real arms from their public sources, as the entries of arms.yaml say.

    python benchmarks/idbench/fetch.py DATA [--arms ARM ...] [--from FOLDER]

Makes DATA/robots/ARM/ with the arm's URDF and logs, in formats that `semiparam convert` reads: an
npz file has `t` or `dt`, `q`, `tau` or `wrench`, and where logged `dq` and `names`. An arm's files
are all written, or none. Without --from, GitHub and PyPI are asked.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import http.client
import io
import sqlite3
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rosbags.typesys import Stores, get_typestore
from scipy.spatial.transform import Rotation

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import BagError, SampleError, SemiparamError
from semiparam_dynamics.base.output_files import write_files

ARMS = Path(__file__).with_name("arms.yaml")
RAW = "https://raw.githubusercontent.com"
MEDIA = "https://media.githubusercontent.com/media"  # files of which Git has a pointer of Git LFS
POINTER = b"version https://git-lfs.github.com/spec/"
TIMEOUT = 60.0  # s without an answer


def main(argv: Sequence[str] | None = None) -> None:
    arms: dict[str, Any] = yaml.safe_load(ARMS.read_text(encoding="utf-8"))
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("data", type=Path, metavar="DATA", help="the folder that gets robots/ARM/")
    parser.add_argument("--arms", nargs="+", choices=list(arms), metavar="ARM", default=list(arms))
    about = "clones or checkouts, FOLDER/OWNER+NAME or FOLDER/NAME, instead of GitHub; and wheels"
    parser.add_argument("--from", dest="folder", type=Path, metavar="FOLDER", help=about)
    args = parser.parse_args(argv)
    try:
        for arm in args.arms:
            fetch(arms[arm], args.data / "robots" / arm, args.folder)
    except SemiparamError as error:
        sys.exit(f"{arm}: {error}")


def fetch(arm: Mapping[str, Any], into: Path, folder: Path | None) -> None:
    """Make an arm's files. Raises BagError, SampleError or StorageError, and then writes none."""
    made, said = {}, []
    for name, recipe in arm["recipe"].items():
        source = functools.partial(read, arm["source"] | recipe, folder)
        if "arrays" in recipe:
            arrays = log(recipe, source)
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **arrays)
            content = buffer.getvalue()
            said.append(f"{into / name}: " + ", ".join(f"{k} {v.shape}" for k, v in arrays.items()))
        else:
            content = recipe["text"].encode() if "text" in recipe else source(recipe["copy"])
            said.append(f"{into / name}: {len(content)} bytes")
        made[into / name] = content
    there = [path for path in made if path.is_file() and path.read_bytes() == made[path]]
    write_files({path: content for path, content in made.items() if path not in there})
    print(*said, sep="\n", flush=True)


def log(recipe: Mapping[str, Any], source: Callable[[str], bytes]) -> dict[str, Array]:
    """A log's arrays as its recipe says. Raises BagError or SampleError."""
    arrays: dict[str, Array] = {}
    for name, spec in recipe["arrays"].items():
        if isinstance(spec, Mapping):
            path = spec.get("file", recipe.get("file"))
            values = converted(table(source(path), path, spec), path, spec)
            stamps = values[:, 0] - values[0, 0]
            arrays[name] = stamps if name == "t" else values.astype(recipe.get("dtype", float))
        else:
            arrays[name] = np.array(spec)
    if "t" in arrays and arrays["t"].ndim == 0:  # a sampling period
        arrays["t"] = np.arange(len(arrays["q"])) * arrays["t"]
    return arrays


def table(content: bytes, path: str, spec: Mapping[str, Any]) -> Array:
    """(rows, columns) of an array in an npz file, or of text with blanks or commas between."""
    try:
        if path.endswith(".db3"):
            values = trajectory(content, spec["array"])
        elif path.endswith(".npz"):
            with np.load(io.BytesIO(content)) as file:
                values = file[spec["array"]]
        else:
            text = io.StringIO(content.decode().replace(",", " "))
            values = np.loadtxt(text, skiprows=spec.get("skip", 0), ndmin=2)
        width = spec.get("one_per_line", values[0].size)
        return np.asarray(values).reshape(-1, width)
    except (ValueError, KeyError, IndexError, zipfile.BadZipFile) as error:
        raise SampleError(f"{path} is no table as its recipe says: {error}") from error


def trajectory(content: bytes, name: str) -> Array:
    """A field of the points of the JointTrajectory that is a bag's only message; times in s."""
    with tempfile.TemporaryDirectory() as place:
        (file := Path(place) / "bag.db3").write_bytes(content)
        with contextlib.closing(sqlite3.connect(file)) as bag:
            (raw,) = bag.execute("SELECT data FROM messages").fetchone()
    store = get_typestore(Stores.ROS2_HUMBLE)
    message: Any = store.deserialize_cdr(raw, "trajectory_msgs/msg/JointTrajectory")
    values = [getattr(point, name) for point in message.points]
    if name == "time_from_start":
        values = [time.sec + 1e-9 * time.nanosec for time in values]
    return np.array(values)


def converted(values: Array, path: str, spec: Mapping[str, Any]) -> Array:
    """The rows and columns that a recipe names, in joint coordinates and SI units."""
    first, past = spec.get("columns", (0, values.shape[1]))
    if past > values.shape[1]:
        raise SampleError(f"{path} has {values.shape[1]} columns; its recipe names {past}")
    values = values[:: spec.get("every", 1), first:past]
    if "over" in spec:  # positions of motors: gears times those of joints
        values = np.linalg.solve(_product(spec["over"]), values.T).T
    if "times" in spec:  # efforts of joints: the transposed gears times those of motors
        values = values @ _product(spec["times"])
    if "plus" in spec:
        values = values + sum(np.array(term) for term in spec["plus"].values())
    return _pose(values) if spec.get("pose") else values


def _product(factors: Mapping[str, Any]) -> Array:
    """The product of matrices, of which a list is the diagonal."""
    arrays = [np.array(factor) for factor in factors.values()]
    matrices = [np.diag(array) if array.ndim == 1 else array for array in arrays]
    return np.asarray(functools.reduce(np.matmul, matrices))


def _pose(values: Array) -> Array:
    """(n, 6) a sensor's x, y, z and its angles about z, y, x.

    values: (n, 10), position in the sensor's own frame, three columns that are not used, and the
        quaternion w, x, y, z that turns the base's frame into the sensor's.
    """
    turned = Rotation.from_quat(values[:, [7, 8, 9, 6]]).inv()
    return np.column_stack([turned.apply(values[:, :3]), turned.as_euler("ZYX")])


def read(source: Mapping[str, Any], folder: Path | None, path: str) -> bytes:
    """A file of a source: of a repository's commit, or of a package on PyPI. Raises BagError."""
    if "package" in source:
        wheel = _wheel(source["package"], folder)
        if path not in wheel.namelist():
            raise BagError(f"{source['package']} has no file {path}")
        return wheel.read(path)
    repository, commit = source["repository"], source["commit"]
    if folder is not None:
        content = _local(folder, repository, commit, path)
    else:
        content = _download(f"{RAW}/{repository}/{commit}/", path)
        if content.startswith(POINTER):
            content = _download(f"{MEDIA}/{repository}/{commit}/", path)
    if content.startswith(POINTER):
        kept = f"{path} of {repository} is a pointer of Git LFS, not the file itself"
        raise BagError(f"{kept}: run `git lfs pull` in a clone, or leave out --from")
    return content


def _local(folder: Path, repository: str, commit: str, path: str) -> bytes:
    for clone in (folder / repository.replace("/", "+"), folder / repository.split("/")[1]):
        if (clone / ".git").exists() or (clone / "HEAD").exists():
            # As it would be checked out: Git LFS, where it is installed, puts the file in.
            asked = ["git", "-C", str(clone), "cat-file", "--filters", f"{commit}:{path}"]
            found = subprocess.run(asked, capture_output=True, check=False)
            if found.returncode == 0:
                return found.stdout
        elif (clone / path).is_file():
            return (clone / path).read_bytes()
        if clone.is_dir():
            raise BagError(f"{clone} has no file {path}, or not of commit {commit}: fetch that")
    raise BagError(f"{folder} has no clone of {repository}: github.com/{repository} has it")


def _download(base: str, path: str) -> bytes:
    try:
        opened = urllib.request.build_opener().open(base + urllib.parse.quote(path), None, TIMEOUT)
        with opened as answer:
            return bytes(answer.read())
    except (OSError, http.client.HTTPException) as error:
        raise BagError(f"{base}{path} can't be downloaded: {error}") from error


@functools.cache
def _wheel(package: str, folder: Path | None) -> zipfile.ZipFile:
    """A package's wheel, which is not installed. Raises BagError."""
    pattern = f"{package.replace('-', '_').replace('==', '-')}-*.whl"
    with tempfile.TemporaryDirectory() as place:
        found = sorted(folder.glob(pattern)) if folder is not None else []
        if not found:
            asked = [sys.executable, "-m", "pip", "download", "--no-deps", "-d", place, package]
            answer = subprocess.run(asked, capture_output=True, text=True, check=False)
            found = sorted(Path(place).glob(pattern))
        if not found:
            raise BagError(f"{package} can't be downloaded: {answer.stderr.strip()}")
        return zipfile.ZipFile(io.BytesIO(found[0].read_bytes()))


if __name__ == "__main__":
    main()
