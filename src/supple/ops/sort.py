"""Sorting, searching and running sums: sort, argsort, topk, argmax, argmin, bucketize, cumsum, cumprod."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.build import te
from supple.build.loops import Cell, do, loop, nest, store, when, while_, with_cells
from supple.ir import expr as E
from supple.ir.expr import IntImm, Var, cast, const, int64
from supple.ir.intrinsics import intrinsic
from supple.ir.loop import Bind
from supple.ir.node import Expr, Stmt, Type
from supple.ir.op import Fusion, Op
from supple.ir.types import TensorType, TupleType, prim_type
from supple.ops.declare import Axis, DType, fail, operator, sample, static_sample
from supple.ops.normalize import wide_dtype
from supple.ops.reduce import reduced_dims
from supple.ops.requirements import require_at_least
from supple.ops.shapes import normalize_axis
from supple.sym.relate import tensor, tensor_dims
from supple.sym.simplify import product

# ------------------------------------------------------------------------------------------------------- sorted indices


def before(a: Expr, b: Expr, descending: bool = False) -> Expr:
    """Whether ``a`` must stand before ``b``: NaN is above every number, as numpy and PyTorch sort it."""
    if descending:
        a, b = b, a
    if dtypes.is_float(E.scalar_dtype(a)):  # not E.Or of two comparisons: that would be a branch
        return E.And(E.Not(E.GE(a, b)), E.EQ(a, a))
    return E.LT(a, b)


MERGE_CELLS = ("width", "low", "middle", "high", "left", "right", "out")


def merge_passes(cells: Sequence[Cell], extent: Expr, merge: Stmt, copied: Stmt) -> Stmt:
    """A bottom-up merge sort: ``merge`` joins the runs low..middle and middle..high, from ``left`` and ``right`` to
    ``out``, and ``copied`` takes the result back. The cells are those of `MERGE_CELLS`."""
    width, low, middle, high, left, right, out = cells
    runs = while_(
        E.LT(low.value, extent),
        middle.set(E.Min(E.Add(low.value, width.value), extent)),
        high.set(E.Min(E.Add(middle.value, width.value), extent)),
        left.set(low.value),
        right.set(middle.value),
        out.set(low.value),
        merge,
        low.set(high.value),
    )
    doubled = width.set(E.Mul(width.value, int64(2)))
    return do(width.set(1), while_(E.LT(width.value, extent), low.set(0), runs, copied, doubled))


def sorted_indices(x: te.TensorValue, axis: int, descending: bool) -> te.TensorValue:
    """The places along ``axis`` in sorted order, int64, equal elements in their order."""
    return _sorted_along(x, axis, descending, values=False)[0]


def _rows(x: te.TensorValue, axis: int, row: Callable[[Callable[[Any], tuple[Any, ...]]], Stmt]) -> Stmt:
    """``row(at)`` for every row along ``axis``; ``at(i)`` is the index of its element ``i``."""
    rest = [d for d in range(x.ndim) if d != axis]

    def body(*outer: Any) -> Stmt:
        def at(i: Any) -> tuple[Any, ...]:
            index: list[Any] = [None] * x.ndim
            for d, value in zip(rest, outer, strict=True):
                index[d] = value
            index[axis] = i
            return tuple(index)

        return row(at)

    return nest([x.shape[d] for d in rest], body, [f"row{d}" for d in rest])


def _sorted_along(
    x: te.TensorValue, axis: int, descending: bool, *, values: bool = True, places: bool = True
) -> list[te.TensorValue]:
    """The elements in sorted order, and the places (int64) where they were: a bottom-up merge sort of a row's elements
    side by side with their places, which never jumps by what it compares."""
    extent = x.shape[axis]
    wanted = [(x.dtype, values), ("int64", places)]

    def body(*buffers: te.TensorValue) -> Stmt:
        results, (keys, spare_keys, *moved) = buffers[: values + places], buffers[values + places :]
        pairs = [(keys, spare_keys), *([(moved[0], moved[1])] if places else [])]
        cells = [Cell("int64", n) for n in MERGE_CELLS]
        _, _, middle, high, left, right, out = cells

        def take(source: Cell) -> Stmt:
            moves = [store(spare, own[source.value], out.value) for own, spare in pairs]
            return do(*moves, source.set(E.Add(source.value, int64(1))), out.set(E.Add(out.value, int64(1))))

        later, source = Var("later", prim_type("bool")), Var("source", prim_type("int64"))
        mask = E.Sub(int64(0), cast("int64", later))
        both = while_(
            E.And(E.LT(left.value, middle.value), E.LT(right.value, high.value)),
            Bind(later, before(keys[right.value], keys[left.value], descending)),
            # no E.Select: that becomes a branch, which nobody can predict
            Bind(source, E.Add(left.value, intrinsic("bitwise_and", E.Sub(right.value, left.value), mask))),
            *(store(spare, own[source], out.value) for own, spare in pairs),
            right.set(E.Add(right.value, cast("int64", later))),
            left.set(E.Add(left.value, cast("int64", E.Not(later)))),
            out.set(E.Add(out.value, int64(1))),
        )
        merge = do(
            both,
            while_(E.LT(left.value, middle.value), take(left)),
            while_(E.LT(right.value, high.value), take(right)),
        )
        copied = [loop(extent, partial(lambda own, spare, i: store(own, spare[i], i), *pair)) for pair in pairs]

        def row(at: Callable[[Any], tuple[Any, ...]]) -> Stmt:
            filled = [loop(extent, lambda i: store(keys, x[at(i)], i))]
            if places:
                filled.append(loop(extent, lambda i: store(moved[0], i, i)))
            sources = [own for (_, want), own in zip(wanted, [keys, *moved[:1]], strict=False) if want]
            done = [
                loop(extent, partial(lambda result, own, i: store(result, own[i], *at(i)), result, own))
                for result, own in zip(results, sources, strict=True)
            ]
            return do(*filled, merge_passes(cells, extent, merge, do(*copied)), *done)

        return with_cells(cells, _rows(x, axis, row))

    row = [((extent,), x.dtype)] * 2 + [((extent,), "int64")] * (2 * places)
    return te.extern([(x.shape, dtype) for dtype, want in wanted if want], [x], body, "order", row)


MOST_KEPT = 64
"""Up to this many elements are kept in order while a row is looked through once; more are sorted."""


def _first_along(x: te.TensorValue, k: int, axis: int, descending: bool) -> list[te.TensorValue]:
    """The first ``k`` elements in sorted order, and their places (int64): each element is compared with the last one
    that is kept, and seldom put in its place among them."""
    extent = x.shape[axis]
    dims = (*x.shape[:axis], int64(k), *x.shape[axis + 1 :])

    def body(values: te.TensorValue, places: te.TensorValue, kept: te.TensorValue, where: te.TensorValue) -> Stmt:
        count, slot = Cell("int64", "count"), Cell("int64", "slot")
        element, last = Var("element", prim_type(x.dtype)), E.Sub(slot.value, int64(1))
        moved = while_(
            E.And(E.GT(slot.value, int64(0)), before(element, kept[E.Max(last, int64(0))], descending)),
            store(kept, kept[last], slot.value),
            store(where, where[last], slot.value),
            slot.set(last),
        )

        def row(at: Callable[[Any], tuple[Any, ...]]) -> Stmt:
            def look(i: Var) -> Stmt:
                wanted = E.Or(E.LT(count.value, int64(k)), before(element, kept[int64(k - 1)], descending))
                put = do(
                    slot.set(E.Min(count.value, int64(k - 1))),
                    moved,
                    store(kept, element, slot.value),
                    store(where, i, slot.value),
                    count.set(E.Min(E.Add(count.value, int64(1)), int64(k))),
                )
                return do(Bind(element, x[at(i)]), when(wanted, put))

            return do(
                count.set(0),
                loop(extent, look),
                loop(int64(k), lambda i: do(store(values, kept[i], *at(i)), store(places, where[i], *at(i)))),
            )

        return with_cells([count, slot], _rows(x, axis, row))

    scratch = [((int64(k),), x.dtype), ((int64(k),), "int64")]
    return te.extern([(dims, x.dtype), (dims, "int64")], [x], body, "first", scratch)


def _argsort_ref(x: Any, axis: int, descending: bool) -> Any:
    """Stable, NaN above every number."""
    x = dtypes.widened(x)
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    flipped = np.flip(x, axis)
    back = np.flip(np.argsort(flipped, axis=axis, kind="stable"), axis)
    return x.shape[axis] - 1 - back


_TIES = np.array([[3, 1, 3, 2], [np.nan, 1, -np.inf, 1], [0, -0.0, np.inf, np.nan]], "float32")


def _check_axis(name: str, x: TensorType, axis: int) -> None:
    if x.ndim != -1:
        normalize_axis(name, axis, x.ndim)


def _sort_lower(x: te.TensorValue, axis: int, descending: bool) -> te.TensorValue:
    return _sorted_along(x, normalize_axis("sort", axis, x.ndim), descending, places=False)[0]


@operator(
    fusion=Fusion.OPAQUE,
    lower=_sort_lower,
    ref=lambda x, axis, descending: np.take_along_axis(x, _argsort_ref(x, axis, descending), axis),
    samples=lambda: [
        sample((3, 5)),
        sample(_TIES),
        sample(_TIES, axis=0, descending=True),
        sample((2, 0)),
        sample((1,)),
    ],
)
def sort(x: TensorType, axis: int = -1, descending: bool = False) -> Type:
    """The elements in order along ``axis``; NaN counts as above every number."""
    _check_axis("sort", x, axis)
    return x


def _argsort_lower(data: te.TensorValue, axis: int, descending: bool, dtype: str) -> te.TensorValue:
    place = normalize_axis("argsort", axis, data.ndim)
    order = sorted_indices(data, place, descending)
    return te.compute(order.shape, lambda *i: cast(dtype, order[i]), "argsort")


def _index_dtype(name: str, dtype: str | None) -> str:
    if dtype is None or not dtypes.is_int(dtype):
        fail(f"{name}: indices need an integer dtype", "an integer dtype", str(dtype))
    return dtype


@operator(
    fusion=Fusion.OPAQUE,
    lower=_argsort_lower,
    shape_of=0,
    ref=lambda data, axis, descending, dtype: _argsort_ref(data, axis, descending).astype(dtype),
    samples=lambda: [sample((3, 5)), sample(_TIES), sample(_TIES, axis=0, descending=True, dtype="int64")],
)
def argsort(data: TensorType, axis: int = -1, descending: bool = False, dtype: DType = "int32") -> Type:
    """The places of the elements in sorted order along ``axis``; equal elements keep their order."""
    _check_axis("argsort", data, axis)
    return TensorType(data.shape, _index_dtype("argsort", dtype), data.ndim)


def _topk_dims(dims: Sequence[Expr], k: int, axis: int) -> tuple[Expr, ...]:
    extent = dims[axis]
    if k > 0:
        require_at_least(f"topk: the axis has fewer than {k} elements", k, extent)
    size = int64(k) if k > 0 else extent
    return (*dims[:axis], size, *dims[axis + 1 :])


def _topk_lower(
    data: te.TensorValue, k: int, axis: int, ret_type: str, largest: bool, dtype: str
) -> list[te.TensorValue]:
    place = normalize_axis("topk", axis, data.ndim)
    dims = _topk_dims(data.shape, k, place)
    made = _first_along(data, k, place, largest) if 0 < k <= MOST_KEPT else _sorted_along(data, place, largest)
    values = te.compute(dims, lambda *i: made[0][i], "topk_values")
    indices = te.compute(dims, lambda *i: cast(dtype, made[1][i]), "topk_indices")
    return {"both": [values, indices], "values": [values], "indices": [indices]}[ret_type]


def _topk_ref(data: Any, k: int, axis: int, ret_type: str, largest: bool, dtype: str) -> Any:
    order = _argsort_ref(data, axis, largest)
    order = np.take(order, range(k if k > 0 else data.shape[axis]), axis)
    values = np.take_along_axis(data, order, axis)
    both = (values, order.astype(dtype))
    return {"both": both, "values": values, "indices": both[1]}[ret_type]


@operator(
    fusion=Fusion.OPAQUE,
    lower=_topk_lower,
    ref=_topk_ref,
    samples=lambda: [
        static_sample((3, 5), k=2),
        static_sample(_TIES, k=3),
        static_sample(_TIES, k=2, axis=0, largest=False, dtype="int64"),
        static_sample((4,), k=0, ret_type="values"),
        static_sample((4,), k=1, ret_type="indices"),
    ],
)
def topk(
    data: TensorType, k: int = 1, axis: int = -1, ret_type: str = "both", largest: bool = True, dtype: DType = "int32"
) -> Type:
    """The ``k`` largest (or smallest) elements along ``axis`` in order, and their places; all of them for ``k`` below
    1. Equal elements keep their order; NaN counts as above every number. ``ret_type``: ``"both"``, ``"values"`` or
    ``"indices"``."""
    if ret_type not in ("both", "values", "indices"):
        fail("topk: unknown ret_type", "both, values or indices", ret_type)
    index_dtype = _index_dtype("topk", dtype)
    dims = tensor_dims(data)
    shape = None if dims is None else _topk_dims(dims, k, normalize_axis("topk", axis, len(dims)))
    values, indices = tensor(shape, data.dtype, data.ndim), tensor(shape, index_dtype, data.ndim)
    return TupleType((values, indices)) if ret_type == "both" else values if ret_type == "values" else indices


# ----------------------------------------------------------------------------------------------------- argmax, argmin


def _arg_extreme(name: str, doc: str, combiner: str, ref: Callable[..., Any]) -> Op:
    def places(ndim: int, axis: Axis) -> list[int]:
        return list(range(ndim)) if axis is None else [normalize_axis(name, axis, ndim)]

    def rule(x: TensorType, axis: Axis = None, keepdims: bool = False) -> Type:
        if x.ndim == -1:
            return tensor((), "int64") if axis is None and not keepdims else TensorType(None, "int64")
        axes = places(x.ndim, axis)
        dims = tensor_dims(x)
        if dims is None and len(axes) < x.ndim:
            return TensorType(None, "int64", x.ndim if keepdims else x.ndim - len(axes))
        if dims is None:
            return tensor((int64(1),) * x.ndim if keepdims else (), "int64")
        if any(isinstance(dims[a], IntImm) and dims[a].value == 0 for a in axes):  # type: ignore[attr-defined]
            fail(f"{name}: nothing to choose from", "an axis that is not empty", "0")
        return tensor(reduced_dims(dims, axes, keepdims), "int64")

    def lower(x: te.TensorValue, axis: Axis, keepdims: bool) -> te.TensorValue:
        axes = places(x.ndim, axis)
        dims = reduced_dims(x.shape, axes, keepdims)
        count = product([x.shape[a] for a in axes])
        narrow = isinstance(count, IntImm) and count.value < 1 << 31  # twice as many places in a vector
        kind = "int32" if narrow else "int64"

        def window_of(make: Callable[[Expr, Expr, Any], Expr], update: str, result: str) -> te.TensorValue:
            window = {a: te.reduce_axis((0, x.shape[a]), f"k{n}") for n, a in enumerate(axes)}

            def body(*i: Any) -> Expr:
                kept = iter(i)
                index: list[Any] = []
                for d in range(x.ndim):
                    if d in window:
                        index.append(window[d].var)
                        if keepdims:
                            next(kept)
                    else:
                        index.append(next(kept))
                flat: Expr = const(0, kind)
                for a in axes:
                    flat = E.Add(E.Mul(flat, cast(kind, x.shape[a])), cast(kind, window[a].var))
                return te.Reduce(update, make(x[tuple(index)], flat, i), tuple(window.values()))

            return te.compute(dims, body, result)

        best = window_of(lambda value, flat, i: value, combiner, f"{name}_best")

        def candidate(value: Expr, flat: Expr, i: Any) -> Expr:
            hit: Expr = E.EQ(value, best[i])
            if dtypes.is_float(x.dtype):  # the first NaN wins, as in numpy
                hit = E.Or(hit, intrinsic("isnan", value))
            return E.Select(hit, flat, cast(kind, count))

        found = window_of(candidate, "min", f"{name}_found")

        def place(*i: Any) -> Expr:  # a symbolic extent may be 0 at run time, and then nothing was found
            chosen = cast("int64", found[i])
            return E.Select(E.LT(chosen, count), chosen, int64(-1))

        return te.compute(dims, place, name)

    def reference(x: Any, axis: Axis, keepdims: bool) -> Any:
        axes = places(x.ndim, axis)
        if any(x.shape[a] == 0 for a in axes):
            shape = np.sum(x, axis=tuple(axes), keepdims=keepdims).shape
            return np.full(shape, -1, "int64")
        return np.asarray(ref(x, axis=axis, keepdims=keepdims)).astype("int64")

    rule.__doc__ = doc
    return operator(
        name,
        fusion=Fusion.REDUCTION,
        lower=lower,
        ref=reference,
        samples=lambda: [
            sample((3, 5)),
            sample(_TIES, axis=1),
            sample(_TIES, axis=0, keepdims=True),
            sample(np.array([2, 7, 7, 1], "int32"), axis=-1),
        ],
    )(rule)


argmax = _arg_extreme(
    "argmax",
    "The place of the largest element along ``axis`` (of all, flattened, for None): the first of several. "
    "Where a symbolic extent is 0 at run time, the result is -1.",
    "max",
    np.argmax,
)
argmin = _arg_extreme(
    "argmin",
    "The place of the least element along ``axis`` (of all, flattened, for None): the first of several. "
    "Where a symbolic extent is 0 at run time, the result is -1.",
    "min",
    np.argmin,
)


# ---------------------------------------------------------------------------------------------------------- bucketize


def _bucketize_lower(
    input_tensor: te.TensorValue, boundaries: te.TensorValue, out_int32: bool, right: bool
) -> te.TensorValue:
    dtype = "int32" if out_int32 else "int64"
    k = te.reduce_axis((0, boundaries.shape[0]), "k")

    def body(*i: Any) -> Expr:
        value, edge = input_tensor[i], boundaries[k]
        passed: Expr = E.GE(value, edge) if right else E.GT(value, edge)
        if dtypes.is_float(input_tensor.dtype):
            passed = E.Or(passed, intrinsic("isnan", value))
        return te.sum(cast(dtype, passed), axis=k)

    return te.compute(input_tensor.shape, body, "bucketize")


def _bucketize_ref(x: Any, edges: Any, out_int32: bool, right: bool) -> Any:
    """Counted edge by edge, so boundaries out of order count like others."""
    values = dtypes.widened(x)
    count = np.zeros(x.shape, "int32" if out_int32 else "int64")
    for edge in dtypes.widened(edges):
        count += (values >= edge) if right else (values > edge)
    return np.where(values != values, np.full_like(count, len(edges)), count)


@operator(
    fusion=Fusion.OUT_FUSABLE,
    lower=_bucketize_lower,
    ref=_bucketize_ref,
    samples=lambda: [
        sample(np.array([[0.5, 1.0, 3.5], [9, -1, np.nan]], "float32"), np.array([0.5, 1, 2, 4], "float32")),
        sample(np.array([1, 2], "int32"), np.array([1, 2, 3], "int32"), right=True, out_int32=True),
    ],
    kernel="searchsorted",
    reads=(1, 0),
)
def bucketize(input_tensor: TensorType, boundaries: TensorType, out_int32: bool = False, right: bool = False) -> Type:
    """How many of the ascending ``boundaries`` lie below each element (or at it, with ``right``); NaN is above all."""
    if boundaries.ndim not in (-1, 1):
        fail("bucketize: the boundaries must have one dimension", "1 dimension", f"{boundaries.ndim} dimensions")
    return TensorType(input_tensor.shape, "int32" if out_int32 else "int64", input_tensor.ndim)


# -------------------------------------------------------------------------------------------------------- running sums


def _running(name: str, doc: str, start: int, combine: Callable[[Expr, Expr], Expr], ref: Callable[..., Any]) -> Op:
    def rule(data: TensorType, axis: Axis = None, dtype: DType = None, exclusive: bool = False) -> Type:
        if axis is None:
            dims = tensor_dims(data)
            if dims is None:  # Relax's rank, not that of the value, where it is known
                return TensorType(None, dtype or data.dtype, 1 if data.ndim == 1 else -1)
            return tensor((product(list(dims)),), dtype or data.dtype)
        _check_axis(name, data, axis)
        return TensorType(data.shape, dtype or data.dtype, data.ndim)

    def lower(data: te.TensorValue, axis: Axis, dtype: DType, exclusive: bool) -> te.TensorValue:
        result_dtype = dtype or data.dtype
        wide = wide_dtype(result_dtype)
        if axis is None:
            order, inner = list(range(data.ndim)), data.ndim
            dims: Sequence[Expr] = (product(list(data.shape)),)
        else:
            place = normalize_axis(name, axis, data.ndim)
            order, inner = [*(d for d in range(data.ndim) if d != place), place], 1
            dims = data.shape
        outer, running = order[: data.ndim - inner], order[data.ndim - inner :]

        def body(out: te.TensorValue) -> Stmt:
            total = Cell(wide, "total")
            position = Cell("int64", "position")

            def row(*rows: Any) -> Stmt:
                def step(*inside: Any) -> Stmt:
                    index: list[Any] = [None] * data.ndim
                    for d, value in zip(outer, rows, strict=True):
                        index[d] = value
                    for d, value in zip(running, inside, strict=True):
                        index[d] = value
                    into = (position.value,) if axis is None else tuple(index)
                    update = total.set(combine(total.value, cast(wide, data[tuple(index)])))
                    write = store(out, cast(result_dtype, total.value), *into)
                    advance = [position.set(E.Add(position.value, int64(1)))] if axis is None else []
                    return do(*((write, update) if exclusive else (update, write)), *advance)

                return do(
                    total.set(const(start, wide)),
                    position.set(0),
                    nest([data.shape[d] for d in running], step, [f"k{d}" for d in running]),
                )

            return with_cells((total, position), nest([data.shape[d] for d in outer], row, [f"row{d}" for d in outer]))

        return te.extern([(dims, result_dtype)], [data], body, name)[0]

    def reference(data: Any, axis: Axis, dtype: DType, exclusive: bool) -> Any:
        result_dtype = dtypes.to_numpy(dtype or dtypes.from_numpy(data.dtype))
        wide = dtypes.to_numpy(dtypes.accumulator(dtypes.from_numpy(result_dtype)))
        values = data.ravel() if axis is None else data
        place = 0 if axis is None else axis
        if exclusive and values.shape[place]:
            first = np.full_like(np.take(values, [0], place), start)
            values = np.concatenate([first, np.take(values, range(values.shape[place] - 1), place)], place)
        return ref(values.astype(wide), axis=place, dtype=wide).astype(result_dtype)

    rule.__doc__ = doc
    return operator(
        name,
        fusion=Fusion.OPAQUE,
        lower=lower,
        ref=reference,
        shape_of=lambda attrs: None if attrs["axis"] is None else 0,
        samples=lambda: [
            sample((2, 3, 4), axis=1),
            sample((5,), axis=0, exclusive=True),
            sample((2, 3)),
            sample(np.arange(1, 5, dtype="int32"), axis=0, dtype="int64"),
            sample((0, 2), axis=0),
        ],
    )(rule)


cumsum = _running(
    "cumsum",
    "Running sums along ``axis`` (of all elements, flattened, for None); ``exclusive`` leaves the element itself out.",
    0,
    E.Add,
    np.cumsum,
)
cumprod = _running(
    "cumprod",
    "Running products along ``axis`` (of all elements, flattened, for None); ``exclusive`` leaves the element out.",
    1,
    E.Mul,
    np.cumprod,
)
