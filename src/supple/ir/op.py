"""What an operator is. Declarations live in ``supple.ops``; parser, printer, builder, passes and docs read this."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from supple.base.registry import Registry
from supple.ir.expr import Call
from supple.ir.node import Expr, Type, ignored, node


class Fusion(enum.IntEnum):
    """How an operator may be fused (Relax's ``OpPatternKind``)."""

    ELEMENTWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    REDUCTION = 3
    OUT_FUSABLE = 4
    OPAQUE = 8


REQUIRED: Any = type("Required", (), {"__repr__": lambda self: "REQUIRED"})()


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of an operator's signature.

    ``kind`` says what it takes: ``"tensor"``, ``"expr"`` (any graph value), ``"tuple"`` of tensors, ``"shape"``,
    ``"scalar"`` are *arguments* (expressions, ``Call.args``); ``"attr"`` is a compile-time attribute (``Call.attrs``).
    ``convert`` turns what the user wrote into the attribute's canonical value, raising TypeError or ValueError.
    """

    name: str
    kind: str = "tensor"
    default: Any = REQUIRED
    convert: Callable[[Any], Any] | None = None

    @property
    def is_attr(self) -> bool:
        return self.kind == "attr"


@node
class Op(Expr):
    """An operator: ``relax.add``, ``tirx.exp``. One object a name; compared by identity.

    ``infer(call) -> Type`` is the type rule; it raises `TypeCheckError` for operands that do not fit.
    ``lower`` builds the compute definition; ``ref`` computes the value with numpy; ``samples`` make test calls.
    """

    name: str = ignored()
    doc: str = ignored(default="")
    params: tuple[Param, ...] = ignored(default=())
    infer: Callable[[Call], Type] | None = ignored(default=None)
    fusion: Fusion = ignored(default=Fusion.OPAQUE)
    pure: bool = ignored(default=True)
    lower: Callable[..., Any] | None = ignored(default=None)
    ref: Callable[..., Any] | None = ignored(default=None)
    samples: Callable[[], list[Any]] | None = ignored(default=None)
    facts: dict[str, Any] = ignored(default_factory=dict)

    @property
    def ty(self) -> Type | None:
        return None

    @property
    def short_name(self) -> str:
        """The name below its namespace: ``nn.relu`` of ``relax.nn.relu``."""
        return self.name.partition(".")[2]

    @staticmethod
    def get(name: str) -> Op:
        """The operator of that full name; raises `RegistryError` with close names for a miss."""
        return OPS.get(name)

    def __call__(self, *args: Any, **kwargs: Any) -> Call:
        """Bind Python arguments to the signature: ``matmul(a, b, out_dtype="float32")``."""
        return bind(self, args, kwargs)


OPS: Registry[Op] = Registry("operator")

BIND: list[Callable[[Op, tuple[Any, ...], dict[str, Any]], Call]] = []


def bind(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """The `Call` of an operator on Python arguments (converted by the signature; see ``supple.ops.signature``)."""
    return BIND[0](op, args, kwargs)


@dataclass(slots=True)
class Intrinsic:
    """A scalar intrinsic's numpy meaning and result type; the `Op` carries it in ``facts["intrinsic"]``."""

    arity: int
    numpy: Callable[..., Any]
    dtype: Callable[..., str]
    llvm: str | None = None
    notes: list[str] = field(default_factory=list)
