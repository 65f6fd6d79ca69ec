"""How much memory graph functions allocate, before and after memory planning."""

from __future__ import annotations

import math
from dataclasses import dataclass

from supple.base import dtypes
from supple.ir.expr import Call, IntImm
from supple.ir.graph import DataTypeImm, Function, ShapeExpr
from supple.ir.module import IRModule
from supple.ir.node import Expr
from supple.ir.op import Op
from supple.ir.walk import pre_order


@dataclass
class _Sum:
    """Allocations of sizes that are known, their bytes together, and allocations of other sizes."""

    count: int = 0
    size: int = 0
    dynamic: int = 0

    def add(self, size: int | None) -> None:
        if size is None:
            self.dynamic += 1
        else:
            self.count += 1
            self.size += size

    def __str__(self) -> str:
        text = f"{self.count} constant-size memory allocation(s) with total size {self.size / 2**30:.4} GB"
        return f"{text}, and {self.dynamic} dynamic-size allocation(s)" if self.dynamic else text


def estimate_memory_usage(mod: IRModule | Function) -> str:
    """A text that says for each graph function how many tensors it allocates and how large they are together, and how
    many allocations memory planning makes of them.

    Tensors are ``builtin.alloc_tensor`` and ``memory.alloc_tensor``, planned memory is ``memory.alloc_storage`` and
    what is not planned. Every allocation counts once, whatever the control flow, so it may say too much. Raises
    ``TypeError`` for what is neither module nor graph function.
    """
    if isinstance(mod, Function):
        named = {str(mod.attrs.get("global_symbol", "main")): mod}
    elif isinstance(mod, IRModule):
        named = {var.name_hint: func for var, func in mod.items() if isinstance(func, Function)}
    else:
        raise TypeError(f"estimate_memory_usage: expected a module or a graph function, got {mod!r}")
    parts = [f"{_estimate(name, named[name])}\n" for name in sorted(named)]
    return "Memory usage estimation:\n" + "".join(parts) if parts else ""


def _estimate(name: str, func: Function) -> str:
    tensors, planned = _Sum(), _Sum()
    for call in pre_order(func.body):
        if not isinstance(call, Call) or not isinstance(call.op, Op):
            continue
        kind = call.op.facts.get("allocates")
        if kind == "tensor":
            size = _nbytes(call.args[0], call.args[1])
            tensors.add(size)
            planned.add(size)
        elif kind == "placed":
            tensors.add(_nbytes(call.args[2], call.args[3]))
        elif kind == "storage":
            planned.add(_nbytes(call.args[0], None))
    lines = [
        f"- Function {name}:",
        f" * Without memory planning, there are {tensors}.",
        f" * With memory planning, there are {planned}.",
    ]
    if tensors.size:
        share = planned.size / tensors.size * 100
        lines.append(f" * Memory planning reduces constant memory size to {share:.4}%.")
    return "\n".join(lines)


def _nbytes(shape: Expr, dtype: Expr | None) -> int | None:
    """Bytes of a shape of elements (of single bytes without a dtype), None where they are not known."""
    if not isinstance(shape, ShapeExpr):
        return None
    extents = [v.value for v in shape.values if isinstance(v, IntImm)]
    if len(extents) != len(shape.values) or not (dtype is None or isinstance(dtype, DataTypeImm)):
        return None
    return math.prod(extents) * (1 if dtype is None else dtypes.nbytes(dtype.value))
