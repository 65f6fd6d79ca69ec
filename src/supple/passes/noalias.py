"""Marks loop functions whose buffers cannot overlap where they are written, so that kernels need not assume it."""

from __future__ import annotations

from supple.ir.expr import Call
from supple.ir.graph import Function, GlobalVar, Tuple
from supple.ir.loop import BufferStore, PrimFunc
from supple.ir.module import IRModule
from supple.ir.node import Expr
from supple.ir.op import Op
from supple.ir.types import result_types
from supple.ir.walk import pre_order

ATTRIBUTE = "tirx.noalias"


def written_buffers(func: PrimFunc) -> set[int]:
    """The ids of the buffers that a loop function stores into."""
    return {id(n.buffer) for n in pre_order(func.body) if isinstance(n, BufferStore)}


def written_places(func: PrimFunc) -> frozenset[int]:
    """The places of the parameters that a loop function stores into."""
    written = written_buffers(func)
    return frozenset(i for i, p in enumerate(func.params) if id(p) in written)


def has_opaque_accesses(func: PrimFunc) -> bool:
    """Whether buffers are passed on to something whose effect on them is not known, or viewed under another name."""
    return any(buffer.ty.data is not None for buffer in func.buffers) or any(  # type: ignore[union-attr]
        type(n).__name__ in ("DeclBuffer", "MatchBufferRegion") for n in pre_order(func.body)
    )


def mark_noalias(mod: IRModule) -> IRModule:
    """Set ``tirx.noalias`` on loop functions that in every call of the module only write into fresh results, or into
    arguments that are checked to overlap no other.

    ``call_tir`` allocates the results; what the other forms write, and the arrays that a public loop function writes,
    are checked when they are called; so a kernel's written buffers overlap no other.
    """
    alone: dict[str, frozenset[int]] = {}  # the places of buffers that overlap no other, in every call
    for func in mod.functions.values():
        if not isinstance(func, Function):
            continue
        for n in pre_order(func):
            if isinstance(n, Call) and isinstance(n.op, Op) and n.op.facts.get("calls_loop_function"):
                callee, args = n.args[:2]
                if isinstance(callee, GlobalVar):
                    places = _places(n, args)
                    alone[callee.name_hint] = places & alone.get(callee.name_hint, places)
    marked = mod.clone()
    for var, func in mod.items():
        if isinstance(func, PrimFunc) and ATTRIBUTE not in func.attrs and not has_opaque_accesses(func):
            places = alone.get(var.name_hint, frozenset(range(len(func.params))))
            if written_buffers(func) <= {id(func.params[place]) for place in places if place < len(func.params)}:
                marked[var] = func.with_attr(ATTRIBUTE, True)
    return marked


def _places(call: Call, args: Expr) -> frozenset[int]:
    """Which of a loop function's parameters a call by destination passing gives memory that overlaps no other."""
    count = len(args.fields) if isinstance(args, Tuple) else 1
    results = len(result_types(call.ty_args))
    inplace = [place for place in call.attrs.get("inplace_indices", ()) if place >= 0]
    return frozenset([*inplace, *range(count, count + results - len(inplace))])
