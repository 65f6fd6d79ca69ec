"""A view of the syntax tree as text, node by node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from supple.ir.expr import Call, DataflowVar, StringImm, TupleGetItem, Var, is_scalar
from supple.ir.graph import (
    BindingBlock,
    Constant,
    DataflowBlock,
    DataTypeImm,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    MatchCast,
    SeqExpr,
    ShapeExpr,
    Tuple,
    VarBinding,
)
from supple.ir.node import Node
from supple.ir.op import Op
from supple.ir.types import FuncType, PrimType, ShapeType, StringType, TensorType, TupleType


def dump_ast(
    exp: Node, indent_str: str = "    ", include_ty_annotations: bool = True, include_call_attrs: bool = True
) -> str:
    """The tree below an expression: ``Call(op=Op(name="relax.add"), args=[Var(name="x"), ...])``.

    A node stands on one line when each of its fields does and there is only one of them. Types and calls' attributes
    can be left out. Nesting is limited by Python's recursion.
    """
    return _Dump(indent_str, include_ty_annotations, include_call_attrs).of(exp)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'


class _Dump:
    def __init__(self, indent: str, types: bool, attrs: bool) -> None:
        self.indent, self.types, self.attrs = indent, types, attrs

    def of(self, node: Any) -> str:
        if is_scalar(node) and not isinstance(node, (StringImm, Var)):
            return f"Expr(value=`{_scalar(node)}`)"
        write = _KINDS.get(type(node))
        return self.node(type(node).__name__, []) if write is None else write(self, node)

    def node(self, name: str, fields: list[tuple[str, str]]) -> str:
        parts = [f"{key}={value}" for key, value in fields]
        if len(parts) <= 1 and not any("\n" in p for p in parts):
            return f"{name}({', '.join(parts)})"
        return f"{name}(\n{self._indented(parts)}\n)"

    def items(self, items: Any) -> str:
        parts = [self.of(item) for item in items]
        if len(parts) <= 1 and not any("\n" in p for p in parts):
            return f"[{', '.join(parts)}]"
        return f"[\n{self._indented(parts)}\n]"

    def scalars(self, values: Any) -> str:
        """The dimensions of a shape."""
        parts = [f"Expr(value=`{_scalar(value)}`)" for value in values]
        return f"[{', '.join(parts)}]" if len(parts) <= 1 else f"[\n{self._indented(parts)}\n]"

    def _indented(self, parts: list[str]) -> str:
        text = ",\n".join(parts)
        return "\n".join(self.indent + line for line in text.split("\n"))

    def typed(self, node: Any) -> list[tuple[str, str]]:
        return [("ty", self.of(node.ty))] if self.types and node.ty is not None else []

    def attributes(self, call: Call) -> list[tuple[str, str]]:
        if not (self.attrs and call.attrs):
            return []
        text = ", ".join(f"{_quoted(k)}: {v!r}" for k, v in call.attrs.items())
        return [("attrs", "{" + text + "}")]


def _scalar(node: Any) -> str:
    dtype = getattr(node, "dtype", "")
    value = getattr(node, "value", None)
    return f"T.{dtype}({value})" if isinstance(value, (int, float)) else str(node)


def _var(d: _Dump, node: Var) -> str:
    return d.node(type(node).__name__, [("name", _quoted(node.name)), *d.typed(node)])


def _tensor_type(d: _Dump, ty: TensorType) -> str:
    shape = [("shape", d.of(ty.shape))] if ty.shape is not None else [("ndim", str(ty.ndim))]
    return d.node("TensorType", [("dtype", ty.dtype or "void"), *shape])


def _shape_type(d: _Dump, ty: ShapeType) -> str:
    values = [] if ty.values is None else [("values", d.scalars(ty.values))]
    return d.node("ShapeType", [("ndim", str(ty.ndim)), *values])


def _shape(d: _Dump, node: ShapeExpr) -> str:
    ty = [("ty", d.of(ShapeType(node.values)))] if d.types else []
    return d.node("ShapeExpr", [("values", d.scalars(node.values)), *ty])


def _call(d: _Dump, node: Call) -> str:
    types = [("ty_args", d.items(node.ty_args))] if node.ty_args else []
    fields = [("op", d.of(node.op)), ("args", d.items(node.args)), *d.attributes(node), *types, *d.typed(node)]
    return d.node("Call", fields)


def _function(d: _Dump, node: Function) -> str:
    ret = [] if node.ret_ty is None or not d.types else [("ret_ty", d.of(node.ret_ty))]
    attrs = ", ".join(f"{_quoted(k)}: {_quoted(v) if isinstance(v, str) else repr(v)}" for k, v in node.attrs.items())
    fields = [("params", d.items(node.params)), ("body", d.of(node.body)), *ret, ("is_pure", str(node.is_pure))]
    known = node.ret_ty is not None and all(p.ty is not None for p in node.params)
    shown = [("attrs", "{" + attrs + "}")] if node.attrs else []
    return d.node("Function", [*fields, *shown, *(d.typed(node) if known else [])])


def _block(d: _Dump, node: BindingBlock) -> str:
    return d.node("BindingBlock", [("bindings", d.items(node.bindings))])


_KINDS: dict[type, Callable[[_Dump, Any], str]] = {
    Var: _var,
    DataflowVar: _var,
    Call: _call,
    Function: _function,
    BindingBlock: _block,
    DataflowBlock: _block,
    Constant: lambda d, n: d.node("GenericConst", [("value", str(n.data.tolist())), *d.typed(n)]),
    Tuple: lambda d, n: d.node("Tuple", [("fields", d.items(n.fields)), *d.typed(n)]),
    TupleGetItem: lambda d, n: d.node(
        "TupleGetItem", [("tuple_value", d.of(n.tuple_value)), ("index", str(n.index)), *d.typed(n)]
    ),
    ShapeExpr: _shape,
    SeqExpr: lambda d, n: d.node("SeqExpr", [("blocks", d.items(n.blocks)), ("body", d.of(n.body)), *d.typed(n)]),
    If: lambda d, n: d.node(
        "If",
        [
            ("cond", d.of(n.cond)),
            ("true_branch", d.of(n.true_branch)),
            ("false_branch", d.of(n.false_branch)),
            *d.typed(n),
        ],
    ),
    VarBinding: lambda d, n: d.node("VarBinding", [("var", d.of(n.var)), ("value", d.of(n.value))]),
    MatchCast: lambda d, n: d.node("MatchCast", [("var", d.of(n.var)), ("value", d.of(n.value)), ("ty", d.of(n.ty))]),
    GlobalVar: lambda d, n: d.node("GlobalVar", [("name_hint", _quoted(n.name_hint))]),
    ExternFunc: lambda d, n: d.node("ExternFunc", [("global_symbol", _quoted(n.global_symbol))]),
    Op: lambda d, n: d.node("Op", [("name", _quoted(n.name))]),
    StringImm: lambda d, n: d.node("StringImm", [("value", _quoted(n.value)), *d.typed(n)]),
    StringType: lambda d, t: d.node("StringType", []),
    DataTypeImm: lambda d, n: d.node("DataTypeImm", [("value", n.value)]),
    TensorType: _tensor_type,
    ShapeType: _shape_type,
    PrimType: lambda d, t: d.node("PrimType", [("dtype", t.dtype)]),
    TupleType: lambda d, t: d.node("TupleType", [("fields", d.items(t.fields))]),
    FuncType: lambda d, t: d.node(
        "FuncType", [("params", d.items(t.params or ())), ("ret", d.of(t.ret)), ("purity", str(t.purity))]
    ),
}
