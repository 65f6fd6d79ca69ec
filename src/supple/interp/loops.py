"""Loop functions in numpy: the oracle for native code.

Two modes that tests compare. *Scalar*: every statement for every iteration, as written. *Vectorised* (the default):
a nest of loops around one block whose data-parallel iteration variables are exactly its store's indices runs as numpy
operations over all of them at once, with the reduction loops in order, so each element sees the same operations in
the same order; everything else falls back to the scalar mode.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from supple.analysis.indices import counted_from_end
from supple.analysis.lazy import is_lazy, needed_either_way
from supple.analysis.returns import result_dtype
from supple.base import dtypes
from supple.base.errors import ArgumentError, ExecutionError, NotSupportedError, out_of_bounds
from supple.ir import expr as E
from supple.ir.expr import BufferLoad, Call, Var, scalar_dtype
from supple.ir.intrinsics import numpy_meaning
from supple.ir.loop import (
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Bind,
    Break,
    BufferStore,
    Continue,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    IterType,
    PrimFunc,
    Return,
    SBlock,
    SBlockRealize,
    SeqStmt,
    While,
    buffer_type,
)
from supple.ir.node import Expr, Node, Stmt, children
from supple.ir.op import OPS, Op
from supple.ir.types import BufferType, PrimType
from supple.ir.walk import post_order
from supple.sym.simplify import evaluate, solve_linear

Array = Any  # numpy arrays and scalars
_ON_BITS = (OPS.get("tirx.reinterpret"), OPS.get("tirx.nextafter"))  # these know their operands' own dtype
_ASSUME = OPS.get("tirx.assume")
MAX_LANES = 1 << 22
"""How many elements one vectorised operation covers at most."""


def run_prim_func(func: PrimFunc, args: Sequence[Any], *, vectorized: bool = True) -> int | float | bool | None:
    """Run a loop function on numpy arrays (outputs are written in place) and numbers for its scalar parameters; the
    number that it returns, if any.

    Raises `ArgumentError` for arguments that do not fit the parameters, `ExecutionError` for an index out of bounds
    or a failed assertion, `NotSupportedError` for constructs that call out of the program.
    """
    return _Run(vectorized).call(func, args)


def symbol_values(func: PrimFunc, args: Sequence[Any]) -> dict[Var, int]:
    """The values of a loop function's symbols, from the shapes of its arguments."""
    values: dict[Var, int] = {}
    pending: list[tuple[str, int, Expr, int]] = []
    for param, arg in zip(func.params, args, strict=True):
        if isinstance(param.ty, BufferType):
            actual = np.shape(arg)
            if len(actual) != len(param.ty.shape):
                raise ArgumentError(f"{param.name}: expected {len(param.ty.shape)} dimensions, got shape {actual}")
            pending += [(param.name, d, e, x) for d, (e, x) in enumerate(zip(param.ty.shape, actual, strict=True))]
        elif isinstance(param.ty, PrimType) and dtypes.is_int(param.ty.dtype):
            values[param] = int(arg)
    for _, _, dim, extent in pending:
        if isinstance(dim, Var) and dim not in values:
            values[dim] = extent
    for _, _, dim, extent in pending:
        for unknown in [n for n in post_order(dim) if isinstance(n, Var) and n not in values]:
            solved = solve_linear(dim, unknown)
            if solved is not None and not any(solved[1].terms) and (extent % solved[0]) == 0:
                values[unknown] = extent // solved[0]
    for name, d, dim, extent in pending:
        try:
            expected = evaluate(dim, values)
        except KeyError as missing:
            raise ArgumentError(f"{name}: dimension {d} does not determine the symbol {missing}") from None
        if expected != extent:
            raise ArgumentError(f"{name}: dimension {d} must be {expected}, got {extent}")
    return values


class _Break(Exception):  # noqa: N818 - control flow, not an error
    pass


class _Continue(Exception):  # noqa: N818
    pass


class _Return(Exception):  # noqa: N818
    def __init__(self, value: Array | None) -> None:
        self.value = value


class _Run:
    """One activation: buffers and scalar values by variable identity."""

    def __init__(self, vectorized: bool) -> None:
        self.vectorized = vectorized
        self.buffers: dict[int, Array] = {}
        self.values: dict[int, Array] = {}
        self._programs: dict[int, tuple[Expr, list[Expr]]] = {}

    def call(self, func: PrimFunc, args: Sequence[Any]) -> int | float | bool | None:
        if len(args) != len(func.params):
            raise ArgumentError(f"the loop function takes {len(func.params)} arguments, got {len(args)}")
        for symbol, value in symbol_values(func, args).items():
            self.values[id(symbol)] = dtypes.to_numpy(symbol.dtype).type(value)
        for param, arg in zip(func.params, args, strict=True):
            if isinstance(param.ty, BufferType):
                if param.ty.strides or param.ty.elem_offset is not None:
                    raise NotSupportedError(f"{param.name}: the interpreter takes compact buffers only")
                if not isinstance(arg, np.ndarray) or arg.dtype != dtypes.to_numpy(param.ty.dtype):
                    kind = getattr(arg, "dtype", type(arg).__name__)
                    raise ArgumentError(f"{param.name}: expected an array of {param.ty.dtype}, got {kind}")
                self.buffers[id(param)] = arg
            else:
                assert isinstance(param.ty, PrimType)
                self.values[id(param)] = dtypes.to_numpy(param.ty.dtype).type(arg)
        with np.errstate(all="ignore"):
            try:
                self.run(func.body)
            except _Return as returned:
                if returned.value is None:
                    return None
                dtype = result_dtype(func)
                assert dtype is not None
                number: int | float | bool = dtypes.convert(np.asarray(returned.value), dtype).item()
                return number
        return None

    # ------------------------------------------------------------------------------------------------------ statements

    def run(self, stmt: Stmt) -> None:
        handler = _STATEMENTS.get(type(stmt))
        if handler is None:
            raise NotSupportedError(f"the interpreter has no {type(stmt).__name__}", span=stmt.span)
        handler(self, stmt)

    def run_seq(self, stmt: SeqStmt) -> None:
        for inner in stmt.seq:
            self.run(inner)

    def run_for(self, stmt: For) -> None:
        if self.vectorized and run_nest(self, stmt):
            return
        low, extent = int(self.eval(stmt.min)), int(self.eval(stmt.extent))
        if extent <= 0:
            run_empty_reduction(self, stmt)
        step = 1 if stmt.step is None else int(self.eval(stmt.step))
        kind = dtypes.to_numpy(stmt.loop_var.dtype).type
        for value in range(low, low + extent, step):
            self.values[id(stmt.loop_var)] = kind(value)
            try:
                self.run(stmt.body)
            except _Continue:
                continue
            except _Break:
                break

    def run_while(self, stmt: While) -> None:
        while bool(self.eval(stmt.condition)):
            try:
                self.run(stmt.body)
            except _Continue:
                continue
            except _Break:
                break

    def run_if(self, stmt: IfThenElse) -> None:
        if bool(self.eval(stmt.condition)):
            self.run(stmt.then_case)
        elif stmt.else_case is not None:
            self.run(stmt.else_case)

    def run_store(self, stmt: BufferStore, mask: Array | None = None) -> None:
        array = self.buffers[id(stmt.buffer)]
        value = self.eval(stmt.value, mask)
        index = tuple(self.eval(i, mask) for i in stmt.indices)
        check_bounds(stmt, index, array.shape, mask)
        array[index] = value

    def run_block(self, stmt: SBlockRealize) -> None:
        block = stmt.block
        for iter_var, value in zip(block.iter_vars, stmt.iter_values, strict=True):
            self.values[id(iter_var.var)] = dtypes.convert(self.eval(value), iter_var.var.dtype)[()]
        if not bool(self.eval(stmt.predicate)):
            return
        self.enter_block(block)
        if block.init is not None and all(
            bool(self.values[id(it.var)] == self.eval(it.dom.min))
            for it in block.iter_vars
            if it.iter_type is IterType.REDUCE
        ):
            self.run(block.init)
        self.run(block.body)

    def enter_block(self, block: SBlock) -> None:
        for buffer in block.alloc_buffers:
            self.allocate(buffer)
        for match in block.match_buffers:
            region = tuple(
                slice(int(self.eval(r.min)), int(self.eval(r.min)) + int(self.eval(r.extent)))
                for r in match.source.region
            )
            self.bind_view(match.buffer, self.buffers[id(match.source.buffer)][region])

    def bind_view(self, buffer: Var, view: Array) -> None:
        """A view takes the shape of its own type (dimensions of extent 1 may be missing); new symbols get values."""
        ty = buffer_type(buffer)
        dims = [d for d in view.shape if d != 1] if len(ty.shape) != view.ndim else list(view.shape)
        shaped = view.reshape(dims) if len(dims) == len(ty.shape) else view
        for dim, extent in zip(ty.shape, shaped.shape, strict=True):
            if isinstance(dim, Var) and id(dim) not in self.values:
                self.values[id(dim)] = dtypes.to_numpy(dim.dtype).type(extent)
        for strides, step in zip(ty.strides, shaped.strides, strict=False):
            if isinstance(strides, Var):
                self.values[id(strides)] = dtypes.to_numpy(strides.dtype).type(step // shaped.itemsize)
        if isinstance(ty.elem_offset, Var):
            raise NotSupportedError(f"{buffer.name}: the interpreter does not bind elem_offset", span=buffer.span)
        self.buffers[id(buffer)] = shaped

    def allocate(self, buffer: Var) -> None:
        """Fresh storage, filled with values that show a read before a write (NaN, or the least integer)."""
        ty = buffer_type(buffer)
        shape = tuple(int(self.eval(s)) for s in ty.shape)
        kind = dtypes.to_numpy(ty.dtype)
        fill: Any = np.nan if dtypes.is_float(ty.dtype) else False if kind.kind == "b" else np.iinfo(kind).min  # type: ignore[type-var]
        self.buffers[id(buffer)] = np.full(shape, fill, kind)

    def run_alloc(self, stmt: AllocBuffer) -> None:
        self.allocate(stmt.buffer)

    def run_decl(self, stmt: DeclBuffer) -> None:
        source = self.buffers.get(id(stmt.data)) if stmt.data is not None else None
        if stmt.data is None:
            self.allocate(stmt.buffer)
        elif source is None:
            raise NotSupportedError(f"{stmt.buffer.name}: the interpreter has no raw pointers", span=stmt.span)
        else:
            shape = tuple(int(self.eval(s)) for s in buffer_type(stmt.buffer).shape)
            self.buffers[id(stmt.buffer)] = source.reshape(shape)

    def run_bind(self, stmt: Bind) -> None:
        self.values[id(stmt.var)] = self.eval(stmt.value)

    def run_assert(self, stmt: AssertStmt) -> None:
        if not bool(self.eval(stmt.condition)):
            raise ExecutionError(stmt.message)

    def run_evaluate(self, stmt: Evaluate) -> None:
        if not (isinstance(stmt.value, Call) and getattr(stmt.value.op, "name", "") == "tirx.prefetch"):
            self.eval(stmt.value)

    def run_attr(self, stmt: AttrStmt) -> None:
        self.run(stmt.body)

    def run_break(self, stmt: Break) -> None:
        raise _Break

    def run_continue(self, stmt: Continue) -> None:
        raise _Continue

    def run_return(self, stmt: Return) -> None:
        raise _Return(None if stmt.value is None else self.eval(stmt.value))

    # ----------------------------------------------------------------------------------------------------- expressions

    def eval(self, e: Expr, mask: Array | None = None, done: dict[int, Array] | None = None) -> Array:
        """The value of an expression; ``mask`` says for which lanes it is needed (None: all). ``done`` has the values,
        for these lanes at least, of parts that were evaluated before, and gets those of the others."""
        value = self.values.get(id(e))
        if value is not None:
            return value
        if done is None:
            done = {}
        for current in self._program(e):
            if id(current) not in done:
                done[id(current)] = self._step(current, done, mask)
        return done[id(e)]

    def _program(self, e: Expr) -> list[Expr]:
        """The nodes of an expression, operands first, not below lazy operators (those evaluate their operands)."""
        known = self._programs.get(id(e))
        if known is not None:
            return known[1]
        order: list[Expr] = []
        seen: set[int] = set()
        stack: list[tuple[Expr, bool]] = [(e, False)]
        while stack:
            current, expanded = stack.pop()
            if expanded:
                order.append(current)
            elif id(current) not in seen:
                seen.add(id(current))
                stack.append((current, True))
                stack.extend((operand, False) for operand in reversed(_eager_operands(current)))
        self._programs[id(e)] = (e, order)
        return order

    def _step(self, e: Expr, done: dict[int, Array], mask: Array | None) -> Array:
        kind = type(e)
        if kind is Var:
            if id(e) not in self.values:
                name = e.name  # type: ignore[attr-defined]
                raise ExecutionError(f"the variable {name} has no value here")
            return self.values[id(e)]
        if kind in _BINARY:
            return _rounded(_BINARY[kind], done[id(e.a)], done[id(e.b)])  # type: ignore[attr-defined]
        return _EXPRESSIONS[kind](self, e, done, mask)

    def load(self, e: BufferLoad, done: Mapping[int, Array], mask: Array | None) -> Array:
        array = self.buffers.get(id(e.buffer))
        if array is None:
            raise ExecutionError(f"the buffer {e.buffer.name} has no storage here")
        index = tuple(done[id(i)] for i in e.indices)
        check_bounds(e, index, array.shape, mask)
        if mask is not None:
            if array.size == 0:
                return np.zeros((), array.dtype)
            index = tuple(np.where(mask, i, np.zeros((), np.asarray(i).dtype)) for i in index)
        return array[index]

    def intrinsic(self, e: Call, done: dict[int, Array], mask: Array | None) -> Array:
        if not isinstance(e.op, Op):
            raise NotSupportedError("the interpreter: a loop function can only call intrinsics", span=e.span)
        if is_lazy(e):
            condition = self.eval(e.args[0], mask, done)
            return self.choose(condition, e.args[1], e.args[2], done, mask)
        if (not e.op.pure and e.op is not _ASSUME) or e.op.facts["intrinsic"].arity < 0:
            raise NotSupportedError(f"the interpreter does not run {e.op.name}", span=e.span)
        args = [done[id(a)] for a in e.args]
        if not any(e.op is own for own in _ON_BITS):
            args = [dtypes.widened(a) if _is_coded(a) else a for a in args]
        value = numpy_meaning(e)(*args)
        return dtypes.convert(value, dtypes.element(scalar_dtype(e)))

    def choose(self, condition: Array, a: Expr, b: Expr, done: dict[int, Array], mask: Array | None) -> Array:
        """``a`` where the condition holds, else ``b``; each is evaluated for its own lanes only."""
        if np.ndim(condition) == 0:
            return self.eval(a if bool(condition) else b, mask, done)
        for shared in needed_either_way(a, b):
            self.eval(shared, mask, done)
        yes = condition if mask is None else condition & mask
        no = ~condition if mask is None else ~condition & mask
        return np.where(condition, self.eval(a, yes, dict(done)), self.eval(b, no, dict(done)))

    def logical(self, e: Any, done: dict[int, Array], mask: Array | None) -> Array:
        left = self.eval(e.a, mask, done)
        if isinstance(e, E.And):
            return self.choose(left, e.b, _FALSE, done, mask)
        return self.choose(left, _TRUE, e.b, done, mask)

    def let(self, e: E.Let, done: dict[int, Array], mask: Array | None) -> Array:
        self.values[id(e.var)] = self.eval(e.value, mask, done)
        return self.eval(e.body, mask, done)


_FALSE, _TRUE = E.const(False), E.const(True)


def check_bounds(
    access: BufferLoad | BufferStore, index: tuple[Array, ...], shape: tuple[int, ...], mask: Array | None
) -> None:
    """Raise `ExecutionError` when an index that is needed lies outside the buffer."""
    for d, (i, extent) in enumerate(zip(index, shape, strict=True)):
        if np.ndim(i) == 0 and mask is None and 0 <= int(i) < extent:
            continue  # one number needs no arrays
        bad = (np.asarray(i) < 0) | (np.asarray(i) >= extent)
        if mask is not None:
            bad = bad & mask
        if np.any(bad):
            wrong = np.broadcast_to(np.asarray(i), np.shape(bad))[bad].flat[0]
            written = counted_from_end(access.indices[d])
            shown = int(wrong) if written is None else int(wrong) - (extent if wrong < 0 else 0)
            text, expected = out_of_bounds(str(shown), d, access.buffer.name, str(extent), written is not None)
            raise ExecutionError(text, access.span, expected)


def _eager_operands(e: Expr) -> list[Expr]:
    if isinstance(e, (Var, E.Let)) or is_lazy(e):
        return []
    if isinstance(e, BufferLoad):
        return list(e.indices)
    if isinstance(e, Call):
        return [a for a in e.args if not isinstance(a, E.StringImm)]
    return [n for n in children(e) if isinstance(n, Expr)]


def _is_coded(value: Array) -> bool:
    """bfloat16 or a float8 kind (numpy's types are 1, those that other packages register 2)."""
    kind = getattr(value, "dtype", None)
    return kind is not None and kind.isbuiltin == 2


def _rounded(function: Callable[[Array, Array], Array], a: Array, b: Array) -> Array:
    """A binary operation; bfloat16 and float8 in float32, rounded once, as numpy itself does with float16."""
    if not _is_coded(a):
        return function(a, b)
    result = function(dtypes.widened(a), dtypes.widened(b))
    return result if result.dtype.kind == "b" else result.astype(a.dtype)


def _int_zero_safe(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def divide(a: Array, b: Array) -> Array:
        kind = np.asarray(a).dtype
        if kind.kind not in "iu":
            return function(a, b)
        safe = np.where(b == 0, kind.type(1), b)
        return np.where(b == 0, kind.type(0), function(a, safe))[()]

    return divide


def _trunc_div(a: Array, b: Array) -> Array:
    if np.asarray(a).dtype.kind not in "iu":
        return np.divide(a, b)
    quotient = np.floor_divide(a, b)
    inexact = (quotient * b != a) & ((np.asarray(a) < 0) != (np.asarray(b) < 0))
    return (quotient + inexact).astype(np.asarray(a).dtype)


def _trunc_mod(a: Array, b: Array) -> Array:
    return np.fmod(a, b)


_BINARY: dict[type, Callable[[Array, Array], Array]] = {
    E.Add: np.add,
    E.Sub: np.subtract,
    E.Mul: np.multiply,
    E.Div: _int_zero_safe(_trunc_div),
    E.Mod: _int_zero_safe(_trunc_mod),
    E.FloorDiv: _int_zero_safe(np.floor_divide),
    E.FloorMod: _int_zero_safe(np.mod),
    E.Min: np.minimum,
    E.Max: np.maximum,
    E.EQ: np.equal,
    E.NE: np.not_equal,
    E.LT: np.less,
    E.LE: np.less_equal,
    E.GT: np.greater,
    E.GE: np.greater_equal,
}


def _literal(run: _Run, e: Any, done: Mapping[int, Array], mask: Array | None) -> Array:
    return dtypes.to_numpy(e.dtype).type(e.value)


def _select(run: _Run, e: E.Select, done: Mapping[int, Array], mask: Array | None) -> Array:
    chosen: Array = np.where(done[id(e.condition)], done[id(e.true_value)], done[id(e.false_value)])
    return chosen[()]


def _ramp(run: _Run, e: E.Ramp, done: Mapping[int, Array], mask: Array | None) -> Array:
    kind = dtypes.to_numpy(scalar_dtype(e.base))
    return done[id(e.base)] + done[id(e.stride)] * np.arange(e.lanes, dtype=kind)


def _shuffle(run: _Run, e: E.Shuffle, done: Mapping[int, Array], mask: Array | None) -> Array:
    joined = np.concatenate([np.atleast_1d(done[id(v)]) for v in e.vectors])
    chosen: Array = joined[[int(done[id(i)]) for i in e.indices]]
    return chosen if len(e.indices) > 1 else chosen[0]


_EXPRESSIONS: dict[type, Callable[[_Run, Any, dict[int, Array], Array | None], Array]] = {
    E.IntImm: _literal,
    E.FloatImm: _literal,
    E.Not: lambda run, e, done, mask: np.logical_not(done[id(e.a)]),
    E.And: _Run.logical,
    E.Or: _Run.logical,
    E.Let: _Run.let,
    E.Select: _select,
    E.Cast: lambda run, e, done, mask: dtypes.convert(done[id(e.value)], dtypes.element(e.dtype))[()],
    E.Ramp: _ramp,
    E.Broadcast: lambda run, e, done, mask: np.full((e.lanes,), done[id(e.value)]),
    E.Shuffle: _shuffle,
    BufferLoad: _Run.load,
    Call: _Run.intrinsic,
}

_STATEMENTS: dict[type, Callable[[_Run, Any], None]] = {
    SeqStmt: _Run.run_seq,
    For: _Run.run_for,
    While: _Run.run_while,
    IfThenElse: _Run.run_if,
    BufferStore: _Run.run_store,
    SBlockRealize: _Run.run_block,
    AllocBuffer: _Run.run_alloc,
    DeclBuffer: _Run.run_decl,
    Bind: _Run.run_bind,
    AssertStmt: _Run.run_assert,
    Evaluate: _Run.run_evaluate,
    AttrStmt: _Run.run_attr,
    Break: _Run.run_break,
    Continue: _Run.run_continue,
    Return: _Run.run_return,
}


# ---------------------------------------------------------------------------------------------------- vectorised nests


def run_nest(run: _Run, root: For) -> bool:
    """Run a perfect nest around one block over its data-parallel loops at once; False when that is not allowed."""
    loops, leaf = _perfect_nest(root)
    if leaf is None:
        return False
    parallel = parallel_loops(loops, leaf)
    if parallel is None:
        return False
    extents = {id(loop.loop_var): _range_of(run, loop) for loop in loops}
    chosen: list[For] = []
    lanes = 1
    for loop in reversed(parallel):
        if lanes * len(extents[id(loop.loop_var)]) > MAX_LANES and chosen:
            break
        lanes *= len(extents[id(loop.loop_var)])
        chosen.insert(0, loop)
    for position, loop in enumerate(chosen):
        shape = [1] * len(chosen)
        shape[position] = -1
        kind = dtypes.to_numpy(loop.loop_var.dtype)
        values = np.array(extents[id(loop.loop_var)], dtype=kind)
        run.values[id(loop.loop_var)] = values.reshape(shape)
    if lanes == 0:
        return True
    rest = [loop for loop in loops if not any(loop is c for c in chosen)]
    ranges = [extents[id(loop.loop_var)] for loop in rest]
    empty = [loop for loop, values in zip(rest, ranges, strict=True) if not values]
    if empty:
        if _only_reduce(empty, leaf):
            _initialise(run, [loop for loop in rest if loop not in empty], leaf)
        return True
    for point in itertools.product(*ranges):
        for loop, value in zip(rest, point, strict=True):
            run.values[id(loop.loop_var)] = dtypes.to_numpy(loop.loop_var.dtype).type(value)
        _run_lanes(run, leaf)
    return True


def run_empty_reduction(run: _Run, root: For) -> None:
    """A reduction over nothing is its initial value: when the loops below an empty one only drive reduction variables,
    the block's ``init`` still runs, once for each point of the other loops."""
    loops, leaf = _perfect_nest(root)
    if leaf is None or leaf.block.init is None:
        return
    ranges = [(loop, _range_of(run, loop)) for loop in loops]
    empty = [loop for loop, values in ranges if not values]
    if _only_reduce(empty, leaf):
        _initialise(run, [loop for loop, values in ranges if values], leaf)


def _only_reduce(loops: Sequence[For], leaf: SBlockRealize) -> bool:
    """Whether the loops drive no iteration variable but reductions."""
    ids = {id(loop.loop_var) for loop in loops}
    return leaf.block.init is not None and all(
        iter_var.iter_type is IterType.REDUCE or not any(id(n) in ids for n in post_order(value))
        for iter_var, value in zip(leaf.block.iter_vars, leaf.iter_values, strict=True)
    )


def _initialise(run: _Run, loops: Sequence[For], leaf: SBlockRealize) -> None:
    block = leaf.block
    assert block.init is not None
    spatial = [loop for loop in loops if not _only_reduce([loop], leaf)]
    for point in itertools.product(*(_range_of(run, loop) for loop in spatial)):
        for loop, value in zip(spatial, point, strict=True):
            run.values[id(loop.loop_var)] = dtypes.to_numpy(loop.loop_var.dtype).type(value)
        for iter_var, binding in zip(block.iter_vars, leaf.iter_values, strict=True):
            source = iter_var.dom.min if iter_var.iter_type is IterType.REDUCE else binding
            run.values[id(iter_var.var)] = run.eval(source)
        run.run(block.init)


def _range_of(run: _Run, loop: For) -> range:
    low = int(run.eval(loop.min))
    return range(low, low + int(run.eval(loop.extent)))


def _perfect_nest(root: For) -> tuple[list[For], SBlockRealize | None]:
    loops: list[For] = []
    current: Stmt = root
    while isinstance(current, For) and current.step is None:
        loops.append(current)
        current = current.body
    simple = isinstance(current, SBlockRealize) and isinstance(current.block.body, BufferStore)
    return loops, current if simple and isinstance(current, SBlockRealize) else None


def parallel_loops(loops: Sequence[For], leaf: SBlockRealize) -> list[For] | None:
    """The loops that may run all at once, outer first; None when the nest must run as written."""
    block = leaf.block
    store = block.body
    assert isinstance(store, BufferStore)
    plain_init = block.init is None or (isinstance(block.init, BufferStore) and block.init.buffer is store.buffer)
    if block.alloc_buffers or block.match_buffers or not plain_init:
        return None
    loop_ids = {id(loop.loop_var) for loop in loops}
    if any(id(n) in loop_ids for loop in loops for e in (loop.min, loop.extent) for n in post_order(e)):
        return None  # a triangular nest
    by_var = {id(loop.loop_var): loop for loop in loops}
    stored = [id(i) for i in store.indices]
    found: list[For] = []
    for iter_var, value in zip(block.iter_vars, leaf.iter_values, strict=True):
        if iter_var.iter_type is IterType.DATA_PAR and isinstance(value, Var) and id(value) in by_var:
            if id(iter_var.var) in stored and not any(by_var[id(value)] is f for f in found):
                found.append(by_var[id(value)])
    if not found or not _reads_only_itself(store, block) or _has_vectors(block):
        return None
    # a parallel loop must drive nothing but its own iteration variable
    for loop in found:
        users = [v for v in leaf.iter_values if any(n is loop.loop_var for n in post_order(v))]
        if len(users) != 1:
            return None
    return [loop for loop in loops if any(loop is f for f in found)]


def _reads_only_itself(store: BufferStore, block: SBlock) -> bool:
    """The stored buffer is read at the stored place only."""
    place = [id(i) for i in store.indices]
    statements: list[Node] = [store, *([block.init] if block.init is not None else [])]
    for statement in statements:
        for found in post_order(statement):
            if (
                isinstance(found, BufferLoad)
                and found.buffer is store.buffer
                and [id(i) for i in found.indices] != place
            ):
                return False
    if isinstance(block.init, BufferStore):
        return [id(i) for i in block.init.indices] == place
    return True


def _has_vectors(block: SBlock) -> bool:
    return any(isinstance(n, (E.Ramp, E.Broadcast, E.Shuffle)) for n in post_order(block))


def _run_lanes(run: _Run, leaf: SBlockRealize) -> None:
    block = leaf.block
    for iter_var, value in zip(block.iter_vars, leaf.iter_values, strict=True):
        run.values[id(iter_var.var)] = dtypes.convert(run.eval(value), iter_var.var.dtype)
    predicate = run.eval(leaf.predicate)
    mask = None if np.ndim(predicate) == 0 else predicate
    if mask is None and not bool(predicate):
        return
    if block.init is not None:
        first = [run.values[id(it.var)] == run.eval(it.dom.min) for it in _reduce_vars(block)]
        start = np.logical_and.reduce(np.broadcast_arrays(*first)) if first else np.bool_(True)
        _masked_store(run, block.init, start if mask is None else start & mask)
    _masked_store(run, block.body, mask)


def _reduce_vars(block: SBlock) -> Iterator[Any]:
    return (it for it in block.iter_vars if it.iter_type is IterType.REDUCE)


def _masked_store(run: _Run, stmt: Stmt, mask: Array | None) -> None:
    assert isinstance(stmt, BufferStore)
    if mask is not None and np.ndim(mask) == 0:
        if not bool(mask):
            return
        mask = None
    if mask is None:
        run.run_store(stmt)
        return
    array = run.buffers[id(stmt.buffer)]
    value = run.eval(stmt.value, mask)
    index = [run.eval(i, mask) for i in stmt.indices]
    check_bounds(stmt, tuple(index), array.shape, mask)
    *index, value, mask = np.broadcast_arrays(*index, value, mask)
    array[tuple(i[mask] for i in index)] = value[mask]
