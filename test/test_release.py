"""What is refused to be released."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest
import setuptools

ROOT = Path(__file__).resolve().parent.parent
RELEASE: dict[str, Any] = runpy.run_path(str(ROOT / "tools" / "release.py"))
FILES = {*RELEASE["PLACEHOLDERS"], *RELEASE["VERSIONS"], "semiparam_dynamics/__init__.py"}


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    """A copy of the files that are looked at, with all placeholders filled in."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
        text = (tmp_path / name).read_text(encoding="utf-8")
        for before, after in (
            ("semiparam_dynamics maintainers", "Ada Lovelace"),
            ("maintainers@semiparam-dynamics.example", "ada@lovelace.org"),
            ("git clone URL", "git clone https://forge.org/semiparam_dynamics"),
        ):
            text = text.replace(before, after)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def problems(folder: Path) -> list[str]:
    return list(RELEASE["find_problems"](folder))


def test_what_is_filled_in_may_be_released(ready: Path) -> None:
    assert problems(ready) == []


def test_placeholders_are_refused() -> None:
    found = problems(ROOT)
    assert not [line for line in found if "version" in line]
    if found:  # until the repository has its maintainers
        named = {line.partition(":")[0] for line in found}
        assert named <= set(RELEASE["PLACEHOLDERS"])
        assert RELEASE["main"](["--out", "never_made"]) == 1
        assert not Path("never_made").exists()


@pytest.mark.parametrize("name", RELEASE["VERSIONS"])
def test_another_version_is_refused(ready: Path, name: str) -> None:
    text = (ready / name).read_text(encoding="utf-8")
    (ready / name).write_text(text.replace("0.1.0", "0.0.9"), encoding="utf-8")
    (problem,) = problems(ready)
    assert problem.startswith(f"{name}: version 0.0.9, where the package's is ")


def test_contents_are_counted_by_folder(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("12345")
    path = tmp_path / "some-1.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in ("some-1/a.txt", "some-1/docs/b.md", "some-1/docs/c.md"):
            archive.add(tmp_path / "a.txt", name)
    assert RELEASE["contents"](path) == {"(top)": (1, 5), "docs/": (2, 10)}


def test_a_source_distribution_does_not_tell_when_and_by_whom_it_was_made(tmp_path: Path) -> None:
    made = []
    for moment, mode, names in ((1.0, 0o600, "ab"), (2e9, 0o664, "ba")):
        path = tmp_path / "some-1.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            for name in names:
                (tmp_path / name).write_text(name)
                (tmp_path / name).chmod(mode)
                os.utime(tmp_path / name, (moment, moment))
                archive.add(tmp_path / name, f"some-1/{name}")
        made.append(RELEASE["without_circumstances"](path, 7))
    assert made[0] == made[1]
    path.write_bytes(made[0])
    assert RELEASE["contents"](path) == {"(top)": (2, 2)}


def test_links_lead_from_another_site_to_the_files_of_the_version(
    ready: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(setuptools, "setup", given.update)
    monkeypatch.chdir(ROOT)  # the data files are listed from there
    runpy.run_path(str(ROOT / "setup.py"))
    assert given["long_description"] == (ROOT / "README.md").read_text(encoding="utf-8")
    runpy.run_path(str(ready / "setup.py"))
    place = "https://forge.org/semiparam_dynamics"
    text = given["long_description"]
    assert given["url"] == place
    assert f"]({place}/blob/{given['version']}/docs/install.md)" in text
    assert f"({place}/raw/{given['version']}/docs/benchmark.png)" in text
    links = re.findall(r"\]\((.+?)\)", text)
    assert len(links) > 10 and all(link.startswith("https://") for link in links)
    for link in links:
        if link.startswith(place):
            file = re.sub(rf"{place}/(blob|raw)/{given['version']}/|#.*", "", link)
            assert (ROOT / file).exists()
