"""Elementwise operators of one tensor."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.build import te
from supple.ir import expr as E
from supple.ir.expr import TENSOR_OPERATORS, cast, const, scalar_dtype
from supple.ir.intrinsics import absolute, intrinsic
from supple.ir.node import Expr, Type
from supple.ir.op import Fusion, Op
from supple.ir.types import TensorType
from supple.ops.declare import DType, Sample, Scalar, fail, operator, sample
from supple.ops.requirements import require_numbers, require_values


def _samples() -> list[Sample]:
    special = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 88.0, -104.0, 1e-40], "float32")
    return [sample((3, 5)), sample(()), sample((0, 2)), sample(special), sample(np.linspace(-3, 3, 7))]


def map_elements(name: str, formula: Callable[[Expr], Expr]) -> Callable[..., Any]:
    """The lowering of an elementwise operator."""

    def lower(x: te.TensorValue) -> te.TensorValue:
        return te.compute(x.shape, lambda *i: formula(x[i]), f"T_{name}")

    return lower


def _floating(
    name: str,
    doc: str,
    ref: Callable[..., Any],
    formula: Callable[[Expr], Expr] | None = None,
    kernel: str | None = None,
) -> Op:
    """An operator on floating-point tensors whose lowering is the scalar intrinsic of the same name, or ``formula``.
    Loop functions of elementwise operators are named as Relax names them, with ``tir_`` or by ``kernel``."""
    short = name.rpartition(".")[2]

    def rule(x: TensorType) -> Type:
        if x.dtype is not None and not dtypes.is_float(x.dtype):
            fail(f"{name}: needs a floating-point tensor", "a floating-point dtype", x.dtype, hint="x.astype(...)")
        return x

    rule.__doc__ = doc
    lower = map_elements(short, formula or (lambda x: intrinsic(short, x)))
    return operator(
        name, fusion=Fusion.ELEMENTWISE, lower=lower, ref=ref, samples=_samples, kernel=kernel or f"tir_{short}"
    )(rule)


def _numeric(
    name: str, doc: str, ref: Callable[..., Any], formula: Callable[[Expr], Expr], python: str | None = None
) -> Op:
    """An operator on tensors of any number."""

    def rule(x: TensorType) -> Type:
        return numeric(name, x)

    rule.__doc__ = doc
    lower = map_elements(name, formula)
    return operator(
        name,
        fusion=Fusion.ELEMENTWISE,
        lower=lower,
        ref=ref,
        samples=_samples,
        python=python,
        kernel=f"tir_{name}",
    )(rule)


def _integral(name: str, doc: str, ref: Callable[..., Any]) -> Op:
    """An operator that gives whole numbers: those of integers are the integers."""

    def rule(x: TensorType) -> Type:
        return numeric(name, x)

    rule.__doc__ = doc
    return operator(
        name,
        fusion=Fusion.ELEMENTWISE,
        lower=map_elements(name, lambda x: intrinsic(name, x) if dtypes.is_float(scalar_dtype(x)) else x),
        ref=lambda x: ref(x) if dtypes.is_float(dtypes.from_numpy(np.asarray(x).dtype)) else np.array(x),
        samples=lambda: [*_samples(), sample(np.array([-7, 0, 3], "int8"))],
        kernel=f"tir_{name}",
    )(rule)


def numeric(name: str, x: TensorType) -> TensorType:
    """The type of an operator on tensors of any number; of bools there is nothing to compute."""
    return require_numbers(name, x)


def erf_ref(x: Any) -> Any:
    """The error function, element by element (numpy has none)."""
    values = np.asarray(x)
    return np.array([math.erf(v) for v in values.ravel().tolist()], values.dtype).reshape(values.shape)


def _sigmoid(x: Any) -> Any:
    small = np.exp(-np.abs(x))
    one = np.ones((), np.asarray(x).dtype)
    return np.where(np.asarray(x) >= 0, one / (one + small), small / (one + small)).astype(np.asarray(x).dtype)


def truth(x: Expr) -> Expr:
    """Whether a value is not 0."""
    return x if scalar_dtype(x) == "bool" else E.NE(x, const(0, scalar_dtype(x)))


def _zero(x: Expr) -> Expr:
    return const(0, scalar_dtype(x))


exp = _floating("exp", "e to the power of each element.", np.exp)
log = _floating("log", "Natural logarithm of each element.", np.log)
sqrt = _floating("sqrt", "Square root of each element.", np.sqrt)
tanh = _floating("tanh", "Hyperbolic tangent of each element.", np.tanh)
sigmoid = _floating("sigmoid", "``1 / (1 + exp(-x))`` of each element.", _sigmoid)
floor = _integral("floor", "The greatest integer not above each element.", np.floor)
ceil = _integral("ceil", "The least integer not below each element.", np.ceil)
round = _integral("round", "The nearest integer of each element; halves go to the even one.", np.rint)
trunc = _integral("trunc", "The integer part of each element.", np.trunc)
rsqrt = _floating(
    "rsqrt",
    "``1 / sqrt(x)`` of each element.",
    lambda x: np.ones((), np.asarray(x).dtype) / np.sqrt(x),
    lambda x: E.Div(const(1, scalar_dtype(x)), intrinsic("sqrt", x)),
)
negative = _numeric(
    "negative",
    "``-x`` of each element.",
    np.negative,
    lambda x: E.Mul(x, const(-1, scalar_dtype(x))) if dtypes.is_float(scalar_dtype(x)) else E.Sub(_zero(x), x),
    "neg",
)
abs = _numeric("abs", "Absolute value of each element.", np.abs, absolute, "abs")


@operator(
    "nn.relu",
    fusion=Fusion.ELEMENTWISE,
    lower=map_elements("relu", lambda x: E.Max(x, _zero(x))),
    ref=lambda x: np.maximum(x, np.zeros((), np.asarray(x).dtype)),
    samples=_samples,
)
def relu(data: TensorType) -> Type:
    """``max(x, 0)`` of each element; NaN stays NaN."""
    return numeric("nn.relu", data)


for _name, _ref, _doc in (
    ("sin", np.sin, "Sine of each element."),
    ("cos", np.cos, "Cosine of each element."),
    ("tan", np.tan, "Tangent of each element."),
    ("sinh", np.sinh, "Hyperbolic sine of each element."),
    ("cosh", np.cosh, "Hyperbolic cosine of each element."),
    ("asin", np.arcsin, "Inverse sine of each element."),
    ("acos", np.arccos, "Inverse cosine of each element."),
    ("atan", np.arctan, "Inverse tangent of each element."),
    ("asinh", np.arcsinh, "Inverse hyperbolic sine of each element."),
    ("acosh", np.arccosh, "Inverse hyperbolic cosine of each element."),
    ("atanh", np.arctanh, "Inverse hyperbolic tangent of each element."),
):
    _floating(_name, _doc, _ref)
_floating("erf", "Error function of each element.", erf_ref, kernel="erf")

square = _numeric("square", "``x * x`` of each element.", np.square, lambda x: E.Mul(x, x))


def _sign(x: Expr) -> Expr:
    """-1, 0 or 1; NaN stays NaN (neither comparison holds, and x - x is NaN)."""
    zero, one = _zero(x), const(1, scalar_dtype(x))
    rest = E.Sub(x, x) if dtypes.is_float(scalar_dtype(x)) else zero
    smaller = zero if dtypes.row(scalar_dtype(x)).kind == "uint" else const(-1, scalar_dtype(x))
    below = E.Select(E.LT(x, zero), smaller, E.Select(E.EQ(x, zero), zero, rest))
    return E.Select(E.GT(x, zero), one, below)


sign = _numeric("sign", "-1, 0 or 1 by the sign of each element; NaN stays NaN.", np.sign, _sign)


def _test(name: str, doc: str, ref: Callable[..., Any], formula: Callable[[Expr], Expr]) -> Op:
    """A question about each element; integers are always finite."""

    def rule(x: TensorType) -> Type:
        return TensorType(x.shape, "bool", x.ndim, x.vdevice)

    def answer(x: Expr) -> Expr:
        return formula(x) if dtypes.is_float(scalar_dtype(x)) else const(name == "isfinite")

    rule.__doc__ = doc
    lower = map_elements(name, answer)
    return operator(name, fusion=Fusion.ELEMENTWISE, lower=lower, ref=ref, samples=_samples, kernel=f"tir_{name}")(rule)


isnan = _test("isnan", "Whether each element is not a number.", np.isnan, lambda x: intrinsic("isnan", x))
isinf = _test("isinf", "Whether each element is an infinity.", np.isinf, lambda x: intrinsic("isinf", x))
isfinite = _test(
    "isfinite",
    "Whether each element is neither an infinity nor NaN.",
    np.isfinite,
    lambda x: intrinsic("isfinite", x),
)


@operator(
    fusion=Fusion.ELEMENTWISE,
    lower=map_elements("logical_not", lambda x: cast(scalar_dtype(x), E.Not(truth(x)))),
    ref=lambda x: np.logical_not(x).astype(x.dtype),
    samples=lambda: [sample(np.array([True, False, True]))],
    python="invert",
    kernel="tir_logical_not",
)
def logical_not(x: TensorType) -> Type:
    """Negation of each element; of a number in its own dtype, whether it is 0."""
    return x


@operator(
    fusion=Fusion.ELEMENTWISE,
    lower=map_elements("bitwise_not", lambda x: intrinsic("bitwise_not", x)),
    ref=np.invert,
    samples=lambda: [sample(np.array([0, 1, -5, 100], "int32")), sample(np.array([0, 255, 7], "uint8"))],
    kernel="tir_bitwise_not",
)
def bitwise_not(x: TensorType) -> Type:
    """All bits of each element flipped (negation, for bools)."""
    if x.dtype is not None and dtypes.is_float(x.dtype):
        require_values("bitwise_not: needs integers or bools", "an integer dtype or bool", x.dtype)
    return x


def _clip_lower(x: te.TensorValue, min: Expr, max: Expr) -> te.TensorValue:
    low, high = cast(x.dtype, min), cast(x.dtype, max)
    return te.compute(x.shape, lambda *i: E.Min(E.Max(x[i], low), high), "T_clip")


@operator(
    fusion=Fusion.ELEMENTWISE,
    lower=_clip_lower,
    ref=lambda x, min, max: np.minimum(np.maximum(x, np.asarray(min, x.dtype)), np.asarray(max, x.dtype)),
    samples=lambda: [
        sample((3, 5), 0.0, 1.0),
        sample(np.array([np.nan, np.inf, -np.inf, 0.5], "float32"), -1.0, 1.0),
        sample(np.arange(10, dtype="int32"), 2, 7),
        sample(np.arange(-3, 9, dtype="int8"), 0.0, 6.0),
    ],
    kernel="tir_clip",
)
def clip(x: TensorType, min: Scalar, max: Scalar) -> Type:
    """Each element limited to ``[min, max]``; NaN stays NaN."""
    for bound in (min, max):
        if x.dtype is None or dtypes.is_float(x.dtype) or not dtypes.is_float(scalar_dtype(bound)):
            continue
        if not isinstance(bound, E.FloatImm) or not bound.value.is_integer():
            fail("clip: a bound with a fraction for a tensor of integers", x.dtype, str(bound), hint="x.astype(...)")
    return x


def _astype_lower(x: te.TensorValue, dtype: str) -> te.TensorValue:
    return te.compute(x.shape, lambda *i: cast(dtype, x[i]), "T_cast")


@operator(
    fusion=Fusion.ELEMENTWISE,
    lower=_astype_lower,
    ref=lambda x, dtype: dtypes.convert(x, dtype),
    samples=lambda: [
        sample((3, 4), dtype="float64"),
        sample(np.array([-1.5, 2.7, 3e9, -3e9, np.nan, np.inf], "float32"), dtype="int32"),
        sample(np.array([0, 5, -3], "int32"), dtype="float32"),
        sample(np.array([0, 5, 300], "int32"), dtype="uint8"),
        sample(np.array([0.0, 0.5, -1.0], "float32"), dtype="bool"),
    ],
    kernel="cast",
)
def astype(x: TensorType, dtype: DType) -> Type:
    """Each element converted to ``dtype``; float to integer saturates, and NaN becomes 0."""
    if dtype is None:
        fail("astype: a dtype is needed")
    return TensorType(x.shape, dtype, x.ndim, x.vdevice)


def _build_astype(x: Expr, dtype: str) -> Expr:
    return astype(x, dtype)


TENSOR_OPERATORS["astype"] = _build_astype
