"""An operator's compute definition on tensors of the DSL: what every function of ``topi`` does."""

from __future__ import annotations

from dataclasses import replace
from types import FunctionType
from typing import Any

from supple.base.errors import NotSupportedError
from supple.build import te
from supple.build.index_types import sizes_as_given
from supple.build.te import TensorValue
from supple.ir.expr import Var, const
from supple.ir.graph import Constant, ShapeExpr, Tuple
from supple.ir.node import Expr
from supple.ir.op import Op, settle_literals
from supple.ir.types import TensorType
from supple.relax import op as O


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
    if isinstance(result, TensorValue) and op in _NAMES:
        first = next((value.name for _, value in tensors.values()), "tensor")
        return named(result, _NAMES[op].format(first))
    return result  # type: ignore[no-any-return]  # one tensor, unless apply_many asks


def named(result: TensorValue, name: str) -> TensorValue:
    """A tensor that a formula computes, under another name: what its block is called in loop functions."""
    if not isinstance(result.definition, te.ComputeOp) or len(result.definition.outputs) != 1:
        return result
    definition = replace(result.definition, outputs=[])
    made = TensorValue(Var(name, result.buffer.ty), definition)
    definition.outputs.append(made)
    return made


_NN: Any = O.nn
_NAMES: dict[Op, str] = {
    **dict.fromkeys((
        O.abs, O.acos, O.acosh, O.asin, O.asinh, O.astype, O.atan, O.atanh, O.ceil, O.clip, O.cos, O.cosh, O.erf, O.exp,
        O.floor, O.isfinite, O.isinf, O.isnan, O.log, O.negative, O.round, O.rsqrt, O.sigmoid, O.sin, O.sinh, O.sqrt,
        O.tan, O.tanh, O.trunc, _NN.batch_flatten, _NN.leakyrelu, _NN.prelu, _NN.relu, _NN.log_softmax,
    ), "compute"),
    **dict.fromkeys((O.argmax, O.argmin, O.max, O.min, O.prod, O.sum), "{}_red"),
    O.flip: "T_reverse_sequence",
    O.gather_elements: "T_gather",
    O.gather_nd: "T_gather_nd",
    _NN.adaptive_avg_pool2d: "adaptive_pool_avg",
    _NN.instance_norm: "T_instance_norm",
    _NN.layer_norm: "T_layer_norm",
    _NN.pad: "PadInput",
    _NN.rms_norm: "T_rms_norm",
    _NN.softmax: "T_softmax_norm",
    O.one_hot: "T_one_hot",
}  # fmt: skip
"""What topi calls the result of a function, by the operator that computes it, where that is not what the operator
calls it; ``{}`` stands for the name of the first operand."""


def public(namespace: dict[str, Any]) -> None:
    """Let the public functions of a module of topi take and make sizes of any dtype (`sizes_as_given`)."""
    own = [n for n, f in namespace.items() if isinstance(f, FunctionType) and f.__module__.startswith("supple.topi")]
    for name in own:
        if not name.startswith("_") and namespace[name].__module__ != __name__:
            namespace[name] = sizes_as_given(namespace[name])


def apply_many(op: Op, *args: Any, **attrs: Any) -> list[TensorValue]:
    """`apply` for operators with several results."""
    result: Any = apply(op, *args, **attrs)
    return list(result) if isinstance(result, (list, tuple)) else [result]


def _constant(value: Constant) -> TensorValue:
    """A number as a tensor without dimensions."""
    if value.data.ndim:
        raise TypeError("topi: an array cannot be an operand; pass it as a tensor")
    return te.NumberValue(const(value.data.item(), str(value.data.dtype)))
