"""A message's way through the filters in one compiled call; see `filtering.SampleFilter`.

Every operation is rounded as it is in `RecordingFilter`, which does the same for a whole block.
"""

from __future__ import annotations

from semiparam_dynamics.arrays import Array, Indices
from semiparam_dynamics.dynamics.compiled_regressor import fill
from semiparam_dynamics.dynamics.lowpass import lowpass_row
from semiparam_dynamics.learning.compiled import compiled_as_written


@compiled_as_written
def outside(values: Array, lowest: Array, highest: Array) -> bool:
    """Whether one of the first values is below its lowest or above its highest, both (n,)."""
    found = False
    for i in range(lowest.size):
        if values[i] < lowest[i] or values[i] > highest[i]:
            found = True
    return found


@compiled_as_written
def sample_row(
    a: Array,
    b: Array,
    c: Array,
    back: float,
    ahead: float,
    has_velocity: bool,
    state: Array,
    row: Array,
    wide_band: Array,
    wide_low: Array,
    wide_cutoff: float,
    wide_started: bool,
    band: Array,
    low: Array,
    cutoff: float,
    started: bool,
    geometry: Array,
    joints: Indices,
    units: Array,
    columns: Indices,
    entries: Indices,
    mixing: Array,
    effects: Indices,
    per_velocity: float,
    work: Array,
) -> None:
    """The filtered row [q, dq, ddq, y, regressor] of the instant before the newest one.

    a, b, c : [q, dq, y] of three instants `back` and `ahead` seconds apart, the first two
        filtered; c is as it was measured and becomes filtered by the wide filter too.
    has_velocity : dq is one; else velocities are differences of positions.
    state : (3, 1, n_joints), for q, dq and ddq. row : (1, size). Both are written to.
    The rest: what `lowpass_row` takes of the wide and the narrow filter, and `fill` of the model.
    """
    lowpass_row(c, ahead, wide_band, wide_low, wide_cutoff, wide_started)
    n = state.shape[2]
    both = back + ahead
    for i in range(n):
        q = b[i]
        if has_velocity:
            dq = b[n + i]
            ddq = (c[n + i] - a[n + i]) / both
        else:
            before, after = (q - a[i]) / back, (c[i] - q) / ahead
            dq = (c[i] - a[i]) / both
            ddq = (after - before) * (2.0 / both)
        state[0, 0, i] = row[0, i] = q
        state[1, 0, i] = row[0, n + i] = dq
        state[2, 0, i] = row[0, 2 * n + i] = ddq
    for i in range(2 * n, b.size):
        row[0, n + i] = b[i]
    fill(
        state[0],
        state[1],
        state[2],
        geometry,
        joints,
        units,
        columns,
        entries,
        mixing,
        effects,
        per_velocity,
        work,
        row,
        n + b.size,
    )
    # The first input is a filter's equilibrium, so that its first step never counts.
    lowpass_row(row[0], back, band, low, cutoff, started)
