"""The names of ``I``: ``from supple.script import ir as I``."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.base.registry import did_you_mean
from supple.ir import expr as _expr
from supple.ir.graph import Constant, constant
from supple.ir.types import DummyGlobalInfo, StringType, VDevice
from supple.script.entry import ModuleDecorator, PythonFunctionDecorator
from supple.script.forms import Form, MetaVar

ir_module = ModuleDecorator("I.ir_module", "A module: graph functions and loop functions in one class.")
module_attrs = Form("I.module_attrs", "Attributes of the module.")
module_global_infos = Form("I.module_global_infos", "Global information of the module.")


pyfunc = PythonFunctionDecorator("I.pyfunc", "A Python function of a module's class.")
meta_var = MetaVar


def vdevice(target: Any = None, vdevice_id: int = 0, memory_scope: str = "global") -> VDevice:
    """A virtual device: ``I.vdevice("llvm", 0, "global")``; the target is text or a dict with its ``kind``."""
    if target is not None and not isinstance(target, (str, dict)):
        target = str(target)
    return VDevice(target, int(vdevice_id), memory_scope)


def dummy_global_info() -> DummyGlobalInfo:
    """A global info without content."""
    return DummyGlobalInfo()


class _RangeKind(type):
    """``I.Range`` makes `Range` nodes; ``isinstance`` knows them."""

    def __call__(cls, begin: Any, end: Any = None) -> _expr.Range:
        low, high = (0, begin) if end is None else (begin, end)
        if isinstance(low, int) and isinstance(high, int):
            return _expr.Range(_expr.const(low), _expr.const(high - low))
        left, right = _expr.match_dtypes(low, high)
        zero = isinstance(left, _expr.IntImm) and left.value == 0
        return _expr.Range(left, right if zero else _expr.Sub(right, left))

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _expr.Range)


class Range(metaclass=_RangeKind):
    """A range by its ends: ``I.Range(4)`` is 0 to 4, ``I.Range(1, 4)`` is 1 to 4 (exclusive)."""

    @staticmethod
    def from_min_extent(min_value: Any, extent: Any) -> _expr.Range:
        """A range by its first value and length."""
        low, length = _expr.match_dtypes(min_value, extent)
        return _expr.Range(low, length)


def metadata(text: str) -> dict[str, list[Constant]]:
    """The constants that a printed program carries as JSON (``script(show_meta=True)``).

    Raises ``ValueError`` for text that is not such JSON or whose data does not fit its dtype and shape.
    """
    rows = json.loads(text)
    if not isinstance(rows, dict) or not isinstance(rows.get("supple.Constant"), list):
        raise ValueError("metadata: expected a JSON object with 'supple.Constant'")
    constants = []
    for row in rows["supple.Constant"]:
        dtype = dtypes.to_numpy(dtypes.check_dtype(row["dtype"]))
        data = base64.b64decode(row["data"], validate=True)
        array = np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype, copy=False)
        constants.append(constant(array.reshape([int(extent) for extent in row["shape"]])))
    return {"supple.Constant": constants}


__all__ = [
    "Range", "StringType", "dummy_global_info", "ir_module", "meta_var", "metadata", "module_attrs",
    "module_global_infos",
    "pyfunc", "vdevice",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise AttributeError(f"I has no name {name!r}{did_you_mean(name, __all__)}")
