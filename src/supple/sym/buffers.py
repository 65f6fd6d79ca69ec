"""Loads, stores and offsets of buffers, for `BufferMethods`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from supple.base import dtypes
from supple.ir import expr as E
from supple.ir.expr import BufferLoad, Ramp, Var, as_expr, const, scalar_dtype
from supple.ir.intrinsics import opaque
from supple.ir.loop import Buffer, BufferStore
from supple.ir.node import METHODS, Expr
from supple.ir.types import BufferType
from supple.sym.analyzer import Analyzer


def buffer_type_of(of: Var, name: str) -> BufferType:
    """The type of a buffer; raises ``TypeError`` for another variable, on which ``name`` was asked."""
    if not isinstance(of.ty, BufferType):
        raise TypeError(f"{of.name}.{name}: only buffers have it, and {of.name} is {of.ty}")
    return of.ty


def _indices(of: Var, name: str, given: Any) -> tuple[Expr, ...]:
    shape = buffer_type_of(of, name).shape
    items = given if isinstance(given, (list, tuple)) else (given,)
    indices = tuple(const(i, "int32") if isinstance(i, int) else as_expr(i) for i in items)
    if len(indices) != len(shape):
        raise ValueError(f"{of.name}.{name}: {of.name} has {len(shape)} dimensions, got {len(indices)} indices")
    return indices


def vload(of: Var, begin: Any, dtype: str | None) -> BufferLoad:
    """A load; a vector dtype makes the last index a ramp."""
    indices = _indices(of, "vload", begin)
    wanted = dtypes.lanes(dtype) if dtype is not None else 1
    if dtype is not None and dtypes.element(dtype) != buffer_type_of(of, "vload").dtype:
        raise TypeError(f"{of.name}.vload: {of.name} holds {of.dtype}, asked for {dtype}")
    if wanted > 1 and indices:
        last = indices[-1]
        indices = (*indices[:-1], Ramp(last, const(1, scalar_dtype(last)), wanted))
    return BufferLoad(of, indices)


def vstore(of: Var, begin: Any, value: Any) -> BufferStore:
    """A store of a value of the buffer's dtype; a Python number is converted."""
    indices = _indices(of, "vstore", begin)
    return BufferStore(of, as_expr(value, buffer_type_of(of, "vstore").dtype), indices)


def _strides(ty: BufferType) -> list[Expr]:
    if ty.strides:
        return list(ty.strides)
    strides: list[Expr] = []
    for dim in reversed(ty.shape[1:]):
        strides.insert(0, E.Mul(strides[0], dim) if strides else dim)
    return [*strides, const(1, scalar_dtype(ty.shape[-1]))] if ty.shape else []


def offset_of(of: Var, indices: Sequence[Any]) -> tuple[Expr, ...]:
    """The one index of an element in the memory."""
    ty, at = buffer_type_of(of, "offset_of"), _indices(of, "offset_of", indices)
    total: Expr = elem_offset(of)
    for index, stride in zip(at, _strides(ty), strict=True):
        base = index.base if isinstance(index, Ramp) else index
        dtype = "int64" if "int64" in (scalar_dtype(total), scalar_dtype(base), scalar_dtype(stride)) else "int32"
        total = E.Add(E.cast(dtype, total), E.Mul(E.cast(dtype, base), E.cast(dtype, stride)))
    flat = Analyzer().simplify(total)
    if at and isinstance(at[-1], Ramp):
        flat = Ramp(flat, at[-1].stride, at[-1].lanes)
    return (flat,)


def elem_offset(of: Var) -> Expr:
    """Elements before the first one: 0 where nothing else is said."""
    found = buffer_type_of(of, "elem_offset").elem_offset
    return const(0, "int32") if found is None else found


def flattened(of: Var) -> Var:
    """A buffer of one dimension over the same elements (for strides, over all from the first to the last)."""
    ty = buffer_type_of(of, "get_flattened_buffer")
    if len(ty.shape) == 1 and not ty.strides:
        return of
    if not ty.shape:
        size: Expr = const(1, "int32")
    elif ty.strides:
        size = E.Mul(ty.shape[0], ty.strides[0])
    else:
        size = ty.shape[0]
        for dim in ty.shape[1:]:
            size = E.Mul(size, dim)
    more = {"elem_offset": ty.elem_offset, "data": ty.data, "align": ty.align, "offset_factor": ty.offset_factor}
    return Buffer(of.name, (Analyzer().simplify(size),), ty.dtype, ty.scope, **more)


_ACCESS = {"r": 1, "w": 2, "rw": 3, "wr": 3}


def access_ptr(of: Var, access_mask: Any, content_lanes: int, offset: Any, extent: Any) -> Expr:
    """``T.tvm_access_ptr(...)`` of the elements from ``offset`` on, in vectors of ``content_lanes``.

    Raises ``ValueError`` for an access that is not made of ``r`` and ``w``.
    """
    ty = buffer_type_of(of, "access_ptr")
    mask = _ACCESS.get(access_mask) if isinstance(access_mask, str) else access_mask
    if isinstance(mask, bool) or not isinstance(mask, int):
        raise ValueError(f"{of.name}.access_ptr: unknown access {access_mask!r}; it is 'r', 'w' or 'rw'")
    if extent is None:
        size: Any = E.Mul(ty.strides[0], ty.shape[0]) if ty.strides else _size(ty)
        extent = size - offset
    begin = elem_offset(of) + offset
    if content_lanes > 1:
        extent, begin = extent // content_lanes, begin // content_lanes
    kind = opaque("type_annotation", dtypes.vector(ty.dtype, content_lanes))
    data = of if ty.data is None else ty.data
    simplify = Analyzer().simplify
    return opaque(
        "tvm_access_ptr", kind, data, simplify(as_expr(begin, "int32")), simplify(as_expr(extent, "int32")), mask
    )


def _size(ty: BufferType) -> Expr:
    size: Expr = const(1, "int32")
    for dim in ty.shape:
        size = E.Mul(size, dim)
    return size


METHODS["buffer.type"] = buffer_type_of
METHODS["buffer.vload"] = vload
METHODS["buffer.vstore"] = vstore
METHODS["buffer.offset_of"] = offset_of
METHODS["buffer.elem_offset"] = elem_offset
METHODS["buffer.flattened"] = flattened
METHODS["buffer.access_ptr"] = access_ptr
