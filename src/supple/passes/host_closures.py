"""Functions as values in host IR: closures are made, extended and called; local functions were lifted before.

A closure is a compiled function of the module and its first arguments. A callee that is no closure may be a Python
callable, which the same call reaches through the callback.
"""

from __future__ import annotations

from collections.abc import Mapping

from supple.base.errors import NotSupportedError
from supple.build.infer import packed_result
from supple.ir import host as H
from supple.ir.expr import Call, Var
from supple.ir.graph import ExternFunc, Function, GlobalVar, Tuple
from supple.ir.host import HostVar
from supple.ir.node import Expr, Type
from supple.ir.op import Op
from supple.ops import forms
from supple.passes.host_lowering import Handler, Lowering, type_of
from supple.passes.host_values import ObjectValue, TupleValue, Value
from supple.runtime.abi import ErrorSite
from supple.runtime.program import PackedCall


def function_value(low: Lowering, e: GlobalVar, var: Var | None) -> Value:
    """A function of the module as a value."""
    return _closure(low, e, (), var)


def extern_value(low: Lowering, e: ExternFunc, var: Var | None) -> Value:
    """A registered function as a value: the Python callable."""
    return ObjectValue(low.python(PackedCall(e.global_symbol, kind="function"), (), var, e.span))


def make_closure(low: Lowering, e: Call, var: Var | None) -> Value:
    """``make_closure``: a function of the module, or a function that is a value, with its first arguments fixed."""
    func, args = e.args
    if isinstance(func, GlobalVar) and isinstance(low.mod.functions.get(func), Function):
        return _closure(low, func, _given(low, args, e), var)
    callee = _callee(low, func, e)
    captured = _given(low, args, e)
    result = low.check.fresh(var.name if var is not None else "closure")
    site = ErrorSite("call", f"{low.name}: make_closure: expected a function, got {{actual}}", e.span, None, "{object}")
    count = ErrorSite(
        "call", f"{low.name}: make_closure: the function takes {{0}} arguments, {len(captured)} are given", e.span
    )
    python = low.host.call(PackedCall(forms.MAKE_CLOSURE.name, kind="partial"))
    low.emit(H.ExtendClosure(result, callee, captured, python, site, count, span=e.span))
    return ObjectValue(result)


def _closure(low: Lowering, func: GlobalVar, captured: tuple[HostVar, ...], var: Var | None) -> Value:
    target = low.mod.functions.get(func)
    if isinstance(target, ExternFunc):
        return extern_value(low, target, var)
    if not isinstance(target, Function):
        raise NotSupportedError(
            f"{low.name}: {func.name_hint} is a loop function, which cannot be a value", func.span,
            hint="call it with call_tir in a graph function, and pass that",
        )  # fmt: skip
    if len(captured) > len(target.params):
        raise NotSupportedError(f"{low.name}: make_closure of {func.name_hint}: too many arguments", func.span)
    result = low.check.fresh(var.name if var is not None else func.name_hint)
    index = low.host.closure(func.name_hint)
    low.emit(H.MakeClosure(result, index, func.name_hint, len(target.params), captured))
    return ObjectValue(result)


def _given(low: Lowering, args: Expr, e: Call) -> tuple[HostVar, ...]:
    """The objects in a tuple of arguments."""
    if isinstance(args, Tuple):
        return low.objects(args.fields)
    value = low.value(args)
    if not isinstance(value, TupleValue):
        raise NotSupportedError(f"{low.name}: the arguments of a closure must be a tuple of known length", e.span)
    return tuple(low.object(f) for f in value.fields)


def invoke(low: Lowering, e: Call, var: Var | None) -> Value:
    """``invoke_closure`` and ``invoke_pure_closure``."""
    return _call(low, e, e.args[0], _given(low, e.args[1], e), packed_result(e.ty_args), var)


def call_value(low: Lowering, e: Call, var: Var | None) -> Value:
    """A call whose callee is a variable."""
    assert isinstance(e.op, Expr)
    return _call(low, e, e.op, low.objects(e.args), type_of(e, var), var)


def _call(low: Lowering, e: Call, func: Expr, objects: tuple[HostVar, ...], ty: Type, var: Var | None) -> Value:
    name = str(getattr(func, "name", getattr(func, "name_hint", "the function")))
    callee = _callee(low, func, e)
    result = low.check.fresh(var.name if var is not None else name)
    text = f"{low.name}: call of {name}: "
    site = ErrorSite("call", f"{text}expected a function, got {{actual}}", e.span, None, "{object}")
    count = ErrorSite("call", f"{text}the function takes {{0}} arguments, got {len(objects)}", e.span)
    python = low.host.call(PackedCall("relax.call_function", kind="invoke"))
    low.emit(H.CallClosure(result, callee, objects, python, site, count, span=e.span))
    return low.adopted(result, ty, f"result of {name}", e.span)


def _callee(low: Lowering, func: Expr, e: Call) -> HostVar:
    value = low.value(func)
    if not isinstance(value, ObjectValue):
        raise NotSupportedError(f"{low.name}: a value that is no function is called", e.span)
    return value.object


CLOSURES: Mapping[Op, Handler] = {
    forms.MAKE_CLOSURE: make_closure,
    forms.INVOKE_CLOSURE: invoke,
    forms.INVOKE_PURE_CLOSURE: invoke,
}
"""Operator -> its lowering."""
