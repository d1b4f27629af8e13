"""The choice of the learner's hyperparameters by Optuna, stage after stage, and what it found.

Trials and scores are kept in Optuna's journal, from which the same command resumes. The sampler is
seeded by the number of trials, so that an interruption changes nothing.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from semiparam_dynamics import __version__
from semiparam_dynamics.base.errors import ConfigurationError, StorageError
from semiparam_dynamics.base.extras import require
from semiparam_dynamics.base.parameters import Value, parameters, replace, to_flat
from semiparam_dynamics.dynamics.estimator import EstimatorConfig
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.evaluation.bags import Bags, BagToRead, robot_of
from semiparam_dynamics.offline.evaluation.protocols import DELAYED_BLOCK_S
from semiparam_dynamics.offline.page import setting, shorten
from semiparam_dynamics.offline.tuning.candidates import (
    AXIS_LIMIT,
    PART_NAME,
    Candidate,
    Fold,
    FoldScore,
    Recordings,
    choose,
    evaluate,
    unpacked,
)

Progress = Callable[[float], None]

BATCH = 8  # trials proposed together, for as many processes; a confirmation takes as long
SEARCH_DELAY = 2.0  # s, of a search's blocks: longer than the protocol's, as each block costs time
MAX_CUTOFF = 0.2  # of the messages' rate: nearer to half of it the filter hardly filters
MEMORIES = (0.0, 30.0, 60.0, 120.0, 300.0)  # s; 0: for ever
MIN_MEMORIES = 10.0  # of a memory in the recordings, for it to be tried: they show what it loses
AT_BOUND = 0.9  # of the logarithmic range: a choice beyond it is at the bound


@dataclass(frozen=True)
class Stage:
    """Parameters searched together, by their names."""

    title: str
    trials: int
    ranges: Mapping[str, float]  # factors by which values may be smaller or larger than configured
    choices: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # the values tried


def stages(config: InverseDynamicsConfig, seconds: float) -> list[Stage]:
    """The stages, in order, for recordings with so many seconds of motion.

    What decides how long centres last, `max_centers` and `novelty`, is none of them: it shows only
    on motion longer than the folds' training part.
    """
    memories = tuple(m for m in MEMORIES if m <= seconds / MIN_MEMORIES)
    tries_memory, residual = len(memories) > 1, config.estimator.residual
    kernel = {f"{residual}.length_scale": 3.0, f"{residual}.penalty": 10.0}
    return [
        Stage("filter's cut-off", 8, {"filter.cutoff": 4.0}),
        *([Stage("rigid body", 8, {}, {"rigid_body.memory": memories})] if tries_memory else []),
        Stage("residual", 16, kernel),
    ]


@dataclass(frozen=True)
class Search:
    """A stage's trials, and the candidate taken: `own`, with which it began, or one of them."""

    title: str
    ranges: Mapping[str, float]
    own: Candidate
    tried: tuple[Candidate, ...]
    chosen: Candidate


@dataclass
class Tuning:
    """The findings of a tuning."""

    before: InverseDynamicsConfig
    config: InverseDynamicsConfig
    folds: list[Fold]
    criterion: str
    searches: list[Search] = field(default_factory=list)
    # Both configurations, with all samples by the delayed protocol: "configured" and "tuned".
    confirmed: dict[str, Candidate] = field(default_factory=dict)
    # What the searches chose and the confirmation took back: parameters, and both values.
    refused: dict[str, tuple[Value, Value]] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()  # sentences on recordings with faults
    computed: int = 0  # scores that weren't in the journal

    @property
    def changes(self) -> dict[str, tuple[Value, Value]]:
        """Parameters that differ from before: both values."""
        old, new = to_flat(self.before), to_flat(self.config)
        return {name: (old[name], new[name]) for name in new if new[name] != old[name]}

    @property
    def at_bounds(self) -> list[str]:
        """Changed parameters whose new value is near an end of the range that was searched."""
        factors = {
            name: factor for search in self.searches for name, factor in search.ranges.items()
        }
        return [
            name
            for name, (old, new) in self.changes.items()
            if name in factors
            and abs(math.log(number_of(new) / number_of(old))) > AT_BOUND * math.log(factors[name])
        ]

    @property
    def candidates(self) -> int:
        """Number of candidates tried."""
        return sum(len(search.tried) for search in self.searches)


def tune_on_bags(
    bags: Bags,
    config: InverseDynamicsConfig,
    *,
    keep: Sequence[str] = (),
    criterion: str = "delayed",
    journal: Path | None = None,
    executor: Executor | None = None,
    progress: Progress = lambda share: None,
) -> Tuning:
    """Tune on `bags.train`; the other arguments are those of `tune`, and so is what it raises.

    Raises RobotModelError, too, where the robot is missing.
    """
    require("tune", "tune")
    model, config = robot_of(bags, config)
    measurements = [list(BagToRead(path, bags, model, config)) for path in bags.train]
    names = [Path(path).name for path in bags.train]
    recordings = Recordings(model, config, names, measurements)
    tuning = tune(recordings, keep, criterion, journal, executor, progress)
    tuning.doubts = tuple(dict.fromkeys(bags.doubts))
    return tuning


def tune(
    recordings: Recordings,
    keep: Sequence[str] = (),
    criterion: str = "delayed",
    journal: Path | None = None,
    executor: Executor | None = None,
    progress: Progress = lambda share: None,
) -> Tuning:
    """Choose `recordings.config`'s hyperparameters by motion that is held out.

    A stage's best candidate is taken where `Candidate.betters` says so, and all of them together
    once more, with every sample and by the delayed protocol itself; else the configuration stays.

    keep : parameters, or groups of them, that stay as they are.
    criterion : of `candidates.CRITERIA`, the error that is made small.
    journal : a file to resume from; results of other recordings in it stay.
    executor : evaluates candidates. progress : called with the share done.

    Raises BagError where the recordings don't suffice, ConfigurationError for unknown names,
    StorageError where the journal can't be used, MissingExtraError without Optuna.
    """
    require("tune", "tune")
    config = recordings.config
    for name in keep:
        if not any(is_kept(known, [name]) for known in to_flat(config)):
            told = f"--keep {name}: there is no such parameter or group of them"
            raise ConfigurationError(told)
    folds = recordings.folds(config.filter.cutoff, thinned=False)
    tuning = Tuning(config, config, folds, criterion)
    judge = _Judge(recordings, _storage(journal), executor, criterion)
    found = stages(config, sum(fold.seconds for fold in folds))
    planned = [each for each in found if _space(each, config, keep, recordings.rate)]
    [before], [own] = judge.scores([config], thinned=False), judge.scores([config])
    done, total = BATCH, sum(each.trials for each in planned) + 2 * BATCH
    for stage in planned:

        def advance(share: float, first: int = done, trials: int = stage.trials) -> None:
            progress((first + share * trials) / total)

        config, own = _search(judge, stage, config, own, keep, advance)
        done += stage.trials
    tuning.searches = judge.searches
    [tuned] = judge.scores([config], thinned=False)
    tuning.confirmed = {"configured": before, "tuned": before}
    if config != tuning.before:
        tuning.config = config
        if tuned.betters(before, criterion):
            tuning.confirmed["tuned"] = tuned
        else:
            tuning.refused, tuning.config = tuning.changes, tuning.before
    tuning.computed = judge.computed
    progress(1.0)
    return tuning


def is_kept(name: str, keep: Sequence[str]) -> bool:
    """True where `keep` has the parameter, or a group that it is in."""
    return any(name == k or name.startswith(f"{k}.") for k in keep)


# -------------------------------------------------------------------------------------------------
# One stage.


def _search(
    judge: _Judge,
    stage: Stage,
    config: InverseDynamicsConfig,
    own: Candidate,
    keep: Sequence[str],
    progress: Progress,
) -> tuple[InverseDynamicsConfig, Candidate]:
    """The configuration after a stage, and its scores; both as they were where none is better."""
    from optuna.samplers import TPESampler

    space = _space(stage, config, keep, judge.recordings.rate)
    study = judge.study(stage.title, to_flat(config), sorted(space))
    while (done := len(_settings(study))) < stage.trials:
        study.sampler = TPESampler(n_startup_trials=BATCH, seed=config.estimator.seed + done)
        trials = [study.ask(space) for _ in range(min(BATCH, stage.trials - done))]
        settings = [_rounded(trial.params) for trial in trials]
        tried = judge.scores([replace(config, **each) for each in settings], own)
        for trial, candidate in zip(trials, tried, strict=True):
            study.tell(trial, candidate.value(own, judge.criterion))
        progress((done + len(trials)) / stage.trials)
    settings = _settings(study)
    configs = [replace(config, **each) for each in settings]
    tried = [
        dataclasses.replace(candidate, settings=each)
        for candidate, each in zip(judge.scores(configs, own), settings, strict=True)
    ]
    chosen = choose(own, tried, judge.criterion)
    judge.searches.append(Search(stage.title, stage.ranges, own, tuple(tried), chosen))
    return (config, own) if chosen is own else (configs[tried.index(chosen)], chosen)


def _space(
    stage: Stage, config: InverseDynamicsConfig, keep: Sequence[str], rate: float
) -> dict[str, Any]:
    """Optuna's distributions of the stage's parameters that are not kept."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    known, flat = {entry.name: entry for entry in parameters(type(config))}, to_flat(config)
    space: dict[str, Any] = {}
    for name, factor in stage.ranges.items():
        own, high = number_of(flat[name]), known[name].high or math.inf
        high = min(high, MAX_CUTOFF * rate) if name == "filter.cutoff" else high
        low, high = max(own / factor, known[name].low or 0.0), min(own * factor, high)
        if 0.0 < low < high and not is_kept(name, keep):  # 0: it is switched off
            space[name] = FloatDistribution(low, high, log=True)
    for name, values in stage.choices.items():
        if not is_kept(name, keep):
            space[name] = CategoricalDistribution(values)
    return space


def number_of(value: Value) -> float:
    """A parameter's value, which is a number."""
    assert isinstance(value, (int, float))
    return float(value)


def _rounded(settings: Mapping[str, float]) -> dict[str, float]:
    """Two digits, as a person would write them."""
    return {name: float(f"{value:.2g}") for name, value in settings.items()}


def _settings(study: Any) -> list[dict[str, float]]:
    """Of a study's finished trials, in their order."""
    return [_rounded(trial.params) for trial in study.trials if trial.state.is_finished()]


# -------------------------------------------------------------------------------------------------
# Scores, each of which is worked out once.


class _Judge:
    """Evaluates configurations on the folds, and keeps scores and trials in the storage."""

    def __init__(
        self, recordings: Recordings, storage: Any, executor: Executor | None, criterion: str
    ) -> None:
        self.recordings, self.criterion = recordings, criterion
        self.searches: list[Search] = []
        self.computed = 0  # scores that weren't in the storage
        self._storage, self._executor = storage, executor
        model, own = recordings.model, recordings.config
        robot = model.urdf_sha256, to_flat(own.robot), to_flat(own.filter)
        self._data = _digest(__version__, recordings.fingerprint(), recordings.names, *robot)
        self._kept = self.study("scores")

    def study(self, title: str, *of: Any) -> Any:
        """The study of that title, of these recordings and of what is named; a new one if need be.

        Raises StorageError where the journal can't be read or written.
        """
        import optuna

        name = f"{title} {_digest(self._data, self.criterion, *of) if of else self._data}"
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        return optuna.create_study(study_name=name, storage=self._storage, load_if_exists=True)

    def scores(
        self,
        configs: Sequence[InverseDynamicsConfig],
        own: Candidate | None = None,
        *,
        thinned: bool = True,
    ) -> list[Candidate]:
        """The candidates' scores on all folds, or up to one where it is no rival of `own`."""
        candidates = [Candidate({}, ()) for _ in configs]
        folds: dict[float, list[Fold]] = {}
        numbers = range(self.recordings.n_folds)
        for together in [numbers] if own is None else [[number] for number in numbers]:
            rivals = [
                k
                for k, each in enumerate(candidates)
                if own is None or each.rivals(own, self.criterion)
            ]
            keys = {
                (k, number): _digest(to_flat(configs[k]), number, thinned)
                for k in rivals
                for number in together
            }
            tasks = {}
            for (k, number), key in keys.items():
                if key not in self._kept.user_attrs:
                    cutoff = configs[k].filter.cutoff
                    if cutoff not in folds:
                        folds[cutoff] = self.recordings.folds(cutoff, thinned=thinned)
                    tasks[key] = configs[k].estimator, folds[cutoff][number]
            self._evaluate(tasks, SEARCH_DELAY if thinned else DELAYED_BLOCK_S)
            known = self._kept.user_attrs
            for (k, _), key in keys.items():
                candidates[k] = Candidate({}, (*candidates[k].scores, unpacked(known[key])))
        return candidates

    def _evaluate(self, tasks: Mapping[str, tuple[EstimatorConfig, Fold]], delay: float) -> None:
        """Keep the scores of tasks by their keys as soon as they are there."""
        model = self.recordings.model
        if self._executor is None:
            for key, task in tasks.items():
                self._keep(key, evaluate(model, *task, delay))
            return
        futures = {
            self._executor.submit(evaluate, model, *task, delay): key for key, task in tasks.items()
        }
        try:
            for future in as_completed(futures):
                self._keep(futures[future], future.result())
        finally:
            for future in futures:
                future.cancel()

    def _keep(self, key: str, score: FoldScore) -> None:
        self._kept.set_user_attr(key, dataclasses.asdict(score))
        self.computed += 1


def _digest(*parts: Any) -> str:
    """A name of everything that a result depends on."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _storage(journal: Path | None) -> Any:
    """Optuna's storage in a journal, or in memory.

    A last line that a crash cut short is taken away. Raises StorageError where the file is no
    journal, or the system refuses.
    """
    from optuna.storages import InMemoryStorage, JournalStorage
    from optuna.storages.journal import JournalFileBackend

    if journal is None:
        return InMemoryStorage()
    try:
        journal.parent.mkdir(parents=True, exist_ok=True)
        with journal.open("ab+") as file:
            file.seek(0)
            content = file.read()
            if content and not content.startswith(b'{"op_code":'):
                raise StorageError(
                    f"{journal} is no journal of semiparam tune: move it away, or name another "
                    "--out"
                )
            file.truncate(content.rfind(b"\n") + 1)
        return JournalStorage(JournalFileBackend(str(journal), _Lock(journal)))
    except (OSError, ValueError, KeyError) as error:
        raise StorageError(f"the journal {journal} can't be used: {error}") from None


class _Lock:
    """The journal's lock of this process among others, which the system takes away with it.

    Optuna's own is a file that is renamed and then removed: an interrupt between the two leaves an
    OSError in the place of KeyboardInterrupt, or the file, for which the next one waits.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal

    def acquire(self) -> bool:
        self._file = self._journal.open("ab")
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        return True

    def release(self) -> None:
        self._file.close()


# -------------------------------------------------------------------------------------------------
# The findings in words, and as a table for the terminal


SHORT_MOTION_S = 60.0  # s of motion, below which it is a finding
ERROR_ROWS: tuple[tuple[str, Callable[[Candidate], float]], ...] = (
    ("delayed, mean of the motions", lambda c: c.ratio("delayed")),
    ("delayed, worst motion", lambda c: max(s.ratio("delayed") for s in c.scores)),
    ("frozen, mean of the motions", lambda c: c.ratio("frozen")),
    ("frozen, worst motion", lambda c: max(s.ratio("frozen") for s in c.scores)),
    ("frozen, worst axis", lambda c: max(s.worst_axis for s in c.scores)),
)


def headline(tuning: Tuning) -> str:
    """The result in a sentence, promising no more than the worst held-out motion showed."""
    tuned = tuning.confirmed["tuned"]
    ratios = sorted(score.ratio("delayed") for score in tuned.scores)
    frozen = sorted(score.ratio("frozen") for score in tuned.scores)
    errors = (
        f"{_range(ratios)} times the rigid body's error while learning continues, and "
        f"{_range(frozen)} times with learning switched off"
    )
    if not tuning.changes:
        defaults = to_flat(tuning.before.estimator) == to_flat(InverseDynamicsConfig().estimator)
        what = "defaults" if defaults else "configuration"
        return (
            f"Keep the {what}: nothing that was tried is better on every held-out motion by more "
            f"than chance. It makes {errors}."
        )
    return f"On motion that was held out, the tuned learner makes {errors}."


def findings(tuning: Tuning) -> list[str]:
    """Facts to know before the result is used."""
    tuned, own = tuning.confirmed["tuned"], tuning.confirmed["configured"]
    found = [*tuning.doubts]
    if tuning.changes:
        found.append(
            f"The configuration before: {own.ratio('delayed'):.2f} times the rigid body's error "
            f"while learning, {own.ratio('frozen'):.2f} times without."
        )
    if max(score.ratio("delayed") for score in tuned.scores) >= 1.0:
        found.append(
            "On at least one held-out motion the learner is no better than the rigid body alone: "
            "do not count on the residual for this robot before there are more recordings."
        )
    for name in tuning.at_bounds:
        found.append(
            f"{name} {setting(tuning.changes[name][1])} is near the end of the range that was "
            "searched: tune again from the result (--params), which searches around it."
        )
    if tuning.refused:
        refused = ", ".join(f"{name} {setting(new)}" for name, (_, new) in tuning.refused.items())
        found.append(
            f"{refused} looked better in the searches, but was not with all samples by the "
            "delayed protocol."
        )
    if round(tuned.harm, 2) > 0.0:
        worst = max(score.worst_axis for score in tuned.scores)
        found.append(
            f"With learning switched off the residual makes up to {worst:.2f} times the rigid "
            f"body's error on an axis (the limit is {AXIS_LIMIT:g}). Record more varied motion if "
            "learning is to be switched off."
        )
    if len(tuning.folds) < 3:
        found.append(
            "Only two recordings were there to hold out in turn: the figures are two draws, not "
            "a distribution."
        )
    seconds = sum(fold.seconds for fold in tuning.folds)
    if seconds < SHORT_MOTION_S:
        found.append(
            f"The recordings show {seconds:.0f} s of motion in all. That is little to choose by: "
            f"record {SHORT_MOTION_S:.0f} s or more, of several motions."
        )
    if tuning.folds[0].name == PART_NAME.format(1):
        found.append(
            "There was one recording: its thirds were held out in turn, each with what repeats it. "
            "They are less new than another recording."
        )
    found.append(
        "The figures were used to choose: to know what the choice is worth, evaluate it on a "
        "recording that had no part in this."
    )
    return found


def summary(tuning: Tuning) -> str:
    """The result, what to know of it, what was changed, and errors on each held-out motion."""
    lines = [headline(tuning), *(f"- {finding}" for finding in findings(tuning)), ""]
    rows = [(name, *map(setting, values)) for name, values in tuning.changes.items()]
    lines += _table("parameter", rows or [("(none changed)", "", "")])
    both = [tuning.confirmed[name] for name in ("configured", "tuned")]
    errors = [(title, *(f"{value(each):.3f}" for each in both)) for title, value in ERROR_ROWS]
    for k, fold in enumerate(tuning.folds):
        for of in ("delayed", "frozen"):
            ratios = (f"{each.scores[k].ratio(of):.3f}" for each in both)
            errors.append((f"{of}, {shorten(fold.name, 21)}", *ratios))
    resumed = "" if tuning.computed else ", all from the journal"
    lines += ["", *_table("times the rigid body", errors)]
    return "\n".join([*lines, f"{tuning.candidates} candidates{resumed}"])


def _table(title: str, rows: list[tuple[str, ...]]) -> list[str]:
    return [f"{a:<30} {b:>12} {c:>12}".rstrip() for a, b, c in [(title, "before", "tuned"), *rows]]


def _range(ratios: list[float]) -> str:
    low, high = f"{ratios[0]:.2f}", f"{ratios[-1]:.2f}"
    return low if low == high else f"{low} to {high}"
