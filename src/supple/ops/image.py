"""Images read at computed places: grid_sample and affine_grid, as PyTorch defines their values."""

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
from supple.ir.intrinsics import absolute, intrinsic
from supple.ir.node import Expr, Type
from supple.ir.op import Fusion
from supple.ir.types import TensorType
from supple.ops.declare import Sample, Shape, ShapeOf, fail, operator, sample
from supple.ops.layouts import parse_layout
from supple.ops.manipulate import shape_rank, shape_values
from supple.ops.normalize import wide_dtype
from supple.ops.requirements import require_equal, require_floats
from supple.ops.shapes import alike, require_rank
from supple.sym.relate import tensor, tensor_dims

# ---------------------------------------------------------------------------------------------------------- grid_sample

_TAPS = {"bilinear": 2, "nearest": 1, "bicubic": 4}
_PADDING = ("zeros", "border", "reflection")
_ALPHA = -0.75  # PyTorch's cubic


class _Sampling:
    """The attributes of grid_sample, checked."""

    def __init__(self, method: str, layout: str, padding_mode: str, align_corners: bool) -> None:
        name = "image.grid_sample"
        letters = "".join(c for c in "DHW" if c in layout)
        if letters not in ("HW", "DHW"):
            fail(f"{name}: unknown layout", "an order of NCHW or NCDHW", repr(layout))
        self.layout = parse_layout(name, layout, "NC", len(letters))
        self.axes, self.batch, self.channel = self.layout.spatial, self.layout.outer, self.layout.channel
        self.grid_rank = len(letters) + 2
        for what, value, known in (("method", method, tuple(_TAPS)), ("padding_mode", padding_mode, _PADDING)):
            if value not in known:
                fail(f"{name}: unknown {what}", " or ".join(repr(k) for k in known), repr(value))
        if method == "bicubic" and len(letters) == 3:
            fail(f"{name}: bicubic sampling has two dimensions", "'bilinear' or 'nearest' for volumes", "'bicubic'")
        self.method, self.padding, self.align = method, padding_mode, align_corners

    def result(self, data: Sequence[Expr], grid: Sequence[Expr]) -> tuple[Expr, ...]:
        dims = list(data)
        for axis, extent in zip(self.axes, grid[2:], strict=True):
            dims[axis] = extent
        return tuple(dims)


def _coordinate(plan: _Sampling, g: Expr, extent: Expr, wide: str) -> Expr:
    """The place in the data of a grid value in [-1, 1]."""
    one, size = const(1, wide), cast(wide, extent)
    if plan.align:
        return E.Mul(E.Div(E.Add(g, one), const(2, wide)), E.Sub(size, one))
    return E.Div(E.Sub(E.Mul(E.Add(g, one), size), one), const(2, wide))


def _settled(plan: _Sampling, at: Expr, extent: Expr, wide: str) -> Expr:
    """The coordinate brought into the data, by the padding mode."""
    if plan.padding == "zeros":
        return at
    zero, one, size = const(0, wide), const(1, wide), cast(wide, extent)
    last = E.Sub(size, one)
    if plan.padding == "reflection":
        low = zero if plan.align else const(-0.5, wide)
        span = last if plan.align else size
        away = absolute(E.Sub(at, low))
        safe = E.Select(E.GT(span, zero), span, one)
        flips = intrinsic("floor", E.Div(away, safe))
        extra = intrinsic("fmod", away, safe)
        even = E.EQ(intrinsic("fmod", flips, const(2, wide)), zero)
        at = E.Select(even, E.Add(extra, low), E.Add(E.Sub(span, extra), low))
        at = E.Select(E.GT(span, zero), at, zero)
    return E.Min(E.Max(at, zero), last)


def _cubic_at(rest: Expr, tap: Expr, wide: str) -> Expr:
    """The weight of tap 0 to 3 around a coordinate with the fraction ``rest``."""
    a, x = const(_ALPHA, wide), absolute(E.Sub(cast(wide, E.Sub(tap, int64(1))), rest))
    inner = E.Add(E.Mul(E.Sub(E.Mul(a, x), E.Mul(const(5, wide), a)), x), E.Mul(const(8, wide), a))
    far = E.Sub(E.Mul(inner, x), E.Mul(const(4, wide), a))
    slope = E.Sub(E.Mul(E.Add(a, const(2, wide)), x), E.Add(a, const(3, wide)))
    near = E.Add(E.Mul(E.Mul(slope, x), x), const(1, wide))
    return E.Select(E.LE(x, const(1, wide)), near, far)


def _sample_lower(
    data: te.TensorValue, grid: te.TensorValue, method: str, layout: str, padding_mode: str, align_corners: bool
) -> te.TensorValue:
    plan = _Sampling(method, layout, padding_mode, align_corners)
    return plan.layout.split(_sample_plain(plan, plan.layout.joined(data), grid))


def _sample_plain(plan: _Sampling, data: te.TensorValue, grid: te.TensorValue) -> te.TensorValue:
    wide = wide_dtype(data.dtype)
    spatial = len(plan.axes)
    extents = [data.shape[a] for a in plan.axes]

    def coordinate(n: Any, d: Any, *p: Any) -> Expr:
        """Of the spatial dimension ``d``; the grid's channels come in the order x, y, z."""
        found: Expr | None = None
        for axis in range(spatial):
            value = cast(wide, grid[(n, int64(spatial - 1 - axis), *p)])
            at = _coordinate(plan, value, extents[axis], wide)
            if plan.method != "bicubic":  # whose taps are brought in one by one
                at = _settled(plan, at, extents[axis], wide)
            found = at if found is None else E.Select(E.EQ(d, int64(axis)), at, found)
        assert found is not None
        return found

    places = te.compute((grid.shape[0], int64(spatial), *grid.shape[2:]), coordinate, "grid_place")

    spots, weights = _tables(plan, places, extents, wide)

    def body(*i: Any) -> Expr:
        batch, p = i[plan.batch], [i[a] for a in plan.axes]
        total: Expr | None = None
        for taps in itertools.product(range(_TAPS[plan.method]), repeat=spatial):
            index: list[Any] = list(i)
            weight: Expr | None = None
            inside: Expr | None = None
            for d, (axis, tap) in enumerate(zip(plan.axes, taps, strict=True)):
                place = spots[(batch, int64(d), int64(tap), *p)]
                index[axis] = place
                if weights is not None:
                    own = weights[(batch, int64(d), int64(tap), *p)]
                    weight = own if weight is None else E.Mul(weight, own)
                check = E.And(E.GE(place, int64(0)), E.LT(place, extents[d]))
                inside = check if inside is None else E.And(inside, check)
            value = cast(wide, data[tuple(index)])
            value = value if weight is None else E.Mul(value, weight)
            assert inside is not None
            part = intrinsic("if_then_else", inside, value, const(0, wide))
            total = part if total is None else E.Add(total, part)
        assert total is not None
        return cast(data.dtype, total)

    return te.compute(plan.result(data.shape, grid.shape), body, "grid_sample")


def _tables(
    plan: _Sampling, places: te.TensorValue, extents: Sequence[Expr], wide: str
) -> tuple[te.TensorValue, te.TensorValue | None]:
    """Places and weights of the taps, ``(N, dimension, tap, ...)``: all channels share them."""
    count = _TAPS[plan.method]
    dims = (*places.shape[:2], int64(count), *places.shape[2:])

    def known(at: Expr, place: Expr) -> Expr:
        """What is no number is outside."""
        return E.Select(E.EQ(at, at), place, int64(-1))

    def spot(n: Any, d: Any, t: Any, *p: Any) -> Expr:
        at = places[(n, d, *p)]
        if plan.method == "nearest":
            return known(at, cast("int64", intrinsic("round", at)))
        floor = intrinsic("floor", at)
        if plan.method == "bilinear":
            return known(at, E.Add(cast("int64", floor), t))
        tap = E.Add(floor, cast(wide, E.Sub(t, int64(1))))
        settled = _settled(plan, tap, extents[-1], wide)
        if len(extents) == 2:
            settled = E.Select(E.EQ(d, int64(0)), _settled(plan, tap, extents[0], wide), settled)
        return known(settled, cast("int64", settled))

    def weight(n: Any, d: Any, t: Any, *p: Any) -> Expr:
        at = places[(n, d, *p)]
        rest = E.Sub(at, intrinsic("floor", at))
        if plan.method == "bicubic":
            return _cubic_at(rest, t, wide)
        return E.Select(E.EQ(t, int64(0)), E.Sub(const(1, wide), rest), rest)

    spots = te.compute(dims, spot, "grid_spot")
    return spots, te.compute(dims, weight, "grid_weight") if count > 1 else None


def _settled_ref(plan: _Sampling, at: Any, extent: int) -> Any:
    kind = at.dtype.type
    if plan.padding == "reflection":
        low, span = (kind(0), extent - 1) if plan.align else (kind(-0.5), extent)
        if span == 0:
            return np.zeros_like(at)
        away = np.abs(at - low)
        extra, flips = np.fmod(away, kind(span)), np.floor(away / kind(span))
        at = np.where(np.fmod(flips, 2) == 0, extra + low, span - extra + low)
    return at if plan.padding == "zeros" else np.clip(at, 0, extent - 1).astype(kind)


def _sample_ref(data: Any, grid: Any, method: str, layout: str, padding_mode: str, align_corners: bool) -> Any:
    plan = _Sampling(method, layout, padding_mode, align_corners)
    order = (plan.batch, plan.channel, *plan.axes)
    data = plan.layout.joined_array(data)
    x = dtypes.widened(np.transpose(data, order))
    places = dtypes.widened(grid)[:, ::-1]  # x, y, z -> z, y, x
    lines = []
    for d, extent in enumerate(x.shape[2:]):
        kind = x.dtype.type
        g = places[:, d].astype(kind)
        at = (g + 1) / kind(2) * kind(extent - 1) if align_corners else ((g + 1) * kind(extent) - 1) / kind(2)
        if method == "nearest":
            lines.append([(np.rint(_settled_ref(plan, at, extent)), None)])
        elif method == "bilinear":
            at = _settled_ref(plan, at, extent)
            low = np.floor(at)
            lines.append([(low, 1 - (at - low)), (low + 1, at - low)])
        else:
            low = np.floor(at)
            a, t = kind(_ALPHA), at - low

            def far(v: Any, a: Any = a) -> Any:
                return ((a * v - 5 * a) * v + 8 * a) * v - 4 * a

            def near(v: Any, a: Any = a) -> Any:
                return ((a + 2) * v - (a + 3)) * v * v + 1

            spots = [_settled_ref(plan, low + k, extent) for k in (-1, 0, 1, 2)]
            lines.append(list(zip(spots, [far(t + 1), near(t), near(1 - t), far(2 - t)], strict=True)))
    out: Any = np.zeros((*x.shape[:2], *grid.shape[2:]), x.dtype)
    for taps in itertools.product(*lines):
        inside, weight = np.ones(lines[0][0][0].shape, bool), np.ones((), x.dtype)
        index = []
        for extent, (place, own) in zip(x.shape[2:], taps, strict=True):
            inside &= (place >= 0) & (place < extent)
            index.append(np.where(inside, place, 0).astype("int64"))
            weight = weight if own is None else weight * own
        batch: Any = np.arange(x.shape[0]).reshape(-1, *[1] * len(index))
        index = [np.where(inside, i, 0) for i in index]
        value = np.moveaxis(x[(batch, slice(None), *index)], -1, 1) if math.prod(x.shape) else out
        out = out + np.where(inside[:, None], value * np.broadcast_to(weight, inside.shape)[:, None], 0)
    return plan.layout.split_array(np.transpose(out, np.argsort(order)).astype(data.dtype))


def _sample_samples() -> list[Sample]:
    grid = np.linspace(-1.4, 1.4, 2 * 2 * 2 * 3, dtype="float32").reshape(2, 2, 2, 3)
    volume = np.linspace(-1.2, 1.3, 3 * 2 * 2, dtype="float32").reshape(1, 3, 1, 2, 2)
    return [
        sample((2, 2, 3, 4), grid),
        sample((2, 1, 3, 4, 2), grid, layout="NCHW2c"),
        sample((2, 1, 3, 4), grid, method="bicubic", padding_mode="reflection"),
        sample((2, 3, 4, 2), grid, layout="NHWC", method="nearest", padding_mode="border", align_corners=True),
        sample((1, 1, 3, 2, 4), volume, layout="NCDHW", padding_mode="reflection", align_corners=True),
    ]


@operator(
    "image.grid_sample",
    fusion=Fusion.OUT_FUSABLE,
    lower=_sample_lower,
    ref=_sample_ref,
    samples=_sample_samples,
)
def grid_sample(
    data: TensorType,
    grid: TensorType,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Type:
    """The image (or volume) at the places of a grid ``(N, 2, H, W)`` (or ``(N, 3, D, H, W)``), whose channels are x, y
    (and z) in [-1, 1]; the values are those of PyTorch's grid_sample, whose grid has its channels last.

    ``method``: ``"bilinear"`` (volumes too), ``"nearest"``, ``"bicubic"``; ``padding_mode``: ``"zeros"``,
    ``"border"``, ``"reflection"``; ``align_corners``: -1 and 1 are the centres of the corner elements, not edges.
    What is read at a place that is NaN, or infinite where ``"reflection"`` finds no end, is 0.
    """
    name = "image.grid_sample"
    plan = _Sampling(method, layout, padding_mode, align_corners)
    require_floats(name, data)
    require_floats(name, grid)
    alike(name, data, grid)
    plan.layout.require_rank("data", data)
    require_rank(name, "grid", grid, plan.grid_rank)
    given, places = tensor_dims(data), tensor_dims(grid)
    if places is not None:
        text = f"{name}: the grid's channels are coordinates"
        require_equal(text, int64(plan.grid_rank - 2), places[1], f"{plan.grid_rank - 2} channels")
    if given is None or places is None:
        return TensorType(None, data.dtype, plan.layout.rank)
    dims = plan.layout.joined_dims(given)
    require_equal(f"{name}: data and grid have different batches", dims[plan.batch], places[0])
    return tensor(tuple(plan.layout.split_dims(plan.result(dims, places))), data.dtype)


# ---------------------------------------------------------------------------------------------------------- affine_grid


def _affine_lower(data: te.TensorValue, size: Sequence[Expr], align_corners: bool) -> te.TensorValue:
    spatial = len(size)
    wide = wide_dtype(data.dtype)

    def base(i: Expr, extent: Expr) -> Expr:
        """From -1 to 1: exact numerator and denominator."""
        one, two = int64(1), int64(2)
        if align_corners:
            below = E.Sub(extent, one)
            return E.Div(cast(wide, E.Sub(E.Mul(i, two), below)), cast(wide, E.Max(below, one)))
        return E.Div(cast(wide, E.Sub(E.Add(E.Mul(i, two), one), extent)), cast(wide, extent))

    def body(n: Any, c: Any, *p: Any) -> Expr:
        total = cast(wide, data[n, c, int64(spatial)])
        for d in range(spatial):  # column 0 belongs to x, the last dimension
            place = base(p[spatial - 1 - d], size[spatial - 1 - d])
            total = E.Add(total, E.Mul(cast(wide, data[n, c, int64(d)]), place))
        return cast(data.dtype, total)

    return te.compute((data.shape[0], int64(spatial), *size), body, "affine_grid")


def _affine_ref(data: Any, size: Sequence[int], align_corners: bool) -> Any:
    theta = dtypes.widened(data)
    spatial = len(size)
    out = np.zeros((data.shape[0], spatial, *size), theta.dtype)
    out += theta[:, :, -1].reshape(*data.shape[:2], *[1] * spatial)
    for d in range(spatial):
        extent = size[spatial - 1 - d]
        i = np.arange(extent)
        top, bottom = (2 * i - (extent - 1), max(extent - 1, 1)) if align_corners else (2 * i + 1 - extent, extent)
        base = (top.astype(theta.dtype) / theta.dtype.type(bottom)).reshape([-1] + [1] * d)
        out = out + theta[:, :, d].reshape(*data.shape[:2], *[1] * spatial) * base
    return out.astype(data.dtype)


def _prepare_affine(data: Any, size: Any, align_corners: Any = True) -> tuple[Any, Any]:
    if isinstance(size, int) or (isinstance(size, Expr) and E.is_scalar(size)):
        size = [size, size]  # one size counts for height and width
    return (data, size), {"align_corners": align_corners}


@operator(
    "image.affine_grid",
    fusion=Fusion.INJECTIVE,
    lower=_affine_lower,
    ref=_affine_ref,
    samples=lambda: [
        sample((2, 2, 3), ShapeOf((3, 5))),
        sample((2, 2, 3), ShapeOf((4, 1)), align_corners=False),
        sample((1, 3, 4), ShapeOf((2, 3, 4))),
    ],
    prepare=_prepare_affine,
)
def affine_grid(data: TensorType, size: Shape, align_corners: bool = True) -> Type:
    """The grid ``(N, 2, H, W)`` of places that affine maps ``(N, 2, 3)`` give for an image of ``size`` ``(H, W)``, or
    ``(N, 3, D, H, W)`` for maps ``(N, 3, 4)``; the input of `image.grid_sample`. Values as PyTorch's affine_grid."""
    name = "image.affine_grid"
    require_floats(name, data)
    spatial = shape_rank(size)
    if spatial not in (-1, 2, 3):
        fail(f"{name}: the size has 2 or 3 dimensions", "(H, W) or (D, H, W)", f"{spatial} dimensions")
    if data.ndim not in (-1, 3):
        fail(f"{name}: the maps are a batch of matrices", "3 dimensions", f"{data.ndim} dimensions")
    dims, values = tensor_dims(data), shape_values(size)
    if dims is not None and spatial != -1:
        for d, wanted in ((1, spatial), (2, spatial + 1)):
            shown = f"(N, {spatial}, {spatial + 1})"
            require_equal(f"{name}: the maps do not fit the size", int64(wanted), dims[d], shown)
    for value in values or ():
        if isinstance(value, IntImm) and value.value < 1:
            fail(f"{name}: a size must be positive", "at least 1", str(value.value))
    if dims is None or values is None:
        return TensorType(None, data.dtype, -1 if spatial == -1 else spatial + 2)
    return tensor((dims[0], int64(spatial), *values), data.dtype)
