"""Indices, addresses, loads and stores. All address arithmetic is 64-bit; an index is a polynomial whose terms are
added from the outermost scope inwards, so that what does not depend on a loop is computed before it."""

from __future__ import annotations

from dataclasses import dataclass, field

from supple.analysis.indices import counted_from_end
from supple.base import dtypes
from supple.base.errors import NotSupportedError, out_of_bounds
from supple.base.source import Span
from supple.codegen import kernel_integer as integer
from supple.codegen.kernel_builder import Value, llvm_type, memory_type
from supple.codegen.kernel_state import Lanes, State, Storage, Task
from supple.ir import expr as E
from supple.ir.expr import Var
from supple.ir.loop import buffer_type
from supple.ir.node import Expr
from supple.sym import poly as P
from supple.sym.poly import Poly


@dataclass(slots=True)
class Linear:
    """``const + sum(coefficient * product of values) + stride * lane`` (``general``: added as a vector)."""

    const: int = 0
    terms: list[tuple[int, tuple[Value, ...]]] = field(default_factory=list)
    stride: int = 0
    lanes: int = 1
    general: list[tuple[int, tuple[Value, ...]]] = field(default_factory=list)


def decompose(state: State, p: Poly) -> Task:
    """The `Linear` form of an index, its atoms emitted."""
    linear = Linear()
    pending = [p]
    while pending:
        for monomial, coefficient in pending.pop().terms.items():
            values: list[Value] = []
            ramp: tuple[Poly, int, int] | None = None  # base, stride, lanes
            for identifier in monomial:
                atom = P.atom_of(identifier)
                part = _ramp(state, atom) if ramp is None else None
                if part is not None:
                    ramp = part
                    continue
                made = yield _atom(state, atom)
                if isinstance(made, int):
                    coefficient *= made
                else:
                    values.append(made)
            if ramp is not None:
                base, stride, lanes = ramp
                linear.lanes = max(linear.lanes, lanes)
                if not values:
                    linear.stride += coefficient * stride
                    pending.append(base.scale(coefficient))
                    continue
                vector = yield _ramp_value(state, base, stride, lanes)
                values.append(vector)
            if not values:
                linear.const += coefficient
            elif any(dtypes.lanes(v.dtype) > 1 for v in values):
                linear.lanes = max(linear.lanes, *(dtypes.lanes(v.dtype) for v in values))
                linear.general.append((coefficient, tuple(values)))
            elif coefficient:
                linear.terms.append((coefficient, tuple(values)))
    return linear


def _ramp(state: State, atom: P.Atom) -> tuple[Poly, int, int] | None:
    if atom.kind == "var" and atom.var is not None:
        bound = state.variables.get(id(atom.var))
        return (bound.base, 1, bound.count) if isinstance(bound, Lanes) else None
    if isinstance(atom.opaque, E.Ramp):
        stride = state.poly(atom.opaque.stride).constant
        return None if stride is None else (state.poly(atom.opaque.base), stride, atom.opaque.lanes)
    if isinstance(atom.opaque, E.Broadcast):
        return state.poly(atom.opaque.value), 0, atom.opaque.lanes
    return None


def _ramp_value(state: State, base: Poly, stride: int, lanes: int) -> Task:
    b = state.builder
    start = yield poly_value(state, base)
    vector = dtypes.vector("int64", lanes)
    steps = b.op("mul", b.lane_numbers(vector), b.const(stride, vector))
    return b.op("add", b.splat(start, lanes), steps)


def _atom(state: State, atom: P.Atom) -> Task:
    """An atom's value: a Python int when it is known, else an int64 `Value` (scalar or vector)."""
    b = state.builder
    if atom.kind == "var":
        assert atom.var is not None
        bound = state.lookup(atom.var)
        if isinstance(bound, int):
            return bound
        if isinstance(bound, Lanes):
            made = yield _ramp_value(state, bound.base, 1, bound.count)
            return made
        return integer.widen(b, bound)
    if atom.kind == "opaque":
        value = yield atom.opaque
        return integer.widen(b, value)
    known = state.emitted(atom)
    if known is not None:
        return known
    args: list[Value] = []
    for arg in atom.args:
        made = yield poly_value(state, arg)
        args.append(made)
    lanes = max(dtypes.lanes(a.dtype) for a in args)
    left, right = (b.splat(a, lanes) for a in args)
    operation = integer.POLY_OPERATIONS.get(atom.kind)
    if operation is None:
        raise NotSupportedError(f"{state.name}: index operation {atom.kind} is not supported")
    value = operation(b, left, right)
    state.remember(atom, value)
    return value


def poly_value(state: State, p: Poly) -> Task:
    """The int64 value of an index."""
    linear = yield decompose(state, p)
    return linear_value(state, linear)


def linear_value(state: State, linear: Linear) -> Value:
    """The int64 value (a vector when it depends on lanes) of a decomposed index."""
    b = state.builder
    total: Value | None = None
    for term in _by_depth(state, linear.terms):
        total = term if total is None else b.op("add", total, term)
    if total is None:
        total = b.const(linear.const, "int64")
    elif linear.const:
        total = b.op("add", total, b.const(linear.const, "int64"))
    if linear.lanes == 1:
        return total
    vector = dtypes.vector("int64", linear.lanes)
    total = b.splat(total, linear.lanes)
    if linear.stride:
        steps = b.lane_numbers(vector)
        if linear.stride != 1:
            steps = b.op("mul", steps, b.const(linear.stride, vector))
        total = b.op("add", total, steps)
    for coefficient, values in linear.general:
        term = b.const(coefficient, vector)
        for value in values:
            term = b.op("mul", term, b.splat(value, linear.lanes))
        total = b.op("add", total, term)
    return total


def _by_depth(state: State, terms: list[tuple[int, tuple[Value, ...]]]) -> list[Value]:
    """One partial sum for each depth, outermost first."""
    b = state.builder
    sums: dict[int, Value] = {}
    for coefficient, values in terms:
        ordered = sorted(values, key=lambda v: (v.depth, v.ref))  # whatever order the symbols were met in
        product = ordered[0]
        for value in ordered[1:]:
            product = b.op("mul", product, value)
        if coefficient != 1:
            product = b.op("mul", product, b.const(coefficient, "int64"))
        known = sums.get(product.depth)
        sums[product.depth] = product if known is None else b.op("add", known, product)
    return [sums[depth] for depth in sorted(sums)]


def address(state: State, storage: Storage, linear: Linear) -> Value:
    """The address of the first lane's element."""
    b = state.builder
    pointer = storage.pointer
    element = memory_type(storage.dtype)
    for offset in _by_depth(state, linear.terms):
        pointer = b.pure(f"getelementptr {element}, ptr {pointer.ref}, i64 {offset.ref}", "handle", (pointer, offset))
    if linear.const:
        pointer = b.pure(f"getelementptr {element}, ptr {pointer.ref}, i64 {linear.const}", "handle", (pointer,))
    return pointer


def flat_index(state: State, buffer: Var, indices: tuple[Expr, ...], span: Span | None) -> Task:
    """The checked position of an element, in elements, as a `Linear`."""
    storage = state.buffer(buffer)
    polys = [state.poly(index) for index in indices]
    if not state.proved:
        for axis, (index, extent) in enumerate(zip(polys, buffer_type(buffer).shape, strict=True)):
            yield _check(state, buffer, axis, index, state.poly(extent), span, counted_from_end(indices[axis]))
    total = storage.offset
    for index, stride in zip(polys, storage.strides, strict=True):
        total = total + index * stride
    linear = yield decompose(state, total)
    return linear


def _check(
    state: State, buffer: Var, axis: int, index: Poly, extent: Poly, span: Span | None, written: Expr | None
) -> Task:
    """Fail unless the index lies inside; ``written`` is the index as the program has it if it counts from the end."""
    if state.context.non_negative(index) and state.context.non_negative(extent - index - P.ONE):
        return
    b = state.builder
    size = yield poly_value(state, extent)
    linear = yield decompose(state, index)
    vector = linear_value(state, linear)
    if linear.lanes == 1:
        positions = [vector]
    elif linear.general:
        positions = [b.extract(vector, lane) for lane in range(linear.lanes)]
    else:  # evenly spaced: the ends tell
        positions = [b.extract(vector, 0), b.extract(vector, linear.lanes - 1)]
    shown = positions
    if written is not None and linear.lanes == 1:
        value = yield written
        shown = [integer.widen(b, value)]
    message, expected = out_of_bounds("{0}", axis, buffer.name, "{1}", shown is not positions)
    for position, value in zip(positions, shown, strict=True):
        inside = b.compare("icmp ult", position, size)
        state.fail_unless(inside, "index", f"{state.name}: {message}", span, value, size, expected=expected)


def load(state: State, node: E.BufferLoad) -> Task:
    """A scalar or vector load; lanes next to each other are one vector load, every second element is two."""
    storage = state.buffer(node.buffer)
    linear: Linear = yield flat_index(state, node.buffer, node.indices, node.span)
    if linear.lanes == 1:
        return _load(state, storage, address(state, storage, linear), storage.dtype)
    b = state.builder
    dtype = dtypes.vector(storage.dtype, linear.lanes)
    if not linear.general and linear.stride == 1:
        return _load(state, storage, address(state, storage, linear), dtype)
    if not linear.general and linear.stride == 0:
        return b.splat(_load(state, storage, address(state, storage, linear), storage.dtype), linear.lanes)
    if not linear.general and linear.stride == 2 and linear.lanes > 2:
        return _every_second(state, storage, linear, dtype)
    vector = Value("zeroinitializer", dtype)
    for lane, pointer in enumerate(_lane_addresses(state, storage, linear)):
        vector = b.insert(vector, _load(state, storage, pointer, storage.dtype), lane)
    return vector


def _every_second(state: State, storage: Storage, linear: Linear, dtype: str) -> Value:
    """Lanes two elements apart, from two vectors that reach from the first to the last of them and no further."""
    b, lanes = state.builder, linear.lanes
    starts = (Linear(linear.const + skip, linear.terms) for skip in (0, lanes - 1))
    first, second = (_load(state, storage, address(state, storage, start), dtype) for start in starts)
    reached = (lanes + 1) // 2  # lanes that the first vector holds
    places = [2 * n if n < reached else lanes + 2 * n - (lanes - 1) for n in range(lanes)]
    mask, kind = ", ".join(f"i32 {place}" for place in places), llvm_type(dtype)
    return b.pure(
        f"shufflevector {kind} {first.ref}, {kind} {second.ref}, <{lanes} x i32> <{mask}>", dtype, (first, second), "s"
    )


def store(state: State, buffer: Var, indices: tuple[Expr, ...], value: Value, span: Span | None) -> Task:
    """A scalar or vector store. Lanes that share an element are stored in order."""
    storage = state.buffer(buffer)
    linear: Linear = yield flat_index(state, buffer, indices, span)
    lanes = max(linear.lanes, dtypes.lanes(value.dtype))
    b = state.builder
    if lanes == 1 or (linear.lanes == lanes and not linear.general and linear.stride == 1):
        _store(state, storage, address(state, storage, linear), b.splat(value, lanes))
        return
    linear.lanes = lanes
    vector = b.splat(value, lanes)
    for lane, pointer in enumerate(_lane_addresses(state, storage, linear)):
        _store(state, storage, pointer, b.extract(vector, lane))


def _lane_addresses(state: State, storage: Storage, linear: Linear) -> list[Value]:
    b = state.builder
    if not linear.general:
        terms, const, stride = linear.terms, linear.const, linear.stride
        return [address(state, storage, Linear(const + lane * stride, terms)) for lane in range(linear.lanes)]
    positions = linear_value(state, linear)
    found = []
    for lane in range(linear.lanes):
        position = b.extract(positions, lane)
        found.append(address(state, storage, Linear(0, [(1, (position,))])))
    return found


def _align(storage: Storage) -> int:
    return max(1, dtypes.nbytes(storage.dtype))


def _load(state: State, storage: Storage, pointer: Value, dtype: str) -> Value:
    b = state.builder
    loaded = b.here(f"load {memory_type(dtype)}, ptr {pointer.ref}, align {_align(storage)}", dtype, "x")
    if not dtypes.is_bool(dtype):
        return loaded
    zero = "0" if dtypes.lanes(dtype) == 1 else "zeroinitializer"
    return b.pure(f"icmp ne {memory_type(dtype)} {loaded.ref}, {zero}", dtype, (loaded,))


def _store(state: State, storage: Storage, pointer: Value, value: Value) -> None:
    b = state.builder
    kind = memory_type(value.dtype)
    text = value.ref
    if dtypes.is_bool(value.dtype):
        text = b.pure(f"zext {llvm_type(value.dtype)} {value.ref} to {kind}", value.dtype, (value,)).ref
    b.emit(f"store {kind} {text}, ptr {pointer.ref}, align {_align(storage)}")


def compact_strides(shape: list[Poly]) -> tuple[Poly, ...]:
    """Row-major element strides."""
    strides = [P.ONE]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides)) if shape else ()
