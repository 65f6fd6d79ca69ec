"""``@R.function``: statements of a graph function, from the Python syntax tree through the BlockBuilder."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import supple.ops  # noqa: F401  (declares the operators)
from supple.base.errors import DiagnosticError, TypeCheckError
from supple.base.registry import did_you_mean
from supple.base.source import Span
from supple.build.block_builder import BlockBuilder
from supple.ir.conventions import conventions
from supple.ir.expr import Call, DataflowVar, IntImm, TupleGetItem, Var, graph_scalar, is_scalar, scalar_dtype
from supple.ir.graph import BindingBlock, DataflowBlock, Function, GlobalVar, ShapeExpr, Tuple, VarBinding, constant
from supple.ir.node import Expr, Type
from supple.ir.op import Op
from supple.ir.structural import structural_equal
from supple.ir.types import AnyType, DeviceMesh, FuncType, PrimType, TupleType, VDevice, prim_type
from supple.script.evaluate import Environment, describe
from supple.script.forms import Form, FormCall, Fresh, MetaVar, add_attrs, bind_form
from supple.script.graph_state import (
    GraphOptions,
    ModuleRef,
    assigned_names,
    func_attr,
    graph_options,
    is_scalar_annotation,
    match_cast_arguments,
    result_name,
)
from supple.script.macros import Macro, expand
from supple.script.signature import is_docstring, plain_parameters, unquote
from supple.script.source import Source
from supple.script.symbols import SymbolEvaluator, declared_symbols
from supple.script.type_forms import TypeForm, as_type


class GraphParser(SymbolEvaluator):
    """Reads one graph function: `signature` first, then `body`."""

    literal_dtype = "int64"

    def __init__(
        self, source: Source, env: Environment, node: ast.FunctionDef, options: GraphOptions, module: ModuleRef | None
    ) -> None:
        super().__init__(source, env)
        self.node = node
        self.options = options
        self.module = module
        if module is not None:
            self.define(module.name, module)
        self.params: list[Var] = []
        self.ret_ty: Type | None = None
        self.name = options.name or node.name
        self.said_attrs: set[str] = set()
        self.attrs: dict[str, Any] = {} if options.private else {"global_symbol": self.name}
        self.hidden: dict[str, Span] = {}  # dataflow variables that are out of sight
        self.outputs: dict[str, ast.stmt] = {}  # R.output's names -> the statement that binds them last
        self.without_output: list[DiagnosticError] = []  # dataflow blocks that lack their last statement
        self.in_dataflow = False
        self.builder = BlockBuilder()

    # --------------------------------------------------------------------------------------------------- signature

    def signature(self) -> FuncType | None:
        """Read parameters and return type; the function's type, or None when the return type is not annotated."""
        self.declared = declared_symbols(self.node.body)
        self.may_define = True
        values: list[tuple[ast.arg, Any]] = []
        for arg in plain_parameters(self, self.node):
            if arg.annotation is None:
                raise self.error(
                    arg, f"parameter {arg.arg!r} has no type", hint=f"write {arg.arg}: R.Tensor((n, 4), 'float32')"
                )
            annotation = unquote(self, arg.annotation)
            if is_scalar_annotation(annotation):  # scalars first: shapes may mention them
                self._scalar_symbol(arg, annotation)
            values.append((arg, annotation))
        for arg, annotation in values:
            self.params.append(self._parameter(arg, annotation))
        for param in self.params:
            self.define(param.name, param)
        self.may_define = False
        if self.node.returns is not None:
            returns = unquote(self, self.node.returns)
            if isinstance(returns, ast.Constant) and returns.value is None:
                self.ret_ty = TupleType(())
            else:
                self.ret_ty = self.type_of(returns)
        if self.ret_ty is None:
            return None
        return FuncType(tuple(p.ty for p in self.params if p.ty is not None), self.ret_ty, self.options.pure)

    def _scalar_symbol(self, arg: ast.arg, annotation: ast.expr) -> None:
        ty = self.type_of(annotation)
        if isinstance(ty, PrimType):
            self.symbols[arg.arg] = Var(arg.arg, ty, span=self.span(arg))

    def _parameter(self, arg: ast.arg, annotation: ast.expr) -> Var:
        known = self.symbols.get(arg.arg)
        if known is not None and is_scalar_annotation(annotation):
            return known
        return Var(arg.arg, self.type_of(annotation), span=self.span(arg))

    def vdevice(self, text: str) -> VDevice:
        """The module's virtual device that ``"kind:index:scope"`` names, or one of its own where there are none."""
        kind, index, scope = VDevice.parts(text)
        known = [] if self.module is None else self.module.infos.get("vdevice", [])
        if not known and conventions().joins_dataflow:
            raise TypeError(f"the module has no virtual device {text!r}: I.module_global_infos declares them")
        if not known:
            return VDevice(kind, index, scope)
        same_kind = [d for d in known if kind in ("vdevice", d.kind)]  # "vdevice:2" counts all of them
        if index >= len(same_kind):
            names = [f"{d.kind}:{sum(d.kind == e.kind for e in known[:i])}" for i, d in enumerate(known)]
            raise TypeError(f"the module has no virtual device {text!r}; it has {', '.join(names)}")
        found: VDevice = same_kind[index]
        return found

    def mesh(self, text: str) -> DeviceMesh:
        """The module's mesh that ``"mesh[0]"`` names."""
        known = [] if self.module is None else self.module.infos.get("mesh", [])
        index = text.removeprefix("mesh[").removesuffix("]")
        if not text.startswith("mesh[") or not index.isdigit() or int(index) >= len(known):
            raise TypeError(f"the module has no mesh {text!r}; it has {len(known)} (I.module_global_infos)")
        found: DeviceMesh = known[int(index)]
        return found

    def type_of(self, node: ast.expr) -> Type:
        """The type that an annotation says."""
        self.at = node
        try:
            return as_type(self, self.evaluate(node))
        except Exception as error:
            raise self.convert(error, node) from None

    # --------------------------------------------------------------------------------------------------------- body

    def body(self, builder: BlockBuilder) -> Function:
        """Read the statements; the finished function."""
        self.builder = builder
        builder.names_as_written = True
        builder.counts_named = conventions().counts_named
        name = self.source.name_span(self.node)
        builder.begin_function(self.node.name, self.params, {}, self.options.pure, self.ret_ty, name)
        self.scopes.append({})
        statements = [s for i, s in enumerate(self.node.body) if not (i == 0 and is_docstring(s))]
        for position, statement in enumerate(statements):
            if isinstance(statement, ast.Return):
                if position + 1 != len(statements):
                    raise self.error(statements[position + 1], "statements after 'return' are never reached")
                function = self._return(statement)
                if self.without_output:  # a use of the block's variables is the better place: it was read before
                    raise self.without_output[0]
                self.scopes.pop()
                return function.with_attr(self.attrs)
            self.statement(statement)
        raise self.error(name, f"the function {self.node.name!r} returns nothing", hint="end it with 'return value'")

    def _return(self, statement: ast.Return) -> Function:
        if statement.value is None:
            raise self.error(statement, "'return' needs a value", hint="return R.tuple() for nothing")
        try:
            value = self.value(self.evaluate(statement.value), statement.value)
            if conventions().binds_values and isinstance(statement.value, ast.Call) and isinstance(value, Var):
                value = self.builder.emit(value)  # a macro's
            return self.builder.end_function(value, self.span(statement.value))
        except Exception as error:
            made = self.convert(error, statement.value)
            raise made from made.__cause__

    def statement(self, statement: ast.stmt, result: str | None = None) -> None:
        """Read one statement; ``result`` is what the value of an ``if`` is called, other than in the program."""
        method = _STATEMENTS.get(type(statement))
        if method is None:
            self.refuse(statement, "a graph function")
        try:
            if isinstance(statement, ast.If):
                self._if(statement, result)
            else:
                method(self, statement)
        except Exception as error:
            made = self.convert(error, statement)
            raise made from made.__cause__

    def _pass(self, statement: ast.Pass) -> None:
        pass

    def _misplaced_return(self, statement: ast.Return) -> None:
        raise self.error(
            statement,
            "'return' stands inside of a block",
            hint="bind the value to a name (in both branches of an if) and return it at the end of the function",
        )

    def _assign(self, statement: ast.Assign) -> None:
        if len(statement.targets) != 1:
            raise self.error(statement, "one target at a time: a = b = value is not supported")
        value = self.evaluate(statement.value)
        self.bind_target(statement.targets[0], value, statement.value, statement)

    def bind_target(self, target: ast.expr, value: Any, node: ast.expr, statement: ast.stmt) -> None:
        """``target = value``: a name, or several."""
        if isinstance(target, ast.Name):
            self._bind_name(target, value, node, statement)
            return
        if not isinstance(target, (ast.Tuple, ast.List)):
            raise self.error(target, "only names can be assigned in a graph function")
        if isinstance(value, (tuple, list)):
            self._check_count(target, len(value))
            for part, item in zip(target.elts, value):
                self.bind_target(part, item, node, statement)
            return
        whole = self.value(value, node)
        if not isinstance(whole, Var):
            whole = self.builder.emit(whole, "", None, None, self.span(node))
        if not isinstance(whole.ty, TupleType):
            raise self.error(node, "only a tuple can be unpacked", actual=str(whole.ty))
        self._check_count(target, len(whole.ty.fields))
        for position, part in enumerate(target.elts):
            item = TupleGetItem(whole, position, span=self.span(part))
            self.bind_target(part, item, node, statement)

    def _check_count(self, target: ast.Tuple | ast.List, count: int) -> None:
        if len(target.elts) != count:
            raise self.error(
                target, "cannot unpack: wrong number of values", expected=f"{len(target.elts)}", actual=f"{count}"
            )

    def _bind_name(self, target: ast.Name, value: Any, node: ast.expr, statement: ast.stmt) -> None:
        name = target.id
        if isinstance(value, Fresh):
            self.define(name, self._declare_symbol(name, value.dtype, target))
        elif isinstance(value, (ModuleRef, MetaVar)):
            self.define(name, value)
        elif isinstance(value, FormCall) and value.form.name == "R.match_cast":
            self._match_cast(target, value, node, statement)
        else:
            self._emit(target, self.value(value, node), statement, None)

    def _declare_symbol(self, name: str, dtype: str, node: ast.AST) -> Var:
        found = self.symbols.get(name)
        if found is None:
            found = Var(name, prim_type(dtype), span=self.span(node))
            self.symbols[name] = found
        elif scalar_dtype(found) != dtype:
            raise TypeCheckError(
                f"{name!r} is declared with two dtypes", self.span(node), scalar_dtype(found), dtype, rule="symbol"
            )
        return found

    def _emit(self, target: ast.Name, value: Expr, statement: ast.stmt, annotation: Type | None) -> None:
        output = self.outputs.get(target.id) is statement if self.in_dataflow else None
        self.define(target.id, self.builder.emit(value, target.id, annotation, output, self.span(target)))

    def _match_cast(self, target: ast.Name, call: FormCall, node: ast.expr, statement: ast.stmt) -> None:
        value, ty = bind_form(call, match_cast_arguments)
        given = as_type(self, ty)
        output = self.outputs.get(target.id) is statement if self.in_dataflow else None
        checked = self.value(value, node)
        if self.in_dataflow and not isinstance(
            checked, (Var, ShapeExpr, Tuple)
        ):  # a block is in normal form all through
            checked = self.builder.emit(checked)
        var = self.builder.match_cast(checked, given, target.id, output, self.span(node))
        self.define(target.id, var)

    def _annotated(self, statement: ast.AnnAssign) -> None:
        if not isinstance(statement.target, ast.Name) or statement.value is None:
            raise self.error(statement, "an annotated name needs a value: x: R.Tensor(...) = value")
        value = self.evaluate(statement.value)
        self.regions += isinstance(value, FormCall) and value.form.name == "R.match_cast"
        annotation = self.type_of(unquote(self, statement.annotation))
        if isinstance(value, FormCall) and value.form.name == "R.match_cast":
            self.regions -= 1
            declared = as_type(self, bind_form(value, match_cast_arguments)[1])
            if not structural_equal(annotation, declared):
                raise TypeCheckError(
                    "the annotation differs from the type of the match_cast",
                    self.span(statement.annotation),
                    str(declared),
                    str(annotation),
                    rule="annotation",
                )
            self._match_cast(statement.target, value, statement.value, statement)
            return
        if isinstance(value, (Fresh, ModuleRef)):
            raise self.error(statement.annotation, "no annotation is needed here")
        self._emit(statement.target, self.value(value, statement.value), statement, annotation)

    def _expression(self, statement: ast.Expr) -> None:
        value = self.evaluate(statement.value)
        if isinstance(value, FormCall):
            if value.form.name == "R.func_attr":
                self._func_attr(value, statement)
                return
            if value.form.name == "R.output":
                self._check_output(value, statement)
                return
            if value.form.name == "R.match_cast":
                raise self.error(statement, "R.match_cast gives a new variable", hint="x = R.match_cast(value, type)")
            raise self.error(statement, f"{value.form.name} cannot stand alone")
        if isinstance(value, Call) or (isinstance(value, Tuple) and not value.fields):
            bound = self.builder.emit(value, "_", None, None, self.span(statement))
            if conventions().binds_values and not (isinstance(bound.ty, TupleType) and not bound.ty.fields):
                message = f"a value of type {bound.ty} is bound to no name"
                raise self.error(statement, message, hint="give it a name: x = ..., or _ = ...", rule="unused")
        elif value is not None:
            raise self.error(statement, "the expression has no effect", hint="give it a name: x = ...")

    def _func_attr(self, call: FormCall, statement: ast.stmt) -> None:
        try:
            add_attrs(self.attrs, self.said_attrs, bind_form(call, func_attr), call.form.name)
        except TypeError as error:
            raise self.convert(error, statement) from None

    def _check_output(self, call: FormCall, statement: ast.stmt) -> None:
        if not self.in_dataflow:
            raise self.error(statement, "R.output stands at the end of 'with R.dataflow():'")

    # --------------------------------------------------------------------------------------------------- with, if, def

    def _with(self, statement: ast.With) -> None:
        value = self.evaluate(statement.items[0].context_expr)
        if len(statement.items) == 1 and isinstance(value, FormCall) and value.form.name == "R.seq":
            self._block(statement)
            return
        if len(statement.items) != 1 or not isinstance(value, FormCall) or value.form.name != "R.dataflow":
            raise self.error(
                statement.items[0].context_expr, "unexpected 'with' in a graph function", expected="with R.dataflow():"
            )
        if statement.items[0].optional_vars is not None:
            raise self.error(statement.items[0].optional_vars, "'as' has no meaning here")
        outputs = self._output_names(statement)
        self.outputs = {name: bound for name, (bound, _) in outputs.items()}
        self.builder.begin_dataflow()
        self.in_dataflow = True
        self.scopes.append({})
        for inner in statement.body:
            self.statement(inner)
        local = self.scopes.pop()
        self.in_dataflow = False
        self.outputs = {}
        if len(statement.body) == 1 and not conventions().joins_dataflow:
            self.builder.close_block(DataflowBlock)  # nothing but R.output(): an empty block, which Relax leaves out
        self.builder.end_dataflow()
        for name, value in local.items():
            if name in outputs or not isinstance(value, Var) or is_scalar(value):
                self.define(name, value)
                self.hidden.pop(name, None)
            elif not self.is_defined(name):
                self.hidden[name] = self.span(statement)

    def _block(self, statement: ast.With) -> None:
        """``with R.seq():`` is a block of bindings of its own."""
        if self.in_dataflow:
            raise self.error(statement, "a dataflow block cannot hold another block", rule="dataflow")
        self.builder.close_block()
        for inner in statement.body:
            self.statement(inner)
        only_pass = all(isinstance(inner, ast.Pass) for inner in statement.body)
        self.builder.close_block(BindingBlock if only_pass else None)

    def _output_names(self, statement: ast.With) -> dict[str, tuple[ast.stmt, ast.Name]]:
        """The names in R.output, each with the statement that binds it last."""
        last: dict[str, ast.stmt] = {}
        outputs: dict[str, tuple[ast.stmt, ast.Name]] = {}
        for position, inner in enumerate(statement.body):
            for name in assigned_names(inner):
                last[name] = inner
            call = self._output_call(inner)
            if call is None:
                continue
            if position + 1 != len(statement.body):
                raise self.error(inner, "R.output must be the last statement of its dataflow block", rule="output")
            for arg in call.args:
                if not isinstance(arg, ast.Name):
                    raise self.error(arg, "R.output takes names of variables", rule="output")
                if arg.id not in last:
                    hint = did_you_mean(arg.id, last).removeprefix("; ") or None
                    message = f"R.output: {arg.id!r} is not bound in this dataflow block"
                    raise self.error(arg, message, hint=hint, rule="output")
                outputs[arg.id] = (last[arg.id], arg)
        if self._output_call(statement.body[-1]) is None:
            names = ", ".join(last) or "x"
            self.without_output.append(
                self.error(
                    statement.body[-1],
                    "a dataflow block ends with R.output: it names what is visible after the block",
                    hint=f"add R.output({names})",
                    rule="output",
                )
            )
        return outputs

    def _output_call(self, statement: ast.stmt) -> ast.Call | None:
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            return None
        function = statement.value.func
        if not isinstance(function, (ast.Attribute, ast.Name)):
            return None
        if (function.attr if isinstance(function, ast.Attribute) else function.id) != "output":
            return None
        found = self.evaluate(function)
        return statement.value if isinstance(found, Form) and found.name == "R.output" else None

    def _if(self, statement: ast.If, hint: str | None = None) -> None:
        condition = self.evaluate(statement.test)
        if not isinstance(condition, Expr):  # known while reading: only the chosen branch is read
            for inner in statement.body if condition else statement.orelse:
                self.statement(inner)
            return
        if self.in_dataflow:
            raise self.error(statement, "'if' cannot stand in a dataflow block", rule="dataflow")
        if not statement.orelse:
            raise self.error(statement, "'if' needs an 'else': both branches bind the result", rule="if")
        declared = self._declared_result(statement)
        then_name, then = self._branch(statement.body, "then", declared is not None)
        else_name, other = self._branch(statement.orelse, "else", declared is not None)
        if then_name.id != else_name.id:
            raise self.error(
                else_name,
                "both branches of an if end by binding one name",
                expected=repr(then_name.id),
                actual=repr(else_name.id),
                rule="if",
            )
        called = then_name.id if hint is None else hint
        var = self.builder.emit_if(condition, then, other, called, self.span(statement.test), declared)
        self.define(then_name.id, var)

    def _declared_result(self, statement: ast.If) -> Type | None:
        """The type that both branches declare for the result, where they agree."""
        annotations: list[Type] = []
        for last in (statement.body[-1], statement.orelse[-1]):
            if not isinstance(last, ast.AnnAssign):
                return None
            annotations.append(self.type_of(unquote(self, last.annotation)))
        return annotations[0] if structural_equal(annotations[0], annotations[1]) else None

    def _branch(self, statements: list[ast.stmt], which: str, declared: bool) -> tuple[ast.Name, Any]:
        """A branch: its last statement binds the result; ``declared``: its annotation is the whole if's."""
        self.builder.begin_branch()
        self.scopes.append({})
        for inner in statements[:-1]:
            self.statement(inner)
        last = statements[-1]
        name = result_name(last)
        if name is None:
            if isinstance(last, ast.Return):
                self._misplaced_return(last)
            raise self.error(last, "a branch ends by binding its result to a name", rule="if")
        value: Any
        if isinstance(last, (ast.Assign, ast.AnnAssign)) and last.value is not None:
            try:
                value = self._branch_value(last, last.value, name, which, declared)
            except Exception as error:
                made = self.convert(error, last)
                raise made from made.__cause__
        else:
            self.statement(last, f"{name.id}_{which}")
            value = self.lookup(name.id)
        self.scopes.pop()
        return name, self.builder.end_branch(value, self.span(last))

    def _branch_value(
        self, last: ast.Assign | ast.AnnAssign, node: ast.expr, name: ast.Name, which: str, declared: bool
    ) -> Any:
        """The result of a branch: what is a value already is not bound to another variable."""
        given = self.evaluate(node)
        if isinstance(given, FormCall):
            self._bind_name(name, given, node, last)
            return self.lookup(name.id)
        value = self.builder.normalize(self.value(given, node))
        said = isinstance(last, ast.AnnAssign) and not declared
        annotation = self.type_of(unquote(self, last.annotation)) if said else None  # type: ignore[union-attr]
        if annotation is not None and structural_equal(annotation, getattr(value, "ty", None)):
            annotation = None
        if annotation is not None or isinstance(value, (Call, TupleGetItem)):
            value = self.builder.emit(value, f"{name.id}_{which}", annotation, None, self.span(name))
        return value

    def _function(self, statement: ast.FunctionDef) -> None:
        for decorator in statement.decorator_list[:1]:
            found = self.evaluate(decorator)
            call = found if isinstance(found, FormCall) else FormCall(found) if isinstance(found, Form) else None
            if call is not None and call.form.name == "R.macro":
                hygienic = call.kwargs.get("hygienic", True) is True
                macro = Macro(statement.name, self.source, statement, self.env, hygienic, list(self.scopes))
                self.define(statement.name, macro)
                return
            if call is not None and call.form.name == "R.function":
                options = bind_form(call, graph_options)
                self._local_function(statement, options)
                return
        raise self.error(self.source.name_span(statement), "a local function needs @R.function")

    def _local_function(self, statement: ast.FunctionDef, options: GraphOptions) -> None:
        inner = GraphParser(
            self.source, self.env, statement, GraphOptions(True, options.pure, options.check_well_formed), self.module
        )
        inner.scopes = [*self.scopes, {}]
        inner.symbols = dict(self.symbols)
        inner.hidden = dict(self.hidden)
        ty = inner.signature()
        place = self.source.name_span(statement)
        output = self.outputs.get(statement.name) is statement if self.in_dataflow else None
        recursive = any(isinstance(n, ast.Name) and n.id == statement.name for n in ast.walk(statement))
        if not recursive:
            function = inner.body(self.builder)
            self.define(statement.name, self.builder.emit(function, statement.name, None, output, place))
            return
        if ty is None:
            raise self.error(
                place,
                f"the return type of {statement.name!r} is not known where it calls itself",
                hint=f"a function that calls itself needs it: def {statement.name}(...) -> R.Tensor(...)",
            )
        local = self.in_dataflow and not output
        var = (DataflowVar if local else Var)(statement.name, ty, span=place)
        inner.scopes[-2] = {**inner.scopes[-2], statement.name: var}  # parameters may hide it
        function = inner.body(self.builder)
        self.builder.emit_normalized(VarBinding(var, function, span=place))
        self.define(statement.name, var)

    # -------------------------------------------------------------------------------------------------- expressions

    def value(self, value: Any, node: ast.AST) -> Expr:
        """A graph value: nodes as they are, tuples, numbers (int64 and float64), text, arrays."""
        if isinstance(value, Expr):
            if isinstance(value, Op):
                raise self.error(node, f"{value.short_name} is an operator: call it")
            return value
        if isinstance(value, (tuple, list)):
            return Tuple(tuple(self.value(v, node) for v in value), span=self.span(node))
        if isinstance(value, (Form, FormCall, Fresh, ModuleRef, Type)) or value is None:
            name = value.name if isinstance(value, (Form, ModuleRef)) else describe(value)
            raise self.error(node, f"{name} is not a value")
        if isinstance(value, (bool, int, float, str)) or not hasattr(value, "__array__"):
            return graph_scalar(value)
        return constant(value)

    def form(self, call: FormCall, node: ast.Call) -> Any:
        self.at = node
        if isinstance(call.form, TypeForm):
            build: Callable[..., Type] = call.form.build
            return self.bind(call, build, node)
        return call

    def attribute(self, value: Any, node: ast.Attribute) -> Any:
        if isinstance(value, ModuleRef):
            found = value.functions.get(node.attr)
            if found is None:
                hint = did_you_mean(node.attr, value.functions).removeprefix("; ") or None
                raise self.error(
                    node, f"the module {value.name} has no function {node.attr!r}", hint=hint, rule="undefined"
                )
            return found
        return super().attribute(value, node)

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], node: ast.Call) -> Any:
        if isinstance(function, GlobalVar):
            return self.call_value(function, args, kwargs, node)
        if isinstance(function, Macro):
            made = expand(self, function, args, kwargs, node)
            if conventions().binds_values and isinstance(made, Expr) and not isinstance(made, Var):
                return self.builder.emit(made, "", None, None, self.span(node))
            return made
        if isinstance(function, Op):
            for position, param in enumerate(function.params):
                find = {"dst_vdevice": self.vdevice, "device_mesh": self.mesh}.get(param.name)
                if find is not None:  # text that names something of the module
                    args = tuple(find(a) if i == position and isinstance(a, str) else a for i, a in enumerate(args))
                    kwargs = {k: find(v) if k == param.name and isinstance(v, str) else v for k, v in kwargs.items()}
        return super().call(function, args, kwargs, node)

    def call_value(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], node: ast.Call) -> Any:
        if kwargs:
            raise self.error(node, "functions of the program take positional arguments only")
        name = function.name_hint
        if isinstance(function, GlobalVar):
            if self.module is not None and name in self.module.loops and function.ty is None:
                raise self.error(
                    node,
                    f"{name!r} is a loop function",
                    hint=f"call it by destination passing: R.call_tir(cls.{name}, (x,), out_ty=R.Tensor(...))",
                    rule="call",
                )
            if function.ty is None and self.module is not None:
                function = self.module.resolve(name) or function
            if function.ty is None:
                raise self.error(
                    node,
                    f"the return type of {name!r} is not known here",
                    hint=f"a function that calls itself needs it: def {name}(...) -> R.Tensor(...)",
                )
        elif not isinstance(function.ty, (FuncType, AnyType)):
            raise self.error(node.func, f"{name!r} is not a function", actual=str(function.ty))
        return Call(function, tuple(self.value(a, node) for a in args), span=self.span(node))

    def subscript(self, value: Any, index: Any, node: ast.Subscript) -> Any:
        if isinstance(value, Expr) and isinstance(getattr(value, "ty", None), TupleType):
            position = index.value if isinstance(index, IntImm) else index
            if isinstance(position, bool) or not isinstance(position, int):
                raise self.error(node.slice, "the index of a tuple must be a constant integer")
            index = position
        return super().subscript(value, index, node)

    def missing_name(self, node: ast.Name) -> Any:
        if node.id == "metadata":
            raise self.error(
                node,
                "the text does not carry the data of its large constants",
                hint="print it with script(show_meta=True)",
                rule="metadata",
            )
        if node.id in self.hidden:
            raise self.error(
                node,
                f"the dataflow variable {node.id!r} is not visible outside of its block",
                hint=f"add it to the block's output: R.output({node.id})",
                rule="output",
            )
        return super().missing_name(node)


_STATEMENTS: dict[type[ast.stmt], Callable[[GraphParser, Any], None]] = {
    ast.Pass: GraphParser._pass,
    ast.Assign: GraphParser._assign,
    ast.AnnAssign: GraphParser._annotated,
    ast.Expr: GraphParser._expression,
    ast.With: GraphParser._with,
    ast.If: GraphParser._if,
    ast.FunctionDef: GraphParser._function,
    ast.Return: GraphParser._misplaced_return,
}
