"""Bags of several robots of one kind: one model from some of them, judged on each of the others.

python examples/fleet.py [FOLDER]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from made_arm import JOINTS, URDF, record

from semiparam_dynamics.offline.cli.main import main as run_semiparam
from semiparam_dynamics.samples.bag_writer import write_measurements
from semiparam_dynamics.samples.measurement import Measurement


def write_bag(path: Path, seed: int, gain: float = 1.0) -> str:
    """A bag of 12 s; `gain` is what one robot's efforts are wrong by."""
    t, q, dq, tau = record(seconds=12.0, seed=seed)
    readings = (
        Measurement(round(1e9 * (1.0 + t[k])), q[k], dq[k], gain * tau[k]) for k in range(len(t))
    )
    write_measurements(path, JOINTS, readings, "effort", overwrite=True)
    return str(path)


def semiparam(*words: str) -> None:
    """Run a command; where it fails it has said why, and the script ends with its exit code."""
    if code := run_semiparam(words):
        sys.exit(code)


def main(folder: Path) -> None:
    """Train on two robots, test three others one by one; the third one's efforts are 30 % off.

    What an earlier run left in the folder is kept as NAME.previous.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "arm.urdf").write_text(URDF)
    urdf = ["--urdf", str(folder / "arm.urdf")]
    learned = [write_bag(folder / f"robot_{k}", seed=k) for k in (1, 2)]
    gains = {3: 1.0, 4: 1.0, 5: 1.3}
    tested = [write_bag(folder / f"robot_{k}", k, gain) for k, gain in gains.items()]
    trained, each = str(folder / "trained"), str(folder / "each")
    few = ["--set", "nystrom.max_centers=60", "--set", "nystrom.wide_max_centers=20"]
    semiparam("train", *learned, *urdf, *few, "--target", "effort", "--out", trained, "--overwrite")
    model = ["--model", f"{trained}/model.npz", "--each", "--jobs", "1"]
    semiparam("evaluate", *tested, *urdf, *model, "--out", each, "--overwrite")
    for results in sorted(Path(each).glob("*/results.json")):
        scores = json.loads(results.read_text())["scores"]["frozen"]["semiparametric"]["nmse"]
        worst = max(scores)
        note = "  <- look at this one" if worst > 0.05 else ""
        print(f"{results.parent.name}: mean {np.mean(scores):.3f}, worst joint {worst:.3f}{note}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
