"""Patterns as text, as Relax writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from supple.ir.expr import IntImm


def pattern_text(pattern: Any) -> str:
    """A pattern's text, by its kind; its class's name for a kind of the program's own."""
    write = _TEXTS.get(type(pattern).__name__)
    return type(pattern).__name__ if write is None else write(pattern)


def _fields_text(fields: Any) -> str:
    inner = ", ".join(map(str, fields))
    return f"({inner},)" if len(fields) == 1 else f"({inner})"


def _sizes_text(sizes: Any) -> str:
    return _fields_text([size.value if isinstance(size, IntImm) else size for size in sizes])


_TEXTS: dict[str, Callable[[Any], str]] = {
    "WildcardPattern": lambda p: "*",
    "ExprPattern": lambda p: str(p.expr),
    "VarPattern": lambda p: f"VarPattern({p.name})",
    "DataflowVarPattern": lambda p: f"DataflowVarPattern({p.name})",
    "GlobalVarPattern": lambda p: f"GlobalVarPattern({p.name})",
    "ExternFuncPattern": lambda p: f"ExternFuncPattern({p.global_symbol})",
    "ConstantPattern": lambda p: "ConstantPattern()",
    "CallPattern": lambda p: f"{p.op}({', '.join(map(str, p.args))})",
    "TuplePattern": lambda p: f"TuplePattern({_fields_text(p.fields)})",
    "UnorderedTuplePattern": lambda p: f"UnorderedTuplePattern({_fields_text(p.fields)})",
    "TupleGetItemPattern": lambda p: f"TupleGetItemPattern({p.tuple}, {p.index})",
    "FunctionPattern": lambda p: f"FunctionPattern({_fields_text(p.params)}, {p.body})",
    "PrimArrPattern": lambda p: f"PrimArrPattern({_sizes_text(p.fields)})",
    "OrPattern": lambda p: f"OrPattern({p.left} | {p.right})",
    "AndPattern": lambda p: f"AndPattern({p.left} & {p.right})",
    "NotPattern": lambda p: f"!({p.reject})",
    "AttrPattern": lambda p: f"AttrPattern({p.pattern} has attributes {_attributes_text(p.attrs)})",
    "TypePattern": lambda p: f"TypePattern({p.pattern} has relax Type {p.ty})",
    "DataTypePattern": lambda p: f"DataTypePattern({p.pattern} has dtype {p.dtype})",
    "ShapePattern": lambda p: f"ShapePattern({p.pattern} has shape {_sizes_text(p.shape)})",
    "PatternSeq": lambda p: "[" + " ^ ".join(map(str, p.patterns)) + "]",
}


def _attributes_text(attrs: dict[str, Any]) -> str:
    return "{" + ", ".join(f'"{key}": {value}' for key, value in attrs.items()) + "}"
