"""Parameters of the recognition of objects."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from semiparam_dynamics.base.parameters import group, parameter
from semiparam_dynamics.base.storage import LearningNodeConfig

# Parameters of one kind have one range.
_live_share = partial(parameter, low=0.0, high=1.0, live=True)


@dataclass(frozen=True)
class ClassifierConfig:
    """The classifier; see `semiparam_dynamics.learning.IncrementalRLSC`."""

    ridge: tuple[float, ...] = parameter(
        (0.3,),
        "candidates for the ridge, learned side by side at the cost of each; 0.3 suits image "
        "features of length 1",
        low=1e-9,
        high=1e9,
    )
    head: str = parameter(
        "discriminant",
        "how scores follow from what was learned: least_squares, the thesis', or discriminant, a "
        "Gaussian for each object, which recognises objects of few examples more often",
        choices=("least_squares", "discriminant"),
    )
    choose_recoding: bool = parameter(
        True,
        "choose the recoding exponent by held-out examples: the largest that costs no accuracy",
        live=True,
    )
    recoding: float = _live_share(
        0.7,
        "the recoding exponent where it isn't chosen: 0, objects count by how many examples of "
        "them were taught, to 1, all count the same",
    )
    tolerance: float = _live_share(
        0.01, "share of held-out examples that a larger recoding exponent may cost"
    )
    hold_out: int = parameter(
        6,
        "every n-th example of each object is held out to choose ridge and recoding by, instead of "
        "learned; 0: none, and without them max_novelty and false_accepts make nothing unknown; "
        "1 would leave nothing to learn",
        low=0,
        high=1000000,
    )
    validation_size: int = parameter(600, "how many held-out examples are kept", low=1, high=100000)


@dataclass(frozen=True)
class LimitsConfig:
    """Limits of what may be asked for."""

    max_classes: int = parameter(1000, "objects at most", low=1, high=100000, live=True)
    max_label_length: int = parameter(
        100, "characters of an object's name at most", low=1, high=1000, live=True
    )
    max_inputs: int = parameter(
        4096,
        "numbers in a feature vector at most: memory and time grow with their square",
        low=1,
        high=100000,
    )


@dataclass(frozen=True)
class SmoothingConfig:
    """Recognition over several frames."""

    frames: int = parameter(
        8,
        "what is recognised is the mean over so many frames; it starts anew when teaching starts "
        "or ends",
        low=1,
        high=1000,
        live=True,
    )


@dataclass(frozen=True)
class RecognitionConfig:
    """The recognizer, from features to answers."""

    classifier: ClassifierConfig = group(ClassifierConfig, inline=True)
    threshold: float = _live_share(
        0.3,
        "an answer with a smaller probability than this is unknown; 0: none is. Probabilities "
        "are among the objects taught: with one object it is 1 whatever is shown",
    )
    max_novelty: float = parameter(
        5.0,
        "an image whose novelty is above this is unknown, even where only one object was "
        "taught; 1 is the novelty of held-out examples, of which it takes five: 30 frames with "
        "hold_out 6; 0: no limit",
        low=0.0,
        high=1e6,
        live=True,
    )
    false_accepts: float = parameter(
        0.2,
        "share of frames of unknown objects that may be taken for one that was taught, estimated "
        "from held-out examples, leaving out each one's own object; the limit holds once ten of "
        "two objects are held out: 60 frames with hold_out 6. 0: no limit",
        low=0.0,
        high=0.99,
        live=True,
    )
    unknown: str = parameter(
        "unknown", "the answer for an unknown object, empty too; no object can have this name"
    )
    remember: int = parameter(
        60,
        "how many frames of an unknown object are kept, for its name to come later: 'name mug'; "
        "0: none",
        low=0,
        high=10000,
        live=True,
    )
    smoothing: SmoothingConfig = group(SmoothingConfig)
    limits: LimitsConfig = group(LimitsConfig, inline=True)


@dataclass(frozen=True)
class BackboneConfig:
    """The network between images and features, and what it expects of an image."""

    file: str = parameter(
        "", "ONNX file of an image network; empty: EfficientNet-Lite0 with ImageNet weights"
    )
    output: str = parameter(
        "", "the network's output that is the features, by its name; empty: its first"
    )
    size: int = parameter(
        224,
        "side of the square that an image is scaled to, where the network's file leaves it open; "
        "smaller is faster and sees less",
        unit="pixels",
        low=32,
        high=2048,
    )
    crop: float = parameter(
        0.875,
        "how much of the image's shorter side the crop from its centre keeps; the network does "
        "not get the rest of the image",
        low=0.05,
        high=1.0,
    )
    mean: tuple[float, ...] = parameter(
        (127.0, 127.0, 127.0),
        "taken from each pixel's red, green and blue (0 to 255); where a network's mean is given "
        "for pixels from 0 to 1, 255 times that",
        low=0.0,
        high=255.0,
    )
    std: tuple[float, ...] = parameter(
        (128.0, 128.0, 128.0),
        "what red, green and blue are then divided by; where a network's is given for pixels from "
        "0 to 1, 255 times that. A network that takes uint8 gets the pixels as they are",
        low=1e-3,
        high=1e4,
    )
    channels: str = parameter(
        "rgb",
        "the order in which the network takes an image's colours; bgr for networks that were "
        "trained with OpenCV's images",
        choices=("rgb", "bgr"),
    )
    preprocessing: str = parameter(
        "auto",
        "where size, crop, mean, std and channels come from: auto, a preprocessor_config.json "
        "next to `file` (as exports from Hugging Face have it) where there is one, or always these "
        "parameters",
        choices=("auto", "parameters"),
    )
    normalize: bool = parameter(True, "scale each feature vector to length 1")
    threads: int = parameter(
        1,
        "threads of the network; more are faster, but keep their cores busy between images too",
        low=1,
        high=64,
    )


@dataclass(frozen=True)
class ImageSourceNodeConfig:
    """Parameters of the `image_source` node."""

    source: str = parameter(
        "/dev/video0",
        "camera, such as /dev/video0 or 0; video file or folder of pictures; digits: handwritten "
        "ones that need no file",
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


@dataclass(frozen=True)
class ObjectsPageNodeConfig:
    """Parameters of the `objects_page` node."""

    recognition: str = parameter("object_recognition", "name of the recognition's node")
    port: int = parameter(
        8701, "port of the page, on this machine alone; 0: any that is free", low=0, high=65535
    )
    reliable: bool = parameter(
        False, "have frames that were lost on the way sent again, as the recognition's parameter"
    )
    window: int = parameter(
        20, "taught frames over which the learning curve is averaged", low=1, high=10000
    )


@dataclass(frozen=True)
class ObjectRecognitionNodeConfig(LearningNodeConfig):
    """Parameters of the `object_recognition` node."""

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
    region: str = parameter(
        "whole",
        "what is taught and recognised of images: all of them, or what moves or is held before a "
        "camera that stands still, in a box, and the whole image where nothing does",
        choices=("whole", "moving"),
        live=True,
    )
    normalize: bool = parameter(
        True, "scale each vector of the topic features to length 1, which the penalties are for"
    )
    autoload: bool = parameter(
        True, "when configured resume from the newest whole model_file, if there is one"
    )
    recognition: RecognitionConfig = group(RecognitionConfig, inline=True)
    backbone: BackboneConfig = group(BackboneConfig)
