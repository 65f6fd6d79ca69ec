"""Visitors and mutators of graph functions, under Relax's names (``PyExprVisitor``, ``PyExprMutator``).

A subclass overrides ``visit_call_``, ``visit_var_``, ... and calls ``super()`` for the default. A mutator rebuilds the
function through a `BlockBuilder` (``self.builder_``), which normalises and deduces types.
"""

from __future__ import annotations

from typing import Any, TypeVar

from supple.analysis.graph import shapes_in
from supple.build.block_builder import BlockBuilder
from supple.build.infer import infer
from supple.ir.expr import Call, DataflowVar, StringImm, TupleGetItem, Var, is_scalar
from supple.ir.graph import (
    Binding,
    BindingBlock,
    Constant,
    DataflowBlock,
    DataTypeImm,
    ExternFunc,
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
from supple.ir.module import IRModule
from supple.ir.node import Expr, Type, replace
from supple.ir.op import Op
from supple.ir.structural import structural_equal
from supple.ir.walk import substitute

C = TypeVar("C", bound=type)

_METHODS: tuple[tuple[type, str], ...] = (
    (Constant, "visit_generic_const_"),
    (Tuple, "visit_tuple_"),
    (DataflowVar, "visit_dataflow_var_"),
    (Var, "visit_var_"),
    (ShapeExpr, "visit_shape_expr_"),
    (ExternFunc, "visit_extern_func_"),
    (GlobalVar, "visit_global_var_"),
    (Function, "visit_function_"),
    (Call, "visit_call_"),
    (SeqExpr, "visit_seq_expr_"),
    (If, "visit_if_"),
    (Op, "visit_op_"),
    (TupleGetItem, "visit_tuple_getitem_"),
    (StringImm, "visit_string_imm_"),
    (DataTypeImm, "visit_data_type_imm_"),
    (PrimFunc, "visit_prim_func_"),
)


def _method(e: Expr) -> str:
    if is_scalar(e) and not isinstance(e, Var):
        return "visit_prim_value_"
    return next((name for kind, name in _METHODS if isinstance(e, kind)), "visit_expr_fallback_")


def visitor(cls: C) -> C:
    """Mark a subclass of `PyExprVisitor` (Relax needs the mark; here it changes nothing)."""
    return cls


def mutator(cls: C) -> C:
    """Mark a subclass of `PyExprMutator` (Relax needs the mark; here it changes nothing)."""
    return cls


class ExprFunctor:
    """Calls the method of an expression's kind: ``visit_call_`` for a `Call`, and so on."""

    def visit_expr(self, expr: Expr) -> Any:
        """What the method of the expression's kind returns. Raises ``NotImplementedError`` where there is none."""
        method = getattr(self, _method(expr), None)
        if method is None:
            raise NotImplementedError(f"{type(self).__name__} has no {_method(expr)}")
        return method(expr)


class PyExprVisitor(ExprFunctor):
    """Visits every expression, binding and variable definition of a graph function, in order of evaluation.

    The shapes in the type of a value (not those in types of functions) are visited after its operands.
    """

    def _visit_shapes(self, ty: Any) -> None:
        for shape in shapes_in(ty):
            self.visit_expr(shape)

    # bindings and blocks

    def visit_binding(self, binding: Binding) -> None:
        if isinstance(binding, MatchCast):
            self.visit_match_cast_(binding)
        else:
            self.visit_var_binding_(binding)  # type: ignore[arg-type]

    def visit_var_binding_(self, binding: VarBinding) -> None:
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_match_cast_(self, binding: MatchCast) -> None:
        self.visit_expr(binding.value)
        self._visit_shapes(binding.ty)
        self.visit_var_def(binding.var)

    def visit_binding_block(self, block: BindingBlock) -> None:
        if isinstance(block, DataflowBlock):
            self.visit_dataflow_block_(block)
        else:
            self.visit_binding_block_(block)

    def visit_binding_block_(self, block: BindingBlock) -> None:
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_dataflow_block_(self, block: DataflowBlock) -> None:
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_var_def(self, var: Var) -> None:
        if isinstance(var, DataflowVar):
            self.visit_dataflow_var_def_(var)
        else:
            self.visit_var_def_(var)

    def visit_var_def_(self, var: Var) -> None:
        """A variable's definition."""

    def visit_dataflow_var_def_(self, var: DataflowVar) -> None:
        """A dataflow variable's definition."""

    # expressions

    def visit_function_(self, op: Function) -> None:
        for param in op.params:
            self.visit_var_def(param)
        self.visit_expr(op.body)

    def visit_seq_expr_(self, op: SeqExpr) -> None:
        for block in op.blocks:
            self.visit_binding_block(block)
        self.visit_expr(op.body)
        self._visit_shapes(op.ty)

    def visit_call_(self, op: Call) -> None:
        self.visit_expr(op.op)
        for ty in op.ty_args:
            self._visit_shapes(ty)
        for arg in op.args:
            self.visit_expr(arg)
        self._visit_shapes(op.ty)

    def visit_tuple_(self, op: Tuple) -> None:
        for field in op.fields:
            self.visit_expr(field)
        self._visit_shapes(op.ty)

    def visit_tuple_getitem_(self, op: TupleGetItem) -> None:
        self.visit_expr(op.tuple_value)
        self._visit_shapes(op.ty)

    def visit_if_(self, op: If) -> None:
        self.visit_expr(op.cond)
        self.visit_expr(op.true_branch)
        self.visit_expr(op.false_branch)
        self._visit_shapes(op.ty)

    def visit_shape_expr_(self, op: ShapeExpr) -> None:
        for value in op.values:
            self.visit_expr(value)

    def visit_var_(self, op: Var) -> None:
        """A use of a variable."""
        self._visit_shapes(op.ty)

    def visit_dataflow_var_(self, op: DataflowVar) -> None:
        """A use of a dataflow variable."""
        self._visit_shapes(op.ty)

    def visit_generic_const_(self, op: Constant) -> None:
        """A tensor literal; `visit_constant_` is its older name, which is called from here."""
        self.visit_constant_(op)

    def visit_constant_(self, op: Constant) -> None:
        """A tensor literal."""

    def visit_global_var_(self, op: GlobalVar) -> None:
        """A function of the module."""

    def visit_extern_func_(self, op: ExternFunc) -> None:
        """A registered function."""

    def visit_op_(self, op: Op) -> None:
        """An operator."""

    def visit_prim_value_(self, op: Expr) -> None:
        """A scalar expression."""

    def visit_string_imm_(self, op: StringImm) -> None:
        """A string."""

    def visit_data_type_imm_(self, op: DataTypeImm) -> None:
        """A dtype as a value."""

    def visit_prim_func_(self, op: PrimFunc) -> None:
        """A loop function."""

    def visit_expr_fallback_(self, op: Expr) -> None:
        """Any other expression."""


class PyExprMutator(ExprFunctor):
    """Rebuilds graph functions.

    ``self.builder_`` is the `BlockBuilder` of the module given; expressions emitted there come before the binding that
    is visited. A method returns the new expression; a binding whose value changes gets a new variable of the new type,
    and later uses follow.
    """

    def __init__(self, mod: IRModule | None = None) -> None:
        self.builder_ = BlockBuilder(mod)
        self._remap: dict[int, tuple[Var, Var]] = {}

    def visit_expr(self, expr: Expr) -> Expr:
        """The new form of any expression: calls the method of its kind."""
        result: Expr = getattr(self, _method(expr))(expr)
        return result

    def visit_expr_post_order(self, expr: Expr) -> Expr:
        """The expression with its parts rewritten."""
        result: Expr = getattr(PyExprMutator, _method(expr))(self, expr)
        return result

    # bindings and blocks

    def visit_binding(self, binding: Binding) -> None:
        """Emit the new form of a binding."""
        if isinstance(binding, MatchCast):
            self.visit_match_cast_(binding)
        else:
            self.visit_var_binding_(binding)  # type: ignore[arg-type]

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = self.visit_expr(binding.value)
        self.reemit(binding.var, value)

    def visit_match_cast_(self, binding: MatchCast) -> None:
        value = self.builder_.cast_operand(self.visit_expr(binding.value), binding.ty, binding.span)
        new = self._defined_anew(binding.var, binding.ty)
        same = new is binding.var and value is binding.value
        self.builder_.append(binding if same else MatchCast(new, value, binding.ty, span=binding.span))

    def reemit(self, var: Var, value: Expr) -> Var:
        """Bind ``value`` in place of ``var``: to ``var`` itself where the type is the same, else to a new variable,
        which later uses of ``var`` become."""
        bound = self.builder_.normalize(value)
        if isinstance(bound, SeqExpr):
            bound = self.builder_.flatten(bound)
        new = self._defined_anew(var, infer(bound))
        self.builder_.append(VarBinding(new, bound, span=var.span))
        return new

    def _defined_anew(self, var: Var, ty: Type) -> Var:
        """What is defined in place of ``var`` for a value of that type."""
        new = self.with_type(self.visit_var_def(var), ty)
        if isinstance(new, DataflowVar) and not self.builder_.current_block_is_dataflow():
            new = Var(new.name, ty, span=new.span)
        if new is not var:
            self.set_var_remap(var, new)
        return new

    def visit_binding_block(self, block: BindingBlock) -> BindingBlock:
        """The new form of a block, which is part of the scope that is built."""
        if isinstance(block, DataflowBlock):
            return self.visit_dataflow_block_(block)
        return self.visit_binding_block_(block)

    def visit_binding_block_(self, block: BindingBlock) -> BindingBlock:
        self.builder_._begin_binding_block()
        for binding in block.bindings:
            self.visit_binding(binding)
        return self.builder_._end_block()

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        self.builder_._begin_dataflow_block()
        for binding in block.bindings:
            self.visit_binding(binding)
        return self.builder_._end_block()

    def visit_var_def(self, var: Var) -> Var:
        """The variable that is defined in place of ``var``."""
        return self.visit_dataflow_var_def_(var) if isinstance(var, DataflowVar) else self.visit_var_def_(var)

    def visit_var_def_(self, var: Var) -> Var:
        return var

    def visit_dataflow_var_def_(self, var: DataflowVar) -> Var:
        return var

    def with_type(self, var: Var, ty: Type) -> Var:
        """A variable like ``var`` of that type: itself where it has it."""
        return var if var.ty is not None and structural_equal(var.ty, ty) else type(var)(var.name, ty, span=var.span)

    def set_var_remap(self, old_var: Var, new_var: Var) -> None:
        """Let uses of ``old_var`` become ``new_var``."""
        self._remap[id(old_var)] = (old_var, new_var)

    def get_var_remap(self, var: Var) -> Var:
        """What uses of ``var`` become."""
        entry = self._remap.get(id(var))
        return var if entry is None else entry[1]

    def lookup_binding(self, var: Var) -> Expr | None:
        """The value that this mutator bound to a new variable, or None."""
        return self.builder_.lookup_binding(var)

    def visit_with_new_scope(self, expr: Expr) -> SeqExpr:
        """The new form of a branch, in a scope of its own."""
        self.builder_.begin_branch()
        return self.builder_.end_branch(self.visit_expr(expr), expr.span)

    # expressions

    def visit_function_(self, op: Function) -> Expr:
        name = str(op.attrs.get("global_symbol", "local"))
        params = tuple(self.visit_var_def(p) for p in op.params)
        for old, new in zip(op.params, params, strict=True):
            if new is not old:
                self.set_var_remap(old, new)
        self.builder_.begin_function(name, params, op.attrs, op.is_pure, None, op.span)
        return self.builder_.end_function(self.visit_expr(op.body), op.body.span)

    def visit_seq_expr_(self, op: SeqExpr) -> Expr:
        self.builder_.begin_branch()
        for block in op.blocks:
            self.builder_.keep_block(self.visit_binding_block(block))
        return self.builder_.end_branch(self.visit_expr(op.body), op.span)

    def visit_call_(self, op: Call) -> Expr:
        callee = self.visit_expr(op.op)
        args = tuple(self.visit_expr(a) for a in op.args)
        types = tuple(self.visit_ty(t) for t in op.ty_args)
        if callee is op.op and _same(args, op.args) and _same(types, op.ty_args):
            return op
        return Call(callee, args, op.attrs, types, span=op.span)

    def visit_ty(self, ty: Type) -> Type:
        """The new form of a type: remapped symbols."""
        mapping = {old: new for old, new in self._remap.values() if is_scalar(old)}
        return substitute(ty, mapping) if mapping else ty

    def visit_tuple_(self, op: Tuple) -> Expr:
        fields = tuple(self.visit_expr(f) for f in op.fields)
        return op if _same(fields, op.fields) else Tuple(fields, span=op.span)

    def visit_tuple_getitem_(self, op: TupleGetItem) -> Expr:
        value = self.visit_expr(op.tuple_value)
        return op if value is op.tuple_value else TupleGetItem(value, op.index, span=op.span)

    def visit_if_(self, op: If) -> Expr:
        return If(
            self.visit_expr(op.cond),
            self.visit_with_new_scope(op.true_branch),
            self.visit_with_new_scope(op.false_branch),
            span=op.span,
        )

    def visit_shape_expr_(self, op: ShapeExpr) -> Expr:
        values = tuple(self.visit_expr(v) for v in op.values)
        return op if _same(values, op.values) else replace(op, values=values)

    def visit_var_(self, op: Var) -> Expr:
        return self.get_var_remap(op)

    def visit_dataflow_var_(self, op: DataflowVar) -> Expr:
        return self.get_var_remap(op)

    def visit_generic_const_(self, op: Constant) -> Expr:
        return self.visit_constant_(op)

    def visit_constant_(self, op: Constant) -> Expr:
        return op

    def visit_global_var_(self, op: GlobalVar) -> Expr:
        return op

    def visit_extern_func_(self, op: ExternFunc) -> Expr:
        return op

    def visit_op_(self, op: Op) -> Expr:
        return op

    def visit_prim_value_(self, op: Expr) -> Expr:
        mapping = {old: new for old, new in self._remap.values() if is_scalar(old)}
        return substitute(op, mapping) if mapping else op

    def visit_string_imm_(self, op: StringImm) -> Expr:
        return op

    def visit_data_type_imm_(self, op: DataTypeImm) -> Expr:
        return op

    def visit_prim_func_(self, op: PrimFunc) -> Expr:
        return op

    def visit_expr_fallback_(self, op: Expr) -> Expr:
        return op


def _same(new: tuple[Any, ...], old: tuple[Any, ...]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))
