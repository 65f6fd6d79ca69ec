"""Places in source text: spans and the excerpts with a caret that diagnostics show."""

from __future__ import annotations

import linecache
import unicodedata
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceName:
    """The name of a source text."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Span:
    """A range of source text. Lines and columns count from 1; the end column is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    @property
    def source_name(self) -> SourceName:
        """The text that the range is in."""
        return SourceName(self.file)


_texts: dict[str, list[str]] = {}


def register_source(name: str, text: str) -> None:
    """Make ``text`` available for excerpts under ``name`` (strings given to ``from_source``, notebook cells)."""
    _texts[name] = text.splitlines()


def source_line(file: str, line: int) -> str | None:
    """The text of one line, or None when the source is not available."""
    if file in _texts:
        lines = _texts[file]
        return lines[line - 1] if 0 < line <= len(lines) else None
    text = linecache.getline(file, line)
    return text.rstrip("\n") if text else None


def excerpt(span: Span) -> str:
    """The place, the source line, and carets under the range::

     --> model.py:12:14
    12 |     lv = R.matmul(x, w)
       |              ^^^^^^^^^^
    """
    lines = [f" --> {span}"]
    text = source_line(span.file, span.line)
    if text is not None:
        end = span.end_column if span.end_line == span.line else len(text) + 1
        number = str(span.line)
        before = "".join("\t" if c == "\t" else " " * _width(c) for c in text[: span.column - 1])
        carets = "^" * max(1, sum(_width(c) for c in text[span.column - 1 : end - 1]))
        lines.append(f"{number} | {text}")
        lines.append(f"{' ' * len(number)} | {before}{carets}")
    return "\n".join(lines)


def _width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
