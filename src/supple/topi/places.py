"""Slices and diagonals of ``topi`` that are set or read at run time, and products in fixed point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from supple.build import te
from supple.build.te import TensorValue
from supple.ir.expr import EQ, GE, LE, LT, And, FloorDiv, FloorMod, IntImm, Select, as_expr, cast, const, int64
from supple.ir.intrinsics import intrinsic
from supple.ir.node import Expr
from supple.script import relax as relax_op
from supple.sym.simplify import SHAPES
from supple.topi.apply import apply


def dynamic_strided_slice(
    a: TensorValue, begin: TensorValue, end: TensorValue, strides: TensorValue, output_shape: Sequence[Any]
) -> TensorValue:
    """``a[begin:end:strides]`` with bounds in tensors, of a shape that is said. Bounds below 0 are not moved."""

    def body(*i: Any) -> Expr:
        return a[tuple(cast("int64", begin[d]) + at * cast("int64", strides[d]) for d, at in enumerate(i))]

    return te.compute(list(output_shape), body, "T_strided_slice_dynamic")


def expand_like(a: TensorValue, shape_like: TensorValue, axis: Any) -> TensorValue:
    """``a`` repeated along axes that ``shape_like`` has and it has not."""
    axes = sorted(int(x) % shape_like.ndim for x in (axis if isinstance(axis, (list, tuple)) else [axis]))
    if a.ndim + len(axes) != shape_like.ndim:
        raise ValueError(f"topi.expand_like: {a.ndim} and {len(axes)} axes are not {shape_like.ndim}")
    kept = [d for d in range(shape_like.ndim) if d not in axes]
    return te.compute(shape_like.shape, lambda *i: a[tuple(i[d] for d in kept)], "expand_like")


def strided_set(a: TensorValue, v: TensorValue, begin: Any, end: Any, strides: Any = None) -> TensorValue:
    """A copy of ``a`` with ``a[begin:end:strides]`` replaced by ``v``. Bounds and strides are numbers, or vectors of
    them; bounds below 0 count from the end."""
    if v.ndim != a.ndim:
        raise ValueError(f"topi.strided_set: the values need {a.ndim} dimensions, not {v.ndim}")
    first = [_from_end(b, d) for b, d in zip(_listed(begin, a), a.shape, strict=False)]
    last = [_from_end(e, d) for e, d in zip(_listed(end, a), a.shape, strict=False)]
    steps: list[Any] = [int64(1)] * len(first) if strides is None else _listed(strides, a)
    if any(isinstance(s, IntImm) and s.value == 0 for s in steps):
        raise ValueError("topi.strided_set: a stride is 0")

    def body(*i: Any) -> Expr:
        inside: Expr = const(True, "bool")
        at: list[Any] = list(i)
        for d, (low, high, step) in enumerate(zip(first, last, steps, strict=True)):
            back = LT(step, int64(0))
            gap: Any = Select(back, low - i[d], i[d] - low)
            size: Any = Select(back, int64(0) - step, step)
            within = And(GE(gap, int64(0)), Select(back, LT(high, i[d]), LT(i[d], high)))
            inside = And(inside, And(within, EQ(FloorMod(gap, size), int64(0))))
            at[d] = FloorDiv(gap, size)
        return intrinsic("if_then_else", inside, v[tuple(at)], a[i])

    return te.compute(a.shape, body, "strided_set")


def _listed(values: Any, a: TensorValue) -> list[Any]:
    """Numbers, or a vector of them, as expressions."""
    if isinstance(values, TensorValue):
        count = values.shape[0]
        values = [values[d] for d in range(count.value if isinstance(count, IntImm) else a.ndim)]
    return [SHAPES.simplify(cast("int64", as_expr(v))) for v in values]


def _from_end(given: Any, extent: Expr) -> Any:
    return SHAPES.simplify(Select(LT(given, int64(0)), given + extent, given))


def matrix_set_diag(
    data: TensorValue, diagonal: TensorValue, k: int | Sequence[int] = 0, align: str = "RIGHT_LEFT"
) -> TensorValue:
    """Matrices with the ``k``-th diagonal replaced, or several (``k`` is the lowest and the highest): then the last but
    one axis of ``diagonal`` holds them, the highest first, and shorter ones stand at the side that ``align`` says, for
    those above the main one and for those below."""
    low, high = (k, k) if isinstance(k, int) else (k[0], k[-1])
    above, _, below = align.partition("_")
    if not {above, below} <= {"LEFT", "RIGHT"} or low > high:
        raise ValueError(f"topi.matrix_set_diag: align is such as 'RIGHT_LEFT' and k ascends, got {align!r} and {k!r}")
    rows, columns = data.shape[-2:]
    longest = diagonal.shape[-1]

    def body(*i: Any) -> Expr:
        row, column = i[-2], i[-1]
        number = column - row
        on = And(GE(number, int64(low)), LE(number, int64(high)))
        at = Select(GE(number, int64(0)), row, column)
        if low != high:
            room: Any = Select(GE(number, int64(0)), columns - number, columns)
            tall: Any = Select(GE(number, int64(0)), rows, rows + number)
            length = Select(LT(room, tall), room, tall)
            upper = const(above == "RIGHT", "bool")
            lower = const(below == "RIGHT", "bool")
            right = Select(GE(number, int64(0)), upper, lower)
            at = at + Select(right, longest - length, int64(0))
        place = (*i[:-2], at) if low == high else (*i[:-2], int64(high) - number, at)
        return intrinsic("if_then_else", on, diagonal[place], data[i])

    return te.compute(data.shape, body, "matrix_set_diag")


def sparse_to_dense(
    sparse_indices: TensorValue, output_shape: Sequence[Any], sparse_values: TensorValue, default_value: Any = 0
) -> TensorValue:
    """A tensor of ``default_value`` with values at indices: one index, a row of indices of a vector, or rows of
    indices with a column for each dimension."""
    dims = [as_expr(d, "int64") for d in output_shape]
    dtype = sparse_values.dtype
    base = te.compute(dims, lambda *i: _value(default_value, dtype), "default_value")
    at, values = sparse_indices, sparse_values
    count: Any = at.shape[0] if at.ndim else int64(1)
    depth = len(dims)
    given = at
    rows = te.compute((count, depth), lambda n, d: cast("int64", _row(given, n, d)), "places")
    spread = te.compute((count,), lambda n: values[n] if values.ndim else values[()], "values")
    return apply(relax_op.scatter_nd, base, rows, spread)


def _value(value: Any, dtype: str) -> Expr:
    return cast(dtype, value[()]) if isinstance(value, TensorValue) else const(value, dtype)


def _row(at: TensorValue, n: Any, d: Any) -> Expr:
    return at[()] if at.ndim == 0 else at[n] if at.ndim == 1 else at[n, d]


def fixed_point_multiply(x: TensorValue, multiplier: int, shift: int) -> TensorValue:
    """``x * multiplier * 2**(shift - 31)`` of int32, rounded to the nearest, halves up."""
    if not isinstance(shift, (int, IntImm)) or not -30 <= int(getattr(shift, "value", shift)) <= 31:
        raise ValueError(f"topi.fixed_point_multiply: the shift is a number from -30 to 31, got {shift!r}")
    right = 31 - int(getattr(shift, "value", shift))

    def body(*i: Any) -> Expr:
        product: Any = cast("int64", x[i]) * int64(int(getattr(multiplier, "value", multiplier)))
        half = int64(1 << (right - 1)) if right else int64(0)
        return cast(x.dtype, intrinsic("shift_right", product + half, int64(right)))

    return te.compute(x.shape, body, "compute")
