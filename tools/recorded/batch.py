"""The learning library on small parts of the shared tables."""

from __future__ import annotations
