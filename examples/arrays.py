"""Arrays in, predictions at any state out; a model saved and loaded.

python examples/arrays.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from made_arm import URDF, record

from semiparam_dynamics.dynamics import RobotModel
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.learner import InverseDynamicsLearner
from semiparam_dynamics.samples.measurement import Measurement


def main() -> None:
    """Learn half a minute, ask the model, save it, and ask the saved one."""
    model = RobotModel(URDF, target="effort")  # or the file's name
    config = InverseDynamicsConfig()
    learner = InverseDynamicsLearner(model, config)
    t, q, dq, tau = record(seconds=30.0)
    for k in range(len(t)):
        step = learner.predict(Measurement(round(1e9 * t[k]), q[k], dq[k], tau[k]))
        if step is not None:  # the filters only begin
            learner.update(learner.admit(step))
    errors = learner.scores.nmse("semiparametric").mean()
    print(f"{learner.estimator.n_learned} samples learned, normalised error {errors:.3f}")

    # Any states, (k, 3) each: positions, velocities, accelerations. Nothing is learned by asking.
    states = np.zeros((2, 3)), np.full((2, 3), 0.5), np.array([[0.0] * 3, [1.0] * 3])
    # Each for itself: as one motion, friction would remember where the recording ended.
    asked = learner.feedforward(*states, one_motion=False)
    print("efforts in N m:", np.round(asked.values["semiparametric"], 2).tolist())
    print("standard deviations:", np.round(asked.stds["semiparametric"], 2).tolist())

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "arm.npz"
        learner.save(file)
        again = InverseDynamicsLearner(model, config)
        again.load(file)
        same = again.feedforward(*states, one_motion=False).values["semiparametric"]
    assert np.allclose(same, asked.values["semiparametric"])
    print("the saved model says the same")


if __name__ == "__main__":
    main()
