"""Tuning on bags, and the files that it leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path

from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.config_files import dump_yaml
from semiparam_dynamics.base.output_files import write_files
from semiparam_dynamics.learner.config import InverseDynamicsConfig, InverseDynamicsNodeConfig
from semiparam_dynamics.offline.evaluation.bags import Bags, measurements_of, robot_of
from semiparam_dynamics.offline.tuning.candidates import Tuning
from semiparam_dynamics.offline.tuning.folds import Recordings
from semiparam_dynamics.offline.tuning.forecast import Stage
from semiparam_dynamics.offline.tuning.page import tuning_page
from semiparam_dynamics.offline.tuning.tuner import tune
from semiparam_dynamics.offline.tuning.work import Journal, Work


def tune_on_bags(
    bags: Bags,
    config: InverseDynamicsConfig,
    *,
    keep: Sequence[str] = (),
    criterion: str = "delayed",
    journal: Path | None = None,
    executor: Executor | None = None,
    stage: Stage = lambda title, left: lambda share: None,
) -> Tuning:
    """Tune on `bags.train`; the other arguments are those of `tune`.

    journal : a file of what was worked out; resumed from if it is of the same bags and robot,
    else kept beside. Raises BagError, RobotModelError or ConfigurationError with what is missing,
    and StorageError where another file lies in the journal's place.
    """
    model, config = robot_of(bags, config)
    dropped: Counter[str] = Counter()
    measurements = [measurements_of(path, bags, model, config, dropped) for path in bags.train]
    names = [Path(path).name for path in bags.train]
    recordings = Recordings(model, config, names, measurements)
    identity = {"bags": recordings.fingerprint(), "urdf": model.urdf_sha256}
    kept = Journal(journal, identity)
    bags.warnings.extend(kept.warnings)
    work = Work(kept, executor)
    with threadpool_limits(limits=1):
        tuning = tune(
            recordings, model.urdf_text, work, keep=keep, criterion=criterion, stage=stage
        )
    tuning.doubts = tuple(dict.fromkeys(bags.doubts))
    return tuning


def write_tuning(tuning: Tuning, path: Path, urdf: str | Path = "") -> None:
    """Write the node's YAML to `path`, and the page of curves beside it.

    Raises StorageError where that fails.
    """
    config = InverseDynamicsNodeConfig(
        urdf=str(Path(urdf).expanduser().absolute()) if urdf else "", learner=tuning.config
    )
    write_files({path: dump_yaml(config), path.with_suffix(".html"): tuning_page(tuning)})
