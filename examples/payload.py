"""A payload weighed while the arm moves, kept by name, and known again.

python examples/payload.py
"""

from __future__ import annotations

from made_arm import URDF, record

from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.dynamics import RobotModel
from semiparam_dynamics.learner.config import InverseDynamicsConfig
from semiparam_dynamics.learner.learner import InverseDynamicsLearner
from semiparam_dynamics.samples.measurement import Measurement

LOAD, FROM = 0.8, 45.0  # kg, s


def main() -> None:
    """Learn the bare arm, three rounds of its motion; in the fourth it holds 0.8 kg."""
    config = replace(InverseDynamicsConfig(), changes__detect=True)
    learner = InverseDynamicsLearner(RobotModel(URDF, target="effort"), config)
    changes = learner.changes
    assert changes is not None
    t, q, dq, tau = record(seconds=60.0, load=LOAD, load_from=FROM)
    for k in range(len(t)):
        step = learner.predict(Measurement(round(1e9 * (1.0 + t[k])), q[k], dq[k], tau[k]))
        if step is not None:
            learner.update(learner.admit(step))
    for event in changes.events:
        print(f"{1e-9 * event.stamp - 1.0:.2f} s: {event.cause} {event.name}")
    held = changes.payload
    assert held is not None
    print(f"mass {held.mass:.2f} kg, standard deviation {held.mass_std:.2f}")
    print(f"centre {held.center.round(2)} m, standard deviations {held.center_std.round(2)}")
    changes.remember("cup")  # ~/snapshot at the node
    changes.recall("bare")  # put down; recalled by name it counts at once, without being weighed
    changes.recall("cup")
    print("held again:", changes.payload.name if changes.payload else "nothing")


if __name__ == "__main__":
    main()
