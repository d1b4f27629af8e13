"""What a demo shows, and what it says of it: a script of few words.

Each line is one of

    teach NAME FRAMES    show the object and say its name
    ask FRAMES           show all objects taught so far, in turn
    ask NAME FRAMES      show this object
    pause SECONDS        show nothing

and what follows a # is passed over.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from semiparam_dynamics.errors import ConfigurationError

MOST_FRAMES = 1_000_000
MOST_SECONDS = 3600.0


@dataclass(frozen=True)
class Step:
    """One line: `names` shown for `frames` frames in all, or nothing for `pause` seconds."""

    names: tuple[str, ...] = ()
    frames: int = 0
    teach: bool = False
    pause: float = 0.0


def parse_script(text: str, names: Collection[str]) -> tuple[Step, ...]:
    """The steps of a script about the objects `names`.

    Raises ConfigurationError, naming the line, where it can't be understood, names an object that
    is not there or asks before anything was taught.
    """
    steps: list[Step] = []
    taught: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
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
