"""The functions that make patterns over graph expressions (``relax.dpl``): `wildcard`, `is_op` and their relatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from supple.analysis.patterns import (
    CallPattern,
    ConstantPattern,
    DataflowVarPattern,
    DFPattern,
    ExprPattern,
    ExternFuncPattern,
    GlobalVarPattern,
    NotPattern,
    PrimArrPattern,
    TupleGetItemPattern,
    TuplePattern,
    UnorderedTuplePattern,
    VarPattern,
    WildcardPattern,
)
from supple.ir.node import Expr
from supple.ir.op import Op


def wildcard() -> WildcardPattern:
    """Anything."""
    return WildcardPattern()


def is_op(op_name: str) -> ExprPattern:
    """An operator by its full name; raises `RegistryError` for an unknown one."""
    return ExprPattern(Op.get(op_name))


def is_expr(expr: Expr) -> ExprPattern:
    """One expression, up to structural equality."""
    return ExprPattern(expr)


def is_var(name: str = "") -> VarPattern:
    """A variable (of that name)."""
    return VarPattern(name)


def is_dfv(name: str = "") -> DataflowVarPattern:
    """A dataflow variable (of that name)."""
    return DataflowVarPattern(name)


def is_gv(name: str = "") -> GlobalVarPattern:
    """A function of the module (of that name)."""
    return GlobalVarPattern(name)


def is_const() -> ConstantPattern:
    """A tensor literal."""
    return ConstantPattern()


def is_tuple(fields: Sequence[DFPattern], unordered: bool = False) -> TuplePattern:
    """A tuple of these fields."""
    return UnorderedTuplePattern(fields) if unordered else TuplePattern(fields)


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """A field of a tuple."""
    return TupleGetItemPattern(tuple_value, index)


def is_shape(shape: Sequence[Any]) -> PrimArrPattern:
    """A shape value."""
    return PrimArrPattern(shape)


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DFPattern:
    """A tensor of a dtype."""
    return (pattern or wildcard()).has_dtype(dtype)


def has_attr(attrs: Mapping[str, Any], pattern: DFPattern | None = None) -> DFPattern:
    """An expression with these attributes."""
    return (pattern or wildcard()).has_attr(attrs)


def reject(pattern: DFPattern) -> NotPattern:
    """What ``pattern`` does not match."""
    return NotPattern(pattern)


def _destination_call(op: Op, callee: DFPattern, args: Any) -> CallPattern:
    if args is None:
        fields: DFPattern = wildcard()
    elif isinstance(args, (list, tuple)):
        fields = TuplePattern(args)
    else:
        fields = args
    return CallPattern(ExprPattern(op), (callee, fields), varg_default_wildcard=True)


def is_call_tir(func_name: str, args: Any = None) -> CallPattern:
    """``call_tir`` of a loop function of that name."""
    return _destination_call(Op.of_role("call_tir"), GlobalVarPattern(func_name), args)


def is_call_dps_packed(func_name: str, args: Any = None) -> CallPattern:
    """``call_dps_packed`` of a registered function."""
    return _destination_call(Op.of_role("call_dps_packed"), ExternFuncPattern(func_name), args)


def is_call_packed(func_name: str, args: Sequence[DFPattern] | None = None) -> CallPattern:
    """``call_packed`` of a registered function."""
    return CallPattern(ExternFuncPattern(func_name), tuple(args or ()), varg_default_wildcard=args is None)


def make_fused_bias_activation_pattern(
    op_name: str, with_bias: bool = False, activation: str | None = None, allow_reshape: bool = False
) -> DFPattern:
    """``activation(op(x, w) + bias)``, each part optional."""
    out: DFPattern = is_op(op_name)(wildcard(), wildcard())
    if allow_reshape:
        out = is_op(Op.of_role("reshape").name)(out, wildcard(), varg_default_wildcard=True) | out
    if with_bias:
        out = is_op(Op.of_role("add").name)(out, wildcard())
    return is_op(activation)(out) if activation else out
