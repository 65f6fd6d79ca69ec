"""The memory forms (``R.builtin``, ``R.memory``, ``R.vm``) as host IR.

Storage is a tensor of bytes; a tensor placed in it is a view. Both are ordinary values: storage that stays inside the
call lives in the arena, and memory goes when nothing refers to it any more, so that ``kill_*`` has nothing to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from supple.base import dtypes
from supple.base.errors import NotSupportedError
from supple.ir import expr as E
from supple.ir import host as H
from supple.ir.expr import Call, IntImm, StringImm, Var, int64
from supple.ir.graph import DataTypeImm, Tuple
from supple.ir.node import Expr
from supple.ir.op import Op
from supple.ops import forms
from supple.passes.host_calls import nothing, operand
from supple.passes.host_lowering import Handler, Lowering
from supple.passes.host_values import (
    NumberValue,
    ObjectValue,
    ShapeValue,
    TensorValue,
    Value,
)
from supple.runtime.abi import ErrorSite
from supple.sym.simplify import SHAPES, product


def alloc_tensor(low: Lowering, e: Call, var: Var | None) -> Value:
    """``builtin.alloc_tensor(shape, dtype, ...)``: its contents are not defined."""
    shape = _shape(low, e.args[0], "builtin.alloc_tensor", e)
    return low.new_tensor("tensor", shape, _dtype(low, e.args[1], "builtin.alloc_tensor", e), var, e.span)


def alloc_storage(low: Lowering, e: Call, var: Var | None) -> Value:
    """``memory.alloc_storage`` and ``vm.alloc_storage``: bytes, as many as the product of the shape."""
    size = product(list(_shape(low, e.args[0], "alloc_storage", e)))
    return low.new_tensor("storage", (size,), "uint8", var, e.span)


def place_tensor(low: Lowering, e: Call, var: Var | None) -> Value:
    """``memory.alloc_tensor`` and ``vm.alloc_tensor``: a tensor in storage, at an offset in bytes."""
    storage = low.tensor(e.args[0], "the storage of alloc_tensor", e.span, "uint8", 1)
    shape = _shape(low, e.args[2], "alloc_tensor", e)
    dtype = _dtype(low, e.args[3], "alloc_tensor", e)
    return _placed(low, "alloc_tensor", storage, _offset(low, e.args[1], e), shape, dtype, e)


def view(low: Lowering, e: Call, var: Var | None) -> Value:
    """``memory.view(data, shape, dtype, offset)``; what is absent is the tensor's own."""
    data = low.tensor(e.args[0], "the tensor of memory.view", e.span)
    assert data.shape is not None
    assert data.dtype is not None
    shape = data.shape if _absent(low, e.args[1]) else _shape(low, e.args[1], "memory.view", e)
    dtype = data.dtype if _absent(low, e.args[2]) else _dtype(low, e.args[2], "memory.view", e)
    offset = int64(0) if _absent(low, e.args[3]) else _offset(low, e.args[3], e)
    return _placed(low, "memory.view", data, offset, shape, dtype, e)


def _placed(
    low: Lowering, what: str, base: TensorValue, offset: Expr, shape: tuple[Expr, ...], dtype: str, e: Call
) -> Value:
    """A part of a tensor's memory as another tensor, checked to lie inside and to be aligned."""
    assert base.shape is not None
    assert base.dtype is not None
    low.require_sizes(shape, e.span)
    have, need = low.sizes.nbytes(base.shape, base.dtype), low.sizes.nbytes(shape, dtype)
    prefix = f"{low.name}: {what}: "
    if SHAPES.less_equal(int64(0), offset) is not True or low.check.may_be_negative(offset):
        _require(low, E.LE(int64(0), offset), (offset,), f"{prefix}the offset {{0}} is negative", e)
    size = dtypes.nbytes(dtype)
    if SHAPES.equal(E.FloorMod(offset, int64(size)), int64(0)) is not True:
        _require(
            low, E.EQ(E.FloorMod(offset, int64(size)), int64(0)), (offset,),
            f"{prefix}the offset {{0}} is no multiple of {size}, the size of {dtype}", e,
        )  # fmt: skip
    fits = E.LE(need, E.Sub(have, offset))  # no sum, which could be too large
    if not (isinstance(have, IntImm) and isinstance(need, IntImm) and isinstance(offset, IntImm)) or (
        offset.value + need.value > have.value
    ):
        _require(low, fits, (need, offset, have), f"{prefix}{{0}} bytes at offset {{1}} do not fit in {{2}} bytes", e)
    if base.root is None and not base.constant and size > dtypes.nbytes(base.dtype):
        site = ErrorSite("size", f"{prefix}the memory is not aligned for {dtype}", e.span)
        low.emit(H.CheckAligned(base.memory, size, site))
    if isinstance(offset, IntImm) and offset.value == 0:
        memory = base.memory
    else:
        memory = low.check.fresh("part", "memory")
        low.emit(H.At(memory, base.memory, offset))
    return replace(base, dtype=dtype, shape=shape, memory=memory, view=base.object is not None)


def _require(low: Lowering, condition: Expr, values: tuple[Expr, ...], message: str, e: Call) -> None:
    low.emit(H.Require(condition, values, ErrorSite("size", message, e.span)))


def _shape(low: Lowering, e: Expr, what: str, call: Call) -> tuple[Expr, ...]:
    value = low.value(e)
    if not isinstance(value, ShapeValue):
        raise NotSupportedError(
            f"{low.name}: {what} of a shape of unknown rank", call.span,
            hint="use R.match_cast(shape, R.Shape([n, ...])) to name the dimensions",
        )  # fmt: skip
    return value.values


def _dtype(low: Lowering, e: Expr, what: str, call: Call) -> str:
    if isinstance(e, (DataTypeImm, StringImm)):
        return dtypes.check_dtype(e.value)
    raise NotSupportedError(f"{low.name}: {what}: native code needs a dtype that is written out", call.span)


def _offset(low: Lowering, e: Expr, call: Call) -> Expr:
    value = low.value(e)
    if not isinstance(value, NumberValue):
        raise NotSupportedError(f"{low.name}: an offset must be a number", call.span)
    return value.value


def _absent(low: Lowering, e: Expr) -> bool:
    """An argument that was left out: ``R.tuple()``, or ``R.null_value()``."""
    if isinstance(e, Tuple) and not e.fields:
        return True
    value = low.env.get(id(e))
    return isinstance(value, ObjectValue) and value.null


MEMORY: Mapping[Op, Handler] = {
    forms.ALLOC_TENSOR: alloc_tensor,
    forms.MEMORY_ALLOC_STORAGE: alloc_storage,
    forms.VM_ALLOC_STORAGE: alloc_storage,
    forms.MEMORY_ALLOC_TENSOR: place_tensor,
    forms.VM_ALLOC_TENSOR: place_tensor,
    forms.MEMORY_VIEW: view,
    forms.ensure_zero_offset: operand,
    forms.MEMORY_KILL_TENSOR: nothing,
    forms.MEMORY_KILL_STORAGE: nothing,
    forms.VM_KILL_OBJECT: nothing,
}
"""Operator -> its lowering."""
