"""EfficientNet-Lite0 as an ONNX graph, from the weights of its PyTorch port.

M. Tan and Q. Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", ICML
2019, table 1, in the Lite variant that TensorFlow published: no squeeze and excitation, ReLU6 for
swish. The padding is TensorFlow's SAME (an odd one goes below and to the right), which the weights
were trained with. In inference a batch normalisation is an affine map of each channel; here it is
folded into the convolution before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import onnx

Weights = Mapping[str, npt.NDArray[Any]]

N_FEATURES = 1280
SIZE = 224
BATCH_NORM_EPSILON = 1e-3
# ONNX Runtime refuses a file of a newer format or operator set than it knows, and a newer onnx
# would write its newest: these are of 2021, and all that the graph needs.
IR_VERSION, OPSET = 7, 13


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


def build(weights: Weights, size: int = SIZE, *, with_classifier: bool = False) -> onnx.ModelProto:
    """The network for images of `size` by `size` pixels.

    Input `image`, (1, 3, size, size) float32, pixels as (RGB - 127) / 128. Output `features`,
    (1, 1280) float32; with the classifier also `logits`, (1, 1000). Raises KeyError where a weight
    is missing.
    """
    graph = _Graph(weights)
    here = graph.convolution("image", "_conv_stem", "_bn0", stride=2)
    for number, block in enumerate(blocks()):
        here = _inverted_residual(graph, here, f"_blocks.{number}.", block)
    here = graph.convolution(here, "_conv_head", "_bn1")
    here = graph.add("GlobalAveragePool", here)
    graph.add("Flatten", here, output="features")
    outputs = {"features": N_FEATURES}
    if with_classifier:
        matrix, bias = (
            graph.constant(f"_fc.{part}", weights[f"_fc.{part}"]) for part in ("weight", "bias")
        )
        graph.add("Gemm", "features", matrix, bias, output="logits", transB=1)
        outputs["logits"] = len(weights["_fc.bias"])
    return graph.model({"image": (1, 3, size, size)}, {k: (1, n) for k, n in outputs.items()})


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
        self, inputs: dict[str, tuple[int, ...]], outputs: dict[str, tuple[int, ...]]
    ) -> onnx.ModelProto:
        def described(shapes: dict[str, tuple[int, ...]]) -> list[onnx.ValueInfoProto]:
            float32 = 1  # TensorProto.FLOAT
            return [
                self._helper.make_tensor_value_info(name, float32, shape)
                for name, shape in shapes.items()
            ]

        graph = self._helper.make_graph(
            self._nodes,
            "efficientnet-lite0",
            described(inputs),
            described(outputs),
            self._constants,
        )
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
