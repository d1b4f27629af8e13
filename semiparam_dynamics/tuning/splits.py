"""What is held out: whole motions, and whole regions of the joints' positions.

Held-out samples in between those that are learned flatter a kernel: motion repeats, and neighbours
in time are neighbours in space. So two kinds of hold-out are made. *Motions*: whole recordings, or
long parts of the only one, tell how well the learner will do. *Regions*: the samples at one end
of the positions' principal directions, whatever the time, tell what it does where it has not been,
even if all recordings show much the same motion. A kernel that is too wide betrays itself there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import BagError
from semiparam_dynamics.tuning.motion import Motion, join

PARTS = 3  # of a single recording
MOST_FOLDS = 5
DIRECTIONS = 3
REGION_SHARE = 0.35  # of the samples, at one end of a direction
LEAST_VARIANCE = 0.02  # of all the positions', for a direction to count
LEAST_SECONDS = 1.5  # of each part of a recording


@dataclass(frozen=True)
class Split:
    """What is learned and what is held out."""

    name: str
    kind: str  # motion or region
    train: Motion
    held_out: Motion


def motion_splits(motions: Sequence[Motion], names: Sequence[str]) -> list[Split]:
    """Each recording held out in turn, or each third of the only one, the others learned.

    More than five recordings are held out in five groups. Raises BagError where a single
    recording is too short for that.
    """
    if len(motions) == 1:
        whole = motions[0]
        if whole.seconds < PARTS * LEAST_SECONDS:
            raise BagError(
                f"the only recording shows {whole.seconds:.1f} s of motion: "
                f"tuning needs {PARTS * LEAST_SECONDS:.1f} s at least, or several recordings"
            )
        edges = np.linspace(0, len(whole), PARTS + 1).astype(int)
        groups = [[whole.take(slice(a, b))] for a, b in zip(edges[:-1], edges[1:], strict=True)]
        titles = [f"part {k + 1} of {PARTS}" for k in range(PARTS)]
    else:
        n = min(len(motions), MOST_FOLDS)
        groups = [list(motions[k::n]) for k in range(n)]
        titles = [" ".join(names[k::n]) for k in range(n)]
    return [
        Split(title, "motion", join([m for g in groups if g is not group for m in g]), join(group))
        for title, group in zip(titles, groups, strict=True)
    ]


def region_splits(motion: Motion) -> list[Split]:
    """Both ends of the positions' principal directions held out, two for each direction."""
    centred = motion.q - motion.q.mean(axis=0)
    deviation = motion.q.std(axis=0)
    scaled = centred / np.where(deviation > 1e-9, deviation, np.inf)
    _, sizes, directions = np.linalg.svd(scaled, full_matrices=False)
    share = sizes**2 / max(float(np.sum(sizes**2)), 1e-300)
    splits = []
    for k in np.flatnonzero(share[:DIRECTIONS] > LEAST_VARIANCE):
        along: Array = scaled @ directions[k]
        for end, place in (("far", along), ("near", -along)):
            out = place > np.quantile(place, 1.0 - REGION_SHARE)
            if 0 < out.sum() < len(out):
                name = f"{end} end of direction {k + 1}"
                splits.append(Split(name, "region", motion.take(~out), motion.take(out)))
    return splits
