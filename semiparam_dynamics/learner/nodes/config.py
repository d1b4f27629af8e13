"""The parameters of the nodes of recognition and of the live page."""

from __future__ import annotations

import dataclasses

from semiparam_dynamics.base.parameters import group, parameter
from semiparam_dynamics.recognition.config import BackboneConfig, RecognitionConfig


@dataclasses.dataclass(frozen=True)
class LivePageNodeConfig:
    """Parameters of the `live_page` node."""

    learner: str = parameter("inverse_dynamics", "name of the learner's node")
    urdf: str = parameter(
        "", "file of the robot's URDF; empty: it comes on the topic robot_description"
    )
    port: int = parameter(
        8700, "port of the page, on this machine alone; 0: any that is free", low=0, high=65535
    )
    rate: float = parameter(
        20.0,
        "updates a second at most, whatever the topics' rate",
        unit="Hz",
        low=1.0,
        high=20.0,
    )
    window: float = parameter(
        3.0, "time over which errors are averaged", unit="s", low=0.5, high=600.0
    )


@dataclasses.dataclass(frozen=True)
class ImageSourceNodeConfig:
    """Parameters of the `image_source` node."""

    source: str = parameter(
        "/dev/video0",
        "camera, such as /dev/video0 or 0; video file, animated picture or folder of pictures; "
        "digits: handwritten ones that need no file",
    )
    teach: int = parameter(
        0,
        "of a folder whose subfolders have each an object's pictures, and of digits: so many of "
        "each object come with its name on the topic label, and some later ones without; 0: no "
        "names",
        low=0,
        high=100000,
    )
    rate: float = parameter(
        10.0,
        "frames a second at most; of a video frames are left out so that it keeps its speed; 0: "
        "as many as the source has, and of a folder five",
        unit="Hz",
        low=0.0,
        high=240.0,
    )
    longest: int = parameter(
        400,
        "length of the longer side of published images at most: an image network sees some 224 "
        "pixels, and 400 fit into what DDS shares between processes (docs/recognition.md)",
        unit="pixels",
        low=32,
        high=8192,
    )
    loop: bool = parameter(True, "begin a file or folder again at its end")
    frame_id: str = parameter("camera", "frame that the images' headers name")
    wait_for_subscribers: int = parameter(
        0, "the first frame waits for so many subscribers; 0: for none", low=0, high=100
    )


@dataclasses.dataclass(frozen=True)
class ObjectsPageNodeConfig:
    """Parameters of the `objects_page` node."""

    recognition: str = parameter("object_recognition", "name of the recognition's node")
    port: int = parameter(
        8701, "port of the page, on this machine alone; 0: any that is free", low=0, high=65535
    )
    rate: float = parameter(
        15.0,
        "updates a second at most, whatever the topics' rate",
        unit="Hz",
        low=1.0,
        high=30.0,
    )
    reliable: bool = parameter(
        False, "have frames that were lost on the way sent again, as the recognition's parameter"
    )
    width: int = parameter(
        480, "of the picture on the page at most", unit="pixels", low=64, high=1920
    )
    window: int = parameter(
        20, "taught frames over which the learning curve is averaged", low=1, high=10000
    )


@dataclasses.dataclass(frozen=True)
class ObjectRecognitionNodeConfig:
    """Parameters of the `object_recognition` node."""

    autostart: bool = parameter(
        True, "configure and activate at the start, without a lifecycle manager"
    )
    input: str = parameter(
        "image",
        "what comes in: images, on the topic image, or feature vectors, on the topic features",
        choices=("image", "features"),
    )
    reliable: bool = parameter(
        False,
        "have frames that were lost on the way sent again, where their publisher offers it too; "
        "large images need this, or a setting of the middleware (docs/recognition.md)",
    )
    normalize: bool = parameter(
        True, "scale each vector of the topic features to length 1, which the penalties are for"
    )
    model_file: str = parameter(
        "",
        "file that what was taught is saved to and loaded from; the one before is kept beside it; "
        "empty: nothing is saved",
    )
    autoload: bool = parameter(
        True, "when configured resume from the newest whole model_file, if there is one"
    )
    autosave: bool = parameter(
        True,
        "save to model_file whenever the teaching of an object has ended, every save_interval, "
        "when deactivated and at the end",
    )
    save_interval: float = parameter(
        60.0,
        "at most so much of a long teaching is lost by a kill or a power cut; 0: not saved before "
        "its end",
        unit="s",
        low=0.0,
        high=1e6,
        live=True,
    )
    recognition: RecognitionConfig = group(RecognitionConfig, inline=True)
    backbone: BackboneConfig = group(BackboneConfig)
