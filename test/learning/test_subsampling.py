"""The a-priori number of centres and penalty."""

from __future__ import annotations

import pytest

from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.learning.centers import subsampling_size


def test_defaults_are_the_cube_root_and_the_square_root() -> None:
    for n in (1, 64, 10**6):
        penalty, n_centers = subsampling_size(n)
        assert penalty == pytest.approx(n ** (-1 / 3))
        assert n_centers == round(n**0.5)


def test_smoother_targets_need_fewer_centres_and_worse_spans_more() -> None:
    # s = 1, beta = 1: n^(-1/4), n^(1/6); s = 1/4, beta = 1/2: n^(-2/5), n^(2/3).
    assert subsampling_size(2**12, 1.0, 1.0) == (pytest.approx(2**-3), 4)
    assert subsampling_size(2**15, 0.25, 0.5) == (pytest.approx(2**-6), 2**10)
    assert subsampling_size(10**4, 0.1, 0.1)[1] == 10**4  # never more than there are rows
    assert subsampling_size(10**4, 50.0, 50.0)[1] == 2  # rounded up


@pytest.mark.parametrize("arguments", [(0,), (10, 0.0), (10, 0.5, -1.0), (10, float("nan"))])
def test_arguments_must_be_positive(arguments: tuple[float, ...]) -> None:
    with pytest.raises(ConfigurationError, match="positive"):
        subsampling_size(*arguments)  # type: ignore[arg-type]
