"""The names of ``I``: ``from supple.script import ir as I``."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.base.registry import did_you_mean
from supple.ir.graph import Constant, constant
from supple.script.entry import ModuleDecorator
from supple.script.forms import Form

ir_module = ModuleDecorator("I.ir_module", "A module: graph functions and loop functions in one class.")
module_attrs = Form("I.module_attrs", "Attributes of the module.")
module_global_infos = Form("I.module_global_infos", "Global information of the module.")


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


__all__ = ["ir_module", "metadata", "module_attrs", "module_global_infos"]


def __getattr__(name: str) -> Any:
    raise AttributeError(f"I has no name {name!r}{did_you_mean(name, __all__)}")
