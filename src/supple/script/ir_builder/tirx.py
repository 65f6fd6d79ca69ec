"""``T`` for building: frames and statements of loop functions. Other names are those of `supple.script.tirx`.

Every form means here what it means to the parser: loops, blocks, axes, buffers and statements run the definitions of
`supple.script.loop_forms`. A ``with`` opens the suite that the parser would read as its indented lines.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from supple.base.errors import DiagnosticError, TypeCheckError
from supple.ir.expr import Range, Var, as_expr, const, is_buffer, scalar_dtype
from supple.ir.loop import AssertStmt, Bind, IfThenElse, PrimFunc, SeqStmt
from supple.ir.loop import While as WhileStmt
from supple.ir.node import Expr, Stmt, set_field
from supple.ir.types import PointerType, PrimType, prim_type
from supple.script import tirx as _names
from supple.script.evaluate import Environment, describe
from supple.script.forms import (
    Declaration,
    DtypeForm,
    EnvThread,
    Form,
    FormCall,
    Namespace,
    as_dtype,
    as_name,
    bind_form,
)
from supple.script.ir_builder.base import IRBuilder, IRBuilderFrame
from supple.script.ir_builder.ir import IRModuleFrame
from supple.script.ir_builder.relax import RelaxFrame
from supple.script.loop_buffers import buffer_from
from supple.script.loop_forms import (
    ASSIGNABLE,
    LOOPS,
    NAMING,
    SCOPES,
    STATEMENTS,
    VALUES,
    assertion,
    finish_scope,
    nested_loops,
    root_block,
)
from supple.script.loop_state import AsName, BlockInfo, LoopSpec, LoopState, Scope, Suite
from supple.script.source import Source

_OWN_NAME = "v"  # of variables whose name nobody gave: IRBuilder.name(...) renames them


class TIRFrame(IRBuilderFrame):
    """A frame of loop-level code; ``stmts`` are the statements built inside of it so far."""

    def __init__(self) -> None:
        super().__init__()
        self.suite = Suite()

    @property
    def stmts(self) -> list[Stmt]:
        """The statements built inside so far."""
        return self.suite.statements

    @contextmanager
    def inside(self, state: LoopState) -> Iterator[list[Stmt]]:
        """Collects the statements built inside; the list holds them, as one, afterwards."""
        state.suites.append(self.suite)
        result: list[Stmt] = []
        yield result
        result.append(state.suites.pop().joined())


class BuiltState(LoopState):
    """The state of statements that are built, of a function or outside of any."""

    def __init__(self) -> None:
        super().__init__(Source("<ir_builder>", ""), Environment())
        self.suites.append(Suite())
        self.axes: dict[int, Var] = {}  # thread axes that are variables before they are launched

    def launched_as(self, thread: Any) -> Var | None:
        return self.axes.get(id(thread))


class LooseState(BuiltState):
    """Statements outside of any function: the outermost one is the builder's result."""

    def __init__(self, builder: IRBuilder) -> None:
        super().__init__()
        self.builder = builder

    def emit(self, statement: Stmt, node: ast.AST | None = None) -> None:
        super().emit(statement, node)
        if len(self.suites) == 1:
            self.builder.keep(statement)


class PrimFuncFrame(TIRFrame, BuiltState):
    """A loop function that is being built."""

    def __init__(self, is_private: bool, s_tir: bool) -> None:
        TIRFrame.__init__(self)
        BuiltState.__init__(self)
        self.suites[0] = self.suite
        self.may_define = True  # text in a shape introduces its symbols
        self.is_private = is_private
        self.s_tir = s_tir
        self.name: str | None = None
        self.ret_type: PrimType | None = None

    def body(self) -> Iterator[PrimFuncFrame]:
        ib = IRBuilder.current()
        around = ib.find(IRModuleFrame)
        yield self
        if self.name is None and around is not None:
            raise DiagnosticError("the function has no name", hint='T.func_name("f")', rule="ir_builder")
        made = self.function()
        if around is None:
            ib.keep(made)
        else:
            around.define(str(self.name), made)

    def function(self) -> PrimFunc:
        """The function, with a root block around its blocks."""
        body = root_block(self.block, self.suites.pop().joined(), self.has_blocks)
        name = {} if self.is_private or self.name is None else {"global_symbol": self.name}
        flag = {"s_tir": True} if self.s_tir else {}
        return PrimFunc(
            tuple(self.matched.get(id(p), p) for p in self.params), body, self.ret_type, {**name, **flag, **self.attrs}
        )

    @property
    def args(self) -> list[Var]:
        """The parameters so far."""
        return self.params

    @property
    def root_alloc_buffers(self) -> list[Var]:
        """The buffers that the root block allocates."""
        return self.block.allocs


def _function(what: str) -> PrimFuncFrame:
    return IRBuilder.current().frame(PrimFuncFrame, what, "T.prim_func()")


def _state(what: str) -> BuiltState:
    """The function that is being built, or the statements outside of any."""
    ib = IRBuilder.current()
    function = ib.find(PrimFuncFrame)
    if function is not None:
        return function
    if what in _IN_BLOCKS and ib.find(SBlockFrame) is None:
        raise DiagnosticError(f"{what} stands inside of 'with T.sblock():'", rule="ir_builder")
    if ib.find(IRModuleFrame) is not None or ib.find(RelaxFrame) is not None:
        raise DiagnosticError(f"{what} stands inside of 'with T.prim_func():'", rule="ir_builder")
    if ib.loose is None:
        ib.loose = LooseState(ib)
    loose: LooseState = ib.loose
    return loose


_IN_BLOCKS = (
    "T.reads", "T.writes", "T.where", "T.init", "T.sblock_attr", "T.match_buffer", "T.sblock_alloc_buffer",
    "T.axis.spatial", "T.axis.reduce", "T.axis.scan", "T.axis.opaque", "T.axis.remap",
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------- the function


def prim_func(is_private: bool = False, s_tir: bool = False, *, private: bool | None = None) -> PrimFuncFrame:
    """A loop function: what stands inside is its body. ``s_tir`` is kept as an attribute, as on the decorator."""
    return PrimFuncFrame(is_private if private is None else private, s_tir)


def func_name(name: str) -> None:
    """The function's name."""
    frame = _function("T.func_name")
    if frame.name is not None:
        raise DiagnosticError("T.func_name stands once in a function", rule="ir_builder")
    frame.name = as_name(name, "T.func_name")


def func_ret(ret_type: Any) -> Any:
    """The type of the scalar that the function returns."""
    frame = _function("T.func_ret")
    if frame.ret_type is not None:
        raise DiagnosticError("T.func_ret stands once in a function", rule="ir_builder")
    frame.ret_type = _scalar_type(ret_type)
    return ret_type


def _scalar_type(ty: Any) -> PrimType | None:
    if ty is None or isinstance(ty, PrimType):
        return ty
    if isinstance(ty, Expr):
        return prim_type(scalar_dtype(ty))
    return prim_type(as_dtype(ty, "T.func_ret"))


def arg(name: str, obj: Any) -> Var:
    """A parameter: ``T.arg("a", T.handle())``, ``T.arg("A", T.Buffer((4,), "float32"))``, ``T.arg("n", T.int32())``."""
    state = _function("T.arg")
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
    made: Var = bind_form(call, buffer_from, _function("T.Buffer")).make("buffer", None)
    return made


buffer = Buffer


# --------------------------------------------------------------------------------------------------------------- suites


class ForFrame(TIRFrame):
    """Loops of one header: their ``vars`` and ranges (``doms``)."""

    def __init__(self, form: Form, handler: Callable[..., LoopSpec], args: Any, kwargs: Any) -> None:
        super().__init__()
        self.state = _state(form.name)
        self.spec: LoopSpec = bind_form(FormCall(form, args, kwargs), handler, self.state)
        self.vars: list[Var] = []

    @property
    def doms(self) -> list[Range]:
        """The loops' ranges."""
        return [Range(r.min, r.extent) for r in self.spec.ranges]

    def body(self) -> Iterator[Var | list[Var]]:
        with self.state.scope():
            self.vars = [self.state.loop_variable(self.spec, r, AsName(_OWN_NAME, None)) for r in self.spec.ranges]
            with self.inside(self.state) as inside:
                yield self.vars[0] if len(self.vars) == 1 else self.vars
        loops = list(zip(self.vars, self.spec.ranges, strict=True))
        self.state.emit(nested_loops(self.spec, loops, inside[0]))


class ScopeFrame(TIRFrame):
    """What encloses statements by a form of the parser: an attribute, a binding, a launched thread."""

    def __init__(self, form: Form, handler: Callable[..., Scope], args: Any, kwargs: Any) -> None:
        super().__init__()
        self.state = _state(form.name)
        self.made: Stmt | None = None
        target = AsName(_OWN_NAME, None) if form.name in NAMING else None
        self.scope: Scope = bind_form(FormCall(form, (target, *args), kwargs), handler, self.state)

    def body(self) -> Iterator[Any]:
        named = next(self.scope)
        self.entered()
        with self.inside(self.state) as inside:
            yield named
        self.left()
        self.made = finish_scope(self.scope, inside[0])
        if self.made is not None:
            self.state.emit(self.made)

    def entered(self) -> None:
        """Called when the scope is open."""

    def left(self) -> None:
        """Called before the scope's statement is made."""


class AttrFrame(ScopeFrame):
    """``T.attr``: ``node``, ``attr_key`` and ``value``."""

    def __init__(self, form: Form, handler: Callable[..., Scope], args: Any, kwargs: Any) -> None:
        super().__init__(form, handler, args, kwargs)
        bound = dict(zip(("node", "attr_key", "value"), args, strict=False)) | kwargs
        self.node, self.attr_key, self.value = (
            bound["node"],
            bound["attr_key"],
            as_expr(bound["value"], "int32" if isinstance(bound["value"], int) else None),
        )


class SBlockFrame(ScopeFrame):
    """A block. What was said of it so far: ``iter_vars``, ``reads``, ``annotations``..."""

    info: BlockInfo

    def entered(self) -> None:
        self.info = self.state.block

    def left(self) -> None:
        """Outside of a function nothing infers regions: what was not said is marked to be found later."""
        if not isinstance(self.state, LooseState):
            return
        unsaid = (self.info.reads is None) + 2 * (self.info.writes is None)
        if unsaid:
            self.info.annotations["tirx.script_parsing_detect_access"] = const(unsaid, "int64")
        self.info.reads, self.info.writes = self.info.reads or [], self.info.writes or []

    def __getattr__(self, name: str) -> Any:
        field = _BLOCK_FIELDS.get(name)
        if field is None or "info" not in self.__dict__:
            raise AttributeError(f"a block's frame has no {name!r}{'' if field is None else ' before it is entered'}")
        return getattr(self.info, field)


_BLOCK_FIELDS = {
    "name": "name", "iter_vars": "iter_vars", "iter_values": "iter_values", "reads": "reads", "writes": "writes",
    "init": "init", "alloc_buffers": "allocs", "match_buffers": "matches", "annotations": "annotations",
    "predicate": "predicate",
}  # fmt: skip


class BlockInitFrame(ScopeFrame):
    """``T.init``."""


class LetFrame(ScopeFrame):
    """``T.LetStmt``."""


class LaunchThreadFrame(ScopeFrame):
    """``T.launch_thread``."""


_SCOPE_FRAMES: dict[str, type[ScopeFrame]] = {
    "T.sblock": SBlockFrame,
    "T.init": BlockInitFrame,
    "T.attr": AttrFrame,
    "T.LetStmt": LetFrame,
    "T.launch_thread": LaunchThreadFrame,
}


def _scope(form: Form, handler: Callable[..., Scope], args: Any, kwargs: Any) -> ScopeFrame:
    return _SCOPE_FRAMES.get(form.name, ScopeFrame)(form, handler, args, kwargs)


class WhileFrame(TIRFrame):
    """A ``while``: its ``condition``."""

    def __init__(self, condition: Any) -> None:
        super().__init__()
        self.condition = _condition(condition, "T.While")

    def body(self) -> Iterator[WhileFrame]:
        state = _state("T.While")
        with state.scope(), self.inside(state) as inside:
            yield self
        state.emit(WhileStmt(self.condition, inside[0]))


def While(condition: Any) -> WhileFrame:
    """``with T.While(i < n): ...``"""
    return WhileFrame(condition)


class IfFrame(TIRFrame):
    """An ``if`` that is being built."""

    def __init__(self, condition: Any) -> None:
        super().__init__()
        self.condition = _condition(condition, "T.If")
        self.branches: dict[str, Stmt] = {}

    def body(self) -> Iterator[IfFrame]:
        state = _state("T.If")
        with state.scope(), self.inside(state):
            yield self
        if "T.Then" not in self.branches or self.stmts:
            raise DiagnosticError("T.If holds T.Then, and nothing beside the two branches", rule="if")
        state.emit(IfThenElse(self.condition, self.branches["T.Then"], self.branches.get("T.Else")))


def If(condition: Any) -> IfFrame:
    """``with T.If(c): with T.Then(): ...; with T.Else(): ...``; the second branch may be absent."""
    return IfFrame(condition)


class _BranchFrame(TIRFrame):
    what = ""

    def body(self) -> Iterator[TIRFrame]:
        frame, state = IRBuilder.current().frame(IfFrame, self.what, "T.If(condition)"), _state(self.what)
        if self.what in frame.branches:
            raise DiagnosticError(f"the T.If has a {self.what} already", rule="if")
        with state.scope(), self.inside(state) as inside:
            yield self
        frame.branches[self.what] = inside[0]


class ThenFrame(_BranchFrame):
    """The branch that is taken when the condition holds."""

    what = "T.Then"


class ElseFrame(_BranchFrame):
    """The other branch."""

    what = "T.Else"


def Then() -> ThenFrame:
    """The branch that is taken when the condition holds."""
    return ThenFrame()


def Else() -> ElseFrame:
    """The other branch."""
    return ElseFrame()


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


class AssertFrame(TIRFrame):
    """``with T.Assert(...)``: the assertion is made already; what stands inside follows it."""

    def __init__(self, made: AssertStmt) -> None:
        super().__init__()
        self.made = made
        self.condition, self.message_parts = made.condition, list(made.parts)

    def body(self) -> Iterator[AssertFrame]:
        state = _state("T.Assert")
        with self.inside(state) as inside:
            yield self
        rest = inside[0].seq if isinstance(inside[0], SeqStmt) else (inside[0],)
        made = self.made
        if isinstance(state, LooseState) and len(state.suites) == 1:
            state.emit(SeqStmt((made, *rest)) if rest else made)
            return
        for stmt in (made, *rest):
            state.emit(stmt)


def Assert(condition: Any, message: Any = "", error_kind: str = "RuntimeError") -> AssertFrame:
    """Raise with a message when a condition is false, before what stands inside: ``with T.Assert(n > 0, "n"): ...``"""
    parts = message if isinstance(message, (list, tuple)) else [message]
    return AssertFrame(assertion(_condition(condition, "T.Assert"), (error_kind, parts)))


def add_to_parent(stmt: Stmt) -> None:
    """Append a statement that is made already."""
    if not isinstance(stmt, Stmt):
        raise TypeCheckError("T.add_to_parent takes a statement", None, "a statement", describe(stmt))
    _state("T.add_to_parent").emit(stmt)


def env_thread(thread_tag: str, dtype: Any = "int32") -> Var:
    """A thread axis, as the variable that a later ``T.launch_thread(var, extent)`` runs over."""
    state = _state("T.env_thread")
    axis = EnvThread(as_name(thread_tag, "T.env_thread"), as_dtype(dtype, "T.env_thread"), _OWN_NAME)
    var = Var(_OWN_NAME, prim_type(axis.dtype))
    state.threads[id(var)] = axis
    state.axes[id(var)] = var
    return var


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
    (LOOPS, ForFrame), (SCOPES, _scope), (STATEMENTS, _statement), (VALUES, _value),
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
