from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

Image = pytest.importorskip("PIL.Image", reason="needs the extra 'vision'")
objects = pytest.importorskip("recognition_objects")


class Network:
    """In place of an image network: the mean colour, and how often it was asked."""

    asked = 0

    def __init__(self) -> None:
        self.identity = {"backbone": "mean colour"}

    def features(self, image: np.ndarray) -> np.ndarray:
        Network.asked += 1
        return image.mean(axis=(0, 1))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> None:
    def pictures(archive: Path, classes: int) -> list[Any]:
        return [Image.new("RGBA", (8, 8), (40 * k, 0, 0, 255)) for k in range(classes)]

    monkeypatch.setattr(objects, "Backbone", Network)
    monkeypatch.setattr(objects, "pictures", pictures)
    monkeypatch.setattr(Network, "asked", 0)


@pytest.mark.usefixtures("made")
def test_kept_features_serve_only_what_they_are_of(tmp_path: Path) -> None:
    archive, cache = tmp_path / "archive.tgz", tmp_path / "kept"  # whatever its ending
    archive.write_bytes(b"one")
    X, y = objects.object_features(archive, 2, cache)
    assert X.shape == (2 * objects.VIEWS, 3) and Network.asked == len(X)
    again, same = objects.object_features(archive, 2, cache)
    assert Network.asked == len(X)
    assert np.array_equal(again, X) and np.array_equal(same, y)
    more, labels = objects.object_features(archive, 3, cache)
    assert Network.asked == len(X) + len(more) and len(np.unique(labels)) == 3
    archive.write_bytes(b"another")
    objects.object_features(archive, 3, cache)
    assert Network.asked == len(X) + 2 * len(more)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive.tgz", "kept"]
