"""Messages to recognition and learning, without a node."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from std_msgs.msg import Float32MultiArray, String

from semiparam_dynamics.base.errors import RefusedError
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.recognition.config import ObjectRecognitionNodeConfig
from semiparam_dynamics.recognition.nodes.recognition_session import RecognitionSession
from semiparam_dynamics.recognition.recognizer import Recognition

D = 8


class Talk:
    """A session, and what it published."""

    def __init__(self, **changes: object) -> None:
        self.published: list[Recognition] = []
        self.coming: Iterator[np.ndarray] = iter(())  # each while the one before is answered
        given = {"input": "features", **changes}
        config = replace(ObjectRecognitionNodeConfig(), **given)
        self.session = RecognitionSession(config, self.heard)

    def heard(self, recognition: Recognition) -> None:
        self.published.append(recognition)
        for vector in islice(self.coming, 1):
            self.show(vector)

    def say(self, text: str) -> None:
        self.session.label(String(data=text))

    def show(self, vector: np.ndarray | list[float]) -> None:
        data = np.asarray(vector, dtype=float).tolist()
        self.session.frame(Float32MultiArray(data=data))

    def teach(self, label: str, number: int, times: int = 12) -> None:
        rng = np.random.default_rng(number)
        self.say(label)
        for _ in range(times):
            self.show(np.eye(D)[number] + rng.normal(scale=0.1, size=D))
            self.session.drain()
        self.say("")

    def model(self) -> dict[str, bytes]:
        """What it knows, but for which of the held-out samples it looked at last."""
        state = self.session.recognizer.state()
        known = state.keys() - {"held_checked", "held_clock"}
        return {name: state[name].tobytes() for name in known}


@pytest.fixture
def talk() -> Talk:
    made = Talk()
    made.teach("mug", 0)
    made.teach("book", 1)
    made.session.drain()
    return made


def test_a_frame_is_recognised_before_it_is_learned(talk):
    assert [found.labels for found in talk.published[:2]] == [(), ("mug",)]
    assert talk.session.taught == 24 and talk.session.recognized == 24
    assert talk.session.learned() == "2 objects in 24 examples"


def test_the_newest_frame_waits_under_the_label_of_its_coming(talk):
    talk.say("ball")
    with talk.session.paused():
        talk.show(np.eye(D)[2])
        talk.show(np.eye(D)[3])
        talk.say("")
    talk.session.drain()
    assert talk.session.thread.dropped == 1 and talk.session.taught == 25
    assert "ball" in talk.session.recognizer.labels
    talk.show(np.eye(D)[3])
    talk.session.drain()
    assert talk.published[-1].label == "ball" and talk.session.taught == 25


def test_in_pauses_all_held_out_examples_are_looked_at_again(talk):
    talk.teach("ball", 2)
    talk.session.drain()
    assert "ball" in talk.session.recognizer.labels
    assert talk.session.recognizer.model.recursion_.outdated() == 0


def test_held_out_examples_are_looked_at_although_a_frame_always_waits(talk):
    rng = np.random.default_rng(2)
    assert talk.published[-1].novelty == 0.0  # so few are held out
    talk.say("mug")
    talk.coming = iter(np.eye(D)[0] + rng.normal(scale=0.1, size=(80, D)))
    talk.show(np.eye(D)[0])
    talk.session.drain()
    assert len(talk.published) == 24 + 81 and talk.session.thread.dropped == 0
    assert talk.published[-1].novelty > 0.0 and 0.0 <= talk.published[-1].known <= 1.0


def test_what_is_taught_is_saved_although_a_frame_always_waits(tmp_path: Path):
    talk = Talk(model_file=str(tmp_path / "objects.npz"), save_interval=60.0)
    saving, now = talk.session.autosave, 0.0
    saving._clock = lambda: now
    unsaved = []

    def coming() -> Iterator[np.ndarray]:
        nonlocal now
        for k in range(9):
            saving.wait()
            unsaved.append(saving.unsaved)
            if k == 3:
                now = 61.0
            if k == 6:
                talk.say("")
            yield np.eye(D)[0]

    talk.say("mug")
    talk.coming = coming()
    talk.show(np.eye(D)[0])
    talk.session.drain()
    assert unsaved == [0, 1, 2, 3, 0, 1, 2, 0, 0]
    assert len(talk.published) == 10 and talk.session.taught == 7


BAD_FEATURES = [
    [1.0] * (D - 1),
    [1.0] * (D + 1),
    [],
    [float("nan")] * D,
    [float("inf")] + [1.0] * (D - 1),
    [0.0] * D,
    [1.0] * 5000,
]
BAD_LABELS = ["x" * 10_000, " ", "a\x00b", "unknown"]
BAD_EDITS = ["", "rename mug -> book", "merge plate -> mug", "forget plate", "erase mug"]


@pytest.mark.parametrize("label", ["", "mug"])
@pytest.mark.parametrize("vector", BAD_FEATURES, ids=lambda v: f"{len(v)} {v[:1]}")
def test_bad_features_change_nothing(talk, vector, label):
    before, said = talk.model(), len(talk.published)
    talk.say(label)
    talk.show(vector)
    talk.session.drain()
    assert talk.model() == before and len(talk.published) == said
    assert talk.session.refusals.counts.total() == 1


def test_after_a_bad_label_nothing_is_taught(talk):
    before = talk.model()
    for text in BAD_LABELS:
        talk.say("mug")
        talk.say(text)
        talk.show(np.eye(D)[4])
        talk.session.drain()
    assert talk.model() == before
    assert talk.session.refusals.counts.total() == len(BAD_LABELS)
    assert len(talk.published) == 24 + len(BAD_LABELS)


def test_bad_edits_change_nothing_and_say_why(talk):
    before = talk.model()
    for text in BAD_EDITS:
        talk.session.edit(String(data=text))
        assert talk.session.last_edit.startswith("refused: ")
    assert talk.model() == before


def test_a_flood_of_new_names_makes_no_more_objects_than_allowed_and_few_reasons():
    talk = Talk(max_classes=5)
    for k in range(2_000):
        talk.say(f"object {k} {'x' * (k % 200)}")
        talk.show(np.eye(D)[k % D])
        talk.session.drain() if k % 100 == 0 else None
    talk.session.drain()
    assert len(talk.session.recognizer.labels) == 5
    assert set(talk.session.refusals.counts) == {"too many classes", "label too long"}
    assert len(talk.session.refusals.details) == len(talk.session.refusals.counts)


def test_no_more_objects_than_allowed_and_the_bound_may_be_raised(talk):
    talk = Talk(max_classes=1)
    talk.teach("mug", 0)
    talk.teach("book", 1)
    assert talk.session.recognizer.labels == ("mug",)
    assert talk.session.refusals.counts["too many classes"] == 1
    config = replace(ObjectRecognitionNodeConfig(), input="features", max_classes=2)
    talk.session.configure(config)
    talk.teach("book", 1)
    assert talk.session.recognizer.labels == ("book", "mug")


def test_what_is_being_taught_goes_by_its_new_name_or_no_more(talk):
    def shown_after(text: str) -> tuple[str, ...]:
        talk.show(np.eye(D)[0])
        talk.session.edit(String(data=text))
        talk.show(np.eye(D)[0])
        talk.session.drain()
        return talk.session.recognizer.labels

    talk.say("mug")
    assert shown_after("rename mug -> cup") == ("book", "cup")
    assert talk.session.recognizer.n_examples == 26
    assert shown_after("merge cup -> book") == ("book",)
    assert talk.session.recognizer.n_examples == 28
    edits = talk.session.edits
    assert talk.session.forget_last() == "'book' is forgotten" == talk.session.last_edit
    assert talk.session.edits == edits + 1
    talk.show(np.eye(D)[0])
    talk.session.drain()
    assert talk.session.recognizer.labels == ()
    with pytest.raises(RefusedError, match="it is forgotten already"):
        talk.session.forget_last()


def test_a_label_that_cannot_be_taught_is_told_with_the_reason_until_the_next():
    talk = Talk(max_label_length=5)
    talk.say("unknown")
    assert (
        talk.session.refused_label[0] == "unknown" and "max_label" in talk.session.refused_label[1]
    )
    talk.say("a\x00b")
    assert talk.session.refused_label[0] == "" and talk.session.refused_label[1]
    for label in ("mug", ""):
        talk.say(label)
        assert talk.session.refused_label == ("", "")


def test_nothing_is_forgotten_as_the_last_object_where_there_is_none():
    def refuses() -> None:
        with pytest.raises(RefusedError, match="none was named yet.*'forget LABEL' on ~/edit"):
            talk.session.forget_last()

    talk = Talk(threshold=1.0)
    refuses()
    talk.teach("mug", 0)
    talk.teach("book", 1)
    talk.session.edit(String(data="forget book"))
    refuses()
    talk.session.reset()
    with talk.session.paused():  # nobody names these, as those of a file that is loaded
        for k in range(24):
            talk.session.recognizer.learn(np.eye(D)[k % 2] + 0.01 * np.eye(D)[k % 5], f"{k % 2}")
    refuses()
    talk.show(np.eye(D)[5])
    talk.session.drain()
    talk.session.edit(String(data="name cup"))
    talk.session.edit(String(data="forget cup"))
    refuses()
    assert talk.session.recognizer.labels == ("0", "1")


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("refused", ["unknown", " ", "x" * 10_000, None])
def test_after_a_refused_name_the_object_before_it_is_not_forgotten(talk, refused, ended):
    if refused is None:
        talk.session.edit(String(data="name cup"))
        assert "no frame of an unknown object" in talk.session.last_edit
    else:
        talk.say(refused)
    if ended:
        talk.say("")
    for _ in range(2):
        with pytest.raises(RefusedError, match="its name was refused"):
            talk.session.forget_last()
    assert talk.session.recognizer.labels == ("book", "mug")
    talk.say("mug")
    talk.say("")
    assert talk.session.forget_last() == "'mug' is forgotten"


def test_nothing_is_named_while_learning_is_switched_off_and_what_is_named_counts():
    talk = Talk(threshold=1.0)
    talk.teach("mug", 0)
    talk.teach("book", 1)
    for _ in range(5):
        talk.show(np.eye(D)[5])
        talk.session.drain()
    before, known = talk.model(), talk.session.taught_known
    talk.session.learning = False
    talk.session.edit(String(data="name cup"))
    assert talk.session.last_edit.startswith("refused: learning is switched off")
    assert "~/learn with true" in talk.session.last_edit
    assert talk.session.refusals.counts == {"learning switched off": 1}
    assert talk.model() == before and talk.session.taught == 24
    talk.session.edit(String(data="rename mug -> vase"))  # teaches nothing
    assert talk.session.recognizer.labels == ("book", "vase")
    talk.session.learning = True
    talk.session.edit(String(data="name cafe\u0301"))
    assert talk.session.last_edit == "the unknown object is 'caf\u00e9' now, in 5 frames"
    assert talk.session.taught == 29 == talk.session.recognizer.n_examples
    assert talk.session.taught_known == known
    assert talk.session.forget_last() == "'caf\u00e9' is forgotten"  # the last that was named
