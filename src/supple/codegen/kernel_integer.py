"""Integer operations with the meaning of the language: nothing here can trap, and nothing is undefined.

``x // 0`` and ``x % 0`` are 0, the least integer divided by -1 wraps, shifts by the width or more give 0 or -1.
"""

from __future__ import annotations

from collections.abc import Callable

from supple.base import dtypes
from supple.codegen.kernel_builder import Builder, Value


def widen(b: Builder, value: Value) -> Value:
    """An integer or bool as int64."""
    row = dtypes.row(value.dtype)
    if row.bits == 64:
        return Value(value.ref, dtypes.vector("int64", dtypes.lanes(value.dtype)), value.depth)
    return b.convert("sext" if row.kind == "int" else "zext", value, "int64")


def _is_signed(dtype: str) -> bool:
    return dtypes.row(dtype).kind == "int"


def _literal(value: Value) -> int | None:
    text = value.ref
    return int(text) if text.lstrip("-").isdigit() else None


def _safe_divisor(b: Builder, x: Value, divisor: Value) -> tuple[Value, Value]:
    """A divisor that cannot trap, and whether the divisor was 0."""
    zero, one = b.const(0, x.dtype), b.const(1, x.dtype)
    is_zero = b.compare("icmp eq", divisor, zero)
    if not _is_signed(x.dtype):
        return b.select(is_zero, one, divisor), is_zero
    least = b.const(-(1 << (dtypes.row(x.dtype).bits - 1)), x.dtype)
    wraps = b.op("and", b.compare("icmp eq", x, least), b.compare("icmp eq", divisor, b.const(-1, x.dtype)))
    return b.select(b.op("or", is_zero, wraps), one, divisor), is_zero


def truncdiv(b: Builder, x: Value, divisor: Value) -> Value:
    """The quotient rounded towards zero."""
    name = "sdiv" if _is_signed(x.dtype) else "udiv"
    if (_literal(divisor) or 0) > 0:
        return b.op(name, x, divisor)
    safe, is_zero = _safe_divisor(b, x, divisor)
    return b.select(is_zero, b.const(0, x.dtype), b.op(name, x, safe))


def truncmod(b: Builder, x: Value, divisor: Value) -> Value:
    """The remainder of `truncdiv`, with the sign of ``x``."""
    name = "srem" if _is_signed(x.dtype) else "urem"
    if (_literal(divisor) or 0) > 0:
        return b.op(name, x, divisor)
    safe, is_zero = _safe_divisor(b, x, divisor)
    return b.select(is_zero, b.const(0, x.dtype), b.op(name, x, safe))


def _crosses(b: Builder, remainder: Value, divisor: Value) -> Value:
    """Whether truncation and floor differ: the remainder is not 0 and its sign is not the divisor's."""
    zero = b.const(0, remainder.dtype)
    some = b.compare("icmp ne", remainder, zero)
    signs = b.compare("icmp slt", b.op("xor", remainder, divisor), zero)
    return b.op("and", some, signs)


def floordiv(b: Builder, x: Value, divisor: Value) -> Value:
    """The quotient rounded down."""
    if not _is_signed(x.dtype):
        return truncdiv(b, x, divisor)
    if (_literal(divisor) or 0) > 0:
        power = (_literal(divisor) or 0).bit_length() - 1
        if 1 << power == _literal(divisor):
            return b.op("ashr", x, b.const(power, x.dtype))
        quotient, remainder = b.op("sdiv", x, divisor), b.op("srem", x, divisor)
        down = b.compare("icmp slt", remainder, b.const(0, x.dtype))
    else:
        safe, is_zero = _safe_divisor(b, x, divisor)
        quotient = b.select(is_zero, b.const(0, x.dtype), b.op("sdiv", x, safe))
        remainder = b.select(is_zero, b.const(0, x.dtype), b.op("srem", x, safe))
        down = _crosses(b, remainder, divisor)
    return b.op("add", quotient, b.convert("sext", down, dtypes.element(x.dtype)))


def floormod(b: Builder, x: Value, divisor: Value) -> Value:
    """The remainder of `floordiv`, with the sign of the divisor."""
    if not _is_signed(x.dtype):
        return truncmod(b, x, divisor)
    if (_literal(divisor) or 0) > 0:
        value = _literal(divisor) or 0
        if value & (value - 1) == 0:
            return b.op("and", x, b.const(value - 1, x.dtype))
        remainder = b.op("srem", x, divisor)
        up = b.compare("icmp slt", remainder, b.const(0, x.dtype))
    else:
        remainder = truncmod(b, x, divisor)
        up = _crosses(b, remainder, divisor)
    return b.select(up, b.op("add", remainder, divisor), remainder)


def minimum(b: Builder, x: Value, y: Value) -> Value:
    """The smaller of two integers."""
    return b.intrinsic("llvm.smin" if _is_signed(x.dtype) else "llvm.umin", x.dtype, x, y)


def maximum(b: Builder, x: Value, y: Value) -> Value:
    """The greater of two integers."""
    return b.intrinsic("llvm.smax" if _is_signed(x.dtype) else "llvm.umax", x.dtype, x, y)


def shift(b: Builder, x: Value, count: Value, left: bool) -> Value:
    """A shift; a count outside ``[0, width)`` gives 0, or -1 for a right shift of a negative value."""
    bits = dtypes.row(x.dtype).bits
    valid = b.compare("icmp ult", count, b.const(bits, x.dtype))
    safe = b.op("and", count, b.const(bits - 1, x.dtype))
    name = "shl" if left else "ashr" if _is_signed(x.dtype) else "lshr"
    beyond = b.const(0, x.dtype)
    if name == "ashr":
        beyond = b.op("ashr", x, b.const(bits - 1, x.dtype))
    return b.select(valid, b.op(name, x, safe), beyond)


POLY_OPERATIONS: dict[str, Callable[[Builder, Value, Value], Value]] = {
    "floordiv": floordiv,
    "floormod": floormod,
    "min": minimum,
    "max": maximum,
}
"""How the operations of the canonical form are computed."""
