"""Operators of neural networks (``relax.nn``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.base import dtypes
from supple.build import te
from supple.ir import expr as E
from supple.ir.expr import cast
from supple.ir.intrinsics import intrinsic
from supple.ir.node import Expr, Type
from supple.ir.op import Fusion
from supple.ir.types import TensorType
from supple.ops.declare import fail, operator, sample
from supple.ops.reduce import reduce_tensor
from supple.ops.shapes import normalize_axis


def _softmax_lower(x: te.TensorValue, axis: int) -> te.TensorValue:
    place = normalize_axis("softmax", axis, x.ndim)
    wide = "float32" if x.dtype == "float16" else x.dtype
    top = reduce_tensor(x, "max", [place], True, "softmax_max", wide)

    def row(i: Any) -> tuple[Any, ...]:
        return tuple(0 if d == place else index for d, index in enumerate(i))

    def shifted(*i: Any) -> Expr:
        return intrinsic("exp", E.Sub(cast(wide, x[i]), top[row(i)]))

    powers = te.compute(x.shape, shifted, "softmax_exp")
    total = reduce_tensor(powers, "sum", [place], True, "softmax_sum")
    return te.compute(x.shape, lambda *i: cast(x.dtype, E.Div(powers[i], total[row(i)])), "softmax")


def _softmax_ref(x: Any, axis: int) -> Any:
    x = np.asarray(x)
    wide = x.astype("float32") if x.dtype == np.float16 else x
    if x.size == 0:
        return x.copy()
    with np.errstate(all="ignore"):
        powers = np.exp(wide - np.max(wide, axis=axis, keepdims=True))
        return (powers / np.sum(powers, axis=axis, keepdims=True)).astype(x.dtype)


@operator(
    "nn.softmax",
    fusion=Fusion.OUT_FUSABLE,
    lower=_softmax_lower,
    ref=_softmax_ref,
    samples=lambda: [sample((3, 10)), sample((2, 3, 4), axis=1), sample((0, 4)), sample((4, 1), axis=0)],
)
def softmax(x: TensorType, axis: int = -1) -> Type:
    """``exp(x - max) / sum(exp(x - max))`` along ``axis``; float16 is computed in float32."""
    if x.dtype is not None and not dtypes.is_float(x.dtype):
        fail("nn.softmax: needs a floating-point tensor", "a floating-point dtype", x.dtype)
    if x.ndim != -1:
        normalize_axis("nn.softmax", axis, x.ndim)
    return x
