"""`Tensor`: what compiled functions return when no array library came in, and what packed functions receive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from supple.base import dtypes
from supple.runtime import dlpack
from supple.runtime.device import Device, cpu, require_cpu

NDArray = npt.NDArray[Any]


class Tensor:
    """A tensor in memory: a thin handle on a numpy array, shared without copies through numpy and DLPack.

    The memory lives as long as any handle, array or DLPack capsule refers to it.
    """

    __slots__ = ("__weakref__", "_array")
    _array: NDArray

    def __init__(self, array: NDArray) -> None:
        if not isinstance(array, np.ndarray):
            raise TypeError(f"Tensor wraps a numpy array, got {type(array).__name__}; use supple.runtime.tensor(x)")
        dtypes.from_numpy(array.dtype)
        self._array = array

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    @property
    def dtype(self) -> str:
        """The dtype's name, such as ``"float32"``."""
        return dtypes.from_numpy(self._array.dtype)

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._array.size

    @property
    def device(self) -> Device:
        return cpu(0)

    def numpy(self) -> NDArray:
        """The contents as a numpy array (a copy, so that later writes to either do not meet)."""
        return self._array.copy()

    asnumpy = numpy

    def item(self) -> bool | int | float:
        """The value of a tensor of one element."""
        value: bool | int | float = self._array.item()
        return value

    def copyfrom(self, source: object) -> Tensor:
        """Overwrite the contents; shape and dtype must agree (a numpy array, Tensor, or DLPack object)."""
        array = as_array(source)
        if array.shape != self.shape:
            raise ValueError(f"copyfrom: expected shape {self.shape}, got {array.shape}")
        if array.dtype != self._array.dtype:
            raise TypeError(f"copyfrom: expected dtype {self.dtype}, got {array.dtype}")
        self._array[...] = array
        return self

    def copyto(self, target: Tensor | Device) -> Tensor:
        """Copy the contents into another tensor of the same shape and dtype, or into a new one on a device."""
        if isinstance(target, Device):
            target = empty(self.shape, self.dtype, target)
        return target.copyfrom(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        if dtype is not None and np.dtype(dtype) != self._array.dtype:
            if copy is False:
                raise ValueError("a conversion to another dtype needs a copy")
            return self._array.astype(dtype)
        return self._array.copy() if copy else self._array

    def __dlpack__(self, **options: Any) -> Any:
        return dlpack.export(self._array, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __len__(self) -> int:
        return len(self._array)

    def __repr__(self) -> str:
        return f"supple.runtime.Tensor(shape={self.shape}, dtype={self.dtype!r})\n{self._array!r}"


class ShapeValueError(TypeError, ValueError):
    """A shape of something else than integers (a ``ValueError`` as well, as in Relax)."""


class ShapeTuple(tuple[int, ...]):
    """A shape value: a tuple of ints."""

    __slots__ = ()

    def __new__(cls, values: Sequence[SupportsIndex] = ()) -> ShapeTuple:
        for value in values:
            if not hasattr(value, "__index__"):
                raise ShapeValueError(f"ShapeTuple: sizes are integers, got {value!r}")
        return super().__new__(cls, (v.__index__() for v in values))

    def __repr__(self) -> str:
        return f"ShapeTuple({list(self)})"

    def __str__(self) -> str:
        return str(tuple(self))


def tensor(data: object, dtype: str | Device | None = None, device: Device | None = None) -> Tensor:
    """A new tensor that holds a copy of ``data`` (array, nested list, number, or anything with DLPack).

    The device, which must be the CPU, may come second, as in Relax. Raises `NotSupportedError` for any other."""
    if isinstance(dtype, Device):
        dtype, device = None, dtype
    require_cpu(device, "tensor")
    array = as_array(data) if _is_array_like(data) else np.array(data)
    if dtype is None and not _is_array_like(data) and array.dtype == np.float64:
        dtype = "float32"
    return Tensor(np.array(array, dtype=None if dtype is None else dtypes.to_numpy(dtype), order="C", copy=True))


def empty(shape: Sequence[int], dtype: str = "float32", device: Device | None = None) -> Tensor:
    """A new tensor with arbitrary contents."""
    require_cpu(device, "empty")
    sizes = tuple(s.__index__() for s in shape)
    if math.prod(sizes) > (1 << 62):
        raise MemoryError(f"a tensor of shape {sizes} does not fit in memory")
    return Tensor(np.empty(sizes, dtypes.to_numpy(dtype)))


def from_dlpack(source: object) -> Tensor:
    """A tensor that shares the memory of a DLPack object on the CPU."""
    return Tensor(as_array(source))


def _is_array_like(value: object) -> bool:
    return isinstance(value, (np.ndarray, Tensor)) or hasattr(value, "__dlpack__")


def as_array(value: Any) -> NDArray:
    """The numpy array that shares memory with a numpy array, `Tensor` or CPU DLPack object (numpy scalars are copied).

    Raises ``TypeError`` for anything else, and ``BufferError`` when the object cannot be shared (another device, a
    tensor that requires a gradient, a dtype that numpy does not have).
    """
    if isinstance(value, np.ma.MaskedArray):
        raise BufferError("a masked array hides elements; pass array.filled(value)")
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, Tensor):
        return value._array
    if isinstance(value, np.generic):  # what numpy's reductions return: an array of no dimensions
        return np.asarray(value)
    if not hasattr(value, "__dlpack__"):
        raise TypeError(f"expected an array, got {type(value).__name__}")
    if hasattr(value, "__dlpack_device__"):
        kind = value.__dlpack_device__()[0]
        if int(kind) != 1:
            raise BufferError(f"the array is on a device of DLPack type {int(kind)}, not on the CPU")
    if getattr(value, "requires_grad", False) is True:
        raise BufferError("the tensor requires a gradient; pass tensor.detach()")
    for lazy, resolve in (("is_conj", "resolve_conj"), ("is_neg", "resolve_neg")):
        if getattr(value, lazy, bool)():  # torch keeps a sign or a conjugation as a flag, which DLPack does not carry
            value = getattr(value, resolve)()
    return dlpack.share(value)
