"""``relax.type``: the types of graph values. Only re-exports."""

from supple.ir.node import (
    Type,
)
from supple.ir.types import (
    AnyType,
    FuncType,
    PackedFuncType,
    PrimType,
    ShapeType,
    TensorType,
    TupleType,
)

__all__ = [
    "AnyType",
    "FuncType",
    "PackedFuncType",
    "PrimType",
    "ShapeType",
    "TensorType",
    "TupleType",
    "Type",
]
