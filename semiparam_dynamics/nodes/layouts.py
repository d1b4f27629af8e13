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
    """A number of a stamped message, such as ``wrench.force.x``."""

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
    pages.append(Page("external", tuple(plots)))
    pages.append(learning_page(topics, WRENCH_AXES))
    return [*pages, changes_page(topics, WRENCH_AXES, ("payload", "offset"))]


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
        changes_page(topics, joints, ("payload", "friction", "offset")),
    ]


def learning_page(topics: Topics, axes: Sequence[str]) -> Page:
    """How good the models are on each axis so far, what waits, and what a step costs."""
    plots = [
        told(topics, f"normalised MSE, {model}", {f"nmse {model} {axis}": axis for axis in axes})
        for model in MODELS
    ]
    samples = ("samples predicted", "samples learned", "samples waiting")
    times = ("predict p50 [us]", "predict p99 [us]", "learn p50 [us]", "learn p99 [us]")
    plots.append(told(topics, "samples", {key: key for key in samples}))
    plots.append(told(topics, "time of a step", {key: key for key in times}))
    return Page("learning", tuple(plots))


def changes_page(topics: Topics, axes: Sequence[str], causes: Sequence[str]) -> Page:
    """What is held, what the evidence for each cause is, and how far off each axis is."""
    payload = Plot(
        "payload",
        (
            Field(f"{topics.node}/payload", "inertia.m", "mass"),
            Field(f"{topics.node}/payload_std", "inertia.m", "its standard deviation"),
        ),
    )
    evidence = {f"changes: evidence of {cause}": cause for cause in causes}
    deviations = {f"deviation {axis} [std]": axis for axis in axes}
    return Page(
        "changes",
        (
            payload,
            told(topics, "evidence", evidence | {"changes: threshold": "threshold"}),
            told(
                topics,
                "external, in standard deviations",
                deviations | {"contact: threshold [std]": "threshold of contacts"},
            ),
        ),
    )


def told(topics: Topics, title: str, keys: dict[str, str]) -> Plot:
    """A plot of what the node tells on /diagnostics, with a label for each key."""
    return Plot(title, tuple(Diagnostic(topics.name, key, label) for key, label in keys.items()))
