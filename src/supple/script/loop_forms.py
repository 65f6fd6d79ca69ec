"""What the names of ``T`` mean in a loop function: loops, blocks, axes, buffers, statements; one function a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from supple.analysis.regions import infer_regions
from supple.base.errors import InternalError, NotSupportedError, TypeCheckError
from supple.base.source import Span
from supple.ir.expr import (
    IntImm,
    Let,
    Range,
    Var,
    as_expr,
    const,
    is_buffer,
    match_dtypes,
    scalar_dtype,
)
from supple.ir.loop import (
    AssertStmt,
    AttrStmt,
    Bind,
    Break,
    BufferStore,
    Continue,
    Evaluate,
    For,
    ForKind,
    IterType,
    IterVar,
    Return,
    SBlock,
    SBlockRealize,
    SeqStmt,
    buffer_type,
)
from supple.ir.node import Expr, Stmt
from supple.ir.region import distance
from supple.ir.types import prim_type
from supple.script.evaluate import describe
from supple.script.forms import Declaration, EnvThread, FormCall, add_attrs, as_dtype, as_name
from supple.script.loop_buffers import (
    alloc_buffer,
    alloc_local,
    alloc_scalar,
    alloc_shared,
    as_index,
    decl_buffer,
    match_buffer,
    regions_of,
    sblock_alloc_buffer,
)
from supple.script.loop_state import (
    AsName,
    BlockInfo,
    LoopRange,
    LoopSpec,
    LoopState,
    Scope,
    as_int,
    join,
    names_of,
    pair,
    plain,
)

# --------------------------------------------------------------------------------------------------------------- loops


def _loop(
    p: LoopState,
    kind: ForKind,
    start: Any,
    stop: Any,
    step: Any,
    annotations: Any,
    extent: Any = None,
    dtype: Any = None,
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
        low, high = pair(p, start, stop)
        loop = LoopRange(low, distance(low, high))
    if step is not None and not (isinstance(step, int) and step == 1):
        loop.step = as_int(p, step, scalar_dtype(loop.extent))
        if isinstance(loop.step, IntImm) and loop.step.value <= 0:
            raise NotSupportedError("a loop's step must be positive")
    given = None if dtype is None else as_dtype(dtype, "a loop's dtype")
    return LoopSpec(kind, [loop], {} if annotations is None else names_of(annotations, "annotations"), None, given)


def _ranged(kind: ForKind) -> Callable[..., LoopSpec]:
    """The form of one kind of loop over a range."""

    def form(
        p: LoopState,
        start: Any,
        stop: Any = None,
        step: Any = None,
        *,
        annotations: Any = None,
        extent: Any = None,
        dtype: Any = None,
    ) -> LoopSpec:
        return _loop(p, kind, start, stop, step, annotations, extent, dtype)

    return form


def _thread_binding(
    p: LoopState,
    start: Any,
    stop: Any = None,
    thread: Any = None,
    *,
    annotations: Any = None,
    extent: Any = None,
    dtype: Any = None,
) -> LoopSpec:
    if thread is None and isinstance(stop, str):
        stop, thread = None, stop
    if not isinstance(thread, str):
        raise TypeError("expected the thread axis, such as thread='threadIdx.x'")
    spec = _loop(p, ForKind.THREAD_BINDING, start, stop, None, annotations, extent, dtype)
    spec.thread = thread
    return spec


def _grid(p: LoopState, *extents: Any, dtype: Any = None) -> LoopSpec:
    if not extents:
        raise TypeError("expected at least one extent")
    ranges = []
    for extent in extents:
        if isinstance(extent, tuple) and len(extent) == 2:
            low, high = pair(p, *extent)
            ranges.append(LoopRange(low, distance(low, high)))
        else:
            high = as_int(p, extent)
            ranges.append(LoopRange(const(0, scalar_dtype(high)), high))
    return LoopSpec(ForKind.SERIAL, ranges, dtype=None if dtype is None else as_dtype(dtype, "T.grid"))


LOOPS: dict[str, Callable[..., LoopSpec]] = {
    "T.serial": _ranged(ForKind.SERIAL),
    "T.parallel": _ranged(ForKind.PARALLEL),
    "T.vectorized": _ranged(ForKind.VECTORIZED),
    "T.unroll": _ranged(ForKind.UNROLLED),
    "T.thread_binding": _thread_binding,
    "T.grid": _grid,
}


def nested_loops(spec: LoopSpec, loops: list[tuple[Var, LoopRange]], body: Stmt, span: Span | None = None) -> Stmt:
    """The loops of one header around a body."""
    for var, extent in reversed(loops):
        body = For(
            var,
            extent.min,
            extent.extent,
            spec.kind,
            body,
            spec.thread,
            dict(spec.annotations),
            extent.step,
            span=span,
        )
    return body


# --------------------------------------------------------------------------------------------------------------- axes


def _axis(p: LoopState, kind: IterType, dom: Any, value: Any, dtype: str | None = None) -> Declaration:
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


def _spatial(p: LoopState, dom: Any, value: Any, dtype: str | None = None) -> Declaration:
    return _axis(p, IterType.DATA_PAR, dom, value, dtype)


def _reduce(p: LoopState, dom: Any, value: Any, dtype: str | None = None) -> Declaration:
    return _axis(p, IterType.REDUCE, dom, value, dtype)


def _scan(p: LoopState, dom: Any, value: Any, dtype: str | None = None) -> Declaration:
    return _axis(p, IterType.SCAN, dom, value, dtype)


def _opaque(p: LoopState, dom: Any, value: Any, dtype: str | None = None) -> Declaration:
    return _axis(p, IterType.OPAQUE, dom, value, dtype)


_KINDS = {"S": IterType.DATA_PAR, "R": IterType.REDUCE}


def _remap(p: LoopState, kinds: Any, values: Any, dtype: str | None = None) -> Any:
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


# -------------------------------------------------------------------------------------------------- statements by call


def _once(stands: bool, name: str) -> None:
    """Refuse what says something about a block twice."""
    if stands:
        raise TypeError(f"{name} stands in this block already")


def _reads(p: LoopState, *regions: Any) -> None:
    _once(p.block.reads is not None, "T.reads")
    p.block.reads = regions_of(regions)


def _writes(p: LoopState, *regions: Any) -> None:
    _once(p.block.writes is not None, "T.writes")
    p.block.writes = regions_of(regions)


def _where(p: LoopState, predicate: Any) -> None:
    _once(p.block.predicate is not None, "T.where")
    given = as_expr(predicate)
    if not scalar_dtype(given).startswith("bool"):
        raise TypeCheckError("T.where takes a bool", None, "bool", scalar_dtype(given))
    p.block.predicate = given


def _sblock_attr(p: LoopState, attrs: Any) -> None:
    p.block.annotations.update(names_of(attrs, "T.sblock_attr"))


def _func_attr(p: LoopState, attrs: Any) -> None:
    add_attrs(p.attrs, p.said_attrs, names_of(attrs, "T.func_attr"), "T.func_attr")


def _evaluate(p: LoopState, value: Any) -> Stmt | None:
    if isinstance(value, FormCall) and value.form.name in ("T.break_loop", "T.continue_loop"):
        return STATEMENTS[value.form.name](p)
    return Evaluate(value if isinstance(value, Expr) else as_expr(value, "int32" if isinstance(value, int) else None))


def _attr_rest(p: LoopState, node: Any, attr_key: Any = None, value: Any = None) -> None:
    if isinstance(node, dict):
        for key, item in node.items():
            _attr_rest(p, 0, key, item)
        return
    made = _attr_of(node, attr_key, value)
    p.enclose(lambda body: AttrStmt(made[0], made[1], made[2], body))


def _attr_of(node: Any, attr_key: Any, value: Any) -> tuple[Any, str, Expr]:
    return plain(node), as_name(attr_key, "T.attr"), as_expr(value, "int32" if isinstance(value, int) else None)


def _launched(p: LoopState, thread: Any, extent: Any, target: AsName | None) -> tuple[Var, EnvThread, Expr]:
    """The loop variable of a launched thread axis, defined under its name."""
    known = thread if isinstance(thread, EnvThread) else p.threads.get(id(thread))
    if known is None:
        known = EnvThread(as_name(thread, "T.launch_thread"), "", "tx")
    length = as_int(p, extent, known.dtype or None)
    named = AsName(known.name, None) if target is None else target
    given = p.launched_as(thread)
    var = Var(named.name, prim_type(scalar_dtype(length)), span=named.span) if given is None else given
    p.define(var.name, var)
    p.threads[id(var)] = known
    p.ranges[id(var)] = (const(0, scalar_dtype(length)), length)
    return var, known, length


def _thread_loop(var: Var, thread: EnvThread, extent: Expr, body: Stmt) -> Stmt:
    return For(var, const(0, scalar_dtype(extent)), extent, ForKind.THREAD_BINDING, body, thread.tag, span=var.span)


def launch_as(p: LoopState, target: AsName | None, thread: Any, extent: Any) -> None:
    """``tx = T.launch_thread("threadIdx.x", 8)``: what follows runs for every thread (a bound loop around it)."""
    made = _launched(p, thread, extent, target)
    p.enclose(lambda body: _thread_loop(*made, body))


def _launch_rest(p: LoopState, thread: Any, extent: Any) -> None:
    launch_as(p, None, thread, extent)


def _with_launch(p: LoopState, target: AsName | None, thread: Any, extent: Any) -> Scope:
    with p.scope():
        made = _launched(p, thread, extent, target)
        body = yield made[0]
    return _thread_loop(*made, body)


def _env_thread(p: LoopState, thread_tag: Any, dtype: Any = "int32") -> Declaration:
    tag, kind = as_name(thread_tag, "T.env_thread"), as_dtype(dtype, "T.env_thread")
    return Declaration(lambda name, span: EnvThread(tag, kind, name))


def _buffer_store(p: LoopState, buffer: Any, value: Any, indices: Any) -> Stmt:
    if not is_buffer(buffer):
        raise TypeCheckError("T.buffer_store takes a buffer", None, "a buffer", describe(buffer))
    items = indices if isinstance(indices, (tuple, list)) else (indices,)
    dtype = buffer_type(buffer).dtype
    return BufferStore(buffer, as_expr(value, dtype), tuple(as_index(p, i) for i in items))


def _ret(p: LoopState, value: Any = None) -> Stmt:
    if isinstance(value, Expr):
        scalar_dtype(value)  # refuses buffers
    return Return(None if value is None else as_expr(value, "int32" if isinstance(value, int) else None))


def assertion(condition: Expr, said: Any) -> AssertStmt:
    """The statement of ``assert condition, said``: a message, or ``(kind, [parts of the message])``."""
    if isinstance(said, tuple) and len(said) == 2 and isinstance(said[1], (list, tuple)):
        parts = tuple(as_name(part, "assert's message") for part in said[1])
        return AssertStmt(condition, parts, as_name(said[0], "the kind of an assertion"))
    return AssertStmt(condition, (as_name(said, "assert's message"),))


def _assert_statement(p: LoopState, condition: Any, message: Any = "", error_kind: Any = "RuntimeError") -> Stmt:
    return assertion(as_expr(condition), (error_kind, message if isinstance(message, (list, tuple)) else [message]))


def _with_assert(
    p: LoopState, target: AsName | None, condition: Any, message: Any = "", error_kind: Any = "RuntimeError"
) -> Scope:
    p.emit(_assert_statement(p, condition, message, error_kind))
    body = yield None
    for statement in body.seq if isinstance(body, SeqStmt) else (body,):
        p.emit(statement)
    return None


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
    "T.launch_thread": _launch_rest,
    "T.break_loop": lambda p: Break(),
    "T.continue_loop": lambda p: Continue(),
    "T.Return": _ret,
}


# -------------------------------------------------------------------------------------------------------- with scopes


def root_block(info: BlockInfo, body: Stmt, has_blocks: bool) -> Stmt:
    """A function's body with the root block around it, where it needs one and does not spell it out itself."""
    spelled = isinstance(body, SBlockRealize) and body.block.name_hint == "root" and not body.block.iter_vars
    if (spelled or not has_blocks) and not info.touched:
        return body
    moved = info.provisional
    if moved:
        kept = [s for s in (body.seq if isinstance(body, SeqStmt) else (body,)) if not any(s is m for m in moved)]
        body = join(kept)
        info.allocs[:0] = [s.buffer for s in moved]
    return finish_block(info, body, is_root=True)


def _with_sblock(p: LoopState, target: AsName | None, name: Any = "", no_realize: bool = False) -> Scope:
    if no_realize:
        raise NotSupportedError("T.sblock(no_realize=True) is not supported")
    outer, p.block = p.block, BlockInfo(as_name(name, "T.sblock"), p.place(), p.depth + 1)
    p.has_blocks = True
    with p.scope():
        body = yield None
    made, p.block = p.block, outer
    return finish_block(made, body)


def finish_block(info: BlockInfo, body: Stmt, is_root: bool = False) -> Stmt:
    """The block with the regions that were not given filled in; a function's root block has none unless it says so."""
    reads, writes = info.reads, info.writes
    if (
        (is_root or (info.name == "root" and info.depth == 1 and not info.iter_vars))
        and reads is None
        and writes is None
    ):
        reads, writes = [], []
    if reads is None or writes is None:
        found_reads, found_writes = infer_regions(body, info.init, info.allocs, info.matches)
        reads = list(found_reads) if reads is None else reads
        writes = list(found_writes) if writes is None else writes
    block = SBlock(
        tuple(info.iter_vars),
        tuple(reads),
        tuple(writes),
        info.name,
        body,
        info.init,
        tuple(info.allocs),
        tuple(info.matches),
        info.annotations,
        span=info.span,
    )
    predicate = const(True) if info.predicate is None else info.predicate
    return SBlockRealize(tuple(info.iter_values), predicate, block, span=info.span)


def _with_init(p: LoopState, target: AsName | None) -> Scope:
    if p.block.init is not None:
        raise TypeCheckError("the block has an init already")
    if p.block.name == "root" and p.depth == 0:
        raise TypeCheckError("T.init stands inside of 'with T.sblock(...)'")
    with p.scope():
        p.block.init = yield None
    return None


def _with_attr(p: LoopState, target: AsName | None, node: Any, attr_key: Any = None, value: Any = None) -> Scope:
    items = [(0, *item) for item in node.items()] if isinstance(node, dict) else [(node, attr_key, value)]
    made = [_attr_of(*item) for item in items]
    with p.scope():
        body = yield None
    for of, key, held in reversed(made):
        body = AttrStmt(of, key, held, body)
    return body


def _with_seq(p: LoopState, target: AsName | None) -> Scope:
    with p.scope():
        body = yield None
    return SeqStmt(body.seq if isinstance(body, SeqStmt) else (body,))


def _with_let(p: LoopState, target: AsName | None, value: Any, dtype: Any = None) -> Scope:
    if target is None:
        raise TypeCheckError("T.LetStmt names a variable: with T.LetStmt(value) as x")
    bound = _let_value(p, value, dtype)
    var = Var(target.name, prim_type(scalar_dtype(bound)), span=target.span)
    with p.scope():
        p.define(var.name, var)
        body = yield var
    rest = body.seq if isinstance(body, SeqStmt) else (body,)
    return SeqStmt((Bind(var, bound), *rest))


SCOPES: dict[str, Callable[..., Scope]] = {
    "T.sblock": _with_sblock,
    "T.init": _with_init,
    "T.Assert": _with_assert,
    "T.attr": _with_attr,
    "T.seq": _with_seq,
    "T.LetStmt": _with_let,
    "T.launch_thread": _with_launch,
}


NAMING = ("T.LetStmt", "T.launch_thread")
"""The scopes whose ``as`` names a variable."""


def finish_scope(scope: Scope, body: Stmt) -> Stmt | None:
    """The statement that a scope makes of what stands inside, if it makes one."""
    try:
        scope.send(body)
    except StopIteration as stop:
        made: Stmt | None = stop.value
        return made
    raise InternalError("a scope yields once")


# -------------------------------------------------------------------------------------------------------------- values


def _let_value(p: LoopState, value: Any, dtype: Any = None) -> Expr:
    made = as_expr(value, "int32" if isinstance(value, int) else None)
    if dtype is not None and scalar_dtype(made) != as_dtype(dtype, "dtype"):
        raise TypeCheckError("T.bind: the dtype differs", None, as_dtype(dtype, "dtype"), scalar_dtype(made))
    return made


ASSIGNABLE: dict[str, Callable[..., Expr]] = {"T.let": _let_value, "T.bind": _let_value}


def _let_expression(p: LoopState, body: Any, where: Any) -> Expr:
    if not isinstance(where, dict) or not where:
        raise TypeCheckError("T.Let binds variables", None, "T.Let(body, where={x: value})", describe(where))
    result = as_expr(body, "int32" if isinstance(body, int) else None)
    for var, value in reversed(list(where.items())):
        if not isinstance(var, Var):
            raise TypeCheckError("T.Let binds variables", None, "a variable: x = T.int32()", describe(var))
        result = Let(var, as_expr(value, scalar_dtype(var)), result)
    return result


def _range_node(p: LoopState, low: Any, extent: Any) -> Range:
    return Range(as_int(p, low), as_int(p, extent))


VALUES: dict[str, Callable[..., Any]] = {
    "T.match_buffer": match_buffer,
    "T.alloc_buffer": alloc_buffer,
    "T.sblock_alloc_buffer": sblock_alloc_buffer,
    "T.decl_buffer": decl_buffer,
    "T.axis.spatial": _spatial,
    "T.axis.reduce": _reduce,
    "T.axis.scan": _scan,
    "T.axis.opaque": _opaque,
    "T.axis.remap": _remap,
    "T.Let": _let_expression,
    "T.Range": _range_node,
    "T.env_thread": _env_thread,
    "T.alloc_local": alloc_local,
    "T.alloc_scalar": alloc_scalar,
    "T.alloc_shared": alloc_shared,
}
