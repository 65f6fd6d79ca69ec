"""LegalizeOps with rules of the user's own: calls replaced by what a function makes of them.

Before, with the rule ``lambda bb, call: relax.op.exp(bb.emit(relax.op.subtract(*call.args)))`` for ``relax.add``::

    z = R.add(x, y)

After; what a rule makes of other operators is lowered with the rest of the program::

    gv = R.subtract(x, y)
    z = R.exp(gv)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from supple.build.block_builder import BlockBuilder
from supple.ir.expr import Call
from supple.ir.graph import Binding, BindingBlock, DataflowBlock, Function, VarBinding
from supple.ir.node import Expr, Node, replace
from supple.ir.op import Op
from supple.ir.walk import transform

Rule = Callable[[BlockBuilder, Call], Expr]


class CustomRules:
    """One run: ``rules`` by operator, and the builder that loop functions are added to, into which rules may emit."""

    def __init__(self, builder: BlockBuilder, rules: Mapping[Op, Rule]) -> None:
        self.builder = builder
        self.rules = dict(rules)
        self.kept: dict[int, Call] = {}
        """Calls that a rule made of its own operator, by id: they stay as they are."""

    def applied(self, func: Function) -> Function:
        """The function with every call of an operator that has a rule replaced by what the rule makes of it."""
        if not self.rules:
            return func
        made = transform(func, self._block, into_types=False)
        assert isinstance(made, Function)
        return made

    def _block(self, node: Node) -> Node | None:
        if not isinstance(node, BindingBlock) or not any(self._rule(b) for b in node.bindings):
            return None
        done: list[Binding] = []
        dataflow = isinstance(node, DataflowBlock)
        waiting: list[tuple[Binding, frozenset[Op]]] = [(b, frozenset()) for b in reversed(node.bindings)]
        while waiting:
            binding, made_by = waiting.pop()
            rule = self._rule(binding)
            if rule is None:
                done.append(binding)
                continue
            assert isinstance(binding, VarBinding) and isinstance(binding.value, Call)
            op = binding.value.op
            assert isinstance(op, Op)
            if op in made_by:
                self.kept[id(binding.value)] = binding.value
                done.append(binding)
                continue
            results = self._result(binding, binding.value, rule, dataflow)
            waiting.extend((b, made_by | {op}) for b in reversed(results))
        return replace(node, bindings=tuple(done))

    def _rule(self, binding: Binding) -> Rule | None:
        value = binding.value if isinstance(binding, VarBinding) else None
        return self.rules.get(value.op) if isinstance(value, Call) and isinstance(value.op, Op) else None

    def _result(self, binding: VarBinding, call: Call, rule: Rule, dataflow: bool) -> list[Binding]:
        """What the rule emitted, and the binding of what it returned."""
        self.builder.begin_scope()
        try:
            if dataflow:
                self.builder.begin_dataflow()
            value = self.builder.normalize(rule(self.builder, call))
            emitted = self.builder.close_all()
        finally:
            self.builder.end_scope()
        return [*emitted, replace(binding, value=value)]
