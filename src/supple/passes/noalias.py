"""Marks loop functions whose buffers cannot overlap where they are written, so that kernels need not assume it."""

from __future__ import annotations

from supple.ir.expr import Call
from supple.ir.graph import Function, GlobalVar
from supple.ir.loop import BufferStore, PrimFunc
from supple.ir.module import IRModule
from supple.ir.op import Op
from supple.ir.types import TupleType
from supple.ir.walk import pre_order

ATTRIBUTE = "tirx.noalias"


def written_buffers(func: PrimFunc) -> set[int]:
    """The ids of the buffers that a loop function stores into."""
    return {id(n.buffer) for n in pre_order(func.body) if isinstance(n, BufferStore)}


def has_opaque_accesses(func: PrimFunc) -> bool:
    """Whether buffers are passed on to something whose effect on them is not known, or viewed under another name."""
    return any(buffer.ty.data is not None for buffer in func.buffers) or any(  # type: ignore[union-attr]
        type(n).__name__ in ("DeclBuffer", "MatchBufferRegion") for n in pre_order(func.body)
    )


def mark_noalias(mod: IRModule) -> IRModule:
    """Set ``tirx.noalias`` on loop functions that only write into fresh results in every call of the module.

    ``call_tir`` allocates the results, and the entry of a public loop function refuses arrays that overlap one that is
    written; so a kernel's written buffers overlap no other.
    """
    outputs: dict[str, int] = {}
    for func in mod.functions.values():
        if not isinstance(func, Function):
            continue
        for n in pre_order(func):
            if isinstance(n, Call) and isinstance(n.op, Op) and n.op.name.startswith("relax.call_tir"):
                callee = n.args[0]
                if isinstance(callee, GlobalVar):
                    types = n.ty_args
                    count = len(types[0].fields) if len(types) == 1 and isinstance(types[0], TupleType) else len(types)
                    count = count if n.op.name == "relax.call_tir" else 0
                    outputs[callee.name_hint] = min(count, outputs.get(callee.name_hint, count))
    marked = mod.clone()
    for var, func in mod.items():
        if isinstance(func, PrimFunc) and ATTRIBUTE not in func.attrs and not has_opaque_accesses(func):
            fresh = func.buffers[len(func.buffers) - outputs.get(var.name_hint, len(func.buffers)) :]
            if written_buffers(func) <= {id(b) for b in fresh}:
                marked[var] = func.with_attr(ATTRIBUTE, True)
    return marked
