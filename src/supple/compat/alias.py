"""``import tvm`` resolves to Supple, for one process, through the table of spellings."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from supple.base.errors import SuppleError
from supple.base.registry import did_you_mean
from supple.compat.places import PLACES
from supple.compat.table import ROWS
from supple.ir.print_style import set_default_style

_ROOTS = ("tvm", "tvm_ffi")
_MODULES = {row.old: row.new for row in ROWS if ":" not in row.new} | {
    row.old: row.new for row in (*ROWS, *PLACES) if row.importable
}
_NAMES = {row.old: row.new for row in ROWS if ":" in row.new}
_FILES = {row.old for row in PLACES}
_COMMON = ("tvm.ir", "tvm.relax", "tvm.tirx", "tvm.runtime")
"""Where a name is looked for that a file of TVM's source tree has because it imports it."""
_HIDDEN = {row.old for row in PLACES if row.old in _NAMES or row.hidden}
"""Modules whose name in the parent means something else (``topi.nn.dense`` is the function)."""


class AliasModule(ModuleType):
    """A module under ``tvm``: its names come from the table, else from Supple's module."""

    def __init__(self, name: str, target: str | None) -> None:
        super().__init__(name, f"{name}, resolved to Supple ({target or 'names of the table only'})")
        self.__path__: list[str] = []
        self._target = target

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":  # what `from tvm.relax.dpl import *` brings
            return self._public()
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        if full in _NAMES:
            return _named(_NAMES[full])
        if (full in _MODULES and full not in _HIDDEN) or _is_package(full):
            return importlib.import_module(full)
        if self._target is not None:
            target = _named(self._target)
            if hasattr(target, name):
                return getattr(target, name)
        if self.__name__ in _FILES and not name.startswith("_"):
            for common in map(importlib.import_module, _COMMON):
                if hasattr(common, name):
                    return getattr(common, name)
        raise AttributeError(f"Supple has no {full}{did_you_mean(name, self.__dir__())}")

    def __setattr__(self, name: str, value: Any) -> None:
        """What imports of modules below set is not kept where the name means something else."""
        if isinstance(value, ModuleType) and f"{self.__name__}.{name}" in _HIDDEN:
            return
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        own = dir(_named(self._target)) if self._target is not None else []
        return sorted(self._rows() | {n for n in own if not n.startswith("_")})

    def _public(self) -> list[str]:
        target = _named(self._target) if self._target is not None else None
        return sorted(self._rows() | set(getattr(target, "__all__", ())))

    def _rows(self) -> set[str]:
        """The names that the table has below this module."""
        prefix = f"{self.__name__}."
        return {
            old[len(prefix) :].partition(".")[0]
            for old in (*_NAMES, *_MODULES)
            if old.startswith(prefix) and old not in _HIDDEN
        }


def _named(place: str) -> Any:
    """The module, or the name in a module, that a place of the table says."""
    module, _, attribute = place.partition(":")
    found = importlib.import_module(module)
    return getattr(found, attribute) if attribute else found


def _is_package(full: str) -> bool:
    return any(old.startswith(f"{full}.") for old in (*_NAMES, *_MODULES))


class _Finder(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in _MODULES or (fullname.partition(".")[0] in _ROOTS and _is_package(fullname)):
            return ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return AliasModule(spec.name, _MODULES.get(spec.name))

    def exec_module(self, module: ModuleType) -> None:
        """A module without rows below it *is* Supple's module, so that both spellings give one object."""
        if module.__name__ not in _FILES and not _is_package(module.__name__):
            sys.modules[module.__name__] = _named(_MODULES[module.__name__])


_finder = _Finder()


def install_as_tvm() -> None:
    """Make ``import tvm`` and ``import tvm_ffi`` mean Supple for the rest of the process. Doing it twice is fine.

    Raises `SuppleError` when the real package is imported already.
    """
    for root in _ROOTS:
        loaded = sys.modules.get(root)
        if loaded is not None and not isinstance(loaded, AliasModule):
            raise SuppleError(
                f"the real {root} is imported already ({getattr(loaded, '__file__', '?')}): "
                "call supple.compat.install_as_tvm() before anything imports it"
            )
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    set_default_style("relax")
