"""Exciting trajectories against random ones: condition numbers, and errors of identification.

    python benchmarks/excitation.py DATA

DATA holds robots/xmate7p, ur10 and tx40. For each arm: the default search; then motions are
simulated by the URDF's parameters and friction, with noise of 5 % of each effort's expected size at
100 Hz for one period, and all base parameters identified by ordinary least squares, 20 times. The
error of a parameter is in units of what it would contribute at ordinary motion; that of the efforts
is on 20 random motions, relative to their expected size.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from arms import PLAIN
from output import make_parser, parse

from semiparam_dynamics.offline.identification.excitation import (
    ExcitationConfig,
    ExcitationProblem,
    optimize_excitation,
    random_unknowns,
)
from semiparam_dynamics.offline.identification.joint_motion import FourierTrajectory, motion_limits
from semiparam_dynamics.robot.model import RobotModel, expected_scales

ARMS = {
    "xMate 7 Pro": ("xmate7p/xmate7p.urdf", ()),
    "UR10": ("ur10/ur10_robot.urdf", ()),
    "TX40": ("tx40/tx40.urdf", ("joint_5+joint_6",)),
}
NOISE, RATE = 0.05, 100.0


def errors(
    model: RobotModel, motion: FourierTrajectory, tests: list[FourierTrajectory], seed: int
) -> tuple[float, float]:
    """Root mean square errors of the parameters and of the efforts on other motions."""
    scales = expected_scales(model)
    rng = np.random.default_rng(seed)
    truth = model.prior * scales.column
    effects = [label.startswith(("viscous", "coulomb", "rotor")) for label in model.labels]
    truth[effects] = 0.1

    def rows(trajectory: FourierTrajectory, rate: float) -> np.ndarray:
        states = trajectory(np.arange(round(trajectory.period * rate)) / rate)
        scaled = model.regressors(*states) / scales.output[:, None] / scales.column
        return scaled.reshape(-1, model.n_parameters)

    A = rows(motion, RATE)
    y = A @ truth + NOISE * rng.standard_normal(len(A))
    wrong = np.linalg.lstsq(A, y, rcond=None)[0] - truth
    left = np.concatenate([rows(test, 5.0) @ wrong for test in tests])
    return float(np.sqrt(np.mean(wrong**2))), float(np.sqrt(np.mean(left**2)))


def measure(name: str, path: Path, coupled: tuple[str, ...]) -> None:
    text = path.read_text()
    # The optional kinds of friction are not excited, and to states without a past are Coulomb's.
    model = RobotModel(text, coupled_joints=coupled, **PLAIN)
    limits, config = motion_limits(text, model), ExcitationConfig()
    start = time.perf_counter()
    found = optimize_excitation(model, model, limits, config)
    seconds = time.perf_counter() - start
    usable = limits.scaled(config.position_margin, config.velocity_scale, config.effort_scale)
    problem = ExcitationProblem(model, model, usable, config.period, config.harmonics)
    rng = np.random.default_rng(1234)
    motions = [problem.trajectory(random_unknowns(problem, rng)) for _ in range(40)]
    tests, others = motions[:20], motions[20:]
    random = np.array([errors(model, motion, tests, k) for k, motion in enumerate(others)])
    best = np.array([errors(model, found.trajectory, tests, k) for k in range(20)])
    spread = found.random_conditions
    print(
        f"{name}: {model.n_parameters} parameters; condition number random median"
        f" {np.median(spread):.1f} ({min(spread):.1f} to {max(spread):.1f}), start"
        f" {found.start_condition:.1f}, result {found.condition:.2f}; {seconds:.0f} s\n"
        f"  error of parameters: random {np.median(random[:, 0]):.4f}"
        f" ({random[:, 0].min():.4f} to {random[:, 0].max():.4f}),"
        f" result {np.median(best[:, 0]):.4f}\n"
        f"  error of efforts: random {np.median(random[:, 1]):.5f}"
        f" ({random[:, 1].min():.5f} to {random[:, 1].max():.5f}),"
        f" result {np.median(best[:, 1]):.5f}",
        flush=True,
    )


if __name__ == "__main__":
    parser = make_parser(__doc__)
    parser.add_argument("data", type=Path, help="folder that holds robots/")
    data = parse(parser).data
    for arm, (file, couplings) in ARMS.items():
        measure(arm, data / "robots" / file, couplings)
