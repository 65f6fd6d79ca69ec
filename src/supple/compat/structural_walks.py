"""Walking and rewriting of programs by callbacks, under the names of ``tvm_ffi``.

A value is a node, a list, a tuple, a mapping, or anything else (a leaf). Below a node are the nodes in its fields, in
the order of the fields, then its type, unless that is a scalar's. Callbacks are given as ``(type, callback)``,
``((type, type), callback)``, a list of such pairs, or one callback for every value; the first that fits is called.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from supple.ir.expr import Var
from supple.ir.graph import Function
from supple.ir.loop import PrimFunc
from supple.ir.node import Node, Role, Type, children, fields
from supple.ir.structural import structural_equal, structural_hash
from supple.ir.types import PrimType
from supple.ir.walk import with_children

Entry = tuple[type, Callable[..., Any]]


class WalkOrder(enum.IntEnum):
    """Whether callbacks are called before or after what is below a value."""

    PREORDER = 0
    POSTORDER = 1


class WalkResult(enum.IntEnum):
    """What a callback before the values below may return: go on, or leave out what is below this value."""

    ADVANCE = 0
    SKIP = 1


class DefRegionKind(enum.IntEnum):
    """Whether a value is used, defined with the symbols in its type (a parameter), or defined by itself."""

    NONE = 0
    DEF_PATTERN = 1
    DEF_SIMPLE = 2


class InplaceMode(enum.IntEnum):
    """Whether a value may be changed in place: nodes never are."""

    DISALLOW = 0
    ALLOW = 1


class VisitInterrupt:
    """Returned by a callback to end a walk; ``value`` is for who walks."""

    def __init__(self, value: Any = None) -> None:
        self.value = value


class StructuralKey:
    """A key of mappings: equal to another where the values are structurally equal."""

    def __init__(self, key: Any) -> None:
        self.key = key
        self.hash_i64 = structural_hash(key)

    def __hash__(self) -> int:
        return self.hash_i64

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StructuralKey) and structural_equal(self.key, other.key)


def structural_walk(
    root: Any, callbacks: Any = (), with_def_region_kind: Any = (), order: str | WalkOrder = "post"
) -> VisitInterrupt | None:
    """Call ``callback(value)`` (or ``callback(value, kind)``, see `DefRegionKind`) for everything below ``root``, as
    often as it is written. None, or the `VisitInterrupt` that ended the walk.

    Raises ``TypeError`` for callbacks that are given otherwise, ``ValueError`` for another order.
    """
    plain, kinded = _entries(callbacks, "structural_walk"), _entries(with_def_region_kind, "structural_walk")
    before = _is_before(order, "structural_walk")

    def call(value: Any, kind: DefRegionKind) -> Any:
        found = _callback(plain, value)
        result = None if found is None else found(value)
        if result is None:
            found = _callback(kinded, value)
            result = None if found is None else found(value, kind)
        return result

    stack: list[tuple[Any, DefRegionKind, bool]] = [(root, DefRegionKind.NONE, False)]
    while stack:
        value, kind, entered = stack.pop()
        if entered or before:
            result = call(value, kind)
            if isinstance(result, VisitInterrupt):
                return result
            if entered or result is WalkResult.SKIP:
                continue
        if not before:
            stack.append((value, kind, True))
        stack.extend((part, of, False) for part, of in reversed(list(_parts(value, kind))))
    return None


def structural_map(
    root: Any, callbacks: Any = (), with_def_region_kind: Any = (), order: str | WalkOrder = "post"
) -> Any:
    """``root`` with everything that a callback fits replaced by what it returns; what does not change stays the same
    object. With ``order="pre"`` a replacement is searched again, what is below it that is.

    Raises what `structural_walk` does.
    """
    plain, kinded = _entries(callbacks, "structural_map"), _entries(with_def_region_kind, "structural_map")
    before = _is_before(order, "structural_map")

    def call(value: Any, kind: DefRegionKind) -> Any:
        found = _callback(plain, value)
        if found is not None:
            return found(value)
        found = _callback(kinded, value)
        return value if found is None else found(value, kind)

    results: list[Any] = []
    stack: list[tuple[Any, DefRegionKind, list[Any] | None]] = [(root, DefRegionKind.NONE, None)]
    while stack:
        value, kind, below = stack.pop()
        if below is None:
            current = call(value, kind) if before else value
            parts = list(_parts(current, kind))
            stack.append((current, kind, [part for part, _ in parts]))
            stack.extend((part, of, None) for part, of in reversed(parts))
            continue
        new = results[len(results) - len(below) :]
        del results[len(results) - len(below) :]
        made = _rebuilt(value, below, new)
        results.append(made if before else call(made, kind))
    return results[0]


class StructuralVisitor:
    """What the callbacks of `structural_visit` are given to go on."""

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries

    def visit(self, value: Any) -> VisitInterrupt | None:
        """Call the callback that fits, or visit what is below."""
        found = _callback(self._entries, value)
        if found is None:
            return self.default_visit(value)
        result = found(value, self)
        return result if isinstance(result, VisitInterrupt) else None

    def default_visit(self, value: Any) -> VisitInterrupt | None:
        """Visit what is below a value."""
        for part, _ in _parts(value, DefRegionKind.NONE):
            result = self.visit(part)
            if result is not None:
                return result
        return None


def structural_visit(root: Any, callbacks: Any = ()) -> VisitInterrupt | None:
    """Call ``callback(value, visitor)`` for ``root``: what is below it is visited only as the callback says."""
    return StructuralVisitor(_entries(callbacks, "structural_visit")).visit(root)


class StructuralMutator:
    """What the callbacks of `structural_mutate` are given to go on."""

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries
        self._remap: dict[int, tuple[Any, Any]] = {}

    def mutate(self, value: Any) -> Any:
        """What the callback that fits returns, or the value with what is below mutated."""
        found = _callback(self._entries, value)
        return self.default_mutate(value) if found is None else found(value, self)

    def default_mutate(self, value: Any) -> Any:
        """A value with what is below mutated; a variable with a replacement is that."""
        if id(value) in self._remap:
            return self._remap[id(value)][1]
        below = [part for part, _ in _parts(value, DefRegionKind.NONE)]
        return _rebuilt(value, below, [self.mutate(part) for part in below])

    def var_remap_get(self, var: Any) -> Any:
        """The replacement of a variable, or None."""
        return self._remap.get(id(var), (None, None))[1]

    def var_remap_set(self, var: Any, mapped_value: Any) -> None:
        """Let later uses of a variable become another value."""
        self._remap[id(var)] = (var, mapped_value)


def structural_mutate(root: Any, callbacks: Any = ()) -> Any:
    """What ``callback(value, mutator)`` returns for ``root``: what is below is mutated only as the callback says."""
    return StructuralMutator(_entries(callbacks, "structural_mutate")).mutate(root)


def _entries(callbacks: Any, what: str) -> list[Entry]:
    """Pairs of a type and a callback."""
    if callable(callbacks):
        return [(object, callbacks)]
    if not isinstance(callbacks, (list, tuple)):
        raise TypeError(f"{what}: callbacks are a function, (type, function), or a list of such pairs")
    pairs: Sequence[Any] = [callbacks] if len(callbacks) == 2 and callable(callbacks[1]) else callbacks
    found: list[Entry] = []
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not callable(pair[1]):
            raise TypeError(f"{what}: expected a pair of a type and a function, got {pair!r}")
        for kind in pair[0] if isinstance(pair[0], tuple) else (pair[0],):
            if kind is not Any and not isinstance(kind, type):
                raise TypeError(f"{what}: expected a type, got {kind!r}")
            found.append((object if kind is Any else kind, pair[1]))
    return found


def _callback(entries: list[Entry], value: Any) -> Callable[..., Any] | None:
    return next((call for kind, call in entries if kind is object or isinstance(value, kind)), None)


def _is_before(order: str | WalkOrder, what: str) -> bool:
    known = {"pre": True, "post": False, WalkOrder.PREORDER: True, WalkOrder.POSTORDER: False}
    if order not in known:
        raise ValueError(f"{what}: the order is 'pre' or 'post', got {order!r}")
    return known[order]


def _parts(value: Any, kind: DefRegionKind) -> Iterator[tuple[Any, DefRegionKind]]:
    """What is below a value, each with how it stands there."""
    if isinstance(value, (list, tuple)):
        yield from ((item, kind) for item in value)
    elif isinstance(value, dict):
        yield from ((item, kind) for item in value.values())
    elif isinstance(value, Node):
        defined = _defined(value)
        pattern = isinstance(value, (Function, PrimFunc)) or (isinstance(value, Var) and kind is not DefRegionKind.NONE)
        parts = {id(part): part for part in reversed(children(value, with_types=True)) if isinstance(part, Type)}
        below = [part for part in children(value) if id(part) not in parts]
        types = [part for part in reversed(parts.values()) if not isinstance(part, PrimType)]
        for part in [*types, *below] if isinstance(value, Var) else [*below, *types]:
            if pattern and (id(part) in defined or isinstance(value, Var)):
                yield part, DefRegionKind.DEF_PATTERN
            else:
                yield part, DefRegionKind.DEF_SIMPLE if id(part) in defined else DefRegionKind.NONE


def _defined(value: Node) -> set[int]:
    """The variables that a node defines."""
    found: set[int] = set()
    for name, role in fields(type(value)):
        if role is Role.DEF:
            held = getattr(value, name)
            found.update(id(item) for item in (held if isinstance(held, tuple) else (held,)))
    return found


def _rebuilt(value: Any, below: list[Any], new: list[Any]) -> Any:
    """A value with others below it."""
    if all(a is b for a, b in zip(below, new, strict=True)):
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(new)
    if isinstance(value, dict):
        return dict(zip(value, new, strict=True))
    return with_children(value, {id(a): b for a, b in zip(below, new, strict=True)}, True)
