"""Finding places in a loop function and putting something else there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from supple.ir.expr import Var
from supple.ir.loop import For, IterType, PrimFunc, SBlockRealize
from supple.ir.node import Node, Stmt, children
from supple.ir.walk import pre_order, transform
from supple.schedule.errors import ScheduleError


def blocks(func: PrimFunc) -> list[SBlockRealize]:
    """The blocks of a function, the root aside."""
    found = [n for n in pre_order(func.body) if isinstance(n, SBlockRealize)]
    return [b for b in found if b is not func.body]


def find_loop(func: PrimFunc, var: Var) -> For:
    """The loop of a variable; raises `ScheduleError` when it is gone."""
    for node in pre_order(func.body):
        if isinstance(node, For) and node.loop_var is var:
            return node
    raise ScheduleError(f"loop {var.name} is not in the function any more")


def paths(root: Node) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """Every statement with the statements above it, from the outside in."""
    stack: list[tuple[Node, tuple[Node, ...]]] = [(root, ())]
    while stack:
        node, above = stack.pop()
        yield node, above
        inside = (*above, node)
        stack.extend((c, inside) for c in children(node) if isinstance(c, Stmt) or _is_block(c))


def _is_block(node: Node) -> bool:
    return type(node).__name__ == "SBlock"


def path_to(func: PrimFunc, wanted: Node) -> tuple[Node, ...]:
    """The statements above a statement, from the outside in."""
    for node, above in paths(func.body):
        if node is wanted:
            return above
    raise ScheduleError("the statement is not in the function any more")


def enclosing_loops(func: PrimFunc, block: SBlockRealize) -> list[For]:
    """The loops between a block and the block around it, from the outside in."""
    found: list[For] = []
    for node in path_to(func, block):
        if isinstance(node, For):
            found.append(node)
        elif _is_block(node):
            found.clear()
    return found


def put(body: Stmt, old: Node, new: Stmt | Callable[[Stmt], Stmt]) -> Stmt:
    """The statement with one node replaced (or with what a function makes of it)."""

    def rewrite(node: Node) -> Node | None:
        if node is not old:
            return None
        assert isinstance(node, Stmt)
        return new(node) if callable(new) else new

    made = transform(body, rewrite)
    assert isinstance(made, Stmt)
    return made


def chain(outer: For) -> tuple[list[For], Stmt]:
    """The loops from ``outer`` that hold nothing but the next one, and what the last one holds."""
    loops = [outer]
    while isinstance(loops[-1].body, For):
        loops.append(loops[-1].body)
    return loops, loops[-1].body


def single_block(outer: For) -> tuple[list[For], SBlockRealize]:
    """The perfect nest of a loop around one block; raises `ScheduleError` for anything else."""
    loops, inner = chain(outer)
    if not isinstance(inner, SBlockRealize):
        raise ScheduleError(f"loop {outer.loop_var.name} is not a nest of loops around one block")
    return loops, inner


def iteration_kind(realize: SBlockRealize, var: Var) -> set[IterType]:
    """The kinds of the block's variables that a loop drives."""
    return {
        v.iter_type
        for v, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
        if any(n is var for n in pre_order(value))
    }


def unique_name(func_body: Stmt, base: str) -> str:
    """A block name that the function does not have yet."""
    names = {n.block.name_hint for n in pre_order(func_body) if isinstance(n, SBlockRealize)}
    name, number = base, 0
    while name in names:
        number += 1
        name = f"{base}_{number}"
    return name
