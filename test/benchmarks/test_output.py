"""The header of a result, and the file that it is written to."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from output import make_parser, parse


@pytest.mark.parametrize("out", ["result.md", "folder"])
def test_what_is_printed_is_written_below_a_header(
    out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = Path(sys.modules["output"].__file__ or "").with_name("some.py")
    words = ["/data/robots", "--out", str(tmp_path / out)]
    monkeypatch.setattr(sys, "argv", [str(script), *words])
    parser = make_parser("A benchmark.\n\nIts second paragraph.")
    parser.add_argument("data")
    parse(parser)
    print("| a table |")
    text = (tmp_path / out if out.endswith(".md") else tmp_path / out / "some.md").read_text()
    assert text == capsys.readouterr().out and text.endswith("\n\n| a table |\n")
    command, _, about = text.splitlines()[:3]
    assert command == f"    python benchmarks/some.py robots --out {out}"
    assert ", commit " in about and " cores, Python 3." in about
    parse(parser, ["DATA"])  # goes to the terminal alone
    assert "DATA" not in text and "commit" in capsys.readouterr().out
