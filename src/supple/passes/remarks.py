"""What a pass did, and which rule kept it from doing more: plain records that tools may show."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Remark:
    """``step`` fused or blocked (``done``) at ``place`` (a variable of a function), by ``rule``, with details."""

    step: str
    done: bool
    place: str
    rule: str
    text: str = ""

    def __str__(self) -> str:
        return f"{self.step}: {self.place}: {self.rule}" + (f": {self.text}" if self.text else "")


@dataclass
class Remarks:
    """Collects remarks in order. Passes take one or None."""

    items: list[Remark] = field(default_factory=list)

    def add(self, step: str, done: bool, place: str, rule: str, text: str = "") -> None:
        """Add a remark."""
        self.items.append(Remark(step, done, place, rule, text))


def remark(remarks: Remarks | None, step: str, done: bool, place: str, rule: str, text: str = "") -> None:
    """Add a remark where somebody collects them."""
    if remarks is not None:
        remarks.add(step, done, place, rule, text)
