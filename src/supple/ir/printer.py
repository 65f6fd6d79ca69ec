"""``node.script()``, ``str(node)`` and ``node.show()``: TVMScript text of any node."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from pygments import highlight
from pygments.formatters import Terminal256Formatter
from pygments.lexers import PythonLexer
from pygments.styles import get_style_by_name
from pygments.util import ClassNotFound

from supple.base.config import config
from supple.ir import graph as G
from supple.ir.expr import Range, Var, is_buffer, is_scalar
from supple.ir.graph import BindingBlock, Function, GlobalVar
from supple.ir.loop import BufferRegion, IterVar, PrimFunc, SBlock
from supple.ir.module import IRModule
from supple.ir.node import Expr, Stmt, Type, set_printer
from supple.ir.print_expr import ExprPrinter
from supple.ir.print_graph import GraphPrinter
from supple.ir.print_lines import LinePrinter
from supple.ir.print_loop import LoopPrinter
from supple.ir.print_marks import wrap_lines
from supple.ir.print_metadata import metadata_text, relax_metadata
from supple.ir.print_names import identifier, quote
from supple.ir.print_style import PREFIXES, STYLES, PrintOptions, print_options

P = TypeVar("P", GraphPrinter, LoopPrinter)

HEADER = "from supple.script import ir as {}, relax as {}, tirx as {}"


def script(node: Any, show_meta: bool = False, *, style: str | None = None, **options: Any) -> str:
    """The text of a node, ``style`` being its layout: ``"supple"``, ``"relax"`` (character by character what Relax's
    printer writes), or None for the process's own (Supple's, unless `set_default_style` chose another).

    Modules and functions come with imports, so that Supple's layout runs as a file. Constants of more than a few
    elements print as ``metadata["supple.Constant"][i]``; their data is in the text only with ``show_meta``, without it
    ``from_source`` refuses the text. The other options are Relax's (`PrintOptions`).

    Raises ``TypeError`` for an option that Relax's printer has not, ``NotImplementedError`` for one that this has not.
    """
    chosen = print_options(style, node, show_meta=show_meta, **options)
    if isinstance(node, IRModule):
        text = _module(node, chosen)
    elif isinstance(node, (Function, PrimFunc)):
        text = _single(node, chosen)
    else:
        text = _fragment(node, chosen)
    return _finished(text, chosen)


def _finished(text: str, options: PrintOptions) -> str:
    """Prefixes, indentation and line numbers as the options want them."""
    text = options.rename(text)
    if options.indent_spaces != 4:
        text = re.sub("^(?:    )+", lambda m: " " * (len(m.group()) // 4 * options.indent_spaces), text, flags=re.M)
    if options.marks is not None:
        return options.marks.finish(text, options.num_context_lines, options.print_line_numbers)
    if options.print_line_numbers:
        text = _numbered(text.split("\n"), blank=not options.style.import_comments)
    return text


def _numbered(lines: list[str], blank: bool) -> str:
    """Lines with their numbers; empty lines between functions have numbers only with ``blank``."""
    first = lines.index("") if "" in lines else 0
    counted = [blank or at <= first or line != "" for at, line in enumerate(lines)]
    width, number = len(str(sum(counted))), 0
    for at, line in enumerate(lines):
        if counted[at]:
            number += 1
            lines[at] = f"{number:{width}} {line}"
    return "\n".join(lines)


def _single(func: Function | PrimFunc, options: PrintOptions) -> str:
    wanted = options.name or str(func.attrs.get("global_symbol", "main"))
    page = _Page(options)
    return page.text(page.function(func, identifier(wanted), None, 0))


class _Page:
    """What the functions of one text share."""

    def __init__(self, options: PrintOptions, mod: IRModule | None = None) -> None:
        self.options = options
        self.style = options.style
        self.constants: list[G.Constant] = []
        self.type_variables: list[str] = []
        self.names = {} if mod is None else _function_names(mod)
        self.infos = {} if mod is None else mod.global_infos
        self.module = "" if mod is None else options.name or "Module"

    def share(self, printer: ExprPrinter) -> None:
        printer.infos, printer.constants, printer.functions = self.infos, self.constants, self.names
        printer.type_variables = self.type_variables

    def function(self, func: Function | PrimFunc, name: str, given_name: str | None, indent: int) -> list[str]:
        """The lines of one function."""

        def start(printer: LinePrinter) -> None:
            printer.module = self.module
            printer.indent = printer.base = indent

        def graph(printer: GraphPrinter) -> None:
            assert isinstance(func, Function)
            start(printer)
            printer.function(func, name, given_name)

        def loops(printer: LoopPrinter) -> None:
            assert isinstance(func, PrimFunc)
            start(printer)
            printer.function(func, name, given_name)

        kind, write = (GraphPrinter, graph) if isinstance(func, Function) else (LoopPrinter, loops)
        lines: list[str] = self.written(kind, write).lines  # type: ignore[type-var, arg-type]
        if self.options.marks is not None:
            wrap_lines(lines, 0, self.options.marks.find(func, None))
        return lines

    def written(self, kind: type[P], write: Callable[[P], None]) -> P:
        """A printer of that kind after it wrote; twice where free variables must be declared further out."""
        printer = kind(self.options)
        self.share(printer)
        write(printer)
        if printer.again():
            places = printer.free
            printer = kind(self.options)
            self.share(printer)
            printer.places = places
            write(printer)
        return printer

    def text(self, lines: list[str]) -> str:
        """The whole text: what comes before the lines, and after them."""
        meta = bool(self.constants) and self.options.show_meta
        if not self.style.import_comments:
            options = self.options
            head = [HEADER.format(options.ir_prefix, options.relax_prefix, options.tirx_prefix), ""]
            if meta:
                head += [f"metadata = I.metadata({quote(metadata_text(self.constants))})", ""]
            elif self.constants:
                head += [self.style.no_metadata, ""]
            return "\n".join([*head, "", *lines]) + self.style.end
        head = self._comments("\n".join(lines))
        head += [f'{name} = TypeVar("{name}")' for name in self.type_variables]
        if meta:
            head.insert(0, f"metadata = {relax_metadata(self.constants)}")
        omitted = ["", self.style.no_metadata] if self.constants and not meta else []
        return "\n".join([*head, *lines, *omitted]) + self.style.end

    def _comments(self, body: str) -> list[str]:
        """Comments that say where the prefixes come from, and an empty line."""
        used = {m.group() for m in PREFIXES.finditer(body)}
        comments = ["# from typing import TypeVar"] if self.type_variables else []
        for prefix, lines in _IMPORTS.items():
            if prefix in used:
                chosen = self.options.renamed.get(prefix, prefix)
                comments += [line.format(chosen) for line in lines]
        return [*comments, ""]


_IMPORTS = {
    "I": ("# from tvm.script import ir as {}",),
    "T": ("# from tvm.script import tirx as {}", "# from tvm.tirx.layout import Axis"),
    "R": ("# from tvm.script import relax as {}",),
}


def _module(mod: IRModule, options: PrintOptions) -> str:
    page = _Page(options, mod)
    lines = ["@I.ir_module", f"class {page.module}:"]
    plain = ExprPrinter(options)
    page.share(plain)
    if mod.attrs:
        lines.append(f"    I.module_attrs({plain.attr(mod.attrs)})")
    if mod.global_infos:
        plain.infos = {}  # what they are is said here
        lines.append(f"    I.module_global_infos({plain.attr(mod.global_infos)})")
    items = list(mod.functions.items())
    if options.style.order is not None:
        order = options.style.order
        items.sort(key=lambda item: order(type(item[1]).__name__, item[0].name_hint))
    apart = False
    for var, func in items:
        name = page.names[var.name_hint]
        if apart or (lines[-1] != f"class {page.module}:" and not options.style.import_comments):
            lines.append("")
        if not isinstance(func, (Function, PrimFunc)):
            lines.append(f"    {name} = R.ExternFunc({quote(func.global_symbol)})")
            apart = False
            continue
        given_name = None if name == var.name_hint else var.name_hint
        lines += page.function(func, name, given_name, 1)
        apart = True
    if not mod.functions and len(lines) == 2:
        lines.append("    pass")
    if options.marks is not None:
        wrap_lines(lines, 0, options.marks.find(mod, None))
    return page.text(lines)


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


def _fragment(node: Any, options: PrintOptions) -> str:
    """A part of a program, as it would stand in its function; free variables keep their names. In Relax's layout the
    data of constants comes before it, or a comment says that it is left out."""
    page = _Page(options)
    text = _fragment_text(node, options, page)
    if not page.constants or not options.style.import_comments:
        return text
    if options.show_meta:
        return f"metadata = {relax_metadata(page.constants)}\n{text}"
    return f"{text}\n{options.style.no_metadata}"


def _fragment_text(node: Any, options: PrintOptions, page: _Page) -> str:
    if isinstance(node, (Stmt, SBlock)):
        return "\n".join(page.written(LoopPrinter, lambda printer: _statement(node, printer)).lines)
    if isinstance(node, (G.Binding, BindingBlock, G.SeqExpr, G.If)):
        return "\n".join(page.written(GraphPrinter, lambda printer: _bindings(node, printer)).lines)
    printer = GraphPrinter(options)
    page.share(printer)
    if isinstance(node, Type):
        return printer.lone_type(node) if options.style.declare_free else printer.type(node)
    if isinstance(node, GlobalVar):
        return options.style.global_variable.format(node.name_hint)
    if isinstance(node, Expr):
        return _expression(node, printer, options)
    printer.int_dtype = options.int_dtype
    if isinstance(node, BufferRegion):
        return printer.region(node)
    if isinstance(node, Range):
        return f"{options.style.range}({printer.ends(node)})"
    if isinstance(node, IterVar):
        return printer.iteration(node)
    return printer.attr(node)


def _statement(node: Stmt, printer: LoopPrinter) -> None:
    printer.fragment = printer.style.declare_free
    if isinstance(node, SBlock):
        printer.block(node)
    else:
        printer.suite(node)


def _bindings(node: Any, printer: GraphPrinter) -> None:
    printer.statement()
    if isinstance(node, G.Binding):
        printer.binding(node)
    elif isinstance(node, BindingBlock):
        printer.sequence(G.SeqExpr((node,), G.Tuple(())))
    elif isinstance(node, G.If):
        printer.conditional(node)
    else:
        printer.sequence(node)
        printer.statement()
        printer.line(printer.value(node.body))


def _expression(node: Expr, printer: GraphPrinter, options: PrintOptions) -> str:
    if is_scalar(node):
        printer.int_dtype = options.int_dtype
    buffer = is_buffer(node) and options.style.declare_free
    text = printer.names.get(node) if buffer and isinstance(node, Var) else printer.expr(node)
    declared = printer.lines if options.verbose_expr or not options.style.declare_free else []
    return "\n".join([*declared, text])


def show(node: Any, style: str | None = None, black_format: bool | None = None, **options: Any) -> None:
    """Print a node's text, in colour on a terminal (unless ``NO_COLOR`` is set). ``style`` is a layout, as in `script`,
    or a name of pygments' for the colours (``"light"`` and ``"dark"`` among them). Otherwise like `script`."""
    layout = style if style in STYLES else None
    colors = _COLORS.get(style or "", style) if layout is None else None
    text = script(node, style=layout, black_format=black_format, **options).rstrip("\n")
    if colors is not None:
        formatter = Terminal256Formatter(style=_pygments_style(colors))
    else:
        formatter = Terminal256Formatter()
    if sys.stdout.isatty() and config.color:
        text = highlight(text, PythonLexer(), formatter).rstrip("\n")
    print(text)


_COLORS = {"light": "default", "dark": "monokai", "ansi": "default"}


def _pygments_style(name: str) -> str:
    try:
        get_style_by_name(name)
    except ClassNotFound:
        known = ", ".join(STYLES)
        raise ValueError(f"style: {name!r} is neither a layout ({known}) nor colours of pygments'") from None
    return name


set_printer(script, show)
