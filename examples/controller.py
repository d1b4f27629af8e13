"""A feed-forward in a control loop of your own, with the URDF where the model isn't sure.

python examples/controller.py
"""

from __future__ import annotations

import numpy as np
from made_arm import URDF, record

from semiparam_dynamics.dynamics import RobotModel
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.learner import InverseDynamicsLearner
from semiparam_dynamics.samples.measurement import Measurement


class FeedForward:
    """Efforts for desired states, (k, n_joints) each, learned as the arm moves.

    The share of the learned model is 1 at a standard deviation of FULL, N m, and 0 at NONE, where
    the efforts are the URDF's.
    """

    FULL, NONE = 0.5, 2.0

    def __init__(self, model: RobotModel) -> None:
        self.model = model
        self.learner = InverseDynamicsLearner(model, InverseDynamicsConfig())

    def measured(self, stamp: int, q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> None:
        """Learn from one reading; `stamp` in ns."""
        step = self.learner.predict(Measurement(stamp, q, dq, tau))
        if step is not None:
            self.learner.update(self.learner.admit(step))

    def desired(self, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        """Efforts (k, n_joints), N m: a block of states costs little more than one."""
        learned = self.learner.feedforward(q, dq, ddq)
        urdf = self.model.regressors(q, dq, ddq) @ self.model.prior
        std = learned.stds["semiparametric"]
        share = np.clip((self.NONE - std) / (self.NONE - self.FULL), 0.0, 1.0)
        return urdf + share * (learned.values["semiparametric"] - urdf)


def main() -> None:
    """Learn 40 s, then compare the feed-forward with the efforts of ten more of the same motion."""
    model = RobotModel(URDF, target="effort")
    control = FeedForward(model)
    t, q, dq, tau = record(seconds=50.0)
    ddq = np.gradient(dq, t, axis=0)
    for k in np.flatnonzero(t < 40.0):
        control.measured(round(1e9 * (1.0 + t[k])), q[k], dq[k], tau[k])
    new = t >= 40.0
    urdf = model.regressors(q[new], dq[new], ddq[new]) @ model.prior
    for name, efforts in (
        ("URDF", urdf),
        ("learned", control.desired(q[new], dq[new], ddq[new])),
    ):
        error = np.sqrt(np.mean((efforts - tau[new]) ** 2))
        print(f"{name}: error of the feed-forward {error:.2f} N m")


if __name__ == "__main__":
    main()
