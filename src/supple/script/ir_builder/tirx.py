"""``T`` for building: frames and statements of loop functions. Other names are those of `supple.script.tirx`.

Every form means here what it means to the parser: loops, blocks, axes, buffers and statements run the definitions of
`supple.script.loop_forms`. A ``with`` opens the suite that the parser would read as its indented lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from supple.base.errors import DiagnosticError, TypeCheckError
from supple.ir.expr import Var, as_expr, is_buffer, scalar_dtype
from supple.ir.loop import AssertStmt, Bind, IfThenElse, PrimFunc, SeqStmt
from supple.ir.loop import While as WhileStmt
from supple.ir.node import Expr, Stmt, set_field
from supple.ir.types import PointerType, PrimType, prim_type
from supple.script import tirx as _names
from supple.script.evaluate import Environment, describe
from supple.script.forms import (
    Declaration,
    DtypeForm,
    Form,
    FormCall,
    Namespace,
    as_dtype,
    as_name,
    bind_form,
)
from supple.script.ir_builder.base import IRBuilder
from supple.script.loop_buffers import buffer_from
from supple.script.loop_forms import (
    ASSIGNABLE,
    LOOPS,
    NAMING,
    SCOPES,
    STATEMENTS,
    VALUES,
    finish_scope,
    nested_loops,
    root_block,
)
from supple.script.loop_state import AsName, LoopSpec, LoopState, Scope, Suite
from supple.script.source import Source

_OWN_NAME = "v"  # of variables whose name nobody gave: IRBuilder.name(...) renames them


class PrimFuncFrame(LoopState):
    """A loop function that is being built."""

    def __init__(self, is_private: bool) -> None:
        super().__init__(Source("<ir_builder>", ""), Environment())
        self.may_define = True  # text in a shape introduces its symbols
        self.private = is_private
        self.name: str | None = None
        self.ret_ty: PrimType | None = None
        self.suites.append(Suite())

    def function(self) -> PrimFunc:
        """The function, with a root block around its blocks."""
        body = root_block(self.block, self.suites.pop().joined(), self.has_blocks)
        name = {} if self.private else {"global_symbol": self.name}
        return PrimFunc(
            tuple(self.matched.get(id(p), p) for p in self.params), body, self.ret_ty, {**name, **self.attrs}
        )


def _state(what: str) -> PrimFuncFrame:
    return IRBuilder.current().frame(PrimFuncFrame, what, "T.prim_func()")


# ------------------------------------------------------------------------------------------------------- the function


@contextmanager
def prim_func(is_private: bool = False, s_tir: bool = False, *, private: bool | None = None) -> Iterator[PrimFuncFrame]:
    """A loop function: what stands inside is its body. ``s_tir`` is kept as an attribute, as on the decorator."""
    ib = IRBuilder.current()
    frame = PrimFuncFrame(is_private if private is None else private)
    if s_tir:
        frame.attrs["s_tir"] = True
    with ib.opened(frame):
        yield frame
    if frame.name is None:
        raise DiagnosticError("the function has no name", hint='T.func_name("f")', rule="ir_builder")
    ib.finish(frame.function(), frame.name)


def func_name(name: str) -> None:
    """The function's name."""
    _state("T.func_name").name = as_name(name, "T.func_name")


def func_ret(ret_type: Any) -> Any:
    """The type of the scalar that the function returns."""
    _state("T.func_ret").ret_ty = _scalar_type(ret_type)
    return ret_type


def _scalar_type(ty: Any) -> PrimType | None:
    if ty is None or isinstance(ty, PrimType):
        return ty
    if isinstance(ty, Expr):
        return prim_type(scalar_dtype(ty))
    return prim_type(as_dtype(ty, "T.func_ret"))


def arg(name: str, obj: Any) -> Var:
    """A parameter: ``T.arg("a", T.handle())``, ``T.arg("A", T.Buffer((4,), "float32"))``, ``T.arg("n", T.int32())``."""
    state = _state("T.arg")
    if isinstance(obj, (PrimType, DtypeForm)):
        obj = Var(name, prim_type(as_dtype(obj, "T.arg")))
    if not isinstance(obj, Var) or not (is_buffer(obj) or isinstance(obj.ty, (PrimType, PointerType))):
        raise TypeCheckError(
            f"parameter {name!r} has a type that a loop function cannot take",
            None,
            "T.Buffer(shape, dtype), T.handle(), or a scalar such as T.int32()",
            describe(obj),
        )
    set_field(obj, "name", as_name(name, "T.arg"))
    state.params.append(obj)
    state.define(name, obj)
    return obj


def Buffer(*args: Any, **kwargs: Any) -> Var:
    """A buffer for `arg`: ``T.Buffer((n, 4), "float32")``."""
    call = FormCall(_names.Buffer, args, kwargs)
    made: Var = bind_form(call, buffer_from, _state("T.Buffer")).make("buffer", None)
    return made


buffer = Buffer


# --------------------------------------------------------------------------------------------------------------- suites


@contextmanager
def _suite(state: PrimFuncFrame) -> Iterator[list[Stmt]]:
    """Collects the statements built inside; the list holds them, as one, afterwards."""
    state.suites.append(Suite())
    result: list[Stmt] = []
    yield result
    result.append(state.suites.pop().joined())


@contextmanager
def _loops(form: Form, handler: Callable[..., LoopSpec], args: Any, kwargs: Any) -> Iterator[Any]:
    state = _state(form.name)
    spec: LoopSpec = bind_form(FormCall(form, args, kwargs), handler, state)
    with state.scope():
        loops = [(state.loop_variable(spec, r, AsName(_OWN_NAME, None)), r) for r in spec.ranges]
        with _suite(state) as inside:
            variables = [var for var, _ in loops]
            yield variables[0] if len(variables) == 1 else variables
    state.emit(nested_loops(spec, loops, inside[0]))


@contextmanager
def _scope(form: Form, handler: Callable[..., Scope], args: Any, kwargs: Any) -> Iterator[Var | None]:
    state = _state(form.name)
    target = AsName(_OWN_NAME, None) if form.name in NAMING else None
    scope: Scope = bind_form(FormCall(form, (target, *args), kwargs), handler, state)
    named = next(scope)
    with _suite(state) as inside:
        yield named
    made = finish_scope(scope, inside[0])
    if made is not None:
        state.emit(made)


@contextmanager
def While(condition: Any) -> Iterator[None]:
    """``with T.While(i < n): ...``"""
    state = _state("T.While")
    test = _condition(condition, "T.While")
    with state.scope(), _suite(state) as inside:
        yield
    state.emit(WhileStmt(test, inside[0]))


class IfFrame:
    """An ``if`` that is being built."""

    def __init__(self) -> None:
        self.branches: dict[str, Stmt] = {}


@contextmanager
def If(condition: Any) -> Iterator[IfFrame]:
    """``with T.If(c): with T.Then(): ...; with T.Else(): ...``; the second branch may be absent."""
    state, ib = _state("T.If"), IRBuilder.current()
    test = _condition(condition, "T.If")
    with ib.opened(IfFrame()) as frame, state.scope(), _suite(state) as inside:
        yield frame
    if "then" not in frame.branches or not (isinstance(inside[0], SeqStmt) and not inside[0].seq):
        raise DiagnosticError("T.If holds T.Then, and nothing beside the two branches", rule="if")
    state.emit(IfThenElse(test, frame.branches["then"], frame.branches.get("else")))


@contextmanager
def _branch(what: str, key: str) -> Iterator[None]:
    state, frame = _state(what), IRBuilder.current().frame(IfFrame, what)
    if key in frame.branches:
        raise DiagnosticError(f"the T.If has a {what} already", rule="if")
    with state.scope(), _suite(state) as inside:
        yield
    frame.branches[key] = inside[0]


def Then() -> AbstractContextManager[None]:
    """The branch that is taken when the condition holds."""
    return _branch("T.Then", "then")


def Else() -> AbstractContextManager[None]:
    """The other branch."""
    return _branch("T.Else", "else")


def _condition(value: Any, what: str) -> Expr:
    given = as_expr(value)
    if not scalar_dtype(given).startswith("bool"):
        raise TypeCheckError(f"{what} takes a bool", None, "bool", scalar_dtype(given))
    return given


# ----------------------------------------------------------------------------------------------------------- statements


def bind(value: Any, type_annotation: Any = None, *, var: Var | None = None) -> Var:
    """A name for a scalar in the statements that follow."""
    state = _state("T.bind")
    call = FormCall(_names.bind, (value, type_annotation), {})
    made: Expr = bind_form(call, ASSIGNABLE["T.bind"], state)
    name = Var(_OWN_NAME, prim_type(scalar_dtype(made))) if var is None else var
    state.emit(Bind(name, made))
    return name


def Assert(condition: Any, message: Any = "", error_kind: str = "RuntimeError") -> AbstractContextManager[None]:
    """Raise with a message when a condition is false. As ``with T.Assert(...):`` it reads the same."""
    text = "".join(as_name(part, "T.Assert") for part in message) if isinstance(message, (list, tuple)) else message
    _state("T.Assert").emit(AssertStmt(_condition(condition, "T.Assert"), as_name(text, "T.Assert")))
    return nullcontext()


def add_to_parent(stmt: Stmt) -> None:
    """Append a statement that is made already."""
    if not isinstance(stmt, Stmt):
        raise TypeCheckError("T.add_to_parent takes a statement", None, "a statement", describe(stmt))
    _state("T.add_to_parent").emit(stmt)


def _declared(value: Any) -> Any:
    """The variables of a declaration: they have no name of their own yet."""
    if isinstance(value, list):
        return [_declared(v) for v in value]
    return value.make(_OWN_NAME, None) if isinstance(value, Declaration) else value


def _statement(form: Form, handler: Callable[..., Stmt | None], args: Any, kwargs: Any) -> None:
    state = _state(form.name)
    made: Stmt | None = bind_form(FormCall(form, args, kwargs), handler, state)
    if made is not None:
        state.emit(made)


def _value(form: Form, handler: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    return _declared(bind_form(FormCall(form, args, kwargs), handler, _state(form.name)))


_WAYS: tuple[tuple[dict[str, Callable[..., Any]], Callable[..., Any]], ...] = (
    (LOOPS, _loops), (SCOPES, _scope), (STATEMENTS, _statement), (VALUES, _value),
)  # fmt: skip


class _Built:
    """A form of the parser as a function of the builder."""

    def __init__(self, form: Form, run: Callable[..., Any], handler: Callable[..., Any]) -> None:
        self.__doc__ = form.doc
        self.form, self.run, self.handler = form, run, handler

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.run(self.form, self.handler, args, kwargs)

    def __repr__(self) -> str:
        return self.form.name


def _built(value: Any) -> Any:
    if isinstance(value, Form) and not isinstance(value, DtypeForm):
        for handlers, run in _WAYS:
            if value.name in handlers:
                return _Built(value, run, handlers[value.name])
    return value


class _Axis(Namespace):
    """``T.axis``: iteration variables of a block."""

    def __getattr__(self, name: str) -> Any:
        return _built(getattr(_names.axis, name))


axis = _Axis()


def __getattr__(name: str) -> Any:
    return _built(getattr(_names, name))
