"""The verbs that use everything together: tuning, identification, control, recognition."""

from __future__ import annotations
