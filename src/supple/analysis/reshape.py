"""Whether a loop function only copies elements in row-major order: a reshape and its like."""

from __future__ import annotations

from collections.abc import Sequence

from supple.analysis.nest import Nest, read_nest
from supple.ir import expr as E
from supple.ir.expr import BufferLoad, IntImm, Range, Var, const, int64
from supple.ir.loop import PrimFunc, SBlockRealize, buffer_type
from supple.ir.node import Expr
from supple.sym.analyzer import Analyzer
from supple.sym.results import ConstIntBound
from supple.sym.simplify import product


def has_reshape_pattern(func: PrimFunc) -> bool:
    """Whether a loop function copies its first buffer into its last one, element n to element n of the row-major order.

    So do reshape, squeeze, expand_dims, flatten. True is proved; False means that it is not so, or not proved.
    """
    buffers = func.buffers
    if len(buffers) < 2:
        return False
    source, target = buffers[0], buffers[-1]
    body = func.body
    if isinstance(body, SBlockRealize) and not body.block.iter_vars:
        if body.block.alloc_buffers or body.block.init is not None or body.block.match_buffers:
            return False
        body = body.block.body
    nest = read_nest(body)
    if nest is None or nest.init is not None or any(axis.reduce for axis in nest.axes):
        return False
    value = nest.store.value
    if not isinstance(value, BufferLoad) or value.buffer is not source or nest.store.buffer is not target:
        return False
    if buffer_type(source).dtype != buffer_type(target).dtype:
        return False
    known = Analyzer()
    for extent in (*buffer_type(source).shape, *buffer_type(target).shape):
        if isinstance(extent, Var):  # where an extent is 0 there is nothing to copy
            known.update(extent, ConstIntBound(1, ConstIntBound.POS_INF), True)
    for axis in nest.axes:
        known.bind(axis.var, Range(const(0, E.scalar_dtype(axis.var)), E.cast(E.scalar_dtype(axis.var), axis.extent)))
    to, of = _flat(nest.store.indices, buffer_type(target).shape), _flat(value.indices, buffer_type(source).shape)
    count = product([axis.extent for axis in nest.axes])
    sizes = [product([E.cast("int64", d) for d in buffer_type(b).shape]) for b in (source, target)]
    if not all(known.can_prove_equal(count, size) for size in sizes):
        return False
    # n in order: then the loops reach every element, since there are as many iterations as elements
    order = _flat([axis.var for axis in nest.axes], [axis.extent for axis in nest.axes])
    return known.can_prove_equal(to, of) and (known.can_prove_equal(to, order) or _covers(nest))


def _covers(nest: Nest) -> bool:
    """Whether the indices are the loops' variables, each once, in any order."""
    indices = nest.store.indices
    found = [nest.axis(i) for i in indices]
    some = [a for a in found if a is not None]
    rest = [i for i, a in zip(indices, found, strict=True) if a is None]
    whole = len({id(a) for a in some}) == len(nest.axes) == len(some)
    return whole and all(isinstance(E.uncast(i), IntImm) for i in rest)


def _flat(indices: Sequence[Expr], shape: Sequence[Expr]) -> Expr:
    """The position of an index in row-major order."""
    total: Expr = int64(0)
    for index, extent in zip(indices, shape, strict=True):
        total = E.Add(E.Mul(total, E.cast("int64", extent)), E.cast("int64", index))
    return total
