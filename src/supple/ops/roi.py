"""Regions of images as small images of one size: roi_align (ONNX, torchvision) and roi_pool."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.base.errors import ExecutionError
from supple.build import te
from supple.build.loops import Cell, do, loop, nest, require, store, when, with_cells
from supple.ir import expr as E
from supple.ir.expr import cast, const, int64
from supple.ir.intrinsics import intrinsic
from supple.ir.node import Expr, Stmt, Type
from supple.ir.op import Fusion
from supple.ir.types import TensorType
from supple.ops.declare import Axes, Sample, fail, operator, sample
from supple.ops.layouts import parse_layout, per_dimension, settle_window
from supple.ops.normalize import wide_dtype
from supple.ops.requirements import require_floats
from supple.ops.shapes import alike, require_rank
from supple.ops.vision import require_extent
from supple.sym.relate import tensor, tensor_dims

_PLACES = (("y", 2, 4), ("x", 1, 3))  # a region is batch, x0, y0, x1, y1
_NO_IMAGE = "the batch of a region is out of range"
_FARTHEST = 2.0**61  # roi_pool's places end here: sums and differences of some fit an int64
_MOST_SAMPLES = 1 << 16
_TOO_MANY = f"a bin of a region has more than {_MOST_SAMPLES} samples in a dimension"


def _image(region: Expr, batch: Expr, image: Cell) -> list[Stmt]:
    """Which image a region is of, by its first number."""
    inside = E.And(E.GE(image.value, int64(0)), E.LT(image.value, batch))
    return [image.set(cast("int64", region)), require(inside, _NO_IMAGE)]


def _image_ref(region: Any, x: Any) -> Any:
    index = int(dtypes.convert(region[0], "int64"))
    if not 0 <= index < len(x):
        raise ExecutionError(_NO_IMAGE)
    return x[index]


def _infer(name: str, data: TensorType, rois: TensorType, pooled_size: Axes, scale: float, layout: str) -> Type:
    plan = parse_layout(name, layout, "NC", 2)
    if plan.is_split:
        fail(f"{name}: layouts with split axes are not taken", "an order of NCHW", repr(layout))
    sizes = per_dimension(name, "pooled_size", pooled_size, 2)
    if any(s < 1 for s in sizes):
        fail(f"{name}: pooled_size must be positive", "sizes from 1", str(sizes))
    if not math.isfinite(scale):
        fail(f"{name}: spatial_scale is no number to scale with", "a finite number", str(scale))
    require_floats(name, data)
    alike(name, data, rois)
    require_rank(name, "data", data, 4)
    require_rank(name, "rois", rois, 2)
    dims, regions = tensor_dims(data), tensor_dims(rois)
    if regions is not None:
        require_extent(name, "the regions' numbers (batch, x0, y0, x1, y1)", regions[1], int64(5))
    if dims is None or regions is None:
        return TensorType(None, data.dtype, 4)
    shape = plan.arrange(regions[0], dims[plan.channel], [int64(s) for s in sizes])
    return tensor(shape, data.dtype)


# ------------------------------------------------------------------------------------------------------------ roi_align


class _Align:
    """The attributes of roi_align, and its cells: one set for each of the two dimensions, y before x."""

    def __init__(self, wide: str, ratio: int, aligned: bool, scale: float) -> None:
        self.wide, self.ratio = wide, ratio
        self.scale, self.aligned = const(scale, wide), aligned
        self.start = [Cell(wide, f"start_{d}") for d, *_ in _PLACES]
        self.step = [Cell(wide, f"step_{d}") for d, *_ in _PLACES]
        self.count = [Cell("int64", f"count_{d}") for d, *_ in _PLACES]
        self.at = [Cell(wide, f"at_{d}") for d, *_ in _PLACES]
        self.low = [Cell("int64", f"low_{d}") for d, *_ in _PLACES]
        self.high = [Cell("int64", f"high_{d}") for d, *_ in _PLACES]

    @property
    def cells(self) -> list[Cell]:
        return [*self.start, *self.step, *self.count, *self.at, *self.low, *self.high]

    def region(self, rois: te.TensorValue, r: Any, sizes: Sequence[int]) -> list[Stmt]:
        """Where the region begins, the extent of a bin, and how many samples a bin has."""
        steps: list[Stmt] = []
        for d, (_, first, last) in enumerate(_PLACES):
            begin, end = (E.Mul(cast(self.wide, rois[r, int64(c)]), self.scale) for c in (first, last))
            extent: Expr = E.Sub(end, self.start[d].value)
            if not self.aligned:
                extent = E.Max(extent, const(1, self.wide))
            samples: Expr = int64(self.ratio)
            if self.ratio <= 0:
                samples = cast("int64", intrinsic("ceil", self.step[d].value))
            steps += [
                self.start[d].set(begin),
                self.step[d].set(E.Div(extent, const(sizes[d], self.wide))),
                self.count[d].set(samples),
                require(E.LE(self.count[d].value, int64(_MOST_SAMPLES)), _TOO_MANY),
            ]
        return steps

    def sample(self, d: int, bin_: Any, n: Any, extent: Expr) -> tuple[Stmt, Expr]:
        """The place of sample ``n`` of a bin in one dimension, between two elements; and whether it is in the image."""
        part = E.Div(
            E.Mul(E.Add(cast(self.wide, n), const(0.5, self.wide)), self.step[d].value),
            cast(self.wide, E.Max(self.count[d].value, int64(1))),
        )
        place = E.Add(E.Add(self.start[d].value, E.Mul(cast(self.wide, bin_), self.step[d].value)), part)
        at = self.at[d].value
        return self.at[d].set(place), E.And(E.GE(at, const(-1, self.wide)), E.LE(at, cast(self.wide, extent)))

    def settle(self, d: int, extent: Expr) -> list[Stmt]:
        """Bring the place into the image and find the elements around it."""
        at, last = self.at[d].value, E.Sub(extent, int64(1))
        return [
            self.at[d].set(E.Min(E.Max(at, const(0, self.wide)), cast(self.wide, last))),
            self.low[d].set(cast("int64", intrinsic("floor", at))),
            self.high[d].set(E.Min(E.Add(self.low[d].value, int64(1)), last)),
        ]


def _align_lower(
    data: te.TensorValue,
    rois: te.TensorValue,
    pooled_size: Axes,
    spatial_scale: float,
    sample_ratio: int,
    aligned: bool,
    layout: str,
    mode: str,
) -> te.TensorValue:
    name = "vision.roi_align"
    plan, sizes = parse_layout(name, layout, "NC", 2), per_dimension(name, "pooled_size", pooled_size, 2)
    wide = wide_dtype(data.dtype)
    extents = [data.shape[a] for a in plan.spatial]
    channels = data.shape[plan.channel]
    best = mode == "max"

    def body(out: te.TensorValue) -> Stmt:
        own = _Align(wide, sample_ratio, aligned, spatial_scale)
        total, image = Cell(wide, "total"), Cell("int64", "image")

        def region(r: Any) -> Stmt:
            def element(c: Any, py: Any, px: Any) -> Stmt:
                def value(y: Expr, x: Expr) -> Expr:
                    return cast(wide, data[plan.arrange(image.value, c, [y, x])])

                (low_y, low_x), (high_y, high_x) = ([cell.value for cell in cells] for cells in (own.low, own.high))
                rest = [E.Sub(at.value, cast(wide, low.value)) for at, low in zip(own.at, own.low, strict=True)]
                left = [E.Sub(const(1, wide), t) for t in rest]
                found: Expr = E.Add(
                    E.Add(E.Mul(E.Mul(left[0], left[1]), value(low_y, low_x)),
                          E.Mul(E.Mul(left[0], rest[1]), value(low_y, high_x))),
                    E.Add(E.Mul(E.Mul(rest[0], left[1]), value(high_y, low_x)),
                          E.Mul(E.Mul(rest[0], rest[1]), value(high_y, high_x))),
                )  # fmt: skip
                update = total.set(E.Max(total.value, found) if best else E.Add(total.value, found))

                def tap(ny: Any, nx: Any) -> Stmt:
                    (place_y, in_y), (place_x, in_x) = (
                        own.sample(d, b, n, extents[d]) for d, (b, n) in enumerate(((py, ny), (px, nx)))
                    )
                    settled = [s for d in (0, 1) for s in own.settle(d, extents[d])]
                    outside = total.set(E.Max(total.value, const(0, wide))) if best else None
                    return do(place_y, place_x, when(E.And(in_y, in_x), do(*settled, update), outside))

                counts = [E.Max(cell.value, int64(0)) for cell in own.count]
                number = E.Mul(counts[0], counts[1])
                taps = nest(counts, tap, ["ny", "nx"])
                average = E.Div(total.value, cast(wide, E.Max(number, int64(1))))
                top = E.Select(E.GT(number, int64(0)), total.value, const(0, wide))
                result = cast(data.dtype, top if best else average)
                start = const(-math.inf if best else 0, wide)
                return do(total.set(start), taps, store(out, result, *plan.arrange(r, c, [py, px])))

            every = nest((channels, *(int64(s) for s in sizes)), element, ["c", "py", "px"])
            return do(*_image(rois[r, int64(0)], data.shape[plan.outer], image), *own.region(rois, r, sizes), every)

        return with_cells([*own.cells, total, image], loop(rois.shape[0], region, "r"))

    shape = plan.arrange(rois.shape[0], channels, [int64(s) for s in sizes])
    return te.extern([(shape, data.dtype)], [data, rois], body, "roi_align")[0]


def _align_ref(
    data: Any,
    rois: Any,
    pooled_size: Axes,
    spatial_scale: float,
    sample_ratio: int,
    aligned: bool,
    layout: str,
    mode: str,
) -> Any:
    plan, sizes = parse_layout("roi_align", layout, "NC", 2), per_dimension("roi_align", "size", pooled_size, 2)
    x = dtypes.widened(np.transpose(data, (plan.outer, plan.channel, *plan.spatial)))
    kind = x.dtype.type
    out = np.zeros((rois.shape[0], x.shape[1], *sizes), x.dtype)
    for r, region in enumerate(dtypes.widened(rois).astype(x.dtype)):
        image = _image_ref(region, x)
        lines = []
        for d, (_, first, last) in enumerate(_PLACES):
            start, end = (region[c] * kind(spatial_scale) for c in (first, last))
            extent = end - start if aligned else np.maximum(end - start, kind(1))
            step = extent / kind(sizes[d])
            count = sample_ratio if sample_ratio > 0 else max(int(dtypes.convert(np.ceil(step), "int64")), 0)
            if count > _MOST_SAMPLES:
                raise ExecutionError(_TOO_MANY)
            lines.append((start, step, count))
        for place in np.ndindex(*sizes):
            values = []
            for taps in np.ndindex(*(count for *_, count in lines)):
                spots: list[Any] = []
                for (start, step, count), b, n, extent in zip(lines, place, taps, x.shape[2:], strict=True):
                    at = start + kind(b) * step + (kind(n) + kind(0.5)) * step / kind(max(count, 1))
                    spots.append(None if not -1 <= at <= extent else min(max(at, kind(0)), kind(extent - 1)))
                if any(s is None for s in spots):
                    values.append(np.zeros(x.shape[1], x.dtype))
                    continue
                low = [int(s) for s in spots]
                high = [min(v + 1, e - 1) for v, e in zip(low, x.shape[2:], strict=True)]
                values.append(_blend(image, low, high, spots))
            if values:
                whole = np.stack(values)
                out[(r, slice(None), *place)] = (
                    whole.max(axis=0) if mode == "max" else whole.sum(axis=0) / kind(len(values))
                )
    return np.transpose(out, np.argsort((plan.outer, plan.channel, *plan.spatial))).astype(data.dtype)


def _blend(image: Any, low: Sequence[int], high: Sequence[int], at: Sequence[Any]) -> Any:
    """Between the four elements around a place."""
    kind = image.dtype.type
    ry, rx = (a - kind(v) for a, v in zip(at, low, strict=True))
    ly, lx = 1 - ry, 1 - rx
    top = ly * lx * image[:, low[0], low[1]] + ly * rx * image[:, low[0], high[1]]
    return top + (ry * lx * image[:, high[0], low[1]] + ry * rx * image[:, high[0], high[1]])


_ROIS = np.array([[0, 1, 1, 5, 6], [1, -1, 0, 3.3, 4.7], [0, 7, 7, 20, 20], [1, 2, 2, 1, 1]], "float32")


def _align_samples() -> list[Sample]:
    return [
        sample((2, 2, 5, 4), _ROIS, pooled_size=[2, 3], spatial_scale=0.5, sample_ratio=2),
        sample((2, 2, 5, 4), _ROIS, pooled_size=2, spatial_scale=0.5, aligned=True, mode="max"),
        sample((2, 5, 4, 1), _ROIS, pooled_size=[2, 1], spatial_scale=1.0, layout="NHWC"),
    ]


@operator(
    "vision.roi_align",
    fusion=Fusion.OPAQUE,
    lower=_align_lower,
    ref=_align_ref,
    samples=_align_samples,
    settle_attrs=settle_window(2, sizes=("pooled_size",)),
)
def roi_align(
    data: TensorType,
    rois: TensorType,
    pooled_size: Axes,
    spatial_scale: float,
    sample_ratio: int = -1,
    aligned: bool = False,
    layout: str = "NCHW",
    mode: str = "avg",
) -> Type:
    """Each region ``(batch, x0, y0, x1, y1)`` of ``rois`` ``(n, 5)``, scaled by ``spatial_scale``, as an image of
    ``pooled_size`` bins; a bin is the average (or with ``mode="max"`` the maximum) of ``sample_ratio`` by
    ``sample_ratio`` interpolated values (below 1: as many as its extent, rounded up).

    Regions narrower than one element are widened to one, unless ``aligned``. Values as ONNX RoiAlign with
    ``output_half_pixel`` and torchvision's roi_align without its ``aligned``, which moves regions by half an element
    besides: here the caller moves them. A batch out of range raises at run time, and so does a bin of more than 65536
    samples in a dimension. A place that is NaN is outside the image; an extent that is NaN has no samples of its own,
    which gives 0."""
    if mode not in ("avg", "max"):
        fail("vision.roi_align: unknown mode", "avg or max", mode)
    return _infer("vision.roi_align", data, rois, pooled_size, spatial_scale, layout)


# ------------------------------------------------------------------------------------------------------------- roi_pool


def _pool_lower(
    data: te.TensorValue, rois: te.TensorValue, pooled_size: Axes, spatial_scale: float, layout: str
) -> te.TensorValue:
    name = "vision.roi_pool"
    plan, sizes = parse_layout(name, layout, "NC", 2), per_dimension(name, "pooled_size", pooled_size, 2)
    wide = wide_dtype(data.dtype)
    channels = data.shape[plan.channel]
    half = const(0.5, wide)

    def body(out: te.TensorValue) -> Stmt:
        image, found = Cell("int64", "image"), Cell("bool", "found")
        best = Cell(data.dtype, "best")
        start = [Cell("int64", f"start_{d}") for d, *_ in _PLACES]
        step = [Cell(wide, f"step_{d}") for d, *_ in _PLACES]
        low, high = ([Cell("int64", f"{n}_{d}") for d, *_ in _PLACES] for n in ("low", "high"))

        def rounded(v: Expr) -> Expr:
            """Halves go away from zero, NaN to 0."""
            away = E.Select(
                E.LT(v, const(0, wide)), intrinsic("ceil", E.Sub(v, half)), intrinsic("floor", E.Add(v, half))
            )
            return cast("int64", E.Max(E.Min(away, const(_FARTHEST, wide)), const(-_FARTHEST, wide)))

        def region(r: Any) -> Stmt:
            steps = _image(rois[r, int64(0)], data.shape[plan.outer], image)
            for d, (_, first, last) in enumerate(_PLACES):
                begin, end = (
                    rounded(E.Mul(cast(wide, rois[r, int64(c)]), const(spatial_scale, wide))) for c in (first, last)
                )
                extent = E.Max(E.Add(E.Sub(end, start[d].value), int64(1)), int64(1))
                steps += [start[d].set(begin), step[d].set(E.Div(cast(wide, extent), const(sizes[d], wide)))]

            def element(c: Any, *bins: Any) -> Stmt:
                bounds: list[Stmt] = []
                for d in (0, 1):
                    size = data.shape[plan.spatial[d]]
                    edges = [
                        cast("int64", intrinsic(kind, E.Mul(cast(wide, edge), step[d].value)))
                        for kind, edge in (("floor", bins[d]), ("ceil", E.Add(bins[d], int64(1))))
                    ]
                    placed = [E.Max(E.Min(E.Add(e, start[d].value), size), int64(0)) for e in edges]
                    bounds += [low[d].set(placed[0]), high[d].set(placed[1])]

                def tap(*t: Any) -> Stmt:
                    spots = [E.Add(low[d].value, t[d]) for d in (0, 1)]
                    value = data[plan.arrange(image.value, c, spots)]
                    first = E.Select(found.value, E.Max(best.value, value), value)
                    return do(best.set(first), found.set(True))

                spans = [E.Max(E.Sub(h.value, v.value), int64(0)) for v, h in zip(low, high, strict=True)]
                search = nest(spans, tap, ["ty", "tx"])
                write = store(out, best.value, *plan.arrange(r, c, list(bins)))
                return do(*bounds, best.set(const(0, data.dtype)), found.set(False), search, write)

            return do(*steps, nest((channels, *(int64(s) for s in sizes)), element, ["c", "py", "px"]))

        return with_cells([image, found, best, *start, *step, *low, *high], loop(rois.shape[0], region, "r"))

    shape = plan.arrange(rois.shape[0], channels, [int64(s) for s in sizes])
    return te.extern([(shape, data.dtype)], [data, rois], body, "roi_pool")[0]


def _rounded_ref(v: Any) -> int:
    away = np.clip(np.copysign(np.floor(np.abs(v) + v.dtype.type(0.5)), v), -_FARTHEST, _FARTHEST)
    return int(dtypes.convert(away, "int64"))


def _pool_ref(data: Any, rois: Any, pooled_size: Axes, spatial_scale: float, layout: str) -> Any:
    plan, sizes = parse_layout("roi_pool", layout, "NC", 2), per_dimension("roi_pool", "size", pooled_size, 2)
    x = np.transpose(data, (plan.outer, plan.channel, *plan.spatial))
    wide = dtypes.widened(rois)
    kind = wide.dtype.type
    out = np.zeros((rois.shape[0], x.shape[1], *sizes), x.dtype)
    for r, region in enumerate(wide):
        image = _image_ref(region, x)
        lines = []
        for d, (_, first, last) in enumerate(_PLACES):
            begin, end = (_rounded_ref(region[c] * kind(spatial_scale)) for c in (first, last))
            step = dtypes.convert(np.int64(max(end - begin + 1, 1)), wide.dtype.name)[()] / kind(sizes[d])
            lines.append((begin, step))
        for place in np.ndindex(*sizes):
            window: list[Any] = []
            for (begin, step), b, extent in zip(lines, place, x.shape[2:], strict=True):
                edges = int(np.floor(kind(b) * step)) + begin, int(np.ceil(kind(b + 1) * step)) + begin
                window.append(slice(*(min(max(e, 0), extent) for e in edges)))
            part = image[(slice(None), *window)].reshape(x.shape[1], -1)
            if part.shape[1]:
                out[(r, slice(None), *place)] = part.max(axis=1)
    return np.transpose(out, np.argsort((plan.outer, plan.channel, *plan.spatial)))


@operator(
    "vision.roi_pool",
    fusion=Fusion.OPAQUE,
    lower=_pool_lower,
    ref=_pool_ref,
    samples=lambda: [
        sample((2, 2, 5, 4), _ROIS, pooled_size=[2, 3], spatial_scale=0.5),
        sample((2, 5, 4, 1), _ROIS, pooled_size=2, spatial_scale=1.0, layout="NHWC"),
    ],
    settle_attrs=settle_window(2, sizes=("pooled_size",)),
)
def roi_pool(data: TensorType, rois: TensorType, pooled_size: Axes, spatial_scale: float, layout: str = "NCHW") -> Type:
    """Each region ``(batch, x0, y0, x1, y1)`` of ``rois`` ``(n, 5)``, scaled by ``spatial_scale`` and rounded, as
    ``pooled_size`` bins of its elements' maxima; 0 where a bin lies outside the image. Values as torchvision's
    roi_pool. A place that is NaN counts as 0, those beyond 2**61 as 2**61; a batch out of range raises at run time."""
    return _infer("vision.roi_pool", data, rois, pooled_size, spatial_scale, layout)
