"""Bindings that only give another name to something go: what `rewrite_call` leaves under Relax's conventions."""

from __future__ import annotations

from supple.analysis.unused import remove_all_unused
from supple.ir.expr import DataflowVar, TupleGetItem, Var, is_scalar
from supple.ir.graph import Binding, BindingBlock, Constant, DataflowBlock, Function, MatchCast, Tuple, VarBinding
from supple.ir.node import Expr, Node, replace
from supple.ir.structural import structural_equal
from supple.ir.types import TupleType
from supple.ir.walk import pre_order, substitute, transform


def canonical_bindings(func: Function) -> Function:
    """The function without bindings that say nothing new, and without what nothing uses then.

    Uses of ``y = x`` become uses of ``x``, uses of an element of a known tuple uses of that element, uses of a tuple of
    all elements of another uses of the other, and uses of a ``R.match_cast`` to the type that a value has uses of the
    value; uses of a constant in its dataflow block become the constant. Variables of scalars stay, and so does what a
    dataflow block gives out under another name.

    Before::

        t = (x, y)
        a = t[0]
        b = R.add(a, x)

    After::

        b = R.add(x, x)
    """
    names = _Names()
    for node in pre_order(func.body):
        if isinstance(node, BindingBlock):
            for binding in node.bindings:
                names.learn(binding, isinstance(node, DataflowBlock))
    if not names.known:
        return remove_all_unused(func)
    dropped = {id(var) for var in names.known}

    def without(node: Node) -> Node | None:
        if isinstance(node, BindingBlock):
            return replace(node, bindings=tuple(b for b in node.bindings if id(_var(b)) not in dropped))
        return None

    changed = substitute(transform(func, without, into_types=False), names.known)
    assert isinstance(changed, Function)
    return remove_all_unused(changed)


class _Names:
    """What variables are other names of, as bindings say in order."""

    def __init__(self) -> None:
        self.known: dict[Var, Expr] = {}
        self._values: dict[int, Expr] = {}

    def learn(self, binding: Binding, dataflow: bool) -> None:
        """Take in a binding."""
        assert isinstance(binding, (VarBinding, MatchCast))
        var = binding.var
        value = self._last(binding.value)
        if isinstance(value, TupleGetItem):
            whole = self._value(value.tuple_value)
            value = self._last(whole.fields[value.index]) if isinstance(whole, Tuple) else value
        self._values[id(var)] = value
        if isinstance(value, Tuple):
            value = self._whole(value) or value
        named = isinstance(value, Var) and (isinstance(var, DataflowVar) or not isinstance(value, DataflowVar))
        literal = isinstance(value, Constant) and isinstance(var, DataflowVar) and dataflow
        ty = getattr(value, "ty", None)
        same = ty is not None and var.ty is not None and not is_scalar(var) and structural_equal(ty, var.ty)
        if same and (named or (literal and isinstance(binding, VarBinding))):
            self.known[var] = value

    def _whole(self, made: Tuple) -> Expr | None:
        """The tuple whose elements, all of them and in order, the fields are."""
        parts = [self._value(field) for field in made.fields]
        if not all(isinstance(p, TupleGetItem) and p.index == i for i, p in enumerate(parts)):
            return None
        sources = [self._last(p.tuple_value) for p in parts if isinstance(p, TupleGetItem)]
        if not sources or any(s is not sources[0] for s in sources) or not isinstance(sources[0], Var):
            return None
        ty = sources[0].ty
        return sources[0] if isinstance(ty, TupleType) and len(ty.fields) == len(parts) else None

    def _last(self, e: Expr) -> Expr:
        return self.known.get(e, e) if isinstance(e, Var) else e

    def _value(self, e: Expr) -> Expr:
        """What is bound to a variable, or to the one that it is another name of."""
        last = self._last(e)
        return self._values.get(id(e), self._values.get(id(last), last))


def _var(binding: Binding) -> Var:
    assert isinstance(binding, (VarBinding, MatchCast))
    return binding.var
