"""Which layouts of blocks and buffers go with given layouts of a loop function's outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from supple.ir.expr import BufferLoad, Range, Var, is_scalar, scalar_dtype
from supple.ir.loop import BufferStore, IndexMap, IterType, PrimFunc, SBlock, buffer_type
from supple.ir.node import Expr, Node
from supple.ir.structural import structural_equal
from supple.ir.types import prim_type
from supple.ir.walk import pre_order
from supple.sym.iter_map import IterMapLevel, detect_iter_map

Suggestions = dict[SBlock, dict[SBlock | Var, IndexMap]]


def suggest_layout_transforms(
    func: PrimFunc, write_buffer_transforms: Sequence[IndexMap | Callable[..., object]]
) -> Suggestions:
    """For each block the maps of its loops (under the block) and of its buffers that make the outputs, the last buffers
    of the function, have the given layouts.

    For ``c[i, j] = a[i, j] + b[j]`` and the output's layout ``lambda i, j: (i, j // 4, j % 4)`` these are the same map
    for the block, for ``c`` and for ``a``, and ``lambda j: (j // 4, j % 4)`` for ``b``. A block says nothing where its
    indices do not follow the output's dimensions in order, or where the map is not one to one over its loops; a buffer
    has one layout at most, the first that is found. Raises ``TypeError`` for what is no loop function or map, and
    ``ValueError`` for more maps than buffers or a map of another rank.
    """
    if not isinstance(func, PrimFunc):
        raise TypeError(f"suggest_layout_transforms: expected a loop function, got {func!r}")
    blocks = [b for b in pre_order(func.body) if isinstance(b, SBlock)]
    dtype = next((scalar_dtype(iv.var) for b in blocks for iv in b.iter_vars), "int64")
    known = _given(func, write_buffer_transforms, dtype)
    found: Suggestions = {}
    waiting = [access for access in map(_access, blocks) if access is not None]
    while waiting:  # an intermediate buffer's layout is known after the blocks that read it
        later = []
        for access in waiting:
            if id(access.target) in known:
                made = access.suggested(known)
                if made is not None:
                    found[access.block] = made
            else:
                later.append(access)
        if len(later) == len(waiting):
            break
        waiting = later
    return {block: found[block] for block in blocks if block in found}


def _given(func: PrimFunc, transforms: Sequence[IndexMap | Callable[..., object]], dtype: str) -> dict[int, IndexMap]:
    buffers = func.buffers
    if len(transforms) > len(buffers):
        raise ValueError(
            f"suggest_layout_transforms: {len(transforms)} layouts for a function of {len(buffers)} buffers"
        )
    known: dict[int, IndexMap] = {}
    for buffer, given in zip(buffers[len(buffers) - len(transforms) :], transforms, strict=True):
        rank = len(buffer_type(buffer).shape)
        if not isinstance(given, IndexMap):
            if not callable(given):
                raise TypeError(f"suggest_layout_transforms: expected a map of indices, got {given!r}")
            given = IndexMap.from_func(given, rank, index_dtype=dtype)
        if len(given.initial_indices) != rank:
            raise ValueError(
                f"suggest_layout_transforms: the layout of {buffer.name} takes {len(given.initial_indices)} indices, "
                f"but the buffer has {rank} dimensions"
            )
        known[id(buffer)] = given
    return known


_Layout = tuple[Var | None, ...]
"""For each dimension the one loop variable that it follows, or None where there is none."""


class _Access:
    """A block that writes one buffer: which loop variable each dimension of it, and of what it reads, follows."""

    def __init__(self, block: SBlock, target: Var, written: _Layout, read: Mapping[Var, _Layout]) -> None:
        self.block = block
        self.target = target
        self.written = written
        self.read = read

    def suggested(self, known: dict[int, IndexMap]) -> dict[SBlock | Var, IndexMap] | None:
        """The maps of the block and its buffers; those of buffers that had none are added to ``known``."""
        given = known[id(self.target)]
        loops = _extended(given, self.written, tuple(iv.var for iv in self.block.iter_vars))
        if loops is None or not self._is_bijective(loops):
            return None
        result: dict[SBlock | Var, IndexMap] = {self.block: loops, self.target: given}
        for buffer, layout in self.read.items():
            wish = _extended(given, self.written, layout)
            if wish is not None and structural_equal(known.setdefault(id(buffer), wish), wish):
                result[buffer] = wish
        return result

    def _is_bijective(self, loops: IndexMap) -> bool:
        ranges = {
            v: Range(iv.dom.min, iv.dom.extent)
            for v, iv in zip(loops.initial_indices, self.block.iter_vars, strict=True)
        }
        return bool(detect_iter_map(list(loops.final_indices), ranges, True, IterMapLevel.Bijective).indices)


def _access(block: SBlock) -> _Access | None:
    """How a block uses buffers; None for one around other blocks, or that writes several buffers, or one in ways."""
    inside = [n for n in pre_order(block) if n is not block]
    if not block.iter_vars or any(isinstance(n, SBlock) for n in inside):
        return None
    kinds = {id(iv.var): iv.iter_type for iv in block.iter_vars}
    stores = [n for n in inside if isinstance(n, BufferStore)]
    if not stores or any(s.buffer is not stores[0].buffer for s in stores):
        return None
    written = [_layout(s.indices, kinds) for s in stores]
    first = written[0]
    if first is None or any(v is None for v in first) or any(not _same(w, first) for w in written):
        return None
    read: dict[Var, _Layout] = {}
    odd: set[int] = {id(stores[0].buffer)}  # what an update reads of its own target has the target's layout
    within = {id(n) for load in _loads(inside) for i in load.indices for n in pre_order(i)}
    for load in _loads(inside):
        layout = _layout(load.indices, kinds)
        if id(load) in within:
            odd.add(id(load.buffer))  # indices of indices follow data
        elif layout is None or not _same(read.setdefault(load.buffer, layout), layout):
            odd.add(id(load.buffer))
    return _Access(block, stores[0].buffer, first, {b: w for b, w in read.items() if id(b) not in odd})


def _loads(nodes: Sequence[Node]) -> list[BufferLoad]:
    return [n for n in nodes if isinstance(n, BufferLoad)]


def _same(one: _Layout | None, other: _Layout) -> bool:
    return one is not None and len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _layout(indices: Sequence[Expr], kinds: Mapping[int, IterType]) -> _Layout | None:
    """The variables that dimensions follow: the only spatial one of an index, else its only reduced one. None where an
    index mixes several, reads data, or two indices follow one variable."""
    found: list[Var | None] = []
    for index in indices:
        if any(isinstance(n, BufferLoad) for n in pre_order(index)) or not is_scalar(index):
            return None
        used = {id(n): n for n in pre_order(index) if isinstance(n, Var) and id(n) in kinds}
        spatial = [v for v in used.values() if kinds[id(v)] == IterType.DATA_PAR]
        candidates = spatial or list(used.values())
        if len(candidates) > 1:
            return None
        found.append(candidates[0] if candidates else None)
    named = [id(v) for v in found if v is not None]
    return tuple(found) if len(set(named)) == len(named) else None


def _extended(given: IndexMap, written: _Layout, layout: _Layout) -> IndexMap | None:
    """A map of the output's indices as one of a buffer (or of the loops) whose dimensions follow some of the same
    variables in the same order. What the output has not stays where it is; what the buffer has not is left out. None
    where the order differs, or the map joins what only the output has with what both have."""
    place = {id(v): d for d, v in enumerate(written)}
    shared = [place[id(v)] for v in layout if v is not None and id(v) in place]
    if shared != sorted(shared) or not shared:
        return None
    by_place = {place[id(v)]: d for d, v in enumerate(layout) if v is not None and id(v) in place}
    dtype = scalar_dtype(given.initial_indices[0])
    names = {d: given.initial_indices[p].name for p, d in by_place.items()}
    indices = tuple(Var(names.get(d, "d"), prim_type(dtype)) for d in range(len(layout)))
    absent = {p: v for p, v in enumerate(given.initial_indices) if p not in by_place}
    whole = given.map_indices(
        [indices[by_place[p]] if p in by_place else v for p, v in enumerate(given.initial_indices)]
    )
    ids = {id(v) for v in absent.values()}
    kept = [e for e in whole if not any(id(n) in ids for n in pre_order(e))]
    used = {id(n) for e in kept for n in pre_order(e)}
    if any(id(indices[d]) not in used for d in by_place.values()):
        return None
    for d in range(len(layout)):
        if d not in by_place.values():
            kept.insert(d, indices[d])
    return IndexMap(indices, tuple(kept))
