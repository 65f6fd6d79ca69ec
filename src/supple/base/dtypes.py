"""Data types, one row each. A dtype is written as its name (``"float32"``); vectors append lanes (``"float32x8"``)."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.base.registry import did_you_mean


@dataclass(frozen=True, slots=True)
class DType:
    """One scalar type.

    ``kind`` is ``"int"``, ``"uint"``, ``"float"``, ``"bool"`` or ``"handle"``; ``dlpack`` is DLPack's type code;
    ``numpy`` is numpy's character code with the size (native byte order), or None when numpy has no such type.
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
)

DTYPES: dict[str, DType] = {row.name: row for row in _ROWS}
_BY_NUMPY = {np.dtype(row.numpy): row.name for row in _ROWS if row.numpy is not None}
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
    if name == "bfloat16" or name.startswith(("float8", "float6", "float4")):
        raise TypeError(f"dtype {name!r} is not supported yet; the floats are float16, float32 and float64")
    raise TypeError(f"unknown dtype {name!r}{did_you_mean(name, DTYPES)}")


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


def is_bool(name: str) -> bool:
    return row(name).kind == "bool"


def nbytes(name: str) -> int:
    """Bytes of one value of the dtype, lanes included."""
    return row(name).nbytes * lanes(name)


def to_numpy(name: str) -> np.dtype[np.generic]:
    """numpy's dtype of that name; raises ``TypeError`` when there is none."""
    code = row(name).numpy
    if code is None:
        raise TypeError(f"dtype {name!r} has no numpy counterpart")
    return np.dtype(code)


def from_numpy(dtype: object) -> str:
    """Supple's name of a numpy dtype; raises ``TypeError`` for those that have none (strings, byte-swapped)."""
    name = _BY_NUMPY.get(np.dtype(dtype))  # type: ignore[call-overload]
    if name is None:
        raise TypeError(f"numpy dtype {np.dtype(dtype)!r} is not supported")  # type: ignore[call-overload]
    return name


def convert(value: object, name: str) -> np.ndarray[Any, Any]:
    """``value`` in another dtype, with Supple's meaning of a cast: integers wrap, float to integer saturates and NaN
    becomes 0, anything but 0 is true."""
    values, target = np.asarray(value), to_numpy(name)
    with np.errstate(all="ignore"):
        if values.dtype.kind != "f" or target.kind not in "iu":
            return values.astype(target)
        info: Any = np.iinfo(target)
        whole = np.trunc(np.where(np.isnan(values), np.zeros((), values.dtype), values).astype("float64"))
        low, high = whole <= float(info.min), whole >= float(info.max)
        inside = np.where(low | high, 0.0, whole).astype(target)
        return np.where(low, target.type(info.min), np.where(high, target.type(info.max), inside))
