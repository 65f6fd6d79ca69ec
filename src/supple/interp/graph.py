"""Graph functions in numpy: operators by their references, loop functions by the loop interpreter.

Values are numpy arrays (tensors), tuples, `ShapeTuple` (shapes), Python numbers, strings and closures. Every value that
is bound is checked against its deduced type, so a wrong type rule shows where it happens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.base.errors import ArgumentError, ExecutionError, InternalError, NotSupportedError, SuppleError
from supple.base.source import Span
from supple.interp.forms import FORMS, Partial
from supple.interp.loops import run_prim_func
from supple.ir.expr import Call, DataflowVar, FloatImm, IntImm, StringImm, TupleGetItem, Var, is_scalar, scalar_dtype
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
)
from supple.ir.loop import PrimFunc
from supple.ir.module import BaseFunc, IRModule
from supple.ir.node import Expr, Type
from supple.ir.op import Op
from supple.ir.types import AnyType, FuncType, PrimType, ShapeType, StringType, TensorType, TupleType, result_types
from supple.ir.walk import free_symbols
from supple.ops import calls
from supple.ops.forms import CALL_TIR_WITH_GRAD
from supple.ops.requirements import Requirement, requirements_of
from supple.runtime import dlpack
from supple.runtime.packed import get_global_func
from supple.runtime.tensor import ShapeTuple, Tensor
from supple.sym.relate import tensor_dims
from supple.sym.simplify import evaluate, solve_linear
from supple.verify.events import operands

Value = Any


class Closure:
    """A local function with the variables around it."""

    def __init__(self, func: Function, frame: _Frame) -> None:
        self.func = func
        self.frame = frame


class _Frame:
    """Values of variables by identity (symbols among them), with those of the enclosing function below."""

    def __init__(self, outer: _Frame | None = None) -> None:
        self.values: dict[int, Value] = dict(outer.values) if outer is not None else {}
        self.symbols: dict[Var, int] = dict(outer.symbols) if outer is not None else {}


class Interpreter:
    """Runs the functions of a module::

        Interpreter(mod).run("main", x, w)

    ``vectorized=False`` runs loop functions one iteration at a time.
    """

    def __init__(self, mod: IRModule | BaseFunc, *, vectorized: bool = True, check_types: bool = True) -> None:
        self.mod = mod if isinstance(mod, IRModule) else IRModule.from_expr(mod)
        self.vectorized = vectorized
        self.check_types = check_types
        self._requirements: dict[int, tuple[Call, list[Requirement]]] = {}  # by the call's id, which it keeps alive

    def run(self, name: str, *args: Any) -> Value:
        """Call a function of the module. Tensors are arrays (or anything numpy takes); the results are arrays.

        Raises `ArgumentError` for arguments that do not fit the signature, `ExecutionError` for checks that fail
        while it runs.
        """
        func = self.mod[name]
        if isinstance(func, PrimFunc):
            return run_prim_func(func, args, vectorized=self.vectorized)
        if not isinstance(func, Function):
            raise NotSupportedError(f"{name} is an external function")
        return self.call(name, func, [_import(a) for a in args], None)

    def call(self, name: str, func: Function, args: Sequence[Value], outer: _Frame | None) -> Value:
        if len(args) != len(func.params):
            raise ArgumentError(f"{name}: takes {len(func.params)} arguments, got {len(args)}")
        frame = _Frame(outer)
        types = [(param.name, param.ty, arg) for param, arg in zip(func.params, args, strict=True)]
        problem = match([(n, t, a) for n, t, a in types if t is not None], frame.symbols)
        if problem is not None:
            raise ArgumentError(f"{name}: {problem}")
        for param, arg in zip(func.params, args, strict=True):
            frame.values[id(param)] = arg
            if isinstance(param.ty, PrimType) and dtypes.is_int(param.ty.dtype):
                frame.symbols[param] = int(arg)
        return self.seq(func.body, frame)

    def seq(self, body: Expr, frame: _Frame) -> Value:
        if not isinstance(body, SeqExpr):
            return self.eval(body, frame)
        for block in body.blocks:
            for binding in block.bindings:
                if isinstance(binding, MatchCast):
                    value = self.eval(binding.value, frame)
                    problem = match([(binding.var.name, binding.ty, value)], frame.symbols)
                    if problem is not None:
                        raise ExecutionError(f"match_cast: {problem}")
                else:
                    value = self.eval(binding.value, frame)  # type: ignore[attr-defined]
                    self._check(binding.var, value, frame)  # type: ignore[attr-defined]
                frame.values[id(binding.var)] = value  # type: ignore[attr-defined]
                if isinstance(binding.var.ty, PrimType) and isinstance(value, (int, np.integer)):  # type: ignore[attr-defined]
                    frame.symbols[binding.var] = int(value)  # type: ignore[attr-defined]
        return self.eval(body.body, frame)

    def eval(self, e: Expr, frame: _Frame) -> Value:
        rule = _EVAL.get(type(e))
        if rule is not None:
            return rule(self, e, frame)
        if is_scalar(e):
            return evaluate(e, frame.symbols)
        raise NotSupportedError(f"the interpreter has no {type(e).__name__}", span=e.span)

    def _check(self, var: Var, value: Value, frame: _Frame) -> None:
        if not self.check_types or var.ty is None:
            return
        unbound = dict(frame.symbols)
        problem = match([(var.name, var.ty, value)], unbound)
        if problem is not None:
            raise InternalError(f"the deduced type does not hold: {problem}")

    def _require_sizes(self, ty: Type | None, frame: _Frame, span: Span | None) -> None:
        """Raise `ExecutionError` for a result of a negative size (a window that is larger than what it moves over)."""
        for part in ty.fields if isinstance(ty, TupleType) else (ty,):
            for dim in (tensor_dims(part) if isinstance(part, TensorType) else None) or ():
                if isinstance(dim, (IntImm, Var)) or not all(s in frame.symbols for s in free_symbols(dim)):
                    continue
                size = evaluate(dim, frame.symbols)
                if size < 0:
                    raise ExecutionError(f"the dimension {dim} is negative: {size}", span, "a size", str(size))

    def _call(self, e: Call, frame: _Frame) -> Value:
        """A call's value. What fails while it runs without a place of its own happened here."""
        try:
            return self._apply(e, frame)
        except ExecutionError as error:
            if error.span is None:
                error.span = e.span
            raise

    def _apply(self, e: Call, frame: _Frame) -> Value:
        op = e.op
        if isinstance(op, Op):
            special = _SPECIAL.get(id(op))
            if special is not None:
                return special(self, e, frame)
            if op.ref is None:
                raise NotSupportedError(f"the interpreter has no meaning for {op.name}", span=e.span)
            self._require(e, op, frame)
            self._require_sizes(e.ty, frame, e.span)
            values = [self.eval(a, frame) for a in e.args]
            if op.facts.get("typed_numbers") or (
                op.params and op.params[0].kind == "operand"
            ):  # a number has the dtype of its type, not numpy's
                values = [_number(v, a) if is_scalar(a) else v for v, a in zip(values, e.args, strict=True)]
            result = _refer(op, values, e)
            if isinstance(e.ty, PrimType):
                return np.asarray(result).item()
            return tuple(_import(r) for r in result) if isinstance(result, (tuple, list)) else _import(result)
        args = [self.eval(a, frame) for a in e.args]
        if isinstance(op, GlobalVar):
            return self._call_global(op, args)
        if isinstance(op, ExternFunc):
            calls.refuse_notes(e)
            return call_packed(op.global_symbol, args)
        return self.call_value(self.eval(op, frame), args)

    def _require(self, e: Call, op: Op, frame: _Frame) -> None:
        """Check what the call asks of its operands' sizes beyond what is proved."""
        if id(e) not in self._requirements:
            self._requirements[id(e)] = e, requirements_of(e) if op.infer is not None else []
        for needed in self._requirements[id(e)][1]:
            expected, actual = (evaluate(v, frame.symbols) for v in (needed.expected, needed.actual))
            if expected != actual:
                raise ExecutionError(needed.text, e.span, str(expected), str(actual))

    def call_value(self, callee: Value, args: list[Value]) -> Value:
        """Call a function that is a value: a closure, a function of the module, a function with arguments fixed."""
        while isinstance(callee, Partial):
            callee, args = callee.func, [*callee.args, *args]
        if isinstance(callee, ExternFunc):
            return call_packed(callee.global_symbol, args)
        if isinstance(callee, Closure):
            return self.call("local function", callee.func, args, callee.frame)
        if isinstance(callee, GlobalVar):
            return self._call_global(callee, args)
        if callable(callee):  # a Python function that was passed as an argument
            return _import(callee(*(_export(a) for a in args)))
        raise ExecutionError(f"cannot call a {type(callee).__name__}")

    def packed(self, name: str, args: list[Value]) -> Value:
        """Call a registered function."""
        return call_packed(name, args)

    def imported(self, value: Value) -> Value:
        """A value that Python gave, as the interpreter holds it."""
        return _import(value)

    def loops(self, func: PrimFunc, args: list[Value]) -> None:
        """Run a loop function on arrays and scalars."""
        run_prim_func(func, args, vectorized=self.vectorized)

    def _call_global(self, var: GlobalVar, args: list[Value]) -> Value:
        func = self.mod[var]
        if isinstance(func, Function):
            return self.call(var.name_hint, func, args, None)
        if isinstance(func, ExternFunc):
            return call_packed(func.global_symbol, args)
        assert isinstance(func, PrimFunc)
        result = run_prim_func(func, args, vectorized=self.vectorized)
        if result is None:
            raise ExecutionError(f"{var.name_hint} returned nothing")
        return result

    def _call_tir(self, e: Call, frame: _Frame) -> Value:
        callee = e.args[0]
        func = self.mod[callee]  # type: ignore[index]
        assert isinstance(func, PrimFunc)
        args = list(self.eval(e.args[1], frame))
        extra = [evaluate(v, frame.symbols) for v in e.args[2].values] if len(e.args) > 2 else []  # type: ignore[attr-defined]
        types = result_types(e.ty_args)
        places = e.attrs.get("inplace_indices", (-1,) * len(types))
        for place in places:
            if place >= 0 and not args[place].flags.writeable:  # a constant, or numpy's view of repeated elements
                args[place] = args[place].copy()
        outs = [args[place] if place >= 0 else self._empty(ty, frame) for ty, place in zip(types, places, strict=True)]
        fresh = [out for out, place in zip(outs, places, strict=True) if place < 0]
        run_prim_func(func, [*args, *fresh, *extra], vectorized=self.vectorized)
        return outs[0] if len(outs) == 1 else tuple(outs)

    def _empty(self, ty: Type, frame: _Frame) -> Value:
        assert isinstance(ty, TensorType) and ty.dtype is not None
        dims = tensor_dims(ty)
        assert dims is not None
        self._require_sizes(ty, frame, None)
        return np.zeros(tuple(evaluate(d, frame.symbols) for d in dims), dtypes.to_numpy(ty.dtype))

    def _call_dps_packed(self, e: Call, frame: _Frame) -> Value:
        args = list(self.eval(e.args[1], frame))
        outs = [self._empty(ty, frame) for ty in result_types(e.ty_args)]
        call_packed(e.args[0].global_symbol, [*args, *outs])  # type: ignore[attr-defined]
        return outs[0] if len(outs) == 1 else tuple(outs)

    def _print(self, e: Call, frame: _Frame) -> Value:
        calls.print_values([self.eval(a, frame) for a in e.args], e.attrs["format"])
        return ()

    def _reshape(self, e: Call, frame: _Frame) -> Value:
        """The deduced shape says what 0 and -1 stand for, which an empty tensor does not tell."""
        value = self.eval(e.args[0], frame)
        dims = tensor_dims(e.ty) if isinstance(e.ty, TensorType) else None
        if dims is None:
            assert isinstance(e.op, Op)
            return _refer(e.op, [value, self.eval(e.args[1], frame)], e)
        return _reshaped(value, tuple(evaluate(d, frame.symbols) for d in dims), e.span)

    def _if(self, e: If, frame: _Frame) -> Value:
        condition = self.eval(e.cond, frame)
        return self.seq(e.true_branch if bool(np.asarray(condition).item()) else e.false_branch, frame)


def _refer(op: Op, args: Sequence[Value], e: Call) -> Value:
    """An operator's value by its reference. What numpy refuses becomes an error of the program, with operator, place
    and operands, as compiled code reports it."""
    assert op.ref is not None
    try:
        return op.ref(*args, **e.attrs)
    except ExecutionError as error:
        error.message = f"{op.short_name}: {error.message}"
        raise
    except (IndexError, ValueError, ArithmeticError) as error:
        if isinstance(error, SuppleError):
            raise
        given = ", ".join(_described(a) for a in args)
        raise ExecutionError(f"{op.short_name}: {error}", e.span, "operands that fit together", given) from error


def _reshaped(value: Value, shape: tuple[int, ...], span: Span | None) -> Value:
    if min(shape, default=0) < 0 or math.prod(shape) != value.size:
        raise ExecutionError("reshape: another number of elements", span, f"{value.size} elements", str(shape))
    return value.reshape(shape)


def _described(value: Value) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, tuple) and not isinstance(value, ShapeTuple):
        return f"({', '.join(_described(v) for v in value)})"
    return str(value)


def call_packed(name: str, args: Sequence[Value]) -> Value:
    """Call a registered function with `Tensor` for arrays; its tensors come back as arrays."""
    func = get_global_func(name)
    assert func is not None
    return _import(func(*(_export(a) for a in args)))


def _export(value: Value) -> Value:
    if isinstance(value, np.ndarray):
        return Tensor(value)
    if isinstance(value, tuple) and not isinstance(value, ShapeTuple):
        return tuple(_export(v) for v in value)
    return value


def _number(value: Value, e: Expr) -> Value:
    return np.asarray(value, dtypes.to_numpy(scalar_dtype(e)))


def _import(value: Value) -> Value:
    if isinstance(value, Tensor):
        return np.asarray(value)  # no copy: a tensor that came back is the one that went out
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, np.generic):
        return np.asarray(value)
    if isinstance(value, ShapeTuple):
        return value
    if isinstance(value, (tuple, list)):
        return tuple(_import(v) for v in value)
    if value is None:
        return ()
    if hasattr(value, "__dlpack__"):
        return dlpack.share(value)
    return value


def match(wanted: Sequence[tuple[str, Type, Value]], symbols: dict[Var, int]) -> str | None:
    """Check values against types, binding symbols on the way; what does not fit, or None.

    A symbol takes its value from a dimension where it stands alone, else from a linear one.
    """
    dims: list[tuple[str, Expr, int]] = []
    for name, ty, value in wanted:
        problem = _kind_problem(name, ty, value, dims)
        if problem is not None:
            return problem
    sources: dict[Var, str] = {}
    for where, dim, extent in dims:
        if isinstance(dim, Var) and dim not in symbols:
            symbols[dim] = extent
            sources[dim] = where
    for where, dim, extent in dims:
        for symbol in operands(dim) if not isinstance(dim, (Var, IntImm)) else ():
            solved = solve_linear(dim, symbol) if isinstance(symbol, Var) and symbol not in symbols else None
            if solved is not None and not any(solved[1].terms):
                if extent % solved[0]:
                    return f"{where}: {extent} is not a multiple of {solved[0]}, so {symbol} has no value"
                symbols[symbol] = extent // solved[0]  # type: ignore[index]
                sources[symbol] = where  # type: ignore[index]
    for where, dim, extent in dims:
        try:
            expected = evaluate(dim, symbols)
        except KeyError as missing:
            return f"{where}: the symbol {missing} has no value"
        if expected != extent:
            seen = f" ({dim} was {expected} in {sources[dim]})" if isinstance(dim, Var) and dim in sources else ""
            return f"{where}: expected {expected}, got {extent}{seen}"
    return None


def _kind_problem(name: str, ty: Type, value: Value, dims: list[tuple[str, Expr, int]]) -> str | None:
    if isinstance(ty, TensorType):
        if not isinstance(value, np.ndarray):
            return f"{name}: expected a tensor, got {type(value).__name__}"
        if ty.dtype is not None and value.dtype != dtypes.to_numpy(ty.dtype):
            return f"{name}: expected {ty.dtype}, got {value.dtype}"
        if ty.ndim not in (-1, value.ndim):
            return f"{name}: expected {ty.ndim} dimensions, got shape {value.shape}"
        for d, (dim, extent) in enumerate(zip(tensor_dims(ty) or (), value.shape, strict=False)):
            dims.append((f"{name}: dimension {d}", dim, extent))
    elif isinstance(ty, TupleType):
        if not isinstance(value, tuple) or len(value) != len(ty.fields):
            return f"{name}: expected a tuple of {len(ty.fields)}, got {value!r}"
        for n, (field, part) in enumerate(zip(ty.fields, value, strict=True)):
            problem = _kind_problem(f"{name}[{n}]", field, part, dims)
            if problem is not None:
                return problem
    elif isinstance(ty, ShapeType):
        if not isinstance(value, tuple) or ty.ndim not in (-1, len(value)):
            return f"{name}: expected a shape of {ty.ndim} dimensions, got {value!r}"
        for d, (dim, extent) in enumerate(zip(ty.values or (), value, strict=False)):
            dims.append((f"{name}: dimension {d}", dim, extent))
    elif isinstance(ty, PrimType) and not isinstance(value, (bool, int, float, np.generic, np.ndarray)):
        return f"{name}: expected a {ty.dtype} scalar, got {type(value).__name__}"
    elif isinstance(ty, StringType) and not isinstance(value, str):
        return f"{name}: expected a string, got {type(value).__name__}"
    elif not isinstance(ty, (TensorType, TupleType, ShapeType, PrimType, StringType, AnyType, FuncType)):
        return f"{name}: values of type {ty} cannot be checked"
    return None


def _variable(run: Interpreter, e: Var, frame: _Frame) -> Value:
    if id(e) in frame.values:
        return frame.values[id(e)]
    if e in frame.symbols:
        return frame.symbols[e]
    raise ExecutionError(f"the variable {e.name} has no value here")


_EVAL: dict[type, Callable[[Interpreter, Any, _Frame], Value]] = {
    Var: _variable,
    DataflowVar: _variable,
    Constant: lambda run, e, frame: np.asarray(e.data),
    Tuple: lambda run, e, frame: tuple(run.eval(f, frame) for f in e.fields),
    TupleGetItem: lambda run, e, frame: run.eval(e.tuple_value, frame)[e.index],
    ShapeExpr: lambda run, e, frame: ShapeTuple([evaluate(v, frame.symbols) for v in e.values]),
    StringImm: lambda run, e, frame: e.value,
    DataTypeImm: lambda run, e, frame: e.value,
    FloatImm: lambda run, e, frame: e.value,
    Function: lambda run, e, frame: Closure(e, frame),
    GlobalVar: lambda run, e, frame: e,
    ExternFunc: lambda run, e, frame: e,
    SeqExpr: lambda run, e, frame: run.seq(e, frame),
    If: Interpreter._if,
    Call: Interpreter._call,
}

_SPECIAL: Mapping[int, Callable[[Interpreter, Call, _Frame], Value]] = {
    id(calls.CALL_TIR): Interpreter._call_tir,
    id(calls.CALL_TIR_INPLACE): Interpreter._call_tir,
    id(CALL_TIR_WITH_GRAD): Interpreter._call_tir,
    **FORMS,
    id(calls.CALL_DPS_PACKED): Interpreter._call_dps_packed,
    id(calls.CALL_PURE_PACKED): lambda run, e, frame: call_packed(
        e.args[0].global_symbol,  # type: ignore[attr-defined]
        [run.eval(a, frame) for a in e.args[1:]],
    ),
    id(calls.print_): Interpreter._print,
    id(Op.of_role("reshape")): Interpreter._reshape,
    id(calls.shape_of): lambda run, e, frame: ShapeTuple(np.shape(run.eval(e.args[0], frame))),
}
