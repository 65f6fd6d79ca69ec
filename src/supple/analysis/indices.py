"""What the indices of accesses look like: counted from the end, read from a buffer."""

from __future__ import annotations

from supple.ir import expr as E
from supple.ir.expr import BufferLoad
from supple.ir.loop import BufferStore, PrimFunc
from supple.ir.node import Expr
from supple.ir.structural import structural_equal
from supple.ir.walk import pre_order


def counted_from_end(index: Expr) -> Expr | None:
    """``i`` of an index ``i + size if i < 0 else i``, which is what messages call it; None for any other."""
    if not isinstance(index, E.Select) or not isinstance(index.condition, E.LT):
        return None
    written, zero = index.false_value, index.condition.b
    is_zero = isinstance(zero, E.IntImm) and zero.value == 0
    return written if is_zero and structural_equal(index.condition.a, written) else None


def reads_indices(func: PrimFunc) -> bool:
    """Whether a loop function reads an index of an access from a buffer, so that only data says whether it is in
    bounds."""
    return any(
        isinstance(part, BufferLoad)
        for access in pre_order(func.body)
        if isinstance(access, (BufferLoad, BufferStore))
        for index in access.indices
        for part in pre_order(index)
    )
