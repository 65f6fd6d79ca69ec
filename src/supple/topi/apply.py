"""An operator's compute definition on tensors of the DSL: what every function of ``topi`` does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from types import FunctionType
from typing import Any

from supple.base.errors import NotSupportedError
from supple.build import te
from supple.build.index_types import sizes_as_given
from supple.build.te import AnyReduce, TensorValue
from supple.ir.expr import Var, const
from supple.ir.graph import Constant, ShapeExpr, Tuple
from supple.ir.node import Expr, Node
from supple.ir.op import Op, settle_literals
from supple.ir.types import TensorType
from supple.ir.walk import substitute, transform
from supple.script import relax as O


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


def named(result: TensorValue, name: str, attrs: Mapping[str, Any] | None = None) -> TensorValue:
    """A tensor that a formula computes, under another name: what its block is called in loop functions."""
    if not isinstance(result.definition, te.ComputeOp) or len(result.definition.outputs) != 1:
        return result
    definition = replace(result.definition, outputs=[], attrs=dict(attrs or result.definition.attrs))
    made = TensorValue(Var(name, result.buffer.ty), definition)
    definition.outputs.append(made)
    return made


def inlined(result: TensorValue, *producers: TensorValue) -> TensorValue:
    """``result`` with the formulas of ``producers`` in place of their elements, which are then not kept.

    What is no single formula without a reduction stays as it is.
    """
    formulas: dict[int, te.ComputeOp] = {}
    for producer in producers:
        made = producer.definition
        if isinstance(made, te.ComputeOp) and len(made.body) == 1 and not isinstance(made.body[0], AnyReduce):
            formulas[id(producer.buffer)] = made

    def rewrite(node: Node) -> Node | None:
        if not isinstance(node, te.TensorRead) or id(node.buffer) not in formulas:
            return None
        formula = formulas[id(node.buffer)]
        value: Node = substitute(formula.body[0], dict(zip(formula.indices, node.indices, strict=True)))
        return value

    definition = result.definition
    if not formulas or not isinstance(definition, te.ComputeOp) or len(definition.outputs) != 1:
        return result
    body: Any = transform(definition.body[0], rewrite)
    new = replace(definition, body=(body,), outputs=[])
    new.outputs.append(TensorValue(result.buffer, new))
    return new.outputs[0]


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
            namespace[name] = with_axes_of_topi(sizes_as_given(namespace[name]))


_INDEX = re.compile(r"i\d+")
_BY_FORMULA = re.compile(r"compute|PadInput|T_softmax.*|T_(batch_)?matmul_[NT]{2}")
"""Results whose indices are called ``i0, i1``; those of others are ``ax0, ax1``."""


def with_axes_of_topi(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with topi's names for the indices of its results."""

    def renamed(tensor: Any) -> Any:
        if isinstance(tensor, (list, tuple)):
            return type(tensor)(renamed(t) for t in tensor)
        made = tensor.definition if isinstance(tensor, TensorValue) else None
        if not isinstance(made, te.ComputeOp) or len(made.outputs) != 1 or _BY_FORMULA.fullmatch(tensor.name):
            return tensor
        if not made.indices or not all(_INDEX.fullmatch(i.name) for i in made.indices):
            return tensor
        fresh = {i: Var(f"ax{n}", i.ty) for n, i in enumerate(made.indices)}
        body: Any = substitute(made.body[0], fresh)
        new = replace(made, indices=tuple(fresh.values()), body=(body,), outputs=[])
        new.outputs.append(TensorValue(tensor.buffer, new))
        return new.outputs[0]

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return renamed(function(*args, **kwargs))

    return called


def apply_many(op: Op, *args: Any, **attrs: Any) -> list[TensorValue]:
    """`apply` for operators with several results."""
    result: Any = apply(op, *args, **attrs)
    return list(result) if isinstance(result, (list, tuple)) else [result]


def _constant(value: Constant) -> TensorValue:
    """A number as a tensor without dimensions."""
    if value.data.ndim:
        raise TypeError("topi: an array cannot be an operand; pass it as a tensor")
    return te.NumberValue(const(value.data.item(), str(value.data.dtype)))
