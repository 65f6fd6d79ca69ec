"""Elementwise operators of two tensors, with numpy's broadcasting. Both operands have one dtype; one may be a
number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.base.errors import NotSupportedError
from supple.build import te
from supple.build.loops import Cell, do, nest, store, when, while_, with_cells
from supple.ir import expr as E
from supple.ir.expr import Call, const, is_scalar
from supple.ir.intrinsics import intrinsic
from supple.ir.node import Expr, Stmt, Type
from supple.ir.op import OPS, Fusion, Op
from supple.ops.declare import Operand, Sample, fail, operator, sample
from supple.ops.requirements import require_numbers, require_values
from supple.ops.shapes import broadcast_dims, broadcast_index, broadcast_type, operands_dtype
from supple.ops.unary import truth


def _samples() -> list[Sample]:
    ints = np.array([[-7, 0, 3], [5, -1, 2]], "int32")
    return [
        sample((3, 4), (3, 4)),
        sample((2, 1, 5), (3, 1)),
        sample((4,), ()),
        sample((0, 3), (1, 3)),
        sample(ints, np.array([2, -3, 1], "int32")),
    ]


def _shape(x: te.TensorValue | Expr) -> tuple[Expr, ...]:
    return x.shape if isinstance(x, te.TensorValue) else ()


def _element(x: te.TensorValue | Expr, indices: Any) -> Expr:
    """What stands at an index of the result: an element of a tensor, or the number."""
    return x[broadcast_index(x.shape, indices)] if isinstance(x, te.TensorValue) else x


def _of_numbers(formula: Callable[[Expr, Expr], Expr]) -> Callable[[Call], Expr | None]:
    """The number that a call of numbers alone is; None where a tensor is among its operands."""

    def number(call: Call) -> Expr | None:
        one, other = call.args
        return formula(one, other) if is_scalar(one) and is_scalar(other) else None

    return number


def _lower(name: str, formula: Callable[[Expr, Expr], Expr]) -> Callable[..., Any]:
    def lower(x1: te.TensorValue | Expr, x2: te.TensorValue | Expr) -> te.TensorValue:
        dims = broadcast_dims(name, _shape(x1), _shape(x2))
        if dims is None:
            fail(f"{name}: the broadcast shape is not known", hint="use R.match_cast to relate the dimensions")

        def body(*i: Any) -> Expr:
            return formula(_element(x1, i), _element(x2, i))

        return te.compute(dims, body, f"T_{name}")

    return lower


def _arithmetic(
    name: str, doc: str, formula: Callable[[Expr, Expr], Expr], ref: Callable[..., Any], python: str | None = None
) -> Op:
    def rule(x1: Operand, x2: Operand) -> Type:
        for x in (x1, x2):
            require_numbers(name, x)
        return broadcast_type(name, x1, x2, operands_dtype(name, x1, x2))

    rule.__doc__ = doc
    return operator(
        name,
        fusion=Fusion.BROADCAST,
        lower=_lower(name, formula),
        scalar=_of_numbers(formula),
        ref=ref,
        samples=_samples,
        python=python,
    )(rule)


def _comparison(name: str, doc: str, kind: type[E.CompareOp], ref: Callable[..., Any], python: str) -> Op:
    def rule(x1: Operand, x2: Operand) -> Type:
        return broadcast_type(name, x1, x2, "bool")

    def reference(x1: Any, x2: Any) -> Any:
        x1, x2 = np.asarray(x1), np.asarray(x2)
        dtype = _compared(dtypes.from_numpy(x1.dtype), dtypes.from_numpy(x2.dtype))
        return ref(x1, x2) if dtype is None else ref(dtypes.convert(x1, dtype), dtypes.convert(x2, dtype))

    rule.__doc__ = f"{doc} Operands of different dtypes are compared by their values."
    return operator(
        name,
        fusion=Fusion.BROADCAST,
        lower=_lower(name, _by_value(kind)),
        scalar=_of_numbers(_by_value(kind)),
        ref=reference,
        samples=lambda: [*_samples(), sample((3,), np.array([0, 1, -2], "int32"))],
        python=python,
    )(rule)


def _compared(a: str, b: str) -> str | None:
    """The dtype in which numbers of two dtypes are compared; None for one of 64 bits without a sign and one with."""
    if a == b:
        return a
    if dtypes.is_narrow(a) and dtypes.is_narrow(b):
        return "float32"
    wide = [np.dtype("float32") if dtypes.is_narrow(d) else dtypes.to_numpy(d) for d in (a, b)]
    common = np.promote_types(*wide)
    whole = all(w.kind in "iu" for w in wide)
    return None if whole and common.kind == "f" else dtypes.from_numpy(common)


def _by_value(kind: type[E.CompareOp]) -> Callable[[Expr, Expr], Expr]:
    """A comparison of numbers of any two dtypes."""

    def compare(a: Expr, b: Expr) -> Expr:
        one, other = E.scalar_dtype(a), E.scalar_dtype(b)
        dtype = _compared(one, other)
        if dtype is not None:
            return kind(E.cast(dtype, a), E.cast(dtype, b))
        # a negative number is below all numbers without a sign
        signed, below = (b, kind(const(1, "int32"), const(0, "int32")))
        if not one.startswith("u"):
            signed, below = (a, kind(const(0, "int32"), const(1, "int32")))
        negative = E.LT(signed, const(0, E.scalar_dtype(signed)))
        return E.Select(negative, below, kind(E.cast("uint64", a), E.cast("uint64", b)))

    return compare


def _divide(a: Expr, b: Expr) -> Expr:
    return E.Div(a, b)


def _divide_ref(x1: Any, x2: Any) -> Any:
    x1, x2 = np.asarray(x1), np.asarray(x2)
    if x1.dtype.kind not in "iu":
        return np.divide(x1, x2)
    safe = np.where(x2 == 0, np.ones((), x2.dtype), x2)
    quotient = np.floor_divide(x1, safe)
    quotient = quotient + ((quotient * safe != x1) & ((x1 < 0) != (safe < 0)))  # floor -> towards zero
    return np.where(x2 == 0, np.zeros((), x1.dtype), quotient).astype(x1.dtype)


def _by_zero_is_zero(function: Callable[..., Any]) -> Callable[..., Any]:
    """numpy's integer division warns and gives 0; the same without the warning."""

    def ref(x1: Any, x2: Any) -> Any:
        x1, x2 = np.asarray(x1), np.asarray(x2)
        if x1.dtype.kind not in "iu":
            return function(x1, x2)
        safe = np.where(x2 == 0, np.ones((), x2.dtype), x2)
        return np.where(x2 == 0, np.zeros((), x1.dtype), function(x1, safe)).astype(x1.dtype)

    return ref


def _floor_divide(a: Expr, b: Expr) -> Expr:
    if dtypes.is_float(E.scalar_dtype(a)):
        return intrinsic("floor", E.Div(a, b))
    return E.FloorDiv(a, b)


def _power_lower(x1: te.TensorValue | Expr, x2: te.TensorValue | Expr) -> te.TensorValue:
    dtype = x1.dtype if isinstance(x1, te.TensorValue) else E.scalar_dtype(x1)
    if dtypes.is_float(dtype):
        return _lower("power", lambda a, b: intrinsic("pow", a, b))(x1, x2)  # type: ignore[no-any-return]
    dims = broadcast_dims("power", _shape(x1), _shape(x2))
    if dims is None:
        fail("power: the broadcast shape is not known", hint="use R.match_cast to relate the dimensions")
    zero, one = const(0, dtype), const(1, dtype)

    def body(out: te.TensorValue) -> Stmt:
        base, left, result = (Cell(dtype, name) for name in ("base", "left", "result"))

        def element(*i: Any) -> Stmt:
            a, b = _element(x1, i), _element(x2, i)
            odd = E.NE(intrinsic("bitwise_and", left.value, one), zero)
            squared = while_(
                E.GT(left.value, zero),
                when(odd, result.set(E.Mul(result.value, base.value))),
                base.set(E.Mul(base.value, base.value)),
                left.set(intrinsic("shift_right", left.value, one)),
            )
            steps = [base.set(a), left.set(b), result.set(one), squared]
            if not dtype.startswith("u"):  # 1 / x ** n: 0 but for 1 and -1
                minus = const(-1, dtype)
                sign = E.Select(E.NE(intrinsic("bitwise_and", b, one), zero), minus, one)
                inverse = E.Select(E.EQ(a, one), one, E.Select(E.EQ(a, minus), sign, zero))
                steps.append(when(E.LT(b, zero), result.set(inverse)))
            return do(*steps, store(out, result.value, *i))

        return with_cells([base, left, result], nest(dims, element))

    return te.extern([(dims, dtype)], [x for x in (x1, x2) if isinstance(x, te.TensorValue)], body, "T_power")[0]


def _power_ref(x1: Any, x2: Any) -> Any:
    x1, x2 = np.asarray(x1), np.asarray(x2)
    if x1.dtype.kind not in "iu":
        return np.power(x1, x2)
    whole = np.power(x1, np.maximum(x2, 0))
    inverse = np.where(x1 == 1, 1, np.where(x1 == -1, np.where(x2 % 2 != 0, -1, 1), 0))
    return np.where(x2 < 0, inverse, whole).astype(x1.dtype)


def _floor_mod(a: Expr, b: Expr) -> Expr:
    if not dtypes.is_float(E.scalar_dtype(a)):
        return E.FloorMod(a, b)
    remainder = intrinsic("fmod", a, b)
    zero = E.const(0, E.scalar_dtype(a))
    opposite = E.And(E.NE(remainder, zero), E.NE(E.LT(remainder, zero), E.LT(b, zero)))
    signed_zero = intrinsic("copysign", zero, b)  # numpy: a zero has the divisor's sign
    return E.Select(E.EQ(remainder, zero), signed_zero, E.Select(opposite, E.Add(remainder, b), remainder))


add = _arithmetic("add", "Elementwise sum ``x1 + x2``.", E.Add, np.add, "add")
add.facts["role"] = "add"
subtract = _arithmetic("subtract", "Elementwise difference ``x1 - x2``.", E.Sub, np.subtract, "sub")
multiply = _arithmetic("multiply", "Elementwise product ``x1 * x2``.", E.Mul, np.multiply, "mul")
divide = _arithmetic(
    "divide",
    "Elementwise quotient ``x1 / x2``; integers keep their dtype and round towards zero (``x / 0`` is 0).",
    _divide,
    _divide_ref,
    "truediv",
)
floor_divide = _arithmetic(
    "floor_divide",
    "Elementwise ``floor(x1 / x2)``; for integers ``x // 0`` is 0.",
    _floor_divide,
    lambda x1, x2: (
        np.floor(np.divide(x1, x2)) if dtypes.is_float_array(x1) else _by_zero_is_zero(np.floor_divide)(x1, x2)
    ),
    "floordiv",
)
floor_mod = _arithmetic(
    "floor_mod",
    "Elementwise remainder of floor division, with the sign of ``x2``; for integers ``x % 0`` is 0.",
    _floor_mod,
    _by_zero_is_zero(np.mod),
)
maximum = _arithmetic("maximum", "Elementwise maximum; NaN if either is NaN.", E.Max, np.maximum)
minimum = _arithmetic("minimum", "Elementwise minimum; NaN if either is NaN.", E.Min, np.minimum)

equal = _comparison("equal", "Elementwise ``x1 == x2``.", E.EQ, np.equal, "eq")
not_equal = _comparison("not_equal", "Elementwise ``x1 != x2``.", E.NE, np.not_equal, "ne")
less = _comparison("less", "Elementwise ``x1 < x2``.", E.LT, np.less, "lt")
less_equal = _comparison("less_equal", "Elementwise ``x1 <= x2``.", E.LE, np.less_equal, "le")
greater = _comparison("greater", "Elementwise ``x1 > x2``.", E.GT, np.greater, "gt")
greater_equal = _comparison("greater_equal", "Elementwise ``x1 >= x2``.", E.GE, np.greater_equal, "ge")


def _power_of_numbers(a: Expr, b: Expr) -> Expr:
    if not dtypes.is_float(E.scalar_dtype(a)):
        raise NotSupportedError("power: native code has no power of two integers beside no tensor", hint="R.const")
    return intrinsic("pow", a, b)


@operator(
    fusion=Fusion.BROADCAST,
    lower=_power_lower,
    scalar=_of_numbers(_power_of_numbers),
    ref=_power_ref,
    samples=lambda: [
        sample(np.abs(np.linspace(0.1, 3, 12, dtype="float32")).reshape(3, 4), (3, 4)),
        sample(np.array([[-3], [0], [2], [-1]], "int32"), np.array([0, 1, 5, 33, -1, -2], "int32")),
        sample(np.array([2, 3, 255], "uint8"), np.array([7, 8, 2], "uint8")),
    ],
    python="pow",
)
def power(x1: Operand, x2: Operand) -> Type:
    """Elementwise ``x1 ** x2``. Integers wrap; to a negative power they give the quotient ``1 / x``, rounded towards
    zero: 1 and -1 have one, all others give 0."""
    for x in (x1, x2):
        require_numbers("power", x)
    return broadcast_type("power", x1, x2, operands_dtype("power", x1, x2))


def _logical(name: str, doc: str, formula: Callable[[Expr, Expr], Expr], ref: Callable[..., Any]) -> Op:
    def rule(x1: Operand, x2: Operand) -> Type:
        return broadcast_type(name, x1, x2, operands_dtype(name, x1, x2))

    rule.__doc__ = doc

    def of_any(a: Expr, b: Expr) -> Expr:
        return E.cast(E.scalar_dtype(a), formula(truth(a), truth(b)))

    bools = np.array([[True, False], [False, True]])
    return operator(
        name,
        fusion=Fusion.BROADCAST,
        lower=_lower(name, of_any),
        scalar=_of_numbers(of_any),
        ref=lambda x1, x2: ref(x1, x2).astype(np.asarray(x1).dtype),
        samples=lambda: [
            sample(bools, np.array([True, False])),
            sample(bools, np.array(True)),
            sample(np.array([[0, 2], [-1, 0]], "int32"), np.array([0, 3], "int32")),
        ],
    )(rule)


logical_and = _logical(
    "logical_and", "Both, elementwise; of numbers those that are not 0, in their dtype.", E.And, np.logical_and
)
logical_or = _logical(
    "logical_or", "Either, elementwise; of numbers those that are not 0, in their dtype.", E.Or, np.logical_or
)
logical_xor = _logical("logical_xor", "One of the two, elementwise.", E.NE, np.logical_xor)


def _bitwise(name: str, doc: str, ref: Callable[..., Any], python: str | None = None, bools: bool = True) -> Op:
    def rule(x1: Operand, x2: Operand) -> Type:
        dtype = operands_dtype(name, x1, x2)
        if dtype is not None and not (dtypes.is_int(dtype) or (bools and dtype == "bool")):
            require_values(f"{name}: needs integers" + (" or bools" if bools else ""), "an integer dtype", dtype)
        return broadcast_type(name, x1, x2, dtype)

    rule.__doc__ = doc
    intrinsic_name = {"left_shift": "shift_left", "right_shift": "shift_right"}.get(name, name)
    x, y = np.array([[-7, 0, 3], [5, -1, 127]], "int8"), np.array([2, 0, 9], "int8")
    return operator(
        name,
        fusion=Fusion.BROADCAST,
        lower=_lower(name, lambda a, b: intrinsic(intrinsic_name, a, b)),
        scalar=_of_numbers(lambda a, b: intrinsic(intrinsic_name, a, b)),
        ref=ref,
        samples=lambda: [sample(x, y), sample(x.astype("uint64"), y.astype("uint64"))],
        python=python,
    )(rule)


bitwise_and = _bitwise("bitwise_and", "Bits set in both.", np.bitwise_and, "and")
bitwise_or = _bitwise("bitwise_or", "Bits set in either.", np.bitwise_or, "or")
bitwise_xor = _bitwise("bitwise_xor", "Bits set in one of the two.", np.bitwise_xor, "xor")
left_shift = _bitwise(
    "left_shift",
    "``x1 * 2**x2`` in the dtype; 0 for shifts by the width or more.",
    OPS.get("tirx.shift_left").facts["intrinsic"].numpy,
    "lshift",
    bools=False,
)
right_shift = _bitwise(
    "right_shift",
    "``floor(x1 / 2**x2)``; 0 or -1 for shifts by the width or more.",
    OPS.get("tirx.shift_right").facts["intrinsic"].numpy,
    "rshift",
    bools=False,
)


def _fmod(a: Expr, b: Expr) -> Expr:
    return intrinsic("fmod", a, b) if dtypes.is_float(E.scalar_dtype(a)) else E.Mod(a, b)


mod = _arithmetic(
    "mod",
    "Elementwise remainder of truncating division, with the sign of ``x1``; for integers ``x % 0`` is 0.",
    _fmod,
    _by_zero_is_zero(np.fmod),
    "mod",
)


def _log_add_exp(a: Expr, b: Expr) -> Expr:
    """``max + log1p(exp(min - max))``: never overflows. Equal operands (infinities too) give ``a + log 2``."""
    top = E.Max(a, b)
    gap = E.Select(E.EQ(a, b), E.const(0, E.scalar_dtype(a)), E.Sub(E.Min(a, b), top))
    return E.Add(top, intrinsic("log1p", intrinsic("exp", gap)))


def _pair(name: str, doc: str, formula: Callable[[Expr, Expr], Expr], ref: Callable[..., Any]) -> Op:
    def rule(x1: Operand, x2: Operand) -> Type:
        dtype = operands_dtype(name, x1, x2)
        if dtype is not None and not dtypes.is_float(dtype):
            fail(f"{name}: needs floating-point tensors", "a floating-point dtype", dtype)
        return broadcast_type(name, x1, x2, dtype)

    rule.__doc__ = doc
    special = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan], "float32")
    return operator(
        name,
        fusion=Fusion.BROADCAST,
        lower=_lower(name, formula),
        scalar=_of_numbers(formula),
        ref=ref,
        samples=lambda: [sample((3, 4), (4,)), sample(special[:, None], special[None, :])],
    )(rule)


atan2 = _pair(
    "atan2", "The angle of the point (x2, x1), elementwise.", lambda a, b: intrinsic("atan2", a, b), np.arctan2
)
log_add_exp = _pair(
    "log_add_exp", "``log(exp(x1) + exp(x2))`` without overflow, elementwise.", _log_add_exp, np.logaddexp
)
