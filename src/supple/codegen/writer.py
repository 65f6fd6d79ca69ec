"""Writes LLVM IR as text. (llvmlite's builder costs 16 us an instruction to build, print and parse; text costs one.)"""

from __future__ import annotations


class Writer:
    """The body of one LLVM function: numbers values and labels, collects lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._next = 0

    def fresh(self, hint: str = "v") -> str:
        """A new name without its sigil; use ``%name`` for values and ``label %name`` for blocks."""
        self._next += 1
        return f"{hint}.{self._next}"

    def value(self, instruction: str, hint: str = "v") -> str:
        """Emit an instruction that yields a value; returns its name (``%v.7``)."""
        name = f"%{self.fresh(hint)}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def field(self, pointer: str, offset: int, ty: str) -> str:
        """The field of a structure at an offset in bytes."""
        at = self.value(f"getelementptr i8, ptr {pointer}, i64 {offset}")
        return self.value(f"load {ty}, ptr {at}")

    def emit(self, instruction: str) -> None:
        """Emit an instruction that yields nothing."""
        self.lines.append(f"  {instruction}")

    def label(self, name: str) -> None:
        """Start the basic block of that name."""
        self.lines.append(f"{name}:")

    def text(self) -> str:
        return "\n".join(self.lines)
