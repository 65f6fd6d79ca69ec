"""What the names of ``T`` mean in a loop function: loops, blocks, axes, buffers, statements; one function a name."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from supple.analysis.regions import infer_regions
from supple.base import dtypes
from supple.base.errors import NotSupportedError, TypeCheckError
from supple.base.source import Span
from supple.ir.expr import (
    Add,
    And,
    BufferLoad,
    IntImm,
    Let,
    Ramp,
    Range,
    Sub,
    Var,
    as_expr,
    const,
    is_buffer,
    is_scalar,
    match_dtypes,
    scalar_dtype,
)
from supple.ir.loop import (
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Bind,
    BufferRegion,
    BufferStore,
    DeclBuffer,
    Evaluate,
    ForKind,
    IterType,
    IterVar,
    MatchBufferRegion,
    Return,
    SBlock,
    SBlockRealize,
    SeqStmt,
    buffer_type,
)
from supple.ir.node import Expr, Stmt
from supple.ir.structural import structural_equal
from supple.ir.types import BufferType, PrimType, prim_type
from supple.script.evaluate import Environment, describe
from supple.script.forms import Declaration, FormCall, as_dtype, as_name
from supple.script.source import Source
from supple.script.symbols import SymbolEvaluator

Inner = Callable[[], Stmt]


@dataclass
class LoopRange:
    """One loop's range; ``step`` None is 1."""

    min: Expr
    extent: Expr
    step: Expr | None = None


@dataclass
class LoopSpec:
    """What a ``for`` header says."""

    kind: ForKind
    ranges: list[LoopRange]
    annotations: dict[str, Any] = field(default_factory=dict)
    thread: str | None = None


@dataclass
class BlockInfo:
    """A block while it is read."""

    name: str
    span: Span | None
    depth: int = 0
    iter_vars: list[IterVar] = field(default_factory=list)
    iter_values: list[Expr] = field(default_factory=list)
    allocs: list[Var] = field(default_factory=list)
    provisional: list[AllocBuffer] = field(default_factory=list)
    matches: list[MatchBufferRegion] = field(default_factory=list)
    reads: list[BufferRegion] | None = None
    writes: list[BufferRegion] | None = None
    predicate: Expr | None = None
    init: Stmt | None = None
    annotations: dict[str, Any] = field(default_factory=dict)

    @property
    def touched(self) -> bool:
        """Whether anything that only a block can have was said."""
        return bool(
            self.iter_vars
            or self.allocs
            or self.matches
            or self.reads is not None
            or self.writes is not None
            or self.annotations
            or self.init is not None
            or self.predicate is not None
        )


class LoopForms(SymbolEvaluator):
    """State of reading a loop function, and what calls of forms mean as values."""

    literal_dtype = "int32"

    def __init__(self, source: Source, env: Environment) -> None:
        super().__init__(source, env)
        self.block = BlockInfo("root", None)
        self.depth = 0  # loops, branches and blocks around
        self.has_blocks = False
        self.params: list[Var] = []
        self.matched: dict[int, Var] = {}  # handle parameter -> the buffer that it became
        self.ranges: dict[int, tuple[Expr, Expr]] = {}  # loop variable -> min, extent
        self.block_vars: set[int] = set()
        self.attrs: dict[str, Any] = {}

    def form(self, call: FormCall, node: ast.Call) -> Any:
        handler = VALUES.get(call.form.name)
        if handler is None:
            return call
        self.at = node
        return self.bind(call, handler, node)

    def emit(self, statement: Stmt, node: ast.AST | None = None) -> None:
        raise NotImplementedError

    def enclose(self, wrap: Callable[[Stmt], Stmt]) -> None:
        raise NotImplementedError


# ----------------------------------------------------------------------------------------------------- small converters


def as_int(p: LoopForms, value: Any, dtype: str | None = None) -> Expr:
    """An integer scalar; a Python int takes ``dtype`` (int32 by default)."""
    if isinstance(value, Expr):
        if is_scalar(value) and not dtypes.is_float(scalar_dtype(value)):
            return value
        raise TypeCheckError("expected an integer", None, "an integer scalar", describe(value))
    if isinstance(value, str):
        return p.symbol_text(value, p.at)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeCheckError("expected an integer", None, "an integer scalar", describe(value))
    return const(value.__index__(), dtype)


def _pair(p: LoopForms, a: Any, b: Any) -> tuple[Expr, Expr]:
    """Two integers of one dtype: a Python int follows the other."""
    if isinstance(a, Expr) and isinstance(b, Expr):
        left, right = match_dtypes(as_int(p, a), as_int(p, b))
        return left, right
    if isinstance(a, Expr):
        return as_int(p, a), as_int(p, b, scalar_dtype(as_int(p, a)))
    right = as_int(p, b)
    return as_int(p, a, scalar_dtype(right)), right


def distance(low: Expr, high: Expr) -> Expr:
    """``high - low`` as the extent of a range: literals are folded, ``low + e`` gives back ``e``."""
    if isinstance(low, IntImm) and isinstance(high, IntImm):
        return const(high.value - low.value, low.dtype)
    if isinstance(low, IntImm) and low.value == 0:
        return high
    if isinstance(high, Add) and structural_equal(high.a, low):
        return high.b
    return Sub(high, low)


def plain(value: Any) -> Any:
    """An attribute or annotation: Python values and IR nodes as they are, containers rebuilt."""
    if isinstance(value, (list, tuple)):
        return type(value)(plain(v) for v in value)
    if isinstance(value, dict):
        return {as_name(k, "a key"): plain(v) for k, v in value.items()}
    if value is None or isinstance(value, (bool, int, float, str, Expr)):
        return value
    if isinstance(value, FormCall):
        raise TypeCheckError(f"{value.form.name} cannot be an attribute")
    raise TypeCheckError(f"{describe(value)} cannot be an attribute", None, "a number, string, list or dict")


def _names_of(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeCheckError(f"{what}: expected a dict", None, "{'name': value}", describe(value))
    result: dict[str, Any] = plain(value)
    return result


# --------------------------------------------------------------------------------------------------------------- loops


def _loop(
    p: LoopForms, kind: ForKind, start: Any, stop: Any, step: Any, annotations: Any, extent: Any = None
) -> LoopSpec:
    if extent is not None:
        if stop is not None:
            raise TypeError("give the end or extent=, not both")
        low: Expr = as_int(p, start)
        loop = LoopRange(low, as_int(p, extent, scalar_dtype(low)))
    elif stop is None:
        high = as_int(p, start)
        loop = LoopRange(const(0, scalar_dtype(high)), high)
    else:
        low, high = _pair(p, start, stop)
        loop = LoopRange(low, distance(low, high))
    if step is not None and not (isinstance(step, int) and step == 1):
        loop.step = as_int(p, step, scalar_dtype(loop.extent))
        if isinstance(loop.step, IntImm) and loop.step.value <= 0:
            raise NotSupportedError("a loop's step must be positive")
    return LoopSpec(kind, [loop], {} if annotations is None else _names_of(annotations, "annotations"))


def _serial(
    p: LoopForms, start: Any, stop: Any = None, step: Any = None, *, annotations: Any = None, extent: Any = None
) -> LoopSpec:
    return _loop(p, ForKind.SERIAL, start, stop, step, annotations, extent)


def _parallel(
    p: LoopForms, start: Any, stop: Any = None, step: Any = None, *, annotations: Any = None, extent: Any = None
) -> LoopSpec:
    return _loop(p, ForKind.PARALLEL, start, stop, step, annotations, extent)


def _vectorized(
    p: LoopForms, start: Any, stop: Any = None, step: Any = None, *, annotations: Any = None, extent: Any = None
) -> LoopSpec:
    return _loop(p, ForKind.VECTORIZED, start, stop, step, annotations, extent)


def _unroll(
    p: LoopForms, start: Any, stop: Any = None, step: Any = None, *, annotations: Any = None, extent: Any = None
) -> LoopSpec:
    return _loop(p, ForKind.UNROLLED, start, stop, step, annotations, extent)


def _thread_binding(
    p: LoopForms, start: Any, stop: Any = None, thread: Any = None, *, annotations: Any = None, extent: Any = None
) -> LoopSpec:
    if thread is None and isinstance(stop, str):
        stop, thread = None, stop
    if not isinstance(thread, str):
        raise TypeError("expected the thread axis, such as thread='threadIdx.x'")
    spec = _loop(p, ForKind.THREAD_BINDING, start, stop, None, annotations, extent)
    spec.thread = thread
    return spec


def _grid(p: LoopForms, *extents: Any) -> LoopSpec:
    if not extents:
        raise TypeError("expected at least one extent")
    ranges = []
    for extent in extents:
        if isinstance(extent, tuple) and len(extent) == 2:
            low, high = _pair(p, *extent)
            ranges.append(LoopRange(low, distance(low, high)))
        else:
            high = as_int(p, extent)
            ranges.append(LoopRange(const(0, scalar_dtype(high)), high))
    return LoopSpec(ForKind.SERIAL, ranges)


LOOPS: dict[str, Callable[..., LoopSpec]] = {
    "T.serial": _serial,
    "T.parallel": _parallel,
    "T.vectorized": _vectorized,
    "T.unroll": _unroll,
    "T.thread_binding": _thread_binding,
    "T.grid": _grid,
}


# ------------------------------------------------------------------------------------------------------------- buffers


def _shape(p: LoopForms, shape: Any) -> tuple[Expr, ...]:
    if isinstance(shape, (tuple, list)):
        return tuple(p.dimension(s) for s in shape)
    return (p.dimension(shape),)


def make_buffer_type(
    p: LoopForms,
    shape: Any,
    dtype: Any = "float32",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = -1,
    offset_factor: int = 0,
) -> BufferType:
    """A buffer's type from what ``T.Buffer`` and its relatives take."""
    name = as_dtype(dtype, "dtype")
    if data is not None and not isinstance(data, Expr):
        raise TypeCheckError("data must be a pointer", None, "A.data", describe(data))
    return BufferType(
        _shape(p, shape),
        name,
        as_name(scope, "scope"),
        () if strides is None else tuple(p.dimension(s) for s in strides),
        None if elem_offset is None else p.dimension(elem_offset),
        data,
        64 if align <= 0 else align,
        1 if offset_factor <= 0 else offset_factor,
    )


def buffer_from(
    p: LoopForms,
    shape: Any,
    dtype: Any = "float32",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = -1,
    offset_factor: int = 0,
) -> Declaration:
    """``A: T.Buffer((n, 4), "float32")``."""
    ty = make_buffer_type(p, shape, dtype, data, strides, elem_offset, scope, align, offset_factor)
    return Declaration(lambda name, span: Var(name, ty, span=span))


def _match_buffer(
    p: LoopForms,
    param: Any,
    shape: Any = None,
    dtype: Any = "float32",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = -1,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Any = None,
) -> Declaration:
    if axis_separators:
        raise NotSupportedError("axis_separators are not supported")
    region = as_region(param) if is_buffer(param) or isinstance(param, (BufferLoad, BufferRegion)) else None
    if shape is None:
        if region is None:
            raise TypeError("expected the buffer's shape")
        shape = tuple(r.extent for r in region.region)
    ty = make_buffer_type(p, shape, dtype, data, strides, elem_offset, scope, align, offset_factor)

    def make(name: str, span: Span | None) -> Var:
        buffer = Var(name, ty, span=span)
        if region is not None:
            p.block.matches.append(MatchBufferRegion(region, buffer, span=span))
        else:
            p.matched[id(param)] = buffer
        return buffer

    if region is None:
        if not any(param is known for known in p.params) or not _is_handle(param):
            raise TypeCheckError(
                "T.match_buffer names a parameter of type T.handle, or a region of a buffer",
                None,
                "a T.handle parameter",
                describe(param),
            )
        if id(param) in p.matched:
            raise TypeCheckError(f"parameter {param.name!r} has a buffer already")
    return Declaration(make)


def _is_handle(value: Any) -> bool:
    return isinstance(value, Var) and isinstance(value.ty, PrimType) and value.ty.dtype == "handle"


def _alloc_buffer(
    p: LoopForms,
    shape: Any,
    dtype: Any = "float32",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = -1,
    offset_factor: int = 0,
    annotations: Any = None,
    statement: bool = False,
) -> Declaration:
    """Storage: of the block around when it stands directly in one, else for the statements that follow."""
    ty = make_buffer_type(p, shape, dtype, data, strides, elem_offset, scope, align, offset_factor)
    notes = {} if annotations is None else _names_of(annotations, "annotations")

    def make(name: str, span: Span | None) -> Var:
        buffer = Var(name, ty, span=span)
        directly = p.depth == p.block.depth and not statement and not notes
        if directly and p.block.name != "root":
            p.block.allocs.append(buffer)
            return buffer
        made = AllocBuffer(buffer, notes, span=span)
        if directly:
            p.block.provisional.append(made)
        p.emit(made)
        return buffer

    return Declaration(make)


def _sblock_alloc_buffer(
    p: LoopForms,
    shape: Any,
    dtype: Any = "float32",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = -1,
    offset_factor: int = 0,
) -> Declaration:
    """Storage of the block around."""
    ty = make_buffer_type(p, shape, dtype, data, strides, elem_offset, scope, align, offset_factor)

    def make(name: str, span: Span | None) -> Var:
        buffer = Var(name, ty, span=span)
        p.block.allocs.append(buffer)
        return buffer

    return Declaration(make)


def _decl_buffer(
    p: LoopForms,
    shape: Any,
    dtype: Any = "float32",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = -1,
    offset_factor: int = 0,
) -> Declaration:
    """A view of existing storage; without ``data`` it is storage of its own."""
    ty = make_buffer_type(p, shape, dtype, data, strides, elem_offset, scope, align, offset_factor)

    def make(name: str, span: Span | None) -> Var:
        buffer = Var(name, ty, span=span)
        p.emit(DeclBuffer(ty.data, buffer, span=span))
        return buffer

    return Declaration(make)


# --------------------------------------------------------------------------------------------------------------- axes


def _axis(p: LoopForms, kind: IterType, dom: Any, value: Any, dtype: str | None = None) -> Declaration:
    bound = as_int(p, value, dtype)
    wanted = scalar_dtype(bound)
    if isinstance(dom, Range):
        low, extent = dom.min, dom.extent
    elif isinstance(dom, (tuple, list)):
        if len(dom) != 2:
            raise TypeError("a domain is an extent, or (begin, end)")
        low, high = as_int(p, dom[0], wanted), as_int(p, dom[1], wanted)
        low, high = match_dtypes(low, high)
        extent = distance(low, high)
    else:
        extent = as_int(p, dom, wanted)
        low = const(0, scalar_dtype(extent))

    def make(name: str, span: Span | None) -> Var:
        var = Var(name, prim_type(wanted), span=span)
        p.block.iter_vars.append(IterVar(Range(low, extent), var, kind, span=span))
        p.block.iter_values.append(bound)
        p.block_vars.add(id(var))
        return var

    if p.block.name == "root" and p.depth == 0:
        raise TypeCheckError("T.axis stands inside of 'with T.sblock(...)'")
    return Declaration(make)


def _spatial(p: LoopForms, dom: Any, value: Any, dtype: str | None = None) -> Declaration:
    return _axis(p, IterType.DATA_PAR, dom, value, dtype)


def _reduce(p: LoopForms, dom: Any, value: Any, dtype: str | None = None) -> Declaration:
    return _axis(p, IterType.REDUCE, dom, value, dtype)


def _scan(p: LoopForms, dom: Any, value: Any, dtype: str | None = None) -> Declaration:
    return _axis(p, IterType.SCAN, dom, value, dtype)


def _opaque(p: LoopForms, dom: Any, value: Any, dtype: str | None = None) -> Declaration:
    return _axis(p, IterType.OPAQUE, dom, value, dtype)


_KINDS = {"S": IterType.DATA_PAR, "R": IterType.REDUCE}


def _remap(p: LoopForms, kinds: Any, values: Any, dtype: str | None = None) -> Any:
    letters = as_name(kinds, "T.axis.remap")
    if not isinstance(values, (list, tuple)) or len(values) != len(letters):
        count = len(values) if isinstance(values, (list, tuple)) else 1
        raise TypeCheckError("T.axis.remap: one letter a loop variable", None, f"{len(letters)}", f"{count}")
    result = []
    for letter, value in zip(letters, values):
        if letter not in _KINDS:
            raise TypeCheckError("T.axis.remap: unknown letter", None, "S (spatial) or R (reduce)", repr(letter))
        known = p.ranges.get(id(value))
        if known is None:
            raise TypeCheckError(
                "T.axis.remap takes loop variables",
                None,
                "variables of the loops around",
                describe(value),
                "for other values write T.axis.spatial(extent, value)",
            )
        result.append(_axis(p, _KINDS[letter], Range(*known), value))
    return result[0] if len(result) == 1 else result


# ------------------------------------------------------------------------------------------------- indices and regions


def _as_index(p: LoopForms, value: Any) -> Expr:
    if isinstance(value, slice):
        raise TypeCheckError("a slice is only allowed where a region is meant")
    if isinstance(value, str):
        raise TypeCheckError("an index must be an integer", None, "an integer scalar", repr(value))
    return as_int(p, value)


def _slice_range(p: LoopForms, s: slice, extent: Expr) -> Range:
    if s.step is not None:
        raise TypeCheckError("a region has no step")
    low_value = 0 if s.start is None else s.start
    low, high = _pair(p, low_value, extent if s.stop is None else s.stop)
    return Range(low, distance(low, high))


def region_index(p: LoopForms, buffer: Var, index: Any, node: ast.AST) -> Expr | BufferRegion:
    """``buffer[index]``: a load, or a region where the call around takes regions and a slice is given."""
    items = index if isinstance(index, tuple) else (index,)
    shape = buffer_type(buffer).shape
    if p.regions and any(isinstance(i, (slice, Range)) for i in items):
        if len(items) != len(shape):
            raise TypeError(f"{buffer.name} has {len(shape)} dimensions, but {len(items)} were given")
        ranges = []
        for item, extent in zip(items, shape):
            if isinstance(item, Range):
                ranges.append(item)
            elif isinstance(item, slice):
                ranges.append(_slice_range(p, item, extent))
            else:
                point = _as_index(p, item)
                ranges.append(Range(point, const(1, scalar_dtype(point))))
        return BufferRegion(buffer, tuple(ranges))
    return BufferLoad(buffer, tuple(store_index(p, i, node) for i in items))


def store_index(p: LoopForms, item: Any, node: ast.AST) -> Expr:
    """One index of a load or store; a slice of constant length is a vector of indices."""
    if not isinstance(item, slice):
        return _as_index(p, item)
    if item.start is None or item.stop is None:
        raise TypeCheckError("a slice in an expression needs both ends")
    low, high = _pair(p, item.start, item.stop)
    length = distance(low, high)
    stride = as_int(p, 1 if item.step is None else item.step, scalar_dtype(low))
    if not isinstance(length, IntImm) or not isinstance(stride, IntImm) or stride.value <= 0 or length.value <= 0:
        raise TypeCheckError("the length of a slice in an expression must be a constant above 0")
    return Ramp(low, stride, -(-length.value // stride.value))


def as_region(value: Any) -> BufferRegion:
    """A region from ``A[i, 0:4]``, ``A[i, j]`` or the whole ``A``."""
    if isinstance(value, BufferRegion):
        return value
    if isinstance(value, BufferLoad):
        return BufferRegion(value.buffer, tuple(Range(i, const(1, scalar_dtype(i))) for i in value.indices))
    if isinstance(value, Var) and is_buffer(value):
        shape = buffer_type(value).shape
        return BufferRegion(value, tuple(Range(const(0, scalar_dtype(s)), s) for s in shape))
    raise TypeCheckError("expected a region of a buffer", None, "A[i, 0:4]", describe(value))


def _regions(values: tuple[Any, ...]) -> list[BufferRegion]:
    if len(values) == 1 and isinstance(values[0], (list, tuple)):
        values = tuple(values[0])
    return [as_region(v) for v in values]


# -------------------------------------------------------------------------------------------------- statements by call


def _reads(p: LoopForms, *regions: Any) -> None:
    p.block.reads = (p.block.reads or []) + _regions(regions)


def _writes(p: LoopForms, *regions: Any) -> None:
    p.block.writes = (p.block.writes or []) + _regions(regions)


def _where(p: LoopForms, predicate: Any) -> None:
    given = as_expr(predicate)
    if not scalar_dtype(given).startswith("bool"):
        raise TypeCheckError("T.where takes a bool", None, "bool", scalar_dtype(given))
    p.block.predicate = given if p.block.predicate is None else And(p.block.predicate, given)


def _sblock_attr(p: LoopForms, attrs: Any) -> None:
    p.block.annotations.update(_names_of(attrs, "T.sblock_attr"))


def _func_attr(p: LoopForms, attrs: Any) -> None:
    p.attrs.update(_names_of(attrs, "T.func_attr"))


def _evaluate(p: LoopForms, value: Any) -> Stmt:
    return Evaluate(value if isinstance(value, Expr) else as_expr(value, "int32" if isinstance(value, int) else None))


def _attr_rest(p: LoopForms, node: Any, attr_key: Any, value: Any) -> None:
    made = _attr_of(node, attr_key, value)
    p.enclose(lambda body: AttrStmt(made[0], made[1], made[2], body))


def _attr_of(node: Any, attr_key: Any, value: Any) -> tuple[Any, str, Expr]:
    return plain(node), as_name(attr_key, "T.attr"), as_expr(value, "int32" if isinstance(value, int) else None)


def _buffer_store(p: LoopForms, buffer: Any, value: Any, indices: Any) -> Stmt:
    if not isinstance(buffer, Var) or not is_buffer(buffer):
        raise TypeCheckError("T.buffer_store takes a buffer", None, "a buffer", describe(buffer))
    items = indices if isinstance(indices, (tuple, list)) else (indices,)
    dtype = buffer_type(buffer).dtype
    return BufferStore(buffer, as_expr(value, dtype), tuple(_as_index(p, i) for i in items))


def _ret(p: LoopForms, value: Any = None) -> Stmt:
    return Return(None if value is None else as_expr(value, "int32" if isinstance(value, int) else None))


def _assert_statement(p: LoopForms, condition: Any, message: Any = "") -> Stmt:
    return AssertStmt(as_expr(condition), as_name(message, "T.Assert"))


STATEMENTS: dict[str, Callable[..., Stmt | None]] = {
    "T.reads": _reads,
    "T.writes": _writes,
    "T.where": _where,
    "T.sblock_attr": _sblock_attr,
    "T.func_attr": _func_attr,
    "T.evaluate": _evaluate,
    "T.attr": _attr_rest,
    "T.buffer_store": _buffer_store,
    "T.ret": _ret,
    "T.Assert": _assert_statement,
}


# -------------------------------------------------------------------------------------------------------- with scopes


def _with_sblock(p: LoopForms, item: ast.withitem, inner: Inner, name: Any = "", no_realize: bool = False) -> Stmt:
    if no_realize:
        raise NotSupportedError("T.sblock(no_realize=True) is not supported")
    _no_target(p, item)
    outer, p.block = p.block, BlockInfo(as_name(name, "T.sblock"), p.span(item.context_expr), p.depth + 1)
    p.has_blocks = True
    p.scopes.append({})
    p.depth += 1
    body = inner()
    p.depth -= 1
    p.scopes.pop()
    made, p.block = p.block, outer
    return finish_block(made, body)


def finish_block(info: BlockInfo, body: Stmt, is_root: bool = False) -> Stmt:
    """The block with the regions that were not given filled in."""
    reads, writes = info.reads, info.writes
    if is_root and reads is None and writes is None:
        reads, writes = [], []
    if reads is None or writes is None:
        found_reads, found_writes = infer_regions(body, info.init, info.allocs, info.matches)
        reads = list(found_reads) if reads is None else reads
        writes = list(found_writes) if writes is None else writes
    block = SBlock(
        tuple(info.iter_vars),
        tuple(info.allocs),
        tuple(info.matches),
        tuple(reads),
        tuple(writes),
        info.name,
        info.init,
        body,
        info.annotations,
        span=info.span,
    )
    predicate = const(True) if info.predicate is None else info.predicate
    return SBlockRealize(tuple(info.iter_values), predicate, block, span=info.span)


def _no_target(p: LoopForms, item: ast.withitem) -> None:
    if item.optional_vars is not None:
        raise p.error(item.optional_vars, "'as' has no meaning here")


def _with_init(p: LoopForms, item: ast.withitem, inner: Inner) -> None:
    _no_target(p, item)
    if p.block.init is not None:
        raise TypeCheckError("the block has an init already")
    if p.block.name == "root" and p.depth == 0:
        raise TypeCheckError("T.init stands inside of 'with T.sblock(...)'")
    p.scopes.append({})
    p.depth += 1
    p.block.init = inner()
    p.depth -= 1
    p.scopes.pop()


def _with_attr(p: LoopForms, item: ast.withitem, inner: Inner, node: Any, attr_key: Any, value: Any) -> Stmt:
    _no_target(p, item)
    made = _attr_of(node, attr_key, value)
    p.scopes.append({})
    p.depth += 1
    body = inner()
    p.depth -= 1
    p.scopes.pop()
    return AttrStmt(made[0], made[1], made[2], body)


def _with_seq(p: LoopForms, item: ast.withitem, inner: Inner) -> Stmt:
    _no_target(p, item)
    p.scopes.append({})
    p.depth += 1
    body = inner()
    p.depth -= 1
    p.scopes.pop()
    return SeqStmt(body.seq if isinstance(body, SeqStmt) else (body,))


def _with_let(p: LoopForms, item: ast.withitem, inner: Inner, value: Any, dtype: Any = None) -> Stmt:
    if not isinstance(item.optional_vars, ast.Name):
        raise p.error(item.context_expr, "T.LetStmt names a variable: with T.LetStmt(value) as x")
    bound = as_expr(value, "int32" if isinstance(value, int) else None)
    var = Var(item.optional_vars.id, prim_type(scalar_dtype(bound)), span=p.span(item.optional_vars))
    p.scopes.append({})
    p.define(var.name, var)
    p.depth += 1
    body = inner()
    p.depth -= 1
    p.scopes.pop()
    rest = body.seq if isinstance(body, SeqStmt) else (body,)
    return SeqStmt((Bind(bound, var), *rest))


SCOPES: dict[str, Callable[..., Stmt | None]] = {
    "T.sblock": _with_sblock,
    "T.init": _with_init,
    "T.attr": _with_attr,
    "T.seq": _with_seq,
    "T.LetStmt": _with_let,
}


# -------------------------------------------------------------------------------------------------------------- values


def _let_value(p: LoopForms, value: Any, dtype: Any = None) -> Expr:
    made = as_expr(value, "int32" if isinstance(value, int) else None)
    if dtype is not None and scalar_dtype(made) != as_dtype(dtype, "dtype"):
        raise TypeCheckError("T.bind: the dtype differs", None, as_dtype(dtype, "dtype"), scalar_dtype(made))
    return made


ASSIGNABLE: dict[str, Callable[..., Expr]] = {"T.let": _let_value, "T.bind": _let_value}


def _let_expression(p: LoopForms, body: Any, where: Any) -> Expr:
    if not isinstance(where, dict) or not where:
        raise TypeCheckError("T.Let binds variables", None, "T.Let(body, where={x: value})", describe(where))
    result = as_expr(body, "int32" if isinstance(body, int) else None)
    for var, value in reversed(list(where.items())):
        if not isinstance(var, Var):
            raise TypeCheckError("T.Let binds variables", None, "a variable: x = T.int32()", describe(var))
        result = Let(var, as_expr(value, scalar_dtype(var)), result)
    return result


def _range_node(p: LoopForms, low: Any, extent: Any) -> Range:
    return Range(as_int(p, low), as_int(p, extent))


VALUES: dict[str, Callable[..., Any]] = {
    "T.match_buffer": _match_buffer,
    "T.alloc_buffer": _alloc_buffer,
    "T.sblock_alloc_buffer": _sblock_alloc_buffer,
    "T.decl_buffer": _decl_buffer,
    "T.axis.spatial": _spatial,
    "T.axis.reduce": _reduce,
    "T.axis.scan": _scan,
    "T.axis.opaque": _opaque,
    "T.axis.remap": _remap,
    "T.Let": _let_expression,
    "T.Range": _range_node,
}
