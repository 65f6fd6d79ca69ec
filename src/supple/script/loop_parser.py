"""``@T.prim_func``: statements of a loop function, from the Python syntax tree to `PrimFunc`."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.base.errors import NotSupportedError, TypeCheckError
from supple.base.registry import did_you_mean
from supple.ir.conventions import conventions, users_formula
from supple.ir.expr import (
    Broadcast,
    BufferLoad,
    Call,
    FloatImm,
    Var,
    as_expr,
    cast,
    const,
    is_buffer,
    is_scalar,
    scalar_dtype,
)
from supple.ir.graph import GlobalVar
from supple.ir.intrinsics import intrinsic
from supple.ir.loop import (
    AllocBuffer,
    Bind,
    Break,
    BufferStore,
    Continue,
    Evaluate,
    IfThenElse,
    PrimFunc,
    Return,
    While,
    buffer_type,
)
from supple.ir.node import Expr, Stmt, Type
from supple.ir.types import BufferType, PointerType, PrimType, prim_type
from supple.script.cells import changing_names
from supple.script.evaluate import Environment, describe
from supple.script.forms import Declaration, DtypeForm, Form, FormCall, Fresh
from supple.script.graph_state import ModuleRef
from supple.script.loop_buffers import buffer_from, buffer_view, region_index, store_index
from supple.script.loop_forms import (
    ASSIGNABLE,
    LOOPS,
    NAMING,
    SCOPES,
    STATEMENTS,
    VALUES,
    assertion,
    finish_scope,
    launch_as,
    nested_loops,
    root_block,
)
from supple.script.loop_state import AsName, BlockInfo, LoopRange, LoopSpec, LoopState, Scope, Suite
from supple.script.macros import Macro, expand
from supple.script.signature import is_docstring, plain_parameters, unquote
from supple.script.source import Source
from supple.script.symbols import declared_symbols


def _has_arguments(arg: ast.arg) -> bool:
    """Whether a parameter's type is written with arguments (a buffer's shape), which may name other parameters."""
    return isinstance(arg.annotation, ast.Call) and bool(arg.annotation.args)


class LoopParser(LoopState):
    """Reads one loop function."""

    literal_dtype = "int32"

    def __init__(self, source: Source, env: Environment, module: ModuleRef | None = None) -> None:
        super().__init__(source, env)
        self.add_root = True
        self.module = module
        if module is not None:
            self.define(module.name, module)

    # ------------------------------------------------------------------------------------------------ the function

    def parse(self, node: ast.FunctionDef, attrs: dict[str, Any], root_block: bool = True) -> PrimFunc:
        """The loop function of a ``def``; ``attrs`` are those that its decorator says. Blocks get a root block around
        them unless ``root_block`` is false."""
        with users_formula():
            return self._parse(node, attrs, root_block)

    def _parse(self, node: ast.FunctionDef, attrs: dict[str, Any], root_block: bool) -> PrimFunc:
        self.attrs, self.said_attrs = dict(attrs), set()
        self.add_root = root_block
        self.declared = declared_symbols(node.body)
        self.changing = changing_names(node.body)
        self._signature(node)
        body = self._root(node)
        ret_ty = self.return_type(node)
        params = tuple(self.matched.get(id(p), p) for p in self.params)
        return PrimFunc(params, body, ret_ty, self.attrs, span=self.source.name_span(node))

    def _signature(self, node: ast.FunctionDef) -> None:
        self.may_define = True
        self.note_quoted(a.annotation for a in (*node.args.posonlyargs, *node.args.args))
        values: list[tuple[ast.arg, Any]] = []
        made: dict[str, Var] = {}
        args = plain_parameters(self, node)
        for arg in sorted(args, key=_has_arguments):  # scalars first: a buffer's shape may mention them
            value = self._annotation(arg)
            values.append((arg, value))
            param = self._scalar_parameter(arg, value)
            if param is not None:
                made[arg.arg] = param
                if isinstance(param.ty, PrimType) and dtypes.is_int(param.ty.dtype):
                    self.symbols[arg.arg] = param
                    self.define(arg.arg, param)  # hides what the program captures under that name
        values.sort(key=lambda item: args.index(item[0]))
        for arg, value in values:
            if arg.arg not in made:
                self.at = arg.annotation
                made[arg.arg] = self._buffer_parameter(arg, value)
        self.may_define = False
        self.params = [made[arg.arg] for arg, _ in values]
        for name, param in made.items():
            self.define(name, param)

    def _annotation(self, arg: ast.arg) -> Any:
        if arg.annotation is None:
            raise self.error(
                arg,
                f"parameter {arg.arg!r} has no type",
                hint=f"write {arg.arg}: T.Buffer((n,), 'float32'), {arg.arg}: T.handle or {arg.arg}: T.int32",
            )
        node = unquote(self, arg.annotation)
        return self.evaluate(node)

    def _scalar_parameter(self, arg: ast.arg, value: Any) -> Var | None:
        span = self.span(arg)
        if isinstance(value, DtypeForm):
            return Var(arg.arg, prim_type(value.dtype), span=span)
        if isinstance(value, Fresh):
            return Var(arg.arg, prim_type(value.dtype), span=span)
        if isinstance(value, Var) and not is_buffer(value):  # T.handle("float32")
            return Var(arg.arg, value.ty, span=span)
        if isinstance(value, PrimType):
            return Var(arg.arg, value, span=span)
        return None

    def _buffer_parameter(self, arg: ast.arg, value: Any) -> Var:
        assert arg.annotation is not None
        if isinstance(value, FormCall) and value.form.name == "T.Buffer":
            made: Var = self.bind(value, buffer_from, arg.annotation).make(arg.arg, self.span(arg))
            return made
        raise TypeCheckError(
            f"parameter {arg.arg!r} has a type that a loop function cannot take",
            self.span(arg.annotation),
            "T.Buffer(shape, dtype), T.handle, or a scalar such as T.int32",
            describe(value),
        )

    def return_type(self, node: ast.FunctionDef) -> Type | None:
        """What a loop function returns; None for nothing."""
        if node.returns is None or (isinstance(node.returns, ast.Constant) and node.returns.value is None):
            return None
        value = self.evaluate(unquote(self, node.returns))
        if isinstance(value, DtypeForm):
            return prim_type(value.dtype)
        if isinstance(value, PrimType):
            return value
        raise self.error(node.returns, "a loop function returns a scalar, or nothing", actual=describe(value))

    def _root(self, node: ast.FunctionDef) -> Stmt:
        root = self.block = BlockInfo("root", self.span(node))
        self.scopes.append({})
        body = self.body(node.body, docstring=True)
        self.scopes.pop()
        return root_block(root, body, self.has_blocks) if self.add_root else body

    # -------------------------------------------------------------------------------------------------- statements

    def body(self, statements: list[ast.stmt], docstring: bool = False) -> Stmt:
        """A suite of statements as one statement."""
        self.suites.append(Suite())
        for position, statement in enumerate(statements):
            if docstring and position == 0 and is_docstring(statement):
                continue
            self.statement(statement)
        return self.suites.pop().joined()

    def statement(self, statement: ast.stmt) -> None:
        """Read one statement."""
        method = _STATEMENTS.get(type(statement))
        if method is None:
            self.refuse(statement, "a loop function")
        try:
            method(self, statement)
        except Exception as error:
            made = self.convert(error, statement)
            raise made from made.__cause__

    def scoped_body(self, statements: list[ast.stmt]) -> Stmt:
        """A suite with its own scope of names."""
        with self.scope():
            return self.body(statements)

    def _pass(self, statement: ast.Pass) -> None:
        pass

    def _break(self, statement: ast.Break) -> None:
        self.emit(Break(), statement)

    def _continue(self, statement: ast.Continue) -> None:
        self.emit(Continue(), statement)

    def _return(self, statement: ast.Return) -> None:
        value = None if statement.value is None else self.evaluate(statement.value)
        self.emit(Return(None if value is None else self.scalar(value, statement)), statement)

    def scalar(self, value: Any, node: ast.AST, dtype: str = "int32") -> Expr:
        """A scalar expression from a value (a Python int is an int32 unless said otherwise)."""
        if isinstance(value, Expr):
            if is_scalar(value):
                return value
        elif isinstance(value, (bool, int, float)):
            return const(value, dtype if isinstance(value, int) and not isinstance(value, bool) else None)
        elif hasattr(value, "__index__") or hasattr(value, "__float__"):
            return as_expr(value, dtype if hasattr(value, "__index__") else None)
        raise TypeCheckError("expected a scalar", self.span(node), "a scalar expression or a number", describe(value))

    def _assert(self, statement: ast.Assert) -> None:
        condition = self.as_bool(self.evaluate(statement.test), statement.test)
        given = "" if statement.msg is None else self.evaluate(statement.msg)
        self.emit(assertion(condition, given), statement)

    def _if(self, statement: ast.If) -> None:
        clauses: list[tuple[ast.If, Expr, Stmt]] = []  # an elif chain is a loop here: it may be long
        current = statement
        tail: Stmt | None = None
        while True:
            condition = self.evaluate(current.test)
            if isinstance(condition, Expr):
                clauses.append((current, self.as_bool(condition, current.test), self.scoped_body(current.body)))
            elif condition:  # known while reading: only the chosen branch is read
                tail = self._chosen(current.body, bool(clauses))
                break
            if not current.orelse:
                break
            if len(current.orelse) == 1 and isinstance(current.orelse[0], ast.If):
                current = current.orelse[0]
                continue
            tail = self._chosen(current.orelse, bool(clauses))
            break
        for node, condition, then in reversed(clauses):
            tail = IfThenElse(condition, then, tail, span=self.span(node))
        if tail is not None:
            self.emit(tail)

    def _chosen(self, statements: list[ast.stmt], nested: bool) -> Stmt | None:
        if nested:
            return self.scoped_body(statements)
        for statement in statements:  # a branch of Python's: its statements belong to the suite around
            self.statement(statement)
        return None

    def _while(self, statement: ast.While) -> None:
        if statement.orelse:
            raise NotSupportedError("'else' of a loop is not supported", self.span(statement.orelse[0]))
        condition = self.as_bool(self.evaluate(statement.test), statement.test)
        self.emit(While(condition, self.scoped_body(statement.body)), statement)

    def _for(self, statement: ast.For) -> None:
        if statement.orelse:
            raise NotSupportedError("'else' of a loop is not supported", self.span(statement.orelse[0]))
        spec = self._loops(statement.iter)
        with self.scope():
            loops: list[tuple[Var, LoopRange]] = []
            for target, ranges, several in self._targets(statement.target, spec.ranges):
                self._check_rebinding(target)
                span, made = self.span(target), []
                for position, extent in enumerate(ranges):
                    name = f"{target.id}_{position}" if several else target.id
                    made.append(self.loop_variable(spec, extent, AsName(name, span)))
                loops += zip(made, ranges)
                if several:
                    self.define(target.id, tuple(made))
            body = self.body(statement.body)
        self.emit(nested_loops(spec, loops, body, self.span(statement.iter)))

    def _targets(self, node: ast.expr, ranges: list[LoopRange]) -> list[tuple[ast.Name, list[LoopRange], bool]]:
        """The names of a loop's header, each with its ranges, and whether it stands for all of them as a tuple: one
        name for several loops, or one with a star."""
        targets: list[ast.expr] = list(node.elts) if isinstance(node, ast.Tuple) else [node]
        starred = [n for n, target in enumerate(targets) if isinstance(target, ast.Starred)]
        whole = not isinstance(node, ast.Tuple) and len(ranges) > 1
        rest = len(ranges) - len(targets) + 1
        if len(starred) > 1 or (rest < 0 if starred else rest != 1 and not whole):
            raise self.error(
                node,
                f"{len(ranges)} loops, but {len(targets)} loop variables",
                expected=f"{len(ranges)} names",
                actual=f"{len(targets)}",
            )
        found: list[tuple[ast.Name, list[LoopRange], bool]] = []
        start = 0
        for target in targets:
            several = isinstance(target, ast.Starred) or whole
            name = target.value if isinstance(target, ast.Starred) else target
            if not isinstance(name, ast.Name):
                raise self.error(target, "a loop variable must be a name")
            stop = start + (rest if several else 1)
            found.append((name, ranges[start:stop], several))
            start = stop
        return found

    def _loops(self, node: ast.expr) -> LoopSpec:
        if isinstance(node, ast.Call) and self._is_range(node.func):
            args = [self.evaluate(arg) for arg in node.args]
            call = FormCall(Form("range"), tuple(args), {k.arg or "": self.evaluate(k.value) for k in node.keywords})
            spec: LoopSpec = self.bind(call, LOOPS["T.serial"], node)
            return spec
        value = self.evaluate(node)
        if isinstance(value, FormCall) and value.form.name in LOOPS:
            found: LoopSpec = self.bind(value, LOOPS[value.form.name], node)
            return found
        raise self.error(
            node,
            "a loop runs over T.grid, T.serial, T.parallel, T.vectorized, T.unroll, T.thread_binding or range",
            actual=describe(value),
            rule="for",
        )

    def _is_range(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Name):
            return False
        value = self.lookup(node.id)
        return value is builtins.range

    def _with(self, statement: ast.With) -> None:
        self._with_items(statement, 0)

    def _with_items(self, statement: ast.With, position: int) -> None:
        item = statement.items[position]
        value = self.evaluate(item.context_expr)
        if not isinstance(value, FormCall) or value.form.name not in SCOPES:
            name = value.form.name if isinstance(value, FormCall) else describe(value)
            hint = did_you_mean(name, SCOPES).removeprefix("; ") or None
            raise self.error(item.context_expr, f"'with {name}' has no meaning in a loop function", hint=hint)

        target = self._target(item.optional_vars, value.form)
        self.at = item.context_expr
        scope: Scope = self.bind(
            FormCall(value.form, (target, *value.args), value.kwargs), SCOPES[value.form.name], item.context_expr
        )
        try:
            next(scope)
        except Exception as error:
            raise self.convert(error, item.context_expr) from None
        if position + 1 == len(statement.items):
            body = self.body(statement.body)
        else:
            self.suites.append(Suite())
            self._with_items(statement, position + 1)
            body = self.suites.pop().joined()
        made = finish_scope(scope, body)
        if made is not None:
            self.emit(made, item.context_expr)

    def _target(self, node: ast.expr | None, form: Form) -> AsName | None:
        """The name after ``as``, for the forms that name a variable."""
        if node is None:
            return None
        if form.name not in NAMING:
            raise self.error(node, "'as' has no meaning here")
        if not isinstance(node, ast.Name):
            raise self.error(node, f"{form.name} names one variable")
        return AsName(node.id, self.span(node))

    def _expression(self, statement: ast.Expr) -> None:
        value = self.evaluate(statement.value)
        if isinstance(value, FormCall) and value.form.name in STATEMENTS:
            made: Stmt | None = self.bind(value, STATEMENTS[value.form.name], statement.value)
            if made is not None:
                self.emit(made, statement)
        elif isinstance(value, Declaration):
            value.make("_", self.span(statement))
        elif isinstance(value, Call):
            self.emit(Evaluate(value), statement)
        elif value is not None:
            hint = "give it a name, store it in a buffer, or write T.evaluate(...)" if isinstance(value, Expr) else None
            if isinstance(value, FormCall):
                hint = f"{value.form.name} cannot stand alone"
            raise self.error(statement.value, "the expression has no effect", hint=hint)

    # ------------------------------------------------------------------------------------------------- assignments

    def _assign(self, statement: ast.Assign) -> None:
        value = self.evaluate(statement.value)
        for target in statement.targets:
            self.assign(target, value, statement.value)

    def assign(self, target: ast.expr, value: Any, node: ast.expr) -> None:
        """``target = value``: a store, a new name, or several."""
        if isinstance(target, ast.Subscript):
            self.store(target, value, node)
        elif isinstance(target, (ast.Tuple, ast.List)):
            items = list(value) if isinstance(value, (tuple, list)) else None
            if items is None or len(items) != len(target.elts):
                actual = describe(value) if items is None else f"{len(items)}"
                raise self.error(
                    target, "cannot unpack: wrong number of values", expected=f"{len(target.elts)}", actual=actual
                )
            for part, item in zip(target.elts, items):
                self.assign(part, item, node)
        elif isinstance(target, ast.Name):
            self.name_value(target, value, node)
        else:
            raise self.error(target, "only names and buffer elements can be assigned")

    def name_value(self, target: ast.Name, value: Any, node: ast.expr) -> None:
        """``name = value``."""
        span = self.span(target)
        if isinstance(value, Declaration):
            self.define(target.id, value.make(target.id, span))
        elif isinstance(value, Fresh):
            self.define(target.id, self._declare_symbol(target.id, value.dtype, target))
        elif isinstance(value, Var) and isinstance(value.ty, PointerType) and value.span is None:
            self.define(target.id, Var(target.id, value.ty, span=span))
        elif isinstance(value, Expr) and is_scalar(value):
            self.let(target, value)
        elif isinstance(value, (bool, int, float)):
            self.let(target, self.scalar(value, node))
        elif isinstance(value, FormCall) and value.form.name in ASSIGNABLE:
            self.let(target, self.bind(value, ASSIGNABLE[value.form.name], node), stays=True)
        elif isinstance(value, FormCall) and value.form.name == "T.launch_thread":
            named = AsName(target.id, span)
            self.bind(FormCall(value.form, (named, *value.args), value.kwargs), launch_as, node)
        elif isinstance(value, FormCall):
            raise self.error(node, f"{value.form.name} is not a value")
        elif isinstance(value, Expr) and not is_buffer(value):
            raise self.error(node, f"{describe(value)} cannot be named here")
        else:
            if is_buffer(value):
                self._check_rebinding(target)
            self.define(target.id, value)

    def let(self, target: ast.Name, value: Expr, dtype: str | None = None, stays: bool = False) -> None:
        """Bind a name to a scalar for the statements that follow; one that changes is a buffer of one element."""
        wanted = dtype or scalar_dtype(value)
        number = dtypes.lanes(wanted) == 1 and wanted != "handle"
        named = number and conventions().names_are_cells and not stays and self.block.depth == 0
        if named or target.id in self.changing or self._cell(target.id) is not None:
            self._set_cell(target, value, wanted)
            return
        self._check_rebinding(target)
        var = Var(target.id, prim_type(wanted), span=self.span(target))
        self.define(target.id, var)
        self.emit(Bind(var, value), target)

    def _set_cell(self, target: ast.Name, value: Expr, dtype: str) -> None:
        cell = self._cell(target.id)
        if cell is None:
            cell = self._new_cell(target, dtype)
        if conventions().names_are_cells and not isinstance(value, FloatImm):  # converted, as what a buffer stores is
            value = cast(scalar_dtype(cell), value)
        if scalar_dtype(value) != scalar_dtype(cell):
            raise self.error(
                target,
                f"{target.id!r} changes its dtype",
                expected=scalar_dtype(cell),
                actual=scalar_dtype(value),
                hint=f'convert the value: T.Cast("{scalar_dtype(cell)}", value)',
                rule="store_dtype",
            )
        self.emit(BufferStore(cell.buffer, value, (const(0, "int32"),)), target)

    def _cell(self, name: str) -> BufferLoad | None:
        """The element that a name stands for, if it is one that changes."""
        found = next((s[name] for s in reversed(self.scopes) if name in s), None)
        return found if isinstance(found, BufferLoad) and id(found) in self.cells else None

    def _new_cell(self, target: ast.Name, dtype: str) -> BufferLoad:
        self._check_rebinding(target)
        span = self.span(target)
        buffer = Var(target.id, BufferType((const(1, "int32"),), dtype, "local"), span=span)
        self.emit(AllocBuffer(buffer), target)
        return self.define_cell(buffer)

    def _check_rebinding(self, target: ast.Name) -> None:
        """In Python an inner assignment would change the outer name; here it would not: refuse what reads so."""
        buffer = next((s[target.id] for s in self.scopes if is_buffer(s.get(target.id))), None)
        if buffer is not None:
            raise self.error(
                target,
                f"{target.id!r} is a buffer: assigning to its name would not write into it",
                hint=f"write to an element: {target.id}[{', '.join('i' * len(buffer.ty.shape))}] = ...",
                rule="rebind",
            )
        for scope in self.scopes[1:-1]:
            old = scope.get(target.id)
            if isinstance(old, Var) and is_scalar(old) and id(old) not in self.block_vars:
                raise self.error(
                    target,
                    f"{target.id!r} is defined outside of this scope and cannot change",
                    hint="use another name, or keep the value in a buffer (T.alloc_buffer)",
                    rule="rebind",
                )

    def _declare_symbol(self, name: str, dtype: str, node: ast.AST) -> Var:
        found = self.symbols.get(name)
        if found is None:
            made = Var(name, prim_type(dtype), span=self.span(node))
            if self.depth == 0:
                self.symbols[name] = made
            return made
        if scalar_dtype(found) != dtype:
            raise TypeCheckError(
                f"{name!r} is declared with two dtypes", self.span(node), scalar_dtype(found), dtype, rule="symbol"
            )
        return found

    def _annotated(self, statement: ast.AnnAssign) -> None:
        if not isinstance(statement.target, ast.Name):
            raise self.error(statement, "only names are annotated: x: T.let = value")
        annotation = self.evaluate(unquote(self, statement.annotation))
        if statement.value is None:
            if not isinstance(annotation, DtypeForm):
                raise self.error(statement, "an annotated name needs a value: x: T.let = value")
            self._new_cell(statement.target, annotation.dtype)  # a value comes later
            return
        value = self.evaluate(statement.value)
        stays = isinstance(annotation, FormCall) and annotation.form.name == "T.let" and bool(annotation.args)
        if stays:
            annotation = annotation.args[0]
        if isinstance(value, FormCall) and value.form.name in ASSIGNABLE:
            value = self.bind(value, ASSIGNABLE[value.form.name], statement.value)
        if isinstance(annotation, Form) and annotation.name == "T.let":
            self.let(statement.target, self.scalar(value, statement.value), stays=True)
        elif isinstance(annotation, DtypeForm):
            number = isinstance(value, (bool, int, float))
            given = annotation(value) if number else self.scalar(value, statement.value)
            self.let(statement.target, cast(annotation.dtype, given), stays=stays)
        else:
            raise self.error(
                statement.annotation,
                "unexpected annotation",
                expected="T.let, T.let[T.int32] or a scalar dtype",
                actual=describe(annotation),
            )

    def _augmented(self, statement: ast.AugAssign) -> None:
        target = statement.target
        load: ast.expr
        if isinstance(target, ast.Name):
            load = ast.Name(target.id, ast.Load())
        elif isinstance(target, ast.Subscript):
            load = ast.Subscript(target.value, target.slice, ast.Load())
        else:
            raise self.error(statement, "only names and buffer elements change: A[i] += x", rule="rebind")
        ast.copy_location(load, target)
        operation = ast.BinOp(load, statement.op, statement.value)
        ast.copy_location(operation, statement)
        self.assign(target, self.evaluate(operation), statement.value)

    def store(self, target: ast.Subscript, value: Any, node: ast.expr) -> None:
        """``buffer[indices] = value``; the value is converted to the buffer's dtype."""
        try:
            self._store(target, value, node)
        except Exception as error:
            made = self.convert(error, target)
            raise made from made.__cause__

    def _store(self, target: ast.Subscript, value: Any, node: ast.expr) -> None:
        buffer = self.evaluate(target.value)
        if not is_buffer(buffer):
            raise self.error(target.value, f"{describe(buffer)} is not a buffer: its elements cannot be assigned")
        index = self.evaluate(target.slice)
        items = index if isinstance(index, tuple) else (index,)
        dtype = buffer_type(buffer).dtype
        indices = tuple(store_index(self, i, target) for i in items)
        lanes = 1
        for i in indices:
            lanes *= dtypes.lanes(scalar_dtype(i))
        self.emit(BufferStore(buffer, self._converted(value, dtype, lanes, node), indices), target)

    def _converted(self, value: Any, dtype: str, lanes: int, node: ast.expr) -> Expr:
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not dtypes.is_float(dtype):
            raise TypeCheckError(f"cannot store {value!r}", self.span(node), dtype, "float", "write an integer")
        if not isinstance(value, Expr):
            whole = dtypes.vector(dtype, lanes * dtypes.lanes(dtype))
            self.scalar(value, node)
            return const(value if isinstance(value, (bool, int, float)) else value.__index__(), whole)
        given = scalar_dtype(self.scalar(value, node))
        have, want = dtypes.lanes(given), lanes * dtypes.lanes(dtype)
        if have == 1 and want > 1:
            return Broadcast(cast(dtypes.element(dtype), value), want)
        if have != want:
            raise TypeCheckError("the number of lanes differs", self.span(node), f"{want}", f"{have}")
        return cast(dtypes.vector(dtype, want), value)

    # --------------------------------------------------------------------------------------- expressions of this level

    def choice(self, condition: Expr, then: Any, otherwise: Any, node: ast.IfExp) -> Any:
        return intrinsic("if_then_else", self.as_bool(condition, node.test), then, otherwise)

    def form(self, call: FormCall, node: ast.Call) -> Any:
        handler = VALUES.get(call.form.name)
        if handler is None:
            return call
        self.at = node
        return self.bind(call, handler, node)

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], node: ast.Call) -> Any:
        if isinstance(function, Macro):
            return expand(self, function, args, kwargs, node)
        if isinstance(function, GlobalVar):
            return self._call_function(function, args, kwargs, node)
        return super().call(function, args, kwargs, node)

    def _call_function(self, function: GlobalVar, args: tuple[Any, ...], kwargs: Any, node: ast.Call) -> Expr:
        """The call of another loop function of the module."""
        if kwargs:
            raise self.error(node, "functions of the program take positional arguments only")
        assert self.module is not None
        operands = tuple(a if is_buffer(a) else self.scalar(a, n) for a, n in zip(args, node.args, strict=True))
        return Call(function, operands, ty=self.module.returns[function.name_hint])

    def _definition(self, statement: ast.FunctionDef) -> None:
        """A macro inside of a function."""
        for decorator in statement.decorator_list[:1]:
            found = self.evaluate(decorator)
            form = found.form if isinstance(found, FormCall) else found
            if isinstance(form, Form) and form.name in ("T.inline", "T.macro"):
                hygienic = not isinstance(found, FormCall) or found.kwargs.get("hygienic", True) is True
                macro = Macro(statement.name, self.source, statement, self.env, hygienic, list(self.scopes))
                self.define(statement.name, macro)
                return
        raise self.error(self.source.name_span(statement), "a function inside of a loop function needs @T.inline")

    def attribute(self, value: Any, node: ast.Attribute) -> Any:
        if isinstance(value, ModuleRef):
            found = value.functions.get(node.attr)
            if found is None or found.name_hint not in value.returns:
                hint = did_you_mean(node.attr, value.returns).removeprefix("; ") or None
                message = f"the module {value.name} has no loop function {node.attr!r}"
                raise self.error(node, message, hint=hint, rule="undefined")
            return found
        if isinstance(value, Var) and is_buffer(value) and node.attr == "data":
            data = buffer_type(value).data
            return value if data is None else data
        if isinstance(value, Var) and is_buffer(value) and node.attr == "view":
            return lambda *shape, dtype=None: buffer_view(self, value, shape, dtype)
        return super().attribute(value, node)

    def subscript(self, value: Any, index: Any, node: ast.Subscript) -> Any:
        if isinstance(value, Var) and is_buffer(value):
            try:
                return region_index(self, value, index, node)
            except Exception as error:
                raise self.convert(error, node) from None
        return super().subscript(value, index, node)


_STATEMENTS: dict[type[ast.stmt], Callable[[LoopParser, Any], None]] = {
    ast.Pass: LoopParser._pass,
    ast.FunctionDef: LoopParser._definition,
    ast.Break: LoopParser._break,
    ast.Continue: LoopParser._continue,
    ast.Return: LoopParser._return,
    ast.Assert: LoopParser._assert,
    ast.If: LoopParser._if,
    ast.While: LoopParser._while,
    ast.For: LoopParser._for,
    ast.With: LoopParser._with,
    ast.Expr: LoopParser._expression,
    ast.Assign: LoopParser._assign,
    ast.AnnAssign: LoopParser._annotated,
    ast.AugAssign: LoopParser._augmented,
}
