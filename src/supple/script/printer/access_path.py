"""`AccessPath`: where an object is found, from a root through fields, elements and keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class AccessPath:
    """``AccessPath.root().attr("body").array_item(0)``; compared by its steps."""

    steps: tuple[tuple[str, Any], ...] = ()

    @staticmethod
    def root() -> AccessPath:
        """The object itself."""
        return AccessPath()

    def attr(self, name: str) -> AccessPath:
        """A field."""
        return AccessPath((*self.steps, ("attr", name)))

    def array_item(self, index: int) -> AccessPath:
        """An element of a list or tuple."""
        return AccessPath((*self.steps, ("item", index)))

    def map_item(self, key: Any) -> AccessPath:
        """The value of a key."""
        return AccessPath((*self.steps, ("item", key)))

    def is_prefix_of(self, other: AccessPath) -> bool:
        """Whether ``other`` is this object or lies below it."""
        return other.steps[: len(self.steps)] == self.steps

    def __str__(self) -> str:
        return "<root>" + "".join(f".{name}" if kind == "attr" else f"[{name!r}]" for kind, name in self.steps)

    __repr__ = __str__
