"""What the recognition node says of itself."""

from __future__ import annotations

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from std_msgs.msg import Float32MultiArray, String

from semiparam_dynamics.base.errors import StorageError
from semiparam_dynamics.base.parameters import replace
from semiparam_dynamics.recognition.config import ObjectRecognitionNodeConfig
from semiparam_dynamics.recognition.nodes.object_recognition import MAX_LISTED, RecognitionReport
from semiparam_dynamics.recognition.nodes.recognition_session import RecognitionSession


def make(**changes: object) -> RecognitionSession:
    config = replace(ObjectRecognitionNodeConfig(), input="features", **changes)
    return RecognitionSession(config, lambda found: None)


def test_lists_the_worst_of_many_objects_and_says_how_many_more_there_are():
    session = make()
    rng = np.random.default_rng(0)
    for k in range(MAX_LISTED + 5):
        # The first three can't be told from each other, the others are clear.
        centre = np.eye(MAX_LISTED + 5)[max(k, 2)]
        for _ in range(12):
            session.recognizer.learn(
                centre + rng.normal(scale=0.01, size=MAX_LISTED + 5), f"{k:03}"
            )
    while session.recognizer.refresh():
        pass
    values = RecognitionReport(session).values()
    listed = [key for key in values if key.startswith("object: ")]
    assert len(listed) == MAX_LISTED and values["objects not listed"] == "5"
    assert values["objects"] == str(MAX_LISTED + 5)
    shares, sizes = session.recognizer.model.class_accuracy()
    assert np.all(sizes == 2) and (shares[:3].mean() < 1.0) and np.all(shares[3:] == 1.0)
    worst = [f"object: {k:03}" for k in range(3) if shares[k] < 1.0]
    assert set(listed[: len(worst)]) == set(worst)
    assert values["object: 010"] == "10 learned, 1.000 of 2 held out"


def test_refusals_are_told_once_and_a_save_that_fails_until_it_succeeds(tmp_path):
    (tmp_path / "file").write_text("no folder")
    session = make(model_file=str(tmp_path / "file" / "objects.npz"))
    report = RecognitionReport(session)
    assert report.summary(["no message"]) == (DiagnosticStatus.WARN, "no message")
    for _ in range(3):
        session.label(String(data=" "))
    level, text = report.summary([])
    assert level == DiagnosticStatus.WARN and "refused 3 times in the last second" in text
    assert report.summary([]) == (DiagnosticStatus.OK, "recognising; 0 objects in 0 examples")
    session.label(String(data="x\ny"))
    assert "refused once in the last second: " in report.summary([])[1]
    with pytest.raises(StorageError, match="nothing to save"):
        session.begin_save(tmp_path / "objects.npz", lambda problem: None)
    assert report.summary([]) == (DiagnosticStatus.OK, "recognising; 0 objects in 0 examples")

    session.label(String(data="mug"))
    session.recognizer.learn(np.ones(4), "mug")
    session.autosave.changed()
    assert report.summary([]) == (DiagnosticStatus.OK, "learning 'mug'; 1 objects in 1 examples")
    session.label(String(data=""))
    session.drain()
    session.autosave.wait()
    for _ in range(2):
        level, text = report.summary([])
        assert level == DiagnosticStatus.WARN and "can't write the model" in text
    (tmp_path / "file").unlink()
    session.finish()
    assert report.summary([])[0] == DiagnosticStatus.OK
    assert report.values()["changes not saved"] == "0"


def test_an_error_that_ends_recognition_is_told_until_learning_is_switched_on(monkeypatch):
    session = make()
    report = RecognitionReport(session)

    def fails(*_: object) -> None:
        raise MemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(type(session.recognizer), "recognize", fails)
        session.frame(Float32MultiArray(data=[1.0, 2.0]))
        session.drain()
    level, text = report.summary([])
    assert level == DiagnosticStatus.ERROR
    assert text.startswith("recognition has stopped (MemoryError: no room); ~/reset, or ~/learn")
    session.learning = True
    assert report.summary([]) == (DiagnosticStatus.OK, "recognising; 0 objects in 0 examples")


def test_says_while_there_is_too_little_to_tell_unknown_objects_by():
    session = make()
    report = RecognitionReport(session)
    assert "unknown objects" not in report.values()  # nothing is taught: everything is unknown
    rng = np.random.default_rng(0)
    told = []
    for _ in range(30):
        with session.paused():
            session.recognizer.learn(np.eye(8)[0] + rng.normal(scale=0.1, size=8), "mug")
            while session.recognizer.refresh():
                pass
            told.append(report.values()["unknown objects"])
    few = "too few examples held out to tell unknown objects apart"
    more = "show two more objects, or one for 30 frames"
    assert told[0] == f"{few}: 0 of 5; {more}" and told[28] == f"{few}: 4 of 5; {more}"
    assert told[29] == "told apart"
