"""Elementwise operators of three tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.build import te
from supple.ir import expr as E
from supple.ir.node import Expr, Type
from supple.ir.op import Fusion
from supple.ir.types import TensorType
from supple.ops.declare import Place, fail, operator, sample
from supple.ops.requirements import require_related
from supple.ops.shapes import broadcast_dims, broadcast_index, broadcast_type, operands_dtype, same_dtype
from supple.sym.relate import tensor_dims


def _broadcast3(name: str, tensors: tuple[te.TensorValue, ...]) -> tuple[Expr, ...]:
    dims = broadcast_dims(name, tensors[0].shape, tensors[1].shape)
    dims = None if dims is None else broadcast_dims(name, dims, tensors[2].shape)
    if dims is None:
        fail(f"{name}: the broadcast shape is not known", hint="use R.match_cast to relate the dimensions")
    return dims


def _where_lower(condition: te.TensorValue, x1: te.TensorValue, x2: te.TensorValue) -> te.TensorValue:
    dims = _broadcast3("where", (condition, x1, x2))

    def body(*i: Any) -> Expr:
        parts = [t[broadcast_index(t.shape, i)] for t in (condition, x1, x2)]
        return E.Select(*parts)

    return te.compute(dims, body, "T_where")


@operator(
    device=Place.ANY,
    fusion=Fusion.BROADCAST,
    lower=_where_lower,
    ref=np.where,
    samples=lambda: [
        sample(np.array([[True, False, True]]), (2, 1), (2, 3)),
        sample(np.array(False), (3,), ()),
        sample(np.zeros((0, 2), bool), (0, 2), (2,)),
    ],
)
def where(condition: TensorType, x1: TensorType, x2: TensorType) -> Type:
    """``x1`` where the condition holds, else ``x2``, with broadcasting."""
    if condition.dtype not in (None, "bool"):
        fail("where: the condition must be a bool tensor", "bool", condition.dtype, hint='condition.astype("bool")')
    values = broadcast_type("where", x1, x2, operands_dtype("where", x1, x2))
    return broadcast_type("where", condition, values, values.dtype)


def _fma_lower(x1: te.TensorValue, x2: te.TensorValue, x3: te.TensorValue) -> te.TensorValue:
    dims = _broadcast3("ewise_fma", (x1, x2, x3))

    def body(*i: Any) -> Expr:
        a, b, c = (t[broadcast_index(t.shape, i)] for t in (x1, x2, x3))
        return E.Add(E.Mul(a, b), c)

    return te.compute(dims, body, "T_ewise_fma")


@operator(
    device=Place.ANY,
    fusion=Fusion.BROADCAST,
    lower=_fma_lower,
    ref=lambda x1, x2, x3: np.add(np.multiply(x1, x2), x3),
    samples=lambda: [sample((3, 4), (3, 4), (3, 4)), sample((0, 2), (0, 2), (0, 2))],
)
def ewise_fma(x1: TensorType, x2: TensorType, x3: TensorType) -> Type:
    """``x1 * x2 + x3``, elementwise, each operation rounded. The three have one shape."""
    dims = [d for d in (tensor_dims(x1), tensor_dims(x2), tensor_dims(x3)) if d is not None]
    for other in dims[1:]:
        require_related("ewise_fma: the operands have different shapes", dims[0], other)
    product = broadcast_type("ewise_fma", x1, x2, same_dtype("ewise_fma", x1, x2))
    whole = broadcast_type("ewise_fma", product, x3, same_dtype("ewise_fma", product, x3))
    ndim = max(x1.ndim, x2.ndim, x3.ndim)  # the three have one rank, whichever is known
    return TensorType(None, whole.dtype, ndim) if isinstance(whole, TensorType) and whole.ndim == -1 else whole
