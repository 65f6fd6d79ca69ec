"""``R`` for building: frames and statements of graph functions. Other names are those of `supple.script.relax`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from supple.base.errors import DiagnosticError
from supple.build.block_builder import BlockBuilder
from supple.ir.expr import Call, Var
from supple.ir.graph import BindingBlock, MatchCast, SeqExpr, VarBinding
from supple.ir.node import Expr, Type, set_field
from supple.ir.op import Op
from supple.script import relax as _names
from supple.script.ir_builder.base import IRBuilder, IRBuilderFrame
from supple.script.ir_builder.ir import IRModuleFrame
from supple.script.type_forms import TypeForm


class RelaxFrame(IRBuilderFrame):
    """A frame of a graph function."""


class SeqExprFrame(RelaxFrame):
    """What holds blocks of bindings and a value: a function's body, a branch."""

    def __init__(self) -> None:
        super().__init__()
        self.output: Any = None
        self.binding_blocks: list[BindingBlock] = []


class FunctionFrame(SeqExprFrame):
    """A function that is being built."""

    def __init__(self, is_pure: bool, is_private: bool) -> None:
        super().__init__()
        self.is_pure = is_pure
        self.is_private = is_private
        self.name: str | None = None
        self.ret_ty: Type | None = None
        self.attrs: dict[str, Any] = {}
        self.params: list[Var] = []
        self.builder = BlockBuilder()

    def body(self) -> Iterator[FunctionFrame]:
        ib = IRBuilder.current()
        around = ib.find(IRModuleFrame)
        mod = None if around is None else around.module
        self.builder = BlockBuilder(mod)
        self.builder.begin_function("", (), {}, self.is_pure)
        yield self
        if self.name is None and around is not None:
            raise DiagnosticError("the function has no name", hint='R.func_name("f")', rule="ir_builder")
        title = self.name or "main"
        if self.output is None:
            raise DiagnosticError(f"the function {title} returns nothing", hint="R.func_ret_value(x)", rule="return")
        made = self.builder.end_function(self.output)
        self.binding_blocks = list(made.body.blocks)
        public = not self.is_private and self.name is not None
        made = made.with_attr({"global_symbol": title, **self.attrs} if public else self.attrs)
        if around is None:
            ib.keep(made)
            return
        for var, helper in self.builder.get().functions.items():
            if var not in around.module:
                around.module[var] = helper
        around.define(title, made)


class BindingBlockFrame(RelaxFrame):
    """A dataflow block that is being built; ``output_vars`` are its outputs, once it is closed."""

    def __init__(self, is_dataflow: bool = True) -> None:
        super().__init__()
        self.is_dataflow = is_dataflow
        self.emitted_vars: list[Var] = []
        self.output_vars: list[Var] = []

    def body(self) -> Iterator[BindingBlockFrame]:
        builder = _frame("R.dataflow").builder
        builder.begin_dataflow()
        yield self
        self.output_vars = builder.publish(self.output_vars)
        builder.end_dataflow()


class IfFrame(RelaxFrame):
    """An ``if`` that is being built; ``var`` is its value, once it is closed."""

    def __init__(self, condition: Any) -> None:
        super().__init__()
        self.condition = condition
        self.then_expr: SeqExpr | None = None
        self.else_expr: SeqExpr | None = None
        self.var: Var | None = None
        self.var_name = ""

    def body(self) -> Iterator[IfFrame]:
        builder = _frame("R.If").builder
        yield self
        if self.then_expr is None or self.else_expr is None:
            raise DiagnosticError("R.If needs R.Then and R.Else", rule="if")
        self.var = builder.emit_if(self.condition, self.then_expr, self.else_expr, self.var_name)


class _BranchFrame(SeqExprFrame):
    what = ""

    def body(self) -> Iterator[SeqExprFrame]:
        around, builder = IRBuilder.current().frame(IfFrame, self.what, "R.If(condition)"), _frame(self.what).builder
        taken = around.then_expr if isinstance(self, ThenFrame) else around.else_expr
        if taken is not None:
            raise DiagnosticError(f"the R.If has a {self.what} already", rule="if")
        builder.begin_branch()
        yield self
        last = builder.last_binding()
        if not isinstance(last, (VarBinding, MatchCast)):
            raise DiagnosticError(f"{self.what} binds nothing: its last variable is the value", rule="if")
        if around.var_name not in ("", last.var.name):
            raise DiagnosticError(
                f"the branches of R.If end with {around.var_name!r} and {last.var.name!r}",
                hint="give both values one name: IRBuilder.name(...)",
                rule="if",
            )
        around.var_name, self.output = last.var.name, last.var
        made = builder.end_branch(last.var)
        set_field(last.var, "name", f"{last.var.name}_{self.what.removeprefix('R.').lower()}")  # the if has the name
        self.binding_blocks = list(made.blocks)
        if isinstance(self, ThenFrame):
            around.then_expr = made
        else:
            around.else_expr = made


class ThenFrame(_BranchFrame):
    """The branch that is taken when the condition holds."""

    what = "R.Then"


class ElseFrame(_BranchFrame):
    """The other branch."""

    what = "R.Else"


def _frame(what: str) -> FunctionFrame:
    return IRBuilder.current().frame(FunctionFrame, what)


def _type(ty: Any) -> Any:
    return ty.as_type() if isinstance(ty, TypeForm) else ty


def _emitted(var: Var) -> Var:
    frame = IRBuilder.current().frames[-1]
    if isinstance(frame, BindingBlockFrame):
        frame.emitted_vars.append(var)
    return var


def _once(known: Any, what: str) -> None:
    if known is not None:
        raise DiagnosticError(f"{what} stands once in a function", rule="ir_builder")


def function(is_pure: bool = True, is_private: bool = False) -> FunctionFrame:
    """A graph function."""
    return FunctionFrame(is_pure, is_private)


def func_name(name: str) -> None:
    """The function's name."""
    frame = _frame("R.func_name")
    _once(frame.name, "R.func_name")
    frame.name = name


def func_attr(attrs: dict[str, Any]) -> None:
    """Attributes of the function. Raises `DiagnosticError` for one that is set already."""
    frame = _frame("R.func_attr")
    for key in attrs:
        if key in frame.attrs:
            raise DiagnosticError(f"the function has an attribute {key!r} already", rule="ir_builder")
    frame.attrs.update(attrs)


def arg(name: str, ty: Any) -> Var:
    """A parameter."""
    frame = _frame("R.arg")
    var = Var(name, _type(ty))
    frame.builder.add_param(var)
    frame.params.append(var)
    return var


def func_ret_ty(ret_ty: Any) -> None:
    """The declared return type: checked at the end."""
    frame = _frame("R.func_ret_ty")
    _once(frame.ret_ty, "R.func_ret_ty")
    frame.ret_ty = _type(ret_ty)
    frame.builder.declare_result(_type(ret_ty))


def func_ret_value(value: Any) -> None:
    """What the function returns."""
    frame = _frame("R.func_ret_value")
    _once(frame.output, "R.func_ret_value")
    frame.output = value


def emit(value: Any, annotate_ty: Any = None) -> Var:
    """Bind a value to a new variable."""
    return _emitted(_frame("R.emit").builder.emit(value, "", _type(annotate_ty)))


def emit_te(func: Any, *args: Any, **kwargs: Any) -> Call:
    """The call of a compute definition; emit it to give it a variable."""
    return _frame("R.emit_te").builder.call_te(func, *args, **kwargs)


def emit_match_cast(value: Expr, ty: Type) -> Var:
    """Bind a value with a run-time check of its type."""
    return _emitted(_frame("R.emit_match_cast").builder.match_cast(value, _type(ty)))


def emit_with_ty(op: str, args: Any, ty_args: Any = None) -> Call:
    """The call of an operator by its name, with explicit result types; emit it to give it a variable."""
    values = tuple(args.fields) if hasattr(args, "fields") else tuple(args)
    types = () if ty_args is None else (_type(ty_args),) if not isinstance(ty_args, (list, tuple)) else tuple(ty_args)
    return Call(Op.get(op), values, {}, types)


def emit_var_binding(value: VarBinding) -> Var:
    """Append a binding as it is."""
    _frame("R.emit_var_binding").builder.emit_normalized(value)
    return _emitted(value.var)


def dataflow() -> BindingBlockFrame:
    """A dataflow block."""
    return BindingBlockFrame()


def output(*variables: Var) -> None:
    """The variables of the dataflow block that are visible after it (as its frame's ``output_vars``)."""
    IRBuilder.current().frame(BindingBlockFrame, "R.output", "R.dataflow()").output_vars += variables


def If(condition: Any) -> IfFrame:
    """A branch: ``with R.If(c): with R.Then(): ...; with R.Else(): ...``; the last variable of each is the value."""
    return IfFrame(condition)


def Then() -> ThenFrame:
    """The branch that is taken when the condition holds."""
    return ThenFrame()


def Else() -> ElseFrame:
    """The other branch."""
    return ElseFrame()


emit_with_type, func_ret_type = emit_with_ty, func_ret_ty


def __getattr__(name: str) -> Any:
    return getattr(_names, name)
