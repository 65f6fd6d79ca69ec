"""Activation functions (``relax.nn``), elementwise. Values follow PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.build import te
from supple.ir import expr as E
from supple.ir.expr import Call, cast, const, scalar_dtype
from supple.ir.intrinsics import intrinsic
from supple.ir.node import Expr, Type
from supple.ir.op import Fusion, Op
from supple.ir.types import TensorType
from supple.ops.declare import Sample, fail, operator, sample
from supple.ops.requirements import require_equal
from supple.ops.shapes import normalize_axis
from supple.ops.unary import clip, erf_ref
from supple.sym.relate import tensor_dims
from supple.sym.simplify import SHAPES

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946
"""Constants of Klambauer et al., "Self-Normalizing Neural Networks" (2017), as PyTorch has them."""


def _samples() -> list[Sample]:
    special = np.array([0.0, -0.0, 30.0, -30.0, np.inf, -np.inf, np.nan], "float32")
    return [sample((3, 5)), sample((0, 2)), sample(special), sample(np.linspace(-3, 3, 7, dtype="float16"))]


def floating(name: str, x: TensorType) -> TensorType:
    """The type of an operator on floating-point tensors; refuses others."""
    if x.dtype is not None and not dtypes.is_float(x.dtype):
        fail(f"{name}: needs a floating-point tensor", "a floating-point dtype", x.dtype, hint="x.astype(...)")
    return x


def in_float32(formula: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    """The formula computed in float32 for narrower floats."""

    def wide(x: Expr) -> Expr:
        dtype = scalar_dtype(x)
        return cast(dtype, formula(cast("float32", x))) if dtypes.is_narrow(dtype) else formula(x)

    return wide


def reference_in_float32(ref: Callable[..., Any]) -> Callable[..., Any]:
    """The reference computed in float32 for narrower floats."""

    def wide(x: Any, *args: Any, **attrs: Any) -> Any:
        x = np.asarray(x)
        result = np.asarray(ref(dtypes.widened(x), *args, **attrs))
        return result.astype(x.dtype)

    return wide


def _activation(name: str, doc: str, formula: Callable[[Expr], Expr], ref: Callable[..., Any]) -> Op:
    def rule(data: TensorType) -> Type:
        return floating(f"nn.{name}", data)

    def lower(data: te.TensorValue) -> te.TensorValue:
        return te.compute(data.shape, lambda *i: in_float32(formula)(data[i]), name)

    rule.__doc__ = doc
    return operator(
        f"nn.{name}", fusion=Fusion.ELEMENTWISE, lower=lower, ref=reference_in_float32(ref), samples=_samples
    )(rule)


def _c(x: Expr, value: float) -> Expr:
    return const(value, scalar_dtype(x))


def _gelu(x: Expr) -> Expr:
    return E.Mul(E.Mul(x, _c(x, 0.5)), E.Add(_c(x, 1.0), intrinsic("erf", E.Mul(x, _c(x, math.sqrt(0.5))))))


def _gelu_tanh(x: Expr) -> Expr:
    cubic = E.Add(x, E.Mul(_c(x, 0.044715), E.Mul(E.Mul(x, x), x)))
    return E.Mul(
        E.Mul(x, _c(x, 0.5)), E.Add(_c(x, 1.0), intrinsic("tanh", E.Mul(_c(x, math.sqrt(2 / math.pi)), cubic)))
    )


def _selu(x: Expr) -> Expr:
    negative = E.Mul(_c(x, SELU_ALPHA), E.Sub(intrinsic("exp", E.Min(x, _c(x, 0.0))), _c(x, 1.0)))
    return E.Mul(_c(x, SELU_SCALE), E.Select(E.GT(x, _c(x, 0.0)), x, negative))


def _selu_ref(x: Any) -> Any:
    one = np.ones((), x.dtype)
    negative = x.dtype.type(SELU_ALPHA) * (np.exp(np.minimum(x, 0 * one)) - one)
    return x.dtype.type(SELU_SCALE) * np.where(x > 0, x, negative)


def _sigmoid_ref(x: Any) -> Any:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small)).astype(x.dtype)


gelu = _activation(
    "gelu",
    "``x * Phi(x)``, Phi the normal distribution: ``0.5 x (1 + erf(x / sqrt 2))`` (Hendrycks and Gimpel, 2016).",
    _gelu,
    lambda x: x * x.dtype.type(0.5) * (1 + erf_ref(x * x.dtype.type(math.sqrt(0.5)))),
)
gelu_tanh = _activation(
    "gelu_tanh",
    "The tanh approximation of gelu: ``0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))``.",
    _gelu_tanh,
    lambda x: x * x.dtype.type(0.5) * (1 + np.tanh(x.dtype.type(math.sqrt(2 / math.pi)) * (x + 0.044715 * x * x * x))),
)
silu = _activation(
    "silu",
    "``x * sigmoid(x)``.",
    lambda x: E.Mul(x, intrinsic("sigmoid", x)),
    lambda x: x * _sigmoid_ref(x),
)
selu = _activation("selu", "``scale * (max(x, 0) + alpha * (exp(min(x, 0)) - 1))``.", _selu, _selu_ref)


def relu6(data: Expr) -> Call:
    """``R.nn.relu6(x)``: the call of ``R.clip`` with 0 and 6, as in Relax."""
    return clip(data, 0, 6)


def _leaky_lower(data: te.TensorValue, alpha: float) -> te.TensorValue:
    def body(*i: Any) -> Expr:
        x = data[i]
        return E.Select(E.GT(x, _c(x, 0.0)), x, E.Mul(x, _c(x, alpha)))

    return te.compute(data.shape, body, "leakyrelu")


@operator(
    "nn.leakyrelu",
    fusion=Fusion.ELEMENTWISE,
    lower=_leaky_lower,
    ref=lambda x, alpha: np.where(x > 0, x, x * x.dtype.type(alpha)),
    samples=lambda: [*_samples(), sample((4,), alpha=0.2)],
    kernel="leaky_relu",
)
def leakyrelu(data: TensorType, alpha: float = 0.01) -> Type:
    """``x`` where it is positive, else ``alpha * x``."""
    return floating("nn.leakyrelu", data)


def _softplus_lower(data: te.TensorValue, beta: float, threshold: float) -> te.TensorValue:
    def formula(x: Expr) -> Expr:
        scaled = E.Mul(x, _c(x, beta))
        top = E.Max(scaled, _c(x, 0.0))  # log(1 + e^s) = max(s, 0) + log1p(e^-|s|)
        gap = E.Sub(E.Min(scaled, _c(x, 0.0)), top)
        smooth = E.Div(E.Add(top, intrinsic("log1p", intrinsic("exp", gap))), _c(x, beta))
        return E.Select(E.GT(scaled, _c(x, threshold)), x, smooth)

    return te.compute(data.shape, lambda *i: in_float32(formula)(data[i]), "softplus")


def _softplus_ref(x: Any, beta: float, threshold: float) -> Any:
    scaled = x * x.dtype.type(beta)
    return np.where(scaled > threshold, x, np.logaddexp(scaled, np.zeros((), x.dtype)) / x.dtype.type(beta))


@operator(
    "nn.softplus",
    fusion=Fusion.ELEMENTWISE,
    lower=_softplus_lower,
    ref=reference_in_float32(_softplus_ref),
    samples=lambda: [*_samples(), sample((5,), beta=2.0, threshold=1.0)],
)
def softplus(data: TensorType, beta: float = 1.0, threshold: float = 20.0) -> Type:
    """``log(1 + exp(beta * x)) / beta``, and ``x`` itself where ``beta * x`` is above ``threshold``."""
    return floating("nn.softplus", data)


def _prelu_lower(data: te.TensorValue, alpha: te.TensorValue, axis: int) -> te.TensorValue:
    place = normalize_axis("nn.prelu", axis, data.ndim)
    shared = SHAPES.equal(alpha.shape[0], as_one()) is True

    def body(*i: Any) -> Expr:
        x = data[i]
        return E.Select(E.GT(x, _c(x, 0.0)), x, E.Mul(x, alpha[0 if shared else i[place]]))

    return te.compute(data.shape, body, "prelu")


def as_one() -> Expr:
    return E.int64(1)


def _prelu_ref(x: Any, alpha: Any, axis: int) -> Any:
    shape = [1] * x.ndim
    shape[axis] = -1
    return np.where(x > 0, x, x * alpha.reshape(shape))


@operator(
    "nn.prelu",
    fusion=Fusion.BROADCAST,
    lower=_prelu_lower,
    ref=_prelu_ref,
    samples=lambda: [sample((2, 3, 4), (3,)), sample((2, 3), (1,)), sample((2, 3, 4), (4,), axis=-1)],
)
def prelu(data: TensorType, alpha: TensorType, axis: int = 1) -> Type:
    """``x`` where it is positive, else ``alpha * x`` with a slope for each index of ``axis`` (or one for all)."""
    floating("nn.prelu", data)
    if data.ndim != -1:
        place = normalize_axis("nn.prelu", axis, data.ndim)
        dims, slopes = tensor_dims(data), tensor_dims(alpha)
        if alpha.ndim not in (-1, 1):
            fail("nn.prelu: alpha must have one dimension", "1 dimension", f"{alpha.ndim} dimensions")
        if dims is not None and slopes is not None and SHAPES.equal(slopes[0], as_one()) is not True:
            require_equal("nn.prelu: alpha does not fit the axis", dims[place], slopes[0])
    return data
