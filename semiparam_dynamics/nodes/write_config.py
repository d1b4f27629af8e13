"""Writes the nodes' YAML files, and the documentation's tables, from the parameters' definition.

python -m semiparam_dynamics.nodes.write_config config
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from semiparam_dynamics.config_files import dump_yaml
from semiparam_dynamics.nodes.computed_torque_config import ComputedTorqueNodeConfig
from semiparam_dynamics.nodes.config import (
    ArmSimulatorNodeConfig,
    InverseDynamicsNodeConfig,
    ObjectRecognitionNodeConfig,
    ObjectStreamNodeConfig,
)
from semiparam_dynamics.nodes.demo_config import learner_config
from semiparam_dynamics.nodes.parameter_tables import parameter_tables

FILES = {
    "inverse_dynamics.yaml": InverseDynamicsNodeConfig(),
    "demo.yaml": learner_config(),
    "arm_simulator.yaml": ArmSimulatorNodeConfig(),
    "computed_torque.yaml": ComputedTorqueNodeConfig(),
    "object_recognition.yaml": ObjectRecognitionNodeConfig(),
    "object_stream.yaml": ObjectStreamNodeConfig(),
}
TABLES = Path("docs", "parameters.md")


def contents(name: str) -> str:
    """The text of one of `FILES`; it applies to the node under any name."""
    return dump_yaml(FILES[name], "/**")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write all files into the folder that the command line names, and the tables beside it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder", type=Path, help=f"for the YAML files; {TABLES} goes beside it, if docs is there"
    )
    folder = parser.parse_args(arguments).folder
    for name in FILES:
        (folder / name).write_text(contents(name), encoding="utf-8")
    tables = folder.absolute().parent / TABLES
    if tables.parent.is_dir():
        tables.write_text(parameter_tables(), encoding="utf-8")


if __name__ == "__main__":
    main()
