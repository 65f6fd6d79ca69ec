"""What operators ask of sizes and nothing proves becomes checks in the program.

Before::

    lv: R.Tensor((n, m)) = R.nn.rms_norm(x, w, axes=[-1])      # x has m columns, w has k elements

After::

    rms_norm_needs: R.Shape([m]) = R.match_cast(R.shape([k]), R.Shape([m]))
    lv: R.Tensor((n, m)) = R.nn.rms_norm(x, w, axes=[-1])
"""

from __future__ import annotations

from supple.ir.expr import Call, Var
from supple.ir.graph import Binding, BindingBlock, Function, MatchCast, ShapeExpr, VarBinding
from supple.ir.node import Node, replace
from supple.ir.op import Op
from supple.ir.types import ShapeType
from supple.ir.walk import transform
from supple.ops.requirements import Requirement, requirements_of


def with_size_checks(func: Function) -> Function:
    """The function with a check before each call that asks for one."""
    made = transform(func, _block, into_types=False)
    assert isinstance(made, Function)
    return made


def _block(node: Node) -> Node | None:
    if not isinstance(node, BindingBlock):
        return None
    bindings: list[Binding] = []
    for binding in node.bindings:
        if isinstance(binding, VarBinding) and isinstance(binding.value, Call):
            bindings.extend(_checks(binding.value))
        bindings.append(binding)
    return None if len(bindings) == len(node.bindings) else replace(node, bindings=tuple(bindings))


def _checks(call: Call) -> list[MatchCast]:
    if not isinstance(call.op, Op) or call.op.infer is None:
        return []
    return [_check(call, call.op, needed) for needed in requirements_of(call)]


def _check(call: Call, op: Op, needed: Requirement) -> MatchCast:
    wanted = ShapeType((needed.expected,))
    var = Var(f"{op.short_name.rpartition('.')[2]}_needs", wanted)  # no dataflow variable: the check has an effect
    return MatchCast(var, ShapeExpr((needed.actual,)), wanted, span=call.span)
