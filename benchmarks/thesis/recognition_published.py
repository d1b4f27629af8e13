"""The MNIST rows of the thesis' table 7.1, and when they are comparable."""

from __future__ import annotations

from typing import NamedTuple

from recognition_protocol import ProtocolResult

BALANCED = 1000  # examples of each balanced class
MNIST_COUNTS = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)


class Published(NamedTuple):
    """Accuracies in %, and what the thesis prints after +- (it doesn't say of what)."""

    total: float
    total_spread: float
    new_class: float
    new_class_spread: float


MNIST = {
    1: {
        "naive": Published(79.2, 0.3, 0.0, 0.0),
        "rebalanced": Published(79.7, 0.4, 7.4, 7.7),
        "recoding": Published(79.7, 0.6, 9.5, 4.9),
    },
    5: {
        "naive": Published(79.1, 0.3, 0.0, 0.0),
        "rebalanced": Published(82.5, 0.7, 39.6, 6.2),
        "recoding": Published(80.3, 0.6, 17.5, 6.6),
    },
    10: {
        "naive": Published(79.2, 0.3, 0.0, 0.0),
        "rebalanced": Published(83.6, 0.7, 49.5, 5.7),
        "recoding": Published(81.0, 0.6, 25.1, 5.3),
    },
    50: {
        "naive": Published(79.2, 0.3, 0.0, 0.0),
        "rebalanced": Published(85.5, 0.3, 73.5, 3.3),
        "recoding": Published(83.9, 0.5, 49.1, 3.5),
    },
    100: {
        "naive": Published(79.2, 0.4, 2.0, 0.9),
        "rebalanced": Published(85.9, 0.4, 75.5, 2.7),
        "recoding": Published(85.1, 0.5, 62.7, 2.9),
    },
    500: {
        "naive": Published(85.5, 0.3, 66.9, 1.1),
        "rebalanced": Published(86.2, 0.3, 78.5, 0.9),
        "recoding": Published(86.1, 0.3, 77.8, 1.1),
    },
}


def published(result: ProtocolResult) -> dict[int, dict[str, Published]]:
    """The thesis' figures, by number of new examples and method; none for anything but MNIST.

    MNIST is known by how many training rows each class has, which no sibling of it shares.
    """
    counts = tuple(result.file.train_counts().tolist())
    if counts != MNIST_COUNTS or result.protocol.sizes.balanced != BALANCED:
        return {}
    return {n: MNIST[n] for n in result.protocol.sizes.new if n in MNIST}
