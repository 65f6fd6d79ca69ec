"""What is known while a loop function is read: loops and blocks around, and small converters."""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.base.errors import TypeCheckError
from supple.base.named_target import NamedTarget
from supple.base.source import Span
from supple.ir.conventions import conventions
from supple.ir.expr import (
    BufferLoad,
    IntImm,
    Var,
    const,
    is_scalar,
    match_dtypes,
    scalar_dtype,
)
from supple.ir.loop import (
    AllocBuffer,
    BufferRegion,
    Evaluate,
    ForKind,
    IterVar,
    MatchBufferRegion,
    SeqStmt,
)
from supple.ir.node import Expr, Node, Stmt
from supple.ir.types import prim_type
from supple.runtime.device import Device
from supple.script.evaluate import Environment, describe
from supple.script.forms import EnvThread, FormCall, as_name
from supple.script.source import Source
from supple.script.symbols import SymbolEvaluator


@dataclass
class LoopRange:
    """One loop's range; ``step`` None is 1."""

    min: Expr
    extent: Expr
    step: Expr | None = None


@dataclass
class LoopSpec:
    """What a ``for`` header says."""

    kind: ForKind
    ranges: list[LoopRange]
    annotations: dict[str, Any] = field(default_factory=dict)
    thread: str | None = None
    dtype: str | None = None  # of the loop variable, where it is not the extent's


@dataclass
class BlockInfo:
    """A block while it is read."""

    name: str
    span: Span | None
    depth: int = 0
    iter_vars: list[IterVar] = field(default_factory=list)
    iter_values: list[Expr] = field(default_factory=list)
    allocs: list[Var] = field(default_factory=list)
    provisional: list[AllocBuffer] = field(default_factory=list)
    matches: list[MatchBufferRegion] = field(default_factory=list)
    reads: list[BufferRegion] | None = None
    writes: list[BufferRegion] | None = None
    predicate: Expr | None = None
    init: Stmt | None = None
    annotations: dict[str, Any] = field(default_factory=dict)

    @property
    def touched(self) -> bool:
        """Whether anything that only a block can have was said."""
        return bool(
            self.iter_vars
            or self.allocs
            or self.matches
            or self.reads is not None
            or self.writes is not None
            or self.annotations
            or self.init is not None
            or self.predicate is not None
        )


Wrapper = Callable[[Stmt], Stmt]

Scope = Generator[Var | None, Stmt, Stmt | None]
"""What ``with`` on a form is: yields the variable that ``as`` names, is sent the statements inside, returns its own."""


@dataclass(frozen=True)
class AsName:
    """The name after ``as``."""

    name: str
    span: Span | None


@dataclass
class Suite:
    """One list of statements being read."""

    statements: list[Stmt] = field(default_factory=list)
    wrappers: list[tuple[int, Wrapper]] = field(default_factory=list)

    def joined(self) -> Stmt:
        """The statements as one, with what encloses some of them around."""
        result = self.statements
        for start, wrap in reversed(self.wrappers):
            result[start:] = [wrap(join(result[start:]))]
        return join(result)


def join(statements: list[Stmt]) -> Stmt:
    """Several statements as one, without flattening: text that spells out a nested sequence keeps it."""
    if conventions().drops_zeros:
        statements = [s for s in statements if not _is_zero(s)] or [Evaluate(const(0, "int32"))]
    return statements[0] if len(statements) == 1 else SeqStmt(tuple(statements))


def _is_zero(statement: Stmt) -> bool:
    return isinstance(statement, Evaluate) and isinstance(statement.value, IntImm) and statement.value.value == 0


class LoopState(SymbolEvaluator):
    """State of reading a loop function, and what calls of forms mean as values."""

    literal_dtype = "int32"

    def __init__(self, source: Source, env: Environment) -> None:
        super().__init__(source, env)
        self.block = BlockInfo("root", None)
        self.suites: list[Suite] = []
        self.depth = 0  # loops, branches and blocks around
        self.has_blocks = False
        self.params: list[Var] = []
        self.matched: dict[int, Var] = {}  # handle parameter -> the buffer that it became
        self.ranges: dict[int, tuple[Expr, Expr]] = {}  # loop variable -> min, extent
        self.block_vars: set[int] = set()
        self.changing: set[str] = set()  # names of scalars that the function changes
        self.cells: dict[int, BufferLoad] = {}  # what they stand for: the element of a buffer
        self.attrs: dict[str, Any] = {}
        self.said_attrs: set[str] = set()
        self.threads: dict[int, EnvThread] = {}  # loop variable -> the thread axis that it was launched for

    # --------------------------------------------------------------------------------------------------- statements

    def emit(self, statement: Stmt, node: ast.AST | None = None) -> None:
        """Append a statement to the suite being read."""
        if node is not None and statement.span is None:
            object.__setattr__(statement, "span", self.span(node))
        self.suites[-1].statements.append(statement)

    def enclose(self, wrap: Wrapper) -> None:
        """Wrap whatever follows in the suite being read (``T.attr``, ``T.launch_thread``)."""
        suite = self.suites[-1]
        suite.wrappers.append((len(suite.statements), wrap))

    def enclosed(self) -> bool:
        """Whether something in this suite encloses what follows."""
        return bool(self.suites[-1].wrappers)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names and nesting of a suite of its own."""
        self.scopes.append({})
        self.depth += 1
        yield
        self.depth -= 1
        self.scopes.pop()

    def loop_variable(self, spec: LoopSpec, extent: LoopRange, target: AsName) -> Var:
        """One variable of a loop's header, defined for what follows."""
        var = Var(target.name, prim_type(spec.dtype or scalar_dtype(extent.extent)), span=target.span)
        self.define(target.name, var)
        self.ranges[id(var)] = (extent.min, extent.extent)
        return var

    def define_cell(self, buffer: Var) -> BufferLoad:
        """The only element of a buffer, which its name stands for from here on."""
        cell = BufferLoad(buffer, (const(0, "int32"),), span=buffer.span)
        self.cells[id(cell)] = cell
        self.define(buffer.name, cell)
        return cell

    def launched_as(self, thread: Any) -> Var | None:
        """The loop variable of a thread axis that is one before it is launched; None where launching makes it."""
        return None

    def place(self) -> Span | None:
        """Where the call being read stands."""
        return None if self.at is None else self.span(self.at)


# ----------------------------------------------------------------------------------------------------- small converters


def as_int(p: LoopState, value: Any, dtype: str | None = None) -> Expr:
    """An integer scalar; a Python int takes ``dtype`` (int32 by default)."""
    if isinstance(value, Expr) and is_scalar(value) and not dtypes.is_float(scalar_dtype(value)):
        return value
    if isinstance(value, str):
        return p.symbol_text(value, p.at)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeCheckError("expected an integer", None, "an integer scalar", describe(value))
    return const(value.__index__(), dtype)


def pair(p: LoopState, a: Any, b: Any) -> tuple[Expr, Expr]:
    """Two integers of one dtype: a Python int follows the other."""
    if isinstance(a, Expr) and isinstance(b, Expr):
        left, right = match_dtypes(as_int(p, a), as_int(p, b))
        return left, right
    if isinstance(a, Expr):
        return as_int(p, a), as_int(p, b, scalar_dtype(as_int(p, a)))
    right = as_int(p, b)
    return as_int(p, a, scalar_dtype(right)), right


def plain(value: Any) -> Any:
    """An attribute or annotation: Python values and IR nodes as they are, containers rebuilt."""
    if isinstance(value, (list, tuple)):
        return type(value)(plain(v) for v in value)
    if isinstance(value, dict):
        return {as_name(k, "a key"): plain(v) for k, v in value.items()}
    if value is None or isinstance(value, (bool, int, float, str, Node, NamedTarget, Device)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, FormCall):
        raise TypeCheckError(f"{value.form.name} cannot be an attribute")
    raise TypeCheckError(f"{describe(value)} cannot be an attribute", None, "a number, string, list or dict")


def names_of(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeCheckError(f"{what}: expected a dict", None, "{'name': value}", describe(value))
    result: dict[str, Any] = plain(value)
    return result
