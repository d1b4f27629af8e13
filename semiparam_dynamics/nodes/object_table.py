"""The progress of teaching and asking on a terminal or in a file, and what came of it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from semiparam_dynamics.recognition.tally import Round, Shown, Tally

WIDTH = 100  # characters of a line of the summary; with more objects it has only their mean
WIDEST = 12  # characters of a name in it
WORST = 2  # objects whose confusion is told
ANSWERS = 3  # of those they were taken for


class ObjectTable:
    """A line for each object shown: what it was recognised as, before it was learned if it was."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._waiting = ""
        self._begin = time.monotonic()

    def row(self, shown: Shown) -> None:
        """Add what came of an object that has gone out of view."""
        frames = len(shown.answers)
        if shown.teach:
            first = shown.known_from
            since = f"all from frame {first} on" if first else "not the last one"
            self._print("")
            what = f"taught, {frames} frames: {shown.right} recognised before learned, {since}"
        else:
            right = f"{shown.right} of {frames} {shown.expected or 'right'}"
            what = f"{'never taught' if shown.expected else 'asked'}, {right}"
            what += _taken_for(shown.wrong)
        elapsed = time.monotonic() - self._begin
        self.note(f"{elapsed:6.1f} s  {_short(shown.name):{WIDEST}}  {what}")

    def waiting(self, what: str) -> None:
        """Say what is awaited, unless it was said before."""
        if what != self._waiting:
            self._waiting = what
            self.note(what)

    def note(self, text: str) -> None:
        """Add a line of text."""
        self._print(f"  {text}".rstrip())

    def summary(self, tally: Tally, figures: dict[str, str]) -> None:
        """Say how many pictures were recognised after each teaching, and what was confused."""
        asked = [one for one in tally.rounds if one.asked]
        if asked:
            self._print("\nright answers in %, to pictures that were never taught:")
            self._rounds(asked)
            self._confusion(asked[-1])
        dropped = figures.get("frames dropped", "0")
        self._print(f"{tally.answers} frames recognised, {dropped} dropped")
        refused = [name for name in figures if name.startswith("last refused: ")]
        for name in refused:
            self._print(f"{name.removeprefix('last ')}: {figures[name]}")
        for act, what in (("frame", "a frame, from message to answer"), ("learn", "to learn it")):
            if f"{act} p50 [us]" in figures:
                p50, p99 = (float(figures[f"{act} {p} [us]"]) / 1000 for p in ("p50", "p99"))
                self._print(f"{what}: {p50:.1f} ms (median), {p99:.1f} ms (99 %)")

    def _rounds(self, asked: Sequence[Round]) -> None:
        names = list(dict.fromkeys(name for one in asked for name in _order(one)))
        widths = [max(5, len(_short(name))) for name in names]
        fits = WIDEST + sum(width + 2 for width in widths) + 9 <= WIDTH
        columns, widths = (names, widths) if fits else ([], [])
        head = [f"{_short(name):>{w}}" for name, w in zip(columns, widths, strict=True)]
        self._print("  ".join([f"  {'after':{WIDEST}}", *head, "  all"]))
        for one in asked:
            scores = one.scores()
            cells = [
                f"{_percent(scores.get(name, (0, 0))):>{width}}"
                for name, width in zip(columns, widths, strict=True)
            ]
            title = f"  {_short(one.taught or '(nothing)'):{WIDEST}}"
            self._print("  ".join([title, *cells, f"{_percent(one.score()):>5}"]))

    def _confusion(self, last: Round) -> None:
        """The objects that did worst in the last round, and what they were taken for."""
        scores = last.scores()
        wrong = last.wrong()
        worst = sorted(scores, key=lambda name: scores[name][0] / scores[name][1])[:WORST]
        for name in worst:
            right, frames = scores[name]
            if right < frames:
                taken = _taken_for(wrong[name])
                self._print(f"worst in the end: {name}, {right} of {frames} right{taken}")
        if all(right == frames for right, frames in scores.values()):
            self._print("in the end nothing was confused")

    def _print(self, text: str) -> None:
        self._out.write(text + "\n")
        self._out.flush()


def _order(one: Round) -> list[str]:
    """The round's objects in the order of their teaching as far as the round tells it."""
    others = [name for name in one.scores() if name != one.taught]
    return [*others, *([one.taught] if one.taught in one.scores() else [])]


def _taken_for(wrong: Counter[str]) -> str:
    if not wrong:
        return ""
    told = [f"{count} {_short(answer)}" for answer, count in wrong.most_common(ANSWERS)]
    return f", taken for: {', '.join(told)}"


def _percent(score: tuple[int, int]) -> str:
    right, frames = score
    return f"{100 * right / frames:.0f}" if frames else "-"


def _short(name: str) -> str:
    return name if len(name) <= WIDEST else name[: WIDEST - 3] + "..."
