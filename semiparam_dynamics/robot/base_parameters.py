"""Base parameters: the combinations of a regressor's columns that motion can tell apart.

Rank-revealing QR in the manner of Gautier, "Numerical calculation of the base inertial parameters
of robots", 1991: columns are taken in order, and one that the columns already taken span on random
states is combined into them. The order, not the pivoting by norm, decides which names survive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.base.arrays import Array
from semiparam_dynamics.base.errors import RobotModelError

_LABEL_LENGTH = 72


@dataclass(frozen=True)
class BaseParameters:
    """A column-independent part of a regressor, and how the other columns fold into it.

    independent: (k,) indices of the columns kept, ascending.
    combination: (k, n) with ``base = combination @ parameters``; the identity on `independent`,
        so that ``regressor @ parameters == regressor[:, independent] @ base`` for every motion.
    labels: (k,) each the kept column's name with what is folded into it, long ones cut with "...".
    """

    independent: npt.NDArray[np.intp]
    combination: Array
    labels: tuple[str, ...]

    def project(self, parameters: Array) -> Array:
        """(n,) parameters of all columns to (k,) base parameters of the same motion."""
        projected: Array = self.combination @ parameters
        return projected


def reduce_columns(stack: Array, labels: Sequence[str], tolerance: float = 1e-4) -> BaseParameters:
    """Find the base parameters of the regressor `stack` (rows, n), rows of many random states.

    A column counts as dependent when what the earlier ones leave of it is below `tolerance` of its
    length. On real arms that is 1e-15 (rounding) or above 0.05. In between lie, at some 1e-6, the
    columns of robots whose right angles are written as 1.5708: telling them apart would need
    torques measured to six digits, so they are combined too, exact to 1e-5 of their signal.
    Raises RobotModelError where no column is left: the motion excites nothing.
    """
    norms = np.linalg.norm(stack, axis=0)
    moved = norms > 1e-12 * norms.max(initial=0.0)
    scale = np.where(moved, norms, 1.0)
    # R has the same column geometry as the stack at a fraction of its rows.
    R: Array = np.asarray(np.linalg.qr(stack / scale, mode="r"))
    basis = np.empty((R.shape[0], 0))
    independent: list[int] = []
    for column in np.flatnonzero(moved):
        left = R[:, column]
        for _ in range(2):  # twice is enough: Gram-Schmidt orthogonal to rounding
            left = left - basis @ (basis.T @ left)
        length = np.linalg.norm(left)
        if length > tolerance:
            basis = np.column_stack([basis, left / length])
            independent.append(int(column))
    if not independent:
        raise RobotModelError("no motion of the chosen joints excites any parameter")
    kept = np.array(independent, dtype=np.intp)
    scaled = np.linalg.lstsq(R[:, kept], R * moved, rcond=None)[0]
    scaled[np.abs(scaled) < 1e-9] = 0.0
    scaled[:, kept] = np.eye(kept.size)
    combination = scaled * (scale / scale[kept, None])
    names = tuple(
        _label(combination[i], scaled[i], own, labels) for i, own in enumerate(independent)
    )
    return BaseParameters(kept, combination, names)


def _label(row: Array, weight: Array, own: int, labels: Sequence[str]) -> str:
    """The kept column's name, then the folded ones by their share of the signal, largest first."""
    label = labels[own]
    for column in np.argsort(-np.abs(weight), kind="stable"):
        if column == own:
            continue
        if abs(weight[column]) < 1e-4:
            break
        factor = f"{abs(row[column]):.3g}"
        term = f" {'-' if row[column] < 0 else '+'} "
        term += labels[column] if factor == "1" else f"{factor} {labels[column]}"
        if len(label) + len(term) > _LABEL_LENGTH:
            return label + " ..."
        label += term
    return label
