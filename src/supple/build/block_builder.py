"""BlockBuilder: builds graph functions in A-normal form, deducing every type as it emits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from supple.base.errors import ComputeError, DiagnosticError, InternalError, TypeCheckError
from supple.base.source import Span
from supple.build.index_types import IndexTypes, sizes_are_wide
from supple.build.infer import infer
from supple.build.normal_form import NESTED, Normalizer, castable, is_leaf
from supple.build.te import TensorValue, as_placeholders
from supple.build.te_functions import create_prim_func
from supple.ir.conventions import conventions
from supple.ir.expr import Call, DataflowVar, Var, is_scalar, place_of_use, scalar_dtype
from supple.ir.graph import (
    Binding,
    BindingBlock,
    DataflowBlock,
    Function,
    GlobalVar,
    If,
    MatchCast,
    SeqExpr,
    ShapeExpr,
    Tuple,
    VarBinding,
)
from supple.ir.loop import PrimFunc
from supple.ir.module import BaseFunc, IRModule
from supple.ir.node import Expr, Type, replace, set_field
from supple.ir.op import Op
from supple.ir.structural import structural_equal, structural_hash
from supple.ir.types import TensorType, declared_type, result_types
from supple.ir.walk import free_symbols, substitute
from supple.sym.relate import assignable, defined_symbols, erase, may_be_condition


def _symbols_of(params: Sequence[Var]) -> list[Var]:
    """What parameters define for the types in a function: the symbols of their shapes, and the scalars themselves."""
    return [*defined_symbols(p.ty for p in params), *(p for p in params if is_scalar(p))]


@dataclass
class _Scope:
    """The blocks of one SeqExpr while they are built."""

    blocks: list[BindingBlock] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)
    dataflow: bool = False
    bound: dict[int, tuple[Expr, Expr]] = field(default_factory=dict)  # operands, by identity, with their variables

    def close_block(self) -> BindingBlock | None:
        """End the block that is open; the block, or None where nothing was bound."""
        self.bound = {}
        if not self.bindings:
            return None
        kind = DataflowBlock if self.dataflow else BindingBlock
        self.blocks.append(kind(tuple(self.bindings), span=self.bindings[0].span))
        self.bindings = []
        return self.blocks[-1]


@dataclass
class _Frame:
    """One function while it is built."""

    name: str
    params: tuple[Var, ...]
    attrs: dict[str, Any]
    is_pure: bool
    ret_ty: Type | None
    span: Span | None
    scopes: list[_Scope] = field(default_factory=lambda: [_Scope()])
    symbols: list[Var] = field(default_factory=list)
    needs_params: bool = False  # whether emit_func_output has to say them
    loose: bool = False  # a scope without a function
    counters: dict[str, int] = field(default_factory=dict)


class BlockBuilder(Normalizer):
    """Builds functions and modules::

        bb = BlockBuilder()
        with bb.function("main", [x, w]):
            with bb.dataflow():
                lv = bb.emit(matmul(x, w))
                gv = bb.emit_output(lv)
            bb.emit_func_output(gv)
        mod = bb.finalize()

    Every emitted expression is put into A-normal form (nested calls are bound to variables first) and its type is
    deduced; an operand that does not fit raises `TypeCheckError`.
    """

    _entered: ClassVar[list[BlockBuilder]] = []

    @staticmethod
    def current() -> BlockBuilder | None:
        """The builder whose function is being built, inside of ``with bb.function(...)``; None outside of any."""
        return BlockBuilder._entered[-1] if BlockBuilder._entered else None

    def __init__(self, mod: IRModule | None = None) -> None:
        self._mod = mod.clone() if mod is not None else IRModule()
        self._frames: list[_Frame] = []
        self._bindings: dict[int, tuple[Var, Expr]] = {}
        self._functions: dict[int, list[GlobalVar]] = {}  # by structural hash
        self._counters: dict[str, int] = {}  # of values without a name: a second function goes on counting
        self._names: dict[str, int] = {}
        self.names_as_written = False  # a program that is read: no name is changed, and each function counts alone
        self.counts_named = False  # whether values with a name of their own count where the others are numbered
        for known, func in self._mod.items():
            self._names[known.name_hint] = 0
            if isinstance(func, PrimFunc) and "global_symbol" not in func.attrs:
                self._functions.setdefault(structural_hash(func), []).append(known)

    # ------------------------------------------------------------------------------------------------------ functions

    @contextmanager
    def function(
        self,
        name: str,
        params: Sequence[Var] | Var | None = None,
        attrs: Mapping[str, Any] | None = None,
        pure: bool = True,
        private: bool = False,
    ) -> Iterator[None]:
        """The body of a function that is added to the module. Call `emit_func_output` last, inside."""
        given = () if params is None else _parameters(params)
        all_attrs = dict(attrs or {}) if private else {"global_symbol": name, **(attrs or {})}
        depth = len(self._frames)
        self.begin_function(name, given, all_attrs, is_pure=pure)
        self._frames[-1].needs_params = params is None
        BlockBuilder._entered.append(self)
        try:
            yield
        except BaseException:
            del self._frames[depth:]
            raise
        finally:
            BlockBuilder._entered.pop()
        if len(self._frames) != depth:
            del self._frames[depth:]
            raise DiagnosticError(
                f"the function {name} returns nothing", hint="call bb.emit_func_output(value) at its end", rule="return"
            )

    def begin_function(
        self,
        name: str,
        params: Sequence[Var],
        attrs: Mapping[str, Any] | None = None,
        is_pure: bool = True,
        ret_ty: Type | None = None,
        span: Span | None = None,
    ) -> None:
        """Start a function. ``ret_ty`` is the declared return type, checked at the end."""
        frame = _Frame(name, tuple(params), dict(attrs or {}), is_pure, ret_ty, span)
        outer = self._frames[-1].symbols if self._frames else []
        frame.symbols = [*outer, *_symbols_of(frame.params)]
        if not self._frames:  # as in Relax, where a function inside another counts from the start
            frame.counters = self._counters
        self._frames.append(frame)

    def end_function(self, value: Any, span: Span | None = None) -> Function:
        """Finish the innermost function with its return value; checks the declared return type."""
        frame = self._frame()
        if len(frame.scopes) != 1:
            raise InternalError("end_function: a branch or dataflow block is still open")
        if frame.scopes[0].dataflow:
            raise DiagnosticError(
                "return inside a dataflow block", span=span, hint="return after the block", rule="return"
            )
        body = self._finish_scope(value, span)
        deduced = infer(body)
        scope_symbols = _symbols_of(frame.params)
        for outer in self._frames[:-1]:
            scope_symbols += outer.symbols
        ret_ty = erase(deduced, scope_symbols)
        if frame.ret_ty is not None:
            _check_declared(
                deduced, frame.ret_ty, f"{frame.name}: the returned value", span or frame.span, "return type"
            )
            if assignable(ret_ty, frame.ret_ty) is not True:  # else what the body says is at least as exact
                ret_ty = frame.ret_ty
        self._frames.pop()
        return Function(frame.params, body, ret_ty, frame.is_pure, frame.attrs, span=frame.span)

    def emit_func_output(self, output: Any, params: Sequence[Var] | Var | None = None) -> GlobalVar:
        """Return ``output`` from the innermost function and add the function to the module.

        ``params`` are the function's parameters where ``bb.function(name)`` was not given them.
        """
        frame = self._frame()
        if (params is None) == frame.needs_params:
            said = "no parameters" if frame.needs_params else "its parameters twice"
            raise DiagnosticError(
                f"the function {frame.name} was given {said}",
                hint="bb.function(name, params), or bb.emit_func_output(value, params)",
                rule="return",
            )
        if params is not None:
            frame.params = _parameters(params)
            frame.symbols += defined_symbols(p.ty for p in frame.params)
        func = self.end_function(output)
        return self.add_func(func, frame.name)

    def add_func(self, func: BaseFunc, func_name: str) -> GlobalVar:
        """Add a function under its name, or under ``name1``, ``name2``... when it is taken.

        A function that is there already, under any name, is not added again: the variable of the first is returned.
        """
        key = structural_hash(func)
        for var in self._functions.get(key, []):
            if var in self._mod and structural_equal(self._mod[var], func):
                return var
        unique, counter = func_name, 0
        while unique in self._mod:
            counter += 1
            unique = f"{func_name}{counter}"
        ty = func.ty if isinstance(func, Function) else None
        var = GlobalVar(unique, ty)
        self._names.setdefault(unique, 0)
        if isinstance(func, Function) and "global_symbol" in func.attrs and unique != func_name:
            func = func.with_attr("global_symbol", unique)
        self._mod[var] = func
        self._functions.setdefault(key, []).append(var)
        return var

    def update_func(self, gv: GlobalVar, updated_func: BaseFunc) -> None:
        """Replace a function of the module."""
        self._mod[gv] = updated_func
        self._functions.setdefault(structural_hash(updated_func), []).append(gv)

    def get(self) -> IRModule:
        """The module built so far."""
        return self._mod.clone()

    finalize = get

    # ---------------------------------------------------------------------------------------------------------- blocks

    @contextmanager
    def dataflow(self) -> Iterator[None]:
        """A dataflow block around what is emitted inside."""
        self.begin_dataflow()
        yield
        self.end_dataflow()

    def begin_dataflow(self) -> None:
        """Start a dataflow block."""
        scope = self._scope()
        if scope.dataflow:
            raise DiagnosticError("a dataflow block cannot hold another", rule="dataflow")
        scope.close_block()
        scope.dataflow = True

    def end_dataflow(self) -> None:
        """End the dataflow block."""
        scope = self._scope()
        if not scope.dataflow:
            raise InternalError("end_dataflow without begin_dataflow")
        scope.close_block()
        scope.dataflow = False

    def begin_branch(self) -> None:
        """Start the body of a branch."""
        if not self._frames:  # a branch by itself, in a mutator
            self._frames.append(_Frame("", (), {}, True, None, None, scopes=[], loose=True))
        self._frame().scopes.append(_Scope())

    def end_branch(self, value: Any, span: Span | None = None) -> SeqExpr:
        """Finish a branch with its value."""
        if not self._frames or len(self._frame().scopes) < 2 - self._frame().loose:
            raise InternalError("end_branch without begin_branch")
        body = self._finish_scope(value, span)
        self._frame().scopes.pop()
        if not self._frame().scopes:
            self._frames.pop()
        return body

    def begin_scope(self, params: Sequence[Var] | None = None) -> None:
        """Start a scope of its own, where ``params`` and the symbols of their types are known."""
        known = _symbols_of(params or ())
        self._frames.append(_Frame("", tuple(params or ()), {}, True, None, None, symbols=known, loose=True))

    def end_scope(self) -> None:
        """Leave the scope that `begin_scope` started; what was emitted there is dropped."""
        if not self._frames or not self._frames[-1].loose:
            raise InternalError("end_scope without begin_scope")
        self._frames.pop()

    @contextmanager
    def testing_scope(self, def_vars: Sequence[Var]) -> Iterator[None]:
        """A scope where the given symbols are known, to emit into without a function."""
        self.begin_scope()
        self._frame().symbols += list(def_vars)
        try:
            yield
        finally:
            self.end_scope()

    def current_block_is_dataflow(self) -> bool:
        """Whether what is emitted now is part of a dataflow block."""
        return self._scope().dataflow

    def get_unique_name(self, name_prefix: str) -> str:
        """A name that this builder has not given before: ``a``, ``a1``, ``a2``..."""
        name_prefix = name_prefix.replace(".", "_") or "v"
        name = name_prefix
        while name in self._names:
            self._names[name_prefix] += 1
            name = f"{name_prefix}{self._names[name_prefix]}"
        self._names[name] = 0
        return name

    def _begin_binding_block(self) -> None:
        """Relax's name for the start of a block that a mutator rebuilds."""
        if not self._frames:
            self.begin_scope()
        self._scope().close_block()

    def _begin_dataflow_block(self) -> None:
        """Relax's name for `begin_dataflow`."""
        if not self._frames:
            self.begin_scope()
        self.begin_dataflow()

    def _end_block(self) -> BindingBlock:
        """Relax's name for the end of the block that is open: the block, an empty one where nothing was bound."""
        scope = self._scope()
        kind = DataflowBlock if scope.dataflow else BindingBlock
        made = scope.close_block()
        scope.dataflow = False
        return kind(()) if made is None else made

    def keep_block(self, block: BindingBlock | None) -> None:
        """Append a block that was made elsewhere to the innermost scope; nothing for None or one that is there."""
        scope = self._scope()
        if block is not None and block.bindings and not any(b is block for b in scope.blocks):
            scope.close_block()
            scope.blocks.append(block)

    def _finish_scope(self, value: Any, span: Span | None) -> SeqExpr:
        if isinstance(value, SeqExpr):  # a body that is complete: what else was emitted comes before it
            whole = self.normal_sequence(value)
            scope = self._scope()
            scope.close_block()
            own = {id(b) for b in whole.blocks}
            before = [b for b in scope.blocks if id(b) not in own]
            blocks = _joined([*before, *whole.blocks])
            return whole if len(blocks) == len(whole.blocks) and not before else replace(whole, blocks=blocks)
        result = self.normalize(value)
        if not isinstance(result, (Var, Tuple)) and not is_leaf(result):
            result = self.emit(result, span=span)
        scope = self._scope()
        scope.close_block()
        return SeqExpr(_joined(scope.blocks), result, span=span)

    # ------------------------------------------------------------------------------------------------------- bindings

    def emit(
        self,
        expr: Any,
        name_hint: str = "",
        annotation: Type | None = None,
        output: bool | None = None,
        span: Span | None = None,
        exact: bool = False,
    ) -> Var:
        """Bind an expression to a new variable and return it.

        ``name_hint`` gets a number where this builder has given the name before; with ``exact`` it is taken as it is.
        ``annotation`` is a declared type: checked, and taken for the variable's type. In a dataflow block the
        variable is a `DataflowVar` unless ``output`` is true.
        """
        value = self.normalize(expr)
        if isinstance(value, SeqExpr):
            value = self.flatten(value)
        ty = infer(value)
        if annotation is not None:
            _check_declared(ty, annotation, name_hint or "the value", span or value.span, "annotation")
            ty = annotation
        var = self._new_var(name_hint, ty, output, span, exact)
        self._append(VarBinding(var, value, span=span or value.span))
        return var

    def emit_output(self, output: Any, name_hint: str = "") -> Var:
        """Bind an expression to a variable that is visible after the dataflow block."""
        if not self._scope().dataflow:
            raise DiagnosticError("emit_output is for dataflow blocks", hint="use emit outside", rule="dataflow")
        return self.emit(output, name_hint, output=True)

    def match_cast(
        self,
        expr: Any,
        ty: Type,
        name_hint: str = "",
        output: bool | None = None,
        span: Span | None = None,
        exact: bool = False,
    ) -> Var:
        """Bind a value with a run-time check of its type, which may introduce symbols."""
        value = self.cast_operand(expr, ty, span)
        self._know_symbols(ty)
        var = self._new_var(name_hint, ty, output, span, exact)
        self._append(MatchCast(var, value, ty, span=span))
        return var

    def cast_operand(self, expr: Any, ty: Type, span: Span | None = None) -> Expr:
        """What ``R.match_cast`` of an expression checks: its normal form. Raises `TypeCheckError` for a check that
        never holds."""
        value = self.normalize(expr)
        if not castable(value):
            value = self.emit(value, span=span)
        if assignable(infer(value), erase(ty, self._frame().symbols)) is False:
            raise TypeCheckError(
                "match_cast never holds", span=span, expected=str(ty), actual=str(infer(value)), rule="match_cast"
            )
        return value

    def emit_if(
        self,
        cond: Any,
        true_branch: SeqExpr,
        false_branch: SeqExpr,
        name_hint: str = "",
        span: Span | None = None,
        annotation: Type | None = None,
    ) -> Var:
        """Bind the value of a branch; ``annotation`` is the declared type of the result."""
        condition = self.normalize(cond)
        if isinstance(condition, NESTED):
            condition = self.emit(condition, span=span)
        check_condition(condition, span)
        made = If(condition, true_branch, false_branch, span=span)
        return self.emit(made, name_hint, annotation, span=span, exact=True)

    def lookup_binding(self, var: Var) -> Expr | None:
        """The expression bound to a variable of this builder, or None."""
        entry = self._bindings.get(id(var))
        return entry[1] if entry is not None else None

    def call_te(
        self,
        func: Callable[..., Any],
        *args: Any,
        primfunc_name_hint: str = "",
        primfunc_attrs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Call:
        """The ``call_tir`` of a compute definition ``func(*args, **kwargs)``; the loop function is added.

        Tensors among the arguments, in lists, tuples and mappings too, reach ``func`` as te placeholders.
        ``primfunc_attrs`` become attributes of the loop function. Raises ``TypeError`` for a tensor of unknown shape,
        or when ``func`` returns anything else than te tensors.
        """
        (positional, named), inputs = as_placeholders([list(args), kwargs])
        result = func(*positional, **named)
        outputs = list(result) if isinstance(result, (list, tuple)) else [result]
        for output in outputs:
            if not isinstance(output, TensorValue):
                raise ComputeError(f"a compute definition returns te tensors, got {type(output).__name__}")
        if not sizes_are_wide(outputs):  # the graph's sizes are int64, whatever a program wrote in its formulas
            outputs = IndexTypes("int64").outputs(outputs, [t for t, _ in inputs])
        size_dtypes = () if conventions().passes_scalars else ("int64",)
        prim, symbols = create_prim_func([t for t, _ in inputs], outputs, size_dtypes=size_dtypes)
        name = primfunc_name_hint or getattr(func, "__name__", "") or "te_func"
        if primfunc_attrs:
            prim = prim.with_attr(dict(primfunc_attrs))
        var = self.add_func(prim, name if name.isidentifier() else "te_func")
        out_types = tuple(TensorType(ShapeExpr(t.shape), t.dtype) for t in outputs)
        numbers = [s for s in symbols if scalar_dtype(s) not in size_dtypes]
        sizes = [s for s in symbols if scalar_dtype(s) in size_dtypes]
        call_args: tuple[Expr, ...] = (var, Tuple((*(e for _, e in inputs), *numbers)))
        if sizes:
            call_args = (*call_args, ShapeExpr(tuple(sizes)))
        return Call(Op.of_role("call_tir"), call_args, {}, declared_type(out_types))

    def call_te_with_grad(
        self,
        func: Callable[..., Any],
        *args: Any,
        te_grad_name: str,
        te_grad_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Call:
        """`call_te` with the name of the function that makes its gradient, and that function's own arguments."""
        made = self.call_te(func, *args, **kwargs)
        attrs = {"te_grad_name": te_grad_name, "te_grad_kwargs": dict(te_grad_kwargs or {})}
        return replace(made, op=Op.of_role("call_tir_with_grad"), attrs=attrs)

    def emit_te(self, func: Callable[..., Any], *args: Any, name_hint: str = "", **kwargs: Any) -> Var:
        """Emit `call_te`."""
        return self.emit(self.call_te(func, *args, **kwargs), name_hint)

    def emit_te_with_grad(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Var:
        """Emit `call_te_with_grad`."""
        return self.emit(self.call_te_with_grad(func, *args, **kwargs))

    # --------------------------------------------------------------------------------------------------- normal form

    def append(self, binding: Binding) -> None:
        """Take over a binding in normal form."""
        assert isinstance(binding, (VarBinding, MatchCast))
        if isinstance(binding, MatchCast):
            self._know_symbols(binding.ty)
        self._append(binding)

    def open_block(self, kind: type[BindingBlock]) -> None:
        """Start a block of that kind in the sequence that is open; two plain blocks in a row are one."""
        scope = self._scope()
        scope.close_block()
        scope.dataflow = issubclass(kind, DataflowBlock)
        if kind is BindingBlock and scope.blocks and type(scope.blocks[-1]) is BindingBlock:
            scope.bindings = list(scope.blocks.pop().bindings)

    def flatten(self, value: SeqExpr) -> Expr:
        """Take over the blocks of a sequence in normal form; its value."""
        scope = self._scope()
        for block in value.blocks:
            if isinstance(block, DataflowBlock) and not scope.dataflow:
                self.keep_block(block)
                for binding in block.bindings:
                    self._remember(binding)
            else:
                for binding in block.bindings:
                    self.append(binding)
        return value.body

    def enter_function(self, func: Function) -> None:
        """The parameters of a local function are known until the sequence that comes next ends."""
        known = [*self._frames[-1].symbols] if self._frames else []
        frame = _Frame("", func.params, {}, func.is_pure, None, None, scopes=[], loose=True)
        frame.symbols = [*known, *_symbols_of(func.params)]
        self._frames.append(frame)

    def emit_normalized(self, binding: Binding) -> None:
        """Append a binding as it is: its value is in normal form; its variable gets that type if it has none."""
        assert isinstance(binding, (VarBinding, MatchCast))
        if binding.var.ty is None:
            set_field(binding.var, "ty", binding.ty if isinstance(binding, MatchCast) else infer(binding.value))
        self._append(binding)

    def add_param(self, var: Var) -> None:
        """Give the innermost function another parameter."""
        frame = self._frame()
        frame.params = (*frame.params, var)
        frame.symbols += _symbols_of([var])

    def declare_result(self, ty: Type) -> None:
        """Declare the return type of the innermost function: checked at its end."""
        self._frame().ret_ty = ty

    def last_binding(self) -> Binding | None:
        """The binding that was emitted last into the innermost scope, or None."""
        scope = self._scope()
        if scope.bindings:
            return scope.bindings[-1]
        return scope.blocks[-1].bindings[-1] if scope.blocks and scope.blocks[-1].bindings else None

    def publish(self, variables: Sequence[Var]) -> list[Var]:
        """Make variables of the dataflow block that is open visible after it; the variables that take their place."""
        scope = self._scope()
        fresh: dict[Var, Var] = {}
        for v in variables:
            if isinstance(v, DataflowVar):
                fresh[v] = Var(v.name, v.ty, span=v.span)
        scope.bindings = [substitute(b, fresh) for b in scope.bindings] if fresh else scope.bindings
        for binding in scope.bindings:
            self._remember(binding)
        return [fresh.get(v, v) for v in variables]

    def close_block(self, empty: type[BindingBlock] | None = None) -> None:
        """End the block of bindings; an ``empty`` block of that kind is kept where nothing was bound."""
        scope = self._scope()
        count = len(scope.blocks)
        scope.close_block()
        if empty is not None and len(scope.blocks) == count:
            scope.blocks.append(empty(()))

    def close_all(self) -> list[Binding]:
        """End the blocks of the innermost scope: all that was bound there, in order."""
        scope = self._scope()
        scope.close_block()
        return [binding for block in scope.blocks for binding in block.bindings]

    def bound_in_block(self) -> dict[int, tuple[Expr, Expr]]:
        """The operands that the block that is open has bound, by identity."""
        return self._scope().bound if self._frames else {}

    def emit_normal(self, value: Expr) -> Var:
        """Bind an expression that is in normal form already."""
        var = self._new_var("", infer(value), None, value.span)
        self._append(VarBinding(var, value, span=value.span))
        return var

    # ---------------------------------------------------------------------------------------------------------- inner

    def _frame(self) -> _Frame:
        if not self._frames:
            raise DiagnosticError("there is no function to emit into", hint="with bb.function(name, params): ...")
        return self._frames[-1]

    def _scope(self) -> _Scope:
        return self._frame().scopes[-1]

    def _new_var(self, name_hint: str, ty: Type, output: bool | None, span: Span | None, exact: bool = False) -> Var:
        local = self._scope().dataflow and not output
        kind = DataflowVar if local else Var
        if not self.names_as_written:
            name = name_hint if exact and name_hint else self.get_unique_name(name_hint or ("lv" if local else "gv"))
            return kind(name, ty, span=span)
        if not name_hint or self.counts_named:
            prefix = "lv" if local or (name_hint and self._scope().dataflow) else "gv"
            count = self._frame().counters.get(prefix, 0)
            self._frame().counters[prefix] = count + 1
            name_hint = name_hint or (prefix if count == 0 else f"{prefix}{count}")
        return kind(name_hint, ty, span=span)

    def _know_symbols(self, ty: Type) -> None:
        known = {id(s) for s in self._frame().symbols}
        self._frame().symbols += [s for s in free_symbols(ty) if id(s) not in known]

    def _remember(self, binding: Binding) -> None:
        if isinstance(binding, VarBinding):
            self._bindings[id(binding.var)] = (binding.var, binding.value)

    def _append(self, binding: VarBinding | MatchCast) -> None:
        self._scope().bindings.append(binding)
        self._remember(binding)


def _parameters(params: Sequence[Var] | Var) -> tuple[Var, ...]:
    """The parameters of a function; raises ``TypeError`` for what is no variable."""
    given = (params,) if isinstance(params, Var) else params.fields if isinstance(params, Tuple) else tuple(params)
    for param in given:
        if not isinstance(param, Var):
            raise TypeError(f"a function's parameters are relax.Var, got {type(param).__name__}")
    return given  # type: ignore[return-value]


def gen_call_tir_inputs(func: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """What ``R.call_tir`` of a compute definition takes: the loop function, the list of its tensors, the list of the
    types of its results, and, where it has any, the sizes it is given besides. Raises what `BlockBuilder.call_te` does.
    """
    builder = BlockBuilder()
    call = builder.call_te(func, *args, **kwargs)
    callee, tensors = call.args[:2]
    assert isinstance(callee, GlobalVar) and isinstance(tensors, Tuple)
    return builder.get()[callee], list(tensors.fields), list(result_types(call.ty_args)), *call.args[2:]


def _check_declared(actual: Type, declared: Type, what: str, span: Span | None, rule: str) -> None:
    verdict = assignable(actual, declared)
    if verdict is True:
        return
    raise TypeCheckError(
        f"{what} does not have the declared type" if verdict is False else f"{what}: the declared type is not proved",
        span=span,
        expected=str(declared),
        actual=str(actual),
        hint=None if verdict is False else "use R.match_cast(value, type) to check it at run time",
        rule=rule,
    )


def check_condition(condition: Expr, span: Span | None) -> None:
    """An ``if`` needs a scalar bool; raises `TypeCheckError` for anything else."""
    ty = infer(condition)
    if not may_be_condition(ty):
        raise TypeCheckError(
            "the condition of an if must be a scalar bool",
            span=place_of_use(condition, None) or span,
            expected='R.Tensor((), "bool")',
            actual=str(ty),
            rule="condition",
        )


def _joined(blocks: Sequence[BindingBlock]) -> tuple[BindingBlock, ...]:
    """The blocks of a sequence; under Relax's conventions dataflow blocks that follow each other are one."""
    if not conventions().joins_dataflow:
        return tuple(blocks)
    found: list[BindingBlock] = []
    for block in blocks:
        if found and isinstance(block, DataflowBlock) and isinstance(found[-1], DataflowBlock):
            found[-1] = DataflowBlock((*found[-1].bindings, *block.bindings), span=found[-1].span)
        else:
            found.append(block)
    return tuple(found)
