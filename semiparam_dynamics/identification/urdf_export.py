"""A URDF with other inertias and joint friction, and every other byte as it was."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from semiparam_dynamics.arrays import Array
from semiparam_dynamics.dynamics.urdf_tree import parse_urdf
from semiparam_dynamics.errors import RobotModelError
from semiparam_dynamics.identification.urdf_inertial import inertial_lines

_INNER = {"link": "inertial", "joint": "dynamics"}  # the elements that are exchanged


@dataclass
class _Element:
    """Where an element stands in the text, in bytes, and the part that is exchanged."""

    start: int
    inner_tag: str
    head_end: int = 0  # behind its start tag
    close: int = 0  # where its end tag begins; start where it has none
    inner: list[tuple[int, int]] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)  # of the inner element


def export_urdf(
    text: str,
    inertias: Mapping[str, Array | None],
    dynamics: Mapping[str, Mapping[str, float]] | None = None,
) -> str:
    """The URDF `text` with new inertias, and new attributes of the joints' <dynamics>.

    inertias: by link its ten parameters in its own frame, in the order of `multibody.INERTIAL`;
        None takes its inertial away. Links that aren't named keep theirs.
    dynamics: by joint the attributes, such as damping; those that aren't named keep their values.
    Raises RobotModelError where the text is no URDF or has no such link or joint.
    """
    lead = text[: len(text) - len(text.lstrip())]  # no XML declaration may follow it
    source = text[len(lead) :].encode()
    tree, found = parse_urdf(text), _find(source)
    for kind, names, known in (
        ("link", inertias, set(tree.inertials)),
        ("joint", dynamics or {}, set(tree.joints)),
    ):
        for name in names:
            if name not in known:
                raise RobotModelError(f"the URDF has no {kind} '{name}' to write to")
    edits: list[tuple[int, int, bytes]] = []
    for name, parameters in inertias.items():
        lines = [] if parameters is None else inertial_lines(parameters)
        edits += _exchange(source, found["link", name], lines)
    for name, values in (dynamics or {}).items():
        if values:
            element = found["joint", name]
            merged = element.attributes | {key: repr(float(v)) for key, v in values.items()}
            written = " ".join(f'{key}="{_escaped(value)}"' for key, value in merged.items())
            edits += _exchange(source, element, [f"<dynamics {written}/>"])
    for start, end, new in sorted(edits, reverse=True):
        source = source[:start] + new + source[end:]
    return lead + source.decode()


def _exchange(source: bytes, element: _Element, lines: list[str]) -> list[tuple[int, int, bytes]]:
    """The edits (from, to, new) that put `lines` in the place of the inner elements."""
    indent = _indent(source, element.inner[0][0] if element.inner else element.start)
    if not element.inner:
        indent += b"  "
    block = (b"\n" + indent).join(line.encode() for line in lines)
    if element.inner:
        first, *others = element.inner
        gone = [(_line_start(source, *span), span[1], b"") for span in others]
        return [(*first, block) if lines else (_line_start(source, *first), first[1], b""), *gone]
    if not lines:
        return []
    block = b"\n" + indent + block
    if element.close == element.start:  # <link name="a"/> becomes <link name="a">...</link>
        tag = b"link" if element.inner_tag == "inertial" else b"joint"
        slash = source.rindex(b"/", element.start, element.head_end)
        outer = _indent(source, element.start)
        return [(slash, element.head_end, b">" + block + b"\n" + outer + b"</" + tag + b">")]
    return [(element.head_end, element.head_end, block)]


def _find(source: bytes) -> dict[tuple[str, str], _Element]:
    """The links and joints right below <robot>, by kind and name."""
    found: dict[tuple[str, str], _Element] = {}
    stack: list[str] = []
    current: list[_Element] = []
    parser = expat.ParserCreate("utf-8")

    def start(tag: str, attributes: dict[str, str]) -> None:
        at = parser.CurrentByteIndex
        if len(stack) == 1 and tag in _INNER:
            element = _Element(at, _INNER[tag], _tag_end(source, at), at)
            found[tag, attributes.get("name", "")] = element
            current[:] = [element]
        elif len(stack) == 2 and current and tag == current[0].inner_tag:
            current[0].inner.append((at, _tag_end(source, at)))
            current[0].attributes = current[0].attributes or dict(attributes)
        stack.append(tag)

    def end(tag: str) -> None:
        at = parser.CurrentByteIndex
        stack.pop()
        closing = source.startswith(b"</", at)
        if len(stack) == 2 and current and tag == current[0].inner_tag and closing:
            current[0].inner[-1] = (current[0].inner[-1][0], _tag_end(source, at))
        elif len(stack) == 1 and current:
            if closing:
                current[0].close = at
            current.clear()

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.Parse(source, True)
    return found


def _tag_end(source: bytes, start: int) -> int:
    """Just behind the tag that begins at `start`; a > in quotes does not end it."""
    match = re.compile(rb"""<(?:[^"'>]|"[^"]*"|'[^']*')*>""").match(source, start)
    assert match is not None  # the parser has been through it
    return match.end()


def _indent(source: bytes, at: int) -> bytes:
    """The white space before `at` on its line, empty where something else is there."""
    line = source[source.rfind(b"\n", 0, at) + 1 : at]
    return line if not line.strip() else b""


def _line_start(source: bytes, start: int, end: int) -> int:
    """Where to cut from, so that no blank line is left of an element that goes."""
    line = source.rfind(b"\n", 0, start)
    alone = line >= 0 and not source[line:start].strip() and source[end : end + 1] in b"\r\n"
    return line if alone else start


def _escaped(value: str) -> str:
    return value.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
