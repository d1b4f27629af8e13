"""The learner live: one measurement in, one prediction out, one sample learned, in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .table import (
    Arrays,
    case,
    counted,
    data,
    log,
    measurements,
    moving_arm,
    small_arm,
    state_arrays,
)

RESIDUALS = ("nystrom", "random_fourier")
VALUES = ("rigid_body", "semiparametric", "nonparametric")
# Small enough to be quick, and large enough that centres run out.
SETTINGS: dict[str, Any] = {
    "nystrom.max_centers": 120,
    "nystrom.wide_max_centers": 40,
    "nystrom.window": 3.0,
    "random_fourier.n_features": 120,
    "random_fourier.window": 3.0,
    "comparison": True,
}
ROWS = slice(0, 600)
Ask = dict[int, Callable[[Any], Arrays]]  # before the measurement of this number


def config_of(**values: Any) -> Any:
    """The learner's configuration; a dot in a name is written as two underscores."""
    from semiparam_dynamics.base.parameters import from_flat
    from semiparam_dynamics.learner.config import InverseDynamicsConfig

    named = {name.replace("__", "."): value for name, value in values.items()}
    return from_flat(InverseDynamicsConfig, SETTINGS | named)


def learner_of(urdf: Any, **values: Any) -> Any:
    """A learner of the robot in a URDF."""
    from semiparam_dynamics.dynamics import RobotModel
    from semiparam_dynamics.learner.learner import InverseDynamicsLearner

    config = config_of(**values)
    return InverseDynamicsLearner(RobotModel(urdf, config.robot), config)


def xmate(**values: Any) -> Any:
    """A learner of the xMate, configured as in config/robots."""
    own = {"coulomb_velocity": 0.005, "filter__stages": 2}
    return learner_of(data("robots/xmate7p/xmate7p.urdf"), **(own | values))


def wrist(**values: Any) -> Any:
    """A learner of the wrench at the Panda's wrist."""
    own: dict[str, Any] = {"target": "wrench", "sensor_frame": "sensor"}
    own |= {"nystrom__window": 1.5, "random_fourier__window": 1.5}
    return learner_of(data("robots/panda_wrist/panda_wrist.urdf"), **(own | values))


def follow(learner: Any, messages: Iterable[Any], ask: Ask | None = None) -> Arrays:
    """Everything that a learner says while it goes through measurements, and what it then knows."""
    said: dict[str, list[Any]] = {}
    answers: Arrays = {}
    for k, measurement in enumerate(messages):
        if ask and k in ask:
            answers |= ask[k](learner)
        step = learner.predict(measurement)
        if step is None:
            continue
        prediction, nothing = step.prediction, np.full(learner.model.n_axes, np.nan)
        row = {"stamp": step.stamp, "confidence": prediction.confidence}
        baseline = None if learner.baseline is None else learner.baseline.predict(step.sample)
        for name in VALUES:
            source = baseline if name == "nonparametric" else prediction
            for key in (name, f"{name}_std"):
                row[key] = nothing if source is None else getattr(source, key)
        row["y"] = nothing if step.y is None else step.y
        for name, value in row.items():
            said.setdefault(name, []).append(value)
        learner.update(learner.admit(step))
    found = {name: np.array(rows, dtype=float) for name, rows in said.items()}
    return found | answers | known(learner)


def known(learner: Any) -> Arrays:
    """Scores, counts and state of a learner."""
    found = counted(learner.dropped)
    for name, scores in (("scores", learner.scores), ("recent", learner.recent)):
        for model in VALUES:
            found[f"{name}/{model}/rmse"] = scores.rmse(model)
            found[f"{name}/{model}/nmse"] = scores.nmse(model)
            found[f"{name}/{model}/coverage"] = scores.coverage(model)
    state = learner.state()
    if learner.baseline is not None:
        learned = learner.baseline.kernel_model.state()
        state |= {f"alone.{name}": values for name, values in learned.items()}
    return found | state_arrays(state)


def feedforward(q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> Callable[[Any], Arrays]:
    """A question about desired states in the middle of a run."""

    def ask(learner: Any) -> Arrays:
        answer = learner.feedforward(q, dq, ddq)
        names = ("rigid_body", "semiparametric")
        found = {f"feedforward/{name}": answer.values[name].copy() for name in names}
        return found | {f"feedforward/{name}_std": answer.stds[name].copy() for name in names}

    return ask


@case("live/nystrom/effort", residual="nystrom")
@case("live/random_fourier/effort", residual="random_fourier")
@case("live/nystrom/effort_without_comparison", residual="nystrom", comparison=False)
@case("live/random_fourier/effort_without_comparison", residual="random_fourier", comparison=False)
@case("live/nystrom/from_zero", residual="nystrom", rigid_body__prior="zero")
@case("live/nystrom/without_velocities", velocities=False, residual="nystrom")
@case("live/nystrom/max_rate", residual="nystrom", filter__max_rate=25.0)
@case("live/nystrom/without_filter", residual="nystrom", filter__cutoff=0.0)
@case("live/nystrom/one_level", residual="nystrom", nystrom__wide_max_centers=0)
@case(
    "live/nystrom/many_centers",
    residual="nystrom",
    nystrom__max_centers=500,
    nystrom__wide_max_centers=200,
)
@case(
    "live/random_fourier/many_features", residual="random_fourier", random_fourier__n_features=500
)
def effort(velocities: bool = True, **values: Any) -> Arrays:
    """The xMate's efforts."""
    arrays = log("xmate7p/trajectory_1", ROWS)
    return follow(xmate(**values), measurements(arrays, velocities=velocities))


@case("live/nystrom/wrench", residual="nystrom")
@case("live/random_fourier/wrench", residual="random_fourier")
def wrench(**values: Any) -> Arrays:
    """The wrench at the Panda's wrist, at 200 Hz."""
    arrays = log("panda_wrist/am1", slice(0, 900))
    return follow(wrist(**values), measurements(arrays, "wrench"))


@case("live/nystrom/memory", residual="nystrom")
def memory(**values: Any) -> Arrays:
    """Forgetting, by the rigid body and by the residual."""
    memories = {"rigid_body__memory": 3.0, "nystrom__memory": 2.0}
    return follow(xmate(**memories, **values), measurements(log("xmate7p/trajectory_1", ROWS)))


@case("live/nystrom/feedforward", residual="nystrom")
@case("live/random_fourier/feedforward", residual="random_fourier")
def desired(**values: Any) -> Arrays:
    """Desired states are asked about in the middle, which what follows does not notice."""
    arrays = log("xmate7p/trajectory_1", ROWS)
    q, dq = arrays["q"][100:140], arrays["dq"][100:140]
    ask = {400: feedforward(q, dq, np.gradient(dq, 0.02, axis=0))}
    return follow(xmate(**values), measurements(arrays), ask)


@case("live/nystrom/reconfigured", residual="nystrom")
@case("live/random_fourier/reconfigured", residual="random_fourier")
def reconfigured(residual: str) -> Arrays:
    """Live parameters change while it learns: ridges up and down, a memory, no comparison."""

    def to(**values: Any) -> Callable[[Any], Arrays]:
        return lambda learner: learner.configure(replaced(learner.config, values)) or {}

    def replaced(config: Any, values: dict[str, Any]) -> Any:
        from semiparam_dynamics.base.parameters import replace

        return replace(config, **values)

    ask = {
        300: to(**{f"{residual}__penalty": 40.0}),
        400: to(**{f"{residual}__penalty": 10.0}),
        500: to(comparison=False, rigid_body__memory=4.0, output__bound=(20.0,)),
    }
    arrays = log("xmate7p/trajectory_1", ROWS)
    return follow(xmate(residual=residual), measurements(arrays), ask)


@case("live/nystrom/batch_start", residual="nystrom")
@case("live/random_fourier/batch_start", residual="random_fourier")
def batch_start(residual: str) -> Arrays:
    """Trained in batch on one motion, it continues learning on another."""
    from semiparam_dynamics.dynamics import SampleFilter
    from semiparam_dynamics.dynamics.sample import Motion
    from semiparam_dynamics.offline.evaluation.training import batch_start, training_data
    from semiparam_dynamics.robot.model import expected_scales

    learner = xmate(residual=residual)
    sampler = SampleFilter(learner.model, learner.config.filter)
    pushed = map(sampler.push, measurements(log("xmate7p/trajectory_1", ROWS)))
    samples = [sample for sample in pushed if sample is not None]
    motion = Motion.of(samples, expected_scales(learner.model).active)
    start = batch_start(training_data(learner.model, learner.config.estimator, motion))
    learner.estimator = start.estimator
    found = {f"training/{name}": getattr(start, name) for name in ("rigid_body", "semiparametric")}
    found["training/held_out"] = start.held_out
    after = measurements(log("xmate7p/trajectory_2", slice(0, 300)))
    return found | follow(learner, after)


@case("live/nystrom/gate", residual="nystrom")
@case("live/random_fourier/gate", residual="random_fourier")
def gate(residual: str) -> Arrays:
    """Somebody pushes a simulated arm: briefly, which is not learned, and then for long."""
    learner = simulated(residual=residual, output__gate=5.0, output__gate_longest=2.0)
    arrays = moving_arm(learner.model, 24.0)
    for begin, end in ((14.0, 14.6), (17.0, 22.0)):
        during = (arrays["t"] >= begin) & (arrays["t"] < end)
        arrays["tau"][during] += 3.0 * arrays["tau"].std(axis=0)
    return follow(learner, measurements(arrays))


@case("live/nystrom/changes", residual="nystrom")
@case("live/random_fourier/changes", residual="random_fourier")
@case("live/nystrom/changes_of_wrench", target="wrench", sensor_frame="boom_sensor")
def changes(**values: Any) -> Arrays:
    """A simulated arm takes a payload, pushes, and puts it down; payloads are kept by name."""
    learner = simulated(changes__detect=True, changes__settle=10.0, **values)
    model = learner.model
    arrays = moving_arm(model, 65.0)
    states = zip(arrays["q"], arrays["dq"], arrays["ddq"], strict=True)
    mass, center = 1.5, np.array([0.02, -0.01, 0.08])
    inertia = 0.002 * np.eye(3) + mass * (center @ center * np.eye(3) - np.outer(center, center))
    lower = inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
    payload = np.concatenate(([mass], mass * center, lower))
    held = np.array([model.inertial_regressor(*state)[:, -10:] @ payload for state in states])
    t = arrays["t"]
    holds = ((t >= 20.0) & (t < 46.0)) | (t >= 58.0)
    arrays["tau"] = arrays["tau"] + held * holds[:, None]
    arrays["tau"][(t >= 41.0) & (t < 42.0)] += 4.0 * arrays["tau"].std(axis=0)
    some = slice(100, 120)
    ask: Ask = {
        2000: feedforward(arrays["q"][some], arrays["dq"][some], arrays["ddq"][some]),
        2001: lambda learner: learner.changes.remember("tool") or {},
        2900: lambda learner: learner.changes.recall("tool") or {},
    }
    found = follow(learner, measurements(arrays), ask)
    events = [(e.stamp, e.onset, e.evidence) for e in learner.changes.events]
    payload = learner.changes.payload
    for name in ("mass", "center", "inertia", "mass_std", "center_std", "inertia_std"):
        found[f"payload/{name}"] = np.array(getattr(payload, name, np.nan))
    return found | {"events": np.array(events, dtype=float).reshape(-1, 3)}


def simulated(**values: Any) -> Any:
    """A learner of the small arm."""
    from semiparam_dynamics.learner.learner import InverseDynamicsLearner

    config = config_of(**values)
    return InverseDynamicsLearner(small_arm(**vars(config.robot)), config)
