"""Sine, cosine and tangent, of arguments of every size. See `numerics` for their accuracy.

The argument less a multiple of pi/2 is found with four pieces of pi/2 where their products with the multiple are exact.
Larger arguments go to a function apart, which multiplies the argument's integer mantissa with those bits of 2/pi that
matter (Payne and Hanek): those above give whole turns, those below nothing that a result shows.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from supple.base import dtypes
from supple.base.target import Target
from supple.codegen.kernel_builder import Builder, Value
from supple.codegen.numerics_base import Function, Math, in_double

_LIMIT = 1e6  # up to here a multiple of pi/2 has 20 bits, so that its product with a piece is exact
_PI_2 = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32)  # 33, 33, 33, 53 bits
_SIN = (
    1.58962301576546568060e-10, -2.50507477628578072866e-8, 2.75573136213857245213e-6, -1.98412698295895385996e-4,
    8.33333333332211858878e-3, -1.66666666666666307295e-1,
)  # fmt: skip
_COS = (
    -1.13585365213876817300e-11, 2.08757008419747316778e-9, -2.75573141792967388112e-7, 2.48015872888517045348e-5,
    -1.38888888888730564116e-3, 4.16666666666665929218e-2,
)  # fmt: skip

_PI_2_32 = (1.570796251296997, 7.549789415861596e-08, 5.390302529957765e-15)  # 24 bits each, rounded down
_SIN_32 = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COS_32 = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)

_Finish = Callable[[Math, Value, Value, Value], Value]
"""The result from the argument, its rest (at most pi/4 in magnitude) and how many quarters of a turn were taken off."""


def circular_of(first: int) -> Function:
    """The sine shifted by a number of quadrants."""
    double, name = _circular_64(first), f"circular{first}"

    def usual(m: Math, x: Value) -> Value:
        return _turned(m, x, *_reduced_32(m, x), first)

    def anywhere(m: Math, x: Value) -> Value:
        large = m.b.convert("fptrunc", double(m.in_double(), m.b.convert("fpext", x, "float64")), "float32")
        return m.select(m.b.compare("fcmp ugt", m.abs(x), m.c(_LIMIT)), large, usual(m, x))

    def single(m: Math, x: Value) -> Value:
        return m.mostly(x, _LIMIT, usual, name, anywhere)

    def emit(b: Builder, target: Target, x: Value) -> Value:
        if target.has_fma and dtypes.row(x.dtype).bits == 32:
            return single(Math(b, target, x.dtype), x)
        return in_double(double)(b, target, x)

    return emit


def _circular_64(first: int) -> Callable[[Math, Value], Value]:
    def finish(m: Math, x: Value, r: Value, quadrant: Value) -> Value:
        return _turned(m, x, r, quadrant, first)

    return _reducing(f"circular{first}", finish)


def _turned(m: Math, x: Value, r: Value, quadrant: Value, first: int) -> Value:
    """The sine or the cosine of a rest, with a sign, by quadrants."""
    sine, cosine = _sin_cos(m, r)
    turned = m.b.op("add", quadrant, m.i(first))
    result = m.select(_bit(m, turned, 1), cosine, sine)
    result = m.select(_bit(m, turned, 2), m.b.fneg(result), result)
    return m.select(m.lt(m.abs(x), m.c(math.inf)), result, m.c(math.nan))


def _tan(m: Math, x: Value, r: Value, quadrant: Value) -> Value:
    sine, cosine = _sin_cos(m, r)
    odd = _bit(m, quadrant, 1)
    result = m.div(m.select(odd, m.b.fneg(cosine), sine), m.select(odd, sine, cosine))
    return m.select(m.lt(m.abs(x), m.c(math.inf)), result, m.c(math.nan))


def _bit(m: Math, value: Value, bit: int) -> Value:
    return m.b.compare("icmp ne", m.b.op("and", value, m.i(bit)), m.i(0))


def _sin_cos(m: Math, r: Value) -> tuple[Value, Value]:
    z = m.mul(r, r)
    of_sine, of_cosine = (_SIN, _COS) if m.bits == 64 else (_SIN_32, _COS_32)
    sine = m.copysign(m.mad(m.mul(r, z), m.poly(z, of_sine), r), r)  # the sum loses the sign of zero
    return sine, m.add(m.mad(z, m.c(-0.5), m.c(1)), m.mul(m.mul(z, z), m.poly(z, of_cosine)))


def _reducing(name: str, finish: _Finish) -> Callable[[Math, Value], Value]:
    """The function of a finish: any lane beyond the limit sends all of them to the function apart, in which the others
    get the same bits as here."""

    def anywhere(m: Math, x: Value) -> Value:
        if dtypes.lanes(m.dtype) > 1:
            one = Math(m.b, m.target, dtypes.element(m.dtype))
            result, function = m.c(0), one.apart(name, anywhere)
            for lane in range(dtypes.lanes(m.dtype)):
                result = m.b.insert(result, one.call(function, m.b.extract(x, lane)), lane)
            return result
        r, quadrant = _reduced(m, x)
        exact, turns = _reduced_by_bits(m, x)
        large = m.beyond(x, _LIMIT)
        return finish(m, x, m.select(large, exact, r), m.select(large, turns, quadrant))

    def usual(m: Math, x: Value) -> Value:
        return finish(m, x, *_reduced(m, x))

    return lambda m, x: m.mostly(x, _LIMIT, usual, name, anywhere)


def _reduced_32(m: Math, x: Value) -> tuple[Value, Value]:
    """The rest of a float32 argument up to the limit, and the quarters of a turn by their low bits, with fused
    multiply-adds: the first is exact, as argument and piece are multiples of the same power of two, so that each of
    the others is rounded to the size of what is left."""
    turns, quadrant = m.nearest(x, 2 / math.pi)
    r = x
    for piece in _PI_2_32:
        r = m.mad(turns, m.c(-piece), r)
    return r, quadrant


tan_of = _reducing("tan", _tan)


def _reduced(m: Math, x: Value) -> tuple[Value, Value]:
    """The rest of an argument up to the limit, and the quarters of a turn by their low bits."""
    turns, quadrant = m.nearest(x, 2 / math.pi)
    r = x
    for piece in _PI_2:
        r = m.mad(turns, m.c(-piece), r)
    return r, quadrant


# ------------------------------------------------------------------------------------------------------ large arguments

_LEAD = 64  # zeros before the binary point in the table, for arguments below 2**52
_WORDS = 20  # as many as the largest argument reaches


def _two_over_pi(bits: int) -> int:
    """``2**bits * 2/pi``, rounded down."""
    guarded = bits + 64

    def arctangent(n: int) -> int:
        """Of 1/n, in units of ``2**-guarded``."""
        total, power, k = 0, (1 << guarded) // n, 1
        while power:
            total += power // k if k % 4 == 1 else -(power // k)
            power, k = power // (n * n), k + 2
        return total

    quarter = 4 * arctangent(5) - arctangent(239)  # Machin's pi / 4
    return (1 << (bits + guarded - 1)) // quarter


@functools.cache
def _table() -> str:
    """A constant with the bits of 2/pi, 64 in a word, those of most weight first."""
    number = _two_over_pi(64 * _WORDS - _LEAD)
    words = [number >> 64 * (_WORDS - 1 - n) & (1 << 64) - 1 for n in range(_WORDS)]
    text = ", ".join(f"i64 {word}" for word in words)
    return f"@two_over_pi = internal unnamed_addr constant [{_WORDS} x i64] [{text}], align 8"


def _high_product(m: Math, x: Value, y: Value) -> Value:
    """The upper 64 bits of a product of unsigned 64-bit integers."""
    b, mask = m.b, m.i((1 << 32) - 1)
    xl, xh, yl, yh = (part for v in (x, y) for part in (b.op("and", v, mask), b.op("lshr", v, m.i(32))))
    upper = b.op("add", b.op("mul", xh, yl), b.op("lshr", b.op("mul", xl, yl), m.i(32)))
    lower = b.op("add", b.op("mul", xl, yh), b.op("and", upper, mask))
    carried = b.op("add", b.op("lshr", upper, m.i(32)), b.op("lshr", lower, m.i(32)))
    return b.op("add", b.op("mul", xh, yh), carried)


def _reduced_by_bits(m: Math, x: Value) -> tuple[Value, Value]:
    """The rest of a float64 of at least 2**16 (others give any number), and the quarters of a turn.

    With ``|x| == mantissa * 2**e`` the bits of 2/pi of weight ``2**(2 - e)`` and above make multiples of four quarters.
    128 bits of the product with those below are kept: no float64 is so near a multiple of pi/2 that its rest would need
    more than 62 bits besides its own.
    """
    b = m.b
    bits = b.op("and", m.to_bits(x), m.i((1 << 63) - 1))
    mantissa = b.op("or", b.op("and", bits, m.i((1 << 52) - 1)), m.i(1 << 52))
    e = b.op("sub", b.op("lshr", bits, m.i(52)), m.i(1075))
    first = b.op("add", e, m.i(_LEAD - 2))  # the place of the bit of weight 2**(1 - e): a bit of weight 1/2 is at _LEAD
    first = b.intrinsic("llvm.smax", m.int_dtype, first, m.i(0))
    b.declare(_table())
    word, offset = b.op("lshr", first, m.i(6)), b.op("and", first, m.i(63))
    words = []
    for n in range(4):
        place = b.op("add", word, m.i(n))
        address = b.pure(f"getelementptr i64, ptr @two_over_pi, i64 {place.ref}", "handle", (place,))
        words.append(b.pure(f"load i64, ptr {address.ref}", m.int_dtype, (address,)))
    high, middle, low = (b.intrinsic("llvm.fshl", m.int_dtype, *words[n : n + 2], offset) for n in range(3))
    # the product from weight 2 of the quarters on, in 128 bits
    below = b.op("mul", mantissa, middle)
    lower = b.op("add", below, _high_product(m, mantissa, low))
    carry = b.convert("zext", b.compare("icmp ult", lower, below), "int64")
    upper = b.op("add", b.op("mul", mantissa, high), b.op("add", _high_product(m, mantissa, middle), carry))
    # the fraction as a signed number, so that the quarters are those nearest
    fraction = b.intrinsic("llvm.fshl", m.int_dtype, upper, lower, m.i(2))
    sign = b.op("ashr", fraction, m.i(63))
    turns = b.op("sub", b.op("lshr", upper, m.i(62)), sign)
    fraction = b.op("xor", fraction, sign)
    rest = b.op("xor", b.op("shl", lower, m.i(2)), sign)
    zeros = b.pure(f"call i64 @llvm.ctlz.i64(i64 {fraction.ref}, i1 false)", m.int_dtype, (fraction,))
    b.declare("declare i64 @llvm.ctlz.i64(i64, i1)")
    leading = b.op("lshr", b.intrinsic("llvm.fshl", m.int_dtype, fraction, rest, zeros), m.i(1))
    size = m.mul(b.convert("sitofp", leading, "float64"), m.power_of_two(b.op("sub", m.i(-63), zeros)))
    r = m.mul(size, m.c(math.pi / 2))
    flip = b.op("xor", sign, b.op("ashr", m.to_bits(x), m.i(63)))
    turns = b.select(b.compare("icmp slt", m.to_bits(x), m.i(0)), b.op("sub", m.i(0), turns), turns)
    return m.copysign(r, m.from_bits(flip)), turns
