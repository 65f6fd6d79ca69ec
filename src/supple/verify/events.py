"""A graph function as a flat stream of events, in the order of execution. Depth of nesting is no limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from supple.ir.expr import Call, TupleGetItem, Var, is_scalar
from supple.ir.graph import BindingBlock, Function, If, SeqExpr, ShapeExpr, Tuple, VarBinding
from supple.ir.node import Expr
from supple.ir.walk import post_order

Event = tuple[str, Any]


def events(func: Function) -> Iterator[Event]:
    """``(kind, node)`` pairs:

    * ``function`` / ``end_function``: a `Function` (the root, or a local one);
    * ``scope`` / ``end_scope``: a `SeqExpr`; ``result``: the SeqExpr whose value is taken now;
    * ``block`` / ``end_block``: a `BindingBlock`;
    * ``value``: a binding whose value is computed now; ``bind``: the same binding, once its variable is defined.
    """
    stack: list[Event] = [("function", func)]
    while stack:
        event = stack.pop()
        yield event
        stack.extend(reversed(_EXPAND[event[0]](event[1])))


def _expand_function(func: Function) -> list[Event]:
    return [("scope", func.body), ("end_function", func)]


def _expand_scope(body: Expr) -> list[Event]:
    if not isinstance(body, SeqExpr):  # a branch that is a bare value
        body = SeqExpr((), body, span=body.span)
        return [("result", body), ("end_scope", body)]
    return [*(("block", b) for b in body.blocks), ("result", body), ("end_scope", body)]


def _expand_block(block: BindingBlock) -> list[Event]:
    return [*(("value", b) for b in block.bindings), ("end_block", block)]


def _expand_value(binding: Any) -> list[Event]:
    value = binding.value
    inner: list[Event] = []
    if isinstance(value, If):
        inner = [("scope", value.true_branch), ("scope", value.false_branch)]
    elif isinstance(value, Function) and isinstance(binding, VarBinding):
        inner = [("function", value)]
    return [*inner, ("bind", binding)]


def _nothing(_: Any) -> list[Event]:
    return []


_EXPAND: dict[str, Callable[[Any], list[Event]]] = {
    "function": _expand_function,
    "scope": _expand_scope,
    "block": _expand_block,
    "value": _expand_value,
    "bind": _nothing,
    "result": _nothing,
    "end_function": _nothing,
    "end_scope": _nothing,
    "end_block": _nothing,
}


def operands(value: Expr) -> Iterator[Expr]:
    """The leaves that a binding's value uses directly: variables, constants, functions; not what branches contain."""
    stack: list[Expr] = [value]
    entered: set[int] = set()  # a part that is used twice uses no more than once
    while stack:
        current = stack.pop()
        if not isinstance(current, Var):
            if id(current) in entered:
                continue
            entered.add(id(current))
        if isinstance(current, Call) and not is_scalar(current):
            if isinstance(current.op, Expr):
                stack.append(current.op)
            stack.extend(reversed(current.args))
        elif isinstance(current, Tuple):
            stack.extend(reversed(current.fields))
        elif isinstance(current, TupleGetItem):
            stack.append(current.tuple_value)
        elif isinstance(current, If):
            stack.append(current.cond)
        elif isinstance(current, ShapeExpr):
            stack.extend(reversed(current.values))
        elif is_scalar(current) and not isinstance(current, Var):
            yield from (n for n in post_order(current) if isinstance(n, Var))
        else:
            yield current
