"""Values that ``R.match_cast`` checks are bound to variables, as every other value is."""

from __future__ import annotations

from supple.build.infer import infer
from supple.ir.expr import DataflowVar, Var
from supple.ir.graph import Binding, BindingBlock, DataflowBlock, Function, MatchCast, ShapeExpr, VarBinding
from supple.ir.module import IRModule
from supple.ir.node import Expr, Node, replace
from supple.ir.walk import transform


def bind_cast_values(mod: IRModule) -> IRModule:
    """Give a variable to every value that a ``R.match_cast`` checks and that has none, so that what looks at bound
    values sees all calls.

    Before::

        z = R.match_cast(R.add(x, y), R.Tensor((n, 4), dtype="float32"))

    After::

        gv = R.add(x, y)
        z = R.match_cast(gv, R.Tensor((n, 4), dtype="float32"))
    """
    changed = mod.clone()
    for var, func in mod.items():
        if isinstance(func, Function):
            changed[var] = with_bound_casts(func)
    return changed


def with_bound_casts(func: Function) -> Function:
    """`bind_cast_values` of one function; the same object where there is nothing to do."""
    made = transform(func, _bound, into_types=False)
    assert isinstance(made, Function)
    return made


def _bound(node: Node) -> Node | None:
    if not isinstance(node, BindingBlock) or not any(map(_is_bare, node.bindings)):
        return None
    dataflow = isinstance(node, DataflowBlock)
    bindings: list[Binding] = []
    for binding in node.bindings:
        if _is_bare(binding):
            assert isinstance(binding, MatchCast)
            value: Expr = binding.value
            kind = DataflowVar if dataflow else Var
            var = kind("lv" if dataflow else "gv", infer(value), span=value.span)
            bindings += (VarBinding(var, value, span=value.span), replace(binding, value=var))
        else:
            bindings.append(binding)
    return replace(node, bindings=tuple(bindings))


def _is_bare(binding: Binding) -> bool:
    return isinstance(binding, MatchCast) and not isinstance(binding.value, (Var, ShapeExpr))
