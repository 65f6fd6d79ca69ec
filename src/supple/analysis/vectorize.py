"""Whether the iterations of a loop can run at once, as lanes of vectors."""

from __future__ import annotations

from supple.analysis.lazy import always_evaluated, is_lazy
from supple.analysis.reduction import is_same_place
from supple.ir import expr as E
from supple.ir.expr import Call, Var
from supple.ir.loop import (
    AllocBuffer,
    AssertStmt,
    Bind,
    Break,
    BufferStore,
    Continue,
    DeclBuffer,
    For,
    ForKind,
    IfThenElse,
    Return,
    While,
)
from supple.ir.node import Node, Stmt
from supple.ir.walk import pre_order, statements


def leaves_early(body: Stmt) -> bool:
    """Whether a loop body may leave early (in a nested loop too, which is seldom worth telling apart)."""
    return any(isinstance(n, (Break, Continue, Return)) for n in statements(body))


def can_vectorize(var: Var, body: Stmt, *, trusted: bool = False) -> bool:
    """Whether a body can run for all values of ``var`` at once: no control flow depends on it, every store does, and
    no iteration reads what another writes (``trusted``: the last is known already)."""
    if not trusted and not _iterations_keep_apart(var, body):
        return False
    tainted = {id(var)}

    def depends(node: Node) -> bool:
        return any(id(n) in tainted for n in pre_order(node))

    for node in pre_order(body):
        if isinstance(node, (AllocBuffer, DeclBuffer, While, AssertStmt, Break, Continue, Return)):
            return False
        if isinstance(node, Bind) and depends(node.value):
            tainted.add(id(node.var))
        if isinstance(node, IfThenElse) and _mentions_memory(node.condition):
            return False
        if isinstance(node, IfThenElse) and depends(node.condition):
            return False
        if isinstance(node, For) and (node.kind is ForKind.VECTORIZED or depends(node.min) or depends(node.extent)):
            return False
        if isinstance(node, BufferStore) and not any(depends(index) for index in node.indices):
            return False
        if isinstance(node, (E.Ramp, E.Broadcast, E.Shuffle)):
            return False
        if isinstance(node, Call) and is_lazy(node) and depends(node.args[0]):
            return False
        if isinstance(node, (E.And, E.Or)) and depends(node.a) and _reads_more(node):
            return False
    return True


def _iterations_keep_apart(var: Var, body: Stmt) -> bool:
    """Whether each buffer that is both read and written is so at one element an iteration, a different one in each."""
    nodes = list(pre_order(body))
    stores = [n for n in nodes if isinstance(n, BufferStore)]
    for load in (n for n in nodes if isinstance(n, E.BufferLoad)):
        for store in stores:
            if store.buffer is load.buffer and not (is_same_place(store, load) and _moves(var, store)):
                return False
    return True


def _moves(var: Var, store: BufferStore) -> bool:
    """Whether an index of the store is the variable, shifted by something that does not depend on it."""
    for index in store.indices:
        pending, found, plain = [index], 0, True
        while pending:
            e = pending.pop()
            if e is var:
                found += 1
            elif isinstance(e, (E.Add, E.Sub)):
                pending.extend((e.a, e.b))
            elif isinstance(e, E.Cast):
                pending.append(e.value)
            elif any(n is var for n in pre_order(e)):
                plain = False
        if found == 1 and plain:
            return True
    return False


def _reads_more(e: E.And | E.Or) -> bool:
    """Whether the second operand, which is not always evaluated, reads what the first one does not."""
    read = always_evaluated(e.a)
    return any(isinstance(n, E.BufferLoad) and id(n) not in read for n in pre_order(e.b))


def _mentions_memory(node: Node) -> bool:
    return any(isinstance(n, E.BufferLoad) for n in pre_order(node))
