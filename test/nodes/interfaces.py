"""Interface packages made from their definitions: real classes with real type support.

ROS 2's own generators write the code, as rosidl's CMake macros have them do, and the compiler makes
one Python extension of it: type support of Fast DDS, which is that of the tests' middleware.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

SUPPORT = "rosidl_typesupport_fastrtps_c"
DEPENDENCIES = ("geometry_msgs", "service_msgs", "builtin_interfaces")
RUNTIME = "rosidl_runtime_c rosidl_typesupport_c rosidl_typesupport_fastrtps_c rcutils fastcdr"


def make_package(name: str, services: Mapping[str, str], folder: Path, sent: bool = True) -> None:
    """Make the package in `folder`, which is then to be put on Python's path.

    services: their definitions by name. sent: whether they go over the network, for which their
    type support is compiled, in 4 s. Skips the test where generators, their headers or a
    compiler are missing.
    """
    prefix, code = Path(sys.prefix), folder / name
    for tool in ("gcc", "g++"):
        if shutil.which(tool) is None:
            pytest.skip(f"interfaces are compiled with {tool}, which is not here")
    if not (prefix / "include" / "fastcdr" / "Cdr.h").exists():
        pytest.skip("interfaces are compiled with the headers of ROS 2's wheels")
    generate(name, services, folder, prefix / "share")
    (code / "__init__.py").touch()
    if not sent:
        return
    includes = [folder, prefix / "include", sysconfig.get_paths()["include"], np.get_include()]
    includes += [path for path in (prefix / "include").iterdir() if path.is_dir()]
    given = [f"-I{path}" for path in includes]
    running, objects = [], []
    for k, source in enumerate(sorted((*code.rglob("*.c"), *code.rglob("*.cpp")))):
        compiler = ["g++", "-std=c++17"] if source.suffix == ".cpp" else ["gcc"]
        objects.append(str(folder / f"{name}{k}.o"))
        command = [*compiler, "-O0", "-fPIC", *given, "-c", str(source), "-o", objects[-1]]
        running.append(subprocess.Popen(command))
    assert not any(process.wait() for process in running), f"{name} does not compile"
    parts = ("rosidl_generator_c", "rosidl_typesupport_c", SUPPORT, "rosidl_generator_py")
    libraries = RUNTIME.split() + [f"{one}__{part}" for one in DEPENDENCIES for part in parts]
    present = [one for one in libraries if (prefix / "lib" / f"lib{one}.so").exists()]
    place = ["-L" + str(prefix / "lib"), "-Wl,-rpath," + str(prefix / "lib")]
    target = code / f"{name}_s__rosidl_typesupport_c.so"
    command = ["g++", "-shared", "-o", str(target), *objects, *place]
    subprocess.run([*command, *(f"-l{one}" for one in present)], check=True)


def generate(name: str, services: Mapping[str, str], folder: Path, share: Path) -> None:
    """Write the package's sources."""
    adapter = pytest.importorskip("rosidl_adapter", reason="needs ROS 2's generators")
    generators = [
        pytest.importorskip(one, reason="needs ROS 2's generators")
        for one in ("rosidl_generator_type_description", "rosidl_generator_c", SUPPORT)
    ]
    c = pytest.importorskip("rosidl_typesupport_c")
    python = pytest.importorskip("rosidl_generator_py")
    from rosidl_cli.command.helpers import generate_visibility_control_file

    source, idl, code = folder / f"{name}_source", folder / f"{name}_idl", folder / name
    (source / "srv").mkdir(parents=True)
    for service, text in services.items():
        path = Path("srv") / f"{service}.srv"
        (source / path).write_text(text)
        adapter.convert_to_idl(source, name, path, idl)
    known = [path for path in share.iterdir() if (path / "msg").is_dir()]
    common = {
        "package_name": name,
        "output_dir": str(code),
        "idl_tuples": [f"{idl}:srv/{service}.idl" for service in services],
        "ros_interface_dependencies": [
            f"{path.name}:{one}" for path in known for one in path.glob("msg/*.idl")
        ],
        "include_paths": [f"{path.name}:{path}" for path in known],
        "target_dependencies": [],
        "type_description_tuples": [
            f"srv/{service}.idl:{code}/srv/{service}.json" for service in services
        ],
    }

    def arguments(generator: str) -> str:
        path = folder / f"{name}_{generator}.json"
        templates = {"template_dir": str(share / generator / "resource")}
        path.write_text(json.dumps(common | templates))
        return str(path)

    describe, structs, support = generators
    describe.generate_type_hash(arguments("rosidl_generator_type_description"))
    structs.generate_c(arguments("rosidl_generator_c"))
    support.generate_typesupport_fastrtps_c(arguments(SUPPORT))
    c.generate_c(arguments("rosidl_typesupport_c"), [SUPPORT])
    python.generate_py(arguments("rosidl_generator_py"), ["rosidl_typesupport_c"])
    for generator in ("rosidl_generator_c", SUPPORT):
        for template in (share / generator / "resource").glob("*visibility_control.h.in"):
            generate_visibility_control_file(
                package_name=name, template_path=template, output_path=code / "msg" / template.stem
            )
