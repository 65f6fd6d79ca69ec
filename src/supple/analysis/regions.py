"""Which parts of which buffers a block's body reads and writes (``T.reads`` and ``T.writes`` where not given).

An index is bounded by interval arithmetic over the loops inside the block; one access of a point has extent 1. What
cannot be bounded covers the whole dimension, so a region may be larger than what is touched, never smaller.
"""

from __future__ import annotations

from collections.abc import Iterable

from supple.base import dtypes
from supple.ir.expr import (
    Add,
    BufferLoad,
    Cast,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Max,
    Min,
    Mul,
    Ramp,
    Range,
    Sub,
    Var,
    const,
    match_dtypes,
    scalar_dtype,
)
from supple.ir.loop import (
    AllocBuffer,
    Bind,
    BufferRegion,
    BufferStore,
    DeclBuffer,
    For,
    MatchBufferRegion,
    SBlock,
    SBlockRealize,
    buffer_type,
)
from supple.ir.node import Expr, Node, Role, Stmt, fields
from supple.ir.types import BufferType
from supple.ir.walk import containing, post_order

Interval = tuple[Expr, Expr]  # inclusive bounds


def infer_regions(
    body: Stmt, init: Stmt | None, local: Iterable[Var] = (), matches: Iterable[MatchBufferRegion] = ()
) -> tuple[tuple[BufferRegion, ...], tuple[BufferRegion, ...]]:
    """The read and written regions of a block with that body, in order of first access.

    ``local`` are buffers that the block itself allocates: they are not part of its interface. ``matches`` are views of
    regions of other buffers: an access to the view counts as an access to the whole region. Buffers that the block
    both initialises and updates (a reduction's result) are reported as written only.
    """
    scan = _Scan({id(b) for b in local})
    if init is not None:
        scan.run(init)
    scan.run(body)
    for match in matches:
        scan.match(match)
    written = set() if init is None else set(scan.writes)
    skip = scan.local
    return (
        tuple(r.finish() for key, r in scan.reads.items() if key not in skip and key not in written),
        tuple(r.finish() for key, r in scan.writes.items() if key not in skip),
    )


class _Region:
    """The union of the accesses to one buffer: per dimension an interval, or None for all of it."""

    def __init__(self, buffer: Var) -> None:
        self.buffer = buffer
        self.dims: list[Interval | None] | None = None

    def add(self, dims: list[Interval | None]) -> None:
        if self.dims is None:
            self.dims = dims
            return
        self.dims = [None if a is None or b is None else _hull(a, b) for a, b in zip(self.dims, dims, strict=True)]

    def finish(self) -> BufferRegion:
        ranges: list[Range] = []
        shape = buffer_type(self.buffer).shape
        for extent, dim in zip(shape, self.dims or [None] * len(shape), strict=True):
            if dim is None:
                ranges.append(Range(const(0, scalar_dtype(extent)), extent))
            else:
                ranges.append(Range(dim[0], _extent(dim)))
        return BufferRegion(self.buffer, tuple(ranges))


class _Scan:
    """Collects accesses. Loop variables inside the block are bounded by ``bounds``; others stand for themselves."""

    def __init__(self, local: set[int]) -> None:
        self.local = set(local)
        self.reads: dict[int, _Region] = {}
        self.writes: dict[int, _Region] = {}
        self.bounds: dict[int, Interval | None] = {}

    def run(self, root: Stmt) -> None:
        stack: list[Node] = [root]
        seen: set[int] = set()  # what an expression touches does not depend on how often it is used
        while stack:
            current = stack.pop()
            if isinstance(current, Expr):
                if id(current) in seen:
                    continue
                seen.add(id(current))
            if isinstance(current, BufferLoad):
                self._access(self.reads, current.buffer, current.indices)
                stack.extend(reversed(current.indices))
                continue
            if isinstance(current, BufferStore):
                self._access(self.writes, current.buffer, current.indices)
                stack.extend(reversed((*current.indices, current.value)))
                continue
            if isinstance(current, SBlockRealize):
                self._nested(current)
                stack.extend(reversed((*current.iter_values, current.predicate)))
                continue
            if isinstance(current, Var):
                if isinstance(current.ty, BufferType):  # its address: anything may happen to it
                    everything: list[Interval | None] = [None] * len(current.ty.shape)
                    self._region(self.reads, current).add(list(everything))
                    self._region(self.writes, current).add(everything)
                continue
            self._define(current)
            stack.extend(reversed(list(_uses(current))))

    def match(self, match: MatchBufferRegion) -> None:
        """Count accesses to a view as accesses to its source."""
        key = id(match.buffer)
        for into in (self.reads, self.writes):
            if into.pop(key, None) is not None:
                self._region(into, match.source.buffer).add([self._range(r) for r in match.source.region])

    def _define(self, current: Node) -> None:
        if isinstance(current, For):
            low = self._interval(current.min)
            last = self._interval(_sub(_add(current.min, current.extent), const(1, scalar_dtype(current.extent))))
            self.bounds[id(current.loop_var)] = (low[0], last[1]) if low is not None and last is not None else None
        elif isinstance(current, (Bind, Let)):
            self.bounds[id(current.var)] = self._interval(current.value)
        elif isinstance(current, (AllocBuffer, DeclBuffer)):
            self.local.add(id(current.buffer))

    def _nested(self, realize: SBlockRealize) -> None:
        block: SBlock = realize.block
        for iter_var, value in zip(block.iter_vars, realize.iter_values, strict=True):
            self.bounds[id(iter_var.var)] = self._interval(value)
        for into, regions in ((self.reads, block.reads), (self.writes, block.writes)):
            for region in regions:
                dims = [self._range(r) for r in region.region]
                self._region(into, region.buffer).add(dims)

    def _range(self, r: Range) -> Interval | None:
        low = self._interval(r.min)
        last = self._interval(_sub(_add(r.min, r.extent), const(1, scalar_dtype(r.extent))))
        return (low[0], last[1]) if low is not None and last is not None else None

    def _region(self, into: dict[int, _Region], buffer: Var) -> _Region:
        return into.setdefault(id(buffer), _Region(buffer))

    def _access(self, into: dict[int, _Region], buffer: Var, indices: tuple[Expr, ...]) -> None:
        self._region(into, buffer).add([self._interval(i) for i in indices])

    def _interval(self, index: Expr) -> Interval | None:
        """Bounds of an integer expression over the variables in ``bounds``, or None."""
        moving = containing(index, self._is_moving)
        if id(index) not in moving:
            return (index, index) if dtypes.lanes(scalar_dtype(index)) == 1 else None
        done: dict[int, Interval | None] = {}
        for current in post_order(index):
            if id(current) in moving:
                done[id(current)] = self._bound(current, done)
            elif isinstance(current, Expr):
                done[id(current)] = (current, current)
        return done[id(index)]

    def _is_moving(self, n: Node) -> bool:
        """Whether a value changes while the block runs: a variable of its loops, lanes, or what the block keeps in a
        buffer of its own (which has no name outside)."""
        return id(n) in self.bounds or isinstance(n, Ramp) or (isinstance(n, BufferLoad) and id(n.buffer) in self.local)

    def _bound(self, e: Node, done: dict[int, Interval | None]) -> Interval | None:
        """Bounds of what moves, from those of its operands."""
        if isinstance(e, Var) and id(e) in self.bounds:
            return self.bounds[id(e)]
        if isinstance(e, (Add, Sub, Mul, FloorDiv, FloorMod, Min, Max)):
            a, b = done[id(e.a)], done[id(e.b)]
            if a is None or b is None:
                return (const(0, e.dtype), _less(b[1])) if _positive_mod(e) and b is not None else None
            return _combine(e, a, b)
        if isinstance(e, Cast) and dtypes.is_int(e.dtype):
            inner = done[id(e.value)]
            return None if inner is None else (Cast(e.dtype, inner[0]), Cast(e.dtype, inner[1]))
        if isinstance(e, Ramp) and isinstance(e.stride, IntImm):
            base = done[id(e.base)]
            if base is None:
                return None
            span = const(e.stride.value * (e.lanes - 1), scalar_dtype(e.base))
            return (base[0], _add(base[1], span)) if e.stride.value >= 0 else (_add(base[0], span), base[1])
        return None


def _uses(current: Node) -> Iterable[Node]:
    """The children of a statement or expression without the variables it defines."""
    for name, role in fields(type(current)):
        if role is Role.USE:
            value = getattr(current, name)
            if isinstance(value, Node):
                yield value
            elif isinstance(value, tuple):
                for item in value:
                    if isinstance(item, Node):
                        yield item
            elif isinstance(value, dict):
                yield from (v for v in value.values() if isinstance(v, Node))


def _positive_mod(e: Expr) -> bool:
    return isinstance(e, FloorMod) and isinstance(e.b, IntImm) and e.b.value > 0


def _combine(e: Expr, a: Interval, b: Interval) -> Interval | None:
    if a[0] is a[1] and b[0] is b[1]:
        return (e, e)
    if isinstance(e, Add):
        return _add(a[0], b[0]), _add(a[1], b[1])
    if isinstance(e, Sub):
        return _sub(a[0], b[1]), _sub(a[1], b[0])
    if isinstance(e, Mul):
        return _scaled(a, b) or _scaled(b, a)
    divisor = b[0] if b[0] is b[1] else None
    if isinstance(divisor, IntImm) and divisor.value > 0:
        if isinstance(e, FloorDiv):
            return _floordiv(a[0], divisor), _floordiv(a[1], divisor)
        if isinstance(e, FloorMod):
            return const(0, divisor.dtype), const(divisor.value - 1, divisor.dtype)
    if isinstance(e, (Min, Max)):
        kind = type(e)
        return kind(a[0], b[0]), kind(a[1], b[1])
    return None


def _scaled(a: Interval, factor: Interval) -> Interval | None:
    k = factor[0]
    if factor[0] is not factor[1] or not isinstance(k, IntImm):
        return None
    low, high = _mul(a[0], k), _mul(a[1], k)
    return (low, high) if k.value >= 0 else (high, low)


# ------------------------------------------------------------------------------------- arithmetic that folds constants


def _add(a: Expr, b: Expr) -> Expr:
    a, b = match_dtypes(a, b)
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return const(a.value + b.value, a.dtype)
    if isinstance(a, IntImm):
        a, b = b, a
    if not isinstance(b, IntImm):
        return Add(a, b)
    value = b.value
    while isinstance(a, (Add, Sub)) and isinstance(a.b, IntImm):
        value += a.b.value if isinstance(a, Add) else -a.b.value
        a = a.a
    if isinstance(a, IntImm):
        return const(a.value + value, b.dtype)
    if value == 0:
        return a
    return Sub(a, const(-value, b.dtype)) if value < 0 else Add(a, const(value, b.dtype))


def _sub(a: Expr, b: Expr) -> Expr:
    a, b = match_dtypes(a, b)
    if a is b:
        return const(0, scalar_dtype(a))
    if isinstance(b, IntImm):
        return _add(a, const(-b.value, b.dtype))
    return Sub(a, b)


def _mul(a: Expr, k: IntImm) -> Expr:
    if isinstance(a, IntImm):
        return const(a.value * k.value, k.dtype)
    return a if k.value == 1 else Mul(a, k)


def _floordiv(a: Expr, divisor: IntImm) -> Expr:
    if isinstance(a, IntImm):
        return const(a.value // divisor.value, divisor.dtype)
    return FloorDiv(a, divisor)


def _less(e: Expr) -> Expr:
    return _sub(e, const(1, scalar_dtype(e)))


def _linear(e: Expr) -> tuple[dict[int, int], int]:
    """``sum(coefficient * atom) + constant``; atoms by identity."""
    terms: dict[int, int] = {}
    constant = 0
    scales = {id(e): 1}  # by how much each part counts, complete once all that use it were seen

    def part(of: Expr, scale: int) -> None:
        scales[id(of)] = scales.get(id(of), 0) + scale

    for current in reversed(list(post_order(e))):
        scale = scales.get(id(current), 0)
        if scale == 0:
            continue
        if isinstance(current, IntImm):
            constant += scale * current.value
        elif isinstance(current, (Add, Sub)):
            part(current.a, scale)
            part(current.b, scale if isinstance(current, Add) else -scale)
        elif isinstance(current, Mul) and isinstance(current.b, IntImm):
            part(current.a, scale * current.b.value)
        elif isinstance(current, Mul) and isinstance(current.a, IntImm):
            part(current.b, scale * current.a.value)
        else:
            terms[id(current)] = scale
    return terms, constant


def _difference(a: Expr, b: Expr) -> int | None:
    """``a - b`` if it is a constant."""
    if a is b:
        return 0
    terms_a, constant_a = _linear(a)
    terms_b, constant_b = _linear(b)
    return constant_a - constant_b if terms_a == terms_b else None


def _extent(dim: Interval) -> Expr:
    low, high = dim
    dtype = scalar_dtype(low)
    apart = _difference(high, low)
    if apart is not None:
        return const(apart + 1, dtype)
    return _sub(_add(high, const(1, scalar_dtype(high))), low)


def _hull(a: Interval, b: Interval) -> Interval | None:
    low, high = _difference(a[0], b[0]), _difference(a[1], b[1])
    if low is None or high is None:
        return None
    return (a[0] if low <= 0 else b[0]), (a[1] if high >= 0 else b[1])
