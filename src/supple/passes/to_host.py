"""Graph functions to host IR: the last step before LLVM (see ``ir/host.py``).

Expects A-normal form with only these calls left: ``call_tir``, packed calls, ``print``, ``shape_of``, ``reshape``,
calls of graph functions. Values that may outlive the activation (results, arguments of packed and graph calls, values
of branches) get tensor objects of their own; everything else becomes `Alloc`, for which ``plan_memory`` finds a place
in the arena.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

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
from supple.ir.host import HostFunction, HostStmt, HostVar, show, show_shape, show_type
from supple.ir.loop import PrimFunc
from supple.ir.module import IRModule
from supple.ir.node import Expr, Type
from supple.ir.op import Op
from supple.ir.types import AnyType, BufferType, PrimType, TensorType, TupleType
from supple.ir.walk import free_symbols
from supple.passes.escape import escaping_variables
from supple.passes.host_kernels import KernelCalls, KernelInfo
from supple.passes.host_module import HostModule
from supple.passes.host_values import (
    CAME,
    Checker,
    NumberValue,
    ObjectValue,
    ShapeValue,
    Sizes,
    TensorValue,
    TupleValue,
    Value,
    Where,
    bare_symbol,
    shape_text,
)
from supple.runtime.abi import ErrorSite, Kind
from supple.runtime.executable import PackedCall
from supple.sym.relate import assignable
from supple.sym.simplify import SHAPES, product


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


class _Lowering:
    """The lowering of one function."""

    def __init__(self, name: str, mod: IRModule, kernels: Mapping[str, KernelInfo], host: HostModule) -> None:
        self.name = name
        self.mod = mod
        self.kernels = kernels
        self.host = host
        self.env: dict[int, Value] = {}
        self.check = Checker(name, [])
        self.escaping: set[int] = set()
        self.kernel_calls = KernelCalls(name, self.check)
        self.sizes = Sizes()

    @property
    def out(self) -> list[HostStmt]:
        """Where statements go now."""
        return self.check.out

    def emit(self, statement: HostStmt) -> None:
        self.out.append(statement)

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
        self.kernel_calls.run(info, buffers, scalars, mapping)
        self.emit(H.Return(self.object(TupleValue(()))))
        return HostFunction(self.name, tuple(params), prologue, tuple(self.out), span=func.span)

    # --------------------------------------------------------------------------------------------------------- values

    def value(self, e: Expr, var: Var | None = None) -> Value:
        """Lower an expression; ``var`` is the variable it is bound to, if any."""
        if type(e) in _NESTED:
            return self._nested(e, var)
        handler = _HANDLERS.get(type(e))
        if handler is not None:
            return handler(self, e, var)
        if is_scalar(e):
            return NumberValue(self._numbers(e))
        raise NotSupportedError(f"{self.name}: native code does not support {type(e).__name__} here", e.span)

    def _variable(self, e: Var, var: Var | None) -> Value:
        known = self.env.get(id(e))
        if known is not None:
            return known
        if isinstance(e.ty, PrimType) and id(e) in self.check.bound:
            return NumberValue(e)
        raise InternalError(f"{self.name}: variable {e.name} has no value where it is used")

    def _numbers(self, e: Expr) -> Expr:
        """A scalar expression; all its variables must have values."""
        for symbol in free_symbols(e):
            if id(symbol) not in self.check.bound and id(symbol) not in self.env:
                raise NotSupportedError(f"{self.name}: symbol {symbol.name} has no value here", e.span or symbol.span)
        return e

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
            matched: Value = self._match_tensor(value, binding.ty, where)
        elif isinstance(value, NumberValue) and isinstance(binding.ty, PrimType):
            matched = value
        else:
            matched = self.check.adopt(self.object(value), binding.ty, where)
        self.check.finish()
        self.env[id(binding.var)] = matched

    def _match_tensor(self, value: TensorValue, ty: TensorType, where: Where) -> TensorValue:
        """Match dimensions that are known as expressions: no object is needed."""
        assert value.shape is not None
        dims = ty.shape.values if isinstance(ty.shape, ShapeExpr) else None
        if value.dtype is None and ty.dtype is not None and value.object is not None:
            self.emit(H.CheckObject(value.object, Kind.TENSOR, ty.dtype, ty.ndim, where.site(CAME)))
        elif (ty.dtype is not None and ty.dtype != value.dtype) or ty.ndim not in (-1, len(value.shape)):
            never = E.const(False, "bool")
            self.emit(H.Require(never, (), where.site(shape_text(value.shape, value.dtype or "unknown"))))
            return TensorValue(ty.dtype, dims or value.shape, value.memory, value.object, value.view)
        for axis, actual in enumerate(value.shape):
            if dims is None:
                break
            symbol = bare_symbol(dims[axis])
            if symbol is not None and id(symbol) not in self.check.bound:
                self.emit(H.Compute(symbol, actual))
                self.check.define(symbol, f"{where.path}.shape[{axis}]")
            elif SHAPES.equal(dims[axis], actual) is not True:
                number = self.check.number(f"{where.path}.{axis}")
                self.emit(H.Compute(number, actual))
                self.check.expect(dims[axis], number, axis, where)
        return TensorValue(value.dtype or ty.dtype, dims or value.shape, value.memory, value.object, value.view)

    def _constant(self, e: Constant, var: Var | None) -> Value:
        array = np.asarray(e.data)
        memory = self.check.fresh("const", "memory")
        self.emit(H.ConstantAt(memory, self.host.constant(e.data)))
        return TensorValue(dtypes.from_numpy(array.dtype), tuple(int64(d) for d in array.shape), memory)

    def _tuple(self, e: Tuple, var: Var | None) -> Value:
        return TupleValue(tuple(self.value(f) for f in e.fields))

    def _tuple_item(self, e: TupleGetItem, var: Var | None) -> Value:
        value = self.value(e.tuple_value)
        if isinstance(value, TupleValue):
            return value.fields[e.index]
        assert isinstance(value, ObjectValue)
        where = Where("match", f"{self.name}: field {e.index} of a tuple", "a tuple with that field", "tuple", e.span)
        self.emit(H.CheckObject(value.object, Kind.TUPLE, None, -1, where.site(CAME)))
        length = self.check.number("length")
        self.emit(H.LoadDim(length, value.object, -1, True))
        self.emit(H.Require(E.LT(int64(e.index), length), (length,), where.site("a tuple of {0} fields")))
        item = self.check.fresh(f"{value.object.name}.{e.index}")
        self.emit(H.TupleField(item, value.object, e.index))
        adopted = self.check.adopt(item, _type_of(e, var), where)
        self.check.finish()
        return adopted

    def _shape(self, e: ShapeExpr, var: Var | None) -> Value:
        return ShapeValue(tuple(self._numbers(v) for v in e.values))

    def _string(self, e: StringImm | DataTypeImm, var: Var | None) -> Value:
        obj = self.check.fresh("string")
        self.emit(H.ConstantObject(obj, self.host.string(e.value)))
        return ObjectValue(obj)

    def _closure(self, e: Expr, var: Var | None) -> Value:
        raise NotSupportedError(f"{self.name}: native code does not support local functions (closures) yet", e.span)

    def _if(self, e: If, var: Var | None) -> Steps:
        condition = self._condition(e.cond)
        ty = _type_of(e, var)
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

    def _condition(self, e: Expr) -> Expr:
        value = self.value(e)
        if isinstance(value, NumberValue):
            return value.value
        if isinstance(value, TensorValue) and value.dtype == "bool" and value.shape == ():
            number = self.check.number("condition", "bool")
            self.emit(H.LoadScalar(number, value.memory, "bool"))
            return number
        raise TypeCheckError(f"{self.name}: the condition of a branch must be a scalar bool tensor", span=e.span)

    def object(self, value: Value) -> HostVar:
        """The native object of a value; memory that belongs to nobody is copied into a tensor of its own."""
        if isinstance(value, ObjectValue):
            return value.object
        if isinstance(value, NumberValue):
            obj = self.check.fresh("number")
            self.emit(H.MakeNumber(obj, value.value))
            return obj
        if isinstance(value, TensorValue):
            return self._tensor_object(value)
        if value.object is not None:
            return value.object
        if isinstance(value, ShapeValue):
            obj = self.check.fresh("shape")
            self.emit(H.MakeShape(obj, value.values))
            return obj
        fields = tuple(self.object(f) for f in value.fields)
        obj = self.check.fresh("tuple")
        self.emit(H.MakeTuple(obj, fields))
        return obj

    def _tensor_object(self, value: TensorValue) -> HostVar:
        if value.object is not None and not value.view:
            return value.object
        assert value.shape is not None
        assert value.dtype is not None
        if value.object is not None:
            view = self.check.fresh(f"{value.object.name}.view")
            self.emit(H.ViewOf(view, value.object, value.shape, value.dtype))
            return view
        copy = self._new_tensor("copy", value.shape, value.dtype, None)
        self.emit(H.Copy(copy.memory, value.memory, self.sizes.nbytes(value.shape, value.dtype)))
        assert copy.object is not None
        return copy.object

    # ---------------------------------------------------------------------------------------------------------- calls

    def _call(self, e: Call, var: Var | None) -> Value:
        op = e.op
        if isinstance(op, Op):
            handler = _OPERATORS.get(op.name)
            if handler is not None:
                return handler(self, e, var)
            raise NotSupportedError(
                f"{self.name}: operator {op.name} has no native code",
                e.span,
                hint="it has no compute definition, or the module was not legalised",
            )
        if isinstance(op, ExternFunc):
            return self._packed(e, op, e.args, var)
        if isinstance(op, GlobalVar):
            return self._graph_call(e, op, var)
        raise NotSupportedError(f"{self.name}: native code does not support calls of function values yet", e.span)

    def _graph_call(self, e: Call, callee: GlobalVar, var: Var | None) -> Value:
        name = callee.name_hint
        if not isinstance(self.mod.functions.get(callee), Function):
            raise NotSupportedError(
                f"{self.name}: {name} is not a graph function of the module",
                e.span,
                hint="call_tir runs loop functions",
            )
        args = tuple(self.object(self.value(a)) for a in e.args)
        result = self.check.fresh(var.name if var is not None else name)
        self.emit(H.HostCall(result, name, args, span=e.span))
        ty = _type_of(e, var)
        where = Where("match", f"{self.name}: result of {name}", show_type(ty), result.name, e.span)
        value = self.check.adopt(result, ty, where)
        self.check.finish()
        return value

    def _packed(self, e: Call, callee: Expr, args: Sequence[Expr], var: Var | None) -> Value:
        if not isinstance(callee, ExternFunc):
            raise NotSupportedError(f"{self.name}: packed calls need a registered function's name", e.span)
        name = callee.global_symbol
        result = self._python(PackedCall(name), tuple(self.object(self.value(a)) for a in args), var, e.span)
        types = e.ty_args
        ty: Type = types[0] if len(types) == 1 else TupleType(types) if types else AnyType()
        where = Where("match", f"{self.name}: result of packed function {name}", show_type(ty), result.name, e.span)
        value = self.check.adopt(result, ty, where)
        self.check.finish()
        return value

    def _python(self, call: PackedCall, args: tuple[HostVar, ...], var: Var | None, span: Span | None) -> HostVar:
        result = self.check.fresh(var.name if var is not None else "result")
        self.emit(H.PackedCall(result, self.host.call(call), call.name, args, span=span))
        return result

    def _pure_packed(self, e: Call, var: Var | None) -> Value:
        return self._packed(e, e.args[0], e.args[1:], var)

    def _print(self, e: Call, var: Var | None) -> Value:
        values = e.args
        text = e.attrs.get("format", "")
        args = tuple(self.object(self.value(a)) for value in values for a in _fields(value))
        self._python(PackedCall("relax.print", str(text)), args, var, e.span)
        return TupleValue(())

    def _shape_of(self, e: Call, var: Var | None) -> Value:
        value = self.value(e.args[0])
        if not isinstance(value, TensorValue) or value.shape is None:
            raise NotSupportedError(
                f"{self.name}: shape_of a tensor of unknown rank is not supported",
                e.span,
                hint="use R.match_cast(value, R.Tensor((n, ...), dtype)) to name the dimensions",
            )
        return ShapeValue(value.shape)

    def _reshape(self, e: Call, var: Var | None) -> Value:
        """A view of the same elements: nothing is moved, since tensors are compact."""
        value = self.value(e.args[0])
        ty = _type_of(e, var)
        if not isinstance(value, TensorValue) or value.shape is None or value.dtype is None:
            raise NotSupportedError(f"{self.name}: reshape of a tensor of unknown rank or dtype", e.span)
        if not isinstance(ty, TensorType) or not isinstance(ty.shape, ShapeExpr):
            raise NotSupportedError(f"{self.name}: reshape to a shape of unknown rank", e.span)
        shape = tuple(self._numbers(v) for v in ty.shape.values)
        self._require_sizes(shape, e.span)
        before, after = product(value.shape), product(shape)
        if SHAPES.equal(before, after) is not True:
            message = f"{self.name}: reshape of {show_shape(value.shape)} to {show_shape(shape)}: "
            site = ErrorSite("size", message + "{0} elements become {1}", e.span)
            self.emit(H.Require(E.EQ(before, after), (before, after), site))
        return TensorValue(value.dtype, shape, value.memory, value.object, view=value.object is not None)

    def _call_tir(self, e: Call, var: Var | None) -> Value:
        callee = e.args[0]
        assert isinstance(callee, GlobalVar)
        info = self.kernels.get(callee.name_hint)
        if info is None:
            raise NotSupportedError(f"{self.name}: call_tir of {callee.name_hint}, which is no loop function", e.span)
        inputs = [self.value(a) for a in _fields(e.args[1])]
        outputs = self._outputs(e, var)
        numbers: list[Value] = []
        if len(e.args) > 2:
            shape = self.value(e.args[2])
            assert isinstance(shape, ShapeValue)
            numbers = [NumberValue(v) for v in shape.values]
        self.kernel_calls.bind(callee.name_hint, info, [*inputs, *outputs, *numbers], e.span)
        return outputs[0] if _is_single(e) else TupleValue(tuple(outputs))

    def _outputs(self, e: Call, var: Var | None) -> list[TensorValue]:
        """Fresh tensors for the results of a destination-passing call."""
        outputs: list[TensorValue] = []
        for ty in _result_types(e):
            if not isinstance(ty, TensorType) or not isinstance(ty.shape, ShapeExpr) or ty.dtype is None:
                raise NotSupportedError(
                    f"{self.name}: the result of a destination-passing call must have a known shape and dtype", e.span,
                    actual=show_type(ty),
                )  # fmt: skip
            shape = tuple(self._numbers(v) for v in ty.shape.values)
            outputs.append(self._new_tensor(var.name if var is not None else "out", shape, ty.dtype, var, e.span))
        return outputs

    def _new_tensor(
        self, hint: str, shape: tuple[Expr, ...], dtype: str, var: Var | None, span: Span | None = None
    ) -> TensorValue:
        """Memory for a tensor: in the arena if the value stays inside and its size is known at the start."""
        self._require_sizes(shape, span)
        nbytes = self.sizes.nbytes(shape, dtype)
        local = var is not None and id(var) not in self.escaping
        memory = self.check.fresh(hint, "memory")
        if local and self.kernel_calls.known_at_entry(nbytes):
            self.emit(H.Alloc(memory, nbytes))
            return TensorValue(dtype, shape, memory)
        obj = self.check.fresh(f"{hint}.object")
        self.emit(H.NewTensor(obj, shape, dtype))
        self.emit(H.DataOf(memory, obj))
        return TensorValue(dtype, shape, memory, obj)

    def _require_sizes(self, shape: tuple[Expr, ...], span: Span | None) -> None:
        for dim in shape:
            if self.check.may_be_negative(dim):
                site = ErrorSite("size", f"{self.name}: the dimension {show(dim)} is negative: {{0}}", span)
                self.emit(H.Require(E.LE(int64(0), dim), (dim,), site))

    def _call_dps_packed(self, e: Call, var: Var | None) -> Value:
        callee = e.args[0]
        if not isinstance(callee, ExternFunc):
            raise NotSupportedError(f"{self.name}: call_dps_packed needs a registered function's name", e.span)
        inputs = [self.object(self.value(a)) for a in _fields(e.args[1])]
        outputs = self._outputs(e, None)
        args = (*inputs, *(self.object(o) for o in outputs))
        self._python(PackedCall(callee.global_symbol), args, None, e.span)
        return outputs[0] if _is_single(e) else TupleValue(tuple(outputs))

    def _inplace(self, e: Call, var: Var | None) -> Value:
        raise NotSupportedError(f"{self.name}: call_tir_inplace has no native code yet", e.span)


def _type_of(e: Any, var: Var | None) -> Type:
    """The deduced type of an expression: its own, or that of the variable it is bound to."""
    ty: Type | None = e.ty if e.ty is not None or var is None else var.ty
    return AnyType() if ty is None else ty


def _fields(e: Expr) -> tuple[Expr, ...]:
    return e.fields if isinstance(e, Tuple) else (e,)


def _result_types(e: Call) -> tuple[Type, ...]:
    types = e.ty_args
    if len(types) == 1 and isinstance(types[0], TupleType):
        return types[0].fields
    return types


def _is_single(e: Call) -> bool:
    return len(e.ty_args) == 1 and not isinstance(e.ty_args[0], TupleType)


_HANDLERS: dict[type, Callable[[_Lowering, Any, Var | None], Value]] = {
    Var: _Lowering._variable,
    E.DataflowVar: _Lowering._variable,
    Constant: _Lowering._constant,
    Tuple: _Lowering._tuple,
    TupleGetItem: _Lowering._tuple_item,
    ShapeExpr: _Lowering._shape,
    StringImm: _Lowering._string,
    DataTypeImm: _Lowering._string,
    Function: _Lowering._closure,
    Call: _Lowering._call,
}

_NESTED: dict[type, Callable[[_Lowering, Any, Var | None], Steps]] = {
    SeqExpr: _Lowering._sequence,
    If: _Lowering._if,
}

_OPERATORS: dict[str, Callable[[_Lowering, Call, Var | None], Value]] = {
    "relax.call_tir": _Lowering._call_tir,
    "relax.call_tir_inplace": _Lowering._inplace,
    "relax.call_packed": _Lowering._pure_packed,
    "relax.call_pure_packed": _Lowering._pure_packed,
    "relax.call_dps_packed": _Lowering._call_dps_packed,
    "relax.print": _Lowering._print,
    "relax.shape_of": _Lowering._shape_of,
    "relax.reshape": _Lowering._reshape,
    "relax.flatten": _Lowering._reshape,
}
