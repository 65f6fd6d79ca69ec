"""Operators are spoken of as objects: outside of declarations and importers no text is an operator's full name, or is
put together to one, and nothing is decided by an operator's name."""

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
SCALAR_CALLS = ("ir/print_expr.py", "ir/intrinsics.py", "codegen/kernel_expr.py", "codegen/kernel_stmt.py")
"""Where intrinsics of loop functions (``tirx.``) are declared, printed and written as code: by name."""
STRING_TESTS = ("startswith", "endswith", "__eq__", "__contains__")


def docstrings(tree: ast.AST) -> set[int]:
    """The nodes that are docstrings."""
    found = set()
    for node in ast.walk(tree):
        for statement in getattr(node, "body", []) if isinstance(getattr(node, "body", None), list) else []:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                found.add(id(statement.value))
    return found


def texts_of(node: ast.AST) -> Iterator[str]:
    """The text of a constant, of texts that are added or joined; a prefix where the rest is not known."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)):
        yield node.value if isinstance(node.value, str) else node.value.decode("latin1")
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        for left in texts_of(node.left):
            for right in list(texts_of(node.right)) or ["{}"]:
                yield left + right
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        yield from texts_of(node.left)
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(v.value) if isinstance(v, ast.Constant) else "{}" for v in node.values)


def makes_a_name(node: ast.AST) -> str | None:
    """The full name, or the pattern of full names, that an expression makes."""
    joined = not isinstance(node, ast.Constant)
    for text in texts_of(node):
        if text in NAMES or (joined and text.startswith(("relax.{", "relax.%"))):
            return text
    return None


def is_operators_name(node: ast.AST) -> bool:
    """``op.name``, ``call.op.name``, ``anything.short_name``."""
    if not isinstance(node, ast.Attribute) or node.attr not in ("name", "short_name"):
        return False
    owner = getattr(node.value, "attr", getattr(node.value, "id", ""))
    return node.attr == "short_name" or owner.lower().removeprefix("_") in ("op", "operator", "callee")


def is_named_by(node: ast.AST, names: set[str]) -> bool:
    """Whether a part of an expression is an operator's name, or a variable that holds one."""
    return any(is_operators_name(n) or (isinstance(n, ast.Name) and n.id in names) for n in ast.walk(node))


def held_in(scope: ast.AST) -> set[str]:
    """The variables of a function that hold an operator's name, or a part of it."""
    found: set[str] = set()
    for node in ast.walk(scope):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            values = [node.value]
            while values:
                value = values.pop()
                if is_operators_name(value):
                    found |= {t.id for t in targets if isinstance(t, ast.Name)}
                elif isinstance(value, (ast.Call, ast.Subscript, ast.Attribute)):
                    values.append(value.func if isinstance(value, ast.Call) else value.value)
                elif isinstance(value, ast.IfExp):
                    values += [value.body, value.orelse]
                elif isinstance(value, ast.BoolOp):
                    values += value.values
    return found


def decisions(scope: ast.AST, names: set[str]) -> Iterator[int]:
    """Lines of a function where an operator's name is compared, matched, tested or looked up."""
    for node in ast.walk(scope):
        decided: list[ast.AST] = []
        if isinstance(node, ast.Compare):
            decided = [node.left, *node.comparators]
        elif isinstance(node, ast.Match):
            decided = [node.subject]
        elif isinstance(node, ast.Subscript):
            decided = [node.slice]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner, method = node.func.value, node.func.attr
            decided = [owner] if method in STRING_TESTS else list(node.args[:1]) if method == "get" else []
        for part in decided:
            direct = is_operators_name(part) or (isinstance(part, ast.Name) and part.id in names)
            if direct or (isinstance(part, (ast.Call, ast.Subscript)) and is_named_by(part, names)):
                yield node.lineno  # type: ignore[attr-defined]


def faults(tree: ast.AST, by_name: bool = True) -> Iterator[tuple[int, str]]:
    """Lines that name an operator by text, or with ``by_name`` decide by an operator's name."""
    documented = docstrings(tree)
    inside: set[int] = set()
    for node in ast.walk(tree):
        if id(node) in documented or id(node) in inside:
            continue
        name = makes_a_name(node)
        if name is not None:
            inside |= {id(n) for n in ast.walk(node)}
            yield node.lineno, f"the name {name!r}"  # type: ignore[attr-defined]
    if by_name:
        scopes = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.Lambda))]
        lines = {line for scope in scopes for line in decisions(scope, held_in(scope))}
        lines |= set(decisions(tree, set()))
        yield from ((line, "a decision by op.name") for line in sorted(lines))


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(ROOT)))
def test_no_operator_is_named_by_text(file: Path) -> None:
    where = str(file.relative_to(ROOT))
    found = [f"{where}:{line}: {what}" for line, what in faults(ast.parse(file.read_text()), where not in SCALAR_CALLS)]
    assert not found, "\n".join(found)


FOOLING = [
    'x = "relax.add"', 'x = "relax." "add"', 'x = "relax." + "add"', 'x = b"relax.add"', 'x = f"relax.{name}"',
    'x = f"relax.{name}.{other}"', 'x = "relax." + name', 'x = "relax.%s" % name', 'x = f"relax.add"',
    'y = call.op.name == "relax.exp"', 'y = op.name in ("relax.add",)', 'y = call.op.short_name == "exp"',
    'y = op.name.endswith("add")', 'y = op.name.startswith("relax.nn")', "y = op.name in TABLE", "y = TABLE[op.name]",
    "y = TABLE.get(op.name)", 'y = op.name.partition(".")[2] == "add"', "y = TABLE[op.short_name.rpartition('.')[2]]",
    "match op.short_name:\n    case 'add':\n        pass",
    "def f(call):\n    name = call.op.name\n    return name == 'add'",
    "def f(call):\n    name = call.op.name.partition('.')[2]\n    return TABLE[name]",
    "y = lambda call: call.op.name != other",
    "def f(call):\n    name = call.op.name if call else ''\n    return name in TABLE",
]  # fmt: skip


@pytest.mark.parametrize("text", FOOLING)
def test_the_rule_is_not_fooled(text: str) -> None:
    assert list(faults(ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    ['"""relax.add"""', 'x = "relax.Something"', "x = op.short_name", 'x = f"{op.name}: refused"', "y = op is ADD"],
)
def test_the_rule_lets_pass(text: str) -> None:
    assert not list(faults(ast.parse(text)))
