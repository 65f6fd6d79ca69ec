"""Supple: a compiler for machine-learning models. ``supple.compile(mod)`` makes an executable of a Relax module.

The names below are loaded when they are first used, so that ``import supple`` stays fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from supple import arith, error, ops, relax, runtime, script, te, tirx, topi, transform
    from supple.base.named_target import NamedTarget as Target
    from supple.driver import compile, lower
    from supple.ir.module import IRModule
    from supple.runtime.device import cpu, device
    from supple.runtime.packed import get_global_func, register_global_func, remove_global_func

__version__ = "0.1.0"

_NAMES: dict[str, tuple[str, str | None]] = {
    "IRModule": ("supple.ir.module", "IRModule"),
    "Target": ("supple.base.named_target", "NamedTarget"),
    "arith": ("supple.arith", None),
    "compile": ("supple.driver", "compile"),
    "cpu": ("supple.runtime.device", "cpu"),
    "device": ("supple.runtime.device", "device"),
    "lower": ("supple.driver", "lower"),
    "te": ("supple.te", None),
    "tirx": ("supple.tirx", None),
    "error": ("supple.error", None),
    "get_global_func": ("supple.runtime.packed", "get_global_func"),
    "ops": ("supple.ops", None),
    "register_global_func": ("supple.runtime.packed", "register_global_func"),
    "relax": ("supple.relax", None),
    "remove_global_func": ("supple.runtime.packed", "remove_global_func"),
    "runtime": ("supple.runtime", None),
    "script": ("supple.script", None),
    "topi": ("supple.topi", None),
    "transform": ("supple.transform", None),
}

__all__ = [
    "IRModule",
    "Target",
    "__version__",
    "arith",
    "compile",
    "cpu",
    "device",
    "error",
    "get_global_func",
    "lower",
    "ops",
    "register_global_func",
    "relax",
    "remove_global_func",
    "runtime",
    "script",
    "te",
    "tirx",
    "topi",
    "transform",
]


def __getattr__(name: str) -> Any:
    entry = _NAMES.get(name)
    if entry is None:
        raise AttributeError(f"module 'supple' has no attribute {name!r}")
    module = importlib.import_module(entry[0])
    value = module if entry[1] is None else getattr(module, entry[1])
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
