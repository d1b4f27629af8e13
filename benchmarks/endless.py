"""Numerical errors of R, weights and predictions after ten million updates.

    python benchmarks/endless.py

Cycles of rows are learned again and again, with fresh noise: random ones, a seven-joint arm's
regressor, one row for ever, nothing at all after a while, and the arm with one joint that stands
still for an hour at 1 kHz. Without forgetting the weights are compared with the batch solution:
rows and targets are whole numbers times powers of two, so that their sums of products are exact in
float64, and the equations are solved in extended precision.

Columns: the least entry of R's diagonal, the ridge's being 1; the largest prediction at rows
just learned, of the largest target; the trace of (R'R)^-1, of its trace before anything was
learned; the error on the rows shown first, relative to them without noise; the difference of
weights and of predictions from the batch solution, relative to it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from output import make_parser, parse
from scipy.linalg import cho_factor, cho_solve
from serial_arm import serial_arm_urdf
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.learning.recursion.rls import RecursiveLeastSquares
from semiparam_dynamics.robot.model import RobotModel

KINDS = ("none", "exponential", "replacing")
STEPS = {"none": 1.0, "exponential": 0.001, "replacing": 1.0}  # of the memory
WHOLE = 10  # bits of a row's largest entry: the products of 10^7 rows need 44, of float64's 53
NOISE, UNIT = 60.0, 2.0**-6  # of the targets, in whole numbers, and what one of these is
BLOCK = 2000  # rows, at most, between two looks at what is to be forgotten


@dataclass
class Outcome:
    """The figures of one run, in the units of the module's docstring."""

    name: str
    forgetting: str
    updates: int
    finite: bool = True
    diagonal: float = np.inf
    largest: float = 0.0
    trace: float = np.nan
    error: float = np.nan
    weights: float = np.nan
    predictions: float = np.nan
    seconds: float = 0.0


def whole(rows: Array) -> Array:
    """Rows (n, D) as whole numbers of `WHOLE` bits, each column over its own range."""
    size = np.abs(rows).max(axis=0)
    return np.round(rows / np.where(size > 0.0, size, 1.0) * 2.0**WHOLE)


def random_rows(n: int, d: int, seed: int = 0) -> Array:
    return whole(np.random.default_rng(seed).standard_normal((n, d)))


def arm_rows(samples: int, still: int | None = None) -> Array:
    """The regressor's rows (7 samples, D) over a motion's period; joint `still` stays in place."""
    model = RobotModel(serial_arm_urdf(), presliding=())
    rng = np.random.default_rng(0)
    t = np.linspace(0.0, 2.0 * np.pi, samples, endpoint=False)[:, None]
    q, dq, ddq = (np.zeros((samples, model.n_joints)) for _ in range(3))
    for _ in range(4):
        w, phase = rng.integers(1, 6, model.n_joints), rng.uniform(0.0, 6.28, model.n_joints)
        q += 0.5 / w * np.sin(w * t + phase)
        dq += 0.5 * np.cos(w * t + phase)
        ddq -= 0.5 * w * np.sin(w * t + phase)
    scale = np.abs(model.regressors(q, dq, ddq)).max(axis=(0, 1))  # of the whole motion
    if still is not None:
        q[:, still], dq[:, still], ddq[:, still] = 0.3, 0.0, 0.0
    rows = model.regressors(q, dq, ddq).reshape(-1, model.n_parameters)
    return np.round(rows / scale * 2.0**WHOLE)


def run(
    name: str,
    phases: Sequence[tuple[Array, int]],
    forgetting: str = "none",
    *,
    size: float = 1.0,
    memory: float = 1e5,
) -> Outcome:
    """Learn `phases` (rows in whole numbers, updates) one after the other.

    size: what a row's largest entry is, rounded to a power of two. memory: in updates.
    """
    started = time.perf_counter()
    scale = 2.0 ** round(np.log2(size)) / 2.0**WHOLE
    first = phases[0][0]
    d = first.shape[1]
    truth = np.random.default_rng(1).standard_normal(d) / np.sqrt(d)
    core = RecursiveLeastSquares(d, 1, 1.0)
    out = Outcome(name, forgetting, sum(updates for _, updates in phases))
    gram, moment, largest = np.zeros((d, d)), np.zeros(d), 0.0
    due, looks = 0.0, 0
    for Z, updates in phases:
        for rows, again in cycles(Z, updates, max(1, int(memory * STEPS[forgetting]))):
            noise = np.random.default_rng([3, again]).standard_normal(len(rows))
            y = np.round(rows @ truth + NOISE * noise)
            if forgetting == "none":
                gram += rows.T @ rows
                moment += rows.T @ y
            largest = max(largest, float(np.abs(y).max()) * UNIT)
            due += len(rows) / memory
            if forgetting == "replacing":
                for z, target in zip(rows * scale, y * UNIT, strict=True):
                    core.update_replacing(z, target[None], 1.0 / memory)
            else:
                core.update_rows(rows * scale, (y * UNIT)[:, None])
            if forgetting == "exponential" and due >= STEPS[forgetting]:
                core.forget(np.exp(-due))
                due = 0.0
            looks += 1
            if looks % 50 == 0:
                look(core, out, rows * scale)
    look(core, out, rows * scale)
    out.largest /= largest
    W = core.weights()[:, 0]
    clean = first @ truth * UNIT
    out.error = relative(first * scale @ W, clean)
    if forgetting == "none":
        exact = batch_solution(phases, gram, moment, scale)
        out.weights = relative(W, exact)
        Z = np.concatenate([rows[:2000] for rows, _ in phases]).astype(np.longdouble) * scale
        out.predictions = relative(Z @ W, Z @ exact)
    out.seconds = time.perf_counter() - started
    return out


def cycles(Z: Array, updates: int, step: int) -> Iterator[tuple[Array, int]]:
    """Z's rows again and again, a block at a time, with the block's number."""
    size, start, number = min(BLOCK, step), 0, 0
    while updates > 0:
        rows = Z[start : start + min(size, updates)]
        yield rows, number
        updates -= len(rows)
        number += 1
        start = (start + len(rows)) % len(Z)


def look(core: RecursiveLeastSquares, out: Outcome, rows: Array) -> None:
    """Note the extremes of what the recursion is now, and says of the last rows."""
    core.apply_pending()
    diagonal = np.diagonal(core.R)
    variances = core.covariance_diagonal()
    said = rows @ core.weights()
    out.finite &= bool(np.isfinite(core.R).all() and np.isfinite(core.U).all())
    out.finite &= bool(np.isfinite(variances).all() and np.isfinite(said).all())
    out.diagonal = min(out.diagonal, float(diagonal.min()))
    out.trace = float(np.fmax(out.trace, variances.mean()))
    out.largest = max(out.largest, float(np.abs(said).max()))


def batch_solution(
    phases: Sequence[tuple[Array, int]], gram: Array, moment: Array, scale: float
) -> Any:
    """(scale^2 gram + I)^-1 scale moment, (D,), in extended precision."""
    B = moment.astype(np.longdouble) * scale * UNIT
    if len(phases) == 1 and len(np.unique(phases[0][0], axis=0)) == 1:
        # One row z: no factor of A = n z'z + I has that many digits, but A^-1 z' is known.
        return B / (1.0 + np.trace(gram.astype(np.longdouble)) * scale**2)
    A = gram.astype(np.longdouble) * scale**2 + np.eye(len(gram))
    factor = cho_factor(A.astype(float))
    W = np.zeros(len(gram), np.longdouble)
    for _ in range(30):
        W += cho_solve(factor, (B - A @ W).astype(float))
    return W


def relative(values: Any, expected: Any) -> float:
    """|values - expected| / |expected|."""
    return float(np.sqrt(np.sum((values - expected) ** 2) / np.sum(expected**2)))


def estimator(residual: str, samples: int, moving: int) -> Outcome:
    """The whole estimator with memories: `moving` samples of motion, then one state for ever."""
    started = time.perf_counter()
    model = RobotModel(serial_arm_urdf(), presliding=())
    memory = {"rigid_body.memory": 5.0, "nystrom.memory": 5.0, f"{residual}.window": 0.2}
    sizes = {"nystrom.max_centers": 60, "nystrom.wide_max_centers": 20}
    sizes |= {"random_fourier.n_features": 60}
    learner = SemiparametricEstimator(model, residual=residual, **memory, **sizes)
    rng = np.random.default_rng(0)
    name = f"estimator, {residual}, " + ("at rest after motion" if moving else "at rest")
    out = Outcome(name, "directional", samples)
    q, nothing, largest = rng.normal(size=model.n_joints), np.zeros(model.n_joints), 0.0
    for k in range(samples):
        state = rng.normal(size=(3, model.n_joints)) if k < moving else (q, nothing, nothing)
        phi = model.regressor(*state)
        y = phi @ model.prior + 1.0 + 0.1 * rng.normal(size=model.n_axes)
        sample = learner.sample(*state, y, 10**9 + k * 10**6)
        guess = learner.predict(sample)
        learner.update(sample, guess)
        said = (guess.rigid_body, guess.semiparametric)
        said += (guess.rigid_body_std, guess.semiparametric_std)
        out.finite &= bool(all(np.isfinite(value).all() for value in said))
        # What is said after the first few samples may be far off; of the first nothing is learned.
        if k >= max(moving, 1):
            out.largest = max(out.largest, *(float(np.abs(value).max()) for value in said))
            largest = max(largest, float(np.abs(y).max()))
    out.largest /= largest
    out.error = relative(guess.semiparametric, phi @ model.prior + 1.0)
    out.diagonal = float(np.diagonal(learner.rigid_body.core.R).min())
    out.finite &= not learner.bound.counts and out.diagonal > 0.0
    out.seconds = time.perf_counter() - started
    return out


def runs(args: argparse.Namespace) -> Iterator[partial[Outcome]]:
    """Everything that is to be run, not yet run."""
    arm, one = arm_rows(2000), random_rows(1, 80).repeat(BLOCK, axis=0)
    random = random_rows(20_000, 100)
    n, few = args.updates, args.scaled_updates
    for kind in KINDS:
        most = n if kind != "replacing" else few
        yield partial(run, "random rows", [(random, most)], kind)
        yield partial(run, "arm", [(arm, most)], kind)
        yield partial(run, "one row", [(one, most)], kind)
        for size in (1e6, 1e-6):
            for name, rows in (("random rows", random), ("arm", arm), ("one row", one)):
                yield partial(run, f"{name}, size {size:g}", [(rows, few)], kind, size=size)
        if kind != "none":
            nothing = [(random, most // 10), (np.zeros_like(random), most - most // 10)]
            yield partial(run, "random rows, then nothing", nothing, kind)
    still = arm_rows(2000, still=3)
    minute = 7 * args.hour // 60
    for kind in KINDS[:2]:
        phases = [(arm, minute), (still, 7 * args.hour - minute)]
        yield partial(run, "arm, then a joint is still", phases, kind, memory=float(minute))
    for residual in ("nystrom", "random_fourier"):
        for moving in (args.estimator // 20, 0):
            yield partial(estimator, residual, args.estimator, moving)


def named(each: partial[Outcome]) -> str:
    """The name of a run, such as ``arm, size 1e+06, directional``."""
    if each.func is estimator:
        return f"estimator, {each.args[0]}"
    return f"{each.args[0]}, {each.args[2]}"


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--updates", type=int, default=10**7)
    parser.add_argument("--scaled-updates", type=int, default=10**6, help="of rows of other sizes")
    parser.add_argument("--hour", type=int, default=3_600_000, help="samples of the still joint")
    parser.add_argument("--estimator", type=int, default=10**5, help="samples of the estimator")
    parser.add_argument("--only", default="", help="runs whose rows and forgetting begin so")
    args = parse(parser)
    print("| rows | forgetting | updates | finite | diagonal | largest | trace | error", end="")
    print(" | weights | predictions | s |\n|---|---|---|---|---|---|---|---|---|---|---|")
    with threadpool_limits(1):
        for each in runs(args):
            if not named(each).startswith(args.only):
                continue
            out = each()
            values = (out.diagonal, out.largest, out.trace, out.error, out.weights, out.predictions)
            figures = " | ".join("" if np.isnan(value) else f"{value:.2g}" for value in values)
            print(f"| {out.name} | {out.forgetting} | {out.updates} | {out.finite}", end="")
            print(f" | {figures} | {out.seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
