"""Whole graph functions: fixing parameters and symbols, inlining calls, copies with variables of their own; and the
small constructors of ``relax`` (``const``, ``extern``, ``prim_value``...)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from supple.base.errors import DiagnosticError
from supple.base.registry import did_you_mean
from supple.build.functor import PyExprMutator
from supple.build.infer import infer
from supple.ir.expr import Call, DataflowVar, Var, as_expr, is_scalar, scalar_dtype
from supple.ir.expr import const as scalar_const
from supple.ir.graph import (
    FUNCTION_METHODS,
    Constant,
    ExternFunc,
    Function,
    GlobalVar,
    MatchCast,
    ShapeExpr,
    Tuple,
    VarBinding,
    constant,
)
from supple.ir.loop import PrimFunc
from supple.ir.node import METHODS, Expr, Node, Type, replace
from supple.ir.op import Op
from supple.ir.types import BufferType, FuncType, PrimType, TensorType
from supple.ir.walk import evaluate_with, pre_order, substitute, transform
from supple.sym.relate import bind_parameters, defined_symbols

# ------------------------------------------------------------------------------------------------- small constructors


def const(value: Any, dtype: str | None = None) -> Constant:
    """A tensor constant: a number, nested list, numpy array or `Tensor`; see `supple.ir.graph.constant`.

    As in Relax, float64 and int64 arrays become float32 and int32 where no dtype is given; ``OverflowError`` for an
    integer that does not fit.
    """
    given = value.numpy() if hasattr(value, "numpy") else value
    return constant(given, dtype) if dtype is not None else constant(*_narrowed(given))


def _narrowed(value: Any) -> tuple[Any, str | None]:
    if not hasattr(value, "dtype") or str(value.dtype) not in ("int64", "float64"):
        return value, None
    array = np.asarray(value)
    if str(array.dtype) == "float64":
        return array, "float32"
    limits = np.iinfo("int32")
    if array.size and (array.min() < limits.min or array.max() > limits.max):
        raise OverflowError('const: int64 values become int32, where they do not fit: say dtype="int64"')
    return array, "int32"


def prim_value(value: Any, dtype: str | None = None) -> Expr:
    """A scalar as a graph value: int64 for Python ints, float64 for floats unless ``dtype`` says otherwise."""
    if isinstance(value, Expr):
        if not is_scalar(value):
            raise TypeError(f"prim_value: expected a scalar, got {type(value).__name__}")
        return value
    if isinstance(value, float) and dtype is None:
        dtype = "float64"
    return as_expr(value, dtype)


def extern(name: str, ty: Type | None = None) -> ExternFunc:
    """A registered function by name, as a value."""
    return ExternFunc(name, ty)


def make_shape(shape: Any) -> ShapeExpr:
    """A shape value of ints and scalars."""
    if not isinstance(shape, (list, tuple)):
        raise ValueError(f"make_shape: expected a list or tuple, got {shape!r}")
    return ShapeExpr(shape)  # type: ignore[arg-type]


def get_shape_of(expr: Expr) -> Expr:
    """The shape of a tensor: its known `ShapeExpr`, or a call of ``shape_of``."""
    ty = infer(expr)
    if not isinstance(ty, TensorType):
        raise TypeError(f"get_shape_of: expected a tensor, got a value of type {ty}")
    return ty.shape if ty.shape is not None else Call(Op.of_role("shape_of"), (expr,))


def convert_to_expr(value: Any) -> Expr:
    """A graph value of a Python value: ints and floats become scalars (int64, float64), strings strings, sequences
    tuples."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, (tuple, list)):
        return Tuple(tuple(convert_to_expr(v) for v in value))
    if hasattr(value, "__array__") or hasattr(value, "numpy"):
        return const(value)
    return prim_value(value) if isinstance(value, float) else as_expr(value)


# ------------------------------------------------------------------------------------------------------ whole functions


def _by_name(what: str, key: Any, candidates: list[Var]) -> Var:
    """The variable that a key of a mapping names."""
    if isinstance(key, Var):
        if all(key is not v for v in candidates):
            raise DiagnosticError(
                f"{what}: {key.name!r} is not one of {', '.join(v.name for v in candidates) or 'none'}"
            )
        return key
    found = [v for v in candidates if v.name == key]
    if len(found) != 1:
        why = "there are several" if found else "there is none"
        names = [v.name for v in candidates]
        raise DiagnosticError(f"{what}: no one variable is named {key!r}: {why}{did_you_mean(str(key), names)}")
    return found[0]


def bind_params(func: Function, binding_map: Mapping[Any, Any]) -> Function:
    """The function with some parameters fixed to values (by name or variable); they are no parameters any more.

    Symbols that a fixed tensor's shape determines are fixed too. Raises ``ValueError`` for a name that is not a
    parameter, or a value whose type does not fit.
    """
    mapping: dict[Var, Expr] = {}
    for key, given in binding_map.items():
        param = _by_name("bind_params", key, list(func.params))
        mapping[param] = _param_value(param, given)
    symbols = bind_parameters([p.ty for p in mapping if p.ty is not None], [infer(v) for v in mapping.values()])
    for param, value in mapping.items():
        _check_fits(param, value)
    kept = tuple(p for p in func.params if all(p is not q for q in mapping))
    smaller = replace(func, params=kept)
    # parameters before symbols: a variable whose type changes is rebuilt, and would not be found any more
    result: Function = evaluate_with(substitute(smaller, mapping), symbols)
    return result


def _param_value(param: Var, given: Any) -> Expr:
    if isinstance(given, Expr):
        return given
    if isinstance(param.ty, PrimType):
        return scalar_const(given, param.ty.dtype)
    array = given.numpy() if hasattr(given, "numpy") else given
    dtype = param.ty.dtype if isinstance(param.ty, TensorType) and not hasattr(array, "dtype") else None
    return constant(array, dtype)  # an array keeps its dtype: the parameter's


def _check_fits(param: Var, value: Expr) -> None:
    ty, given = param.ty, infer(value)
    if isinstance(ty, TensorType) and isinstance(given, TensorType):
        same_rank = ty.ndim in (-1, given.ndim) or given.ndim == -1
        same_dtype = ty.dtype is None or given.dtype is None or ty.dtype == given.dtype
        if same_rank and same_dtype:
            return
    elif type(ty) is type(given):
        return
    raise ValueError(f"bind_params: {param.name} has type {ty}, the value has type {given}")


def bind_symbolic_vars(func: Function, binding_map: Mapping[Any, Any]) -> Function:
    """The function with some symbols of its signature fixed to integers or expressions (by name or variable)."""
    symbols = defined_symbols([p.ty for p in func.params if p.ty is not None])
    mapping: dict[Var, Expr] = {}
    for key, given in binding_map.items():
        var = _by_name("bind_symbolic_vars", key, symbols)
        if var in mapping:
            raise ValueError(f"bind_symbolic_vars: {var.name!r} is bound twice")
        mapping[var] = as_expr(given, var.dtype)
    result: Function = evaluate_with(func, mapping)
    return result


class _Inliner(PyExprMutator):
    """Replaces calls of some functions of the module by their bodies."""

    def __init__(self, functions: Mapping[str, Function]) -> None:
        super().__init__()
        self.functions = functions
        self.inside: list[str] = []

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = self.visit_expr(binding.value)
        # what a callee returns takes the result's place, unless it is not visible where the result is
        if value is not binding.value and isinstance(value, Var) and type(value) in (Var, type(binding.var)):
            self.set_var_remap(binding.var, value)
        else:
            self.reemit(binding.var, value)

    def visit_call_(self, op: Call) -> Expr:
        call = super().visit_call_(op)
        if not isinstance(call, Call) or not isinstance(op.op, GlobalVar) or op.op.name_hint not in self.functions:
            return call
        name = op.op.name_hint
        if name in self.inside:
            raise ValueError(f"inline_functions: {name} calls itself: {' -> '.join([*self.inside, name])}")
        callee = copy_with_new_vars(self.functions[name])
        self.inside.append(name)
        symbols = bind_parameters(
            [p.ty for p in callee.params if p.ty is not None], [infer(self.builder_.normalize(a)) for a in call.args]
        )
        # parameters before symbols: a variable whose type changes is rebuilt, and would not be found any more
        body = evaluate_with(substitute(callee.body, dict(zip(callee.params, call.args, strict=True))), symbols)
        for block in body.blocks:
            for binding in block.bindings:
                self.visit_binding(binding)
        result = self.visit_expr(body.body)
        self.inside.pop()
        return result


def inline_functions(func: Function, function_map: Mapping[Any, Any]) -> Function:
    """The function with calls of the given functions (by name or `GlobalVar`) replaced by their bodies.

    Raises ``ValueError`` when one of them calls itself, directly or through the others.
    """
    functions = {str(getattr(key, "name_hint", key)): value for key, value in function_map.items()}
    for name, value in functions.items():
        if not isinstance(value, Function):
            raise TypeError(f"inline_functions: {name} is not a graph function, but a {type(value).__name__}")
    result = _Inliner(functions).visit_expr(func)
    assert isinstance(result, Function)
    return result


def copy_with_new_vars(func: Function) -> Function:
    """The same function with variables of its own: parameters, bindings and symbols are new objects."""
    bound: list[Var] = list(func.params)
    for item in pre_order(func):
        if isinstance(item, (VarBinding, MatchCast)):
            bound.append(item.var)
        elif isinstance(item, Function):
            bound.extend(item.params)
        if isinstance(item, MatchCast):
            bound.extend(defined_symbols([item.ty]))
    bound.extend(defined_symbols([p.ty for p in func.params if p.ty is not None]))
    known = {id(v) for v in bound}

    def rename(node: Node) -> Node | None:
        # transform rebuilds a variable whose type changed; one that did not change is copied here
        if isinstance(node, Var) and id(node) in known:
            return (DataflowVar if isinstance(node, DataflowVar) else Var)(node.name, node.ty, span=node.span)
        return None

    result = transform(func, rename)
    assert isinstance(result, Function)
    return result


FUNCTION_METHODS["bind_params"] = bind_params
FUNCTION_METHODS["bind_symbolic_vars"] = bind_symbolic_vars
FUNCTION_METHODS["inline_functions"] = inline_functions


def specialize(func: PrimFunc, param_map: Mapping[Any, Any]) -> PrimFunc:
    """A loop function with scalar parameters fixed to values, and buffer parameters to the shapes of other buffers."""
    values: dict[Var, Node] = {}
    fixed: set[int] = set()
    for key, value in param_map.items():
        param = _by_name("specialize", key, list(func.params))
        if isinstance(param.ty, BufferType):
            given = getattr(value, "ty", None)
            if not isinstance(given, BufferType) or len(given.shape) != len(param.ty.shape):
                raise DiagnosticError(f"specialize: {param.name} takes a buffer of {len(param.ty.shape)} dimensions")
            pairs = zip(param.ty.shape, given.shape, strict=True)
            values.update({formal: actual for formal, actual in pairs if isinstance(formal, Var)})
        else:
            values[param] = as_expr(value, scalar_dtype(param))
            fixed.add(id(param))
    rest = tuple(p for p in func.params if id(p) not in fixed)
    special: PrimFunc = substitute(replace(func, params=rest), values)
    return special


METHODS["specialize"] = specialize


def derive_call_ret_type(func_ty: FuncType, call: Call, ctx: Any = None) -> Type:
    """The type of a call of a function of type ``func_ty``; raises `TypeCheckError` for arguments that do not fit.

    ``ctx`` is Relax's builder, which is not needed here.
    """
    return infer(Call(Var("callee", func_ty), call.args, {}, span=call.span))
