"""The compute DSL (te): tensors defined by formulas over their indices, turned into loop functions.

::

    A = te.placeholder((n, k), "float32", "A")
    B = te.placeholder((k, m), "float32", "B")
    r = te.reduce_axis((0, k), "k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), "C")
    func = te.create_prim_func([A, B, C])

An index has the dtype of the size that it runs to; Python ints are int64 here, where operators are defined, and int32
in programs (`supple.te`). A reduction stands at the top of a formula; it becomes a block with an ``init`` and an
update.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import ContextDecorator
from dataclasses import dataclass, field
from typing import Any

from supple.base import dtypes
from supple.base.errors import ComputeError, NotSupportedError
from supple.ir import expr as E
from supple.ir.expr import BufferLoad, ExprWithOps, Range, TupleGetItem, Var, as_expr, const, scalar_dtype
from supple.ir.expr_operators import scalar_operation
from supple.ir.graph import Function, GlobalVar, ShapeExpr, Tuple
from supple.ir.loop import (
    Buffer,
    CommReducer,
    IterType,
    IterVar,
    buffer_type,
)
from supple.ir.node import Expr, Stmt, Type, ignored, node
from supple.ir.types import TensorType, TupleType, prim_type
from supple.ir.walk import post_order, substitute
from supple.sym.relate import tensor_dims


@node
class Reduce(ExprWithOps):
    """A reduction of ``source`` over ``axes``; ``combiner`` is ``"sum"``, ``"prod"``, ``"max"`` or ``"min"``."""

    combiner: str
    source: Expr
    axes: tuple[IterVar, ...]

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """Relax's name for ``axes``."""
        return self.axes

    @property
    def value_index(self) -> int:
        """Which of the values that are reduced together: the only one."""
        return 0

    @property
    def dtype(self) -> str:
        return scalar_dtype(self.source)

    @property
    def ty(self) -> Type:
        return prim_type(self.dtype)


@node
class CustomReduce(ExprWithOps):
    """Result ``value_index`` of a reduction of several values together by a reducer of the program's own."""

    combiner: CommReducer
    sources: tuple[Expr, ...]
    axes: tuple[IterVar, ...]
    value_index: int = 0

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """Relax's name for ``axes``."""
        return self.axes

    @property
    def source(self) -> tuple[Expr, ...]:
        """Relax's name for ``sources``."""
        return self.sources

    @property
    def condition(self) -> Expr:
        """Where a point takes part: everywhere."""
        return const(True)

    @property
    def dtype(self) -> str:
        return scalar_dtype(self.sources[self.value_index])

    @property
    def ty(self) -> Type:
        return prim_type(self.dtype)


class _AnyReduce(type):
    """``isinstance`` knows both kinds of reductions."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (Reduce, CustomReduce))

    def __call__(
        cls,
        combiner: CommReducer,
        src: Sequence[Expr],
        rdom: Sequence[IterVar],
        condition: Any = True,
        value_index: int = 0,
        init: Sequence[Expr] | None = None,
    ) -> CustomReduce:
        always = condition is None or condition is True or (isinstance(condition, E.IntImm) and condition.value == 1)
        if not always or init:
            raise NotSupportedError("Reduce: conditions and initial values of their own are not supported")
        return CustomReduce(combiner, tuple(src), tuple(rdom), value_index)


class AnyReduce(metaclass=_AnyReduce):
    """Relax's ``tirx.Reduce(combiner, src, rdom, condition, value_index)``: result ``value_index`` of a reduction."""


@node
class TensorRead(BufferLoad):
    """``tensor[indices]`` in a formula: a `BufferLoad` that remembers the tensor it reads."""

    tensor: Any = ignored(default=None)


COMBINE: dict[str, Callable[[Expr, Expr], Expr]] = {"sum": E.Add, "prod": E.Mul, "max": E.Max, "min": E.Min}


def identity(combiner: str, dtype: str) -> Expr:
    """The value that changes nothing: 0, 1, the lowest or the highest of the dtype."""
    if combiner in ("sum", "prod"):
        return const(0 if combiner == "sum" else 1, dtype)
    return limit(dtype, low=combiner == "max")


def limit(dtype: str, low: bool) -> Expr:
    """The lowest or highest value of a dtype (infinite for floats that have infinities)."""
    if dtypes.is_float(dtype):
        return const(dtypes.extreme(dtype, low), dtype)
    return const(dtypes.int_range(dtype)[0 if low else 1], dtype)


ARITHMETIC: dict[str, Callable[..., TensorValue]] = {}
"""Elementwise operators on tensors, by name; filled by the level that has operators."""


class TensorValue:
    """A tensor of the DSL: an input (`placeholder`) or the result of a formula (`compute`). Index it in formulas."""

    def __init__(self, buffer: Var, definition: ComputeOp | ExternOp | None, value_index: int = 0) -> None:
        self.buffer = buffer
        self.definition = definition
        self.value_index = value_index

    @property
    def shape(self) -> tuple[Expr, ...]:
        return buffer_type(self.buffer).shape

    @property
    def dtype(self) -> str:
        return buffer_type(self.buffer).dtype

    @property
    def name(self) -> str:
        return self.buffer.name

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def op(self) -> _Operation:
        """What makes the tensor: a `ComputeOp`, an `ExternOp`, or a `PlaceholderOp` for an input."""
        return PlaceholderOp([self]) if self.definition is None else self.definition

    def astype(self, dtype: str) -> TensorValue:
        """The tensor converted to another dtype."""
        return ARITHMETIC["cast"](self, dtype)

    def __neg__(self) -> TensorValue:
        return ARITHMETIC["negative"](self)

    def __add__(self, other: Any) -> TensorValue:
        return ARITHMETIC["add"](self, other)

    def __radd__(self, other: Any) -> TensorValue:
        return ARITHMETIC["add"](other, self)

    def __sub__(self, other: Any) -> TensorValue:
        return ARITHMETIC["subtract"](self, other)

    def __rsub__(self, other: Any) -> TensorValue:
        return ARITHMETIC["subtract"](other, self)

    def __mul__(self, other: Any) -> TensorValue:
        return ARITHMETIC["multiply"](self, other)

    def __rmul__(self, other: Any) -> TensorValue:
        return ARITHMETIC["multiply"](other, self)

    def __truediv__(self, other: Any) -> TensorValue:
        return ARITHMETIC["divide"](self, other)

    def __rtruediv__(self, other: Any) -> TensorValue:
        return ARITHMETIC["divide"](other, self)

    def __getitem__(self, index: Any) -> Expr:
        """An element in a formula; with fewer indices than dimensions, what takes the rest: ``A[i][j]``."""
        indices = index if isinstance(index, tuple) else (index,)
        if len(indices) < self.ndim:
            return TensorSlice(self, indices)  # type: ignore[return-value]  # with the rest it is one
        given = [i.var if isinstance(i, IterVar) else i for i in indices]
        like = [scalar_dtype(d) for d in self.shape[: len(given)]] + ["int64"] * (len(given) - self.ndim)
        values = tuple(i if isinstance(i, Expr) else as_expr(i, dtype) for i, dtype in zip(given, like, strict=True))
        return TensorRead(self.buffer, values, tensor=self)

    def __call__(self, *indices: Any) -> Expr:
        return self[indices]

    def __repr__(self) -> str:
        dims = ", ".join(str(s.value) if isinstance(s, E.IntImm) else str(s) for s in self.shape)
        return f"Tensor(shape=({dims}{',' if len(self.shape) == 1 else ''}), op.name={self.name})"


@dataclass(frozen=True, slots=True)
class TensorSlice:
    """A tensor with some of its indices: ``A[i]``, which takes the others in brackets of their own."""

    tensor: TensorValue
    indices: tuple[Any, ...]

    @property
    def dtype(self) -> str:
        """The dtype of the tensor's elements."""
        return self.tensor.dtype

    def __getitem__(self, index: Any) -> Any:
        return self.tensor[(*self.indices, *(index if isinstance(index, tuple) else (index,)))]


class NumberValue(TensorValue):
    """A number as a tensor without dimensions: formulas that read it hold the number itself."""

    def __init__(self, number: Expr) -> None:
        super().__init__(Buffer("number", (), scalar_dtype(number)), None)
        self._number = number

    def __getitem__(self, index: Any) -> Expr:
        return self._number


class _Operation:
    """What makes one tensor or several together."""

    outputs: list[TensorValue]
    name: str

    @property
    def inputs(self) -> list[TensorValue]:
        """The tensors that are read, in order of first use."""
        raise NotImplementedError

    @property
    def input_tensors(self) -> list[TensorValue]:
        """Relax's name for `inputs`."""
        return list(self.inputs)

    @property
    def num_outputs(self) -> int:
        """How many tensors are made together."""
        return len(self.outputs)

    def output(self, index: int) -> TensorValue:
        """The tensor of that number."""
        return self.outputs[index]


@dataclass(eq=False)
class PlaceholderOp(_Operation):
    """An input: nothing makes it."""

    outputs: list[TensorValue]
    tag: str = ""
    attrs: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The tensor's name."""
        return self.outputs[0].name

    @property
    def shape(self) -> tuple[Expr, ...]:
        """The tensor's shape."""
        return self.outputs[0].shape

    @property
    def dtype(self) -> str:
        """The tensor's dtype."""
        return self.outputs[0].dtype

    @property
    def inputs(self) -> list[TensorValue]:
        """None."""
        return []


@dataclass(eq=False)
class ComputeOp(_Operation):
    """Formulas: ``body`` over the index variables ``indices``, one for each of the tensors that are made together."""

    indices: tuple[Var, ...]
    body: tuple[Expr, ...]
    name: str = "compute"
    outputs: list[TensorValue] = field(default_factory=list)
    tag: str = ""
    attrs: dict[str, Any] = field(default_factory=dict)

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """The axes of the tensors: an index and the range that it runs over, each."""
        shape = self.outputs[0].shape
        return tuple(
            IterVar(Range(const(0, scalar_dtype(dim)), dim), var) for var, dim in zip(self.indices, shape, strict=True)
        )

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """The axes that are reduced."""
        top = self.body[0]
        return top.axes if isinstance(top, (Reduce, CustomReduce)) else ()

    @property
    def inputs(self) -> list[TensorValue]:
        """The tensors that the formulas read, in order of first use."""
        reads = [n.tensor for body in self.body for n in post_order(body) if isinstance(n, TensorRead)]
        return list(dict.fromkeys(reads))


@dataclass(eq=False)
class ExternOp(_Operation):
    """Tensors made together by a loop statement: ``body`` writes all of ``outputs`` and reads ``read``."""

    body: Stmt
    read: list[TensorValue]
    outputs: list[TensorValue]
    scratch: tuple[Var, ...] = ()
    name: str = "extern"
    tag: str = ""
    attrs: dict[str, Any] = field(default_factory=dict)

    @property
    def inputs(self) -> list[TensorValue]:
        """The tensors that the statement reads."""
        return self.read


def placeholder(shape: Sequence[Any], dtype: str = "float32", name: str = "placeholder") -> TensorValue:
    """An input tensor. ``shape`` holds ints and integer expressions."""
    return TensorValue(Buffer(name, tuple(as_expr(s) for s in shape), dtype), None)


def te_tensor(value: Expr, tir_var_map: Mapping[Var, Expr], name: str = "rxplaceholder") -> TensorValue:
    """The input tensor that a graph value is in a formula; its symbols become what ``tir_var_map`` says.

    Raises ``TypeError`` when the value's shape or dtype is not known.
    """
    ty = getattr(value, "ty", None)
    dims = tensor_dims(ty) if isinstance(ty, TensorType) else None
    if dims is None or not isinstance(ty, TensorType) or ty.dtype is None:
        raise TypeError(f"te_tensor: the shape and dtype of {value} are not known")
    return placeholder([substitute(d, dict(tir_var_map)) for d in dims], ty.dtype, name)


def reduce_axis(domain: Sequence[Any] | Range, name: str = "k") -> IterVar:
    """A reduction axis over ``(low, high)``."""
    if isinstance(domain, Range):
        low, extent = domain.min, domain.extent
    else:
        low, high = (as_expr(d) for d in domain)
        low, high = E.match_dtypes(low, high)
        extent = high if isinstance(low, E.IntImm) and low.value == 0 else E.Sub(high, low)
    return IterVar(Range(low, extent), Var(name, prim_type(scalar_dtype(extent))), IterType.REDUCE)


def compute(shape: Sequence[Any], formula: Callable[..., Any], name: str = "compute") -> TensorValue:
    """A tensor whose element at ``i, j, ...`` is ``formula(i, j, ...)``.

    A formula with ``*indices`` takes any rank. Raises ``TypeError`` when the number of indices does not fit, or a
    reduction stands inside an expression.
    """
    made = compute_together(shape, formula, name)
    if not isinstance(made, TensorValue):
        raise TypeError(f"{name}: the formula gives {len(made)} values")
    return made


def compute_together(
    shape: Sequence[Any],
    formula: Callable[..., Any],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
) -> TensorValue | list[TensorValue]:
    """`compute`, or several tensors where the formula returns several values. ``tag`` and ``attrs`` are notes."""
    dims = tuple(as_expr(s) for s in shape)
    names = _index_names(formula, len(dims))
    axis = tuple(Var(n, prim_type(scalar_dtype(d))) for n, d in zip(names, dims, strict=True))
    made = formula(*axis)
    several = isinstance(made, (list, tuple))
    bodies = tuple(as_expr(body, "float32") for body in (made if several else (made,)))
    bodies = tuple(b.source if isinstance(b, Reduce) and not b.axes else b for b in bodies)
    for body in bodies:
        for found in post_order(body):
            if isinstance(found, (Reduce, CustomReduce)) and found is not body:
                raise TypeError(f"{name}: a reduction must stand at the top of the formula, not inside an expression")
    if not bodies or len({_reduction_of(body) for body in bodies}) > 1:
        raise TypeError(f"{name}: formulas of one tensor each, or the results of one reduction, go together")
    op = ComputeOp(axis, bodies, name, [], tag or _TAGS[-1], dict(attrs or {}))
    labels = [f"{name}_v{n}" for n in range(len(bodies))] if several else [name]
    op.outputs = [
        TensorValue(Buffer(label, dims, scalar_dtype(body)), op, n)
        for n, (label, body) in enumerate(zip(labels, bodies, strict=True))
    ]
    return op.outputs if several else op.outputs[0]


_TAGS = [""]


class TagScope(ContextDecorator):
    """Tensors that are computed inside of ``with`` (or of a function that this decorates) have a tag, where they are
    given none of their own. One stands not inside of another: raises ``ValueError``."""

    def __init__(self, tag: str) -> None:
        self.tag = tag

    def __enter__(self) -> TagScope:
        if len(_TAGS) > 1:
            raise ValueError("tag_scope: one stands inside of another")
        _TAGS.append(self.tag)
        return self

    def __exit__(self, *_: object) -> None:
        _TAGS.pop()

    @staticmethod
    def get_current() -> str | None:
        """The tag that tensors get now, or None."""
        return _TAGS[-1] or None


def tag_scope(tag: str) -> TagScope:
    """``with te.tag_scope(tag="injective"): ...``"""
    return TagScope(tag)


def _reduction_of(body: Expr) -> int:
    """What formulas that are made together share: the reduction, 0 for none."""
    if isinstance(body, CustomReduce):
        return id(body.combiner)
    return id(body) if isinstance(body, Reduce) else 0


def comm_reducer(
    fcombine: Callable[..., Any], fidentity: Callable[..., Any], name: str = "reduce"
) -> Callable[..., Any]:
    """A reduction of the program's own: ``r = te.comm_reducer(lambda a, b: a * b, lambda dtype: te.const(1, dtype))``,
    then ``r(formula, axis=k)`` at the top of a formula.

    For several values together ``fcombine`` takes two tuples and returns one, ``fidentity`` takes the dtypes and
    returns a tuple, and ``r((a, b), axis=k)`` is a list with one result for each.
    """

    def reducer(source: Any, axis: Any) -> Any:
        axes = (axis,) if isinstance(axis, IterVar) else tuple(axis)
        if any(not isinstance(a, IterVar) or a.iter_type is not IterType.REDUCE for a in axes):
            raise TypeError(f"{name}: axis must be made by te.reduce_axis")
        several = isinstance(source, (list, tuple))
        given = tuple(source) if several else (source,)
        sources = tuple(as_expr(s.var if isinstance(s, IterVar) else s, "float32") for s in given)
        dtypes_ = [scalar_dtype(s) for s in sources]
        lhs = [Var(f"x{n}", prim_type(dtype)) for n, dtype in enumerate(dtypes_)]
        rhs = [Var(f"y{n}", prim_type(dtype)) for n, dtype in enumerate(dtypes_)]
        combined = fcombine(tuple(lhs), tuple(rhs)) if several else fcombine(lhs[0], rhs[0])
        neutral = fidentity(*dtypes_)
        results = [as_expr(v) for v in (combined if several else (combined,))]
        identities = [as_expr(v, dtypes_[0]) for v in (neutral if several else (neutral,))]
        if len(results) != len(sources) or len(identities) != len(sources):
            raise TypeError(f"{name}: {len(sources)} values need as many results and identities")
        combiner = CommReducer(tuple(lhs), tuple(rhs), tuple(results), tuple(identities))
        made = [CustomReduce(combiner, sources, axes, n) for n in range(len(sources))]
        return made if several else made[0]

    reducer.__name__ = name
    reducer.__doc__ = "A reduction by the program's own function, over axes made by ``te.reduce_axis``."
    return reducer


def extern(
    outputs: Sequence[tuple[Sequence[Any], str]],
    inputs: Sequence[TensorValue],
    body: Callable[..., Stmt],
    name: str,
    scratch: Sequence[tuple[Sequence[Any], str]] = (),
) -> list[TensorValue]:
    """Tensors that a loop statement fills, for what is no formula (sorting, scattering).

    ``outputs`` and ``scratch`` are ``(shape, dtype)`` pairs; ``body(*outputs, *scratch)`` returns the statement, built
    with ``supple.build.loops``. The statement must write every element of the outputs.
    """

    def made(pairs: Sequence[tuple[Sequence[Any], str]], suffix: str) -> list[TensorValue]:
        return [placeholder(shape, dtype, f"{name}{suffix}{n or ''}") for n, (shape, dtype) in enumerate(pairs)]

    results, temporary = made(outputs, ""), made(scratch, "_scratch")
    op = ExternOp(body(*results, *temporary), list(inputs), results, tuple(t.buffer for t in temporary), name)
    for n, result in enumerate(results):
        result.definition, result.value_index = op, n
    return results


def _index_names(formula: Callable[..., Any], rank: int) -> list[str]:
    params = inspect.signature(formula).parameters.values()
    positional = [p for p in params if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in positional if p.default is p.empty]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in params)
    if len(required) > rank or (len(positional) < rank and not variadic):
        raise TypeError(f"the formula takes {len(required)} indices, but the shape has {rank} dimensions")
    names = [p.name for p in positional[:rank]]
    return names + [f"i{d}" for d in range(rank - len(names))]


_PAIRS = frozenset(("max", "min"))


def _reduction(combiner: str) -> Callable[..., Expr]:
    def build(source: Any, axis: Any, where: Any = None) -> Expr:
        if combiner in _PAIRS and (isinstance(axis, (int, float)) or E.is_scalar(axis)):  # te.max(a, b)
            return scalar_operation(combiner, source, axis)
        axes = (axis,) if isinstance(axis, IterVar) else tuple(axis)
        if any(a.iter_type is not IterType.REDUCE for a in axes):
            raise TypeError(f"te.{combiner}: axis must be made by te.reduce_axis")
        value = as_expr(source, "float32")
        if where is not None:
            value = E.Select(as_expr(where, "bool"), value, identity(combiner, scalar_dtype(value)))
        return Reduce(combiner, value, axes)

    build.__name__ = combiner
    build.__doc__ = f"The {combiner} of ``source`` over reduction axes, where ``where`` holds" + (
        f", or of two numbers: ``{combiner}(a, b)``." if combiner in _PAIRS else "."
    )
    return build


sum = _reduction("sum")
prod = _reduction("prod")
max = _reduction("max")
min = _reduction("min")


def definitions(outputs: Sequence[TensorValue], given: Sequence[TensorValue] = ()) -> list[TensorValue]:
    """The computed tensors that ``outputs`` need, inputs before users; ``given`` ones are not searched."""
    order: list[TensorValue] = []
    seen = {id(t.buffer) for t in given}
    stack: list[tuple[TensorValue, bool]] = [(t, False) for t in reversed(outputs)]
    while stack:
        current, expanded = stack.pop()
        if expanded:
            order.append(current)
            continue
        if id(current.buffer) in seen or current.definition is None:
            continue
        seen.add(id(current.buffer))
        stack.append((current, True))
        stack.extend((tensor, False) for tensor in reversed(current.definition.inputs))
    return order


# --------------------------------------------------------------------------------------------- from graph values to te


def _letter(position: int) -> str:
    """The name of an operand that is no variable: ``A``, ``B``, ... as in Relax."""
    return chr(ord("A") + position) if position < 26 else f"arg{position}"


def as_placeholders(args: Sequence[Any]) -> tuple[list[Any], list[tuple[TensorValue, Expr]]]:
    """Arguments for a compute definition: every tensor expression becomes a placeholder of its own, as in Relax
    (``f(x, x)`` has two). Lists, tuples and mappings are searched, the rest is passed as it is.

    The second result lists the placeholders with their expressions, in order.
    """
    inputs: list[tuple[TensorValue, Expr]] = []

    def convert(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [convert(v) for v in value]
        if isinstance(value, Tuple):
            return [convert(v) for v in value.fields]
        if isinstance(value, dict):
            return {key: convert(v) for key, v in value.items()}
        if isinstance(value, ShapeExpr):
            return list(value.values)
        ty = getattr(value, "ty", None)
        if isinstance(value, Expr) and isinstance(ty, TupleType):
            return [convert(TupleGetItem(value, i, field)) for i, field in enumerate(ty.fields)]
        if isinstance(value, Expr) and not isinstance(value, (Function, GlobalVar)) and isinstance(ty, TensorType):
            dims = tensor_dims(ty)
            if dims is None or ty.dtype is None:
                raise ComputeError(f"a compute definition needs a known shape and dtype, got {ty}")
            tensor = placeholder(dims, ty.dtype, getattr(value, "name", _letter(len(inputs))))
            inputs.append((tensor, value))
            return tensor
        return value

    return [convert(a) for a in args], inputs


__all__ = [
    "ComputeOp",
    "CustomReduce",
    "ExternOp",
    "PlaceholderOp",
    "Reduce",
    "TensorValue",
    "comm_reducer",
    "compute",
    "compute_together",
    "extern",
    "max",
    "min",
    "placeholder",
    "prod",
    "reduce_axis",
    "sum",
]
