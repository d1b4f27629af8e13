"""The page as a browser sees it, without a network."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from semiparam_dynamics.evaluation.appearance import LOOKS

NAMES = ("chromium", "chromium-browser", "google-chrome")


def browse(page: Path, profile: Path, *options: str) -> subprocess.CompletedProcess[str]:
    browser = next((found for name in NAMES if (found := shutil.which(name))), None)
    if browser is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
    command = [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        "--enable-logging=stderr",
        f"--user-data-dir={profile}",
        *options,
        page.as_uri(),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)


@pytest.fixture
def page(effort_results: Path) -> Path:
    return effort_results / "report.html"


def test_page_loads_without_a_complaint(page: Path, tmp_path: Path) -> None:
    seen = browse(page, tmp_path, "--dump-dom")
    assert "CONSOLE" not in seen.stderr, seen.stderr
    assert seen.stdout.count("<section") == 7
    assert "<script" not in seen.stdout


def test_console_would_tell(page: Path, tmp_path: Path) -> None:
    worse = tmp_path / "worse.html"
    text = page.read_text(encoding="utf-8")
    worse.write_text(text.replace("</body>", '<img src="http://outside.example/a.png"></body>'))
    assert "CONSOLE" in browse(worse, tmp_path / "profile", "--dump-dom").stderr


def test_page_is_drawn_in_the_models_colours(page: Path, tmp_path: Path) -> None:
    shot = tmp_path / "shot.png"
    browse(page, tmp_path / "profile", f"--screenshot={shot}", "--window-size=1100,2500")
    image = imread(shot)[..., :3]
    for model in ("rigid_body", "nonparametric", "semiparametric"):
        near = np.abs(image - np.array(to_rgb(LOOKS[model].color))).max(axis=2) < 0.02
        assert near.sum() > 50, model
