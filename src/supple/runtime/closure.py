"""Functions that compiled code returned, or passed to Python: callable like compiled functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from supple.runtime.native import runtime


class Home(Protocol):
    """What a closure needs of its executable."""

    def call_closure(self, closure: Closure, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Call the function behind a closure."""


class Closure:
    """A function of an executable with its first arguments fixed. Calling it checks the others, as a compiled function
    does. It keeps the executable, and what it captured, alive.

    ``address`` is the native object, of which the closure holds a reference; ``kind`` is how its results appear when
    no argument says so.
    """

    __slots__ = ("__weakref__", "_decref", "address", "executable", "kind")

    def __init__(self, executable: Home, address: int, kind: str) -> None:
        native = runtime()
        native.incref(address)
        self.executable = executable
        self.address = address
        self.kind = kind
        self._decref: Callable[[int], None] = native.decref

    def __copy__(self) -> Closure:
        return Closure(self.executable, self.address, self.kind)

    def __deepcopy__(self, memo: object) -> Closure:
        raise TypeError("a closure of compiled code has no deep copy: its captured values are native objects")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a closure of compiled code cannot be pickled: its captured values are native objects")

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.executable.call_closure(self, args, named)

    def __del__(self) -> None:
        if hasattr(self, "_decref"):
            self._decref(self.address)
