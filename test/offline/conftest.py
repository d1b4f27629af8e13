"""What tests of reports share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def without_pictures() -> Iterator[None]:
    """Pages whose figures are filled and not drawn, which takes five sixths of an evaluation."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with pytest.MonkeyPatch.context() as patch:
        drawn = '<svg viewBox="0 0 1 1"></svg>'
        patch.setattr(Figure, "savefig", lambda figure, file, **_: file.write(drawn))
        patch.setattr(ConstrainedLayoutEngine, "execute", lambda *_: None)
        yield
