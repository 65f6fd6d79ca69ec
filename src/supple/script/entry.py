"""Decorators and whole modules: where programs enter.

A decorator outside a class reads its function at once. Inside the body of a class that ``I.ir_module`` decorates it
is only a mark: the class is read as a whole, since its functions may call each other.
"""

from __future__ import annotations

import ast
import builtins
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from supple.base.errors import DiagnosticError, NotSupportedError
from supple.build.block_builder import BlockBuilder
from supple.ir.conventions import conventions
from supple.ir.graph import ExternFunc, Function, GlobalVar
from supple.ir.loop import PrimFunc
from supple.ir.module import MODULE_CALL, BaseFunc, IRModule
from supple.ir.node import set_field
from supple.ir.types import TupleType
from supple.script.evaluate import Environment, Evaluator, describe
from supple.script.forms import Form, FormCall, bind_form, check_flags, check_name
from supple.script.graph_parser import GraphParser
from supple.script.graph_state import GraphOptions, ModuleRef, graph_options
from supple.script.loop_parser import LoopParser
from supple.script.loop_state import names_of
from supple.script.macros import Macro
from supple.script.signature import is_docstring
from supple.script.source import Source, class_definition, first_line, function_definition
from supple.verify.loops import blocks_name_no_loops_around
from supple.verify.well_formed import check_module

MODULE_FORM = "I.ir_module"
READ_MODULES: list[Callable[..., Any]] = []  # other decorators of classes that are read as a whole
RESERVED = ("I", "R", "T", "Module", "cls")
"""Names that the text of a module uses itself."""


@dataclass(frozen=True)
class LoopOptions:
    """What ``@T.prim_func(...)`` takes."""

    private: bool = False
    s_tir: bool = False
    check_well_formed: bool = True
    name: str | None = None  # the function's name in the module, where it is no identifier
    root_block: bool = True  # whether blocks get a root block around them

    def attrs(self, name: str) -> dict[str, Any]:
        """The attributes that the decorator stands for."""
        attrs: dict[str, Any] = {} if self.private else {"global_symbol": self.name or name}
        if self.s_tir:
            attrs["s_tir"] = True
        return attrs


def loop_options(
    private: bool = False,
    s_tir: bool = False,
    check_well_formed: bool = True,
    name: str | None = None,
    root_block: bool = True,
) -> LoopOptions:
    """The options of ``@T.prim_func``; anything but bools raises ``TypeError``."""
    check_flags(private=private, s_tir=s_tir, check_well_formed=check_well_formed, root_block=root_block)
    return LoopOptions(private, s_tir, check_well_formed, check_name(name), root_block)


# ----------------------------------------------------------------------------------------------------------- decorators


class Decorator(Form):
    """A form that also decorates Python functions or classes, with and without parentheses."""

    def __call__(self, target: Any = None, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        if target is None:
            return lambda function: self._apply(function, kwargs, sys._getframe(1))
        return self._apply(target, kwargs, frame)

    def _apply(self, target: Any, kwargs: dict[str, Any], frame: types.FrameType) -> Any:
        try:
            return self.decorate(target, kwargs, frame)
        except DiagnosticError as error:  # the text says where: the parser's own frames would only hide it
            raise error.with_traceback(None) from error.__cause__

    def decorate(self, target: Any, kwargs: dict[str, Any], frame: types.FrameType) -> Any:
        raise NotImplementedError


class FunctionDecorator(Decorator):
    """``@T.prim_func`` and ``@R.function``."""

    def decorate(self, target: Any, kwargs: dict[str, Any], frame: types.FrameType) -> Any:
        if not isinstance(target, types.FunctionType):
            raise TypeError(f"{self.name} decorates a function, got {type(target).__name__}")
        if _in_module_class(frame):
            return target
        source, node = function_definition(target)
        return self.read(source, node, _environment(frame, [target]), kwargs)

    def read(self, source: Source, node: ast.FunctionDef, env: Environment, kwargs: dict[str, Any]) -> Any:
        """The function of a ``def``."""
        raise NotImplementedError


class LoopDecorator(FunctionDecorator):
    """``@T.prim_func(private=, s_tir=, check_well_formed=)``."""

    def read(self, source: Source, node: ast.FunctionDef, env: Environment, kwargs: dict[str, Any]) -> PrimFunc:
        options: LoopOptions = bind_form(FormCall(self, (), kwargs), loop_options)
        function = read_loop_function(source, node, env, options)
        if options.check_well_formed:
            check(IRModule({options.name or node.name: function}))
        return function


class GraphDecorator(FunctionDecorator):
    """``@R.function(pure=, private=, check_well_formed=)``."""

    def read(self, source: Source, node: ast.FunctionDef, env: Environment, kwargs: dict[str, Any]) -> Function:
        options: GraphOptions = bind_form(FormCall(self, (), kwargs), graph_options)
        parser = GraphParser(source, env, node, options, None)
        parser.signature()
        function = parser.body(BlockBuilder())
        if options.check_well_formed:
            symbol = function.attrs.get("global_symbol")  # by itself a function is called what it says
            check(IRModule({symbol if isinstance(symbol, str) else options.name or node.name: function}))
        return function


class MacroForm(Decorator):
    """``@T.inline``, ``@T.macro(hygienic=)``, ``@R.macro``."""

    def decorate(self, target: Any, kwargs: dict[str, Any], frame: types.FrameType) -> Macro:
        if not isinstance(target, types.FunctionType):
            raise TypeError(f"{self.name} decorates a function, got {type(target).__name__}")
        source, node = function_definition(target)
        return self.read(source, node, _environment(frame, [target]), kwargs)

    def read(self, source: Source, node: ast.FunctionDef, env: Environment, kwargs: dict[str, Any]) -> Macro:
        """The macro of a ``def``."""
        return Macro(node.name, source, node, env, bind_form(FormCall(self, (), kwargs), macro_options))


class PythonFunctionDecorator(Decorator):
    """``@I.pyfunc``: a Python function of a module's class."""

    def decorate(self, target: Any, kwargs: dict[str, Any], frame: types.FrameType) -> Any:
        if not isinstance(target, types.FunctionType):
            raise TypeError(f"{self.name} decorates a function, got {type(target).__name__}")
        return target


def macro_options(hygienic: bool = True) -> bool:
    """The option of a macro's decorator."""
    check_flags(hygienic=hygienic)
    return hygienic


class ModuleDecorator(Decorator):
    """``@I.ir_module``."""

    def decorate(self, target: Any, kwargs: dict[str, Any], frame: types.FrameType) -> IRModule:
        if not isinstance(target, type):
            raise TypeError(f"I.ir_module decorates a class, got {type(target).__name__}")
        methods = [m for m in vars(target).values() if isinstance(m, types.FunctionType)]
        lines = {m.__code__.co_firstlineno for m in methods}
        file = methods[0].__code__.co_filename if methods else frame.f_code.co_filename

        def fits(node: ast.ClassDef) -> bool:
            last = node.end_lineno or node.lineno
            if lines:
                return all(first_line(node) <= line <= last for line in lines)
            return first_line(node) <= frame.f_lineno <= last

        source, node = class_definition(target.__name__, file, frame.f_globals, fits, frame.f_lineno)
        return read_module(source, node, _environment(frame, methods), kwargs, dict(vars(target)))


def _in_module_class(frame: types.FrameType) -> bool:
    """Whether a frame executes the body of a class that ``I.ir_module`` (or one of `READ_MODULES`) decorates."""
    local = frame.f_locals
    if local is frame.f_globals or "__module__" not in local or "__qualname__" not in local:
        return False
    name, line = frame.f_code.co_name, frame.f_code.co_firstlineno

    def fits(node: ast.ClassDef) -> bool:
        return first_line(node) == line

    _, node = class_definition(name, frame.f_code.co_filename, frame.f_globals, fits, line)
    outer = frame.f_back
    scopes = [local, outer.f_locals if outer is not None else {}, frame.f_globals]
    return any(_decorates_module(decorator, scopes) for decorator in node.decorator_list)


def _decorates_module(decorator: ast.expr, scopes: list[Any]) -> bool:
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    path: list[str] = []
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return False
    for scope in scopes:
        if node.id in scope:
            value = scope[node.id]
            for attribute in reversed(path):
                value = getattr(value, attribute, None)
            return (isinstance(value, Form) and value.name == MODULE_FORM) or value in READ_MODULES
    return (path[0] if path else node.id) == "ir_module"


def _environment(frame: types.FrameType, functions: list[types.FunctionType]) -> Environment:
    """What a program captures: closure variables, the locals around, globals, builtins."""
    closures: dict[str, Any] = {}
    for function in functions:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                closures[name] = cell.cell_contents
            except ValueError:  # not assigned yet: a name that is defined after the program
                continue
    return Environment(closures, dict(frame.f_locals), frame.f_globals, builtins.__dict__)


# ------------------------------------------------------------------------------------------------------------ functions


def check(mod: IRModule) -> None:
    """Refuse a module that is not well formed."""
    check_module(mod)
    for func in mod.functions.values() if conventions().closed_blocks else ():
        for fault in blocks_name_no_loops_around(func) if isinstance(func, PrimFunc) else ():
            raise fault


def read_loop_function(
    source: Source, node: ast.FunctionDef, env: Environment, options: LoopOptions, module: ModuleRef | None = None
) -> PrimFunc:
    """The loop function of a ``def``, of a module or by itself."""
    return LoopParser(source, env, module).parse(node, options.attrs(node.name), options.root_block)


@dataclass
class _Item:
    """A function of a module that is being read."""

    node: ast.FunctionDef
    form: Form
    kwargs: dict[str, Any]


def decorator_of(evaluator: Evaluator, node: ast.FunctionDef | ast.ClassDef) -> tuple[Form, dict[str, Any]] | None:
    """The decorator that makes a definition part of a program, with its arguments; None for a plain definition."""
    for decorator in node.decorator_list:
        value = evaluator.evaluate(decorator)
        if isinstance(value, FormCall):
            if value.args:
                raise evaluator.error(decorator, f"{value.form.name} takes keyword arguments only")
            return value.form, value.kwargs
        if isinstance(value, Form):
            return value, {}
        raise evaluator.error(
            decorator, "unknown decorator", actual=describe(value), expected="R.function or T.prim_func"
        )
    return None


def read_module(
    source: Source,
    node: ast.ClassDef,
    env: Environment,
    kwargs: dict[str, Any],
    members: dict[str, Any] | None = None,
) -> IRModule:
    """The module of a class. ``members`` are the Python objects of its body, when Python ran it."""
    evaluator = Evaluator(source, env)
    options = bind_form(FormCall(Form(MODULE_FORM), (), kwargs), module_options)
    for base in [*node.bases, *[k.value for k in node.keywords]]:
        if evaluator.evaluate(base) not in MODULE_CALL:
            raise NotSupportedError("a module's class has no bases or keywords", evaluator.span(base))
    items: list[_Item] = []
    attrs: dict[str, Any] = {}
    infos: dict[str, Any] = {}
    externals: dict[str, ExternFunc] = {}
    pyfuncs: dict[str, Any] = {}
    for statement in node.body:
        if is_docstring(statement) or isinstance(statement, ast.Pass):
            continue
        if isinstance(statement, ast.FunctionDef):
            item = _module_item(evaluator, statement, items)
            if item.form.name == "I.pyfunc":
                pyfuncs[statement.name] = _python_function(evaluator, statement, members)
            else:
                items.append(item)
        elif isinstance(statement, ast.Expr):
            _module_statement(evaluator, statement, attrs, infos)
        elif isinstance(statement, ast.Assign):
            name, external = _external_function(evaluator, statement)
            externals[name] = external
        else:
            evaluator.refuse(statement, "a module's class")
    functions = _read_functions(source, node, env, items, externals, infos)
    mod = IRModule(functions, attrs, infos)
    mod.pyfuncs.update(pyfuncs)
    if options:
        check(mod)
    return mod


def _python_function(evaluator: Evaluator, statement: ast.FunctionDef, members: dict[str, Any] | None) -> Any:
    found = (members or {}).get(statement.name)
    if not callable(found):
        raise NotSupportedError(
            "a Python function (I.pyfunc) needs a class that Python runs, not a program's text",
            evaluator.source.name_span(statement),
        )
    return found


def module_options(check_well_formed: bool = True, s_tir: bool = False) -> bool:
    """The options of ``@I.ir_module``: whether to check. ``s_tir`` is accepted and says nothing here."""
    return check_well_formed


def _module_item(evaluator: Evaluator, statement: ast.FunctionDef, items: list[_Item]) -> _Item:
    if any(item.node.name == statement.name for item in items):
        raise evaluator.error(
            evaluator.source.name_span(statement), f"the module has two functions named {statement.name!r}"
        )
    found = decorator_of(evaluator, statement)
    if found is None or found[0].name not in ("T.prim_func", "R.function", "I.pyfunc"):
        name = "no decorator" if found is None else found[0].name
        raise evaluator.error(
            evaluator.source.name_span(statement),
            f"{statement.name!r} is not a function of the module",
            expected="@T.prim_func or @R.function",
            actual=name,
        )
    return _Item(statement, *found)


def _external_function(evaluator: Evaluator, statement: ast.Assign) -> tuple[str, ExternFunc]:
    """``f = R.ExternFunc("symbol")`` in a module's class."""
    value = evaluator.evaluate(statement.value)
    target = statement.targets[0]
    if len(statement.targets) != 1 or not isinstance(target, ast.Name) or not isinstance(value, ExternFunc):
        raise evaluator.error(
            statement, "only functions stand in a module's class", expected="a def, or f = R.ExternFunc('symbol')"
        )
    if target.id in RESERVED:
        raise evaluator.error(
            target, f"an external function cannot be named {target.id!r}: a program's text needs that name"
        )
    return target.id, value


def _module_statement(evaluator: Evaluator, statement: ast.Expr, attrs: dict[str, Any], infos: dict[str, Any]) -> None:
    value = evaluator.evaluate(statement.value)
    tables = {"I.module_attrs": attrs, "I.module_global_infos": infos}
    if not isinstance(value, FormCall) or value.form.name not in tables:
        raise evaluator.error(statement, "only functions, I.module_attrs and I.module_global_infos stand in a module")
    if len(value.args) != 1 or not isinstance(value.args[0], dict):
        raise evaluator.error(statement, f"{value.form.name} takes one dict")
    if tables[value.form.name]:
        raise evaluator.error(statement, f"{value.form.name} stands in this module already")
    try:
        tables[value.form.name].update(names_of(value.args[0], value.form.name))
    except Exception as error:
        raise evaluator.convert(error, statement) from None


def _read_functions(
    source: Source,
    node: ast.ClassDef,
    env: Environment,
    items: list[_Item],
    externals: dict[str, ExternFunc],
    infos: dict[str, Any],
) -> dict[GlobalVar | str, BaseFunc]:
    """Loop functions first, then the signatures of graph functions, then their bodies; in the order of the text."""
    found: dict[str, BaseFunc] = dict(externals)
    module = ModuleRef(node.name, {name: GlobalVar(name) for name in externals}, infos=infos)
    loops: list[tuple[str, _Item, LoopOptions]] = []
    for item in items:
        if item.form.name == "T.prim_func":
            options: LoopOptions = _bound(source, item, loop_options)
            name = options.name or item.node.name
            loops.append((name, item, options))
            module.functions[item.node.name] = GlobalVar(name)
            module.returns[name] = LoopParser(source, env).return_type(item.node) or TupleType(())
    for name, item, options in loops:  # each may call the others
        function = read_loop_function(source, item.node, env, options, module)
        found[item.node.name] = module.loops[name] = function
        set_field(module.functions[item.node.name], "ty", function.ty)
    graphs = [item for item in items if item.form.name == "R.function"]
    found.update(read_graph_functions(source, env, graphs, module))
    order = [*(item.node.name for item in items), *externals]
    return {module.functions[name]: found[name] for name in sorted(order, key=lambda n: _line(node, n))}


def _line(node: ast.ClassDef, name: str) -> int:
    """Where a module's class defines a name."""
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == name:
            return statement.lineno
        if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", None) == name:
            return statement.lineno
    return 0


def read_graph_functions(
    source: Source, env: Environment, items: list[_Item], module: ModuleRef
) -> dict[str, Function]:
    """The graph functions of a module: signatures first, so that functions may call each other in any order.

    A function without a return annotation is read when it is first called, since its caller needs the deduced type.
    """
    parsers: dict[str, GraphParser] = {}
    for item in items:
        parser = GraphParser(source, env, item.node, _bound(source, item, graph_options), module)
        parsers[item.node.name] = parser
        module.functions[item.node.name] = GlobalVar(parser.name, parser.signature())
    functions: dict[str, Function] = {}
    loops: dict[GlobalVar | str, BaseFunc] = {**module.loops}
    reading: set[str] = set()

    def read(name: str) -> None:
        if name not in functions and name not in reading:
            reading.add(name)
            functions[name] = function = parsers[name].body(BlockBuilder(IRModule(loops)))
            if parsers[name].ret_ty is None:
                module.functions[name] = GlobalVar(parsers[name].name, function.ty)

    def resolve(wanted: str) -> GlobalVar | None:
        for name, parser in parsers.items():
            if parser.name == wanted:
                read(name)
                return module.functions[name]
        return None

    module.resolve = resolve
    for name in parsers:
        read(name)
    return functions


def _bound(source: Source, item: _Item, handler: Callable[..., Any]) -> Any:
    try:
        return bind_form(FormCall(item.form, (), item.kwargs), handler)
    except TypeError as error:
        raise DiagnosticError(str(error), source.span(item.node.decorator_list[0])) from None
