"""Indented lines, and variables that nothing binds: what both levels' printers share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from supple.ir.expr import Add, IntImm, Range, Var, scalar_dtype
from supple.ir.loop import IterType, IterVar
from supple.ir.node import Expr, Type
from supple.ir.print_expr import ExprPrinter
from supple.ir.print_marks import wrap_lines
from supple.ir.print_style import PrintOptions
from supple.ir.types import BufferType, PrimType
from supple.ir.walk import pre_order

_ITERATIONS = {
    IterType.DATA_PAR: "DataPar",
    IterType.REDUCE: "CommReduce",
    IterType.SCAN: "Ordered",
    IterType.OPAQUE: "Opaque",
}


@dataclass(slots=True)
class _Frame:
    """A suite that is being printed."""

    number: int = 0
    scope: int = 0  # of its names
    header: list[str] | None = None  # while the suite's header is printed: declarations that come after it
    line: int = 0  # where its current statement begins
    indent: int = 0


class LinePrinter(ExprPrinter):
    """Expressions plus indented lines."""

    def __init__(self, options: PrintOptions | None = None) -> None:
        super().__init__(options)
        self.lines: list[str] = []
        self.indent = 0
        self.base = 0  # indentation of the function's def
        self.frames = [_Frame()]  # the suites that are being printed, outermost first
        self.opened = 0  # suites so far
        self.flat = False  # every indented suite has a frame
        self.free: dict[int, tuple[int, ...]] = {}  # free variables -> the suites around all of their uses
        self.places: dict[int, tuple[int, ...]] = {}  # the same, from a first printing
        self.hoist = self._hoist
        self.announce = lambda var: self.declare([var])

    def mark_lines(self, start: int, value: Any) -> None:
        """The lines from ``start`` on are the text of ``value``."""
        if self.options.marks is not None:
            wrap_lines(self.lines, start, self.options.marks.find(value, None))

    def line(self, text: str = "") -> None:
        """Add a line; what comes next may be a statement of the innermost suite."""
        self.lines.append("    " * self.indent + text if text else "")
        if self._parts:
            self.forget_parts()

    def _hoist(self, text: str) -> str:
        name = self.names.fresh("part")
        self.lines.append("    " * self.indent + f"{name} = T.meta_var({text})")
        return name

    def signature(self, name: str, params: list[str], result: str) -> None:
        """``def name(params) -> result:``, one parameter a line when it is long."""
        text = f"def {name}({', '.join(params)}){result}:"
        if len(text) + 4 * self.indent <= self.style.width or not params:
            self.line(text)
            return
        self.line(f"def {name}(")
        for param in params:
            self.line(f"    {param},")
        self.line(f"){result}:")

    def declare(self, symbols: list[Var], at: int | None = None) -> None:
        """``M, N = T.int64(), T.int64()``: names for symbols, at the end or at an earlier line."""
        if symbols:
            names = ", ".join(self.names.get(s) for s in symbols)
            self.line(f"{names} = {', '.join(f'T.{scalar_dtype(s)}()' for s in symbols)}")
            if at is not None:
                self.lines.insert(at, self.lines.pop())

    # ---------------------------------------------------------------------------------------------- free variables

    def statement(self) -> None:
        """A statement of the innermost suite begins: variables that are free from here on are declared before it."""
        frame = self.frames[-1]
        frame.line, frame.indent = len(self.lines), self.indent

    def open_frame(self, header: bool = False) -> None:
        """A suite begins; with ``header`` its own header is printed first."""
        self.opened += 1
        self.frames.append(_Frame(self.opened, self.names.depth, [] if header else None))
        self.statement()

    def name_of(self, var: Var) -> str:
        """A variable's name. Where the style says so, one that nothing binds is declared in the innermost suite around
        all of its uses, before the first of them: printing twice finds it (`again`)."""
        if not self.style.declare_free:
            return self.names.get(var)
        name = self.names.find(var)
        if name is None or id(var) in self.free:
            path = tuple(frame.number for frame in self.frames)
            known = self.free.get(id(var), path) if self.flat else path
            self.free[id(var)] = tuple(a for a, b in zip(known, path) if a == b)
        if name is None:
            depth = len(self.places.get(id(var), self.free[id(var)])) - 1
            name = self.names.define(var, self.frames[depth].scope)
            self._declare_free(var, name, self.frames[depth])
        return name

    def again(self) -> bool:
        """Whether the text must be printed once more, with `free` for its `places`."""
        return self.flat and any(self.places.get(var) != place for var, place in self.free.items())

    def _declare_free(self, var: Var, name: str, frame: _Frame) -> None:
        if var.ty is None:
            return
        if isinstance(var.ty, BufferType):
            text = f"{name} = T.Buffer({', '.join(self.buffer_arguments(var.ty))})"
        elif isinstance(var.ty, PrimType):
            text = f"{name} = T.{var.ty.dtype}()"
        else:
            text = f"{name}: {self.type(var.ty)}"
        if frame.header is not None:
            frame.header.append(text)
            return
        if frame is self.frames[-1] and self.flat:
            self.line(text)
            frame.line = len(self.lines)
            return
        at = frame.line
        self.lines.insert(at, "    " * frame.indent + text)
        for other in self.frames:
            other.line += other.line >= at

    def declare_types(self, types: Sequence[Type | None], params: Sequence[Var]) -> None:
        """Name the symbols of a signature, if they are declared before the text."""
        if not self.style.type_variables:
            return
        bound = {id(p) for p in params}
        found: dict[int, Var] = {}
        for ty in types:
            for item in pre_order(ty) if ty is not None else ():
                if isinstance(item, Var) and isinstance(item.ty, PrimType) and item.dtype == "int64":
                    if id(item) not in bound and self.names.find(item) is None:
                        found.setdefault(id(item), item)
        for symbol in sorted(found.values(), key=lambda v: v.name):
            name = self.names.define(symbol)
            self.in_sight.add(id(symbol))
            if name not in self.type_variables:
                self.type_variables.append(name)

    def ends(self, dom: Range) -> str:
        """The ends of a range by itself: where it begins, and where it ends."""
        if isinstance(dom.min, IntImm) and isinstance(dom.extent, IntImm):
            end: Expr = IntImm(dom.min.value + dom.extent.value, dom.extent.dtype)
        else:
            end = dom.extent if isinstance(dom.min, IntImm) and dom.min.value == 0 else Add(dom.extent, dom.min)
        return f"{self.expr(dom.min)}, {self.expr(end)}"

    def iteration(self, iter_var: IterVar) -> str:
        """An iteration variable by itself."""
        name = self.names.define(iter_var.var)
        if not self.style.declare_free:
            return name
        dom = f"T.Range({self.ends(iter_var.dom)})"
        return f'T.iter_var({name}, {dom}, "{_ITERATIONS[iter_var.iter_type]}", "")'
