"""The module: graph functions and loop functions by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from supple.base.errors import MissingFunctionError
from supple.base.registry import did_you_mean
from supple.ir.graph import ExternFunc, Function, GlobalVar
from supple.ir.loop import PrimFunc
from supple.ir.node import Node, Role, declare_fields

BaseFunc = Function | PrimFunc | ExternFunc


class IRModule(Node):
    """Functions by `GlobalVar`, in the order they were added, with module attributes and global infos.

    Unlike other nodes a module may be changed by its owner (``mod["f"] = func``); passes return new modules.
    """

    __slots__ = ("attrs", "functions", "global_infos", "pyfuncs")

    def __init__(
        self,
        functions: Mapping[GlobalVar | str, BaseFunc] | None = None,
        attrs: Mapping[str, Any] | None = None,
        global_infos: Mapping[str, Any] | None = None,
    ) -> None:
        if functions is not None and not isinstance(functions, Mapping):
            raise TypeError(f"IRModule: expected a mapping of functions by name, got {type(functions).__name__}")
        Node.__init__(self)
        object.__setattr__(self, "functions", {})
        object.__setattr__(self, "attrs", dict(attrs or {}))
        object.__setattr__(self, "global_infos", dict(global_infos or {}))
        object.__setattr__(self, "pyfuncs", {})
        for var, func in (functions or {}).items():
            self[var] = func

    functions: dict[GlobalVar, BaseFunc]
    attrs: dict[str, Any]
    global_infos: dict[str, Any]
    pyfuncs: dict[str, Any]
    """Python functions of the class that the module was read from (``@I.pyfunc``)."""

    def __call__(self, device: Any = None, target: Any = None) -> Any:
        """An object that runs the module's functions, Python ones among them (``BasePyModule``)."""
        if not MODULE_CALL:
            raise TypeError("a module is not callable before supple.relax is imported")
        return MODULE_CALL[0](self, device, target)

    @staticmethod
    def from_expr(func: BaseFunc, functions: Mapping[GlobalVar | str, BaseFunc] | None = None) -> IRModule:
        """A module of one function (under its ``global_symbol``, or ``main``) and, optionally, others."""
        mod = IRModule(functions)
        mod[str(getattr(func, "attrs", {}).get("global_symbol", "main"))] = func
        return mod

    def __getitem__(self, key: GlobalVar | str) -> BaseFunc:
        return self.functions[self.get_global_var(key) if isinstance(key, str) else key]

    def __setitem__(self, key: GlobalVar | str, func: BaseFunc) -> None:
        if not isinstance(func, BaseFunc):
            raise TypeError(f"a module holds functions, got {type(func).__name__}")
        self.functions[GlobalVar(key) if isinstance(key, str) else key] = func

    def __delitem__(self, key: GlobalVar | str) -> None:
        del self.functions[self.get_global_var(key) if isinstance(key, str) else key]

    def __contains__(self, key: object) -> bool:
        return (GlobalVar(key) if isinstance(key, str) else key) in self.functions

    def __iter__(self) -> Iterator[GlobalVar]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)

    def get_global_var(self, name: str) -> GlobalVar:
        """The variable of a function of that name; raises `MissingFunctionError` with close names for a miss."""
        for var in self.functions:
            if var.name_hint == name:
                return var
        raise MissingFunctionError(
            f"the module has no function {name!r}{did_you_mean(name, [v.name_hint for v in self.functions])}"
        )

    def get_global_vars(self) -> list[GlobalVar]:
        """The functions' names, sorted by text."""
        return sorted(self.functions, key=lambda var: var.name_hint)

    def items(self) -> list[tuple[GlobalVar, BaseFunc]]:
        """``(variable, function)`` pairs (Relax's ``functions_items``)."""
        return list(self.functions.items())

    functions_items = items

    def update(self, other: IRModule | Mapping[GlobalVar | str, BaseFunc]) -> None:
        """Add the functions of another module, replacing those of the same name."""
        for var, func in dict(other.functions if isinstance(other, IRModule) else other).items():
            self[var] = func

    def update_func(self, var: GlobalVar, func: BaseFunc) -> None:
        self[var] = func

    def clone(self) -> IRModule:
        """A shallow copy: the functions are shared (they are immutable)."""
        made = IRModule(dict(self.functions), self.attrs, self.global_infos)  # type: ignore[arg-type]
        made.pyfuncs.update(self.pyfuncs)
        return made

    def get_attr(self, attr_key: str) -> Any:
        """A module attribute, or None."""
        return self.attrs.get(attr_key)

    def without_attr(self, attr_key: str) -> IRModule:
        """A copy without one module attribute."""
        mod = self.clone()
        mod.attrs.pop(attr_key, None)
        return mod

    def with_attrs(self, attr_map: Mapping[str, Any]) -> IRModule:
        """A copy with module attributes added."""
        mod = self.clone()
        mod.attrs.update(attr_map)
        return mod

    def update_global_info(self, name: str, global_info: Any) -> None:
        """Set the list of global infos of a name (``"vdevice"``, ``"mesh"``)."""
        self.global_infos[name] = list(global_info)

    def with_attr(self, attr_key: str, attr_value: Any) -> IRModule:
        """A copy with one module attribute added."""
        mod = self.clone()
        mod.attrs[attr_key] = attr_value
        return mod


MODULE_CALL: list[Any] = []
"""What calling a module makes; filled by the level that compiles."""

declare_fields(IRModule, (("functions", Role.USE), ("attrs", Role.USE)))
