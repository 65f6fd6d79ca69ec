"""Operators whose result's size only the data says: nonzero, dynamic_strided_slice.

Such an operator has no single compute definition but two (`Dynamic`): ``bound`` computes into buffers as large as the
result can be, and the sizes; ``trim`` makes the result from them once the sizes are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.base.errors import ExecutionError
from supple.build import te
from supple.build.loops import Cell, do, loop, nest, require, store, when, with_cells
from supple.ir import expr as E
from supple.ir.expr import cast, const, int64
from supple.ir.node import Expr, Stmt, Type
from supple.ir.op import Fusion
from supple.ir.types import TensorType
from supple.ops.declare import fail, operator
from supple.ops.requirements import require_shape
from supple.ops.shapes import require_known_rank
from supple.sym.relate import tensor_dims
from supple.sym.simplify import product


@dataclass(frozen=True)
class Dynamic:
    """The compute definition of an operator in two steps.

    ``bound(*tensors, **attributes)`` gives buffers and last an int64 vector of sizes; ``trim(tensors, buffers, sizes,
    **attributes)`` gives the results, with the sizes as symbols. ``count`` says how many sizes there are.
    """

    bound: Callable[..., list[te.TensorValue]]
    trim: Callable[..., list[te.TensorValue]]
    count: Callable[[Sequence[TensorType]], int]


# -------------------------------------------------------------------------------------------------------------- nonzero


def _nonzero_bound(x: te.TensorValue) -> list[te.TensorValue]:
    total = product(list(x.shape))
    if x.ndim == 0:  # no rows, one column or none
        value = cast("int64", x[()] if x.dtype == "bool" else E.NE(x[()], const(0, x.dtype)))
        return [te.compute((int64(1),), lambda _: value, "nonzero_count")]

    def body(places: te.TensorValue, count: te.TensorValue) -> Stmt:
        row = Cell("int64", "row")

        def element(*i: Any) -> Stmt:
            value = x[i] if x.dtype == "bool" else E.NE(x[i], const(0, x.dtype))
            writes = [store(places, at, int64(d), row.value) for d, at in enumerate(i)]
            return when(value, do(*writes, row.set(E.Add(row.value, int64(1)))))

        return with_cells([row], row.set(0), nest(x.shape, element), store(count, row.value, 0))

    return te.extern([((int64(x.ndim), total), "int64"), ((int64(1),), "int64")], [x], body, "nonzero_places")


def _nonzero_trim(
    tensors: Sequence[te.TensorValue], buffers: Sequence[te.TensorValue], sizes: Sequence[Expr]
) -> list[te.TensorValue]:
    if not buffers:
        return [te.compute((int64(0), sizes[0]), lambda d, n: int64(0), "nonzero")]
    (places,) = buffers
    return [te.compute((places.shape[0], sizes[0]), lambda d, n: places[d, n], "nonzero")]


def _nonzero_ref(x: Any) -> Any:
    if np.ndim(x) == 0:
        return np.zeros((0, int(bool(x))), "int64")
    return np.stack(np.nonzero(x)).astype("int64")


@operator(
    fusion=Fusion.OPAQUE,
    ref=_nonzero_ref,
    dynamic=Dynamic(_nonzero_bound, _nonzero_trim, lambda types: 1),
)
def nonzero(x: TensorType) -> Type:
    """The places of the elements that are not 0 (NaN is not), one a column, ``(ndim, count)`` int64, in row-major
    order; as ONNX NonZero."""
    return TensorType(None, "int64", 2)


# ------------------------------------------------------------------------------------------------ dynamic_strided_slice


_NO_STRIDE = "a stride is 0"


def _start(begin: te.TensorValue, strides: te.TensorValue, d: Any, extent: Expr) -> Expr:
    """The first index along a dimension, by numpy's rules."""
    return _bounded(cast("int64", begin[d]), cast("int64", strides[d]), extent)


def _bounded(at: Expr, stride: Expr, extent: Expr) -> Expr:
    zero, one = int64(0), int64(1)
    at = E.Select(E.LT(at, zero), E.Add(at, extent), at)
    back = E.LT(stride, zero)
    low = E.Select(back, int64(-1), zero)
    high = E.Select(back, E.Sub(extent, one), extent)
    return E.Max(E.Min(at, high), low)


def _slice_bound(
    x: te.TensorValue, begin: te.TensorValue, end: te.TensorValue, strides: te.TensorValue
) -> list[te.TensorValue]:
    def size(d: Any) -> Expr:
        zero = int64(0)
        found: Expr = zero
        for axis, extent in enumerate(x.shape):
            stride = cast("int64", strides[int64(axis)])
            start = _start(begin, strides, int64(axis), extent)
            stop = _bounded(cast("int64", end[int64(axis)]), stride, extent)
            one, minus = int64(1), int64(-1)
            # the steps between the first element and the last possible one, in a form that no stride overflows
            forward = E.FloorDiv(E.Sub(E.Sub(stop, start), one), E.Max(stride, one))
            backward = E.FloorDiv(E.Add(E.Sub(stop, start), one), E.Min(stride, minus))
            count: Expr = E.Max(E.Add(E.Select(E.GT(stride, zero), forward, backward), one), zero)
            found = E.Select(E.EQ(d, int64(axis)), count, found)
        return found

    def body(sizes: te.TensorValue) -> Stmt:
        def one(d: Any) -> Stmt:
            return do(require(E.NE(cast("int64", strides[d]), int64(0)), _NO_STRIDE), store(sizes, size(d), d))

        return loop(int64(x.ndim), one, "d")

    return te.extern([((int64(x.ndim),), "int64")], [x, begin, end, strides], body, "slice_sizes")


def _slice_trim(
    tensors: Sequence[te.TensorValue], buffers: Sequence[te.TensorValue], sizes: Sequence[Expr]
) -> list[te.TensorValue]:
    x, begin, _, strides = tensors

    def body(*i: Any) -> Expr:
        index = []
        for d, (at, extent) in enumerate(zip(i, x.shape, strict=True)):
            step = E.Mul(at, cast("int64", strides[int64(d)]))
            index.append(E.Add(_start(begin, strides, int64(d), extent), step))
        return x[tuple(index)]

    return [te.compute(sizes, body, "dynamic_strided_slice")]


def _slice_ref(x: Any, begin: Any, end: Any, strides: Any) -> Any:
    key = []
    for extent, low, high, step in zip(x.shape, begin.tolist(), end.tolist(), strides.tolist(), strict=True):
        if step == 0:
            raise ExecutionError(_NO_STRIDE)
        stop: int | None = high + extent if high < 0 else high
        key.append(slice(low, None if stop is not None and step < 0 and stop < 0 else high, step))
    return x[tuple(key)]


@operator(
    fusion=Fusion.OPAQUE,
    ref=_slice_ref,
    dynamic=Dynamic(_slice_bound, _slice_trim, lambda types: types[0].ndim),
)
def dynamic_strided_slice(x: TensorType, begin: TensorType, end: TensorType, strides: TensorType) -> Type:
    """``x[begin:end:strides]`` along every dimension, with bounds and strides in tensors ``(ndim,)``, by numpy's rules:
    negative bounds count from the end, bounds beyond the ends are limited. A stride of 0 raises at run time."""
    name = "dynamic_strided_slice"
    for what, t in (("begin", begin), ("end", end), ("strides", strides)):
        if t.dtype not in (None, "int64"):
            fail(f"{name}: {what} must be int64", "int64", t.dtype, hint=f'{what}.astype("int64")')
        if x.ndim == -1 and t.ndim == -1:
            continue
        require_known_rank(name, what, t)
        if t.ndim != 1:
            fail(f"{name}: {what} must have one dimension", "1 dimension", f"{t.ndim} dimensions")
        dims = tensor_dims(t)
        if dims is not None and x.ndim != -1:
            require_shape(f"{name}: {what} has a number for each dimension", (int64(x.ndim),), dims)
    if x.ndim == 0:
        fail(f"{name}: a 0-dimensional tensor cannot be sliced", "at least 1 dimension", "0 dimensions")
    return TensorType(None, x.dtype, x.ndim)
