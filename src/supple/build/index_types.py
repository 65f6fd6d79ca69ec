"""Definitions of tensors with indices of another dtype: sizes of Python ints are int32 for users of the DSL, while the
graph's sizes, and so the operators' compute definitions, are int64.

A size, and with it the index that runs to it, changes its dtype; what a formula computes does not. Arithmetic on
indices follows them, unless a result may not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar

from supple.build.te import (
    ComputeOp,
    CustomReduce,
    ExternOp,
    NumberValue,
    Reduce,
    TensorRead,
    TensorValue,
    definitions,
)
from supple.ir import expr as E
from supple.ir.expr import BufferLoad, IntImm, Range, Var, cast, const, int64, scalar_dtype
from supple.ir.loop import IterVar, buffer_type
from supple.ir.node import Expr, Node, children
from supple.ir.types import prim_type
from supple.ir.walk import substitute, with_children

_WIDE, _NARROW = "int64", "int32"
_INDEX = (_WIDE, _NARROW)
_LOWEST, _HIGHEST = -(1 << 31), (1 << 31) - 1

Interval = tuple[int, int]
F = TypeVar("F", bound=Callable[..., Any])


def fits_int32(value: int) -> bool:
    """Whether a number is one of int32."""
    return _LOWEST <= value <= _HIGHEST


class IndexTypes:
    """Tensors with indices of ``dtype``. ``symbols`` says what sizes become; with ``fresh`` every other one becomes a
    new symbol, which ``symbols`` has afterwards. ``tensors`` says what given tensors become."""

    def __init__(
        self,
        dtype: str,
        symbols: Mapping[Var, Var] | None = None,
        tensors: Iterable[tuple[TensorValue, TensorValue]] = (),
        fresh: bool = False,
    ) -> None:
        self.dtype = dtype
        self.symbols: dict[Var, Var] = dict(symbols or {})
        self._fresh = fresh
        self._narrows = dtype == _NARROW
        self._tensors: dict[int, tuple[TensorValue, TensorValue]] = {id(old): (old, new) for old, new in tensors}
        self._axes: dict[Var, Var] = {}
        self._limits: dict[int, Interval] = {}
        self._done: tuple[dict[int, Expr], dict[int, Expr]] = ({}, {})
        self._keep: list[Node] = []  # ids stay valid while the nodes live

    # tensors ------------------------------------------------------------------------------------------------------

    def of(self, tensor: TensorValue) -> TensorValue:
        """What a tensor became; itself where nothing was said of it."""
        found = self._tensors.get(id(tensor))
        return tensor if found is None else found[1]

    def input(self, tensor: TensorValue) -> TensorValue:
        """The input that stands for a tensor: itself where its sizes keep their dtype."""
        known = self.of(tensor)
        if known is not tensor or isinstance(tensor, NumberValue):
            return known
        buffer = self._buffer(tensor.buffer)
        made = tensor if buffer is tensor.buffer else TensorValue(buffer, None)
        self._tensors[id(tensor)] = (tensor, made)
        return made

    def outputs(self, tensors: Sequence[TensorValue], given: Sequence[TensorValue] = ()) -> list[TensorValue]:
        """What computed tensors become, with all that they are computed of up to ``given`` ones."""
        stops = [*given, *(old for old, _ in self._tensors.values())]
        for tensor in definitions(tensors, stops):
            if id(tensor) in self._tensors:
                continue
            if isinstance(tensor.definition, ComputeOp):
                self._compute(tensor.definition)
            elif isinstance(tensor.definition, ExternOp):
                self._extern(tensor.definition)
        return [self.of(t) for t in tensors]

    def _buffer(self, buffer: Var) -> Var:
        ty = buffer_type(buffer)
        shape = tuple(self.expr(d) for d in ty.shape)
        same = all(a is b for a, b in zip(shape, ty.shape, strict=True))
        return buffer if same else Var(buffer.name, replace(ty, shape=shape))

    def _made(self, old: Sequence[TensorValue], definition: ComputeOp | ExternOp) -> list[TensorValue]:
        new = [TensorValue(self._buffer(t.buffer), definition, t.value_index) for t in old]
        self._tensors.update({id(o): (o, n) for o, n in zip(old, new, strict=True)})
        return new

    def _compute(self, op: ComputeOp) -> None:
        extents = [self.expr(d) for d in op.outputs[0].shape]
        indices = tuple(self._axis(v, const(0, scalar_dtype(e)), e) for v, e in zip(op.indices, extents, strict=True))
        attrs = {key: _mapped(value, self.of, lambda e: e) for key, value in op.attrs.items()}
        made = replace(op, indices=indices, body=tuple(self._body(b) for b in op.body), outputs=[], attrs=attrs)
        made.outputs = self._made(op.outputs, made)

    def _axis(self, var: Var, low: Expr, extent: Expr) -> Var:
        if var not in self._axes:
            dtype = scalar_dtype(extent)
            self._axes[var] = var if var.dtype == dtype else Var(var.name, prim_type(dtype))
            if isinstance(low, IntImm) and isinstance(extent, IntImm):
                self._limits[id(self._axes[var])] = (low.value, low.value + max(extent.value, 1) - 1)
        return self._axes[var]

    def _reduced(self, axis: IterVar) -> IterVar:
        low, extent = E.match_dtypes(self.expr(axis.dom.min), self.expr(axis.dom.extent))
        var = self._axis(axis.var, low, extent)
        return axis if var is axis.var else replace(axis, dom=Range(low, extent), var=var)

    def _body(self, body: Expr) -> Expr:
        if isinstance(body, Reduce):
            axes = tuple(self._reduced(a) for a in body.axes)
            return replace(body, source=self.value(body.source), axes=axes)
        if isinstance(body, CustomReduce):
            axes = tuple(self._reduced(a) for a in body.axes)
            return replace(body, sources=tuple(self.value(s) for s in body.sources), axes=axes)
        return self.value(body)

    def _extern(self, op: ExternOp) -> None:
        """A statement keeps its loops: only the buffers change, and symbols that it is given."""
        made = replace(op, read=[self.of(t) for t in op.read], outputs=[])
        made.outputs = self._made(op.outputs, made)
        pairs = zip((*op.read, *op.outputs), (*made.read, *made.outputs), strict=True)
        symbols = {old: cast(old.dtype, new) for old, new in self.symbols.items()}
        buffers = {old.buffer: new.buffer for old, new in pairs if old is not new}
        scratch = {}
        for old in op.scratch:
            shape = tuple(substitute(d, symbols) for d in buffer_type(old).shape)
            scratch[old] = Var(old.name, replace(buffer_type(old), shape=shape))
        made.scratch = tuple(scratch.values())
        body = substitute(op.body, {**buffers, **scratch})  # first, while the buffers' types are the old ones
        made.body = substitute(body, symbols)

    # expressions --------------------------------------------------------------------------------------------------

    def value(self, e: Expr) -> Expr:
        """An expression of its own dtype: what is computed of indices is converted, or computed as it was where it
        might not fit."""
        made = self.expr(e)
        dtype = scalar_dtype(e)
        if made is e or scalar_dtype(made) == dtype:
            return made
        return self.expr(e, exact=True) if self._narrows and self._interval(made) is None else cast(dtype, made)

    def expr(self, root: Expr, exact: bool = False) -> Expr:
        """An expression of indices; ``exact`` converts the indices alone, and nothing changes its dtype."""
        done = self._done[exact]
        stack: list[tuple[Expr, list[Expr] | None]] = [(root, None)]
        while stack:
            current, below = stack.pop()
            if id(current) in done:
                continue
            if below is None:
                below = [c for c in _below(current) if isinstance(c, Expr) and E.is_scalar(c)]
                waiting: list[tuple[Expr, list[Expr] | None]] = [(c, None) for c in below if id(c) not in done]
                if waiting:
                    stack.append((current, below))
                    stack.extend(reversed(waiting))
                    continue
            made = self._leaf(current, exact) if not below else self._rebuilt(current, below, done)
            done[id(current)] = made
            self._keep += (current, made)
        return done[id(root)]

    def _leaf(self, leaf: Expr, exact: bool) -> Expr:
        if isinstance(leaf, IntImm) and not exact:
            changes = leaf.dtype in _INDEX and leaf.dtype != self.dtype and fits_int32(leaf.value)
            return const(leaf.value, self.dtype) if changes else leaf
        if isinstance(leaf, TensorRead):
            return self._read(leaf, ())
        if not isinstance(leaf, Var):
            return leaf
        found = self._axes.get(leaf, self.symbols.get(leaf))
        if found is None and self._fresh and leaf.dtype in _INDEX and leaf.dtype != self.dtype:
            found = self.symbols[leaf] = Var(leaf.name, prim_type(self.dtype))
        if found is None:
            return leaf
        return cast(leaf.dtype, found) if exact else found

    def _read(self, read: TensorRead, indices: tuple[Expr, ...]) -> Expr:
        tensor = self.of(read.tensor)
        same = tensor is read.tensor and all(a is b for a, b in zip(indices, read.indices, strict=True))
        return read if same else TensorRead(tensor.buffer, indices, tensor=tensor)

    def _rebuilt(self, parent: Expr, below: Sequence[Expr], done: dict[int, Expr]) -> Expr:
        if isinstance(parent, TensorRead):
            return self._read(parent, tuple(done[id(i)] for i in parent.indices))
        if all(done[id(c)] is c for c in below):
            return parent
        if isinstance(parent, BufferLoad):
            return replace(parent, indices=tuple(done[id(i)] for i in parent.indices))
        if isinstance(parent, E.BinaryOp):
            a, b = E.match_dtypes(done[id(parent.a)], done[id(parent.b)])
            made = type(parent)(a, b)
            if made.dtype == _NARROW and parent.dtype == _WIDE and not self._stays(made):
                return type(parent)(cast(_WIDE, a), cast(_WIDE, b))
            return made
        if isinstance(parent, E.Select):
            yes, no = E.match_dtypes(done[id(parent.true_value)], done[id(parent.false_value)])
            return E.Select(done[id(parent.condition)], yes, no)
        if isinstance(parent, E.Cast):
            inner = done[id(parent.value)]
            exactly = self._narrows and self._interval(inner) is None
            return cast(parent.dtype, self.value(parent.value) if exactly else inner)
        kept = {id(c): self.value(c) for c in below}
        return with_children(parent, kept, False)  # type: ignore[return-value]  # an expression stays one

    def _stays(self, made: Expr) -> bool:
        """Whether int32 holds a result, as far as that is known at all."""
        found = self._interval(made)
        return found is None or (fits_int32(found[0]) and fits_int32(found[1]))

    def _interval(self, e: Expr) -> Interval | None:
        """The least and the greatest value, where the parts' are known."""
        if isinstance(e, IntImm):
            return e.value, e.value
        if id(e) in self._limits:
            return self._limits[id(e)]
        parts = [self._limit(c) for c in _operands(e)]
        known = [p for p in parts if p is not None]
        if not parts or len(known) != len(parts):
            return None
        found = _combined(e, known)
        if found is not None:
            self._limits[id(e)] = found
            self._keep.append(e)
        return found

    def _limit(self, e: Expr) -> Interval | None:
        return (e.value, e.value) if isinstance(e, IntImm) else self._limits.get(id(e))


def _below(parent: Expr) -> list[Node]:
    return list(parent.indices) if isinstance(parent, BufferLoad) else children(parent, False)


def _operands(e: Expr) -> tuple[Expr, ...]:
    if isinstance(e, E.BinaryOp) and not isinstance(e, E.CompareOp):
        return e.a, e.b
    if isinstance(e, E.Select):
        return e.true_value, e.false_value
    return (e.value,) if isinstance(e, E.Cast) and e.dtype in _INDEX else ()


def _combined(e: Expr, of: list[Interval]) -> Interval | None:
    (low, high), (left, right) = of[0], of[-1]
    if isinstance(e, E.Cast):
        return (low, high) if e.dtype == _WIDE else None
    if isinstance(e, E.Add):
        return low + left, high + right
    if isinstance(e, E.Sub):
        return low - right, high - left
    if isinstance(e, E.Mul):
        ends = [x * y for x in (low, high) for y in (left, right)]
        return min(ends), max(ends)
    if isinstance(e, (E.Min, E.Max)):
        pick = min if isinstance(e, E.Min) else max
        return pick(low, left), pick(high, right)
    if isinstance(e, E.Select):
        return min(low, left), max(high, right)
    if isinstance(e, E.FloorDiv) and left == right and left > 0:
        return low // left, high // left
    if isinstance(e, E.FloorMod) and left == right and left > 0:
        return 0, left - 1
    return None


def sizes_are_wide(tensors: Sequence[TensorValue]) -> bool:
    """Whether all indices of computed tensors, and of what they are computed of, are int64."""
    for tensor in definitions(tensors):
        if any(scalar_dtype(d) != _WIDE for d in tensor.shape):
            return False
        if isinstance(tensor.definition, ComputeOp):
            axes = (*tensor.definition.indices, *(a.var for a in tensor.definition.reduce_axis))
            if any(v.dtype != _WIDE for v in axes):
                return False
    return True


# ------------------------------------------------------------------------------------- functions on tensors of the DSL

_INSIDE: ContextVar[bool] = ContextVar("inside", default=False)


def _mapped(value: Any, tensor: Callable[[TensorValue], Any], number: Callable[[Expr], Any]) -> Any:
    if isinstance(value, TensorValue):
        return tensor(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(v, tensor, number) for v in value)
    return number(value) if isinstance(value, Expr) else value


def sizes_as_given(function: F) -> F:
    """A function that computes tensors of tensors with int64 sizes, for tensors of any sizes: it is given int64 ones,
    and what it makes has int32 sizes where it was given any, or no tensors at all."""

    @wraps(function)
    def converted(*args: Any, **kwargs: Any) -> Any:
        if _INSIDE.get():
            return function(*args, **kwargs)
        tensors: dict[int, TensorValue] = {}
        _mapped([args, list(kwargs.values())], lambda t: tensors.setdefault(id(t), t), lambda e: e)
        given = list(tensors.values())
        if given and not any(scalar_dtype(d) == _NARROW for t in given for d in t.shape):
            return function(*args, **kwargs)
        wide = IndexTypes(_WIDE, fresh=True)
        stands = [wide.input(t) for t in given]

        def number(e: Expr) -> Expr:
            return wide.expr(e) if isinstance(e, (Var, IntImm, E.BinaryOp)) and e.dtype == _NARROW else e

        token = _INSIDE.set(True)
        try:
            made = function(
                *(_mapped(a, wide.of, number) for a in args),
                **{k: _mapped(v, wide.of, number) for k, v in kwargs.items()},
            )
        finally:
            _INSIDE.reset(token)
        back = {new: old for old, new in wide.symbols.items()}
        narrow = IndexTypes(_NARROW, back, zip(stands, given, strict=True))
        results: list[TensorValue] = []
        _mapped(made, results.append, lambda e: e)
        narrow.outputs(results)
        return _mapped(made, narrow.of, lambda e: e)

    return converted  # type: ignore[return-value]  # the same signature


def user_size(value: Any) -> Expr:
    """A size that a program writes: a Python int is int32, or int64 where it does not fit."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return E.as_expr(value)
    number = value.__index__()
    return const(number, _NARROW) if fits_int32(number) else int64(number)
