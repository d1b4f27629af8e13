"""Recognition of objects by their features, and learning of new ones, one input at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Container
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.base.arrays import Array, Mask
from semiparam_dynamics.base.errors import (
    LearningError,
    NothingToSaveError,
    RefusedError,
    StorageError,
)
from semiparam_dynamics.base.storage import State, load_state, save_state
from semiparam_dynamics.learning import IncrementalRLSC
from semiparam_dynamics.learning.class_heads import ClassSums
from semiparam_dynamics.learning.held_out import MIN_FOR_ACCEPTANCE, MIN_FOR_NOVELTY
from semiparam_dynamics.learning.incremental_rlsc import ClassRecursion
from semiparam_dynamics.recognition.config import RecognitionConfig
from semiparam_dynamics.recognition.labels import Edit, check_room, checked_label
from semiparam_dynamics.recognition.moving import Box


class Smoothing:
    """The mean over the last `frames` frames of the same classes."""

    def __init__(self, frames: int) -> None:
        self._last: deque[Array] = deque(maxlen=frames)
        self._labels: tuple[str, ...] = ()

    def resize(self, frames: int) -> None:
        """Take the mean over so many frames; the last ones stay."""
        self._last = deque(self._last, maxlen=frames)

    def restart(self) -> None:
        """Forget the frames before this."""
        self._last.clear()

    def add(
        self, labels: tuple[str, ...], probabilities: Array, *measures: Any
    ) -> tuple[Array, Array]:
        """Take a frame's probabilities (T,) of the classes `labels`, and other measures of it.

        Returns the mean of each. It starts anew where classes have come or left.
        """
        if labels is not self._labels and labels != self._labels:
            self.restart()
            self._labels = labels
        self._last.append(np.append(probabilities, measures))
        mean = np.mean(self._last, axis=0)
        return mean[: len(labels)], mean[len(labels) :]


OUTLIER_DISTANCE = 2.0  # times the expected distance from the mean of an object's frames
# Expected distances, as shares of the mean's length: the prior, which counts as one frame, and the
# least.
PRIOR_SPREAD, MIN_SPREAD = 0.25, 0.1
NEW_OBJECT_FRAMES = 3  # outliers in a row that show another object, and no blur


class UnknownFrames:
    """The frames of the unknown object that is in view, or was last.

    A frame is an outlier where it is more than `OUTLIER_DISTANCE` times as far from the mean of
    those kept as they are themselves (root mean square, with a prior). Three in a row show another
    object: they stay, and the frames before them go. One or two are a blur, or a hand, and are
    dropped once a frame is no outlier again. An object that moves widens its own limit; where it
    jumps, or begins to move fast, its earlier frames may go.

    frames: how many are kept, the last ones.
    """

    def __init__(self, frames: int) -> None:
        self._kept: deque[Array] = deque(maxlen=frames)
        self._outliers: list[Array] = []  # the last ones, as long as they are too few

    @property
    def frames(self) -> list[Array]:
        """Those that are kept, without outliers at the end."""
        return list(self._kept)

    def resize(self, frames: int) -> None:
        """Keep so many; the last ones stay."""
        self._kept, self._outliers = deque(self._kept, maxlen=frames), []

    def clear(self) -> None:
        """Begin anew."""
        self._kept.clear()
        self._outliers = []

    def add(self, x: Array) -> None:
        """Take a frame (d,). One of another length can't be learned together with those before."""
        if self._kept and len(x) != len(self._kept[0]):
            self.clear()
        if not self._is_outlier(x):
            self._kept.append(x)
            self._outliers = []
            return
        self._outliers.append(x)
        if len(self._outliers) == NEW_OBJECT_FRAMES:
            self._kept, self._outliers = deque(self._outliers, maxlen=self._kept.maxlen), []

    def _is_outlier(self, x: Array) -> bool:
        if not (n := len(self._kept)):
            return False
        frames = np.array(self._kept)
        mean = frames.mean(axis=0)
        length, distance = float(mean @ mean), float((x - mean) @ (x - mean))
        scatter = float(np.sum((frames - mean) ** 2)) + PRIOR_SPREAD**2 * length
        # The mean of n frames has an error itself: 1 / n of that.
        expected = max(scatter / n * (1.0 + 1.0 / n), MIN_SPREAD**2 * length)
        return distance > OUTLIER_DISTANCE**2 * expected


FALSE_ACCEPTS = 0.05  # share of frames like those of the background that may pass for an object
MIN_FRAMES = 19  # of fewer no share so small can be kept to
MAX_FRAMES = 200  # kept; every other one goes when there are more
FIRST_FRAMES = 10  # of the first object, which tell how similar it is to itself
UNLIKE = 2  # frames in a row that do not show the object: one may be a blur


class Background:
    """Frames from before anything was taught: what an object must be distinguished from.

    With one object taught there is no other one to compare with. What the camera saw before is one:
    a frame is the object's only where it is more similar to it than all but a share of those frames
    are. Some of them may show the object that was then taught.

    seen : (n, d), in their order. first : (k, d), the first frames of the object taught first.
    """

    def __init__(self, seen: Array | None = None, first: Array | None = None) -> None:
        self._seen: list[Array] = [] if seen is None else list(seen)
        self._first: list[Array] = [] if first is None else list(first)
        self._found: tuple[tuple[float, int], float | None] = (0.0, 0), None

    def add(self, x: Array) -> None:
        """Take a frame (d,) that came before anything was taught."""
        self._first = []
        if self._seen and len(x) != len(self._seen[0]):
            self._seen = []
        self._seen.append(x)
        if len(self._seen) > MAX_FRAMES:
            self._seen = self._seen[::2]

    def note_taught(self, x: Array) -> None:
        """Take a frame (d,) of the object taught first."""
        if len(self._first) < FIRST_FRAMES:
            self._first.append(x)

    def state(self, n_inputs: int) -> dict[str, Array]:
        """The arrays `seen` and `first` of frames of `n_inputs` numbers."""
        both = {"background": self._seen, "background_object": self._first}
        return {name: np.array(frames).reshape(-1, n_inputs) for name, frames in both.items()}

    def limit(self, recursion: ClassRecursion) -> float | None:
        """The similarity below which a frame shows no object; None while frames are too few.

        At most `FALSE_ACCEPTS` of further frames exceed it, if they are exchangeable with those
        before teaching, whatever their distribution (V. Vovk et al.: Algorithmic learning in a
        random world, 2005). Where the object is far from them it is halfway to the object's own.
        """
        of = float(recursion.classes.shown.sum()), len(recursion.classes)
        if self._found[0] != of:
            self._found = of, self._limit(recursion)
        return self._found[1]

    def _limit(self, recursion: ClassRecursion) -> float | None:
        if len(self._seen) < MIN_FRAMES or len(self._first) < 2:
            return None
        features = recursion.front.transform
        seen, first = features(np.array(self._seen)), features(np.array(self._first))
        total = first.sum(axis=0)
        own = float(np.median([_cosines(x[None], (total - x)[None])[0] for x in first]))
        kept = seen[self._show_none(_cosines(seen, total[None]), own)]
        if len(kept) < MIN_FRAMES:
            return None
        rank = int(np.ceil((len(kept) + 1) * (1.0 - FALSE_ACCEPTS) - 1e-9))
        limit = float(np.sort(_similarity(kept, recursion.classes))[rank - 1])
        return max(limit, (limit + own) / 2.0)

    @staticmethod
    def _show_none(similar: Array, own: float) -> Mask:
        """Mark the frames, of these similarities (n,), that do not show the object.

        It has been in view before its teaching began. Where hardly a frame lies between those that
        show it and others, it is seen which do. Else the last ones do, back to where `UNLIKE` in a
        row are nearer to the least similar tenth than to the object's own first frames.
        """
        low = float(np.quantile(similar, 0.1))
        near = similar > (low + own) / 2.0
        between = np.abs(similar - (low + own) / 2.0) < (own - low) / 4.0
        if between.mean() <= FALSE_ACCEPTS:
            return ~near
        unlike = np.flatnonzero(~near)
        ends = np.flatnonzero(unlike[UNLIKE - 1 :] - unlike[: 1 - UNLIKE] == UNLIKE - 1)
        count = unlike[ends[-1] + UNLIKE - 1] + 1 if len(ends) else 0
        return np.arange(len(similar)) < count


def _similarity(Z: Array, classes: ClassSums) -> Array:
    """The cosine of each of the features (n, k) with the mean of the class most similar to it."""
    return _cosines(Z, classes.sums[classes.counts > 0.0])


def _cosines(X: Array, sums: Array) -> Array:
    lengths = np.linalg.norm(X, axis=1) * np.linalg.norm(sums, axis=1)[:, None]
    largest: Array = (sums @ X.T / np.maximum(lengths, np.finfo(float).tiny)).max(axis=0)
    return largest


class Recognition(NamedTuple):
    """The answer to a frame, together with those before it.

    label : the class, or the word for unknown objects. confidence : its probability.
    probabilities : (T,) of the classes `labels`, smoothed. novelty : distance from all that was
        taught, smoothed; 0 while there is nothing to compare with. known : the probability that it
        is an object taught at all, if every second frame is; NaN likewise. box : the part of the
        image that was looked at; None for all of it.
    """

    label: str
    confidence: float
    labels: tuple[str, ...]
    probabilities: Array
    novelty: float = 0.0
    known: float = float("nan")
    box: Box | None = None


class Recognizer:
    """An :class:`IncrementalRLSC` with smoothing, limits and storage.

    Inputs are feature vectors from :func:`feature_vector`, labels from `checked_label`.

    config : see `configure`.
    identity : what the features come from, in values for JSON: a saved model of other features is
        refused.

    Raises ConfigurationError for settings that the classifier refuses.
    """

    def __init__(self, config: RecognitionConfig, identity: dict[str, object]) -> None:
        self._config = config
        self._source = identity
        self._smoothing = Smoothing(config.smoothing.frames)
        # The last frames in a row with an unknown object.
        self._unknown_frames = UnknownFrames(config.remember)
        self._was_unknown = False
        self.reset()
        # A trial classifier: everything is compiled, and every setting was checked.
        trial = self._classifier()
        trial.partial_fit(np.eye(2, 64), ["a", "b"])
        trial.predict_proba(np.eye(1, 64))
        trial.refresh(1)

    def reset(self) -> None:
        """Forget all objects."""
        self._model = self._classifier()
        self.restart_smoothing()
        self._labels: tuple[str, ...] = ()
        self._unknown_frames.clear()
        self._background = Background()

    def configure(self, config: RecognitionConfig) -> None:
        """Take other values of the parameters that may change (those marked `live`)."""
        self._config = config
        self._smoothing.resize(config.smoothing.frames)
        self._unknown_frames.resize(config.remember)
        self._model.recoding, self._model.tolerance = _recoding(config), config.classifier.tolerance
        if self.n_inputs is not None:
            self._model.recursion_.note_change()

    @property
    def model(self) -> IncrementalRLSC:
        """The classifier; not fitted while `n_inputs` is None."""
        return self._model

    @property
    def n_inputs(self) -> int | None:
        """The length of feature vectors; None until something was taught or loaded."""
        # Where there was no memory for the first example, it has a length, and is not fitted.
        return self._model.n_features_in_ if hasattr(self._model, "recursion_") else None

    @property
    def n_examples(self) -> int:
        """Examples taught of the objects that there are, those held out included."""
        return 0 if self.n_inputs is None else round(self._model.recursion_.classes.shown.sum())

    @property
    def labels(self) -> tuple[str, ...]:
        """The objects' names, sorted; the same tuple until they change."""
        return self._labels

    @property
    def classes(self) -> Container[str]:
        """The objects' names as a container, which finds one in O(1)."""
        return () if self.n_inputs is None else self._model.recursion_.classes

    def recognize(self, x: Array) -> Recognition:
        """The class of x (n_inputs,), together with the frames before it.

        A frame of an unknown object is kept for :meth:`edit` to name it.
        """
        config = self._config
        if not self._labels:
            self._keep(x, unknown=True)
            self._background.add(x)
            return Recognition(config.unknown, 0.0, (), np.zeros(0))
        least, limit = self._model.least_familiarity(config.false_accepts), self._background_limit()
        similar = 0.0
        if limit is not None:
            recursion = self._model.recursion_
            similar = float(_similarity(recursion.front.transform(x[None]), recursion.classes)[0])
        probabilities, (novelty, familiarity, similar) = self._smoothing.add(
            self._labels, *self._model.assess(x), similar
        )
        best = int(probabilities.argmax())
        confidence = float(probabilities[best])
        known = confidence >= config.threshold
        known = known and (config.max_novelty == 0.0 or novelty <= config.max_novelty)
        known = known and (least is None or familiarity > least)
        known = known and (limit is None or similar > limit)
        self._keep(x, unknown=not known)
        label = self._labels[best] if known else config.unknown
        chance = float(self._model.known_at(np.array(familiarity)))
        return Recognition(label, confidence, self._labels, probabilities, novelty, chance)

    def _background_limit(self) -> float | None:
        """The least similarity to an object taught, while no second object sets a limit."""
        if self._config.false_accepts == 0.0 or self._model.recursion_.acceptance() is not None:
            return None
        return self._background.limit(self._model.recursion_)

    def unknown_told(self) -> tuple[bool, str]:
        """True where a frame can be unknown, and a sentence on what is missing, or empty.

        Nothing is missing where `max_novelty` or `false_accepts` rests on enough held-out examples,
        where both are switched off, and while nothing is taught.
        """
        config, model = self._config, self._model
        novelty, acceptance = config.max_novelty > 0.0, config.false_accepts > 0.0
        if not self._labels or not (novelty or acceptance):
            return True, ""
        looked_at, compared = model.recursion_.held_out.compared(model.recursion_.chosen_ridge)
        if (
            novelty
            and looked_at >= MIN_FOR_NOVELTY
            or acceptance
            and compared >= MIN_FOR_ACCEPTANCE
        ):
            return True, ""
        few = "too few examples held out to tell unknown objects apart: "
        if config.classifier.hold_out == 0:
            few, more = "no examples are held out (hold_out is 0) to tell unknown objects apart", ""
        elif novelty:
            frames = config.classifier.hold_out * MIN_FOR_NOVELTY
            few += f"{looked_at} of {MIN_FOR_NOVELTY}"
            more = f"show two more objects, or one for {frames} frames"
        else:
            few += f"{compared} of {MIN_FOR_ACCEPTANCE}, of two objects"
            more = "show two more objects"
        if self._background_limit() is not None:
            few = "unknown is what was seen before teaching; to tell other objects apart"
            return True, f"{few} {more}" if more else ""
        return False, f"{few}; {more}" if more else few

    def _keep(self, x: Array, *, unknown: bool) -> None:
        if unknown and not self._was_unknown:  # a known object was shown in between
            self._unknown_frames.clear()
        if unknown:
            self._unknown_frames.add(x)
        self._was_unknown = unknown

    def learn(self, x: Array, label: str) -> None:
        """Learn that x (n_inputs,) shows `label`. Raises RefusedError above `max_classes`."""
        if new := label not in self.classes:
            check_room(len(self._labels), self._config.limits)
        if self._labels in ((), (label,)):
            self._background.note_taught(x)
        self._model.partial_fit(x[None], [label])
        self._unknown_frames.clear()  # what is shown now has its name
        if new:
            self._note_labels()

    def refresh(self) -> bool:
        """Update the score of one held-out example; False once none is out of date."""
        return bool(self._labels) and self._model.refresh(1) > 0

    def restart_smoothing(self) -> None:
        """Take the next frame by itself: something else is shown."""
        self._smoothing.restart()
        self._was_unknown = False

    def edit(self, edit: Edit) -> str:
        """Rename, merge, forget a class, or name the unknown; returns a sentence on what was done.

        To name is to learn the frames of the last unknown object that were kept, under that label:
        see :class:`UnknownFrames`. Whatever comes into view after it, an empty desk too, is the
        last one.

        Raises RefusedError, and changes nothing, where there is no such class or frame or the new
        name can't be one.
        """
        if edit.action == "name":
            return self._name(edit.label)
        if self.n_inputs is None:
            raise RefusedError("nothing was taught yet", reason="no such object")
        try:
            if edit.action == "rename":
                new = checked_label(edit.other, self._config.limits, self._config.unknown)
                self._model.rename_class(edit.label, new)
                done = f"'{edit.label}' is called '{new}' now"
            elif edit.action == "merge":
                self._model.merge_classes(edit.label, edit.other)
                done = f"'{edit.label}' is part of '{edit.other}' now"
            else:
                self._model.forget_class(edit.label)
                self._background = Background()  # which may show it
                done = f"'{edit.label}' is forgotten"
        except LearningError as error:
            raise RefusedError(str(error), reason="edit of classes") from None
        self.restart_smoothing()
        self._note_labels()
        return done

    def _name(self, text: str) -> str:
        label = checked_label(text, self._config.limits, self._config.unknown)
        if not (frames := self._unknown_frames.frames):
            told, missing = self.unknown_told()
            why = "" if told or not self._config.remember else f": {missing}"
            raise RefusedError(
                f"no frame of an unknown object is kept (remember){why}", reason="no unknown object"
            )
        for x in frames:
            self.learn(x, label)
        self.restart_smoothing()
        plural = "" if len(frames) == 1 else "s"
        return f"the unknown object is '{label}' now, in {len(frames)} frame{plural}"

    def save(self, path: str | Path) -> None:
        """Save what was taught. Raises StorageError, also where nothing was."""
        save_state(path, self.identity(), self.state())

    def identity(self) -> dict[str, object]:
        """Settings in which a saved model must agree to be loaded here."""
        classifier = self._config.classifier
        return {
            "kind": "object recognition",
            "ridge": sorted(set(classifier.ridge)),
            "features": "none",  # a linear classifier
            "head": classifier.head,
            **self._source,
        }

    def state(self) -> State:
        """A copy of all that was taught. Raises StorageError where nothing was."""
        if self.n_inputs is None:
            raise NothingToSaveError("nothing was taught yet, so there is nothing to save")
        return self._model.state() | self._background.state(self.n_inputs)

    def load(self, path: str | Path) -> None:
        """Resume from a file. Raises StorageError, and keeps what was taught before."""
        state = load_state(path, self.identity())
        model = self._classifier()
        try:
            model.restore(state)
            frames = (state[name] for name in ("background", "background_object"))
            background = Background(*(rows.reshape(-1, model.n_features_in_) for rows in frames))
        except LearningError as error:
            raise StorageError(f"{path} belongs to another configuration: {error}") from None
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise StorageError(f"{path} is not a saved model of objects ({error!r})") from None
        self._model = model
        self._background = background
        self.restart_smoothing()
        self._unknown_frames.clear()
        self._note_labels()

    def _note_labels(self) -> None:
        self._labels = tuple(self._model.classes_.tolist())

    def _classifier(self) -> IncrementalRLSC:
        config = self._config.classifier
        return IncrementalRLSC(
            config.ridge,
            _recoding(self._config),
            tolerance=config.tolerance,
            hold_out=config.hold_out,
            validation_size=config.validation_size,
            refresh_later=True,
            head=config.head,
        )


def _recoding(config: RecognitionConfig) -> float | str:
    return "auto" if config.classifier.choose_recoding else config.classifier.recoding


def feature_vector(
    data: npt.ArrayLike, n_inputs: int | None, max_inputs: int, *, normalize: bool
) -> Array:
    """The numbers of `data`, (d,), in double precision; with `normalize` scaled to length 1.

    n_inputs: how many there must be, None while that is open. max_inputs: how many there may be.

    Raises RefusedError for another number of them, values that aren't finite, and a vector of
    zeros, which belongs to nothing.
    """
    vector: npt.NDArray[Any] = np.asarray(data).ravel()
    if n_inputs is not None and len(vector) != n_inputs:
        raise RefusedError(
            f"a feature vector of {len(vector)} numbers, where the objects taught so far have "
            f"{n_inputs}; ~/reset forgets them",
            reason="feature vector's length",
        )
    if not 0 < len(vector) <= max_inputs:
        raise RefusedError(
            f"a feature vector of {len(vector)} numbers; 1 to {max_inputs} are allowed "
            "(max_inputs)",
            reason="feature vector's length",
        )
    checked: Array = vector.astype(np.float64)
    if not np.isfinite(checked).all():
        raise RefusedError("a feature vector has values that are not finite", "features not finite")
    length = float(np.linalg.norm(checked))
    if length == 0.0:
        raise RefusedError("a feature vector of zeros", reason="features all zero")
    return checked / length if normalize else checked
