"""Position errors of simulated arms that pick up 1 and 2 kg, with and without the payload bridge.

Arm, driver, learner and bridge run in one process. The driver follows an exciting motion by
computed torque and adds the efforts of the load that was reported to it. A body is taken after
40 s, held for 20 s and released. A line for each arm, mass, kind of driver and seed, then medians
and worst.

    python benchmarks/payload_bridge.py
    python benchmarks/payload_bridge.py --arms seven ur10 --data DATA --seeds 3

DATA holds robots/ur10.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from arms import SEVEN, SEVEN_JOINTS
from changes import UR10
from output import make_parser, parse
from semiparam_dynamics.control.payload_trial import PayloadTrial, TrialConfig

from semiparam_dynamics.base.parameters import from_flat

TAKEN, RELEASED, END = 40.0, 60.0, 75.0  # s
OFFSET = np.array([0.0, 0.0, 0.08])  # m, of the body's centre from the hand
COMMON = {
    "rate": 250.0,
    "motion": "exciting",
    "learner.comparison": False,
    "learner.changes.detect": True,
    "learner.rigid_body.prior": "urdf",
    "learner.filter.max_rate": 100.0,
    "learner.filter.cutoff": 8.0,
}
# The driver's compensation, and what the bridge's parameters say of it.
KINDS: dict[str, dict[str, Any]] = {
    "no bridge": {"bridged": False},
    "efforts of the motors": {},
    "efforts without the load": {"compensated": True},
    "the same, weight only": {"compensated": True, "weight_only": True},
    "without it, not said so": {"excluded": True},
}
COLUMNS = (
    "before, rms mm",
    "before, mm",
    "before, rad",
    "taken, mm",
    "taken, rad",
    "held, rms mm",
    "held, mm",
    "held, rad",
    "released, mm",
    "after, rms mm",
    "reported after s",
    "back after s",
    "calls",
    "step %",
    "mass error %",
)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--arms", nargs="+", choices=("seven", "ur10"), default=["seven"])
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--masses", nargs="+", type=float, default=[1.0, 2.0])
    parser.add_argument("--seeds", type=int, default=1)
    args = parse(parser)
    ur10 = str(args.data / "robots" / "ur10" / "ur10_robot.urdf")
    dotted = {name.replace("__", "."): value for name, value in UR10.items()}
    arms = {
        "seven": (str(SEVEN), "hand", {**SEVEN_JOINTS, "hand_frame": "hand"}, 0.1),
        "ur10": (ur10, "tool0", dotted, 0.3),
    }
    print("columns: " + "; ".join(COLUMNS))
    for arm in args.arms:
        for mass in args.masses:
            for kind in args.kinds:
                rows = []
                for seed in range(args.seeds):
                    rows.append(trial(*arms[arm], mass, seed, **KINDS[kind]))
                    show(f"{arm} {mass:g} kg, {kind}, {seed}", np.array(rows[-1]))
                if len(rows) > 1:
                    show(f"{arm} {mass:g} kg, {kind}, median", np.median(rows, axis=0))
                    show(f"{arm} {mass:g} kg, {kind}, worst", np.max(rows, axis=0))


def show(name: str, row: np.ndarray) -> None:
    print(f"{name:<46}" + " ".join(f"{value:>8.3g}" for value in row), flush=True)


def trial(
    urdf: str,
    frame: str,
    effects: dict[str, Any],
    rotor: float,
    mass: float,
    seed: int,
    *,
    compensated: bool = False,
    **options: Any,
) -> list[float]:
    """The columns' values."""
    values = {**COMMON, **effects, "seed": seed, "driver.gains.rotor_inertia": (rotor,)}
    values["bridge.compensated"] = compensated
    run = PayloadTrial(urdf, from_flat(TrialConfig, values), frame, **options)
    record = run.record
    run.until(TAKEN)
    run.arm.hand.attach(mass, OFFSET, 0.002 * mass * np.eye(3))
    run.until(RELEASED)
    run.arm.hand.attach(0.0, np.zeros(3), np.zeros((3, 3)))
    run.until(END)
    before, held, after = (TAKEN - 15.0, TAKEN), (TAKEN + 5.0, RELEASED), (RELEASED + 5.0, END)
    largest = {name: record.largest(*part) for name, part in (("before", before), ("held", held))}
    taken = record.largest(TAKEN, TAKEN + 5.0)
    masses = [told for told in record.told if TAKEN < told[0] < RELEASED]
    back = [at for at, told in record.told if at > RELEASED and told == 0.0]
    # The first time at which all of it was reported, but for a tenth.
    told = [at for at, value in masses if value > 0.9 * mass]
    nothing = float("nan")
    return [
        1e3 * record.rms(*before)[1],
        1e3 * largest["before"][1],
        largest["before"][0],
        1e3 * taken[1],
        taken[0],
        1e3 * record.rms(*held)[1],
        1e3 * largest["held"][1],
        largest["held"][0],
        1e3 * record.largest(RELEASED, RELEASED + 5.0)[1],
        1e3 * record.rms(*after)[1],
        told[0] - TAKEN if told else nothing,
        back[0] - RELEASED if back else nothing,
        float(len([at for at, _ in record.told if at > TAKEN])),
        1e2 * record.step,
        1e2 * abs(masses[-1][1] / mass - 1.0) if masses else nothing,
    ]


if __name__ == "__main__":
    main()
