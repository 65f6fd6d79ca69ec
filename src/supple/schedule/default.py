"""The default schedule of a loop function: rules found by analysis, tried in order on each of its loop nests."""

from __future__ import annotations

from supple.analysis.contraction import read_contraction
from supple.analysis.nest import read_nest
from supple.base.target import Target
from supple.ir.loop import PrimFunc, SBlockRealize, SeqStmt, seq
from supple.ir.node import Stmt, replace
from supple.schedule.contraction import schedule_contraction


def schedule_func(func: PrimFunc, target: Target) -> PrimFunc:
    """The function with its loop nests rewritten for the target; what no rule fits stays as written."""
    root = func.body
    if not isinstance(root, SBlockRealize):
        return func
    block = root.block
    statements = list(block.body.seq) if isinstance(block.body, SeqStmt) else [block.body]
    scheduled = [_schedule(s, target) for s in statements]
    body = replace(root, block=replace(block, body=seq(scheduled)))
    return PrimFunc(func.params, body, func.ret_ty, func.attrs, span=func.span)


def _schedule(statement: Stmt, target: Target) -> Stmt:
    nest = read_nest(statement)
    if nest is None:
        return statement
    contraction = read_contraction(nest)
    if contraction is not None:
        return schedule_contraction(contraction, target)
    return statement
