"""bfloat16 and the float8 kinds in machine code: integers that are widened to float32 and narrowed from it.

LLVM never sees a value of these types, so it can neither call a library for them nor choose another rounding. Both
directions are straight-line integer code for scalars and vectors alike. Widening is exact; narrowing rounds to nearest,
ties to even, and treats what is too large, NaN and signs of zero as ml_dtypes does: tests compare every bit.
"""

from __future__ import annotations

from dataclasses import dataclass

from supple.base import dtypes
from supple.base.target import Target
from supple.codegen.kernel_builder import Builder, Value

_SIGN, _MAGNITUDE, _INFINITY, _QUIET_NAN = 0x80000000, 0x7FFFFFFF, 0x7F800000, 0x7FC00000  # of float32


@dataclass(frozen=True, slots=True)
class Format:
    """An 8-bit float of a sign, an exponent and ``mantissa`` bits.

    ``largest`` is the code of the largest finite value, ``beyond`` what a larger one becomes, ``nan`` the code of NaN
    (all without the sign). ``unsigned_zero``: the code of -0.0 means NaN, and NaN has no sign.
    """

    mantissa: int
    bias: int
    largest: int
    beyond: int
    nan: int
    unsigned_zero: bool = False

    @property
    def has_infinity(self) -> bool:
        return self.beyond == self.largest + 1 and self.nan != self.beyond

    @property
    def fits_half(self) -> bool:
        """Whether its finite values have exponents of finite float16 values (other biases apart)."""
        return self.largest >> self.mantissa < 31


def _ieee(mantissa: int, bias: int) -> Format:
    infinity = 0x7F >> mantissa << mantissa
    return Format(mantissa, bias, infinity - 1, infinity, infinity | 1 << (mantissa - 1))


def _unsigned_zero(mantissa: int, bias: int) -> Format:
    return Format(mantissa, bias, 0x7F, 0x80, 0x80, True)


FORMATS: dict[str, Format] = {
    "float8_e3m4": _ieee(4, 3),
    "float8_e4m3": _ieee(3, 7),
    "float8_e5m2": _ieee(2, 15),
    "float8_e4m3fn": Format(3, 7, 0x7E, 0x7F, 0x7F),
    "float8_e4m3fnuz": _unsigned_zero(3, 8),
    "float8_e4m3b11fnuz": _unsigned_zero(3, 11),
    "float8_e5m2fnuz": _unsigned_zero(2, 16),
}
"""The 8-bit floats with a sign; ``float8_e8m0fnu`` is a bare exponent."""


def has_unsigned_zero(dtype: str) -> bool:
    """Whether the code of -0.0 means NaN."""
    name = dtypes.element(dtype)
    return name in FORMATS and FORMATS[name].unsigned_zero


class _Words:
    """32-bit integer arithmetic with constants as wide as the values."""

    def __init__(self, b: Builder, lanes: int) -> None:
        self.b = b
        self.word = dtypes.vector("int32", lanes)
        self.float = dtypes.vector("float32", lanes)

    def c(self, number: int) -> Value:
        return self.b.const(number - (1 << 32) if number >= _SIGN else number, self.word)

    def op(self, name: str, a: Value, number: int | Value) -> Value:
        return self.b.op(name, a, number if isinstance(number, Value) else self.c(number))

    def choose(self, comparison: str, a: Value, number: int, then: int | Value, otherwise: Value) -> Value:
        """``then`` where ``a`` compares so (unsigned) with the number, else ``otherwise``."""
        value = then if isinstance(then, Value) else self.c(then)
        return self.b.select(self.b.compare(f"icmp {comparison}", a, self.c(number)), value, otherwise)

    def as_float(self, bits: Value) -> Value:
        return self.b.convert("bitcast", bits, "float32")

    def as_bits(self, value: Value) -> Value:
        return self.b.convert("bitcast", value, "int32")


def widen(b: Builder, target: Target, value: Value) -> Value:
    """A value of such a type as float32, exactly. NaN of the float8 kinds becomes the quiet NaN of its sign."""
    w = _Words(b, dtypes.lanes(value.dtype))
    code = b.convert("zext", value, "int32")
    name = dtypes.element(value.dtype)
    if name == "bfloat16":
        return w.as_float(w.op("shl", code, 16))
    if name == "float8_e8m0fnu":
        bits = w.choose("eq", code, 0, 0x00400000, w.op("shl", code, 23))  # 2**-127 is a denormal of float32
        return w.as_float(w.choose("eq", code, 0xFF, _QUIET_NAN, bits))
    f = FORMATS[name]
    if target.has_half_conversion and f.fits_half:
        return _by_half(b, f, value)
    sign = w.op("shl", w.op("and", code, 0x80), 24)
    magnitude = w.op("and", code, 0x7F)
    places = 23 - f.mantissa
    normal = w.op("add", w.op("shl", magnitude, places), (127 - f.bias) << 23)
    # a subnormal is a whole number of steps: with the exponent of the least normal number, less that number
    least = (128 - f.bias) << 23
    raised = w.as_float(w.op("add", w.op("shl", magnitude, places), least))
    small = w.as_bits(b.op("fsub", raised, w.as_float(w.c(least))))
    bits = w.choose("ult", magnitude, 1 << f.mantissa, small, normal)
    if f.unsigned_zero:
        return w.as_float(w.choose("eq", code, 0x80, _SIGN | _QUIET_NAN, w.op("or", bits, sign)))
    if f.has_infinity:
        bits = w.choose("eq", magnitude, f.beyond, _INFINITY, bits)
    bits = w.choose("ugt", magnitude, f.nan - 1 if not f.has_infinity else f.beyond, _QUIET_NAN, bits)
    return w.as_float(w.op("or", bits, sign))


def _by_half(b: Builder, f: Format, value: Value) -> Value:
    """By the bits of a float16 of the same exponent, which the target converts, times the ratio of the biases."""
    code = b.convert("sext", value, "int16")

    def const(number: int) -> Value:
        return b.const(number - 0x10000 if number >= 0x8000 else number, code.dtype)

    places = 10 - f.mantissa
    half = b.op("and", b.op("shl", code, const(places)), const(0x8000 | 0x7F << places))
    sign = b.op("and", half, const(0x8000))
    if f.unsigned_zero:
        half = b.select(b.compare("icmp eq", half, const(0x8000)), const(0xFE00), half)
    else:
        magnitude = b.op("and", half, const(0x7FFF))
        if f.has_infinity and f.bias != 15:
            infinite = b.compare("icmp eq", magnitude, const(f.beyond << places))
            half = b.select(infinite, b.op("or", sign, const(0x7C00)), half)
        is_nan = b.compare("icmp ugt", magnitude, const((f.beyond if f.has_infinity else f.largest) << places))
        half = b.select(is_nan, b.op("or", sign, const(0x7E00)), half)
    single = b.convert("fpext", b.convert("bitcast", half, "float16"), "float32")
    return single if f.bias == 15 else b.op("fmul", single, b.const(2.0 ** (15 - f.bias), single.dtype))


def narrow(b: Builder, value: Value, name: str) -> Value:
    """A float32 value in such a type, rounded to nearest even."""
    w = _Words(b, dtypes.lanes(value.dtype))
    bits = w.as_bits(value)
    if name == "bfloat16":
        return b.convert("trunc", _to_bfloat16(w, bits), name)
    if name == "float8_e8m0fnu":
        return b.convert("trunc", _to_exponent(w, bits), name)
    f = FORMATS[name]
    sign = w.op("and", w.op("lshr", bits, 24), 0x80)
    magnitude = w.op("and", bits, _MAGNITUDE)
    places = 23 - f.mantissa
    # normal results: add half of the last kept place, less one when that place is even
    even = w.op("and", w.op("lshr", magnitude, places), 1)
    rounded = w.op("add", w.op("add", magnitude, (1 << (places - 1)) - 1), even)
    normal = w.op("lshr", w.op("sub", rounded, (127 - f.bias) << 23), places)
    # subnormal results: beside a number whose last place is the step of the subnormals, the addition rounds
    step = (127 + 1 - f.bias - f.mantissa + 23) << 23
    raised = b.op("fadd", w.as_float(magnitude), w.as_float(w.c(step)))
    small = w.op("sub", w.as_bits(raised), step)
    code = w.choose("ult", magnitude, (128 - f.bias) << 23, small, normal)
    code = w.choose("ugt", code, f.largest, f.beyond, code)
    code = w.choose("ugt", magnitude, _INFINITY, f.nan, code)
    if f.unsigned_zero:  # the sign belongs to numbers other than zero
        sign = w.choose("eq", code, 0, 0, sign)
    return b.convert("trunc", w.op("or", code, sign), name)


def _to_bfloat16(w: _Words, bits: Value) -> Value:
    even = w.op("and", w.op("lshr", bits, 16), 1)
    rounded = w.op("lshr", w.op("add", w.op("add", bits, 0x7FFF), even), 16)
    nan = w.op("or", w.op("lshr", w.op("and", bits, _SIGN), 16), _QUIET_NAN >> 16)
    return w.choose("ugt", w.op("and", bits, _MAGNITUDE), _INFINITY, nan, rounded)


def _to_exponent(w: _Words, bits: Value) -> Value:
    """float8_e8m0fnu: the nearest power of two, the larger of two; zero and negative numbers become NaN."""
    code = w.op("lshr", w.op("add", bits, 1 << 22), 23)
    # denormals: up to 2**-127 that number, above it 2**-126 (ml_dtypes rounds up here)
    tiny = w.choose("ule", bits, 1 << 22, 0, w.c(1))
    code = w.choose("ult", bits, 1 << 23, tiny, code)
    # all else than positive finite numbers: 0 wraps around, the others are larger
    return w.choose("uge", w.op("sub", bits, 1), _INFINITY - 1, 0xFF, code)
