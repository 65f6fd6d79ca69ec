"""Programs given as text."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import ModuleType
from typing import Any, TypeVar

from supple.base.errors import DiagnosticError, NotSupportedError
from supple.base.source import Span
from supple.ir.graph import Function
from supple.ir.loop import PrimFunc
from supple.ir.module import IRModule
from supple.ir.print_metadata import read_relax_metadata
from supple.script import ir, relax, tir, tirx
from supple.script.entry import FunctionDecorator, MacroForm, decorator_of, read_module
from supple.script.evaluate import SAFE_BUILTINS, Environment, Evaluator
from supple.script.macros import Macro
from supple.script.signature import is_docstring
from supple.script.source import text_source

_MODULES: dict[str, ModuleType] = {"ir": ir, "relax": relax, "tirx": tirx, "tir": tir}
_PACKAGES = ("supple.script", "tvm.script")


class _Nodes:
    """``tvm.ir`` in text that Relax's printer wrote: the constants of a program."""

    load_json = staticmethod(read_relax_metadata)


class _Root:
    """``tvm`` in text that Relax's printer wrote."""

    ir = _Nodes()


def from_source(
    text: str, extra_vars: Mapping[str, Any] | None = None, *, check_well_formed: bool | None = None
) -> IRModule | Function | PrimFunc:
    """Read a module, a graph function or a loop function from text.

    ``I``, ``R`` and ``T`` are known without imports; ``extra_vars`` gives more names. ``check_well_formed`` overrides
    what the decorators say. Raises `DiagnosticError`, with the place, for text that is not such a program.
    """
    source = text_source(text)
    names: dict[str, Any] = {"I": ir, "R": relax, "T": tirx, "TypeVar": TypeVar, "tvm": _Root(), **(extra_vars or {})}
    env = Environment(names, SAFE_BUILTINS, restricted=True)
    evaluator = Evaluator(source, env)
    result: IRModule | Function | PrimFunc | None = None
    for statement in source.tree.body:
        if is_docstring(statement) or isinstance(statement, ast.Pass):
            continue
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            names.update(_imported(evaluator, statement))
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if not isinstance(target, ast.Name):
                raise evaluator.error(target, "only plain names can be assigned here")
            names[target.id] = evaluator.evaluate(statement.value)
        elif isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            made = _definition(evaluator, statement, env, check_well_formed)
            if isinstance(made, Macro):
                names[statement.name] = made
            else:
                result = made
        else:
            evaluator.refuse(statement, "a program's text")
    if result is None:
        raise DiagnosticError(
            "the text defines no program",
            Span(source.file, 1, 1, 1, 2),
            expected="a class with @I.ir_module, or a function with @R.function or @T.prim_func",
        )
    return result


def _definition(
    evaluator: Evaluator, node: ast.FunctionDef | ast.ClassDef, env: Environment, check_well_formed: bool | None
) -> IRModule | Function | PrimFunc | Macro:
    found = decorator_of(evaluator, node)
    place = evaluator.source.name_span(node)
    if found is None:
        expected = "@I.ir_module, @R.function or @T.prim_func"
        raise evaluator.error(place, f"{node.name!r} has no decorator", expected=expected)
    form, kwargs = found
    if check_well_formed is not None:
        kwargs = {**kwargs, "check_well_formed": check_well_formed}
    try:
        if isinstance(node, ast.ClassDef) and form.name == "I.ir_module":
            return read_module(evaluator.source, node, env, kwargs)
        if isinstance(node, ast.FunctionDef) and isinstance(form, MacroForm):
            kwargs.pop("check_well_formed", None)
            return form.read(evaluator.source, node, env, kwargs)
        if isinstance(node, ast.FunctionDef) and isinstance(form, FunctionDecorator):
            function: Function | PrimFunc = form.read(evaluator.source, node, env, kwargs)
            return function
    except TypeError as error:
        raise evaluator.convert(error, node.decorator_list[0]) from None
    raise evaluator.error(place, f"{form.name} cannot decorate {node.name!r}")


def _imported(evaluator: Evaluator, statement: ast.Import | ast.ImportFrom) -> dict[str, Any]:
    result: dict[str, Any] = {}
    module = statement.module if isinstance(statement, ast.ImportFrom) else None
    for alias in statement.names:
        if module == "__future__" or (module == "typing" and alias.name == "TypeVar"):
            continue
        if module in _PACKAGES and alias.name in _MODULES:
            result[alias.asname or alias.name] = _MODULES[alias.name]
            continue
        raise NotSupportedError(
            "only 'from supple.script import ir, relax, tirx' can be imported in a program's text",
            evaluator.span(statement),
            hint="pass other values with extra_vars",
        )
    return result
