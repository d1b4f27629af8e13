"""From messages to recognition, and to learning what a teacher names; without any ROS.

One frame's way through the node: it waits, and a newer one takes its place; then its features are
found, it is recognised, the caller publishes, and if it came under a label it is learned. So each
frame is recognised by what was taught before it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.errors import RefusedError, SemiparamError
from semiparam_dynamics.nodes.autosave import Autosave
from semiparam_dynamics.nodes.config import ObjectRecognitionNodeConfig
from semiparam_dynamics.nodes.runtime import Backlog
from semiparam_dynamics.recognition.backbone import Backbone, image_array
from semiparam_dynamics.recognition.feature_vectors import feature_vector
from semiparam_dynamics.recognition.labels import Edit, Refusals, Teacher, parse_edit
from semiparam_dynamics.recognition.recognizer import Recognition, Recognizer

TIMINGS = 2000  # frames over which the percentiles are taken
WAITING = 1  # frames that may wait
PATIENCE = 0.05  # s for which a flood of messages may keep a frame waiting


class Frame(NamedTuple):
    """A message with an image or features, and the label that held when it came."""

    message: Any
    label: str


class RecognitionSession:
    """What the node does with one model.

    Parameters
    ----------
    config: the node's parameters.
    publish: called with what each frame was recognised as.

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
        path = Path(config.model_file).expanduser().absolute() if config.model_file else None
        self.autosave = Autosave(
            path if config.autosave else None,
            lambda: (self.recognizer.identity(), self.recognizer.state()),
            config.save_interval,
        )
        self.backlog: Backlog[Frame] = Backlog(
            self._answer, WAITING, patience=PATIENCE, spare=self._spare
        )
        self.learning = True
        self.reset()

    def reset(self) -> None:
        """Forget all objects, end the teaching and count anew.

        The file stays as it is until something is saved.
        """
        self.recognizer.reset()
        self.autosave.mark_saved()
        limits, unknown = self._config.recognition.limits, self._config.recognition.unknown
        self.teacher = Teacher(limits, unknown)
        self.refusals = Refusals()
        self.backlog.clear()
        self.backlog.dropped = 0
        self.seen = self.recognized = self.taught = self.not_learned = 0
        self.last: Recognition | None = None
        self.last_edit = ""
        self._shown = ""  # the label of the last frame
        self.timings: dict[str, deque[float]] = {  # us
            name: deque(maxlen=TIMINGS) for name in ("features", "recognize", "learn", "frame")
        }

    def configure(self, config: ObjectRecognitionNodeConfig) -> None:
        """Go on with other values of the live parameters."""
        self._config = config
        self.recognizer.configure(config.recognition)
        self.teacher.limits = config.recognition.limits
        self.autosave.interval = config.save_interval
        self.backlog.stir()

    def frame(self, message: Any) -> None:
        """Take an Image, or a Float32MultiArray where the input is features."""
        self.backlog.interrupted()
        self.seen += 1
        self.backlog.add(Frame(message, self.teacher.label))

    def label(self, message: Any) -> None:
        """Take the teacher's label, a String."""
        self.backlog.interrupted()
        before = self.teacher.label
        try:
            self.teacher.say(message.data, self.recognizer.classes, len(self.recognizer.labels))
        except SemiparamError as error:
            self.refusals.note(error)
        if before and self.teacher.label != before:
            self._want_saved()

    def edit(self, message: Any) -> None:
        """Take an edit of the objects, a String; what came of it is `last_edit`."""
        self.backlog.interrupted()
        try:
            self.last_edit = self._edit(parse_edit(message.data))
        except SemiparamError as error:
            self.refusals.note(error)
            self.last_edit = f"refused: {error}"[:200]

    def forget_last(self) -> str:
        """Forget the object that was named last; returns a sentence. Raises RefusedError."""
        if not self.teacher.last:
            raise RefusedError("no object was named yet", reason="edit of classes")
        return self._edit(Edit("forget", self.teacher.last))

    def save(self, path: Path) -> None:
        """Save what was taught. Raises StorageError."""
        self.backlog.do_all()
        self.autosave.save(path)

    def begin_save(self, path: Path, done: Callable[[str], None]) -> None:
        """The same in a thread; see `Autosave.begin`."""
        self.backlog.do_all()
        self.autosave.begin(path, done)

    def load(self, path: Path) -> None:
        """Go on from a file, or from the one before it where it is damaged.

        Raises StorageError; what was taught is then what it was.
        """
        self.autosave.load(path, self.recognizer.load)
        self.backlog.clear()

    def finish(self) -> None:
        """End the teaching and save what isn't saved yet, if that is to happen by itself.

        Raises StorageError.
        """
        self.backlog.do_all()
        self.teacher.stop()
        self.autosave.finish()

    def learned(self) -> str:
        """How much was learned, in words."""
        return f"{len(self.recognizer.labels)} objects in {self.recognizer.n_examples} examples"

    def _edit(self, edit: Edit) -> str:
        self.backlog.do_all()  # a frame that waits is taught under the name that it came with
        done = self.recognizer.edit(edit)
        self.teacher.follow(edit)
        self.autosave.changed()
        self._want_saved()
        return done

    def _want_saved(self) -> None:
        self.autosave.request()
        self.backlog.stir()

    def _spare(self) -> bool:
        """In pauses: begin a save that is due, and look at held-out examples again."""
        self.autosave.step()
        return self.recognizer.refresh()

    def _answer(self, frame: Frame) -> None:
        start = time.perf_counter()
        try:
            x = self._features(frame.message)
            self._note("features", start)
            if frame.label != self._shown:
                self.recognizer.restart_smoothing()
                self._shown = frame.label
            begun = time.perf_counter()
            recognition = self.recognizer.recognize(x)
            self._note("recognize", begun)
            self.recognized += 1
            self.last = recognition
            self._publish(recognition)
            if frame.label:
                self._learn(x, frame.label)
            self._note("frame", start)
        except SemiparamError as error:
            self.refusals.note(error)

    def _features(self, message: Any) -> Array:
        n_inputs, most = self.recognizer.n_inputs, self._config.recognition.limits.max_inputs
        if self.backbone is None:
            data = memoryview(message.data)[message.layout.data_offset :]  # copies nothing
            return feature_vector(data, n_inputs, most, normalize=self._config.normalize)
        image = image_array(
            message.data, message.height, message.width, message.encoding, message.step
        )
        return feature_vector(self.backbone.features(image), n_inputs, most, normalize=False)

    def _learn(self, x: Array, label: str) -> None:
        if not self.learning:
            self.not_learned += 1
            return
        start = time.perf_counter()
        self.recognizer.learn(x, label)
        self._note("learn", start)
        self.taught += 1
        self.autosave.changed()

    def _note(self, name: str, start: float) -> None:
        self.timings[name].append((time.perf_counter() - start) * 1e6)
