"""Bindings of a graph function that nothing needs."""

from __future__ import annotations

from supple.analysis.graph import contains_impure_call
from supple.ir.expr import DataflowVar, Var
from supple.ir.graph import BindingBlock, Function, MatchCast, SeqExpr, VarBinding
from supple.ir.node import Node, children, replace
from supple.ir.walk import free_symbols, transform


def remove_all_unused(func: Function) -> Function:
    """The function without bindings that no result needs and whose values have no effect, in one walk.

    A ``match_cast`` stays when a symbol of its type is used, and when its variable is visible outside the dataflow
    block (it is a check then).
    """
    live = _live_bindings(func)

    def rewrite(node: Node) -> Node | None:
        if isinstance(node, BindingBlock):
            kept = tuple(b for b in node.bindings if id(b.var) in live)  # type: ignore[attr-defined]
            return node if len(kept) == len(node.bindings) else replace(node, bindings=kept)
        if isinstance(node, SeqExpr) and not all(b.bindings for b in node.blocks):
            return replace(node, blocks=tuple(b for b in node.blocks if b.bindings))
        return None

    made = transform(func, rewrite, into_types=False)
    assert isinstance(made, Function)
    return made


def _live_bindings(func: Function) -> set[int]:
    """The ids of the variables whose bindings stay."""
    bound: dict[int, list[Node]] = {}  # what binds a variable or introduces a symbol, by its id
    live: set[int] = set()
    seen: set[int] = set()
    stack: list[Node] = [func.body, *free_symbols(func.ret_ty or func.body.body)]
    while stack:
        node = stack.pop()
        if isinstance(node, Var):
            stack.extend(bound.pop(id(node), ()))
            if node.ty is not None and id(node) not in seen:
                seen.add(id(node))
                stack.extend(free_symbols(node.ty))
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, SeqExpr):
            for block in node.blocks:
                for binding in block.bindings:
                    bound.setdefault(id(binding.var), []).append(binding)  # type: ignore[attr-defined]
                    if isinstance(binding, MatchCast):
                        for symbol in free_symbols(binding.ty):
                            bound.setdefault(id(symbol), []).append(binding)
                    if _has_effect(binding):
                        stack.append(binding)
            stack.append(node.body)
        elif isinstance(node, (VarBinding, MatchCast)):  # one that stays
            live.add(id(node.var))
            stack.extend((node.var, *children(node)))
        else:
            stack.extend(children(node))
            ty = getattr(node, "ty", None)
            if isinstance(ty, Node):
                stack.extend(free_symbols(ty))
    return live


def _has_effect(binding: Node) -> bool:
    if isinstance(binding, MatchCast):
        return not isinstance(binding.var, DataflowVar)
    return contains_impure_call(binding.value)  # type: ignore[attr-defined]
