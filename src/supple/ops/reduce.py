"""Reductions over axes: sum, mean, prod, max, min."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.build import te
from supple.ir import expr as E
from supple.ir.expr import cast, int64
from supple.ir.graph import ShapeExpr
from supple.ir.node import Expr, Type
from supple.ir.op import Fusion, Op
from supple.ir.types import TensorType
from supple.ops.declare import Axes, Sample, operator, sample
from supple.ops.requirements import require_numbers
from supple.ops.shapes import normalize_axes
from supple.sym.relate import tensor_dims
from supple.sym.simplify import product


def _samples() -> list[Sample]:
    return [
        sample((3, 4, 5)),
        sample((3, 4, 5), axis=[1]),
        sample((3, 4, 5), axis=[-1, 0], keepdims=True),
        sample((2, 7), axis=-1, keepdims=True),
        sample((0, 3), axis=[0]),
        sample(()),
        sample(np.arange(12, dtype="int32").reshape(3, 4), axis=[0]),
    ]


def reduce_type(name: str, x: TensorType, axis: Axes, keepdims: bool) -> TensorType:
    """The type of a reduction: axes removed, or kept with extent 1."""
    if x.ndim == -1:
        if axis is None and not keepdims:
            return TensorType(ShapeExpr(()), x.dtype)
        return TensorType(None, x.dtype)
    axes = normalize_axes(name, axis, x.ndim)
    dims = tensor_dims(x)
    if dims is None and len(axes) < x.ndim:
        return TensorType(None, x.dtype, x.ndim if keepdims else x.ndim - len(axes))
    if dims is None:  # all axes go
        return TensorType(ShapeExpr((int64(1),) * x.ndim if keepdims else ()), x.dtype)
    return TensorType(ShapeExpr(reduced_dims(dims, axes, keepdims)), x.dtype)


def reduced_dims(dims: Sequence[Expr], axes: Sequence[int], keepdims: bool) -> tuple[Expr, ...]:
    if keepdims:
        return tuple(int64(1) if d in set(axes) else dim for d, dim in enumerate(dims))
    return tuple(dim for d, dim in enumerate(dims) if d not in set(axes))


def reduce_tensor(
    x: te.TensorValue,
    combiner: str,
    axes: Sequence[int],
    keepdims: bool,
    name: str,
    dtype: str | None = None,
) -> te.TensorValue:
    """The reduction as a formula, accumulated in ``dtype``."""
    reduced = {axis: te.reduce_axis((0, x.shape[axis]), f"k{n}") for n, axis in enumerate(axes)}

    def body(*i: Any) -> Expr:
        kept = iter(i)
        index: list[Any] = []
        for d in range(x.ndim):
            if d in reduced:
                index.append(reduced[d])
                if keepdims:
                    next(kept)
            else:
                index.append(next(kept))
        return te.Reduce(combiner, cast(dtype or x.dtype, x[tuple(index)]), tuple(reduced.values()))

    return te.compute(reduced_dims(x.shape, axes, keepdims), body, name)


def _summed(x: te.TensorValue, combiner: str, axes: Sequence[int], keepdims: bool, name: str) -> te.TensorValue:
    wide = dtypes.accumulator(x.dtype)
    total = reduce_tensor(x, combiner, axes, keepdims, f"{name}_red", wide)
    if wide == x.dtype:
        return total
    return te.compute(total.shape, lambda *i: cast(x.dtype, total[i]), name)


def _reduction(name: str, doc: str, combiner: str, ref: Callable[..., Any]) -> Op:
    def lower(x: te.TensorValue, axis: Axes, keepdims: bool) -> te.TensorValue:
        axes = normalize_axes(name, axis, x.ndim)
        if combiner in ("sum", "prod"):
            return _summed(x, combiner, axes, keepdims, name)
        return reduce_tensor(x, combiner, axes, keepdims, f"{name}_red")

    def rule(x: TensorType, axis: Axes = None, keepdims: bool = False) -> Type:
        return reduce_type(name, require_numbers(name, x), axis, keepdims)

    rule.__doc__ = doc
    return operator(name, fusion=Fusion.REDUCTION, lower=lower, ref=ref, samples=_samples)(rule)


def _sum_ref(function: Callable[..., Any]) -> Callable[..., Any]:
    def ref(x: Any, axis: Axes, keepdims: bool) -> Any:
        x = np.asarray(x)
        wide = dtypes.to_numpy(dtypes.accumulator(dtypes.from_numpy(x.dtype)))
        return np.asarray(function(x, axis=axis, keepdims=keepdims, dtype=wide)).astype(x.dtype)

    return ref


def _extreme_ref(function: Callable[..., Any], low: bool) -> Callable[..., Any]:
    def ref(x: Any, axis: Axes, keepdims: bool) -> Any:
        x = np.asarray(x)
        initial = te.limit(dtypes.from_numpy(x.dtype), low)
        return np.asarray(function(x, axis=axis, keepdims=keepdims, initial=initial.value))  # type: ignore[attr-defined]

    return ref


sum = _reduction("sum", "Sum over ``axis`` (all axes for None).", "sum", _sum_ref(np.sum))
prod = _reduction("prod", "Product over ``axis`` (all axes for None).", "prod", _sum_ref(np.prod))
max = _reduction(
    "max",
    "Maximum over ``axis`` (all axes for None); NaN propagates; the lowest value over an empty axis.",
    "max",
    _extreme_ref(np.max, low=True),
)
min = _reduction(
    "min",
    "Minimum over ``axis`` (all axes for None); NaN propagates; the highest value over an empty axis.",
    "min",
    _extreme_ref(np.min, low=False),
)


def mean_dtype(dtype: str) -> str:
    """In which dtype a mean is computed."""
    return dtypes.accumulator(dtype) if dtypes.is_float(dtype) else "float64"


def _mean_lower(x: te.TensorValue, axis: Axes, keepdims: bool) -> te.TensorValue:
    axes = normalize_axes("mean", axis, x.ndim)
    wide = mean_dtype(x.dtype)
    total = reduce_tensor(x, "sum", axes, keepdims, "mean_red", wide)
    count = cast(wide, product([x.shape[a] for a in axes]))
    return te.compute(total.shape, lambda *i: cast(x.dtype, E.Div(total[i], count)), "mean")


def mean_ref(x: Any, axis: Axes | tuple[int, ...], keepdims: bool) -> Any:
    """numpy's mean, summed in the accumulator of the dtype; NaN over nothing, without a warning. Of integers it is
    truncated to an integer (0 over nothing)."""
    x = np.asarray(x)
    wide = dtypes.to_numpy(mean_dtype(dtypes.from_numpy(x.dtype)))
    axes = tuple(range(x.ndim)) if axis is None else axis
    count = np.asarray(np.prod([x.shape[a] for a in axes], dtype="int64")).astype(wide)
    with np.errstate(all="ignore"):
        return as_dtype(np.sum(x, axis=axes, keepdims=keepdims, dtype=wide) / count, x.dtype)


def as_dtype(values: Any, dtype: Any) -> Any:
    """Values in a dtype; for integers truncated, NaN is 0."""
    values = np.asarray(values)
    return (np.nan_to_num(values, nan=0.0) if np.dtype(dtype).kind in "iu" else values).astype(dtype)


@operator(
    fusion=Fusion.REDUCTION,
    lower=_mean_lower,
    ref=mean_ref,
    samples=lambda: [
        sample((3, 4, 5)),
        sample((3, 4, 5), axis=[0, -1], keepdims=True),
        sample((2, 0), axis=[1]),
        sample(np.array([[-7, 2], [1, 9]], "int32"), axis=[1]),
    ],
)
def mean(x: TensorType, axis: Axes = None, keepdims: bool = False) -> Type:
    """Arithmetic mean over ``axis`` (all axes for None); NaN over an empty axis. Of integers it is truncated to an
    integer (``x.astype("float32")`` first for the rest)."""
    return reduce_type("mean", require_numbers("mean", x), axis, keepdims)
