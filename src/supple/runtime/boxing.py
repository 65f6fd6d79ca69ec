"""Python values to native objects and back (layouts in ``abi``).

Who keeps what alive:

* memory allocated by native code: a numpy array's base holds a reference of the native object (`_Owner`);
* memory of a Python array inside a native tensor: the table `_kept`, until the native object's last reference goes;
* memory of an argument: the running call. Results that refer to an argument are turned into references to the
  caller's own object before the call ends, so no native object outlives it.
"""

from __future__ import annotations

import ctypes
import importlib
import struct
import sys
import threading
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.base.errors import ArgumentError, InternalError
from supple.runtime import abi
from supple.runtime.abi import Kind
from supple.runtime.closure import Closure, Home
from supple.runtime.native import Runtime, runtime
from supple.runtime.platforms import physical_memory
from supple.runtime.tensor import NDArray, ShapeTuple, Tensor, as_array

RESULT_KINDS = ("match", "numpy", "tensor", "torch")
"""How array results appear: as the first array argument's kind, or always as one kind."""

_HEAD = struct.Struct("<qiiQQ")  # references, kind, code, deleter, and the first field after them
_TENSOR = struct.Struct("<QQqq")  # data, owner, ndim, nbytes
_kept: dict[int, tuple[object, object]] = {}  # native object -> (what must live, what Python passed in)


_dropped: list[object] = []
_dropping = threading.Lock()


def _release(
    address: int, kept: dict[int, tuple[object, object]] = _kept, dropped: list[object] = _dropped,
    dropping: threading.Lock = _dropping,
) -> None:  # fmt: skip
    """Deleter of objects that Python keeps. What was kept may be the last to hold others, and so on: chains of any
    length are dropped one after another, never one inside the other."""
    dropped.append(kept.pop(address, None))
    runtime().free_object(address)
    while dropped and dropping.acquire(blocking=False):
        try:
            while dropped:
                dropped.pop()
        finally:
            dropping.release()


_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_release)
_RELEASE_ADDRESS = ctypes.cast(_RELEASE, ctypes.c_void_p).value or 0
_NUMPY_DTYPE = {abi.dtype_code(name): dtypes.to_numpy(name) for name, row in dtypes.DTYPES.items() if row.numpy}
# numpy's array interface knows no bfloat16 or float8: their memory is bytes or pairs of bytes, seen as what they are
_TYPESTR = {
    abi.dtype_code(name): f"<u{row.nbytes}" if row.is_coded else dtypes.to_numpy(name).str
    for name, row in dtypes.DTYPES.items()
    if row.numpy
}
_CODED = {abi.dtype_code(name): dtypes.to_numpy(name) for name, row in dtypes.DTYPES.items() if row.is_coded}
_CODE = {dtype: code for code, dtype in _NUMPY_DTYPE.items()}


class _Owner:
    """Holds one reference of a native object, the caller's."""

    __slots__ = ("_address", "_decref")

    def __init__(self, address: int, rt: Runtime) -> None:
        self._address = address
        self._decref = rt.decref

    def __del__(self) -> None:
        self._decref(self._address)


class _Memory:
    """Memory as numpy's array interface wants it; the array made from it keeps ``keep`` alive."""

    __slots__ = ("__array_interface__", "keep")

    def __init__(self, interface: dict[str, Any], keep: object) -> None:
        self.__array_interface__ = interface
        self.keep = keep


def is_kept(address: int) -> bool:
    """Whether a native object stands for something that Python keeps."""
    return address in _kept


def owned_array(address: int, data: int, shape: tuple[int, ...], code: int) -> NDArray:
    """The array over the memory of a native tensor that owns it; takes over the caller's reference."""
    return _array_over(data, shape, code, _Owner(address, runtime()), False)


def _array_over(data: int, shape: tuple[int, ...], code: int, keep: object, readonly: bool) -> NDArray:
    interface = {"data": (data, readonly), "shape": shape, "typestr": _TYPESTR[code], "version": 3}
    array = np.asarray(_Memory(interface, keep))
    return array.view(_CODED[code]) if code in _CODED else array


_PHYSICAL_MEMORY = physical_memory()


def compact(array: NDArray) -> NDArray:
    """A row-major, aligned copy of an array (the array itself when it is that already).

    Raises ``MemoryError`` before it allocates more than the machine has: a broadcast view can claim any size.
    """
    flags = array.flags
    if flags.c_contiguous and flags.aligned:
        return array
    if array.nbytes > _PHYSICAL_MEMORY:
        raise MemoryError(
            f"an array of shape {array.shape} and dtype {array.dtype} must be copied to be compact, which takes "
            f"{array.nbytes} bytes"
        )
    return np.array(array, order="C", copy=True, subok=False)


# ------------------------------------------------------------------------------------------------------------- boxing


def box_for(value: object, home: Home) -> int:
    """`box`, but a closure of ``home`` is native already."""
    if isinstance(value, Closure) and value.executable is home:
        runtime().incref(value.address)
        return value.address
    return box(value)


def box(value: object) -> int:
    """A new reference to a native object for a Python value.

    Raises ``TypeError`` or ``BufferError`` for arrays that cannot be represented, ``OverflowError`` for large ints,
    ``MemoryError``.
    """
    rt = runtime()
    if isinstance(value, (bool, np.bool_)):
        return _made(rt.int_new(int(value), _BOOL))
    if isinstance(value, (int, np.integer)):
        number = int(value)
        if not -(1 << 63) <= number < (1 << 64):
            raise OverflowError(f"{number} does not fit in {'int64' if number < 0 else 'uint64'}")
        if number >= 1 << 63:
            return _made(rt.int_new(number - (1 << 64), _UINT64))
        return _made(rt.int_new(number, _INT64))
    if isinstance(value, dtypes.FLOAT_SCALARS):
        return _made(rt.float_new(float(value), _FLOAT64))  # type: ignore[arg-type]
    if isinstance(value, ShapeTuple):
        return box_shape(value)
    if value is None:
        return _made(rt.tuple_new(0))
    if isinstance(value, (tuple, list)):
        return _box_tuple(value)
    if isinstance(value, (np.ndarray, Tensor)) or hasattr(value, "__dlpack__"):
        return box_array(as_array(value), value)
    return _box_opaque(value)


def box_none() -> int:
    """A new reference to a native object for None itself (`box` makes an empty tuple of it)."""
    return _box_opaque(None)


def _box_opaque(value: object) -> int:
    address = _keep(_made(runtime().python_new(_RELEASE_ADDRESS)), value, value)
    if callable(value):
        ctypes.c_int32.from_address(address + abi.OBJECT_CODE).value = abi.CALLABLE
    return address


_REAL = (int, np.integer, *dtypes.FLOAT_SCALARS)
_BOOL, _INT64, _FLOAT64 = abi.dtype_code("bool"), abi.dtype_code("int64"), abi.dtype_code("float64")
_UINT64 = abi.dtype_code("uint64")


def _made(address: int | None) -> int:
    if not address:
        raise MemoryError("out of memory")
    return address


def _keep(address: int, keep: object, original: object) -> int:
    _kept[address] = (keep, original)
    return address


def box_array(array: NDArray, original: object, shared: bool = True) -> int:
    """A native tensor over an array's memory (over a compact copy if needed); ``original`` is what Python gave, whose
    memory that is unless it is not ``shared``."""
    code = _CODE.get(array.dtype)
    if code is None or not array.dtype.isnative:
        raise TypeError(f"arrays of dtype {array.dtype!r} are not supported")
    data = compact(array)
    address = _made(runtime().tensor_view(data.ndim, code, data.nbytes, data.ctypes.data, None))
    ctypes.c_uint64.from_address(address + abi.OBJECT_DELETER).value = _RELEASE_ADDRESS
    if shared and data is array and array.flags.writeable:
        ctypes.c_int64.from_address(address + abi.TENSOR_FLAGS).value = abi.WRITABLE
    dims = (ctypes.c_int64 * data.ndim).from_address(address + abi.TENSOR_DIMS)
    dims[:] = list(data.shape)
    return _keep(address, data, original)


def _box_shape(values: tuple[int, ...]) -> int:
    address = _made(runtime().shape_new(len(values)))
    items = (ctypes.c_int64 * len(values)).from_address(address + abi.LIST_ITEMS)
    items[:] = list(values)
    return address


def box_shape(values: tuple[int, ...]) -> int:
    """A native shape; every value must fit in int64."""
    if any(not 0 <= v < (1 << 63) for v in values):
        raise OverflowError(f"the shape {values} has a dimension that is negative or does not fit in int64")
    return _box_shape(values)


def _box_tuple(values: tuple[object, ...] | list[object]) -> int:
    rt = runtime()
    address = _made(rt.tuple_new(len(values)))
    fields = (ctypes.c_uint64 * len(values)).from_address(address + abi.LIST_ITEMS)
    try:
        for i, value in enumerate(values):
            fields[i] = box(value)
    except BaseException:
        rt.decref(address)
        raise
    return address


# ----------------------------------------------------------------------------------------------------------- unboxing


class Arguments(dict[int, object]):
    """What the caller of a running call passed, by native object. ``memory`` holds the elements of those that were
    copied to be compact."""

    def __init__(self) -> None:
        super().__init__()
        self.memory: dict[int, object] = {}


def unbox(address: int, arguments: Arguments, kind: str, home: Home, originals: bool = True) -> Any:
    """The Python value of a native object (whose reference stays the caller's).

    ``arguments`` maps the native objects of the running call's arguments to what the caller passed; with
    ``originals`` that very object is given back. ``kind`` is how other tensors appear: ``"numpy"``, ``"tensor"`` or
    ``"torch"``. ``home`` is the executable that is running: closures belong to it.
    """
    if originals and address in arguments:
        return arguments[address]
    _, what, code, _, first = _HEAD.unpack(ctypes.string_at(address, _HEAD.size))
    if what == Kind.TENSOR:
        return present(_tensor_array(address, code, arguments), kind)
    if what == Kind.TUPLE:
        fields = (ctypes.c_uint64 * first).from_address(address + abi.LIST_ITEMS)
        return tuple([unbox(field, arguments, kind, home, originals) for field in fields])
    if what == Kind.SHAPE:
        return ShapeTuple((ctypes.c_int64 * first).from_address(address + abi.LIST_ITEMS)[:])
    if what == Kind.INT:
        value = ctypes.c_int64.from_address(address + abi.NUMBER_VALUE).value
        if code == _UINT64 and value < 0:
            return value + (1 << 64)
        return bool(value) if code == _BOOL else value
    if what == Kind.FLOAT:
        return ctypes.c_double.from_address(address + abi.NUMBER_VALUE).value
    if what == Kind.PYTHON:
        return _kept[address][1]
    if what == Kind.CLOSURE:
        return Closure(home, address, kind)
    raise InternalError(f"native object of unknown kind {what}")


def _tensor_array(address: int, code: int, arguments: Arguments) -> NDArray:
    data, owner, ndim, _ = _TENSOR.unpack(ctypes.string_at(address + abi.TENSOR_DATA, _TENSOR.size))
    shape = struct.unpack(f"<{ndim}q", ctypes.string_at(address + abi.TENSOR_DIMS, 8 * ndim)) if ndim else ()
    root = address
    while owner:
        root = owner
        owner = ctypes.c_uint64.from_address(root + abi.TENSOR_OWNER).value
    keep: object
    readonly = False
    if root in _kept:
        keep, original = _kept[root]
        if root == address and isinstance(original, Tensor):
            return original._array
        readonly = isinstance(keep, np.ndarray) and not keep.flags.writeable
    elif root in arguments:
        keep = arguments.memory.get(root, arguments[root])
        readonly = _is_readonly(keep)
    else:
        runtime().incref(root)
        keep = _Owner(root, runtime())
    return _array_over(data, shape, code, keep, readonly)


def _is_readonly(value: object) -> bool:
    array = value._array if isinstance(value, Tensor) else value
    return isinstance(array, np.ndarray) and not array.flags.writeable


def present(array: NDArray, kind: str) -> Any:
    """An array as the caller wants it: itself, a `Tensor`, or a torch tensor that shares the memory."""
    if kind == "numpy":
        return array
    if kind == "torch":
        return importlib.import_module("torch").from_dlpack(array if array.dtype.isbuiltin == 1 else Tensor(array))
    return Tensor(array)


def kind_of(value: object) -> str:
    """How results appear for a call whose first array is ``value``."""
    if isinstance(value, (np.ndarray, np.generic)):
        return "numpy"
    if type(value).__module__.partition(".")[0] == "torch" and "torch" in sys.modules:
        return "torch"
    return "tensor"


def check_number(value: object, dtype: str, where: str) -> int | float:
    """A Python number for a scalar parameter; raises `ArgumentError` for another kind or one out of range."""
    row = dtypes.row(dtype)
    if row.kind == "bool" and isinstance(value, (bool, np.bool_)):
        return int(value)
    if row.kind == "float" and isinstance(value, _REAL) and not isinstance(value, bool):
        return float(value)  # type: ignore[arg-type]
    if row.kind in ("int", "uint") and isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        if dtypes.fits(int(value), dtype):
            return int(value)
        raise ArgumentError(f"{where}: {value} does not fit in {dtype}")
    raise ArgumentError(f"{where}: expected a {dtype} number, got {describe(value)}")


def describe(value: object) -> str:
    """A value for messages: ``Tensor((2, 3), float32)``, ``list``, ``None``."""
    if value is None:
        return "None"
    if isinstance(value, (np.ndarray, Tensor)):
        array = value._array if isinstance(value, Tensor) else value
        order = "" if array.dtype.isnative else " in foreign byte order"
        return f"Tensor({array.shape}, {array.dtype.name}){order}"
    if isinstance(value, (bool, int, float, str, ShapeTuple)):
        return f"{type(value).__name__} {value!r}"
    return type(value).__name__
