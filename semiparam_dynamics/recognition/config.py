"""Parameters of the recognition of objects."""

from __future__ import annotations

from dataclasses import dataclass

from semiparam_dynamics.base.parameters import group, parameter


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
    recoding: float = parameter(
        0.7,
        "the recoding exponent where it isn't chosen: 0, objects count by how many examples of "
        "them were taught, to 1, all count the same",
        low=0.0,
        high=1.0,
        live=True,
    )
    tolerance: float = parameter(
        0.01,
        "share of held-out examples that a larger recoding exponent may cost",
        low=0.0,
        high=1.0,
        live=True,
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
    features: str = parameter(
        "none",
        "a nonlinear classifier: random Fourier, random ReLU or growing Nyström features of the "
        "feature vector",
        choices=("none", "random_fourier", "random_relu", "nystrom"),
    )
    length_scale: float = parameter(
        1.0, "width of the Gaussian kernel of Fourier and Nyström features", low=1e-6, high=1e6
    )
    n_features: int = parameter(500, "how many of these features", low=2, high=20000)
    seed: int = parameter(0, "seed of the random features", low=0, high=2**31 - 1)


@dataclass(frozen=True)
class LimitsConfig:
    """Limits of what may be asked for."""

    max_classes: int = parameter(1000, "objects at most", low=1, high=100000, live=True)
    max_label_length: int = parameter(
        100, "characters of an object's name at most", low=1, high=1000, live=True
    )
    new_classes_per_second: float = parameter(
        2.0,
        "new names a second at most, over five seconds; more are refused",
        unit="1/s",
        low=0.01,
        high=1e6,
        live=True,
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
    threshold: float = parameter(
        0.3,
        "an answer with a smaller probability than this is unknown; 0: none is. Probabilities "
        "are among the objects taught: with one object it is 1 whatever is shown",
        low=0.0,
        high=1.0,
        live=True,
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
        "share of frames of unknown objects that may be taken for one that was taught, judged by "
        "held-out examples as if each one's object hadn't been taught; what would exceed it is "
        "unknown, once ten of two objects are held out: 60 frames with hold_out 6. 0: no limit",
        low=0.0,
        high=0.99,
        live=True,
    )
    unknown: str = parameter(
        "unknown", "the answer for an unknown object, empty too; no object can have this name"
    )
    prototypes: str = parameter(
        "",
        "npz file of objects that are known before a picture of them is taught: their names "
        "(`names`) and a feature vector of each (`vectors`, names x numbers), such as the text "
        "vectors of a network that has pictures and texts in one space (CLIP); each counts as one "
        "example",
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
        "how much of the image's shorter side the crop from its centre keeps; the rest of the "
        "image is not looked at",
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
        "beside `file` (as exports from Hugging Face have it) where there is one, or always these "
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
