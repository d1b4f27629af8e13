"""Writes the nodes' YAML files from the parameters' definition.

python -m semiparam_dynamics.nodes.write_config config
"""

from __future__ import annotations

import argparse
from pathlib import Path

from semiparam_dynamics.config_files import dump_yaml
from semiparam_dynamics.nodes.config import (
    ArmSimulatorNodeConfig,
    InverseDynamicsNodeConfig,
    ObjectRecognitionNodeConfig,
    ObjectStreamNodeConfig,
)
from semiparam_dynamics.nodes.demo_config import learner_config

FILES = {
    "inverse_dynamics.yaml": InverseDynamicsNodeConfig(),
    "demo.yaml": learner_config(),
    "arm_simulator.yaml": ArmSimulatorNodeConfig(),
    "object_recognition.yaml": ObjectRecognitionNodeConfig(),
    "object_stream.yaml": ObjectStreamNodeConfig(),
}


def contents(name: str) -> str:
    """The text of one of `FILES`; it applies to the node under any name."""
    return dump_yaml(FILES[name], "/**")


def main() -> None:
    """Write all files into the folder that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for name in FILES:
        (folder / name).write_text(contents(name), encoding="utf-8")


if __name__ == "__main__":
    main()
