"""Feature vectors, smoothing, and objects that are taught, recognized, edited and saved."""

from __future__ import annotations

from array import array
from pathlib import Path

import numpy as np
import pytest

from semiparam_dynamics.base.errors import ConfigurationError, RefusedError, StorageError
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.learning import IncrementalRLSC
from semiparam_dynamics.recognition.config import RecognitionConfig
from semiparam_dynamics.recognition.labels import Edit
from semiparam_dynamics.recognition.recognizer import (
    Recognizer,
    Smoothing,
    UnknownFrames,
    feature_vector,
)


def test_is_in_double_precision_and_of_length_one_if_asked():
    data = array("f", [3.0, 0.0, 4.0])
    np.testing.assert_array_equal(feature_vector(data, None, 10, normalize=False), [3.0, 0.0, 4.0])
    unit = feature_vector(data, 3, 10, normalize=True)
    assert unit.dtype == np.float64
    np.testing.assert_allclose(unit, [0.6, 0.0, 0.8])
    huge = feature_vector(np.full(4, 3e38, np.float32), 4, 10, normalize=True)
    np.testing.assert_allclose(huge, 0.5)


@pytest.mark.parametrize(
    ("data", "n_inputs", "reason"),
    [
        ([1.0, 2.0], 3, "feature vector's length"),
        ([], None, "feature vector's length"),
        ([1.0] * 11, None, "feature vector's length"),
        ([1.0, np.nan], 2, "features not finite"),
        ([1.0, -np.inf], None, "features not finite"),
        ([0.0, 0.0], 2, "features all zero"),
    ],
)
def test_refuses_with_a_reason(data, n_inputs, reason):
    with pytest.raises(RefusedError) as caught:
        feature_vector(array("f", data), n_inputs, 10, normalize=True)
    assert caught.value.reason == reason


def test_looks_back_over_so_many_frames_and_forgets_when_told_to():
    smoothing = Smoothing(3)
    rows = np.random.default_rng(0).dirichlet(np.ones(4), size=10)
    labels = ("a", "b", "c", "d")
    novelties = np.arange(10.0) ** 2

    def check(frame: int, *of: int) -> None:
        mean, (novelty, constant) = smoothing.add(labels, rows[frame], novelties[frame], 3.0)
        np.testing.assert_allclose(mean, rows[[*of]].mean(axis=0))
        assert constant == 3.0
        assert novelty == pytest.approx(novelties[[*of]].mean())

    check(0, 0)
    for frame in range(1, 9):
        smoothing.add(labels, rows[frame], novelties[frame], 3.0)
    check(9, 7, 8, 9)
    smoothing.resize(2)
    check(0, 9, 0)
    smoothing.restart()
    check(1, 1)
    # Other classes begin anew.
    mean, _ = smoothing.add(("a", "b"), np.array([0.25, 0.75]), 1.0)
    np.testing.assert_array_equal(mean, [0.25, 0.75])


D = 12
NAMES = ("mug", "book", "ball")


def make(**changes: object) -> Recognizer:
    return Recognizer(replace(RecognitionConfig(), **changes), {"input": "features"})


def examples(count: int, seed: int = 0) -> list[tuple[np.ndarray, str]]:
    """So many of each class, in turn."""
    rng = np.random.default_rng(seed)
    made = []
    for k in range(3 * count):
        x = np.eye(3, D)[k % 3] + 0.2 + rng.normal(scale=0.2, size=D)
        made.append((x / np.linalg.norm(x), NAMES[k % 3]))
    return made


def taught(count: int = 20, **changes: object) -> Recognizer:
    recognizer = make(**changes)
    for x, label in examples(count):
        recognizer.learn(x, label)
    while recognizer.refresh():
        pass
    return recognizer


def probabilities(recognizer: Recognizer) -> np.ndarray:
    recognizer.restart_smoothing()
    return np.array([recognizer.recognize(x).probabilities for x, _ in examples(5, seed=1)])


def bytes_of(recognizer: Recognizer) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in recognizer.state().items()}


def test_knows_nothing_at_first_and_then_what_the_classifier_says():
    recognizer = make(smoothing__frames=1, threshold=0.0)
    before = recognizer.recognize(np.ones(D))
    assert (before.label, before.confidence, before.labels) == ("unknown", 0.0, ())
    recognizer = taught(smoothing__frames=1, threshold=0.0)
    model = IncrementalRLSC(0.3, tolerance=0.01, random_state=0, head="discriminant")
    for x, label in examples(20):
        model.partial_fit(x[None], [label])
    while model.refresh(1):
        pass
    for x, _ in examples(5, seed=1):
        found = recognizer.recognize(x)
        assert found.label == model.predict(x[None])[0]
        np.testing.assert_allclose(found.probabilities, model.predict_proba(x[None])[0])
        assert found.labels == ("ball", "book", "mug")
        assert found.confidence == found.probabilities.max()


def test_is_unknown_below_the_threshold_of_the_mean_over_frames():
    recognizer = taught(smoothing__frames=4, threshold=0.5)
    single = taught(smoothing__frames=1, threshold=0.0)
    rows = []
    for x, _ in examples(10, seed=2):
        rows.append(single.recognize(x).probabilities)
        found = recognizer.recognize(x)
        mean = np.mean(rows[-4:], axis=0)
        np.testing.assert_allclose(found.probabilities, mean)
        best = found.labels[int(mean.argmax())]
        assert found.label == (best if mean.max() >= 0.5 else "unknown")
    recognizer.configure(replace(RecognitionConfig(), threshold=1.0))
    assert recognizer.recognize(examples(1)[0][0]).label == "unknown"


def test_what_is_loaded_recognises_and_goes_on_exactly_as_what_was_saved(tmp_path: Path):
    path = tmp_path / "objects.npz"
    recognizer = taught()
    recognizer.save(path)
    again = make()
    again.load(path)
    assert again.labels == recognizer.labels and again.n_examples == 60
    np.testing.assert_array_equal(probabilities(again), probabilities(recognizer))
    for one in (again, recognizer):
        one.learn(np.ones(D) / np.sqrt(D), "plate")
    assert bytes_of(again) == bytes_of(recognizer)


@pytest.mark.parametrize(
    ("changes", "identity", "what"),
    [
        ({"ridge": (1.0,)}, {"input": "features"}, "ridge is"),
        ({"head": "least_squares"}, {"input": "features"}, "head is 'discriminant' there"),
        ({}, {"input": "image"}, "input is 'features' there, 'image' here"),
    ],
)
def test_a_model_of_something_else_is_refused_and_what_was_taught_stays(
    tmp_path: Path, changes, identity, what
):
    path = tmp_path / "objects.npz"
    taught().save(path)
    other = Recognizer(replace(RecognitionConfig(), **changes), identity)
    other.learn(np.ones(D), "plate")
    before = bytes_of(other)
    with pytest.raises(StorageError, match=what):
        other.load(path)
    assert bytes_of(other) == before and other.labels == ("plate",)


def test_edits_are_those_of_the_classifier():
    recognizer = taught()
    recognizer.edit(Edit("rename", "mug", "cup"))
    assert recognizer.labels == ("ball", "book", "cup")
    recognizer.edit(Edit("merge", "cup", "ball"))
    assert recognizer.labels == ("ball", "book")
    assert recognizer.n_examples == 60
    recognizer.edit(Edit("forget", "ball"))
    assert recognizer.labels == ("book",) and recognizer.n_examples == 20
    recognizer.edit(Edit("forget", "book"))
    assert recognizer.recognize(np.ones(D)).label == "unknown"
    recognizer.learn(np.ones(D), "book")
    assert recognizer.recognize(np.ones(D)).label == "book"


def test_of_an_object_that_is_forgotten_no_features_stay():
    recognizer = make()
    own = np.arange(1.0, D + 1.0)
    recognizer.learn(own, "mug")
    recognizer.learn(np.ones(D), "book")
    assert recognizer.edit(Edit("forget", "mug")) == "'mug' is forgotten"
    arrays = [np.atleast_2d(value) for value in recognizer.state().values()]
    assert not any(a.shape[1:] == (D,) and (a == own).all(axis=1).any() for a in arrays)


@pytest.mark.parametrize(
    "edit",
    [
        Edit("rename", "mug", "book"),
        Edit("rename", "mug", "x" * 10_000),
        Edit("rename", "mug", "unknown"),
        Edit("rename", "cup", "mug"),
        Edit("merge", "mug", "mug"),
        Edit("merge", "mug", "cup"),
        Edit("forget", ""),
    ],
)
def test_refused_edits_change_nothing(edit):
    recognizer = taught(4)
    before = bytes_of(recognizer)
    with pytest.raises(RefusedError):
        recognizer.edit(edit)
    assert bytes_of(recognizer) == before


def shown(recognizer: Recognizer, axis: int, frames: int, seed: int = 5) -> list[str]:
    """Labels of so many frames of something that has `axis` for its own."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(frames):
        x = np.eye(1, D, axis)[0] + 0.2 + rng.normal(scale=0.2, size=D)
        found.append(recognizer.recognize(x / np.linalg.norm(x)).label)
    return found


def test_an_unknown_object_is_told_and_named_afterwards():
    recognizer = taught(40, smoothing__frames=5, false_accepts=0.2, remember=8)
    assert shown(recognizer, 1, 10)[5:] == ["book"] * 5
    recognizer.restart_smoothing()
    assert shown(recognizer, 7, 20)[5:] == ["unknown"] * 15
    before = recognizer.n_examples
    told = recognizer.edit(Edit("name", "vase"))
    assert "'vase'" in told and "8 frames" in told
    assert recognizer.n_examples == before + 8
    assert recognizer.labels == ("ball", "book", "mug", "vase")
    while recognizer.refresh():
        pass
    recognizer.configure(replace(RecognitionConfig(), false_accepts=0.0))
    assert shown(recognizer, 7, 10, seed=6) == ["vase"] * 10


def test_only_the_frames_of_the_last_unknown_object_are_named():
    recognizer = taught(40, smoothing__frames=1, threshold=0.0, false_accepts=0.3, remember=100)
    assert shown(recognizer, 7, 12).count("unknown") > 6
    shown(recognizer, 1, 6)
    with pytest.raises(RefusedError, match="remember"):
        taught(4).edit(Edit("name", "vase"))
    while shown(recognizer, 1, 1, seed=9) == ["unknown"]:
        pass
    strange = recognizer.recognize(np.eye(1, D, 8)[0])
    assert strange.label == "unknown" and strange.known < 0.5
    assert "in 1 frame" in recognizer.edit(Edit("name", "vase"))


def test_before_anything_is_taught_what_is_shown_can_be_named():
    recognizer = make(remember=3)
    for _ in range(5):
        assert recognizer.recognize(np.ones(D)).label == "unknown"
    recognizer.edit(Edit("name", "mug"))
    assert recognizer.labels == ("mug",) and recognizer.n_examples == 3


def test_where_a_name_is_refused_the_frames_stay():
    recognizer = taught(40, smoothing__frames=1, max_classes=3, remember=5)
    assert shown(recognizer, 7, 20)[-5:] == ["unknown"] * 5
    for name, why in (("vase", "max_classes"), ("unknown", "unknown")):
        with pytest.raises(RefusedError, match=why):
            recognizer.edit(Edit("name", name))
    recognizer.configure(replace(RecognitionConfig(), max_classes=4, remember=5))
    recognizer.edit(Edit("name", "vase"))
    assert recognizer.n_examples == 125


def test_of_vectors_of_several_lengths_only_the_last_ones_are_named(tmp_path: Path):
    recognizer = make()
    for length in (D, D, D + 3, D + 1, D + 1):
        recognizer.recognize(np.ones(length))
    assert "2 frames" in recognizer.edit(Edit("name", "mug"))
    assert recognizer.n_inputs == D + 1
    recognizer.save(tmp_path / "objects.npz")
    again = make()
    again.recognize(np.ones(D))
    again.load(tmp_path / "objects.npz")
    with pytest.raises(RefusedError, match="no frame"):
        again.edit(Edit("name", "vase"))


@pytest.mark.parametrize(
    ("objects", "frames", "changes", "told"),
    [
        (1, 29, {}, "too few examples held out to tell unknown objects apart: 4 of 5"),
        (1, 30, {}, ""),
        (2, 14, {}, "too few examples held out to tell unknown objects apart: 4 of 5"),
        (2, 29, {"max_novelty": 0.0}, "apart: 8 of 10, of two objects"),
        (1, 90, {"max_novelty": 0.0}, "apart: 0 of 10, of two objects"),
        (2, 30, {"max_novelty": 0.0}, ""),
        (2, 40, {"hold_out": 0}, "hold_out is 0"),
        (1, 10, {"max_novelty": 0.0, "false_accepts": 0.0}, ""),
    ],
)
def test_why_nothing_is_unknown_is_told_and_to_name_it_is_refused_with_that(
    objects, frames, changes, told
):
    recognizer = make(threshold=0.0, smoothing__frames=1, **changes)
    assert recognizer.unknown_told() == (True, "")
    for axis in range(objects):
        for x in views(axis, frames):
            recognizer.learn(x, NAMES[axis])
    while recognizer.refresh():
        pass
    unknown = "unknown" in {recognizer.recognize(x).label for x in views(5, 20)}
    able, blind = recognizer.unknown_told()
    assert told in blind and (told != "") == (blind != "") == (not able)
    limited = changes.get("max_novelty", 5.0) > 0.0 or changes.get("false_accepts", 0.2) > 0.0
    assert unknown == (limited and not blind)
    if blind:
        with pytest.raises(RefusedError) as refused:
            recognizer.edit(Edit("name", "vase"))
        assert blind in str(refused.value)
    elif not limited:
        with pytest.raises(RefusedError, match=r"\(remember\)$"):
            recognizer.edit(Edit("name", "vase"))


def views(axis: int, frames: int, noise: float = 0.05, d: int = 64, seed: int = 0) -> np.ndarray:
    """So many frames of something that has `axis` for its own, of length 1."""
    x = np.eye(d)[axis] + np.random.default_rng([seed, axis]).normal(scale=noise, size=(frames, d))
    rows: np.ndarray = x / np.linalg.norm(x, axis=1, keepdims=True)
    return rows


def remembered(frames: np.ndarray, most: int = 60) -> np.ndarray:
    """Those that are kept at the end."""
    unknown = UnknownFrames(most)
    for x in frames:
        unknown.add(x)
    return np.array(unknown.frames)


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.05, 0.07])
@pytest.mark.parametrize(("first", "then"), [(40, 12), (20, 20), (1, 3), (200, 3)])
def test_of_two_unknown_objects_in_a_row_the_last_is_remembered(noise, first, then):
    before, last = views(3, first, noise), views(4, then, noise)
    np.testing.assert_array_equal(remembered(np.concatenate((before, last))), last)


def test_named_is_the_last_of_two_unknown_objects():
    recognizer = make()
    for axis, label in ((0, "mug"), (1, "key")):
        for x in views(axis, 30):
            recognizer.learn(x, label)
    while recognizer.refresh():
        pass
    for axis, frames in ((2, 40), (3, 12)):  # the empty desk, then scissors
        assert {recognizer.recognize(x).label for x in views(axis, frames)} == {"unknown"}
    assert "in 12 frames" in recognizer.edit(Edit("name", "scissors"))
    while recognizer.refresh():
        pass
    answers = {}
    for axis in (2, 3):
        recognizer.restart_smoothing()
        answers[axis] = {recognizer.recognize(x).label for x in views(axis, 10, seed=1)}
    assert answers == {2: {"unknown"}, 3: {"scissors"}}


@pytest.mark.parametrize("strays", range(1, 3))
def test_a_frame_or_two_that_are_blurred_begin_nothing_anew_and_are_not_learned(strays):
    mug, blurred = views(0, 30), views(5, strays)
    shown = np.concatenate((mug[:20], blurred, mug[20:25], blurred, mug[25:]))
    np.testing.assert_array_equal(remembered(shown), mug)
    np.testing.assert_array_equal(remembered(np.concatenate((mug, blurred))), mug)


@pytest.mark.parametrize("noise", [0.0, 0.005, 0.03])
@pytest.mark.parametrize("step", [0.002, 0.01, 0.03])
def test_an_object_that_turns_in_view_is_one(step, noise):
    angles = step * np.arange(100)
    turning = np.zeros((100, 64))
    turning[:, 0], turning[:, 1] = np.cos(angles), np.sin(angles)
    turning += np.random.default_rng(1).normal(scale=noise, size=turning.shape)
    np.testing.assert_array_equal(remembered(turning), turning[-60:])


@pytest.mark.parametrize("most", [0, 1, 2, 5])
def test_of_few_frames_that_may_be_remembered_the_last_are(most):
    shown = np.concatenate((views(0, 20), views(1, 10)))
    assert remembered(shown, most).tolist() == shown[len(shown) - most :].tolist()
    unknown = UnknownFrames(30)
    for x in shown:
        unknown.add(x)
    unknown.resize(most)
    assert np.array(unknown.frames).tolist() == shown[len(shown) - most :].tolist()


def test_where_there_is_no_memory_for_the_first_example_another_can_be_the_first(monkeypatch):
    recognizer = make()

    def fails(*_: object) -> None:
        raise MemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setattr("semiparam_dynamics.learning.class_heads.CholeskyFactor", fails)
        with pytest.raises(MemoryError):
            recognizer.learn(np.ones(D), "mug")
    assert recognizer.n_inputs is None and recognizer.n_examples == 0
    assert "mug" not in recognizer.classes and not recognizer.refresh()
    assert recognizer.recognize(np.ones(D)).label == "unknown"
    with pytest.raises(StorageError, match="nothing was taught"):
        recognizer.state()
    recognizer.configure(replace(RecognitionConfig(), remember=3))
    recognizer.learn(np.ones(D - 1), "mug")
    assert recognizer.n_inputs == D - 1 and recognizer.labels == ("mug",)


def test_the_recoding_exponent_is_chosen_or_given_at_any_moment():
    recognizer = taught()
    for recoding in (0.0, 0.35, 1.0):
        recognizer.configure(replace(RecognitionConfig(), choose_recoding=False, recoding=recoding))
        assert recognizer.model.recoding_ == recoding


def test_refuses_settings_at_once_that_the_classifier_would_refuse_later():
    with pytest.raises(ConfigurationError, match="hold_out"):
        make(hold_out=1)
    with pytest.raises(ConfigurationError, match="names no candidate"):
        make(ridge=())


def test_one_object_is_not_seen_in_everything():
    recognizer = make(smoothing__frames=3, max_novelty=5.0)
    rng = np.random.default_rng(0)

    def mug() -> np.ndarray:
        x = np.eye(D)[0] + 0.1 * np.abs(rng.normal(size=D))
        return x / np.linalg.norm(x)

    for _ in range(40):
        recognizer.learn(mug(), "mug")
    while recognizer.refresh():
        pass
    for _ in range(20):
        found = recognizer.recognize(mug())
        assert found.label == "mug" and 0.0 < found.novelty < 3.0
    other = np.eye(D)[4]
    last = [recognizer.recognize(other) for _ in range(3)][-1]
    assert last.confidence == 1.0 and last.novelty > 5.0
    assert last.label == "unknown"
    # Shown something else, it looks afresh.
    recognizer.restart_smoothing()
    assert recognizer.recognize(mug()).label == "mug"
    recognizer.configure(replace(RecognitionConfig(), max_novelty=0.0))
    assert recognizer.recognize(other).label == "mug"


@pytest.mark.parametrize("before, after", [(0, 0), (0, 60), (30, 30)])
def test_one_object_among_background_is_not_seen_in_it(tmp_path: Path, before: int, after: int):
    """The object may have been among what was seen before teaching, too."""
    recognizer = make(threshold=0.0, smoothing__frames=1)
    rng = np.random.default_rng(0)
    scenes = np.concatenate([views(k, 80, 0.1, seed=k) for k in range(1, 8)])
    shown = views(0, before, seed=8), rng.permutation(scenes)[:100], views(0, after, seed=9)
    for x in np.concatenate(shown):
        assert recognizer.recognize(x).label == "unknown"
    for x in views(0, 12):
        recognizer.learn(x, "mug")
    recognizer.save(tmp_path / "objects.npz")
    again = make(threshold=0.0, smoothing__frames=1)
    again.load(tmp_path / "objects.npz")
    for one in (recognizer, again):
        told, missing = one.unknown_told()
        assert told and missing.endswith("show two more objects, or one for 30 frames")
        mine = np.mean([one.recognize(x).label == "mug" for x in views(0, 100, seed=5)])
        others = np.concatenate([views(k, 40, 0.1, seed=20 + k) for k in range(1, 8)])
        theirs = np.mean([one.recognize(x).label == "mug" for x in others])
        assert theirs <= 0.05 and mine >= 0.9
    recognizer.configure(replace(RecognitionConfig(), false_accepts=0.0, max_novelty=0.0))
    recognizer.restart_smoothing()
    assert recognizer.recognize(scenes[-1]).label == "mug"
