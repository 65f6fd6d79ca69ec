"""Functions that make calls of operators: ``relax.op.add(x, y)``, ``relax.op.nn.relu(x)``.

Every registered operator is here under its own name; a call is returned as it is, to be emitted by a `BlockBuilder`.
"""

from __future__ import annotations

from typing import Any

from supple.ir.graph import constant as const
from supple.script import relax as _names

call_tir = _names.call_tir
call_tir_inplace = _names.call_tir_inplace
call_dps_packed = _names.call_dps_packed
call_pure_packed = _names.call_pure_packed


_OF_VISION = (
    "all_class_non_max_suppression",
    "get_valid_counts",
    "multibox_transform_loc",
    "non_max_suppression",
    "roi_align",
    "roi_pool",
)


def masked_fill(x: Any, mask: Any, value: Any) -> Any:
    """``x`` with ``value``, a number, where ``mask`` is true: ``where(mask, full_like(x, value), x)``."""
    filled = _names.operator_named("full_like")(x, const(value, x.ty.dtype))
    return _names.operator_named("where")(mask, filled, x)


def __getattr__(name: str) -> Any:
    if name in _OF_VISION:  # there, these are found at both places
        return getattr(_names.operator_named("vision"), name)
    return _names.operator_named("dist" if name == "distributed" else name)  # Relax's script and module differ


def __dir__() -> list[str]:
    return sorted({*_names.operator_names(), *_OF_VISION, "masked_fill"})
