"""Which buffers of one element Relax's layout writes as numbers that change: ``x: T.int32 = 0``, then ``x = x + 1``."""

from __future__ import annotations

from supple.ir.expr import BufferLoad, IntImm, Var
from supple.ir.loop import AllocBuffer, BufferStore
from supple.ir.node import Expr, Stmt, children
from supple.ir.structural import structural_equal
from supple.ir.types import BufferType
from supple.ir.walk import pre_order


def cells_of(body: Stmt) -> set[int]:
    """The buffers that a statement allocates for one number, and uses as one only: no regions, no pointers, no other
    indices, which a name without brackets could not say."""
    nodes = list(pre_order(body))
    found = {id(n.buffer) for n in nodes if isinstance(n, AllocBuffer) and not n.annotations and _is_cell(n.buffer)}
    for node in nodes if found else ():
        if isinstance(node, AllocBuffer) or (
            isinstance(node, (BufferLoad, BufferStore)) and all(_is_zero(i) for i in node.indices)
        ):
            continue
        found -= {id(child) for child in children(node) if isinstance(child, Var)}
    return found


def _is_cell(buffer: Var) -> bool:
    ty = buffer.ty
    if not isinstance(ty, BufferType) or ty.scope != "local" or len(ty.shape) != 1:
        return False
    plain = BufferType((IntImm(1, "int32"),), ty.dtype, "local")
    return structural_equal(ty, plain) and (ty.align, ty.offset_factor) == (plain.align, plain.offset_factor)


def _is_zero(index: Expr) -> bool:
    return isinstance(index, IntImm) and index.value == 0
