"""Structural equality and hash: programs are the same up to the names of what they bind.

Both read the roles of fields (``ir/node.py``): a ``DEF`` field pairs the variables of both sides (and the symbols in
their types), every later use must agree with that pairing. Free variables are equal only to themselves, unless
``map_free_vars`` pairs them at first sight. Spans, name hints and deduced types of calls do not matter. Floats compare
by their bits in their dtype (every NaN alike, ``0.0`` and ``-0.0`` apart), constants by dtype, shape and bytes. The
dimensions of shapes compare by value: ``n + m`` and ``m + n`` are one size, however a type rule came to write it.
"""

from __future__ import annotations

import enum
import hashlib
import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.ir.access_path import AccessPath
from supple.ir.expr import FloatImm, IntImm, Var
from supple.ir.graph import Constant, GlobalVar, ShapeExpr
from supple.ir.loop import PrimFunc
from supple.ir.module import IRModule
from supple.ir.node import METHODS, Expr, Node, Role, fields
from supple.ir.op import Op
from supple.ir.types import FuncType, ShapeType
from supple.ir.walk import free_symbols, substitute

SIZES: dict[str, Callable[..., Any]] = {}
"""``"equal"``: whether two sizes are equal for all values of their symbols (None: undecided); ``"plain"``: the number
or symbol that a size is, or None. Filled by the reasoning about integers, which is above this level."""

_TEXT_LIMIT = 2000
_PLAIN = frozenset((str, int, bool, type(None)))


class _Mode(enum.Enum):
    """How a value stands: used, bound here, or inside a type that may bind symbols."""

    USE = 0
    BIND = 1
    PATTERN = 2


_Step = tuple[tuple[str, Any], ...]  # of an `AccessPath`: one or more, where Relax's nodes are nested otherwise
_Path = tuple[Any, _Step]  # a chain from the root: the path of the parent (or None), then one step


class _Absent:
    """In place of an element that one side has not."""


def _access_path(path: _Path, absent: bool = False) -> AccessPath:
    steps: list[tuple[str, Any]] = []
    at: Any = path
    while at is not None:
        at, step = at
        steps.extend(reversed(step))
    steps.reverse()
    if absent:
        steps[-1] = (f"missing {steps[-1][0]}", steps[-1][1])
    return AccessPath(tuple(steps))


@dataclass(slots=True)
class Mismatch:
    """The first difference: where it is on each side, the two values there, and the reason."""

    path: AccessPath
    other_path: AccessPath
    left: Any
    right: Any
    reason: str

    @staticmethod
    def at(path: _Path, left: Any, right: Any, reason: str) -> Mismatch:
        """A difference at the end of a chain of steps."""
        paths = [_access_path(path, isinstance(side, _Absent)) for side in (left, right)]
        return Mismatch(paths[0], paths[1], left, right, reason)


def structural_equal(a: Any, b: Any, map_free_vars: bool = False, skip_tensor_content: bool = False) -> bool:
    """Whether two nodes are the same program up to renaming of what they bind; with ``skip_tensor_content``, whatever
    the elements of constants are."""
    return find_mismatch(a, b, map_free_vars, skip_tensor_content) is None


def assert_structural_equal(a: Any, b: Any, map_free_vars: bool = False) -> None:
    """Raise ``ValueError`` when two nodes differ: with the path of the first difference on both sides, and both texts
    with it underlined. A note of the error says what the difference is."""
    found = find_mismatch(a, b, map_free_vars)
    if found is None:
        return
    error = ValueError(
        f"StructuralEqual check failed, caused by lhs at {found.path}:\n{_text(a, found.path)}\n"
        f"and rhs at {found.other_path}:\n{_text(b, found.other_path)}"
    )
    if hasattr(error, "add_note"):  # Python 3.11
        error.add_note(f"{found.reason}\n  left:  {_short(found.left)}\n  right: {_short(found.right)}")
    raise error


def _text(value: Any, path: AccessPath) -> str:
    if not isinstance(value, (Node, IRModule)):
        note = "Note: No visible object for this path is rendered in TVMScript."
        return f"Access path: {path}\n{note}\n\n{_plain(value)}"
    text = value.script(path_to_underline=[path])
    return text if len(text) <= _TEXT_LIMIT else value.script(path_to_underline=[path], num_context_lines=10)


def _plain(value: Any) -> str:
    """A container as Relax shows it: lists are tuples, texts are quoted."""
    if isinstance(value, (list, tuple)):
        items = [_plain(item) for item in value]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_plain(k)}: {_plain(v)}" for k, v in value.items()) + "}"
    return json.dumps(value) if isinstance(value, str) else str(value)


def _short(value: Any) -> str:
    text = "nothing" if isinstance(value, _Absent) else " ".join(str(value).split())
    return text if len(text) <= 200 else f"{text[:200]}..."


def find_mismatch(a: Any, b: Any, map_free_vars: bool = False, skip_tensor_content: bool = False) -> Mismatch | None:
    """The first difference in field order, or None when the two are structurally equal."""
    seen: set[tuple[int, int, _Mode]] = set()
    pairing = _Pairing(map_free_vars, skip_tensor_content)
    pairing.forget = seen.clear
    return _search((a, b, _Mode.USE, (None, ())), pairing, seen)


def _search(
    start: tuple[Any, Any, _Mode, _Path], pairing: _Pairing, seen: set[tuple[int, int, _Mode]]
) -> Mismatch | None:
    stack = [start]
    while stack:
        x, y, mode, path = stack.pop()
        if isinstance(x, Var) and isinstance(y, Var):
            reason = pairing.variables(x, y, mode)
            if reason is not None:
                return Mismatch.at(path, x, y, reason)
            if pairing.newly_bound:
                stack.append((x.ty, y.ty, _Mode.PATTERN, (path, (("attr", "ty"),))))
            continue
        if type(x) is _Size or type(y) is _Size:
            left, right = (v.value if type(v) is _Size else v for v in (x, y))
            found = _sizes(left, right, mode, path, pairing)
            if found is not None:
                return found
            continue
        reason = _same_kind(x, y, pairing.skip_tensor_content)
        if reason is not None:
            if isinstance(x, FloatImm) and isinstance(y, FloatImm):
                path = (path, (("attr", "value"),) if x.dtype == y.dtype else (("attr", "ty"), ("attr", "dtype")))
            return Mismatch.at(path, x, y, reason)
        if isinstance(x, Node):
            key = (id(x), id(y), mode)
            if key in seen or isinstance(x, Op):
                continue
            seen.add(key)
        for part in reversed(list(_parts(x, y, mode, path))):
            left, right = part[0], part[1]
            if type(left) in _PLAIN and type(right) is type(left) and left == right:
                continue  # the most common case by far
            stack.append(part)
    return None


@dataclass(frozen=True, slots=True)
class _Size:
    """A dimension of a shape: compared by value."""

    value: Expr


def _sizes(x: Expr, y: Expr, mode: _Mode, path: _Path, pairing: _Pairing) -> Mismatch | None:
    """Two dimensions: alike as they are written (which may pair symbols), or one size under the pairing there is."""
    before = len(pairing.order)
    found = _search((x, y, mode, path), pairing, set())
    if found is None:
        return None
    pairing.undo(before)
    paired: dict[Var, Node] = {}
    for symbol in free_symbols(x):
        other = pairing.right.get(id(symbol))
        if other is None and id(symbol) in pairing.left:
            return found
        paired[symbol] = symbol if other is None else other
    return None if SIZES["equal"](substitute(x, paired), y) else found


class _Pairing:
    """Which variables of the two sides stand for each other."""

    def __init__(self, map_free_vars: bool, skip_tensor_content: bool) -> None:
        self.map_free_vars = map_free_vars
        self.skip_tensor_content = skip_tensor_content
        self.right: dict[int, Var] = {}
        self.left: dict[int, Var] = {}
        self.order: list[tuple[Var, Var]] = []
        self.newly_bound = False
        self.forget: Any = lambda: None

    def undo(self, count: int) -> None:
        """Forget all pairs but the first ``count``."""
        for x, y in self.order[count:]:
            del self.right[id(x)], self.left[id(y)]
        del self.order[count:]

    def variables(self, x: Var, y: Var, mode: _Mode) -> str | None:
        """Pair or check two variables; the reason if they do not stand for each other."""
        self.newly_bound = False
        if type(x) is not type(y):
            return f"a {type(x).__name__} and a {type(y).__name__}"
        known_x, known_y = self.right.get(id(x)), self.left.get(id(y))
        if mode is _Mode.BIND:
            if known_x is not y or known_y is not x:
                if known_x is not None or known_y is not None:
                    self.forget()  # a variable is bound again: earlier comparisons do not speak for later ones
                self._bind(x, y)
            self.newly_bound = True
            return None
        if known_x is None and known_y is None:
            if mode is _Mode.PATTERN or self.map_free_vars:
                self._bind(x, y)
                self.newly_bound = True
                return None
            return None if x is y else f"the free variables {x.name!r} and {y.name!r} are not the same"
        if known_x is y and known_y is x:
            return None
        return f"{x.name!r} and {y.name!r} are bound at different places"

    def _bind(self, x: Var, y: Var) -> None:
        self.right[id(x)] = y
        self.left[id(y)] = x
        self.order.append((x, y))


def _same_kind(x: Any, y: Any, skip_tensor_content: bool) -> str | None:
    """Compare what is not below: kinds, plain values, lengths."""
    if isinstance(x, _Absent) or isinstance(y, _Absent):
        return "only one side has this"
    if type(x) is not type(y):
        return f"a {type(x).__name__} and a {type(y).__name__}"
    if isinstance(x, (IRModule, dict, tuple, list)):
        return None
    if isinstance(x, Op):
        return None if x is y else f"the operators {x.name} and {y.name}"
    if isinstance(x, FloatImm):
        if x.dtype != y.dtype:
            return f"{x.dtype} and {y.dtype}"
        return None if _float_bits(x.value, x.dtype) == _float_bits(y.value, y.dtype) else f"{x.value} and {y.value}"
    if isinstance(x, Constant):
        left, right = (_array_key(c.data, skip_tensor_content) for c in (x, y))
        return None if left == right else "the constants differ"
    if isinstance(x, Node):
        return None
    return None if _plain_key(x) == _plain_key(y) else f"{x!r} and {y!r}"


def _mapping(x: Any) -> dict[Any, Any]:
    if isinstance(x, IRModule):
        return {var.name_hint: func for var, func in x.functions.items()}
    result: dict[Any, Any] = x
    return result


def _parts(x: Any, y: Any, mode: _Mode, path: _Path) -> Iterator[tuple[Any, Any, _Mode, _Path]]:
    if isinstance(x, (tuple, list)):
        for i, (p, q) in enumerate(zip(x, y)):
            yield p, q, mode, (path, (("item", i),))
        if len(x) != len(y):
            i = min(len(x), len(y))
            yield _at(x, i), _at(y, i), mode, (path, (("item", i),))
    elif isinstance(x, (dict, IRModule)):
        left, right = _mapping(x), _mapping(y)
        for key in sorted(left.keys() | right.keys(), key=str):
            step = _key_step(x, y, key, path)
            yield left.get(key, _Absent()), right.get(key, _Absent()), _Mode.USE, (path, step)
        if isinstance(x, IRModule):
            yield x.attrs, y.attrs, _Mode.USE, (path, _ATTRIBUTES)
            yield x.global_infos, y.global_infos, _Mode.USE, (path, (("attr", "global_infos"),))
    elif isinstance(x, Node) and not isinstance(x, (FloatImm, Constant, Op)):
        for name, below, step in _compared(type(x), mode):
            left, right = _field(x, name), _field(y, name)
            if name == "values" and isinstance(x, (ShapeExpr, ShapeType)):
                left, right = _as_sizes(left), _as_sizes(right)
            yield left, right, below, (path, step)


_ATTRIBUTES: _Step = (("attr", "attrs"), ("attr", "__dict__"))
_OF_CALLS: _Step = (("attr", "attrs"),)


def _at(values: Any, index: int) -> Any:
    return values[index] if index < len(values) else _Absent()


def _key_step(x: Any, y: Any, key: Any, path: _Path) -> _Step:
    """The step to the value of a key: a function of a module, a field of a call's attributes, or a key."""
    if isinstance(x, IRModule):
        var = next(v for mod in (x, y) for v in mod.functions if v.name_hint == key)
        return ("attr", "functions"), ("key", var)
    return (("attr" if path[1] == _OF_CALLS else "key", key),)


def _field(x: Node, name: str) -> Any:
    """A field as it is compared: the flag ``s_tir`` says that a loop function has blocks, which its body tells."""
    value = getattr(x, name)
    return {k: v for k, v in value.items() if k != "s_tir"} if name == "attrs" and isinstance(x, PrimFunc) else value


def _as_sizes(values: tuple[Expr, ...] | None) -> Any:
    """The dimensions of a shape, those apart that are more than a symbol or a number."""
    return values and tuple(v if isinstance(v, (Var, IntImm)) else _Size(v) for v in values)


_Compared = tuple[tuple[str, _Mode, _Step], ...]
_NESTED: dict[tuple[str, str], _Step] = {  # fields that lie deeper in Relax's nodes
    ("ShapeExpr", "values"): (("attr", "ty"), ("attr", "values")),
    ("IntImm", "dtype"): (("attr", "ty"), ("attr", "dtype")),
    ("TensorType", "dtype"): (("attr", "dtype"), ("attr", "dtype")),
    ("Function", "attrs"): _ATTRIBUTES,
    ("PrimFunc", "attrs"): _ATTRIBUTES,
}
_compared_fields: dict[tuple[type[Node], _Mode], _Compared] = {}


def _compared(kind: type[Node], mode: _Mode) -> _Compared:
    """The fields of a kind that are compared, each with the mode of its value and its step in a path."""
    known = _compared_fields.get((kind, mode))
    if known is not None:
        return known
    found = []
    for name, role in fields(kind):
        if role is Role.IGNORE:
            continue
        if role is Role.DEF:
            below = _Mode.BIND
        elif role is Role.PATTERN or (issubclass(kind, FuncType) and name == "params"):
            below = _Mode.PATTERN
        else:
            below = _Mode.PATTERN if mode is _Mode.PATTERN else _Mode.USE
        found.append((name, below, _NESTED.get((kind.__name__, name), (("attr", name),))))
    _compared_fields[kind, mode] = tuple(found)
    return _compared_fields[kind, mode]


def _float_bits(value: float, dtype: str) -> bytes:
    if value != value:
        return b"nan"
    with np.errstate(all="ignore"):
        return bytes(np.asarray(value, dtypes.to_numpy(dtypes.element(dtype))).tobytes())


def _array_key(data: Any, skip_content: bool = False) -> tuple[str, tuple[int, ...], bytes]:
    array = np.ascontiguousarray(data)
    return array.dtype.name, np.shape(data), b"" if skip_content else array.tobytes()


def _plain_key(x: Any) -> Any:
    if isinstance(x, float):
        return b"nan" if x != x else struct.pack("<d", x)
    if isinstance(x, np.ndarray):
        return _array_key(x)
    return x


# ---------------------------------------------------------------------------------------------------------------- hash


class _Frame:
    """A value whose parts are being hashed."""

    __slots__ = ("bound", "digest", "mode", "parts", "value")

    def __init__(self, value: Any, mode: _Mode, head: bytes, parts: Iterator[tuple[Any, _Mode]], bound: int) -> None:
        self.value = value
        self.bound = bound  # how many variables were bound before
        self.mode = mode
        self.parts = parts
        self.digest = hashlib.blake2b(head, digest_size=16)


def structural_hash(node: Any, map_free_vars: bool = False, skip_tensor_content: bool = False) -> int:
    """A hash that is equal for structurally equal nodes; the same in every process when no variable is free."""
    return int.from_bytes(_Hasher(map_free_vars, skip_tensor_content).run(node)[:8], "little", signed=True)


class _Hasher:
    def __init__(self, map_free_vars: bool, skip_tensor_content: bool) -> None:
        self.map_free_vars = map_free_vars
        self.skip_tensor_content = skip_tensor_content
        self.numbers: dict[int, int] = {}
        self.count = 0
        self.done: dict[tuple[int, _Mode], bytes] = {}

    def run(self, root: Any) -> bytes:
        stack: list[_Frame] = []
        result = self._enter(root, _Mode.USE, stack)
        while stack:
            frame = stack[-1]
            if result is not None:
                frame.digest.update(result)
                result = None
            part = next(frame.parts, None)
            if part is not None:
                result = self._enter(part[0], part[1], stack)
                continue
            stack.pop()
            result = frame.digest.digest()
            if frame.bound == self.count and isinstance(frame.value, Node):  # what binds gets new numbers each time
                self.done[id(frame.value), frame.mode] = result
        assert result is not None
        return result

    def _enter(self, x: Any, mode: _Mode, stack: list[_Frame]) -> bytes | None:
        """The digest if it is known at once, else None with a frame pushed."""
        if isinstance(x, Var):
            return self._variable(x, mode, stack)
        known = self.done.get((id(x), mode)) if isinstance(x, Node) else None
        if known is not None:
            return known
        if isinstance(x, Op):
            return _leaf("op", x.name)
        if isinstance(x, FloatImm):
            return _leaf(x.dtype, _float_bits(x.value, x.dtype))
        if isinstance(x, Constant):
            return _leaf("constant", *_array_key(x.data, self.skip_tensor_content))
        if isinstance(x, GlobalVar):
            return _leaf("global", x.name_hint)
        head = type(x).__name__.encode()
        if isinstance(x, (tuple, list)):
            parts = iter([(item, mode) for item in x])
            head += b"%d" % len(x)
        elif isinstance(x, (dict, IRModule)):
            mapping = _mapping(x)
            items: list[tuple[Any, _Mode]] = []
            for key in sorted(mapping, key=str):
                items += [(str(key), _Mode.USE), (mapping[key], _Mode.USE)]
            if isinstance(x, IRModule):
                items += [(x.attrs, _Mode.USE), (x.global_infos, _Mode.USE)]
            parts = iter(items)
        elif isinstance(x, _Size):
            plain = SIZES["plain"](x.value)
            return self._variable(plain, mode, stack) if isinstance(plain, Var) else self._size(x.value, plain, mode)
        elif isinstance(x, Node):
            parts = iter(self._fields(x, mode))
        else:
            return _leaf(type(x).__name__, _plain_text(x))
        stack.append(_Frame(x, mode, head, parts, self.count))
        return None

    def _fields(self, x: Node, mode: _Mode) -> Iterator[tuple[Any, _Mode]]:
        for name, below, _ in _compared(type(x), mode):
            value = _field(x, name)
            if name == "values" and isinstance(x, (ShapeExpr, ShapeType)):
                value = value and tuple(v if isinstance(v, Var) else _Size(v) for v in value)
            yield value, below

    def _size(self, x: Expr, plain: IntImm | None, mode: _Mode) -> bytes:
        """A dimension hashes as its number, or as any dimension; the symbols that it binds are counted."""
        for symbol in free_symbols(x):
            if id(symbol) not in self.numbers and (mode is _Mode.PATTERN or self.map_free_vars):
                self.numbers[id(symbol)] = self.count
                self.count += 1
        return _leaf("size") if plain is None else _leaf("size", plain.value)

    def _variable(self, x: Var, mode: _Mode, stack: list[_Frame]) -> bytes | None:
        number = self.numbers.get(id(x))
        if mode is _Mode.BIND and number is not None:
            self.done.clear()  # bound again: it gets a new number
        if mode is _Mode.BIND or (number is None and (mode is _Mode.PATTERN or self.map_free_vars)):
            before = self.count
            self.numbers[id(x)] = before
            self.count += 1
            head = _leaf(type(x).__name__, before)
            stack.append(_Frame(x, mode, head, iter([(x.ty, _Mode.PATTERN)]), before))
            return None
        return _leaf(type(x).__name__, number) if number is not None else _leaf("free", id(x))


def _leaf(*values: Any) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for value in values:
        data = value if isinstance(value, bytes) else repr(value).encode(errors="surrogatepass")
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.digest()


def _plain_text(x: Any) -> Any:
    if isinstance(x, (bool, int, str, bytes, type(None))):
        return x
    if isinstance(x, float):
        return _plain_key(x)
    if isinstance(x, np.ndarray):
        return repr(_array_key(x))
    if isinstance(x, enum.Enum):
        return x.name
    return ""  # equality decides: objects without a canonical text hash alike


METHODS["structural_equal"] = structural_equal
METHODS["structural_hash"] = structural_hash
