"""``tvm.tirx.analysis``: questions about loop-level code."""

from __future__ import annotations

from collections.abc import Sequence

from supple.analysis.graph import check_well_formed, well_formed
from supple.ir.expr import Let, Var
from supple.ir.loop import AllocBuffer, Bind, DeclBuffer, For, PrimFunc, SBlock
from supple.ir.module import IRModule
from supple.ir.node import Expr, Node, Stmt
from supple.ir.walk import pre_order
from supple.verify.loops import variables_are_bound_once


def undefined_vars(node: Stmt | Expr, defs: Sequence[Var] | None = None) -> list[Var]:
    """The variables that a statement or an expression uses and nothing in it defines, in order of first use."""
    defined = {id(v) for v in defs or ()}
    uses: dict[Var, None] = {}
    for found in pre_order(node):
        defined.update(id(v) for v in _defined(found))
        if isinstance(found, Var):
            uses[found] = None
    return [v for v in uses if id(v) not in defined]


def _defined(node: Node) -> list[Var]:
    if isinstance(node, For):
        return [node.loop_var]
    if isinstance(node, (Bind, Let)):
        return [node.var]
    if isinstance(node, (AllocBuffer, DeclBuffer)):
        return [node.buffer]
    if isinstance(node, SBlock):
        return [*(it.var for it in node.iter_vars), *node.alloc_buffers]
    return list(node.params) if isinstance(node, PrimFunc) else []


def verify_ssa(func: PrimFunc) -> bool:
    """Whether every variable of a loop function is defined once."""
    return next(iter(variables_are_bound_once(func)), None) is None


def verify_well_formed(obj: PrimFunc | IRModule, assert_mode: bool = True) -> bool:
    """Whether definitions, dtypes and indices fit. Raises `DiagnosticError` with the first fault in ``assert_mode``."""
    if assert_mode:
        well_formed(obj)
        return True
    return check_well_formed(obj)
