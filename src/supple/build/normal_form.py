"""A-normal form: operands are variables and literals, and what is nested is bound before its use.

`Normalizer` is the part of the builder that makes it; the builder says where bindings go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from supple.base.errors import TypeCheckError
from supple.base.source import Span
from supple.build.infer import infer
from supple.ir.conventions import conventions
from supple.ir.expr import Call, TupleGetItem, Var, as_expr, is_scalar
from supple.ir.graph import (
    Binding,
    BindingBlock,
    Function,
    If,
    MatchCast,
    SeqExpr,
    ShapeExpr,
    Tuple,
    VarBinding,
    constant,
)
from supple.ir.node import Expr, replace, set_field
from supple.ir.op import Op, settle, settle_literals

NESTED = (Call, Tuple, TupleGetItem)
_SCOPED = (If, SeqExpr, Function)


def _is_number(e: Expr) -> bool:
    """Whether an expression is arithmetic on scalars, which needs no variable. Numbers that operators, functions and
    tuples give do."""
    if isinstance(e, Call) and not (isinstance(e.op, Op) and "intrinsic" in e.op.facts):
        return False
    return is_scalar(e) and not isinstance(e, TupleGetItem)


class Normalizer:
    """Puts expressions into A-normal form. The class that builds says how to bind a value and to open a scope."""

    def emit_normal(self, value: Expr) -> Var:
        """Bind an expression that is in normal form."""
        raise NotImplementedError

    def bound_in_block(self) -> dict[int, tuple[Expr, Expr]]:
        """The operands that were bound to variables in the block that is open, by identity, each with its variable."""
        raise NotImplementedError

    def append(self, binding: Binding) -> None:
        """Take over a binding in normal form."""
        raise NotImplementedError

    def begin_branch(self) -> None:
        """Start a sequence of its own."""
        raise NotImplementedError

    def end_branch(self, value: Any, span: Span | None = None) -> SeqExpr:
        """The sequence that is open, with its value."""
        raise NotImplementedError

    def open_block(self, kind: type[BindingBlock]) -> None:
        """Start a block of that kind in the sequence that is open."""
        raise NotImplementedError

    def close_block(self, empty: type[BindingBlock] | None = None) -> None:
        """End the block; an ``empty`` one of that kind is kept where nothing was bound."""
        raise NotImplementedError

    def enter_function(self, func: Function) -> None:
        """The parameters of a local function are known until the sequence that comes next ends."""
        raise NotImplementedError

    def normalize(self, expr: Any) -> Expr:
        """The expression in A-normal form with its type: nested calls are bound to new variables in this scope.

        An operand that this block has bound before is not bound again. Branches and local functions are put into normal
        form in scopes of their own. What is in normal form already comes back as it is.
        """
        root = as_value(expr)
        if isinstance(root, _SCOPED):
            return self._scoped(root)
        if not isinstance(root, NESTED):
            infer(root)
            return root
        done: dict[int, Expr] = {}
        bound = self.bound_in_block()
        stack: list[tuple[Expr, bool]] = [(root, False)]
        while stack:
            current, expanded = stack.pop()
            if id(current) in done:
                continue
            if isinstance(current, _SCOPED):
                done[id(current)] = self.emit_value(self._scoped(current))
                continue
            if not isinstance(current, NESTED) or _is_number(current):
                done[id(current)] = current
                continue
            if current is not root and id(current) in bound:
                done[id(current)] = bound[id(current)][1]
                continue
            operands = _operands(current)
            if not expanded:
                stack.append((current, True))
                stack.extend((operand, False) for operand in reversed(operands))
                continue
            leaves = [done[id(operand)] for operand in operands]
            rebuilt = _with_operands(current, leaves)
            if current is not root and not isinstance(current, Tuple):
                rebuilt = self.emit_normal(rebuilt)
                bound[id(current)] = (current, rebuilt)
            done[id(current)] = rebuilt
        return done[id(root)]

    def emit_value(self, value: Expr) -> Expr:
        """A value in normal form as an operand: a sequence becomes part of the one that is open."""
        return self.emit_normal(self.flatten(value) if isinstance(value, SeqExpr) else value)

    def flatten(self, value: SeqExpr) -> Expr:
        """Take over the blocks of a sequence in normal form; its value."""
        raise NotImplementedError

    def _scoped(self, e: Expr) -> Expr:
        """The normal form of what has a scope of its own. Recursion is as deep as scopes are nested."""
        if isinstance(e, If):
            return self._normal_if(e)
        if isinstance(e, SeqExpr):
            return self.normal_sequence(e)
        assert isinstance(e, Function)
        if is_normal(e.body):
            return e
        self.enter_function(e)
        return replace(e, body=self.normal_sequence(e.body))

    def _normal_if(self, e: If) -> Expr:
        assert isinstance(e.true_branch, SeqExpr) and isinstance(e.false_branch, SeqExpr)
        cond = self.normalize(e.cond)
        if isinstance(cond, (*NESTED, *_SCOPED)) and not _is_number(cond):
            cond = self.emit_value(cond)
        branches = [self.normal_sequence(e.true_branch), self.normal_sequence(e.false_branch)]
        same = cond is e.cond and branches[0] is e.true_branch and branches[1] is e.false_branch
        made = e if same else replace(e, cond=cond, true_branch=branches[0], false_branch=branches[1], ty=None)
        return replace(made, ty=infer(made)) if made.ty is None else made

    def normal_sequence(self, e: SeqExpr) -> SeqExpr:
        """A sequence whose bindings and value are in normal form."""
        if is_normal(e):
            return e
        self.begin_branch()
        for block in e.blocks:
            self.open_block(type(block))
            for binding in block.bindings:
                self._renew(binding)
            self.close_block(type(block) if not block.bindings else None)
        self.open_block(BindingBlock)
        value = self.normalize(e.body)
        if not isinstance(value, (Var, Tuple)) and not is_leaf(value):
            value = self.emit_value(value)
        return self.end_branch(value, e.span)

    def _renew(self, binding: Binding) -> None:
        """Append a binding with its value in normal form."""
        assert isinstance(binding, (VarBinding, MatchCast))
        value = self.normalize(binding.value)
        if isinstance(binding, MatchCast) and not castable(value):
            value = self.emit_value(value)
        elif isinstance(value, SeqExpr):
            value = self.flatten(value)
        if binding.var.ty is None:  # made without a type: it is what its value's is
            set_field(binding.var, "ty", binding.ty if isinstance(binding, MatchCast) else infer(value))
        self.append(binding if value is binding.value else replace(binding, value=value))


def is_normal(e: Expr) -> bool:
    """Whether a value that has scopes of its own is in normal form, all through."""
    stack: list[Expr] = [e]
    while stack:
        current = stack.pop()
        if isinstance(current, SeqExpr):
            for block in current.blocks:
                for binding in block.bindings:
                    assert isinstance(binding, (VarBinding, MatchCast))
                    if not _flat(binding.value) or isinstance(binding.value, SeqExpr) or binding.var.ty is None:
                        return False
                    if isinstance(binding.value, _SCOPED):
                        stack.append(binding.value)
            if isinstance(current.body, (Call, TupleGetItem, *_SCOPED)) and not _is_number(current.body):
                return False
            if not _flat(current.body):
                return False
        elif isinstance(current, If):
            if isinstance(current.cond, NESTED) and not _is_number(current.cond):
                return False
            stack += (current.true_branch, current.false_branch)
        elif isinstance(current, Function):
            if not isinstance(current.body, SeqExpr):
                return False
            stack.append(current.body)
    return True


def _flat(value: Expr) -> bool:
    """Whether the operands of a value are leaves, and its type is known where it is a call."""
    if not isinstance(value, NESTED) or _is_number(value):
        return True
    if value.ty is None:
        return False
    return all(_flat_operand(operand) for operand in _operands(value))


def _flat_operand(operand: Expr) -> bool:
    if isinstance(operand, Tuple):
        return _flat(operand)
    return not isinstance(operand, (Call, TupleGetItem, *_SCOPED)) or _is_number(operand)


def as_value(value: Any) -> Expr:
    """Python values where a graph value is wanted: tuples, numbers, arrays."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, (tuple, list)):
        return Tuple(tuple(as_value(v) for v in value))
    if hasattr(value, "dtype") or hasattr(value, "__array__"):
        return constant(value)
    return as_expr(value)


def castable(e: Expr) -> bool:
    """Whether ``R.match_cast`` checks a value in normal form as it is; otherwise it is bound to a variable first."""
    return isinstance(e, (Var, ShapeExpr)) or (conventions().casts_values and not isinstance(e, (Tuple, *_SCOPED)))


def is_leaf(e: Expr) -> bool:
    """Whether a value may be returned or used as an operand without a variable."""
    return not isinstance(e, (*NESTED, *_SCOPED)) or isinstance(e, Tuple) or _is_number(e)


def _operands(e: Expr) -> Sequence[Expr]:
    if isinstance(e, Call):
        return [e.op, *e.args] if isinstance(e.op, (*NESTED, *_SCOPED)) else e.args
    if isinstance(e, Tuple):
        return e.fields
    assert isinstance(e, TupleGetItem)
    return [e.tuple_value]


def _with_operands(e: Expr, operands: list[Expr]) -> Expr:
    """The node on normalised operands, with its deduced type."""
    same = all(a is b for a, b in zip(_operands(e), operands, strict=True))
    rebuilt: Expr
    if isinstance(e, Call):
        op = operands.pop(0) if isinstance(e.op, (*NESTED, *_SCOPED)) else e.op
        rebuilt = e if same and e.ty is not None else replace(e, op=op, args=tuple(operands), ty=None)
        if isinstance(op, Op):
            rebuilt = _settled(rebuilt)
    elif isinstance(e, Tuple):
        rebuilt = e if same and e.ty is not None else replace(e, fields=tuple(operands), ty=None)
    else:
        assert isinstance(e, TupleGetItem)
        rebuilt = e if same and e.ty is not None else replace(e, tuple_value=operands[0], ty=None)
    if rebuilt is e:
        return e
    return replace(rebuilt, ty=infer(rebuilt))


def _settled(call: Call) -> Call:
    try:
        return settle(settle_literals(call))
    except TypeError as error:
        raise TypeCheckError(str(error), span=call.span, rule="literal") from None


__all__ = ["NESTED", "Normalizer", "as_value", "castable", "is_leaf", "is_normal"]
