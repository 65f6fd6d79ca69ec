"""Names of a loop function that change: each is a buffer of one element."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def changing_names(body: list[ast.stmt]) -> set[str]:
    """The names to which a function assigns once and then again in a suite inside (a loop's, a branch's), or that it
    changes by ``+=`` and its like. What is assigned again in the same suite only is another value of that name."""
    places: dict[str, list[tuple[int, ...]]] = {}  # of the assignments: the suites around, outermost first
    found: set[str] = set()
    count = 0
    stack: list[tuple[list[ast.stmt], tuple[int, ...]]] = [(body, ())]
    while stack:
        suite, around = stack.pop()
        count += 1
        place = (*around, count)
        inner: list[tuple[list[ast.stmt], tuple[int, ...]]] = []
        for statement in suite:
            if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                found.add(statement.target.id)
            for name in _assigned(statement):
                places.setdefault(name, []).append(place)
            # a block's own body is no suite that runs again, but its names end with it as those of any suite
            inner += [(part, place) for part in _suites(statement)]
        stack.extend(reversed(inner))
    for name, assigned in places.items():
        known = set(assigned)
        if any(place[:depth] in known for place in assigned for depth in range(1, len(place))):
            found.add(name)
    return found


def _assigned(statement: ast.stmt) -> Iterator[str]:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    yield from (target.id for target in targets if isinstance(target, ast.Name))


def _suites(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    for name in ("body", "orelse"):
        suite = getattr(statement, name, None)
        if isinstance(suite, list) and suite:
            yield suite
