"""What scikit-learn's versions name differently: 1.4 is Ubuntu 24.04's, 1.6 moved validation."""

from __future__ import annotations

from typing import Any

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # before 1.6 it was a method of every estimator

    def validate_data(estimator: Any, *args: Any, **settings: Any) -> Any:
        """Check and convert the data as scikit-learn does, and remember the inputs' number."""
        return estimator._validate_data(*args, **settings)


__all__ = ["validate_data"]
