"""AnnotateTIROpPattern: every loop function says how it may be fused, found by analysis of its blocks."""

from __future__ import annotations

from supple.analysis.fusion import PATTERN, summarize
from supple.ir.loop import PrimFunc
from supple.ir.module import IRModule
from supple.passes.remarks import Remarks, remark


def annotate_pattern(mod: IRModule, remarks: Remarks | None = None) -> IRModule:
    """Set ``op_pattern`` on loop functions that do not have it: 0 elementwise, 1 broadcast, 2 injective, 3 reduction,
    4 sum of products (elementwise steps may follow), 8 opaque.

    Before::

        @T.prim_func(private=True)
        def relu(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")): ...

    After::

            T.func_attr({"op_pattern": 0})
    """
    marked = mod.clone()
    for var, func in mod.items():
        if isinstance(func, PrimFunc) and PATTERN not in func.attrs:
            summary = summarize(func)
            marked[var] = func.with_attr(PATTERN, int(summary.kind))
            if summary.reason:
                remark(remarks, "annotate_pattern", False, var.name_hint, "opaque", summary.reason)
    return marked
