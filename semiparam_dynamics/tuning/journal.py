"""A file of what has been worked out, so that tuning can be interrupted and gone on with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from semiparam_dynamics import __version__
from semiparam_dynamics.errors import StorageError


class Journal:
    """Results by key, a JSON line each, written as soon as they are there.

    A journal of other data, or of another version of this package, is begun anew. A last line
    that was cut short is left out. Without a path nothing is kept.
    """

    def __init__(self, path: Path | None, identity: Mapping[str, Any]) -> None:
        self._path = path
        self._entries: dict[str, Any] = {}
        if path is None:
            return
        header = {"semiparam tune": __version__, **identity}
        try:
            lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
            self._read(lines, header)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w", encoding="utf-8") as file:
                file.write(json.dumps(header) + "\n")
                for key, value in self._entries.items():
                    file.write(json.dumps([key, value]) + "\n")
        except OSError as error:
            raise StorageError(f"the journal {path} can't be used: {error.strerror}") from None

    def _read(self, lines: list[str], header: Mapping[str, Any]) -> None:
        for number, line in enumerate(lines):
            try:
                entry = json.loads(line)
                if number == 0:
                    if entry != json.loads(json.dumps(header)):
                        return
                else:
                    key, value = entry
                    self._entries[str(key)] = value
            except ValueError:
                return

    def __len__(self) -> int:
        """Results kept."""
        return len(self._entries)

    def get(self, key: str) -> Any:
        """What was kept under `key`, or None."""
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


def key_of(*parts: Any) -> str:
    """A key that names everything a result depends on."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]
