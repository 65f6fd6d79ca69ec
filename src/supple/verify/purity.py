"""Which calls may have effects."""

from __future__ import annotations

from supple.ir.expr import Call
from supple.ir.op import Op


def overwrites(call: Call) -> bool:
    """Whether the only effect of a call is on its arguments: Relax's types count it as pure, the function that makes it
    vouches for it. It stands outside of dataflow blocks all the same."""
    return isinstance(call.op, Op) and bool(call.op.facts.get("overwrites"))


def is_pure_call(call: Call) -> bool:
    """Whether a call is known to have no effect."""
    op = call.op
    if isinstance(op, Op):
        return op.pure
    return bool(getattr(getattr(op, "ty", None), "purity", False))
