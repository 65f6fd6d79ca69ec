"""Statements of loop functions as LLVM control flow, one handler a node kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from supple.analysis.vectorize import can_vectorize, leaves_early
from supple.base import dtypes
from supple.base.errors import NotSupportedError
from supple.codegen import kernel_memory as memory
from supple.codegen import kernel_parallel as parallel
from supple.codegen.kernel_builder import Value, llvm_type
from supple.codegen.kernel_expr import HANDLERS as EXPRESSIONS
from supple.codegen.kernel_expr import cast
from supple.codegen.kernel_loop import counted
from supple.codegen.kernel_state import Lanes, State, Storage, Task
from supple.ir import expr as E
from supple.ir.expr import BufferLoad, Call, IntImm, Var
from supple.ir.loop import (
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Bind,
    Break,
    BufferStore,
    Continue,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    Return,
    SBlockRealize,
    SeqStmt,
    While,
    buffer_type,
)
from supple.ir.node import Expr, Stmt
from supple.ir.op import Op
from supple.ir.types import PrimType
from supple.ir.walk import pre_order
from supple.runtime import abi
from supple.schedule.loops import PROVED, RANGE
from supple.sym import poly as P
from supple.sym.simplify import NON_NEGATIVE, from_poly

STACK_BYTES = 16 << 10
"""Local buffers up to this size are on the stack (and become registers where their indices are constant)."""

UNROLL_LIMIT = 4096
"""The most copies of a statement that nested unrolled loops may make; beyond, a loop stays a loop."""


def sequence(_: State, node: SeqStmt) -> Task:
    """Statements in order."""
    yield from node.seq


def evaluate(state: State, node: Evaluate) -> Task:
    """An expression for its effect; intrinsics have none."""
    if isinstance(node.value, Call) and isinstance(node.value.op, Op) and not node.value.op.pure:
        name = node.value.op.name.partition(".")[2]
        if name == "prefetch" and _is_address(node.value.args[0]):
            yield from _prefetch(state, node.value)
            return
        if name != "assume":
            raise NotSupportedError(f"{state.name}: native code for {name} is not supported", node.span)
    yield node.value


def _is_address(e: Expr) -> bool:
    return isinstance(e, Call) and getattr(e.op, "name", "") == "tirx.address_of" and isinstance(e.args[0], BufferLoad)


def _prefetch(state: State, node: Call) -> Task:
    place, *numbers = node.args
    write, locality, cache = (n.value if isinstance(n, IntImm) else -1 for n in numbers)
    if write not in (0, 1) or locality not in range(4) or cache not in (0, 1):
        raise NotSupportedError(
            f"{state.name}: prefetch takes numbers: write 0 or 1, locality 0 to 3, cache 0 or 1", node.span
        )
    assert isinstance(place, Call) and isinstance(place.args[0], BufferLoad)
    element = place.args[0]
    linear = yield memory.flat_index(state, element.buffer, element.indices, element.span)
    pointer = memory.address(state, state.buffer(element.buffer), linear)
    state.builder.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    state.builder.emit(f"call void @llvm.prefetch.p0(ptr {pointer.ref}, i32 {write}, i32 {locality}, i32 {cache})")


def bind(state: State, node: Bind) -> Task:
    """``var = value``."""
    value = yield node.value
    state.bind(node.var, value)
    if isinstance(node.var.ty, PrimType) and dtypes.row(node.var.dtype).kind in ("int", "uint"):
        state.unknown(node.var)


def store(state: State, node: BufferStore) -> Task:
    """``buffer[indices] = value``."""
    value = yield node.value
    yield memory.store(state, node.buffer, node.indices, value, node.span)


def allocate(state: State, node: AllocBuffer) -> Task:
    """A small local buffer of constant size is on the stack, any other buffer in the workspace."""
    ty = buffer_type(node.buffer)
    if id(node.buffer) in state.storage:
        return  # the same statement written out again by an unrolled loop
    if ty.strides or ty.elem_offset is not None or dtypes.lanes(ty.dtype) != 1:
        raise NotSupportedError(
            f"{state.name}: allocating {node.buffer.name} with strides, an offset or vector elements is not supported",
            node.span,
        )
    shape = [state.poly(extent) for extent in ty.shape]
    yield from _require_sizes(state, node, shape)
    strides = memory.compact_strides(shape)
    size = P.constant(dtypes.nbytes(ty.dtype))
    for extent in shape:
        size = size * extent
    known = size.constant
    on_stack = ty.scope.startswith("local") or state.region is not None
    if on_stack and known is not None and known <= STACK_BYTES:
        name = state.builder.fresh("local" if ty.scope.startswith("local") else "own")
        kind = f"[{max(1, known)} x i8]"
        state.builder.allocas.append(f"  %{name} = alloca {kind}, align 64")
        pointer = Value(f"%{name}", "handle")
    else:
        if not _depends_only_on(size, state.symbols):
            raise NotSupportedError(
                f"{state.name}: the size of {node.buffer.name} depends on more than the parameters' dimensions",
                node.span,
            )
        base = Storage(Value("%workspace", "handle"), "uint8", (), P.ZERO)
        place = yield memory.decompose(state, state.workspace_bytes)
        pointer = memory.address(state, base, place)
        state.noalias.add(pointer.ref)
        state.workspace_bytes = state.workspace_bytes + _rounded_up(size)
    state.storage[id(node.buffer)] = Storage(pointer, ty.dtype, strides, P.ZERO)
    state.keep.append(node)


def _require_sizes(state: State, node: AllocBuffer, shape: list[P.Poly]) -> Task:
    """Dimensions that may be negative (``n - 50``) are checked: indices are compared with them without a sign."""
    sizes = P.Bounds(None, NON_NEGATIVE)
    for axis, extent in enumerate(shape):
        if sizes.of(extent)[0] >= 0:
            continue
        value: Value = yield from_poly(extent)
        holds = state.builder.compare("icmp sge", value, state.builder.const(0, "int64"))
        message = f"{state.name}: dimension {axis} of {node.buffer.name} would be {{0}}: a size cannot be negative"
        state.fail_unless(holds, "size", message, node.span or node.buffer.span, value)


def _depends_only_on(size: P.Poly, symbols: set[int]) -> bool:
    """Whether a size is known before the kernel runs: an opaque part (a choice) is, where its variables are."""
    stack = [size]
    while stack:
        for monomial in stack.pop().terms:
            for identifier in monomial:
                atom = P.atom_of(identifier)
                if atom.opaque is not None:
                    names = [n for n in pre_order(atom.opaque) if isinstance(n, Var)]
                    if not names or any(P.intern_atom(P.Atom("var", var=s)) not in symbols for s in names):
                        return False
                elif identifier not in symbols and not atom.args:
                    return False
                stack.extend(atom.args)
    return True


def _rounded_up(size: P.Poly) -> P.Poly:
    """To a multiple of 64."""
    sizes = P.Bounds(None, NON_NEGATIVE)
    return P.floordiv(size + P.constant(63), P.constant(64), sizes).scale(64)


def declare(state: State, node: DeclBuffer) -> None:
    """A view of storage that exists."""
    ty = buffer_type(node.buffer)
    data = node.data if node.data is not None else ty.data
    source = state.find_buffer(data) if isinstance(data, Var) else None
    if source is None:
        raise NotSupportedError(
            f"{state.name}: view {node.buffer.name} must name the buffer it is a view of", node.span
        )
    shape = [state.poly(extent) for extent in ty.shape]
    strides = tuple(state.poly(s) for s in ty.strides) if ty.strides else memory.compact_strides(shape)
    offset = P.ZERO if ty.elem_offset is None else state.poly(ty.elem_offset)
    if source.offset != P.ZERO:
        if source.dtype != ty.dtype:
            raise NotSupportedError(f"{state.name}: view {node.buffer.name} of another dtype at an offset", node.span)
        offset = offset + source.offset
    state.storage[id(node.buffer)] = Storage(source.pointer, ty.dtype, strides, offset)
    state.keep.append(node)


def conditional(state: State, node: IfThenElse) -> Task:
    """``if``/``else``."""
    condition = yield node.condition
    if dtypes.lanes(condition.dtype) > 1:
        raise NotSupportedError(f"{state.name}: a statement cannot depend on a vector of conditions", node.span)
    if condition.ref in ("true", "false"):
        chosen = node.then_case if condition.ref == "true" else node.else_case
        if chosen is not None:
            yield chosen
        return
    b = state.builder
    then, join = b.fresh("then"), b.fresh("join")
    otherwise = b.fresh("else") if node.else_case is not None else join
    mark = state.context.mark()
    b.enter()
    b.branch_if(condition, then, otherwise)
    b.label(then)
    if not state.proved:
        state.context.assume(node.condition)
    yield node.then_case
    state.context.reset(mark)
    b.branch(join)
    if node.else_case is not None:
        b.sibling()
        b.label(otherwise)
        if not state.proved:
            state.context.assume(node.condition, False)
        yield node.else_case
        state.context.reset(mark)
        b.branch(join)
    b.leave()
    b.label(join)


def loop(state: State, node: For) -> Task:
    """A ``for`` of any kind."""
    if node.kind is ForKind.THREAD_BINDING or node.thread_binding:
        raise NotSupportedError(
            f"{state.name}: loop {node.loop_var.name} is bound to {node.thread_binding}, which only exists on GPUs",
            node.span,
        )
    start, extent = state.poly(node.min), state.poly(node.extent)
    count = extent.constant
    plain = node.step is None and count is not None and not _known(state, "leaves", node, leaves_early)
    if node.kind is ForKind.UNROLLED and plain and count is not None and count * state.copies <= UNROLL_LIMIT:
        first = yield memory.decompose(state, start)
        if not first.terms and first.lanes == 1:
            state.copies *= max(1, count)
            for position in range(count):
                state.bind(node.loop_var, first.const + position)
                mark = state.context.mark()
                if not state.proved:
                    state.context.bind(node.loop_var, E.const(first.const + position, node.loop_var.dtype))
                yield node.body
                state.context.reset(mark)
            state.copies //= max(1, count)
            return
    if node.kind is ForKind.VECTORIZED and plain and count is not None and 1 < count <= 1024:
        trusted = state.proved or state.distrust
        if _known(state, "vector", node, lambda body: can_vectorize(node.loop_var, body, trusted=trusted)):
            state.bind(node.loop_var, Lanes(count, start))
            mark = state.context.mark()
            state.enter_loop(node)
            state.width = count
            yield node.body
            state.width = 1
            state.context.reset(mark)
            return
    if node.kind is ForKind.PARALLEL:
        work = parallel.shared_work(state, node)
        if work is not None:
            yield parallel.parallel(state, node, work)
            return
        if RANGE in node.annotations and state.proved:
            first = yield memory.poly_value(state, start)
            end = yield memory.poly_value(state, start + extent)
            yield parallel.as_range(state, node, first, end)
            return
    yield _counted(state, node)


def _known(state: State, question: str, node: For, answer: Callable[[Stmt], bool]) -> bool:
    """What was found out about a loop's body, once for all its copies."""
    key = (question, id(node))
    if key not in state.facts:
        state.facts[key] = answer(node.body)
        state.keep.append(node)
    return state.facts[key]


def _counted(state: State, node: For) -> Task:
    """The body is entered only when there is an iteration; the test is at its end."""
    b = state.builder
    first = yield memory.poly_value(state, state.poly(node.min))
    end = yield memory.poly_value(state, state.poly(node.min) + state.poly(node.extent))
    step = b.const(1, "int64")
    if node.step is not None:
        step = yield memory.poly_value(state, state.poly(node.step))
        positive = b.compare("icmp sgt", step, b.const(0, "int64"))
        message = f"{state.name}: loop {node.loop_var.name} has step {{0}}, which is not positive"
        state.fail_unless(positive, "assert", message, node.span, step)
    yield counted(state, node, first, end, step)


def while_loop(state: State, node: While) -> Task:
    """``while``."""
    b = state.builder
    head, body, done = b.fresh("head"), b.fresh("body"), b.fresh("done")
    b.enter()
    b.branch(head)
    b.label(head)
    condition = yield node.condition
    b.branch_if(condition, body, done)
    b.label(body)
    state.loops.append((head, done))
    yield node.body
    state.loops.pop()
    b.branch(head)
    b.leave()
    b.label(done)


def assertion(state: State, node: AssertStmt) -> Task:
    """``assert``: an error site."""
    condition: Value = yield node.condition
    message = node.message.replace("{", "{{").replace("}", "}}")
    state.fail_unless(condition, "assert", f"{state.name}: {message}", node.span)
    state.context.assume(node.condition)


def attribute(state: State, node: AttrStmt) -> Task:
    """Attributes speak to passes; one tells that bounds are proved."""
    before = state.proved
    if node.attr_key == PROVED:
        state.proved = not state.distrust
    yield node.body
    state.proved = before


def _jump(state: State, target: str) -> None:
    b = state.builder
    b.branch(target)
    b.label(b.fresh("dead"))  # what follows is never reached, but must be a block


def leave(state: State, node: Break) -> None:
    """``break``."""
    if not state.loops:
        raise NotSupportedError(f"{state.name}: break outside a loop", node.span)
    _jump(state, state.loops[-1][1])


def again(state: State, node: Continue) -> None:
    """``continue``."""
    if not state.loops:
        raise NotSupportedError(f"{state.name}: continue outside a loop", node.span)
    _jump(state, state.loops[-1][0])


def finish(state: State, node: Return) -> Task:
    """``return``; a number goes to the context."""
    b = state.builder
    if node.value is not None:
        assert state.result_dtype is not None
        result = yield node.value
        value = in_64_bits(state, cast(state, result, state.result_dtype))
        flag, slot = b.fresh("returned"), b.fresh("slot")
        b.emit(f"%{flag} = getelementptr i8, ptr %ctx, i64 {abi.CONTEXT_RETURNED}")
        b.emit(f"store i32 1, ptr %{flag}, align 4")
        b.emit(f"%{slot} = getelementptr i8, ptr %ctx, i64 {abi.CONTEXT_VALUES}")
        b.emit(f"store {llvm_type(value.dtype)} {value.ref}, ptr %{slot}, align 8")
    b.emit("ret i32 0")
    b.label(b.fresh("dead"))


def in_64_bits(state: State, value: Value) -> Value:
    """A scalar as the context holds it: an int64 or a float64."""
    row = dtypes.row(value.dtype)
    if row.kind == "float":
        return cast(state, value, "float64")
    if row.kind == "handle":
        raise NotSupportedError(f"{state.name}: a pointer cannot be returned")
    return value if row.bits == 64 else cast(state, value, "int64")


def block(state: State, node: SBlockRealize) -> None:
    """Blocks are lowered before."""
    raise NotSupportedError(f"{state.name}: block {node.block.name_hint} was not lowered to loops", node.span)


HANDLERS: dict[type, Callable[[State, Any], Any]] = {
    SeqStmt: sequence,
    Evaluate: evaluate,
    Bind: bind,
    BufferStore: store,
    AllocBuffer: allocate,
    DeclBuffer: declare,
    IfThenElse: conditional,
    For: loop,
    While: while_loop,
    AssertStmt: assertion,
    AttrStmt: attribute,
    Break: leave,
    Continue: again,
    Return: finish,
    SBlockRealize: block,
}


def dispatch(state: State, node: Any) -> Any:
    """The handler's task (or its value at once) for any node."""
    kind = type(node)
    handler = EXPRESSIONS.get(kind) or HANDLERS.get(kind)
    if handler is None:
        raise NotSupportedError(
            f"{state.name}: native code for {kind.__name__} is not supported", getattr(node, "span", None)
        )
    return handler(state, node)
