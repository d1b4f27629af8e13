"""What was recognised of what was shown, from teaching to teaching."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


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
        """How many frames were answered rightly."""
        return self.answers.count(self.expected or self.name)

    @property
    def wrong(self) -> Counter[str]:
        """The other answers, and how often each was given."""
        expected = self.expected or self.name
        return Counter(answer for answer in self.answers if answer != expected)

    @property
    def known_from(self) -> int | None:
        """The first frame, from 1, from which on all were recognised; None if the last wasn't."""
        wrong = [k for k, answer in enumerate(self.answers, 1) if answer != self.name]
        first = wrong[-1] + 1 if wrong else 1
        return first if first <= len(self.answers) else None


@dataclass
class Round:
    """What was asked after `taught` had been taught (empty: before anything was)."""

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
        """How many frames of all objects were recognised, and of how many."""
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
    """Collects rounds. Answers that come while nothing is in view count for nothing.

    unknown : the right answer to an object that was never taught.
    """

    def __init__(self, unknown: str = "unknown") -> None:
        self._unknown = unknown
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
        """How many answers came to what was in view."""
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
                shown.expected = self._unknown
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
