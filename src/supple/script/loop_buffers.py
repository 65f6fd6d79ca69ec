"""Buffers, indices and regions of loop functions."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from supple.base.errors import NotSupportedError, TypeCheckError
from supple.base.source import Span
from supple.ir.conventions import conventions
from supple.ir.expr import (
    BufferLoad,
    IntImm,
    Ramp,
    Range,
    Var,
    const,
    is_buffer,
    scalar_dtype,
)
from supple.ir.loop import (
    AllocBuffer,
    BufferRegion,
    DeclBuffer,
    MatchBufferRegion,
    buffer_type,
)
from supple.ir.node import Expr
from supple.ir.region import distance
from supple.ir.types import BufferType, PrimType
from supple.script.evaluate import describe
from supple.script.forms import Declaration, as_dtype, as_name
from supple.script.loop_state import LoopState, as_int, names_of, pair

# ------------------------------------------------------------------------------------------------------------- buffers


def _shape(p: LoopState, shape: Any) -> tuple[Expr, ...]:
    if isinstance(shape, (tuple, list)):
        return tuple(p.dimension(s) for s in shape)
    return (p.dimension(shape),)


def make_buffer_type(
    p: LoopState,
    shape: Any,
    dtype: Any = "float32",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = -1,
    offset_factor: int = 0,
    byte_offset: Any = None,
    layout: Any = None,
) -> BufferType:
    """A buffer's type from what ``T.Buffer`` and its relatives take."""
    if byte_offset is not None:
        raise NotSupportedError("byte_offset is not supported: give elem_offset, in elements")
    if layout not in (None, "default"):
        raise NotSupportedError("layouts of buffers belong to the CUDA tile dialect, which is not supported")
    name = as_dtype(dtype, "dtype")
    if data is not None and not isinstance(data, Expr):
        raise TypeCheckError("data must be a pointer", None, "A.data", describe(data))
    return BufferType(
        _shape(p, shape),
        name,
        as_name(scope, "scope"),
        () if strides is None else tuple(p.dimension(s) for s in strides),
        None if elem_offset is None else p.dimension(elem_offset),
        data,
        64 if align <= 0 else align,
        max(offset_factor, 0),
    )


def _declaring(place: Callable[[LoopState, Var, Span | None], None]) -> Callable[..., Declaration]:
    """The form of a buffer that ``place`` puts into the program."""

    def form(
        p: LoopState,
        shape: Any,
        dtype: Any = "float32",
        data: Any = None,
        strides: Any = None,
        elem_offset: Any = None,
        scope: str = "global",
        align: int = -1,
        offset_factor: int = 0,
        *,
        byte_offset: Any = None,
        layout: Any = None,
    ) -> Declaration:
        ty = make_buffer_type(
            p, shape, dtype, data, strides, elem_offset, scope, align, offset_factor, byte_offset, layout
        )

        def make(name: str, span: Span | None) -> Var:
            buffer = Var(name, ty, span=span)
            place(p, buffer, span)
            return buffer

        return Declaration(make)

    return form


buffer_from = _declaring(lambda p, buffer, span: None)
"""``A: T.Buffer((n, 4), "float32")``: a parameter, which nothing has to place."""


def match_buffer(
    p: LoopState,
    param: Any,
    shape: Any = None,
    dtype: Any = "float32",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = -1,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Any = None,
    *,
    byte_offset: Any = None,
    layout: Any = None,
) -> Declaration:
    if axis_separators:
        raise NotSupportedError("axis_separators are not supported")
    region = as_region(param) if is_buffer(param) or isinstance(param, (BufferLoad, BufferRegion)) else None
    if shape is None:
        if region is None:
            raise TypeError("expected the buffer's shape")
        shape = tuple(r.extent for r in region.region)
    ty = make_buffer_type(p, shape, dtype, data, strides, elem_offset, scope, align, offset_factor, byte_offset, layout)

    def make(name: str, span: Span | None) -> Var:
        buffer = Var(name, ty, span=span)
        if region is not None:
            p.block.matches.append(MatchBufferRegion(buffer, region, span=span))
        else:
            p.matched[id(param)] = buffer
        return buffer

    if region is None:
        if not any(param is known for known in p.params) or not _is_handle(param):
            raise TypeCheckError(
                "T.match_buffer names a parameter of type T.handle, or a region of a buffer",
                None,
                "a T.handle parameter",
                describe(param),
            )
        if id(param) in p.matched:
            raise TypeCheckError(f"parameter {param.name!r} has a buffer already")
    return Declaration(make)


def _is_handle(value: Any) -> bool:
    return isinstance(value, Var) and isinstance(value.ty, PrimType) and value.ty.dtype == "handle"


def alloc_buffer(
    p: LoopState,
    shape: Any,
    dtype: Any = "float32",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = -1,
    offset_factor: int = 0,
    annotations: Any = None,
    statement: bool = False,
    *,
    byte_offset: Any = None,
    layout: Any = None,
) -> Declaration:
    """Storage: of the block around when it stands directly in one, else for the statements that follow."""
    ty = make_buffer_type(p, shape, dtype, data, strides, elem_offset, scope, align, offset_factor, byte_offset, layout)
    notes = {} if annotations is None else names_of(annotations, "annotations")

    def make(name: str, span: Span | None) -> Var:
        buffer = Var(name, ty, span=span)
        directly = p.depth == p.block.depth and not statement and not notes and not p.enclosed()
        if directly and p.block.name != "root":
            p.block.allocs.append(buffer)
            return buffer
        made = AllocBuffer(buffer, notes, span=span)
        if directly and not conventions().allocates_in_place:
            p.block.provisional.append(made)
        p.emit(made)
        return buffer

    return Declaration(make)


def _scoped(scope_name: str) -> Callable[..., Declaration]:
    def alloc(p: LoopState, shape: Any, dtype: Any = "float32", **rest: Any) -> Declaration:
        return alloc_buffer(p, shape, dtype, scope=scope_name, **rest)

    return alloc


alloc_local, alloc_shared = _scoped("local"), _scoped("shared")


def alloc_scalar(p: LoopState, dtype: Any = "float32", scope: str = "local") -> Declaration:
    """A buffer of one element, which its name stands for."""
    ty = BufferType((const(1, "int32"),), as_dtype(dtype, "dtype"), as_name(scope, "scope"))

    def make(name: str, span: Span | None) -> BufferLoad:
        buffer = Var(name, ty, span=span)
        p.emit(AllocBuffer(buffer, span=span))
        return p.define_cell(buffer)

    return Declaration(make)


def _in_block(p: LoopState, buffer: Var, span: Span | None) -> None:
    """Storage of the block around."""
    p.block.allocs.append(buffer)


def _as_view(p: LoopState, buffer: Var, span: Span | None) -> None:
    """A view of existing storage; without ``data`` it is storage of its own."""
    data = buffer_type(buffer).data
    p.emit(AllocBuffer(buffer, span=span) if data is None else DeclBuffer(buffer, data, span=span))


sblock_alloc_buffer, decl_buffer = _declaring(_in_block), _declaring(_as_view)


def buffer_view(p: LoopState, buffer: Var, shape: tuple[Any, ...], dtype: Any) -> Declaration:
    """``C = A.view(4, 4)``: the same storage with another shape."""
    ty = buffer_type(buffer)
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    data = buffer if ty.data is None else ty.data
    return decl_buffer(p, shape, ty.dtype if dtype is None else dtype, data=data, scope=ty.scope)


# ------------------------------------------------------------------------------------------------- indices and regions


def as_index(p: LoopState, value: Any) -> Expr:
    if isinstance(value, slice):
        raise TypeCheckError("a slice is only allowed where a region is meant")
    if isinstance(value, str):
        raise TypeCheckError("an index must be an integer", None, "an integer scalar", repr(value))
    return as_int(p, value)


def _slice_range(p: LoopState, s: slice, extent: Expr) -> Range:
    if s.step is not None:
        raise TypeCheckError("a region has no step")
    low_value = 0 if s.start is None else s.start
    low, high = pair(p, low_value, extent if s.stop is None else s.stop)
    return Range(low, distance(low, high))


def region_index(p: LoopState, buffer: Var, index: Any, node: ast.AST) -> Expr | BufferRegion:
    """``buffer[index]``: a load, or a region where the call around takes regions and a slice is given."""
    items = index if isinstance(index, tuple) else (index,)
    shape = buffer_type(buffer).shape
    if p.regions and any(isinstance(i, (slice, Range)) for i in items):
        if len(items) != len(shape):
            raise TypeError(f"{buffer.name} has {len(shape)} dimensions, but {len(items)} were given")
        ranges = []
        for item, extent in zip(items, shape):
            if isinstance(item, Range):
                ranges.append(item)
            elif isinstance(item, slice):
                ranges.append(_slice_range(p, item, extent))
            else:
                point = as_index(p, item)
                ranges.append(Range(point, const(1, scalar_dtype(point))))
        return BufferRegion(buffer, tuple(ranges))
    return BufferLoad(buffer, tuple(store_index(p, i, node) for i in items))


def store_index(p: LoopState, item: Any, node: ast.AST) -> Expr:
    """One index of a load or store; a slice of constant length is a vector of indices."""
    if not isinstance(item, slice):
        return as_index(p, item)
    if item.start is None or item.stop is None:
        raise TypeCheckError("a slice in an expression needs both ends")
    low, high = pair(p, item.start, item.stop)
    length = distance(low, high)
    stride = as_int(p, 1 if item.step is None else item.step, scalar_dtype(low))
    if not isinstance(length, IntImm) or not isinstance(stride, IntImm) or stride.value <= 0 or length.value <= 0:
        raise TypeCheckError("the length of a slice in an expression must be a constant above 0")
    return Ramp(low, stride, -(-length.value // stride.value))


def as_region(value: Any) -> BufferRegion:
    """A region from ``A[i, 0:4]``, ``A[i, j]`` or the whole ``A``."""
    if isinstance(value, BufferRegion):
        return value
    if isinstance(value, BufferLoad):
        return BufferRegion(value.buffer, tuple(Range(i, const(1, scalar_dtype(i))) for i in value.indices))
    if isinstance(value, Var) and is_buffer(value):
        shape = buffer_type(value).shape
        return BufferRegion(value, tuple(Range(const(0, scalar_dtype(s)), s) for s in shape))
    raise TypeCheckError("expected a region of a buffer", None, "A[i, 0:4]", describe(value))


def regions_of(values: tuple[Any, ...]) -> list[BufferRegion]:
    if len(values) == 1 and isinstance(values[0], (list, tuple)):
        values = tuple(values[0])
    return [as_region(v) for v in values]
