"""Exponentials, logarithms, hyperbolic functions, the error function. See `numerics` for their accuracy."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from supple.codegen.kernel_builder import Value
from supple.codegen.numerics_base import Math

_LOG2E = 1.4426950408889634
_LN2_32 = (0.693359375, -2.12194440e-4)
_LN2_64 = (6.93145751953125e-1, 1.42860682030941723212e-6)
_EXP_32 = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
_EXP_64 = (
    4.13813679705723846039e-8, -1.65339022054652515390e-6, 6.61375632143793436117e-5, -2.77777777770155933842e-3,
    1.66666666666666019037e-1,
)  # fmt: skip
"""``(r - 2 + 2 * r / (e**r - 1)) / r**2`` in powers of ``r**2``, for ``|r| <= ln(2) / 2``."""


def _exp_reduced(m: Math, r: Value) -> Value:
    """``e**r`` for ``|r| <= ln(2) / 2``."""
    if m.bits == 32:
        return m.poly(r, (*_EXP_32, 1, 1))
    return m.add(m.c(1), _expm1_reduced(m, r))


def _expm1_reduced(m: Math, r: Value) -> Value:
    """``e**r - 1`` for ``|r| <= ln(2) / 2``: ``r`` and a small rest."""
    z = m.mul(r, r)
    if m.bits == 32:
        return m.mad(z, m.poly(r, _EXPM1_32), r)
    c = m.sub(r, m.mul(z, m.poly(z, _EXP_64)))
    return m.add(r, m.div(m.mul(r, c), m.sub(m.c(2), c)))


def _reduced(m: Math, x: Value) -> tuple[Value, Value]:
    """``x`` as ``r + n * ln(2)``: ``r``, and ``n`` by its low bits."""
    whole, n = m.nearest(x, _LOG2E)
    ln2 = _LN2_32 if m.bits == 32 else _LN2_64
    return m.mad(whole, m.c(-ln2[1]), m.mad(whole, m.c(-ln2[0]), x)), n


def _exp_parts(m: Math, x: Value) -> tuple[Value, Value]:
    """``e**x`` as ``e**r * 2**n``: the power of ``r``, and ``n`` by its low bits."""
    r, n = _reduced(m, x)
    return _exp_reduced(m, r), n


def exp_of(m: Math, x: Value) -> Value:
    """Where no result is denormal or infinite its exponent is added to."""
    return m.mostly(x, _limit(m), _exp_normal, "exp", _exp_anywhere)


def _limit(m: Math) -> float:
    """Up to this magnitude of x, ``e**x`` and ``2**n`` next to it are normal numbers."""
    return 87.0 if m.bits == 32 else 708.0


def _exp_normal(m: Math, x: Value) -> Value:
    power, n = _exp_parts(m, x)
    return m.from_bits(m.b.op("add", m.to_bits(power), m.exponent(n)))


def exp_within(m: Math, x: Value) -> Value:
    """``e**x`` for arguments up to 87 (float64: 708) in magnitude, and NaN."""
    power, n = _exp_parts(m, x)
    return m.mul(power, _two_to(m, n))


def _two_to(m: Math, n: Value) -> Value:
    """``2**n`` for an ``n`` given by its low bits, within the exponents of normal numbers."""
    return m.from_bits(m.b.op("add", m.exponent(n), m.to_bits_of_constant(1.0)))


_EXPM1_32 = (
    1.3882496859878302e-3, 8.366651833057404e-3, 4.166720435023308e-2, 1.6666541993618011e-1, 4.999999701976776e-1,
)  # fmt: skip
"""``(e**r - 1 - r) / r**2`` for ``|r| <= ln(2) / 2``, fitted to the relative error of ``e**r - 1``."""


def _expm1_within(m: Math, x: Value) -> Value:
    """``e**x - 1`` for arguments up to 87 (float64: 708) in magnitude, and NaN, with the accuracy of a small result."""
    r, n = _reduced(m, x)
    below = _expm1_reduced(m, r)
    power = _two_to(m, n)
    return m.mad(below, power, m.sub(power, m.c(1)))


def _exp_anywhere(m: Math, x: Value) -> Value:
    low, high = (-104.0, 89.0) if m.bits == 32 else (-746.0, 710.0)
    power, n = _exp_parts(m, m.clamp(x, low, high))
    return m.scale(power, m.integer(n))


def exp2_of(m: Math, x: Value) -> Value:
    low, high = (-151.0, 129.0) if m.bits == 32 else (-1076.0, 1025.0)
    x = m.clamp(x, low, high)
    whole, n = m.nearest_integer(x)
    return m.scale(_exp_reduced(m, m.mul(m.sub(x, whole), m.c(math.log(2)))), n)


def exp10_of(m: Math, x: Value) -> Value:
    x = m.clamp(x, -325.0, 309.0)
    whole, n = m.nearest_integer(x, 3.32192809488736234787)
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


def split_of(m: Math, x: Value) -> tuple[Value, Value]:
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


def log_of(m: Math, x: Value) -> Value:
    return _log_special(m, x, log_of_positive(m, x))


def log_of_positive(m: Math, x: Value) -> Value:
    """The logarithm of a positive finite argument; of others any number."""
    return _log_of_parts(m, *split_of(m, x))


def _log_of_parts(m: Math, f: Value, e: Value) -> Value:
    """The logarithm of ``(1 + f) * 2**e``."""
    tail, z = _log_fraction(m, f)
    y = m.mad(e, m.c(-2.121944400546905827679e-4), tail)
    y = m.mad(z, m.c(-0.5), y)
    return m.mad(e, m.c(0.693359375), m.add(f, y))


def log_base_of(per_e: float, log_base_of_2: float) -> Callable[[Math, Value], Value]:
    def emit(m: Math, x: Value) -> Value:
        f, e = split_of(m, x)
        tail, z = _log_fraction(m, f)
        natural = m.add(f, m.mad(z, m.c(-0.5), tail))
        return _log_special(m, x, m.mad(e, m.c(log_base_of_2), m.mul(natural, m.c(per_e))))

    return emit


def log1p_of(m: Math, x: Value) -> Value:
    """``1 + x`` only says which power of two there is; the fraction comes from x itself, so that no digit is lost."""
    u = m.add(m.c(1), x)
    f, e = split_of(m, u)
    power = m.from_bits(m.b.op("sub", m.to_bits_of_constant(1.0), m.exponent(m.b.convert("fptosi", e, m.int_dtype))))
    f = m.select(m.gt(u, m.c(2.0**60)), f, m.mad(x, power, m.sub(power, m.c(1))))
    return m.copysign(_log_special(m, u, _log_of_parts(m, f, e)), x)


def expm1_of(m: Math, x: Value) -> Value:
    return m.mostly(x, _limit(m), _expm1_usual, "expm1", _expm1_anywhere)


def _expm1_usual(m: Math, x: Value) -> Value:
    return m.copysign(_expm1_within(m, x), x)  # the sum loses the sign of zero


def _expm1_anywhere(m: Math, x: Value) -> Value:
    limit = _limit(m)
    below = _expm1_usual(m, m.clamp(x, -limit, limit))
    return m.select(m.gt(x, m.c(limit)), _exp_anywhere(m, x), below)


# ------------------------------------------------------------------------------------------------- hyperbolic and error

_TANH_P = (-9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3)
_TANH_Q = (1.0, 1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3)


def tanh_of(m: Math, x: Value) -> Value:
    magnitude = m.abs(x)
    twice = m.at_most(m.add(magnitude, magnitude), 80.0)  # from 2 * 10 (2 * 20) on the result is 1
    if m.bits == 32:
        u = _expm1_within(m, twice)
        return m.copysign(m.div(u, m.add(u, m.c(2))), x)
    z = m.mul(x, x)
    small = m.mad(m.mul(x, z), m.div(m.poly(z, _TANH_P), m.poly(z, _TANH_Q)), x)
    large = m.sub(m.c(1), m.div(m.c(2), m.add(exp_within(m, twice), m.c(1))))
    return m.copysign(m.select(m.lt(magnitude, m.c(0.625)), small, large), x)


def sigmoid_of(m: Math, x: Value) -> Value:
    e = exp_of(m, m.b.fneg(m.abs(x)))
    top = m.select(m.lt(x, m.c(0)), e, m.c(1))
    return m.div(top, m.add(m.c(1), e))


def _sinh_within(m: Math, a: Value) -> Value:
    u = _expm1_within(m, a)
    return m.mul(m.c(0.5), m.add(u, m.div(u, m.add(u, m.c(1)))))


def _cosh_within(m: Math, a: Value) -> Value:
    e = exp_within(m, a)
    return m.mad(m.c(0.5), e, m.div(m.c(0.5), e))


def sinh_of(m: Math, x: Value) -> Value:
    return m.copysign(m.mostly(m.abs(x), _limit(m), _sinh_within, "sinh", _near_or_far(_sinh_within)), x)


def cosh_of(m: Math, x: Value) -> Value:
    return m.mostly(m.abs(x), _limit(m), _cosh_within, "cosh", _near_or_far(_cosh_within))


@functools.cache
def _near_or_far(within: Callable[[Math, Value], Value]) -> Callable[[Math, Value], Value]:
    """Hyperbolic sine and cosine of a magnitude ``a`` where ``e**a`` may be infinite: there they are half of it, and
    half its root squared."""

    def anywhere(m: Math, a: Value) -> Value:
        limit = _limit(m)
        root = _exp_anywhere(m, m.mul(a, m.c(0.5)))
        far = m.mul(m.mul(m.c(0.5), root), root)
        return m.select(m.gt(a, m.c(limit)), far, within(m, m.at_most(a, limit)))

    return anywhere


def _root_beyond(m: Math) -> Value:
    """From here on ``sqrt(x**2 +- 1)`` is ``x`` within the precision of a logarithm."""
    return m.c(2.0 ** (m.mantissa // 2 + 2))


def asinh_of(m: Math, x: Value) -> Value:
    """``log(a + sqrt(a**2 + 1))``; of large arguments ``log(2 * a)``."""
    a = m.abs(x)
    z = m.mul(a, a)
    large = m.gt(a, _root_beyond(m))
    small = m.add(a, m.div(z, m.add(m.c(1), m.sqrt(m.add(m.c(1), z)))))
    result = log1p_of(m, m.select(large, m.sub(a, m.c(1)), small))
    return m.copysign(m.add(result, m.select(large, m.c(math.log(2)), m.c(0))), x)


def acosh_of(m: Math, x: Value) -> Value:
    """``log(x + sqrt(x**2 - 1))``; of large arguments ``log(2 * x)``."""
    t = m.sub(x, m.c(1))
    large = m.gt(x, _root_beyond(m))
    small = m.add(t, m.sqrt(m.add(m.add(t, t), m.mul(t, t))))
    result = log1p_of(m, m.select(large, t, small))
    result = m.add(result, m.select(large, m.c(math.log(2)), m.c(0)))
    return m.select(m.lt(x, m.c(1)), m.c(math.nan), result)


def atanh_of(m: Math, x: Value) -> Value:
    a = m.abs(x)
    return m.copysign(m.mul(m.c(0.5), log1p_of(m, m.div(m.add(a, a), m.sub(m.c(1), a)))), x)


_ERFC_LOG = (
    9.256226803699974e-6, -1.1764092050725594e-4, 6.328355520963669e-4, -1.6670249169692397e-3, 1.6039336333051324e-4,
    1.9153065979480743e-2, -1.0277783125638962e-1, -6.366193890571594e-1, -1.2837916612625122e-1,
)  # fmt: skip
"""``log(erfc(a)) / a + 1``, fitted on [0, 4] to the relative error of erf."""
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


def erf_of(m: Math, x: Value) -> Value:
    a = m.abs(x)
    if m.bits == 32:  # -expm1(log(erfc)) is accurate near 0 and beyond: there is nothing to choose between
        a = m.at_most(a, 4.0)
        return m.copysign(_expm1_within(m, m.mad(m.poly(a, _ERFC_LOG), a, m.b.fneg(a))), x)
    z = m.mul(x, x)
    small = m.mul(x, m.div(m.poly(z, _ERF_T), m.poly(z, _ERF_U)))
    a = m.select(m.gt(a, m.c(7)), m.c(7), a)
    tail = m.div(m.poly(a, _ERFC_P), m.poly(a, _ERFC_Q))
    large = m.sub(m.c(1), m.mul(exp_within(m, m.b.fneg(m.mul(a, a))), tail))
    return m.select(m.lt(m.abs(x), m.c(1)), small, m.copysign(large, x))
