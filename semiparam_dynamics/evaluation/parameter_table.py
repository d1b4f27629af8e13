"""The identified parameters beside the URDF's, and how well the motion showed each."""

from __future__ import annotations

import math

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.rigid_body import RigidBodyIdentifier
from semiparam_dynamics.dynamics.robot import RobotModel
from semiparam_dynamics.dynamics.scales import expected_scales
from semiparam_dynamics.evaluation.appearance import LOOKS, number
from semiparam_dynamics.evaluation.findings import WEAKLY_EXCITED
from semiparam_dynamics.evaluation.page import cell, head, table

UNITS = {
    "m": "kg",
    "mcx": "kg m",
    "mcy": "kg m",
    "mcz": "kg m",
    "viscous": "N m s/rad",
    "coulomb": "N m",
    "offset": "N m",
    "rotor_inertia": "kg m²",
}
BAR = 170.0  # width of a row's plot, px


def parameter_table(model: RobotModel, identified: RigidBodyIdentifier) -> str:
    """A table of the base parameters, with a small plot in each row."""
    columns = expected_scales(model).column
    deviations = identified.standard_deviations()
    excited = excitation(model, identified)
    share = np.stack([identified.parameters, deviations, model.prior]) * columns
    reach = float(np.max(np.abs(np.concatenate((share[0], share[2]))), initial=0.0)) or 1.0
    rows = []
    for j, label in enumerate(model.labels):
        weak = excited[j] < WEAKLY_EXCITED
        rows.append(
            [
                cell(label, style="weak" if weak else ""),
                cell(number(identified.parameters[j])),
                cell(f"± {number(deviations[j], 2)}"),
                cell(_urdf_value(model, j)),
                cell(_unit(label), style="unit"),
                f"<td>{_bar(*(share[:, j] / reach), from_urdf=_inertial(label))}</td>",
                cell(f"{number(excited[j])} ×", style="weak" if weak else ""),
            ]
        )
    header = [
        head("Parameter"),
        head("Identified"),
        head("sd"),
        head("URDF"),
        head("Unit", style="unit"),
        head("Share in the output", "● ± 2 sd identified, ◇ URDF", "words"),
        head("Excited", "sd shrank by"),
    ]
    return table(header, rows, "parameters")


def excitation(model: RobotModel, identified: RigidBodyIdentifier) -> Array:
    """By which factor the motion shrank each parameter's standard deviation, (n_parameters,)."""
    # Before any sample the ridge alone held parameter j, with variance noise / (penalty c_j^2).
    core, column = identified.core, expected_scales(model).column
    factor: Array = 1.0 / (column * np.sqrt(core.penalty * core.covariance_diagonal()))
    return factor


def _inertial(label: str) -> bool:
    return label.split()[0] not in ("viscous", "coulomb", "offset", "rotor_inertia")


def _urdf_value(model: RobotModel, j: int) -> str:
    return number(model.prior[j]) if _inertial(model.labels[j]) else "–"


def _unit(label: str) -> str:
    kind = label.split()[0]
    return "N" if label in ("offset fx", "offset fy", "offset fz") else UNITS.get(kind, "kg m²")


def _bar(value: float, deviation: float, prior: float, *, from_urdf: bool) -> str:
    def x(at: float) -> float:
        # A square-root scale: many parameters matter little, and would lie on one spot.
        root = math.copysign(math.sqrt(min(abs(at), 1.1)), at)
        return BAR / 2 + root * (BAR / 2 - 9.0)

    rigid, urdf = LOOKS["rigid_body"].color, LOOKS["urdf"].color
    marks = [
        f'<line x1="{BAR / 2:g}" y1="0" x2="{BAR / 2:g}" y2="16" stroke="#d8dee4"/>',
        f'<line x1="{x(value - 2 * deviation):.1f}" y1="8" x2="{x(value + 2 * deviation):.1f}" '
        f'y2="8" stroke="{rigid}" stroke-width="1.5"/>',
        f'<circle cx="{x(value):.1f}" cy="8" r="3" fill="{rigid}"/>',
    ]
    if from_urdf:
        p = x(prior)
        diamond = f"{p - 4.5:.1f},8 {p:.1f},3.5 {p + 4.5:.1f},8 {p:.1f},12.5"
        marks.append(f'<polygon points="{diamond}" fill="none" stroke="{urdf}"/>')
    return f'<svg class="bar" viewBox="0 0 {BAR:g} 16" aria-hidden="true">{"".join(marks)}</svg>'
