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


def apply(name: str, *args: Any, **attrs: Any) -> TensorValue:
    """The tensor that operator ``relax.<name>`` computes of tensors of the DSL, numbers and attributes.

    Raises ``TypeError`` (or its subclass with the operator's rule) for operands that the operator refuses, and
    `NotSupportedError` for an operator without a compute definition.
    """
    op = Op.get(f"relax.{name}")
    if op.lower is None:
        raise NotSupportedError(f"topi: {name} has no compute definition")
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
    if isinstance(result, TensorValue) and name in _NAMES:
        first = next((value.name for _, value in tensors.values()), "tensor")
        return named(result, _NAMES[name].format(first))
    return result  # type: ignore[no-any-return]  # one tensor, unless apply_many asks


def named(result: TensorValue, name: str) -> TensorValue:
    """A tensor that a formula computes, under another name: what its block is called in loop functions."""
    if not isinstance(result.op, te.ComputeOp):
        return result
    return TensorValue(Var(name, result.buffer.ty), result.op)


_ELEMENTWISE = (
    "abs", "acos", "acosh", "asin", "asinh", "astype", "atan", "atanh", "ceil", "clip", "cos", "cosh", "erf", "exp",
    "floor", "isfinite", "isinf", "isnan", "log", "negative", "nn.batch_flatten", "nn.leakyrelu", "nn.prelu", "nn.relu",
    "round", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
_NAMES = {
    **dict.fromkeys(_ELEMENTWISE, "compute"),
    **dict.fromkeys(("all", "any", "argmax", "argmin", "max", "min", "prod", "sum"), "{}_red"),
    "flip": "T_reverse_sequence",
    "gather_elements": "T_gather",
    "gather_nd": "T_gather_nd",
    "nn.adaptive_avg_pool2d": "adaptive_pool_avg",
    "nn.instance_norm": "T_instance_norm",
    "nn.layer_norm": "T_layer_norm",
    "nn.log_softmax": "compute",
    "nn.pad": "PadInput",
    "nn.rms_norm": "T_rms_norm",
    "nn.softmax": "T_softmax_norm",
    "one_hot": "T_one_hot",
}
"""What topi calls the result of a function, by the operator that computes it, where that is not what the operator
calls it; ``{}`` stands for the name of the first operand."""


def apply_many(name: str, *args: Any, **attrs: Any) -> list[TensorValue]:
    """`apply` for operators with several results."""
    result: Any = apply(name, *args, **attrs)
    return list(result) if isinstance(result, (list, tuple)) else [result]


def _constant(value: Constant) -> TensorValue:
    """A number as a tensor without dimensions."""
    if value.data.ndim:
        raise TypeError("topi: an array cannot be an operand; pass it as a tensor")
    return te.NumberValue(const(value.data.item(), str(value.data.dtype)))
