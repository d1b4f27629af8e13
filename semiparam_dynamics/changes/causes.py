"""What may change on a robot, as columns of its regressor with a prior on each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.changes.config import ChangesConfig
from semiparam_dynamics.dynamics.robot import RobotModel
from semiparam_dynamics.dynamics.scales import expected_scales
from semiparam_dynamics.errors import ConfigurationError

PAYLOAD, FRICTION, OFFSET = "payload", "friction", "offset"
EFFECT_SHARE = 0.2  # of an axis' expected output that friction or offsets usually change by


@dataclass(frozen=True)
class Cause:
    """A change that is linear in its parameters theta, a normal prior of mean 0 on them."""

    name: str
    columns: slice  # its own among those of `Causes`
    prior: Array  # (d,) standard deviations


class Causes:
    """The causes that a robot's regressor can tell, their columns side by side.

    payload: the ten inertial parameters of what is fixed to the last link (`multibody.INERTIAL`),
        in the frame that the link's own have.
    friction: viscous and Coulomb friction of each joint, the couplings' too.
    offset: a constant for each axis.

    Attributes
    ----------
    combination: (n_parameters, n_columns) the base parameters that a unit of each column is, so
        that ``regressor @ combination @ theta`` is what it adds to the output.
    link: the link that payloads are fixed to.

    Raises ConfigurationError where `config.payload_link` is no moving link.
    """

    def __init__(self, model: RobotModel, config: ChangesConfig) -> None:
        self.link = _link(model, config.payload_link)
        body = model.bodies.index(self.link)
        m, r = config.payload_mass, config.payload_reach
        priors = [np.array([m, *[m * r] * 3, *[m * r**2] * 6])]
        indices = [np.arange(10 * body, 10 * body + 10)]
        names = [PAYLOAD]
        output = expected_scales(model).output
        for name, kinds in ((FRICTION, ("viscous ", "coulomb ")), (OFFSET, ("offset ",))):
            own = [i for i, label in enumerate(model.full_labels) if label.startswith(kinds)]
            if own:
                names.append(name)
                indices.append(np.array(own))
                rows = [_row(model, model.full_labels[i]) for i in own]
                priors.append(EFFECT_SHARE * output[rows])
        ends = np.cumsum([len(own) for own in indices]).tolist()
        self.all = tuple(
            Cause(name, slice(end - len(prior), end), prior)
            for name, prior, end in zip(names, priors, ends, strict=True)
        )
        self.n_columns = int(ends[-1])
        self.combination: Array = np.ascontiguousarray(
            model.base.combination[:, np.concatenate(indices)]
        )

    def __getitem__(self, name: str) -> Cause:
        return next(cause for cause in self.all if cause.name == name)


def _link(model: RobotModel, wanted: str) -> str:
    if not wanted:
        return model.bodies[-1]
    for body, links in zip(model.bodies, model.links, strict=True):
        if wanted == body or wanted in {name for name, _ in links}:
            return body
    raise ConfigurationError(
        f"parameter 'changes.payload_link' must be a moving link: {', '.join(model.bodies)}; "
        f"not '{wanted}'"
    )


def _row(model: RobotModel, label: str) -> int:
    """The axis that an effect of this label acts on: its last word."""
    return model.axes.index(label.rsplit(" ", 1)[-1])
