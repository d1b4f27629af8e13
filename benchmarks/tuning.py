"""The gain by tuning on real arms.

    python benchmarks/tuning.py DATA [--arms ...] [--from-scratch] [--journals FOLDER]

DATA holds robots (arms.py). Each arm is tuned on its training part alone (the xMate's
trajectories 1 and 2, the first 60 % of the others), starting from config/robots, or from the
package's defaults where there is none or with --from-scratch. Then the configuration before and the
tuned one learn that part and are judged on the rest, which had no part in it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from arms import CONFIG, LOGS, by_time, read_logs, recordings, robot
from output import make_parser, parse

from semiparam_dynamics.base.config_files import load_yaml
from semiparam_dynamics.base.errors import BagError
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.base.progress import processes
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.evaluation.experiment import evaluate
from semiparam_dynamics.offline.tuning.candidates import Recordings
from semiparam_dynamics.offline.tuning.tuner import Tuning, summary, tune
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.samples.measurement import Measurement


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--arms", nargs="+", default=LOGS, choices=LOGS)
    parser.add_argument("--from-scratch", action="store_true", help="not from config/robots")
    parser.add_argument("--keep", nargs="*", default=[], help="parameters that are not tuned")
    parser.add_argument("--journals", type=Path, help="folder for the journals")
    args = parse(parser)
    for arm in args.arms:
        robots = args.data / "robots"
        path = CONFIG / f"{arm}.yaml"
        given = path.exists() and not args.from_scratch
        config = load_yaml(path, InverseDynamicsConfig) if given else InverseDynamicsConfig()
        config = replace(config, target="effort", joints=read_logs(robots, arm)[1][0].names)
        model = robot(robots, arm, config)
        read = [list(recording) for recording in recordings(robots, arm, model, config)]
        train, test = read[:-1], read[-1:]  # the last one is not looked at
        if not train:
            train, test = ([part] for part in by_time(read[0]))
        names = [f"trajectory_{k + 1}" for k in range(len(train))]
        trained = Recordings(model, config, names, train)
        journal = args.journals / f"{arm}.journal" if args.journals else None
        with processes(0) as executor:
            try:
                tuning = tune(trained, args.keep, journal=journal, executor=executor)
            except BagError as error:  # too short to choose by
                print(f"\n{arm}\n{error}", flush=True)
                continue
        print(f"\n{arm}\n{summary(tuning)}\n", flush=True)
        judge(model, tuning, train, test)


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


if __name__ == "__main__":
    main()
