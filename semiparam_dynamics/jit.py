"""Compilers of inner loops: plain arrays in, plain arrays changed in place, no allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

F = TypeVar("F")

if TYPE_CHECKING:

    def compiled(function: F) -> F:
        """The function, compiled by numba when it is first called."""
        return function

    def compiled_as_written(function: F) -> F:
        """The function, compiled with every operation rounded as it stands there."""
        return function

    def compiled_in_order(function: F) -> F:
        """The function, compiled with sums in their order, whatever the settings of its caller."""
        return function

else:
    import numba

    def _decorator(**options):
        def decorate(function):
            # nogil: a node may learn in one thread while another one serves messages.
            try:
                return numba.njit(cache=True, nogil=True, **options)(function)
            except RuntimeError:  # neither the package's folder nor the user's can be written to
                return numba.njit(nogil=True, **options)(function)

        return decorate

    # "reassoc" lets the dot products vectorise; NaN and infinity keep their meaning.
    compiled = _decorator(fastmath={"reassoc", "contract", "nsz"})
    # x / 0 is infinity here: a check that raises would keep loops from vector instructions.
    compiled_as_written = _decorator(error_model="numpy")
    # A function that says nothing of "reassoc" takes its caller's settings.
    compiled_in_order = _decorator(fastmath={"contract"}, error_model="numpy")
