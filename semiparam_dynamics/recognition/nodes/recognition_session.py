"""From messages to recognition, and to learning what a teacher names; without any ROS.

A frame waits until the one before it is done, unless a newer one replaces it. Then, in a thread,
its features are computed, it is recognised and published, and if it came under a label it is
learned. Each frame is thus recognised by what was taught before it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from semiparam_dynamics.base.arrays import TIMINGS, Array
from semiparam_dynamics.base.errors import RefusedError, SemiparamError
from semiparam_dynamics.base.nodes.autosave import LearningSession, Snapshot
from semiparam_dynamics.base.nodes.learner_thread import LearnerThread
from semiparam_dynamics.recognition.backbone import Backbone, image_array
from semiparam_dynamics.recognition.config import ObjectRecognitionNodeConfig
from semiparam_dynamics.recognition.labels import MAX_MESSAGE, Edit, Refusals, Teacher, parse_edit
from semiparam_dynamics.recognition.moving import Box, MovingBox
from semiparam_dynamics.recognition.recognizer import Recognition, Recognizer, feature_vector

MAX_WAITING = 1  # frames
# Frames after which one held-out example is updated although there is no pause; fewer than the
# default of hold_out, 6, by which one of six frames makes one more.
IDLE_FRAMES = 4


class Frame(NamedTuple):
    """A message with an image or features, and the label that held when it came."""

    message: Any
    label: str


class RecognitionSession(LearningSession[Frame]):
    """One model's frames, labels and edits. Call it from one thread at a time.

    Parameters
    ----------
    config: the node's parameters.
    publish: called with what each frame was recognised as, in the session's thread.

    Raises ConfigurationError, BackboneError and MissingExtraError, each with a sentence.
    """

    def __init__(
        self, config: ObjectRecognitionNodeConfig, publish: Callable[[Recognition], None]
    ) -> None:
        self._config = config
        self._publish = publish
        self.backbone: Backbone | None = None
        source: dict[str, object] = {"input": config.input, "normalize": config.normalize}
        if config.input == "image":
            self.backbone = Backbone(config.backbone)
            source = {"input": config.input, **self.backbone.identity}
        self.recognizer = Recognizer(config.recognition, source)
        self._moving = MovingBox()
        thread = LearnerThread(self._answer, MAX_WAITING, idle=self._idle)
        super().__init__(config, thread)
        self._count_anew()

    def _forget(self) -> None:
        self.recognizer.reset()
        self._count_anew()

    def _count_anew(self) -> None:
        limits, unknown = self._config.recognition.limits, self._config.recognition.unknown
        self.teacher = Teacher(limits, unknown)
        self.refusals = Refusals()
        self.seen = self.recognized = self.taught = self.taught_known = self.not_learned = 0
        self.last: Recognition | None = None
        self.last_edit = ""
        self.edits = 0  # also those that were refused
        self.refused_label = "", ""  # the label said last, and why, where it can't be taught
        self._shown = ""  # the label of the last frame
        self.timings: dict[str, deque[float]] = {  # us
            name: deque(maxlen=TIMINGS) for name in ("features", "recognize", "learn", "frame")
        }

    def configure(self, config: ObjectRecognitionNodeConfig) -> None:
        """Continue with other values of the live parameters."""
        with self.paused():
            self._config = config
            self.recognizer.configure(config.recognition)
            self.teacher.limits = config.recognition.limits
            self.autosave.interval = config.save_interval
        self.thread.call_idle()

    def frame(self, message: Any) -> None:
        """Take an Image, or a Float32MultiArray where the input is features."""
        self.seen += 1
        self.thread.put(Frame(message, self.teacher.label))

    def label(self, message: Any) -> None:
        """Take the teacher's label, a String."""
        before = self.teacher.label
        with self.paused():
            self.refused_label = "", ""
            try:
                self.teacher.say(message.data, self.recognizer.classes, len(self.recognizer.labels))
            except SemiparamError as error:
                self.refusals.note(error)
                label = message.data[:MAX_MESSAGE]
                self.refused_label = label * label.isprintable(), str(error)[:MAX_MESSAGE]
        if before and self.teacher.label != before:
            self._want_saved()

    def edit(self, message: Any) -> None:
        """Take an edit of the objects, a String; its result is `last_edit`."""
        self.edits += 1
        try:
            self.last_edit = self._edit(parse_edit(message.data))
        except SemiparamError as error:
            with self.paused():
                self.refusals.note(error)
            self.last_edit = f"refused: {error}"[:200]

    def forget_last(self) -> str:
        """Forget the object that was named last; returns a sentence. Raises RefusedError."""
        if not self.teacher.last:
            raise RefusedError(
                "no object can be forgotten as the last one: none was named yet, or it is "
                "forgotten already, or its name was refused and nothing was learned under it; "
                "'forget LABEL' on ~/edit forgets one by name",
                reason="edit of classes",
            )
        self.last_edit = self._edit(Edit("forget", self.teacher.last))
        self.edits += 1
        return self.last_edit

    def finish(self) -> Path | None:
        """End the teaching, and save unsaved changes as others do."""
        self.teacher.stop()
        return super().finish()

    def learned(self) -> str:
        """Amount of learning, in words."""
        return f"{len(self.recognizer.labels)} objects in {self.recognizer.n_examples} examples"

    def looked_at(self) -> str:
        """The part of the last image that was looked at, in words."""
        if self._config.region == "whole" or self.backbone is None or self.last is None:
            return ""
        return "the whole image: nothing moves" if self.last.box is None else "what moves, in a box"

    def save_if_due(self) -> None:
        """Save pending changes if nothing has come for a while."""
        self.thread.call_idle()

    def drain(self) -> None:
        """Wait until no frame waits, and update all held-out examples that are due."""
        with self.paused(drained=True):
            while self._idle() is not None:
                pass

    def _edit(self, edit: Edit) -> str:
        with self.paused(drained=True):  # a frame is taught under the name that it came with
            if edit.action == "name":
                self.teacher.last = ""  # until it is done
            if edit.action == "name" and not self.learning:
                raise RefusedError(
                    "learning is switched off, and to name the unknown object is to learn it: "
                    "call ~/learn with true first",
                    reason="learning switched off",
                )
            before = self.recognizer.n_examples
            done = self.recognizer.edit(edit)
            if edit.action == "name":
                self.taught += self.recognizer.n_examples - before
            self.teacher.follow(edit)
            self.autosave.changed()
        self._want_saved()
        return done

    def _want_saved(self) -> None:
        with self.paused():
            self.autosave.request()
        self.thread.call_idle()

    def _copied(self) -> Snapshot:
        return self.recognizer.identity(), {}, self.recognizer.state()

    def _resume(self, path: Path) -> None:
        self.recognizer.load(path)

    # In the thread.

    def _idle(self) -> float | None:
        """Begin a save that is due, and update held-out examples, one at a time."""
        self.autosave.step()
        return 0.0 if self.recognizer.refresh() else None

    def _answer(self, frame: Frame) -> None:
        start = time.perf_counter()
        try:
            x, box = self._features(frame.message)
            self._note("features", start)
            if frame.label != self._shown:
                self.recognizer.restart_smoothing()
                self._shown = frame.label
            begun = time.perf_counter()
            recognition = self.recognizer.recognize(x)._replace(box=box)
            self._note("recognize", begun)
            self.recognized += 1
            self.last = recognition
            self._publish(recognition)
            if frame.label:
                self._learn(x, frame.label, recognition.label == frame.label)
            self._note("frame", start)
        except SemiparamError as error:
            self.refusals.note(error)
        # Where frames come faster than they are answered there is no pause for either.
        self.autosave.step()
        if self.recognized % IDLE_FRAMES == 0:
            self._idle()

    def _features(self, message: Any) -> tuple[Array, Box | None]:
        """The features of what a frame shows, and its part that they are of, None for all of it."""
        n_inputs, most = self.recognizer.n_inputs, self._config.recognition.limits.max_inputs
        if self.backbone is None:
            data = memoryview(message.data)[message.layout.data_offset :]  # copies nothing
            return feature_vector(data, n_inputs, most, normalize=self._config.normalize), None
        image = image_array(
            message.data, message.height, message.width, message.encoding, message.step
        )
        box = self._moving.find(image) if self._config.region == "moving" else None
        features = self.backbone.features(image if box is None else box.cut(image))
        return feature_vector(features, n_inputs, most, normalize=False), box

    def _learn(self, x: Array, label: str, known: bool) -> None:
        if not self.learning:
            self.not_learned += 1
            return
        start = time.perf_counter()
        self.recognizer.learn(x, label)
        self._note("learn", start)
        self.taught += 1
        self.taught_known += known  # before it was learned
        self.autosave.changed()

    def _note(self, name: str, start: float) -> None:
        self.timings[name].append((time.perf_counter() - start) * 1e6)
