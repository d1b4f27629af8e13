"""What the recognition of objects is told."""

from __future__ import annotations

from dataclasses import dataclass

from semiparam_dynamics.parameters import parameter


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
    normalize: bool = parameter(True, "scale each feature vector to length 1")
    threads: int = parameter(
        1,
        "threads of the network; more are faster, but keep their cores busy between images too",
        low=1,
        high=64,
    )
