"""Functions of floating-point values as LLVM IR: no library calls, the same code for scalars and vectors.

Each takes ``(builder, target, *values)`` with float32 or float64 values (scalars or vectors of equal lanes). NaN and
infinities give what numpy gives; denormals are kept. Errors, in units of the last place, as tests measure them:
float32 exp, exp2, log, log1p, expm1, erf, sin and cos at most 2, hyperbolic functions, their inverses, sigmoid, asin
and acos at most 2.6, the other float32 functions at most 1 (they are computed in float64, and so are sin and cos where
the processor has no fused multiply-add); float64 at most 4 (pow 16).

Sine, cosine and tangent are this accurate for every argument, next to the multiples of pi/2 too.
"""

from __future__ import annotations

import math

from supple.base.target import Target
from supple.codegen import numerics_circular as circular
from supple.codegen import numerics_exp as exponential
from supple.codegen import numerics_more as more
from supple.codegen.kernel_builder import Builder, Value
from supple.codegen.numerics_base import Function, Math, by_width, ceil, floor, function, in_double, rint, trunc


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
    "expm1": function(exponential.expm1_of),
    "log": function(exponential.log_of),
    "log2": in_double(exponential.log_base_of(1 / math.log(2), 1.0)),
    "log10": in_double(exponential.log_base_of(1 / math.log(10), math.log10(2))),
    "log1p": function(exponential.log1p_of),
    "sqrt": function(Math.sqrt),
    "rsqrt": function(more.rsqrt_of),
    "sigmoid": function(exponential.sigmoid_of),
    "tanh": function(exponential.tanh_of),
    "sinh": function(exponential.sinh_of),
    "cosh": function(exponential.cosh_of),
    "asinh": function(exponential.asinh_of),
    "acosh": function(exponential.acosh_of),
    "atanh": function(exponential.atanh_of),
    "sin": circular.circular_of(0),
    "cos": circular.circular_of(1),
    "tan": in_double(circular.tan_of),
    "asin": function(more.asin_of),
    "acos": function(more.acos_of),
    "atan": in_double(more.atan_of),
    "atan2": in_double(more.atan2_of),
    "erf": function(exponential.erf_of),
    "pow": by_width(in_double(more.pow_single), function(more.pow_of)),
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
