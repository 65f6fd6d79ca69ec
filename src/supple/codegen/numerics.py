"""Functions of floating-point values as LLVM IR: no library calls, the same code for scalars and vectors.

Each takes ``(builder, target, *values)`` with float32 or float64 values (scalars or vectors of equal lanes). NaN and
infinities give what numpy gives; denormals are kept. Errors, in units of the last place, as tests measure them:
float32 exp, exp2, log, erf at most 2, tanh and sigmoid at most 2.6, the other float32 functions at most 1 (they are
computed in float64); float64 at most 4 (pow 16).

Sine, cosine and tangent are this accurate for every argument, next to the multiples of pi/2 too.
"""

from __future__ import annotations

import math

from supple.base.target import Target
from supple.codegen import numerics_circular as circular
from supple.codegen import numerics_exp as exponential
from supple.codegen import numerics_more as more
from supple.codegen.kernel_builder import Builder, Value
from supple.codegen.numerics_base import Function, Math, ceil, floor, function, in_double, rint, trunc


def isnan(b: Builder, _: Target, x: Value) -> Value:
    """Whether x is not a number."""
    return b.compare("fcmp uno", x, x)


def isinf(b: Builder, _: Target, x: Value) -> Value:
    """Whether x is an infinity."""
    return b.compare("fcmp oeq", b.intrinsic("llvm.fabs", x.dtype, x), b.const(math.inf, x.dtype))


def isfinite(b: Builder, _: Target, x: Value) -> Value:
    """Whether x is a number and no infinity."""
    return b.compare("fcmp one", b.intrinsic("llvm.fabs", x.dtype, x), b.const(math.inf, x.dtype))


FUNCTIONS: dict[str, Function] = {
    "exp": function(exponential.exp_of),
    "exp2": function(exponential.exp2_of),
    "exp10": in_double(exponential.exp10_of),
    "expm1": in_double(exponential.expm1_of),
    "log": function(exponential.log_of),
    "log2": in_double(exponential.log_base_of(1 / math.log(2), 1.0)),
    "log10": in_double(exponential.log_base_of(1 / math.log(10), math.log10(2))),
    "log1p": in_double(exponential.log1p_of),
    "sqrt": function(Math.sqrt),
    "rsqrt": function(more.rsqrt_of),
    "sigmoid": function(exponential.sigmoid_of),
    "tanh": function(exponential.tanh_of),
    "sinh": in_double(exponential.sinh_of),
    "cosh": in_double(exponential.cosh_of),
    "asinh": in_double(exponential.asinh_of),
    "acosh": in_double(exponential.acosh_of),
    "atanh": in_double(exponential.atanh_of),
    "sin": in_double(circular.circular_of(0)),
    "cos": in_double(circular.circular_of(1)),
    "tan": in_double(circular.tan_of),
    "asin": in_double(more.asin_of),
    "acos": in_double(more.acos_of),
    "atan": in_double(more.atan_of),
    "atan2": in_double(more.atan2_of),
    "erf": function(exponential.erf_of),
    "pow": in_double(more.pow_of),
    "fmod": more.fmod,
    "hypot": in_double(more.hypot_of),
    "ldexp": in_double(more.ldexp_of),
    "copysign": function(Math.copysign),
    "fabs": function(Math.abs),
    "floor": floor,
    "ceil": ceil,
    "trunc": trunc,
    "round": rint,
    "nearbyint": rint,
}
"""Intrinsics by name. ``nextafter`` is not here: it works on the bits of its operands' own dtype (``kernel_expr``)."""

TESTS: dict[str, Function] = {"isnan": isnan, "isinf": isinf, "isfinite": isfinite}
