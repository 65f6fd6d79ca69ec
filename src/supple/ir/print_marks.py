"""Underlining and annotating parts of a text.

A path from the root, or an object, is what a user names. Every object along a path gets a number; a printer that writes
one of them puts a pair of private characters with that number around its text. When the text is finished, the deepest
object of each path that was written is underlined, and the characters are taken out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from supple.ir.access_path import AccessPath
from supple.ir.expr import Var
from supple.ir.module import IRModule
from supple.ir.node import Node, Role, fields

_OPEN, _CLOSE, _MANY = 0xF0000, 0x100000, 0xFFFD


@dataclass(slots=True)
class _Mark:
    """One object on a path: the object it is part of, its name there, and which of equal parts it is."""

    number: int
    path: AccessPath
    owner: Any  # the node that it is part of, through tuples and mappings
    holder: Any  # the object that the last step was taken from
    value: Any
    ordinal: int = 0


@dataclass(slots=True)
class _Wish:
    """A path to underline (no note) or to annotate."""

    chain: list[int]  # the marks from the root to the object
    path: AccessPath
    note: str | None = None
    exact: bool = False  # an object's own place: nothing instead of it, where another of its places is visible


@dataclass(slots=True)
class Marks:
    """What a text is to have underlined and annotated."""

    wishes: list[_Wish] = field(default_factory=list)
    marks: list[_Mark] = field(default_factory=list)
    by_path: dict[AccessPath, int] = field(default_factory=dict)
    by_value: dict[int, list[_Mark]] = field(default_factory=dict)
    by_step: dict[tuple[int, str], _Mark] = field(default_factory=dict)

    @staticmethod
    def of(
        root: Any,
        paths: Sequence[AccessPath],
        objects: Sequence[Any],
        path_notes: Mapping[AccessPath, str],
        object_notes: Mapping[Any, str],
    ) -> Marks:
        """The marks of what is asked for."""
        made = Marks()
        for path in paths:
            made._wish(root, path, None)
        for path, text in path_notes.items():
            made._wish(root, path, text)
        named: list[tuple[Any, str | None]] = [*((o, None) for o in objects), *object_notes.items()]
        for wanted, note in named:
            for path in _places(root, wanted):
                made._wish(root, path, note, exact=True)
        return made

    def _wish(self, root: Any, path: AccessPath, note: str | None, exact: bool = False) -> None:
        chain = [self._mark(AccessPath(), None, None, root)]
        owner: Any = root
        at: Any = root
        for count, (kind, key) in enumerate(path.steps, 1):
            holder = at
            try:
                at = _follow(at, kind, key)
            except (AttributeError, KeyError, IndexError, TypeError):
                break
            ordinal = sum(v is at for v in holder[:key]) if isinstance(holder, (tuple, list)) else 0
            chain.append(self._mark(AccessPath(path.steps[:count]), owner, holder, at, ordinal))
            owner = at if isinstance(at, (Node, IRModule)) else owner
        self.wishes.append(_Wish(chain, path, note, exact))

    def _mark(self, path: AccessPath, owner: Any, holder: Any, value: Any, ordinal: int = 0) -> int:
        number = self.by_path.get(path)
        if number is None:
            number = len(self.marks)
            if number == _MANY:
                raise ValueError(f"more than {_MANY} places to underline or annotate")
            mark = _Mark(number, path, owner, holder, value, ordinal)
            self.marks.append(mark)
            self.by_path[path] = number
            self.by_value.setdefault(id(value), []).append(mark)
            if path.steps:
                self.by_step[id(holder), str(path.steps[-1][1])] = mark
        return number

    def find(self, value: Any, owner: Any, count: int = 0) -> int | None:
        """The mark of a part of ``owner``, its ``count``-th that is this object; a node that is no variable stands for
        itself wherever it is."""
        for mark in self.by_value.get(id(value), ()):
            if mark.value is value and (
                (mark.owner is owner and mark.ordinal == count) or (not isinstance(value, Var) and owner is None)
            ):
                return mark.number
        return None

    def step(self, holder: Any, key: str) -> int | None:
        """The mark of a field or key of ``holder``."""
        mark = self.by_step.get((id(holder), key))
        return None if mark is None else mark.number

    def finish(self, text: str, context: int, numbers: bool) -> str:
        """The text without private characters: underlined, annotated, with line numbers where they are wanted."""
        spans = _Spans(text)
        chosen, header = self._choose(spans)
        notes: dict[int, str] = {}
        above: dict[int, str] = {}
        for wish in self.wishes:
            if wish.note is not None and wish.chain[-1] in spans.found and spans.stands_alone(wish.chain[-1]):
                first, last = spans.extent(wish.chain[-1])
                (notes if first == last else above)[first] = wish.note
        lines: list[tuple[str, bool]] = []  # with whether it is a line of the program
        kept: list[int] = []
        for at, line in enumerate(spans.lines):
            if at in above:
                indent = line[: len(line) - len(line.lstrip())]
                lines.append((f"{indent}# {above[at]}", True))
            lines.append((f"{line}  # {notes[at]}" if at in notes else line, True))
            under = spans.underline(at, chosen)
            if under:
                kept.append(len(lines) - 1)
                lines.append((under, False))
        shown = _numbered(lines) if numbers else [line for line, _ in lines]
        if context >= 0 and kept:
            shown = _around(shown, lines, kept, context)
        body = "\n".join(shown)
        return "\n".join([*header, "", body]) if header else body

    def _choose(self, spans: _Spans) -> tuple[set[int], list[str]]:
        """The marks to underline, and the lines that say which paths they are."""
        chosen: set[int] = set()
        header: list[str] = []
        seen: dict[int, list[_Wish]] = {}
        for wish in self.wishes:
            if wish.note is None:
                seen.setdefault(id(self.marks[wish.chain[-1]].value) if wish.exact else -id(wish), []).append(wish)
        shown: list[tuple[tuple[int, int], int, AccessPath]] = []
        for group in seen.values():
            visible = [wish for wish in group if wish.chain[-1] in spans.found]
            for wish in visible or group[:1]:
                at = next((n for n in reversed(wish.chain) if n in spans.found), None)
                if at is not None:
                    shown.append((spans.found[at][0][0], at, wish.path))
        for _, at, path in sorted(shown, key=lambda item: item[0]):
            chosen.add(at)
            header.append(f"Access path: {path}")
            if self.marks[at].path != path:
                header.append("Note: The underlined object is the nearest visible parent of this path.")
        return chosen, header


def _follow(at: Any, kind: str, key: Any) -> Any:
    if kind == "attr":
        if isinstance(at, dict):
            return at if key == "__dict__" else at[key]
        return getattr(at, key)
    if kind not in ("item", "key"):
        raise KeyError(key)
    name = getattr(key, "name_hint", None)
    if isinstance(at, dict) and name is not None:
        return next(value for var, value in at.items() if getattr(var, "name_hint", var) == name)
    return at[key]


def _places(root: Any, wanted: Any) -> Iterator[AccessPath]:
    """Every path from the root to an object, in order of fields. Variables are entered where they are defined."""
    stack: list[tuple[Any, AccessPath, bool]] = [(root, AccessPath(), True)]
    while stack:
        at, path, enter = stack.pop()
        if at is wanted:
            yield path
            continue
        below: list[tuple[Any, AccessPath, bool]] = []
        if isinstance(at, IRModule):
            below = [(f, path.attr("functions").map_item(v), True) for v, f in at.functions.items()]
        elif isinstance(at, (tuple, list)):
            below = [(v, path.array_item(n), enter) for n, v in enumerate(at)]
        elif isinstance(at, Var):
            below = [(at.ty, path.attr("ty"), True)] if enter else []
        elif isinstance(at, Node):
            for name, role in fields(type(at)):
                if name not in ("span", "ty"):
                    below.append((getattr(at, name), path.attr(name), role is Role.DEF))
        stack.extend(reversed(below))


def wrap(text: str, number: int | None) -> str:
    """A text between the characters of a mark."""
    return text if number is None else f"{chr(_OPEN + number)}{text}{chr(_CLOSE + number)}"


def wrap_lines(lines: list[str], start: int, number: int | None) -> None:
    """Put the lines from ``start`` on between the characters of a mark, in place."""
    whole = [at for at in range(start, len(lines)) if lines[at].strip()]
    if number is None or not whole:
        return
    first = lines[whole[0]]
    indent = len(first) - len(first.lstrip(" "))
    lines[whole[0]] = f"{first[:indent]}{chr(_OPEN + number)}{first[indent:]}"
    lines[whole[-1]] += chr(_CLOSE + number)


class _Spans:
    """The lines of a text without private characters, and where its marks begin and end."""

    def __init__(self, text: str) -> None:
        self.lines: list[str] = []
        self.found: dict[int, list[tuple[tuple[int, int], tuple[int, int]]]] = {}
        opened: dict[int, list[tuple[int, int]]] = {}
        for row, marked in enumerate(text.split("\n")):
            plain: list[str] = []
            for char in marked:
                code = ord(char)
                if code >= _CLOSE:
                    number = code - _CLOSE
                    self.found.setdefault(number, []).append((opened[number].pop(), (row, len(plain))))
                elif code >= _OPEN:
                    opened.setdefault(code - _OPEN, []).append((row, len(plain)))
                else:
                    plain.append(char)
            self.lines.append("".join(plain))

    def extent(self, number: int) -> tuple[int, int]:
        """The first and last line of a mark."""
        (first, _), (last, _) = self.found[number][0]
        return first, last

    def stands_alone(self, number: int) -> bool:
        """Whether a mark is around whole lines: a statement."""
        (first, start), (last, end) = self.found[number][0]
        return not self.lines[first][:start].strip() and end == len(self.lines[last])

    def underline(self, row: int, chosen: set[int]) -> str:
        """Carets below what is marked in a line; comments are left out."""
        line = self.lines[row]
        if line.lstrip().startswith("#"):
            return ""
        under = [" "] * len(line)
        for number in chosen:
            for (first, start), (last, end) in self.found[number]:
                if first <= row <= last:
                    left = start if row == first else len(line) - len(line.lstrip())
                    right = end if row == last else len(line)
                    under[left:right] = "^" * (right - left)
        return "".join(under).rstrip()


def _numbered(lines: list[tuple[str, bool]]) -> list[str]:
    width = len(str(sum(own for _, own in lines)))
    number, shown = 0, []
    for line, own in lines:
        number += own
        shown.append(f"{number:{width}} {line}" if own else f"{'':{width}} {line}")
    return shown


def _around(shown: list[str], lines: list[tuple[str, bool]], kept: list[int], context: int) -> list[str]:
    """The lines near those that are underlined; others are counted."""
    program = [at for at, (_, own) in enumerate(lines) if own]
    place = {at: n for n, at in enumerate(program)}
    wanted = {n for at in kept for n in range(place[at] - context, place[at] + context + 1)}
    result: list[str] = []
    skipped = 0
    current = -1
    for at, line in enumerate(shown):
        current += lines[at][1]
        if current in wanted or {current - 1, current + 1} <= wanted | {-1, len(program)}:
            if skipped:
                result.append(f"(... {skipped} lines skipped ...)")
                skipped = 0
            result.append(line)
        else:
            skipped += lines[at][1]
    if skipped:
        result.append(f"(... {skipped} lines skipped ...)")
    return result
