"""Loop level: buffers, loops, blocks, loop functions. Field names are Relax's own (``tirx``)."""

from __future__ import annotations

import enum
from dataclasses import field
from typing import Any

from supple.ir.expr import Range, Var, as_expr, scalar_dtype
from supple.ir.node import Expr, Node, Stmt, Type, define, ignored, node
from supple.ir.types import BufferType


def Buffer(
    name: str,
    shape: tuple[Expr, ...],
    dtype: str = "float32",
    scope: str = "global",
    **rest: Any,
) -> Var:
    """A buffer: a `Var` of `BufferType` (``strides``, ``elem_offset``, ``data``, ``align`` by keyword)."""
    return Var(name, BufferType(tuple(as_expr(s) for s in shape), dtype, scope, **rest))


def buffer_type(buffer: Var) -> BufferType:
    """The `BufferType` of a buffer variable; raises ``TypeError`` for any other variable."""
    if not isinstance(buffer.ty, BufferType):
        raise TypeError(f"{buffer.name} is not a buffer")
    return buffer.ty


class ForKind(enum.Enum):
    """How a loop runs."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTORIZED = "vectorized"
    UNROLLED = "unroll"
    THREAD_BINDING = "thread_binding"


class IterType(enum.Enum):
    """What an iteration variable of a block does: data parallel, reduction, scan (ordered), opaque."""

    DATA_PAR = "spatial"
    REDUCE = "reduce"
    SCAN = "scan"
    OPAQUE = "opaque"


# --------------------------------------------------------------------------------------------------------- statements


@node
class SeqStmt(Stmt):
    """Statements in order. `Bind`, `AllocBuffer` and `DeclBuffer` scope over the statements after them."""

    seq: tuple[Stmt, ...]


@node
class Evaluate(Stmt):
    """An expression for its effect."""

    value: Expr


@node
class Bind(Stmt):
    """``var = value`` (``T.let``) for the statements that follow."""

    value: Expr
    var: Var = define()


@node
class BufferStore(Stmt):
    """``buffer[indices] = value``."""

    buffer: Var
    value: Expr
    indices: tuple[Expr, ...]

    def __post_init__(self) -> None:
        ty = buffer_type(self.buffer)
        if len(ty.shape) != len(self.indices):
            raise TypeError(
                f"{self.buffer.name} has {len(ty.shape)} dimensions, but {len(self.indices)} indices were given"
            )
        scalar_dtype(self.value)


@node
class AllocBuffer(Stmt):
    """Storage for ``buffer``, for the statements that follow."""

    buffer: Var = define()
    annotations: dict[str, Any] = field(default_factory=dict)


@node
class DeclBuffer(Stmt):
    """Another view (``buffer``, whose type names ``data``) of existing storage, for the statements that follow."""

    data: Expr | None
    buffer: Var = define()


@node
class For(Stmt):
    """``for loop_var in range(min, min + extent, step)``. ``thread_binding`` names a GPU thread axis."""

    loop_var: Var = define()
    min: Expr
    extent: Expr
    kind: ForKind
    body: Stmt
    thread_binding: str | None = None
    annotations: dict[str, Any] = field(default_factory=dict)
    step: Expr | None = None


@node
class While(Stmt):
    """``while condition: body``."""

    condition: Expr
    body: Stmt


@node
class IfThenElse(Stmt):
    """``if condition: then_case else: else_case``."""

    condition: Expr
    then_case: Stmt
    else_case: Stmt | None = None


@node
class AssertStmt(Stmt):
    """Raise with ``message`` when the condition is false."""

    condition: Expr
    message: str


@node
class AttrStmt(Stmt):
    """``with T.attr(node, key, value): body``."""

    node: Any
    attr_key: str
    value: Expr
    body: Stmt


@node
class Break(Stmt):
    """Leave the innermost loop."""


@node
class Continue(Stmt):
    """Go on with the innermost loop's next iteration."""


@node
class Return(Stmt):
    """Leave the function (with a scalar value, or none)."""

    value: Expr | None = None


# ------------------------------------------------------------------------------------------------------------- blocks


@node
class IterVar(Node):
    """An iteration variable of a block, over ``dom``."""

    dom: Range
    var: Var = define()
    iter_type: IterType = IterType.DATA_PAR


@node
class BufferRegion(Node):
    """A rectangular part of a buffer: one `Range` a dimension."""

    buffer: Var
    region: tuple[Range, ...]


@node
class MatchBufferRegion(Node):
    """``buffer`` as a view of a region, inside a block."""

    source: BufferRegion
    buffer: Var = define()


@node
class SBlock(Stmt):
    """A block: a statement over iteration variables, isolated from the loops around it.

    ``init`` runs before the first iteration of the reduction variables. ``reads`` and ``writes`` are regions.
    """

    iter_vars: tuple[IterVar, ...] = define()
    alloc_buffers: tuple[Var, ...] = define()
    match_buffers: tuple[MatchBufferRegion, ...] = define()
    reads: tuple[BufferRegion, ...]
    writes: tuple[BufferRegion, ...]
    name_hint: str = ignored()
    init: Stmt | None
    body: Stmt
    annotations: dict[str, Any] = field(default_factory=dict)


@node
class SBlockRealize(Stmt):
    """A block with its iteration variables bound to ``iter_values``, run where ``predicate`` holds."""

    iter_values: tuple[Expr, ...]
    predicate: Expr
    block: SBlock


@node
class PrimFunc(Expr):
    """A loop function. ``params`` are buffer variables and scalar variables; the symbols in the buffers' shapes are
    defined by them, in order of first appearance. ``attrs`` holds ``global_symbol`` for a public function, and
    ``s_tir`` when the source said so."""

    params: tuple[Var, ...] = define()
    body: Stmt
    ret_ty: Type | None = None
    attrs: dict[str, Any] = field(default_factory=dict)

    @property
    def ty(self) -> Type | None:
        return None

    @property
    def buffers(self) -> tuple[Var, ...]:
        """The parameters that are buffers."""
        return tuple(p for p in self.params if isinstance(p.ty, BufferType))

    def with_attr(self, key: str | dict[str, Any], value: Any = None) -> PrimFunc:
        """A copy with attributes added."""
        new = dict(key) if isinstance(key, dict) else {key: value}
        return PrimFunc(self.params, self.body, self.ret_ty, {**self.attrs, **new}, span=self.span)

    def without_attr(self, key: str) -> PrimFunc:
        """A copy without one attribute."""
        rest = {k: v for k, v in self.attrs.items() if k != key}
        return PrimFunc(self.params, self.body, self.ret_ty, rest, span=self.span)


def seq(statements: list[Stmt]) -> Stmt:
    """One statement out of several: nested sequences are flattened, a single one stays itself."""
    flat: list[Stmt] = []
    for statement in statements:
        flat.extend(statement.seq if isinstance(statement, SeqStmt) else (statement,))
    return flat[0] if len(flat) == 1 else SeqStmt(tuple(flat))
