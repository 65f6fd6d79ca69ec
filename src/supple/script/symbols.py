"""Symbols of a function's signature: ``"n"`` and ``"n + 1"`` in shapes, ``n = T.int64()`` in bodies."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any, TypeVar

from supple.base import dtypes
from supple.base.errors import DiagnosticError
from supple.base.source import Span
from supple.ir.conventions import conventions
from supple.ir.expr import Var, const, is_scalar, scalar_dtype
from supple.ir.node import Expr
from supple.ir.types import prim_type
from supple.script.evaluate import Environment, Evaluator
from supple.script.forms import Fresh, MetaVar
from supple.script.source import Source, parse_python

_NAME = re.compile(r"[^\W\d]\w*")


def declared_symbols(body: list[ast.stmt]) -> dict[str, str]:
    """The dtypes of symbols that a body declares at its top: ``n = T.int32()``, ``M, N = T.int64(), T.int64()``."""
    found: dict[str, str] = {}
    for statement in body:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        target, value = statement.targets[0], statement.value
        if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
            pairs = list(zip(target.elts, value.elts))
        else:
            pairs = [(target, value)]
        for name, call in pairs:
            if isinstance(name, ast.Name) and isinstance(call, ast.Call) and not call.args and not call.keywords:
                dtype = getattr(call.func, "attr", None)
                if isinstance(dtype, str) and dtype in dtypes.DTYPES and dtypes.is_int(dtype):
                    found.setdefault(name.id, dtype)
    return found


class SymbolEvaluator(Evaluator):
    """An evaluator with the symbols of one function. ``literal_dtype`` is the dtype of a bare integer in a shape."""

    literal_dtype = "int64"

    def __init__(self, source: Source, env: Environment) -> None:
        super().__init__(source, env)
        self.symbols: dict[str, Var] = {}
        self.declared: dict[str, str] = {}
        self.may_define = False
        self.quoted: set[str] = set()  # names that stand as text in the signature
        self.at: ast.AST | None = None

    def note_quoted(self, annotations: Iterable[ast.expr | None]) -> None:
        """Note the names that a signature's annotations mention as text: there they may also stand without quotes."""
        for annotation in annotations:
            for node in ast.walk(annotation) if annotation is not None else ():
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    self.quoted.update(_NAME.findall(node.value))

    def symbol(self, name: str, place: Span | None = None) -> Var:
        """The function's symbol of that name, made at its first use in the signature."""
        found = self.symbols.get(name)
        if found is None:
            if not (self.may_define or self.regions):  # T.match_buffer and R.match_cast introduce symbols
                raise DiagnosticError(
                    f"undefined symbol {name!r}",
                    place,
                    hint=f"a symbol is defined by a parameter's shape, or by {name} = T.int64()",
                    rule="undefined",
                )
            found = Var(name, prim_type(self.declared.get(name, "int64")), span=place)
            self.symbols[name] = found
        return found

    def missing_name(self, node: ast.Name) -> Any:
        if self.may_define and (node.id in self.symbols or node.id in self.quoted):
            return self.symbol(node.id, self.span(node))  # a signature that also names it as text
        if node.id in self.symbols and not self.may_define:
            if conventions().symbols_in_sight:
                return self.symbol(node.id, self.span(node))
            raise self.error(
                node,
                f"undefined variable {node.id!r}",
                hint=f"the signature's symbol is named by {node.id} = T.{scalar_dtype(self.symbols[node.id])}()",
                rule="undefined",
            )
        return super().missing_name(node)

    def _name(self, node: ast.Name) -> Any:
        value = super()._name(node)
        if isinstance(value, TypeVar):  # n = TypeVar("n") before the program: one symbol a function
            return self.symbol(value.__name__, self.span(node))
        return value

    def symbol_text(self, text: str, place: ast.AST | None) -> Expr:
        """``"n"`` or ``"n + 1"`` as an expression over the function's symbols."""
        where = self.span(place) if place is not None else None
        try:
            statements = parse_python(text.strip(), self.source.file).body
        except DiagnosticError:
            statements = []
        if len(statements) != 1 or not isinstance(statements[0], ast.Expr):
            raise DiagnosticError(
                f"{text!r} is not an expression over symbols", where, hint='write "n" or "n + 1"', rule="syntax"
            )
        tree = statements[0].value
        visible: dict[str, Any] = {}
        for node in ast.walk(tree):
            if place is not None and isinstance(node, ast.expr):
                ast.copy_location(node, place)
            if isinstance(node, ast.Name) and node.id not in visible and not self._is_module(node.id):
                visible[node.id] = self.symbol(node.id, where)
        self.scopes.append(visible)
        try:
            return self.dimension(self.evaluate(tree))
        finally:
            self.scopes.pop()

    def _is_module(self, name: str) -> bool:
        return name in ("T", "R") and self.is_defined(name)

    def dimension(self, value: Any) -> Expr:
        """One dimension of a shape: an int, an integer scalar, or text over symbols."""
        if isinstance(value, str):
            return self.symbol_text(value, self.at)
        if isinstance(value, MetaVar):
            value = value.value
        if isinstance(value, TypeVar):
            return self.symbol(value.__name__, None if self.at is None else self.span(self.at))
        if isinstance(value, Fresh):
            raise TypeError("give the new symbol a name first: n = T.int64()")
        if isinstance(value, Expr):
            if not is_scalar(value):
                raise TypeError(f"a dimension must be an integer, got {type(value).__name__}")
            if not dtypes.is_int(scalar_dtype(value)):
                raise TypeError(f"a dimension must be an integer, got {scalar_dtype(value)}")
            return value
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"a dimension must be an integer, a symbol or text such as 'n', got {value!r}")
        return const(value.__index__(), self.literal_dtype)
