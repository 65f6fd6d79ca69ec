"""Random choices from given random numbers: multinomial_from_uniform."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.base import dtypes
from supple.build import te
from supple.build.loops import Cell, do, loop, store, when, with_cells
from supple.ir import expr as E
from supple.ir.expr import cast, const, int64
from supple.ir.node import Stmt, Type
from supple.ir.op import Fusion
from supple.ir.types import TensorType
from supple.ops.activation import floating
from supple.ops.declare import DType, fail, operator, sample
from supple.ops.index import require_integers, wrapped_index
from supple.ops.normalize import wide_dtype
from supple.ops.requirements import require_at_least, require_equal, require_related
from supple.ops.shapes import require_rank
from supple.sym.relate import tensor, tensor_dims


def _lower(
    prob: te.TensorValue, uniform_sample: te.TensorValue, sample_indices: te.TensorValue, dtype: str
) -> te.TensorValue:
    wide = wide_dtype(prob.dtype)
    count = prob.shape[1]

    def body(out: te.TensorValue) -> Stmt:
        total, chosen = Cell(wide, "total"), Cell("int64", "chosen")

        def row(r: Any) -> Stmt:
            at = wrapped_index(sample_indices[r, 0], prob.shape[0], "fast")

            def add(j: Any) -> Stmt:
                more = total.set(E.Add(total.value, cast(wide, prob[at, j])))
                passed = E.Not(E.GT(total.value, cast(wide, uniform_sample[r, 0])))
                return do(more, when(passed, chosen.set(E.Add(j, int64(1)))))

            last = E.Min(chosen.value, E.Sub(count, int64(1)))
            return do(
                total.set(const(0, wide)), chosen.set(0), loop(count, add, "j"), store(out, cast(dtype, last), r, 0)
            )

        return with_cells([total, chosen], loop(sample_indices.shape[0], row, "row"))

    shape = (sample_indices.shape[0], int64(1))
    return te.extern([(shape, dtype)], [prob, uniform_sample, sample_indices], body, "multinomial")[0]


def _ref(prob: Any, uniform_sample: Any, sample_indices: Any, dtype: str) -> Any:
    wide = dtypes.widened(prob)
    totals = np.cumsum(wide[np.asarray(sample_indices)[:, 0]], axis=1, dtype=wide.dtype)
    passed = ~(totals > np.asarray(uniform_sample).astype(wide.dtype))
    places = np.arange(1, prob.shape[1] + 1) * passed
    return np.minimum(places.max(axis=1, initial=0), prob.shape[1] - 1).astype(dtype).reshape(-1, 1)


@operator(
    fusion=Fusion.OPAQUE,
    lower=_lower,
    ref=_ref,
    samples=lambda: [
        sample(
            np.array([[0.2, 0.3, 0.5], [0.3, 0.4, 0.3]], "float32"),
            np.array([[0.4], [0.9], [0.2], [1.0], [0.0]], "float32"),
            np.array([[0], [1], [0], [1], [-1]], "int64"),
        ),
        sample(
            np.array([[0.5, 0.5]], "float32"), np.array([[0.7]], "float32"), np.array([[0]], "int32"), dtype="int32"
        ),
    ],
)
def multinomial_from_uniform(
    prob: TensorType, uniform_sample: TensorType, sample_indices: TensorType, dtype: DType = "int64"
) -> Type:
    """For each row of ``sample_indices`` ``(n, 1)`` the first class of that row of ``prob`` ``(batch, classes)`` whose
    running sum of probabilities is above ``uniform_sample`` ``(n, 1)``; the last class where none is."""
    name = "multinomial_from_uniform"
    floating(name, prob)
    floating(name, uniform_sample)
    require_integers(name, "sample_indices", sample_indices)
    if dtype is None or not dtypes.is_int(dtype):
        fail(f"{name}: the result holds indices", "an integer dtype", str(dtype))
    for what, t in (("prob", prob), ("uniform_sample", uniform_sample), ("sample_indices", sample_indices)):
        require_rank(name, what, t, 2)
    given, rows = tensor_dims(uniform_sample), tensor_dims(sample_indices)
    if given is not None and rows is not None:
        require_related(f"{name}: one random number for each row", rows[:1], given[:1])
    for dims in (given, rows):
        if dims is not None:
            require_equal(f"{name}: numbers and rows stand in a column", int64(1), dims[1], "(n, 1)")
    classes = tensor_dims(prob)
    if classes is not None:
        require_at_least(f"{name}: there is no class to choose", 1, classes[1])
    if classes is None or given is None or rows is None:
        return TensorType(None, dtype, -1 if -1 in (prob.ndim, uniform_sample.ndim, sample_indices.ndim) else 2)
    return tensor((rows[0], int64(1)), dtype)
