"""Which calls may have effects."""

from __future__ import annotations

from supple.ir.expr import Call
from supple.ir.graph import ExternFunc
from supple.ir.op import Op


def is_pure_call(call: Call) -> bool:
    """Whether a call is known to have no effect."""
    op = call.op
    if isinstance(op, Op):
        return op.pure
    if isinstance(op, ExternFunc):
        return False
    return bool(getattr(getattr(op, "ty", None), "purity", False))
