"""The gain by tuning on three real arms, and the time that its paths save.

    python benchmarks/tuning.py DATA [--arms xmate7p ur10 tx40] [--from-scratch] [--out FOLDER]

DATA holds robots/{xmate7p,ur10,tx40}. Each arm is tuned on its training part alone (the xMate's
trajectories 1 and 2, the first 60 % of the others), starting from config/robots, or from the
package's defaults with --from-scratch. Then the configuration before and the tuned one learn that
part and are judged on the rest, which had no part in it. With --paths: the time of a stage's paths
against fitting each of the same candidates for itself.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from arms import CONFIG, URDFS, by_time, recordings, robot

from semiparam_dynamics.base.config_files import load_yaml
from semiparam_dynamics.base.errors import BagError
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.base.progress import processes
from semiparam_dynamics.dynamics.sample import Motion
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.evaluation.experiment import evaluate
from semiparam_dynamics.offline.tuning.candidates import Tuning
from semiparam_dynamics.offline.tuning.choices import SHARED
from semiparam_dynamics.offline.tuning.folds import (
    Recordings,
    motion_splits,
    prepare,
    region_splits,
)
from semiparam_dynamics.offline.tuning.page import text
from semiparam_dynamics.offline.tuning.screening import screen_nystrom
from semiparam_dynamics.offline.tuning.tuner import tune
from semiparam_dynamics.offline.tuning.work import Journal, Work
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.measurement import Measurement


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--arms", nargs="+", default=[*URDFS], choices=[*URDFS])
    parser.add_argument("--from-scratch", action="store_true", help="not from config/robots")
    parser.add_argument("--keep", nargs="*", default=[], help="parameters that are not tuned")
    parser.add_argument("--paths", action="store_true", help="only the time that paths save")
    parser.add_argument("--out", type=Path, default=None, help="folder for the journals")
    args = parser.parse_args()
    for arm in args.arms:
        robots = args.data / "robots"
        config = load_yaml(CONFIG / f"{arm}.yaml", InverseDynamicsConfig)
        if args.from_scratch:
            config = InverseDynamicsConfig()
        model = robot(robots, arm, config)
        train, test = parts(robots, arm, model)
        names = [f"trajectory_{k + 1}" for k in range(len(train))]
        trained = Recordings(model, config, names, train)
        if args.paths:
            paths(arm, trained)
            continue
        path = args.out / f"{arm}.journal" if args.out else None
        with processes(0) as executor:
            work = Work(Journal(path, {"bags": trained.fingerprint()}), executor)
            try:
                tuning = tune(trained, robots / arm / URDFS[arm], work, keep=args.keep)
            except BagError as error:  # too short to choose by
                print(f"\n{arm}\n{error}", flush=True)
                continue
        print(f"\n{arm}\n{text(tuning)}\n", flush=True)
        judge(model, tuning, train, test)


def parts(
    robots: Path, arm: str, model: RobotModel
) -> tuple[list[list[Measurement]], list[list[Measurement]]]:
    """The recordings that are tuned on, and those that are not looked at."""
    read = recordings(robots, arm, model)
    if len(read) > 1:
        return read[:-1], read[-1:]
    first, rest = by_time(read[0])
    return [first], [rest]


def judge(
    model: RobotModel,
    tuning: Tuning,
    train: list[list[Measurement]],
    test: list[list[Measurement]],
) -> None:
    """Both configurations on what had no part in tuning, by the learner itself."""
    own = tuning.before.filter.cutoff
    configs = {"before": tuning.before, "tuned": tuning.config}
    if tuning.config.filter.cutoff != own:
        # Errors of signals filtered otherwise don't compare: the one before with the new filter.
        cutoff = tuning.config.filter.cutoff
        configs["before, new cut-off"] = replace(tuning.before, **{"filter.cutoff": cutoff})
    print(f"{'not seen while tuning':<22}{'protocol':<10}{'P':>9}{'SP':>9}{'ratio':>8}{'joint':>7}")
    for name, config in configs.items():
        runs = evaluate(model, config, test, train).runs
        for protocol in ("delayed", "frozen"):
            scores = runs[protocol].scores
            P, SP = scores.nmse("rigid_body"), scores.nmse("semiparametric")
            print(
                f"{name:<22}{protocol:<10}{P.mean():>9.5f}{SP.mean():>9.5f}"
                f"{SP.mean() / P.mean():>8.3f}{np.max(SP / P):>7.2f}",
                flush=True,
            )


def paths(arm: str, recordings: Recordings) -> None:
    """Processor time of the first stage's candidates by paths, and each for itself."""
    config = recordings.config
    motions = recordings.motions(config.filter.cutoff)
    splits = [
        *motion_splits(motions, recordings.names),
        *region_splits(Motion.join(motions), recordings.model.turning),
    ]
    window = config.estimator.nystrom.window
    rigid_body = config.estimator.rigid_body
    folds = [prepare(recordings.model, s, rigid_body, window) for s in splits]
    grid = SHARED.restricted(config.estimator, ())
    combination = {"nystrom.length_scale": 0.2, "nystrom.novelty": 0.5}
    tried = replace(config.estimator, **combination)
    pairs = [(p, s) for p in grid.penalties for s in grid.sizes]
    screen_nystrom(folds[0], tried, grid.penalties[:1], grid.sizes[:1])  # compiles
    started = time.process_time()
    together = [screen_nystrom(f, tried, grid.penalties, grid.sizes) for f in folds]
    path = time.process_time() - started
    started = time.process_time()
    alone = [{(p, s): screen_nystrom(f, tried, [p], [s])[p, s] for p, s in pairs} for f in folds]
    single = time.process_time() - started
    worst = max(
        float(np.max(np.abs(a[key].frozen / b[key].frozen - 1.0)))
        for a, b in zip(together, alone, strict=True)
        for key in pairs
    )
    print(
        f"{arm}: {len(pairs)} candidates of one width on {len(folds)} folds: path {path:.1f} s, "
        f"each for itself {single:.1f} s ({single / path:.1f} times); scores differ by {worst:.0e}"
    )


if __name__ == "__main__":
    main()
