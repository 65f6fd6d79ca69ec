"""The names of ``I``: ``from supple.script import ir as I``."""

from __future__ import annotations

from typing import Any

from supple.base.registry import did_you_mean
from supple.script.entry import ModuleDecorator
from supple.script.forms import Form

ir_module = ModuleDecorator("I.ir_module", "A module: graph functions and loop functions in one class.")
module_attrs = Form("I.module_attrs", "Attributes of the module.")
module_global_infos = Form("I.module_global_infos", "Global information of the module.")

__all__ = ["ir_module", "module_attrs", "module_global_infos"]


def __getattr__(name: str) -> Any:
    raise AttributeError(f"I has no name {name!r}{did_you_mean(name, __all__)}")
