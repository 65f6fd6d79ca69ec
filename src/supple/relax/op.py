"""Functions that make calls of operators: ``relax.op.add(x, y)``, ``relax.op.nn.relu(x)``.

Every registered operator is here under its own name; a call is returned as it is, to be emitted by a `BlockBuilder`.
"""

from __future__ import annotations

from typing import Any

from supple.script import relax as _names

call_tir = _names.call_tir
call_tir_inplace = _names.call_tir_inplace
call_dps_packed = _names.call_dps_packed
call_pure_packed = _names.call_pure_packed


def __getattr__(name: str) -> Any:
    return _names.operator_named("dist" if name == "distributed" else name)  # Relax's script and module differ


def __dir__() -> list[str]:
    return _names.operator_names()
