"""Graph functions as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from supple.ir import graph as G
from supple.ir.expr import Call, DataflowVar, TupleGetItem, Var
from supple.ir.graph import BindingBlock, DataflowBlock, Function, GlobalVar, SeqExpr
from supple.ir.loop import IndexMap
from supple.ir.node import Expr, Type
from supple.ir.op import Op, RelaxText
from supple.ir.print_lines import LinePrinter
from supple.ir.print_names import quote
from supple.ir.print_style import PrintOptions
from supple.ir.structural import structural_equal
from supple.ir.types import PrimType, TupleType
from supple.ir.walk import pre_order


class GraphPrinter(LinePrinter):
    """Prints graph functions and bindings."""

    def __init__(self, options: PrintOptions | None = None) -> None:
        super().__init__(options)
        self.int_dtype = self.style.graph_ints
        self._declared: set[int] = set()
        self._used: set[int] = set()  # variables without a value to speak of that are used nevertheless

    def function(self, func: Function, name: str, given_name: str | None = None) -> None:
        """``@R.function`` and ``def``; ``given_name`` is the module's name for it when that is no identifier."""
        self.names.open_scope()
        options = []
        if given_name is not None:
            options.append(f"name={quote(given_name)}")
        said = [("private=True", "global_symbol" not in func.attrs), ("pure=False", not func.is_pure)]
        options += [text for text, holds in (reversed(said) if self.style.pure_first else said) if holds]
        self._header(func, name, options)
        self.indent += 1
        shown = {k: v for k, v in func.attrs.items() if not (k == "global_symbol" and v == (given_name or name))}
        if shown:
            self.line(f"R.func_attr({self.step(self.attr(shown), func, 'attrs')})")
        called = [n for n in pre_order(func.body) if isinstance(n, GlobalVar)]
        alias = self.options.module_alias
        if alias and any(n.name_hint in self.functions or not self.style.declare_free for n in called):
            self.line(f"{alias} = {self.module or 'Module'}")
        self._body(func)
        self.indent -= 1
        self.names.close_scope()

    def _body(self, func: Function) -> None:
        self._used |= _used_units(func.body) if self.style.calls_stand_alone else set()
        symbols = self._body_symbols(func) if not self.style.declare_free else []
        start, before = len(self.lines), self.printed
        self.printed = set()
        self.statement()  # here what is free is declared
        self.sequence(func.body)
        outer, self.owner = self.owner, func.body
        self.line(f"return {self.value(func.body.body)}")
        self.owner = outer
        self.declare([s for s in symbols if id(s) in self.printed], start)
        self.printed |= before

    def _header(self, func: Function, name: str, options: list[str]) -> None:
        self.line(f"@R.function({', '.join(options)})" if options else "@R.function")
        for param in func.params:
            if isinstance(param.ty, PrimType):
                self.names.define(param)
        self.declare_types([*(p.ty for p in func.params), func.ret_ty], func.params)
        self.quoted = True
        types = []
        for param in func.params:
            types.append((param, self.type(param.ty)))
            if self.style.type_variables and isinstance(param.ty, PrimType):
                self.in_sight.add(id(param))
                self.parameters.add(id(param))
        params = [f"{self.names.get(param)}: {text}" for param, text in types]
        result = f" -> {self.type(func.ret_ty)}" if func.ret_ty is not None else ""
        self.quoted = False
        self.signature(name, params, result)

    def _body_symbols(self, func: Function) -> list[Var]:
        """Symbols that the body may mention, apart from scalar parameters and scalar bindings; they get names."""
        bound = {id(p) for p in func.params}
        found: dict[int, Var] = {}
        for item in pre_order(func.body):
            if isinstance(item, (G.VarBinding, G.MatchCast)):
                bound.add(id(item.var))
            elif isinstance(item, Function):
                bound.update(id(p) for p in item.params)
            elif isinstance(item, IndexMap):  # an attribute that writes its own variables down
                bound.update(id(v) for v in item.initial_indices)
        for item in pre_order(func.body):
            if isinstance(item, Var) and isinstance(item.ty, PrimType) and id(item) not in bound:
                found.setdefault(id(item), item)
        symbols = [v for v in found.values() if id(v) not in self._declared]
        self._declared |= set(found)
        for symbol in symbols:
            self.names.get(symbol)
        return symbols

    # ----------------------------------------------------------------------------------------------------- bindings

    def sequence(self, body: Expr) -> None:
        """The blocks of a sequence."""
        if not isinstance(body, SeqExpr):
            return
        previous: BindingBlock | None = None
        for block in body.blocks:
            if isinstance(block, DataflowBlock):
                self._dataflow(block)
            elif not block.bindings and self.style.declare_free:
                continue  # Relax's layout has no text for it
            elif not block.bindings or (previous is not None and not isinstance(previous, DataflowBlock)):
                self.line("with R.seq():")  # otherwise it would be one block with the one before
                self.indent += 1
                for binding in block.bindings:
                    self.binding(binding)
                if not block.bindings:
                    self.line("pass")
                self.indent -= 1
            else:
                for binding in block.bindings:
                    self.binding(binding)
            previous = block

    def _dataflow(self, block: DataflowBlock) -> None:
        start = len(self.lines)
        self.line("with R.dataflow():")
        self.indent += 1
        for binding in block.bindings:
            self.binding(binding)
        outputs = []
        for binding in block.bindings:
            assert isinstance(binding, (G.VarBinding, G.MatchCast))
            if not isinstance(binding.var, DataflowVar):
                outer, self.owner = self.owner, binding
                outputs.append(self.marked(self.names.get(binding.var), binding.var))
                self.owner = outer
        self.line(f"R.output({', '.join(outputs)})")
        self.indent -= 1
        self.mark_lines(start, block)

    def binding(self, binding: G.Binding) -> None:
        """One binding."""
        start, outer, self.owner = len(self.lines), self.owner, binding
        self._binding(binding)
        self.owner = outer
        self.mark_lines(start, binding)

    def _binding(self, binding: G.Binding) -> None:
        if isinstance(binding, G.MatchCast):
            value = self.value(binding.value)
            ty = self.type(binding.ty)
            said = self.style.annotate_all and self.options.show_all_ty
            annotation = f": {self.type(binding.var.ty)}" if said else ""
            self.line(f"{self.names.define(binding.var)}{annotation} = R.match_cast({value}, {ty})")
        elif isinstance(binding, G.VarBinding):
            if isinstance(binding.value, G.If):
                self._if(binding.var, binding.value)
            elif isinstance(binding.value, Function):
                self.function_value(binding.var, binding.value)
            elif self._stands_alone(binding):
                self.line(self.value(binding.value))
            else:
                text = self._bare(binding.value, self.value(binding.value))
                annotation = self._annotation(binding.var, binding.value)
                self.line(f"{self.names.define(binding.var)}{annotation} = {text}")
        else:
            self.line(f"<{type(binding).__name__}>")

    def _bare(self, value: Expr, text: str) -> str:
        """The text of a value that is bound: a tuple without parentheses, if the style has it so."""
        bare = self.style.bare_tuples and isinstance(value, G.Tuple) and len(value.fields) > 1
        return text[1:-1] if bare else text

    def _stands_alone(self, binding: G.VarBinding) -> bool:
        """Whether a binding is written as its value alone: the result is nothing, and nothing uses it."""
        unit = isinstance(binding.var.ty, TupleType) and not binding.var.ty.fields
        return self.style.calls_stand_alone and self.options.syntax_sugar and unit and id(binding.var) not in self._used

    def _annotation(self, var: Var, value: Expr) -> str:
        """The variable's type: where it is not the one that is deduced, or wherever the style says types."""
        deduced: Type | None = getattr(value, "ty", None)
        said = _says_type(value)
        if self.style.annotate_all and said and deduced is None:
            return ""
        shown = self.style.annotate_all and not said and (self.options.show_all_ty or not _is_plain(value))
        if shown and var.ty is not None:
            return f": {self.type(var.ty)}"
        if var.ty is None or (deduced is not None and structural_equal(var.ty, deduced)):
            return ""
        return f": {self.type(var.ty)}"

    def function_value(self, var: Var, func: Function) -> None:
        """A local function."""
        if self.style.local_header:
            self.line(self.style.local_header)
            self.lines.append("    " * self.indent)
        name = self.names.define(var)
        self.names.open_scope()
        self.open_frame()
        self._header(func, name, ["pure=False"] if not func.is_pure else [])
        self.indent += 1
        if func.attrs:
            self.line(f"R.func_attr({self.attr(func.attrs)})")
        self._body(func)
        self.indent -= 1
        self.names.close_scope()
        self.frames.pop()
        if self.style.local_header:
            self.line()

    def _if(self, var: Var, value: G.If) -> None:
        condition = self.expr(value.cond)
        name = self.names.define(var)
        self._branches(value, condition, lambda: f"{name}{self._annotation(var, value)} = ")

    def conditional(self, value: G.If) -> None:
        """A conditional by itself."""
        if not self.style.declare_free:
            self.line(f"<if {self.expr(value.cond)}>")
            return
        self._branches(value, self.expr(value.cond), lambda: "")

    def _branches(self, value: G.If, condition: str, target: Callable[[], str]) -> None:
        for header, branch in ((f"if {condition}:", value.true_branch), ("else:", value.false_branch)):
            self.line(header)
            self.indent += 1
            self.names.open_scope()
            self.open_frame()
            self.sequence(branch)
            result = branch.body if isinstance(branch, SeqExpr) else branch
            outer, self.owner = self.owner, branch
            text = self.value(result)
            self.owner = outer
            bound = target()
            self.line(f"{bound}{self._bare(result, text) if bound else text}")
            self.frames.pop()
            self.names.close_scope()
            self.indent -= 1


def _says_type(value: Expr) -> bool:
    """Whether a value says its type itself."""
    if not (isinstance(value, Call) and isinstance(value.op, Op)):
        return False
    return bool(value.op.facts.get("relax_text", RelaxText()).says_type)


def _is_plain(value: Expr) -> bool:
    """Whether a value's type is seen from its operands."""
    return isinstance(value, (Var, G.Tuple, TupleGetItem)) or (isinstance(value, Call) and isinstance(value.op, Op))


def _used_units(body: Expr) -> set[int]:
    """The variables of a body that hold nothing (the empty tuple) and are used."""
    bound = {id(n.var): n for n in pre_order(body) if isinstance(n, (G.VarBinding, G.MatchCast))}
    used: set[int] = set()
    for item in pre_order(body):
        value: Any = None
        if isinstance(item, (G.VarBinding, G.MatchCast)):
            value = item.value
        elif isinstance(item, SeqExpr):
            value = item.body
        elif isinstance(item, G.If):
            value = item.cond
        if value is not None and not isinstance(value, (G.If, Function, SeqExpr)):  # whose parts come by themselves
            used.update(id(n) for n in pre_order(value) if id(n) in bound)
    return used
