"""Objects recognised by their features."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from .table import Arrays, case, numbers, state_arrays


def objects(n: int, classes: int = 4, seed: int = 11) -> tuple[np.ndarray, np.ndarray]:
    """Features of length 1 around a place for each class, and the classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    X = rng.standard_normal((n, 32)) + 6.0 * np.random.default_rng(12).standard_normal((8, 32))[y]
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


@case("recognition/recogniser")
def recogniser() -> Arrays:
    """Objects taught one by one, shown, renamed, merged, saved, loaded and forgotten."""
    from semiparam_dynamics.base.parameters import from_flat
    from semiparam_dynamics.recognition.config import RecognitionConfig
    from semiparam_dynamics.recognition.labels import parse_edit
    from semiparam_dynamics.recognition.recognizer import Recognizer

    config = from_flat(RecognitionConfig, {"ridge": (0.1, 1.0)})
    (X, y), (X_shown, _) = objects(240), objects(60, classes=5, seed=13)
    names = ("apple", "bolt", "cup", "dish")
    found: Arrays = {}

    def shown(recognizer: Any, prefix: str) -> Arrays:
        recognizer.restart_smoothing()
        said = [recognizer.recognize(x) for x in X_shown]
        return {
            f"{prefix}/probabilities": np.array([each.probabilities for each in said]),
            f"{prefix}/confidence": np.array([each.confidence for each in said]),
            f"{prefix}/novelty": np.array([each.novelty for each in said]),
            f"{prefix}/unknown": np.array([float(each.label == "unknown") for each in said]),
        }

    one, other = (Recognizer(config, {"features": "random"}) for _ in range(2))
    for k, (x, number) in enumerate(zip(X[:200], y[:200], strict=True)):
        one.learn(x, names[number])
        if k % 10 == 0:
            one.refresh()
    found |= shown(one, "taught")
    with tempfile.TemporaryDirectory() as folder:
        one.save(Path(folder) / "objects.npz")
        other.load(Path(folder) / "objects.npz")
    for x, number in zip(X[200:], y[200:], strict=True):
        other.learn(x, names[number])
    found |= shown(other, "loaded")
    for k, text in enumerate(("rename apple -> pear", "merge cup -> bolt", "forget dish")):
        other.edit(parse_edit(text))
        found |= shown(other, f"edited{k}")
    state = {k: v for k, v in other.state().items() if np.asarray(v).dtype.kind in "fib"}
    return found | state_arrays(state)


@case("recognition/protocol")
def protocol() -> Arrays:
    """Table 7.1's protocol on random features, by its script."""
    X, y = objects(900, classes=5)
    sizes = ("--balanced", 60, "--test", 30, "--new", "1,5,20", "--trials", 2)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "features.npz", X=X, y=y)
        script = Path(__file__).resolve().parents[2] / "benchmarks" / "thesis"
        command = (sys.executable, script, "recognize", folder / "features.npz", *sizes)
        subprocess.run(
            [*map(str, command), "--out", folder / "out"], check=True, capture_output=True
        )
        found = json.loads((folder / "out" / "results.json").read_text())
    return numbers(found, without=("version", "seconds"))
