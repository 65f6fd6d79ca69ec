"""`AccessPath`: where an object is found, from a root through fields, elements and keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class AccessPath:
    """``AccessPath.root().attr("body").array_item(0)``; compared by its steps, which are pairs of a kind and a key."""

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
        return AccessPath((*self.steps, ("key", key)))

    def attr_missing(self, name: str) -> AccessPath:
        """A field that is not there."""
        return AccessPath((*self.steps, ("missing attr", name)))

    def array_item_missing(self, index: int) -> AccessPath:
        """An element that is not there."""
        return AccessPath((*self.steps, ("missing item", index)))

    def map_item_missing(self, key: Any) -> AccessPath:
        """A key that is not there."""
        return AccessPath((*self.steps, ("missing key", key)))

    @property
    def depth(self) -> int:
        """How many steps it has."""
        return len(self.steps)

    @property
    def parent(self) -> AccessPath | None:
        """The path without its last step; None for the root."""
        return AccessPath(self.steps[:-1]) if self.steps else None

    def is_prefix_of(self, other: AccessPath) -> bool:
        """Whether ``other`` is this object or lies below it."""
        return other.steps[: len(self.steps)] == self.steps

    def __str__(self) -> str:
        return "<root>" + "".join(_step_text(kind, key) for kind, key in self.steps)

    __repr__ = __str__


def _step_text(kind: str, key: Any) -> str:
    if kind == "attr":
        return f".{key}"
    if kind == "missing attr":
        return f".<missing:{key}>"
    name = getattr(key, "name_hint", None)
    text = f'"{key}"' if isinstance(key, str) else str(key) if name is None else f'I.GlobalVar("{name}")'
    return f"[<missing:{text}>]" if kind.startswith("missing") else f"[{text}]"
