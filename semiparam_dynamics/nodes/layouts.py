"""What is worth watching while `inverse_dynamics` runs, as pages of plots for any viewer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from semiparam_dynamics.dynamics.learner import MODELS
from semiparam_dynamics.dynamics.robot import WRENCH_AXES

DIAGNOSTICS = "/diagnostics"
UR_JOINTS = (
    "shoulder_pan_joint",
    "shoulder_lift_joint",
    "elbow_joint",
    "wrist_1_joint",
    "wrist_2_joint",
    "wrist_3_joint",
)


@dataclass(frozen=True)
class Topics:
    """The node's full name, and the topics of what is measured."""

    node: str = "/inverse_dynamics"
    joint_states: str = "/joint_states"
    wrench: str = "/wrench"

    @property
    def name(self) -> str:
        """The node's name as /diagnostics has it, without the namespace."""
        return self.node.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Field:
    """A number of a WrenchStamped, such as ``wrench.force.x``."""

    topic: str
    path: str
    label: str


@dataclass(frozen=True)
class Effort:
    """A joint's effort in a JointState, whose names come in the order of the learned joints."""

    topic: str
    joint: str
    index: int
    label: str
    named: bool = True  # False: another order may hold, so the index tells no joint


@dataclass(frozen=True)
class Diagnostic:
    """A number that a node tells on /diagnostics."""

    node: str
    key: str
    label: str


Curve = Field | Effort | Diagnostic


@dataclass(frozen=True)
class Plot:
    """Curves with common axes."""

    title: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class Page:
    """Plots that are seen together, one above the other."""

    title: str
    plots: tuple[Plot, ...]


def wrench_pages(topics: Topics) -> list[Page]:
    """For the target wrench: each axis measured and predicted, the external wrench, learning."""
    shown = {
        "measured": topics.wrench,
        "predicted": f"{topics.node}/predicted",
        "rigid body": f"{topics.node}/rigid_body",
    }
    pages = []
    for kind in ("force", "torque"):
        plots = [
            Plot(
                f"{kind} {axis}",
                tuple(Field(t, f"wrench.{kind}.{axis}", label) for label, t in shown.items()),
            )
            for axis in "xyz"
        ]
        pages.append(Page(f"{kind}s", tuple(plots)))
    external = f"{topics.node}/external"
    plots = [
        Plot(
            f"external {kind}",
            tuple(Field(external, f"wrench.{kind}.{axis}", f"{kind} {axis}") for axis in "xyz"),
        )
        for kind in ("force", "torque")
    ]
    return [*pages, Page("external", tuple(plots)), learning_page(topics, WRENCH_AXES)]


def effort_pages(topics: Topics, joints: Sequence[str] = UR_JOINTS) -> list[Page]:
    """For the target effort: each of the learned `joints`, the external efforts, learning."""
    measured = [Effort(topics.joint_states, j, i, "measured", False) for i, j in enumerate(joints)]
    plots = []
    for i, joint in enumerate(joints):
        predicted = Effort(f"{topics.node}/predicted", joint, i, "predicted")
        rigid_body = Effort(f"{topics.node}/rigid_body", joint, i, "rigid body")
        plots.append(Plot(joint, (measured[i], predicted, rigid_body)))
    external = tuple(
        Effort(f"{topics.node}/external", joint, i, joint) for i, joint in enumerate(joints)
    )
    return [
        Page("efforts", tuple(plots)),
        Page("external", (Plot("external efforts", external),)),
        learning_page(topics, joints),
    ]


def learning_page(topics: Topics, axes: Sequence[str]) -> Page:
    """How good the models are on each axis so far, what waits, and what a step costs."""

    def told(title: str, keys: dict[str, str]) -> Plot:
        return Plot(
            title, tuple(Diagnostic(topics.name, key, label) for key, label in keys.items())
        )

    plots = [
        told(f"normalised MSE, {model}", {f"nmse {model} {axis}": axis for axis in axes})
        for model in MODELS
    ]
    samples = ("samples predicted", "samples learned", "samples waiting")
    times = ("predict p50 [us]", "predict p99 [us]", "learn p50 [us]", "learn p99 [us]")
    plots.append(told("samples", {key: key for key in samples}))
    plots.append(told("time of a step", {key: key for key in times}))
    return Page("learning", tuple(plots))
