"""The arrays in a state dict that PyTorch saved, without PyTorch and with nothing executed.

The format is the one of torch.save before version 1.6: five pickles (magic number, protocol
version, the machine's sizes, the state dict, the storages' keys), then each storage's number of
entries and its raw bytes, in the order of the keys. A tensor is a view of a storage: an offset, a
shape and strides. A pickle may name any function of any module for the reader to call, so only the
few names that a state dict needs are known here, and none of them means PyTorch's own.
"""

from __future__ import annotations

import math
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from semiparam_dynamics.errors import BackboneError

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
