"""Arithmetic in which functions of floats are written, and rounding to integers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from supple.base import dtypes
from supple.base.target import Target
from supple.codegen.kernel_builder import Builder, Value, llvm_type, suffix

Function = Callable[..., Value]

SIDE_BY_SIDE = 9
"""Coefficients of a polynomial whose even and odd powers are summed side by side."""


class Math:
    """Arithmetic in one dtype: constants follow the dtype of the values, multiply-adds the target."""

    def __init__(self, b: Builder, target: Target, dtype: str) -> None:
        self.b = b
        self.target = target
        self.dtype = dtype
        self.bits = dtypes.row(dtype).bits
        self.int_dtype = dtypes.vector(f"int{self.bits}", dtypes.lanes(dtype))
        self.mantissa = 23 if self.bits == 32 else 52
        self.bias = 127 if self.bits == 32 else 1023

    def c(self, value: float) -> Value:
        """A constant."""
        return self.b.const(value, self.dtype)

    def i(self, value: int) -> Value:
        """An integer constant as wide as the floats."""
        return self.b.const(value, self.int_dtype)

    def add(self, x: Value, y: Value) -> Value:
        return self.b.op("fadd", x, y)

    def sub(self, x: Value, y: Value) -> Value:
        return self.b.op("fsub", x, y)

    def mul(self, x: Value, y: Value) -> Value:
        return self.b.op("fmul", x, y)

    def div(self, x: Value, y: Value) -> Value:
        return self.b.op("fdiv", x, y)

    def mad(self, x: Value, y: Value, z: Value) -> Value:
        """``x * y + z``, fused where the target can."""
        if self.target.has_fma:
            return self.b.intrinsic("llvm.fma", self.dtype, x, y, z)
        return self.add(self.mul(x, y), z)

    def poly(self, x: Value, coefficients: Sequence[float]) -> Value:
        """A polynomial, the highest power first: by Horner's rule; in float32, where it is long, the even and the odd
        powers side by side, since a processor that waits for one step after the other runs out of others to do."""
        if self.bits == 32 and len(coefficients) >= SIDE_BY_SIDE:
            square, rising = self.mul(x, x), tuple(reversed(coefficients))
            even, odd = (self._horner(square, tuple(reversed(rising[first::2]))) for first in (0, 1))
            return self.mad(odd, x, even)
        return self._horner(x, coefficients)

    def _horner(self, x: Value, coefficients: Sequence[float]) -> Value:
        total = self.c(coefficients[0])
        for coefficient in coefficients[1:]:
            total = self.mad(total, x, self.c(coefficient))
        return total

    def lt(self, x: Value, y: Value) -> Value:
        return self.b.compare("fcmp olt", x, y)

    def gt(self, x: Value, y: Value) -> Value:
        return self.b.compare("fcmp ogt", x, y)

    def eq(self, x: Value, y: Value) -> Value:
        return self.b.compare("fcmp oeq", x, y)

    def select(self, condition: Value, x: Value, y: Value) -> Value:
        return self.b.select(condition, x, y)

    def abs(self, x: Value) -> Value:
        return self.b.intrinsic("llvm.fabs", self.dtype, x)

    def sqrt(self, x: Value) -> Value:
        return self.b.intrinsic("llvm.sqrt", self.dtype, x)

    def copysign(self, x: Value, sign: Value) -> Value:
        # by bits: LLVM turns its own copysign followed by a conversion into a library call on some targets
        top = -(1 << (self.bits - 1))
        kept = self.b.op("and", self.to_bits(x), self.i(~top))
        return self.from_bits(self.b.op("or", kept, self.b.op("and", self.to_bits(sign), self.i(top))))

    def to_bits(self, x: Value) -> Value:
        return self.b.convert("bitcast", x, f"int{self.bits}")

    def from_bits(self, x: Value) -> Value:
        return self.b.convert("bitcast", x, f"float{self.bits}")

    def power_of_two(self, n: Value) -> Value:
        """``2**n`` for an integer ``n`` within the exponents of normal numbers."""
        return self.from_bits(self.b.op("shl", self.b.op("add", n, self.i(self.bias)), self.i(self.mantissa)))

    def scale(self, x: Value, n: Value) -> Value:
        """``x * 2**n`` in two steps, so that overflow and denormal results come out right for ``|n|`` up to 2 bias."""
        half = self.b.op("ashr", n, self.i(1))
        rest = self.b.op("sub", n, half)
        return self.mul(self.mul(x, self.power_of_two(half)), self.power_of_two(rest))

    def nearest(self, x: Value, factor: float = 1.0) -> tuple[Value, Value]:
        """The integer nearest to ``x * factor`` as a float, and in the low bits of an integer, for products below
        2**22 (2**51) in magnitude; NaN gives no trap."""
        magic = self.c(1.5 * 2.0**self.mantissa)
        shifted = self.add(x, magic) if factor == 1 else self.mad(x, self.c(factor), magic)
        return self.sub(shifted, magic), self.to_bits(shifted)

    def nearest_integer(self, x: Value, factor: float = 1.0) -> tuple[Value, Value]:
        """The integer nearest to ``x * factor`` as a float and as an integer, with the limits of `nearest`."""
        whole, low_bits = self.nearest(x, factor)
        return whole, self.integer(low_bits)

    def integer(self, low_bits: Value) -> Value:
        """The integer of which `nearest` gives the low bits."""
        return self.b.op("sub", low_bits, self.to_bits_of_constant(1.5 * 2.0**self.mantissa))

    def exponent(self, low_bits: Value) -> Value:
        """An integer that is given by its low bits, where the exponent of a float is."""
        return self.b.op("shl", low_bits, self.i(self.mantissa))

    def beyond(self, x: Value, limit: float) -> Value:
        """Whether some lane is above ``limit`` in magnitude, or NaN."""
        lanes = self.b.compare("fcmp ugt", self.abs(x), self.c(limit))
        if dtypes.lanes(self.dtype) == 1:
            return lanes
        return self.b.intrinsic("llvm.vector.reduce.or", lanes.dtype, lanes, result="bool")

    def in_double(self) -> Math:
        """The same in float64."""
        return Math(self.b, self.target, dtypes.vector("float64", dtypes.lanes(self.dtype)))

    def apart(self, name: str, body: Callable[..., Value], operands: int = 1) -> str:
        """The name of a function of its own, in which ``body`` computes a value from others, all of this dtype."""
        full, texts = _apart(name, body, self.target, self.dtype, operands)
        for text in texts:
            self.b.declare(text)
        return full

    def call(self, function: str, *operands: Value) -> Value:
        """What a function made by `apart` gives."""
        kind = llvm_type(self.dtype)
        passed = ", ".join(f"{kind} {x.ref}" for x in operands)
        return self.b.pure(f"call {kind} @{function}({passed})", self.dtype, operands)

    def mostly(
        self, measure: Value, limit: float, usual: Callable[..., Value], name: str, anywhere: Callable[..., Value],
        *operands: Value,
    ) -> Value:  # fmt: skip
        """``usual`` of the operands (of the measure itself, where there are none) where the measure is up to ``limit``
        in magnitude in all lanes. Any other lane sends all of them to ``anywhere``, in a function apart, which must
        give the same bits where both are right."""
        operands = operands or (measure,)
        function = self.apart(name, anywhere, len(operands))
        if max(x.depth for x in operands) < self.b.depth:  # known outside: the branch below would hold it here
            return self.call(function, *operands)
        return self.b.unless(self.beyond(measure, limit), usual(self, *operands), function, *operands)

    def to_bits_of_constant(self, value: float) -> Value:
        return self.to_bits(self.c(value))

    def clamp(self, x: Value, low: float, high: float) -> Value:
        """``x`` within limits; NaN stays NaN."""
        x = self.at_most(x, high)
        return self.select(self.lt(x, self.c(low)), self.c(low), x)

    def at_most(self, x: Value, high: float) -> Value:
        """``x`` up to a limit; NaN stays NaN."""
        return self.select(self.gt(x, self.c(high)), self.c(high), x)


@functools.lru_cache(maxsize=256)
def _apart(
    name: str, body: Callable[..., Value], target: Target, dtype: str, operands: int
) -> tuple[str, frozenset[str]]:
    """The name of the function of a body, and the texts of all that it needs, itself included."""
    full, kind = f"{name}.{suffix(dtype)}", llvm_type(dtype)
    inner = Builder()
    names = [f"%x{n}" for n in range(operands)]
    result = body(Math(inner, target, dtype), *(Value(x, dtype) for x in names))
    inner.emit(f"ret {kind} {result.ref}")
    params = ", ".join(f"{kind} {x}" for x in names)
    text = f"define internal {kind} @{full}({params}) noinline cold #0 {{\n{inner.body()}\n}}"
    return full, frozenset((*inner.declarations, text))


def function(body: Callable[..., Value]) -> Function:
    """Make ``f(math, *values)`` a function of ``(builder, target, *values)``."""
    return lambda b, target, *values: body(Math(b, target, values[0].dtype), *values)


def by_width(single: Function, double: Function) -> Function:
    """One function for float32, another for float64."""
    return lambda b, target, *values: (single if dtypes.row(values[0].dtype).bits == 32 else double)(b, target, *values)


def in_double(body: Callable[..., Value]) -> Function:
    """Compute float32 values in float64 and round once."""

    def emit(b: Builder, target: Target, *values: Value) -> Value:
        dtype = values[0].dtype
        if dtypes.row(dtype).bits == 64:
            return body(Math(b, target, dtype), *values)
        wide = [b.convert("fpext", v, "float64") if dtypes.is_float(v.dtype) else v for v in values]
        return b.convert("fptrunc", body(Math(b, target, wide[0].dtype), *wide), "float32")

    return emit


# ------------------------------------------------------------------------------------------------------------ rounding


def rounding(name: str) -> Function:
    """floor, ceil, trunc, round to even: one instruction, or through integers where values are small enough."""

    def emit(m: Math, x: Value) -> Value:
        b = m.b
        if m.target.has_rounding:
            return b.intrinsic(name, x.dtype, x)
        limit = m.c(2.0**m.mantissa)  # from here on every value is an integer
        magnitude = m.abs(x)
        small = m.lt(magnitude, limit)
        if name == "llvm.rint":
            result = m.sub(m.add(magnitude, limit), limit)
        else:
            safe = m.select(small, x, m.c(0))
            result = b.convert("sitofp", b.convert("fptosi", safe, f"int{m.bits}"), f"float{m.bits}")
            if name == "llvm.floor":
                result = m.sub(result, m.select(m.gt(result, x), m.c(1), m.c(0)))
            if name == "llvm.ceil":
                result = m.add(result, m.select(m.lt(result, x), m.c(1), m.c(0)))
        return m.select(small, m.copysign(result, x), x)

    return function(emit)


floor = rounding("llvm.floor")
ceil = rounding("llvm.ceil")
trunc = rounding("llvm.trunc")
rint = rounding("llvm.rint")
