"""Documents: the parts of a Python program that is to be written, expressions and statements.

``source_paths`` of a document are `AccessPath` s of the objects that it shows; the printer can underline them.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from supple.script.printer.access_path import AccessPath


class OperationKind(enum.IntEnum):
    """Operators of Python expressions."""

    USub = 1
    Invert = 2
    Not = 3
    Add = 6
    Sub = 7
    Mult = 8
    Div = 9
    FloorDiv = 10
    Mod = 11
    Pow = 12
    LShift = 13
    RShift = 14
    BitAnd = 15
    BitOr = 16
    BitXor = 17
    Lt = 18
    LtE = 19
    Eq = 20
    NotEq = 21
    Gt = 22
    GtE = 23
    And = 24
    Or = 25
    MatMul = 26
    IfThenElse = 29

    @property
    def arity(self) -> int:
        """How many operands it takes: 1, 2, or 3 for the conditional expression (condition first)."""
        return 1 if self <= OperationKind.Not else 3 if self is OperationKind.IfThenElse else 2


@dataclass(eq=False)
class Doc:
    """Base of all documents."""

    source_paths: list[AccessPath] = field(default_factory=list, kw_only=True)


class ExprDoc(Doc):
    """Base of expressions."""

    def attr(self, name: str) -> AttrAccessDoc:
        """``self.name``."""
        return AttrAccessDoc(self, name)

    def call(self, *args: ExprDoc, **kwargs: ExprDoc) -> CallDoc:
        """``self(*args, **kwargs)``."""
        return CallDoc(self, *args, **kwargs)

    def __getitem__(self, indices: ExprDoc | SliceDoc | tuple[ExprDoc | SliceDoc, ...]) -> IndexDoc:
        """``self[indices]``."""
        return IndexDoc(self, indices if isinstance(indices, tuple) else (indices,))

    def __iter__(self) -> Any:
        raise RuntimeError(f"{type(self).__name__} cannot be iterated")


@dataclass(eq=False)
class StmtDoc(Doc):
    """Base of statements. ``comment`` stands behind a statement of one line, above others, inside of definitions."""

    comment: str | None = field(default=None, kw_only=True)


Indices: TypeAlias = Sequence["ExprDoc | SliceDoc"]

# --------------------------------------------------------------------------------------------------------- expressions


@dataclass(eq=False)
class LiteralDoc(ExprDoc):
    """A number, string, bool or None."""

    value: str | float | bool | int | None
    path: AccessPath | None = None

    def __post_init__(self) -> None:
        if self.value is not None and not isinstance(self.value, (str, float, bool, int)):
            raise TypeError(f"LiteralDoc: expected a number, string, bool or None, got {self.value!r}")
        if self.path is not None:
            self.source_paths = [*self.source_paths, self.path]


@dataclass(eq=False)
class IdDoc(ExprDoc):
    """A name."""

    name: str


@dataclass(eq=False)
class AttrAccessDoc(ExprDoc):
    """``value.name``."""

    value: ExprDoc
    name: str


@dataclass(eq=False)
class IndexDoc(ExprDoc):
    """``value[indices]``."""

    value: ExprDoc
    indices: Indices


@dataclass(eq=False, init=False)
class CallDoc(ExprDoc):
    """``callee(*args, **kwargs)``."""

    callee: ExprDoc
    args: tuple[ExprDoc, ...]
    kwargs: dict[str, ExprDoc]

    def __init__(self, callee: ExprDoc, *args: ExprDoc, **kwargs: ExprDoc) -> None:
        super().__init__()
        self.callee, self.args, self.kwargs = callee, args, kwargs

    @property
    def kwargs_keys(self) -> list[str]:
        return list(self.kwargs)

    @property
    def kwargs_values(self) -> list[ExprDoc]:
        return list(self.kwargs.values())


@dataclass(eq=False)
class OperationDoc(ExprDoc):
    """An operator with its operands; raises ``ValueError`` for a wrong number of them."""

    kind: OperationKind
    operands: Sequence[ExprDoc]

    def __post_init__(self) -> None:
        self.kind = OperationKind(self.kind)
        if len(self.operands) != self.kind.arity:
            raise ValueError(f"{self.kind.name} takes {self.kind.arity} operands, got {len(self.operands)}")


@dataclass(eq=False)
class LambdaDoc(ExprDoc):
    """``lambda args: body``."""

    args: Sequence[IdDoc]
    body: ExprDoc


@dataclass(eq=False)
class TupleDoc(ExprDoc):
    """``(a, b)``."""

    elements: Sequence[ExprDoc]


@dataclass(eq=False)
class ListDoc(ExprDoc):
    """``[a, b]``."""

    elements: Sequence[ExprDoc]


@dataclass(eq=False, init=False)
class DictDoc(ExprDoc):
    """``{key: value}``."""

    keys: list[ExprDoc]
    values: list[ExprDoc]

    def __init__(self, content: Mapping[ExprDoc, ExprDoc]) -> None:
        super().__init__()
        self.keys, self.values = list(content), list(content.values())


@dataclass(eq=False)
class SliceDoc(ExprDoc):
    """``start:stop:step`` in an index."""

    start: ExprDoc | None = None
    stop: ExprDoc | None = None
    step: ExprDoc | None = None


# ---------------------------------------------------------------------------------------------------------- statements


@dataclass(eq=False)
class StmtBlockDoc(Doc):
    """Statements one after the other."""

    stmts: Sequence[StmtDoc]


@dataclass(eq=False)
class AssignDoc(StmtDoc):
    """``lhs: annotation = rhs``; the annotation or the value may be absent."""

    lhs: ExprDoc
    rhs: ExprDoc | None = None
    annotation: ExprDoc | None = None


@dataclass(eq=False)
class IfDoc(StmtDoc):
    """``if predicate: ... else: ...``; raises ``ValueError`` when both branches are empty."""

    predicate: ExprDoc
    then_branch: Sequence[StmtDoc]
    else_branch: Sequence[StmtDoc]

    def __post_init__(self) -> None:
        if not self.then_branch and not self.else_branch:
            raise ValueError("IfDoc: at least one branch needs a statement")


@dataclass(eq=False)
class WhileDoc(StmtDoc):
    """``while predicate: ...``."""

    predicate: ExprDoc
    body: Sequence[StmtDoc]


@dataclass(eq=False)
class ForDoc(StmtDoc):
    """``for lhs in rhs: ...``."""

    lhs: ExprDoc
    rhs: ExprDoc
    body: Sequence[StmtDoc]


@dataclass(eq=False)
class ScopeDoc(StmtDoc):
    """``with rhs as lhs: ...``; ``lhs`` may be None."""

    lhs: ExprDoc | None
    rhs: ExprDoc
    body: Sequence[StmtDoc]


@dataclass(eq=False)
class ExprStmtDoc(StmtDoc):
    """An expression as a statement."""

    expr: ExprDoc


@dataclass(eq=False)
class AssertDoc(StmtDoc):
    """``assert test, msg``."""

    test: ExprDoc
    msg: ExprDoc | None = None


@dataclass(eq=False)
class ReturnDoc(StmtDoc):
    """``return value``."""

    value: ExprDoc


@dataclass(eq=False)
class FunctionDoc(StmtDoc):
    """``def name(args) -> return_type: ...``; the arguments are assignments without a value, or with a default."""

    name: IdDoc
    args: Sequence[AssignDoc]
    decorators: Sequence[ExprDoc]
    return_type: ExprDoc | None
    body: Sequence[StmtDoc]


@dataclass(eq=False)
class ClassDoc(StmtDoc):
    """``class name: ...``."""

    name: IdDoc
    decorators: Sequence[ExprDoc]
    body: Sequence[StmtDoc]


@dataclass(eq=False, init=False)
class CommentDoc(StmtDoc):
    """Lines of comment alone."""

    def __init__(self, comment: str) -> None:
        super().__init__(comment=comment)


@dataclass(eq=False, init=False)
class DocStringDoc(StmtDoc):
    """A docstring."""

    def __init__(self, docs: str) -> None:
        super().__init__(comment=docs)
