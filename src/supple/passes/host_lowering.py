"""The state of one function's lowering to host IR, and what every form needs of it.

How nodes and calls are lowered is in tables (``to_host`` for nodes, ``host_calls``, ``host_closures``, ``host_memory``
for calls); their functions take the lowering, the node, and the variable that the value is bound to.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from supple.base.errors import NotSupportedError
from supple.base.source import Span
from supple.ir import expr as E
from supple.ir import host as H
from supple.ir.expr import Call, Var, int64
from supple.ir.graph import ShapeExpr, Tuple
from supple.ir.host import HostStmt, HostVar, show, show_type
from supple.ir.loop import PrimFunc
from supple.ir.module import IRModule
from supple.ir.node import Expr, Type
from supple.ir.types import AnyType, TensorType, TupleType, result_types
from supple.ir.walk import free_symbols
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
from supple.runtime.program import PackedCall
from supple.sym.simplify import SHAPES


class Lowering(abc.ABC):
    """The lowering of one function: variables and what they are, statements so far."""

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

    @abc.abstractmethod
    def value(self, e: Expr, var: Var | None = None) -> Value:
        """Lower an expression; ``var`` is the variable it is bound to, if any."""

    @property
    def out(self) -> list[HostStmt]:
        """Where statements go now."""
        return self.check.out

    def emit(self, statement: HostStmt) -> None:
        self.out.append(statement)

    def numbers(self, e: Expr) -> Expr:
        """A scalar expression; all its variables must have values."""
        for symbol in free_symbols(e):
            if id(symbol) not in self.check.bound and id(symbol) not in self.env:
                raise NotSupportedError(f"{self.name}: symbol {symbol.name} has no value here", e.span or symbol.span)
        return e

    # -------------------------------------------------------------------------------------------------------- objects

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

    def objects(self, args: Sequence[Expr]) -> tuple[HostVar, ...]:
        """The native objects of arguments."""
        return tuple(self.object(self.value(a)) for a in args)

    def _tensor_object(self, value: TensorValue) -> HostVar:
        if value.object is not None and not value.view:
            return value.object
        assert value.shape is not None
        assert value.dtype is not None
        if value.object is not None:
            view = self.check.fresh(f"{value.object.name}.view")
            self.emit(H.ViewOf(view, value.object, value.memory, value.shape, value.dtype))
            return view
        copy = self.copied(value)
        assert copy.object is not None
        return copy.object

    def copied(self, value: TensorValue) -> TensorValue:
        """A fresh tensor with memory of its own and the same contents."""
        assert value.shape is not None
        assert value.dtype is not None
        copy = self.new_tensor("copy", value.shape, value.dtype, None)
        self.emit(H.Copy(copy.memory, value.memory, self.sizes.nbytes(value.shape, value.dtype)))
        return copy

    def new_tensor(
        self, hint: str, shape: tuple[Expr, ...], dtype: str, var: Var | None, span: Span | None = None
    ) -> TensorValue:
        """Memory for a tensor: in the arena if the value stays inside and its size is known at the start."""
        self.require_sizes(shape, span)
        nbytes = self.sizes.nbytes(shape, dtype)
        local = var is not None and id(var) not in self.escaping
        memory = self.check.fresh(hint, "memory")
        if local and self.kernel_calls.known_at_entry(nbytes):
            self.emit(H.Alloc(memory, nbytes, span=span))
            return TensorValue(dtype, shape, memory, root=memory)
        obj = self.check.fresh(f"{hint}.object")
        self.emit(H.NewTensor(obj, shape, dtype, span=span))
        self.emit(H.DataOf(memory, obj))
        return TensorValue(dtype, shape, memory, obj, root=memory)

    def require_sizes(self, shape: tuple[Expr, ...], span: Span | None) -> None:
        """Fail where a dimension is negative."""
        for dim in shape:
            if self.check.may_be_negative(dim):
                site = ErrorSite("size", f"{self.name}: the dimension {show(dim)} is negative: {{0}}", span)
                self.emit(H.Require(E.LE(int64(0), dim), (dim,), site))

    def outputs(self, e: Call, var: Var | None) -> list[TensorValue]:
        """Fresh tensors for the results of a destination-passing call."""
        return [self.output(ty, e, var) for ty in result_types(e.ty_args)]

    def output(self, ty: Type, e: Call, var: Var | None) -> TensorValue:
        """A fresh tensor for a result of that type."""
        if not isinstance(ty, TensorType) or not isinstance(ty.shape, ShapeExpr) or ty.dtype is None:
            raise NotSupportedError(
                f"{self.name}: the result of a destination-passing call must have a known shape and dtype", e.span,
                actual=show_type(ty),
            )  # fmt: skip
        shape = tuple(self.numbers(v) for v in ty.shape.values)
        return self.new_tensor(var.name if var is not None else "out", shape, ty.dtype, var, e.span)

    # --------------------------------------------------------------------------------------------------------- checks

    def adopted(self, obj: HostVar, ty: Type, what: str, span: Span | None) -> Value:
        """What an object is, once it is checked against a type; ``what`` names it in messages."""
        where = Where("match", f"{self.name}: {what}", show_type(ty), obj.name, span)
        value = self.check.adopt(obj, ty, where)
        self.check.finish()
        return value

    def tuple_field(self, obj: HostVar, index: int, what: str, span: Span | None) -> HostVar:
        """A field of a tuple object, checked to be one that is long enough."""
        where = Where("match", f"{self.name}: {what}", "a tuple with that field", "tuple", span)
        self.emit(H.CheckObject(obj, Kind.TUPLE, None, -1, where.site(CAME)))
        length = self.check.number("length")
        self.emit(H.LoadDim(length, obj, -1, True))
        self.emit(H.Require(E.LT(int64(index), length), (length,), where.site("a tuple of {0} fields")))
        item = self.check.fresh(f"{obj.name}.{index}")
        self.emit(H.TupleField(item, obj, index))
        return item

    def tensor(self, e: Expr, what: str, span: Span | None, dtype: str | None = None, ndim: int = -1) -> TensorValue:
        """The value of an expression as a tensor whose dtype and rank are known; an opaque object is checked."""
        value = self.value(e)
        if isinstance(value, ObjectValue) or (
            isinstance(value, TensorValue) and (value.shape is None or value.dtype is None)
        ):
            if dtype is None or ndim < 0:
                raise NotSupportedError(
                    f"{self.name}: {what} of unknown rank or dtype", span,
                    hint="use R.match_cast(value, R.Tensor((n, ...), dtype)) to name the dimensions",
                )  # fmt: skip
            obj = value.object
            assert obj is not None
            where = Where("match", f"{self.name}: {what}", f"Tensor(ndim={ndim}, {dtype})", obj.name, span)
            value = self.check.adopt_tensor(obj, dtype, None, ndim, where)
        if not isinstance(value, TensorValue):
            raise NotSupportedError(f"{self.name}: {what} must be a tensor", span, actual=type(value).__name__)
        return value

    def match_tensor(self, value: TensorValue, ty: TensorType, where: Where) -> TensorValue:
        """Match dimensions that are known as expressions: no object is needed."""
        assert value.shape is not None
        dims = ty.shape.values if isinstance(ty.shape, ShapeExpr) else None
        if value.dtype is None and ty.dtype is not None and value.object is not None:
            self.emit(H.CheckObject(value.object, Kind.TENSOR, ty.dtype, ty.ndim, where.site(CAME)))
        elif (ty.dtype is not None and ty.dtype != value.dtype) or ty.ndim not in (-1, len(value.shape)):
            never = E.const(False, "bool")
            self.emit(H.Require(never, (), where.site(shape_text(value.shape, value.dtype or "unknown"))))
            return replace(value, dtype=ty.dtype, shape=dims or value.shape)
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
        return replace(value, dtype=value.dtype or ty.dtype, shape=dims or value.shape)

    def condition(self, e: Expr, what: str = "the condition of a branch") -> Expr:
        """A bool: a scalar, or the element of a scalar bool tensor."""
        value = self.value(e)
        if isinstance(value, NumberValue):
            return value.value
        if not isinstance(value, TensorValue) or value.dtype is None or value.shape is None:
            value = self.tensor(e, what, e.span, "bool", 0)
        if value.dtype != "bool" or value.shape != ():
            raise NotSupportedError(f"{self.name}: {what} must be a scalar bool tensor", e.span)
        number = self.check.number("condition", "bool")
        self.emit(H.LoadScalar(number, value.memory, "bool"))
        return number

    # ---------------------------------------------------------------------------------------------------------- Python

    def python(self, call: PackedCall, args: tuple[HostVar, ...], var: Var | None, span: Span | None) -> HostVar:
        """Call into Python; the object it returns."""
        result = self.check.fresh(var.name if var is not None else "result")
        self.emit(H.PackedCall(result, self.host.call(call), call.name, args, span=span))
        return result

    def kernel_of(self, e: Call, form: str) -> tuple[str, PrimFunc, KernelInfo]:
        """The loop function that a call names first, and its kernel."""
        callee = e.args[0]
        name = str(getattr(callee, "name_hint", "?"))
        func = self.mod.functions.get(callee)  # type: ignore[call-overload]
        info = self.kernels.get(name)
        if not isinstance(func, PrimFunc) or info is None:
            raise NotSupportedError(f"{self.name}: {form} of {name}, which is no loop function", e.span)
        return name, func, info


Handler: TypeAlias = Callable[[Lowering, Any, Var | None], Value]
"""Lowers a node or a call."""


def type_of(e: Any, var: Var | None) -> Type:
    """The deduced type of an expression: its own, or that of the variable it is bound to."""
    ty: Type | None = e.ty if e.ty is not None or var is None else var.ty
    return AnyType() if ty is None else ty


def fields_of(e: Expr) -> tuple[Expr, ...]:
    """The fields of a tuple literal, or the expression alone."""
    return e.fields if isinstance(e, Tuple) else (e,)


def packaged(e: Call, values: Sequence[Value]) -> Value:
    """The results of a destination-passing call as one value."""
    single = len(e.ty_args) == 1 and not isinstance(e.ty_args[0], TupleType)
    return values[0] if single else TupleValue(tuple(values))
