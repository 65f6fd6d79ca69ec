"""``topi``: the operators' compute definitions as functions on tensors of the DSL (`supple.te`).

Each function runs the definition that the operator of Relax declares, under topi's names and argument order. Shapes
may hold symbols; operands are checked as the operator checks them.
"""

from __future__ import annotations

import builtins
import itertools
import string
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from supple.build import te
from supple.build.te import TensorValue
from supple.ir.expr import (
    EQ,
    GE,
    LT,
    And,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Or,
    Select,
    as_expr,
    const,
    int64,
    scalar_dtype,
)
from supple.ir.expr import cast as _cast
from supple.ir.intrinsics import intrinsic
from supple.ir.intrinsics import reinterpret as _bits
from supple.ops.layouts import free_layout
from supple.script import relax as relax_op
from supple.topi import image as image
from supple.topi import nn as nn
from supple.topi import tag as tag
from supple.topi import utils as utils
from supple.topi import vision as vision
from supple.topi.apply import apply, apply_many, inlined, named, public
from supple.topi.places import (
    dynamic_strided_slice as dynamic_strided_slice,
)
from supple.topi.places import (
    expand_like as expand_like,
)
from supple.topi.places import (
    fixed_point_multiply as fixed_point_multiply,
)
from supple.topi.places import (
    matrix_set_diag as matrix_set_diag,
)
from supple.topi.places import (
    sparse_to_dense as sparse_to_dense,
)
from supple.topi.places import (
    strided_set as strided_set,
)

_UNARY = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "cos", "cosh", "erf", "exp",
    "floor", "isfinite", "isinf", "isnan", "log", "logical_not", "negative", "sigmoid", "sign",
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
    limited = apply(relax_op.clip, x, a_min, a_max)  # refuses what does not fit
    low, high = (_cast(x.dtype, as_expr(bound)) for bound in (a_min, a_max))
    return te.compute(limited.shape, lambda *i: Max(Min(x[i], high), low), "compute")


def rsqrt(x: TensorValue) -> TensorValue:
    """One over the square roots."""
    checked = apply(relax_op.rsqrt, x)
    return te.compute(checked.shape, lambda *i: intrinsic("rsqrt", x[i]), "compute")


def elemwise_sum(xs: Sequence[TensorValue]) -> TensorValue:
    """The sum of several tensors of one shape."""
    result = xs[0]
    for x in xs[1:]:
        result = apply(relax_op.add, result, x)
    return named(result, "T_elemwise_sum") if len(xs) > 1 else result


def all(data: TensorValue, axis: Any = None, keepdims: bool = False) -> TensorValue:
    """Whether all elements of a bool tensor hold, over some axes."""
    return _conditions(And, True, data, axis, keepdims)


def any(data: TensorValue, axis: Any = None, keepdims: bool = False) -> TensorValue:
    """Whether any element of a bool tensor holds, over some axes."""
    return _conditions(Or, False, data, axis, keepdims)


def _conditions(kind: Any, start: bool, data: TensorValue, axis: Any, keepdims: bool) -> TensorValue:
    """A reduction of conditions."""
    if data.dtype != "bool":
        raise TypeError(f"topi: all and any take tensors of bool, got {data.dtype}")
    shape = apply(relax_op.max, apply(relax_op.astype, data, dtype="int8"), axis=axis, keepdims=keepdims).shape
    given = range(data.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    reduced = sorted({number % data.ndim for number in given})
    axes = {number: te.reduce_axis((0, data.shape[number]), f"k{number}") for number in reduced}

    def element(*i: Any) -> Any:
        kept = iter(i)
        places = [axes[number].var if number in axes else next(kept) for number in range(data.ndim) if not keepdims]
        if keepdims:
            places = [axes[number].var if number in axes else i[number] for number in range(data.ndim)]
        return te.comm_reducer(kind, lambda dtype: const(start))(data[tuple(places)], list(axes.values()))

    if not axes:
        return named(identity(data), f"{data.name}_red")
    return te.compute(shape, element, f"{data.name}_red")


def argmax(data: TensorValue, axis: Any = None, keepdims: bool = False) -> TensorValue:
    """The index of the greatest element along an axis (the first of equal ones), of the sizes' dtype."""
    return apply(relax_op.argmax, data, axis=axis, keepdims=keepdims)


def argmin(data: TensorValue, axis: Any = None, keepdims: bool = False) -> TensorValue:
    """The index of the least element along an axis (the first of equal ones), of the sizes' dtype."""
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
    return named(made if made.dtype == dtype else inlined(cast(made, dtype), made), "T_one_hot")


def round(x: TensorValue) -> TensorValue:
    """The nearest integers, of two the even one."""
    checked = apply(relax_op.round, x)
    return te.compute(checked.shape, lambda *i: intrinsic("nearbyint", x[i]), "compute")


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
    parts = list(a_tuple)
    checked = apply(relax_op.concat, parts, axis=axis)
    along = axis % parts[0].ndim

    def element(*i: Any) -> Any:
        found, place = parts[0][i], i[along]
        for before, part in itertools.pairwise(parts):
            place = place - before.shape[along]
            index = (*i[:along], place, *i[along + 1 :])
            found = intrinsic("if_then_else", GE(place, const(0, scalar_dtype(place))), part[index], found)
        return found

    return te.compute(checked.shape, element, "T_concat")


def stack(tensors: Sequence[TensorValue], axis: int = 0) -> TensorValue:
    """Tensors of one shape along a new axis."""
    parts = list(tensors)
    checked = apply(relax_op.stack, parts, axis=axis)
    along = axis % checked.ndim

    def element(*i: Any) -> Any:
        index = (*i[:along], *i[along + 1 :])
        found = parts[0][index]
        for number, part in enumerate(parts[1:], 1):
            chosen = EQ(i[along], const(number, scalar_dtype(i[along])))
            found = intrinsic("if_then_else", chosen, part[index], found)
        return found

    return te.compute(checked.shape, element, "T_stack")


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
        row = apply(relax_op.flatten, a)
        return inlined(apply(relax_op.take, row, indices, axis=0, mode=mode), row)
    return apply(relax_op.take, a, indices, axis=axis, mode=mode)


def gather(data: TensorValue, axis: int, indices: TensorValue) -> TensorValue:
    """Elements along an axis by index."""
    return apply(relax_op.gather_elements, data, indices, axis=axis)


def gather_nd(a: TensorValue, indices: TensorValue, batch_dims: int = 0) -> TensorValue:
    """Slices by tuples of indices, which the first axis of ``indices`` holds."""
    last = transpose(indices, [*range(1, indices.ndim), 0])
    return inlined(apply(relax_op.gather_nd, a, last, batch_dims=batch_dims), last)


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
    return named(nn.matrices(a, b, None, transp_a, transp_b), "T_matmul")


def einsum(subscripts: str, *operand: TensorValue) -> TensorValue:
    """Einstein's sum over the subscripts that the result has not."""
    return apply(relax_op.einsum, list(operand), subscripts=subscripts)


def tensordot(a: TensorValue, b: TensorValue, axes: Any = 2) -> TensorValue:
    """Products summed over axes: a number of them (the last of ``a``, the first of ``b``), or a list for each."""
    if isinstance(axes, int):
        left, right = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        left, right = ([one] if isinstance(one, int) else list(one) for one in axes)
    if len(left) != len(right) or len(left) > len(string.ascii_lowercase):
        raise ValueError(f"topi.tensordot: the axes {axes} do not pair those of the operands")
    of_a = list(string.ascii_letters[: a.ndim])
    of_b = list(string.ascii_letters[a.ndim : a.ndim + b.ndim])
    summed = set()
    for i, j in zip(left, right, strict=True):
        of_b[j] = of_a[i]
        summed.add(of_a[i])
    kept = [letter for letter in (*of_a, *of_b) if letter not in summed]
    return named(einsum(f"{''.join(of_a)},{''.join(of_b)}->{''.join(kept)}", a, b), "T_tensordot")


# ------------------------------------------------------------------------------------------------------- more elements


def reinterpret(x: TensorValue, dtype: str) -> TensorValue:
    """The bits of each element as another dtype of the same width."""
    return te.compute(x.shape, lambda *i: _bits(dtype, x[i]), "T_reinterpret")


def log2(x: TensorValue) -> TensorValue:
    """Logarithms to base 2."""
    return te.compute(x.shape, lambda *i: intrinsic("log2", x[i]), "T_log2")


def log10(x: TensorValue) -> TensorValue:
    """Logarithms to base 10."""
    return te.compute(x.shape, lambda *i: intrinsic("log10", x[i]), "T_log10")


def fast_exp(x: TensorValue) -> TensorValue:
    """`exp`: there is no faster one of less precision here."""
    return named(apply(relax_op.exp, x), "T_fast_exp")


def fast_tanh(x: TensorValue) -> TensorValue:
    """`tanh`: there is no faster one of less precision here."""
    return named(apply(relax_op.tanh, x), "T_fast_tanh")


def fast_erf(x: TensorValue) -> TensorValue:
    """`erf`: there is no faster one of less precision here."""
    return named(apply(relax_op.erf, x), "T_fast_erf")


# ------------------------------------------------------------------------------------------------------- more on shapes


def layout_transform(array: TensorValue, src_layout: str, dst_layout: str, schedule_rule: str = "None") -> TensorValue:
    """Axes in another layout: ``"NCHW"`` to ``"NHWC"``, ``"NCHW16c"``; 0 fills a last block that is not full."""
    source, target = free_layout("topi.layout_transform", src_layout), free_layout("topi.layout_transform", dst_layout)
    if source.rank != array.ndim or sorted(source.text) != sorted(target.text):
        raise ValueError(f"topi.layout_transform: {src_layout} and {dst_layout} are not layouts of this tensor's axes")
    plain = transpose(source.joined(array), [source.text.index(letter) for letter in target.text])
    return named(target.split(plain), "T_layout_trans")


def shape(array: TensorValue, dtype: str = "int32") -> TensorValue:
    """The sizes as a tensor of one axis."""

    def element(i: Any) -> Any:
        found: Any = const(1, dtype)
        for n, size in reversed(list(enumerate(array.shape))):
            found = Select(EQ(i, int64(n)), _cast(dtype, size), found)
        return found

    return te.compute([array.ndim], element, "T_shape")


def tensor_size(array: TensorValue, dtype: str = "int32") -> TensorValue:
    """How many elements there are, as a tensor without axes."""
    return te.compute([], lambda: _cast(dtype, utils.prod(array.shape)), "tensor_size")


def unravel_index(indices: TensorValue, shape: TensorValue) -> TensorValue:
    """The index of each element by its position in row-major order: one row for each axis of ``shape``."""
    (axes,) = (utils.get_const_int(e) for e in shape.shape)

    def element(axis: Any, *i: Any) -> Any:
        rest: Any = indices[i]
        found: Any = const(0, indices.dtype)
        for n in reversed(range(axes)):
            extent = _cast(indices.dtype, shape[n])
            found = Select(EQ(axis, int64(n)), rest if n == 0 else FloorMod(rest, extent), found)
            rest = FloorDiv(rest, extent)
        return found

    return te.compute([axes, *indices.shape], element, "T_unravel")


def sequence_mask(data: TensorValue, valid_length: TensorValue, mask_value: float = 0, axis: int = 0) -> TensorValue:
    """``mask_value`` from each sequence's length on; ``axis`` (0 or 1) counts time, the other batches."""
    if axis not in (0, 1) or data.ndim < 2:
        raise ValueError("topi.sequence_mask: axis is 0 or 1, and data has at least two axes")

    def element(*i: Any) -> Any:
        kept = LT(_cast(valid_length.dtype, i[axis]), valid_length[i[1 - axis]])
        return Select(kept, data[i], const(mask_value, data.dtype))

    return te.compute(data.shape, element, "T_sequence_mask")


def reverse_sequence(a: TensorValue, seq_lengths: TensorValue, seq_axis: int = 1, batch_axis: int = 0) -> TensorValue:
    """Each sequence's first elements, as many as its length says, in reverse order."""
    along, batch = seq_axis % a.ndim, batch_axis % a.ndim
    if along == batch:
        raise ValueError("topi.reverse_sequence: seq_axis and batch_axis are the same axis")

    def element(*i: Any) -> Any:
        length: Any = _cast("int64", seq_lengths[i[batch]])
        place = intrinsic("if_then_else", LT(i[along], length), length - 1 - i[along], i[along])
        return a[(*i[:along], place, *i[along + 1 :])]

    return te.compute(a.shape, element, "T_reverse_sequence")


def sliding_window(data: TensorValue, axis: int, window_shape: Sequence[int], strides: Sequence[int]) -> TensorValue:
    """All windows along the axes from ``axis`` on: axes of positions, then axes of each window."""
    first = axis % data.ndim
    rank = data.ndim - first
    if len(window_shape) != rank or len(strides) != rank:
        raise ValueError(f"topi.sliding_window: {rank} window sizes and strides are needed")
    extents: Any = data.shape[first:]
    counts = [
        utils.simplify((size - window) // stride + 1)
        for size, window, stride in zip(extents, window_shape, strides, strict=True)
    ]

    def element(*i: Any) -> Any:
        places = [i[first + n] * stride + i[first + rank + n] for n, stride in enumerate(strides)]
        return data[(*i[:first], *places)]

    return te.compute([*data.shape[:first], *counts, *window_shape], element, "T_sliding_window")


def index_put(data: TensorValue, indices: Any, values: TensorValue, accumulate: bool = False) -> TensorValue:
    """Values written, or added, at tuples of indices, one tensor for each axis."""
    return apply(relax_op.index_put, data, list(indices), values, accumulate=accumulate)


def index_tensor(data: TensorValue, indices: Sequence[TensorValue]) -> TensorValue:
    """Elements at tuples of indices, one tensor for each axis."""
    return apply(relax_op.index_tensor, data, list(indices))


adv_index = index_tensor


def scatter_nd(data: TensorValue, indices: TensorValue, updates: TensorValue, mode: str) -> TensorValue:
    """Slices written, or reduced, at tuples of indices, which the first axis of ``indices`` holds."""
    last = transpose(indices, [*range(1, indices.ndim), 0])
    return apply(relax_op.scatter_nd, data, last, updates, reduction=mode)


def slice_scatter(
    input_tensor: TensorValue, src: TensorValue, start: Any, end: Any, step: Any, axis: int
) -> TensorValue:
    """A slice of an axis written."""
    return apply(relax_op.slice_scatter, input_tensor, src, start, end, step, axis=axis)


def searchsorted(
    sorted_sequence: TensorValue, values: TensorValue, right: bool = False, out_dtype: str = "int64"
) -> TensorValue:
    """Where values belong in an ascending sequence of one axis: before equal ones, or behind (``right``)."""
    if out_dtype not in ("int32", "int64"):
        raise TypeError("topi.searchsorted: out_dtype is int32 or int64")
    return apply(relax_op.bucketize, values, sorted_sequence, out_int32=out_dtype == "int32", right=right)


def hamming_window(window_size: int, periodic: bool, alpha: float, beta: float, dtype: str) -> TensorValue:
    """``alpha - beta cos(2 pi n / N)``."""
    return apply(relax_op.hamming_window, window_size, periodic, alpha, beta, dtype)


public(globals())


def _indices_as_sizes(function: Callable[..., TensorValue]) -> Callable[..., TensorValue]:
    """A function whose results are indices, which have the dtype of the sizes that they run to."""

    @wraps(function)
    def converted(data: TensorValue, axis: Any = None, keepdims: bool = False) -> TensorValue:
        found = function(data, axis, keepdims)
        narrow = builtins.any(scalar_dtype(size) == "int32" for size in data.shape)
        return named(inlined(cast(found, "int32"), found), f"{data.name}_red") if narrow else found

    return converted


argmax, argmin = _indices_as_sizes(argmax), _indices_as_sizes(argmin)


def __dir__() -> list[str]:
    return sorted(n for n in globals() if not n.startswith("_"))
