"""What every IR node is: a slotted dataclass with identity equality, a span, and fields with a role.

A field's *role* says how it takes part in binding. Structural equality and hash, printing, serialisation and the
generic walkers all read this one description:

* ``USE`` (the default): compared and walked;
* ``DEF``: introduces variables (a ``Var``, a tuple of them, or nodes that hold them), and the symbols in their types;
* ``PATTERN``: a type whose symbols are introduced if they are not bound yet (``match_cast``);
* ``IGNORE``: neither compared nor walked (spans, name hints, deduced types).
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
from collections.abc import Callable, Collection
from typing import Any, TypeVar, dataclass_transform

from supple.base.config import config
from supple.base.errors import TextTooLongError
from supple.base.source import Span

N = TypeVar("N", bound="Node")


class Role(enum.Enum):
    """How a field takes part in binding (see the module's text)."""

    USE = "use"
    DEF = "def"
    PATTERN = "pattern"
    IGNORE = "ignore"


def define(**kwargs: Any) -> Any:
    """A field that introduces variables."""
    return dataclasses.field(metadata={"role": Role.DEF}, **kwargs)


def ignored(**kwargs: Any) -> Any:
    """A field that is neither compared nor walked."""
    return dataclasses.field(metadata={"role": Role.IGNORE}, **kwargs)


def pattern(**kwargs: Any) -> Any:
    """A type that may introduce symbols."""
    return dataclasses.field(metadata={"role": Role.PATTERN}, **kwargs)


_FIELDS: dict[type, tuple[tuple[str, Role], ...]] = {}
_WALKED: dict[type, tuple[str, ...]] = {}
_WALKED_WITH_TYPES: dict[type, tuple[str, ...]] = {}
_GIVEN: dict[type, tuple[str, ...]] = {}


def fields(cls: type[Node]) -> tuple[tuple[str, Role], ...]:
    """``(name, role)`` of every field of a node class: definitions precede their uses. That is the order of
    declaration (the constructor's), unless the class says otherwise in ``walk_order``."""
    return _FIELDS[cls]


_PLAIN = ("bool", "float", "int", "str", "str | None", "tuple[int, ...]")
"""Declared types that hold no nodes, as they are written."""


def declare_fields(cls: type[Node], found: tuple[tuple[str, Role], ...], plain: Collection[str] = ()) -> None:
    """What `fields` and `walked` of a class say from now on; ``plain`` names the fields that hold no nodes."""
    _FIELDS[cls] = found
    _WALKED[cls] = tuple(name for name, role in found if role is not Role.IGNORE and name not in plain)
    _WALKED_WITH_TYPES[cls] = _WALKED[cls] + tuple(name for name, _ in found if name == "ty")


def is_node_class(cls: type) -> bool:
    """Whether the fields of a class are known."""
    return cls in _FIELDS


def walked(cls: type[Node], with_types: bool = False) -> tuple[str, ...]:
    """The names of the fields that walkers enter, in the order of `fields`; ``with_types``: and of its type, last."""
    return (_WALKED_WITH_TYPES if with_types else _WALKED)[cls]


def _write_once(self: Node, name: str, value: object) -> None:
    """Fields that follow from the others (``init=False``) are set once, after construction; nothing else ever is."""
    if name in _GIVEN.get(type(self), ()) or hasattr(self, name):
        raise AttributeError(f"{type(self).__name__}.{name}: IR nodes are immutable; build a new node instead")
    object.__setattr__(self, name, value)


@dataclass_transform(
    frozen_default=True, eq_default=False, field_specifiers=(dataclasses.field, define, ignored, pattern)
)
def node(cls: type[N]) -> type[N]:
    """Class decorator that makes a node kind.

    Type checkers see a frozen dataclass; at run time the fields are plain slots (frozen ones cost twice as much to
    construct), except in check mode, where an assignment raises.
    """
    made = dataclasses.dataclass(slots=True, eq=False, repr=False, frozen=config.check)(cls)
    roles = {f.name: f.metadata.get("role", Role.USE) for f in dataclasses.fields(made)}
    order: tuple[str, ...] = getattr(made, "walk_order", ())
    names = [*order, *(name for name in roles if name not in order)]
    plain = [f.name for f in dataclasses.fields(made) if f.type in _PLAIN]
    declare_fields(made, tuple((name, roles[name]) for name in names), plain)
    _GIVEN[made] = tuple(f.name for f in dataclasses.fields(made) if f.init)
    if config.check:
        made.__setattr__ = _write_once  # type: ignore[assignment]
    return made


def set_field(of: Node, name: str, value: object) -> None:
    """Set a field while the node is being made (``__post_init__``), where what was given takes another form."""
    object.__setattr__(of, name, value)


def as_tuple(of: Node, name: str) -> None:
    """Let a field that was given as a list (or None, or another sequence) hold a tuple."""
    value = getattr(of, name)
    if type(value) is not tuple:
        set_field(of, name, () if value is None else tuple(value))


class _Methods(dict[str, Callable[..., Any]]):
    """Functions by name; the module that has one is imported when it is missing."""

    def __missing__(self, name: str) -> Callable[..., Any]:
        importlib.import_module(_FILLED_BY[name.partition(".")[0]])
        return self[name] if name in self else _no_method(name)


def _no_method(name: str) -> Callable[..., Any]:
    raise KeyError(f"no method {name!r} of nodes")


_FILLED_BY = {
    "buffer": "supple.sym.buffers",
    "index_map": "supple.sym.index_map",
    "is_base_of": "supple.analysis.graph",
    "prim_text": "supple.ir.print_style",
    "specialize": "supple.build.functions",
}
METHODS: dict[str, Callable[..., Any]] = _Methods()
"""Methods of nodes that need what is above this level, by name; filled there."""

_printer: list[Callable[..., str]] = []
_shower: list[Callable[..., None]] = []


def set_printer(script: Callable[..., str], show: Callable[..., None]) -> None:
    """Install what ``node.script()``, ``str(node)`` and ``node.show()`` call (the printer lives above the nodes)."""
    _printer[:] = [script]
    _shower[:] = [show]


@node
class Node:
    """Base of all IR nodes."""

    span: Span | None = dataclasses.field(default=None, kw_only=True, metadata={"role": Role.IGNORE})

    def script(self, show_meta: bool = False, **options: Any) -> str:
        """The node as TVMScript text; ``show_meta`` includes the data of large constants, ``style="relax"`` is Relax's
        layout. The other options are those of Relax's printer (`supple.ir.print_style.PrintOptions`)."""
        return _printer[0](self, show_meta, **options) if _printer else f"{type(self).__name__}(...)"

    def show(self, style: str | None = None, black_format: bool | None = None, **options: Any) -> None:
        """Print `script`, in colour on a terminal."""
        if _shower:
            _shower[0](self, style, black_format, **options)
        else:
            print(self.script())

    def same_as(self, other: object) -> bool:
        """Identity (Relax's spelling of ``is``)."""
        return self is other

    def __repr__(self) -> str:
        try:
            return self.script()
        except TextTooLongError:
            return f"<{type(self).__name__}, too long to be written out>"


@node
class Type(Node):
    """Base of all types. ``==`` compares types as Relax does, by structure; other nodes have identity."""

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Type) and METHODS["structural_equal"](self, other))

    def __hash__(self) -> int:
        result: int = METHODS["structural_hash"](self)
        return result

    def is_base_of(self, derived: Type) -> bool:
        """Whether every value of ``derived`` is one of this type."""
        result: bool = METHODS["is_base_of"](self, derived)
        return result


@node
class Expr(Node):
    """Base of all expressions. Every expression has ``ty``, its `Type`, or None before deduction."""

    @property
    def struct_info(self) -> Any:
        """The older spelling of ``ty``."""
        return getattr(self, "ty", None)


@node
class Stmt(Node):
    """Base of all loop-level statements."""


def replace(old: N, **changes: Any) -> N:
    """A copy of a node with some fields changed (the span is kept)."""
    for name in _GIVEN[type(old)]:
        if name not in changes:
            changes[name] = getattr(old, name)
    return type(old)(**changes)


def children(parent: Node, with_types: bool = False) -> list[Node]:
    """The nodes directly below a node, in field order, through tuples and mappings; ``with_types``: and its type."""
    found: list[Node] = []
    for name in (_WALKED_WITH_TYPES if with_types else _WALKED)[type(parent)]:
        value = getattr(parent, name)
        if isinstance(value, Node):
            found.append(value)
        elif isinstance(value, _HOLDERS):
            _gather(value, found)
    return found


_HOLDERS = (tuple, list, dict)


def _gather(value: Any, found: list[Node]) -> None:
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, Node):
            found.append(item)
        elif isinstance(item, _HOLDERS):
            _gather(item, found)
