"""Functions by name: Python callables that compiled programs call (``R.call_packed("name", ...)``).

A callable receives `Tensor` for tensors, ``int``, ``float`` and ``bool`` for scalars, ``str``, `ShapeTuple` and tuples
of these, and returns any of them (also numpy arrays and DLPack objects) or None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from supple.base.registry import Registry

F = TypeVar("F", bound=Callable[..., Any])

_FUNCTIONS: Registry[Callable[..., Any]] = Registry("global function")


@overload
def register_global_func(name: str, f: F, override: bool = False) -> F: ...
@overload
def register_global_func(name: str, f: None = None, override: bool = False) -> Callable[[F], F]: ...
@overload
def register_global_func(name: F, f: None = None, override: bool = False) -> F: ...


def register_global_func(name: Any, f: Any = None, override: bool = False) -> Any:
    """Register a callable under a name; also as a decorator, with or without the name.

    Raises `RegistryError` when the name is taken and ``override`` is false, ``TypeError`` for what cannot be called.
    """
    if callable(name):
        return register_global_func(str(name.__name__), name, override)
    if not isinstance(name, str):
        raise TypeError(f"expected a function's name, got {name!r}")

    def register(function: Any) -> Any:
        if not callable(function):
            raise TypeError(f"register_global_func({name!r}): expected a callable, got {type(function).__name__}")
        _FUNCTIONS.register(name, function, override=override)
        return function

    return register if f is None else register(f)


def get_global_func(name: str, allow_missing: bool = False) -> Callable[..., Any] | None:
    """The callable of that name. A miss raises `RegistryError`, or gives None with ``allow_missing``."""
    return _FUNCTIONS.find(name) if allow_missing else _FUNCTIONS.get(name)


def remove_global_func(name: str) -> None:
    """Forget a name; raises `RegistryError` when it is not registered."""
    _FUNCTIONS.remove(name)


def list_global_func_names() -> list[str]:
    """The names of all registered functions."""
    return list(_FUNCTIONS)
