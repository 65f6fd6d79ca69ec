"""Type deduction: the type of every kind of graph expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from supple.base.errors import DiagnosticError, FieldError, Note, TypeCheckError
from supple.ir.expr import Call, IntImm, TupleGetItem, Var, place_of_use
from supple.ir.graph import ExternFunc, Function, GlobalVar, If, SeqExpr, ShapeExpr, Tuple
from supple.ir.node import Expr, Node, Type
from supple.ir.op import Op, signature_text
from supple.ir.types import AnyType, FuncType, ShapeType, TupleType
from supple.ir.walk import substitute, transform
from supple.sym.relate import assignable, bind_parameters, common, defined_symbols, erase, simplify_dims


def infer(e: Expr) -> Type:
    """The type of a graph expression whose operands have types.

    Raises `TypeCheckError` at the expression's span when operands do not fit the operator or function.
    """
    rule = _RULES.get(type(e))
    if rule is not None:
        return rule(e)
    ty: Type | None = getattr(e, "ty", None)
    if ty is None:
        name = getattr(e, "name_hint", getattr(e, "name", type(e).__name__))
        raise TypeCheckError(f"the type of {name} is not known here", span=e.span, rule="untyped")
    return ty


def _infer_call(call: Call) -> Type:
    op = call.op
    try:
        if isinstance(op, Op):
            if op.infer is None:
                raise TypeCheckError(f"{op.name} has no type rule and cannot be used at graph level")
            return op.infer(call)
        if isinstance(op, ExternFunc) and (call.ty_args or op.ty is None or getattr(op.ty, "params", None) is None):
            return packed_result(call.ty_args)
        return _infer_function_call(call)
    except DiagnosticError as error:
        if error.span is None:
            error.span = call.span
        if isinstance(op, Op) and not error.notes:
            error.notes.append(Note(f"the operator's signature is {signature_text(op)}"))
        raise


def packed_result(ty_args: tuple[Type, ...]) -> Type:
    """The result type of a packed call: what its ``ty_args`` say, anything if they say nothing."""
    if not ty_args:
        return AnyType()
    return ty_args[0] if len(ty_args) == 1 else TupleType(ty_args)


def _infer_function_call(call: Call) -> Type:
    op = call.op
    name = getattr(op, "name_hint", getattr(op, "global_symbol", "the function"))
    ty = infer(op)
    if isinstance(ty, AnyType):
        return AnyType()
    if not isinstance(ty, FuncType):
        raise TypeCheckError(f"{name} is not a function", expected="a function", actual=str(ty), rule="call")
    if ty.params is None:
        return ty.ret
    if len(ty.params) != len(call.args):
        raise TypeCheckError(
            f"{name} takes {len(ty.params)} arguments, got {len(call.args)}",
            expected=f"{len(ty.params)} arguments",
            actual=f"{len(call.args)} arguments",
            rule="call",
        )
    actuals = [infer(arg) for arg in call.args]
    mapping = bind_parameters(ty.params, actuals)
    for index, (formal, actual) in enumerate(zip(ty.params, actuals, strict=True)):
        if assignable(actual, substitute(formal, mapping)) is False:
            raise TypeCheckError(
                f"{name}: argument {index} does not fit the parameter's type",
                span=place_of_use(call.args[index], call),
                expected=str(substitute(formal, mapping)),
                actual=str(actual),
                rule="call",
            )
    return _result(ty, mapping)


def _result(ty: FuncType, mapping: dict[Var, Expr]) -> Type:
    """The callee's return type in the caller's symbols; what the arguments do not determine degrades to rank."""
    assert ty.params is not None
    unbound = {id(s) for s in defined_symbols(ty.params)} - {id(s) for s in mapping}
    known = [s for s in defined_symbols([ty.ret]) if id(s) not in unbound]
    return _counted(substitute(erase(ty.ret, known), mapping))


def _counted(ty: Type) -> Type:
    """The type with its dimensions simplified: what was a symbol of the callee may be a number of the caller."""

    def rewrite(found: Node) -> Node | None:
        if isinstance(found, FuncType):
            return found
        if not isinstance(found, (ShapeExpr, ShapeType)) or found.values is None:
            return None
        if all(isinstance(v, (IntImm, Var)) for v in found.values):
            return None
        dims = simplify_dims(found.values)
        return ShapeExpr(dims) if isinstance(found, ShapeExpr) else ShapeType(dims)

    counted = transform(ty, rewrite)
    assert isinstance(counted, Type)
    return counted


def _infer_tuple(e: Tuple) -> Type:
    return TupleType(tuple(f.ty if isinstance(f, Tuple) and f.ty is not None else infer(f) for f in e.fields))


def _infer_get_item(e: TupleGetItem) -> Type:
    ty = infer(e.tuple_value)
    if isinstance(ty, AnyType):
        return AnyType()
    if not isinstance(ty, TupleType):
        raise TypeCheckError("only a tuple has fields", span=e.span, expected="a tuple", actual=str(ty), rule="field")
    if not 0 <= e.index < len(ty.fields):
        raise FieldError(
            f"the tuple has no field {e.index}",
            span=e.span,
            expected=f"an index below {len(ty.fields)}",
            actual=str(e.index),
            rule="field",
        )
    return ty.fields[e.index]


def _infer_if(e: If) -> Type:
    return common(infer(e.true_branch), infer(e.false_branch))


_RULES: dict[type, Callable[[Any], Type]] = {
    Call: _infer_call,
    Tuple: _infer_tuple,
    TupleGetItem: _infer_get_item,
    If: _infer_if,
    SeqExpr: lambda e: infer(e.body),
    ExternFunc: lambda e: e.ty if e.ty is not None else FuncType(None, AnyType(), purity=False),
}

CALLABLE = (GlobalVar, Var, Function, ExternFunc, Op)
