"""The registered functions that virtual-machine programs start from: ``vm.builtin.*``.

Compiled modules have native code for all of this; programs of instructions (``relax.ExecBuilder``), and calls by name
(``R.call_packed("vm.builtin.make_tuple", x, y)``), find the same functions here. Those that get the machine take it
first. Sizes that a program computes with stand in a *heap*: an int64 tensor of one dimension.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.base.errors import ExecutionError, NotSupportedError
from supple.runtime.packed import get_global_func, register_global_func
from supple.runtime.tensor import NDArray, ShapeTuple, Tensor, empty

ASSERT_EQUAL_TO_IMM, STORE_TO_HEAP, NO_OP, ASSERT_EQUAL_TO_LOAD = range(4)
"""What ``match_shape`` does with an extent: compare with a number, store it, nothing, compare with a stored one."""
USE_IMM, LOAD_SHAPE = range(2)
"""Where ``make_shape`` finds an extent: it is the number itself, or stored at that place of the heap."""


def _builtin(function: Callable[..., Any]) -> Callable[..., Any]:
    return register_global_func(f"vm.builtin.{function.__name__.strip('_')}", function, override=True)


def _refuse(context: str, expected: str, actual: str) -> None:
    raise ExecutionError(f"{context + ': ' if context else ''}expected {expected}, got {actual}")


def _tensor(value: Any, context: str = "") -> Tensor:
    if isinstance(value, np.ndarray):
        return Tensor(value)
    if not isinstance(value, Tensor):
        _refuse(context, "a tensor", repr(value))
    assert isinstance(value, Tensor)
    return value


def _memory(value: Any, context: str = "") -> NDArray:
    """A tensor's memory, not a copy of it."""
    return np.asarray(_tensor(value, context))


def _cell(heap: Any, place: int, context: str = "") -> int:
    values = _memory(heap, context)
    if not 0 <= place < values.size:
        raise ExecutionError(f"{context + ': ' if context else ''}the heap has {values.size} places, not {place}")
    return place


# --------------------------------------------------------------------------------------------------- shapes and numbers


@_builtin
def alloc_shape_heap(machine: Any, size: int) -> Tensor:
    """A heap of ``size`` places."""
    return Tensor(np.zeros(int(size), "int64"))


def _match(value: int, heap: Any, code: int, place: int, context: str, what: str) -> None:
    if code == STORE_TO_HEAP:
        _memory(heap)[_cell(heap, place, context)] = value
    elif code in (ASSERT_EQUAL_TO_IMM, ASSERT_EQUAL_TO_LOAD):
        wanted = place if code == ASSERT_EQUAL_TO_IMM else int(_memory(heap)[_cell(heap, place, context)])
        if value != wanted:
            _refuse(context, f"{what} {wanted}", str(value))
    elif code != NO_OP:
        raise ExecutionError(f"match: unknown code {code}")


@_builtin
def match_shape(value: Any, heap: Any, size: int, *rest: Any) -> None:
    """Compare the extents of a tensor or shape with ``size`` pairs of a code and a number, and store some of them."""
    codes, context = rest[: 2 * size], str(rest[2 * size]) if len(rest) > 2 * size and rest[2 * size] else ""
    shape = tuple(value) if isinstance(value, (tuple, ShapeTuple)) else _tensor(value, context).shape
    if len(codes) != 2 * size:
        raise ExecutionError(f"match_shape: {size} dimensions need {2 * size} numbers, got {len(codes)}")
    if len(shape) != size:
        _refuse(context, f"{size} dimensions", f"{len(shape)}")
    for d, extent in enumerate(shape):
        _match(int(extent), heap, codes[2 * d], codes[2 * d + 1], context, f"dimension {d} to be")


@_builtin
def make_shape(heap: Any, size: int, *codes: int) -> ShapeTuple:
    """A shape of ``size`` extents, each a code and a number."""
    if len(codes) != 2 * size:
        raise ExecutionError(f"make_shape: {size} dimensions need {2 * size} numbers, got {len(codes)}")
    return ShapeTuple([make_prim_value(heap, codes[2 * d], codes[2 * d + 1]) for d in range(size)])


@_builtin
def make_prim_value(heap: Any, code: int, place: int) -> int:
    """A number: ``place`` itself, or what is stored there."""
    if code == USE_IMM:
        return int(place)
    if code != LOAD_SHAPE:
        raise ExecutionError(f"make: unknown code {code}")
    return int(_memory(heap)[_cell(heap, place)])


@_builtin
def match_prim_value(value: Any, heap: Any, code: int, place: int, context: str = "") -> None:
    """Compare a number, or store it, as `match_shape` does with an extent."""
    _match(int(value), heap, code, place, str(context or ""), "the value")


@_builtin
def shape_of(x: Any) -> ShapeTuple:
    """The shape of a tensor."""
    return ShapeTuple(_tensor(x).shape)


@_builtin
def tensor_to_shape(x: Any) -> ShapeTuple:
    """The shape whose extents a tensor of one dimension holds."""
    return ShapeTuple([int(v) for v in _memory(x)])


@_builtin
def read_if_cond(condition: Any) -> int:
    """A condition as a number: 0 or 1."""
    if isinstance(condition, (bool, int, np.generic)):
        return int(bool(condition))
    value = _memory(condition, "if")
    if value.size != 1:
        _refuse("if", "one element", f"{value.size}")
    return int(bool(value.reshape(())[()]))


# --------------------------------------------------------------------------------------------------------------- checks


@_builtin
def check_tensor_info(value: Any, ndim: int, dtype: Any = "", context: str | None = None) -> None:
    """Refuse what is no tensor of that rank (-1: any) and dtype (left out: any)."""
    if context is None and dtype and not _is_dtype(dtype):
        dtype, context = "", dtype  # the message alone
    said = str(context or "")
    tensor = _tensor(value, said)
    if ndim != -1 and tensor.ndim != ndim:
        _refuse(said, f"{ndim} dimensions", f"{tensor.ndim}")
    if dtype and tensor.dtype != str(dtype):
        _refuse(said, f"dtype {dtype}", str(tensor.dtype))


def _is_dtype(text: Any) -> bool:
    try:
        dtypes.check_dtype(str(text))
    except (TypeError, ValueError):
        return False
    return True


@_builtin
def check_shape_info(value: Any, ndim: int, context: str = "") -> None:
    """Refuse what is no shape of that many extents (-1: any)."""
    if not isinstance(value, (tuple, ShapeTuple)):
        _refuse(context, "a shape", repr(value))
    if ndim != -1 and len(value) != ndim:
        _refuse(context, f"a shape of {ndim} extents", str(len(value)))


@_builtin
def check_prim_value_info(value: Any, dtype: Any, context: str = "") -> None:
    """Refuse what is no number of that kind of dtype."""
    kind = dtypes.row(str(dtype)).kind
    fits = {"float": (float, np.floating), "bool": (bool, np.bool_)}.get(kind, (int, np.integer))
    if not isinstance(value, fits) or (kind != "bool" and isinstance(value, bool)):
        _refuse(context, f"a number of {dtype}", repr(value))


@_builtin
def check_string_info(value: Any, context: str = "") -> None:
    """Refuse what is no text."""
    if not isinstance(value, str):
        _refuse(context, "a text", repr(value))


@_builtin
def check_tuple_info(value: Any, size: int, context: str = "") -> None:
    """Refuse what is no tuple of that length."""
    if not isinstance(value, (tuple, list)) or len(value) != size:
        _refuse(context, f"a tuple of {size}", repr(value))


@_builtin
def check_func_info(value: Any, context: str = "") -> None:
    """Refuse what cannot be called."""
    if not callable(value):
        _refuse(context, "a function", repr(value))


# ------------------------------------------------------------------------------------------------- tuples and functions


@_builtin
def make_tuple(*values: Any) -> tuple[Any, ...]:
    """The values as a tuple."""
    return values


@_builtin
def tuple_getitem(value: Sequence[Any], index: int) -> Any:
    """One field of a tuple."""
    if not 0 <= index < len(value):
        raise ExecutionError(f"tuple_getitem: the tuple has {len(value)} fields, not {index}")
    return value[index]


@_builtin
def null_value() -> None:
    """Nothing."""


@_builtin
def copy(value: Any) -> Any:
    """The value itself."""
    return value


def _function(machine: Any, name: Any) -> Callable[..., Any]:
    if callable(name):
        return name  # type: ignore[no-any-return]
    if machine is not None and name in machine:
        return machine[name]  # type: ignore[no-any-return]
    found = get_global_func(str(name))
    assert found is not None, "a miss raises"
    return found


@_builtin
def make_closure(machine: Any, function: Any, *captured: Any) -> Callable[..., Any]:
    """A function (itself or its name) with its first arguments fixed."""
    return functools.partial(_function(machine, function), *captured)


@_builtin
def invoke_closure(machine: Any, closure: Any, *args: Any) -> Any:
    """Call a closure."""
    return _function(machine, closure)(*args)


@_builtin
def call_tir_dyn(function: Any, *args: Any) -> Any:
    """Call a loop function on its buffers and the values of its symbols, which come last as one shape."""
    *buffers, symbols = args
    return _function(None, function)(*buffers, *symbols)


# --------------------------------------------------------------------------------------------------------------- memory


@_builtin
def alloc_storage(machine: Any, size: Sequence[int], device: int, dtype: str, scope: str = "global") -> Tensor:
    """Bytes for tensors: as many as a tensor of that size and dtype takes."""
    count = int(np.prod([int(s) for s in size], dtype=object))
    return empty((count * dtypes.nbytes(str(dtype)),), "uint8")


@_builtin
def alloc_tensor(storage: Any, offset: int, shape: Sequence[int], dtype: str) -> Tensor:
    """A tensor in a storage, from a byte on."""
    memory = _memory(storage, "alloc_tensor").reshape(-1).view("uint8")
    need = int(np.prod([int(s) for s in shape], dtype=object)) * dtypes.nbytes(str(dtype))
    if offset < 0 or offset + need > memory.size:
        raise ExecutionError(f"alloc_tensor: {need} bytes from {offset} on, but the storage has {memory.size}")
    return Tensor(memory[offset : offset + need].view(dtypes.to_numpy(str(dtype))).reshape(tuple(shape)))


@_builtin
def reshape(x: Any, shape: Sequence[int]) -> Tensor:
    """The same memory under another shape; raises ``ValueError`` where the number of elements differs."""
    return Tensor(_memory(x, "reshape").reshape(tuple(shape)))


@_builtin
def ensure_zero_offset(x: Any) -> Tensor:
    """The tensor: its memory begins where it begins."""
    return _tensor(x)


@_builtin
def to_device(x: Any, kind: int, index: int) -> Tensor:
    """The tensor on a device, which must be the CPU."""
    if (kind, index) != (1, 0):
        raise NotSupportedError(f"to_device: there is the CPU alone, not device {index} of type {kind}")
    return _tensor(x, "to_device")
