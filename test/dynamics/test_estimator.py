"""The semiparametric estimator on a small arm with an effect that no rigid body has."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.base.errors import StorageError
from semiparam_dynamics.dynamics.estimator import SemiparametricEstimator
from semiparam_dynamics.dynamics.sample import Prediction, Sample
from semiparam_dynamics.robot.model import expected_scales

from .arms import FEW_CENTERS, motion, run, samples, small_arm

KINDS = ("nystrom", "random_fourier")
MODEL = small_arm()


def estimator(kind: str = "nystrom", **values: object) -> SemiparametricEstimator:
    settings = {"residual": kind, "nystrom.window": 2.0, "random_fourier.window": 2.0}
    settings |= {"random_fourier.n_features": 100, **FEW_CENTERS, **values}
    return SemiparametricEstimator(MODEL, **settings)


def errors(stream: list[Sample], told: list[Prediction], name: str = "semiparametric"):
    return np.array([s.y - getattr(p, name) for s, p in zip(stream, told, strict=True)])


def same_state(one: SemiparametricEstimator, other: SemiparametricEstimator) -> None:
    before, after = one.state(), other.state()
    assert before.keys() == after.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(value, after[name], err_msg=name)


@pytest.fixture(scope="module")
def stream() -> list[Sample]:
    return samples(MODEL, 15.0, extra=2.0)


@pytest.fixture(scope="module")
def trained(stream: list[Sample]) -> tuple[SemiparametricEstimator, list[Prediction]]:
    """An estimator that has learned the stream, and what it predicted. Not to be changed."""
    target = estimator(**{"nystrom.wide_max_centers": 100})
    return target, run(target, stream)


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns_what_the_rigid_body_leaves(kind: str, stream: list[Sample], trained) -> None:
    target, told = trained
    if kind != "nystrom":
        target = estimator(kind)
        told = run(target, stream)
    both, rigid = (errors(stream, told, n)[-500:] for n in ("semiparametric", "rigid_body"))
    assert np.sqrt(np.mean(both**2)) < 0.5 * np.sqrt(np.mean(rigid**2))
    assert target.n_learned == len(stream)
    stds = np.array([p.std for p in told[-500:]])
    assert np.mean(np.abs(both) <= 2.0 * stds) > 0.85
    assert np.sqrt(np.mean(stds**2)) < 0.5 * np.sqrt(np.mean(rigid**2))


@pytest.mark.parametrize("kind", KINDS)
def test_on_rigid_data_the_residual_stays_small(kind: str) -> None:
    stream = samples(MODEL, 10.0)
    left = errors(stream, run(estimator(kind), stream))[-300:]
    size = np.sqrt(np.mean([s.y**2 for s in stream[-300:]]))
    assert np.sqrt(np.mean(left**2)) < 0.02 * size


def test_the_rigid_body_never_sees_the_residual(stream: list[Sample]) -> None:
    one, other = (run(estimator(kind), stream[:300]) for kind in KINDS)
    for x, y in zip(one, other, strict=True):
        assert np.array_equal(x.rigid_body, y.rigid_body)


def test_a_prediction_does_not_look_at_the_measurement(stream: list[Sample]) -> None:
    target = estimator()
    run(target, stream[:300])
    blind = dataclasses.replace(stream[299], y=None)
    a, b = target.predict(stream[299]), target.predict(blind)
    assert np.array_equal(a.semiparametric, b.semiparametric)
    before = target.copy()
    target.update(blind, b)
    same_state(target, before)


def test_far_from_its_data_the_local_residual_is_zero(trained) -> None:
    target = trained[0]
    far = np.full(MODEL.n_joints, 3.0)
    prediction = target.predict(target.sample(far, 3 * far, 0 * far))
    assert np.array_equal(prediction.semiparametric, prediction.rigid_body)


def test_where_a_joint_has_not_been_deviations_widen_by_a_tenth_of_its_output(
    stream: list[Sample], trained
) -> None:
    trained, last = trained[0], stream[-1]
    away = last.q + np.array([0.0, 100.0, 0.0, 0.0])
    near, far = (
        trained.feedforward(q[None], last.dq[None], last.ddq[None]) for q in (last.q, away)
    )
    regressors = [trained.sample(q, last.dq, last.ddq).regressor for q in (last.q, away)]
    known = [trained.rigid_body.variance(regressor)[1] for regressor in regressors]
    usual = trained.errors["rigid_body"].value[1]
    unshown = (0.1 * expected_scales(trained.model).output[1]) ** 2
    np.testing.assert_allclose(far.stds["rigid_body"][0, 1] ** 2, usual + known[1] + unshown)
    # Where the joint has been it is not new, though no centre is there.
    np.testing.assert_allclose(near.stds["rigid_body"][0, 1] ** 2, usual + known[0])
    assert far.stds["semiparametric"][0, 1] ** 2 >= known[1] + unshown
    # Motion elsewhere, by what was learned of this one: two deviations cover the errors.
    others = samples(MODEL, 4.0, extra=2.0, seed=5)
    told = [trained.predict(sample) for sample in others]
    stds = np.array([p.semiparametric_std for p in told])
    covered = np.mean(np.abs(errors(others, told)) <= 2.0 * stds, axis=0)
    assert covered.mean() > 0.85 and covered.min() > 0.6


@pytest.mark.parametrize("kind", KINDS)
def test_learning_late_changes_no_parameter(kind: str, stream: list[Sample]) -> None:
    """The rigid body does not depend on when it learns; the residual sees other inputs."""
    prompt, late = estimator(kind), estimator(kind)
    run(prompt, stream[:250])
    for start in range(0, 250, 25):
        part = stream[start : start + 25]
        for sample, told in zip(part, [late.predict(s) for s in part], strict=True):
            late.update(sample, told)
    assert late.n_learned == prompt.n_learned == 250
    a, b = prompt.rigid_body.parameters, late.rigid_body.parameters
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("kind", "memory"), [("nystrom", 0.0), ("nystrom", 3.0), ("random_fourier", 3.0)]
)
def test_saved_loaded_and_copied_it_continues_bit_by_bit(
    kind: str, memory: float, stream: list[Sample], tmp_path: Path
) -> None:
    values = {"rigid_body.memory": memory, "nystrom.memory": memory}
    target = estimator(kind, **values)
    run(target, stream[:200])
    target.save(tmp_path / "model.npz")
    loaded, copied = estimator(kind, **values), target.copy()
    loaded.load(tmp_path / "model.npz")
    expected = run(target, stream[200:300])
    for other in (loaded, copied):
        for p, q in zip(expected, run(other, stream[200:300]), strict=True):
            assert np.array_equal(p.semiparametric, q.semiparametric)
            assert np.array_equal(p.std, q.std)
        same_state(other, target)


def test_a_model_of_another_configuration_is_refused(tmp_path: Path) -> None:
    estimator().save(tmp_path / "model.npz")
    with pytest.raises(StorageError, match=r"nystrom.novelty is 0.5 there, 0.7 here"):
        estimator(**{"nystrom.novelty": 0.7}).load(tmp_path / "model.npz")
    with pytest.raises(StorageError, match=r"robot.viscous"):
        SemiparametricEstimator(small_arm(viscous=False)).load(tmp_path / "model.npz")


def test_the_state_does_not_grow_once_the_centers_are_used_up(stream: list[Sample]) -> None:
    target = estimator(**{"nystrom.max_centers": 20, "nystrom.wide_max_centers": 10})
    sizes = []
    for part in (stream[:500], samples(MODEL, 4.0, extra=1.0, seed=5)):
        run(target, part)
        # Of the inferred kernel's samples there are at most `KEPT_SAMPLES`.
        kept = {f"residual.inferred.{name}" for name in ("inputs", "targets", "kept")}
        state = target.state()
        sizes.append(sum(state[name].nbytes for name in state.keys() - kept))
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("kind", KINDS)
def test_feedforward_is_predict_at_desired_states(kind: str, stream: list[Sample]) -> None:
    target = estimator(kind, **{"nystrom.max_centers": 40})
    empty = target.feedforward(*np.zeros((3, 0, MODEL.n_joints)))
    assert empty.values["semiparametric"].shape == (0, MODEL.n_axes)
    run(target, stream[:400])
    states = motion(MODEL, np.linspace(0.0, 9.0, 25), seed=3)
    said = target.feedforward(*states)
    for k, state in enumerate(zip(*states, strict=True)):
        one = target.predict(target.sample(*state))
        for name in ("rigid_body", "semiparametric"):
            np.testing.assert_allclose(said.values[name][k], getattr(one, name), atol=1e-9)
            np.testing.assert_allclose(said.stds[name][k], getattr(one, f"{name}_std"), atol=1e-9)
    assert np.abs(said.values["semiparametric"] - said.values["rigid_body"]).max() > 1e-4
    empty = target.feedforward(*np.zeros((3, 0, MODEL.n_joints)))
    for arrays in (empty.values, empty.stds):
        assert arrays.keys() == {"rigid_body", "semiparametric"}
        assert all(array.shape == (0, MODEL.n_axes) for array in arrays.values())


def test_feedforward_between_a_prediction_and_its_learning_changes_nothing(
    stream: list[Sample],
) -> None:
    quiet, asked = estimator(), estimator()
    rng = np.random.default_rng(0)
    for sample in stream[:200]:
        told = [target.predict(sample) for target in (quiet, asked)]
        for _ in range(rng.integers(0, 3)):
            asked.feedforward(*rng.normal(size=(3, 7, MODEL.n_joints)))
        quiet.update(sample, told[0])
        asked.update(sample, told[1])
    same_state(quiet, asked)


@pytest.mark.parametrize("kind", KINDS)
def test_before_anything_is_learned_a_deviation_is_the_output_s_expected_size(
    kind: str, stream: list[Sample], tmp_path: Path
) -> None:
    expected = expected_scales(MODEL).output
    assert (expected > 0.0).all()
    target, again = estimator(kind), estimator(kind)
    target.save(tmp_path / "new.npz")
    again.load(tmp_path / "new.npz")
    s = stream[0]
    states = s.q[None], s.dq[None], s.ddq[None]
    for one in (target, again, target.copy()):
        told, block = one.predict(s), one.feedforward(*states)
        for name in ("rigid_body", "semiparametric"):
            np.testing.assert_array_equal(getattr(told, f"{name}_std"), expected)
            np.testing.assert_array_equal(block.stds[name], expected[None])
            # A controller takes 0 for a joint of which nothing was learned.
            np.testing.assert_array_equal(block.told_stds()[name], 0.0 * expected[None])
    run(target, stream[:3])
    block = target.feedforward(*states)
    for name, std in block.told_stds().items():
        np.testing.assert_array_equal(std, block.stds[name])
        assert (std > 0.0).all()
