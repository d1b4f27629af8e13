"""Tuning as a whole, on a small arm with an effect that its rigid body does not have."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace as with_fields
from pathlib import Path

import pytest

from semiparam_dynamics.base.errors import ConfigurationError, StorageError
from semiparam_dynamics.base.parameters import replace, to_flat
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.tuning.candidates import Candidate
from semiparam_dynamics.offline.tuning.tuner import (
    Search,
    Tuning,
    findings,
    headline,
    stages,
    summary,
    tune,
)

from .recorded import CONFIG, recordings

TOO_NARROW = replace(
    CONFIG,
    **{
        "nystrom.length_scale": 0.2,
        "nystrom.penalty": 5.0,
        "nystrom.max_centers": 60,
        "nystrom.wide_max_centers": 0,
    },
)
QUICK = ["filter"]
pytestmark = pytest.mark.usefixtures("few_trials", "seldom_inferred")


class InterruptedHereError(Exception):
    """In place of Ctrl-C."""


def tuned(
    journal: Path | None = None,
    config: InverseDynamicsConfig = TOO_NARROW,
    keep: list[str] = QUICK,
    stop: float = 2.0,
    seconds: float = 10.0,
    **others: object,
) -> Tuning:
    def progress(share: float) -> None:
        if share >= stop:
            raise InterruptedHereError

    given = recordings(2, seconds, config, same=True)
    return tune(given, keep, journal=journal, progress=progress, **others)


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tuning") / "tuned.journal"


@pytest.fixture(scope="module")
def result(journal: Path) -> Tuning:
    return tuned(journal)


def test_a_poor_configuration_is_bettered_with_all_samples_too(result: Tuning) -> None:
    before, after = result.confirmed["configured"], result.confirmed["tuned"]
    assert after.betters(before, "delayed")
    assert after.ratio("delayed") < 0.8 * before.ratio("delayed") and after.harm == 0.0
    assert result.changes["nystrom.length_scale"][1] > 0.2
    assert not set(QUICK) & set(result.changes)
    assert all(name.split(".")[0] in ("rigid_body", "nystrom") for name in result.changes)
    assert headline(result).startswith("On motion that was held out, the tuned learner makes 0.")
    rows = [line.rsplit(maxsplit=2) for line in summary(result).splitlines()]
    told = {row[0]: tuple(map(float, row[1:])) for row in rows if "motion_" in "".join(row)}
    assert set(told) == {f"{of}, motion_{k}" for of in ("delayed", "frozen") for k in (1, 2)}
    assert told["frozen, motion_2"][1] == round(after.scores[1].ratio("frozen"), 3)


def test_what_the_confirmation_does_not_bear_out_is_taken_back(
    result: Tuning, journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Candidate, "betters", lambda mine, own, criterion: len(mine.settings) > 0)
    kept = tuned(shutil.copy(journal, tmp_path / "tuned.journal"))
    assert kept.refused and not kept.changes and kept.config == kept.before
    assert kept.confirmed["tuned"] is kept.confirmed["configured"]
    told = summary(kept)
    assert told.startswith("Keep the configuration: nothing that was tried is better on every")
    assert "looked better in the searches" in told and "nystrom.length_scale" in told


def test_the_configured_residual_is_searched() -> None:
    config = replace(CONFIG, residual="random_fourier", **{"random_fourier.n_features": 40})
    found = tuned(None, config, ["filter", "rigid_body", "random_fourier.penalty"], seconds=4.0)
    assert [search.title for search in found.searches] == ["residual"]
    assert [len(search.tried) for search in found.searches] == [4]
    assert found.changes.keys() <= {"random_fourier.length_scale"}


def test_memories_are_tried_where_the_recordings_are_ten_times_as_long() -> None:
    def memories(seconds: float) -> object:
        return stages(CONFIG, seconds)[1].choices.get("rigid_body.memory")

    assert memories(120.0) is None
    assert memories(700.0) == (0.0, 30.0, 60.0)


def same(one: Tuning, other: Tuning) -> bool:
    return (
        to_flat(one.config) == to_flat(other.config)
        and one.confirmed == other.confirmed
        and one.searches == other.searches
    )


def test_from_its_journal_it_gives_the_same_without_computing(result, journal, tmp_path) -> None:
    """Also from one whose last line a crash has cut short."""
    copy = shutil.copy(journal, tmp_path / "tuned.journal")
    copy.write_bytes(copy.read_bytes() + b'{"op_code": 8, "cut sho')
    again = tuned(copy)
    assert same(again, result) and again.computed == 0 < result.computed
    assert "all from the journal" in summary(again)


def test_interrupted_it_resumes_and_ends_the_same(result: Tuning, tmp_path: Path) -> None:
    """With other workers, too."""
    path = tmp_path / "new" / "tuned.journal"
    with pytest.raises(InterruptedHereError):
        tuned(path, stop=0.2)
    with ThreadPoolExecutor(1) as executor:
        again = tuned(path, executor=executor)
    assert same(again, result) and 0 < again.computed < result.computed


def test_results_of_other_recordings_are_not_taken_and_stay(result, journal, tmp_path) -> None:
    everything = ["filter", "rigid_body", "nystrom", "random_fourier", "residual"]
    copy = shutil.copy(journal, tmp_path / "tuned.journal")
    before = copy.read_bytes()
    kept = tuned(copy, keep=everything)
    assert not kept.changes and not kept.searches and kept.computed == 0
    other = tune(recordings(3, 5.0, TOO_NARROW), everything, journal=copy)
    assert other.computed > 0 and copy.read_bytes().startswith(before)


@pytest.mark.parametrize("notes", [b"Monday: the arm is slow\n", b"7\n", b"\n\n", b"\xff\x00"])
def test_a_file_that_is_no_journal_is_refused_and_stays(tmp_path: Path, notes: bytes) -> None:
    path = tmp_path / "notes.journal"
    path.write_bytes(notes)
    with pytest.raises(StorageError, match=r"notes\.journal is no journal of semiparam tune"):
        tuned(path)
    assert path.read_bytes() == notes and list(tmp_path.iterdir()) == [path]
    with pytest.raises(StorageError, match="can't be used"):
        tuned(tmp_path)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"--keep nystrom\.width"):
        tuned(None, keep=["nystrom.width"])


def test_a_choice_at_the_end_of_its_range_is_reported(result: Tuning) -> None:
    name, own = "nystrom.length_scale", 0.2
    for new, reported in ((own * 2.9, [name]), (own / 2.9, [name]), (own * 1.5, []), (own, [])):
        nothing = Candidate({}, ())
        searches = [Search("stage", {name: 3.0}, nothing, (), nothing)]
        config = replace(TOO_NARROW, **{name: new})
        found = with_fields(result, config=config, searches=searches)
        assert found.at_bounds == reported
        assert any("tune again from the result" in f for f in findings(found)) is bool(reported)


def test_a_residual_that_is_no_gain_is_not_praised(result: Tuning) -> None:
    def with_error(factor: float) -> Tuning:
        tuned = result.confirmed["tuned"]
        scores = tuple(
            with_fields(s, delayed=tuple(factor * e for e in s.delayed)) for s in tuned.scores
        )
        confirmed = result.confirmed | {"tuned": Candidate({}, scores)}
        return with_fields(result, confirmed=confirmed)

    warning = "do not count on the residual"
    assert not any(warning in finding for finding in findings(result))
    assert any(warning in finding for finding in findings(with_error(100.0)))
