"""``I`` for building: ``with I.ir_module(): ...``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from supple.base.errors import DiagnosticError
from supple.base.registry import did_you_mean
from supple.ir.graph import Function, GlobalVar
from supple.ir.module import BaseFunc, IRModule
from supple.ir.types import VDevice
from supple.script import ir as _names
from supple.script.ir import dummy_global_info, vdevice
from supple.script.ir_builder.base import IRBuilder, IRBuilderFrame


class IRModuleFrame(IRBuilderFrame):
    """A module that is being built: ``functions`` by their variables, ``attrs``, ``global_infos``."""

    def __init__(self) -> None:
        super().__init__()
        self.module = IRModule()
        self.declared: set[str] = set()

    def body(self) -> Iterator[IRModuleFrame]:
        builder = IRBuilder.current()
        yield self
        builder.keep(self.module)

    @property
    def functions(self) -> dict[GlobalVar, BaseFunc]:
        """The functions, those that are only declared among them."""
        return self.module.functions

    @property
    def global_vars(self) -> dict[str, GlobalVar]:
        """The functions' variables by name."""
        return {var.name_hint: var for var in self.module}

    @property
    def attrs(self) -> dict[str, Any]:
        """The module's attributes."""
        return self.module.attrs

    @property
    def global_infos(self) -> dict[str, Any]:
        """The module's global infos."""
        return self.module.global_infos

    def define(self, name: str, func: BaseFunc) -> None:
        """Add a function, in the place of its declaration where it has one."""
        if name in self.module and name not in self.declared:
            raise DiagnosticError(f"the module has a function {name!r} already", rule="ir_builder")
        self.declared.discard(name)
        known = self.global_vars.get(name)
        self.module[known if known is not None else _variable(name, func)] = func


def _variable(name: str, func: BaseFunc) -> GlobalVar:
    return GlobalVar(name, func.ty if isinstance(func, Function) else None)


def ir_module() -> IRModuleFrame:
    """A module: the functions built inside are added to it."""
    return IRModuleFrame()


def _module(what: str) -> IRModuleFrame:
    return IRBuilder.current().frame(IRModuleFrame, what, "I.ir_module()")


def decl_function(func_name: str, func_signature: BaseFunc) -> GlobalVar:
    """Declare a function, so that others can call it before it is defined: its variable.

    ``func_signature`` is what the module holds until then. Raises `DiagnosticError` when the name is taken.
    """
    frame = _module("I.decl_function")
    if func_name in frame.module:
        raise DiagnosticError(f"the module has a function {func_name!r} already", rule="ir_builder")
    frame.define(func_name, func_signature)
    frame.declared.add(func_name)
    return frame.global_vars[func_name]


def def_function(func_name: str, func: BaseFunc) -> None:
    """Define a function that was declared. Raises `DiagnosticError` when it was not."""
    frame = _module("I.def_function")
    if func_name not in frame.module:
        raise DiagnosticError(
            f"the function {func_name!r} is not declared{did_you_mean(func_name, sorted(frame.global_vars))}",
            hint="I.decl_function(name, signature)",
            rule="ir_builder",
        )
    frame.module[frame.global_vars[func_name]] = func
    frame.declared.discard(func_name)


def lookup_name(name: str) -> bool:
    """Whether the module that is being built has a function of that name."""
    return name in _module("I.lookup_name").module


def module_attrs(attrs: Mapping[str, Any], allow_overwrite: bool = False) -> None:
    """The module's attributes. Raises `DiagnosticError` where there are some already and may not be overwritten."""
    frame = _module("I.module_attrs")
    if frame.attrs and not allow_overwrite:
        raise DiagnosticError(
            "the module has attributes already", hint="I.module_attrs(attrs, allow_overwrite=True)", rule="ir_builder"
        )
    frame.attrs.clear()
    frame.attrs.update(attrs)


def module_get_attr(attr_key: str) -> Any:
    """An attribute of the module that is being built, or None."""
    return _module("I.module_get_attr").attrs.get(attr_key)


def module_set_attr(attr_key: str, attr_value: Any, allow_overwrite: bool = False) -> None:
    """Set one attribute. Raises `DiagnosticError` where it is set already and may not be overwritten."""
    frame = _module("I.module_set_attr")
    if attr_key in frame.attrs and not allow_overwrite:
        raise DiagnosticError(f"the module has an attribute {attr_key!r} already", rule="ir_builder")
    frame.attrs[attr_key] = attr_value


def module_global_infos(global_infos: Mapping[str, Sequence[Any]]) -> None:
    """The module's global infos. Raises `DiagnosticError` where there are some already."""
    frame = _module("I.module_global_infos")
    if frame.global_infos:
        raise DiagnosticError("the module has global infos already", rule="ir_builder")
    frame.global_infos.update({name: list(infos) for name, infos in global_infos.items()})


def lookup_vdevice(target_kind: str | None = None, device_index: int = -1) -> VDevice:
    """The ``device_index``-th virtual device of a kind of target (of all where none is said).

    Raises `DiagnosticError` when the module that is being built has no such one.
    """
    known: list[VDevice] = _module("I.lookup_vdevice").global_infos.get("vdevice", [])
    fitting = [v for v in known if target_kind is None or v.kind == target_kind]
    place = max(device_index, 0)
    if place >= len(fitting):
        raise DiagnosticError(
            f"the module has no virtual device {target_kind or ''}:{place}",
            hint='I.module_global_infos({"vdevice": [I.vdevice("llvm")]})',
            rule="ir_builder",
        )
    return fitting[place]


def __getattr__(name: str) -> Any:
    return getattr(_names, name)


__all__ = [
    "IRModuleFrame",
    "decl_function",
    "def_function",
    "dummy_global_info",
    "ir_module",
    "lookup_name",
    "lookup_vdevice",
    "module_attrs",
    "module_get_attr",
    "module_global_infos",
    "module_set_attr",
    "vdevice",
]
