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
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, dataclass_transform

from supple.base.config import config
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


def fields(cls: type[Node]) -> tuple[tuple[str, Role], ...]:
    """``(name, role)`` of every field of a node class: definitions precede their uses. That is the order of
    declaration (the constructor's), unless the class says otherwise in ``walk_order``."""
    return _FIELDS[cls]


def _write_once(self: Node, name: str, value: object) -> None:
    try:
        object.__getattribute__(self, name)
    except AttributeError:
        object.__setattr__(self, name, value)
        return
    raise AttributeError(f"{type(self).__name__}.{name}: IR nodes are immutable; build a new node instead")


@dataclass_transform(
    frozen_default=True, eq_default=False, field_specifiers=(dataclasses.field, define, ignored, pattern)
)
def node(cls: type[N]) -> type[N]:
    """Class decorator that makes a node kind.

    Type checkers see a frozen dataclass; at run time the fields are plain slots (frozen ones cost twice as much to
    construct), except in check mode, where a second assignment raises.
    """
    made = dataclasses.dataclass(slots=True, eq=False, repr=False)(cls)
    roles = {f.name: f.metadata.get("role", Role.USE) for f in dataclasses.fields(made)}
    order: tuple[str, ...] = getattr(made, "walk_order", ())
    names = [*order, *(name for name in roles if name not in order)]
    _FIELDS[made] = tuple((name, roles[name]) for name in names)
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
        return self.script()


@node
class Type(Node):
    """Base of all types."""


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
    return dataclasses.replace(old, **changes)


def children(parent: Node) -> Iterator[Node]:
    """The nodes directly below a node, in field order, through tuples and mappings."""
    for name, role in _FIELDS[type(parent)]:
        if role is not Role.IGNORE:
            yield from _nodes_in(getattr(parent, name))


def _nodes_in(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _nodes_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _nodes_in(item)
