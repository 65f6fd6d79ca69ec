"""Loop level: buffers, loops, blocks, loop functions. Field names are Relax's own (``tirx``)."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, ClassVar

from supple.base.dtypes import is_float
from supple.ir.expr import IntImm, Range, StringImm, Sub, Var, as_expr, int64, is_scalar, scalar_dtype
from supple.ir.node import (
    METHODS,
    Expr,
    Node,
    Role,
    Stmt,
    Type,
    as_tuple,
    define,
    fields,
    ignored,
    node,
    replace,
    set_field,
)
from supple.ir.types import BufferType, FuncType, PrimType, TensorType, prim_type


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


class ForKind(enum.IntEnum):
    """How a loop runs; Relax's numbers."""

    SERIAL = 0
    PARALLEL = 1
    VECTORIZED = 2
    UNROLLED = 3
    THREAD_BINDING = 4

    @property
    def text(self) -> str:
        """The kind as programs and messages name it."""
        return "unroll" if self is ForKind.UNROLLED else self.name.lower()


class IterType(enum.IntEnum):
    """What an iteration variable of a block does: data parallel, reduction, scan (ordered), opaque; by Relax's numbers
    (1, a thread's index, is a loop's kind here)."""

    DATA_PAR = 0
    REDUCE = 2
    SCAN = 3
    OPAQUE = 4


# --------------------------------------------------------------------------------------------------------- statements


@node
class SeqStmt(Stmt):
    """Statements in order. `Bind`, `AllocBuffer` and `DeclBuffer` scope over the statements after them."""

    seq: tuple[Stmt, ...]

    def __post_init__(self) -> None:
        as_tuple(self, "seq")

    def __getitem__(self, index: int) -> Stmt:
        """The statement of that number."""
        return self.seq[index]

    def __len__(self) -> int:
        return len(self.seq)

    def __bool__(self) -> bool:
        return True


@node
class Evaluate(Stmt):
    """An expression for its effect."""

    value: Expr

    def __post_init__(self) -> None:
        if not isinstance(self.value, Expr):
            set_field(self, "value", as_expr(self.value, "int32" if isinstance(self.value, int) else None))


@node
class Bind(Stmt):
    """``var = value`` (``T.let``) for the statements that follow."""

    walk_order: ClassVar[tuple[str, ...]] = ("value", "var")
    var: Var = define()
    value: Expr


@node
class BufferStore(Stmt):
    """``buffer[indices] = value``."""

    buffer: Var
    value: Expr
    indices: tuple[Expr, ...]

    def __post_init__(self) -> None:
        ty = buffer_type(self.buffer)
        if type(self.indices) is not tuple or not all(isinstance(i, Expr) for i in self.indices):
            set_field(self, "indices", tuple(as_expr(i, "int32") for i in self.indices))
        if not isinstance(self.value, Expr):
            set_field(self, "value", as_expr(self.value, ty.dtype))
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

    walk_order: ClassVar[tuple[str, ...]] = ("data", "buffer")
    buffer: Var = define()
    data: Expr | None = None


_FOR_KINDS: dict[Any, ForKind] = {**dict(enumerate(ForKind)), **{kind.text: kind for kind in ForKind}}


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

    def __post_init__(self) -> None:
        dtype = getattr(self.loop_var.ty, "dtype", "int32")
        if is_float(dtype):
            raise TypeError(f"For: the loop variable {self.loop_var.name} must be an integer, got {dtype}")
        for name in ("min", "extent"):
            if not isinstance(getattr(self, name), Expr):
                set_field(self, name, as_expr(getattr(self, name), dtype))
        if not isinstance(self.kind, ForKind):
            set_field(self, "kind", _FOR_KINDS[self.kind])
        if self.annotations is None:
            set_field(self, "annotations", {})


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
    """Raise with the message's parts, joined, when the condition is false; ``kind`` names the error for who reads the
    program. ``AssertStmt(kind, condition, parts)``, Relax's order, is taken as well."""

    condition: Expr
    parts: tuple[str, ...] = ("",)
    kind: str = "RuntimeError"

    def __post_init__(self) -> None:
        condition, parts, kind = self.condition, self.parts, self.kind
        if isinstance(condition, (str, StringImm)):
            kind, condition, parts = condition, parts, () if kind == "RuntimeError" else kind  # type: ignore
        listed = parts if isinstance(parts, (list, tuple)) else (parts,)
        texts = tuple(p.value if isinstance(p, StringImm) else p for p in listed)
        if not all(isinstance(text, str) for text in texts):
            raise TypeError(f"AssertStmt: the message must be a string, got {parts!r}")
        set_field(self, "condition", condition)
        set_field(self, "parts", texts or ("",))
        set_field(self, "kind", kind.value if isinstance(kind, StringImm) else kind)

    @property
    def message(self) -> str:
        """The whole message."""
        return "".join(self.parts)

    @property
    def error_kind(self) -> StringImm:
        """The kind of error that is raised."""
        return StringImm(self.kind)

    @property
    def message_parts(self) -> tuple[StringImm, ...]:
        """The parts of the message."""
        return tuple(StringImm(part) for part in self.parts)


@node
class AttrStmt(Stmt):
    """``with T.attr(node, key, value): body``."""

    node: Any
    attr_key: str
    value: Expr
    body: Stmt

    def __post_init__(self) -> None:
        if not isinstance(self.value, Expr):
            plain = isinstance(self.value, int) and not isinstance(self.value, bool)
            set_field(self, "value", IntImm(self.value, "int32") if plain else as_expr(self.value))


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
    DataPar: ClassVar[IterType] = IterType.DATA_PAR
    CommReduce: ClassVar[IterType] = IterType.REDUCE
    Ordered: ClassVar[IterType] = IterType.SCAN
    Opaque: ClassVar[IterType] = IterType.OPAQUE

    @property
    def operand(self) -> Var:
        """What the axis is in arithmetic: its variable."""
        return self.var

    @property
    def thread_tag(self) -> str:
        """The thread that the variable is bound to: none, that is said of loops."""
        return ""

    def __post_init__(self) -> None:
        if not isinstance(self.iter_type, IterType):
            kinds = {int(kind): kind for kind in IterType}
            if self.iter_type not in kinds:
                raise ValueError(f"IterVar: the kinds are {', '.join(map(str, kinds))}")
            set_field(self, "iter_type", kinds[self.iter_type])
        if isinstance(self.dom, (tuple, list)):
            low, high = (IntImm(end, "int32") if isinstance(end, int) else as_expr(end) for end in self.dom)
            fixed = isinstance(low, IntImm) and isinstance(high, IntImm)
            extent = IntImm(high.value - low.value, "int32") if fixed else Sub(high, low)  # type: ignore[attr-defined]
            set_field(self, "dom", Range(low, extent))
        if isinstance(self.var, str):
            set_field(self, "var", Var(self.var, prim_type("int32")))


def _of_variable(name: str) -> Any:
    def operation(self: IterVar, *operands: Any) -> Any:
        return getattr(self.var, name)(*operands)

    return operation


for _name in (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod",
    "neg", "lt", "le", "gt", "ge",
):  # fmt: skip
    setattr(IterVar, f"__{_name}__", _of_variable(f"__{_name}__"))
IterVar.astype = _of_variable("astype")  # type: ignore[attr-defined]


@node
class BufferRegion(Node):
    """A rectangular part of a buffer: one `Range` a dimension."""

    buffer: Var
    region: tuple[Range, ...]

    def __post_init__(self) -> None:
        as_tuple(self, "region")

    @property
    def source(self) -> Var:
        """The buffer."""
        return self.buffer


@node
class MatchBufferRegion(Node):
    """``buffer`` as a view of a region, inside a block."""

    walk_order: ClassVar[tuple[str, ...]] = ("source", "buffer")
    buffer: Var = define()
    source: BufferRegion


@node
class SBlock(Stmt):
    """A block: a statement over iteration variables, isolated from the loops around it.

    ``init`` runs before the first iteration of the reduction variables. ``reads`` and ``writes`` are regions.
    """

    walk_order: ClassVar[tuple[str, ...]] = (
        "iter_vars", "alloc_buffers", "match_buffers", "reads", "writes", "name_hint", "init", "body", "annotations",
    )  # fmt: skip
    iter_vars: tuple[IterVar, ...] = define()
    reads: tuple[BufferRegion, ...]
    writes: tuple[BufferRegion, ...]
    name_hint: str = ignored()
    body: Stmt
    init: Stmt | None = None
    alloc_buffers: tuple[Var, ...] = define(default=())
    match_buffers: tuple[MatchBufferRegion, ...] = define(default=())
    annotations: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("iter_vars", "reads", "writes", "alloc_buffers", "match_buffers"):
            as_tuple(self, name)
        if self.annotations is None:
            set_field(self, "annotations", {})


@node
class SBlockRealize(Stmt):
    """A block with its iteration variables bound to ``iter_values``, run where ``predicate`` holds."""

    iter_values: tuple[Expr, ...]
    predicate: Expr
    block: SBlock

    def __post_init__(self) -> None:
        as_tuple(self, "iter_values")
        if not isinstance(self.predicate, Expr):
            set_field(self, "predicate", as_expr(bool(self.predicate)))


@node
class CommReducer(Node):
    """A commutative reducer: ``result`` combines ``lhs`` and ``rhs``; ``identity_element`` changes nothing."""

    lhs: tuple[Var, ...] = define()
    rhs: tuple[Var, ...] = define()
    result: tuple[Expr, ...]
    identity_element: tuple[Expr, ...]

    def __post_init__(self) -> None:
        for name in ("lhs", "rhs", "result", "identity_element"):
            as_tuple(self, name)


@node
class IndexMap(Node):
    """How indices change: ``T.index_map(lambda i, j: (j, i))``; ``inverse_index_map`` leads back where it is given."""

    initial_indices: tuple[Var, ...] = define()
    final_indices: tuple[Expr, ...]
    inverse_index_map: IndexMap | None = None

    def __post_init__(self) -> None:
        as_tuple(self, "initial_indices")
        as_tuple(self, "final_indices")

    @staticmethod
    def from_func(
        mapping: Callable[..., Any],
        ndim: int | None = None,
        inverse_index_map: Callable[..., Any] | IndexMap | None = None,
        *,
        index_dtype: str = "int64",
    ) -> IndexMap:
        """The map of a Python function of indices, which returns an index or several. ``ndim`` is needed for
        ``*args``. Raises ``TypeError`` for a function that returns anything else."""
        spec = tuple(inspect.signature(mapping).parameters.values())
        names = [p.name for p in spec if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        if any(p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in spec):
            raise TypeError("index_map: the function takes its indices by position")
        if any(p.kind is p.VAR_POSITIONAL for p in spec):
            if ndim is None:
                raise TypeError("index_map: the number of indices must be given for a function of *indices")
            names += [f"i_{n}" for n in range(ndim - len(names))]
        indices = tuple(Var(name, prim_type(index_dtype)) for name in names)
        result = mapping(*indices)
        items = result if isinstance(result, (tuple, list)) else (result,)
        final = tuple(as_expr(item, index_dtype) for item in items)
        for item in final:
            if not is_scalar(item):
                raise TypeError(f"index_map: expected integer indices, got {item}")
        if inverse_index_map is not None and not isinstance(inverse_index_map, IndexMap):
            inverse_index_map = IndexMap.from_func(inverse_index_map, len(final), index_dtype=index_dtype)
        return IndexMap(indices, final, inverse_index_map)

    def map_indices(self, indices: Sequence[Any]) -> tuple[Expr, ...]:
        """The final indices for given initial ones, simplified."""
        found: tuple[Expr, ...] = METHODS["index_map.map_indices"](self, indices)
        return found

    def map_shape(self, shape: Sequence[Any]) -> tuple[Expr, ...]:
        """The shape that a shape is mapped to: blocks are whole, so 17 in blocks of 4 gives 5 blocks."""
        found: tuple[Expr, ...] = METHODS["index_map.map_shape"](self, shape)
        return found

    def inverse(self, shape: Sequence[Any]) -> IndexMap:
        """The map back, over a shape of extents (or ranges from 0). Raises a `TypeCheckError` where there is none."""
        found: IndexMap = METHODS["index_map.inverse"](self, shape)
        return found

    def non_surjective_inverse(self, shape: Sequence[Any]) -> tuple[IndexMap, Expr]:
        """The map back, and a condition on the final indices that holds where no element is mapped to."""
        found: tuple[IndexMap, Expr] = METHODS["index_map.non_surjective_inverse"](self, shape)
        return found

    def is_equivalent_to(self, other_map: IndexMap) -> bool:
        """Whether another map gives the same final indices for all initial ones."""
        return bool(METHODS["index_map.is_equivalent_to"](self, other_map))

    def map_tensor(self, arr_src: Any) -> Any:
        """An array or `Tensor` with its elements in the map's order."""
        return METHODS["index_map.map_tensor"](self, arr_src)

    map_ndarray = map_tensor

    def mapped(self, indices: Sequence[Any]) -> list[Expr]:
        """The final indices for given initial ones, as the map writes them."""
        if len(indices) != len(self.initial_indices):
            raise ValueError(f"index_map: expected {len(self.initial_indices)} indices, got {len(indices)}")
        given = {id(v): as_expr(i, v.dtype) for v, i in zip(self.initial_indices, indices)}
        return [_with_indices(e, given) for e in self.final_indices]


def _with_indices(root: Expr, given: dict[int, Expr]) -> Expr:
    """An index expression with variables replaced. Index maps are written by hand: they are not deep."""
    if isinstance(root, Var):
        return given.get(id(root), root)
    changes: dict[str, Any] = {}
    for name, role in fields(type(root)):
        value = getattr(root, name)
        if role is not Role.IGNORE and isinstance(value, Expr):
            changes[name] = _with_indices(value, given)
        elif role is not Role.IGNORE and isinstance(value, tuple):
            changes[name] = tuple(_with_indices(v, given) if isinstance(v, Expr) else v for v in value)
    return replace(root, **changes) if changes else root


@node
class PrimFunc(Expr):
    """A loop function. ``params`` are buffer variables and scalar variables; the symbols in the buffers' shapes are
    defined by them, in order of first appearance. ``attrs`` holds ``global_symbol`` for a public function, and
    ``s_tir`` when the source said so."""

    params: tuple[Var, ...] = define()
    body: Stmt
    ret_ty: Type | None = None
    attrs: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        as_tuple(self, "params")
        if self.attrs is None:
            set_field(self, "attrs", {})

    def specialize(self, param_map: dict[Any, Any]) -> PrimFunc:
        """The function with some parameters (by name or variable) fixed: scalars to numbers or expressions, buffers to
        the shapes of other buffers."""
        special: PrimFunc = METHODS["specialize"](self, param_map)
        return special

    @property
    def ret_type(self) -> Type | None:
        """Relax's spelling of ``ret_ty``."""
        return self.ret_ty

    @property
    def ty(self) -> Type | None:
        """The type of a function that returns a number, which graph functions can call directly; else None."""
        if not isinstance(self.ret_ty, PrimType):
            return None
        params: list[Type] = []
        for p in self.params:
            if isinstance(p.ty, BufferType):
                dims = [int64(d.value) if isinstance(d, IntImm) else d for d in p.ty.shape]
                known = all(scalar_dtype(d) == "int64" for d in dims)
                params.append(TensorType(dims if known else None, p.ty.dtype, len(dims)))  # type: ignore[arg-type]
            elif p.ty is not None:
                params.append(p.ty)
        return FuncType(tuple(params), self.ret_ty, purity=not self.buffers)

    @property
    def buffers(self) -> tuple[Var, ...]:
        """The parameters that are buffers."""
        return tuple(p for p in self.params if isinstance(p.ty, BufferType))

    def with_attr(self, attr_key_or_dict: str | dict[str, Any], attr_value: Any = None) -> PrimFunc:
        """A copy with attributes added."""
        new = dict(attr_key_or_dict) if isinstance(attr_key_or_dict, dict) else {attr_key_or_dict: attr_value}
        return PrimFunc(self.params, self.body, self.ret_ty, {**self.attrs, **new}, span=self.span)

    def with_attrs(self, attr_map: dict[str, Any]) -> PrimFunc:
        """A copy with attributes added."""
        return self.with_attr(attr_map)

    def with_body(self, new_body: Stmt, span: Any = None) -> PrimFunc:
        """A copy with another body."""
        return PrimFunc(self.params, new_body, self.ret_ty, self.attrs, span=self.span if span is None else span)

    def without_attr(self, attr_key: str) -> PrimFunc:
        """A copy without one attribute."""
        rest = {k: v for k, v in self.attrs.items() if k != attr_key}
        return PrimFunc(self.params, self.body, self.ret_ty, rest, span=self.span)


def seq(statements: list[Stmt]) -> Stmt:
    """One statement out of several: nested sequences are flattened, a single one stays itself."""
    flat: list[Stmt] = []
    for statement in statements:
        flat.extend(statement.seq if isinstance(statement, SeqStmt) else (statement,))
    return flat[0] if len(flat) == 1 else SeqStmt(tuple(flat))
