"""What tests of the verbs share that do not look at a page's figures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from semiparam_dynamics.offline.evaluation import prediction_plots


@pytest.fixture(scope="module")
def no_figures() -> Iterator[None]:
    """Evaluations' pages have empty figures: of a short bag, drawing them is most of the work.

    `test_report` and `test_report_in_browser` look at those that are drawn.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prediction_plots, "draw", lambda *given: "<svg></svg>")
        yield
