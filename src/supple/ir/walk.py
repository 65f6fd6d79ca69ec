"""Generic walkers over any node. All use explicit stacks: a deep program never overflows Python's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from supple.ir.expr import BinaryOp, Var
from supple.ir.expr_operators import folded
from supple.ir.module import IRModule
from supple.ir.node import Node, Stmt, children, replace, walked
from supple.ir.types import PrimType


def post_order(root: Node) -> Iterator[Node]:
    """Every node below and including ``root`` once, children first (shared nodes are visited once)."""
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        current, expanded = stack.pop()
        if expanded:
            yield current
        elif id(current) not in seen:
            seen.add(id(current))
            stack.append((current, True))
            below = children(current)
            below.reverse()
            stack.extend((child, False) for child in below)


def pre_order(root: Node) -> Iterator[Node]:
    """Every node below and including ``root`` once, parents first."""
    return _parents_first(root, children)


def statements(root: Node) -> Iterator[Stmt]:
    """Every statement below and including ``root`` once, parents first. Expressions hold none, so none is entered."""
    return (node for node in _parents_first(root, _statements_below) if isinstance(node, Stmt))


def _parents_first(root: Node, below: Callable[[Node], list[Node]]) -> Iterator[Node]:
    seen: set[int] = set()
    stack = [root]
    while stack:
        current = stack.pop()
        if id(current) not in seen:
            seen.add(id(current))
            yield current
            stack.extend(reversed(below(current)))


def _statements_below(parent: Node) -> list[Node]:
    return [child for child in children(parent) if isinstance(child, Stmt)]


def containing(root: Node, holds: Callable[[Node], bool]) -> set[int]:
    """The identities of the nodes that ``holds`` is true of, and of those that have one inside."""
    found: set[int] = set()
    for current in post_order(root):
        if holds(current) or any(id(child) in found for child in children(current)):
            found.add(id(current))
    return found


def transform(
    root: Node, rewrite: Callable[[Node], Node | None], *, into_types: bool = True, into_expressions: bool = True
) -> Node:
    """Rebuild bottom-up, first children first. ``rewrite`` sees each node after its children were rebuilt and returns a
    replacement or None.

    Nodes whose children did not change are kept (same object), and shared nodes are rewritten once, so the result
    shares as the input did. With ``into_types`` variables are rebuilt when their types change: definition and uses
    alike, since they are one object. Without ``into_expressions`` only statements are rewritten.
    """
    done: dict[int, Node] = {}
    stack: list[tuple[Node, list[Node] | None]] = [(root, None)]  # with what is below, once that was pushed
    keep: list[Node] = []  # ids stay valid while the nodes live
    while stack:
        current, below = stack.pop()
        if id(current) in done:
            continue
        if below is None:
            below = children(current, into_types) if into_expressions else _statements_below(current)
            waiting: list[tuple[Node, list[Node] | None]] = [(c, None) for c in below if id(c) not in done]
            if waiting:
                stack.append((current, below))
                stack.extend(reversed(waiting))
                continue
        if isinstance(current, IRModule) or any(done[id(c)] is not c for c in below):
            rebuilt = with_children(current, done, into_types)
        else:
            rebuilt = current
        replaced = rewrite(rebuilt)
        done[id(current)] = rebuilt if replaced is None else replaced
        keep.append(current)
    return done[id(root)]


def with_children(parent: Node, done: Mapping[int, Node], into_types: bool) -> Node:
    """``parent`` with the children that ``done`` has others for, by identity."""
    if isinstance(parent, IRModule):
        functions = {var: cast(Any, done[id(func)]) for var, func in parent.functions.items()}
        made = IRModule(cast(Any, functions), parent.attrs, parent.global_infos)
        made.pyfuncs.update(parent.pyfuncs)
        return made
    changes: dict[str, Any] = {}
    for name in walked(type(parent), into_types):
        old = getattr(parent, name)
        new = _map_value(old, done)
        if new is not old:
            changes[name] = new
    return replace(parent, **changes)


def _map_value(value: Any, done: Mapping[int, Node]) -> Any:
    if isinstance(value, Node):
        return done.get(id(value), value)
    if isinstance(value, (tuple, list)):
        items = [_map_value(item, done) for item in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else type(value)(items)
    if isinstance(value, dict):
        mapped = {key: _map_value(item, done) for key, item in value.items()}
        return value if all(mapped[key] is value[key] for key in value) else mapped
    return value


def substitute(root: Node, mapping: Mapping[Var, Node]) -> Any:
    """Replace variables simultaneously (the replacements are not searched again).

    A variable whose type mentions a replaced one is rebuilt, definition and uses alike.
    """
    if not mapping:
        return root
    table = {id(var): new for var, new in mapping.items()}

    def rewrite(current: Node) -> Node | None:
        return table.get(id(current)) if isinstance(current, Var) else None

    return transform(root, rewrite)


def evaluate_with(root: Node, mapping: Mapping[Var, Node]) -> Any:
    """`substitute`, and numbers for the arithmetic on what was replaced: ``n * 4`` with 3 for ``n`` is 12."""
    if not mapping:
        return root
    table = {id(var): new for var, new in mapping.items()}
    new: dict[int, Node] = {id(value): value for value in mapping.values()}

    def rewrite(current: Node) -> Node | None:
        if isinstance(current, Var):
            return table.get(id(current))
        if not isinstance(current, BinaryOp) or not (id(current.a) in new or id(current.b) in new):
            return None
        number = folded(current)
        made = current if number is None else number
        new[id(made)] = made
        return made

    return transform(root, rewrite)


def free_symbols(root: Node) -> list[Var]:
    """The scalar variables that occur in an expression or type, in order of first appearance."""
    return [n for n in pre_order(root) if isinstance(n, Var) and isinstance(n.ty, PrimType)]
