"""A counted loop as LLVM control flow."""

from __future__ import annotations

from collections.abc import Callable

from supple.codegen.kernel_builder import Value
from supple.codegen.kernel_state import State, Task
from supple.ir.loop import For


def counted(
    state: State,
    node: For,
    first: Value,
    end: Value,
    step: Value,
    place: Callable[[Value], Value] = lambda i: i,
    at_end: Callable[[], None] | None = None,
) -> Task:
    """The body for ``first``, ``first + step``... before ``end``, the variable being ``place(i)``; it is entered only
    when there is an iteration, and the test is at its end. ``at_end`` emits what follows every iteration."""
    b = state.builder
    some = b.compare("icmp slt", first, end)
    body, latch, done = b.fresh("body"), b.fresh("latch"), b.fresh("done")
    last = latch if at_end is None else b.fresh("last")
    counter, following = f"%{b.fresh('i')}", f"%{b.fresh('next')}"
    before = b.block
    b.enter()
    b.branch_if(some, body, done)
    b.label(body)
    b.emit(f"{counter} = phi i64 [ {first.ref}, %{before} ], [ {following}, %{last} ]")
    state.bind(node.loop_var, place(Value(counter, "int64", b.depth)))
    mark = state.context.mark()
    state.enter_loop(node)
    state.loops.append((latch, done))
    yield node.body
    state.loops.pop()
    state.context.reset(mark)
    b.branch(latch)
    b.label(latch)
    if at_end is not None:
        at_end()
        b.branch(last)
        b.label(last)
    b.emit(f"{following} = add i64 {counter}, {step.ref}")
    again = b.here(f"icmp slt i64 {following}, {end.ref}", "bool", "again")
    b.branch_if(again, body, done)
    b.leave()
    b.label(done)
