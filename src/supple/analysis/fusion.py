"""What a loop function does, seen from outside: its kind for fusion, and how it reads each operand."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from supple.analysis.contraction import operand_load, read_contraction
from supple.analysis.nest import Axis, Nest, is_independent, loads, read_nest
from supple.analysis.reduction import is_same_place, multiply_add, same_expr
from supple.base import dtypes
from supple.ir import expr as E
from supple.ir.expr import BufferLoad, IntImm, Var
from supple.ir.loop import BufferStore, PrimFunc, SBlockRealize, SeqStmt, buffer_type
from supple.ir.node import Expr, Stmt
from supple.ir.op import Fusion
from supple.ir.types import BufferType
from supple.ir.walk import pre_order
from supple.sym.simplify import SHAPES

PATTERN = "op_pattern"
"""The attribute of a loop function that holds its kind for fusion (an int, as in Relax's ``OpPatternKind``)."""


@dataclass(frozen=True, slots=True)
class Step:
    """One nest of a loop function: it writes all of ``buffer``; ``kind`` is the nest's own."""

    nest: Nest
    buffer: Var
    kind: Fusion

    @property
    def reduces(self) -> bool:
        """Whether a loop of the nest reduces."""
        return any(a.reduce for a in self.nest.axes)


@dataclass(frozen=True, slots=True)
class Summary:
    """A loop function for fusion. ``steps`` are its nests in order, the last of which writes ``result``, the one
    buffer parameter that is written; empty for an opaque function, and then ``reason`` says what made it so."""

    kind: Fusion
    steps: tuple[Step, ...] = ()
    result: Var | None = None
    reason: str = ""

    def reads(self, buffer: Var) -> list[tuple[Step, list[BufferLoad]]]:
        """The steps that read a buffer, with the loads."""
        found = [(s, [x for x in loads(s.nest) if x.buffer is buffer]) for s in self.steps]
        return [(s, x) for s, x in found if x]

    def is_elementwise_on(self, buffer: Var) -> bool:
        """Whether each element of the result depends on one parameter's element of the same place only (and on other
        parameters), through any number of steps."""
        following = [buffer]
        for step in self.steps:
            own = [x for x in loads(step.nest) if any(x.buffer is f for f in following)]
            if not own:
                continue
            if step.reduces or any(_access(step.nest, x) is not Fusion.ELEMENTWISE for x in own):
                return False
            following.append(step.buffer)
        return any(self.result is f for f in following[1:])

    def reads_once(self, buffer: Var, value: Expr) -> bool:
        """Whether ``value`` can be computed where a parameter's elements are read: one step reads it, at one place an
        iteration, no more often than it has elements (so nothing is computed twice), and what the step sums is
        rounded as before."""
        found = self.reads(buffer)
        return len(found) == 1 and step_reads_once(found[0][0].nest, found[0][1], value)

    def moves(self, buffer: Var, producer: BufferStore) -> bool:
        """Whether a parameter can be read where another step takes it from (`moves_operand`)."""
        found = self.reads(buffer)
        return len(found) == 1 and moves_operand(found[0][0].nest, found[0][1], producer)


def step_reads_once(nest: Nest, own: Sequence[BufferLoad], value: Expr) -> bool:
    """See `Summary.reads_once`, for the loads of one buffer in one nest."""
    first = own[0]
    same = all(same_expr(a, b) for x in own[1:] for a, b in zip(x.indices, first.indices, strict=True))
    if not same:
        return False
    if any(a.reduce for a in nest.axes):
        axes = [nest.axis(index) for index in first.indices]
        named = {id(a) for a in axes if a is not None}
        plain = not any(nest.depends(i) for i, a in zip(first.indices, axes, strict=True) if a is None)
        if len(named) != len(nest.axes) or not plain or is_product_sum(nest):
            return False
        # adding a product to a float sum is one fused operation: a product that moves into a sum rounds otherwise
        update = nest.store.value
        summed = isinstance(update, E.Add) and any(x is update.a or x is update.b for x in own)
        return not (summed and isinstance(value, E.Mul) and dtypes.is_float(E.scalar_dtype(value)))
    return SHAPES.less_equal(_count(a.extent for a in nest.axes), _count(buffer_type(first.buffer).shape)) is True


def moves_operand(nest: Nest, own: Sequence[BufferLoad], producer: BufferStore) -> bool:
    """Whether a contraction may read an operand where ``producer`` (a store in terms of its block's variables) takes it
    from: the producer does nothing but permute dimensions, and what it reads is contiguous along the reduction, or, for
    the right operand, along the columns (along anything else each element would take a cache line). Operands of a
    result of few columns change sides."""
    value = producer.value
    if not isinstance(value, BufferLoad) or len(own) != 1 or not value.indices:
        return False
    variables = list(producer.indices)
    places = [next((n for n, v in enumerate(variables) if v is E.uncast(i)), -1) for i in value.indices]
    if sorted(places) != list(range(len(variables))):
        return False
    c = read_contraction(nest)
    if c is None:
        return False
    last = nest.axis(own[0].indices[places[-1]])
    kept = (c.long_rows,) if operand_load(c.left) is own[0] else c.columns
    return c.panel is None and last is not None and any(last is axis for axis in (*kept, *c.reduce))


def _count(extents: object) -> Expr:
    total: Expr = IntImm(1, "int64")
    for extent in extents:  # type: ignore[attr-defined]
        total = E.Mul(total, E.cast("int64", extent))
    return SHAPES.simplify(total)


@functools.lru_cache(maxsize=256)  # functions are what they are: their hash is their identity
def summarize(func: PrimFunc) -> Summary:
    """The `Summary` of a loop function, found by reading its blocks (not by what its attributes say)."""
    root = func.body
    if not isinstance(root, SBlockRealize) or root.block.iter_vars or root.block.match_buffers:
        return _opaque("its body has no blocks")
    if root.block.init is not None or root.block.annotations:
        return _opaque("its root block is special")
    if any(not isinstance(p.ty, BufferType) for p in func.params):
        return _opaque("it has scalar parameters")
    buffers = [*func.buffers, *root.block.alloc_buffers]
    if any(not _is_compact(buffer_type(b)) for b in buffers):
        return _opaque("a buffer is a view or has strides")
    body = root.block.body
    steps: list[Step] = []
    fill: Nest | None = None
    for statement in body.seq if isinstance(body, SeqStmt) else (body,):
        nest = read_nest(statement)
        if nest is None or nest.block is None or nest.block.annotations:
            return _opaque("it is more than loops around blocks of one store each")
        if not _writes_all(nest):
            return _opaque(f"a nest is not proved to write all of {nest.store.buffer.name}, each element once")
        if fill is not None:
            if not _continues(nest, fill):
                return _opaque(f"{fill.store.buffer.name} is written more than once")
            fill = None
            steps.pop()
        elif nest.init is None and any(a.reduce for a in nest.axes):
            return _opaque("a reduction goes on from what its result holds")
        steps.append(Step(nest, nest.store.buffer, _kind_of(nest)))
        if _next_writes_the_same(body, statement, nest):
            fill = nest
    return _of_steps(func, steps)


def _next_writes_the_same(body: Stmt, statement: Stmt, nest: Nest) -> bool:
    """Whether the following statement reduces into the buffer that this one fills."""
    if not isinstance(body, SeqStmt) or loads(nest) or any(a.reduce for a in nest.axes):
        return False
    position = next(i for i, s in enumerate(body.seq) if s is statement)
    following = read_nest(body.seq[position + 1]) if position + 1 < len(body.seq) else None
    return following is not None and following.store.buffer is nest.store.buffer


def _continues(nest: Nest, fill: Nest) -> bool:
    return nest.init is None and any(a.reduce for a in nest.axes) and nest.store.buffer is fill.store.buffer


def _opaque(reason: str) -> Summary:
    return Summary(Fusion.OPAQUE, reason=reason)


def _is_compact(ty: BufferType) -> bool:
    offset = ty.elem_offset
    return not ty.strides and ty.data is None and (offset is None or (isinstance(offset, IntImm) and not offset.value))


def _writes_all(nest: Nest) -> bool:
    """Whether the spatial axes are the store's indices, one each, over whole dimensions."""
    if not is_independent(nest):
        return False
    for index, extent in zip(nest.store.indices, buffer_type(nest.store.buffer).shape, strict=True):
        axis = nest.axis(index)
        if axis is None:
            is_unit = SHAPES.equal(extent, IntImm(1, "int64")) is True
            if not (is_unit and isinstance(index, IntImm) and index.value == 0):
                return False
        elif SHAPES.equal(axis.extent, extent) is not True:
            return False
    return True


def is_product_sum(nest: Nest) -> bool:
    """Whether a nest sums products of elements of two different buffers (a contraction, a convolution)."""
    store = nest.store
    found = multiply_add(store)
    factors: tuple[Expr, ...] = () if found is None else found[:2]
    if found is None and isinstance(store.value, E.Add):
        for own, product in ((store.value.a, store.value.b), (store.value.b, store.value.a)):
            if isinstance(own, BufferLoad) and is_same_place(store, own) and isinstance(product, E.Mul):
                factors = (product.a, product.b)
    read = [{id(n.buffer) for n in pre_order(f) if isinstance(n, BufferLoad)} for f in factors]
    return len(read) == 2 and all(read) and not read[0] & read[1]


def _kind_of(nest: Nest) -> Fusion:
    if any(a.reduce for a in nest.axes):
        return Fusion.OUT_FUSABLE if read_contraction(nest) is not None or is_product_sum(nest) else Fusion.REDUCTION
    return Fusion(max((_access(nest, x) for x in loads(nest)), default=Fusion.ELEMENTWISE))


def _access(nest: Nest, load: BufferLoad) -> Fusion:
    """How a data-parallel nest reads an operand: at the stored place, at a part of its indices, anywhere."""
    stored = [nest.axis(index) for index in nest.store.indices]
    read = [nest.axis(index) for index in load.indices]
    constant = [i for i, a in zip(load.indices, read, strict=True) if a is None]
    if any(not isinstance(i, IntImm) for i in constant):
        return Fusion.INJECTIVE
    if len(read) == len(stored) and all(a is b for a, b in zip(read, stored, strict=True)):
        if all(same_expr(i, j) for i, j in zip(load.indices, nest.store.indices, strict=True) if isinstance(i, IntImm)):
            return Fusion.ELEMENTWISE
    places = [_place(stored, a) for a in read if a is not None]
    return Fusion.BROADCAST if places == sorted(set(places)) and -1 not in places else Fusion.INJECTIVE


def _place(axes: Sequence[Axis | None], axis: Axis) -> int:
    return next((n for n, a in enumerate(axes) if a is axis), -1)


def _of_steps(func: PrimFunc, steps: list[Step]) -> Summary:
    params = {id(p) for p in func.params}
    written = [s.buffer for s in steps]
    if len({id(b) for b in written}) != len(written):
        return _opaque("a buffer is written more than once")
    outside = [b for b in written if id(b) in params]
    if len(outside) != 1 or not steps or steps[-1].buffer is not outside[0]:
        return _opaque("it writes other than one result, last")
    known = {id(p) for p in func.params if p is not outside[0]}
    for step in steps:
        own = {id(step.buffer)} if step.reduces else set()
        if any(id(x.buffer) not in known | own for x in loads(step.nest)):
            return _opaque("a buffer is read before it is written")
        known.add(id(step.buffer))
    reductions = [n for n, s in enumerate(steps) if s.reduces]
    if len(reductions) > 1:
        return _opaque("it reduces more than once")
    kind = Fusion(max(s.kind for s in steps))
    if reductions:
        kind = steps[reductions[0]].kind
        after = steps[reductions[0] + 1 :]
        tail = Summary(kind, tuple(after), outside[0])
        if after and not tail.is_elementwise_on(steps[reductions[0]].buffer):
            return _opaque("what follows its reduction is not elementwise")
    return Summary(kind, tuple(steps), outside[0])


def store_of(step: Step) -> BufferStore:
    """The store of a step in the block's own variables."""
    assert step.nest.block is not None and isinstance(step.nest.block.body, BufferStore)
    return step.nest.block.body
