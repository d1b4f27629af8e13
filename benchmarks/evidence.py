"""The rigid body's ridge by the evidence of the data, in batch, beside the learner's rules.

    python benchmarks/evidence.py DATA [--arms xmate7p ur10 ... lwr4 baxter panda]
    python benchmarks/evidence.py DATA --study shares

Parameters are pi = pi_0 + D'u with the URDF's pi_0, steps D of bodies (by the divergence from what
can exist) and of effects (by what their columns contribute), and u ~ N(0, 1 / a_g) for the steps of
a group: a body, a joint's basic friction with offset and rotor, its stops, Stribeck's column, its
asymmetry. Axis j has noise s_j^2. The precisions a_g and the noises make the training part most
probable (MacKay 1992, "Bayesian interpolation", equations 4.3 and 4.6; Tipping 2001, "Sparse
Bayesian learning", equation 16); friction that only takes energy is never negative. A sample counts
as a share of one of noise: what the model's form lacks lasts as long as the motion that shows it.

`splits`: nmse of the rigid body on motion never seen, mean over joints: the learner's, which adds
friction where that predicted better, and the evidence's; its worst joint relative to the learner's,
and what two standard deviations cover, mean (worst joint). `shares`: errors by that share, relative
to those with `INFORMATION_SHARE`, and the share that is best on all other arms.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
from arms import WITH_SPLITS, Split, splits
from output import make_parser, parse
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import lsq_linear

from semiparam_dynamics.base.arrays import Array, Indices
from semiparam_dynamics.dynamics.rigid_body import RigidBodyIdentifier
from semiparam_dynamics.dynamics.sample import SampleBlock
from semiparam_dynamics.robot.inertia import body_spreads
from semiparam_dynamics.robot.model import BODY_WEIGHT, ExpectedScales, RobotModel, expected_scales
from semiparam_dynamics.robot.regressor import OPTIONAL

INFORMATION_SHARE = 0.1  # of an independent sample's information, beside that of one of noise
SHARES = (0.03, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0)
# The steps' precision and the noise, of an output's mean square, before any data; a group counts as
# if so many of its steps, and an axis as if so many samples, had been seen to be of that size.
STEP_PRECISION, STEP_COUNT = 1.0, 0.02
NOISE_SHARE, NOISE_COUNT = 0.01, 1.0
MAX_ITERATIONS, MAX_CHANGE = 50, 1e-3  # of the fixed point; relative, of a precision or noise


class Moments(NamedTuple):
    """Of each axis' rows Phi_j, of n parameters, with weights w: all that a solution depends on."""

    products: Array  # (n_axes, n, n) sum of w Phi_j'Phi_j
    targets: Array  # (n_axes, n) sum of w Phi_j'y_j
    squares: Array  # (n_axes,) sum of w y_j^2
    weights: Array  # (n_axes,) sum of w, in independent samples

    @classmethod
    def of(cls, regressors: Array, y: Array, weights: Array) -> Moments:
        """Of rows (k, n_axes, n) with targets (k, n_axes), weights (k,)."""
        weighted = regressors * weights[:, None, None]
        axes = range(y.shape[1])
        products = np.array([weighted[:, j].T @ regressors[:, j] for j in axes])
        targets = np.array([weighted[:, j].T @ y[:, j] for j in axes])
        return cls(products, targets, weights @ y**2, np.full(y.shape[1], weights.sum()))

    def squared_errors(self, parameters: Array) -> Array:
        """(n_axes,) sum of w (y_j - Phi_j pi)^2."""
        left = self.squares + (self.products @ parameters - 2.0 * self.targets) @ parameters
        return np.maximum(left, 0.0)


class Steps(NamedTuple):
    """Independent deviations of the parameters, and the groups that share a precision."""

    deviations: Array  # (k, n)
    groups: Indices  # (k,) from 0


def steps_of(model: RobotModel, scales: ExpectedScales) -> Steps:
    """The steps of a robot's base parameters."""
    steps, names = [], []
    for k, spreads in enumerate(map(body_spreads, model.carried_bodies())):
        for own in model.combinations(k):
            if own.size:
                steps.append(np.sqrt(2.0 / BODY_WEIGHT) * spreads[:, : own.shape[1]] @ own.T)
                names += [f"body {k}"] * len(spreads)
    effects = model.base.combination[:, model.effects].T
    contributed = np.linalg.norm(effects * scales.column, axis=1)
    known = contributed > 0.0
    steps.append(effects[known] / contributed[known, None])
    for label in np.array(model.full_labels[model.effects])[known]:
        first, _, joint = label.partition(" ")
        kind = next((kind for kind in OPTIONAL if first.startswith(kind)), "basic")
        names.append(f"{kind} {joint}")
    groups = np.unique(names, return_inverse=True)[1]
    return Steps(np.concatenate(steps), groups.astype(np.intp))


class Evidence(NamedTuple):
    """Precisions of the steps' groups, and the axes' noises."""

    precisions: Array  # (groups,)
    noises: Array  # (n_axes,) s_j^2, (N m)^2 or N^2

    @classmethod
    def of(
        cls, moments: Moments, steps: Steps, mean: Array, output: Array, share: float
    ) -> Evidence:
        """The fixed point.

        mean : (n,) pi_0. output : (n_axes,) mean square of each output. share : of information.
        """
        D, groups = steps
        sizes = np.bincount(groups)
        now = cls(np.full(len(sizes), STEP_PRECISION), NOISE_SHARE * output)
        for _ in range(MAX_ITERATIONS):
            information = share / now.noises
            products = np.tensordot(information, moments.products, 1)
            precision = D @ products @ D.T + np.diag(now.precisions[groups])
            covariance = cho_solve(cho_factor(precision), np.eye(len(D)))
            u = covariance @ (D @ (information @ moments.targets - products @ mean))
            known = sizes - now.precisions * np.bincount(groups, np.diag(covariance))
            precisions = (np.maximum(known, 0.0) + STEP_COUNT) / (
                np.bincount(groups, u**2) + STEP_COUNT / STEP_PRECISION
            )
            # Of its samples' information, what an axis has spent on parameters.
            spent = np.tensordot(moments.products, D.T @ covariance @ D, 2) * information
            left = np.maximum(share * moments.weights - spent, 0.0)
            errors = share * moments.squared_errors(mean + D.T @ u)
            noises = (errors + NOISE_COUNT * NOISE_SHARE * output) / (left + NOISE_COUNT)
            before, now = now, cls(precisions, noises)
            pairs = zip(before, now, strict=True)
            if max(np.abs(np.log(new / old)).max() for old, new in pairs) < MAX_CHANGE:
                break
        return now

    def covariance(self, moments: Moments, steps: Steps, share: float) -> Array:
        """(n, n) of the parameters."""
        D, groups = steps
        prior = D.T @ (D / self.precisions[groups, None])
        products = np.tensordot(share / self.noises, moments.products, 1)
        found: Array = np.linalg.inv(np.linalg.inv(prior) + products)
        return found

    def parameters(
        self, moments: Moments, covariance: Array, mean: Array, dissipative: Array, share: float
    ) -> Array:
        """(n,) the most probable ones, of which `dissipative` are never negative."""
        gradient = (share / self.noises) @ (moments.targets - moments.products @ mean)
        best = mean + covariance @ gradient
        root = np.linalg.cholesky(np.linalg.inv(covariance)).T
        low = np.where(dissipative, 0.0, -np.inf)
        found: Array = lsq_linear(root, root @ best, (low, np.inf), tol=1e-10).x
        return found


class Found(NamedTuple):
    """A split's errors on its test part."""

    nmse: Array  # (n_axes,)
    covered: Array  # (n_axes,) share within two standard deviations


def by_evidence(split: Split, share: float = INFORMATION_SHARE) -> Found:
    """The training part's most probable parameters on the test part."""
    model, scales = split.model, expected_scales(split.model)
    train, test = SampleBlock.of(split.train), SampleBlock.of(split.test)
    train, steps = train.rows(train.informative), steps_of(model, scales)
    moments = Moments.of(train.regressors, train.y, train.weights)
    known = RigidBodyIdentifier.SCALE_SAMPLES
    output = (known * scales.output**2 + moments.squares) / (known + moments.weights)
    evidence = Evidence.of(moments, steps, model.prior, output, share)
    covariance = evidence.covariance(moments, steps, share)
    own = {f"viscous {joint}" for joint in model.joint_names}  # and none of couplings
    dissipative = model.dry | np.array([label in own for label in model.labels])
    pi = evidence.parameters(moments, covariance, model.prior, dissipative, share)
    errors = test.y - test.regressors @ pi
    rows = test.regressors
    variances = np.einsum("kji,il,kjl->kj", rows, covariance, rows, optimize=True)
    inside = np.abs(errors) <= 2.0 * np.sqrt(evidence.noises + variances)
    return Found(np.mean(errors**2, axis=0) / test.y.var(axis=0), inside.mean(axis=0))


def by_rules(split: Split) -> Array:
    """(n_axes,) nmse of the learner's rigid body on the test part."""
    train, test = SampleBlock.of(split.train), SampleBlock.of(split.test)
    train = train.rows(train.informative)
    rigid = RigidBodyIdentifier.of(split.model, split.config.estimator.rigid_body)
    rigid.update_block(train.regressors, train.y, train.stamps, train.weights)
    errors = test.y - test.regressors @ rigid.parameters
    return np.mean(errors**2, axis=0) / test.y.var(axis=0)


def compare(args: argparse.Namespace) -> None:
    """Print each split's errors by the learner's rules and by evidence."""
    print("| arm | split | rules | evidence | ratio | worst joint's | covered |")
    print("|---" * 7 + "|")
    ratios: dict[str, list[float]] = {}
    for arm in args.arms:
        for split in splits(args.data, arm):
            rules, found = by_rules(split), by_evidence(split)
            ratio, worst = found.nmse.mean() / rules.mean(), (found.nmse / rules).max()
            ratios.setdefault(arm, []).append(float(np.log(ratio)))
            covered = f"{found.covered.mean():.2f} ({found.covered.min():.2f})"
            cells = f"{rules.mean():.4f} | {found.nmse.mean():.4f} | {ratio:.2f} | {worst:.2f}"
            print(f"| {arm} | {split.name} | {cells} | {covered} |", flush=True)
    of_splits = [ratio for own in ratios.values() for ratio in own]
    of_arms = [np.mean(own) for own in ratios.values()]
    means = np.exp(np.mean(of_splits)), np.exp(np.mean(of_arms)), np.exp(max(of_splits))
    print("geometric mean over splits {:.2f}, over arms {:.2f}; largest {:.2f}".format(*means))


def shares(args: argparse.Namespace) -> None:
    """Print each arm's errors by share, and the share that the other arms would choose."""
    logs: dict[str, Array] = {}
    for arm in args.arms:
        rows = [
            [np.log(by_evidence(split, share).nmse.mean()) for share in SHARES]
            for split in splits(args.data, arm)
        ]
        mean = np.mean(rows, axis=0)
        logs[arm] = mean - mean[SHARES.index(INFORMATION_SHARE)]
    print(f"| arm | {' | '.join(map(str, SHARES))} | best of the others |")
    print("|---" * (len(SHARES) + 2) + "|")
    for arm, mean in logs.items():
        others = np.mean([row for name, row in logs.items() if name != arm], axis=0)
        best = SHARES[int(np.argmin(others))] if len(logs) > 1 else float("nan")
        print(f"| {arm} | {' | '.join(f'{ratio:.2f}' for ratio in np.exp(mean))} | {best} |")
    cells = " | ".join(f"{ratio:.2f}" for ratio in np.exp(np.mean(list(logs.values()), axis=0)))
    print(f"| all | {cells} | |")


STUDIES = {"splits": compare, "shares": shares}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--study", choices=STUDIES, default="splits")
    parser.add_argument("--arms", nargs="+", choices=WITH_SPLITS, default=WITH_SPLITS)
    args = parse(parser)
    STUDIES[args.study](args)


if __name__ == "__main__":
    main()
