"""A controlled motion's results as JSON."""

from __future__ import annotations

import json

from semiparam_dynamics import __version__
from semiparam_dynamics.control.comparison import Comparison


def control_results(comparison: Comparison, seed: int) -> str:
    """JSON text: by feed-forward, root mean square errors in rad, shares and late answers."""
    motors, links = comparison.rms(), comparison.rms(links=True)
    runs = {}
    for name, done in comparison.runs.items():
        counted = done.time >= comparison.since
        runs[name] = {
            "rms": motors[name].tolist(),
            "rms_links": links[name].tolist(),
            "followed": float(done.share[counted].mean()),
            "asked": done.asked,
            "late": 0 if name == "urdf" else done.late,
        }
    result = {
        "joints": list(comparison.joint_names),
        "since_s": comparison.since,
        "feedforward": runs,
        "seed": seed,
        "version": __version__,
    }
    return json.dumps(result, indent=2) + "\n"
