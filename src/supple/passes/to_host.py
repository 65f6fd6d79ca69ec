"""Graph functions to host IR: the last step before LLVM (see ``ir/host.py``).

Expects A-normal form without local functions, and no calls but those of functions and of the operators in the tables
of ``host_calls``, ``host_memory`` and ``host_closures``. Values that may outlive the activation (results, arguments of
packed and graph calls, what closures capture, values of branches) get tensor objects of their own; everything else
becomes `Alloc`, for which ``plan_memory`` finds a place in the arena.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeAlias

import numpy as np

from supple.analysis.returns import result_dtype
from supple.base import dtypes
from supple.base.errors import InternalError, NotSupportedError, TypeCheckError
from supple.base.source import Span
from supple.ir import expr as E
from supple.ir import host as H
from supple.ir.expr import Call, StringImm, TupleGetItem, Var, int64, is_scalar
from supple.ir.graph import (
    Constant,
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
from supple.ir.host import HostFunction, HostVar, show_type
from supple.ir.loop import PrimFunc
from supple.ir.module import IRModule
from supple.ir.node import Expr
from supple.ir.op import Op
from supple.ir.types import BufferType, PrimType, TensorType
from supple.ops.calls import refuse_notes
from supple.passes.escape import escaping_variables
from supple.passes.host_calls import CALLS, loop_call, packed
from supple.passes.host_closures import CLOSURES, call_value, extern_value, function_value
from supple.passes.host_kernels import KernelInfo
from supple.passes.host_lowering import Handler, Lowering, type_of
from supple.passes.host_memory import MEMORY
from supple.passes.host_module import HostModule
from supple.passes.host_values import (
    NumberValue,
    ObjectValue,
    ShapeValue,
    TensorValue,
    TupleValue,
    Value,
    Where,
    shape_text,
)
from supple.sym.relate import assignable


def to_host(mod: IRModule, kernels: Mapping[str, KernelInfo]) -> HostModule:
    """Lower every graph function; public loop functions get an entry that checks their buffers and runs the kernel.

    ``kernels`` maps the names of loop functions to their kernels. Raises `NotSupportedError` for what native code
    cannot do, by name, and `TypeCheckError` where a loop function is called with buffers that cannot fit.
    """
    host = HostModule()
    for var, func in mod.items():
        if isinstance(func, Function):
            host.functions.append(_Lowering(var.name_hint, mod, kernels, host).function(func))
        elif isinstance(func, PrimFunc) and "global_symbol" in func.attrs:
            host.functions.append(_Lowering(var.name_hint, mod, kernels, host).loop_function(func))
    return host


Steps: TypeAlias = Generator[tuple[Expr, Var | None], Any, Value]
"""A lowering that asks for the values of nested expressions."""


class _Lowering(Lowering):
    """The lowering of one function."""

    # ------------------------------------------------------------------------------------------------------ functions

    def function(self, func: Function) -> HostFunction:
        """Lower a graph function."""
        self.escaping = escaping_variables(func)
        params: list[HostVar] = []
        for index, param in enumerate(func.params):
            obj = self.check.fresh(param.name)
            params.append(obj)
            self.env[id(param)] = self._parameter(index, param, obj)
        self.check.finish()
        prologue = self._begin_body()
        result = self.value(func.body)
        if func.ret_ty is not None and assignable(func.body.ty, func.ret_ty) is not True:
            where = Where("match", f"{self.name}: result", show_type(func.ret_ty), "result", func.span)
            result = self.check.adopt(self.object(result), func.ret_ty, where)
            self.check.finish()
        self.emit(H.Return(self.object(result)))
        return HostFunction(self.name, tuple(params), prologue, tuple(self.out), span=func.span)

    def _parameter(self, index: int, param: Var, obj: HostVar) -> Value:
        where = Where(
            "parameter", f"{self.name}: parameter {param.name}", show_type(param.ty), param.name, param.span, index
        )
        if isinstance(param.ty, PrimType):
            if id(param) not in self.check.bound:
                self.check.adopt_number(obj, param, where)
                self.check.define(param, param.name)
                return NumberValue(param)
            value = self.check.adopt_number(obj, self.check.number(f"{param.name}.value", param.ty.dtype), where)
            reason = f": {param.name} is {{0}} ({self.check.origin[id(param)]}) and {{1}}"
            self.emit(H.Require(E.EQ(value, param), (param, value), where.site("{1}", reason)))
            return NumberValue(param)
        return self.check.adopt(obj, param.ty, where)

    def _begin_body(self) -> H.Body:
        prologue = tuple(self.out)
        self.check.out = []
        self.kernel_calls.entry_symbols = set(self.check.bound)
        return prologue

    def loop_function(self, func: PrimFunc) -> HostFunction:
        """The entry of a loop function: it takes its buffers, results among them, and returns nothing."""
        info = self.kernels[self.name]
        params: list[HostVar] = []
        mapping: dict[int, Expr] = {}
        memories: dict[int, HostVar] = {}
        for index, param in enumerate(info.params):
            obj = self.check.fresh(param.name)
            params.append(obj)
            prefix = f"{self.name}: parameter {param.name}"
            if isinstance(param.ty, BufferType):
                text = shape_text(param.ty.shape, param.ty.dtype)
                where = Where("parameter", prefix, text, param.name, param.span, index)
                value = self.check.adopt_tensor(obj, param.ty.dtype, param.ty.shape, -1, where)
                memories[id(param)] = value.memory
            else:
                where = Where("parameter", prefix, show_type(param.ty), param.name, param.span, index)
                self.check.adopt_number(obj, param, where)
                self.check.define(param, param.name)
        self.check.finish()
        prologue = self._begin_body()
        buffers = tuple(memories[id(p)] for p in info.params if id(p) in memories)
        scalars = tuple(p for p in info.params if id(p) not in memories)
        dtype = result_dtype(func)
        if dtype is not None:
            self.emit(H.ClearReturn())
        self.kernel_calls.run(info, buffers, scalars, mapping, None)
        nothing = self.object(TupleValue(())) if dtype is None else self._returned(dtype)
        self.emit(H.Return(nothing))
        return HostFunction(self.name, tuple(params), prologue, tuple(self.out), span=func.span)

    def _returned(self, dtype: str) -> HostVar:
        """What a kernel returned, as an object: a number, or nothing."""
        flag, number = self.check.number("returned", "bool"), self.check.number("number", dtype)
        self.emit(H.TakeReturn(flag, number))
        result, some, none = (self.check.fresh(hint) for hint in ("result", "number.object", "nothing"))
        then = (H.MakeNumber(some, number), H.Yield(result, some))
        otherwise = (H.MakeTuple(none, ()), H.Yield(result, none))
        self.emit(H.Branch(flag, then, otherwise, result))
        return result

    # --------------------------------------------------------------------------------------------------------- values

    def value(self, e: Expr, var: Var | None = None) -> Value:
        """Lower an expression; ``var`` is the variable it is bound to, if any."""
        if type(e) in _NESTED:
            return self._nested(e, var)
        handler = _HANDLERS.get(type(e))
        if handler is not None:
            return handler(self, e, var)
        if is_scalar(e):
            return NumberValue(self.numbers(e))
        raise NotSupportedError(f"{self.name}: native code does not support {type(e).__name__} here", e.span)

    def _variable(self, e: Var, var: Var | None) -> Value:
        known = self.env.get(id(e))
        if known is not None:
            return known
        if isinstance(e.ty, PrimType) and id(e) in self.check.bound:
            return NumberValue(e)
        raise InternalError(f"{self.name}: variable {e.name} has no value where it is used")

    def _nested(self, e: Expr, var: Var | None) -> Value:
        """Lower sequences and branches, whose nesting may be deep, with a stack of steps."""
        stack = [_NESTED[type(e)](self, e, var)]
        sent: Value | None = None
        while True:
            try:
                request = stack[-1].send(sent)
            except StopIteration as finished:
                stack.pop()
                result: Value = finished.value
                if not stack:
                    return result
                sent = result
            else:
                stack.append(_NESTED[type(request[0])](self, *request))
                sent = None

    def _sequence(self, e: SeqExpr, var: Var | None) -> Steps:
        for block in e.blocks:
            for binding in block.bindings:
                if isinstance(binding, MatchCast):
                    self._match_cast(binding)
                    continue
                assert isinstance(binding, VarBinding)
                value = yield from self._step(binding.value, binding.var)
                if isinstance(value, NumberValue) and value.value is not binding.var:
                    self.emit(H.Compute(binding.var, value.value))
                    self.check.define(binding.var, binding.var.name)
                    self.check.signed.add(id(binding.var))
                    value = NumberValue(binding.var)
                self.env[id(binding.var)] = value
        return (yield from self._step(e.body, var))

    def _step(self, e: Expr, var: Var | None) -> Steps:
        """The value of a part: left to the stack of `_nested` if it nests, else lowered here."""
        if type(e) in _NESTED:
            nested: Value = yield e, var
            return nested
        return self.value(e, var)

    def _match_cast(self, binding: MatchCast) -> None:
        value = self.value(binding.value)
        name = getattr(binding.value, "name", binding.var.name)
        prefix = f"{self.name}: match_cast of {name}"
        where = Where("match", prefix, show_type(binding.ty), name, binding.span)
        if isinstance(value, TensorValue) and isinstance(binding.ty, TensorType) and value.shape is not None:
            matched: Value = self.match_tensor(value, binding.ty, where)
        elif isinstance(value, NumberValue) and isinstance(binding.ty, PrimType):
            matched = value
        else:
            matched = self.check.adopt(self.object(value), binding.ty, where)
        self.check.finish()
        self.env[id(binding.var)] = matched

    def _constant(self, e: Constant, var: Var | None) -> Value:
        array = np.asarray(e.data)
        memory = self.check.fresh("const", "memory")
        self.emit(H.ConstantAt(memory, self.host.constant(e.data)))
        shape = tuple(int64(d) for d in array.shape)
        return TensorValue(dtypes.from_numpy(array.dtype), shape, memory, constant=True)

    def _tuple(self, e: Tuple, var: Var | None) -> Value:
        return TupleValue(tuple(self.value(f) for f in e.fields))

    def _tuple_item(self, e: TupleGetItem, var: Var | None) -> Value:
        value = self.value(e.tuple_value)
        if isinstance(value, TupleValue):
            return value.fields[e.index]
        assert isinstance(value, ObjectValue)
        what = f"field {e.index} of a tuple"
        item = self.tuple_field(value.object, e.index, what, e.span)
        return self.adopted(item, type_of(e, var), what, e.span)

    def _shape(self, e: ShapeExpr, var: Var | None) -> Value:
        return ShapeValue(tuple(self.numbers(v) for v in e.values))

    def _string(self, e: StringImm | DataTypeImm, var: Var | None) -> Value:
        obj = self.check.fresh("string")
        self.emit(H.ConstantObject(obj, self.host.string(e.value)))
        return ObjectValue(obj)

    def _function(self, e: Expr, var: Var | None) -> Value:
        raise NotSupportedError(
            f"{self.name}: a local function that is not bound to a variable", e.span, hint="LambdaLift lifts the others"
        )

    def _if(self, e: If, var: Var | None) -> Steps:
        condition = self.condition(e.cond)
        ty = type_of(e, var)
        target: HostVar | Var
        if isinstance(ty, PrimType):
            target = self.check.number(var.name if var is not None else "value", ty.dtype)
        else:
            target = self.check.fresh(var.name if var is not None else "value")
        bodies: list[H.Body] = []
        for branch in (e.true_branch, e.false_branch):
            outer, self.check.out = self.check.out, []
            bound, origin = dict(self.check.bound), dict(self.check.origin)
            self._yield(target, (yield from self._step(branch, None)), e.span)
            bodies.append(tuple(self.check.out))
            self.check.out, self.check.bound, self.check.origin = outer, bound, origin
        self.emit(H.Branch(condition, bodies[0], bodies[1], target, span=e.span))
        if isinstance(target, Var):
            self.check.define(target, target.name)
            self.check.signed.add(id(target))
            return NumberValue(target)
        name = var.name if var is not None else "if"
        where = Where("match", f"{self.name}: value of the branch {name}", show_type(ty), name, e.span)
        value = self.check.adopt(target, ty, where)
        self.check.finish()
        return value

    def _yield(self, target: HostVar | Var, value: Value, span: Span | None) -> None:
        """The value of a branch goes to the variable of the branches."""
        if isinstance(target, HostVar):
            self.emit(H.Yield(target, self.object(value)))
        elif isinstance(value, NumberValue):
            self.emit(H.Yield(target, value.value))
        else:
            raise TypeCheckError(f"{self.name}: a branch gives {type(value).__name__} for a scalar", span=span)

    # ---------------------------------------------------------------------------------------------------------- calls

    def _call(self, e: Call, var: Var | None) -> Value:
        op = e.op
        if isinstance(op, Op):
            handler = _OPERATORS.get(op)
            if handler is not None:
                return handler(self, e, var)
            raise NotSupportedError(
                f"{self.name}: operator {op.name} has no native code",
                e.span,
                hint="it has no compute definition, or the module was not legalised",
            )
        if isinstance(op, ExternFunc):
            refuse_notes(e)
            return packed(self, e, op, e.args, var)
        if isinstance(op, GlobalVar):
            return self._graph_call(e, op, var)
        return call_value(self, e, var)

    def _graph_call(self, e: Call, callee: GlobalVar, var: Var | None) -> Value:
        name = callee.name_hint
        target = self.mod.functions.get(callee)
        if isinstance(target, ExternFunc):
            return packed(self, e, target, e.args, var)
        if isinstance(target, PrimFunc):
            return loop_call(self, e, name, target)
        if not isinstance(target, Function):
            raise InternalError(f"{self.name}: the module has no function {name}")
        args = self.objects(e.args)
        result = self.check.fresh(var.name if var is not None else name)
        self.emit(H.HostCall(result, name, args, span=e.span))
        return self.adopted(result, type_of(e, var), f"result of {name}", e.span)


_HANDLERS: dict[type, Callable[[_Lowering, Any, Var | None], Value]] = {
    Var: _Lowering._variable,
    E.DataflowVar: _Lowering._variable,
    Constant: _Lowering._constant,
    Tuple: _Lowering._tuple,
    TupleGetItem: _Lowering._tuple_item,
    ShapeExpr: _Lowering._shape,
    StringImm: _Lowering._string,
    DataTypeImm: _Lowering._string,
    Function: _Lowering._function,
    GlobalVar: function_value,
    ExternFunc: extern_value,
    Call: _Lowering._call,
}

_NESTED: dict[type, Callable[[_Lowering, Any, Var | None], Steps]] = {
    SeqExpr: _Lowering._sequence,
    If: _Lowering._if,
}

_OPERATORS: Mapping[Op, Handler] = {**CALLS, **MEMORY, **CLOSURES}
