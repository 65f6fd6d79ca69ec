"""Images of another size: resize2d, resize3d (as ONNX Resize and PyTorch's interpolate define the values)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.build import te
from supple.ir import expr as E
from supple.ir.expr import IntImm, cast, const, int64
from supple.ir.intrinsics import absolute, intrinsic
from supple.ir.node import Expr, Type
from supple.ir.op import Fusion, Op, RelaxText
from supple.ir.types import TensorType
from supple.ops.declare import DType, Floats, Sample, Shape, ShapeOf, fail, operator, sample
from supple.ops.manipulate import shape_rank, shape_values
from supple.sym.relate import tensor, tensor_dims
from supple.sym.simplify import SHAPES

_TAPS = {"nearest_neighbor": 1, "linear": 2, "cubic": 4}
_MODES = (
    "half_pixel",
    "align_corners",
    "asymmetric",
    "pytorch_half_pixel",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
_ROUNDING = ("round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "")
_PIECE = re.compile(r"([A-Z])|(\d+)([a-z])")


def spatial_axes(name: str, layout: str, spatial: str) -> tuple[tuple[int, ...], int]:
    """The axes of the spatial letters in a layout such as ``NCHW``, ``NHWC`` or ``NCHW4c``, and the layout's rank.

    Blocks of batch and channels are axes like others; blocks of a spatial dimension are refused.
    """
    pieces = [m.group(1) or m.group(3) for m in _PIECE.finditer(layout)]
    whole = "".join(m.group(0) for m in _PIECE.finditer(layout))
    upper = sorted(p for p in pieces if p.isupper())
    blocks = [p for p in pieces if p.islower()]
    if whole != layout or upper != sorted("NC" + spatial) or any(b not in "nc" for b in blocks):
        fail(f"{name}: unknown layout", f"an order of the letters NC{spatial}", repr(layout))
    return tuple(pieces.index(letter) for letter in spatial), len(pieces)


class _Plan:
    """The attributes of a resize, checked."""

    def __init__(self, name: str, spatial: str, attrs: dict[str, Any]) -> None:
        self.name = name
        self.axes, self.rank = spatial_axes(name, attrs["layout"], spatial)
        self.method, self.mode = attrs["method"], attrs["coordinate_transformation_mode"]
        self.rounding = attrs["rounding_method"]
        self.alpha, self.exclude = attrs["cubic_alpha"], bool(attrs["cubic_exclude"])
        self.outside = attrs["extrapolation_value"]
        self.dtype = attrs["out_dtype"]
        for what, value, known in (
            ("method", self.method, tuple(_TAPS)),
            ("coordinate_transformation_mode", self.mode, _MODES),
            ("rounding_method", self.rounding, _ROUNDING),
        ):
            if value not in known:
                fail(f"{name}: unknown {what}", " or ".join(repr(k) for k in known), repr(value))
        self.taps = _TAPS[self.method]
        roi = attrs["roi"] or (0.0,) * (2 * len(spatial))
        if len(roi) == 1:
            roi = roi * (2 * len(spatial))
        if len(roi) != 2 * len(spatial):
            fail(f"{name}: roi needs a start and an end for each dimension", str(2 * len(spatial)), str(len(roi)))
        self.region = list(zip(roi[: len(spatial)], roi[len(spatial) :], strict=True))

    @property
    def cropped(self) -> bool:
        return bool(self.mode == "tf_crop_and_resize")

    def sizes(self, size: Sequence[Any]) -> list[Any]:
        if len(size) == 1:
            size = list(size) * len(self.axes)
        if len(size) != len(self.axes):
            fail(f"{self.name}: a size for each spatial dimension", str(len(self.axes)), str(len(size)))
        return list(size)

    def result(self, dims: Sequence[Expr], size: Sequence[Expr]) -> tuple[Expr, ...]:
        """The shape of the result."""
        found = list(dims)
        for axis, wanted in zip(self.axes, self.sizes(size), strict=True):
            for what, extent in (("size", wanted), ("data's extent", dims[axis])):
                if isinstance(extent, IntImm) and extent.value < 1:
                    fail(f"{self.name}: the {what} must be positive", "at least 1", str(extent.value))
            found[axis] = wanted
        return tuple(found)


# ------------------------------------------------------------------------------------------------------------- lowering


def _fraction(plan: _Plan, x: Expr, extent: Expr, size: Expr) -> tuple[Expr, Expr]:
    """The coordinate in the data of place ``x`` of the result as an exact fraction of int64 numbers."""
    one, two = int64(1), int64(2)
    if plan.mode == "align_corners":
        below = E.Sub(size, one)
        return E.Select(E.GT(below, int64(0)), E.Mul(x, E.Sub(extent, one)), int64(0)), E.Max(below, one)
    if plan.mode == "asymmetric":
        return E.Mul(x, extent), size
    middle = E.Mul(E.Add(E.Mul(x, two), one), extent)
    if plan.mode == "tf_half_pixel_for_nn":
        return middle, E.Mul(size, two)
    top: Expr = E.Sub(middle, size)
    if plan.mode == "pytorch_half_pixel":
        top = E.Select(E.GT(size, one), top, int64(0))
    return top, E.Mul(size, two)


def _crop_coordinate(x: Expr, extent: Expr, size: Expr, region: tuple[float, float]) -> Expr:
    """The coordinate in a region of the data, float64."""
    start, end = (const(v, "float64") for v in region)
    last = cast("float64", E.Sub(extent, int64(1)))
    step = E.Div(E.Mul(E.Sub(end, start), last), cast("float64", E.Max(E.Sub(size, int64(1)), int64(1))))
    middle = E.Mul(E.Mul(const(0.5, "float64"), E.Add(start, end)), last)
    return E.Select(E.GT(size, int64(1)), E.Add(E.Mul(start, last), E.Mul(cast("float64", x), step)), middle)


def _nearest_exact(rounding: str, top: Expr, bottom: Expr) -> Expr:
    """The integer that a rounding method gives for a fraction."""
    two = int64(2)
    if rounding == "floor":
        return E.FloorDiv(top, bottom)
    if rounding == "ceil":
        return E.Sub(int64(0), E.FloorDiv(E.Sub(int64(0), top), bottom))
    twice, up = E.Mul(bottom, two), E.Add(E.Mul(top, two), bottom)
    above = E.FloorDiv(up, twice)
    if rounding == "round_prefer_ceil":
        return above
    tie = E.EQ(E.FloorMod(up, twice), int64(0))
    if rounding == "round_prefer_floor":
        return E.Select(tie, E.Sub(above, int64(1)), above)
    odd = E.EQ(E.FloorMod(above, two), int64(1))
    return E.Select(E.And(tie, odd), E.Sub(above, int64(1)), above)


def _nearest_float(rounding: str, at: Expr) -> Expr:
    half = const(0.5, "float64")
    if rounding in ("floor", "ceil"):
        at = intrinsic(rounding, at)
    elif rounding == "round_prefer_ceil":
        at = intrinsic("floor", E.Add(at, half))
    elif rounding == "round_prefer_floor":
        at = intrinsic("ceil", E.Sub(at, half))
    else:
        at = intrinsic("round", at)
    return cast("int64", at)


def _cubic_weight(distance: Expr, alpha: float, wide: str) -> Expr:
    """Keys' cubic at a distance from the coordinate, below 2."""
    a, d = const(alpha, wide), distance
    one, two, three = (const(v, wide) for v in (1, 2, 3))
    near = E.Add(E.Mul(E.Mul(E.Sub(E.Mul(E.Add(a, two), d), E.Add(a, three)), d), d), one)
    far = E.Mul(E.Sub(E.Mul(E.Add(E.Mul(E.Sub(d, const(5, wide)), d), const(8, wide)), d), const(4, wide)), a)
    return E.Select(E.LE(d, one), near, far)


class _Line:
    """Where the taps of one dimension lie, and what each counts: small tables beside the image's loops."""

    def __init__(self, plan: _Plan, extent: Expr, size: Expr, d: int, wide: str) -> None:
        self.plan, self.extent, self.size, self.region = plan, extent, size, plan.region[d]
        self.first = te.compute((size,), self._first, "resize_first")
        self.rest: te.TensorValue | None = None
        self.weights: te.TensorValue | None = None
        if plan.taps > 1:
            self.rest = te.compute((size,), lambda x: cast(wide, self._rest(x)), "resize_rest")
            self.weights = self._weights(wide)

    def _at(self, x: Expr) -> Expr:
        return _crop_coordinate(x, self.extent, self.size, self.region)

    def _first(self, x: Expr) -> Expr:
        """The nearest place, or the place at or below the coordinate."""
        rounding = self.plan.rounding if self.plan.taps == 1 else "floor"
        if self.plan.cropped:
            return _nearest_float(rounding, self._at(x))
        return _nearest_exact(rounding, *_fraction(self.plan, x, self.extent, self.size))

    def _rest(self, x: Expr) -> Expr:
        """How far the coordinate is above its place."""
        if self.plan.cropped:
            return E.Sub(self._at(x), intrinsic("floor", self._at(x)))
        top, bottom = _fraction(self.plan, x, self.extent, self.size)
        return E.Div(cast("float64", E.FloorMod(top, bottom)), cast("float64", bottom))

    def _weights(self, wide: str) -> te.TensorValue:
        assert self.rest is not None
        rest, first, plan = self.rest, self.first, self.plan
        if plan.taps == 2:
            return te.compute(
                (self.size, int64(2)),
                lambda x, t: E.Select(E.EQ(t, int64(0)), E.Sub(const(1, wide), rest[x]), rest[x]),
                "resize_weight",
            )

        def cubic(x: Expr, t: Expr) -> Expr:
            weight = _cubic_weight(absolute(E.Sub(cast(wide, E.Sub(t, int64(1))), rest[x])), plan.alpha, wide)
            if not plan.exclude:
                return weight
            place = E.Add(first[x], E.Sub(t, int64(1)))
            inside = E.And(E.GE(place, int64(0)), E.LT(place, self.extent))
            return E.Select(inside, weight, const(0, wide))

        weights = te.compute((self.size, int64(4)), cubic, "resize_weight")
        if not plan.exclude:
            return weights
        tap = te.reduce_axis((0, 4), "t")
        total = te.compute((self.size,), lambda x: te.sum(weights[x, tap.var], axis=tap), "resize_total")
        return te.compute((self.size, int64(4)), lambda x, t: E.Div(weights[x, t], total[x]), "resize_weight")

    def place(self, x: Expr, tap: int) -> Expr:
        offset = tap - (1 if self.plan.taps == 4 else 0)
        at = E.Add(self.first[x], int64(offset)) if offset else self.first[x]
        return E.Max(E.Min(at, E.Sub(self.extent, int64(1))), int64(0))

    def inside(self, x: Expr) -> Expr:
        """Whether the coordinate of a crop lies in the data."""
        at = self._at(x)
        return E.And(E.GE(at, const(0, "float64")), E.LE(at, cast("float64", E.Sub(self.extent, int64(1)))))


def _lower(plan: _Plan, data: te.TensorValue, size: Sequence[Expr]) -> te.TensorValue:
    size = plan.sizes(size)
    dims = plan.result(data.shape, size)
    dtype = plan.dtype or data.dtype
    wide = "float64" if data.dtype == "float64" else "float32"
    lines = [_Line(plan, data.shape[a], s, d, wide) for d, (a, s) in enumerate(zip(plan.axes, size, strict=True))]

    def value(i: Sequence[Any], places: tuple[Expr, ...]) -> Expr:
        """The sum over the taps of the dimensions that have no place yet."""
        d = len(places)
        if d == len(lines):
            index = list(i)
            for axis, place in zip(plan.axes, places, strict=True):
                index[axis] = place
            found = data[tuple(index)]
            return found if plan.taps == 1 else cast(wide, found)
        line, x = lines[d], i[plan.axes[d]]
        total: Expr | None = None
        for tap in range(plan.taps):
            part = value(i, (*places, line.place(x, tap)))
            if line.weights is not None:
                part = E.Mul(part, line.weights[x, int64(tap)])
            total = part if total is None else E.Add(total, part)
        assert total is not None
        return total

    def body(*i: Any) -> Expr:
        result = value(i, ())
        if plan.cropped:
            inside: Expr = const(True)
            for line, axis in zip(lines, plan.axes, strict=True):
                inside = E.And(inside, line.inside(i[axis]))
            result = E.Select(inside, result, const(_as(plan.outside, E.scalar_dtype(result)), E.scalar_dtype(result)))
        return cast(dtype, result)

    return te.compute(dims, body, "resize")


def _as(value: float, dtype: str) -> Any:
    return value if dtypes.is_float(dtype) else int(value)


# ------------------------------------------------------------------------------------------------------------ reference


def _ref_line(plan: _Plan, extent: int, size: int, d: int, wide: Any) -> tuple[Any, Any, Any]:
    """Places and weights of the taps, (size, taps), and which places of the result lie in the data."""
    places = np.zeros((size, plan.taps), "int64")
    rest = np.zeros(size, "float64")
    inside = np.ones(size, bool)
    lead = 1 if plan.taps == 4 else 0
    for x in range(size):
        if plan.cropped:
            start, end = plan.region[d]
            last = extent - 1
            at = start * last + x * ((end - start) * last / (size - 1)) if size > 1 else 0.5 * (start + end) * last
            inside[x] = 0 <= at <= last
            top, bottom = at, 1.0
        else:
            top, bottom = {
                "half_pixel": ((2 * x + 1) * extent - size, 2 * size),
                "pytorch_half_pixel": ((2 * x + 1) * extent - size if size > 1 else 0, 2 * size),
                "align_corners": (x * (extent - 1) if size > 1 else 0, max(size - 1, 1)),
                "asymmetric": (x * extent, size),
                "tf_half_pixel_for_nn": ((2 * x + 1) * extent, 2 * size),
            }[plan.mode]
        if plan.taps == 1:
            first = _ROUND[plan.rounding](top, bottom)
        else:
            first, rest[x] = top // bottom, (top % bottom) / bottom
        places[x] = int(first) - lead + np.arange(plan.taps)
    rest = rest.astype(wide)
    one = wide.type(1)
    if plan.taps == 1:
        weights = np.ones((size, 1), wide)
    elif plan.taps == 2:
        weights = np.stack([one - rest, rest], 1)
    else:
        gap = np.abs(np.arange(-1, 3).astype(wide) - rest[:, None])
        a = wide.type(plan.alpha)
        near = ((a + 2) * gap - (a + 3)) * gap * gap + 1
        far = (((gap - 5) * gap + 8) * gap - 4) * a
        weights = np.where(gap <= 1, near, far)
        if plan.exclude:
            weights = np.where((places >= 0) & (places < extent), weights, wide.type(0))
            weights = weights / weights.sum(axis=1, keepdims=True)
    return np.clip(places, 0, extent - 1), weights.astype(wide), inside


_ROUND: dict[str, Callable[[Any, Any], Any]] = {
    "floor": lambda top, bottom: top // bottom,
    "ceil": lambda top, bottom: -(-top // bottom),
    "round_prefer_ceil": lambda top, bottom: (2 * top + bottom) // (2 * bottom),
    "round_prefer_floor": lambda top, bottom: -((bottom - 2 * top) // (2 * bottom)),
    "round": lambda top, bottom: np.rint(top / bottom),
    "": lambda top, bottom: np.rint(top / bottom),
}


def _ref(plan: _Plan, data: Any, size: Sequence[int]) -> Any:
    sizes = plan.sizes(size)
    wide = np.dtype("float64" if data.dtype == np.float64 else "float32")
    result = list(data.shape)
    for axis, extent in zip(plan.axes, sizes, strict=True):
        result[axis] = extent
    if 0 in result:  # nothing is read
        return np.zeros(result, dtypes.to_numpy(plan.dtype or dtypes.from_numpy(data.dtype)))
    x = data if plan.taps == 1 else data.astype(wide)
    outside = np.zeros(sizes, bool)
    for d in reversed(range(len(sizes))):
        axis = plan.axes[d]
        places, weights, inside = _ref_line(plan, data.shape[axis], sizes[d], d, wide)
        if plan.taps == 1:
            x = np.take(x, places[:, 0], axis)
        else:
            along = [-1 if a == axis else 1 for a in range(x.ndim)]
            parts = [np.take(x, places[:, t], axis) * weights[:, t].reshape(along) for t in range(plan.taps)]
            x = parts[0]
            for part in parts[1:]:
                x = x + part
        outside |= ~inside.reshape([-1 if n == d else 1 for n in range(len(sizes))])
    order = [plan.axes.index(a) for a in sorted(plan.axes)]
    spread = np.expand_dims(outside.transpose(order), [a for a in range(x.ndim) if a not in plan.axes])
    x = np.where(spread, np.asarray(plan.outside).astype(x.dtype), x)
    dtype = plan.dtype or dtypes.from_numpy(data.dtype)
    return dtypes.convert(x, dtype)


# --------------------------------------------------------------------------------------------------------- declarations


def _infer(plan: _Plan, data: TensorType, size: Expr) -> Type:
    dtype = plan.dtype or data.dtype
    if data.ndim not in (-1, plan.rank):
        fail(f"{plan.name}: wrong rank", f"{plan.rank} dimensions", f"{data.ndim} dimensions")
    if shape_rank(size) not in (1, len(plan.axes)):
        fail(f"{plan.name}: a size for each spatial dimension", str(len(plan.axes)), str(shape_rank(size)))
    dims, values = tensor_dims(data), shape_values(size)
    if dims is None or values is None:
        return TensorType(None, dtype, plan.rank)
    return tensor([SHAPES.simplify(d) for d in plan.result(dims, values)], dtype)


def _samples(letters: str) -> list[Sample]:
    n = len(letters)
    small, big = ShapeOf((2, 3, 2)[:n]), ShapeOf((4, 7, 5)[-n:])
    shape = (1, 2, 4, 3, 3)[: n + 2]
    found = [
        sample(shape, big),
        sample(shape, big, method="nearest_neighbor", coordinate_transformation_mode="asymmetric"),
        sample(
            shape,
            small,
            roi=(0.25,) * n + (1.25,) * n,
            coordinate_transformation_mode="tf_crop_and_resize",
            extrapolation_value=7.5,
        ),
        sample((1, *shape[2:], 2), small, layout=f"N{letters}C", coordinate_transformation_mode="align_corners"),
    ]
    if n == 3:
        return found
    return [
        *found,
        sample(shape, big, method="cubic"),
        sample(shape, small, method="cubic", cubic_alpha=-0.5, cubic_exclude=1),
        sample(shape, small, method="nearest_neighbor", rounding_method="round_prefer_ceil"),
        sample((1, 1, 4, 3, 4), small, layout="NCHW4c"),
        sample(np.arange(18).reshape(1, 2, 3, 3).astype("int8"), small, out_dtype="float32"),
        sample(shape, ShapeOf((1, 1)), coordinate_transformation_mode="pytorch_half_pixel"),
    ]


def _declare(letters: str, default_rounding: str) -> Op:
    n = len(letters)
    name = f"image.resize{n}d"
    data_letters = "NC" + letters

    def prepare(data: Any, size: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        if isinstance(size, int) or (isinstance(size, Expr) and E.is_scalar(size)):
            size = [size] * n  # one size counts for all
        return (data, size, *args), kwargs

    def settled(attrs: Mapping[str, Any]) -> Mapping[str, Any]:
        roi = (0.0,) if attrs["roi"] is None else attrs["roi"]
        return {**attrs, "roi": roi * (2 * n) if len(roi) == 1 else roi}

    def plan(attrs: dict[str, Any]) -> _Plan:
        return _Plan(name, letters, attrs)

    def lower(data: te.TensorValue, size: Sequence[Expr], **attrs: Any) -> te.TensorValue:
        return _lower(plan(attrs), data, size)

    def ref(data: Any, size: Sequence[int], **attrs: Any) -> Any:
        return _ref(plan(attrs), np.asarray(data), size)

    def rule(
        data: TensorType,
        size: Shape,
        roi: Floats = None,
        layout: str = data_letters,
        method: str = "linear",
        coordinate_transformation_mode: str = "half_pixel",
        rounding_method: str = default_rounding,
        cubic_alpha: float = -0.75,
        cubic_exclude: int = 0,
        extrapolation_value: float = 0.0,
        out_dtype: DType = None,
    ) -> Type:
        attrs = {k: v for k, v in locals().items() if k not in ("data", "size", "plan")}
        return _infer(plan(attrs), data, size)

    rule.__doc__ = (
        f"The image at another ``size`` ({', '.join(letters)}), in any layout. ``method``: "
        '``"nearest_neighbor"`` (by ``rounding_method``), ``"linear"``, ``"cubic"`` (``cubic_alpha``; '
        "``cubic_exclude`` leaves out what is beyond the edge, else the edge is repeated). "
        "``coordinate_transformation_mode`` as in ONNX "
        'Resize; for ``"tf_crop_and_resize"`` ``roi`` holds the starts, then the ends of the region, and what lies '
        "outside is ``extrapolation_value``. Places are found in exact integer arithmetic; values are computed in "
        "float32 (float64 for float64)."
    )
    return operator(
        name,
        fusion=Fusion.INJECTIVE,
        lower=lower,
        ref=ref,
        samples=lambda: _samples(letters),
        prepare=prepare,
        relax_text=RelaxText(floats=("roi",)),
        settle_attrs=settled,
    )(rule)


resize2d = _declare("HW", "round")
resize3d = _declare("DHW", "")
