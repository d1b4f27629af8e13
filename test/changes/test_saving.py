"""What changed is saved and loaded with the model that it changed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.changes.payload import compact_body
from semiparam_dynamics.errors import StorageError
from semiparam_dynamics.storage import save_state

from .changing_arm import follow, held, learner, monitor, moving, small_arm

MODEL = small_arm()
BODY = compact_body(0.5, np.array([0.05, 0.02, 0.03]))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory):
    of = learner(MODEL, **{"changes.payload_time": 3.0})
    follow(of, moving(MODEL, 28.0, held(BODY, 22.0)))
    monitor(of).remember("cup")
    path = tmp_path_factory.mktemp("model") / "model.npz"
    of.save(path)
    return of, path


def test_a_loaded_learner_predicts_the_same_with_the_same_payload(saved) -> None:
    of, path = saved
    other = learner(MODEL)
    other.load(path)
    assert monitor(other).payload.name == "cup"
    assert monitor(other).payload.mass == monitor(of).payload.mass
    measured = list(moving(MODEL, 2.0, held(BODY, 0.0), seed=3))
    predictions = []
    for one in (of, other):
        one.filter.reset()
        steps = [one.observe(measurement) for measurement in measured]
        predictions.append([s.prediction.semiparametric for s in steps if s is not None])
    np.testing.assert_array_equal(*predictions)


def test_a_learner_that_looks_for_no_changes_loads_the_bare_model(saved) -> None:
    of, path = saved
    other = learner(MODEL, **{"changes.detect": False})
    other.load(path)
    same = of.estimator.rigid_body.parameters
    np.testing.assert_array_equal(other.estimator.rigid_body.parameters, same)


def test_a_model_from_before_there_were_changes_begins_anew(saved, tmp_path: Path) -> None:
    of, _ = saved
    of.estimator.save(tmp_path / "old.npz")
    other = learner(MODEL)
    other.load(tmp_path / "old.npz")
    assert monitor(other).payload is None and monitor(other).snapshots.names == ("bare",)


def test_changes_of_other_columns_are_refused_and_nothing_is_lost(saved, tmp_path: Path) -> None:
    of, path = saved
    state = of.state() | {"changes.correction.theta": np.zeros(3)}
    save_state(tmp_path / "broken.npz", of.identity(), state)
    other = learner(MODEL)
    other.load(path)
    with pytest.raises(StorageError, match="other columns"):
        other.load(tmp_path / "broken.npz")
    assert monitor(other).payload.name == "cup"


def test_payloads_of_another_link_are_refused_and_nothing_is_lost(saved) -> None:
    of, path = saved
    link = next(body for body in MODEL.bodies if body != monitor(of).causes.link)
    other = learner(MODEL, **{"changes.payload_link": link})
    monitor(other).snapshots.store("own", monitor(of).snapshots["cup"])
    with pytest.raises(StorageError, match=f"changes.payload_link' makes it '{link}'"):
        other.load(path)
    assert "own" in monitor(other).snapshots.names and monitor(other).payload is None
    assert other.estimator.n_learned == 0


def test_forgetting_everything_keeps_the_names(saved) -> None:
    _, path = saved
    other = learner(MODEL)
    other.load(path)
    other.reset()
    assert monitor(other).payload is None and "cup" in monitor(other).snapshots.names
