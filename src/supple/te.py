"""The compute DSL under its short name: ``from supple import te``. Re-exports, and `create_prim_func` for users."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from supple.base.errors import NotSupportedError
from supple.build.index_types import IndexTypes, sizes_as_given, user_size
from supple.build.te import (
    ARITHMETIC,
    ComputeOp,
    ExternOp,
    PlaceholderOp,
    Reduce,
    TagScope,
    TensorSlice,
    comm_reducer,
    compute_together,
    definitions,
    max,
    min,
    prod,
    sum,
    tag_scope,
)
from supple.build.te import TensorValue as Tensor
from supple.build.te import extern as _extern
from supple.build.te import placeholder as _placeholder
from supple.build.te import reduce_axis as _reduce_axis
from supple.build.te_functions import create_prim_func as _create
from supple.ir.conventions import users_formula
from supple.ir.expr import Range, Var, const
from supple.ir.loop import CommReducer, Evaluate, IterVar, PrimFunc
from supple.ir.node import Expr, Stmt
from supple.ir.types import prim_type
from supple.relax import op as relax_op
from supple.script.tirx import abs as abs
from supple.script.tirx import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    ceil,
    cos,
    cosh,
    erf,
    exp,
    floor,
    floordiv,
    floormod,
    fmod,
    if_then_else,
    isfinite,
    isinf,
    isnan,
    log,
    log2,
    log10,
    max_value,
    min_value,
    nearbyint,
    popcount,
    power,
    rsqrt,
    sigmoid,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
    truncdiv,
    truncmod,
)
from supple.tirx import all as all
from supple.tirx import any as any
from supple.tirx import div, indexdiv, indexmod, is_prim_var, logaddexp
from supple.tirx import round as round
from supple.topi.apply import apply, with_axes_of_topi


def var(name: str = "tindex", dtype: str = "int32") -> Var:
    """A scalar, for the symbolic sizes of placeholders: int32, as Python ints are, or int64, as the graph's sizes."""
    return Var(name, prim_type(dtype))


size_var = var


def placeholder(shape: Sequence[Any], dtype: str = "float32", name: str = "placeholder") -> Tensor:
    """An input tensor. ``shape`` holds integer expressions and ints, which are int32."""
    return _placeholder([user_size(s) for s in shape], dtype, name)


def reduce_axis(dom: Sequence[Any] | Range, name: str = "k") -> IterVar:
    """A reduction axis over ``(low, high)``; ints are int32."""
    return _reduce_axis(dom if isinstance(dom, Range) else [user_size(d) for d in dom], name)


_apply = with_axes_of_topi(sizes_as_given(apply))
ARITHMETIC.update({
    name: partial(_apply, getattr(relax_op, name)) for name in ("add", "subtract", "multiply", "divide", "negative")
})  # fmt: skip
ARITHMETIC["cast"] = lambda x, dtype: _apply(relax_op.astype, x, dtype=dtype)


def compute(
    shape: Sequence[Any],
    fcompute: Callable[..., Any],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
) -> Any:
    """A tensor whose element at ``i, j, ...`` is ``fcompute(i, j, ...)``; a list of tensors where it returns a tuple.

    A formula with ``*indices`` takes any rank; an index has its size's dtype, which for ints is int32. ``tag``
    and ``attrs`` are notes, kept with the tensor's ``op``.
    Raises ``TypeError`` when the number of indices does not fit, or a reduction stands inside an expression.
    """
    with users_formula():
        return compute_together([user_size(s) for s in shape], fcompute, name, tag, attrs)


def extern(
    shape: Sequence[Any],
    inputs: Sequence[Tensor],
    fcompute: Callable[..., Any],
    name: str = "extern",
    dtype: str | Sequence[str] | None = None,
) -> Tensor | list[Tensor]:
    """Tensors that a statement of the program's own fills: ``fcompute(ins, outs)`` gets lists of buffers and returns a
    statement, or a call to evaluate.

    ``shape`` is one shape, or a list of shapes for several results; ``dtype`` is one dtype, one for each result, or by
    default the dtype that all inputs have. Raises ``TypeError`` for any other result of ``fcompute``, or when there
    is no dtype to take.
    """
    several = bool(shape) and isinstance(shape[0], (list, tuple))
    shapes = [[user_size(s) for s in dims] for dims in (shape if several else [shape])]
    given = {t.dtype for t in inputs} if dtype is None else {dtype} if isinstance(dtype, str) else None
    if given is not None and len(given) != 1:
        raise TypeError(f"te.extern: {name}: say dtype, the inputs have {sorted(given) or 'none'}")
    dtypes = list(dtype or ()) if given is None else list(given) * len(shapes)
    if len(dtypes) != len(shapes):
        raise TypeError(f"te.extern: {name}: {len(shapes)} results, but {len(dtypes)} dtypes")

    def body(*outs: Tensor) -> Stmt:
        made = fcompute([t.buffer for t in inputs], [t.buffer for t in outs])
        if isinstance(made, Expr):
            return Evaluate(made)
        if not isinstance(made, Stmt):
            raise TypeError(f"te.extern: {name}: fcompute returns a statement or a call, got {type(made).__name__}")
        return made

    results = _extern(list(zip(shapes, dtypes, strict=True)), inputs, body, name)
    return results if several else results[0]


def scan(*args: Any, **kwargs: Any) -> Any:
    """Refused. Raises `NotSupportedError`."""
    raise NotSupportedError("te.scan is not supported", hint="te.extern with a loop of its own, or topi.cumsum")


def extern_primfunc(input_tensors: Sequence[Tensor], primfunc: PrimFunc, **kwargs: Any) -> Any:
    """Refused. Raises `NotSupportedError`."""
    raise NotSupportedError("te.extern_primfunc is not supported", hint="call the loop function: R.call_tir")


def thread_axis(*args: Any, **kwargs: Any) -> Any:
    """Refused. Raises `NotSupportedError`."""
    raise NotSupportedError("te.thread_axis is not supported", hint="T.thread_binding in a loop function")


def create_prim_func(
    tensors: Sequence[Tensor | Var], name: str = "main", index_dtype_override: str | None = None
) -> PrimFunc:
    """The loop function with these tensors as its parameters, inputs first: ``create_prim_func([A, B, C])``. Scalars
    may stand among the inputs.

    Placeholders are read, computed tensors are written; a computed tensor that is not listed is allocated inside.
    Symbols that no shape introduces by itself become scalar parameters at the end. With ``index_dtype_override`` all
    sizes and indices have that dtype, int32 or int64 (a statement of ``te.extern`` keeps its loops).
    Raises ``TypeError`` for another dtype, when a tensor that is read is not listed, an input follows an output, or
    nothing is computed.
    """
    if index_dtype_override not in (None, "int32", "int64"):
        raise TypeError(f"create_prim_func: index_dtype_override is int32 or int64, got {index_dtype_override!r}")
    for tensor in tensors:
        if not isinstance(tensor, Tensor) and not is_prim_var(tensor):
            raise TypeError(f"create_prim_func: expected te tensors and scalars, got {type(tensor).__name__}")
    outputs = [t for t in tensors if isinstance(t, Tensor) and t.definition is not None]
    computed = {id(t) for t in outputs}
    inputs = [t for t in tensors if id(t) not in computed]
    if not outputs:
        raise TypeError("create_prim_func: none of the tensors is computed; list the outputs after the inputs")
    if [id(t) for t in tensors] != [id(t) for t in [*inputs, *outputs]]:
        raise TypeError("create_prim_func: list the inputs before the outputs")
    read = dict.fromkeys(t for made in definitions(outputs) for t in made.op.inputs)
    given = {id(t) for t in inputs}
    missing = sorted(t.name for t in read if t.definition is None and id(t) not in given)
    if missing:
        raise TypeError(f"create_prim_func: {', '.join(missing)} is read but not listed; add it as a parameter")
    if index_dtype_override is not None:
        types = IndexTypes(index_dtype_override, fresh=True)
        inputs = [types.input(t) if isinstance(t, Tensor) else t for t in inputs]
        outputs = types.outputs(outputs)
        inputs = [types.symbols.get(t, t) if isinstance(t, Var) else t for t in inputs]
    return _create(inputs, outputs, name, ("int32", "int64"))[0]


__all__ = [
    "CommReducer",
    "ComputeOp",
    "ExternOp",
    "PlaceholderOp",
    "Reduce",
    "TagScope",
    "Tensor",
    "TensorSlice",
    "abs",
    "acos",
    "acosh",
    "all",
    "any",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "comm_reducer",
    "compute",
    "const",
    "cos",
    "cosh",
    "create_prim_func",
    "div",
    "erf",
    "exp",
    "extern",
    "extern_primfunc",
    "floor",
    "floordiv",
    "floormod",
    "fmod",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log2",
    "log10",
    "logaddexp",
    "max",
    "max_value",
    "min",
    "min_value",
    "nearbyint",
    "placeholder",
    "popcount",
    "power",
    "prod",
    "reduce_axis",
    "round",
    "rsqrt",
    "scan",
    "sigmoid",
    "sin",
    "sinh",
    "size_var",
    "sqrt",
    "sum",
    "tag_scope",
    "tan",
    "tanh",
    "thread_axis",
    "trunc",
    "truncdiv",
    "truncmod",
    "var",
]
