"""Physically consistent parameters from bags: the files they go into, and what these gain."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.dom import expatbuilder, minidom
from xml.sax.saxutils import quoteattr

import numpy as np
import pinocchio as pin
from threadpoolctl import threadpool_limits

from semiparam_dynamics.base.arrays import Array, Mask
from semiparam_dynamics.base.errors import BagError, RobotModelError
from semiparam_dynamics.base.output_files import write_files
from semiparam_dynamics.dynamics.consistent import (
    DYNAMICS_COLUMNS,
    AxisFactors,
    ConsistentParameters,
    consistent,
    effect_labels,
    effect_prior,
    urdf_parameters,
)
from semiparam_dynamics.dynamics.sample import NOTHING_WHOLE, Sample
from semiparam_dynamics.dynamics.scores import variances
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.offline.evaluation.bags import Bags, check_motion, robot_of, samples_of
from semiparam_dynamics.offline.evaluation.experiment import TRAINING_SHARE
from semiparam_dynamics.offline.evaluation.protocols import MAX_BLOCK
from semiparam_dynamics.offline.evaluation.verdict import (
    MIN_JUDGED_S,
    MIN_PIECES,
    RECORD_MORE,
    Ratio,
    jackknife,
    left_out,
    number_of_pieces,
)
from semiparam_dynamics.robot.inertia import inertial_parameters, is_body, pseudo_inertia
from semiparam_dynamics.robot.model import RobotModel
from semiparam_dynamics.robot.regressor import ASYMMETRY, LOADED, PRESLIDING, STRIBECK, WEIGHT
from semiparam_dynamics.robot.urdf import INERTIA_ENTRIES, parse_urdf
from semiparam_dynamics.simulation.mjcf_export import export_mjcf, mjcf_efforts, rotor_inertias

NOWHERE = ("offset", STRIBECK, ASYMMETRY, LOADED)  # kinds that no file has a place for


def link_inertias(model: RobotModel, found: ConsistentParameters) -> dict[str, Array | None]:
    """By link, the parameters (10,) in its own frame; None where its mass went to another link.

    A body is a link with all that is fixed to it, and motion does not show how its mass is divided
    among them. If the body's pseudo-inertia went from P0 to T P0 T', each link's goes from P0_k to
    T P0_k T': they add up to the body's, and each is a real body again. Where a link with mass is
    no body that can exist (a point mass, a plate), the link nearest to the base has all of it.
    Links that don't move or have no mass stay as they are, unless their body can't exist.
    """
    tree = parse_urdf(model.urdf_text)
    inertials = tree.inertials
    shared: dict[str, Array | None] = {}
    bodies = found.values[: model.inertial_prior.size].reshape(-1, 10)
    for body, T, links in zip(bodies, found.transforms, model.links, strict=True):
        heavy = {}
        for name, pose in links:
            parameters = read_inertial(inertials[name])
            if parameters.any():
                heavy[name] = pose, parameters
        if heavy and all(is_body(parameters) for _, parameters in heavy.values()):
            for name, (pose, parameters) in heavy.items():
                to_link: Array = np.linalg.inv(pose) @ T @ pose
                shared[name] = _congruent(to_link, parameters)
        else:
            shared.update(dict.fromkeys(heavy))
            first, pose = links[0]
            from_body: Array = np.asarray(np.linalg.inv(pose))
            shared[first] = _congruent(from_body, body)
    for name in tree.replaced:
        parameters = read_inertial(inertials[name])
        shared.setdefault(name, parameters if parameters.any() else None)
    return shared


def effects_of_files(model: RobotModel) -> Mask:
    """(n_effects,) which effects a file of the robot can hold, or hold as friction or not at all.

    A file that is identified without the others is better than one that leaves them out afterwards:
    what bodies and friction can do of them, they do. Not so of motors that turn with two joints.
    """
    parts = (label.partition(" ") for label in effect_labels(model))
    return np.array(
        [kind not in NOWHERE or name not in model.joint_names for kind, _, name in parts]
    )


def joint_dynamics(model: RobotModel, parameters: Array) -> dict[str, dict[str, float]]:
    """By joint, the attributes of its <dynamics> that were identified.

    parameters: (10 * bodies + n_effects,) in the order of `model.full_labels`. Units: N m s/rad
    and N m, of prismatic joints N s/m and N. Friction is what is left after a long way: Coulomb's
    and all that builds up.
    """
    values = dict(zip(model.full_labels, parameters, strict=True))
    for label, value in list(values.items()):
        kind, _, joint = label.partition(" ")
        if kind.startswith(PRESLIDING):
            values[f"coulomb {joint}"] = values.get(f"coulomb {joint}", 0.0) + value
    return {
        joint: {
            attribute: float(values[f"{column} {joint}"])
            for attribute, column in DYNAMICS_COLUMNS.items()
            if f"{column} {joint}" in values
        }
        for joint in model.joint_names
    }


def export_urdf(
    text: str,
    inertias: Mapping[str, Array | None],
    dynamics: Mapping[str, Mapping[str, float]] | None = None,
) -> str:
    """The URDF `text` with new inertias, and new attributes of the joints' <dynamics>.

    inertias: by link its ten parameters in its own frame, in the order of `regressor.INERTIAL`;
        None removes its inertial. Links that aren't named keep theirs, and comments stay.
    dynamics: by joint the attributes, such as damping; those that aren't named keep their values.
    Raises RobotModelError where the text is no URDF or has no such link or joint.
    """
    if not inertias and not any((dynamics or {}).values()):
        return text
    tree = parse_urdf(text)  # refuses entities that are used
    for kind, names, known in (
        ("link", inertias, set(tree.inertials)),
        ("joint", dynamics or {}, set(tree.joints)),
    ):
        for name in names:
            if name not in known:
                raise RobotModelError(f"the URDF has no {kind} '{name}' to write to")
    # Without namespaces, whose prefixes need not be declared.
    document: Any = expatbuilder.parseString(text.strip(), namespaces=False)  # nosec B316 # above
    for element in document.documentElement.childNodes:
        if element.nodeType != element.ELEMENT_NODE:
            continue
        name = element.getAttribute("name")
        if element.tagName == "link" and name in inertias:
            parameters = inertias[name]
            lines = [] if parameters is None else inertial_lines(parameters)
            _replace(element, "inertial", lines)
        elif element.tagName == "joint" and (values := (dynamics or {}).get(name)):
            merged = {key: repr(float(value)) for key, value in values.items()}
            if old := [inner for inner in element.childNodes if inner.nodeName == "dynamics"]:
                merged = dict(old[0].attributes.items()) | merged
            written = " ".join(f"{key}={quoteattr(value)}" for key, value in merged.items())
            _replace(element, "dynamics", [f"<dynamics {written}/>"])
    return f"{document.toxml()}\n"


def _replace(parent: Any, tag: str, lines: list[str]) -> None:
    """Put the element that `lines` are in the place of the children called `tag`.

    Where there is none it comes first; without lines the children go, with their own lines.
    """
    old = [child for child in parent.childNodes if child.nodeName == tag]
    if lines:
        before = (old[0] if old else parent).previousSibling
        indent = before.data.rpartition("\n")[2] if _is_space(before) else ""
        indent += "" if old else "  "
        new: Any = minidom.parseString(f"\n{indent}".join(lines)).documentElement  # nosec B318 # ours
        if old:
            parent.replaceChild(new, old.pop(0))
        else:
            parent.insertBefore(new, parent.firstChild)
            parent.insertBefore(parent.ownerDocument.createTextNode(f"\n{indent}"), new)
            if new.nextSibling is None:
                parent.appendChild(parent.ownerDocument.createTextNode(f"\n{indent[:-2]}"))
    for child in old:
        if _is_space(child.previousSibling):
            parent.removeChild(child.previousSibling)
        parent.removeChild(child)


def _is_space(node: Any) -> bool:
    return isinstance(node, minidom.Text) and not node.data.strip()


def read_inertial(element: ET.Element | None) -> Array:
    """(10,) the parameters in the link's frame of an inertial as `parse_urdf` has it; 0 for None.

    In the order of `regressor.INERTIAL`.
    """
    if element is None:
        return np.zeros(10)
    inner = {part.tag: part.attrib for part in reversed(element)}
    origin = inner.get("origin", {})
    center, angles = (np.array(origin.get(k, "0 0 0").split(), np.float64) for k in ("xyz", "rpy"))
    axes = pin.rpy.rpyToMatrix(angles)
    inertia = np.zeros((3, 3))
    for name, i, j in INERTIA_ENTRIES:
        inertia[i, j] = inertia[j, i] = float(inner["inertia"][name])
    P, pose = np.zeros((4, 4)), np.eye(4)
    P[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - axes @ inertia @ axes.T
    P[3, 3], pose[:3, 3] = float(inner["mass"]["value"]), center
    return inertial_parameters(pose @ P @ pose.T)


def inertial_lines(parameters: Array) -> list[str]:
    """The element's lines for parameters (10,) of a positive mass, in the link's own axes."""
    body = pin.Inertia.FromDynamicParameters(parameters)
    values = " ".join(f'{name}="{_exact(body.inertia[i, j])}"' for name, i, j in INERTIA_ENTRIES)
    center = " ".join(_exact(value) for value in body.lever)
    return [
        "<inertial>",
        f'  <origin xyz="{center}" rpy="0 0 0"/>',
        f'  <mass value="{_exact(body.mass)}"/>',
        f"  <inertia {values}/>",
        "</inertial>",
    ]


def _exact(value: float) -> str:
    return repr(float(value))


def _congruent(T: Array, parameters: Array) -> Array:
    """The parameters (10,) of T P T'; a pose T takes them into another frame."""
    return inertial_parameters(T @ pseudo_inertia(parameters) @ T.T)


# -------------------------------------------------------------------------------------------------
# Identification on bags, and what its files gain


URDF_FILE, TABLE_FILE = "identified.urdf", "parameters.csv"
MJCF_FILE = "identified.xml"
COLUMNS = ("name", "urdf", "identified", "standard_deviation", "excitation", "files")
GIVEN = "URDF given"
_MOSTLY = 0.5  # excitation below which a parameter is rather the URDF's


@dataclass(frozen=True)
class Fit:
    """Parameters identified twice on the same data: all, and without what no file can hold."""

    full: ConsistentParameters
    filed: ConsistentParameters


def _fit(model: RobotModel, data: AxisFactors) -> Fit:
    return Fit(consistent(model, data), consistent(model, data, effects=effects_of_files(model)))


class HeldOut:
    """Measured samples in motion that nothing was identified on, to score files by.

    factors: of the same samples, to score parameters by that no file holds.
    """

    def __init__(self, model: RobotModel) -> None:
        self._model = model
        self.factors = AxisFactors(model.n_axes, model.n_parameters)
        self._rows: list[Array] = []
        self._stamps: list[int] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, sample: Sample) -> None:
        """Add a sample, if it has all of a measurement and is of motion."""
        if self.factors.add(sample) and sample.y is not None:
            self._rows.append(np.concatenate((sample.q, sample.dq, sample.ddq, sample.y)))
            self._stamps.append(sample.stamp)

    def squares(self, files: dict[str, str], fit: Fit) -> dict[str, Array]:
        """Squared errors (n, n_axes) over the variance, of the URDF given and of files' texts.

        URDFs mean what `effect_prior` says, and MuJoCo's XML what MuJoCo makes of it. The latter
        has no wrench. No file knows a six-axis sensor's zero, nor the weight that a driver gets
        wrong: these are added to all, as `fit` has them.
        """
        model, n = self._model, self._model.n_joints
        q, dq, ddq, y = np.split(np.array(self._rows), [n, 2 * n, 3 * n], axis=1)
        new = RobotModel(files[URDF_FILE], model.config, locked=model.locked)
        read = [label.startswith((WEIGHT, "offset")) for label in model.full_labels]
        own = model.base.project(np.where(read, fit.filed.values, 0.0))
        columns = np.column_stack((urdf_parameters(model), urdf_parameters(model, new), own))
        parts = (slice(start, start + MAX_BLOCK) for start in range(0, len(y), MAX_BLOCK))
        efforts = [model.regressors(q[p], dq[p], ddq[p]) @ columns for p in parts]
        given, urdf, added = np.moveaxis(np.concatenate(efforts), 2, 0)
        found = {GIVEN: given, URDF_FILE: urdf}
        if MJCF_FILE in files and model.config.target == "effort":
            found[MJCF_FILE] = mjcf_efforts(files[MJCF_FILE], model, q, dq, ddq)
        return {name: (value + added - y) ** 2 / variances(y) for name, value in found.items()}

    def ratio(self, mine: Array, others: Array) -> tuple[Ratio | None, int]:
        """The ratio of the means of two of `squares`, and by how many pieces its interval is."""
        steps = np.diff(self._stamps, prepend=self._stamps[0]) * 1e-9
        elapsed = np.cumsum(np.where((steps > 0.0) & (steps <= 1.0), steps, 0.0))
        k = number_of_pieces(float(elapsed[-1]))
        starts = np.searchsorted(elapsed, np.arange(k) * elapsed[-1] / k)
        sums = np.add.reduceat(np.column_stack((mine.sum(1), others.sum(1))), starts, axis=0)
        weights = left_out(k) if k >= MIN_PIECES else np.ones((1, k))
        return jackknife(*(weights @ sums).T), k


@dataclass(frozen=True)
class Identification:
    """Parameters identified on all of the bags, and motion to score their files on.

    trial: those whose files are scored: `found` where there are bags to test on, else those of
        each bag's first part; None where there is no motion to identify or to score.
    """

    model: RobotModel
    found: Fit
    trial: Fit | None
    held_out: HeldOut

    def files(self, fit: Fit, *, mjcf: bool) -> dict[str, str]:
        """By name, the texts of the files that hold the parameters `filed`.

        The URDF has the identified inertias and joint friction, all else as it was; for MuJoCo's
        see `export_mjcf`. Raises RobotModelError where MuJoCo can't take the robot.
        """
        model, found = self.model, fit.filed
        friction = joint_dynamics(model, found.values)
        urdf = export_urdf(model.urdf_text, link_inertias(model, found), friction)
        if not mjcf:
            return {URDF_FILE: urdf}
        armatures = rotor_inertias(model, found.values)
        return {URDF_FILE: urdf, MJCF_FILE: export_mjcf(urdf, armatures, model.config.gravity)}


def identify_on_bags(
    bags: Bags,
    config: InverseDynamicsConfig,
    progress: Callable[[float], None] = lambda share: None,
) -> Identification:
    """Identify on `bags.train`; what the files gain is scored on `bags.test`.

    Without those it is scored on the last part of each bag, with parameters of the first part.
    Raises BagError, RobotModelError or ConfigurationError with what is missing.
    """
    model, config = robot_of(bags, config)
    whole, first = (AxisFactors(model.n_axes, model.n_parameters) for _ in range(2))
    held_out, stamps = HeldOut(model), list[int]()
    paths, share = (*bags.train, *bags.test), 0.0 if bags.test else 1.0 - TRAINING_SHARE
    with threadpool_limits(limits=1):  # a sample's products are too small to be spread
        for number, late, sample in samples_of(paths, bags, model, config, progress, share):
            to_train = number < len(bags.train)
            if to_train and whole.add(sample):
                stamps.append(sample.stamp)
            if late or not to_train:
                held_out.add(sample)
            elif not bags.test:
                first.add(sample)
        if whole.n_samples == 0:
            raise BagError(f"nothing to identify parameters on: {NOTHING_WHOLE}")
        found = _fit(model, whole)
        trial = found if bags.test else None
        if first.n_samples:
            trial = _fit(model, first)
    if little := check_motion(stamps):
        bags.warnings.append(little)
    return Identification(model, found, trial if len(held_out) else None, held_out)


def parameters_csv(identification: Identification) -> str:
    """A line for each parameter, in SI units; the columns are `COLUMNS`."""
    model, found = identification.model, identification.found.full
    urdf = np.concatenate((model.inertial_prior, effect_prior(model)))
    filed = identification.found.filed.values
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    numbers = np.column_stack(
        (urdf, found.values, found.standard_deviations, found.excitation, filed)
    )
    for label, row in zip(model.full_labels, numbers, strict=True):
        writer.writerow([label, *(f"{value:.12g}" for value in row)])
    return text.getvalue()


def write_identification(
    identification: Identification, directory: Path, *, mjcf: bool = False
) -> None:
    """Write identified.urdf, parameters.csv and, if asked for, identified.xml into `directory`.

    It is made if need be. Raises StorageError where writing fails, and RobotModelError, with
    nothing written, where MuJoCo can't take the robot.
    """
    texts = identification.files(identification.found, mjcf=mjcf)
    texts[TABLE_FILE] = parameters_csv(identification)
    write_files({directory / name: text for name, text in texts.items()})


def identification_text(identification: Identification, *, mjcf: bool = False) -> str:
    """The gain of identified.urdf, in words and in a table of errors, for a terminal."""
    model, held_out = identification.model, identification.held_out
    inertial = identification.found.full.excitation[: model.inertial_prior.size]
    fact = (
        f"{int(np.sum(inertial < _MOSTLY))} of {inertial.size} inertial parameters are rather the "
        "URDF's than the data's"
    )
    if (trial := identification.trial) is None:
        return f"What {URDF_FILE} gains is not known: too little motion. {RECORD_MORE}\n{fact}"
    squares = held_out.squares(identification.files(trial, mjcf=mjcf), trial)
    errors = {name: values.mean(axis=0) for name, values in squares.items()}
    errors["all parameters"] = held_out.factors.nmse(trial.full.base)
    scored = np.isfinite(errors["all parameters"])  # an axis that nothing happens on has no nmse
    lines = [_gain(identification, squares, float(errors[URDF_FILE][scored].mean())), fact]
    lines.append(f"normalised mean squared error there, of files and of all in {TABLE_FILE}:")
    width = max(len(axis) for axis in (*model.axes, "mean"))
    lines.append(f"{'axis':<{width}}" + "".join(f"{name:>17}" for name in errors))
    rows = np.where(scored[:, None], np.column_stack(list(errors.values())), np.nan)
    for name, row in zip((*model.axes, "mean"), (*rows, rows[scored].mean(axis=0)), strict=True):
        lines.append(f"{name:<{width}}" + "".join(f"{value:>17.4g}" for value in row))
    return "\n".join(lines)


def _gain(identification: Identification, squares: dict[str, Array], error: float) -> str:
    """Advice to use the files or not, and the figures that say so."""
    held_out, given = identification.held_out, squares[GIVEN]
    ratio, pieces = held_out.ratio(squares[URDF_FILE], given)
    if ratio is None:
        return f"What {URDF_FILE} gains is not known: there is no error to compare."
    words = ratio.words()
    why = ""
    if error >= 1.0:
        why = "It predicts no better than a constant."
    elif pieces < MIN_PIECES:
        why = f"That is less than {MIN_JUDGED_S:g} s of motion, and may be chance."
    elif ratio.low <= 1.0 <= ratio.high:
        why = "That may be chance."
    use = ratio.value < 1.0 and not why
    lines = [
        f"{'Use' if use else 'Do not rely on'} {URDF_FILE}{'' if use else ' yet'}: compared with "
        f"the URDF given it has {words} on motion that was not learned ({len(held_out)} samples)."
    ]
    if not use:
        lines[0] += f" {why} {RECORD_MORE}"
    if MJCF_FILE in squares and (mujoco := held_out.ratio(squares[MJCF_FILE], given)[0]):
        lines.append(f"{MJCF_FILE} has {mujoco.words()}, by MuJoCo's inverse dynamics.")
    if identification.trial is not identification.found:
        lines.append(
            f"These figures are of files identified on the first {100 * TRAINING_SHARE:.0f} % of "
            "each bag and scored on the rest; the files written are identified on all."
        )
    return "\n".join(lines)
