"""``topi``: the operators' compute definitions as functions on tensors of the DSL (`supple.te`).

Each function runs the definition that the operator of Relax declares, under topi's names and argument order. Shapes
may hold symbols; operands are checked as the operator checks them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from supple.build.te import TensorValue
from supple.relax import op as relax_op
from supple.topi import nn as nn
from supple.topi.apply import apply, apply_many, named

_UNARY = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "cos", "cosh", "erf", "exp",
    "floor", "isfinite", "isinf", "isnan", "log", "logical_not", "negative", "round", "rsqrt", "sigmoid", "sign",
    "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
_BINARY = (
    "add", "atan2", "bitwise_and", "bitwise_or", "bitwise_xor", "divide", "equal", "floor_divide", "floor_mod",
    "greater", "greater_equal", "left_shift", "less", "less_equal", "log_add_exp", "logical_and", "logical_or",
    "logical_xor", "maximum", "minimum", "mod", "multiply", "not_equal", "power", "right_shift", "subtract",
)  # fmt: skip
_REDUCTIONS = ("max", "min", "prod", "sum")


def _unary(name: str) -> Callable[[TensorValue], TensorValue]:
    def function(x: TensorValue) -> TensorValue:
        return apply(getattr(relax_op, name), x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``relax.{name}`` of a tensor."
    return function


def _binary(name: str) -> Callable[[Any, Any], TensorValue]:
    def function(lhs: Any, rhs: Any) -> TensorValue:
        return apply(getattr(relax_op, name), lhs, rhs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``relax.{name}`` of two tensors, or of a tensor and a number; shapes are broadcast."
    return function


def _reduction(name: str) -> Callable[..., TensorValue]:
    def function(data: TensorValue, axis: Any = None, keepdims: bool = False) -> TensorValue:
        return apply(getattr(relax_op, name), data, axis=axis, keepdims=keepdims)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``relax.{name}`` over some axes (all of them for None)."
    return function


globals().update({name: _unary(name) for name in _UNARY})
globals().update({name: _binary(name) for name in _BINARY})
globals().update({name: _reduction(name) for name in _REDUCTIONS})


def identity(x: TensorValue) -> TensorValue:
    """A copy."""
    return apply(relax_op.astype, x, dtype=x.dtype)


def cast(x: TensorValue, dtype: str) -> TensorValue:
    """Elements converted to a dtype."""
    return apply(relax_op.astype, x, dtype=dtype)


def clip(x: TensorValue, a_min: Any, a_max: Any) -> TensorValue:
    """Elements limited to ``[a_min, a_max]``."""
    return apply(relax_op.clip, x, a_min, a_max)


def elemwise_sum(xs: Sequence[TensorValue]) -> TensorValue:
    """The sum of several tensors of one shape."""
    result = xs[0]
    for x in xs[1:]:
        result = apply(relax_op.add, result, x)
    return named(result, "T_elemwise_sum") if len(xs) > 1 else result


def all(data: TensorValue, axis: Any = None, keepdims: bool = False) -> TensorValue:
    """Whether all elements of a bool tensor hold, over some axes."""
    least = apply(relax_op.min, cast(data, "int8"), axis=axis, keepdims=keepdims)
    return named(cast(least, "bool"), f"{data.name}_red")


def any(data: TensorValue, axis: Any = None, keepdims: bool = False) -> TensorValue:
    """Whether any element of a bool tensor holds, over some axes."""
    greatest = apply(relax_op.max, cast(data, "int8"), axis=axis, keepdims=keepdims)
    return named(cast(greatest, "bool"), f"{data.name}_red")


def argmax(data: TensorValue, axis: Any = None, keepdims: bool = False) -> TensorValue:
    """The index of the greatest element along an axis (int64; the first of equal ones)."""
    return apply(relax_op.argmax, data, axis=axis, keepdims=keepdims)


def argmin(data: TensorValue, axis: Any = None, keepdims: bool = False) -> TensorValue:
    """The index of the least element along an axis (int64; the first of equal ones)."""
    return apply(relax_op.argmin, data, axis=axis, keepdims=keepdims)


# ------------------------------------------------------------------------------------------------------------ creation


def full(shape: Sequence[Any], dtype: str, fill_value: Any) -> TensorValue:
    """A tensor of one value."""
    return apply(relax_op.full, list(shape), fill_value, dtype=dtype)


def full_like(x: TensorValue, fill_value: Any) -> TensorValue:
    """A tensor of one value with another's shape and dtype."""
    return named(apply(relax_op.full, list(x.shape), fill_value, dtype=x.dtype), "T_full_like")


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: str = "float32") -> TensorValue:
    """``start, start + step, ...`` below ``stop``."""
    if stop is None:
        start, stop = 0, start
    return apply(relax_op.arange, start, stop, step, dtype=dtype)


def eye(n: Any, m: Any = None, k: Any = 0, dtype: str = "float32") -> TensorValue:
    """Ones on a diagonal, zeros elsewhere."""
    return apply(relax_op.eye, n, n if m is None else m, k, dtype=dtype)


def one_hot(
    indices: TensorValue, on_value: Any, off_value: Any, depth: int, axis: int = -1, dtype: str = "float32"
) -> TensorValue:
    """``on_value`` where an index stands along the new axis, ``off_value`` elsewhere."""
    made = apply(relax_op.one_hot, indices, on_value, off_value, depth=depth, axis=axis)
    return named(cast(made, dtype), "T_one_hot")


# -------------------------------------------------------------------------------------------------------------- shapes


def transpose(a: TensorValue, axes: Any = None) -> TensorValue:
    """Axes in another order (reversed for None)."""
    return apply(relax_op.permute_dims, a, axes=axes)


def reshape(a: TensorValue, newshape: Any) -> TensorValue:
    """The same elements, row-major, in another shape."""
    return apply(relax_op.reshape, a, list(newshape) if isinstance(newshape, (list, tuple)) else [newshape])


def squeeze(a: TensorValue, axis: Any = None) -> TensorValue:
    """Without axes of extent 1."""
    return apply(relax_op.squeeze, a, axis=axis)


def expand_dims(a: TensorValue, axis: int, num_newaxis: int = 1) -> TensorValue:
    """New axes of extent 1 before position ``axis`` of the result."""
    first = axis if axis >= 0 else a.ndim + 1 + axis
    return apply(relax_op.expand_dims, a, axis=list(range(first, first + num_newaxis)))


def broadcast_to(data: TensorValue, shape: Sequence[Any]) -> TensorValue:
    """Repeated along axes of extent 1."""
    return apply(relax_op.broadcast_to, data, list(shape))


def concatenate(a_tuple: Sequence[TensorValue], axis: int = 0) -> TensorValue:
    """Tensors one after the other along an axis."""
    return apply(relax_op.concat, list(a_tuple), axis=axis)


def stack(tensors: Sequence[TensorValue], axis: int = 0) -> TensorValue:
    """Tensors of one shape along a new axis."""
    return apply(relax_op.stack, list(tensors), axis=axis)


def split(ary: TensorValue, indices_or_sections: Any, axis: int = 0) -> list[TensorValue]:
    """Parts along an axis: a number of equal ones, or at given indices."""
    return apply_many(relax_op.split, ary, indices_or_sections=indices_or_sections, axis=axis)


def flip(a: TensorValue, axis: int = 0) -> TensorValue:
    """An axis in reverse order."""
    return apply(relax_op.flip, a, axis=axis)


def repeat(a: TensorValue, repeats: int, axis: int) -> TensorValue:
    """Each element several times along an axis."""
    return apply(relax_op.repeat, a, repeats=repeats, axis=axis)


def tile(a: TensorValue, reps: Any) -> TensorValue:
    """The whole tensor several times."""
    return apply(relax_op.tile, a, repeats=reps)


def trilu(data: TensorValue, k: Any, upper: bool) -> TensorValue:
    """The upper or lower triangle of each matrix; ``k`` shifts the diagonal."""
    return apply(relax_op.triu if upper else relax_op.tril, data, k)


def strided_slice(
    a: TensorValue,
    begin: Sequence[Any],
    end: Sequence[Any],
    strides: Sequence[Any] | None = None,
    axes: Sequence[int] | None = None,
) -> TensorValue:
    """``a[begin:end:strides]`` along ``axes`` (the first ones for None)."""
    along = list(range(len(begin))) if axes is None else list(axes)
    steps = [1] * len(along) if strides is None else list(strides)
    return apply(relax_op.strided_slice, a, along, list(begin), list(end), steps)


def meshgrid(a_tuple: Sequence[TensorValue], indexing: str = "ij") -> list[TensorValue]:
    """Coordinate tensors of a grid."""
    return apply_many(relax_op.meshgrid, list(a_tuple), indexing=indexing)


def collapse_sum(data: TensorValue, target_shape: Sequence[Any]) -> TensorValue:
    """Summed back to a shape that broadcasts to this one."""
    return apply(relax_op.collapse_sum_to, data, list(target_shape))


# ------------------------------------------------------------------------------------------------- selection and order


def where(condition: TensorValue, x: Any, y: Any) -> TensorValue:
    """``x`` where the condition holds, else ``y``."""
    return apply(relax_op.where, condition, x, y)


def take(
    a: TensorValue, indices: TensorValue, axis: int | None = None, batch_dims: int = 0, mode: str = "fast"
) -> TensorValue:
    """Slices of an axis by index; ``mode`` is ``"fast"``, ``"clip"``, ``"wrap"`` or ``"nan"``."""
    if batch_dims:
        raise TypeError("topi.take: batch_dims is not supported")
    if axis is None:  # of all elements in a row
        a, axis = apply(relax_op.flatten, a), 0
    return apply(relax_op.take, a, indices, axis=axis, mode=mode)


def gather(data: TensorValue, axis: int, indices: TensorValue) -> TensorValue:
    """Elements along an axis by index."""
    return apply(relax_op.gather_elements, data, indices, axis=axis)


def gather_nd(a: TensorValue, indices: TensorValue, batch_dims: int = 0) -> TensorValue:
    """Slices by tuples of indices, which the first axis of ``indices`` holds."""
    last = transpose(indices, [*range(1, indices.ndim), 0])
    return apply(relax_op.gather_nd, a, last, batch_dims=batch_dims)


def scatter_elements(
    data: TensorValue, indices: TensorValue, updates: TensorValue, axis: int = 0, reduction: str = "update"
) -> TensorValue:
    """Elements written, or reduced, at indices along an axis."""
    return apply(relax_op.scatter_elements, data, indices, updates, axis=axis, reduction=reduction)


def sort(data: TensorValue, axis: int = -1, is_ascend: bool = True) -> TensorValue:
    """Sorted along an axis, equal elements in their order."""
    return apply(relax_op.sort, data, axis=axis, descending=not is_ascend)


def argsort(
    data: TensorValue, valid_count: None = None, axis: int = -1, is_ascend: bool = True, dtype: str = "float32"
) -> TensorValue:
    """The order that sorts along an axis."""
    if valid_count is not None:
        raise TypeError("topi.argsort: valid_count is not supported")
    order = apply(relax_op.argsort, data, axis=axis, descending=not is_ascend, dtype="int32")
    return cast(order, dtype)


def topk(
    data: TensorValue,
    k: int = 1,
    axis: int = -1,
    ret_type: str = "both",
    is_ascend: bool = False,
    dtype: str = "int64",
) -> Any:
    """The k greatest (or least) elements along an axis, their indices, or both."""
    made = apply_many(relax_op.topk, data, k=k, axis=axis, ret_type=ret_type, largest=not is_ascend, dtype=dtype)
    return made if ret_type == "both" else made[0]


def cumsum(
    data: TensorValue, axis: int | None = None, dtype: str | None = None, exclusive: bool = False
) -> TensorValue:
    """Running sums along an axis."""
    return apply(relax_op.cumsum, data, axis=axis, dtype=dtype, exclusive=bool(exclusive))


def cumprod(
    data: TensorValue, axis: int | None = None, dtype: str | None = None, exclusive: bool = False
) -> TensorValue:
    """Running products along an axis."""
    return apply(relax_op.cumprod, data, axis=axis, dtype=dtype, exclusive=bool(exclusive))


# ------------------------------------------------------------------------------------------------------ linear algebra


def matmul(a: TensorValue, b: TensorValue, transp_a: bool = False, transp_b: bool = False) -> TensorValue:
    """The product of matrices."""
    return named(nn.matmul(a, b, transpose_a=transp_a, transpose_b=transp_b), "T_matmul")


def __dir__() -> list[str]:
    return sorted(n for n in globals() if not n.startswith("_"))
