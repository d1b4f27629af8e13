"""An exciting trajectory in numbers, for a terminal."""

from __future__ import annotations

import numpy as np

from semiparam_dynamics.evaluation.appearance import number, shorten
from semiparam_dynamics.identification.excitation import Excitation


def excitation_table(excitation: Excitation) -> str:
    """Condition numbers, the posture at the start, and the largest use of what each limit allows.

    Efforts are those of the URDF's rigid body, without friction.
    """
    random = excitation.random_conditions
    conditions = [
        (f"random motion within the limits, median of {len(random)}", float(np.median(random))),
        ("start of the search", excitation.start_condition),
        ("result", excitation.condition),
    ]
    width = max(len(text) for text, _ in conditions)
    lines = [
        f"condition number of the regressor, {excitation.n_parameters} base parameters, one period",
        *(f"  {text:<{width}}  {number(value):>9}" for text, value in conditions),
        "",
    ]
    names = [shorten(name, 24) for name in excitation.joint_names]
    width = max(5, *(len(name) for name in names))
    header = f"{'start':>9}{'position':>11}{'velocity':>11}{'effort':>9}"
    lines.append(f"{'joint':<{width}}{header}    (share of what may be used)")
    use, start = excitation.use, excitation.trajectory([0.0])[0][0]
    columns = (start, use.position, use.velocity, use.effort)
    for i, name in enumerate(names):
        at, position, velocity, effort = (float(column[i]) for column in columns)
        free = not np.isfinite(excitation.limits.effort[i])
        shown = "free" if free else f"{effort:.0%}"
        lines.append(f"{name:<{width}}{at:>9.3f}{position:>11.0%}{velocity:>11.0%}{shown:>9}")
    return "\n".join(lines)
