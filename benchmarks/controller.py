"""Tracking errors of simulated arms by feed-forward: URDF, learned rigid body, semiparametric.

Learner, controller and arm run in one process at 500 Hz, with friction, elasticity and noise; the
URDF that controller and learner are given is the simulated one, or has wrong masses. One line for
each run goes to --out as it is done; one that is in the file with these settings is not repeated.

    python benchmarks/controller.py --arms icub seven ur10 --data DATA --out controller.jsonl
    python benchmarks/controller.py --urdf robot.urdf --seeds 1

With --urdf the arm is a robot of yours, with the simulator's own effects.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from arms import SEVEN, SEVEN_JOINTS, UR10
from closed_loop import ComparisonConfig, compare

from semiparam_dynamics.base.parameters import from_flat
from semiparam_dynamics.control.config import FEEDFORWARDS
from semiparam_dynamics.simulation.config import SimulatorConfig

ARMS = ("icub", "ur10", "seven")
ROTORS = "controller.gains.rotor_inertia"
ROTOR_INERTIA = SimulatorConfig().effects.rotor_inertia
COMMON = {
    "rate": 500.0,
    "motion": "exciting",
    "learner.filter.max_rate": 50.0,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, default=Path("data"), help="folder with robots/ur10/ur10_robot.urdf"
    )
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=["icub", "seven"])
    parser.add_argument("--urdf", default="", help="file of another arm, instead of --arms")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=18.0, help="of motion (default 18)")
    parser.add_argument(
        "--since", type=float, default=8.0, help="errors count from then on, s (default 8)"
    )
    parser.add_argument("--mass-error", type=float, nargs=2, default=(0.1, 0.3))
    parser.add_argument("--out", type=Path, default=Path("controller.jsonl"))
    args = parser.parse_args()
    ur10 = str(args.data / "robots" / "ur10" / "ur10_robot.urdf")
    # The motors' inertias, as a robot's maker knows them; the iCub's effects are the defaults.
    arms = {
        name: (urdf, effects | {ROTORS: (rotor,)})
        for name, urdf, effects, rotor in (
            ("icub", "", {}, ROTOR_INERTIA),
            ("ur10", ur10, UR10, 0.5),
            ("seven", str(SEVEN), SEVEN_JOINTS, 0.1),
        )
    }
    if args.urdf:
        name = Path(args.urdf).stem
        args.arms, arms[name] = [name], (args.urdf, {ROTORS: (ROTOR_INERTIA,)})
    written = args.out.read_text() if args.out.exists() else ""
    known = [json.loads(line) for line in written.splitlines()]
    chosen = []
    for seed in range(args.seeds):
        for arm in args.arms:
            for masses, error in (("true", (0.0, 0.0)), ("wrong", tuple(args.mass_error))):
                row = {"arm": arm, "seed": seed, "masses": masses, "mass error": list(error)}
                row |= {"seconds": args.seconds, "since": args.since}
                done = next((one for one in known if row.items() <= one.items()), None)
                if done is None:
                    done = row | measured(*arms[arm], args, seed, error)
                    with args.out.open("a") as file:
                        file.write(json.dumps(done) + "\n")
                chosen.append(done)
    print_table(chosen)


def measured(
    urdf: str,
    settings: dict[str, object],
    args: argparse.Namespace,
    seed: int,
    mass_error: tuple[float, float],
) -> dict[str, object]:
    """The figures of a run."""
    config = from_flat(ComparisonConfig, {**COMMON, **settings, "seed": seed})
    result = compare(urdf, config, args.seconds, args.since, mass_error=mass_error)
    for name, (joint, error) in result.lost().items():
        print(f"with '{name}' the arm did not follow: {joint} was off by {error:.3g}")
    row: dict[str, object] = {}
    for kind, links in (("", False), (" links", True)):
        errors = result.rms(links=links)
        row |= {f"{name}{kind} mrad": (1e3 * rms).tolist() for name, rms in errors.items()}
    last = result.runs["semiparametric"]
    return row | {"share": float(last.share[last.time >= args.since].mean())}


def print_table(rows: list[dict[str, object]]) -> None:
    """The mean over seeds and joints, and the worst seed's and the worst joint's ratio."""
    print("| arm | URDF's masses | runs | " + " | ".join(FEEDFORWARDS) + " | mrad (motors) |")
    print("|---" * 7 + "|")
    for arm, masses in sorted({(str(row["arm"]), str(row["masses"])) for row in rows}):
        chosen = [row for row in rows if (row["arm"], row["masses"]) == (arm, masses)]
        for kind in ("", " links"):
            rms = {f: np.array([row[f"{f}{kind} mrad"] for row in chosen]) for f in FEEDFORWARDS}
            urdf = rms["urdf"]
            cells = []
            for name, values in rms.items():
                text = f"{values.mean():.3g}"
                if name != "urdf":
                    runs = values.mean(axis=1) / urdf.mean(axis=1)
                    joints = values.mean(axis=0) / urdf.mean(axis=0)
                    text += f" ({values.mean() / urdf.mean():.2f}; {runs.max():.2f}; "
                    text += f"{joints.max():.2f})"
                cells.append(text)
            where = kind.strip() or "motors"
            print(f"| {arm} | {masses} | {len(chosen)} | " + " | ".join(cells) + f" | {where} |")
    print("\n(times the URDF's: on the mean; in the worst run; of the worst joint)")


if __name__ == "__main__":
    main()
