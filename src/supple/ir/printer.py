"""``node.script()``, ``str(node)`` and ``node.show()``: TVMScript text of any node."""

from __future__ import annotations

import sys
from typing import Any

from pygments import highlight
from pygments.formatters import Terminal256Formatter
from pygments.lexers import PythonLexer

from supple.base.config import config
from supple.ir import graph as G
from supple.ir.expr import Range
from supple.ir.graph import BindingBlock, Function, GlobalVar
from supple.ir.loop import BufferRegion, IterVar, PrimFunc, SBlock
from supple.ir.module import IRModule
from supple.ir.node import Expr, Stmt, Type, set_printer
from supple.ir.print_expr import ExprPrinter, metadata_text
from supple.ir.print_graph import GraphPrinter
from supple.ir.print_loop import LoopPrinter
from supple.ir.print_names import identifier, quote

HEADER = "from supple.script import ir as I, relax as R, tirx as T"


def script(node: Any, show_meta: bool = False) -> str:
    """The text of a node. Modules and functions come with the import line that lets the text run as a file.

    Constants of more than a few elements print as ``metadata["supple.Constant"][i]``; their data is in the text only
    with ``show_meta``, without it ``from_source`` refuses the text.
    """
    if isinstance(node, IRModule):
        return _module(node, show_meta)
    if isinstance(node, (Function, PrimFunc)):
        return _single(node, show_meta)
    return _fragment(node)


def _single(func: Function | PrimFunc, show_meta: bool) -> str:
    wanted = str(func.attrs.get("global_symbol", "main"))
    name = identifier(wanted)
    constants: list[G.Constant] = []
    lines = _function_lines(func, name, None, constants, {}, 0, {})
    return _with_header(lines, constants, show_meta)


def _function_lines(
    func: Function | PrimFunc,
    name: str,
    given_name: str | None,
    constants: list[G.Constant],
    functions: dict[str, str],
    indent: int,
    infos: dict[str, Any],
) -> list[str]:
    printer = GraphPrinter() if isinstance(func, Function) else LoopPrinter()
    printer.infos = infos
    printer.constants = constants
    printer.functions = functions
    printer.indent = printer.base = indent
    if isinstance(printer, GraphPrinter):
        assert isinstance(func, Function)
        printer.function(func, name, given_name)
    else:
        assert isinstance(func, PrimFunc)
        printer.function(func, name, given_name)
    return printer.lines


def _module(mod: IRModule, show_meta: bool) -> str:
    names = _function_names(mod)
    constants: list[G.Constant] = []
    lines = ["@I.ir_module", "class Module:"]
    plain = ExprPrinter()
    plain.constants = constants
    if mod.attrs:
        lines.append(f"    I.module_attrs({plain.attr(mod.attrs)})")
    if mod.global_infos:
        lines.append(f"    I.module_global_infos({plain.attr(mod.global_infos)})")
    for var, func in mod.functions.items():
        name = names[var.name_hint]
        if lines[-1] != "class Module:":
            lines.append("")
        if not isinstance(func, (Function, PrimFunc)):
            lines.append(f"    {name} = R.ExternFunc({quote(func.global_symbol)})")
            continue
        given_name = None if name == var.name_hint else var.name_hint
        lines += _function_lines(func, name, given_name, constants, names, 1, mod.global_infos)
    if not mod.functions and len(lines) == 2:
        lines.append("    pass")
    return _with_header(lines, constants, show_meta)


def _function_names(mod: IRModule) -> dict[str, str]:
    """An identifier for every function: its own name where that is one."""
    names: dict[str, str] = {}
    for var in mod.functions:
        if identifier(var.name_hint) == var.name_hint:
            names[var.name_hint] = var.name_hint
    taken = set(names)
    for var in mod.functions:
        if var.name_hint not in names:
            base = identifier(var.name_hint)
            name, count = base, 0
            while name in taken:
                count += 1
                name = f"{base}_{count}"
            taken.add(name)
            names[var.name_hint] = name
    return names


def _with_header(lines: list[str], constants: list[G.Constant], show_meta: bool) -> str:
    head = [HEADER, ""]
    if constants and show_meta:
        head += [f"metadata = I.metadata({quote(metadata_text(constants))})", ""]
    elif constants:
        head += ["# metadata: the data of large constants is not shown; script(show_meta=True) shows it", ""]
    return "\n".join([*head, "", *lines]) + "\n"


def _fragment(node: Any) -> str:
    """A part of a program, as it would stand in its function; free variables keep their names."""
    if isinstance(node, Type):
        return ExprPrinter().type(node)
    if isinstance(node, Stmt):
        loops = LoopPrinter()
        if isinstance(node, SBlock):
            loops.line(f"<block {node.name_hint}>")
        else:
            loops.suite(node)
        return "\n".join(loops.lines)
    printer = GraphPrinter()
    if isinstance(node, G.Binding):
        printer.binding(node)
    elif isinstance(node, BindingBlock):
        printer.sequence(G.SeqExpr((node,), G.Tuple(())))
    elif isinstance(node, G.SeqExpr):
        printer.sequence(node)
        printer.line(printer.value(node.body))
    elif isinstance(node, G.If):
        printer.line(f"<if {printer.expr(node.cond)}>")
    elif isinstance(node, GlobalVar):
        return node.name_hint
    elif isinstance(node, Expr):
        text = printer.expr(node)
        return "\n".join([*printer.lines, text])
    elif isinstance(node, BufferRegion):
        return printer.region(node)
    elif isinstance(node, Range):
        return f"T.Range({printer.expr(node.min)}, {printer.expr(node.extent)})"
    elif isinstance(node, IterVar):
        return printer.names.get(node.var)
    else:
        return f"<{type(node).__name__}>"
    return "\n".join(printer.lines)


def show(node: Any, show_meta: bool = False) -> None:
    """Print a node's text, in colour on a terminal (unless ``NO_COLOR`` is set)."""
    text = script(node, show_meta).rstrip("\n")
    if sys.stdout.isatty() and config.color:
        text = highlight(text, PythonLexer(), Terminal256Formatter()).rstrip("\n")
    print(text)


set_printer(script, show)
