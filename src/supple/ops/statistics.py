"""Variance, standard deviation, median; sums that undo broadcasting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.build import te
from supple.ir import expr as E
from supple.ir.expr import cast, int64
from supple.ir.intrinsics import intrinsic
from supple.ir.node import Expr, Type
from supple.ir.op import Fusion
from supple.ir.types import TensorType, TupleType
from supple.ops.declare import Axes, Sample, Shape, ShapeOf, fail, operator, sample
from supple.ops.manipulate import shape_values, shaped
from supple.ops.normalize import wide_dtype
from supple.ops.reduce import as_dtype, mean_dtype, mean_ref, reduce_tensor, reduce_type, reduced_dims
from supple.ops.requirements import require_numbers
from supple.ops.shapes import is_one, normalize_axes
from supple.ops.sort import sorted_indices
from supple.sym.relate import dims_text, tensor, tensor_dims
from supple.sym.simplify import SHAPES, product

# --------------------------------------------------------------------------------------------------- variance and std


def _spread(x: te.TensorValue, axis: Axes, keepdims: bool, root: bool) -> te.TensorValue:
    axes = normalize_axes("variance", axis, x.ndim)
    wide = mean_dtype(x.dtype)
    count = cast(wide, product([x.shape[a] for a in axes]))
    total = reduce_tensor(x, "sum", axes, True, "variance_sum", wide)
    kept = set(axes)

    def squared(*i: Any) -> Expr:
        row = tuple(0 if d in kept else index for d, index in enumerate(i))
        gap = E.Sub(cast(wide, x[i]), E.Div(total[row], count))
        return E.Mul(gap, gap)

    squares = te.compute(x.shape, squared, "variance_square")
    spread = reduce_tensor(squares, "sum", axes, keepdims, "variance_red")

    def body(*i: Any) -> Expr:
        mean = E.Div(spread[i], count)
        return cast(x.dtype, intrinsic("sqrt", mean) if root else mean)

    return te.compute(spread.shape, body, "std" if root else "variance")


def _spread_ref(x: Any, axis: Axes, keepdims: bool, root: bool) -> Any:
    wide = np.asarray(x, dtypes.to_numpy(mean_dtype(dtypes.from_numpy(x.dtype))))
    value = mean_ref(np.square(wide - mean_ref(wide, axis, True)), axis, keepdims)
    return as_dtype(np.sqrt(value) if root else value, x.dtype)


def _spread_samples() -> list[Sample]:
    integers = np.array([[1, 5, 9], [-4, 0, 30]], "int32")
    return [
        sample((3, 4)),
        sample((2, 3, 4), axis=[0, -1], keepdims=True),
        sample((5,), axis=0),
        sample(integers, axis=[1]),
    ]


@operator(
    fusion=Fusion.REDUCTION,
    lower=lambda x, axis, keepdims: _spread(x, axis, keepdims, False),
    ref=lambda x, axis, keepdims: _spread_ref(x, axis, keepdims, False),
    samples=_spread_samples,
)
def variance(x: TensorType, axis: Axes = None, keepdims: bool = False) -> Type:
    """Mean squared distance from the mean over ``axis`` (all axes for None), not corrected for the sample. Of
    integers it is truncated to an integer."""
    return reduce_type("variance", require_numbers("variance", x), axis, keepdims)


@operator(
    fusion=Fusion.REDUCTION,
    lower=lambda x, axis, keepdims: _spread(x, axis, keepdims, True),
    ref=lambda x, axis, keepdims: _spread_ref(x, axis, keepdims, True),
    samples=_spread_samples,
)
def std(x: TensorType, axis: Axes = None, keepdims: bool = False) -> Type:
    """The square root of `variance`; of integers truncated to an integer."""
    return reduce_type("std", require_numbers("std", x), axis, keepdims)


# -------------------------------------------------------------------------------------------------------------- median


def _median_parts(data: te.TensorValue, axis: Axes, keepdims: bool) -> list[te.TensorValue]:
    (place,) = normalize_axes("median", axis, data.ndim)
    order = sorted_indices(data, place, False)
    dims = reduced_dims(data.shape, [place], keepdims)
    middle = E.FloorDiv(E.Sub(data.shape[place], int64(1)), int64(2))

    def full(i: Sequence[Any], at: Any) -> tuple[Any, ...]:
        rest = [v for d, v in enumerate(i) if not (keepdims and d == place)]
        return (*rest[:place], at, *rest[place:])

    indices = te.compute(dims, lambda *i: order[full(i, middle)], "median_index")
    values = te.compute(dims, lambda *i: data[full(i, indices[i])], "median")
    return [values, indices]


def _median_lower(data: te.TensorValue, axis: Axes, keepdims: bool) -> list[te.TensorValue]:
    if axis is not None and len(axis) == 1:
        return _median_parts(data, axis, keepdims)
    axes = normalize_axes("median", axis, data.ndim)
    rest = [d for d in range(data.ndim) if d not in set(axes)]

    def element(*i: Any) -> Expr:
        index: list[Any] = [None] * data.ndim
        for d, at in zip((*rest, *axes), (*i[:-1], *unravel(i[-1], [data.shape[a] for a in axes])), strict=True):
            index[d] = at
        return data[tuple(index)]

    flat = te.compute((*(data.shape[d] for d in rest), product([data.shape[a] for a in axes])), element, "median_flat")
    values, _ = _median_parts(flat, (len(rest),), False)
    dims = reduced_dims(data.shape, axes, keepdims)

    def kept(i: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(i[d] for d in rest) if keepdims else tuple(i)

    return [te.compute(dims, lambda *i: values[kept(i)], "median")]


def unravel(flat: Expr, dims: Sequence[Expr]) -> tuple[Expr, ...]:
    """The index that a place in row-major order stands for."""
    index: list[Expr] = []
    for d in reversed(range(len(dims))):
        index.append(flat if d == 0 else E.FloorMod(flat, dims[d]))
        flat = E.FloorDiv(flat, dims[d])
    return tuple(reversed(index))


def _median_ref(data: Any, axis: Axes, keepdims: bool) -> Any:
    if axis is not None and len(axis) == 1:
        order = np.argsort(dtypes.widened(data), axis=axis[0], kind="stable")
        at = np.take(order, [(data.shape[axis[0]] - 1) // 2], axis[0])
        values = np.take_along_axis(data, at, axis[0])
        both = (values, at)
        return both if keepdims else tuple(np.squeeze(v, axis[0]) for v in both)
    axes = normalize_axes("median", axis, data.ndim)
    rest = [d for d in range(data.ndim) if d not in axes]
    count = math.prod(data.shape[d] for d in axes)
    flat = np.transpose(dtypes.widened(data), (*rest, *axes)).reshape([*(data.shape[d] for d in rest), count])
    if not flat.size and 0 in flat.shape[:-1]:  # nothing is read
        values = flat[..., :0].reshape(flat.shape[:-1])
    else:
        values = np.sort(flat, axis=-1, kind="stable")[..., (count - 1) // 2]
    values = values.astype(data.dtype)
    return values.reshape([1 if d in axes else s for d, s in enumerate(data.shape)]) if keepdims else values


@operator(
    fusion=Fusion.OPAQUE,
    lower=_median_lower,
    ref=_median_ref,
    samples=lambda: [
        sample((3, 5), axis=1),
        sample((4, 3), axis=[0], keepdims=True),
        sample((2, 3)),
        sample((2, 2), keepdims=True),
        sample((3, 2, 4), axis=[0, -1]),
        sample((3, 2, 2), axis=[2, 1], keepdims=True),
    ],
)
def median(x: TensorType, axis: Axes = None, keepdims: bool = False) -> Type:
    """The lower middle element in sorted order, as PyTorch defines it: over one axis, with its place (a tuple of values
    and int64 indices); over several or all (None), the values alone."""
    values = reduce_type("median", x, axis, keepdims)
    if axis is None or len(axis) != 1:
        return values
    return TupleType((values, TensorType(values.shape, "int64", values.ndim)))


# -------------------------------------------------------------------------------------- sums that undo broadcasting


def _collapsed(dims: Sequence[Expr], wanted: Sequence[Expr]) -> list[int]:
    """The axes to sum over; refuses a shape that does not broadcast to ``dims``."""
    extra = len(dims) - len(wanted)
    differ = [SHAPES.equal(have, want) is not True for have, want in zip(dims[max(extra, 0) :], wanted, strict=False)]
    if extra < 0 or any(differs and not is_one(want) for differs, want in zip(differ, wanted, strict=True)):
        fail(
            "collapse_sum: the target does not broadcast to the tensor's shape",
            f"a shape that broadcasts to {dims_text(dims)}",
            dims_text(wanted),
        )
    return [*range(extra), *(extra + d for d, differs in enumerate(differ) if differs)]


def collapse(x: te.TensorValue, wanted: Sequence[Expr]) -> te.TensorValue:
    """``x`` summed to a shape that broadcasts to its own."""
    axes = _collapsed(x.shape, wanted)
    wide = wide_dtype(x.dtype)
    total = reduce_tensor(x, "sum", axes, True, "collapse_sum", wide)
    extra = x.ndim - len(wanted)
    return te.compute(wanted, lambda *i: cast(x.dtype, total[(*([0] * extra), *i)]), "collapse")


def _collapse_ref(x: Any, shape: Sequence[int]) -> Any:
    extra = x.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(d + extra for d, s in enumerate(shape) if s == 1 and x.shape[d + extra] != 1)
    wide = dtypes.widened(x)
    return wide.sum(axis=axes, keepdims=True).reshape(shape).astype(x.dtype)


@operator(
    fusion=Fusion.REDUCTION,
    lower=collapse,
    ref=_collapse_ref,
    samples=lambda: [sample((2, 3, 4), ShapeOf((3, 1))), sample((2, 3), ShapeOf((2, 3))), sample((2, 3), ShapeOf(()))],
    kernel="collapse_sum",
)
def collapse_sum_to(data: TensorType, shape: Shape) -> Type:
    """The tensor summed over the dimensions along which ``shape`` was broadcast to its own."""
    wanted, dims = shape_values(shape), tensor_dims(data)
    if wanted is None:
        return shaped(shape, data.dtype)
    if dims is not None:
        _collapsed(dims, wanted)
    return tensor(wanted, data.dtype)


@operator(
    fusion=Fusion.REDUCTION,
    lower=lambda data, collapse_target: collapse(data, collapse_target.shape),
    ref=lambda data, target: _collapse_ref(data, target.shape),
    samples=lambda: [sample((2, 3, 4), (3, 1)), sample((2, 3), (3,))],
    kernel="collapse_sum",
    reads=(0,),
    device=(1,),
    shape_of=1,
)
def collapse_sum_like(data: TensorType, collapse_target: TensorType) -> Type:
    """The tensor summed over the dimensions along which ``collapse_target``'s shape was broadcast to its own."""
    wanted, dims = tensor_dims(collapse_target), tensor_dims(data)
    if wanted is not None and dims is not None:
        _collapsed(dims, wanted)
    return TensorType(collapse_target.shape, data.dtype, collapse_target.ndim)
