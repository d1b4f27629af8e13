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
class ObjectStreamNodeConfig:
    """Parameters of the `object_stream` node."""

    source: str = parameter(
        "",
        "folder whose subfolders are objects with their pictures, or an npz file of pictures or "
        "feature vectors; empty: handwritten digits",
    )
    classes: int = parameter(5, "objects shown, the source's first ones", low=1, high=1000)
    views: int = parameter(
        120,
        "pictures of an object that are kept in memory, half of them to teach and half to ask",
        low=2,
        high=100000,
    )
    script: str = parameter(
        "",
        "file with lines such as 'teach mug 30', 'ask 60', 'ask mug 10', 'pause 2'; empty: one "
        "object after the other is taught, and all those so far are asked",
    )
    frames_taught: int = parameter(
        30, "frames of each object's teaching, where there is no script", low=1, high=100000
    )
    frames_per_object: int = parameter(
        10, "frames for which an object that is asked stays in view", low=1, high=100000
    )
    rate: float = parameter(10.0, "frames a second", unit="Hz", low=0.1, high=1000.0)
    settle: float = parameter(
        0.15,
        "time without frames before and after each change of what is in view or of the label: it "
        "should be longer than the recognition takes for a frame",
        unit="s",
        low=0.0,
        high=10.0,
    )
    wait_for_subscribers: int = parameter(
        0,
        "the script starts when this many subscribe to the label, and someone to the frames; 0: at "
        "once",
        low=0,
        high=100,
    )
    loop: bool = parameter(False, "begin again when the script has ended")
    seed: int = parameter(0, "of the order of pictures and objects", low=0, high=2147483647)


@dataclasses.dataclass(frozen=True)
class ImageSourceNodeConfig:
    """Parameters of the `image_source` node."""

    source: str = parameter(
        "/dev/video0",
        "camera, such as /dev/video0 or 0; video file, animated picture or folder of pictures",
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
