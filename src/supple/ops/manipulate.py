"""Operators that move elements: reshape, permute_dims, concat, expand_dims, squeeze, broadcast_to, flatten."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from supple.base.errors import TypeCheckError
from supple.build import te
from supple.ir import expr as E
from supple.ir.expr import IntImm, Var, int64
from supple.ir.graph import ShapeExpr
from supple.ir.intrinsics import intrinsic
from supple.ir.node import Expr, Type
from supple.ir.op import Fusion
from supple.ir.types import ShapeType, TensorType
from supple.ops.declare import Axes, Axis, Place, Shape, ShapeOf, Tensors, fail, operator, sample, static_sample
from supple.ops.requirements import require_equal, require_spread
from supple.ops.shapes import broadcast_index, normalize_axes, normalize_axis, require_known_rank
from supple.sym.relate import dim_text, dims_text, tensor, tensor_dims
from supple.sym.simplify import SHAPES, exact_quotient, product, rest_in_order, size_in_order


def shape_values(shape: Expr) -> tuple[Expr, ...] | None:
    """The values of a shape argument, or None when they are known at run time only."""
    if isinstance(shape, ShapeExpr):
        return shape.values
    ty = getattr(shape, "ty", None)
    return ty.values if isinstance(ty, ShapeType) else None


def shape_rank(shape: Expr) -> int:
    ty = getattr(shape, "ty", None)
    return ty.ndim if isinstance(ty, ShapeType) else -1


def shaped(shape: Expr, dtype: str | None) -> TensorType:
    """A tensor of a shape that is only known as a value: a variable is the tensor's shape itself."""
    if isinstance(shape, Var) and isinstance(shape.ty, ShapeType):
        return TensorType(shape, dtype)
    return TensorType(None, dtype, shape_rank(shape))


# ------------------------------------------------------------------------------------------------------------ reshape


def reshaped_dims(dims: Sequence[Expr], wanted: Sequence[Expr]) -> tuple[Expr, ...]:
    """The new shape with ``0`` (keep this dimension) and one ``-1`` (what is left) filled in; refuses another size."""
    result = list(wanted)
    for d, value in enumerate(result):
        if isinstance(value, IntImm) and value.value == 0 and d < len(dims):
            result[d] = dims[d]
    if _is_zero_size(dims) and not _is_zero_size(result):  # as numpy: 0 is a size of its own
        result = list(wanted)
    free = [d for d, value in enumerate(result) if isinstance(value, IntImm) and value.value == -1]
    if len(free) > 1:
        fail("reshape: only one dimension can be -1", "at most one -1", dims_text(wanted))
    total = product(list(dims))
    if free:
        others = [v for d, v in enumerate(result) if d != free[0]]
        rest = product(others)
        quotient = exact_quotient(total, rest)
        if quotient is None:
            text = "reshape: the size is not a multiple of the other dimensions"
            require_equal(text, int64(0), E.FloorMod(total, rest), f"a divisor of {dim_text(total)}", dim_text(rest))
        result[free[0]] = rest_in_order(dims, others)
        if quotient is not None and isinstance(result[free[0]], E.FloorDiv):
            result[free[0]] = quotient
    negative = [v for v in result if isinstance(v, IntImm) and v.value < 0]
    if negative:
        fail("reshape: a dimension is negative", "sizes, one -1 at most", dims_text(wanted))
    else:
        came = f"{dim_text(product(result))} elements in {dims_text(result)}"
        text = "reshape: the number of elements differs"
        require_equal(text, total, product(result), f"{dim_text(total)} elements", came)
    return tuple(result)


def _is_zero_size(dims: Sequence[Expr]) -> bool:
    return any(isinstance(d, IntImm) and d.value == 0 for d in dims)


def _flat_index(indices: Sequence[Any], dims: Sequence[Expr]) -> Expr:
    flat: Expr = int64(0)
    for index, dim in zip(indices, dims, strict=True):
        flat = E.Add(E.Mul(flat, dim), index)
    return SHAPES.simplify(flat)


def reshape_tensor(x: te.TensorValue, dims: Sequence[Expr]) -> te.TensorValue:
    """The same elements in row-major order under another shape."""

    def body(*i: Any) -> Expr:
        flat = _flat_index(i, dims)
        index: list[Expr] = []
        for d in reversed(range(x.ndim)):
            index.append(flat if d == 0 else E.FloorMod(flat, x.shape[d]))
            flat = E.FloorDiv(flat, x.shape[d])
        return x[tuple(reversed(index))]

    return te.compute(dims, body, "T_reshape")


def _reshape_lower(x: te.TensorValue, shape: Sequence[Expr]) -> te.TensorValue:
    return reshape_tensor(x, reshaped_dims(x.shape, shape))


def _reshape_ref(x: Any, shape: Sequence[int]) -> Any:
    x = np.asarray(x)
    filled = [x.shape[d] if s == 0 and d < x.ndim else s for d, s in enumerate(shape)]
    if x.size == 0 and 0 not in filled:
        filled = list(shape)
    if x.size == 0 and -1 in filled:  # what is left of nothing
        others = math.prod(s for s in filled if s != -1)
        filled = [0 // max(others, 1) if s == -1 else s for s in filled]
    return np.reshape(x, filled)


@operator(
    fusion=Fusion.INJECTIVE,
    view=True,
    role="reshape",
    lower=_reshape_lower,
    ref=_reshape_ref,
    samples=lambda: [
        sample((2, 3, 4), ShapeOf((6, 4))),
        sample((2, 3, 4), ShapeOf((-1,))),
        sample((2, 3, 4), ShapeOf((0, -1))),
        sample((), ShapeOf((1, 1))),
        sample((0, 4), ShapeOf((2, 0))),
    ],
)
def reshape(x: TensorType, shape: Shape) -> Type:
    """The elements of ``x`` in row-major order under a new shape. One dimension may be -1 (what is left), and 0 keeps
    the input's dimension at that place. Where it is not proved that the number of elements is the same, that is checked
    when it runs."""
    wanted, dims = shape_values(shape), tensor_dims(x)
    if wanted is None:
        return shaped(shape, x.dtype)
    if dims is None:
        literals = [v.value for v in wanted if isinstance(v, IntImm)]
        if literals.count(-1) > 1 or any(v < -1 for v in literals):
            fail("reshape: a dimension is negative", "sizes, one -1 at most", dims_text(wanted))
        if not all(v > 0 for v in literals):
            hint = "R.match_cast(x, R.Tensor((...))) names the sizes of x"
            fail("reshape: 0 and -1 need the sizes of the tensor", "a known shape", str(x), hint=hint)
        return TensorType(ShapeExpr(wanted), x.dtype)
    return TensorType(ShapeExpr(reshaped_dims(dims, wanted)), x.dtype)


def _filled_in(args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The arguments with 0 and -1 of the shape filled in, where the tensor's shape tells them."""
    ty = getattr(args[0], "ty", None)
    dims = tensor_dims(ty) if isinstance(ty, TensorType) else None
    if dims is None or not isinstance(args[1], ShapeExpr):
        return args
    wanted = args[1].values
    if not any(isinstance(v, IntImm) and v.value in (0, -1) for v in wanted):
        return args
    try:
        return (args[0], ShapeExpr(reshaped_dims(dims, wanted), span=args[1].span))
    except TypeCheckError:
        return args  # the type rule refuses it at the call's place


reshape.facts["settle_args"] = _filled_in


def _flatten_lower(x: te.TensorValue) -> te.TensorValue:
    return reshape_tensor(x, (size_in_order(x.shape),))


@operator(
    fusion=Fusion.INJECTIVE,
    view=True,
    lower=_flatten_lower,
    ref=np.ravel,
    samples=lambda: [sample((2, 3)), sample(())],
)
def flatten(x: TensorType) -> Type:
    """The elements in row-major order as one dimension."""
    if x.ndim == 1:
        return x
    dims = () if x.ndim == 0 else tensor_dims(x)
    return TensorType(None, x.dtype, 1) if dims is None else TensorType(ShapeExpr((size_in_order(dims),)), x.dtype)


# -------------------------------------------------------------------------------------------------------- permute_dims


def _permutation(ndim: int, axes: Axes) -> tuple[int, ...]:
    if axes is None:
        return tuple(reversed(range(ndim)))
    normal = normalize_axes("permute_dims", axes, ndim)
    if len(normal) != ndim:
        fail("permute_dims: every axis must be given once", f"{ndim} axes", str(list(axes)))
    return normal


def _permute_lower(x: te.TensorValue, axes: Axes) -> te.TensorValue:
    order = _permutation(x.ndim, axes)

    def body(*i: Any) -> Expr:
        index: list[Any] = [None] * x.ndim
        for position, axis in enumerate(order):
            index[axis] = i[position]
        return x[tuple(index)]

    return te.compute([x.shape[axis] for axis in order], body, "T_transpose")


@operator(
    fusion=Fusion.INJECTIVE,
    lower=_permute_lower,
    ref=lambda x, axes: np.transpose(x, axes),
    samples=lambda: [sample((2, 3, 4)), sample((2, 3, 4), axes=[1, -1, 0]), sample((0, 3)), sample(())],
    kernel="transpose",
)
def permute_dims(x: TensorType, axes: Axes = None) -> Type:
    """The axes in another order (reversed for None): ``result.shape[i] = x.shape[axes[i]]``."""
    if axes is not None:
        require_known_rank("permute_dims", "x", x)
    if x.ndim == -1:
        return TensorType(None, x.dtype)
    order = _permutation(x.ndim, axes)
    if order == tuple(range(x.ndim)):
        return x
    dims = tensor_dims(x)
    return TensorType(None, x.dtype, x.ndim) if dims is None else tensor([dims[a] for a in order], x.dtype)


# -------------------------------------------------------------------------------------------------------------- concat


def _concat_lower(tensors: Sequence[te.TensorValue], axis: Axis) -> te.TensorValue:
    place = _concat_axis(tensors[0].ndim, axis)
    starts: list[Expr] = [int64(0)]
    for t in tensors:
        starts.append(SHAPES.simplify(E.Add(starts[-1], t.shape[place])))
    dims = list(tensors[0].shape)
    dims[place] = starts[-1]

    def body(*i: Any) -> Expr:
        def part(t: te.TensorValue, start: Expr) -> Expr:
            index = list(i)
            if not (isinstance(start, IntImm) and start.value == 0):
                index[place] = E.Sub(i[place], start)
            return t[tuple(index)]

        value = part(tensors[-1], starts[-2])
        for t, start, end in reversed(list(zip(tensors[:-1], starts[:-2], starts[1:-1], strict=True))):
            value = intrinsic("if_then_else", E.LT(i[place], end), part(t, start), value)
        return value

    return te.compute(dims, body, "T_concat")


def _concat_axis(ndim: int, axis: Axis) -> int:
    return 0 if axis is None else normalize_axis("concat", axis, ndim)


@operator(
    fusion=Fusion.INJECTIVE,
    device=Place.ANY,
    lower=_concat_lower,
    ref=lambda tensors, axis: np.concatenate(tensors, 0 if axis is None else axis),
    samples=lambda: [
        sample([(2, 3), (4, 3)]),
        sample([(2, 3), (2, 1), (2, 5)], axis=-1),
        sample([(0, 3), (2, 3)], axis=0),
        sample([(5,)], axis=0),
    ],
    kernel="concatenate",
)
def concat(tensors: Tensors, axis: Axis = 0) -> Type:
    """The tensors one after the other along ``axis``; their other dimensions are equal. Where that is not proved it is
    checked when it runs, and the type says the rank alone."""
    if not tensors:
        fail("concat: needs at least one tensor", "a non-empty tuple", "()")
    first = tensors[0]
    if len(tensors) == 1 and axis is not None and first.ndim == -1:
        return first
    for other in tensors[1:]:
        if first.dtype is not None and other.dtype is not None and first.dtype != other.dtype:
            fail("concat: the tensors have different dtypes", first.dtype, other.dtype)
        if first.ndim != -1 and other.ndim != -1 and first.ndim != other.ndim:
            fail("concat: the tensors have different ranks", f"{first.ndim} dimensions", f"{other.ndim} dimensions")
    dtype = first.dtype if all(t.dtype is not None for t in tensors) else None
    ndim = max(t.ndim for t in tensors)
    known = [tensor_dims(t) for t in tensors]
    if axis is None and ndim > 1:
        fail("concat: axis=None is for tensors of one dimension", "1 dimension", f"{ndim} dimensions", hint="axis=0")
    if ndim == -1:
        return TensorType(None, dtype, -1 if axis is not None else 1)
    if ndim == 0:
        fail("concat: 0-dimensional tensors have no axis", "at least 1 dimension", "0 dimensions")
    place = _concat_axis(ndim, axis)
    if len(tensors) == 1:
        return first
    if any(dims is None for dims in known):
        return TensorType(None, dtype, ndim)
    shapes = [dims for dims in known if dims is not None]
    result = list(shapes[0])
    proved = True
    for n, dims in enumerate(shapes[1:], 1):
        for d in range(ndim):
            if d == place:
                result[d] = E.Add(result[d], dims[d])
            else:
                proved &= require_equal(f"concat: dimension {d} of tensor {n} differs", shapes[0][d], dims[d])
    return tensor(result, dtype) if proved else TensorType(None, dtype, ndim)


# ------------------------------------------------------------------------------------- expand_dims, squeeze, broadcast


def _expanded(ndim: int, axis: Axes) -> tuple[int, ...]:
    return normalize_axes("expand_dims", axis or (), ndim + len(axis or ()))


def _expand_lower(x: te.TensorValue, axis: Axes) -> te.TensorValue:
    new = set(_expanded(x.ndim, axis))
    dims = _expand(x.shape, new)

    def body(*i: Any) -> Expr:
        return x[tuple(index for d, index in enumerate(i) if d not in new)]

    return te.compute(dims, body, "T_expand_dims")


def _expand(dims: Sequence[Expr], new: set[int]) -> list[Expr]:
    rest = iter(dims)
    return [int64(1) if d in new else next(rest) for d in range(len(dims) + len(new))]


@operator(
    fusion=Fusion.INJECTIVE,
    lower=_expand_lower,
    shape_of=lambda attrs: 0 if attrs["axis"] == () else None,
    ref=lambda x, axis: np.expand_dims(x, axis),
    samples=lambda: [sample((3, 4), axis=[0, -1]), sample((), axis=0)],
)
def expand_dims(x: TensorType, axis: Axes) -> Type:
    """New dimensions of extent 1 at the given places of the result."""
    if x.ndim == -1:
        return TensorType(None, x.dtype)
    new = set(_expanded(x.ndim, axis))
    dims = tensor_dims(x)
    return TensorType(None, x.dtype, x.ndim + len(new)) if dims is None else tensor(_expand(dims, new), x.dtype)


def _squeezed(dims: Sequence[Expr], axis: Axes) -> set[int]:
    if axis is None:
        return {d for d, dim in enumerate(dims) if SHAPES.equal(dim, int64(1)) is True}
    axes = normalize_axes("squeeze", axis, len(dims))
    kept = {a for a in axes if SHAPES.equal(dims[a], int64(1)) is False}
    for a in axes:
        if a not in kept:
            require_equal(f"squeeze: axis {a} is not of extent 1", int64(1), dims[a])
    return set(axes) - kept


def _squeeze_ref(x: Any, axis: Axes) -> Any:
    axes = range(x.ndim) if axis is None else axis
    return np.squeeze(x, tuple({a % x.ndim for a in axes if x.shape[a] == 1}))


def _squeeze_lower(x: te.TensorValue, axis: Axes) -> te.TensorValue:
    gone = _squeezed(x.shape, axis)
    dims = [dim for d, dim in enumerate(x.shape) if d not in gone]

    def body(*i: Any) -> Expr:
        rest = iter(i)
        return x[tuple(int64(0) if d in gone else next(rest) for d in range(x.ndim))]

    return te.compute(dims, body, "T_squeeze")


@operator(
    fusion=Fusion.INJECTIVE,
    lower=_squeeze_lower,
    shape_of=lambda attrs: 0 if attrs["axis"] == () else None,
    ref=_squeeze_ref,
    samples=lambda: [
        static_sample((1, 3, 1)),
        sample((1, 3, 1), axis=[-1]),
        static_sample((2, 3)),
        static_sample((1, 3), axis=[0, 1]),
    ],
    to_know_the_rank="say which dimensions go: R.squeeze(x, axis=[...])",
)
def squeeze(x: TensorType, axis: Axes = None) -> Type:
    """Dimensions of extent 1 removed: those in ``axis`` (another number there stays, as in PyTorch; a symbol is checked
    at run time to be 1), or all; where a symbol may be 1, the rank is not known."""
    dims = tensor_dims(x)
    unsure = axis is None and dims is not None and any(SHAPES.equal(d, int64(1)) is None for d in dims)
    if dims is None or unsure:
        if axis is None or x.ndim == -1:
            return TensorType(None, x.dtype)
        return TensorType(None, x.dtype, x.ndim - len(normalize_axes("squeeze", axis, x.ndim)))
    gone = _squeezed(dims, axis)
    return tensor([dim for d, dim in enumerate(dims) if d not in gone], x.dtype)


def _broadcast_to_dims(dims: Sequence[Expr], wanted: Sequence[Expr]) -> tuple[Expr, ...]:
    require_spread("broadcast_to: the tensor does not broadcast to that shape", wanted, dims)
    return tuple(wanted)


def _broadcast_lower(x: te.TensorValue, shape: Sequence[Expr]) -> te.TensorValue:
    dims = _broadcast_to_dims(x.shape, shape)
    return te.compute(dims, lambda *i: x[broadcast_index(x.shape, i)], "T_broadcast_to")


@operator(
    fusion=Fusion.BROADCAST,
    lower=_broadcast_lower,
    ref=lambda x, shape: np.broadcast_to(x, shape),
    samples=lambda: [sample((3, 1), ShapeOf((2, 3, 4))), sample((), ShapeOf((2,)))],
)
def broadcast_to(x: TensorType, shape: Shape) -> Type:
    """The tensor repeated along dimensions of extent 1 to a larger shape."""
    wanted, dims = shape_values(shape), tensor_dims(x)
    if -1 != shape_rank(shape) < x.ndim:
        ranks = f"at least {x.ndim} dimensions", f"{shape_rank(shape)} dimensions"
        fail("broadcast_to: the shape has fewer dimensions than the tensor", *ranks)
    if wanted is None:
        return shaped(shape, x.dtype)
    if dims is not None:
        _broadcast_to_dims(dims, wanted)
    return tensor(wanted, x.dtype)
