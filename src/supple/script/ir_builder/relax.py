"""``R`` for building: frames and statements of graph functions. Other names are those of `supple.script.relax`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from supple.base.errors import DiagnosticError
from supple.build.block_builder import BlockBuilder
from supple.ir.expr import Call, Var
from supple.ir.graph import MatchCast, SeqExpr, VarBinding
from supple.ir.node import Expr, Type
from supple.ir.op import Op
from supple.script import relax as _names
from supple.script.ir_builder.base import IRBuilder
from supple.script.type_forms import TypeForm


class FunctionFrame:
    """A function that is being built."""

    def __init__(self, builder: BlockBuilder, private: bool) -> None:
        self.builder = builder
        self.private = private
        self.name: str | None = None
        self.attrs: dict[str, Any] = {}
        self.result: Any = None


class DataflowFrame:
    """A dataflow block that is being built; ``output_vars`` are its outputs, once it is closed."""

    def __init__(self) -> None:
        self.names: list[Var] = []
        self.output_vars: list[Var] = []


class IfFrame:
    """An ``if`` that is being built; ``var`` is its value, once it is closed."""

    def __init__(self) -> None:
        self.branches: list[SeqExpr] = []
        self.name = ""
        self.var: Var | None = None


def _frame(what: str) -> FunctionFrame:
    return IRBuilder.current().frame(FunctionFrame, what)


def _type(ty: Any) -> Any:
    return ty.as_type() if isinstance(ty, TypeForm) else ty


@contextmanager
def function(is_pure: bool = True, is_private: bool = False) -> Iterator[FunctionFrame]:
    """A graph function."""
    ib = IRBuilder.current()
    mod = ib.module
    frame = FunctionFrame(BlockBuilder(mod), is_private)
    frame.builder.begin_function("", (), {}, is_pure)
    with ib.opened(frame):
        yield frame
    if frame.name is None:
        raise DiagnosticError("the function has no name", hint='R.func_name("f")', rule="ir_builder")
    if frame.result is None:
        raise DiagnosticError(f"the function {frame.name} returns nothing", hint="R.func_ret_value(x)", rule="return")
    made = frame.builder.end_function(frame.result)
    attrs = frame.attrs if frame.private else {"global_symbol": frame.name, **frame.attrs}
    for var, helper in frame.builder.get().functions.items():
        if mod is not None and var not in mod:
            mod[var] = helper
    ib.finish(made.with_attr(attrs), frame.name)


def func_name(name: str) -> None:
    """The function's name."""
    _frame("R.func_name").name = name


def func_attr(attrs: dict[str, Any]) -> None:
    """Attributes of the function."""
    _frame("R.func_attr").attrs.update(attrs)


def arg(name: str, ty: Any) -> Var:
    """A parameter."""
    var = Var(name, _type(ty))
    _frame("R.arg").builder.add_param(var)
    return var


def func_ret_ty(ret_ty: Any) -> None:
    """The declared return type: checked at the end."""
    _frame("R.func_ret_ty").builder.declare_result(_type(ret_ty))


def func_ret_value(value: Any) -> None:
    """What the function returns."""
    _frame("R.func_ret_value").result = value


def emit(value: Any, annotate_ty: Any = None) -> Var:
    """Bind a value to a new variable."""
    return _frame("R.emit").builder.emit(value, "", _type(annotate_ty))


def emit_te(func: Any, *args: Any, **kwargs: Any) -> Var:
    """Bind the call of a compute definition."""
    return _frame("R.emit_te").builder.emit_te(func, *args, **kwargs)


def emit_match_cast(value: Expr, ty: Type) -> Var:
    """Bind a value with a run-time check of its type."""
    return _frame("R.emit_match_cast").builder.match_cast(value, _type(ty))


def emit_with_ty(op: str, args: Any, ty_args: Any = None) -> Call:
    """The call of an operator by its name, with explicit result types; emit it to give it a variable."""
    values = tuple(args.fields) if hasattr(args, "fields") else tuple(args)
    types = () if ty_args is None else (_type(ty_args),) if not isinstance(ty_args, (list, tuple)) else tuple(ty_args)
    return Call(Op.get(op), values, {}, types)


def emit_var_binding(value: VarBinding) -> Var:
    """Append a binding as it is."""
    _frame("R.emit_var_binding").builder.emit_normalized(value)
    return value.var


@contextmanager
def dataflow() -> Iterator[DataflowFrame]:
    """A dataflow block."""
    ib, builder = IRBuilder.current(), _frame("R.dataflow").builder
    builder.begin_dataflow()
    with ib.opened(DataflowFrame()) as frame:
        yield frame
    frame.output_vars = builder.publish(frame.names)
    builder.end_dataflow()


def output(*variables: Var) -> None:
    """The variables of the dataflow block that are visible after it (as its frame's ``output_vars``)."""
    IRBuilder.current().frame(DataflowFrame, "R.output").names += variables


@contextmanager
def If(condition: Any) -> Iterator[IfFrame]:
    """A branch: ``with R.If(c): with R.Then(): ...; with R.Else(): ...``; the last variable of each is the value."""
    ib, builder = IRBuilder.current(), _frame("R.If").builder
    with ib.opened(IfFrame()) as frame:
        yield frame
    if len(frame.branches) != 2:
        raise DiagnosticError("R.If needs R.Then and R.Else", rule="if")
    frame.var = builder.emit_if(condition, frame.branches[0], frame.branches[1], frame.name)


@contextmanager
def _branch(what: str) -> Iterator[None]:
    frame, builder = IRBuilder.current().frame(IfFrame, what), _frame(what).builder
    builder.begin_branch()
    yield
    last = builder.last_binding()
    if not isinstance(last, (VarBinding, MatchCast)):
        raise DiagnosticError(f"{what} binds nothing: its last variable is the value", rule="if")
    frame.name = last.var.name
    frame.branches.append(builder.end_branch(last.var))


def Then() -> Any:
    """The branch that is taken when the condition holds."""
    return _branch("R.Then")


def Else() -> Any:
    """The other branch."""
    return _branch("R.Else")


emit_with_type, func_ret_type = emit_with_ty, func_ret_ty


def __getattr__(name: str) -> Any:
    return getattr(_names, name)
