"""Linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.base import dtypes
from supple.build import te
from supple.ir import expr as E
from supple.ir.expr import Call, cast
from supple.ir.graph import ShapeExpr
from supple.ir.node import Expr, Type
from supple.ir.op import Fusion
from supple.ir.types import TensorType
from supple.ops.binary import add
from supple.ops.declare import DType, Place, fail, operator, sample
from supple.ops.manipulate import permute_dims
from supple.ops.requirements import require_equal, require_numbers
from supple.ops.shapes import Dims, alike, broadcast_dims, broadcast_index, operands_dtype
from supple.sym.relate import dim_text, tensor_dims


def _matmul_dims(a: Dims, b: Dims) -> Dims | None:
    """The shape of ``a @ b`` by numpy's rules; refuses inner dimensions that differ."""
    if not a or not b:
        fail("matmul: a 0-dimensional tensor cannot be multiplied", "at least 1 dimension", "0 dimensions")
    inner_a, inner_b = a[-1], b[0] if len(b) == 1 else b[-2]
    shown = f"x2 with {dim_text(inner_a)} rows", f"{dim_text(inner_b)} rows"
    require_equal("matmul: the inner dimensions differ", inner_a, inner_b, *shown)
    batch = broadcast_dims("matmul", a[:-2], b[:-2])
    if batch is None:
        return None
    return (*batch, *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))


def _lower(x1: te.TensorValue, x2: te.TensorValue, out_dtype: DType) -> te.TensorValue:
    dims = _matmul_dims(x1.shape, x2.shape)
    if dims is None:
        fail("matmul: the batch shape is not known", hint="use R.match_cast to relate the dimensions")
    dtype = out_dtype or x1.dtype
    wide = dtypes.accumulator(dtype)
    k = te.reduce_axis((0, x1.shape[-1]), "k")
    batch = len(dims) - (x1.ndim > 1) - (x2.ndim > 1)

    def body(*i: Any) -> Expr:
        row = i[batch : batch + 1] if x1.ndim > 1 else ()
        column = i[-1:] if x2.ndim > 1 else ()
        left = (*broadcast_index(x1.shape[:-2], i[:batch]), *row, k)
        right = (*broadcast_index(x2.shape[:-2], i[:batch]), k, *column)
        return te.sum(E.Mul(cast(wide, x1[left]), cast(wide, x2[right])), axis=k)

    product = te.compute(dims, body, "matmul")
    return product if wide == dtype else te.compute(dims, lambda *i: cast(dtype, product[i]), "matmul_cast")


def _ref(x1: Any, x2: Any, out_dtype: DType) -> Any:
    x1, x2 = np.asarray(x1), np.asarray(x2)
    dtype = out_dtype or dtypes.from_numpy(x1.dtype)
    wide = dtypes.accumulator(dtype)
    with np.errstate(all="ignore"):
        product = np.matmul(x1.astype(wide), x2.astype(wide))
    return np.asarray(product).astype(dtype)


@operator(
    fusion=Fusion.OUT_FUSABLE,
    broadcasts=("x1", "x2"),
    core_dims=2,
    device=Place.ANY,
    lower=_lower,
    ref=_ref,
    samples=lambda: [
        sample((3, 4), (4, 5)),
        sample((4,), (4, 5)),
        sample((3, 4), (4,)),
        sample((4,), (4,)),
        sample((2, 1, 3, 4), (5, 4, 2)),
        sample((0, 4), (4, 3)),
        sample((3, 0), (0, 2)),
        sample(np.ones((2, 3), "int8"), np.full((3, 2), 100, "int8"), out_dtype="int32"),
        sample(np.ones((2, 3), "float16"), np.ones((3, 2), "float16")),
    ],
    python="matmul",
)
def matmul(x1: TensorType, x2: TensorType, out_dtype: DType = None) -> Type:
    """Matrix product by numpy's rules for every rank: ``(..., m, k) @ (..., k, n) -> (..., m, n)``, leading dimensions
    broadcast, a vector counts as a row on the left and as a column on the right. The result (and the sum) has
    ``out_dtype``, or the operands' dtype; floats narrower than float32 are summed in float32."""
    dtype = operands_dtype("matmul", x1, x2) if out_dtype is None else alike("matmul", x1, x2)
    for x in (x1, x2):
        require_numbers("matmul", x)
    a, b = tensor_dims(x1), tensor_dims(x2)
    dims = _matmul_dims(a, b) if a is not None and b is not None else None
    if dims is not None:
        return TensorType(ShapeExpr(dims), out_dtype or dtype)
    if x1.ndim == 0 or x2.ndim == 0:
        fail("matmul: a 0-dimensional tensor cannot be multiplied", "at least 1 dimension", "0 dimensions")
    if -1 in (x1.ndim, x2.ndim):
        return TensorType(None, out_dtype or dtype)
    ndim = max(x1.ndim - 2, x2.ndim - 2, 0) + (x1.ndim > 1) + (x2.ndim > 1)
    return TensorType(None, out_dtype or dtype, ndim)


def linear(data: Any, weight: Any, bias: Any = None, out_dtype: str | None = None) -> Call:
    """``data @ weight.T + bias`` for a weight ``(outputs, inputs)``: calls of permute_dims, matmul and add."""
    product = matmul(data, permute_dims(weight), out_dtype=out_dtype)
    return product if bias is None else add(product, bias)
