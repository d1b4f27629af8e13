"""Build and check the files of a release: the source distribution, and the wheel made from it.

    python tools/release.py --out dist
    python tools/release.py --out dist --trial

Refuses while the version differs between the files that name it, the newest section of the
changelog is not that version's, or a maintainer's name, address or the repository's URL is still a
placeholder; --trial prints these and builds all the same. The commit is built, not the working
tree, and the same commit gives the same bytes, whose SHA-256 is printed: times are the commit's.
Needs git and the tools of `TOOLS`, installed: they are not fetched while it builds.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = "semiparam_dynamics"
# With others the bytes may be others.
TOOLS = ("build==1.3.0", "setuptools==80.9.0", "twine==6.2.0", "wheel==0.45.1")
# What stands for a person, an address or a place until somebody fills it in.
PLACEHOLDERS = {
    "setup.py": (r"\.example\b", r"\b" + NAME + r" maintainers\b"),
    "package.xml": (r"\.example\b", r"\b" + NAME + r" maintainers\b"),
    "CITATION.cff": (r"\b" + NAME + r" maintainers\b",),
    "README.md": (r"git clone URL\b",),
    "docs/index.md": (r"git clone URL\b",),
}
# Where a version stands beside the package's own.
VERSIONS = {
    "package.xml": r"<version>(.+?)</version>",
    "CITATION.cff": r"(?m)^version: (.+)$",
    "CHANGELOG.rst": r"(?m)^(\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d\)$",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, build, check what was built, and list it; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("dist"), help="folder of the files")
    parser.add_argument("--trial", action="store_true", help="build whatever is missing")
    given = parser.parse_args(arguments)
    problems = list(find_problems(ROOT))
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems and not given.trial:
        print("not released; --trial builds all the same", file=sys.stderr)
        return 1
    given.out.mkdir(parents=True, exist_ok=True)
    if earlier := [path.name for path in given.out.iterdir()]:
        print(f"{given.out} is not empty: {', '.join(earlier)}", file=sys.stderr)
        return 1
    os.umask(0o022)  # files' modes are the wheel's
    python = [sys.executable, "-m"]
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "commit.tar"
        export = ["git", "archive", "-o", str(archive), "HEAD"]
        subprocess.run(export, cwd=ROOT, check=True)
        source = Path(folder) / "source"
        with tarfile.open(archive) as commit:
            commit.extractall(source, filter="data")
        moment = int(max(path.stat().st_mtime for path in source.rglob("*")))  # of the commit
        place = os.environ | {"SOURCE_DATE_EPOCH": str(moment)}
        build = [*python, "build", "--no-isolation", "--outdir", str(given.out.resolve())]
        subprocess.run([*build, str(source)], check=True, env=place, stdout=subprocess.DEVNULL)
    for path in given.out.glob("*.tar.gz"):
        path.write_bytes(without_circumstances(path, moment))
    built = sorted(given.out.iterdir())
    subprocess.run([*python, "twine", "check", "--strict", *map(str, built)], check=True)
    for path in built:
        print(f"\n{path.name}, {path.stat().st_size / 1e6:.2f} MB")
        print(f"  SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()}")
        for folder, (count, size) in contents(path).items():
            print(f"  {count:5d} files {size / 1e6:7.2f} MB  {folder}")
    return 0


def find_problems(root: Path) -> Iterator[str]:
    """A sentence for each reason not to release what is in the folder `root`."""
    found = re.search(r'^__version__ = "(.+)"$', (root / NAME / "__init__.py").read_text(), re.M)
    version = found.group(1) if found else ""
    for name, pattern in VERSIONS.items():
        there = re.search(pattern, (root / name).read_text(encoding="utf-8"))
        if there is None or there.group(1) != version:
            other = there.group(1) if there else "none"
            yield f"{name}: version {other}, where the package's is {version}"
    for name, patterns in PLACEHOLDERS.items():
        lines = (root / name).read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            if any(re.search(pattern, line) for pattern in patterns):
                yield f"{name}:{number}: a placeholder: {line.strip()}"


def without_circumstances(path: Path, moment: int) -> bytes:
    """A source distribution without the time of its making (s) and who made it."""
    plain = io.BytesIO()
    with tarfile.open(path) as given, tarfile.open(fileobj=plain, mode="w") as made:
        for member in sorted(given.getmembers(), key=lambda one: one.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = moment, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            made.addfile(member, given.extractfile(member) if member.isfile() else None)
    return gzip.compress(plain.getvalue(), mtime=moment)


def contents(path: Path) -> dict[str, tuple[int, int]]:
    """Files and bytes of each top folder of a distribution."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            files = [(entry.filename, entry.file_size) for entry in wheel.infolist()]
    else:
        with tarfile.open(path) as archive:
            members = (member for member in archive.getmembers() if member.isfile())
            files = [(member.name.partition("/")[2], member.size) for member in members]
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for name, size in files:
        folder = name.partition("/")[0] + "/" if "/" in name else "(top)"
        counts[folder] += 1
        sizes[folder] += size
    return {folder: (counts[folder], sizes[folder]) for folder in sorted(counts)}


if __name__ == "__main__":
    sys.exit(main())
