"""What reading a graph function needs beside its parser: options, the module's own name, looks at the syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from supple.base.errors import TypeCheckError
from supple.ir.graph import GlobalVar
from supple.ir.loop import PrimFunc
from supple.ir.node import Type
from supple.script.evaluate import describe
from supple.script.forms import check_flags, check_name
from supple.script.loop_state import plain


@dataclass
class ModuleRef:
    """The module's own name inside of it: ``cls = Module``; its attributes are the module's functions."""

    name: str
    functions: dict[str, GlobalVar] = field(default_factory=dict)
    loops: dict[Any, PrimFunc] = field(default_factory=dict)
    infos: dict[str, Any] = field(default_factory=dict)  # the module's global infos
    returns: dict[str, Type] = field(default_factory=dict)  # what its loop functions return
    resolve: Callable[[str], GlobalVar | None] = lambda name: None  # reads a function whose type must be deduced


@dataclass(frozen=True)
class GraphOptions:
    """What ``@R.function(...)`` takes."""

    private: bool = False
    pure: bool = True
    check_well_formed: bool = True
    name: str | None = None  # the function's name in the module, where it is no identifier


def graph_options(
    pure: bool = True, private: bool = False, check_well_formed: bool = True, name: str | None = None
) -> GraphOptions:
    """The options of ``@R.function``; anything but bools raises ``TypeError``."""
    check_flags(private=private, pure=pure, check_well_formed=check_well_formed)
    return GraphOptions(private, pure, check_well_formed, check_name(name))


def match_cast_arguments(value: Any, ty: Any = None, struct_info: Any = None) -> tuple[Any, Any]:
    return value, ty if ty is not None else struct_info


def func_attr(attrs: Any) -> dict[str, Any]:
    if not isinstance(attrs, dict):
        raise TypeCheckError("R.func_attr takes a dict", None, "{'name': value}", describe(attrs))
    result: dict[str, Any] = plain(attrs)
    return result


def is_scalar_annotation(node: ast.expr) -> bool:
    """Whether an annotation is ``R.Prim(...)`` or ``T.int64``."""
    target = node.func if isinstance(node, ast.Call) else node
    name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
    return name == "Prim" or (isinstance(target, ast.Attribute) and getattr(target.value, "id", "") == "T")


def assigned_names(statement: ast.stmt) -> list[str]:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = list(statement.targets)
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    elif isinstance(statement, ast.FunctionDef):
        return [statement.name]
    names: list[str] = []
    while targets:
        target = targets.pop()
        if isinstance(target, ast.Name):
            names.append(target.id)
        elif isinstance(target, (ast.Tuple, ast.List)):
            targets.extend(target.elts)
    return names


def result_name(statement: ast.stmt) -> ast.Name | None:
    """The name that the last statement of a branch binds."""
    while isinstance(statement, ast.If) and statement.body:
        statement = statement.body[-1]
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0]
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return statement.target
    return None
