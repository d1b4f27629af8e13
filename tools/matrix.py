"""Install the package from nothing in each environment that it names, test it there, print a table.

    python tools/matrix.py --out OUT
    python tools/matrix.py --out OUT --pythons 3.12 --ros none jazzy --tests test/learning

A cell is a version of Python and a ROS 2: none, or the wheels of Kilted or Jazzy. A fourth,
`oldest`, has no ROS 2, and of each dependency the oldest version that setup.py allows and that has
a wheel for this Python, as uv finds it (uv comes from PyPI, into an environment of its own). Each
gets a virtual environment of its own below OUT, the wheel that is built here of the committed files
with its dependencies, `pip check`, `semiparam --version`, and tests of what is installed, which lie
in a clone without the sources: what looks at those, such as test_package.py, has no place here.
Interpreters are `pythonX.Y` on the PATH or pyenv's. Each cell's output is kept in OUT/CELL.log.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
EXTRAS = {"none": (), "oldest": (), "kilted": ("ros",), "jazzy": ("ros-jazzy",)}
# Beside the extra `offline`; without a simulator and an image network, whose wheels are not for
# every Python.
TOOLS = ("pytest>=7.4", "pytest-xdist>=3", "hypothesis>=6", "array-api-strict>=2")
QUICK = (
    "test/robot test/learning/recursion test/dynamics test/samples test/learning/test_contract.py "
    "test/learning/test_krls.py test/offline/cli/test_main.py test/nodes/test_inverse_dynamics.py "
    "test/nodes/test_managed.py test/nodes/test_parameters.py "
    "test/nodes/test_object_recognition.py"
)
# Pinocchio's wheels need numpy 2.2, and what was built for numpy 1 does not load beside it. What
# setup.py allows below is for distributions, whose Pinocchio is built for their own numpy.
WITH_WHEELS = ("numpy>=2.2", "numba>=0.61", "scipy>=1.14", "matplotlib>=3.9")
# What others have not published is no fault of the package; pip's words.
NO_WHEEL = r"No matching distribution found for (\S+)"
HEADER = ("Python", "ROS 2", "install, s", "MB", "pip check", "tests", "minutes")


@dataclass
class Cell:
    """An environment, and what came of it."""

    python: str
    ros: str
    seconds: float = 0.0
    megabytes: float = 0.0
    check: str = ""
    tests: str = ""
    minutes: float = 0.0
    failed: bool = False

    @property
    def name(self) -> str:
        """Of its folder and its log."""
        return f"python{self.python}-{self.ros}"

    def row(self) -> tuple[str, ...]:
        """Of the table."""
        if not self.check:
            return (self.python, self.ros, "", "", "", self.tests, "")
        seconds, size = f"{self.seconds:.0f}", f"{self.megabytes:.0f}"
        return (self.python, self.ros, seconds, size, self.check, self.tests, f"{self.minutes:.1f}")


def interpreter(version: str) -> str | None:
    """Path of a Python of the version, None where there is none."""
    installed = Path.home().glob(f".pyenv/versions/{version}.*/bin/python")
    found = sorted(installed, key=lambda path: [int(n) for n in re.findall(r"\d+", str(path))])
    names = [str(found[-1])] if found else []
    names += [path] if (path := shutil.which(f"python{version}")) else []
    for name in names:
        has = [name, "-c", "import ensurepip, venv"]  # Debian's has the first in another package
        asked = subprocess.run(has, capture_output=True, check=False)
        if asked.returncode == 0:
            return name
    return None


def build_wheel(clone: Path, out: Path) -> Path:
    """The wheel of the clone. Raises CalledProcessError."""
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(out), str(clone)]
    subprocess.run(command, check=True)
    return max(out.glob("semiparam_dynamics-*.whl"), key=lambda path: path.stat().st_mtime)


def requirements(wheel: Path, extra: str) -> list[str]:
    """The requirements of the wheel with one of its extras."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = archive.read(name).decode().splitlines()
    required = []
    for line in lines:
        if line.startswith("Requires-Dist: "):
            what = line.removeprefix("Requires-Dist: ")
            what = re.sub(rf'(;| and) *extra == "{extra}"', "", what)
            if "extra ==" not in what:
                required.append(what)
    return required


def uv(out: Path) -> str:
    """Path of uv, from PyPI into an environment of its own. Raises CalledProcessError."""
    home = out / "uv"
    if not home.exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "-q", "uv"]
        subprocess.run(pip, check=True)
    return str(home / "bin" / "uv")


def oldest(wheel: Path, python: str, out: Path) -> Path:
    """The oldest versions with wheels for a Python that the wheel's requirements allow.

    Returns a file of pip's constraints. The tests' tools are not among them. Raises
    CalledProcessError.
    """
    asked, found = out / "required.txt", out / f"oldest-python{python}.txt"
    asked.write_text("\n".join([*requirements(wheel, "offline"), *WITH_WHEELS]) + "\n")
    command = [uv(out), "pip", "compile", "-q", "--only-binary=:all:"]
    command += ["--resolution=lowest-direct", f"--python-version={python}", "-o", str(found)]
    subprocess.run([*command, str(asked)], check=True, stdout=subprocess.DEVNULL)
    return found


class Trial:
    """Makes one cell and writes its log."""

    def __init__(self, cell: Cell, out: Path, clone: Path, nice: int = 0) -> None:
        self.cell = cell
        self._nice = nice
        self._clone = clone
        self._folder = out / cell.name
        self._log = out / f"{cell.name}.log"
        self._log.write_text("")
        # Nothing of the environment that runs this script.
        kept = ("PATH", "HOME", "LANG", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "SEMIPARAM_DATA")
        kept += ("UV_DEFAULT_INDEX", "SSL_CERT_FILE")  # uv does not read pip's configuration
        self._environment = {name: os.environ[name] for name in kept if name in os.environ}
        self._environment["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"

    def run(self, *command: str) -> tuple[int, str]:
        """Exit code and output of a command of the environment."""
        path = str(self._folder / "bin" / command[0])
        done = subprocess.run(
            [path if Path(path).exists() else command[0], *command[1:]],
            cwd=self._clone,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        with self._log.open("a") as log:
            log.write(f"$ {' '.join(command)}\n{done.stdout}\n")
        return done.returncode, done.stdout

    def make(self, wheel: Path, tests: str, constraints: Path | None) -> None:
        """Install and test; what comes of it stands in the cell."""
        cell = self.cell
        python = interpreter(cell.python)
        if python is None:
            cell.tests = "no such Python here"
            return
        shutil.rmtree(self._folder, ignore_errors=True)
        subprocess.run([python, "-m", "venv", str(self._folder)], check=True)
        extras = f"[{','.join(EXTRAS[cell.ros])}]" if EXTRAS[cell.ros] else ""
        # Old versions without a wheel would be compiled. (empy, of ROS 2's, has none.)
        limits = [] if constraints is None else ["--only-binary=:all:", "-c", str(constraints)]
        begin = time.perf_counter()
        path = str(self._folder / "bin" / "python")
        install = ("python", "-m", "pip", "install", *limits)
        code, said = self.run(*install, f"{wheel}{extras}")
        cell.seconds = time.perf_counter() - begin
        if code:
            missing = re.search(NO_WHEEL, said)
            what = f"no wheel of {missing[1]}" if missing else "not installed"
            cell.tests = f"{what}, {datetime.date.today()}"
            cell.failed = missing is None
            return
        cell.megabytes = sum(f.stat().st_size for f in _files(self._folder)) / 1e6
        code, said = self.run("python", "-m", "pip", "check")
        cell.check = "clean" if code == 0 else said.strip().splitlines()[0]
        cell.failed = code != 0
        code, said = self.run("semiparam", "--version")
        if code:
            cell.check, cell.failed = "semiparam does not start", True
        code, said = self.run(*install, f"{wheel}[offline]", *TOOLS)
        if code:
            cell.tests, cell.failed = "the tests' tools are not installed", True
            return
        begin = time.perf_counter()
        workers = ["-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider"]
        chosen = tests.split()
        if not EXTRAS[cell.ros]:
            workers.append("--ignore-glob=*/test/nodes/*")
            chosen = [path for path in chosen if not path.startswith("test/nodes")]
        nicely = ["nice", "-n", str(self._nice)] if self._nice else []
        code, said = self.run(*nicely, path, "-m", "pytest", "-q", *workers, *chosen)
        cell.failed |= code != 0  # also where no test could be collected
        cell.minutes = (time.perf_counter() - begin) / 60.0
        last = [line for line in said.splitlines() if re.search(r"\d+ (passed|failed|error)", line)]
        cell.tests = re.sub(r" in [\d.]+s.*", "", last[-1].strip("= ")) if last else "not run"


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def table(cells: Sequence[Cell]) -> str:
    """Markdown."""
    rows = [HEADER, ("---",) * len(HEADER), *(cell.row() for cell in cells)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def main() -> int:
    """Make the cells that are asked for; returns 1 where one failed, but for a missing wheel."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of environments and logs")
    parser.add_argument("--pythons", nargs="+", default=PYTHONS, metavar="X.Y")
    parser.add_argument("--ros", nargs="+", default=list(EXTRAS), choices=EXTRAS)
    parser.add_argument("--tests", default=QUICK, help="paths (default: some of each part)")
    parser.add_argument("--nice", type=int, default=0, help="of the tests, on a shared machine")
    parser.add_argument("--keep", action="store_true", help="keep each environment")
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    clone = out / "clone"
    shutil.rmtree(clone, ignore_errors=True)
    git = shutil.which("git") or "git"
    subprocess.run([git, "clone", "-q", str(ROOT), str(clone)], check=True)
    wheel = build_wheel(clone, out)
    # The tests are to meet what is installed, not the sources beside them.
    shutil.move(clone / "semiparam_dynamics", clone / "sources")
    cells = []
    for python in arguments.pythons:
        for ros in arguments.ros:
            cells.append(Cell(python, ros))
            trial = Trial(cells[-1], out, clone, arguments.nice)
            constraints = oldest(wheel, python, out) if ros == "oldest" else None
            trial.make(wheel, arguments.tests, constraints)
            print("| " + " | ".join(cells[-1].row()) + " |", flush=True)
            if not arguments.keep:
                shutil.rmtree(out / cells[-1].name, ignore_errors=True)
    print(f"\n{table(cells)}")
    return int(any(cell.failed for cell in cells))


if __name__ == "__main__":
    sys.exit(main())
