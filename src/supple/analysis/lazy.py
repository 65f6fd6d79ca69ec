"""What is evaluated of expressions whose operands are not all needed."""

from __future__ import annotations

from supple.ir import expr as E
from supple.ir.expr import BufferLoad, Call, Var
from supple.ir.node import Expr, children
from supple.ir.op import Op


def is_lazy(e: Expr) -> bool:
    """Whether only the first operand is always evaluated (``if_then_else``, ``and``, ``or``)."""
    if isinstance(e, Call):
        return isinstance(e.op, Op) and bool(e.op.facts.get("lazy"))
    return isinstance(e, (E.And, E.Or))


def always_evaluated(e: Expr) -> dict[int, Expr]:
    """The parts of an expression whose values are needed whatever its conditions say, by identity; not what reads
    variables that the expression itself binds, and no numbers or variables."""
    found: dict[int, Expr] = {}
    stack = [e]
    while stack:
        current = stack.pop()
        if id(current) in found or isinstance(current, (Var, Op, E.IntImm, E.FloatImm, E.StringImm)):
            continue
        found[id(current)] = current
        if isinstance(current, E.Let):
            stack.append(current.value)
        elif is_lazy(current):
            stack.append(current.args[0] if isinstance(current, Call) else current.a)  # type: ignore[attr-defined]
        elif isinstance(current, BufferLoad):
            stack.extend(current.indices)
        else:
            stack.extend(child for child in children(current) if isinstance(child, Expr))
    return found


def needed_either_way(a: Expr, b: Expr) -> list[Expr]:
    """The largest parts that two alternatives share and both evaluate, whatever their conditions say."""
    first = always_evaluated(a)
    shared: list[Expr] = []
    seen: set[int] = set()
    stack = [b]
    wanted = always_evaluated(b)
    while stack:
        current = stack.pop()
        if id(current) in seen or id(current) not in wanted:
            continue
        seen.add(id(current))
        if id(current) in first:
            shared.append(current)
        else:
            stack.extend(child for child in children(current) if isinstance(child, Expr))
    return shared
