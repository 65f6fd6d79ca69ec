"""``tvm.script.parser.core``: what programs take from inside of the parser of scripts."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from supple.base.errors import DiagnosticError, NotSupportedError
from supple.base.source import Span
from supple.compat import parser_doc as doc
from supple.script.text import from_source

ParserError = DiagnosticError


class Source:
    """A program's text, of a string, a syntax tree, a function or a class.

    ``source`` is the text without the indentation it stands in, ``full_source`` all of its file; ``start_line`` and
    ``start_column`` say where it begins there (lines from 1, columns from 0).
    """

    def __init__(self, program: Any) -> None:
        self.start_line, self.start_column = 1, 0
        if isinstance(program, ast.AST):
            program = ast.unparse(program)
        if isinstance(program, str):
            self.source_name = "<str>"
            self.source = self.full_source = program
            return
        self.source_name = inspect.getsourcefile(program) or "<unknown>"
        lines, self.start_line = inspect.getsourcelines(program)
        self.start_column = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
        self.source = textwrap.dedent("".join(lines))
        self.full_source = "".join(linecache.getlines(self.source_name)) or self.source

    def as_ast(self) -> Any:
        """The syntax tree of ``source``."""
        return doc.parse(self.source, self.source_name)

    def to_span(self, node: Any) -> Span:
        """Where a node of the tree stands in the file."""
        row, column = self.start_line - 1, self.start_column + 1
        return Span(
            self.source_name,
            node.lineno + row,
            node.col_offset + column,
            node.end_lineno + row,
            node.end_col_offset + column,
        )


class Diagnostics:
    """Raises errors that point at a node of a source."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def error(self, node: Any, message: str) -> None:
        """Raise `DiagnosticError` at the node."""
        raise DiagnosticError(message, span=self.source.to_span(node))


class ExprEvaluator:
    """Python values of expressions: ``ExprEvaluator.eval(parser, {"x": 1}, node)``."""

    @staticmethod
    def eval(parser: Any, value_table: Mapping[str, Any], node: Any) -> Any:
        """The value of an expression; names are those of the table, then Python's builtins."""
        return eval_expr(parser, node, value_table)


def eval_expr(parser: Any, node: Any, dict_globals: Mapping[str, Any] | None) -> Any:
    """The value of an expression; raises what evaluating it raises. ``parser`` is not used."""
    body = node.body if isinstance(node, ast.Expression) else node
    code = compile(ast.fix_missing_locations(ast.Expression(body)), "<script>", "eval")
    return eval(code, dict(dict_globals or {}))


def eval_assign(parser: Any, target: Any, source: Any) -> dict[str, Any]:
    """The names that assigning a value to a target gives values to; raises what the assignment raises."""
    names: dict[str, Any] = {}
    assign = ast.Assign([target], ast.Name("_source", ast.Load()))
    code = compile(ast.fix_missing_locations(ast.Module([assign], [])), "<script>", "exec")
    exec(code, {"_source": source}, names)
    return names


def get_func_nonlocals(func: Callable[..., Any]) -> dict[str, Any]:
    """The variables of enclosing functions that a function uses."""
    return dict(inspect.getclosurevars(func).nonlocals)


def inspect_function_capture(func: Callable[..., Any]) -> dict[str, Any]:
    """The names that a function sees: those of its module and of enclosing functions."""
    return {**getattr(func, "__globals__", {}), **get_func_nonlocals(func)}


def inspect_class_capture(cls: type) -> dict[str, Any]:
    """The names that the methods of a class see."""
    found: dict[str, Any] = {}
    for member in vars(cls).values():
        if inspect.isfunction(member):
            found.update(inspect_function_capture(member))
    return found


def is_defined_in_class(frames: list[FrameType], obj: Any) -> bool:
    """Whether a function is defined in the body of a class; ``frames`` are not needed."""
    owner: str = obj.__qualname__.rpartition(".")[0]
    return bool(owner) and not owner.endswith("<locals>")


def parse(
    program: Any, extra_vars: Mapping[str, Any] | None = None, check_well_formed: bool = True, s_tir: bool = False
) -> Any:
    """The module or function that a script says; ``program`` is its text or its syntax tree."""
    if not isinstance(program, (str, ast.AST)):
        raise NotSupportedError("parse: give the program's text", hint="@I.ir_module, @R.function, @T.prim_func")
    text = program if isinstance(program, str) else ast.unparse(program)
    return from_source(text, extra_vars, check_well_formed=check_well_formed)


__all__ = [
    "Diagnostics",
    "ExprEvaluator",
    "ParserError",
    "Source",
    "doc",
    "eval_assign",
    "eval_expr",
    "get_func_nonlocals",
    "inspect_class_capture",
    "inspect_function_capture",
    "is_defined_in_class",
    "parse",
]
