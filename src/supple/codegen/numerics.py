"""Functions of one or two floating-point values as LLVM IR: no library calls.

Each takes ``(builder, target, *values)`` with float32 or float64 values (scalars or vectors of equal lanes).
"""

from __future__ import annotations

from collections.abc import Callable

from supple.base import dtypes
from supple.base.target import Target
from supple.codegen.kernel_builder import Builder, Value


def _intrinsic(name: str) -> Callable[..., Value]:
    return lambda b, _, *values: b.intrinsic(name, values[0].dtype, *values)


def _like(x: Value, scalar: str) -> str:
    return dtypes.vector(scalar, dtypes.lanes(x.dtype))


def _rounding(name: str) -> Callable[[Builder, Target, Value], Value]:
    """floor, ceil, trunc, round to even: one instruction, or through integers where values are small enough."""

    def emit(b: Builder, target: Target, x: Value) -> Value:
        if target.has_rounding:
            return b.intrinsic(name, x.dtype, x)
        bits = dtypes.row(x.dtype).bits
        limit = b.const(2.0 ** (23 if bits == 32 else 52), x.dtype)  # from here on every value is an integer
        magnitude = b.intrinsic("llvm.fabs", x.dtype, x)
        small = b.compare("fcmp olt", magnitude, limit)
        if name == "llvm.rint":
            result = b.op("fsub", b.op("fadd", magnitude, limit), limit)
        else:
            safe = b.select(small, x, b.const(0, x.dtype))
            result = b.convert("sitofp", b.convert("fptosi", safe, f"int{bits}"), f"float{bits}")
            one, zero = b.const(1, x.dtype), b.const(0, x.dtype)
            if name == "llvm.floor":
                result = b.op("fsub", result, b.select(b.compare("fcmp ogt", result, x), one, zero))
            if name == "llvm.ceil":
                result = b.op("fadd", result, b.select(b.compare("fcmp olt", result, x), one, zero))
        signed = b.intrinsic("llvm.copysign", x.dtype, result, x)
        return b.select(small, signed, x)

    return emit


floor = _rounding("llvm.floor")
ceil = _rounding("llvm.ceil")
trunc = _rounding("llvm.trunc")
rint = _rounding("llvm.rint")
sqrt = _intrinsic("llvm.sqrt")
fabs = _intrinsic("llvm.fabs")
copysign = _intrinsic("llvm.copysign")


def fmod(b: Builder, target: Target, x: Value, y: Value) -> Value:
    from supple.base.errors import NotSupportedError
    raise NotSupportedError("native code for the remainder of floats is not supported")


floordiv = fmod
floormod = fmod


def isnan(b: Builder, _: Target, x: Value) -> Value:
    """Whether x is not a number."""
    return b.compare("fcmp uno", x, x)


def isinf(b: Builder, _: Target, x: Value) -> Value:
    """Whether x is an infinity."""
    return b.compare("fcmp oeq", b.intrinsic("llvm.fabs", x.dtype, x), b.const(float("inf"), x.dtype))


def isfinite(b: Builder, _: Target, x: Value) -> Value:
    """Whether x is a number and no infinity."""
    return b.compare("fcmp one", b.intrinsic("llvm.fabs", x.dtype, x), b.const(float("inf"), x.dtype))


def rsqrt(b: Builder, _: Target, x: Value) -> Value:
    """``1 / sqrt(x)``, each rounded."""
    return b.op("fdiv", b.const(1, x.dtype), b.intrinsic("llvm.sqrt", x.dtype, x))


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "sqrt": sqrt,
    "rsqrt": rsqrt,
    "fabs": fabs,
    "copysign": copysign,
    "floor": floor,
    "ceil": ceil,
    "trunc": trunc,
    "round": rint,
    "nearbyint": rint,
}
TESTS: dict[str, Callable[..., Value]] = {"isnan": isnan, "isinf": isinf, "isfinite": isfinite}
