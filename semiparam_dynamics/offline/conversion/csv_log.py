"""Logs as tables of text: a line of names, then numbers, as spreadsheets and scripts write them."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from semiparam_dynamics.base.arrays import SECOND, Array
from semiparam_dynamics.base.errors import SampleError

SEPARATORS = ",;\t"  # or else spaces, which names may have in them
COLUMN_KINDS = {
    "q": ("q", "pos", "position", "angle"),
    "dq": ("dq", "qd", "qdot", "vel", "velocity"),
    "tau": ("tau", "effort", "torque", "eff", "trq"),
}
_KIND_OF = {word: kind for kind, words in COLUMN_KINDS.items() for word in words}
TIMES = ("t", "time", "stamp", "timestamp", "sec", "secs", "seconds")
COMMENT = ("#", "%")  # lines that begin so above the names, and what may stand before the names
TIME_UNITS = {"": 1.0, "s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
WRENCH_COLUMNS = ("fx", "fy", "fz", "tx", "ty", "tz")
MOMENTS = {"mx": "tx", "my": "ty", "mz": "tz"}
DEGREE = float(np.deg2rad(1.0))
# What one of a unit is of the unit of the bag's messages, in which a joint may slide as well.
ANGLE_UNITS = {"rad": 1.0, "mrad": 1e-3, "rev": 2.0 * np.pi}
ANGLE_UNITS |= dict.fromkeys(("deg", "degree", "degrees", "°"), DEGREE)
LENGTH_UNITS = {"m": 1.0, "cm": 1e-2, "mm": 1e-3}
RATES = {f"{unit}/s": factor for unit, factor in (ANGLE_UNITS | LENGTH_UNITS).items()}
RATES |= dict.fromkeys(("rpm", "rev/min", "1/min"), 2.0 * np.pi / 60.0)
FORCES = {"N": 1.0, "mN": 1e-3, "kN": 1e3}
TORQUES = {"Nm": 1.0, "Ncm": 1e-2, "Nmm": 1e-3, "mNm": 1e-3, "kNm": 1e3}
UNIT_FACTORS = {
    "q": ANGLE_UNITS | LENGTH_UNITS,
    "dq": RATES | ANGLE_UNITS,  # the unit of the position, as some write it, stands for that by s
    "tau": TORQUES | FORCES,
    "force": FORCES,
    "moment": TORQUES,
}
# Units that may follow without brackets (q1_deg): no joint's name is likely to end so.
UNBRACKETED = ("deg", "degrees", "rad", "mrad", "rpm", "Nm", "mNm", "Nmm")
_BRACKETS = re.compile(r"\s*[\[(]([^\[\]()]*)[\])]$")
_UNBRACKETED = re.compile(rf"[\s._]+({'|'.join(UNBRACKETED)})$", re.IGNORECASE)
_BETWEEN = re.compile(r"[\s.·⋅∙•*×_-]+")  # what may stand between the letters of N m
FORMAT_HINT = (
    "a log's first line names its columns: t (s), q_JOINT (rad), optionally dq_JOINT (rad/s), and "
    "tau_JOINT (N m) or fx, fy, fz, tx, ty, tz"
)


def read_csv(
    path: Path, text: str, *, degrees: bool = False
) -> tuple[dict[str, Array], tuple[str, ...], list[str]]:
    """Arrays of a log, as `read_log` takes them, the joints' names, and the columns not used.

    Columns are recognised by name, whatever their order and capitals: the time by `TIMES` with or
    without a unit (``time_ms``), a joint's by a word of `COLUMN_KINDS` before or after the joint
    (``q_elbow``, ``q1``, ``position[elbow]``, ``elbow.velocity``, and ``actual_q_0`` as a UR's RTDE
    has it), a wrench's by `WRENCH_COLUMNS`, with something before it or not. A unit of
    `UNIT_FACTORS` may follow in brackets (``q1 [deg]``), one of `UNBRACKETED` without them, too
    (``q1_deg``): values become rad, rad/s, N and N m. Positions and velocities without a unit are
    in degrees where `degrees` says so; ``degrees`` (2, joints) is then 1 for these.
    Joints that are only numbers, from 0 or 1 on without a gap, come in the order of the numbers and
    have no names, and of paths, as PlotJuggler writes them (``/joint_states/elbow/position``,
    with ``__time``), the last part is.

    Raises SampleError where the text is no such table, or a used column's unit is not known.
    """
    header, rows, lines = _table(path, text)
    parts: dict[str, dict[str, int]] = {kind: {} for kind in (*COLUMN_KINDS, "wrench")}
    unused, time_at, time_scale = [], -1, 1.0
    split = [_without_unit(name) for name in header]
    of_joints = [joint_column(name) for name, _ in split]
    placed = {found[1] for found in of_joints if found and found[0] == "q"}
    for at, (name, _) in enumerate(split):
        found = of_joints[at]
        axis = "" if found and found[1] in placed else _wrench_axis(name)  # a joint may be tx
        if (scale := _time_scale(header[at])) is not None and time_at < 0:
            time_at, time_scale = at, scale
        elif axis and axis not in parts["wrench"]:
            parts["wrench"][axis] = at
        elif found and found[1] not in parts[found[0]]:
            parts[found[0]][found[1]] = at
        else:
            unused.append(header[at])
    if time_at < 0:
        for at, (name, unit) in enumerate(split):
            if unit is not None and name.lower() in TIMES:
                raise _unknown_unit(
                    path, unit, header[at], [known for known in TIME_UNITS if known]
                )
        raise SampleError(
            f"{path} has no column of times; {FORMAT_HINT}. It has: {', '.join(header)}"
        )
    if not parts["q"]:
        raise SampleError(
            f"{path} has no joint positions; {FORMAT_HINT}. It has: {', '.join(header)}"
        )
    joints, names = _joints(path, tuple(parts["q"]))
    used = [time_at, *(at for columns in parts.values() for at in columns.values())]
    _check_finite(path, rows, sorted(used), header, lines)
    time = rows[:, time_at] * time_scale
    if (row := first_back(time)) is not None:
        was, then = rows[row - 1 : row + 1, time_at].tolist()
        raise SampleError(
            f"{path}: the time, column {header[time_at]}, doesn't increase at line {lines[row]}: "
            f"{was:.12g}, then {then:.12g}"
        )
    for kind, columns in parts.items():
        for joint, at in columns.items():
            of = kind if kind != "wrench" else "force" if joint.startswith("f") else "moment"
            unit = split[at][1]
            if unit is not None and (kind == "wrench" or joint in joints):
                if not (spelling := _known(unit, UNIT_FACTORS[of])):
                    raise _unknown_unit(path, unit, header[at], UNIT_FACTORS[of])
                rows[:, at] *= UNIT_FACTORS[of][spelling]
            elif unit is None and degrees and kind in ("q", "dq"):
                rows[:, at] *= DEGREE
    arrays = {"t": time, "q": rows[:, [parts["q"][joint] for joint in joints]]}
    if degrees:
        places = [[parts[kind].get(joint, time_at) for joint in joints] for kind in ("q", "dq")]
        arrays["degrees"] = np.array([[float(split[k][1] is None) for k in of] for of in places])
    for kind in ("dq", "tau"):
        if columns := parts[kind]:
            arrays[kind] = rows[:, _in_order(path, kind, columns, joints)]
            unused += [header[at] for joint, at in columns.items() if joint not in joints]
    if columns := parts["wrench"]:
        arrays["wrench"] = rows[:, _in_order(path, "wrench", columns, WRENCH_COLUMNS)]
    return arrays, names, unused


def first_back(time: Array) -> int | None:
    """The first row of times (n,), s, that is not later than the one before in whole ns."""
    back = np.flatnonzero(np.diff(np.rint((time - time[0]) * SECOND)) <= 0)
    return int(back[0]) + 1 if back.size else None


def _check_finite(
    path: Path, rows: Array, used: list[int], header: list[str], lines: list[int]
) -> None:
    bad = np.argwhere(~np.isfinite(rows[:, used]))
    if len(bad):
        row, at = bad[0]
        raise SampleError(
            f"{path}: {len(bad)} value{'s are' if len(bad) > 1 else ' is'} not finite, the first "
            f"in line {lines[row]}, column {header[used[at]]}"
        )


def _joints(path: Path, found: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The joints as columns call them, in order, and their names; none where they are numbers.

    Names come from elsewhere then, by position: a column left out would shift the others' readings.
    """
    last = tuple(joint.rpartition("/")[2] for joint in found)
    names = last if all(last) and len(set(last)) == len(last) else found
    if not all(name.isdecimal() for name in names):
        return found, names
    numbered = sorted(zip(map(int, names), found, strict=True))
    numbers = [number for number, _ in numbered]
    if numbers[0] > 1 or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        raise SampleError(
            f"{path} has positions of the joints {', '.join(map(str, numbers))}: numbers identify "
            "joints only where they go from 0 or 1 on without a gap; add the columns that are "
            "missing, or write the joints' names in place of the numbers, such as q_elbow"
        )
    return tuple(joint for _, joint in numbered), ()


def _table(path: Path, text: str) -> tuple[list[str], Array, list[int]]:
    """The names of the columns, the numbers below them (n, columns), and these rows' lines (n,)."""
    filled = [(k, line) for k, line in enumerate(text.splitlines(), 1) if line.strip()]
    filled = _from_names(filled)
    if len(filled) < 2:
        raise SampleError(f"{path} has no rows; {FORMAT_HINT}")
    first = _uncommented(filled[0][1])
    reader = csv.reader(
        [first, *(line for _, line in filled[1:])],
        delimiter=_separator(first),
        skipinitialspace=True,
    )
    try:
        # A row may go over several lines, in quotes: its last one counts.
        read = [(filled[reader.line_num - 1][0], cells) for cells in reader]
    except csv.Error as error:
        raise SampleError(
            f"{path} can't be read as a table: {error} (is a quotation mark left open?)"
        ) from None
    header = _filled([name.strip() for name in read[0][1]])
    if header and _is_number(header[0]):
        raise SampleError(f"{path} begins with numbers: {FORMAT_HINT}")
    # Tables of pandas have a first column without a name: the rows' numbers.
    header = [name or f"number {at + 1} (no name)" for at, name in enumerate(header)]
    rows = np.empty((len(read) - 1, len(header)))
    for k, (line, cells) in enumerate(read[1:]):
        cells = _filled(cells, least=len(header))
        if len(cells) != len(header):
            raise SampleError(
                f"{path}: line {line} has {len(cells)} values for {len(header)} columns, which "
                f"line {read[0][0]} names: a title above them begins with #"
            )
        for at, cell in enumerate(cells):
            if not cell.strip():
                raise SampleError(
                    f"{path}: line {line} has no value in column {header[at]}: fill it in, or take "
                    "the line out of the file (the steps of time may be uneven)"
                )
            if not _is_number(cell):
                raise SampleError(
                    f"{path}: '{cell.strip()}' in line {line}, column {header[at]}, is no number "
                    "(decimals are written with a point)"
                )
            rows[k, at] = float(cell)
    return header, rows, [line for line, _ in read[1:]]


def _from_names(filled: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Lines (their numbers, and texts) from that of the names on.

    Comments may stand above it, or it may be one itself, as numpy.savetxt writes it.
    """
    comments = 0
    while comments < len(filled) and filled[comments][1].lstrip().startswith(COMMENT):
        comments += 1
    if comments == len(filled):
        return filled[-1:]
    cells = _cells(filled[comments][1])
    if cells and _is_number(cells[0]):
        above = [(line, _cells(line[1])) for line in filled[:comments]]
        named = [line for line, words in above if _names_columns(words)]
        named = named or [line for line, words in above if len(words) == len(cells)]
        return [*named[-1:], *filled[comments:]]
    return filled[comments:]


def _names_columns(cells: list[str]) -> bool:
    """True where cells name a time and a joint's position at least."""
    joints = (joint_column(_without_unit(cell)[0]) for cell in cells if _time_scale(cell) is None)
    return any(_time_scale(cell) is not None for cell in cells) and any(
        found is not None and found[0] == "q" for found in joints
    )


def _cells(line: str) -> list[str]:
    """The cells of a line, which may be a comment; none where quotes are left open."""
    line = _uncommented(line)
    try:
        (cells,) = csv.reader([line], delimiter=_separator(line), skipinitialspace=True)
    except csv.Error:
        return []
    return [cell.strip() for cell in cells]


def _uncommented(line: str) -> str:
    return line.strip(" ").lstrip("".join(COMMENT) + " ")


def _separator(line: str) -> str:
    separator = max(SEPARATORS, key=line.count)
    return separator if separator in line else " "


def _filled(cells: list[str], least: int = 0) -> list[str]:
    """Cells without the empty ones after the last, which spreadsheets leave, beyond `least`."""
    while len(cells) > least and not cells[-1].strip():
        cells = cells[:-1]
    return cells


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _without_unit(name: str) -> tuple[str, str | None]:
    """A column's name without the unit after it, and that unit; None where it has none.

    What stands in brackets is no unit where it is a number, or where it names the joint itself.
    """
    if (last := _BRACKETS.search(name)) and not last[1].strip().isdecimal():
        before, unit = name[: last.start()], last[1].strip()
        known = any(_known(unit, factors) for factors in UNIT_FACTORS.values())
        return (before, unit) if known or before.lower() not in _KIND_OF else (name, None)
    if (last := _UNBRACKETED.search(name)) and joint_column(name[: last.start()]):
        return name[: last.start()], last[1]
    return name, None


def _known(unit: str, known: Mapping[str, float]) -> str:
    """The spelling in `known` of a unit; empty where it is none of them.

    Capitals do not count, except that M is mega, not milli.
    """
    unit = _BETWEEN.sub("", unit)
    if unit in known:
        return unit
    lower = {spelling.lower(): spelling for spelling in known}
    return "" if unit.startswith("M") else lower.get(unit.lower(), "")


def _unknown_unit(path: Path, unit: str, column: str, known: Iterable[str]) -> SampleError:
    return SampleError(
        f"{path}: the unit '{unit}' of column {column} is not known: {', '.join(known)} are; "
        "convert its values, or take the unit out of its name where they shall stay as they are"
    )


def _time_scale(name: str) -> float | None:
    """Seconds in the column's unit; None where it is no time."""
    word, _, unit = re.sub(r"[\s(\[]+", "_", name.lower()).rstrip(")]_").lstrip("_").partition("_")
    return TIME_UNITS.get(unit) if word in TIMES else None


def _wrench_axis(name: str) -> str:
    word = re.split(r"[._/\s\[(]+", name.lower().rstrip(")]"))
    axis = MOMENTS.get(word[-1], word[-1])
    if axis in WRENCH_COLUMNS:
        return axis
    if len(word) > 1 and word[-1] in "xyz" and word[-2] in ("force", "torque", "moment"):
        return ("f" if word[-2] == "force" else "t") + word[-1]
    return ""


def joint_column(name: str) -> tuple[str, str] | None:
    """A column's kind, of `COLUMN_KINDS`, and its joint; None where the name is of neither."""
    if name.lower() in _KIND_OF:
        return None  # qd is no q of a joint d
    name = re.sub(r"^actual_(?=[a-z]+_?\d+$)", "", name, flags=re.IGNORECASE)
    before = re.fullmatch(r"([A-Za-z]+)[\s._/\[(]*(.+?)[\])]?", name)
    if before and (kind := _KIND_OF.get(before[1].lower())):
        return kind, before[2]
    digits = re.fullmatch(r"([A-Za-z]+?)(\d+)", name)
    if digits and (kind := _KIND_OF.get(digits[1].lower())):
        return kind, digits[2]
    after = re.fullmatch(r"(.+?)[\s._/]+([A-Za-z]+)", name)
    if after and (kind := _KIND_OF.get(after[2].lower())):
        return kind, after[1]
    return None


def _in_order(path: Path, kind: str, columns: dict[str, int], wanted: tuple[str, ...]) -> list[int]:
    if missing := [name for name in wanted if name not in columns]:
        others = [name for name in columns if name not in wanted]
        raise SampleError(
            f"{path} has '{kind}' of some, not of {', '.join(missing)}"
            + (f", but of {', '.join(others)} (a unit stands in brackets)" if others else "")
        )
    return [columns[name] for name in wanted]
