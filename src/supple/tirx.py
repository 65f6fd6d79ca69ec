"""Names of the loop level (``tirx``), for building and inspecting nodes: re-exports, and the builders below."""

from types import FunctionType
from typing import Any

from supple.build.scalars import (
    BufferAccessKind,
    CallEffectKind,
    buffer_data,
    convert,
    div,
    indexdiv,
    indexmod,
    stmt_list,
    stmt_seq,
)
from supple.build.te import AnyReduce as Reduce
from supple.build.te import max, min, sum
from supple.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    Div,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Ramp,
    Range,
    Select,
    Shuffle,
    StringImm,
    Sub,
    Var,
    const,
    is_buffer,
    match_dtypes,
)
from supple.ir.expr_operators import joined
from supple.ir.loop import (
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Bind,
    Break,
    Buffer,
    BufferRegion,
    BufferStore,
    CommReducer,
    Continue,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    IndexMap,
    IterType,
    IterVar,
    MatchBufferRegion,
    PrimFunc,
    Return,
    SBlock,
    SBlockRealize,
    SeqStmt,
    While,
)
from supple.ir.node import Expr, Stmt
from supple.ir.types import BufferType, PointerType, PrimType
from supple.script import tirx as _script_names
from supple.script.tirx import abs as abs
from supple.script.tirx import (
    acos,
    acosh,
    address_of,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    break_loop,
    call_extern,
    call_intrin,
    call_packed,
    call_pure_extern,
    ceil,
    ceildiv,
    comm_reducer,
    continue_loop,
    copysign,
    cos,
    cosh,
    dot_pairs,
    erf,
    exp,
    exp2,
    exp10,
    floor,
    floordiv,
    floormod,
    fmod,
    hypot,
    if_then_else,
    infinity,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    log2,
    log10,
    max_value,
    min_value,
    nearbyint,
    nextafter,
    popcount,
    power,
    reinterpret,
    round,
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
    vscale,
)

is_buffer_var = is_buffer
LetStmt = Bind


def decl_buffer(shape: Any, dtype: str | None = None, name: str = "buffer", scope: str = "", **rest: Any) -> Var:
    """A buffer variable; ``rest`` are ``data``, ``strides``, ``elem_offset``, ``align`` (or ``data_alignment``) and
    ``offset_factor``. Shapes of ints are int32."""
    align = rest.pop("data_alignment", None)
    if align is not None and align > 0:
        rest["align"] = align
    if (rest.get("offset_factor") or 0) <= 0:
        rest.pop("offset_factor", None)
    dims = shape if isinstance(shape, (list, tuple)) else (shape,)
    if "strides" in rest:
        rest["strides"] = _scalars(rest["strides"] or ())
    if rest.get("elem_offset") is not None:
        (rest["elem_offset"],) = _scalars((rest["elem_offset"],))
    return Buffer(name, _scalars(dims), dtype or "float32", scope or "global", **rest)


def _scalars(values: Any) -> tuple[Expr, ...]:
    return tuple(v if isinstance(v, Expr) else const(v) for v in values)


def all(*args: Expr) -> Expr:
    """All of several conditions."""
    return _joined("all", And, args)


def any(*args: Expr) -> Expr:
    """Any of several conditions."""
    return _joined("any", Or, args)


def _joined(name: str, kind: Any, args: Any) -> Expr:
    if not args:
        raise ValueError(f"{name}: expected at least one condition")
    result: Expr = args[0]
    for arg in args[1:]:
        result = joined(kind, result, arg)
    return result


def logaddexp(a: Any, b: Any) -> Expr:
    """``log(exp(a) + exp(b))`` without overflow."""
    left, right = match_dtypes(a, b)
    larger, smaller = Max(left, right), Min(left, right)
    result: Expr = Add(larger, log1p(exp(smaller - larger)))  # type: ignore[misc]
    return result


def is_prim_var(value: object) -> bool:
    """Whether a value is a scalar variable."""
    return isinstance(value, Var) and isinstance(value.ty, PrimType)


__all__ = [
    "EQ",
    "GE",
    "GT",
    "LE",
    "LT",
    "NE",
    "Add",
    "AllocBuffer",
    "And",
    "AssertStmt",
    "AttrStmt",
    "Bind",
    "Break",
    "Broadcast",
    "Buffer",
    "BufferAccessKind",
    "BufferLoad",
    "BufferRegion",
    "BufferStore",
    "BufferType",
    "Call",
    "CallEffectKind",
    "Cast",
    "CommReducer",
    "Continue",
    "DeclBuffer",
    "Div",
    "Evaluate",
    "FloatImm",
    "FloorDiv",
    "FloorMod",
    "For",
    "ForKind",
    "IfThenElse",
    "IndexMap",
    "IntImm",
    "IterType",
    "IterVar",
    "Let",
    "LetStmt",
    "MatchBufferRegion",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Not",
    "Or",
    "PointerType",
    "PrimFunc",
    "PrimType",
    "Ramp",
    "Range",
    "Reduce",
    "Return",
    "SBlock",
    "SBlockRealize",
    "Select",
    "SeqStmt",
    "Shuffle",
    "Stmt",
    "StringImm",
    "Sub",
    "Var",
    "While",
    "abs",
    "acos",
    "acosh",
    "address_of",
    "all",
    "any",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "break_loop",
    "buffer_data",
    "call_extern",
    "call_intrin",
    "call_packed",
    "call_pure_extern",
    "ceil",
    "ceildiv",
    "comm_reducer",
    "const",
    "continue_loop",
    "convert",
    "copysign",
    "cos",
    "cosh",
    "decl_buffer",
    "div",
    "dot_pairs",
    "erf",
    "exp",
    "exp2",
    "exp10",
    "floor",
    "floordiv",
    "floormod",
    "fmod",
    "hypot",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "infinity",
    "is_buffer",
    "is_buffer_var",
    "is_prim_var",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "max",
    "max_value",
    "min",
    "min_value",
    "nearbyint",
    "nextafter",
    "popcount",
    "power",
    "reinterpret",
    "round",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "stmt_list",
    "stmt_seq",
    "sum",
    "tan",
    "tanh",
    "trunc",
    "truncdiv",
    "truncmod",
    "vscale",
]


def __getattr__(name: str) -> Any:
    """An intrinsic of scripts (``T.shift_left``) that is not listed above."""
    found = getattr(_script_names, name, None) if not name.startswith("_") else None
    if not isinstance(found, FunctionType):
        raise AttributeError(f"supple.tirx has no {name!r}")
    return found
