"""Functions that make calls of operators: ``relax.op.add(x, y)``, ``relax.op.nn.relu(x)``.

Every registered operator is here under its own name; a call is returned as it is, to be emitted by a `BlockBuilder`.
"""

from __future__ import annotations

from typing import Any

from supple.base.errors import NotSupportedError
from supple.ir.expr import Call
from supple.ir.graph import constant
from supple.ir.node import Expr
from supple.script import relax as _names

call_tir = _names.call_tir
call_tir_inplace = _names.call_tir_inplace
call_dps_packed = _names.call_dps_packed
call_pure_packed = _names.call_pure_packed

_VISION = (
    "all_class_non_max_suppression", "get_valid_counts", "multibox_transform_loc", "non_max_suppression", "roi_align",
    "roi_pool",
)  # fmt: skip
"""Operators of the group ``vision`` that stand beside it as well."""


def call_py_func(func_name: Any, args: Any, out_ty: Any) -> Call:
    """Call a Python function of the module's class: ``relax.op.call_py_func("name", (x, y), out_ty)``."""
    made: Call = _names.call_py_func(func_name, args, out_ty=out_ty)
    return made


def masked_fill(x: Expr, mask: Expr, value: Expr | float | bool) -> Call:
    """The elements of ``x``, with ``value`` (a number, or a tensor of no dimensions) where ``mask`` is true: ``where``
    and ``full_like``."""
    if not isinstance(value, Expr):
        value = constant(value, x.ty.dtype)  # type: ignore[attr-defined]
    dtype = getattr(getattr(value, "ty", None), "dtype", None)
    made: Call = _names.where(mask, _names.full_like(x, value, dtype), x)
    return made


def register_gradient(op_name: str, fgradient: Any = None, level: int = 10) -> None:
    """Gradients of operators are not supported: raises `NotSupportedError`."""
    raise NotSupportedError(f"relax.op.register_gradient({op_name!r}): Supple has no gradients of operators")


def __getattr__(name: str) -> Any:
    if name in _VISION:
        return getattr(_names.operator_named("vision"), name)
    return _names.operator_named("dist" if name == "distributed" else name)  # Relax's script and module differ


def __dir__() -> list[str]:
    return sorted({*_names.operator_names(), *_VISION, "call_py_func", "masked_fill"})
