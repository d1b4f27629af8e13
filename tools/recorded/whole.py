"""Everything together: tuning, training, identification, simulation, control."""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from .live import SETTINGS, config_of
from .messages import joint_state
from .recordings import NOT_COMPARED, XMATE, bag_of, semiparam, two_bags
from .table import (
    ROOT,
    Arrays,
    case,
    counted,
    data,
    log,
    moving_arm,
    numbers,
    small_arm,
    state_arrays,
)

SEVEN = str(ROOT / "test" / "data" / "seven_joint_arm.urdf")
JOINTS = tuple(f"joint{i}" for i in range(1, 5))  # of it that move
sys.path.insert(0, str(ROOT / "benchmarks"))


@case("tuning/nystrom", residual="nystrom")
@case("tuning/random_fourier", residual="random_fourier")
def tuning(residual: str) -> Arrays:
    """A few candidates on a short part of the xMate's log: scores, and what is chosen."""
    from semiparam_dynamics.base.parameters import to_flat
    from semiparam_dynamics.offline.evaluation.bags import Bags
    from semiparam_dynamics.offline.tuning.tuner import tune_on_bags

    keep = ["residual", "nystrom.penalty", "random_fourier.penalty", "nystrom.wide_max_centers"]
    config = config_of(residual=residual, nystrom__length_scale=0.05, nystrom__window=2.0)
    with tempfile.TemporaryDirectory() as folder:
        bag = bag_of("xmate7p/trajectory_1", slice(0, 600), Path(folder), XMATE)
        bags = Bags((), (bag,), data(f"robots/{XMATE}"))
        found = tune_on_bags(bags, config, keep=keep)
    parts = {
        "searches": [dataclasses.asdict(search) for search in found.searches],
        "confirmed": {name: dataclasses.asdict(each) for name, each in found.confirmed.items()},
        "chosen": to_flat(found.config),
    }
    return numbers(parts)


@case("training/nystrom_krls", residual="nystrom", learner="nystrom_krls")
@case("training/falkon", residual="nystrom", learner="falkon")
@case("training/random_features", residual="random_fourier", learner="random_features")
def training(residual: str, learner: str) -> Arrays:
    """Trained in batch by the command line, saved, and evaluated on another motion from there."""
    from semiparam_dynamics.offline.evaluation.bags import Bags, evaluate_bags

    values: dict[str, Any] = {"residual": residual, "coulomb_velocity": 0.005, "filter.stages": 2}
    options = [
        f"--set={name}={value}"
        for name, value in (SETTINGS | values).items()
        if name != "random_fourier.window"
    ]
    options += ["--learner", learner]
    with tempfile.TemporaryDirectory() as name:
        train, test = two_bags(folder := Path(name))
        semiparam("train", train, "--out", folder, *options)
        config, bags = (
            config_of(**values | {"random_fourier.window": 10.0}),
            Bags((test,), (), data(f"robots/{XMATE}")),
        )
        found = evaluate_bags(bags, config, start=folder / "model.npz")
    return numbers(found.results(), without=NOT_COMPARED)


@case("identification/xmate")
def identification() -> Arrays:
    """Parameters that a robot can have, of the xMate; the last 40 % are only scored."""
    from semiparam_dynamics.offline.evaluation.bags import Bags
    from semiparam_dynamics.offline.identification.identify import identify_on_bags

    config = config_of(coulomb_velocity=0.005, filter__stages=2)
    with tempfile.TemporaryDirectory() as folder:
        bag = bag_of("xmate7p/trajectory_1", slice(0, 1000), Path(folder), XMATE)
        found = identify_on_bags(Bags((), (bag,), data(f"robots/{XMATE}")), config)
    assert found.trial is not None  # nosec B101 # six seconds are enough
    arrays = {
        f"{kind}/{key}": np.asarray(v)
        for kind, parameters in vars_of(found.trial).items()
        for key, v in vars_of(parameters).items()
    }
    return arrays | {"nmse/test": found.held_out.factors.nmse(found.trial.full.base)}


def vars_of(value: Any) -> dict[str, Any]:
    """A dataclass' fields, as they are."""
    return {entry.name: getattr(value, entry.name) for entry in dataclasses.fields(value)}


@case("identification/bodies")
def bodies() -> Arrays:
    """The small arm's parameters from its own motion, by the command line, into a URDF."""
    arm = moving_arm(small_arm(), 12.0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        urdf = ROOT / "test" / "data" / "small_arm.urdf"
        np.savez(folder / "log.npz", **{key: arm[key] for key in ("t", "q", "dq", "tau")})
        semiparam("convert", folder / "log.npz", folder / "bag", "--urdf", urdf)
        semiparam("identify", folder / "bag", "--urdf", urdf, "--out", folder / "out")
        lines = (folder / "out" / "parameters.csv").read_text().splitlines()[1:]
        rows = [[float(cell or "nan") for cell in line.split(",")[1:]] for line in lines]
    return {"parameters": np.array(rows)}


@case("identification/excitation")
def excitation() -> Arrays:
    """An exciting motion of the UR10, searched for with a small budget, by the command line."""
    urdf = data("robots/ur10/ur10_robot.urdf")
    budget = ["--period", 6, "--rate", 20, "--repeat", 1]
    for setting in ("starts=1", "iterations=6", "harmonics=3"):
        budget += ["--set", f"search.{setting}"]
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "out"
        semiparam("excite", "--urdf", urdf, "--out", out, *budget)
        lines = (out / "trajectory.csv").read_text().splitlines()[1:]
    return {"trajectory": np.array([[float(cell) for cell in line.split(",")] for line in lines])}


@case("robot/effort")
@case("robot/wrench", target="wrench", sensor_frame="boom_sensor")
@case("robot/fewer_columns", viscous=False, rotor_inertia=False, gravity=(1.0, 0.0, -9.0))
def robot(**values: Any) -> Arrays:
    """Regressors, base parameters, and the URDF's own inverse dynamics."""
    model = small_arm(**values)
    rng = np.random.default_rng(6)
    q, dq, ddq = rng.standard_normal((3, 40, model.n_joints))
    own = [model.inertial_regressor(*state) for state in zip(q, dq, ddq, strict=True)]
    said = [model.inverse_dynamics(*state) for state in zip(q, dq, ddq, strict=True)]
    found = {"regressors": model.regressors(q, dq, ddq), "inertial": np.array(own)}
    found |= {"inverse_dynamics": np.array(said), "prior": model.prior}
    return found | {"inertial_prior": model.inertial_prior}


@case("simulation/seven_joints", urdf=SEVEN, joints=JOINTS, motion="exciting")
@case("simulation/icub", urdf="", motion="circle_xz")
@case("simulation/icub_load", urdf="", motion="exciting", load=True)
def simulation(urdf: str, load: bool = False, **values: Any) -> Arrays:
    """200 readings of a simulated arm with every effect, and with something in its hand."""
    from arms import SMALL_EFFECTS

    from semiparam_dynamics.base.parameters import from_flat
    from semiparam_dynamics.simulation.arm import ArmSimulator
    from semiparam_dynamics.simulation.config import SimulatorConfig

    settings: dict[str, Any] = {"rate": 200.0, "seed": 3, **values}
    if urdf:
        settings |= SMALL_EFFECTS
    arm = ArmSimulator(urdf, from_flat(SimulatorConfig, settings))
    readings = []
    for k in range(200):
        if load and k == 50:
            arm.hand.attach(0.5, np.array([0.0, 0.0, 0.05]), 1e-3 * np.eye(3))
            arm.hand.push(np.array([1.0, -2.0, 3.0]))
        readings.append(vars_of(arm.advance()))
    return {key: np.array([each[key] for each in readings], dtype=float) for key in readings[0]}


@case("control/commands", feedforward="semiparametric")
@case("control/urdf_alone", feedforward="urdf")
def commands(feedforward: str) -> Arrays:
    """Commands at fixed states, with answers of a learner that is surer and surer, then silent."""
    from semiparam_dynamics.base.parameters import from_flat
    from semiparam_dynamics.control.computed_torque import ComputedTorque
    from semiparam_dynamics.control.config import ControlConfig
    from semiparam_dynamics.control.plan import Answer, Plan
    from semiparam_dynamics.dynamics import RobotModel

    model = RobotModel(SEVEN, joints=JOINTS)
    w, rng = np.array([1.0, 2.0, 0.7, 1.5]), np.random.default_rng(9)

    def motion(t: np.ndarray) -> tuple[np.ndarray, ...]:
        angle = np.asarray(t)[:, None] * w
        return 0.3 * np.sin(angle), 0.3 * w * np.cos(angle), -0.3 * w**2 * np.sin(angle)

    plan = Plan(model, motion, 0.01, 10, delay=0.01, lead=0.1)
    config = from_flat(ControlConfig, {"feedforward": feedforward})
    controller = ComputedTorque(model, config)
    said: dict[str, list[np.ndarray]] = {"command": [], "correction": [], "share": [], "urdf": []}
    for k in range(400):
        t = 0.01 * k
        for block in plan.ahead(t):
            values = block.urdf + 0.5 * np.sin(3.0 * block.q) + 0.3
            if k < 300:
                plan.take(block.first, Answer(values, np.full_like(values, 2.0 / (1.0 + 0.05 * k))))
        point = plan.at(t)
        q = point.q + 0.01 * rng.standard_normal(4)
        dq = point.dq + (np.nan if k == 200 else 0.02) * rng.standard_normal(4)
        said["command"].append(controller.command(t, q, dq, point))
        said["correction"].append(controller.correction.value.copy())
        said["share"].append(controller.correction.share.copy())
        said["urdf"].append(point.urdf)
    found = {name: np.array(rows) for name, rows in said.items()}
    return found | counted(controller.counts, "counts") | {"urdf_error": controller.urdf_error}


@case("control/comparison")
def comparison() -> Arrays:
    """The three feed-forwards on a simulated arm whose masses are wrong."""
    from arms import SMALL_EFFECTS
    from closed_loop import ComparisonConfig, compare

    from semiparam_dynamics.base.parameters import from_flat

    settings: dict[str, Any] = SMALL_EFFECTS | {
        "joints": JOINTS,
        "rate": 250.0,
        "motion": "exciting",
    }
    settings |= {"controller.gains.rotor_inertia": (SMALL_EFFECTS["effects.rotor_inertia"],)}
    settings |= {"learner.filter.max_rate": 50.0}
    settings |= {"learner.nystrom.max_centers": 50, "learner.nystrom.wide_max_centers": 10}
    settings |= {"learner.nystrom.window": 0.5}
    done = compare(SEVEN, from_flat(ComparisonConfig, settings), 2.0, 0.5, mass_error=(0.1, 0.3))
    runs = {
        name: {
            "rms": run.rms(done.since).tolist(),
            "rms_links": run.rms(done.since, links=True).tolist(),
            "largest": np.abs(run.error).max(axis=0).tolist(),
            "clipped": float(run.clipped.mean()),
            "learner_share": float(run.share[run.time >= done.since].mean()),
            "asked": run.asked,
            "late": 0 if name == "urdf" else run.late,
        }
        for name, run in done.runs.items()
    }
    found = {"since_s": done.since, "following_error": done.following_error, "seed": 0}
    return numbers(found | {"feedforward": runs})


@case("session/in_turn", residual="nystrom", defer_learning=False)
@case("session/fourier_in_turn", residual="random_fourier", defer_learning=False)
def session(residual: str, defer_learning: bool) -> Arrays:
    """From messages to predictions as in the node; learning is switched off for a while."""
    from semiparam_dynamics.learner.config import InverseDynamicsNodeConfig
    from semiparam_dynamics.learner.nodes.session import Session

    config = InverseDynamicsNodeConfig(
        learner=config_of(residual=residual), defer_learning=defer_learning
    )
    running = Session(data(f"robots/{XMATE}").read_text(), config)
    arrays = log("xmate7p/trajectory_1", slice(0, 400))
    said: dict[str, list[Any]] = {"semiparametric": [], "rigid_body": [], "std": []}
    for k in range(len(arrays["q"])):
        running.learning = not 250 <= k < 300
        stamp = 1_000_000_000 + 20_000_000 * k
        values = (arrays[name][k].tolist() for name in ("q", "dq", "tau"))
        for step in running.joint_state(joint_state(stamp, running.model.joint_names, *values)):
            running.learn(step)
            for name, rows in said.items():
                rows.append(getattr(step.prediction, name))
    running.drain()
    found = {name: np.array(rows) for name, rows in said.items()} | counted(running.dropped())
    running.finish()
    return found | state_arrays(running.learner.state())
