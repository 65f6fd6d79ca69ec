"""The call forms: calls of loop functions and packed functions by destination passing or by value, printing, shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from supple.base.errors import NotSupportedError, TypeCheckError
from supple.build.infer import infer, packed_result
from supple.ir.expr import Call, as_expr, graph_scalar
from supple.ir.graph import UNIT, ExternFunc, GlobalVar, ShapeExpr, Tuple
from supple.ir.node import Expr, Type
from supple.ir.op import OPS, Op, Param, RelaxText
from supple.ir.types import DTensorType, PrimType, ShapeType, TensorType, TupleType, declared_type, result_types
from supple.ops.declare import operator
from supple.sym.relate import tensor_dims
from supple.sym.simplify import same_shape


def _form(name: str, doc: str, infer_call: Callable[[Call], Type], *, pure: bool = True, **facts: Any) -> Op:
    params = (Param("func", "expr"), Param("args", "varargs", ()))
    return OPS.register(f"relax.{name}", Op(f"relax.{name}", doc, params, infer_call, pure=pure, facts=facts))


def destination_result(call: Call) -> Type:
    """``call_tir`` and its relatives return fresh tensors of the declared types."""
    name = call.op.short_name  # type: ignore[attr-defined]
    if len(call.args) < 2:
        raise TypeCheckError(f"{name} needs a function and a tuple of arguments", rule=name)
    if not isinstance(infer(call.args[1]), TupleType):
        raise TypeCheckError(f"{name}: the arguments must be a tuple", actual=str(infer(call.args[1])), rule=name)
    if not call.ty_args:
        raise TypeCheckError(
            f"{name} needs the type of its result", hint="out_ty=R.Tensor((n, 4), dtype=...)", rule=name
        )
    results = result_types(call.ty_args)
    if len(call.ty_args) > 1 or (len(results) == 1 and isinstance(call.ty_args[0], TupleType)):
        declared = ", ".join(map(str, call.ty_args))
        hint = "the type of the one result, or the tuple's of several"
        raise TypeCheckError(f"{name} keeps one type", expected="one type", actual=declared, hint=hint, rule=name)
    for given in results:
        ty = given.tensor_ty if isinstance(given, DTensorType) else given
        if not isinstance(ty, TensorType) or ty.shape is None or ty.dtype is None:
            raise TypeCheckError(
                f"{name}: the result's type must have a known shape and dtype, since the caller allocates it",
                expected="R.Tensor(shape, dtype)",
                actual=str(ty),
                rule=name,
            )
    return packed_result(call.ty_args)


CALL_TIR = _form(
    "call_tir",
    "Call a loop function of the module by destination passing: fresh tensors of the types ``out_ty`` are allocated, "
    "the function fills them, and they are the result. Pure.",
    destination_result,
    calls_loop_function=True,
    role="call_tir",
    prints="destination",
    relax_text=RelaxText(says_type=True),
)


def inplace_result(call: Call) -> Type:
    """`destination_result`, where a result that is an argument has the argument's type."""
    result = destination_result(call)
    arguments = infer(call.args[1])
    assert isinstance(arguments, TupleType)
    for ty, place in zip(result_types(call.ty_args), call.attrs.get("inplace_indices", ()), strict=False):
        given = arguments.fields[place] if 0 <= place < len(arguments.fields) else None
        if not isinstance(ty, TensorType) or not isinstance(given, TensorType):
            continue
        wanted, actual = tensor_dims(ty), tensor_dims(given)
        shapes_differ = wanted is not None and actual is not None and same_shape(wanted, actual) is False
        if given.dtype not in (None, ty.dtype) or given.ndim not in (-1, ty.ndim) or shapes_differ:
            raise TypeCheckError(
                f"call_tir_inplace: the result is argument {place}, but its type is another",
                span=ty.span or call.span,
                expected=str(given),
                actual=str(ty),
                rule="call_tir_inplace",
            )
    return result


CALL_TIR_INPLACE = _form(
    "call_tir_inplace",
    "Like ``call_tir``, but the outputs named by ``inplace_indices`` are the inputs of those positions, overwritten. "
    "A function that is marked pure vouches that nobody else sees it.",
    inplace_result,
    pure=False,
    overwrites=True,
    calls_loop_function=True,
    prints="destination",
)
CALL_DPS_PACKED = _form(
    "call_dps_packed",
    "Call a registered function by destination passing: it gets the arguments and freshly allocated results. Pure.",
    destination_result,
    role="call_dps_packed",
    prints="destination",
    relax_text=RelaxText(says_type=True),
)
CALL_PURE_PACKED = _form(
    "call_pure_packed",
    "Call a registered function by name, on the promise that it has no effect.",
    lambda call: packed_result(call.ty_args),
    prints="packed",
)


def _tuple_of(args: Any) -> Tuple:
    if isinstance(args, Tuple):
        return args
    if isinstance(args, Expr):
        return Tuple((args,))
    return Tuple(tuple(as_expr(a) for a in args))


def _types(types: Any) -> tuple[Type, ...]:
    if types is None:
        return ()
    return (types,) if isinstance(types, Type) else tuple(types)


def destination_types(name: str, out_ty: Any) -> tuple[Type, ...]:
    """What a call by destination passing keeps of ``out_ty``, one type or a list of them; raises ``TypeError`` for a
    tuple's type."""
    if isinstance(out_ty, TupleType):
        raise TypeError(f"{name}: several results are declared by a list of their types, got {out_ty}")
    return declared_type(_types(out_ty))


def call_tir(gvar: GlobalVar, args: Any, out_ty: Type | Sequence[Type], tir_vars: Any = None) -> Call:
    """``R.call_tir(cls.f, (x, w), out_ty=R.Tensor((n, 4), "float32"))``: the `Call`, not yet emitted."""
    if not isinstance(gvar, GlobalVar):
        raise TypeError(f"call_tir: the first argument must be a function of the module (cls.f), got {gvar!r}")
    return destination_call(CALL_TIR, gvar, args, out_ty, tir_vars)


def call_dps_packed(func: str | Expr, args: Any, out_ty: Type | Sequence[Type]) -> Call:
    """``R.call_dps_packed("name", (x,), out_ty=...)``."""
    return destination_call(CALL_DPS_PACKED, _extern(func), args, out_ty, None)


def call_tir_inplace(
    gvar: GlobalVar,
    args: Any,
    inplace_indices: int | Sequence[int],
    out_ty: Type | Sequence[Type],
    tir_vars: Any = None,
) -> Call:
    """``R.call_tir_inplace(cls.f, (x,), [0], out_ty=...)``: output i is input ``inplace_indices[i]`` (-1: fresh)."""
    call = destination_call(CALL_TIR_INPLACE, gvar, args, out_ty, tir_vars)
    indices = [inplace_indices] if isinstance(inplace_indices, int) else list(inplace_indices)
    return Call(call.op, call.args, {"inplace_indices": tuple(int(i) for i in indices)}, call.ty_args)


def destination_call(op: Op, callee: Expr, args: Any, out_ty: Any, tir_vars: Any) -> Call:
    """The `Call` of a form that takes a callee, a tuple of arguments and, perhaps, symbols."""
    operands: tuple[Expr, ...] = (callee, _tuple_of(args))
    if tir_vars is not None:
        shape = tir_vars if isinstance(tir_vars, ShapeExpr) else ShapeExpr(tuple(as_expr(v) for v in tir_vars))
        operands = (*operands, shape)
    return Call(op, operands, {}, destination_types(op.short_name, out_ty))


def _extern(func: str | Expr) -> Expr:
    if isinstance(func, str):
        return ExternFunc(func)
    if isinstance(getattr(func, "ty", None), (TensorType, ShapeType, TupleType, PrimType)):
        raise TypeError(f"a packed function is called by its name, got a value of type {getattr(func, 'ty', None)}")
    return func


def call_packed(func: str | Expr, *args: Any, ty_args: Any = None, **attrs: Any) -> Call:
    """``R.call_packed("name", x, ty_args=...)``: a registered function, which may have effects. ``attrs`` are notes for
    passes: a call that still has some when it would run is refused."""
    attrs.pop("attrs_type_key", None)
    return Call(_extern(func), tuple(_value(a) for a in args), dict(sorted(attrs.items())), _types(ty_args))


def refuse_notes(call: Call) -> None:
    """Refuse to run the call of a packed function with notes, which nothing would hand over to it."""
    if call.attrs:
        raise NotSupportedError(
            f"R.call_packed: the attributes {', '.join(call.attrs)} do not reach the function",
            call.span,
            hint="pass them as arguments",
        )


def call_pure_packed(func: str | Expr, *args: Any, ty_args: Any = None) -> Call:
    """``R.call_pure_packed("name", x, ty_args=...)``: a registered function without effects."""
    return Call(CALL_PURE_PACKED, (_extern(func), *(_value(a) for a in args)), {}, _types(ty_args))


def _value(value: Any) -> Expr:
    if isinstance(value, (tuple, list)):
        return Tuple(tuple(_value(v) for v in value))
    return graph_scalar(value)


@operator("print", pure=False, relax_text=RelaxText(strings=("format",)))
def print_(*values: Expr, format: str = "") -> Type:
    """Print the values (with ``format`` as in ``str.format`` if given). Has an effect; returns nothing."""
    return UNIT


def print_values(values: Sequence[Any], format: str) -> None:
    """What ``R.print`` does, in the interpreter and in compiled code: ``format`` is a ``str.format`` template."""
    print(format.format(*values) if format else " ".join(str(v) for v in values))


@operator("shape_of", role="shape_of")
def shape_of(expr: TensorType) -> Type:
    """The shape of a tensor, as a shape value."""
    dims = tensor_dims(expr)
    return ShapeType(None, expr.ndim) if dims is None else ShapeType(dims)
