"""Scripts of demonstrations of object recognition, and the count of its answers.

Each line is one of

    teach NAME FRAMES    show the object and say its name
    ask FRAMES           show all objects taught so far, in turn
    ask NAME FRAMES      show this object
    pause SECONDS        show nothing

and what follows a # is passed over.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from semiparam_dynamics.base.errors import ConfigurationError
from semiparam_dynamics.recognition.config import RecognitionConfig
from semiparam_dynamics.recognition.pictures import Objects, View

MOST_FRAMES = 1_000_000
MOST_SECONDS = 3600.0
UNKNOWN = RecognitionConfig().unknown  # the right answer to an object that was never taught


@dataclass(frozen=True)
class Step:
    """One line: `names` shown for `frames` frames in all, or nothing for `pause` seconds."""

    names: tuple[str, ...] = ()
    frames: int = 0
    teach: bool = False
    pause: float = 0.0


def parse_script(text: str, names: Collection[str]) -> tuple[Step, ...]:
    """The steps of a script about the objects `names`.

    These are composed (Unicode's NFC), as `load_objects` has them; the script's need not be.

    Raises ConfigurationError, naming the line, where it can't be understood, names an object that
    is not there or asks before anything was taught.
    """
    steps: list[Step] = []
    taught: list[str] = []
    for number, line in enumerate(unicodedata.normalize("NFC", text).splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            step = _step(words[0], " ".join(words[1:-1]), words[-1], names, taught)
        except ConfigurationError as error:
            raise ConfigurationError(f"line {number} of the script: {error}") from None
        if step.teach and step.names[0] not in taught:
            taught.append(step.names[0])
        steps.append(step)
    if not any(step.frames for step in steps):
        raise ConfigurationError("the script shows nothing: it needs a line such as 'teach mug 30'")
    return tuple(steps)


def read_script(path: str | Path, names: Collection[str]) -> tuple[Step, ...]:
    """The steps of a script in a file; ConfigurationError, naming it, as `parse_script`."""
    path = Path(path).expanduser()
    try:
        return parse_script(path.read_text(encoding="utf-8"), names)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"the script {path} can't be read: {' '.join(str(error).split())}"
        ) from None
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None


def default_script(names: Sequence[str], frames: int = 30, asked: int = 10) -> tuple[Step, ...]:
    """Teach one object after the other and, after each, ask all those so far.

    frames: of each object's teaching. asked: frames of each object after each teaching; at the
    end it is twice as many.
    """
    steps: list[Step] = []
    for known, name in enumerate(names, 1):
        times = 2 if known == len(names) else 1
        steps += [
            Step((name,), frames, teach=True),
            Step(tuple(names[:known]), times * asked * known),
        ]
    return tuple(steps)


def _step(verb: str, name: str, amount: str, names: Collection[str], taught: list[str]) -> Step:
    if verb not in ("teach", "ask", "pause") or (verb == "pause" and name):
        raise ConfigurationError(
            f"'{' '.join(filter(None, (verb, name, amount)))}' is not understood; it should be "
            "such as 'teach mug 30', 'ask 60', 'ask mug 10' or 'pause 2'"
        )
    if verb == "pause":
        return Step(pause=_number(amount, MOST_SECONDS, "seconds"))
    frames = _number(amount, MOST_FRAMES, "frames")
    if frames < 1 or frames != int(frames):
        raise ConfigurationError(f"the number of frames must be a whole one, not '{amount}'")
    if name and name not in names:
        raise ConfigurationError(f"there is no object '{name}'; there are: {_some(names)}")
    if verb == "teach" and not name:
        raise ConfigurationError("it must say which object is taught, such as 'teach mug 30'")
    if not name and not taught:
        raise ConfigurationError("nothing has been taught yet that could be asked")
    return Step((name,) if name else tuple(taught), int(frames), teach=verb == "teach")


def _number(text: str, most: float, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0.0 <= number <= most:
        raise ConfigurationError(
            f"it must end with a number of {what} up to {most:g}, not '{text}'"
        )
    return number


def _some(names: Collection[str]) -> str:
    few = list(names)[:10]
    return ", ".join(few) + (", ..." if len(names) > len(few) else "")


# -------------------------------------------------------------------------------------------------
# A script's steps as views, one object after another.


@dataclass(frozen=True)
class Showing:
    """An object in view for some frames, its name said if `teach`; or a pause of some seconds."""

    name: str = ""
    views: tuple[View, ...] = ()
    teach: bool = False
    pause: float = 0.0


class Show:
    """Makes showings of steps; each view is shown once before any of its class comes again.

    objects: what can be shown.
    hold: frames for which an object that is asked stays in view.
    seed: of the views' and the objects' order.
    """

    def __init__(self, objects: Objects, hold: int = 10, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self._taught = self._pools(objects.taught)
        self._asked = self._pools(objects.asked)
        self._hold = hold

    def showings(self, steps: Sequence[Step]) -> Iterator[Showing]:
        """The script once. Objects that are asked together come in rounds of a random order."""
        for step in steps:
            if not step.frames:
                yield Showing(pause=step.pause)
            elif step.teach:
                yield self._showing(step.names[0], step.frames, teach=True)
            else:
                yield from self._rounds(step)

    def _rounds(self, step: Step) -> Iterator[Showing]:
        each, more = divmod(step.frames, len(step.names))
        left = dict.fromkeys(step.names, each)
        for name in self._shuffled(step.names)[:more]:
            left[name] += 1
        while any(left.values()):
            for name in self._shuffled([name for name in left if left[name]]):
                frames = min(self._hold, left[name])
                left[name] -= frames
                yield self._showing(name, frames, teach=False)

    def _showing(self, name: str, frames: int, teach: bool) -> Showing:
        pool = (self._taught if teach else self._asked)[name]
        return Showing(name, tuple(next(pool) for _ in range(frames)), teach)

    def _pools(self, views: Mapping[str, Sequence[View]]) -> dict[str, Iterator[View]]:
        return {name: self._endlessly(some) for name, some in views.items()}

    def _endlessly(self, views: Sequence[View]) -> Iterator[View]:
        while True:
            yield from (views[place] for place in self._rng.permutation(len(views)))

    def _shuffled(self, names: Sequence[str]) -> list[str]:
        return [names[place] for place in self._rng.permutation(len(names))]


# -------------------------------------------------------------------------------------------------
# The count of the answers, from teaching to teaching.


@dataclass
class Shown:
    """An object in view, taught or asked, and what it was recognised as, frame by frame.

    expected : the right answer, where it isn't the name: of an object that was never taught.
    """

    name: str
    teach: bool
    answers: list[str] = field(default_factory=list)
    expected: str = ""

    @property
    def right(self) -> int:
        """Frames answered rightly."""
        return self.answers.count(self.expected or self.name)

    @property
    def wrong(self) -> Counter[str]:
        """The other answers, and how often each was given."""
        wrong = Counter(self.answers)
        del wrong[self.expected or self.name]
        return wrong

    @property
    def known_from(self) -> int | None:
        """The first frame, from 1, from which on all were recognised; None if the last wasn't."""
        wrong = [k for k, answer in enumerate(self.answers, 1) if answer != self.name]
        first = wrong[-1] + 1 if wrong else 1
        return first if first <= len(self.answers) else None


@dataclass
class Round:
    """The questions after `taught` had been taught (empty: before anything was)."""

    taught: str
    teaching: Shown | None = None
    asked: list[Shown] = field(default_factory=list)

    def scores(self) -> dict[str, tuple[int, int]]:
        """Object -> how many frames were recognised, and of how many."""
        scores: dict[str, tuple[int, int]] = {}
        for shown in self.asked:
            right, all_frames = scores.get(shown.name, (0, 0))
            scores[shown.name] = (right + shown.right, all_frames + len(shown.answers))
        return {name: score for name, score in sorted(scores.items()) if score[1]}

    def score(self) -> tuple[int, int]:
        """Frames of all objects that were recognized, and all of them."""
        scores = self.scores().values()
        return sum(right for right, _ in scores), sum(frames for _, frames in scores)

    def wrong(self) -> dict[str, Counter[str]]:
        """Object -> the wrong answers to it, and how often each was given."""
        wrong: dict[str, Counter[str]] = {}
        for shown in self.asked:
            wrong.setdefault(shown.name, Counter()).update(shown.wrong)
        return wrong

    def confusion(self) -> dict[str, Counter[str]]:
        """Object -> what its frames were recognised as, and how often."""
        confusion: dict[str, Counter[str]] = {}
        for shown in self.asked:
            confusion.setdefault(shown.name, Counter()).update(shown.answers)
        return confusion


class Tally:
    """Collects rounds. Answers that come while nothing is in view count for nothing."""

    def __init__(self) -> None:
        self.rounds: list[Round] = []
        self.now: Shown | None = None
        self.stray = 0  # answers that came while nothing was in view

    def show(self, name: str) -> Shown | None:
        """From now on `name` is in view (empty: nothing); returns what was, if it was answered."""
        before, self.now = self.now, Shown(name, False) if name else None
        return before if before and before.answers else None

    def answer(self, label: str, teach: bool) -> None:
        """A frame of what is in view was recognised as `label`; `teach`: its name is being said."""
        if self.now is None:
            self.stray += 1
            return
        if not self.now.answers:
            self._file(self.now, teach)
        self.now.answers.append(label)

    @property
    def answers(self) -> int:
        """Answers to objects in view."""
        return sum(len(shown.answers) for shown in self._all())

    def results(self) -> dict[str, object]:
        """All of it in values for JSON."""
        return {
            "rounds": [_about(one) for one in self.rounds],
            "answers": self.answers,
            "stray_answers": self.stray,
        }

    def _file(self, shown: Shown, teach: bool) -> None:
        shown.teach = teach
        if teach or not self.rounds:
            self.rounds.append(Round(shown.name if teach else ""))
        if teach:
            self.rounds[-1].teaching = shown
        else:
            if all(one.taught != shown.name for one in self.rounds):
                shown.expected = UNKNOWN
            self.rounds[-1].asked.append(shown)

    def _all(self) -> Iterable[Shown]:
        for one in self.rounds:
            yield from one.asked if one.teaching is None else (one.teaching, *one.asked)


def _about(one: Round) -> dict[str, object]:
    right, frames = one.score()
    about: dict[str, object] = {
        "taught": one.taught,
        "asked": frames,
        "right": right,
        "accuracy": right / frames if frames else None,
        "objects": {
            name: {"asked": of, "right": hits} for name, (hits, of) in one.scores().items()
        },
        "confusion": {name: dict(answers) for name, answers in one.confusion().items()},
    }
    if one.teaching is not None:
        about["teaching"] = {
            "frames": len(one.teaching.answers),
            "right": one.teaching.right,
            "known_from": one.teaching.known_from,
        }
    return about
