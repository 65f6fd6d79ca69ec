"""Regions of buffers from indices: ``A[0:4, i]`` outside of scripts."""

from __future__ import annotations

from typing import Any

from supple.ir.expr import Add, IntImm, Range, Sub, Var, as_expr, const, scalar_dtype
from supple.ir.loop import BufferRegion, buffer_type
from supple.ir.node import Expr
from supple.ir.operators import BUILD
from supple.ir.structural import structural_equal


def distance(low: Expr, high: Expr) -> Expr:
    """``high - low`` as the extent of a range: literals are folded, ``low + e`` gives back ``e``."""
    if isinstance(low, IntImm) and isinstance(high, IntImm):
        return const(high.value - low.value, low.dtype)
    if isinstance(low, IntImm) and low.value == 0:
        return high
    if isinstance(high, Add) and structural_equal(high.a, low):
        return high.b
    return Sub(high, low)


def _ends(item: slice, extent: Expr) -> tuple[Expr, Expr]:
    """Both ends of a slice; a Python int follows the dtype of the other end, else of the extent."""
    start, stop = 0 if item.start is None else item.start, extent if item.stop is None else item.stop
    dtype = next((scalar_dtype(e) for e in (start, stop) if isinstance(e, Expr)), scalar_dtype(extent))
    return as_expr(start, dtype), as_expr(stop, dtype)


def region(buffer: Var, index: tuple[Any, ...]) -> BufferRegion:
    """The region of an index, one slice, `Range` or scalar a dimension; raises ``IndexError`` for anything else."""
    shape = buffer_type(buffer).shape
    if len(index) != len(shape):
        raise IndexError(f"{buffer.name} has {len(shape)} dimensions, but {len(index)} indices were given")
    ranges = []
    for item, extent in zip(index, shape):
        if isinstance(item, slice):
            if item.step is not None and item.step != 1:
                raise IndexError("a region of a buffer has no step")
            low, high = _ends(item, extent)
            item = Range(low, distance(low, high))
        elif not isinstance(item, Range):
            point = as_expr(item, scalar_dtype(extent))
            item = Range(point, const(1, scalar_dtype(point)))
        ranges.append(item)
    return BufferRegion(buffer, tuple(ranges))


BUILD["region"] = region
