"""Data types, one row each. A dtype is written as its name (``"float32"``); vectors append lanes (``"float32x8"``)."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from supple.base.errors import UnknownDtypeError
from supple.base.registry import did_you_mean


@dataclass(frozen=True, slots=True)
class DType:
    """One scalar type.

    ``kind`` is ``"int"``, ``"uint"``, ``"float"``, ``"bool"`` or ``"handle"``; ``dlpack`` is DLPack's type code;
    ``numpy`` is numpy's character code with the size (native byte order) or the name that ml_dtypes registers, or
    None when numpy has no such type. ``llvm`` is the type of a value in LLVM: floats that LLVM shall never compute
    with are integers there.
    """

    name: str
    kind: str
    bits: int
    dlpack: int
    numpy: str | None
    llvm: str

    @property
    def nbytes(self) -> int:
        """Bytes of one element in memory (a bool takes one)."""
        return (self.bits + 7) // 8

    @property
    def is_coded(self) -> bool:
        """Whether it is a float that machine code handles as an integer: bfloat16 and the float8 kinds."""
        return self.kind == "float" and self.llvm[0] == "i"


_ROWS = (
    DType("bool", "bool", 1, 6, "?", "i8"),
    DType("int8", "int", 8, 0, "i1", "i8"),
    DType("int16", "int", 16, 0, "i2", "i16"),
    DType("int32", "int", 32, 0, "i4", "i32"),
    DType("int64", "int", 64, 0, "i8", "i64"),
    DType("uint8", "uint", 8, 1, "u1", "i8"),
    DType("uint16", "uint", 16, 1, "u2", "i16"),
    DType("uint32", "uint", 32, 1, "u4", "i32"),
    DType("uint64", "uint", 64, 1, "u8", "i64"),
    DType("float16", "float", 16, 2, "f2", "half"),
    DType("float32", "float", 32, 2, "f4", "float"),
    DType("float64", "float", 64, 2, "f8", "double"),
    DType("handle", "handle", 64, 3, None, "ptr"),
    DType("bfloat16", "float", 16, 4, "bfloat16", "i16"),
    DType("float8_e3m4", "float", 8, 7, "float8_e3m4", "i8"),
    DType("float8_e4m3", "float", 8, 8, "float8_e4m3", "i8"),
    DType("float8_e4m3b11fnuz", "float", 8, 9, "float8_e4m3b11fnuz", "i8"),
    DType("float8_e4m3fn", "float", 8, 10, "float8_e4m3fn", "i8"),
    DType("float8_e4m3fnuz", "float", 8, 11, "float8_e4m3fnuz", "i8"),
    DType("float8_e5m2", "float", 8, 12, "float8_e5m2", "i8"),
    DType("float8_e5m2fnuz", "float", 8, 13, "float8_e5m2fnuz", "i8"),
    DType("float8_e8m0fnu", "float", 8, 14, "float8_e8m0fnu", "i8"),
)

DTYPES: dict[str, DType] = {row.name: row for row in _ROWS}
_NUMPY: dict[str, np.dtype[np.generic]] = {
    row.name: np.dtype(getattr(ml_dtypes, row.numpy) if row.is_coded else row.numpy)
    for row in _ROWS
    if row.numpy is not None
}
_BY_NUMPY = {dtype: name for name, dtype in _NUMPY.items()}
FLOAT_SCALARS: tuple[type, ...] = (
    float, np.floating, *(_NUMPY[row.name].type for row in _ROWS if row.is_coded)
)  # fmt: skip
"""Python's and numpy's classes of a single floating-point number."""
_VECTOR = re.compile(r"^(\w+?)x(\d+)$")


@functools.lru_cache(maxsize=4096)
def check_dtype(name: str) -> str:
    """The canonical spelling of a dtype name; raises ``TypeError`` with a suggestion for an unknown one."""
    if not isinstance(name, str):
        raise TypeError(f"expected a dtype name such as 'float32', got {name!r}")
    if name in DTYPES:
        return name
    match = _VECTOR.match(name)
    if match and match[1] in DTYPES and int(match[2]) >= 1:
        return name if int(match[2]) > 1 else match[1]
    if name.startswith(("float6", "float4")):
        raise TypeError(f"dtype {name!r} is not supported: the smallest floats are the float8 kinds, of a byte each")
    raise UnknownDtypeError(f"unknown dtype {name!r}{did_you_mean(name, DTYPES)}")


@functools.lru_cache(maxsize=4096)
def row(name: str) -> DType:
    """The row of a scalar dtype, or of a vector's element."""
    return DTYPES[element(check_dtype(name))]


@functools.lru_cache(maxsize=4096)
def lanes(name: str) -> int:
    """1 for a scalar dtype, the number of elements for a vector."""
    match = None if name in DTYPES else _VECTOR.match(name)
    return int(match[2]) if match else 1


@functools.lru_cache(maxsize=4096)
def element(name: str) -> str:
    """The scalar dtype of a vector dtype (``"float32x8"`` -> ``"float32"``)."""
    if name in DTYPES:
        return name
    match = _VECTOR.match(name)
    return match[1] if match else name


def vector(name: str, count: int) -> str:
    """The dtype of ``count`` elements of ``name`` side by side."""
    return element(name) if count == 1 else f"{element(name)}x{count}"


def is_int(name: str) -> bool:
    """Signed or unsigned integer (not bool)."""
    return row(name).kind in ("int", "uint")


def is_float(name: str) -> bool:
    return row(name).kind == "float"


def is_narrow(name: str) -> bool:
    """A float of fewer than 32 bits: each operation is computed in float32 and rounded once."""
    dtype = row(name)
    return dtype.kind == "float" and dtype.bits < 32


def accumulator(name: str) -> str:
    """The dtype that sums, and operators of several steps, are computed in: float32 for narrower floats."""
    return "float32" if is_narrow(name) else name


def is_bool(name: str) -> bool:
    return row(name).kind == "bool"


def fits(value: int, name: str) -> bool:
    """Whether an integer is a value of an integer dtype (of bool: 0 or 1)."""
    low, high = int_range(name)
    return low <= value <= high


def nbytes(name: str) -> int:
    """Bytes of one value of the dtype, lanes included."""
    return row(name).nbytes * lanes(name)


def to_numpy(name: str) -> np.dtype[np.generic]:
    """numpy's dtype of that name; raises ``TypeError`` when there is none."""
    found = _NUMPY.get(row(name).name)
    if found is None:
        raise TypeError(f"dtype {name!r} has no numpy counterpart")
    return found


def from_numpy(dtype: object) -> str:
    """Supple's name of a numpy dtype; raises ``TypeError`` for those that have none (strings, byte-swapped)."""
    name = _BY_NUMPY.get(np.dtype(dtype))  # type: ignore[call-overload]
    if name is None:
        raise TypeError(f"numpy dtype {np.dtype(dtype)!r} is not supported")  # type: ignore[call-overload]
    return name


def is_float_array(value: object) -> bool:
    """Whether an array (or numpy scalar) holds floats. numpy's own ``dtype.kind`` calls bfloat16 a void."""
    dtype = np.asarray(value).dtype
    return dtype.kind == "f" or (dtype in _BY_NUMPY and is_float(_BY_NUMPY[dtype]))


def widened(value: object) -> np.ndarray[Any, Any]:
    """An array of floats narrower than float32 as float32 (exact); any other as it is."""
    values = np.asarray(value)
    name = _BY_NUMPY.get(values.dtype)
    if name is None or not is_narrow(name):
        return values
    with np.errstate(all="ignore"):  # numpy warns of NaN that becomes another NaN
        return values.astype("float32")


def finfo(name: str) -> Any:
    """The limits of a float dtype, as numpy's ``finfo`` gives them."""
    limits: Any = ml_dtypes.finfo
    return limits(to_numpy(name))


def extreme(name: str, low: bool) -> float:
    """The lowest or highest value of a float dtype: an infinity, or the last number of a dtype without infinities."""
    limits = finfo(name)
    infinite = to_numpy(name).type(float("-inf") if low else float("inf"))
    if not bool(np.isinf(infinite)):
        return float(limits.min if low else limits.max)
    return float(infinite)


@functools.lru_cache(maxsize=4096)
def int_range(name: str) -> tuple[int, int]:
    """The least and the greatest value of an integer or bool dtype."""
    dtype = row(name)
    if dtype.kind == "bool":
        return 0, 1
    if dtype.kind == "uint":
        return 0, (1 << dtype.bits) - 1
    return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1


def convert(value: object, name: str) -> np.ndarray[Any, Any]:
    """``value`` in another dtype, with Supple's meaning of a cast: integers wrap, float to integer saturates and NaN
    becomes 0, anything but 0 is true."""
    values, target = np.asarray(value), to_numpy(name)
    with np.errstate(all="ignore"):
        if not is_float_array(values) or target.kind not in "iu":
            if values.dtype.isbuiltin != 1 and values.dtype != target:  # not every pair has a cast of its own
                values = widened(values)
            return values.astype(target)
        values = widened(values)
        info: Any = np.iinfo(target)
        whole = np.trunc(np.where(np.isnan(values), np.zeros((), values.dtype), values).astype("float64"))
        low, high = whole <= float(info.min), whole >= float(info.max)
        inside = np.where(low | high, 0.0, whole).astype(target)
        return np.where(low, target.type(info.min), np.where(high, target.type(info.max), inside))


class DataType(str):
    """A dtype as Relax's users hold it: its name, a ``str``, with its parts. Raises ``TypeError`` for an unknown
    one."""

    __slots__ = ()

    def __new__(cls, name: object) -> DataType:
        return super().__new__(cls, check_dtype(str(name) if isinstance(name, str) else from_numpy(name)))

    @property
    def bits(self) -> int:
        """Bits of an element in memory (a bool takes 8)."""
        return row(self).nbytes * 8

    @property
    def lanes(self) -> int:
        """1, or the number of elements of a vector."""
        return lanes(self)

    @property
    def type_code(self) -> int:
        """DLPack's number of the kind."""
        return row(self).dlpack

    @property
    def itemsize(self) -> int:
        """Bytes of a value, a vector's together."""
        return row(self).nbytes * lanes(self)

    def with_lanes(self, lanes: int) -> DataType:
        """The vector of that many elements of this dtype's."""
        return DataType(element(self) if lanes == 1 else vector(element(self), lanes))
