"""Pooling over one, two and three dimensions, in any layout: max, average, adaptive average."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.build import te
from supple.ir import expr as E
from supple.ir.expr import IntImm, cast, const, int64
from supple.ir.intrinsics import intrinsic
from supple.ir.node import Expr, Type
from supple.ir.op import Fusion, Op, RelaxText
from supple.ir.types import TensorType
from supple.ops.declare import Axes, fail, operator, sample
from supple.ops.layouts import Layout, padding_pairs, parse_layout, per_dimension, settle_window
from supple.ops.reduce import as_dtype, mean_dtype, mean_ref
from supple.ops.requirements import require_numbers
from supple.sym.relate import tensor, tensor_dims
from supple.sym.simplify import SHAPES

_LETTERS = {1: "W", 2: "HW", 3: "DHW"}


class PoolPlan:
    """A pooling's attributes, resolved for its number of spatial dimensions."""

    def __init__(self, name: str, spatial: int, attrs: dict[str, Any]) -> None:
        self.name = name
        self.spatial = spatial
        self.window = per_dimension(name, "pool_size", attrs["pool_size"], spatial)
        self.strides = per_dimension(name, "strides", attrs["strides"], spatial)
        self.dilation = per_dimension(name, "dilation", attrs["dilation"], spatial)
        self.padding = padding_pairs(name, attrs["padding"], spatial)
        self.ceil_mode = attrs["ceil_mode"]
        self.count_include_pad = attrs["count_include_pad"]
        self.data = parse_layout(name, attrs["layout"], "NC", spatial)
        self.out = parse_layout(name, attrs["out_layout"] or attrs["layout"], "NC", spatial)
        if any(v < 1 for v in (*self.window, *self.strides, *self.dilation)):
            fail(f"{name}: window, strides and dilation must be positive")
        if any(p < 0 for pair in self.padding for p in pair):
            fail(f"{name}: padding is negative", "sizes", str(self.padding))

    def out_extent(self, extent: Expr, d: int) -> Expr:
        """The number of windows in one dimension; in ceil mode the last may hang over the end; one that
        starts beyond it is left out, as PyTorch and Relax do."""
        low, high = self.padding[d]
        reach = (self.window[d] - 1) * self.dilation[d] + 1
        room = E.Add(extent, int64(low + high - reach))
        if not self.ceil_mode:
            return SHAPES.simplify(E.Add(E.FloorDiv(room, int64(self.strides[d])), int64(1)))
        step = int64(self.strides[d])
        count = SHAPES.simplify(E.Add(E.FloorDiv(E.Add(room, int64(self.strides[d] - 1)), step), int64(1)))
        inside = E.Add(E.FloorDiv(E.Add(extent, int64(low - 1)), step), int64(1))
        fitting = E.Min(count, inside)
        return SHAPES.simplify(fitting if high <= reach else E.Max(fitting, E.Sub(count, int64(1))))

    def result(self, dims: Sequence[Expr]) -> tuple[Expr, ...]:
        sizes = [self.out_extent(dims[a], d) for d, a in enumerate(self.data.spatial)]
        for size in sizes:
            if isinstance(size, IntImm) and size.value < 1:
                fail(f"{self.name}: the window is larger than the padded data", "at least one window", str(size.value))
        return self.out.arrange(dims[self.data.outer], dims[self.data.channel], sizes)

    def result_type(self, data: TensorType) -> TensorType:
        """The type of the result."""
        self.data.require_rank("data", data)
        dims = tensor_dims(data)
        if dims is None:
            return TensorType(None, data.dtype, self.out.rank)
        return tensor(tuple(self.out.split_dims(self.result(self.data.joined_dims(dims)))), data.dtype)


def window_spots(plan: PoolPlan, place: Sequence[Expr], taps: Sequence[Expr]) -> list[Expr]:
    """Where each tap of the window at ``place`` lies in the data."""
    spots: list[Expr] = []
    for d in range(plan.spatial):
        at = E.Add(E.Mul(place[d], int64(plan.strides[d])), E.Mul(taps[d], int64(plan.dilation[d])))
        low = plan.padding[d][0]
        spots.append(E.Sub(at, int64(low)) if low else at)
    return spots


def _guarded(plan: PoolPlan, data: te.TensorValue, n: Any, c: Any, spots: Sequence[Expr], outside: Expr) -> Expr:
    """The element, or ``outside`` beyond the data."""
    value = data[plan.data.arrange(n, c, spots)]
    inside: Expr | None = None
    for d, spot in enumerate(spots):
        low, high = plan.padding[d]
        checks: list[Expr] = [E.GE(spot, int64(0))] if low else []
        if high or plan.ceil_mode:
            checks.append(E.LT(spot, data.shape[plan.data.spatial[d]]))
        for check in checks:
            inside = check if inside is None else E.And(inside, check)
    return value if inside is None else intrinsic("if_then_else", inside, value, outside)


def by_meaning(layout: Layout, values: Sequence[Any]) -> tuple[Any, Any, list[Any]]:
    return values[layout.outer], values[layout.channel], [values[a] for a in layout.spatial]


def _window(plan: PoolPlan) -> list[Any]:
    letters = _LETTERS[plan.spatial].lower()
    return [te.reduce_axis((0, size), f"r{letter}") for size, letter in zip(plan.window, letters, strict=True)]


def _max_lower(plan: PoolPlan, data: te.TensorValue) -> te.TensorValue:
    window = _window(plan)
    lowest = te.limit(data.dtype, low=True)

    def body(*i: Any) -> Expr:
        n, c, place = by_meaning(plan.out, i)
        value = _guarded(plan, data, n, c, window_spots(plan, place, [w.var for w in window]), lowest)
        return te.max(value, axis=window)

    return te.compute(plan.result(data.shape), body, "pool_max")


def _avg_lower(plan: PoolPlan, data: te.TensorValue) -> te.TensorValue:
    window = _window(plan)
    dims = plan.result(data.shape)
    wide = mean_dtype(data.dtype)

    def summed(*i: Any) -> Expr:
        n, c, place = by_meaning(plan.out, i)
        spots = window_spots(plan, place, [w.var for w in window])
        return te.sum(cast(wide, _guarded(plan, data, n, c, spots, const(0, data.dtype))), axis=window)

    total = te.compute(dims, summed, "pool_sum")

    def divided(*i: Any) -> Expr:
        _, _, place = by_meaning(plan.out, i)
        count = count_inside(plan, place, data.shape)
        return cast(data.dtype, E.Div(total[i], cast(wide, E.Max(count, int64(1)))))

    return te.compute(dims, divided, "pool_avg")


def count_inside(plan: PoolPlan, place: Sequence[Expr], dims: Sequence[Expr]) -> Expr:
    """How many elements a window's average divides by, before it is limited to 1."""
    count: Expr = int64(1)
    for d in range(plan.spatial):
        count = E.Mul(count, _taps_inside(plan, place[d], dims[plan.data.spatial[d]], d))
    return count


def _taps_inside(plan: PoolPlan, place: Expr, extent: Expr, d: int) -> Expr:
    """How many taps of a window count: those inside the data, or inside the padded data."""
    low, high = plan.padding[d]
    step, reach = plan.dilation[d], plan.window[d]
    start = E.Sub(E.Mul(place, int64(plan.strides[d])), int64(low))
    first, end = (int64(-low), E.Add(extent, int64(high))) if plan.count_include_pad else (int64(0), extent)
    # taps t with first <= start + t * step < end
    from_tap = E.Max(E.FloorDiv(E.Add(E.Sub(first, start), int64(step - 1)), int64(step)), int64(0))
    to_tap = E.Min(E.FloorDiv(E.Add(E.Sub(end, start), int64(step - 1)), int64(step)), int64(reach))
    return E.Max(E.Sub(to_tap, from_tap), int64(0))


def ref_taps(plan: PoolPlan, place: Sequence[int], extents: Sequence[int]) -> tuple[list[list[int]], int]:
    """Where a window's taps lie inside the data, by dimension, and how many lie inside the padded data."""
    taps, padded = [], 1
    for d, extent in enumerate(extents):
        low, high = plan.padding[d]
        spots = [place[d] * plan.strides[d] - low + t * plan.dilation[d] for t in range(plan.window[d])]
        padded *= sum(-low <= s < extent + high for s in spots)
        taps.append([s for s in spots if 0 <= s < extent])
    return taps, padded


def _ref(plan: PoolPlan, data: Any, average: bool) -> Any:
    data = plan.data.joined_array(data)
    kind = _wide_of(data) if average else data.dtype
    x = np.transpose(data, (plan.data.outer, plan.data.channel, *plan.data.spatial)).astype(kind)
    sizes = [int(plan.out_extent(int64(x.shape[2 + d]), d).value) for d in range(plan.spatial)]  # type: ignore[attr-defined]
    out: Any = np.zeros((*x.shape[:2], *sizes), kind)
    for place in itertools.product(*(range(s) for s in sizes)):
        taps, padded = ref_taps(plan, place, x.shape[2:])
        window = x[np.ix_(range(x.shape[0]), range(x.shape[1]), *taps)].reshape(*x.shape[:2], math.prod(map(len, taps)))
        if not average:
            initial: Any = te.limit(dtypes.from_numpy(x.dtype), low=True).value  # type: ignore[attr-defined]
            out[(slice(None), slice(None), *place)] = window.max(axis=-1, initial=initial)
        else:
            count = padded if plan.count_include_pad else window.shape[-1]
            out[(slice(None), slice(None), *place)] = window.sum(axis=-1) / max(count, 1)
    order = np.argsort([plan.out.outer, plan.out.channel, *plan.out.spatial])
    return plan.out.split_array(as_dtype(np.transpose(out, order), data.dtype))


def _wide_of(data: Any) -> Any:
    """In which dtype averages of an array are computed."""
    return dtypes.to_numpy(mean_dtype(dtypes.from_numpy(data.dtype)))


POOL_TEXT = RelaxText(first=("pool_size", "strides", "dilation", "padding"))
POOL_SIZES = ("pool_size", "strides", "dilation")


def _pool(spatial: int, average: bool) -> Op:
    name = f"nn.{'avg' if average else 'max'}_pool{spatial}d"
    letters = "NC" + _LETTERS[spatial]
    include = average and spatial != 2  # Relax's own defaults

    def rule(
        data: TensorType,
        pool_size: Axes = 1,  # type: ignore[assignment]
        strides: Axes = 1,  # type: ignore[assignment]
        padding: Axes = 0,  # type: ignore[assignment]
        dilation: Axes = 1,  # type: ignore[assignment]
        ceil_mode: bool = False,
        count_include_pad: bool = include,
        layout: str = letters,
        out_layout: str | None = None,
    ) -> Type:
        attrs = {k: v for k, v in locals().items() if k not in ("data", "plan")}
        if average:
            require_numbers(name, data)
        return PoolPlan(name, spatial, attrs).result_type(data)

    def lower(data: te.TensorValue, **attrs: Any) -> te.TensorValue:
        plan = PoolPlan(name, spatial, attrs)
        return plan.out.split((_avg_lower if average else _max_lower)(plan, plan.data.joined(data)))

    def shape(size: int) -> tuple[int, ...]:
        return (1, 2, *([size] * spatial))

    rule.__doc__ = (
        f"{'Average' if average else 'Maximum'} over windows of {spatial} dimension(s), as PyTorch defines it. "
        "``ceil_mode`` keeps a last window that hangs over the end; ``count_include_pad`` counts padding in averages."
    )
    return operator(
        name,
        fusion=Fusion.OUT_FUSABLE,
        lower=lower,
        ref=lambda data, **attrs: _ref(PoolPlan(name, spatial, attrs), np.asarray(data), average),
        samples=lambda: [
            sample(shape(5), pool_size=2, strides=2),
            sample(shape(5), pool_size=3, strides=2, padding=1, count_include_pad=True),
            sample(shape(5), pool_size=3, strides=2, padding=1, count_include_pad=False),
            sample(shape(4), pool_size=3, strides=2, ceil_mode=True),
            sample(shape(5), pool_size=2, dilation=2, strides=1),
            sample((1, *([4] * spatial), 2), pool_size=2, strides=2, layout="N" + _LETTERS[spatial] + "C"),
            sample((1, 2, *([4] * spatial), 2), pool_size=2, strides=2, layout="NC" + _LETTERS[spatial] + "2c"),
            sample(shape(4), pool_size=2, out_layout="NC" + _LETTERS[spatial] + "3c2w"),
        ],
        relax_text=POOL_TEXT,
        settle_attrs=settle_window(spatial, "layout", POOL_SIZES),
    )(rule)


max_pool1d, max_pool2d, max_pool3d = (_pool(spatial, False) for spatial in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_pool(spatial, True) for spatial in (1, 2, 3))


# ------------------------------------------------------------------------------------------------------------- adaptive


def _adaptive(spatial: int) -> Op:
    name = f"nn.adaptive_avg_pool{spatial}d"
    letters = "NC" + _LETTERS[spatial]

    def sizes_of(dims: Sequence[Expr], layout: Layout, output_size: Axes) -> list[Expr]:
        if output_size is None:
            return [dims[a] for a in layout.spatial]
        return [int64(s) for s in per_dimension(name, "output_size", output_size, spatial)]

    def rule(data: TensorType, output_size: Axes = None, layout: str = letters, out_layout: str | None = None) -> Type:
        require_numbers(name, data)
        inner, outer = (parse_layout(name, text, "NC", spatial) for text in (layout, out_layout or layout))
        inner.require_rank("data", data)
        given = tensor_dims(data)
        if given is None:
            if output_size is not None and len(output_size) not in (1, spatial):
                fail(f"{name}: output_size must have {spatial} entries", str(spatial), str(len(output_size)))
            return TensorType(None, data.dtype, outer.rank)
        dims = inner.joined_dims(given)
        sizes = sizes_of(dims, inner, output_size)
        plain = outer.arrange(dims[inner.outer], dims[inner.channel], sizes)
        return tensor(tuple(outer.split_dims(plain)), data.dtype)

    def lower(data: te.TensorValue, output_size: Axes, layout: str, out_layout: str | None) -> te.TensorValue:
        inner, outer = (parse_layout(name, text, "NC", spatial) for text in (layout, out_layout or layout))
        return outer.split(lower_plain(inner.joined(data), output_size, inner, outer))

    def lower_plain(data: te.TensorValue, output_size: Axes, inner: Layout, outer: Layout) -> te.TensorValue:
        sizes = sizes_of(data.shape, inner, output_size)
        wide = mean_dtype(data.dtype)
        extents = [data.shape[a] for a in inner.spatial]
        # window d of output i is floor(i * in / out) .. ceil((i + 1) * in / out): at most ceil(in / out) + 1 wide, and
        # in / out where that is a whole number
        even = [SHAPES.equal(E.FloorMod(e, s), int64(0)) is True for e, s in zip(extents, sizes, strict=True)]
        widths = [
            SHAPES.simplify(E.FloorDiv(e, s) if whole else E.Add(E.FloorDiv(E.Add(e, E.Sub(s, int64(1))), s), int64(1)))
            for e, s, whole in zip(extents, sizes, even, strict=True)
        ]
        window = [te.reduce_axis((0, w), f"k{d}") for d, w in enumerate(widths)]

        def bounds(place: Any, d: int) -> tuple[Expr, Expr]:
            if even[d]:
                start: Expr = int64(0) if SHAPES.equal(sizes[d], int64(1)) is True else E.Mul(place, widths[d])
                return start, E.Add(start, widths[d])
            start = E.FloorDiv(E.Mul(place, extents[d]), sizes[d])
            above = E.Add(E.Mul(E.Add(place, int64(1)), extents[d]), E.Sub(sizes[d], int64(1)))
            return start, E.FloorDiv(above, sizes[d])

        def summed(*i: Any) -> Expr:
            n, c, place = by_meaning(outer, i)
            spots, inside = [], None
            for d in range(spatial):
                start, end = bounds(place[d], d)
                spot = SHAPES.simplify(E.Add(start, window[d].var))
                spots.append(spot)
                if not even[d]:
                    check: Expr = E.LT(spot, end)
                    inside = check if inside is None else E.And(inside, check)
            value = cast(wide, data[inner.arrange(n, c, spots)])
            if inside is not None:
                value = intrinsic("if_then_else", inside, value, const(0, wide))
            return te.sum(value, axis=window)

        dims = outer.arrange(data.shape[inner.outer], data.shape[inner.channel], sizes)
        total = te.compute(dims, summed, "adaptive_sum")

        def divided(*i: Any) -> Expr:
            _, _, place = by_meaning(outer, i)
            count: Expr = int64(1)
            for d in range(spatial):
                start, end = bounds(place[d], d)
                count = E.Mul(count, widths[d] if even[d] else E.Sub(end, start))
            return cast(data.dtype, E.Div(total[i], cast(wide, count)))

        return te.compute(dims, divided, "adaptive_avg")

    def ref(data: Any, output_size: Axes, layout: str, out_layout: str | None) -> Any:
        inner, outer = (parse_layout(name, text, "NC", spatial) for text in (layout, out_layout or layout))
        data = inner.joined_array(np.asarray(data))
        x = np.transpose(data, (inner.outer, inner.channel, *inner.spatial))
        wide = x.astype(_wide_of(data))
        given = sizes_of([int64(s) for s in data.shape], inner, output_size)
        sizes = [s.value for s in given if isinstance(s, IntImm)]
        out: Any = np.zeros((*x.shape[:2], *sizes), wide.dtype)
        for place in itertools.product(*(range(s) for s in sizes)):
            window = tuple(
                slice(p * e // s, -(-(p + 1) * e // s)) for p, e, s in zip(place, x.shape[2:], sizes, strict=True)
            )
            part = wide[(slice(None), slice(None), *window)]
            parts = part.reshape(*x.shape[:2], math.prod(part.shape[2:]))
            out[(slice(None), slice(None), *place)] = mean_ref(parts, (-1,), False)
        order = np.argsort([outer.outer, outer.channel, *outer.spatial])
        return outer.split_array(as_dtype(np.transpose(out, order), data.dtype))

    rule.__doc__ = (
        f"Averages over windows that divide {spatial} dimension(s) into ``output_size`` parts, as PyTorch defines it: "
        "part i covers floor(i n / m) to ceil((i + 1) n / m)."
    )
    return operator(
        name,
        shape_of=lambda attrs: 0 if attrs["output_size"] is None else None,
        fusion=Fusion.OUT_FUSABLE,
        lower=lower,
        ref=ref,
        samples=lambda: [
            sample((1, 2, *([5] * spatial)), output_size=3),
            sample((2, 1, *([4] * spatial)), output_size=1),
            sample(np.arange(6**spatial, dtype="int8").reshape(1, 1, *([6] * spatial)), output_size=4),
            sample((1, *([4] * spatial), 2), output_size=2, layout="N" + _LETTERS[spatial] + "C"),
            sample((1, 2, *([4] * spatial), 2), output_size=2, layout="NC" + _LETTERS[spatial] + "2c"),
        ],
        settle_attrs=settle_window(spatial, "layout", ("output_size",)),
    )(rule)


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (_adaptive(spatial) for spatial in (1, 2, 3))
