"""Floating-point operations on values of any float dtype.

float16, bfloat16 and the float8 kinds are computed in float32 and rounded after each operation, as numpy does. A
conversion that is no instruction of the target is made of integer operations: kernels call nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from supple.base import dtypes
from supple.base.target import Target
from supple.codegen import narrow_floats
from supple.codegen.kernel_builder import NAN, Builder, Value
from supple.codegen.kernel_state import State


def wide(dtype: str) -> str:
    """The dtype that arithmetic on ``dtype`` is done in."""
    return dtypes.vector("float32", dtypes.lanes(dtype)) if dtypes.is_narrow(dtype) else dtype


def widened(b: Builder, target: Target, value: Value) -> Value:
    """The value in the dtype that arithmetic is done in."""
    return value if wide(value.dtype) == value.dtype else resize(b, target, value, "float32")


def _rounded(state: State, value: Value, dtype: str) -> Value:
    return value if value.dtype == dtype else resize(state.builder, state.target, value, dtypes.element(dtype))


def arithmetic(name: str) -> Callable[[State, Any, Value, Value], Value]:
    """``fadd`` and its like."""

    def emit(state: State, _: Any, x: Value, y: Value) -> Value:
        b = state.builder
        return _rounded(state, b.op(name, widened(b, state.target, x), widened(b, state.target, y)), x.dtype)

    return emit


def extremum(name: str, compare: str) -> Callable[[State, Any, Value, Value], Value]:
    """The larger (``compare``: ``fcmp ogt``) or smaller of two values; NaN if either is, like numpy's, and as there
    either zero of two. ``name`` is LLVM's intrinsic, for targets that have it."""

    def of(b: Builder, x: Value, y: Value) -> Value:
        # the comparison fails where one is NaN, so what is left is to look at y; an instruction on x86 gives all of it
        # to a constant y. It is y, since in reductions it does not depend on the step before
        if not x.ref.startswith("%"):
            x, y = y, x
        found = b.select(b.compare(compare, y, x), y, x)
        is_number = not y.ref.startswith("%") and NAN not in y.ref
        return found if is_number else b.select(b.compare("fcmp uno", y, y), y, found)

    def emit(state: State, _: Any, x: Value, y: Value) -> Value:
        b = state.builder
        x_wide, y_wide = widened(b, state.target, x), widened(b, state.target, y)
        if state.target.has_maximum:
            return _rounded(state, b.intrinsic(name, x_wide.dtype, x_wide, y_wide), x.dtype)
        return _rounded(state, of(b, x_wide, y_wide), x.dtype)

    return emit


def through(function: Callable[..., Value]) -> Callable[..., Value]:
    """A function of float32 or float64 values (``f(builder, target, *values)``) for every float dtype."""

    def emit(state: State, _: Any, *args: Value) -> Value:
        b = state.builder
        values = [widened(b, state.target, a) if dtypes.is_float(a.dtype) else a for a in args]
        return _rounded(state, function(b, state.target, *values), args[0].dtype)

    return emit


def test(function: Callable[..., Value]) -> Callable[..., Value]:
    """A predicate of float32 or float64 values for every float dtype."""

    def emit(state: State, _: Any, *args: Value) -> Value:
        b = state.builder
        return function(b, state.target, *(widened(b, state.target, a) for a in args))

    return emit


def fma(state: State, _: Any, x: Value, y: Value, z: Value) -> Value:
    """``x * y + z``, rounded once on targets with the instruction, else after the product too."""
    b = state.builder
    x_wide, y_wide, z_wide = (widened(b, state.target, v) for v in (x, y, z))
    if state.target.has_fma:
        made = b.intrinsic("llvm.fma", x_wide.dtype, x_wide, y_wide, z_wide)
    else:
        made = b.op("fadd", b.op("fmul", x_wide, y_wide), z_wide)
    return _rounded(state, made, z.dtype)


def resize(b: Builder, target: Target, value: Value, scalar: str) -> Value:
    """A float in another float dtype, rounded to nearest even."""
    if dtypes.element(value.dtype) == scalar:
        return value
    if dtypes.row(value.dtype).is_coded:
        return resize(b, target, narrow_floats.widen(b, target, value), scalar)
    if dtypes.row(scalar).is_coded:  # from float64 by way of float32, as ml_dtypes does
        return narrow_floats.narrow(b, resize(b, target, value, "float32"), scalar)
    source, wanted = dtypes.row(value.dtype).bits, dtypes.row(scalar).bits
    if source == 16:
        single = b.convert("fpext", value, "float32") if target.has_half_conversion else _from_half(b, value)
        return resize(b, target, single, scalar)
    if wanted == 16:
        single = _to_odd(b, value) if source == 64 else value
        return b.convert("fptrunc", single, "float16") if target.has_half_conversion else _to_half(b, single)
    return b.convert("fpext" if wanted > source else "fptrunc", value, scalar)


def _to_odd(b: Builder, value: Value) -> Value:
    """float64 to float32 rounded to odd, so that a second rounding to float16 gives the nearest."""
    single = b.convert("fptrunc", value, "float32")
    back = b.convert("fpext", single, "float64")
    bits = b.convert("bitcast", single, "int32")
    exact = b.compare("fcmp oeq", back, value)
    is_nan = b.compare("fcmp uno", value, value)
    # rounded away from zero: step back, to the truncated value; then set the last bit
    away = b.compare("fcmp ogt", _abs(b, back), _abs(b, value))
    step = b.convert("zext", away, "int32")
    odd = b.op("or", b.op("sub", bits, step), b.const(1, bits.dtype))
    keep = b.op("or", exact, is_nan)
    return b.convert("bitcast", b.select(keep, bits, odd), "float32")


def _abs(b: Builder, value: Value) -> Value:
    return b.intrinsic("llvm.fabs", value.dtype, value)


def _from_half(b: Builder, value: Value) -> Value:
    """float16 to float32 by integer operations: exact, NaN stays NaN."""
    bits = b.convert("zext", b.convert("bitcast", value, "int16"), "int32")

    def const(number: int) -> Value:
        return b.const(number, bits.dtype)

    sign = b.op("shl", b.op("and", bits, const(0x8000)), const(16))
    magnitude = b.op("and", bits, const(0x7FFF))
    normal = b.op("add", b.op("shl", magnitude, const(13)), const(112 << 23))
    special = b.op("or", b.op("shl", magnitude, const(13)), const(0x7F800000))
    # a subnormal is its integer value times 2**-24, which float32 holds exactly
    small_float = b.op("fmul", b.convert("uitofp", magnitude, "float32"), b.const(2.0**-24, _float_of(bits)))
    small = b.convert("bitcast", small_float, "int32")
    result = b.select(b.compare("icmp ult", magnitude, const(0x0400)), small, normal)
    result = b.select(b.compare("icmp uge", magnitude, const(0x7C00)), special, result)
    return b.convert("bitcast", b.op("or", result, sign), "float32")


def _float_of(bits: Value) -> str:
    return dtypes.vector("float32", dtypes.lanes(bits.dtype))


def _to_half(b: Builder, value: Value) -> Value:
    """float32 to float16 by integer operations, to nearest even."""
    bits = b.convert("bitcast", value, "int32")

    def const(number: int) -> Value:
        return b.const(number, bits.dtype)

    sign = b.op("and", b.op("lshr", bits, const(16)), const(0x8000))
    magnitude = b.op("and", bits, const(0x7FFFFFFF))
    # normal results: add half of the last kept place, less one when that place is even
    even = b.op("and", b.op("lshr", magnitude, const(13)), const(1))
    rounded = b.op("add", b.op("add", magnitude, const(0xFFF)), even)
    normal = b.op("lshr", b.op("sub", rounded, const(112 << 23)), const(13))
    # subnormal results: adding 0.5 leaves the value in units of 2**-24 in the low bits, rounded by the addition
    half = b.const(0.5, _float_of(bits))
    shifted = b.op("fadd", b.convert("bitcast", magnitude, "float32"), half)
    small = b.op("sub", b.convert("bitcast", shifted, "int32"), const(0x3F000000))
    result = b.select(b.compare("icmp ult", magnitude, const(113 << 23)), small, normal)
    result = b.select(b.compare("icmp uge", magnitude, const(0x477FF000)), const(0x7C00), result)
    result = b.select(b.compare("icmp ugt", magnitude, const(0x7F800000)), const(0x7E00), result)
    narrow = b.convert("trunc", b.op("or", result, sign), "int16")
    return b.convert("bitcast", narrow, "float16")
