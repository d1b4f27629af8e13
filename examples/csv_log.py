"""A CSV file to a bag, and the bag evaluated, without ROS.

python examples/csv_log.py [FOLDER]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from made_arm import JOINTS, URDF, record

from semiparam_dynamics.offline.cli.main import main as run_semiparam

COLUMNS = ["t", *(f"{kind}_{joint}" for kind in ("q", "dq", "tau") for joint in JOINTS)]


def write_csv(path: Path, seconds: float = 30.0) -> None:
    """Write the made arm's log as a spreadsheet has it: a line of names, then numbers."""
    table = np.column_stack(record(seconds))
    np.savetxt(path, table, delimiter=",", header=",".join(COLUMNS), comments="", fmt="%.6f")


def semiparam(*words: str) -> None:
    """Run a command; where it fails it has said why, and the script ends with its exit code."""
    if code := run_semiparam(words):
        sys.exit(code)


def main(folder: Path) -> None:
    """CSV, bag, report. What an earlier run left in the folder is kept as NAME.previous."""
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / "log.csv")
    (folder / "arm.urdf").write_text(URDF)
    log, bag, urdf, out = (str(folder / n) for n in ("log.csv", "bag", "arm.urdf", "results"))
    semiparam("convert", log, bag, "--urdf", urdf, "--overwrite")
    semiparam("evaluate", bag, "--target", "effort", "--out", out, "--overwrite")
    scores = json.loads((Path(out) / "results.json").read_text())["scores"]["delayed"]
    print({name: round(float(np.mean(score["nmse"])), 3) for name, score in scores.items()})


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
