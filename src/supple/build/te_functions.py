"""From compute definitions (`build.te`) to loop functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from supple.analysis.regions import infer_regions
from supple.build.te import (
    COMBINE,
    ComputeOp,
    CustomReduce,
    ExternOp,
    Reduce,
    TensorRead,
    TensorValue,
    definitions,
    identity,
)
from supple.ir import expr as E
from supple.ir.conventions import conventions
from supple.ir.expr import BufferLoad, Range, Var, const, scalar_dtype
from supple.ir.loop import (
    Bind,
    BufferStore,
    For,
    ForKind,
    IterType,
    IterVar,
    PrimFunc,
    SBlock,
    SBlockRealize,
    buffer_type,
    seq,
)
from supple.ir.node import Expr, Node, Stmt
from supple.ir.types import prim_type
from supple.ir.walk import free_symbols, statements, substitute, transform
from supple.sym.analyzer import Analyzer


def create_prim_func(
    inputs: Sequence[TensorValue | Var],
    outputs: Sequence[TensorValue] | None = None,
    name: str | None = None,
    size_dtypes: tuple[str, ...] = ("int64",),
) -> tuple[PrimFunc, list[Expr]]:
    """The loop function of ``outputs`` over ``inputs`` with symbols of its own, and the values its extra scalars take.

    The extra scalar parameters are the symbols that no buffer's shape introduces by itself (``n`` when only ``n + 1``
    appears): pass them as ``tir_vars``. Scalars of other dtypes than ``size_dtypes`` are arguments after the inputs.
    Scalars that are listed among the inputs are parameters at their places.
    The function is marked ``tirx.noalias``: its outputs overlap nothing.
    """
    results = list(outputs or [])
    tensors = [t for t in inputs if isinstance(t, TensorValue)]
    computed = definitions(results, tensors)
    statements = _statements(computed)
    output_ids = {id(t.buffer) for t in results}
    intermediates = tuple(b for b in _storage(computed) if id(b) not in output_ids)
    root = SBlock((), (), (), "root", seq(statements), None, intermediates)
    body = SBlockRealize((), const(True), root)
    buffers = [t.buffer for t in [*tensors, *results]]
    solved = {id(d) for b in buffers for d in buffer_type(b).shape if isinstance(d, Var)}
    listed = [t for t in inputs if isinstance(t, Var)]
    everything = PrimFunc(tuple(buffers), body)
    loops = {id(v) for v in _bound_in(body)}
    symbols = list(dict.fromkeys([*listed, *(s for s in free_symbols(everything) if id(s) not in loops)]))
    given = {id(s) for s in listed}
    extra = [s for s in symbols if id(s) not in solved and id(s) not in given]
    fresh = {s: Var(s.name, s.ty) for s in symbols}
    attrs: dict[str, Any] = {"tirx.noalias": True}
    free = {id(t.buffer) for made in computed for t in made.op.attrs.get(_FREE, ())}  # type: ignore[attr-defined]
    chosen = [at for at, t in enumerate(tensors) if id(t.buffer) in free]
    if chosen:
        attrs["layout_free_buffers"] = chosen
    if name is not None:
        attrs["global_symbol"] = name
    numbers = [s for s in extra if s.dtype not in size_dtypes]
    sizes = [s for s in extra if s.dtype in size_dtypes]
    params = [t.buffer if isinstance(t, TensorValue) else t for t in inputs]
    func = PrimFunc((*params, *numbers, *(t.buffer for t in results), *sizes), body, None, attrs)
    renamed = substitute(func, fresh)
    return renamed, list(extra)


_FREE = "layout_free_placeholders"
"""The attribute of a definition that lists inputs whose layout may be chosen: an attribute of the function."""


def _bound_in(body: Stmt) -> list[Var]:
    bound: list[Var] = []
    for found in statements(body):
        if isinstance(found, For):
            bound.append(found.loop_var)
        elif isinstance(found, Bind):
            bound.append(found.var)
        elif isinstance(found, SBlock):
            bound.extend(it.var for it in found.iter_vars)
    return bound


def _statements(computed: Sequence[TensorValue]) -> list[Stmt]:
    """The nest of each tensor; tensors that are made together have one statement."""
    statements: list[Stmt] = []
    done: set[int] = set()
    names: dict[str, int] = {}
    for tensor in computed:
        if id(tensor.definition) in done:
            continue
        done.add(id(tensor.definition))
        if isinstance(tensor.definition, ComputeOp):
            statements.append(_nest(tensor.definition, names))
        elif isinstance(tensor.definition, ExternOp):
            body: Any = _plain(tensor.definition.body)
            reads, writes = infer_regions(body, None)
            block = SBlock((), reads, writes, _block_name(tensor.name, names), body)
            statements.append(SBlockRealize((), const(True), block))
    return statements


def _block_name(name: str, taken: dict[str, int]) -> str:
    """A name that no other block of the function has: ``compute``, ``compute_1``."""
    unique = name
    while unique in taken:
        unique, taken[name] = f"{name}_{taken[name]}", taken[name] + 1
    taken[unique] = 1
    return unique


def _storage(computed: Sequence[TensorValue]) -> list[Var]:
    """The buffers that computed tensors need: themselves, and what is made or used together with them."""
    buffers: dict[Var, None] = {}
    for tensor in computed:
        together = tensor.definition.outputs if tensor.definition is not None else [tensor]
        buffers.update(dict.fromkeys(t.buffer for t in together))
        if isinstance(tensor.definition, ExternOp):
            buffers.update(dict.fromkeys(tensor.definition.scratch))
    return list(buffers)


def _plain(formula: Node) -> Node:
    """The formula with ordinary loads."""

    def rewrite(found: Node) -> Node | None:
        return BufferLoad(found.buffer, found.indices) if isinstance(found, TensorRead) else None

    return transform(formula, rewrite)


def _nest(op: ComputeOp, names: dict[str, int]) -> Stmt:
    """The loops and the blocks of the tensors of one definition: one block each, or one for a reduction of several."""
    shape = op.outputs[0].shape
    extents: list[tuple[Var, Expr, Expr]] = [
        (var, const(0, var.dtype), _simplified(extent)) for var, extent in zip(op.indices, shape, strict=True)
    ]
    extents += [(axis.var, axis.dom.min, _simplified(axis.dom.extent)) for axis in op.reduce_axis]
    kinds = [IterType.DATA_PAR] * len(shape) + [IterType.REDUCE] * len(op.reduce_axis)
    loops = [Var(var.name, var.ty) for var, _, _ in extents]
    points: list[Expr] = list(loops)
    one_point = not extents and conventions().simplifies_formulas
    together = isinstance(op.body[0], CustomReduce)
    blocks: list[Stmt] = []
    for tensor, body in zip(op.outputs, op.body, strict=True):
        iters = [Var(f"v_{var.name}", var.ty) for var, _, _ in extents]
        iter_vars = tuple(
            IterVar(Range(low, extent), it, kind)
            for (_, low, extent), it, kind in zip(extents, iters, kinds, strict=True)
        )
        if one_point:
            iter_vars = (IterVar(Range(const(0), const(1)), Var("vi", prim_type("int32")), IterType.DATA_PAR),)
            points = [const(0)]
        to_iter = {var: it for (var, _, _), it in zip(extents, iters, strict=True)}
        indices = tuple(iters[: len(shape)])
        init: Stmt | None
        if together:
            store, init = _custom_update(op, to_iter, indices)
        else:
            store, init = _update(tensor, body, to_iter, indices)
        reads, writes = infer_regions(store, init)
        label = op.name if together else tensor.name
        notes = {key: value for key, value in op.attrs.items() if key != _FREE}
        block = SBlock(iter_vars, reads, writes, _block_name(label, names), store, init, annotations=notes)
        blocks.append(SBlockRealize(tuple(points), const(True), block))
        if together:
            break
    nest = seq(blocks)
    for loop, (_, low, extent) in zip(reversed(loops), reversed(extents), strict=True):
        nest = For(loop, low, extent, ForKind.SERIAL, nest)
    return nest


def _update(
    tensor: TensorValue, body: Expr, to_iter: dict[Var, Var], indices: tuple[Var, ...]
) -> tuple[Stmt, Stmt | None]:
    """What a block of one formula does, and before its first step."""
    if not isinstance(body, Reduce):
        value: Any = _plain(substitute(body, to_iter))
        value = _simplified(value)
        return BufferStore(tensor.buffer, value, indices), None
    source: Any = _simplified(_plain(substitute(body.source, to_iter)))
    update = COMBINE[body.combiner](BufferLoad(tensor.buffer, indices), source)
    init = BufferStore(tensor.buffer, identity(body.combiner, tensor.dtype), indices)
    return BufferStore(tensor.buffer, update, indices), init


def _simplified(formula: Any) -> Any:
    return Analyzer().simplify(formula) if conventions().simplifies_formulas else formula


def _custom_update(op: ComputeOp, to_iter: dict[Var, Var], indices: tuple[Var, ...]) -> tuple[Stmt, Stmt]:
    """What the block of a program's own reduction does: all new values are known before the first is stored."""
    reduce = op.body[0]
    assert isinstance(reduce, CustomReduce)
    combiner, buffers = reduce.combiner, [t.buffer for t in op.outputs]
    values: dict[Any, Any] = {}
    for n, left in enumerate(combiner.lhs):
        values[left] = BufferLoad(buffers[n], indices)
        values[combiner.rhs[n]] = _plain(substitute(reduce.sources[n], to_iter))
    results: list[Any] = [substitute(result, values) for result in combiner.result]
    wanted = [t.dtype for t in op.outputs]
    init = [
        BufferStore(b, _converted(e, dtype), indices)
        for b, e, dtype in zip(buffers, combiner.identity_element, wanted, strict=True)
    ]
    if len(results) == 1:
        return BufferStore(buffers[0], _converted(results[0], wanted[0]), indices), seq(list(init))
    bound = [Var(f"v_{t.name}", prim_type(scalar_dtype(r))) for t, r in zip(op.outputs, results, strict=True)]
    steps: list[Stmt] = [Bind(var, result) for var, result in zip(bound, results, strict=True)]
    steps += [
        BufferStore(b, _converted(var, dtype), indices) for b, var, dtype in zip(buffers, bound, wanted, strict=True)
    ]
    return seq(steps), seq(list(init))


def _converted(value: Expr, dtype: str) -> Expr:
    return value if scalar_dtype(value) == dtype else E.Cast(dtype, value)
