"""The page as a browser shows it: wide and narrow, without a network, nothing missing or cut."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from semiparam_dynamics.base.parameters import from_flat
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.curves import LOOKS, MEASURED
from semiparam_dynamics.offline.evaluation.experiment import evaluate
from semiparam_dynamics.offline.evaluation.report import write_results

from ...browser import Browser
from ...dynamics.arms import FEW_CENTERS, measurements, small_arm

WIDTHS = (1280, 390)
HEADINGS = {
    "summary": "Inverse dynamics, learned and judged",
    "errors": "Error over time",
    "scores": "Scores",
    "predictions": "Predicted and measured",
    "calibration": "Residuals and predicted standard deviation",
    "parameters": "Identified parameters",
    "run": "The run",
}
# What each section's pictures show; one may hide another in a single picture.
DRAWN = {
    "summary": {"semiparametric", "measured"},
    "errors": {"rigid_body", "nonparametric", "semiparametric"},
    "predictions": {"semiparametric", "measured"},
    "calibration": {"rigid_body", "semiparametric"},
}
COLORS = {name: to_rgb(look.color) for name, look in {**LOOKS, "measured": MEASURED}.items()}
PICTURES = """[...document.querySelectorAll('svg[role=img]')].map(svg => {
    const box = svg.getBoundingClientRect();
    return [svg.getAttribute('aria-label'), svg.closest('section').id,
            box.x, box.y + scrollY, box.width, box.height]})"""
TOO_WIDE = """[...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll') &&
    e.getBoundingClientRect().right > innerWidth + 0.5).map(e => e.outerHTML.slice(0, 100))"""
CUT_OFF = """[...document.querySelectorAll('svg[role=img] text')].filter(text => {
    const t = text.getBoundingClientRect(), s = text.closest('svg').getBoundingClientRect();
    return t.left < s.left - 1 || t.right > s.right + 1 || t.top < s.top - 1 ||
        t.bottom > s.bottom + 1}).map(text => text.textContent)"""
TEXTS = """['h1', '.headline', '.note', 'td', 'td small', 'thead th', 'li', 'svg text'].map(
    s => [...document.querySelectorAll(s)].find(e => e.textContent.trim())).filter(e => e).map(
    e => e.getBoundingClientRect()).map(b => [b.x, b.y + scrollY, b.width, b.height])"""
LINES = """Math.max(...[...document.querySelectorAll('td, th')].map(
    e => e.clientHeight / parseFloat(getComputedStyle(e).lineHeight)))"""


@pytest.fixture(scope="session")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half of the tested motion was learned before, so that the report warns of it."""
    model = small_arm()
    train = list(measurements(model, 6.0, extra=1.0))
    test = list(measurements(model, 4.0, extra=1.0))
    other = measurements(model, 4.0, extra=1.0, seed=1)
    test += [replace(m, stamp=m.stamp + 10_000_000_000) for m in other]
    folder = tmp_path_factory.mktemp("repeated")
    config = from_flat(
        InverseDynamicsConfig, {"nystrom.window": 1.0, "filter.cutoff": 6.0} | FEW_CENTERS
    )
    write_results(evaluate(model, config, [test], [train]), folder)
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(params=["effort_results", "wrench_results", "repeated"])
def page(request: pytest.FixtureRequest) -> Path:
    return Path(request.getfixturevalue(request.param)) / "report.html"


def is_drawn(image: np.ndarray, name: str) -> bool:
    """Whether something in a model's colour goes on through the picture."""
    distance = np.abs(image - np.array(COLORS[name])).max(axis=2)
    return bool((distance < 0.15).any(axis=0).sum() > 15)


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_missing_cut_or_too_wide(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, width)
    assert browser.complaints == []
    assert browser.requests == [page.as_uri()]
    assert browser.evaluate("innerWidth") == width
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate(TOO_WIDE) == []
    assert browser.evaluate(CUT_OFF) == []
    words = browser.evaluate("document.body.innerText").split()
    assert len(words) <= 700
    decides = browser.evaluate(
        "[...document.querySelectorAll('#summary td')].map(e => e.getBoundingClientRect().right)"
    )
    assert max(decides) <= width
    unfolded = "[...document.querySelectorAll('svg[role=img]')].filter(e => !e.closest('details'))"
    assert set(browser.evaluate(f"{unfolded}.map(e => e.closest('section').id)")) == {"summary"}
    assert browser.evaluate("document.querySelectorAll('details[open]').length") == 0
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate(TOO_WIDE) == [] and browser.evaluate(CUT_OFF) == []
    # A column squeezed to a letter's width makes a cell of dozens of lines.
    assert browser.evaluate(LINES) < 15.0
    headings = browser.evaluate(
        "[...document.querySelectorAll('section')].map(s => [s.id, "
        "s.querySelector('h1, h2').innerText])"
    )
    assert dict(headings) == HEADINGS
    found: dict[str, set[str]] = {section: set() for section in DRAWN}
    for label, section, *box in browser.evaluate(PICTURES):
        assert min(box[2:]) > 100.0, label
        image = browser.picture(*box)
        drawn = {name for name in DRAWN[section] if is_drawn(image, name)}
        assert drawn, label
        found[section] |= drawn
    assert found == DRAWN


def test_the_guide_explains_the_same_sections_in_order(repository: Path) -> None:
    text = (repository / "docs" / "report.md").read_text(encoding="utf-8")
    told = re.findall("^## (.*)$", text, re.MULTILINE)
    assert told[1:] == list(HEADINGS.values())[1:]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_the_light_and_in_the_dark(browser, repeated, scheme) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.call("Emulation.setEmulatedMedia", features=features)
    browser.open(repeated / "report.html", 390)
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    for box in browser.evaluate(TEXTS):
        luminance = browser.picture(*box) ** 2.2 @ [0.2126, 0.7152, 0.0722] + 0.05
        assert luminance.max() / luminance.min() >= 4.5
        assert (np.median(luminance) > 0.5) == (scheme == "light")
    browser.call("Emulation.setEmulatedMedia", features=[])
