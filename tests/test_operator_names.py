"""Operators are spoken of as objects: outside of declarations and importers no text is an operator's full name, and
no operator's name is compared with text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import supple.ops
from supple.ir.op import OPS

ROOT = Path(supple.ops.__file__).parents[1]
ALLOWED = ("ops/", "frontend/", "compat/")
FILES = [f for f in sorted(ROOT.rglob("*.py")) if not str(f.relative_to(ROOT)).startswith(ALLOWED)]
NAMES = {name for name in OPS if name.startswith("relax.")}


def docstrings(tree: ast.AST) -> set[int]:
    """The nodes that are docstrings."""
    found = set()
    for node in ast.walk(tree):
        for statement in getattr(node, "body", []) if isinstance(getattr(node, "body", None), list) else []:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                found.add(id(statement.value))
    return found


def faults(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines that name an operator by text."""
    documented = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            if node.value in NAMES:
                yield node.lineno, f"the name {node.value!r}"
        if isinstance(node, ast.Compare):
            for side in (node.left, *node.comparators):
                named = isinstance(side, ast.Attribute) and side.attr in ("name", "short_name")
                if named and getattr(side.value, "attr", getattr(side.value, "id", "")) == "op":  # type: ignore[attr-defined]
                    texts = [n for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
                    if any("." in t.value and t.value.partition(".")[0] == "relax" for t in texts):
                        yield node.lineno, "a comparison of op.name"


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(ROOT)))
def test_no_operator_is_named_by_text(file: Path) -> None:
    found = [f"{file.relative_to(ROOT)}:{line}: {what}" for line, what in faults(ast.parse(file.read_text()))]
    assert not found, "\n".join(found)


def test_the_rule_sees_both() -> None:
    tree = ast.parse(
        '"""relax.add"""\nx = "relax.add"\ny = call.op.name == "relax.exp"\nz = op.name in ("relax.add",)\n'
    )
    assert {line for line, _ in faults(tree)} == {2, 3, 4}
