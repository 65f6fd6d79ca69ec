"""Padding and blocks of ``topi.nn``: borders that repeat what is inside, space put into the batch, larger images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from supple.build import te
from supple.build.te import TensorValue
from supple.ir.expr import GE, LT, Select, int64
from supple.ir.node import Expr
from supple.script import relax as relax_op
from supple.sym.simplify import SHAPES
from supple.topi.apply import apply, named


def _widths(data: TensorValue, before: Sequence[Any], after: Sequence[Any] | None) -> tuple[list[Any], list[Any]]:
    behind = before if after is None else after
    if len(before) != data.ndim or len(behind) != data.ndim:
        raise ValueError(f"topi.nn: a tensor of {data.ndim} dimensions needs as many widths before and behind")
    return list(before), list(behind)


def _padded(mode: str, data: TensorValue, before: Sequence[Any], after: Sequence[Any] | None, name: str) -> TensorValue:
    ahead, behind = _widths(data, before, after)
    widths = [int(getattr(w, "value", w)) for pair in zip(ahead, behind, strict=True) for w in pair]
    return named(apply(relax_op.nn.pad, data, pad_width=widths, pad_mode=mode), name)


def reflect_pad(
    data: TensorValue, pad_before: Sequence[Any], pad_after: Sequence[Any] | None = None, name: str = "ReflectPadInput"
) -> TensorValue:
    """A border that mirrors what is inside, without the edge."""
    return _padded("reflect", data, pad_before, pad_after, name)


def replicate_pad(
    data: TensorValue,
    pad_before: Sequence[Any],
    pad_after: Sequence[Any] | None = None,
    name: str = "ReplicatePadInput",
) -> TensorValue:
    """A border of the edge's values."""
    return _padded("replicate", data, pad_before, pad_after, name)


def circular_pad(
    data: TensorValue,
    pad_before: Sequence[Any],
    pad_after: Sequence[Any] | None = None,
    name: str = "CircularPadInput",
) -> TensorValue:
    """A border of what stands at the other end."""
    return _padded("circular", data, pad_before, pad_after, name)


def mirror_pad(
    data: TensorValue,
    pad_before: Sequence[Any],
    pad_after: Sequence[Any] | None = None,
    mode: str = "SYMMETRIC",
    name: str = "MirrorPadInput",
) -> TensorValue:
    """A border that mirrors what is inside, with the edge (``"SYMMETRIC"``) or without (``"REFLECT"``)."""
    if mode not in ("SYMMETRIC", "REFLECT"):
        raise ValueError(f"topi.nn.mirror_pad: the mode is SYMMETRIC or REFLECT, got {mode!r}")
    ahead, behind = _widths(data, pad_before, pad_after)
    edge = 1 if mode == "SYMMETRIC" else 0
    shape: Any = data.shape
    dims = [SHAPES.simplify(d + a + b) for d, a, b in zip(shape, ahead, behind, strict=True)]

    def inside(at: Any, extent: Any, width: Any) -> Expr:
        place = at - width
        low = Select(LT(place, int64(0)), int64(-edge) - place, place)
        return Select(GE(low, extent), extent * 2 - (2 - edge) - low, low)

    def body(*i: Any) -> Expr:
        return data[tuple(inside(at, d, w) for at, d, w in zip(i, data.shape, ahead, strict=True))]

    return te.compute(dims, body, name)


def space_to_batch_nd(
    data: TensorValue,
    block_shape: Sequence[int],
    pad_before: Sequence[int],
    pad_after: Sequence[int],
    pad_value: float = 0.0,
) -> TensorValue:
    """Blocks of the axes behind the batch, one element each, put into the batch: the axes are padded first."""
    count, rest = len(block_shape), data.ndim - 1 - len(block_shape)
    widths = [0, 0, *(w for pair in zip(pad_before, pad_after, strict=True) for w in pair), *([0] * (2 * rest))]
    padded = apply(relax_op.nn.pad, data, pad_width=widths, pad_value=pad_value)
    shape: Any = padded.shape
    batch, *dims = shape
    parts: list[Any] = [batch]
    for dim, block in zip(dims, block_shape, strict=False):
        parts += [SHAPES.simplify(dim // block), block]
    parts += dims[count:]
    inner = [2 * d + 2 for d in range(count)]
    outer = [2 * d + 1 for d in range(count)]
    tail = range(2 * count + 1, len(parts))
    moved = apply(relax_op.permute_dims, apply(relax_op.reshape, padded, parts), axes=[*inner, 0, *outer, *tail])
    total = batch
    for block in block_shape:
        total = SHAPES.simplify(total * block)
    return apply(relax_op.reshape, moved, [total, *(parts[o] for o in outer), *dims[count:]])


def batch_to_space_nd(
    data: TensorValue,
    block_shape: Sequence[int],
    crop_begin_list: Sequence[int],
    crop_end_list: Sequence[int],
) -> TensorValue:
    """Undoes `space_to_batch_nd`: blocks out of the batch into the axes behind it, whose ends are cut off."""
    count = len(block_shape)
    shape: Any = data.shape
    batch, *dims = shape
    for block in block_shape:
        batch = SHAPES.simplify(batch // block)
    apart = apply(relax_op.reshape, data, [*block_shape, batch, *dims])
    order = [count]
    for d in range(count):
        order += [count + 1 + d, d]
    moved = apply(relax_op.permute_dims, apart, axes=[*order, *range(2 * count + 1, apart.ndim)])
    grown: list[Any] = [SHAPES.simplify(dim * block) for dim, block in zip(dims, block_shape, strict=False)]
    whole = apply(relax_op.reshape, moved, [batch, *grown, *dims[count:]])
    ends: list[Any] = [SHAPES.simplify(dim - cut) for dim, cut in zip(grown, crop_end_list, strict=True)]
    return apply(relax_op.strided_slice, whole, list(range(1, count + 1)), list(crop_begin_list), ends)
