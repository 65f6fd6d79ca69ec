"""Macros: Python functions whose statements are read where they are called (``T.inline``, ``T.macro``, ``R.macro``)."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from supple.base.errors import DiagnosticError, Note
from supple.script.evaluate import Environment, Evaluator
from supple.script.signature import is_docstring
from supple.script.source import Source

MAX_DEPTH = 64  # macros inside of macros; a macro that calls itself without end is refused


@dataclass(eq=False)
class Macro:
    """A macro. ``hygienic``: its free names mean what they mean where it is defined, else where it is called."""

    name: str
    source: Source
    node: ast.FunctionDef
    env: Environment
    hygienic: bool = True
    scopes: list[dict[str, Any]] = field(default_factory=list)  # of the function that it is defined in

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise DiagnosticError(
            f"the macro {self.name!r} is called outside of a program",
            hint="call it in a function under @T.prim_func or @R.function",
            rule="macro",
        )

    def arguments(
        self, parser: Evaluator, args: tuple[Any, ...], kwargs: dict[str, Any], node: ast.AST
    ) -> dict[str, Any]:
        """The macro's parameters by name; raises when the arguments do not fit."""
        spec = self.node.args
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        given: dict[str, Any] = dict(zip(names, args))
        if len(args) > len(names):
            if spec.vararg is None:
                raise parser.error(node, f"{self.name} takes {len(names)} arguments, got {len(args)}", rule="macro")
        if spec.vararg is not None:
            given[spec.vararg.arg] = tuple(args[len(names) :])
        keywords = [*names, *(a.arg for a in spec.kwonlyargs)]
        rest: dict[str, Any] = {}
        for name, value in kwargs.items():
            if name in given or (name not in keywords and spec.kwarg is None):
                problem = "was given twice" if name in given else "is no parameter"
                raise parser.error(node, f"{self.name}: {name!r} {problem}", rule="macro")
            (given if name in keywords else rest)[name] = value
        if spec.kwarg is not None:
            given[spec.kwarg.arg] = rest
        defaults = dict(zip(reversed(names), reversed(spec.defaults)))
        defaults |= {a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults) if d is not None}
        for name in keywords:
            if name not in given:
                if name not in defaults:
                    raise parser.error(node, f"{self.name}: the argument {name!r} is missing", rule="macro")
                given[name] = Evaluator(self.source, self.env).evaluate(defaults[name])
        return given


def expand(parser: Any, macro: Macro, args: tuple[Any, ...], kwargs: dict[str, Any], node: ast.AST) -> Any:
    """Read a macro's statements in place of its call; the value of its ``return``, or None."""
    depth = getattr(parser, "macro_depth", 0)
    if depth >= MAX_DEPTH:
        raise parser.error(node, f"macros nest too deep: does {macro.name} call itself?", rule="macro")
    scope = macro.arguments(parser, args, kwargs, node)
    place = parser.span(node)
    saved = parser.source, parser.env, parser.scopes
    parser.source, parser.macro_depth = macro.source, depth + 1
    if macro.hygienic:
        parser.env, parser.scopes = macro.env, [*(macro.scopes or [{}]), scope]
    else:
        parser.env = Environment(*saved[1].mappings, *macro.env.mappings, restricted=saved[1].restricted)
        parser.scopes = [*saved[2], scope]
    try:
        for position, statement in enumerate(macro.node.body):
            if position == 0 and is_docstring(statement):
                continue
            if isinstance(statement, ast.Return):
                return None if statement.value is None else parser.evaluate(statement.value)
            parser.statement(statement)
        return None
    except DiagnosticError as error:
        if len(error.notes) < MAX_DEPTH:
            error.notes.append(Note(f"in this call of {macro.name}", place))
        raise
    finally:
        parser.source, parser.env, parser.scopes = saved
        parser.macro_depth = depth
