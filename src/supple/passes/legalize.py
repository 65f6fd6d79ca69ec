"""LegalizeOps: operator calls become ``call_tir`` of loop functions made from their compute definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from supple.base.errors import NotSupportedError
from supple.build.block_builder import BlockBuilder
from supple.ir.expr import Call
from supple.ir.graph import Function, ShapeExpr, Tuple, VarBinding
from supple.ir.module import IRModule
from supple.ir.node import Expr, Node, replace
from supple.ir.op import Op
from supple.ir.types import TensorType, TupleType
from supple.ir.walk import transform
from supple.sym.relate import tensor_dims


def legalize(
    mod: IRModule,
    custom: Mapping[str, Callable[[BlockBuilder, Call], Expr]] | None = None,
    *,
    keep_views: bool = True,
) -> IRModule:
    """Lower every operator that has a compute definition.

    Before::

        lv: R.Tensor((n, 4), dtype="float32") = R.add(x, y)

    After::

        lv = R.call_tir(cls.add, (x, y), out_ty=R.Tensor((n, 4), dtype="float32"))

    ``custom`` maps an operator's full name to a function that returns the replacement of a call. With
    ``keep_views``, operators that host code runs without moving an element (declared ``view=True``: reshape) stay.
    Operators without a compute definition stay. Identical loop functions are added
    once. Raises `NotSupportedError` at the call when the result's shape is not known while compiling.
    """
    builder = BlockBuilder(mod)
    rules = dict(custom or {})
    for var, func in mod.items():
        if isinstance(func, Function):
            legal = transform(func, lambda n: _legalize_binding(n, builder, rules, keep_views), into_types=False)
            if legal is not func:
                builder.update_func(var, legal)  # type: ignore[arg-type]
    return builder.get()


def _legalize_binding(
    node: Node, builder: BlockBuilder, rules: dict[str, Callable[[BlockBuilder, Call], Expr]], keep_views: bool
) -> Node | None:
    if not isinstance(node, VarBinding) or not isinstance(node.value, Call) or not isinstance(node.value.op, Op):
        return None
    call, op = node.value, node.value.op
    if op.name in rules:
        return replace(node, value=rules[op.name](builder, call))
    if op.lower is None or (keep_views and op.facts.get("view")):
        return None
    return replace(node, value=_lowered(builder, call, op))


def _lowered(builder: BlockBuilder, call: Call, op: Op) -> Call:
    _require_static_rank(call, op)
    args: list[Any] = []
    for param, arg in zip((p for p in op.params if not p.is_attr), call.args, strict=False):
        args.append(list(arg.values) if param.kind == "shape" and isinstance(arg, ShapeExpr) else arg)
    name = op.short_name.rpartition(".")[2]
    lowered = builder.call_te(op.lower, *args, primfunc_name_hint=name, **call.attrs)  # type: ignore[arg-type]
    return replace(lowered, span=call.span, ty=call.ty)


def _require_static_rank(call: Call, op: Op) -> None:
    for value in (*call.args, call):
        fields = value.fields if isinstance(value, Tuple) else (value,)
        for field in fields:
            ty = getattr(field, "ty", None)
            parts = ty.fields if isinstance(ty, TupleType) else (ty,)
            for part in parts:
                if isinstance(part, TensorType) and (tensor_dims(part) is None or part.dtype is None):
                    raise NotSupportedError(
                        f"{op.name}: native code needs known shapes and dtypes",
                        span=call.span,
                        expected="R.Tensor(shape, dtype)",
                        actual=str(part),
                        hint="use R.match_cast(value, R.Tensor((n, ...), dtype)) to name the dimensions",
                        rule="legalize",
                    )
