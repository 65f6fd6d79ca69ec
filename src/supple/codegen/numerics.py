"""Functions of floating-point values as LLVM IR: no library calls, the same code for scalars and vectors.

Each takes ``(builder, target, *values)`` with float32 or float64 values (scalars or vectors of equal lanes). NaN and
infinities give what numpy gives; denormals are kept. Errors, in units of the last place, as tests measure them:
float32 exp, exp2, log, tanh, sigmoid, erf at most 2, the other float32 functions at most 1 (they are computed in
float64); float64 at most 4 (pow 16).

The sine and its relatives reduce their argument with three pieces of pi/2: they are this accurate up to 1e5 in
magnitude for float64 and 1e9 for float32; beyond, the absolute error grows with the argument (never out of [-1, 1]).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from supple.base import dtypes
from supple.base.target import Target
from supple.codegen.kernel_builder import Builder, Value

Function = Callable[..., Value]


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
        """A polynomial by Horner's rule, the highest power first."""
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

    def nearest(self, x: Value) -> tuple[Value, Value]:
        """The nearest integer as a float and as an integer, for ``|x| < 2**22`` (2**51); NaN gives no trap."""
        magic = self.c(1.5 * 2.0**self.mantissa)
        shifted = self.add(x, magic)
        number = self.b.op("sub", self.to_bits(shifted), self.to_bits_of_constant(1.5 * 2.0**self.mantissa))
        return self.sub(shifted, magic), number

    def to_bits_of_constant(self, value: float) -> Value:
        return self.to_bits(self.c(value))

    def clamp(self, x: Value, low: float, high: float) -> Value:
        """``x`` within limits; NaN stays NaN."""
        x = self.select(self.gt(x, self.c(high)), self.c(high), x)
        return self.select(self.lt(x, self.c(low)), self.c(low), x)


def _function(body: Callable[..., Value]) -> Function:
    """Make ``f(math, *values)`` a function of ``(builder, target, *values)``."""
    return lambda b, target, *values: body(Math(b, target, values[0].dtype), *values)


def _in_double(body: Callable[..., Value]) -> Function:
    """Compute float32 values in float64 and round once."""

    def emit(b: Builder, target: Target, *values: Value) -> Value:
        dtype = values[0].dtype
        if dtypes.row(dtype).bits == 64:
            return body(Math(b, target, dtype), *values)
        wide = [b.convert("fpext", v, "float64") if dtypes.is_float(v.dtype) else v for v in values]
        return b.convert("fptrunc", body(Math(b, target, wide[0].dtype), *wide), "float32")

    return emit


# ------------------------------------------------------------------------------------------------------------ rounding


def _rounding(name: str) -> Function:
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

    return _function(emit)


floor = _rounding("llvm.floor")
ceil = _rounding("llvm.ceil")
trunc = _rounding("llvm.trunc")
rint = _rounding("llvm.rint")


# --------------------------------------------------------------------------------------------- exponential and logarithm

_LOG2E = 1.4426950408889634
_LN2_32 = (0.693359375, -2.12194440e-4)
_LN2_64 = (6.93145751953125e-1, 1.42860682030941723212e-6)
_EXP_32 = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
_EXP_P = (1.26177193074810590878e-4, 3.02994407707441961300e-2, 9.99999999999999999910e-1)
_EXP_Q = (
    3.00198505138664455042e-6, 2.52448340349684104192e-3, 2.27265548208155028766e-1, 2.00000000000000000005,
)  # fmt: skip


def _exp_reduced(m: Math, r: Value) -> Value:
    """``e**r`` for ``|r| <= ln(2) / 2``."""
    if m.bits == 32:
        return m.add(m.mad(m.mul(r, r), m.poly(r, _EXP_32), r), m.c(1))
    z = m.mul(r, r)
    odd = m.mul(r, m.poly(z, _EXP_P))
    return m.mad(m.c(2), m.div(odd, m.sub(m.poly(z, _EXP_Q), odd)), m.c(1))


def _exp(m: Math, x: Value) -> Value:
    low, high = (-104.0, 89.0) if m.bits == 32 else (-746.0, 710.0)
    x = m.clamp(x, low, high)
    whole, n = m.nearest(m.mul(x, m.c(_LOG2E)))
    ln2 = _LN2_32 if m.bits == 32 else _LN2_64
    r = m.mad(whole, m.c(-ln2[1]), m.mad(whole, m.c(-ln2[0]), x))
    return m.scale(_exp_reduced(m, r), n)


def _exp2(m: Math, x: Value) -> Value:
    low, high = (-151.0, 129.0) if m.bits == 32 else (-1076.0, 1025.0)
    x = m.clamp(x, low, high)
    whole, n = m.nearest(x)
    return m.scale(_exp_reduced(m, m.mul(m.sub(x, whole), m.c(math.log(2)))), n)


def _exp10(m: Math, x: Value) -> Value:
    x = m.clamp(x, -325.0, 309.0)
    whole, n = m.nearest(m.mul(x, m.c(3.32192809488736234787)))
    r = m.mad(whole, m.c(-4.60503898119521373960e-6), m.mad(whole, m.c(-3.0102539062500e-1), x))
    return m.scale(_exp_reduced(m, m.mul(r, m.c(math.log(10)))), n)


_LOG_32 = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
    2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
_LOG_P = (
    1.01875663804580931796e-4, 4.97494994976747001425e-1, 4.70579119878881725854, 1.44989225341610930846e1,
    1.79368678507819816313e1, 7.70838733755885391666,
)  # fmt: skip
_LOG_Q = (
    1.0, 1.12873587189167450590e1, 4.52279145837532221105e1, 8.29875266912776603211e1, 7.11544750618563894466e1,
    2.31251620126765340583e1,
)  # fmt: skip


def _split(m: Math, x: Value) -> tuple[Value, Value]:
    """``(f, e)`` with ``x == (1 + f) * 2**e`` and ``1 + f`` in ``[sqrt(1/2), sqrt(2))``, for positive finite ``x``."""
    b = m.b
    tiny = m.lt(x, m.c(2.0 ** (1 - m.bias)))
    x = m.select(tiny, m.mul(x, m.c(2.0**m.mantissa)), x)
    # moving the bits of sqrt(1/2) to zero makes the exponent field count from there
    origin = m.to_bits_of_constant(0.70710678118654752440)
    moved = b.op("sub", m.to_bits(x), origin)
    exponent = b.op("ashr", moved, m.i(m.mantissa))
    fraction = b.op("and", moved, m.i((1 << m.mantissa) - 1))
    mantissa = m.from_bits(b.op("add", fraction, origin))
    exponent = b.op("sub", exponent, b.select(tiny, m.i(m.mantissa), m.i(0)))
    return m.sub(mantissa, m.c(1)), b.convert("sitofp", exponent, f"float{m.bits}")


def _log_fraction(m: Math, f: Value) -> tuple[Value, Value]:
    """``log(1 + f) == f + rest``: the pair ``(f, rest)``."""
    z = m.mul(f, f)
    if m.bits == 32:
        tail = m.mul(m.mul(f, z), m.poly(f, _LOG_32))
    else:
        tail = m.mul(f, m.div(m.mul(z, m.poly(f, _LOG_P)), m.poly(f, _LOG_Q)))
    return tail, z


def _log_special(m: Math, x: Value, result: Value) -> Value:
    """The values of logarithms at 0, below, at infinity and NaN."""
    result = m.select(m.lt(x, m.c(math.inf)), result, x)  # infinity and NaN are their own logarithms
    result = m.select(m.lt(x, m.c(0)), m.c(math.nan), result)
    return m.select(m.eq(x, m.c(0)), m.c(-math.inf), result)


def _log(m: Math, x: Value) -> Value:
    f, e = _split(m, x)
    tail, z = _log_fraction(m, f)
    y = m.mad(e, m.c(-2.121944400546905827679e-4), tail)
    y = m.mad(z, m.c(-0.5), y)
    return _log_special(m, x, m.mad(e, m.c(0.693359375), m.add(f, y)))


def _log_base(per_e: float, log_base_of_2: float) -> Callable[[Math, Value], Value]:
    def emit(m: Math, x: Value) -> Value:
        f, e = _split(m, x)
        tail, z = _log_fraction(m, f)
        natural = m.add(f, m.mad(z, m.c(-0.5), tail))
        return _log_special(m, x, m.mad(e, m.c(log_base_of_2), m.mul(natural, m.c(per_e))))

    return emit


def _log1p(m: Math, x: Value) -> Value:
    u = m.add(m.c(1), x)
    correction = m.div(m.sub(m.sub(u, m.c(1)), x), u)
    result = m.sub(_log(m, u), correction)
    result = m.select(m.eq(u, m.c(1)), x, result)
    infinite = m.b.op("or", m.eq(u, m.c(math.inf)), m.eq(u, m.c(0)))
    return m.select(infinite, _log(m, u), result)


def _expm1(m: Math, x: Value) -> Value:
    u = _exp(m, x)
    below = m.sub(u, m.c(1))
    result = m.div(m.mul(below, x), _log(m, u))
    result = m.select(m.eq(u, m.c(1)), x, result)
    result = m.select(m.eq(below, m.c(-1)), m.c(-1), result)
    return m.select(m.eq(u, m.c(math.inf)), u, result)


# ------------------------------------------------------------------------------------------------- hyperbolic and error

_TANH_32 = (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)
_TANH_P = (-9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3)
_TANH_Q = (1.0, 1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3)


def _tanh(m: Math, x: Value) -> Value:
    magnitude = m.abs(x)
    z = m.mul(x, x)
    series = m.poly(z, _TANH_32) if m.bits == 32 else m.div(m.poly(z, _TANH_P), m.poly(z, _TANH_Q))
    small = m.mad(m.mul(x, z), series, x)
    large = m.sub(m.c(1), m.div(m.c(2), m.add(_exp(m, m.add(magnitude, magnitude)), m.c(1))))
    return m.select(m.lt(magnitude, m.c(0.625)), small, m.copysign(large, x))


def _sigmoid(m: Math, x: Value) -> Value:
    e = _exp(m, m.b.fneg(m.abs(x)))
    top = m.select(m.lt(x, m.c(0)), e, m.c(1))
    return m.div(top, m.add(m.c(1), e))


def _sinh(m: Math, x: Value) -> Value:
    a = m.abs(x)
    u = _expm1(m, a)
    small = m.mul(m.c(0.5), m.add(u, m.div(u, m.add(u, m.c(1)))))
    t = _exp(m, m.mul(a, m.c(0.5)))
    large = m.mul(m.mul(m.c(0.5), t), t)
    return m.copysign(m.select(m.lt(a, m.c(22)), small, large), x)


def _cosh(m: Math, x: Value) -> Value:
    a = m.abs(x)
    t = _exp(m, m.mul(a, m.c(0.5)))
    e = _exp(m, a)
    small = m.mad(m.c(0.5), e, m.div(m.c(0.5), e))
    return m.select(m.lt(a, m.c(22)), small, m.mul(m.mul(m.c(0.5), t), t))


def _asinh(m: Math, x: Value) -> Value:
    a = m.abs(x)
    z = m.mul(a, a)
    small = _log1p(m, m.add(a, m.div(z, m.add(m.c(1), m.sqrt(m.add(m.c(1), z))))))
    large = m.add(_log(m, a), m.c(math.log(2)))
    return m.copysign(m.select(m.lt(a, m.c(2.0**28)), small, large), x)


def _acosh(m: Math, x: Value) -> Value:
    t = m.sub(x, m.c(1))
    small = _log1p(m, m.add(t, m.sqrt(m.add(m.add(t, t), m.mul(t, t)))))
    large = m.add(_log(m, x), m.c(math.log(2)))
    result = m.select(m.lt(x, m.c(2.0**28)), small, large)
    return m.select(m.lt(x, m.c(1)), m.c(math.nan), result)


def _atanh(m: Math, x: Value) -> Value:
    a = m.abs(x)
    return m.copysign(m.mul(m.c(0.5), _log1p(m, m.div(m.add(a, a), m.sub(m.c(1), a)))), x)


_ERF_LARGE = (-1.72853470e-5, 3.83197126e-4, -3.88396438e-3, 2.42546219e-2, -1.06777877e-1, -6.34846687e-1,
              -1.28717512e-1)  # fmt: skip
_ERF_SMALL = (-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1)
_ERF_T = (
    9.60497373987051638749, 9.00260197203842689217e1, 2.23200534594684319226e3, 7.00332514112805075473e3,
    5.55923013010394962768e4,
)  # fmt: skip
_ERF_U = (
    1.0, 3.35617141647503099647e1, 5.21357949780152679795e2, 4.59432382970980127987e3, 2.26290000613890934246e4,
    4.92673942608635921086e4,
)  # fmt: skip
_ERFC_P = (
    2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687, 4.86371970985681366614e1,
    1.96520832956077098242e2, 5.26445194995477358631e2, 9.34528527171957607540e2, 1.02755188689515710272e3,
    5.57535335369399327526e2,
)  # fmt: skip
_ERFC_Q = (
    1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2, 9.75708501743205489753e2,
    1.82390916687909736289e3, 2.24633760818710981792e3, 1.65666309194161350182e3, 5.57535340817727675546e2,
)  # fmt: skip


def _erf(m: Math, x: Value) -> Value:
    a = m.abs(x)
    z = m.mul(x, x)
    if m.bits == 32:
        exponent = m.mad(m.poly(a, _ERF_LARGE), a, m.b.fneg(a))
        large = m.sub(m.c(1), _exp(m, m.clamp(exponent, -100.0, 0.0)))
        small = m.mad(m.poly(z, _ERF_SMALL), x, x)
        return m.select(m.lt(a, m.c(0.927734375)), small, m.copysign(large, x))
    small = m.mul(x, m.div(m.poly(z, _ERF_T), m.poly(z, _ERF_U)))
    a = m.select(m.gt(a, m.c(7)), m.c(7), a)
    tail = m.div(m.poly(a, _ERFC_P), m.poly(a, _ERFC_Q))
    large = m.sub(m.c(1), m.mul(_exp(m, m.b.fneg(m.mul(a, a))), tail))
    return m.select(m.lt(m.abs(x), m.c(1)), small, m.copysign(large, x))


# ----------------------------------------------------------------------------------------------------------- trigonometry

_PI_2 = (1.57079625129699707031, 7.54978941586159635335e-8, 5.39030285815811150862e-15)
_SIN = (
    1.58962301576546568060e-10, -2.50507477628578072866e-8, 2.75573136213857245213e-6, -1.98412698295895385996e-4,
    8.33333333332211858878e-3, -1.66666666666666307295e-1,
)  # fmt: skip
_COS = (
    -1.13585365213876817300e-11, 2.08757008419747316778e-9, -2.75573141792967388112e-7, 2.48015872888517045348e-5,
    -1.38888888888730564116e-3, 4.16666666666665929218e-2,
)  # fmt: skip


def _sin_cos(m: Math, x: Value) -> tuple[Value, Value, Value]:
    """Sine and cosine of the argument less a multiple of pi/2, and that multiple."""
    turns = rint(m.b, m.target, m.mul(x, m.c(2 / math.pi)))
    r = x
    for piece in _PI_2:
        r = m.mad(turns, m.c(-piece), r)
    r = m.clamp(r, -0.79, 0.79)  # where the reduction has lost all bits, the result still is a sine
    safe = m.clamp(turns, -(2.0**50), 2.0**50)
    _, quadrant = m.nearest(safe)
    z = m.mul(r, r)
    sine = m.mad(m.mul(r, z), m.poly(z, _SIN), r)
    cosine = m.add(m.mad(z, m.c(-0.5), m.c(1)), m.mul(m.mul(z, z), m.poly(z, _COS)))
    return sine, cosine, quadrant


def _circular(first: int) -> Callable[[Math, Value], Value]:
    """The sine shifted by a number of quadrants."""

    def emit(m: Math, x: Value) -> Value:
        b = m.b
        sine, cosine, quadrant = _sin_cos(m, x)
        turned = b.op("add", quadrant, m.i(first))
        odd = b.compare("icmp ne", b.op("and", turned, m.i(1)), m.i(0))
        negative = b.compare("icmp ne", b.op("and", turned, m.i(2)), m.i(0))
        result = m.select(odd, cosine, sine)
        result = m.select(negative, b.fneg(result), result)
        return m.select(m.lt(m.abs(x), m.c(math.inf)), result, m.c(math.nan))

    return emit


def _tan(m: Math, x: Value) -> Value:
    b = m.b
    sine, cosine, quadrant = _sin_cos(m, x)
    odd = b.compare("icmp ne", b.op("and", quadrant, m.i(1)), m.i(0))
    result = m.div(m.select(odd, b.fneg(cosine), sine), m.select(odd, sine, cosine))
    return m.select(m.lt(m.abs(x), m.c(math.inf)), result, m.c(math.nan))


_ATAN_P = (
    -8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1, -1.228866684490136173410e2,
    -6.485021904942025371773e1,
)  # fmt: skip
_ATAN_Q = (
    1.0, 2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2, 4.853903996359136964868e2,
    1.945506571482613964425e2,
)  # fmt: skip


def _atan(m: Math, x: Value) -> Value:
    a = m.abs(x)
    steep, middle = m.gt(a, m.c(2.41421356237309504880)), m.gt(a, m.c(0.66))
    moved = m.div(m.sub(a, m.c(1)), m.add(a, m.c(1)))
    t = m.select(steep, m.div(m.c(-1), a), m.select(middle, moved, a))
    base = m.select(steep, m.c(math.pi / 2), m.select(middle, m.c(math.pi / 4), m.c(0)))
    more = m.select(steep, m.c(6.123233995736765886130e-17), m.select(middle, m.c(3.061616997868382943e-17), m.c(0)))
    z = m.mul(t, t)
    series = m.div(m.mul(z, m.poly(z, _ATAN_P)), m.poly(z, _ATAN_Q))
    return m.copysign(m.add(base, m.add(m.mad(t, series, t), more)), x)


def _atan2(m: Math, y: Value, x: Value) -> Value:
    a, b = m.abs(x), m.abs(y)
    steep = m.gt(b, a)
    low, high = m.select(steep, a, b), m.select(steep, b, a)
    ratio = m.div(low, high)
    ratio = m.select(m.eq(high, m.c(0)), m.c(0), ratio)
    ratio = m.select(m.eq(low, m.c(math.inf)), m.c(1), ratio)
    angle = _atan(m, ratio)
    angle = m.select(steep, m.sub(m.c(math.pi / 2), angle), angle)
    left = m.b.compare("icmp slt", m.to_bits(x), m.i(0))
    angle = m.select(left, m.sub(m.c(math.pi), angle), angle)
    either = m.b.compare("fcmp uno", x, y)
    return m.select(either, m.c(math.nan), m.copysign(angle, y))


def _asin(m: Math, x: Value) -> Value:
    return _atan2(m, x, m.sqrt(m.mul(m.sub(m.c(1), x), m.add(m.c(1), x))))


def _acos(m: Math, x: Value) -> Value:
    half = _atan2(m, m.sqrt(m.sub(m.c(1), x)), m.sqrt(m.add(m.c(1), x)))
    return m.add(half, half)


# ------------------------------------------------------------------------------------------------------- powers, others


def _two_product(m: Math, x: Value, y: Value) -> tuple[Value, Value]:
    """``x * y`` exactly, as a rounded product and its error."""
    product = m.mul(x, y)
    if m.target.has_fma:
        return product, m.b.intrinsic("llvm.fma", m.dtype, x, y, m.b.fneg(product))

    def halves(v: Value) -> tuple[Value, Value]:
        scaled = m.mul(v, m.c(134217729.0))
        high = m.sub(scaled, m.sub(scaled, v))
        return high, m.sub(v, high)

    (xh, xl), (yh, yl) = halves(x), halves(y)
    error = m.add(m.sub(m.mul(xh, yh), product), m.mul(xh, yl))
    return product, m.add(m.add(error, m.mul(xl, yh)), m.mul(xl, yl))


def _pow(m: Math, x: Value, y: Value) -> Value:
    """In float64: the logarithm to twice the precision in its leading term, then the exponential."""
    b = m.b
    a = m.abs(x)
    f, e = _split(m, a)
    # log(1 + f) = 2 s + s^3 (2/3 + 2/5 s^2 + ...), s = f / (2 + f), with s to twice the precision
    divisor = m.add(m.c(2), f)
    s = m.div(f, divisor)
    product, error = _two_product(m, s, divisor)
    divisor_error = m.sub(f, m.sub(divisor, m.c(2)))
    s_low = m.div(m.sub(m.sub(m.sub(f, product), error), m.mul(s, divisor_error)), divisor)
    z = m.mul(s, s)
    series = m.mul(m.mul(s, z), m.poly(z, [2 / k for k in range(21, 1, -2)]))
    ln2_high, ln2_low = 6.93147180369123816490e-01, 1.90821492927058770002e-10
    leading = m.mul(e, m.c(ln2_high))  # exact: the constant ends in zeros
    double_s = m.add(s, s)
    high = m.add(leading, double_s)
    back = m.sub(high, leading)
    low = m.add(m.sub(leading, m.sub(high, back)), m.sub(double_s, back))
    low = m.add(low, m.add(m.add(s_low, s_low), m.mad(e, m.c(ln2_low), series)))
    total = m.add(high, low)
    low = m.add(m.sub(high, total), low)
    p, p_error = _two_product(m, total, y)
    p_error = m.mad(low, y, p_error)
    magnitude = _exp(m, p)
    usable = m.lt(m.abs(p), m.c(750))  # beyond, the result is 0 or infinite, and the error term may be NaN
    magnitude = m.select(usable, m.mad(magnitude, m.select(usable, p_error, m.c(0)), magnitude), magnitude)
    grows = b.op("xor", m.gt(a, m.c(1)), m.lt(y, m.c(0)))
    limit = m.select(grows, m.c(math.inf), m.c(0))
    extreme = b.op("or", m.eq(a, m.c(0)), b.op("or", m.eq(a, m.c(math.inf)), m.eq(m.abs(y), m.c(math.inf))))
    magnitude = m.select(extreme, limit, magnitude)
    whole = m.eq(floor(b, m.target, y), y)
    half = m.mul(y, m.c(0.5))
    odd = b.op("and", whole, b.compare("fcmp une", floor(b, m.target, half), half))
    negative = b.compare("icmp slt", m.to_bits(x), m.i(0))
    result = m.select(b.op("and", negative, odd), b.fneg(magnitude), magnitude)
    finite_negative = b.op("and", m.lt(x, m.c(0)), m.gt(x, m.c(-math.inf)))
    not_whole = b.op("xor", whole, b.const(True, whole.dtype))
    result = m.select(b.op("and", finite_negative, not_whole), m.c(math.nan), result)
    unknown = b.compare("fcmp uno", x, y)
    result = m.select(unknown, m.c(math.nan), result)
    minus_one = b.op("and", m.eq(a, m.c(1)), m.eq(m.abs(y), m.c(math.inf)))
    one = b.op("or", b.op("or", m.eq(x, m.c(1)), m.eq(y, m.c(0))), minus_one)
    return m.select(one, m.c(1), result)


def _hypot(m: Math, x: Value, y: Value) -> Value:
    a, b = m.abs(x), m.abs(y)
    swap = m.gt(b, a)
    high, low = m.select(swap, b, a), m.select(swap, a, b)
    ratio = m.select(m.eq(high, m.c(0)), m.c(0), m.div(low, high))
    result = m.mul(high, m.sqrt(m.mad(ratio, ratio, m.c(1))))
    result = m.select(m.b.compare("fcmp uno", x, y), m.c(math.nan), result)
    infinite = m.b.op("or", m.eq(a, m.c(math.inf)), m.eq(b, m.c(math.inf)))
    return m.select(infinite, m.c(math.inf), result)


def _rsqrt(m: Math, x: Value) -> Value:
    return m.div(m.c(1), m.sqrt(x))


def _fmod(m: Math, x: Value, y: Value) -> Value:
    """Exact: the quotient's bits are taken off from the top, 2**40 at a time, until the remainder is below ``|y|``.

    In float64 (float32 values go through it): a step subtracts ``q * d`` with an integer ``q`` below 2**41 and ``d``
    the divisor times a power of two, with one rounding that is exact because the result fits.
    """
    b = m.b
    divisor = m.abs(y)
    # denormals: work 2**104 higher where both are small, so that the scaled divisor is normal
    small = m.lt(divisor, m.c(2.0**-900))
    huge = m.gt(m.abs(x), m.c(2.0**900))
    lift = b.op("and", small, b.op("xor", huge, b.const(True, huge.dtype)))
    factor = m.select(lift, m.c(2.0**104), m.c(1))
    d = m.mul(divisor, factor)
    r = m.mul(m.abs(x), factor)
    for shift in range(2080, -1, -40):
        step = _scaled(m, d, shift)
        active = b.op("and", b.compare("fcmp oge", r, step), m.lt(step, m.c(math.inf)))
        q = trunc(b, m.target, m.div(r, step))
        high, low = _two_product(m, q, step)
        rest = m.sub(m.sub(r, high), low)
        rest = m.select(m.lt(rest, m.c(0)), m.add(rest, step), rest)
        r = m.select(active, rest, r)
    result = m.copysign(m.mul(r, m.select(lift, m.c(2.0**-104), m.c(1))), x)
    result = m.select(m.eq(divisor, m.c(math.inf)), x, result)
    bad = b.op("or", m.eq(m.abs(x), m.c(math.inf)), m.eq(divisor, m.c(0)))
    bad = b.op("or", bad, b.compare("fcmp uno", x, y))
    return m.select(bad, m.c(math.nan), result)


def _scaled(m: Math, d: Value, shift: int) -> Value:
    while shift > 1000:
        d = m.mul(d, m.c(2.0**1000))
        shift -= 1000
    return m.mul(d, m.c(2.0**shift)) if shift else d


fmod = _in_double(_fmod)


def floormod(b: Builder, target: Target, x: Value, y: Value) -> Value:
    """numpy's ``x % y``: the sign of the divisor."""
    m = Math(b, target, x.dtype)
    r = fmod(b, target, x, y)
    crosses = b.op("xor", m.lt(r, m.c(0)), m.lt(y, m.c(0)))
    nonzero = b.compare("fcmp une", r, m.c(0))
    moved = m.select(b.op("and", crosses, nonzero), m.add(r, y), r)
    return m.select(nonzero, moved, m.copysign(m.c(0), y))


def floordiv(b: Builder, target: Target, x: Value, y: Value) -> Value:
    """numpy's ``x // y``."""
    m = Math(b, target, x.dtype)
    r = fmod(b, target, x, y)
    quotient = m.div(m.sub(x, r), y)
    crosses = b.op("and", b.op("xor", m.lt(r, m.c(0)), m.lt(y, m.c(0))), b.compare("fcmp une", r, m.c(0)))
    quotient = m.select(crosses, m.sub(quotient, m.c(1)), quotient)
    whole = floor(b, target, quotient)
    whole = m.select(m.gt(m.sub(quotient, whole), m.c(0.5)), m.add(whole, m.c(1)), whole)
    whole = m.select(m.eq(quotient, m.c(0)), m.copysign(m.c(0), m.div(x, y)), whole)
    return m.select(m.eq(y, m.c(0)), m.div(x, y), whole)


def _ldexp(m: Math, x: Value, n: Value) -> Value:
    """In float64, in three steps of which only the last can round."""
    b = m.b
    bits = dtypes.row(n.dtype).bits
    if bits < 64:
        n = b.convert("sext" if dtypes.row(n.dtype).kind == "int" else "zext", n, "int64")
    n = b.intrinsic("llvm.smin", m.int_dtype, n, m.i(2200))
    n = b.intrinsic("llvm.smax", m.int_dtype, n, m.i(-2200))
    for _ in range(2):
        part = b.intrinsic("llvm.smin", m.int_dtype, b.intrinsic("llvm.smax", m.int_dtype, n, m.i(-900)), m.i(900))
        x = m.mul(x, m.power_of_two(part))
        n = b.op("sub", n, part)
    return m.mul(x, m.power_of_two(n))


# ------------------------------------------------------------------------------------------------------------ the tables


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
    "exp": _function(_exp),
    "exp2": _function(_exp2),
    "exp10": _in_double(_exp10),
    "expm1": _in_double(_expm1),
    "log": _function(_log),
    "log2": _in_double(_log_base(_LOG2E, 1.0)),
    "log10": _in_double(_log_base(1 / math.log(10), math.log10(2))),
    "log1p": _in_double(_log1p),
    "sqrt": _function(Math.sqrt),
    "rsqrt": _function(_rsqrt),
    "sigmoid": _function(_sigmoid),
    "tanh": _function(_tanh),
    "sinh": _in_double(_sinh),
    "cosh": _in_double(_cosh),
    "asinh": _in_double(_asinh),
    "acosh": _in_double(_acosh),
    "atanh": _in_double(_atanh),
    "sin": _in_double(_circular(0)),
    "cos": _in_double(_circular(1)),
    "tan": _in_double(_tan),
    "asin": _in_double(_asin),
    "acos": _in_double(_acos),
    "atan": _in_double(_atan),
    "atan2": _in_double(_atan2),
    "erf": _function(_erf),
    "pow": _in_double(_pow),
    "fmod": fmod,
    "hypot": _in_double(_hypot),
    "ldexp": _in_double(_ldexp),
    "copysign": _function(Math.copysign),
    "fabs": _function(Math.abs),
    "floor": floor,
    "ceil": ceil,
    "trunc": trunc,
    "round": rint,
    "nearbyint": rint,
}
"""Intrinsics by name. Not here, and refused by name: ``nextafter``."""

TESTS: dict[str, Function] = {"isnan": isnan, "isinf": isinf, "isfinite": isfinite}
