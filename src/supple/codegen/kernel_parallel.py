"""Parallel loops: the body becomes a function of a range of iterations, which the pool runs on several threads.

Of ``for i in T.parallel(n): ...`` in a kernel ``f``::

    i32 @f.parallel0.body(ptr ctx, i64 begin, i64 end, ptr workspace, ptr env, <what the body uses from outside>...)
    i32 @f.parallel0(ptr ctx, ptr env, i64 begin, i64 end, ptr workspace)     ; takes that from env, calls the body

The kernel estimates the time of the loop from its extents. Below `WORTH_SHARING` it calls the body on all iterations;
above it fills ``env`` and calls the runtime's ``parallel`` (an address in the context's table), which cuts the range
into a few chunks a thread. What the body uses of the function around it comes in as arguments, found as the body is
emitted, so that no value of one function is named in the other.

Buffers that the body allocates belong to the thread: small ones are on its stack, others in a workspace that the
runtime hands to each chunk (the kernel's own to the caller).
"""

from __future__ import annotations

from supple.analysis.vectorize import leaves_early
from supple.base import dtypes
from supple.codegen import kernel_memory as memory
from supple.codegen.kernel_builder import Builder, Value, llvm_type, memory_type, quoted
from supple.codegen.kernel_cost import UNITS_PER_NANOSECOND, estimate, range_of
from supple.codegen.kernel_loop import counted
from supple.codegen.kernel_state import Region, State, Storage, Task
from supple.ir.expr import Var
from supple.ir.loop import AllocBuffer, AttrStmt, For, ForKind, IfThenElse, PrimFunc, SeqStmt, While, seq
from supple.ir.node import Node, Stmt, children, replace
from supple.ir.walk import transform
from supple.runtime import abi
from supple.schedule.loops import PROVED, RANGE
from supple.sym import poly as P

WORTH_SHARING = 5_000
"""Nanoseconds of work (as estimated) from which on a loop is shared among threads."""

CHUNK = 2_500
"""Nanoseconds of work that a chunk should at least have."""

CHUNKS_EACH = 4
"""Chunks for each thread, so that one which comes late or is slowed down does less. Ranges are better left whole."""

_NOT_FAILED = (1 << 63) - 1


def shared_work(state: State, node: For) -> P.Poly | None:
    """The estimated work, in units, of a parallel loop that becomes a function of its own. None for one that does not:
    it is inside another one, something leaves it early, or its work is known to be small."""
    if state.region is not None or state.width > 1 or node.step is not None or leaves_early(node.body):
        return None
    work = state.poly(estimate(node, state.target))
    known = work.constant
    return work if known is None or known > WORTH_SHARING * UNITS_PER_NANOSECOND else None


def parallel(state: State, node: For, work: P.Poly) -> Task:
    """A parallel loop whose iterations threads share."""
    start = yield memory.poly_value(state, state.poly(node.min))
    extent = yield memory.poly_value(state, state.poly(node.extent))
    units = yield memory.poly_value(state, work)
    sites = len(state.sites)
    region = Region(f"{state.symbol}.parallel{len(state.outlined)}", state)
    state.outlined.append("")  # the place of its text
    place = len(state.outlined) - 1
    first = region.value(start)
    state.enter_region(region)
    yield _range(state, node, first, sites)
    scratch = state.leave_region()
    can_fail = len(state.sites) > sites
    state.outlined[place] = _text(region, can_fail)
    each = 1 if RANGE in node.annotations else CHUNKS_EACH
    yield _call(state, region, extent, units, scratch, can_fail, each)


def _range(state: State, node: For, start: Value, sites: int) -> Task:
    """The loop over ``begin`` to ``end`` in the body function."""
    b = state.builder
    begin, end = Value("%begin", "int64"), Value("%end", "int64")
    if RANGE in node.annotations:
        yield as_range(state, node, begin, end)
        b.emit("ret i32 0")
        return

    def stop_after_failure() -> None:  # when a chunk before this one has failed
        if len(state.sites) > sites:
            on, stop = b.fresh("on"), b.fresh("stop")
            failed = b.here("load atomic i64, ptr %env monotonic, align 8", "int64", "failed")
            b.branch_if(b.here(f"icmp slt i64 {failed.ref}, %begin", "bool", "early"), stop, on)
            b.label(stop)
            b.emit("ret i32 1")
            b.label(on)

    def place(i: Value) -> Value:
        return i if start.ref == "0" else b.op("add", start, i)

    yield counted(state, node, begin, end, b.const(1, "int64"), place, stop_after_failure)
    b.emit("ret i32 0")


def as_range(state: State, node: For, begin: Value, end: Value) -> Task:
    """A loop over ranges: its body once, from one iteration to before another, unless there is none."""
    b = state.builder
    stop, rest = range_of(node)
    body, done = b.fresh("body"), b.fresh("done")
    some = b.compare("icmp slt", begin, end)
    b.enter()
    b.branch_if(some, body, done)
    b.label(body)
    state.bind(node.loop_var, begin)
    state.bind(stop, end)
    yield rest
    b.branch(done)
    b.leave()
    b.label(done)


def _text(region: Region, can_fail: bool) -> str:
    """The two functions of a parallel loop."""
    body, outer = quoted(f"{region.name}.body"), quoted(region.name)
    kinds = [llvm_type(value.dtype) for value in region.arguments]
    names = [
        f"{kind} {'noalias ' if value.ref in region.noalias else ''}%p{i}"
        for i, (kind, value) in enumerate(zip(kinds, region.arguments, strict=True))
    ]
    head = ["ptr noalias %ctx", "i64 %begin", "i64 %end", "ptr noalias %workspace", "ptr %env"]
    lines = [f"define internal i32 @{body}({', '.join([*head, *names])}) #0 {{", region.builder.body(), "}"]
    lines.append(f"define internal i32 @{outer}(ptr %ctx, ptr %env, i64 %begin, i64 %end, ptr %workspace) #0 {{")
    passed = ["ptr %ctx", "i64 %begin", "i64 %end", "ptr %workspace", "ptr %env"]
    b = Builder()
    for i, (value, offset) in enumerate(zip(region.arguments, region.offsets(), strict=True)):
        b.emit(f"%at{i} = getelementptr i8, ptr %env, i64 {offset}")
        b.emit(f"%in{i} = load {memory_type(value.dtype)}, ptr %at{i}, align 8")
        if dtypes.is_bool(value.dtype):
            b.emit(f"%bool{i} = trunc {memory_type(value.dtype)} %in{i} to {kinds[i]}")
        passed.append(f"{kinds[i]} %{'bool' if dtypes.is_bool(value.dtype) else 'in'}{i}")
    b.emit(f"%status = call i32 @{body}({', '.join(passed)})")
    b.emit("ret i32 %status")
    lines.extend((b.body(), "}"))
    return "\n".join(lines)


def _call(
    state: State, region: Region, extent: Value, units: Value, scratch: P.Poly, can_fail: bool, each: int
) -> Task:
    """Run the loop: on this thread when there is little to do, else on several."""
    b = state.builder
    env = f"%{b.fresh('env')}"
    size = region.offsets()[-1] + region.slot(region.arguments[-1]) if region.arguments else 8
    b.allocas.append(f"  {env} = alloca [{size} x i8], align 8")
    bytes_needed = yield memory.poly_value(state, scratch)
    place = yield memory.decompose(state, state.workspace_bytes)
    workspace = memory.address(state, Storage(Value("%workspace", "handle"), "uint8", (), P.ZERO), place)
    state.workspace_bytes = state.workspace_bytes + scratch
    units_per_chunk = max(1, CHUNK * UNITS_PER_NANOSECOND)
    worth = b.compare("icmp sgt", units, b.const(WORTH_SHARING * UNITS_PER_NANOSECOND, "int64"))
    share, alone, join = b.fresh("share"), b.fresh("alone"), b.fresh("join")
    if can_fail:
        b.emit(f"store i64 {_NOT_FAILED}, ptr {env}, align 8")
    b.enter()
    b.branch_if(worth, share, alone)
    b.label(share)
    if not can_fail:
        b.emit(f"store i64 {_NOT_FAILED}, ptr {env}, align 8")
    for value, offset in zip(region.arguments, region.offsets(), strict=True):
        kept = value
        if dtypes.is_bool(value.dtype):
            kept = b.here(f"zext {llvm_type(value.dtype)} {value.ref} to {memory_type(value.dtype)}", value.dtype)
        at = b.here(f"getelementptr i8, ptr {env}, i64 {offset}", "handle")
        b.emit(f"store {memory_type(value.dtype)} {kept.ref}, ptr {at.ref}, align 8")
    table_at = b.here(f"getelementptr i8, ptr %ctx, i64 {abi.CONTEXT_API}", "handle")
    table = b.here(f"load ptr, ptr {table_at.ref}, align 8", "handle")
    entry = b.here(f"getelementptr i8, ptr {table.ref}, i64 {8 * abi.API.index('parallel')}", "handle")
    run = b.here(f"load ptr, ptr {entry.ref}, align 8", "handle")
    most = b.here(f"sdiv i64 {units.ref}, {units_per_chunk}", "int64")
    shared = b.here(
        f"call i32 {run.ref}(ptr %ctx, ptr @{quoted(region.name)}, ptr {env}, i64 {extent.ref}, "
        f"i64 {bytes_needed.ref}, ptr {workspace.ref}, i64 {most.ref}, i64 {each})",
        "int32", "status",
    )  # fmt: skip
    b.branch(join)
    b.sibling()
    b.label(alone)
    arguments = "".join(f", {llvm_type(v.dtype)} {v.ref}" for v in region.arguments)
    single = b.here(
        f"call i32 @{quoted(f'{region.name}.body')}(ptr %ctx, i64 0, i64 {extent.ref}, ptr {workspace.ref}, "
        f"ptr {env}{arguments})",
        "int32", "status",
    )  # fmt: skip
    b.branch(join)
    b.leave()
    b.label(join)
    status = b.here(f"phi i32 [ {shared.ref}, %{share} ], [ {single.ref}, %{alone} ]", "int32", "status")
    good = b.here(f"icmp eq i32 {status.ref}, 0", "bool", "good")
    fine, failed = b.fresh("ok"), b.fresh("fail")
    b.branch_if(good, fine, failed)
    b.label(failed)
    b.emit(f"ret i32 {status.ref}")
    b.label(fine)


# ------------------------------------------------------------------------------------------------ buffers of iterations


def with_private_buffers(func: PrimFunc) -> PrimFunc:
    """A buffer that is allocated before a parallel loop and used nowhere else is each iteration's own: it is allocated
    inside. Where that cannot be (a loop around the parallel loop keeps the buffer), the iterations run one by one.

    Loops that rules made are as they should be.
    """
    moved: dict[int, list[AllocBuffer]] = {}  # by the loop's variable
    gone: set[int] = set()
    serial: set[int] = set()
    for loop, allocations, kept in _parallel_loops(func.body):
        outside = _mentioned(func.body, loop)
        for allocation in allocations:
            own = id(allocation.buffer)
            if own in outside or own in gone:
                continue
            if id(allocation) in kept:
                serial.add(id(loop.loop_var))
            else:
                gone.add(own)
                moved.setdefault(id(loop.loop_var), []).append(allocation)
    if not gone and not serial:
        return func

    def rewrite(node: Node) -> Node | None:
        if isinstance(node, AllocBuffer) and id(node.buffer) in gone:
            return SeqStmt(())
        if isinstance(node, For) and id(node.loop_var) in serial:
            return replace(node, kind=ForKind.SERIAL, body=seq([*moved.get(id(node.loop_var), ()), node.body]))
        if isinstance(node, For) and id(node.loop_var) in moved:
            return replace(node, body=seq([*moved[id(node.loop_var)], node.body]))
        return None

    body = transform(func.body, rewrite, into_types=False)
    assert isinstance(body, Stmt)
    return PrimFunc(func.params, body, func.ret_ty, func.attrs, span=func.span)


def _parallel_loops(body: Stmt) -> list[tuple[For, tuple[AllocBuffer, ...], set[int]]]:
    """The outermost parallel loops of a program (not those of rules), each with the allocations in whose scope it is,
    and which of these are outside a loop around it."""
    found: list[tuple[For, tuple[AllocBuffer, ...], set[int]]] = []
    stack: list[tuple[Stmt, tuple[AllocBuffer, ...], int]] = [
        (body, (), 0)
    ]  # allocations before the last loop: how many
    while stack:
        node, known, kept = stack.pop()
        if isinstance(node, SeqStmt):
            for statement in node.seq:
                if isinstance(statement, AllocBuffer):
                    known = (*known, statement)
                else:
                    stack.append((statement, known, kept))
        elif isinstance(node, For) and node.kind is ForKind.PARALLEL:
            found.append((node, known, {id(a) for a in known[:kept]}))
        elif isinstance(node, (For, While)):
            stack.append((node.body, known, len(known)))
        elif isinstance(node, IfThenElse):
            stack.extend((case, known, kept) for case in (node.then_case, node.else_case) if case is not None)
        elif isinstance(node, AttrStmt) and node.attr_key != PROVED:
            stack.append((node.body, known, kept))
    return found


def _mentioned(body: Stmt, without: For) -> set[int]:
    """The variables that occur outside a loop, allocations of buffers aside."""
    seen: set[int] = {id(without)}
    found: set[int] = set()
    stack: list[Node] = [body]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Var):
            found.add(id(node))
        elif not isinstance(node, AllocBuffer):
            stack.extend(children(node))
    return found
