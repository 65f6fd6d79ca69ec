"""Loop functions as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from supple.ir import loop as L
from supple.ir.expr import Call, IntImm, Let, Ramp, Var, scalar_dtype
from supple.ir.graph import GlobalVar
from supple.ir.loop import ForKind, IterType, PrimFunc, SBlock, SBlockRealize, SeqStmt
from supple.ir.node import Expr, Node, Stmt
from supple.ir.op import Op
from supple.ir.print_cells import cells_of
from supple.ir.print_expr import ATOM
from supple.ir.print_lines import LinePrinter
from supple.ir.print_names import quote
from supple.ir.print_style import PrintOptions
from supple.ir.structural import structural_equal
from supple.ir.types import BufferType, PrimType
from supple.ir.walk import pre_order

_KIND_NAMES = {
    ForKind.SERIAL: "T.serial",
    ForKind.PARALLEL: "T.parallel",
    ForKind.VECTORIZED: "T.vectorized",
    ForKind.UNROLLED: "T.unroll",
    ForKind.THREAD_BINDING: "T.thread_binding",
}
_AXES = {
    IterType.DATA_PAR: "T.axis.spatial",
    IterType.REDUCE: "T.axis.reduce",
    IterType.SCAN: "T.axis.scan",
    IterType.OPAQUE: "T.axis.opaque",
}
_LETTERS = {IterType.DATA_PAR: "S", IterType.REDUCE: "R"}


class LoopPrinter(LinePrinter):
    """Prints loop functions and their statements."""

    def __init__(self, options: PrintOptions | None = None) -> None:
        super().__init__(options)
        self.int_dtype = self.options.int_dtype
        self.flat = True
        self.loops: dict[int, tuple[Expr, Expr]] = {}
        self.fragment = False  # a part of a function is printed
        self.alone: SBlock | None = None  # the block that is printed by itself
        self.declared = (0, 0)  # the cell that was declared last, and the number of lines then
        self.direct = False  # in the suite of a block itself, where an allocation would be the block's

    # ---------------------------------------------------------------------------------------------------- function

    def function(self, func: PrimFunc, name: str, given_name: str | None = None) -> None:
        """``@T.prim_func`` and ``def``; ``given_name`` is the module's name for it when that is no identifier."""
        self.names.open_scope()
        options = []
        if given_name is not None:
            options.append(f"name={quote(given_name)}")
        public = func.attrs.get("global_symbol")
        if public is None:
            options.append("private=True")
        if func.attrs.get("s_tir") is True or (self.style.marks_blocks and _has_blocks(func.body)):
            options.append("s_tir=True")
        if _lacks_root(func.body):
            options.append("root_block=False")
        self.line(f"@T.prim_func({', '.join(options)})" if options else "@T.prim_func")
        self.declare_types([p.ty for p in func.params if isinstance(p.ty, BufferType)], func.params)
        symbols = [s for s in self._symbols(func) if self.names.find(s) is None]
        for param in func.params:
            if not isinstance(param.ty, BufferType):
                self.names.define(param)
        for symbol in symbols:
            self.names.define(symbol)
        for param in func.params:
            if isinstance(param.ty, BufferType):
                self.names.define(param)
        self.quoted = True
        params = []
        for param in func.params:
            params.append(f"{self.names.get(param)}: {self._parameter(param)}")
            if self.style.type_variables:
                self.in_sight.add(id(param))
                self.parameters.add(id(param))
        self.quoted = False
        result = f" -> T.{func.ret_ty.dtype}" if isinstance(func.ret_ty, PrimType) else ""
        self.signature(name, params, result)
        self.indent += 1
        shown = {k: v for k, v in func.attrs.items() if not (k == "global_symbol" and v == (given_name or name))}
        if shown.get("s_tir") is True:
            del shown["s_tir"]
        if self.style.declare_free:
            for group in self._by_parameter(func, symbols):
                self.declare(group)
        if shown:
            self.line(f"T.func_attr({self.step(self.attr(shown), func, 'attrs')})")
        if not self.style.declare_free:
            self._declare_symbols(func, symbols)
        self._body(func.body)
        self.indent -= 1
        self.names.close_scope()

    def _as_value(self, value: Expr, text: str) -> str:
        return text  # what a loop function passes is a scalar anyway

    def module_name(self) -> str:
        """A loop function names the class itself."""
        return self.module or "Module"

    def _parameter(self, param: Var) -> str:
        if isinstance(param.ty, PrimType):
            return f"T.{param.ty.dtype}"
        return self.type(param.ty)

    def _symbols(self, func: PrimFunc) -> list[Var]:
        """The symbols that the buffers' types introduce."""
        params = {id(p) for p in func.params}
        found: dict[int, Var] = {}
        for param in func.params:
            if isinstance(param.ty, BufferType):
                for item in pre_order(param.ty):
                    if isinstance(item, Var) and isinstance(item.ty, PrimType) and id(item) not in params:
                        found.setdefault(id(item), item)
        return list(found.values())

    def _by_parameter(self, func: PrimFunc, symbols: list[Var]) -> list[list[Var]]:
        """Symbols by the parameter that introduces them."""
        left = {id(s) for s in symbols}
        groups: list[list[Var]] = []
        for param in func.params:
            mentioned = [n for n in pre_order(param.ty) if isinstance(n, Var)] if param.ty is not None else []
            groups.append([n for n in {id(n): n for n in mentioned}.values() if id(n) in left])
            left -= {id(n) for n in groups[-1]}
        return groups

    def _declare_symbols(self, func: PrimFunc, symbols: list[Var]) -> None:
        used = {id(n) for n in _used(func.body)}
        self.declare([s for s in symbols if id(s) in used or scalar_dtype(s) != "int64"])
        bound = {id(v) for v in (*func.params, *symbols)} | {id(v) for v in _defined(func.body)}
        free: dict[int, Var] = {}
        for item in _used(func.body):
            if isinstance(item, Var) and isinstance(item.ty, PrimType) and id(item) not in bound:
                free.setdefault(id(item), item)
        self.declare(list(free.values()))

    def _body(self, body: Stmt) -> None:
        if _hidden_root(body) and self.options.syntax_sugar:
            assert isinstance(body, SBlockRealize)
            if self.style.hidden_root:
                self.line(self.style.hidden_root)
            for buffer in body.block.alloc_buffers:
                self._alloc(buffer, "T.sblock_alloc_buffer")
            self.direct = True
            self.suite(body.block.body)
        else:
            self.suite(body)

    # -------------------------------------------------------------------------------------------------- statements

    def suite(self, body: Stmt) -> None:
        """The statements of one suite; nested suites are printed from an explicit stack."""
        self.cells = cells_of(body) if self.style.short_forms and self.options.syntax_sugar else set()
        stack: list[Any] = [self._suite(body, alone=self.fragment)]
        while stack:
            try:
                stack.append(self._statement(next(stack[-1])))
            except StopIteration:
                stack.pop()

    def _suite(self, body: Stmt, alone: bool = False) -> Iterator[Any]:
        if isinstance(body, SeqStmt) and len(body.seq) != 1:
            if not body.seq:
                self.line("pass")
            yield from body.seq
            return
        # the last of its suite needs no indentation, unless it is all that is printed
        while self.style.short_forms and not alone and isinstance(body, L.AttrStmt):
            self.statement()
            said = f"{quote(body.attr_key)}, {self.expr(body.value)}"
            if self.style.attr_dict and _is_nothing(body.node):
                self.line(f"T.attr({{{said.replace(', ', ': ', 1)}}})")
            else:
                self.line(f"T.attr({self.attr(body.node)}, {said})")
            body = body.body
            if isinstance(body, SeqStmt) and len(body.seq) != 1:
                yield from body.seq
                return
        yield body

    def _statement(self, statement: Any) -> Iterator[Any]:
        if isinstance(statement, _Inner):
            return self._suite(statement.body)
        method = _STATEMENTS.get(type(statement))
        self.statement()
        if self.options.marks is not None and method is not None:
            return self._marked_statement(method, statement)
        if method is None:
            self.line(f"<{type(statement).__name__}>")
            return iter(())
        return method(self, statement)

    def _marked_statement(self, method: Any, statement: Any) -> Iterator[Any]:
        start, outer, self.owner = len(self.lines), self.owner, statement
        for inner in method(self, statement):
            self.owner = outer
            yield inner
            self.owner = statement
        self.owner = outer
        self.mark_lines(start, statement)

    def _nested(self, body: Stmt, direct: bool = False, framed: bool = False) -> Iterator[Any]:
        """A suite one level in, with names of its own (``framed``: its frame is open already)."""
        self.indent += 1
        self.names.open_scope()
        if framed:
            self.frames[-1].scope = self.names.depth
        else:
            self.open_frame()
        outer, self.direct = self.direct, direct
        yield _Inner(body)
        self.direct = outer
        if not framed:
            self.frames.pop()
        self.names.close_scope()
        self.indent -= 1

    def _seq(self, s: SeqStmt) -> Iterator[Any]:
        self.line("with T.seq():")
        yield from self._nested(s) if len(s.seq) != 1 else self._nested(s.seq[0])

    def _evaluate(self, s: L.Evaluate) -> Iterator[Any]:
        text, precedence, _ = self.piece(s.value)
        called = isinstance(s.value, Call) and isinstance(s.value.op, (Op, GlobalVar)) and precedence == ATOM
        alone = self.style.calls_stand_alone and called
        self.line(text if alone else f"T.evaluate({text})")
        yield from ()

    def _bind(self, s: L.Bind) -> Iterator[Any]:
        value = self.expr(s.value)
        self.line(f"{self.names.define(s.var)}: {self.style.let.format(scalar_dtype(s.var))} = {value}")
        yield from ()

    def _store(self, s: L.BufferStore) -> Iterator[Any]:
        if self.style.declare_free:  # in this order
            self.name_of(s.buffer)
            value = self.expr(s.value)
            indices = ", ".join(self._place(i) for i in s.indices)
        else:
            indices = ", ".join(self.expr(i) for i in s.indices)
            value = self.expr(s.value)
        buffer = self.marked(self.names.get(s.buffer), s.buffer)
        if id(s.buffer) not in self.cells:
            self.line(f"{buffer}[{indices or '()'}] = {value}")
        elif (id(s.buffer), len(self.lines)) == self.declared and self.options.marks is None:
            self.lines[-1] += f" = {value}"  # it was declared in the line before
            self.declared = (0, 0)
        else:
            self.line(f"{buffer} = {value}")
        yield from ()

    def _place(self, index: Expr) -> str:
        """An index of a store: a vector of indices is a slice, in the short forms."""
        if not isinstance(index, Ramp) or not self.style.short_forms or not isinstance(index.stride, IntImm):
            return self.expr(index)
        if not isinstance(index.base, IntImm) or index.stride.value < 1:
            return self.expr(index)
        low, step = index.base.value, index.stride.value
        return f"{low}:{low + step * int(index.lanes)}" + (f":{step}" if step != 1 else "")

    def _alloc(self, buffer: Var, form: str, *rest: str) -> None:
        assert isinstance(buffer.ty, BufferType)
        arguments = ", ".join([*self.buffer_arguments(buffer.ty), *rest])
        self.line(f"{self.names.define(buffer)} = {form}({arguments})")

    def _alloc_statement(self, s: L.AllocBuffer) -> Iterator[Any]:
        if id(s.buffer) in self.cells:
            self.line(f"{self.names.define(s.buffer)}: T.{s.buffer.dtype}")
            self.declared = id(s.buffer), len(self.lines)
            return
        rest = [f"annotations={self.attr(s.annotations)}"] if s.annotations else []
        if self.direct and not rest and not self.style.short_forms:
            rest.append("statement=True")
        self._alloc(s.buffer, "T.alloc_buffer", *rest)
        if self.style.short_forms and (s.annotations or not rest):
            self.lines[-1] = _short_alloc(self.lines[-1])
        yield from ()

    def _decl_statement(self, s: L.DeclBuffer) -> Iterator[Any]:
        source = s.buffer.ty.data if isinstance(s.buffer.ty, BufferType) else None
        sugar = self.style.short_forms and self.options.syntax_sugar
        known = sugar and isinstance(source, Var) and id(source) in self.in_sight
        if known and isinstance(source, Var) and _is_view(s.buffer, source):
            shape = ", ".join(self.expr(extent) for extent in s.buffer.shape)
            self.line(f"{self.names.define(s.buffer)} = {self.names.get(source)}.view({shape})")
        else:
            self._alloc(s.buffer, "T.decl_buffer")
        yield from ()

    def _for(self, s: L.For) -> Iterator[Any]:
        loops = self._grid(s) if self.options.syntax_sugar else [s]
        self.open_frame(header=True)
        if len(loops) > 1:
            extents = ", ".join(self.expr(loop.extent) for loop in loops)
            header = f"T.grid({extents})"
        else:
            header = self._header(s)
        self.names.open_scope()
        names = []
        for loop in loops:
            names.append(self.names.define(loop.loop_var))
            self.loops[id(loop.loop_var)] = (loop.min, loop.extent)
        frame = self.frames[-1]
        declared, frame.header = frame.header or [], None
        for text in declared if not self.fragment else []:
            self.line(text)
        self.line(f"for {', '.join(names)} in {header}:")
        for text in declared if self.fragment else []:  # the loop's own suite declares what its extents need
            self.line(f"    {text}")
        yield from self._nested(loops[-1].body, framed=True)
        self.frames.pop()
        self.names.close_scope()

    def _grid(self, s: L.For) -> list[L.For]:
        """The perfectly nested plain loops that start here and do not depend on one another."""
        loops = [s]
        inner: set[int] = set()
        while _is_plain(loops[-1]):
            inner.add(id(loops[-1].loop_var))
            body = loops[-1].body
            if not isinstance(body, L.For) or not _is_plain(body):
                break
            if any(id(n) in inner for n in pre_order(body.extent)):
                break
            loops.append(body)
        return loops

    def _header(self, s: L.For) -> str:
        parts: list[str]
        ends = self.bounds(s.min, s.extent)
        if isinstance(s.min, IntImm) and s.min.value == 0 and scalar_dtype(s.min) == scalar_dtype(s.extent):
            parts = [self.expr(s.extent)]
        elif ends is not None:
            parts = list(ends)
        else:
            extent = self.attr(s.extent) if isinstance(s.extent, IntImm) else self.expr(s.extent)
            parts = [self.expr(s.min), f"extent={extent}"]
        if s.step is not None:
            parts.append(f"step={self.expr(s.step)}")
        if s.kind is ForKind.THREAD_BINDING:
            parts.append(f"thread={quote(s.thread_binding or '')}")
        if s.annotations:
            parts.append(f"annotations={self.attr(s.annotations)}")
        if scalar_dtype(s.loop_var) != scalar_dtype(s.extent):
            parts.append(f"dtype={quote(scalar_dtype(s.loop_var))}")
        plain = s.kind is ForKind.SERIAL and not s.annotations and (s.step is None or self.style.short_forms)
        if s.step is not None and plain:
            parts = [self.expr(s.min), *parts[-2:]] if len(parts) == 2 else parts
            parts[-1] = parts[-1].removeprefix("step=")
        plain = plain and not any(p.startswith(("extent=", "dtype=")) for p in parts)
        return f"{'range' if plain else _KIND_NAMES[s.kind]}({', '.join(parts)})"

    def _while(self, s: L.While) -> Iterator[Any]:
        self.line(f"while {self.expr(s.condition)}:")
        yield from self._nested(s.body)

    def _if(self, s: L.IfThenElse) -> Iterator[Any]:
        keyword = "if"
        current: Stmt | None = s
        while isinstance(current, L.IfThenElse):
            if keyword != "if" and (not self.style.elif_chains or self._needs_lines(current.condition)):
                break
            self.line(f"{keyword} {self.expr(current.condition)}:")
            yield from self._nested(current.then_case)
            keyword = "elif"
            current = current.else_case
        if current is not None:
            self.line("else:")
            yield from self._nested(current)

    def _needs_lines(self, condition: Expr) -> bool:
        """Whether an elif's condition would need statements before it."""
        if any(isinstance(n, Let) for n in pre_order(condition)):
            return True
        before = len(self.lines)
        self.expr(condition)
        hoisted = len(self.lines) != before
        del self.lines[before:]
        self.forget_parts()
        return hoisted

    def _assert(self, s: L.AssertStmt) -> Iterator[Any]:
        plain = self.style.plain_assertions and s.kind == "RuntimeError" and len(s.parts) == 1
        said = f"({quote(s.kind)}, [{', '.join(quote(part) for part in s.parts)}])"
        self.line(f"assert {self.expr(s.condition)}, {quote(s.message) if plain else said}")
        yield from ()

    def _attr(self, s: L.AttrStmt) -> Iterator[Any]:
        body: Stmt = s
        items: list[str] = []
        while self.style.attr_dict and isinstance(body, L.AttrStmt) and _is_nothing(body.node):
            items.append(f"{quote(body.attr_key)}: {self.expr(body.value)}")
            body = body.body
        if items:
            self.line(f"with T.attr({{{', '.join(items)}}}):")
        else:
            self.line(f"with T.attr({self.attr(s.node)}, {quote(s.attr_key)}, {self.expr(s.value)}):")
            body = s.body
        yield from self._nested(body)

    def _break(self, s: L.Break) -> Iterator[Any]:
        self.line(self.style.break_loop)
        yield from ()

    def _continue(self, s: L.Continue) -> Iterator[Any]:
        self.line(self.style.continue_loop)
        yield from ()

    def _return(self, s: L.Return) -> Iterator[Any]:
        self.line("return" if s.value is None else f"return {self.expr(s.value)}")
        yield from ()

    # ------------------------------------------------------------------------------------------------------- blocks

    def block(self, block: SBlock) -> None:
        """A block by itself, without the values of its axes."""
        if not self.style.declare_free:
            self.line(f"<block {block.name_hint}>")
            return
        values = tuple(iter_var.dom.min for iter_var in block.iter_vars)
        self.alone = block
        self.suite(SBlockRealize(values, IntImm(1, "bool"), block))

    def _realize(self, s: SBlockRealize) -> Iterator[Any]:
        block = s.block
        name = block.name_hint
        if name == "root" and not block.iter_vars and self.indent > 1 + self.base:
            name = "root_1"
        if self.fragment and block is not self.alone:  # the values are not the block's, nor are their free variables
            for value in s.iter_values:
                self.expr(value)
        self.line(f"with T.sblock({quote(name)}{', no_realize=True' if block is self.alone else ''}):")
        self.indent += 1
        self.names.open_scope()
        self.open_frame()
        self._axes(s)
        if not (isinstance(s.predicate, IntImm) and s.predicate.value):
            self.line(f"T.where({self.expr(s.predicate)})")
        if self.style.regions_first:
            self._regions(block)
        for buffer in block.alloc_buffers:
            self._alloc(buffer, "T.sblock_alloc_buffer")
        for match in block.match_buffers:
            source = self.region(match.source)
            assert isinstance(match.buffer.ty, BufferType)
            arguments = ", ".join([source, *self.buffer_arguments(match.buffer.ty)])
            self.line(f"{self.names.define(match.buffer)} = T.match_buffer({arguments})")
        if not self.style.regions_first:
            self._regions(block)
        if block.init is not None:
            self.line("with T.init():")
            yield from self._nested(block.init)
        self.indent -= 1
        yield from self._nested(block.body, direct=True, framed=True)
        self.frames.pop()
        self.names.close_scope()

    def _regions(self, block: SBlock) -> None:
        self.line(f"T.reads({', '.join(self.region(r) for r in block.reads)})")
        self.line(f"T.writes({', '.join(self.region(r) for r in block.writes)})")
        if block.annotations:
            self.line(f"T.sblock_attr({self.attr(block.annotations)})")

    def _axes(self, s: SBlockRealize) -> None:
        pairs = list(zip(s.block.iter_vars, s.iter_values))
        plain = [self.options.syntax_sugar and self._is_remapped(iter_var, value) for iter_var, value in pairs]
        if not self.style.remap_runs:
            self._remap(pairs) if pairs and all(plain) else self._axis_lines(pairs)
            return
        at = 0
        while at < len(pairs):  # runs of two and more plain axes
            end = at
            while end < len(pairs) and plain[end]:
                end += 1
            if end - at > 1:
                self._remap(pairs[at:end])
                at = end
            else:
                self._axis_lines(pairs[at : at + 1])
                at += 1

    def _remap(self, pairs: list[tuple[L.IterVar, Expr]]) -> None:
        letters = "".join(_LETTERS[iter_var.iter_type] for iter_var, _ in pairs)
        values = ", ".join(self.expr(value) for _, value in pairs)
        names = ", ".join(self.names.define(iter_var.var) for iter_var, _ in pairs)
        self.line(f"{names} = T.axis.remap({quote(letters)}, [{values}])")

    def _axis_lines(self, pairs: list[tuple[L.IterVar, Expr]]) -> None:
        for iter_var, value in pairs:
            low, extent = iter_var.dom.min, iter_var.dom.extent
            given = self.expr(value)
            wanted = scalar_dtype(value)
            if isinstance(low, IntImm) and low.value == 0 and low.dtype == scalar_dtype(extent):
                dom = self.dim(extent, self.int_dtype if self.style.typed_numbers else wanted)
            elif self.style.short_forms and (ends := self.bounds(low, extent)):
                dom = f"({ends[0]}, {ends[1]})"
            else:
                dom = f"T.Range({self.expr(low)}, {self.expr(extent)})"
            rest = "" if self.alone is not None and any(iter_var is v for v in self.alone.iter_vars) else f", {given}"
            self.line(f"{self.names.define(iter_var.var)} = {_AXES[iter_var.iter_type]}({dom}{rest})")

    def _is_remapped(self, iter_var: L.IterVar, value: Expr) -> bool:
        known = self.loops.get(id(value))
        return (
            known is not None
            and iter_var.iter_type in _LETTERS
            and structural_equal(known[0], iter_var.dom.min)
            and structural_equal(known[1], iter_var.dom.extent)
        )


class _Inner:
    """A suite to be printed where it stands."""

    __slots__ = ("body",)

    def __init__(self, body: Stmt) -> None:
        self.body = body


_SHORT_SCOPES = {"local": "T.alloc_local", "shared": "T.alloc_shared"}


def _short_alloc(line: str) -> str:
    """``T.alloc_local(...)`` for ``T.alloc_buffer(..., scope="local")``."""
    for scope, form in _SHORT_SCOPES.items():
        said = f', scope="{scope}"'
        if said in line:
            return line.replace(said, "").replace("T.alloc_buffer", form)
    return line


def _is_view(buffer: Var, source: Var) -> bool:
    """Whether a buffer is another buffer in another shape, and nothing else."""
    ty, of = buffer.ty, source.ty
    if not isinstance(ty, BufferType) or not isinstance(of, BufferType):
        return False
    plain, same = BufferType(ty.shape, of.dtype, of.scope, data=ty.data), BufferType(of.shape, ty.dtype)
    if not structural_equal(ty, plain) or structural_equal(same, BufferType(ty.shape, ty.dtype)):
        return False
    return _count(ty.shape) == _count(of.shape) is not None


def _count(shape: tuple[Expr, ...]) -> tuple[int, str] | None:
    """How many elements a shape of numbers has, and the numbers' dtype."""
    count = 1
    for extent in shape:
        if not isinstance(extent, IntImm) or extent.dtype != scalar_dtype(shape[0]):
            return None
        count *= extent.value
    return count, scalar_dtype(shape[0]) if shape else ""


def _is_plain(s: L.For) -> bool:
    return (
        s.kind is ForKind.SERIAL
        and not s.annotations
        and s.step is None
        and isinstance(s.min, IntImm)
        and s.min.value == 0
        and s.min.dtype == scalar_dtype(s.extent)
        and scalar_dtype(s.loop_var) == s.min.dtype
    )


def _hidden_root(body: Stmt) -> bool:
    """Whether a function's body is a root block that the text need not show."""
    if not isinstance(body, SBlockRealize):
        return False
    block = body.block
    said = block.iter_vars or block.reads or block.writes or block.annotations or block.match_buffers
    always = isinstance(body.predicate, IntImm) and body.predicate.value
    if said or block.init is not None or not always:
        return False
    return any(isinstance(n, SBlockRealize) for n in pre_order(block.body)) or bool(block.alloc_buffers)


def _lacks_root(body: Stmt) -> bool:
    """Whether a function has blocks, but not in a root block (which the parser would make)."""
    if isinstance(body, SBlockRealize) and body.block.name_hint == "root" and not body.block.iter_vars:
        return False
    return _has_blocks(body)


def _has_blocks(body: Stmt) -> bool:
    return any(isinstance(n, SBlockRealize) for n in pre_order(body))


def _defined(body: Node) -> list[Var]:
    """The scalar variables that statements and expressions below bind."""
    found: list[Var] = []
    for item in pre_order(body):
        if isinstance(item, L.For):
            found.append(item.loop_var)
        elif isinstance(item, (L.Bind, Let, L.IterVar)):
            found.append(item.var)
        elif isinstance(item, L.CommReducer):
            found += [*item.lhs, *item.rhs]
        elif isinstance(item, L.IndexMap):
            found += item.initial_indices
    return found


def _used(body: Node) -> list[Node]:
    """Every node below, the types of buffers included."""
    return list(pre_order(body))


def _is_nothing(node: Any) -> bool:
    """Whether an attribute is of no node in particular: 0 stands there."""
    return node.value == 0 if isinstance(node, IntImm) else type(node) is int and node == 0


_STATEMENTS: dict[type[Stmt], Callable[[LoopPrinter, Any], Iterator[Any]]] = {
    SeqStmt: LoopPrinter._seq,
    L.Evaluate: LoopPrinter._evaluate,
    L.Bind: LoopPrinter._bind,
    L.BufferStore: LoopPrinter._store,
    L.AllocBuffer: LoopPrinter._alloc_statement,
    L.DeclBuffer: LoopPrinter._decl_statement,
    L.For: LoopPrinter._for,
    L.While: LoopPrinter._while,
    L.IfThenElse: LoopPrinter._if,
    L.AssertStmt: LoopPrinter._assert,
    L.AttrStmt: LoopPrinter._attr,
    L.Break: LoopPrinter._break,
    L.Continue: LoopPrinter._continue,
    L.Return: LoopPrinter._return,
    SBlockRealize: LoopPrinter._realize,
}
