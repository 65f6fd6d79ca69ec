"""Signatures as plain data, and the converters of arguments that are built from them once.

What a converter checks here is what compiled code relies on blindly: kind, dtype, rank, compactness, alignment. The
sizes are checked by the compiled function's prologue, all of them before any kernel runs.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from supple.base import dtypes
from supple.base.errors import ArgumentError
from supple.base.registry import did_you_mean
from supple.runtime import abi
from supple.runtime.boxing import box_array, box_for, box_shape, check_number, compact, describe, kind_of
from supple.runtime.native import runtime
from supple.runtime.tensor import NDArray, Tensor, as_array


class CallState(Protocol):
    """What converters need of a running call (see ``activation``). ``keep``: what was made of an argument, by the word
    where its header begins."""

    words: memoryview[int]
    executable: Any
    kind: str | None
    keep: dict[int, object]

    def put_boxed(self, position: int, address: int, value: object) -> None:
        """Pass a boxed value."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor; ``dtype`` None and ``ndim`` -1 when unknown. ``text`` is the type for messages. ``kept``: compiled code
    may keep it beyond the call, or write into it, so that it needs a native object of its own."""

    text: str
    dtype: str | None = None
    ndim: int = -1
    kept: bool = False


@dataclass(frozen=True, slots=True)
class ShapeSpec:
    """A shape value; ``ndim`` -1 when unknown."""

    text: str
    ndim: int = -1


@dataclass(frozen=True, slots=True)
class NumberSpec:
    """A scalar of one dtype."""

    text: str
    dtype: str


@dataclass(frozen=True, slots=True)
class TupleSpec:
    """A tuple of values."""

    text: str
    fields: tuple[Spec, ...]


@dataclass(frozen=True, slots=True)
class StringSpec:
    """A string."""

    text: str


@dataclass(frozen=True, slots=True)
class AnySpec:
    """Any value at all."""

    text: str


@dataclass(frozen=True, slots=True)
class CallableSpec:
    """A function: a closure of compiled code, or any Python callable."""

    text: str


Spec = TensorSpec | ShapeSpec | NumberSpec | TupleSpec | StringSpec | AnySpec | CallableSpec


@dataclass(frozen=True, slots=True)
class ParamSpec:
    """One parameter. ``written``: the function writes into it (destination passing)."""

    name: str
    spec: Spec
    written: bool = False


@dataclass(frozen=True, slots=True)
class FunctionInfo:
    """A function of an executable. ``symbol`` is its entry ``i32(ptr ctx, ptr args, ptr result)`` in the code.

    ``label`` is what messages call it, when it is reachable under another name. ``result_dtypes``: of a result which is
    one tensor of known dtype or, with ``in_tuple``, a tuple of such tensors; else None.
    """

    name: str
    symbol: str
    params: tuple[ParamSpec, ...]
    result: str = ""
    label: str = ""
    result_dtypes: tuple[str, ...] | None = None
    in_tuple: bool = False

    @property
    def title(self) -> str:
        """What messages call the function."""
        return self.label or self.name

    def __str__(self) -> str:
        params = ", ".join(f"{p.name}: {p.spec.text}" for p in self.params)
        return f"{self.name}({params})" + (f" -> {self.result}" if self.result else "")


def in_order(title: str, names: Sequence[str], args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """All arguments of a function in the order of its parameters; raises `ArgumentError` where names or number do not
    fit. ``title`` is what messages call the function."""
    if len(args) > len(names):
        raise wrong_count(title, names, len(args) + len(named))
    for name in named:
        if name not in names:
            raise ArgumentError(f"{title}: no parameter {name!r}{did_you_mean(name, names)}")
        if name in names[: len(args)]:
            raise ArgumentError(f"{title}: parameter {name}: given by position and by name")
    rest = names[len(args) :]
    absent = [name for name in rest if name not in named]
    if absent:
        raise ArgumentError(f"{title}: no argument for {', '.join(absent)}")
    return (*args, *(named[name] for name in rest))


def wrong_count(title: str, names: Sequence[str], count: int) -> ArgumentError:
    """The error of a call with another number of arguments."""
    plural = "" if len(names) == 1 else "s"
    return ArgumentError(f"{title}: expected {len(names)} argument{plural} ({', '.join(names)}), got {count}")


def header_words(spec: Spec) -> int:
    """How many 64-bit words of an activation a parameter's tensor header takes (0: the value is boxed)."""
    if isinstance(spec, TensorSpec) and spec.ndim >= 0 and spec.dtype is not None and not spec.kept:
        return abi.TENSOR_DIMS // 8 + spec.ndim
    return 0


Converter = Callable[[CallState, Any], None]


def make_converter(function: str, position: int, param: ParamSpec, header: int) -> Converter:
    """The function that checks one argument and puts it into an activation.

    ``header`` is the index of the first word of the parameter's tensor header, when it has one.
    """
    where = f"{function}: parameter {param.name}"
    if isinstance(param.spec, TensorSpec) and header_words(param.spec):
        if param.written:
            return _written_converter(where, position, param.spec, header)
        return _tensor_converter(where, position, param.spec, header)
    spec = param.spec

    def convert(activation: CallState, value: Any) -> None:
        address = _boxed(where, spec, value, activation)
        activation.put_boxed(position, address, value)

    return convert


# Where fields are in numpy's array objects: reading them there takes a tenth of the time of asking numpy. The offsets
# are checked against numpy's own words once, and not used where they do not hold (or without the GIL).
_DATA, _NDIM, _DIMS, _DTYPE, _FLAGS = 16, 24, 32, 56, 64
_word_at = ctypes.c_size_t.from_address


def _layout_holds() -> bool:
    if sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    if object.__basicsize__ != _DATA or ctypes.sizeof(ctypes.c_size_t) != 8 or sys.byteorder != "little":
        return False
    samples = [
        np.arange(5), np.zeros((2, 3), "f4")[1:], np.frombuffer(b"abcdefgh", "u1")[3:], np.ones((2, 3, 4), "f8").T,
        np.frombuffer(b"0123456789", "i4", count=2, offset=1),
    ]  # fmt: skip
    return all(_fields_match(array) for array in samples)


def _fields_match(array: NDArray) -> bool:
    address = id(array)
    dims = _word_at(address + _DIMS).value
    return (
        _word_at(address + 8).value == id(type(array))
        and _word_at(address + _DATA).value == array.ctypes.data
        and ctypes.c_int32.from_address(address + _NDIM).value == array.ndim
        and tuple(_word_at(dims + 8 * i).value for i in range(array.ndim)) == array.shape
        and _word_at(address + _DTYPE).value == id(array.dtype)
        and ctypes.c_int32.from_address(address + _FLAGS).value & 0x501 == array.flags.num & 0x501
    )


LAYOUT_HOLDS = _layout_holds()

if LAYOUT_HOLDS:

    def data_address(array: NDArray) -> int:
        """The address of an array's first element."""
        return _word_at(id(array) + _DATA).value

else:

    def data_address(array: NDArray) -> int:
        """The address of an array's first element."""
        address: int = array.ctypes.data
        return address


class FastPlan:
    """What ``bind_arrays`` of the native runtime needs to take all arguments of a function at once."""

    __slots__ = ("_rows", "address", "count", "dtypes", "pack_into")

    def __init__(self, specs: Sequence[TensorSpec], headers: Sequence[int]) -> None:
        self.dtypes = [dtypes.to_numpy(spec.dtype or "") for spec in specs]  # the addresses of these are in the rows
        rows: list[int] = []
        for spec, header, dtype in zip(specs, headers, self.dtypes, strict=True):
            rows += [8 * header, spec.ndim, id(dtype)]
        self._rows = (ctypes.c_int64 * len(rows))(*rows)
        self.address = ctypes.addressof(self._rows)
        self.count = len(self.dtypes)
        self.pack_into = struct.Struct(f"<{self.count}Q").pack_into


def fast_plan(params: Sequence[ParamSpec], headers: Sequence[int]) -> FastPlan | None:
    """The plan for a function that takes nothing but tensors of known dtype and rank, and writes into none."""
    specs = [p.spec for p in params if isinstance(p.spec, TensorSpec) and header_words(p.spec) and not p.written]
    if not LAYOUT_HOLDS or not specs or len(specs) != len(params):
        return None
    return FastPlan(specs, headers)


_COMPACT_ALIGNED = 0x101  # NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED


def _tensor_converter(where: str, position: int, spec: TensorSpec, header: int) -> Converter:
    assert spec.dtype is not None
    dtype = dtypes.to_numpy(spec.dtype)
    ndim = spec.ndim
    data_at = header + abi.TENSOR_DATA // 8
    nbytes_at = header + abi.TENSOR_NBYTES // 8
    dims_at = header + abi.TENSOR_DIMS // 8

    def convert(activation: CallState, value: Any) -> None:
        array = value if type(value) is np.ndarray else _array(where, spec, value)
        if activation.kind is None:
            activation.kind = kind_of(value)
        if (array.dtype is not dtype and array.dtype != dtype) or array.ndim != ndim:
            raise ArgumentError(f"{where}: expected {spec.text}, got {describe(array)}")
        if array.flags.num & _COMPACT_ALIGNED != _COMPACT_ALIGNED:
            array = _compacted(where, array)
        if array is not value:
            activation.keep[header] = array
        words = activation.words
        words[data_at] = data_address(array)
        words[nbytes_at] = array.nbytes
        at = dims_at
        for size in array.shape:
            words[at] = size
            at += 1

    return convert


def _written_converter(where: str, position: int, spec: TensorSpec, header: int) -> Converter:
    inner = _tensor_converter(where, position, spec, header)

    def convert(activation: CallState, value: Any) -> None:
        array = _array(where, spec, value)
        if not array.flags.writeable:
            raise ArgumentError(f"{where}: the function writes into it, but the array is read-only")
        if array.flags.num & _COMPACT_ALIGNED != _COMPACT_ALIGNED:
            raise ArgumentError(f"{where}: the function writes into it, but the array is not compact and aligned")
        inner(activation, value)

    return convert


def _array(where: str, spec: TensorSpec, value: Any) -> NDArray:
    if isinstance(value, Tensor):
        return value._array
    try:
        return np.asarray(as_array(value))
    except BufferError as error:
        raise ArgumentError(f"{where}: {error}") from None
    except TypeError:
        raise ArgumentError(f"{where}: expected {spec.text}, got {describe(value)}") from None
    except (RuntimeError, ValueError) as error:  # numpy's answers to a dtype it does not have, and to a bad capsule
        raise ArgumentError(f"{where}: expected {spec.text}: {error}") from None


def _compacted(where: str, array: NDArray) -> NDArray:
    try:
        return compact(array)
    except MemoryError as error:
        raise MemoryError(f"{where}: {error}") from None


def _boxed(where: str, spec: Spec, value: Any, activation: CallState) -> int:
    """A new native object for a value of any kind, checked as far as compiled code relies on it."""
    if isinstance(spec, NumberSpec):
        number = check_number(value, spec.dtype, where)
        rt = runtime()
        code = abi.dtype_code(spec.dtype)
        if isinstance(number, float):
            return _made(rt.float_new(number, code))
        return _made(rt.int_new(number - (1 << 64) if number >= 1 << 63 else number, code))
    if isinstance(spec, TensorSpec):
        array = _array(where, spec, value)
        if activation.kind is None:
            activation.kind = kind_of(value)
        if spec.dtype is not None and array.dtype != dtypes.to_numpy(spec.dtype):
            raise ArgumentError(f"{where}: expected {spec.text}, got {describe(array)}")
        if spec.ndim >= 0 and array.ndim != spec.ndim:
            raise ArgumentError(f"{where}: expected {spec.text}, got {describe(array)}")
        try:
            data = _compacted(where, array)
            return box_array(data, value, shared=data is array)
        except TypeError as error:
            raise ArgumentError(f"{where}: {error}") from None
    if isinstance(spec, ShapeSpec):
        if not isinstance(value, (tuple, list)) or not all(hasattr(v, "__index__") for v in value):
            raise ArgumentError(f"{where}: expected {spec.text}, got {describe(value)}")
        if spec.ndim >= 0 and len(value) != spec.ndim:
            raise ArgumentError(f"{where}: expected {spec.text}, got a shape of {len(value)} dimensions")
        try:
            return box_shape(tuple(v.__index__() for v in value))
        except OverflowError as error:
            raise ArgumentError(f"{where}: {error}") from None
    if isinstance(spec, TupleSpec):
        return _boxed_tuple(where, spec, value, activation)
    if isinstance(spec, StringSpec) and not isinstance(value, str):
        raise ArgumentError(f"{where}: expected a string, got {describe(value)}")
    if isinstance(spec, CallableSpec) and not callable(value):
        raise ArgumentError(f"{where}: expected a function, got {describe(value)}")
    if activation.kind is None and (isinstance(value, np.ndarray) or hasattr(value, "__dlpack__")):
        activation.kind = kind_of(value)
    try:
        return box_for(value, activation.executable)
    except (TypeError, BufferError, OverflowError) as error:
        raise ArgumentError(f"{where}: {error}") from None


def _boxed_tuple(where: str, spec: TupleSpec, value: Any, activation: CallState) -> int:
    if not isinstance(value, (tuple, list)) or len(value) != len(spec.fields):
        actual = f"a {type(value).__name__} of {len(value)}" if isinstance(value, (tuple, list)) else describe(value)
        raise ArgumentError(f"{where}: expected a tuple of {len(spec.fields)} fields, got {actual}")
    rt = runtime()
    address = _made(rt.tuple_new(len(value)))
    fields = (ctypes.c_uint64 * len(value)).from_address(address + abi.LIST_ITEMS)
    try:
        for i, (field_spec, item) in enumerate(zip(spec.fields, value, strict=True)):
            fields[i] = _boxed(f"{where}[{i}]", field_spec, item, activation)
    except BaseException:
        rt.decref(address)
        raise
    return address


def _made(address: int | None) -> int:
    if not address:
        raise MemoryError("out of memory")
    return address
