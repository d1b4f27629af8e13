"""An exciting trajectory as files: CSV for anything, a bag for a ros2_control controller."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import StorageError
from semiparam_dynamics.identification.excitation import Excitation
from semiparam_dynamics.identification.fourier_trajectory import FourierTrajectory, Motion
from semiparam_dynamics.parameters import parameter
from semiparam_dynamics.samples.bag_writer import BagWriter

_START = 1_000_000_000  # ns: stamps of 0 mean "none" to some tools
_QUINTIC_PEAK = 1.875  # highest over mean speed of the polynomial between two states of rest


@dataclass(frozen=True)
class ExportConfig:
    """How an exciting trajectory is written."""

    rate: float = parameter(100.0, "points written", unit="Hz", low=1.0, high=10000.0)
    repeat: int = parameter(
        3, "periods written, one after the other: repeated motion shows the noise", low=1, high=1000
    )
    trial_slowdown: float = parameter(
        4.0, "how many times slower the bag for a first trial is", low=1.0, high=100.0
    )
    topic: str = parameter(
        "/joint_trajectory_controller/joint_trajectory", "the bag's JointTrajectory topic"
    )


def sample_times(excitation: Excitation, config: ExportConfig) -> Array:
    """(n,) s from 0 to the end of the last period, both of them at rest."""
    total = config.repeat * excitation.trajectory.period
    return np.linspace(0.0, total, max(round(total * config.rate), 1) + 1)


def lead_in(excitation: Excitation) -> float:
    """s to reach the start from anywhere in the allowed range, within the velocities allowed.

    A controller goes there from where the arm is on a quintic polynomial, from rest to rest; its
    highest speed is 1.875 times its mean speed. Rounded up to a second.
    """
    limits = excitation.limits
    start = excitation.trajectory([0.0])[0][0]
    farthest = np.maximum(start - limits.lower, limits.upper - start)
    return float(math.ceil(np.max(_QUINTIC_PEAK * farthest / limits.velocity)))


def write_csv(excitation: Excitation, config: ExportConfig, path: Path) -> None:
    """Columns t (s), then q_, dq_ and ddq_ of each joint by name (rad or m, and per s, s^2).

    Raises StorageError where the file can't be written.
    """
    times = sample_times(excitation, config)
    names = [f"{kind}_{joint}" for kind in ("q", "dq", "ddq") for joint in excitation.joint_names]
    rows = np.column_stack([times, *excitation.trajectory(times)])
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["t", *names])
            writer.writerows([f"{value:.9g}" for value in row] for row in rows)
    except OSError as error:
        raise StorageError(f"the trajectory can't be written to {path}: {error}") from error


def write_trajectory_bag(excitation: Excitation, config: ExportConfig, path: Path) -> None:
    """A rosbag2 folder with one JointTrajectory, whose first point comes after `lead_in`.

    So the controller has time to go there. Raises BagError where it can't be written; a bag that
    is there is replaced.
    """
    times = sample_times(excitation, config)
    motion = excitation.trajectory(times)
    _write_bag(path, excitation.joint_names, times + lead_in(excitation), motion, config)


def write_trial_bag(excitation: Excitation, config: ExportConfig, path: Path) -> None:
    """One period through the same positions, slower by `trial_slowdown`, the way there included.

    For a first look at what the arm comes close to. Errors as in :func:`write_trajectory_bag`.
    """
    slow, original = config.trial_slowdown, excitation.trajectory
    trajectory = FourierTrajectory(original.coefficients, slow * original.period)
    times = np.linspace(0.0, trajectory.period, max(round(original.period * config.rate), 1) + 1)
    start = slow * lead_in(excitation)
    _write_bag(path, excitation.joint_names, times + start, trajectory(times), config)


def _write_bag(
    path: Path, names: tuple[str, ...], times: Array, motion: Motion, config: ExportConfig
) -> None:
    with BagWriter(path, overwrite=True) as bag:
        bag.joint_trajectory(_START, names, times, motion, config.topic)
