"""The nodes' executables: where ROS 2 is missing, they say so in a sentence.

`python -m semiparam_dynamics.base.nodes.executables NAME` runs that of a name, as ROS 2 does.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable
from functools import partial

from semiparam_dynamics.base.errors import MissingExtraError
from semiparam_dynamics.base.extras import EXTRAS, missing_extra


def start(name: str) -> int:
    """Run the node of the module `name`; returns its exit code, 2 where something is missing.

    SIGINT or SIGTERM while it is being imported, for seconds at the first start, ends the process:
    there is nothing yet to end cleanly, and an exception would come in the midst of any library.
    """
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: os._exit(0)) for number in signals}
    try:
        module = importlib.import_module(f"semiparam_dynamics.nodes.{name}")
    except MissingExtraError as error:
        told = str(error)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing == "semiparam_dynamics":
            raise
        _, remedy = EXTRAS["ros"]
        needed = f"the node needs {remedy} (missing: {missing})"
        told = str(missing_extra("the node", error) or needed)
    else:
        return int(module.main())  # which puts its own handlers in their place
    for number, handler in before.items():
        signal.signal(number, handler)
    print(f"{name}: error: {told}", file=sys.stderr)
    return 2


def __getattr__(name: str) -> Callable[[], int]:
    """Return the entry point of the node `name`, which setup.py lists."""
    if name.startswith("_"):
        raise AttributeError(name)
    return partial(start, name)


if __name__ == "__main__":
    sys.exit(start(sys.argv.pop(1)))
