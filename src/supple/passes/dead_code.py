"""DeadCodeElimination: what no result needs goes: bindings without effect, private functions nobody reaches."""

from __future__ import annotations

from collections.abc import Sequence

from supple.analysis.graph import contains_impure_call
from supple.ir.expr import DataflowVar, Var
from supple.ir.graph import BindingBlock, Function, GlobalVar, MatchCast, SeqExpr, VarBinding
from supple.ir.module import IRModule
from supple.ir.node import Node, children, replace
from supple.ir.walk import free_symbols, pre_order, transform


def dead_code(mod: IRModule, entry_functions: Sequence[str] | None = None) -> IRModule:
    """Remove bindings whose variables are not used and whose values have no effect, then private functions that
    nothing reaches.

    ``entry_functions`` names what is kept (default: every public function); with it, other public functions that are
    not reached go as well. Raises ``KeyError`` for a name that the module has not.

    Before::

        lv = R.add(x, x)
        lv1 = R.multiply(x, x)
        R.output(lv1)

    After::

        lv1 = R.multiply(x, x)
        R.output(lv1)
    """
    slim = mod.clone()
    for var, func in mod.items():
        if isinstance(func, Function):
            slim[var] = without_unused(func)
    return used_functions(slim, entry_functions)


def without_unused(func: Function) -> Function:
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


def used_functions(mod: IRModule, entry_functions: Sequence[str] | None = None) -> IRModule:
    """The module without functions that no entry function (default: no public one) reaches."""
    if entry_functions is None:
        work = [v.name_hint for v, f in mod.items() if "global_symbol" in getattr(f, "attrs", {})]
    else:
        work = [mod.get_global_var(name).name_hint for name in entry_functions]
    reached: set[str] = set()
    while work:
        name = work.pop()
        if name in reached:
            continue
        reached.add(name)
        mentioned = [n for n in pre_order(mod[name]) if isinstance(n, GlobalVar)]
        work.extend(g.name_hint for g in mentioned if g in mod.functions)
    kept = {v: f for v, f in mod.items() if v.name_hint in reached}
    if len(kept) == len(mod.functions):
        return mod
    return IRModule(kept, mod.attrs, mod.global_infos)  # type: ignore[arg-type]
