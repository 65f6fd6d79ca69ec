"""The names of ``T``: ``from supple.script import tirx as T``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from supple.base import dtypes
from supple.base.errors import RefusedNameError
from supple.base.named_target import NamedTarget
from supple.base.registry import did_you_mean
from supple.ir import expr as _expr
from supple.ir import intrinsics as _intrinsics
from supple.ir.conventions import conventions
from supple.ir.expr import ExprLike, as_expr, match_dtypes, scalar_dtype
from supple.ir.expr_operators import scalar_operation
from supple.ir.loop import CommReducer, IndexMap
from supple.ir.node import Expr
from supple.ir.op import OPS, Op
from supple.ir.types import PointerType, prim_type
from supple.script.entry import LoopDecorator, MacroForm
from supple.script.forms import DtypeForm, Form, MetaVar, as_dtype

# ---------------------------------------------------------------------------------------------------------- decorators

prim_func = LoopDecorator("T.prim_func", "A loop function.")

# ---------------------------------------------------------------------------------------------- what the parser reads

Buffer = Form("T.Buffer", "A buffer parameter: A: T.Buffer((n, 4), 'float32').")
match_buffer = Form("T.match_buffer", "The buffer of a T.handle parameter, or a view of a region.", regions=True)
alloc_buffer = Form("T.alloc_buffer", "An intermediate buffer.")
sblock_alloc_buffer = Form("T.sblock_alloc_buffer", "An intermediate buffer of the block around.")
decl_buffer = Form("T.decl_buffer", "A view of existing storage (data=A.data).")
grid = Form("T.grid", "Nested loops: for i, j in T.grid(n, m).")
serial = Form("T.serial", "A loop: T.serial(n), T.serial(begin, end, annotations={...}).")
parallel = Form("T.parallel", "A loop whose iterations may run at once.")
vectorized = Form("T.vectorized", "A loop that becomes vector operations.")
unroll = Form("T.unroll", "A loop that is written out.")
unrolled = unroll
thread_binding = Form("T.thread_binding", "A loop bound to a GPU thread axis.")
sblock = Form("T.sblock", "A block: with T.sblock('name').")
block = sblock
init = Form("T.init", "What a block does before its first reduction step.")
reads = Form("T.reads", "The regions that a block reads.", regions=True)
writes = Form("T.writes", "The regions that a block writes.", regions=True)
where = Form("T.where", "The condition under which a block runs.")
sblock_attr = Form("T.sblock_attr", "Annotations of a block.")
block_attr = sblock_attr
func_attr = Form("T.func_attr", "Attributes of the function.")
evaluate = Form("T.evaluate", "An expression for its effect.")
attr = Form("T.attr", "An attribute on the statements that follow, or on those of its 'with'.")
seq = Form("T.seq", "A sequence of statements of its own (the text of nested sequences).")
LetStmt = Form("T.LetStmt", "with T.LetStmt(value) as x.")
let = Form("T.let", "x: T.let = value.")
bind = Form("T.bind", "x = T.bind(value).")
Let = Form("T.Let", "T.Let(body, where={x: value}).")
buffer_store = Form("T.buffer_store", "T.buffer_store(A, value, [i, j]).")
ret = Form("T.ret", "Leave the function with a value.")
Assert = Form("T.Assert", "Raise with a message when a condition is false.")
launch_thread = Form("T.launch_thread", "tx = T.launch_thread('threadIdx.x', 8): what follows runs for every thread.")
env_thread = Form("T.env_thread", "bx = T.env_thread('blockIdx.x'): a thread axis to launch later.")
break_loop = Form("T.break_loop", "Leave the innermost loop: break.")
continue_loop = Form("T.continue_loop", "Go on with the innermost loop: continue.")
Return = Form("T.Return", "Leave the function with a value.")
alloc_local = Form("T.alloc_local", "An intermediate buffer in scope 'local'.")
alloc_shared = Form("T.alloc_shared", "An intermediate buffer in scope 'shared'.")
alloc_scalar = Form("T.alloc_scalar", "A number that changes: x = T.alloc_scalar('float32').")
inline = MacroForm("T.inline", "A function whose statements are read where it is called.")
macro = MacroForm("T.macro", "A function whose statements are read where it is called.")
Range = Form("T.Range", "A range by its first value and extent.")


class _Axis:
    """``T.axis``: iteration variables of a block."""

    spatial = Form("T.axis.spatial", "A data-parallel variable: T.axis.spatial(extent, value).")
    S = spatial
    reduce = Form("T.axis.reduce", "A reduction variable.")
    R = reduce
    scan = Form("T.axis.scan", "A variable whose iterations are ordered.")
    opaque = Form("T.axis.opaque", "A variable without a promise.")
    remap = Form("T.axis.remap", "Loop variables as block variables: T.axis.remap('SSR', [i, j, k]).")


axis = _Axis()

# -------------------------------------------------------------------------------------------------------------- dtypes

_DTYPES = {name: DtypeForm(f"T.{name}") for name in dtypes.DTYPES}
boolean = _DTYPES["bool"]

# -------------------------------------------------------------------------------------------------- scalar expressions


def max(a: ExprLike, b: ExprLike) -> Expr:
    """The larger of two scalars; NaN propagates."""
    return scalar_operation("max", a, b)


def min(a: ExprLike, b: ExprLike) -> Expr:
    """The smaller of two scalars; NaN propagates."""
    return scalar_operation("min", a, b)


def _integers(name: str, a: ExprLike, b: ExprLike) -> tuple[Expr, Expr]:
    left, right = match_dtypes(a, b)
    if not dtypes.is_int(scalar_dtype(left)):
        raise TypeError(f"T.{name}: expected integers, got {scalar_dtype(left)}")
    return left, right


def floordiv(a: ExprLike, b: ExprLike) -> Expr:
    """Floor division, as Python's ``//``."""
    return scalar_operation("floordiv", a, b)


def floormod(a: ExprLike, b: ExprLike) -> Expr:
    """The remainder of floor division, as Python's ``%``."""
    return scalar_operation("mod", a, b)


def truncdiv(a: ExprLike, b: ExprLike) -> Expr:
    """Division of integers towards zero, as C's ``/``."""
    return scalar_operation("truncdiv", *_integers("truncdiv", a, b))


def truncmod(a: ExprLike, b: ExprLike) -> Expr:
    """The remainder of division towards zero, as C's ``%``."""
    return scalar_operation("truncmod", a, b)


def ceildiv(a: ExprLike, b: ExprLike) -> Expr:
    """``a / b`` rounded up."""
    left, right = _integers("ceildiv", a, b)
    if conventions().folds_operators:
        return (left + right - 1) // right  # type: ignore[operator, no-any-return]
    return _expr.FloorDiv(_expr.Add(left, _expr.Sub(right, _expr.const(1, scalar_dtype(right)))), right)


def Div(a: ExprLike, b: ExprLike) -> Expr:
    """Division: true for floats, towards zero for integers."""
    return _expr.Div(*match_dtypes(a, b))


def _node(kind: type[_expr.BinaryOp]) -> Any:
    def make(a: ExprLike, b: ExprLike) -> Expr:
        return kind(*match_dtypes(a, b))

    make.__name__ = kind.__name__
    make.__doc__ = kind.__doc__
    return make


Add, Sub, Mul, Mod = _node(_expr.Add), _node(_expr.Sub), _node(_expr.Mul), _node(_expr.Mod)
FloorDiv, FloorMod, Min, Max = _node(_expr.FloorDiv), _node(_expr.FloorMod), _node(_expr.Min), _node(_expr.Max)
EQ, NE, LT, LE = _node(_expr.EQ), _node(_expr.NE), _node(_expr.LT), _node(_expr.LE)
GT, GE, And, Or = _node(_expr.GT), _node(_expr.GE), _node(_expr.And), _node(_expr.Or)


def Not(a: ExprLike) -> Expr:
    """Logical negation."""
    return _expr.Not(as_expr(a))


def Cast(dtype: Any, value: ExprLike) -> Expr:
    """A conversion, kept as written even where it changes nothing."""
    return _expr.Cast(as_dtype(dtype, "T.Cast"), value if isinstance(value, Expr) else _expr.const(value))


def cast(value: ExprLike, dtype: Any) -> Expr:
    """``value`` in another dtype: literals are converted at once."""
    return _expr.cast(as_dtype(dtype, "T.cast"), value)


def Select(condition: ExprLike, true_value: ExprLike, false_value: ExprLike) -> Expr:
    """``true_value`` or ``false_value``; both may be evaluated."""
    return _expr.Select(as_expr(condition), *match_dtypes(true_value, false_value))


def Ramp(base: ExprLike, stride: ExprLike, lanes: Any) -> Expr:
    """The vector ``base, base + stride, ...``."""
    count = int(lanes)
    if count < 1:
        raise ValueError(f"T.Ramp: expected at least one lane, got {count}")
    return _expr.Ramp(*match_dtypes(base, stride), count)


def Broadcast(value: ExprLike, lanes: Any) -> Expr:
    """The vector that holds ``value`` in every lane."""
    count = int(lanes)
    if count < 1:
        raise ValueError(f"T.Broadcast: expected at least one lane, got {count}")
    return _expr.Broadcast(value if isinstance(value, Expr) else _expr.const(value), count)


def Shuffle(vectors: Sequence[ExprLike], indices: Sequence[ExprLike]) -> Expr:
    """The elements of some vectors, joined and chosen by number; one index gives a scalar. Raises ``TypeError`` for
    vectors of several element dtypes and indices that are no literals, ``ValueError`` for an index out of range."""
    return _expr.Shuffle(vectors, indices)  # type: ignore[arg-type]  # numbers and lists become nodes and tuples


ramp, broadcast = Ramp, Broadcast


def abs(value: ExprLike) -> Expr:
    """Absolute value."""
    return _intrinsics.absolute(value)


def reinterpret(dtype: Any, value: ExprLike) -> Expr:
    """The bits of ``value`` as another dtype."""
    return _intrinsics.reinterpret(as_dtype(dtype, "T.reinterpret"), value)


def min_value(dtype: Any) -> Expr:
    """The least finite value of a dtype."""
    return _intrinsics.min_value(as_dtype(dtype, "T.min_value"))


def max_value(dtype: Any) -> Expr:
    """The greatest finite value of a dtype."""
    return _intrinsics.max_value(as_dtype(dtype, "T.max_value"))


def infinity(dtype: Any) -> Expr:
    """Positive infinity."""
    return _intrinsics.infinity(as_dtype(dtype, "T.infinity"))


def _result(dtype: Any, what: str) -> str:
    """What a call of a function by name gives: a dtype, or ``"void"``."""
    return "void" if dtype == "void" else as_dtype(dtype, what)


def call_extern(dtype: Any, name: Any, *args: ExprLike) -> Expr:
    """A call of a native function: ``T.call_extern("int32", "name", a, b)``."""
    return _intrinsics.call_extern("call_extern", _result(dtype, "T.call_extern"), name, *args)


def call_intrin(dtype: Any, func_name: Any, *args: Any) -> Expr:
    """The call of an intrinsic by its name (``"tirx.exp"``), with the dtype of its result said."""
    of = func_name if isinstance(func_name, Expr) else Op.get(str(func_name))
    given = tuple(a if isinstance(a, Expr) else _expr.const(a) for a in args)
    return _expr.Call(of, given, {}, (), prim_type(as_dtype(dtype, "T.call_intrin")))


def call_pure_extern(dtype: Any, name: Any, *args: ExprLike) -> Expr:
    """A call of a native function without effects."""
    return _intrinsics.call_extern("call_pure_extern", _result(dtype, "T.call_pure_extern"), name, *args)


def call_packed(name: Any, *args: ExprLike, dtype: Any = "int32") -> Expr:
    """A call of a registered Python function."""
    return _intrinsics.call_extern("call_packed", as_dtype(dtype, "T.call_packed"), name, *args)


def if_then_else(condition: ExprLike, true_value: ExprLike, false_value: ExprLike) -> Expr:
    """``true_value`` or ``false_value``; only the chosen one is evaluated."""
    if conventions().folds_operators and isinstance(condition, _expr.IntImm):
        return match_dtypes(true_value, false_value)[0 if condition.value else 1]
    return _intrinsics.intrinsic("if_then_else", condition, true_value, false_value)


def comm_reducer(combiner: Callable[..., Any], identity: Any) -> CommReducer:
    """A reducer: ``T.comm_reducer(lambda x, y: x + y, [T.float32(0)])``."""
    identities = tuple(as_expr(i) for i in identity)
    names = list(inspect.signature(combiner).parameters)
    if len(names) != 2 * len(identities):
        raise TypeError(f"T.comm_reducer: {len(identities)} identities need a function of {2 * len(identities)} values")
    variables = [
        _expr.Var(name, prim_type(scalar_dtype(identities[n % len(identities)]))) for n, name in enumerate(names)
    ]
    result = combiner(*variables)
    results = tuple(result) if isinstance(result, (tuple, list)) else (as_expr(result),)
    half = len(identities)
    return CommReducer(tuple(variables[:half]), tuple(variables[half:]), results, identities)


def index_map(mapping: Any, *, inverse_index_map: Any = None, index_dtype: Any = "int64") -> IndexMap:
    """How indices change: ``T.index_map(lambda i, j: (j, i))``."""
    return IndexMap.from_func(
        mapping, inverse_index_map=inverse_index_map, index_dtype=as_dtype(index_dtype, "T.index_map")
    )


def target(target_config: Any, host: Any = None) -> NamedTarget:
    """A target as a value: ``T.target("llvm -mcpu=skylake")``, or a dict with its ``kind`` and options."""
    return NamedTarget(target_config, host)


def tvm_storage_sync(storage_scope: Any, is_load: Any = False, num_blocks: Any = -1) -> Expr:
    """Wait for the other threads."""
    return _intrinsics.opaque("tvm_storage_sync", storage_scope, is_load, num_blocks)


def ptr(dtype: Any, storage_scope: Any = "global") -> Expr:
    """A new pointer variable."""
    return _expr.Var("ptr", PointerType(as_dtype(dtype, "T.ptr"), str(storage_scope)))


FloatImm, IntImm, StringImm = _expr.FloatImm, _expr.IntImm, _expr.StringImm
BufferLoad, Call, Var = _expr.BufferLoad, _expr.Call, _expr.Var


def meta_var(value: Any) -> MetaVar:
    """A name for a value while the program is read; nothing is emitted for it."""
    return MetaVar(value)


def _intrinsic_function(name: str) -> Any:
    op = OPS.get(f"tirx.{name}")
    build = _intrinsics.opaque if "operands" in op.facts else _intrinsics.intrinsic

    def make(*args: ExprLike) -> Expr:
        return build(name, *args)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = op.doc
    return make


_SPECIAL = {"if_then_else", "reinterpret", "call_extern", "call_pure_extern", "call_packed", "tvm_storage_sync"}
_PLAIN = {
    name.partition(".")[2]: _intrinsic_function(name.partition(".")[2])
    for name in OPS
    if name.startswith("tirx.") and name.partition(".")[2] not in _SPECIAL
}
_PLAIN["power"] = _PLAIN["pow"]
_PLAIN["tvm_call_cpacked"] = _PLAIN["call_cpacked"]
_PLAIN["tvm_call_packed_lowered"] = _PLAIN["call_packed_lowered"]

_TILE_DIALECT = frozenset((
    "cuda", "ptx", "tile", "nvshmem", "Tx", "cta", "warp", "warpgroup", "thread", "kernel", "device_entry", "cluster",
    "tmem", "wgmma", "mma", "tvm_fill_fragment", "tvm_load_matrix_sync", "tvm_mma_sync", "tvm_store_matrix_sync",
    "tvm_warp_shuffle", "tvm_warp_activemask", "tvm_warp_shuffle_down", "tvm_warp_shuffle_up", "tvm_bmma_sync",
))  # fmt: skip
_BUILDER = frozenset(("If", "Then", "Else", "While", "arg", "func_name", "func_ret", "buffer", "add_to_parent"))
_LATER = frozenset(("buffer_load", "realize", "const_range", "Ptr", "call_kernel", "llvm_lookup_intrinsic_id"))

__all__ = sorted(
    [name for name in globals() if not name.startswith("_") and name not in (
        "Any", "annotations", "OPS", "dtypes", "RefusedNameError", "did_you_mean", "Expr", "ExprLike", "LoopDecorator",
        "DtypeForm", "Form", "MetaVar", "as_dtype", "as_expr", "match_dtypes", "scalar_dtype", "MacroForm",
        "Callable", "inspect", "CommReducer", "IndexMap", "NamedTarget", "PointerType", "prim_type",
    )]
    + list(_DTYPES)
    + list(_PLAIN)
)  # fmt: skip


def __getattr__(name: str) -> Any:
    found = _DTYPES.get(name) or _PLAIN.get(name)
    if found is not None:
        return found
    if f"tirx.{name}" in OPS and name not in _SPECIAL:  # declared after this module was loaded
        return _intrinsic_function(name)
    try:
        return DtypeForm(f"T.{dtypes.check_dtype(name)}")  # vectors: T.float32x4
    except TypeError:
        pass
    if name in _TILE_DIALECT:
        raise RefusedNameError(f"T.{name} belongs to the CUDA tile dialect, which is not supported")
    if name in _BUILDER:
        raise RefusedNameError(f"T.{name} is for building: it is in supple.script.ir_builder.tirx")
    if name in _LATER:
        raise RefusedNameError(f"T.{name} is not supported yet")
    raise AttributeError(f"T has no name {name!r}{did_you_mean(name, __all__)}")
