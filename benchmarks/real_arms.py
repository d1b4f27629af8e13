"""The learner on logs of real arms: errors by protocol, joint by joint, coverage, and the start.

    python benchmarks/real_arms.py DATA [--residual random_fourier]
    python benchmarks/real_arms.py DATA --study joints [--arms xmate7p ur10 tx40 simulated]
    python benchmarks/real_arms.py DATA --study coverage [--arms xmate7p ... payload]
    python benchmarks/real_arms.py DATA --study start [--seconds 10]
    python benchmarks/real_arms.py DATA --study splits [--arms ...]
    python benchmarks/real_arms.py DATA --study rest [--arms ...]
    python benchmarks/real_arms.py DATA --study share [--arms ...]

DATA holds robots. `protocols`: normalised mean squared errors per joint of the three arms whose
settings were chosen, under the three protocols, compared with batch references.

The others are on whole trajectories that are held out (arms.py). `joints`: semiparametric over
rigid-body error, joint by joint; 1 is the rigid body, `always` the residual without trust
(`trust.threshold` 0). `simulated` is two simulated arms whose exciting motions have other seeds.

`coverage`: the share of samples in motion that two standard deviations of the semiparametric model
cover, on the mean over the joints, on the worst joint, and on that joint's worst 30 s. `payload` is
five simulated arms that take up a body of 0.3 to 2 kg after a minute; half a minute from then on
counts.

`start`: each log is learned from its first sample on by a model that has never seen the robot;
errors of the first seconds of motion, on the mean over the joints, and the semiparametric model's
over the rigid body's, of the mean and of the worst joint.

`splits`: each split of all arms: frozen and delayed errors, also of a rigid body with viscous and
Coulomb friction alone, and the worst joint of the semiparametric over the rigid body's; what two
standard deviations cover.

`rest`: errors on the last log, or the last 40 % of one, after learning the first, relative to those
without rest, with 15, 60 and 300 s of it where the arm is slowest in the first, sixth or last
tenth of what is learned: positions stay, and efforts with their noise.

`share`: the share of its information that a sample counts (`evidence.INFORMATION_SHARE`): each
arm's errors of the rigid body on motion never seen, relative to those with the package's, and which
share is the best one of all other arms.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
from arms import (
    LOGS,
    PLAIN,
    SEVEN,
    SEVEN_JOINTS,
    TUNED,
    UR10,
    WITH_SPLITS,
    Split,
    learned,
    measurements,
    options,
    read_logs,
    recordings,
    robot,
    samples,
    settings,
    splits,
)
from output import make_parser, parse

from semiparam_dynamics.base.arrays import SECOND
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics import evidence
from semiparam_dynamics.dynamics.estimator import BlockPrediction, SemiparametricEstimator
from semiparam_dynamics.dynamics.filtering import SampleFilter
from semiparam_dynamics.dynamics.rigid_body import RigidBodyIdentifier
from semiparam_dynamics.dynamics.sample import Sample, SampleBlock
from semiparam_dynamics.dynamics.scores import RunningScores
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.doctor.joint_log import JointLog
from semiparam_dynamics.offline.evaluation.experiment import TRAINING_SHARE, evaluate
from semiparam_dynamics.offline.evaluation.protocols import PROTOCOLS, ProtocolRun
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.simulation.arm import ArmSimulator, simulated

BATCH = {"xmate7p": 0.0144, "ur10": 0.0292}  # ridge on the same columns, filtered without a phase
MODELS = ("urdf", "rigid_body", "nonparametric", "semiparametric", "persistence")
RATIO_LIMIT = 1.02  # semiparametric over rigid-body error that a joint may have
WINDOW_NS, MIN_WINDOW_NS = 30_000_000_000, 10_000_000_000  # of time, and the least that counts
LEARN_S, HELD_S = 60.0, 30.0  # before a payload, and with it


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--study", choices=STUDIES, default="protocols")
    choices = (*WITH_SPLITS, "simulated", "payload")
    parser.add_argument("--arms", nargs="+", choices=choices, help="default: those of the study")
    parser.add_argument("--residual", default="nystrom", choices=("nystrom", "random_fourier"))
    parser.add_argument("--seeds", type=int, default=2, help="of `simulated` (default 2)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of `start` (default 10)")
    args = parse(parser)
    STUDIES[args.study](args)


def splits_of(
    args: argparse.Namespace, default: tuple[str, ...], **overrides: object
) -> Iterator[Split]:
    """The splits of the arms that are asked for, each with its arm's name."""
    for arm in args.arms or default:
        if arm == "simulated":
            yield from simulated_splits(args.data / "robots", args.seeds, **overrides)
        elif arm == "payload":
            yield from payloads(args.data)
        else:
            for split in splits(args.data, arm, **overrides):
                yield split._replace(name=f"{arm} {split.name}")


# -------------------------------------------------------------------------------------------------
# Protocols


def protocols(args: argparse.Namespace) -> None:
    """Print the errors of each model under each protocol, joint by joint."""
    for arm in args.arms or TUNED:
        config = replace(settings(arm), residual=args.residual)
        model = robot(args.data / "robots", arm, config)
        read = recordings(args.data / "robots", arm, model, config)
        started = time.perf_counter()
        evaluation = evaluate(model, config, read[-1:], read[:-1])
        took = time.perf_counter() - started
        runs = list(evaluation.runs.items())
        split = "trajectories 1, 2 -> 3" if len(read) > 1 else "first 60 % -> rest"
        print(f"\n{arm}, {split} ({evaluation.samples} samples, {took:.1f} s)")
        table(
            arm,
            model,
            {p: run.scored.scores_apart().get(f"{p}_rest", run.scores) for p, run in runs},
        )


def table(name: str, model: RobotModel, scores: dict[str, RunningScores]) -> None:
    joints = "".join(f"{joint[-9:]:>10}" for joint in model.joint_names)
    print(f"{'protocol':<11}{'model':<16}{'mean':>9}{joints}  covered by 2 sd")
    for protocol, score in scores.items():
        for key in MODELS:
            nmse, covered = score.nmse(key), score.coverage(key)
            cells = "".join(f"{value:>10.4f}" for value in nmse)
            share = (
                ""
                if np.isnan(covered).any()
                else f"  {covered.mean():.2f}, least {covered.min():.2f}"
            )
            print(f"{protocol:<11}{key:<16}{nmse.mean():>9.4f}{cells}{share}")
        ratio = score.nmse("semiparametric").mean() / score.nmse("rigid_body").mean()
        worst = (score.nmse("semiparametric") / score.nmse("rigid_body")).max()
        print(
            f"{protocol:<11}semiparametric is {ratio:.3f} x rigid body, worst joint {worst:.3f} x"
        )
    if name in BATCH:
        ratio = scores["frozen"].nmse("rigid_body").mean() / BATCH[name]
        print(f"frozen rigid body is {ratio:.3f} x the batch reference {BATCH[name]}")


# -------------------------------------------------------------------------------------------------
# Joints


def joints(args: argparse.Namespace) -> None:
    """Print semiparametric over rigid-body errors, with trust and without."""
    print("| split | protocol | mean, always | mean | worst joint, always | worst joint | joints |")
    print("|---" * 7 + "|")
    above = 0
    for split in splits_of(args, (*TUNED, "simulated")):
        without = replace(split.config, trust__threshold=0.0)
        always, trusted = ratios(split._replace(config=without)), ratios(split)
        for protocol, (mean, of_joints) in trusted.items():
            before, worst = always[protocol]
            cells = " ".join(f"{ratio:.3f}" for ratio in of_joints)
            print(
                f"| {split.name} | {protocol} | {before:.3f} | {mean:.3f} | {worst.max():.3f} "
                f"| {of_joints.max():.3f} | {cells} |",
                flush=True,
            )
            above += int((of_joints > RATIO_LIMIT).sum()) if protocol == "frozen" else 0
    print(f"\n{above} joints above {RATIO_LIMIT} on motion not seen (frozen)")


def ratios(split: Split) -> dict[str, tuple[float, np.ndarray]]:
    """Semiparametric over rigid-body error by protocol: of the means, and each axis's."""
    first, found = learned(split.model, split.config.estimator, split.train), {}
    for protocol in ("frozen", "delayed"):
        run = first.branch(protocol)
        for sample in split.test:
            run.step(sample)
        both, rigid = (run.scores.nmse(name) for name in ("semiparametric", "rigid_body"))
        found[protocol] = float(both.mean() / rigid.mean()), both / rigid
    return found


def simulated_splits(robots: Path, seeds: int, **overrides: object) -> Iterator[Split]:
    """50 s of two exciting motions, and 25 s of a third one, of arms with friction and noise."""
    for arm, urdf, effects in (
        ("UR10", str(robots / "ur10" / "ur10_robot.urdf"), UR10),
        ("seven joints", str(SEVEN), SEVEN_JOINTS),
    ):
        given = {"motion": "exciting", "rate": 100.0, **options(effects)}
        config = replace(InverseDynamicsConfig(), filter__cutoff=8.0)
        config = replace(config, target="effort", joints=effects.get("joints", ()), **overrides)
        for seed in range(1, seeds + 1):
            arms = [ArmSimulator(urdf, seed=seed + 100 * k, **given) for k in range(3)]
            model = RobotModel(arms[0].urdf, config.robot)
            first, second, third = (recorded(model, config, each) for each in arms)
            yield Split(f"simulated {arm}, seed {seed}", model, config, first + second, third)


def recorded(
    model: RobotModel, config: InverseDynamicsConfig, arm: ArmSimulator, count: int = 2500
) -> list[Sample]:
    """The first `count` samples of an arm's motion."""
    sampler, found = SampleFilter(model, config.filter), []
    for measurement in simulated(arm, "effort"):
        sample = sampler.push(measurement)
        if sample is not None:
            found.append(sample)
            if len(found) == count:
                break
    return found


# -------------------------------------------------------------------------------------------------
# Coverage


def coverage(args: argparse.Namespace) -> None:
    """Print what two predicted standard deviations cover of motion never seen."""
    print(f"| split | {' | '.join(PROTOCOLS)} |\n|---" + "|---" * len(PROTOCOLS) + "|")
    for split in splits_of(args, (*LOGS, "payload")):
        print(f"| {split.name} | {' | '.join(coverages(split))} |", flush=True)


class Watched(ProtocolRun):
    """A run that keeps which samples were covered."""

    def __init__(self, estimator: SemiparametricEstimator, protocol: str) -> None:
        super().__init__(estimator, protocol)
        self.stamps: list[np.ndarray] = []
        self.covered: list[np.ndarray] = []

    def take(self, block: SampleBlock, prediction: BlockPrediction, waiting: object) -> None:
        rows = block.informative
        error = block.y - prediction.values["semiparametric"]
        inside = np.where(
            np.isnan(error), np.nan, abs(error) <= 2.0 * prediction.stds["semiparametric"]
        )
        self.stamps.append(block.stamps[rows])
        self.covered.append(inside[rows])


def coverages(split: Split) -> Iterator[str]:
    """The figures of each protocol."""
    first = learned(split.model, split.config.estimator, split.train).estimator
    for protocol in PROTOCOLS:
        run = Watched(first.copy(), protocol)
        for sample in split.test:
            run.step(sample)
        run.catch_up()
        stamps, covered = np.concatenate(run.stamps), np.concatenate(run.covered)
        shares = np.nanmean(covered, axis=0)
        windows = (stamps - stamps[0]) // WINDOW_NS
        worst = [
            np.nanmean(covered[windows == k, np.nanargmin(shares)])
            for k in np.unique(windows)
            if np.ptp(stamps[windows == k]) >= MIN_WINDOW_NS
        ]
        least = min(worst, default=float("nan"))
        yield f"{np.nanmean(shares):.2f} ({np.nanmin(shares):.2f}, {least:.2f})"


def payloads(data: Path) -> Iterator[Split]:
    """A minute of five simulated arms with the bare hand, then half a minute with a body in it."""
    given = {"motion": "exciting", "rate": 100.0, "hand_frame": "tool0", **options(UR10)}
    urdf = str(data / "robots" / "ur10" / "ur10_robot.urdf")
    config = replace(InverseDynamicsConfig(), target="effort", filter__cutoff=8.0)
    for seed in range(1, 6):
        arm = ArmSimulator(urdf, seed=seed, **given)
        model = RobotModel(arm.urdf, config.robot)
        rng, sampler = np.random.default_rng(seed), SampleFilter(model, config.filter)
        parts: list[list[Sample]] = [[], []]
        for measurement in simulated(arm, "effort"):
            now = measurement.stamp * 1e-9
            if now >= LEARN_S and not parts[1]:
                mass = 0.3 * (2.0 / 0.3) ** rng.uniform()
                arm.hand.attach(mass, rng.uniform(-0.05, 0.05, 3), 0.002 * mass * np.eye(3))
            if now >= LEARN_S + HELD_S:
                break
            if (sample := sampler.push(measurement)) is not None and sample.y is not None:
                parts[now >= LEARN_S].append(sample)
        yield Split(f"simulated UR10, seed {seed}, {mass:.2f} kg", model, config, *parts)


# -------------------------------------------------------------------------------------------------
# Start


def start(args: argparse.Namespace) -> None:
    """Print the errors of the first seconds of learning."""
    print("| log | samples | rigid body | semiparametric | of the rigid body's, worst joint |")
    print("|---|---|---|---|---|")
    begun: set[str] = set()
    for split in splits_of(args, WITH_SPLITS):
        first = [sample for sample in split.train if sample.informative]
        log = split.name.split(" →")[0].split(",")[0]
        if log in begun:
            continue
        begun.add(log)
        run = ProtocolRun(
            SemiparametricEstimator(split.model, split.config.estimator), "sequential"
        )
        for sample in first:
            if not 0 <= sample.stamp - first[0].stamp <= args.seconds * 1e9:
                break
            run.step(sample)
        rigid, both = (run.scores.nmse(name) for name in ("rigid_body", "semiparametric"))
        ratio = f"{both.mean() / rigid.mean():.2f}, {(both / rigid).max():.2f}"
        cells = f"{run.scores.samples} | {rigid.mean():.4f} | {both.mean():.4f} | {ratio}"
        print(f"| {log} | {cells} |", flush=True)


# -------------------------------------------------------------------------------------------------
# Splits


def errors_of_splits(args: argparse.Namespace) -> None:
    """Print errors and coverage of each split, with defaults."""
    heads = " | ".join(f"{p}: {c}" for p in ("frozen", "delayed") for c in COLUMNS)
    print(f"| split | {heads} |")
    print("|---" * (1 + 2 * len(COLUMNS)) + "|")
    for split, plain in zip(
        splits_of(args, WITH_SPLITS), splits_of(args, WITH_SPLITS, **PLAIN), strict=True
    ):
        first, cells = learned(split.model, split.config.estimator, split.train), []
        friction = learned(plain.model, plain.config.estimator, plain.train)
        for protocol in ("frozen", "delayed"):
            run, alone = first.branch(protocol), friction.branch(protocol)
            for sample in split.test:
                run.step(sample)
            for sample in plain.test:
                alone.step(sample)
            cells.append(f"{alone.scores.nmse('rigid_body').mean():.4f}")
            rigid, both = (run.scores.nmse(name) for name in ("rigid_body", "semiparametric"))
            covered = run.scores.coverage("semiparametric")
            cells += [f"{rigid.mean():.4f}", f"{both.mean():.4f}", f"{(both / rigid).max():.2f}"]
            cells += [f"{covered.mean():.2f} ({covered.min():.2f})"]
        print(f"| {split.name} | {' | '.join(cells)} |", flush=True)


# -------------------------------------------------------------------------------------------------
# Rest


def rested(args: argparse.Namespace) -> None:
    """Print errors after learning a log with rest in it, relative to the log without."""
    heads = [f"{where}, {seconds} s" for where in RESTS for seconds in REST_SECONDS]
    print(f"| arm, protocol | without | {' | '.join(heads)} |")
    print("|---" * (2 + len(heads)) + "|")
    for arm in args.arms or ("xmate7p", "ur10", "airbot", "tiago", "lwr4"):
        urdf, logs = read_logs(args.data / "robots", arm)
        config = replace(settings(arm), joints=logs[0].names)
        model, first, last = RobotModel(urdf, config.robot), logs[0], logs[-1]
        if len(logs) == 1:
            cut = round(TRAINING_SHARE * len(first))
            first, last = first.rows(slice(0, cut)), last.rows(slice(cut, None))
        test = samples(model, config, measurements(last, model, config))
        found: dict[str, list[np.ndarray]] = {"frozen": [], "delayed": []}
        for where, seconds in [("middle", 0), *itertools.product(RESTS, REST_SECONDS)]:
            log = with_rest(first, where, seconds)
            train = samples(model, config, measurements(log, model, config))
            begun = learned(model, config.estimator, train)
            for protocol, errors in found.items():
                run = begun.branch(protocol)
                for sample in test:
                    run.step(sample)
                errors.append(run.scores.nmse("semiparametric").mean())
        for protocol, errors in found.items():
            ratios = " | ".join(f"{error / errors[0]:.3f}" for error in errors[1:])
            print(f"| {arm}, {protocol} | {errors[0]:.4f} | {ratios} |", flush=True)


def with_rest(log: JointLog, where: str, seconds: float) -> JointLog:
    """The log with so many seconds of rest at its beginning, in its middle or at its end."""
    begin = len(log) * RESTS[where] // 10
    steps = np.diff(log.q[begin : begin + len(log) // 10], axis=0)
    at = begin + int(np.abs(steps).max(axis=1).argmin())
    step = int(np.median(np.diff(log.stamps)))
    n = round(seconds * SECOND / step)
    noise = np.diff(log.y, axis=0).std(axis=0) / np.sqrt(2.0)
    here, rng = slice(at, at + 1), np.random.default_rng(0)
    held = log.y[here] + noise * rng.standard_normal((n, log.y.shape[1]))
    stamps = log.stamps[at] + step * np.arange(n)
    later = log.stamps[at:] + step * n

    def joined(values: np.ndarray, between: np.ndarray) -> np.ndarray:
        return np.concatenate((values[:at], between, values[at:]))

    dq = None if log.dq is None else joined(log.dq, np.zeros((n, log.dq.shape[1])))
    q = joined(log.q, np.repeat(log.q[here], n, axis=0))
    times = np.concatenate((log.stamps[:at], stamps, later))
    return JointLog(log.names, times, q, dq, joined(log.y, held))


RESTS, REST_SECONDS = {"beginning": 0, "middle": 5, "end": 9}, (15, 60, 300)

# -------------------------------------------------------------------------------------------------
# Share of a sample's information


def shares(args: argparse.Namespace) -> None:
    """Print each arm's errors by share, and the share that the other arms would choose."""
    of_arm: dict[str, list[np.ndarray]] = {}
    for split in splits_of(args, WITH_SPLITS):
        train, test = SampleBlock.of(split.train), SampleBlock.of(split.test)
        train, errors = train.rows(train.informative), []
        for share in SHARES:
            with mock.patch.object(evidence, "INFORMATION_SHARE", share):
                rigid = RigidBodyIdentifier.of(split.model, split.config.estimator.rigid_body)
                rigid.update_block(train.regressors, train.y, train.stamps, train.weights)
            left = test.y - test.regressors @ rigid.parameters
            errors.append(np.mean(np.mean(left**2, axis=0) / test.y.var(axis=0)))
        of_arm.setdefault(split.name.split()[0], []).append(np.log(errors))
    own = SHARES.index(evidence.INFORMATION_SHARE)
    means = {
        arm: np.mean(rows, axis=0) - np.mean(rows, axis=0)[own] for arm, rows in of_arm.items()
    }
    print(f"| arm | {' | '.join(map(str, SHARES))} | best of the others |")
    print("|---" * (len(SHARES) + 2) + "|")
    for arm, mean in means.items():
        others = np.mean([row for name, row in means.items() if name != arm], axis=0)
        cells = " | ".join(f"{ratio:.2f}" for ratio in np.exp(mean))
        print(f"| {arm} | {cells} | {SHARES[int(np.argmin(others))]} |")
    cells = " | ".join(f"{ratio:.2f}" for ratio in np.exp(np.mean(list(means.values()), axis=0)))
    print(f"| all | {cells} | |")


SHARES = (0.03, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0)
COLUMNS = ("plain rigid body", "rigid body", "semiparametric", "worst joint", "covered")
STUDIES = {
    "protocols": protocols,
    "joints": joints,
    "coverage": coverage,
    "start": start,
    "splits": errors_of_splits,
    "rest": rested,
    "share": shares,
}

if __name__ == "__main__":
    main()
