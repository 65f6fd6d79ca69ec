"""The different elements of a tensor, or slices along an axis: unique."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.build import te
from supple.build.loops import Cell, do, loop, store, when, while_, with_cells
from supple.ir import expr as E
from supple.ir.expr import int64
from supple.ir.graph import ShapeExpr
from supple.ir.node import Expr, Stmt, Type
from supple.ir.op import Fusion, RelaxText
from supple.ir.types import TensorType, TupleType
from supple.ops.declare import Axis, operator
from supple.ops.dynamic import Dynamic
from supple.ops.shapes import normalize_axis
from supple.ops.sort import MERGE_CELLS, before, merge_passes
from supple.ops.statistics import unravel
from supple.sym.simplify import product


def _rows(x: te.TensorValue, axis: Axis) -> te.TensorValue:
    """What is compared, one a row: elements, or slices along the axis."""
    if axis is None:
        return te.compute((product(list(x.shape)), int64(1)), lambda n, _: x[unravel(n, x.shape)], "unique_rows")
    place = normalize_axis("unique", axis, x.ndim)
    rest = [s for d, s in enumerate(x.shape) if d != place]

    def element(n: Any, k: Any) -> Expr:
        at = list(unravel(k, rest))
        return x[(*at[:place], n, *at[place:])]

    return te.compute((x.shape[place], product(rest)), element, "unique_rows")


def _bound(x: te.TensorValue, axis: Axis, **_: Any) -> list[te.TensorValue]:
    """For each group its first row and its size; for each row its group; the number of groups."""
    rows = _rows(x, axis)
    count, size = rows.shape
    one = int64(1)

    def body(
        first: te.TensorValue,
        sizes: te.TensorValue,
        inverse: te.TensorValue,
        number: te.TensorValue,
        order: te.TensorValue,
        spare: te.TensorValue,
    ) -> Stmt:
        merging = [Cell("int64", n) for n in MERGE_CELLS]
        _, _, middle, high, left, right, out = merging
        a, b, at, sign, group = own = [Cell("int64", n) for n in ("one", "two", "at", "sign", "group")]

        def compare(i: Expr, j: Expr) -> Stmt:
            """``sign`` becomes -1, 0 or 1: row ``i`` stands before row ``j``, equals it, stands after it."""
            x_value, y_value = rows[a.value, at.value], rows[b.value, at.value]
            step = when(before(x_value, y_value), sign.set(-1), when(before(y_value, x_value), sign.set(1)))
            more = E.And(E.EQ(sign.value, int64(0)), E.LT(at.value, size))
            return do(a.set(i), b.set(j), at.set(0), sign.set(0), while_(more, step, at.set(E.Add(at.value, one))))

        def take(source: Cell) -> Stmt:
            return do(store(spare, order[source.value], out.value), source.set(E.Add(source.value, one)))

        both = E.And(E.LT(left.value, middle.value), E.LT(right.value, high.value))
        from_right = E.Or(
            E.GE(left.value, middle.value), E.And(E.LT(right.value, high.value), E.GT(sign.value, int64(0)))
        )
        merge = while_(
            E.LT(out.value, high.value),
            sign.set(0),
            when(both, compare(order[left.value], order[right.value])),
            when(from_right, take(right), take(left)),
            out.set(E.Add(out.value, one)),
        )

        def place(i: Any) -> Stmt:
            """Row ``i`` of the order opens a group or joins the last one."""
            opens = do(
                group.set(E.Add(group.value, one)), store(first, order[i], group.value), store(sizes, 0, group.value)
            )
            return do(
                sign.set(1),
                when(E.GT(i, int64(0)), compare(order[i], order[E.Max(E.Sub(i, one), int64(0))])),
                when(E.NE(sign.value, int64(0)), opens),
                store(inverse, group.value, order[i]),
                store(sizes, E.Add(sizes[group.value], one), group.value),
            )

        return with_cells(
            [*merging, *own],
            loop(count, lambda i: store(order, i, i), "start"),
            merge_passes(merging, count, merge, loop(count, lambda i: store(order, spare[i], i), "copied")),
            group.set(-1),
            loop(count, place, "place"),
            store(number, E.Add(group.value, one), 0),
        )

    line = ((count,), "int64")
    found = te.extern([line, line, line, ((one,), "int64")], [rows], body, "unique_groups", [line, line])
    return list(found)


def _trim(
    tensors: Sequence[te.TensorValue],
    buffers: Sequence[te.TensorValue],
    sizes: Sequence[Expr],
    return_index: bool,
    return_inverse: bool,
    return_counts: bool,
    axis: Axis,
    **_: Any,
) -> list[te.TensorValue]:
    (x,), (first, counts, inverse) = tensors, buffers
    (number,) = sizes
    if axis is None:
        found = [te.compute((number,), lambda g: x[unravel(first[g], x.shape)], "unique")]
    else:
        place = normalize_axis("unique", axis, x.ndim)
        dims = (*x.shape[:place], number, *x.shape[place + 1 :])
        found = [te.compute(dims, lambda *i: x[(*i[:place], first[i[place]], *i[place + 1 :])], "unique")]
    if return_index:
        found.append(te.compute((number,), lambda g: first[g], "unique_index"))
    if return_inverse:
        found.append(te.compute(inverse.shape, lambda n: inverse[n], "unique_inverse"))
    if return_counts:
        found.append(te.compute((number,), lambda g: counts[g], "unique_counts"))
    return found


def _ref(x: Any, sorted: bool, return_index: bool, return_inverse: bool, return_counts: bool, axis: Axis) -> Any:
    if axis is None:
        rows = x.reshape(-1, 1)
    else:
        rows = np.moveaxis(x, axis, 0).reshape(x.shape[axis], x.size // max(x.shape[axis], 1))
    keys = dtypes.widened(rows)
    # a stable sort by columns, the last first; NaN is above every number
    order = np.arange(rows.shape[0])
    for column in reversed(range(rows.shape[1])):
        order = order[np.argsort(keys[order, column], kind="stable")]
    first: list[int] = []
    counts: list[int] = []
    inverse = np.zeros(rows.shape[0], "int64")
    for n, row in enumerate(order):
        a, b = keys[row], keys[order[n - 1]]
        same = (a == b) | ((a != a) & (b != b))
        if n == 0 or not same.all():
            first.append(int(row))
            counts.append(0)
        counts[-1] += 1
        inverse[row] = len(first) - 1
    at = np.array(first, "int64")
    result = [x.reshape(-1)[at] if axis is None else np.take(x, at, axis)]
    result += [at] if return_index else []
    result += [inverse] if return_inverse else []
    result += [np.array(counts, "int64")] if return_counts else []
    return result[0] if len(result) == 1 else tuple(result)


@operator(
    fusion=Fusion.OPAQUE,
    ref=_ref,
    dynamic=Dynamic(_bound, _trim, lambda types: 1),
    relax_text=RelaxText(positional=True, hidden=("axis",)),
)
def unique(
    x: TensorType,
    sorted: bool = True,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Axis = None,
) -> Type:
    """The different elements of the tensor in order (``sorted`` or not), or with an ``axis`` the different slices along
    it in lexicographic order; NaNs count as one, after every number.

    Besides, in a tuple and int64: ``return_index`` the first place of each, ``return_inverse`` which of them each
    element (or slice) is, in one dimension, ``return_counts`` how often each occurs."""
    if axis is not None and x.ndim != -1:
        normalize_axis("unique", axis, x.ndim)
    if x.ndim == 0:
        values = TensorType(ShapeExpr((int64(1),)), x.dtype)
    else:
        values = TensorType(None, x.dtype, 1 if axis is None else x.ndim)
    extra = [TensorType(None, "int64", 1)] * (return_index + return_inverse + return_counts)
    return TupleType((values, *extra)) if extra else values
