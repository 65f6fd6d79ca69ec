"""What both kinds of functions share: parameters, docstrings, annotations written as text."""

from __future__ import annotations

import ast

from supple.base.errors import NotSupportedError
from supple.script.evaluate import Evaluator


def is_docstring(statement: ast.stmt) -> bool:
    """Whether a statement is a string that stands alone."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def plain_parameters(parser: Evaluator, node: ast.FunctionDef) -> list[ast.arg]:
    """The parameters of a ``def``; defaults, ``*args``, ``**kwargs`` and keyword-only ones are refused."""
    args = node.args
    for extra, what in (
        (args.vararg, "*args"),
        (args.kwarg, "**kwargs"),
        (args.kwonlyargs[0] if args.kwonlyargs else None, "keyword-only parameters"),
        (next((d for d in args.defaults), None), "default values"),
    ):
        if extra is not None:
            raise NotSupportedError(f"{what} are not supported in a program's function", parser.span(extra))
    seen: set[str] = set()
    parameters = [*args.posonlyargs, *args.args]
    for arg in parameters:
        if arg.arg in seen:
            raise parser.error(arg, f"duplicate parameter {arg.arg!r}")
        seen.add(arg.arg)
    return parameters


def unquote(parser: Evaluator, annotation: ast.expr) -> ast.expr:
    """The expression of an annotation that is written as a string."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            tree = ast.parse(annotation.value.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise parser.error(annotation, f"{annotation.value!r} is not a type", rule="syntax") from None
        for inner in ast.walk(tree):
            if isinstance(inner, ast.expr):
                ast.copy_location(inner, annotation)
        return tree
    return annotation
