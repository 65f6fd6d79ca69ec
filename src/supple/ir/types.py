"""Types. Graph values have `TensorType`, `TupleType`, `ShapeType`, `PrimType`, `FuncType` or `AnyType`;
loop-level buffers have `BufferType`."""

from __future__ import annotations

import functools

from supple.base.dtypes import check_dtype
from supple.ir.node import Expr, Type, ignored, node


@node
class PrimType(Type):
    """A scalar of one dtype: ``R.Prim("int64")``, loop variables, symbols."""

    dtype: str


@functools.lru_cache(maxsize=1024)
def prim_type(dtype: str) -> PrimType:
    """The shared `PrimType` of a dtype."""
    return PrimType(check_dtype(dtype))


@node
class TensorType(Type):
    """A tensor: ``R.Tensor((n, 784), "float32")``.

    ``shape`` is a `ShapeExpr`, a variable of `ShapeType`, or None when unknown; ``dtype`` is None when unknown;
    ``ndim`` is -1 when unknown.
    """

    shape: Expr | None = None
    dtype: str | None = None
    ndim: int = -1
    vdevice: object = None

    def __post_init__(self) -> None:
        if self.dtype is not None:
            check_dtype(self.dtype)
        values = getattr(self.shape, "values", None)
        if values is not None and self.ndim != len(values):
            if self.ndim != -1:
                raise ValueError(f"TensorType: ndim={self.ndim} contradicts the shape of {len(values)} dimensions")
            object.__delattr__(self, "ndim")
            self.ndim = len(values)  # type: ignore[misc]


@node
class TupleType(Type):
    """A tuple of known length."""

    fields: tuple[Type, ...] = ()


@node
class ShapeType(Type):
    """A shape value: ``R.Shape(["n", 4])`` with known ``values``, or ``R.Shape(ndim=2)``; ``ndim`` -1: unknown."""

    values: tuple[Expr, ...] | None = None
    ndim: int = -1

    def __post_init__(self) -> None:
        if self.values is not None and self.ndim != len(self.values):
            if self.ndim != -1:
                raise ValueError(f"ShapeType: ndim={self.ndim} contradicts {len(self.values)} values")
            object.__delattr__(self, "ndim")
            self.ndim = len(self.values)  # type: ignore[misc]


@node
class FuncType(Type):
    """A function. ``params`` is None for an opaque callable (``R.Callable()``); then ``ret`` may be `AnyType`.

    The symbols in ``params`` are scoped to the type.
    """

    params: tuple[Type, ...] | None
    ret: Type
    purity: bool = True


@node
class AnyType(Type):
    """Any graph value at all: ``R.Any`` (``R.Object`` in older text)."""


@node
class StringType(Type):
    """A string value (``R.str("a")``) or a dtype value."""


@node
class BufferType(Type):
    """A loop-level buffer: the type of a `Var` that loads and stores index.

    ``strides`` (elements) is empty for a compact row-major buffer; ``elem_offset`` counts elements; ``data`` is the
    pointer variable of a view, or None when the buffer is its own storage; ``scope`` is ``"global"``, ``"local"``...
    """

    shape: tuple[Expr, ...]
    dtype: str
    scope: str = "global"
    strides: tuple[Expr, ...] = ()
    elem_offset: Expr | None = None
    data: Expr | None = None
    align: int = ignored(default=64)
    offset_factor: int = ignored(default=1)

    def __post_init__(self) -> None:
        check_dtype(self.dtype)


@node
class PointerType(Type):
    """A raw pointer (``T.handle("float32")``)."""

    element: str | None = None
    scope: str = "global"


@node
class VoidType(Type):
    """The type of an expression that is evaluated for its effect only."""
