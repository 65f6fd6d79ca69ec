"""Scheduling by hand: a function, handles to its blocks and loops, and primitives that rewrite it.

    sch = Schedule(func)
    block = sch.get_sblock("Y")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 4])
    sch.reorder(i0, j, k, i1)
    sch.unroll(i1)
    func = sch.func

Every primitive checks that it keeps the meaning, and raises `ScheduleError` naming what stands in the way. What may
change is the order in which a floating-point reduction is summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from supple.base.registry import did_you_mean
from supple.ir.expr import Var
from supple.ir.loop import For, ForKind, PrimFunc, SBlockRealize
from supple.ir.node import Expr, Stmt
from supple.schedule import move, transform_loops
from supple.schedule.errors import ScheduleError
from supple.schedule.tree import blocks, enclosing_loops, find_loop


@dataclass(frozen=True)
class BlockRV:
    """A handle to a block, by its name (unique in a schedule)."""

    name: str


@dataclass(frozen=True)
class LoopRV:
    """A handle to a loop, by its variable."""

    var: Var

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LoopRV) and other.var is self.var

    def __hash__(self) -> int:
        return id(self.var)


class Schedule:
    """A loop function being rewritten. ``func`` is its present form."""

    def __init__(self, func: PrimFunc) -> None:
        if not isinstance(func, PrimFunc):
            raise TypeError(f"Schedule takes a loop function, got {type(func).__name__}")
        self.func = func

    # ----------------------------------------------------------------------------------------------------- handles

    def get_sblock(self, name: str) -> BlockRV:
        """The block of that name; raises `ScheduleError` when there is none, or more than one."""
        names = [realize.block.name_hint for realize in blocks(self.func)]
        if names.count(name) != 1:
            count = names.count(name)
            if count:
                raise ScheduleError(f"the function has {count} blocks named {name!r}")
            raise ScheduleError(f"the function has no block {name!r}{did_you_mean(name, names)}")
        return BlockRV(name)

    get_block = get_sblock

    def get_loops(self, block: BlockRV) -> list[LoopRV]:
        """The loops around a block, from the outside in."""
        return [LoopRV(loop.loop_var) for loop in enclosing_loops(self.func, self._block(block))]

    def get(self, handle: BlockRV | LoopRV) -> SBlockRealize | For:
        """The statement of a handle."""
        return self._block(handle) if isinstance(handle, BlockRV) else find_loop(self.func, handle.var)

    def _block(self, handle: BlockRV) -> SBlockRealize:
        self.get_sblock(handle.name)
        return next(b for b in blocks(self.func) if b.block.name_hint == handle.name)

    def _set(self, body: Stmt) -> None:
        self.func = PrimFunc(self.func.params, body, self.func.ret_ty, self.func.attrs, span=self.func.span)

    # -------------------------------------------------------------------------------------------------------- loops

    def split(self, loop: LoopRV, factors: Sequence[int | Expr | None]) -> list[LoopRV]:
        """One loop becomes several nested ones; one factor may be None (what remains).

        ``for i in range(n)`` -> ``for i_0 in range(ceildiv(n, 4)): for i_1 in range(4)`` with ``i = i_0 * 4 + i_1``,
        run where ``i < n`` unless the factors divide ``n``.
        """
        body, made = transform_loops.split(self.func.body, find_loop(self.func, loop.var), factors)
        self._set(body)
        return [LoopRV(v) for v in made]

    def fuse(self, *loops: LoopRV) -> LoopRV:
        """Nested loops become one.

        ``for i in range(n): for j in range(m)`` -> ``for f in range(n * m)`` with ``i = f // m``, ``j = f % m``.
        """
        body, var = transform_loops.fuse(self.func.body, [find_loop(self.func, loop.var) for loop in loops])
        self._set(body)
        return LoopRV(var)

    def reorder(self, *loops: LoopRV) -> None:
        """Loops of one nest in the order given; loops between them that are not named keep their places.

        ``for i: for j: for k`` -> ``for k: for i: for j`` by ``reorder(k, i, j)``.
        """
        self._set(transform_loops.reorder(self.func.body, [find_loop(self.func, loop.var) for loop in loops]))

    def unroll(self, loop: LoopRV) -> None:
        """``for i in range(4)`` -> ``for i in T.unroll(4)``. The extent must be a constant."""
        self._set(transform_loops.annotate(self.func.body, find_loop(self.func, loop.var), ForKind.UNROLLED))

    def vectorize(self, loop: LoopRV) -> None:
        """``for i in range(8)`` -> ``for i in T.vectorized(8)``. The loop must be data parallel and constant."""
        self._set(transform_loops.annotate(self.func.body, find_loop(self.func, loop.var), ForKind.VECTORIZED))

    def parallel(self, loop: LoopRV) -> None:
        """``for i in range(n)`` -> ``for i in T.parallel(n)``. The loop must be data parallel."""
        self._set(transform_loops.annotate(self.func.body, find_loop(self.func, loop.var), ForKind.PARALLEL))

    # ------------------------------------------------------------------------------------------------------- blocks

    def decompose_reduction(self, block: BlockRV, loop: LoopRV) -> BlockRV:
        """The initialisation becomes a block of its own, before ``loop``.

        ``for i: for k: [init C = 0; C += A]`` -> ``for i: [C = 0]; for k: [C += A]`` by the loop ``k``.
        """
        body, name = transform_loops.decompose_reduction(
            self.func.body, self._block(block), find_loop(self.func, loop.var), self.get_loops(block)[0].var
        )
        self._set(body)
        return BlockRV(name)

    def cache_read(self, block: BlockRV, read_buffer_index: int, storage_scope: str) -> BlockRV:
        """The block reads a copy: ``C[i] = A[i]`` -> ``A_local[i] = A[i]; C[i] = A_local[i]``."""
        body, name = move.cache_read(self.func, self._block(block), read_buffer_index, storage_scope)
        self._set(body)
        return BlockRV(name)

    def cache_write(self, block: BlockRV, write_buffer_index: int, storage_scope: str) -> BlockRV:
        """The block writes a copy: ``C[i] = A[i]`` -> ``C_local[i] = A[i]; C[i] = C_local[i]``."""
        body, name = move.cache_write(self.func, self._block(block), write_buffer_index, storage_scope)
        self._set(body)
        return BlockRV(name)

    def pack(self, block: BlockRV, read_buffer_index: int, axis: int, width: int) -> BlockRV:
        """The block reads a copy whose ``axis`` is in panels, innermost, filled up with zeros.

        ``C[i, j] += A[i, k] * B[k, j]`` -> ``Bp[o, k, p] = B[k, o*16 + p]; C[i, j] += A[i, k] * Bp[j//16, k, j%16]``.
        """
        body, name = move.pack(self.func, self._block(block), read_buffer_index, axis, width)
        self._set(body)
        return BlockRV(name)

    def compute_at(self, block: BlockRV, loop: LoopRV) -> None:
        """A producer moves into a loop of its consumers, and computes only what an iteration reads.

        ``for i: [B[i] = ..]; for i: [C[i] = B[i]]`` -> ``for i: { [B[i] = ..]; [C[i] = B[i]] }``.
        """
        self._set(move.compute_at(self.func, self._block(block), find_loop(self.func, loop.var)))

    def reverse_compute_at(self, block: BlockRV, loop: LoopRV) -> None:
        """A consumer moves into a loop of its producer, and uses what an iteration has finished.

        ``for i: for j: [B[i,j] = ..]; for i: for j: [C[i,j] = B[i,j]]`` -> ``for i: { for j: [B]; for j: [C] }``.
        """
        self._set(move.reverse_compute_at(self.func, self._block(block), find_loop(self.func, loop.var)))

    def compute_inline(self, block: BlockRV) -> None:
        """A data-parallel producer is computed where it is read.

        ``B[i] = A[i] + 1; C[i] = B[i]`` -> ``C[i] = A[i] + 1``.
        """
        self._set(move.compute_inline(self.func, self._block(block)))
