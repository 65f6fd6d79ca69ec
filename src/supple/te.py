"""The compute DSL under its short name: ``from supple import te``. Re-exports, and `create_prim_func` for users."""

from __future__ import annotations

from collections.abc import Sequence

from supple.build.te import (
    ComputeOp,
    ExternOp,
    Reduce,
    compute,
    definitions,
    max,
    min,
    placeholder,
    prod,
    reduce_axis,
    sum,
)
from supple.build.te import TensorValue as Tensor
from supple.build.te import create_prim_func as _create
from supple.ir.expr import Var, const
from supple.ir.loop import PrimFunc
from supple.ir.types import prim_type
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
from supple.tirx import round as round


def var(name: str = "tindex", dtype: str = "int64") -> Var:
    """A scalar, for the symbolic sizes of placeholders. Sizes are int64."""
    return Var(name, prim_type(dtype))


size_var = var


def create_prim_func(tensors: Sequence[Tensor], name: str = "main") -> PrimFunc:
    """The loop function with these tensors as its parameters, inputs first: ``create_prim_func([A, B, C])``.

    Placeholders are read, computed tensors are written; a computed tensor that is not listed is allocated inside.
    Symbols that no shape introduces by itself become scalar parameters at the end.
    Raises ``TypeError`` when a tensor that is read is not listed, an input follows an output, or nothing is computed.
    """
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"create_prim_func: expected te tensors, got {type(tensor).__name__}")
    inputs = [t for t in tensors if t.op is None]
    outputs = [t for t in tensors if t.op is not None]
    if not outputs:
        raise TypeError("create_prim_func: none of the tensors is computed; list the outputs after the inputs")
    if list(tensors) != [*inputs, *outputs]:
        raise TypeError("create_prim_func: list the inputs before the outputs")
    read = dict.fromkeys(t for made in definitions(outputs) if made.op is not None for t in made.op.inputs)
    missing = sorted(t.name for t in read if t.op is None and t not in inputs)
    if missing:
        raise TypeError(f"create_prim_func: {', '.join(missing)} is read but not listed; add it as a parameter")
    return _create(inputs, outputs, name)[0]


__all__ = [
    "ComputeOp",
    "ExternOp",
    "Reduce",
    "Tensor",
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
    "compute",
    "const",
    "cos",
    "cosh",
    "create_prim_func",
    "erf",
    "exp",
    "floor",
    "floordiv",
    "floormod",
    "fmod",
    "if_then_else",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log2",
    "log10",
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
    "sigmoid",
    "sin",
    "sinh",
    "size_var",
    "sqrt",
    "sum",
    "tan",
    "tanh",
    "trunc",
    "truncdiv",
    "truncmod",
    "var",
]
