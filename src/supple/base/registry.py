"""A registry of named things: a duplicate is an error, a miss says what was probably meant."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator
from typing import Generic, TypeVar

from supple.base.errors import RegistryError

T = TypeVar("T")


class Registry(Generic[T]):
    """Maps names to things of one kind. ``kind`` is used in messages ("operator", "target").

    ``filled_by`` is a module whose import registers things; it is imported when a name is missing for the first time.
    """

    def __init__(self, kind: str, filled_by: str | None = None) -> None:
        self.kind = kind
        self._filled_by = filled_by
        self._items: dict[str, T] = {}

    def register(self, name: str, item: T, *, override: bool = False) -> T:
        """Add ``item``; raises `RegistryError` when the name is taken and ``override`` is false."""
        if name in self._items and not override:
            raise RegistryError(f"{self.kind} {name!r} is registered already; pass override=True to replace it")
        self._items[name] = item
        return item

    def get(self, name: str) -> T:
        """The thing of that name; raises `RegistryError` with close names when there is none."""
        found = self.find(name)
        if found is None:
            raise RegistryError(f"no {self.kind} named {name!r}{did_you_mean(name, self._items)}")
        return found

    def find(self, name: str) -> T | None:
        """The thing of that name, or None."""
        if name not in self._items and self._filled_by is not None:
            module, self._filled_by = self._filled_by, None
            importlib.import_module(module)
        return self._items.get(name)

    def remove(self, name: str) -> None:
        """Forget a name; raises `RegistryError` when it is not registered."""
        self.get(name)
        del self._items[name]

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def items(self) -> Iterator[tuple[str, T]]:
        return iter(self._items.items())


def did_you_mean(name: str, known: object) -> str:
    """``"; did you mean 'x'?"`` for the closest of the known names, or an empty string."""
    close = difflib.get_close_matches(name, [str(k) for k in known], n=3)  # type: ignore[attr-defined]
    return f"; did you mean {' or '.join(repr(c) for c in close)}?" if close else ""
