"""More operators that move elements: split, stack, repeat, tile, flip, outer, pad, pixel_shuffle."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from supple.base.errors import ExecutionError
from supple.build import te
from supple.ir import expr as E
from supple.ir.expr import const, int64
from supple.ir.intrinsics import intrinsic
from supple.ir.node import Expr, Type
from supple.ir.op import Fusion, RelaxText
from supple.ir.types import TensorType, TupleType
from supple.ops.declare import Axes, Axis, Place, Sections, Tensors, fail, operator, sample
from supple.ops.manipulate import reshape_tensor
from supple.ops.requirements import require_at_least, require_equal
from supple.ops.shapes import alike, normalize_axis, require_known_rank, same_dtype
from supple.sym.relate import dim_text, tensor, tensor_dims
from supple.sym.simplify import SHAPES, product

# --------------------------------------------------------------------------------------------------------------- split


def _pieces(extent: Expr, indices_or_sections: Any) -> list[tuple[Expr, Expr]]:
    """Start and extent of every piece."""
    if isinstance(indices_or_sections, int):
        sections = indices_or_sections
        size = SHAPES.simplify(E.FloorDiv(E.Add(extent, int64(sections - 1)), int64(sections)))
        starts = [SHAPES.simplify(E.Mul(size, int64(n))) for n in range(sections)]
        last = SHAPES.simplify(E.Sub(extent, starts[-1]))
        return [(start, size) for start in starts[:-1]] + [(starts[-1], last)]
    inner = [SHAPES.simplify(E.Max(E.Min(int64(i), extent), int64(0))) for i in indices_or_sections]
    bounds: list[Expr] = [int64(0), *inner, extent]
    return [(low, SHAPES.simplify(E.Max(E.Sub(high, low), int64(0)))) for low, high in itertools.pairwise(bounds)]


def _split_lower(x: te.TensorValue, indices_or_sections: Any, axis: int) -> te.TensorValue | list[te.TensorValue]:
    place = normalize_axis("split", axis, x.ndim)

    def piece(n: int, start: Expr, size: Expr) -> te.TensorValue:
        dims = (*x.shape[:place], size, *x.shape[place + 1 :])
        return te.compute(dims, lambda *i: x[(*i[:place], E.Add(start, i[place]), *i[place + 1 :])], f"T_split_{n}")

    pieces = [piece(n, *p) for n, p in enumerate(_pieces(x.shape[place], indices_or_sections))]
    return pieces if len(pieces) > 1 else pieces[0]


def _split_ref(x: Any, indices_or_sections: Any, axis: int) -> Any:
    extent = x.shape[axis]
    if isinstance(indices_or_sections, int):
        size = -(-extent // indices_or_sections)
        if size * (indices_or_sections - 1) > extent:
            raise ExecutionError(f"split: nothing is left of an extent of {extent} for the last of its sections")
        indices_or_sections = [size * n for n in range(1, indices_or_sections)]
    bounds = [0, *(max(min(int(i), extent), 0) for i in indices_or_sections), extent]
    places = [np.arange(low, max(low, high)) for low, high in itertools.pairwise(bounds)]
    pieces = tuple(np.take(x, place, axis) for place in places)
    return pieces if len(pieces) > 1 else pieces[0]


@operator(
    fusion=Fusion.INJECTIVE,
    lower=_split_lower,
    ref=_split_ref,
    samples=lambda: [
        sample((4, 6), indices_or_sections=3, axis=1),
        sample((7, 2), indices_or_sections=3, axis=0),
        sample((7, 2), indices_or_sections=[2, 5], axis=0),
        sample((3,), indices_or_sections=[1, 9]),
        sample((3, 2), indices_or_sections=1),
    ],
)
def split(x: TensorType, indices_or_sections: Sections, axis: int = 0) -> Type:
    """A tuple of pieces along ``axis``: that many, of one size but for the last, which has what is left; or those
    between the given indices (below 0 they count as 0, beyond the extent as the extent). One piece alone is a tensor,
    as in Relax."""
    if isinstance(indices_or_sections, int) and indices_or_sections < 1:
        fail("split: needs at least one section", "a positive number", str(indices_or_sections))
    dims = tensor_dims(x)
    if x.ndim != -1:
        normalize_axis("split", axis, x.ndim)
    if dims is None:
        count = indices_or_sections if isinstance(indices_or_sections, int) else len(indices_or_sections) + 1
        if count == 1:
            return x
        return _as_pieces([TensorType(None, x.dtype, x.ndim) for _ in range(count)])
    place = normalize_axis("split", axis, len(dims))
    pieces = _pieces(dims[place], indices_or_sections)
    if isinstance(indices_or_sections, int):
        text = f"split: nothing is left of an extent of {dim_text(dims[place])} for the last of its sections"
        require_at_least(text, 0, pieces[-1][1])
    return _as_pieces([tensor((*dims[:place], size, *dims[place + 1 :]), x.dtype) for _, size in pieces])


def _as_pieces(types: list[TensorType]) -> Type:
    return TupleType(tuple(types)) if len(types) > 1 else types[0]


# --------------------------------------------------------------------------------------------------------------- stack


def _stack_lower(tensors: Sequence[te.TensorValue], axis: int) -> te.TensorValue:
    place = normalize_axis("stack", axis, tensors[0].ndim + 1)
    shape = tensors[0].shape

    def body(*i: Any) -> Expr:
        rest = (*i[:place], *i[place + 1 :])
        value = tensors[-1][rest]
        for n in reversed(range(len(tensors) - 1)):
            value = intrinsic("if_then_else", E.EQ(i[place], int64(n)), tensors[n][rest], value)
        return value

    return te.compute((*shape[:place], int64(len(tensors)), *shape[place:]), body, "T_stack")


@operator(
    fusion=Fusion.INJECTIVE,
    device=Place.ANY,
    lower=_stack_lower,
    ref=lambda tensors, axis: np.stack(tensors, axis),
    samples=lambda: [sample([(2, 3), (2, 3)]), sample([(2, 3), (2, 3), (2, 3)], axis=-1), sample([(0,)])],
    settle_attrs=lambda attrs: {**attrs, "axis": attrs["axis"] or 0},
)
def stack(tensors: Tensors, axis: Axis = 0) -> Type:
    """Tensors of one shape side by side along a new axis. Where it is not proved that their sizes are equal, that is
    checked when it runs, and the type says the rank alone."""
    if not tensors:
        fail("stack: needs at least one tensor", "a non-empty tuple", "()")
    first = tensors[0]
    dims = tensor_dims(first)
    proved, dtype = True, first.dtype
    for n, other in enumerate(tensors[1:], 1):
        dtype = same_dtype("stack", first, other) and dtype
        given = tensor_dims(other)
        if other.ndim not in (-1, first.ndim):
            wanted = f"{first.ndim} dimensions" if first.ndim != -1 else "an unknown rank"
            fail("stack: the tensors have different ranks", wanted, f"{other.ndim} dimensions")
        if dims is None or given is None:
            proved = False
            continue
        for a, b in zip(dims, given, strict=True):
            proved &= require_equal(f"stack: tensor {n} has another shape", a, b)
    require_known_rank("stack", "the tensors", first)
    place = normalize_axis("stack", axis or 0, first.ndim + 1)
    if dims is None or not proved:
        return TensorType(None, dtype, first.ndim + 1)
    return tensor((*dims[:place], int64(len(tensors)), *dims[place:]), dtype)


# -------------------------------------------------------------------------------------------------- repeat, tile, flip


def _repeat_lower(data: te.TensorValue, repeats: int, axis: Axis) -> te.TensorValue:
    if axis is None and data.ndim != 1:
        data = reshape_tensor(data, (product(list(data.shape)),))
    place = 0 if axis is None else normalize_axis("repeat", axis, data.ndim)
    dims = list(data.shape)
    dims[place] = SHAPES.simplify(E.Mul(dims[place], int64(repeats)))

    def body(*i: Any) -> Expr:
        return data[(*i[:place], E.FloorDiv(i[place], int64(repeats)), *i[place + 1 :])]

    return te.compute(dims, body, "T_repeat")


@operator(
    fusion=Fusion.BROADCAST,
    lower=_repeat_lower,
    ref=lambda data, repeats, axis: np.repeat(data, repeats, axis),
    samples=lambda: [
        sample((2, 3), repeats=2, axis=1),
        sample((4,), repeats=3),
        sample((2, 3), repeats=1, axis=0),
        sample((2, 3), repeats=2),
    ],
)
def repeat(data: TensorType, repeats: int, axis: Axis = None) -> Type:
    """Each element ``repeats`` times along ``axis``. Without an axis, ``data`` is flattened first."""
    if repeats < 0:
        fail("repeat: the count is negative", "a size", str(repeats))
    dims = tensor_dims(data)
    if axis is not None and data.ndim != -1:
        normalize_axis("repeat", axis, data.ndim)
    if dims is None:
        return TensorType(None, data.dtype, 1 if axis is None else data.ndim)
    if axis is None:
        dims = (product(list(dims)),)
    place = 0 if axis is None else normalize_axis("repeat", axis, len(dims))
    return tensor((*dims[:place], E.Mul(dims[place], int64(repeats)), *dims[place + 1 :]), data.dtype)


def _tile_dims(dims: Sequence[Expr], repeats: Sequence[int]) -> tuple[list[Expr], list[int]]:
    ndim = max(len(dims), len(repeats))
    padded = [*([int64(1)] * (ndim - len(dims))), *dims]
    counts = [*([1] * (ndim - len(repeats))), *repeats]
    return [SHAPES.simplify(E.Mul(d, int64(c))) for d, c in zip(padded, counts, strict=True)], counts


def _tile_lower(data: te.TensorValue, repeats: Axes) -> te.TensorValue:
    dims, _ = _tile_dims(data.shape, repeats or ())
    extra = len(dims) - data.ndim

    def body(*i: Any) -> Expr:
        return data[tuple(E.FloorMod(index, dim) for index, dim in zip(i[extra:], data.shape, strict=True))]

    return te.compute(dims, body, "T_tile")


@operator(
    fusion=Fusion.BROADCAST,
    lower=_tile_lower,
    ref=lambda data, repeats: np.tile(data, repeats),
    samples=lambda: [sample((2, 3), repeats=[2, 1]), sample((2,), repeats=[3, 2]), sample((2, 3), repeats=2)],
)
def tile(data: TensorType, repeats: Axes) -> Type:
    """The tensor repeated as a whole along each axis (numpy's rules for missing axes)."""
    dims = tensor_dims(data)
    if any(r < 0 for r in repeats or ()):
        fail("tile: a count is negative", "sizes", str(repeats))
    if dims is None:
        if not repeats and data.ndim != -1:
            return data
        return TensorType(None, data.dtype, -1 if data.ndim == -1 else max(data.ndim, len(repeats or ())))
    return tensor(_tile_dims(dims, repeats or ())[0], data.dtype)


def _flip_lower(data: te.TensorValue, axis: int) -> te.TensorValue:
    place = normalize_axis("flip", axis, data.ndim)

    def body(*i: Any) -> Expr:
        last = E.Sub(data.shape[place], int64(1))
        return data[(*i[:place], E.Sub(last, i[place]), *i[place + 1 :])]

    return te.compute(data.shape, body, "T_flip")


@operator(
    fusion=Fusion.INJECTIVE,
    lower=_flip_lower,
    ref=lambda data, axis: np.flip(data, axis),
    samples=lambda: [sample((2, 3), axis=1), sample((5,), axis=-1), sample((0, 2), axis=0)],
)
def flip(data: TensorType, axis: int) -> Type:
    """The elements in reverse order along ``axis``."""
    if data.ndim != -1:
        normalize_axis("flip", axis, data.ndim)
    return data


# ------------------------------------------------------------------------------------------------- outer, pad, shuffle


@operator(
    fusion=Fusion.BROADCAST,
    lower=lambda x1, x2: te.compute((x1.shape[0], x2.shape[0]), lambda i, j: E.Mul(x1[i], x2[j]), "outer"),
    ref=lambda x1, x2: np.outer(x1, x2),
    samples=lambda: [sample((3,), (4,)), sample((0,), (2,))],
    device=Place.NONE,
)
def outer(x1: TensorType, x2: TensorType) -> Type:
    """``x1[i] * x2[j]`` of two vectors."""
    alike("outer", x1, x2)
    dtype = x1.dtype
    for x in (x1, x2):
        require_known_rank("outer", "an operand", x)
        if x.ndim != 1:
            fail("outer: needs vectors", "1 dimension", f"{x.ndim} dimensions")
    a, b = tensor_dims(x1), tensor_dims(x2)
    return TensorType(None, dtype, 2) if a is None or b is None else tensor((a[0], b[0]), dtype)


_PAD_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _pad_index(index: Expr, extent: Expr, mode: str) -> Expr:
    """Where a padded element comes from."""
    last = E.Sub(extent, int64(1))
    if mode == "replicate":
        return E.Max(E.Min(index, last), int64(0))
    if mode == "circular":
        return E.FloorMod(index, extent)
    distance = E.Max(index, E.Sub(int64(0), index))  # reflect: |i|, then mirrored at the end
    return E.Min(distance, E.Sub(E.Mul(last, int64(2)), distance))


def _pad_lower(data: te.TensorValue, pad_width: Axes, pad_mode: str, pad_value: float) -> te.TensorValue:
    widths = pad_width or ()
    before, after = widths[0::2], widths[1::2]
    dims = [
        SHAPES.simplify(E.Add(dim, int64(low + high))) for dim, low, high in zip(data.shape, before, after, strict=True)
    ]

    def body(*i: Any) -> Expr:
        shifted = [E.Sub(index, int64(low)) if low else index for index, low in zip(i, before, strict=True)]
        if pad_mode != "constant":
            padded = [low or high for low, high in zip(before, after, strict=True)]
            sources = zip(shifted, data.shape, padded, strict=True)
            return data[tuple(_pad_index(s, dim, pad_mode) if p else s for s, dim, p in sources)]
        inside: Expr | None = None
        for index, dim, low, high in zip(shifted, data.shape, before, after, strict=True):
            checks = ([E.GE(index, int64(0))] if low else []) + ([E.LT(index, dim)] if high else [])
            for check in checks:
                inside = check if inside is None else E.And(inside, check)
        value = data[tuple(shifted)]
        if inside is None:
            return value
        return intrinsic("if_then_else", inside, value, const(pad_value, data.dtype))

    return te.compute(dims, body, "pad")


def _pad_ref(data: Any, pad_width: Axes, pad_mode: str, pad_value: float) -> Any:
    widths = list(zip((pad_width or ())[0::2], (pad_width or ())[1::2], strict=True))
    if pad_mode == "constant":
        return np.pad(data, widths, constant_values=np.asarray(pad_value).astype(data.dtype))
    return np.pad(data, widths, mode=_PAD_MODES[pad_mode])  # type: ignore[call-overload]


@operator(
    "nn.pad",
    device=Place.NONE,
    fusion=Fusion.INJECTIVE,
    lower=_pad_lower,
    ref=_pad_ref,
    samples=lambda: [
        sample((2, 3), pad_width=[0, 0, 1, 2]),
        sample((2, 3), pad_width=[1, 1, 0, 1], pad_value=5.0),
        sample((3, 4), pad_width=[1, 2, 3, 1], pad_mode="reflect"),
        sample((3, 4), pad_width=[1, 2, 3, 1], pad_mode="replicate"),
        sample((3, 4), pad_width=[1, 2, 3, 1], pad_mode="circular"),
        sample((0, 2), pad_width=[1, 0, 0, 0]),
    ],
    relax_text=RelaxText(first=("pad_width", "pad_value", "pad_mode")),
    kernel=lambda call: "pad" if call.attrs["pad_mode"] == "constant" else f"{call.attrs['pad_mode']}_pad",
)
def pad(data: TensorType, pad_width: Axes, pad_mode: str = "constant", pad_value: float = 0.0) -> Type:
    """Padding before and after each axis: ``pad_width`` is ``(before_0, after_0, before_1, ...)``; ``pad_mode`` is
    ``"constant"``, ``"reflect"`` (without the edge), ``"replicate"`` or ``"circular"``."""
    widths = pad_width or ()
    if pad_mode not in _PAD_MODES:
        fail("nn.pad: unknown mode", " or ".join(_PAD_MODES), pad_mode)
    if data.ndim != -1 and len(widths) != 2 * data.ndim:
        fail("nn.pad: two widths an axis are needed", f"{2 * data.ndim} widths", f"{len(widths)} widths")
    if any(w < 0 for w in widths):
        fail("nn.pad: a width is negative", "sizes", str(list(widths)), hint="R.strided_slice crops")
    dims = tensor_dims(data)
    if dims is None:
        return TensorType(None, data.dtype, data.ndim)
    for dim, low, high in zip(dims, widths[0::2], widths[1::2], strict=True):
        reach = max(low, high) + (1 if pad_mode == "reflect" else 0)
        if pad_mode in ("reflect", "circular") and max(low, high):
            require_at_least(f"nn.pad: {pad_mode} padding is wider than the tensor", reach, dim)
        if pad_mode == "replicate" and max(low, high):
            require_at_least("nn.pad: nothing to replicate", 1, dim)
    return tensor(
        [E.Add(d, int64(low + high)) for d, low, high in zip(dims, widths[0::2], widths[1::2], strict=True)], data.dtype
    )


def _shuffle_lower(data: te.TensorValue, upscale_factor: int) -> te.TensorValue:
    r = int64(upscale_factor)
    *lead, channels, height, width = data.shape
    dims = [*lead, SHAPES.simplify(E.FloorDiv(channels, int64(upscale_factor**2))), E.Mul(height, r), E.Mul(width, r)]

    def body(*i: Any) -> Expr:
        *batch, c, y, x = i
        offset = E.Add(E.Mul(E.FloorMod(y, r), r), E.FloorMod(x, r))
        channel = E.Add(E.Mul(c, int64(upscale_factor**2)), offset)
        return data[(*batch, channel, E.FloorDiv(y, r), E.FloorDiv(x, r))]

    return te.compute([SHAPES.simplify(d) for d in dims], body, "pixel_shuffle")


def _shuffle_ref(data: Any, upscale_factor: int) -> Any:
    *lead, c, h, w = data.shape
    r = upscale_factor
    n = len(lead)
    split = data.reshape(*lead, c // (r * r), r, r, h, w)
    order = [*range(n), n, n + 3, n + 1, n + 4, n + 2]
    return split.transpose(order).reshape(*lead, c // (r * r), h * r, w * r)


@operator(
    "nn.pixel_shuffle",
    device=Place.NONE,
    fusion=Fusion.INJECTIVE,
    lower=_shuffle_lower,
    ref=_shuffle_ref,
    samples=lambda: [sample((1, 8, 2, 3), upscale_factor=2), sample((9, 1, 2), upscale_factor=3)],
)
def pixel_shuffle(data: TensorType, upscale_factor: int) -> Type:
    """``(..., c r^2, h, w)`` to ``(..., c, h r, w r)`` (Shi et al., 2016)."""
    if upscale_factor < 1:
        fail("nn.pixel_shuffle: the factor must be positive", "a positive number", str(upscale_factor))
    dims = tensor_dims(data)
    require_known_rank("nn.pixel_shuffle", "data", data)
    if data.ndim < 3:
        fail("nn.pixel_shuffle: needs channels, height and width", "at least 3 dimensions", f"{data.ndim} dimensions")
    if dims is None:
        return TensorType(None, data.dtype, data.ndim)
    square = int64(upscale_factor**2)
    text = f"nn.pixel_shuffle: the channels are no multiple of {upscale_factor**2}"
    require_equal(text, int64(0), E.FloorMod(dims[-3], square), f"a multiple of {upscale_factor**2}")
    r = int64(upscale_factor)
    return tensor((*dims[:-3], E.FloorDiv(dims[-3], square), E.Mul(dims[-2], r), E.Mul(dims[-1], r)), data.dtype)
