"""Reading by index: take, strided_slice, gather_elements, gather_nd, one_hot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.base.errors import ExecutionError, out_of_bounds
from supple.build import te
from supple.ir import expr as E
from supple.ir.expr import IntImm, cast, const, int64, scalar_dtype
from supple.ir.graph import Tuple
from supple.ir.intrinsics import intrinsic
from supple.ir.node import Expr, Type
from supple.ir.op import Fusion
from supple.ir.types import TensorType
from supple.ops.declare import Axis, Operand, Scalar, Scalars, fail, operator, sample, static_sample
from supple.ops.requirements import require_equal, require_floats
from supple.ops.shapes import normalize_axes, normalize_axis, require_known_rank
from supple.sym.relate import tensor, tensor_dims
from supple.sym.simplify import SHAPES, evaluate

_MODES = ("fast", "clip", "wrap", "nan")


def require_integers(name: str, what: str, x: TensorType) -> None:
    if x.dtype is not None and not dtypes.is_int(x.dtype):
        fail(f"{name}: {what} must be integers", "an integer dtype", x.dtype, hint=f'{what}.astype("int64")')


# ---------------------------------------------------------------------------------------------------------------- take


def wrapped_index(index: Expr, extent: Expr, mode: str) -> Expr:
    """An index into ``extent`` elements: negative ones count from the end, the rest by ``mode``."""
    index = cast("int64", index)
    if mode == "wrap":
        return E.FloorMod(index, extent)
    if mode == "clip":
        return E.Max(E.Min(index, E.Sub(extent, int64(1))), int64(0))
    return E.Select(E.LT(index, int64(0)), E.Add(index, extent), index)


def require_in_bounds(indices: Any, axis: int, name: str, extent: int, *, from_end: bool = True) -> None:
    """What compiled code checks, for references: each index lies in ``[-extent, extent)``, or from 0 on where none
    counts ``from_end``. Raises `ExecutionError`."""
    values = np.asarray(indices)
    outside = values[(values < (-extent if from_end else 0)) | (values >= extent)]
    if outside.size:
        text, expected = out_of_bounds(str(outside.flat[0]), axis, name, str(extent), from_end)
        raise ExecutionError(text, expected=expected)


def _take_lower(x: te.TensorValue, indices: te.TensorValue | Expr, axis: Axis, mode: str) -> te.TensorValue:
    place = 0 if axis is None else normalize_axis("take", axis, x.ndim)
    rank, shape = (indices.ndim, indices.shape) if isinstance(indices, te.TensorValue) else (0, ())
    dims = (*x.shape[:place], *shape, *x.shape[place + 1 :])

    def body(*i: Any) -> Expr:
        given = indices[i[place : place + rank]] if isinstance(indices, te.TensorValue) else indices
        if mode == "nan":
            at = cast("int64", given)
            inside = E.And(E.GE(at, int64(0)), E.LT(at, x.shape[place]))
            value = x[(*i[:place], at, *i[place + rank :])]
            return intrinsic("if_then_else", inside, value, const(float("nan"), x.dtype))
        index = wrapped_index(given, x.shape[place], mode)
        return x[(*i[:place], index, *i[place + rank :])]

    return te.compute(dims, body, "T_take")


def _take_ref(x: Any, indices: Any, axis: Axis, mode: str) -> Any:
    place = 0 if axis is None else axis % x.ndim
    extent = x.shape[place]
    if mode == "wrap":
        indices = np.mod(indices, extent) if extent else indices
    elif mode == "clip":
        indices = np.clip(indices, 0, extent - 1)
    dims = (*x.shape[:place], *np.shape(indices), *x.shape[place + 1 :])
    if 0 in dims:  # nothing is read
        return np.zeros(dims, x.dtype)
    if mode == "nan":
        inside = np.logical_and(np.asarray(indices) >= 0, indices < extent)
        values = np.take(x, np.where(inside, indices, 0), axis=place) if extent else np.zeros(dims, x.dtype)
        rest = x.ndim - 1 - place
        return np.where(np.reshape(inside, (*np.shape(inside), *[1] * rest)), values, x.dtype.type("nan"))
    if mode == "fast":
        require_in_bounds(indices, place, "x", extent)
    return np.take(x, indices, axis=place)


@operator(
    fusion=Fusion.INJECTIVE,
    lower=_take_lower,
    ref=_take_ref,
    samples=lambda: [
        sample((5, 3), np.array([[0, 4], [-1, 2]], "int64"), axis=0),
        sample((5, 3), np.array(2, "int32"), axis=1),
        sample((4,), np.array([3, 0], "int32")),
        sample((4, 2), np.array([7, -9, 1], "int64"), axis=0, mode="wrap"),
        sample((4, 2), np.array([7, -9, 1], "int64"), axis=0, mode="clip"),
        sample((3, 4, 2), np.array([[7, -1], [1, 3]], "int64"), axis=1, mode="nan"),
        sample((0, 2), np.array([0, 1], "int32"), axis=0, mode="nan"),
        sample((4, 2), np.zeros((0,), "int64"), axis=0),
    ],
)
def take(x: TensorType, indices: Operand, axis: Axis = None, mode: str = "fast") -> Type:
    """Elements along ``axis`` at ``indices`` of any rank (a number has rank 0):
    ``x.shape[:axis] + indices.shape + x.shape[axis + 1:]``.

    Negative indices count from the end. An index out of range raises at run time (``"fast"``), is limited to the ends
    (``"clip"``, negative ones to 0), taken modulo the extent (``"wrap"``), or gives NaN (``"nan"``, also for a negative
    one; of floating-point tensors). Without an axis, ``x`` has one dimension.
    """
    if mode not in _MODES:
        fail("take: unknown mode", " or ".join(_MODES), mode)
    if mode == "nan":
        require_floats("take", x)
    require_integers("take", "indices", indices)
    if axis is None:
        require_known_rank("take", "x", x)
    if axis is None and x.ndim != 1:
        fail("take: an axis is needed", "1 dimension, or an axis", f"{x.ndim} dimensions")
    if -1 in (x.ndim, indices.ndim):
        return TensorType(None, x.dtype)
    place = 0 if axis is None else normalize_axis("take", axis, x.ndim)
    dims, at = tensor_dims(x), tensor_dims(indices)
    if dims is None or at is None:
        return TensorType(None, x.dtype, x.ndim - 1 + indices.ndim)
    return tensor((*dims[:place], *at, *dims[place + 1 :]), x.dtype)


# ------------------------------------------------------------------------------------------------------- strided_slice


def slice_bounds(begin: Expr, end: Expr, stride: int, extent: Expr, inbound: bool) -> tuple[Expr, Expr]:
    """The first index and the number of elements of ``begin:end:stride`` by numpy's rules, on symbolic extents.

    ``inbound`` promises that the bounds lie inside; then only literals count from the end.
    """
    start, stop = (_from_end(SHAPES.simplify(cast("int64", b)), extent, inbound) for b in (begin, end))
    ordered = SHAPES.less_equal(start, stop) if stride > 0 else SHAPES.less_equal(stop, start)
    stride = near_stride(stride)
    if not inbound:
        low, high = (int64(0), extent) if stride > 0 else (int64(-1), E.Sub(extent, int64(1)))
        start, stop = (SHAPES.simplify(E.Max(E.Min(b, high), low)) for b in (start, stop))
    span = E.Sub(stop, start) if stride > 0 else E.Sub(start, stop)
    count = E.FloorDiv(E.Add(span, int64(abs(stride) - 1)), int64(abs(stride)))
    # limited to the extent, bounds keep their order
    return start, SHAPES.simplify(count if ordered else E.Max(count, int64(0)))


def _from_end(bound: Expr, extent: Expr, inbound: bool) -> Expr:
    """A bound that counts from the start; one below 0 counts from the end, which may only be known at run time."""
    low, high = SHAPES.bounds(bound)
    if high < 0:
        return SHAPES.simplify(E.Add(bound, extent))
    if low >= 0 or inbound:
        return bound
    return E.Select(E.LT(bound, int64(0)), SHAPES.simplify(E.Add(bound, extent)), bound)


_FAR = 1 << 62


def near_stride(stride: int) -> int:
    """A stride that picks the same elements of every tensor, and with which arithmetic of 64 bits does not overflow."""
    return max(min(stride, _FAR), -_FAR)


def _values(e: Expr | None) -> list[Expr] | None:
    return list(e.fields) if isinstance(e, Tuple) else None


def _ints(name: str, values: Sequence[Expr]) -> list[int]:
    if not all(isinstance(v, IntImm) for v in values):
        fail(f"{name}: axes and strides must be literals", "integers", str(list(values)))
    return [v.value for v in values]  # type: ignore[attr-defined]


def _slices(
    dims: Sequence[Expr], axes: Sequence[Expr], begin: Sequence[Expr], end: Sequence[Expr], strides: Any, inbound: bool
) -> dict[int, tuple[Expr, Expr, int]]:
    """Start, count and stride by axis."""
    places = normalize_axes("strided_slice", _ints("strided_slice", axes), len(dims))
    steps = [1] * len(places) if strides is None else _ints("strided_slice", strides)
    if not len(places) == len(begin) == len(end) == len(steps):
        fail("strided_slice: axes, begin, end and strides must have one length", str(len(places)), str(len(begin)))
    found = {}
    for place, low, high, step in zip(places, begin, end, steps, strict=True):
        if step == 0:
            fail("strided_slice: a stride is 0", "a stride that is not 0", "0")
        found[place] = (*slice_bounds(low, high, step, dims[place], inbound), near_stride(step))
    return found


def _slice_lower(
    x: te.TensorValue, axes: Any, begin: Any, end: Any, strides: Any = None, assume_inbound: bool = False
) -> te.TensorValue:
    found = _slices(x.shape, axes, begin, end, strides, assume_inbound)
    dims = [found[d][1] if d in found else dim for d, dim in enumerate(x.shape)]

    def body(*i: Any) -> Expr:
        index = list(i)
        for d, (start, _, step) in found.items():
            index[d] = E.Add(start, E.Mul(i[d], int64(step)) if step != 1 else i[d])
        return x[tuple(index)]

    return te.compute(dims, body, "T_strided_slice")


def _slice_ref(x: Any, axes: Any, begin: Any, end: Any, strides: Any = None, assume_inbound: bool = False) -> Any:
    for n, axis in enumerate(axes):
        step, extent = 1 if strides is None else strides[n], x.shape[axis]
        bounds = begin[n], end[n]
        if assume_inbound:
            start, stop = (b + extent if b < 0 else b for b in bounds)
            picked = range(start, stop, step)
            for index in (picked[0], picked[-1]) if picked else ():
                require_in_bounds(index, axis % x.ndim, "x", extent, from_end=False)
        else:
            beyond = step < 0 and bounds[1] < -extent
            picked = range(*slice(bounds[0], None if beyond else bounds[1], step).indices(extent))
        x = np.take(x, picked, axis) if picked else np.take(x, [], axis) if extent else x
    return x


@operator(
    fusion=Fusion.INJECTIVE,
    lower=_slice_lower,
    ref=_slice_ref,
    samples=lambda: [
        sample((5, 6), [0], [1], [4]),
        sample((5, 6), [0, 1], [-3, 0], [100, -1]),
        sample((7,), [0], [1], [7], [2]),
        sample((7,), [0], [-1], [-100], [-3]),
        sample((4, 3), [1], [2], [1]),
        sample((4, 3), [1], [0], [2], assume_inbound=True),
    ],
)
def strided_slice(
    x: TensorType,
    axes: Scalars,
    begin: Scalars,
    end: Scalars,
    strides: Scalars | None = None,
    assume_inbound: bool = False,
) -> Type:
    """``x[begin:end:stride]`` along the given axes by numpy's rules: bounds below 0 count from the end, bounds beyond
    the ends are limited. With ``assume_inbound`` bounds are not limited, symbolic ones are not below 0, and an element
    that does not exist raises at run time."""
    dims = tensor_dims(x)
    parts = [_values(axes), _values(begin), _values(end)]
    for what, given in zip(("begin", "end", "strides"), (*parts[1:], _values(strides)), strict=True):
        if parts[0] is not None and given is not None and len(given) != len(parts[0]):
            fail(f"strided_slice: one of {what} for each axis", str(len(parts[0])), str(len(given)))
        for bound in given or ():
            if not dtypes.is_int(scalar_dtype(bound)):
                fail(f"strided_slice: {what} must be integers", "an integer", scalar_dtype(bound))
    if dims is None or any(p is None for p in parts):
        return TensorType(None, x.dtype, x.ndim)
    found = _slices(dims, parts[0] or [], parts[1] or [], parts[2] or [], _values(strides), assume_inbound)
    return tensor([found[d][1] if d in found else dim for d, dim in enumerate(dims)], x.dtype)


# ------------------------------------------------------------------------------------------------------------- gather


def _gather_elements_lower(data: te.TensorValue, indices: te.TensorValue, axis: int) -> te.TensorValue:
    place = normalize_axis("gather_elements", axis, data.ndim)

    def body(*i: Any) -> Expr:
        index = wrapped_index(indices[i], data.shape[place], "fast")
        return data[(*i[:place], index, *i[place + 1 :])]

    return te.compute(indices.shape, body, "gather_elements")


def _gather_elements_ref(data: Any, indices: Any, axis: int) -> Any:
    axis %= data.ndim
    require_in_bounds(indices, axis, "data", data.shape[axis])
    for d, (extent, wanted) in enumerate(zip(data.shape, indices.shape, strict=True)):
        if d != axis and indices.size:
            require_in_bounds(wanted - 1, d, "data", extent, from_end=False)
    own = [slice(None) if d == axis else slice(0, n) for d, n in enumerate(indices.shape)]
    return np.take_along_axis(data[tuple(own)], np.asarray(indices).astype("int64"), axis)


@operator(
    fusion=Fusion.INJECTIVE,
    lower=_gather_elements_lower,
    ref=_gather_elements_ref,
    samples=lambda: [
        sample((3, 4), np.array([[0, 3, -1], [1, 1, 2], [0, 0, 0]], "int64"), axis=1),
        sample((3, 4), np.array([[2, 0, 1, 1]], "int32"), axis=0),
    ],
    kernel="gather",
    shape_of=1,
)
def gather_elements(data: TensorType, indices: TensorType, axis: int = 0) -> Type:
    """``out[i][j] = data[i][indices[i][j]]`` (for axis 1): one index for each element of the result."""
    require_integers("gather_elements", "indices", indices)
    if data.ndim != -1:
        normalize_axis("gather_elements", axis, data.ndim)
        if indices.ndim not in (-1, data.ndim):
            fail("gather_elements: both must have one rank", f"{data.ndim} dimensions", f"{indices.ndim} dimensions")
    if -1 in (data.ndim, indices.ndim):
        return TensorType(None, data.dtype)
    return TensorType(indices.shape, data.dtype, indices.ndim)


def _index_depth(name: str, indices: TensorType, ndim: int, batch_dims: int) -> int | None:
    dims = tensor_dims(indices)
    if dims is None or not dims or not isinstance(dims[-1], IntImm):
        return None
    depth = dims[-1].value
    if ndim != -1 and depth + batch_dims > ndim:
        fail(f"{name}: more indices than dimensions", f"at most {ndim - batch_dims}", str(depth))
    return depth


def _gather_nd_lower(data: te.TensorValue, indices: te.TensorValue, batch_dims: int) -> te.TensorValue:
    depth = evaluate(indices.shape[-1], {})
    lead = indices.ndim - 1

    def body(*i: Any) -> Expr:
        picked = [wrapped_index(indices[(*i[:lead], d)], data.shape[batch_dims + d], "fast") for d in range(depth)]
        return data[(*i[:batch_dims], *picked, *i[lead:])]

    return te.compute((*indices.shape[:-1], *data.shape[batch_dims + depth :]), body, "gather_nd")


def _gather_nd_ref(data: Any, indices: Any, batch_dims: int) -> Any:
    lead, depth = indices.shape[:-1], indices.shape[-1]
    dims = (*lead, *data.shape[batch_dims + depth :])
    if 0 in dims:  # nothing is read
        return np.zeros(dims, data.dtype)
    for d in range(batch_dims, batch_dims + depth):
        require_in_bounds(indices[..., d - batch_dims], d, "data", data.shape[d])
    batches = list(np.indices(lead)[:batch_dims])
    places = (*batches, *(indices[..., d] for d in range(depth)))
    return data[places] if places else np.broadcast_to(data, dims).copy()


@operator(
    fusion=Fusion.INJECTIVE,
    lower=_gather_nd_lower,
    ref=_gather_nd_ref,
    samples=lambda: [
        static_sample((3, 4, 2), np.array([[0, 1], [2, -1]], "int64")),
        sample((3, 4), np.array([[[0], [3]], [[1], [1]], [[2], [0]]], "int64"), batch_dims=1),
    ],
    to_know_the_rank="R.match_cast the indices to a type whose last extent is a number",
    kernel="te_gather_nd",
)
def gather_nd(data: TensorType, indices: TensorType, batch_dims: int = 0) -> Type:
    """Slices of ``data`` at index tuples along the last axis of ``indices`` (ONNX GatherND); the first ``batch_dims``
    dimensions are common to both."""
    require_integers("gather_nd", "indices", indices)
    for what, t, least in (("data", data, 0), ("indices", indices, 1)):
        if batch_dims < 0 or (t.ndim != -1 and batch_dims > t.ndim - least):
            expected = "a number from 0" if t.ndim == -1 else f"0 <= batch_dims <= {t.ndim - least} for {what}"
            fail("gather_nd: batch_dims does not fit", expected, str(batch_dims))
    depth = _index_depth("gather_nd", indices, data.ndim, batch_dims)
    dims, at = tensor_dims(data), tensor_dims(indices)
    if dims is not None and at is not None:
        for d in range(batch_dims):
            require_equal(f"gather_nd: data and indices differ in batch dimension {d}", dims[d], at[d])
    if depth is None or data.ndim == -1 or indices.ndim == -1:
        return TensorType(None, data.dtype)
    if dims is None or at is None:
        return TensorType(None, data.dtype, indices.ndim - 1 + data.ndim - batch_dims - depth)
    return tensor((*at[:-1], *dims[batch_dims + depth :]), data.dtype)


def _one_hot_lower(indices: te.TensorValue, on_value: Expr, off_value: Expr, depth: int, axis: int) -> te.TensorValue:
    place = normalize_axis("one_hot", axis, indices.ndim + 1)
    dims = [*indices.shape[:place], int64(depth), *indices.shape[place:]]

    def body(*i: Any) -> Expr:
        index = cast("int64", indices[(*i[:place], *i[place + 1 :])])
        return E.Select(E.EQ(index, i[place]), on_value, off_value)

    return te.compute(dims, body, "one_hot")


def _one_hot_ref(indices: Any, on_value: Any, off_value: Any, depth: int, axis: int) -> Any:
    hit = np.expand_dims(indices, axis) == np.arange(depth).reshape(
        [-1 if d == axis % (np.ndim(indices) + 1) else 1 for d in range(np.ndim(indices) + 1)]
    )
    dtype = "float32" if isinstance(on_value, float) else "int64" if isinstance(on_value, int) else on_value.dtype
    return np.where(hit, on_value, off_value).astype(dtype)


@operator(
    fusion=Fusion.INJECTIVE,
    lower=_one_hot_lower,
    ref=_one_hot_ref,
    samples=lambda: [
        sample(np.array([0, 2, 5, -1], "int64"), 1.0, 0.0, depth=4),
        sample(np.array([[0, 1]], "int32"), 5, -5, depth=2, axis=0),
    ],
    typed_numbers=True,
)
def one_hot(indices: TensorType, on_value: Scalar, off_value: Scalar, depth: int, axis: int = -1) -> Type:
    """``on_value`` where the new axis of extent ``depth`` equals the index, else ``off_value``."""
    require_integers("one_hot", "indices", indices)
    if depth < 1:
        fail("one_hot: the depth must be positive", "a size from 1", str(depth))
    dtype = E.scalar_dtype(on_value)
    if E.scalar_dtype(off_value) != dtype:
        fail("one_hot: both values must have one dtype", dtype, E.scalar_dtype(off_value))
    dims = tensor_dims(indices)
    if dims is None:
        return TensorType(None, dtype, -1 if indices.ndim == -1 else indices.ndim + 1)
    place = normalize_axis("one_hot", axis, len(dims) + 1)
    return tensor((*dims[:place], int64(depth), *dims[place:]), dtype)
