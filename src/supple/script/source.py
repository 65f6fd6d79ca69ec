"""Where a program's text comes from, its Python syntax tree, and places in it."""

from __future__ import annotations

import ast
import functools
import hashlib
import linecache
import sys
import threading
import types
import warnings
from collections.abc import Callable
from typing import Any

from supple.base.errors import DiagnosticError
from supple.base.source import Span, register_source

_DEEP_STACK = 256 << 20  # bytes of address space for parsing deep expressions; pages are only used on demand
_DEEP_RECURSION = 200_000
_deep_lock = threading.Lock()


class Source:
    """The text of one file or string with its syntax tree."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self.lines = text.split("\n")
        self.tree = parse_python(text, file)

    def span(self, node: ast.AST) -> Span:
        """The place of a syntax node; columns count characters, from 1."""
        line, end_line = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        return Span(
            self.file,
            line,
            self._column(line, node.col_offset),  # type: ignore[attr-defined]
            end_line,
            self._column(end_line, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def name_span(self, node: ast.FunctionDef | ast.ClassDef) -> Span:
        """The place of the name in ``def name`` or ``class name``."""
        text = self.lines[node.lineno - 1] if node.lineno <= len(self.lines) else ""
        start = text.find(node.name, self._column(node.lineno, node.col_offset) - 1) + 1
        return Span(self.file, node.lineno, max(start, 1), node.lineno, max(start, 1) + len(node.name))

    def _column(self, line: int, offset: int) -> int:
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        if text.isascii():
            return offset + 1
        return len(text.encode()[:offset].decode(errors="replace")) + 1


def parse_python(text: str, file: str) -> ast.Module:
    """The syntax tree of Python text; raises `DiagnosticError` with the place for text that is not Python."""
    try:
        try:
            return _parse(text, file)
        except RecursionError:
            return _parse_deep(text, file)
    except (RecursionError, MemoryError):
        raise _too_deep(file) from None
    except SyntaxError as error:
        raise _syntax_error(error, file) from None
    except ValueError as error:  # null bytes, lone surrogates
        raise DiagnosticError(f"not Python text: {error}", Span(file, 1, 1, 1, 2), rule="syntax") from None


def _parse(text: str, file: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, filename=file)


def _parse_deep(text: str, file: str) -> ast.Module:
    """Parse on a thread with a large stack: CPython converts the tree by recursion. Raises what parsing raises."""
    result: list[ast.Module | Exception] = []

    def work() -> None:
        try:
            result.append(_parse(text, file))
        except Exception as error:  # raised on the caller's thread
            result.append(error)

    with _deep_lock:
        limit, size = sys.getrecursionlimit(), threading.stack_size(_DEEP_STACK)
        try:
            sys.setrecursionlimit(max(limit, _DEEP_RECURSION))
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        finally:
            threading.stack_size(size)
            sys.setrecursionlimit(limit)
    if isinstance(result[0], Exception):
        raise result[0]
    return result[0]


def _too_deep(file: str) -> DiagnosticError:
    return DiagnosticError(
        "the text nests deeper than Python's parser allows",
        Span(file, 1, 1, 1, 2),
        hint="bind parts of the expression to names",
        rule="syntax",
    )


def _syntax_error(error: SyntaxError, file: str) -> DiagnosticError:
    line, column = max(error.lineno or 1, 1), max(error.offset or 1, 1)
    end = error.end_offset if error.end_lineno == line and error.end_offset else column + 1
    return DiagnosticError(
        f"invalid Python syntax: {error.msg}", Span(file, line, column, line, max(end, column + 1)), rule="syntax"
    )


def text_source(text: str, file: str | None = None) -> Source:
    """A source for a string; equal strings share one name."""
    if not isinstance(text, str):
        raise TypeError(f"expected the program's text, got {type(text).__name__}")
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # as Python reads it
    encoded = text.encode(errors="surrogatepass")
    name = file or f"<script {hashlib.sha256(encoded).hexdigest()[:10]}>"
    register_source(name, text)
    return Source(name, text)


@functools.lru_cache(maxsize=8)
def _file_source(file: str, text: str) -> Source:
    return Source(file, text)


def file_source(file: str, module_globals: dict[str, Any] | None) -> Source | None:
    """The source of a file, notebook cell or anything else that ``linecache`` knows; None when it is unknown."""
    linecache.checkcache(file)
    lines = linecache.getlines(file, module_globals)
    return _file_source(file, "".join(lines)) if lines else None


def function_definition(function: types.FunctionType) -> tuple[Source, ast.FunctionDef]:
    """The source and definition of a Python function; raises `DiagnosticError` when its text cannot be found."""
    code = function.__code__
    source = file_source(code.co_filename, function.__globals__)
    if source is not None:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
                if first_line(node) == code.co_firstlineno:
                    return source, node
    raise source_missing(function.__qualname__, code.co_filename, code.co_firstlineno)


def class_definition(
    name: str, file: str, module_globals: dict[str, Any] | None, fits: Callable[[ast.ClassDef], bool], line: int
) -> tuple[Source, ast.ClassDef]:
    """The source and definition of a class called ``name`` in a file; of several, the one that ``fits``."""
    source = file_source(file, module_globals)
    if source is not None:
        found = [n for n in ast.walk(source.tree) if isinstance(n, ast.ClassDef) and n.name == name]
        fitting = [n for n in found if fits(n)]
        if len(fitting) >= 1:
            return source, fitting[-1]
    raise source_missing(name, file, line)


def source_missing(name: str, file: str, line: int) -> DiagnosticError:
    """The error for a program whose text Python does not keep."""
    return DiagnosticError(
        f"the source text of {name!r} is not available ({file}:{line})",
        hint="put it in a file or a notebook, or pass the text to supple.script.from_source",
        rule="source",
    )


def first_line(node: ast.FunctionDef | ast.ClassDef) -> int:
    """The line of the first decorator, or of the definition."""
    return node.decorator_list[0].lineno if node.decorator_list else node.lineno


def frame_span(frame: types.FrameType | None) -> Span | None:
    """The place that a Python frame is executing."""
    if frame is None:
        return None
    file = frame.f_code.co_filename
    for index, position in enumerate(frame.f_code.co_positions()):
        if index == frame.f_lasti // 2:
            line, end_line, column, end_column = position
            if line is None or column is None or end_line is None or end_column is None:
                break
            text = linecache.getline(file, line).encode()
            end_text = linecache.getline(file, end_line).encode()
            return Span(
                file,
                line,
                len(text[:column].decode(errors="replace")) + 1,
                end_line,
                len(end_text[:end_column].decode(errors="replace")) + 1,
            )
    return Span(file, frame.f_lineno, 1, frame.f_lineno, 2)
