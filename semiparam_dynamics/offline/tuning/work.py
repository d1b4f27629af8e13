"""Candidates judged by one or many processes, with a journal of the results so far."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from semiparam_dynamics import __version__
from semiparam_dynamics.base.errors import ConfigurationError, StorageError
from semiparam_dynamics.base.parameters import to_flat
from semiparam_dynamics.base.storage import at_link_end, previous_of
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.tuning.candidates import FoldScore, Tuning
from semiparam_dynamics.offline.tuning.folds import Recordings

HEADER = "semiparam tune"  # what a journal's first line has, with the version


class Journal:
    """Results by key, a JSON line each, written as soon as they are there, to resume from.

    A journal of other data, or of another version of this package, is kept beside, see
    :func:`semiparam_dynamics.base.storage.previous_of`, and another is begun. A last line that was cut
    short is left out. Without a path nothing is kept. Raises StorageError where the file is no
    journal, or the system refuses.

    Attributes
    ----------
    warnings: what was kept beside, in a sentence.
    """

    def __init__(self, path: Path | None, identity: Mapping[str, Any]) -> None:
        self._path = None if path is None else at_link_end(path)
        self._entries: dict[str, Any] = {}
        self.warnings: list[str] = []
        if self._path is None:
            return
        header = json.loads(json.dumps({HEADER: __version__, **identity}))
        try:
            self._begin(self._path, header)
        except OSError as error:
            raise StorageError(f"the journal {path} can't be used: {error.strerror}") from None

    def _begin(self, path: Path, header: Mapping[str, Any]) -> None:
        # Any file may lie there, also one that is no text.
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        lines = text.splitlines()
        found = _header(lines[0]) if lines else header
        if found is None:
            raise StorageError(
                f"{path} is no journal of semiparam tune: move it away, or name another --out"
            )
        if found == header:
            self._read(lines[1:])
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        try:
            # A kill leaves the old file or the new one.
            with part.open("w", encoding="utf-8") as file:
                file.write(json.dumps(header) + "\n")
                for key, value in self._entries.items():
                    file.write(json.dumps([key, value]) + "\n")
                file.flush()
                os.fsync(file.fileno())
            # One without results is not worth the loss of the one that was kept before it.
            if found != header and len(lines) > 1:
                os.replace(path, previous_of(path))
                self.warnings.append(
                    f"{path} was of other recordings, another robot or another version: it is "
                    f"kept as {previous_of(path).name}, and another is begun"
                )
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)

    def _read(self, lines: list[str]) -> None:
        for line in lines:
            try:
                key, value = json.loads(line)
            except (TypeError, ValueError):  # cut short; a number can't be taken apart
                return
            self._entries[str(key)] = value

    def __len__(self) -> int:
        """Results kept."""
        return len(self._entries)

    def get(self, key: str) -> Any:
        """The value kept under `key`, or None."""
        return self._entries.get(key)

    def put(self, key: str, value: Any) -> None:
        """Keep what JSON can hold."""
        self._entries[key] = value
        if self._path is None:
            return
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([key, value]) + "\n")
        except OSError as error:
            raise StorageError(f"the journal {self._path} can't be written: {error}") from None


def _header(line: str) -> dict[str, Any] | None:
    """A journal's first line; None where it is none."""
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return header if isinstance(header, dict) and HEADER in header else None


def key_of(*parts: Any) -> str:
    """A key that names everything a result depends on."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


Progress = Callable[[float], None]


class Work:
    """Runs functions of plain arrays, here or by an executor, and remembers their results.

    Any executor of `concurrent.futures` will do, and what looks like one. Interrupted work leaves
    in the journal what was done.
    """

    def __init__(self, journal: Journal, executor: Executor | None = None) -> None:
        self.journal = journal
        self._executor = executor
        self.computed = 0

    @property
    def spread(self) -> bool:
        """Whether other processes work."""
        return self._executor is not None

    def __call__(
        self,
        function: Callable[..., Any],
        tasks: Sequence[tuple[tuple[Any, ...], tuple[Any, ...]]],
        pack: Callable[[Any], Any],
        unpack: Callable[[Any], Any],
        progress: Progress = lambda share: None,
    ) -> list[Any]:
        """The function's results for tasks, each its arguments and what names them.

        `pack` and `unpack` turn a result into what JSON can hold, and back.
        """
        keys = [key_of(function.__name__, *names) for _, names in tasks]
        results = [self.journal.get(key) for key in keys]
        waiting = [i for i, packed in enumerate(results) if packed is None]
        done = len(tasks) - len(waiting)

        def keep(i: int, value: Any) -> None:
            nonlocal done
            results[i] = pack(value)
            self.journal.put(keys[i], results[i])
            self.computed += 1
            done += 1
            progress(done / len(tasks))

        if self._executor is None:
            for i in waiting:
                keep(i, function(*tasks[i][0]))
        else:
            futures: dict[Future[Any], int] = {
                self._executor.submit(function, *tasks[i][0]): i for i in waiting
            }
            try:
                for future in as_completed(futures):
                    keep(futures[future], future.result())
            except BaseException:
                for future in futures:
                    future.cancel()
                raise
        return [unpack(packed) for packed in results]


@dataclass(frozen=True)
class Task:
    """Recordings, workers and options of a tuning, and where its findings are collected."""

    recordings: Recordings
    work: Work
    keep: tuple[str, ...]
    criterion: str
    stage: Callable[[str], Callable[[float], None]]
    tuning: Tuning

    def kept(self, name: str) -> bool:
        """Whether a parameter stays as it is."""
        return is_kept(name, self.keep)


def is_kept(name: str, keep: Sequence[str]) -> bool:
    """Whether `keep` has a parameter, or a group that it is in."""
    return any(name == k or name.startswith(f"{k}.") for k in keep)


def check_keep(keep: Sequence[str], config: InverseDynamicsConfig) -> None:
    """Raise ConfigurationError for a name that is neither a parameter nor a group."""
    for name in keep:
        if not any(is_kept(known, [name]) for known in to_flat(config)):
            raise ConfigurationError(f"--keep {name}: there is no such parameter or group of them")


# -------------------------------------------------------------------------------------------------
# Results as JSON can hold them.


def pack_score(score: FoldScore) -> dict[str, Any]:
    """A score as JSON can hold it."""
    return {
        name: [float(v) for v in value]
        if isinstance(value, np.ndarray)
        else None
        if isinstance(value, float) and math.isnan(value)
        else value
        for name, value in asdict(score).items()
    }


def unpack_score(packed: dict[str, Any]) -> FoldScore:
    """The score again."""
    arrays = {n: np.array(v, dtype=float) for n, v in packed.items() if isinstance(v, list)}
    evidence = math.nan if packed["evidence"] is None else float(packed["evidence"])
    return FoldScore(**{**packed, **arrays, "evidence": evidence})


def pack_scores(scores: dict[tuple[float, int], FoldScore]) -> list[Any]:
    """Scores by penalty and size as JSON can hold them."""
    return [[penalty, size, pack_score(s)] for (penalty, size), s in scores.items()]


def unpack_scores(packed: list[Any]) -> dict[tuple[float, int], FoldScore]:
    """The scores again."""
    return {(float(p), int(size)): unpack_score(s) for p, size, s in packed}


def packed(errors: dict[float, Any]) -> list[Any]:
    """Results by a parameter's value as JSON can hold them."""
    return [[value, found] for value, found in errors.items()]


def unpacked(pairs: list[Any]) -> dict[float, Any]:
    """The results again; tuples have become lists."""
    return {float(value): found for value, found in pairs}
