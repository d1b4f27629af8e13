"""Tuning as a whole, on a small arm with an effect that its rigid body does not have."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.base.parameters import replace, to_flat
from semiparam_dynamics.dynamics.sample import Motion
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.tuning import tuner
from semiparam_dynamics.offline.tuning.candidates import Tuning
from semiparam_dynamics.offline.tuning.choices import PENALTIES, nmse
from semiparam_dynamics.offline.tuning.folds import Split, prepare
from semiparam_dynamics.offline.tuning.forecast import Forecast, Stage, forecast
from semiparam_dynamics.offline.tuning.page import (
    DELAYED,
    FROZEN,
    findings,
    headline,
    text,
    tuning_page,
)
from semiparam_dynamics.offline.tuning.tuner import _samples, tune
from semiparam_dynamics.offline.tuning.work import Journal, Work

from ...dynamics.arms import URDF, small_arm
from ..evaluation.browser import Browser
from ..evaluation.test_report_in_browser import CUT_OFF, PICTURES
from ..evaluation.test_report_in_browser import TOO_WIDE as WIDER_THAN_THE_PAGE
from .recorded import CONFIG, motions, recordings

QUICK = ["residual", "nystrom.novelty", "nystrom.max_centers", "nystrom.joint_max_centers"]
TOO_NARROW = replace(
    CONFIG,
    **{
        "nystrom.length_scale": 0.05,
        "nystrom.penalty": 100.0,
        "nystrom.max_centers": 150,
        "nystrom.joint_max_centers": 50,
    },
)


def tuned(
    journal: Path | None,
    config: InverseDynamicsConfig = TOO_NARROW,
    keep: list[str] = QUICK,
    stage: Stage = lambda title, left: lambda share: None,
) -> Tuning:
    found = recordings(2, 10.0, config, same=True)
    identity = {"bags": found.fingerprint()}
    return tune(found, URDF, Work(Journal(journal, identity)), keep=keep, stage=stage)


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tuning") / "tuned.journal"


@pytest.fixture(scope="module")
def result(journal: Path) -> Tuning:
    return tuned(journal)


def test_a_poor_configuration_is_bettered_and_the_learner_itself_confirms_it(
    result: Tuning,
) -> None:
    before, after = result.confirmed["configured"], result.confirmed["tuned"]
    assert after.delayed < 0.8 * before.delayed
    assert after.delayed < 0.7 and after.frozen < 1.0
    assert result.screened["tuned"].harm == 0.0
    assert result.changes["nystrom.length_scale"][1] > 0.05  # type: ignore[operator]
    assert not set(QUICK) & set(result.changes)
    assert all(name.split(".")[0] in ("filter", "rigid_body", "nystrom") for name in result.changes)


def test_random_features_are_tuned_too() -> None:
    wrong = {"random_fourier.length_scale": 30.0, "random_fourier.penalty": 60.0}
    others = {"residual": "random_fourier", "rigid_body.penalty": 0.01}
    config = replace(CONFIG, **others, **wrong)
    keep = ["filter", "rigid_body", "residual", "random_fourier.n_features"]
    result = tuned(None, config, keep)
    assert result.changes.keys() == wrong.keys()
    before, after = result.confirmed["configured"], result.confirmed["tuned"]
    assert after.delayed < 0.1 * before.delayed and after.frozen < 0.1 * before.frozen
    assert result.screened["tuned"].delayed == pytest.approx(after.delayed, abs=0.03)


def test_what_the_learner_itself_is_no_better_with_is_taken_back(
    result: Tuning, journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not result.refused
    monkeypatch.setattr(tuner, "_earned", lambda tuning: False)
    path = tmp_path / "tuned.journal"
    path.write_text(journal.read_text())
    plain = tuned(path)
    names = {name for name in result.changes if name.startswith("nystrom.")}
    assert plain.refused.keys() == names
    assert plain.changes.keys() == result.changes.keys() - names
    assert plain.screened["tuned"] is plain.screened["configured"]
    told = text(plain)
    assert "nystrom.length_scale" in told and "the residual stays as it was" in told
    assert "Where the robot had not been" not in told


def test_a_residual_that_is_no_gain_is_not_praised(result: Tuning) -> None:
    assert "tuned learner made" in headline(result)
    after = result.confirmed["tuned"]
    motions = [dataclasses.replace(s, delayed=1.5 * s.rigid_delayed) for s in after.motions]
    worse = {**result.confirmed, "tuned": dataclasses.replace(after, scores=tuple(motions))}
    assert "better than the rigid body alone (1.50 times its error" in headline(
        dataclasses.replace(result, confirmed=worse)
    )


def test_only_the_thirds_of_a_single_recording_are_called_that(result: Tuning) -> None:
    for name, told in (("part 1 of a shift", False), ("part 1 of 3", True)):
        splits = [dataclasses.replace(split, name=name) for split in result.splits]
        renamed = dataclasses.replace(result, splits=splits)
        assert any("There was one recording" in one for one in findings(renamed)) == told


def test_the_end_of_what_was_tried_is_told_with_what_to_do(result: Tuning) -> None:
    name = "rigid_body.penalty"
    assert name not in result.extremes
    largest = replace(result.config, **{name: max(PENALTIES)})
    tuning = dataclasses.replace(result, config=largest)
    [told] = [one for one in findings(tuning) if one.startswith(name)]
    assert told.startswith(f"{name} 10 is the largest value that was tried: a larger one")
    assert f"--set {name}=VALUE" in told


def test_screening_says_nearly_what_the_learner_says(result: Tuning) -> None:
    for name in ("configured", "tuned"):
        screened, confirmed = result.screened[name], result.confirmed[name]
        assert screened.delayed == pytest.approx(confirmed.delayed, rel=0.15, abs=0.03)
        assert screened.frozen == pytest.approx(confirmed.frozen, rel=0.15, abs=0.03)


@pytest.mark.parametrize("effort", [0.0, 0.37])
def test_a_joint_whose_effort_never_varies_has_no_error_and_no_part_in_the_ratios(
    effort: float,
) -> None:
    """A finger that nobody measures, or a joint with its brake on."""
    train, held = (
        dataclasses.replace(motion, y=np.where(np.arange(4) == 3, effort, motion.y))
        for motion in (recorded.take(slice(0, 200)) for recorded in motions(2))
    )
    split, config = Split("a", "motion", train, held), CONFIG.estimator
    model = small_arm()
    fold = prepare(model, split, config.rigid_body, 2.0)
    found = tuner.confirm(URDF, {}, CONFIG, split)
    for errors in (found.frozen, found.delayed, *fold.rigid_body_scores(), found.rigid_frozen):
        assert errors is not None and errors[3] == 0.0 and np.all(errors[:3] > 0.0)
    assert 0.0 < found.ratio < 2.0 and 0.0 < found.worst_mean < 2.0 and found.worst_axis < 3.0
    assert nmse(held, np.zeros(model.n_parameters)) < 100.0


def test_from_its_journal_it_gives_the_same_without_computing(
    result: Tuning, journal: Path
) -> None:
    again = tuned(journal)
    assert again.computed == 0 < result.computed
    assert to_flat(again.config) == to_flat(result.config)
    assert again.confirmed["tuned"].delayed == result.confirmed["tuned"].delayed


def test_interrupted_it_resumes_and_ends_the_same(
    result: Tuning, journal: Path, tmp_path: Path
) -> None:
    class InterruptedHereError(Exception):
        pass

    def stage(title: str, left: float) -> Callable[[float], None]:
        def progress(share: float) -> None:
            if title == "each joint's own level" and share > 0.3:
                raise InterruptedHereError

        return progress

    path = tmp_path / "tuned.journal"
    lines = journal.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[: len(lines) // 2]))  # the stages before take their time, too
    with pytest.raises(InterruptedHereError):
        tuned(path, stage=stage)
    left = len(path.read_text().splitlines())
    assert len(lines) // 2 < left < len(lines)
    again = tuned(path)
    assert again.computed == len(lines) - left
    assert to_flat(again.config) == to_flat(result.config)


def test_the_stages_are_those_that_were_forecast(
    result: Tuning, journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tuned.journal"
    path.write_text(journal.read_text())
    plans: list[Forecast] = []
    monkeypatch.setattr(tuner, "forecast", lambda task: plans.append(forecast(task)) or plans[0])
    told: list[tuple[str, float]] = []
    tuned(path, stage=lambda title, left: told.append((title, left)) or (lambda share: None))
    assert [title for title, _ in told] == [title for title, _ in plans[0].planned]
    left = [seconds for _, seconds in told]
    assert left == sorted(left, reverse=True) and left[-1] > 0.0


def test_what_is_kept_stays_and_unknown_names_are_refused(
    result: Tuning, journal: Path, tmp_path: Path
) -> None:
    everything = ["filter", "rigid_body", "nystrom", "residual"]
    path = tmp_path / "tuned.journal"
    path.write_text(journal.read_text())  # what was worked out for the result need not be again
    same = tuned(path, keep=everything)
    assert not same.changes and not same.curves
    assert same.confirmed["tuned"].delayed == same.confirmed["configured"].delayed
    with pytest.raises(ConfigurationError, match=r"--keep nystrom\.width"):
        tuned(None, keep=["nystrom.width"])


def test_the_page_of_curves_in_a_browser(result: Tuning, tmp_path: Path) -> None:
    page = tmp_path / "tuned.html"
    page.write_text(tuning_page(result))
    with Browser(tmp_path / "profile") as browser:
        browser.open(page, 400)
        assert browser.evaluate(WIDER_THAN_THE_PAGE) == [] and browser.evaluate(CUT_OFF) == []
        browser.open(page, 1280)
        assert not browser.complaints
        assert [address for address in browser.requests if not address.startswith("file:")] == []
        assert browser.evaluate(WIDER_THAN_THE_PAGE) == [] and browser.evaluate(CUT_OFF) == []
        headings = browser.evaluate("[...document.querySelectorAll('h2')].map(e => e.textContent)")
        assert headings[:3] == ["What was changed", "Before and after", "The rigid body's own"]
        assert headings[-1] == "How it was judged" and "Local features" in headings
        table = browser.evaluate("document.querySelector('#changes table').innerText")
        assert all(name in table for name in result.changes)
        pictures = browser.evaluate(PICTURES)
        assert len(pictures) >= len(result.curves) + 2
        for label, section, x, y, w, h in pictures:
            image = browser.picture(x, y, w, h)
            line = to_rgb(FROZEN if section == "rigid-body" else DELAYED)
            assert (np.abs(image[..., :3] - line).max(axis=-1) < 0.1).sum() > 20, label


def test_the_learner_itself_is_given_each_sample_as_a_recording_has_it() -> None:
    """At a rate above that at which samples are independent each counts for less than one."""
    given = recordings(1, 3.0)
    [motion] = given.motions(4.0)
    samples = list(_samples(motion))
    assert 0.05 < motion.weights[1:].max() < 0.5
    again = Motion.of(samples, motion.active)
    for name in ("stamps", "q", "dq", "ddq", "y", "weights", "entries"):
        np.testing.assert_array_equal(getattr(again, name), getattr(motion, name), err_msg=name)
