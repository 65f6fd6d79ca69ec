"""An operator's compute definition on tensors of the DSL: what every function of ``topi`` does."""

from __future__ import annotations

from typing import Any

from supple.base.errors import NotSupportedError
from supple.build import te
from supple.build.te import TensorValue
from supple.ir.expr import Var, const
from supple.ir.graph import Constant, ShapeExpr, Tuple
from supple.ir.node import Expr
from supple.ir.op import Op, settle_literals
from supple.ir.types import TensorType


def apply(op: Op, *args: Any, **attrs: Any) -> TensorValue:
    """The tensor that an operator computes of tensors of the DSL, numbers and attributes.

    Raises ``TypeError`` (or its subclass with the operator's rule) for operands that the operator refuses, and
    `NotSupportedError` for an operator without a compute definition.
    """
    if op.lower is None:
        raise NotSupportedError(f"topi: {op.short_name} has no compute definition")
    tensors: dict[int, tuple[Var, TensorValue]] = {}

    def expr(value: Any) -> Any:
        if isinstance(value, TensorValue):
            var = Var(value.name, TensorType(ShapeExpr(value.shape), value.dtype))
            tensors[id(var)] = (var, value)
            return var
        return [expr(v) for v in value] if isinstance(value, (list, tuple)) else value

    def operand(value: Expr) -> Any:
        if id(value) in tensors:
            return tensors[id(value)][1]
        if isinstance(value, Tuple):
            return [operand(f) for f in value.fields]
        if isinstance(value, ShapeExpr):
            return list(value.values)
        return _constant(value) if isinstance(value, Constant) else value

    call = settle_literals(op(*(expr(a) for a in args), **attrs))
    assert op.infer is not None
    op.infer(call)
    result: Any = op.lower(*(operand(a) for a in call.args), **call.attrs)
    return result  # type: ignore[no-any-return]  # one tensor, unless apply_many asks


def apply_many(op: Op, *args: Any, **attrs: Any) -> list[TensorValue]:
    """`apply` for operators with several results."""
    result: Any = apply(op, *args, **attrs)
    return list(result) if isinstance(result, (list, tuple)) else [result]


def _constant(value: Constant) -> TensorValue:
    """A number as a tensor without dimensions."""
    if value.data.ndim:
        raise TypeError("topi: an array cannot be an operand; pass it as a tensor")
    return te.NumberValue(const(value.data.item(), str(value.data.dtype)))
