"""Primitives on blocks: copies of operands and results, moving producers and consumers, inlining."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from supple.analysis.bounds import Context
from supple.ir import expr as E
from supple.ir.expr import BufferLoad, IntImm, Range, Var
from supple.ir.intrinsics import intrinsic
from supple.ir.loop import (
    Buffer,
    BufferRegion,
    BufferStore,
    For,
    ForKind,
    IterType,
    IterVar,
    PrimFunc,
    SBlock,
    SBlockRealize,
    SeqStmt,
    buffer_type,
    seq,
)
from supple.ir.node import Expr, Node, Stmt, children, replace
from supple.ir.types import PrimType, prim_type
from supple.ir.walk import pre_order, substitute, transform
from supple.schedule.errors import ScheduleError
from supple.schedule.transform_loops import element_store
from supple.schedule.tree import put, unique_name
from supple.sym import poly as P
from supple.sym.poly import Poly
from supple.sym.simplify import SHAPES, from_poly


def _number(value: int) -> IntImm:
    return IntImm(value, "int64")


# -------------------------------------------------------------------------------------------------- copies of buffers


def _root(func: PrimFunc) -> SBlockRealize:
    if not isinstance(func.body, SBlockRealize):
        raise ScheduleError("the function has no root block")
    return func.body


def _statement_of(func: PrimFunc, realize: SBlockRealize) -> Stmt:
    """The statement of the function's top level that holds a block."""
    root = _root(func)
    for statement in _top(func):
        if any(n is realize for n in pre_order(statement)):
            return statement
    raise ScheduleError(f"block {realize.block.name_hint} is not below block {root.block.name_hint}")


def _top(func: PrimFunc) -> list[Stmt]:
    body = _root(func).block.body
    return list(body.seq) if isinstance(body, SeqStmt) else [body]


def _with_top(func: PrimFunc, statements: list[Stmt], new_buffers: Sequence[Var]) -> Stmt:
    root = _root(func)
    used = {id(n) for s in statements for n in pre_order(s) if isinstance(n, Var)}
    buffers = tuple(b for b in (*root.block.alloc_buffers, *new_buffers) if id(b) in used)
    return replace(root, block=replace(root.block, body=seq(statements), alloc_buffers=buffers))


def _copy_nest(name: str, target: Var, shape: Sequence[Expr], value: Callable[[list[Var]], Expr]) -> Stmt:
    """``target[i, ..] = value(i, ..)`` over a shape, as loops around a data-parallel block."""
    loops = [Var(f"ax{i}", prim_type("int64")) for i in range(len(shape))]
    inner = [Var(f"v{i}", prim_type("int64")) for i in range(len(shape))]
    extents = [E.cast("int64", extent) for extent in shape]
    store = BufferStore(target, value(inner), tuple(inner))
    iter_vars = tuple(IterVar(Range(_number(0), x), v) for x, v in zip(extents, inner, strict=True))
    reads = tuple(
        BufferRegion(n.buffer, tuple(Range(i, _number(1)) for i in n.indices))
        for n in pre_order(store.value)
        if isinstance(n, BufferLoad)
    )
    writes = (BufferRegion(target, tuple(Range(v, _number(1)) for v in inner)),)
    block = SBlock(iter_vars, reads, writes, name, store)
    made: Stmt = SBlockRealize(tuple(loops), E.const(True), block)
    for loop, extent in zip(reversed(loops), reversed(extents), strict=True):
        made = For(loop, _number(0), extent, ForKind.SERIAL, made)
    return made


def _read_buffer(realize: SBlockRealize, index: int, what: str) -> Var:
    own = {id(region.buffer) for region in realize.block.writes}
    store = realize.block.body
    if isinstance(store, BufferStore):
        own.add(id(store.buffer))
    found: list[Var] = []
    for node in pre_order(realize.block.body):
        if isinstance(node, BufferLoad) and id(node.buffer) not in own and not any(node.buffer is b for b in found):
            found.append(node.buffer)
    if not 0 <= index < len(found):
        names = ", ".join(b.name for b in found) or "nothing"
        raise ScheduleError(f"{what}: block {realize.block.name_hint} reads {names}: there is no read {index}")
    return found[index]


def _reading(
    realize: SBlockRealize, old: Var, new: Var, index: Callable[[tuple[Expr, ...]], tuple[Expr, ...]]
) -> SBlockRealize:
    """The block with loads of one buffer turned into loads of another, at ``index(indices)``."""

    def rewrite(node: Node) -> Node | None:
        if isinstance(node, BufferLoad) and node.buffer is old:
            return BufferLoad(new, index(node.indices), span=node.span)
        if isinstance(node, BufferRegion) and node.buffer is old:
            return BufferRegion(new, tuple(Range(_number(0), s) for s in buffer_type(new).shape))
        return None

    made = transform(realize, rewrite)
    assert isinstance(made, SBlockRealize)
    return made


def cache_read(func: PrimFunc, realize: SBlockRealize, index: int, scope: str) -> tuple[Stmt, str]:
    """See `Schedule.cache_read`."""
    source = _read_buffer(realize, index, "cache_read")
    _check_not_written(func, realize, source, "cache_read")
    ty = buffer_type(source)
    copy = Buffer(f"{source.name}_{scope}", ty.shape, ty.dtype, scope)
    name = unique_name(func.body, f"{source.name}_{scope}")
    nest = _copy_nest(name, copy, ty.shape, lambda at: BufferLoad(source, tuple(at)))
    statement = _statement_of(func, realize)
    reader = put(statement, realize, _reading(realize, source, copy, lambda at: at))
    statements = [t for s in _top(func) for t in ([nest, reader] if s is statement else [s])]
    return _with_top(func, statements, [copy]), name


def _check_not_written(func: PrimFunc, realize: SBlockRealize, buffer: Var, what: str) -> None:
    """A copy made before the block's statement must still be right when the block reads it."""
    for node in pre_order(_statement_of(func, realize)):
        if isinstance(node, BufferStore) and node.buffer is buffer:
            raise ScheduleError(f"{what}: {buffer.name} is written in the same nest that reads it")


def cache_write(func: PrimFunc, realize: SBlockRealize, index: int, scope: str) -> tuple[Stmt, str]:
    """See `Schedule.cache_write`."""
    if index != 0:
        raise ScheduleError(f"cache_write: block {realize.block.name_hint} has one write, there is no write {index}")
    store = element_store(realize, "cache_write")
    result = store.buffer
    statement = _statement_of(func, realize)
    others = [n for n in pre_order(statement) if isinstance(n, (BufferLoad, BufferStore)) and n.buffer is result]
    mine = {id(n) for n in pre_order(realize)}
    if any(id(n) not in mine for n in others):
        raise ScheduleError(f"cache_write: {result.name} is used by another block of the same nest")
    reduces = any(v.iter_type is IterType.REDUCE for v in realize.block.iter_vars)
    if reduces and realize.block.init is None:
        raise ScheduleError(
            f"cache_write: block {realize.block.name_hint} goes on from what {result.name} holds (it has no init)"
        )
    if not _covers(realize, store):
        raise ScheduleError(f"cache_write: block {realize.block.name_hint} is not proved to write all of {result.name}")
    ty = buffer_type(result)
    copy = Buffer(f"{result.name}_{scope}", ty.shape, ty.dtype, scope)

    def rewrite(node: Node) -> Node | None:
        if isinstance(node, BufferLoad) and node.buffer is result:
            return BufferLoad(copy, node.indices, span=node.span)
        if isinstance(node, BufferStore) and node.buffer is result:
            return BufferStore(copy, node.value, node.indices, span=node.span)
        if isinstance(node, BufferRegion) and node.buffer is result:
            return BufferRegion(copy, node.region)
        return None

    rewritten = transform(realize, rewrite)
    assert isinstance(rewritten, Stmt)
    writer = put(statement, realize, rewritten)
    name = unique_name(func.body, f"{result.name}_{scope}")
    nest = _copy_nest(name, result, ty.shape, lambda at: BufferLoad(copy, tuple(at)))
    statements = [t for s in _top(func) for t in ([writer, nest] if s is statement else [s])]
    return _with_top(func, statements, [copy]), name


def _covers(realize: SBlockRealize, store: BufferStore) -> bool:
    """Whether the block's spatial variables are the store's indices and run over the whole buffer."""
    domains = {id(v.var): v for v in realize.block.iter_vars if v.iter_type is IterType.DATA_PAR}
    for index, extent in zip(store.indices, buffer_type(store.buffer).shape, strict=True):
        if isinstance(index, IntImm) and SHAPES.equal(extent, _number(1)) is True:
            continue
        iter_var = domains.pop(id(index), None)
        if iter_var is None or SHAPES.equal(iter_var.dom.extent, extent) is not True:
            return False
    return not domains


def pack(func: PrimFunc, realize: SBlockRealize, index: int, axis: int, width: int) -> tuple[Stmt, str]:
    """See `Schedule.pack`."""
    source = _read_buffer(realize, index, "pack")
    _check_not_written(func, realize, source, "pack")
    ty = buffer_type(source)
    if not 0 <= axis < len(ty.shape):
        raise ScheduleError(f"pack: {source.name} has no axis {axis}")
    if width < 1:
        raise ScheduleError(f"pack: width {width} is not positive")
    extent = E.cast("int64", ty.shape[axis])
    panels = SHAPES.simplify(E.FloorDiv(E.Add(extent, _number(width - 1)), _number(width)))
    rest = [s for i, s in enumerate(ty.shape) if i != axis]
    copy = Buffer(f"{source.name}_packed", (panels, *rest, _number(width)), ty.dtype)

    def element(at: list[Var]) -> Expr:
        position = E.Add(E.Mul(at[0], _number(width)), at[-1])
        middle: list[Expr] = list(at[1:-1])
        load = BufferLoad(source, (*middle[:axis], position, *middle[axis:]))
        if SHAPES.equal(E.Mul(panels, _number(width)), extent) is True:
            return load
        return intrinsic("if_then_else", E.LT(position, extent), load, E.const(0, ty.dtype))

    def place(at: tuple[Expr, ...]) -> tuple[Expr, ...]:
        position = E.cast("int64", at[axis])
        others = [a for i, a in enumerate(at) if i != axis]
        return (E.FloorDiv(position, _number(width)), *others, E.FloorMod(position, _number(width)))

    name = unique_name(func.body, f"{source.name}_packed")
    nest = _copy_nest(name, copy, (panels, *rest, _number(width)), element)
    statement = _statement_of(func, realize)
    reader = put(statement, realize, _reading(realize, source, copy, place))
    statements = [t for s in _top(func) for t in ([nest, reader] if s is statement else [s])]
    return _with_top(func, statements, [copy]), name


# -------------------------------------------------------------------------------------------------- moving and inlining


def compute_inline(func: PrimFunc, realize: SBlockRealize) -> Stmt:
    """See `Schedule.compute_inline`."""
    store = element_store(realize, "compute_inline")
    block, buffer = realize.block, store.buffer
    if any(v.iter_type is not IterType.DATA_PAR for v in block.iter_vars) or block.init is not None:
        raise ScheduleError(f"compute_inline: block {block.name_hint} reduces")
    if not any(buffer is b for b in _root(func).block.alloc_buffers):
        raise ScheduleError(f"compute_inline: {buffer.name} is not a buffer of the function's own")
    if not all(any(index is v.var for v in block.iter_vars) for index in store.indices):
        raise ScheduleError(f"compute_inline: block {block.name_hint} does not store at its own variables")
    if len({id(i) for i in store.indices}) != len(block.iter_vars) or not _covers(realize, store):
        raise ScheduleError(f"compute_inline: block {block.name_hint} is not proved to write all of {buffer.name}")
    statement = _statement_of(func, realize)
    rest = [s for s in _top(func) if s is not statement]
    inputs = {id(n.buffer) for n in pre_order(store.value) if isinstance(n, BufferLoad)}
    if id(buffer) in inputs:
        raise ScheduleError(f"compute_inline: block {block.name_hint} reads what it writes")
    after = False
    for s in _top(func):
        after = after or s is statement
        for node in pre_order(s):
            if isinstance(node, BufferStore) and node.buffer is buffer and s is not statement:
                raise ScheduleError(f"compute_inline: {buffer.name} is written by another block")
            if after and isinstance(node, BufferStore) and id(node.buffer) in inputs:
                raise ScheduleError(f"compute_inline: {node.buffer.name}, which the block reads, is written later")

    def rewrite(node: Node) -> Node | None:
        if isinstance(node, BufferLoad) and node.buffer is buffer:
            at = dict(zip(store.indices, node.indices, strict=True))
            mapping = {var: E.cast(var.dtype, index) for var, index in at.items() if isinstance(var, Var)}
            value = substitute(store.value, mapping)
            assert isinstance(value, Expr)
            return value
        return None

    made: list[Stmt] = []
    for s in rest:
        new = transform(_forget_reads(s, buffer), rewrite)
        assert isinstance(new, Stmt)
        made.append(new)
    return _with_top(func, made, [])


def _forget_reads(statement: Stmt, buffer: Var) -> Stmt:
    """Without the regions of a buffer that goes away (they are stated for readers only)."""

    def rewrite(node: Node) -> Node | None:
        if isinstance(node, SBlock) and any(r.buffer is buffer for r in node.reads):
            return replace(node, reads=tuple(r for r in node.reads if r.buffer is not buffer))
        return None

    made = transform(statement, rewrite)
    assert isinstance(made, Stmt)
    return made


def _ends(context: Context, p: Poly, inner: Sequence[tuple[int, Poly, Poly]]) -> tuple[Poly, Poly] | None:
    """The least and greatest value of an index as its inner loops run, when it is monotone in each."""
    low = high = p
    for atom, first, last in inner:
        for side in (0, 1):
            current = low if side == 0 else high
            if any(m.count(atom) > 1 for m in current.terms):
                return None
            factor = Poly({tuple(a for a in m if a != atom): c for m, c in current.terms.items() if atom in m})
            rest = Poly({m: c for m, c in current.terms.items() if atom not in m})
            if not factor.terms:
                continue
            rising = context.non_negative(factor)
            if not rising and not context.non_negative(P.ZERO - factor):
                return None
            end = (first if rising else last) if side == 0 else (last if rising else first)
            if side == 0:
                low = rest + factor * end
            else:
                high = rest + factor * end
    return low, high


def _region(func: PrimFunc, loop: For, accesses: Sequence[tuple[tuple[Expr, ...], Node]], what: str) -> list[Range]:
    """The box that holds all accesses of an iteration of a loop, in terms of that loop and those outside it."""
    context = Context(tuple(p for p in func.params if isinstance(p.ty, PrimType)))
    boxes: list[list[tuple[Poly, Poly]]] = []
    for indices, node in accesses:
        above = path_to_expression(func, node)
        position = next((i for i, n in enumerate(above) if n is loop), None)
        if position is None:
            raise ScheduleError(f"{what}: an access is outside loop {loop.loop_var.name}")
        mapping: dict[Var, Node] = {}
        inner: list[tuple[int, Poly, Poly]] = []
        for outer in above:
            if isinstance(outer, SBlockRealize):
                for v, value in zip(outer.block.iter_vars, outer.iter_values, strict=True):
                    mapping[v.var] = substitute(value, mapping)
        for below in above[position + 1 :]:
            if isinstance(below, For):
                first = context.poly(below.min)
                last = first + context.poly(below.extent) - P.ONE
                inner.insert(0, (P.intern_atom(P.Atom("var", var=below.loop_var)), first, last))
        box: list[tuple[Poly, Poly]] = []
        for index in indices:
            ends = _ends(context, context.poly(substitute(index, mapping)), inner)
            if ends is None:
                raise ScheduleError(f"{what}: the part of the buffer that an iteration uses is not a simple box")
            box.append(ends)
        boxes.append(box)
    if not boxes:
        raise ScheduleError(f"{what}: nothing below loop {loop.loop_var.name} uses the buffer")
    merged = boxes[0]
    for box in boxes[1:]:
        for axis, (low, high) in enumerate(box):
            known_low, known_high = merged[axis]
            low = known_low if context.non_negative(low - known_low) else low
            high = known_high if context.non_negative(known_high - high) else high
            if not context.non_negative(known_low - low) or not context.non_negative(high - known_high):
                raise ScheduleError(f"{what}: the parts of the buffer that an iteration uses cannot be compared")
            merged[axis] = (low, high)
    return [Range(from_poly(low), from_poly(high - low + P.ONE)) for low, high in merged]


def path_to_expression(func: PrimFunc, wanted: Node) -> tuple[Node, ...]:
    """The nodes above an expression or statement, from the outside in."""
    from_parent: dict[int, Node] = {}
    for node in pre_order(func.body):
        for child in children(node):
            from_parent.setdefault(id(child), node)
    above: list[Node] = []
    current: Node | None = from_parent.get(id(wanted))
    while current is not None:
        above.append(current)
        current = from_parent.get(id(current))
    return tuple(reversed(above))


def compute_at(func: PrimFunc, realize: SBlockRealize, loop: For) -> Stmt:
    """See `Schedule.compute_at`."""
    store = element_store(realize, "compute_at")
    accesses = [
        (n.indices, n)
        for n in pre_order(func.body)
        if isinstance(n, BufferLoad) and n.buffer is store.buffer and not _inside(realize, n)
    ]
    _check_own(func, realize, store.buffer, "compute_at")
    ranges = _region(func, loop, accesses, "compute_at")
    moved = _over(realize, store, ranges, "compute_at")
    statement = _statement_of(func, realize)
    if any(n is loop for n in pre_order(statement)):
        raise ScheduleError("compute_at: the block is in the loop already")
    _check_alone(statement, realize, "compute_at")
    statements = [
        put(s, loop, replace(loop, body=seq([moved, loop.body]))) if any(n is loop for n in pre_order(s)) else s
        for s in _top(func)
        if s is not statement
    ]
    return _with_top(func, statements, [])


def reverse_compute_at(func: PrimFunc, realize: SBlockRealize, loop: For) -> Stmt:
    """See `Schedule.reverse_compute_at`."""
    store = element_store(realize, "reverse_compute_at")
    written = {id(n.buffer): n.buffer for n in pre_order(loop) if isinstance(n, BufferStore)}
    reads = [n for n in pre_order(store.value) if isinstance(n, BufferLoad) and id(n.buffer) in written]
    if not reads or any(v.iter_type is not IterType.DATA_PAR for v in realize.block.iter_vars):
        raise ScheduleError(
            f"reverse_compute_at: block {realize.block.name_hint} is no data-parallel consumer of the loop"
        )
    first = reads[0]
    if len({id(r.buffer) for r in reads}) != 1 or any(
        a is not b for r in reads for a, b in zip(r.indices, first.indices, strict=True)
    ):
        raise ScheduleError("reverse_compute_at: the consumer reads more than one element of the loop's results")
    statement = _statement_of(func, realize)
    if any(n is loop for n in pre_order(statement)):
        raise ScheduleError("reverse_compute_at: the block is in the loop already")
    _check_alone(statement, realize, "reverse_compute_at")
    accesses = [(n.indices, n) for n in pre_order(loop) if isinstance(n, BufferStore) and n.buffer is first.buffer]
    for node in pre_order(func.body):
        if (isinstance(node, For) and any(n is loop for n in pre_order(node))) or node is loop:
            for producer in (n for n in pre_order(loop) if isinstance(n, SBlockRealize)):
                assert isinstance(node, For)
                _check_finished(producer, node, first.buffer)
    ranges = _region(func, loop, accesses, "reverse_compute_at")
    own = {id(v.var) for v in realize.block.iter_vars}
    if len(first.indices) != len(own) or {id(i) for i in first.indices} != own:
        raise ScheduleError("reverse_compute_at: the consumer does not read at its own variables")
    moved = _over(realize, BufferStore(first.buffer, first, first.indices), ranges, "reverse_compute_at")
    statements = [
        put(s, loop, replace(loop, body=seq([loop.body, moved]))) if any(n is loop for n in pre_order(s)) else s
        for s in _top(func)
        if s is not statement
    ]
    return _with_top(func, statements, [])


def _check_finished(producer: SBlockRealize, outer: For, buffer: Var) -> None:
    store = producer.block.body
    if not isinstance(store, BufferStore) or store.buffer is not buffer:
        return
    for v, value in zip(producer.block.iter_vars, producer.iter_values, strict=True):
        if v.iter_type is IterType.REDUCE and any(n is outer.loop_var for n in pre_order(value)):
            raise ScheduleError(
                f"reverse_compute_at: loop {outer.loop_var.name} reduces, so its results are not finished"
            )


def _inside(realize: SBlockRealize, node: Node) -> bool:
    return any(n is node for n in pre_order(realize))


def _check_own(func: PrimFunc, realize: SBlockRealize, buffer: Var, what: str) -> None:
    if not any(buffer is b for b in _root(func).block.alloc_buffers):
        raise ScheduleError(
            f"{what}: {buffer.name} is not a buffer of the function's own, so all of it must be computed"
        )
    for node in pre_order(func.body):
        if isinstance(node, BufferStore) and node.buffer is buffer and not _inside(realize, node):
            raise ScheduleError(f"{what}: {buffer.name} is written by another block too")


def _check_alone(statement: Stmt, realize: SBlockRealize, what: str) -> None:
    if sum(isinstance(n, SBlockRealize) for n in pre_order(statement)) != 1:
        raise ScheduleError(f"{what}: block {realize.block.name_hint} shares its loops with another block")


def _over(realize: SBlockRealize, store: BufferStore, ranges: list[Range], what: str) -> Stmt:
    """The block over a part of its domain: new loops for the spatial variables, own loops for the reductions."""
    block = realize.block
    place = {id(index): axis for axis, index in enumerate(store.indices)}
    loops: list[tuple[Var, Expr]] = []
    values: list[Expr] = []
    predicate: Expr = E.const(True)
    for v in block.iter_vars:
        dtype = v.var.dtype
        if v.iter_type is IterType.REDUCE:
            var = Var(v.var.name, prim_type(dtype))
            loops.append((var, E.cast(dtype, v.dom.extent)))
            values.append(E.Add(E.cast(dtype, v.dom.min), var))
            continue
        axis = place.get(id(v.var))
        if axis is None or v.iter_type is not IterType.DATA_PAR:
            raise ScheduleError(f"{what}: block {block.name_hint} is not stored (or read) at its variable {v.var.name}")
        part = ranges[axis]
        var = Var(f"ax{axis}", prim_type(dtype))
        loops.append((var, E.cast(dtype, part.extent)))
        position = E.Add(E.cast(dtype, part.min), var)
        values.append(position)
        whole = SHAPES.equal(part.extent, v.dom.extent) is True
        if not whole:
            inside = E.LT(*E.match_dtypes(position, v.dom.extent))
            predicate = inside if isinstance(predicate, IntImm) else E.And(predicate, inside)
    made: Stmt = SBlockRealize(tuple(values), predicate, block)
    for var, extent in reversed(loops):
        made = For(var, IntImm(0, var.dtype), extent, ForKind.SERIAL, made)
    return made
