"""Which variables of a graph function may outlive the activation, or be seen from outside it."""

from __future__ import annotations

from supple.ir.expr import Call, TupleGetItem, Var
from supple.ir.graph import Function, If, MatchCast, SeqExpr, Tuple, VarBinding
from supple.ir.node import Expr
from supple.ir.op import Op

_INSIDE = frozenset({"relax.call_tir", "relax.shape_of"})
"""Calls whose arguments are only read while they run."""

_VIEWS = frozenset({"relax.reshape", "relax.flatten"})
"""Calls whose result shares the first argument's memory."""


def escaping_variables(func: Function) -> set[int]:
    """The ids of variables whose tensor may be returned (also by a branch), or passed to a packed or graph call.

    Values that contain or share memory with such a variable's are included.
    """
    parts: dict[int, list[Var]] = {}  # variable -> variables whose memory it may hold
    tuples: dict[int, Tuple] = {}
    roots: list[Expr] = []
    pending: list[SeqExpr] = [func.body]
    while pending:
        sequence = pending.pop()
        roots.append(sequence.body)
        for block in sequence.blocks:
            for binding in block.bindings:
                assert isinstance(binding, (VarBinding, MatchCast))
                value = binding.value
                if isinstance(value, Tuple):
                    tuples[id(binding.var)] = value
                parts[id(binding.var)] = _parts(value, tuples)
                if isinstance(value, Call) and not (isinstance(value.op, Op) and value.op.name in _INSIDE | _VIEWS):
                    roots.extend(value.args)
                elif isinstance(value, If):
                    for branch in (value.true_branch, value.false_branch):
                        if isinstance(branch, SeqExpr):
                            pending.append(branch)
                        else:
                            roots.append(branch)
                elif isinstance(value, SeqExpr):
                    pending.append(value)
    escaping: set[int] = set()
    work = [v for root in roots for v in _variables(root)]
    while work:
        var = work.pop()
        if id(var) not in escaping:
            escaping.add(id(var))
            work.extend(parts.get(id(var), ()))
    return escaping


def _parts(value: Expr, tuples: dict[int, Tuple]) -> list[Var]:
    if isinstance(value, TupleGetItem):
        source = value.tuple_value
        known = tuples.get(id(source)) if isinstance(source, Var) else source if isinstance(source, Tuple) else None
        return _variables(known.fields[value.index] if known is not None else source)
    if isinstance(value, Call):
        is_view = isinstance(value.op, Op) and value.op.name in _VIEWS
        return _variables(value.args[0]) if is_view else []
    return _variables(value) if isinstance(value, (Var, Tuple)) else []


def _variables(e: Expr) -> list[Var]:
    """The variables of a leaf: itself, or those in a (nested) tuple."""
    found: list[Var] = []
    stack = [e]
    while stack:
        current = stack.pop()
        if isinstance(current, Var):
            found.append(current)
        elif isinstance(current, Tuple):
            stack.extend(current.fields)
        elif isinstance(current, TupleGetItem):
            stack.append(current.tuple_value)
    return found
