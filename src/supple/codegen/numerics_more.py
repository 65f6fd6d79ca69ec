"""Inverse circular functions, powers, remainders, scaling. See `numerics` for their accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable

from supple.base import dtypes
from supple.base.target import Target
from supple.codegen.kernel_builder import Builder, Value
from supple.codegen.numerics_base import Math, floor, in_double, trunc
from supple.codegen.numerics_exp import exp_of, log_of_positive, split_of

_ATAN_P = (
    -8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1, -1.228866684490136173410e2,
    -6.485021904942025371773e1,
)  # fmt: skip
_ATAN_Q = (
    1.0, 2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2, 4.853903996359136964868e2,
    1.945506571482613964425e2,
)  # fmt: skip


def atan_of(m: Math, x: Value) -> Value:
    a = m.abs(x)
    steep, middle = m.gt(a, m.c(2.41421356237309504880)), m.gt(a, m.c(0.66))
    moved = m.div(m.sub(a, m.c(1)), m.add(a, m.c(1)))
    t = m.select(steep, m.div(m.c(-1), a), m.select(middle, moved, a))
    base = m.select(steep, m.c(math.pi / 2), m.select(middle, m.c(math.pi / 4), m.c(0)))
    more = m.select(steep, m.c(6.123233995736765886130e-17), m.select(middle, m.c(3.061616997868382943e-17), m.c(0)))
    z = m.mul(t, t)
    series = m.div(m.mul(z, m.poly(z, _ATAN_P)), m.poly(z, _ATAN_Q))
    return m.copysign(m.add(base, m.add(m.mad(t, series, t), more)), x)


def atan2_of(m: Math, y: Value, x: Value) -> Value:
    a, b = m.abs(x), m.abs(y)
    steep = m.gt(b, a)
    low, high = m.select(steep, a, b), m.select(steep, b, a)
    ratio = m.div(low, high)
    ratio = m.select(m.eq(high, m.c(0)), m.c(0), ratio)
    ratio = m.select(m.eq(low, m.c(math.inf)), m.c(1), ratio)
    angle = atan_of(m, ratio)
    angle = m.select(steep, m.sub(m.c(math.pi / 2), angle), angle)
    left = m.b.compare("icmp slt", m.to_bits(x), m.i(0))
    angle = m.select(left, m.sub(m.c(math.pi), angle), angle)
    either = m.b.compare("fcmp uno", x, y)
    return m.select(either, m.c(math.nan), m.copysign(angle, y))


_ASIN_32 = (4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1)
_ASIN_P = (
    3.47933107596021167570e-5, 7.91534994289814532176e-4, -4.00555345006794114027e-2, 2.01212532134862925881e-1,
    -3.25565818622400915405e-1, 1.66666666666666657415e-1,
)  # fmt: skip
_ASIN_Q = (7.70381505559019352791e-2, -6.88283971605453293030e-1, 2.02094576023350569471, -2.40339491173441421878, 1.0)
_PI_2_LOW = 6.123233995736766e-17


def _arcsine_parts(m: Math, x: Value) -> tuple[Value, Value, Value, Value]:
    """Whether ``|x| > 1/2``, and a number up to 1/2 with what its arcsine has more: of ``|x|``, or there of
    ``sqrt((1 - |x|) / 2)``, the sine of half the angle to 1. Last the sum of the two."""
    a = m.abs(x)
    large = m.gt(a, m.c(0.5))
    z = m.select(large, m.mul(m.c(0.5), m.sub(m.c(1), a)), m.mul(a, a))
    s = m.select(large, m.sqrt(z), a)
    series = m.poly(z, _ASIN_32) if m.bits == 32 else m.div(m.poly(z, _ASIN_P), m.poly(z, _ASIN_Q))
    more = m.mul(m.mul(s, z), series)
    return large, s, more, m.add(s, more)


def asin_of(m: Math, x: Value) -> Value:
    large, _, _, angle = _arcsine_parts(m, x)
    far = m.sub(m.c(math.pi / 2), m.sub(m.add(angle, angle), m.c(_PI_2_LOW)))
    return m.copysign(m.select(large, far, angle), x)


def acos_of(m: Math, x: Value) -> Value:
    large, s, more, angle = _arcsine_parts(m, x)
    left = m.b.compare("icmp slt", m.to_bits(x), m.i(0))
    twice = m.add(angle, angle)
    far = m.select(left, m.sub(m.c(math.pi), m.sub(twice, m.c(2 * _PI_2_LOW))), twice)
    signed = m.select(left, m.b.fneg(s), s)
    near = m.sub(m.c(math.pi / 2), m.add(signed, m.sub(m.copysign(more, x), m.c(_PI_2_LOW))))
    return m.select(large, far, near)


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


def pow_of(m: Math, x: Value, y: Value) -> Value:
    return _power(m, x, y, _precise_power(m, m.abs(x), y))


def pow_single(m: Math, x: Value, y: Value) -> Value:
    """In float64, of float32 numbers: the exponent has 28 bits more than the result needs."""
    return _power(m, x, y, exp_of(m, m.mul(log_of_positive(m, m.abs(x)), y)))


def _precise_power(m: Math, a: Value, y: Value) -> Value:
    """``a**y`` of a positive finite ``a``: the logarithm to twice the precision in its leading term, then the
    exponential."""
    f, e = split_of(m, a)
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
    magnitude = exp_of(m, p)
    usable = m.lt(m.abs(p), m.c(750))  # beyond, the result is 0 or infinite, and the error term may be NaN
    return m.select(usable, m.mad(magnitude, m.select(usable, p_error, m.c(0)), magnitude), magnitude)


def _power(m: Math, x: Value, y: Value, magnitude: Value) -> Value:
    """``x**y`` from ``|x|**y``, which may be any number where x is 0, infinite or NaN, or y is infinite or NaN."""
    b = m.b
    a = m.abs(x)
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


def hypot_of(m: Math, x: Value, y: Value) -> Value:
    a, b = m.abs(x), m.abs(y)
    swap = m.gt(b, a)
    high, low = m.select(swap, b, a), m.select(swap, a, b)
    ratio = m.select(m.eq(high, m.c(0)), m.c(0), m.div(low, high))
    result = m.mul(high, m.sqrt(m.mad(ratio, ratio, m.c(1))))
    result = m.select(m.b.compare("fcmp uno", x, y), m.c(math.nan), result)
    infinite = m.b.op("or", m.eq(a, m.c(math.inf)), m.eq(b, m.c(math.inf)))
    return m.select(infinite, m.c(math.inf), result)


def rsqrt_of(m: Math, x: Value) -> Value:
    return m.div(m.c(1), m.sqrt(x))


_USUAL = 2.0**40
"""Up to this magnitude a quotient in float64 has all digits of the whole part, and some more."""


def _fmod_of(top: int) -> Callable[[Math, Value, Value], Value]:
    """Exact, in float64; ``top``: how far apart the exponents of x and y can be."""

    def anywhere(m: Math, x: Value, y: Value) -> Value:
        return _fmod_from(m, x, y, top)

    def emit(m: Math, x: Value, y: Value) -> Value:
        divisor = m.abs(y)
        plain = m.b.op("and", m.gt(divisor, m.c(2.0**-900)), m.lt(divisor, m.c(2.0**900)))
        measure = m.select(plain, m.div(m.abs(x), divisor), m.c(math.inf))  # the quotient that is needed anyway
        return m.mostly(measure, _USUAL, _fmod_usual, f"fmod{top}", anywhere, x, y)

    return emit


_FMOD_32, _FMOD_64 = _fmod_of(280), _fmod_of(2080)


def _fmod_usual(m: Math, x: Value, y: Value) -> Value:
    """``x`` less a whole number of ``y``, one less where the quotient was rounded up to it."""
    divisor, dividend = m.abs(y), m.abs(x)
    q = trunc(m.b, m.target, m.div(dividend, divisor))
    high, low = _two_product(m, q, divisor)
    rest = m.sub(m.sub(dividend, high), low)
    return m.copysign(m.select(m.lt(rest, m.c(0)), m.add(rest, divisor), rest), x)


def _fmod_from(m: Math, x: Value, y: Value, top: int) -> Value:
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
    for shift in range(top, -1, -40):
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


def fmod(b: Builder, target: Target, x: Value, y: Value) -> Value:
    """The remainder of truncating division, exact."""
    return in_double(_FMOD_32 if dtypes.row(x.dtype).bits == 32 else _FMOD_64)(b, target, x, y)


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


def ldexp_of(m: Math, x: Value, n: Value) -> Value:
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
