"""Python operators on expressions: scalar nodes on scalars, tensor operators on tensors.

The class stands below the node kinds; what builds nodes is put into `BUILD` by ``expr``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from supple.ir.types import TupleType

BUILD: dict[str, Callable[..., Any]] = {}
"""``binary(name, a, b)``, ``unary(name, a)``, ``tensor(name, *args)``, ``getitem``, ``region``, ``truth``,
``is_scalar``, ``call``, ``astype``."""

_NOT_AN_ARRAY = (
    "numpy functions do not take the values of a program that is being built; use the operators of R (R.maximum, "
    "R.sum, ...) or the intrinsics of T"
)


class Operators:
    """Python operators on expressions: scalar nodes on scalars, tensor operators on tensors."""

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return BUILD["binary"]("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return BUILD["binary"]("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return BUILD["binary"]("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return BUILD["binary"]("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return BUILD["binary"]("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return BUILD["binary"]("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return BUILD["binary"]("truediv", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return BUILD["binary"]("truediv", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return BUILD["binary"]("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return BUILD["binary"]("floordiv", other, self)

    def __mod__(self, other: Any) -> Any:
        return BUILD["binary"]("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return BUILD["binary"]("mod", other, self)

    def __matmul__(self, other: Any) -> Any:
        return BUILD["tensor"]("matmul", self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return BUILD["tensor"]("matmul", other, self)

    def __abs__(self) -> Any:
        return BUILD["tensor"]("abs", self)

    def __pow__(self, other: Any) -> Any:
        return BUILD["binary"]("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return BUILD["binary"]("pow", other, self)

    def __and__(self, other: Any) -> Any:
        return BUILD["binary"]("and", self, other)

    def __rand__(self, other: Any) -> Any:
        return BUILD["binary"]("and", other, self)

    def __or__(self, other: Any) -> Any:
        return BUILD["binary"]("or", self, other)

    def __ror__(self, other: Any) -> Any:
        return BUILD["binary"]("or", other, self)

    def __xor__(self, other: Any) -> Any:
        return BUILD["binary"]("xor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return BUILD["binary"]("xor", other, self)

    def __lshift__(self, other: Any) -> Any:
        return BUILD["binary"]("lshift", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return BUILD["binary"]("lshift", other, self)

    def __rshift__(self, other: Any) -> Any:
        return BUILD["binary"]("rshift", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return BUILD["binary"]("rshift", other, self)

    def __lt__(self, other: Any) -> Any:
        return BUILD["binary"]("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return BUILD["binary"]("le", self, other)

    def __gt__(self, other: Any) -> Any:
        return BUILD["binary"]("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return BUILD["binary"]("ge", self, other)

    def __eq__(self, other: object) -> Any:
        if BUILD["is_scalar"](self) and (isinstance(other, (int, float)) or BUILD["is_scalar"](other)):
            return BUILD["binary"]("eq", self, other)
        return self is other

    def __ne__(self, other: object) -> Any:
        if BUILD["is_scalar"](self) and (isinstance(other, (int, float)) or BUILD["is_scalar"](other)):
            return BUILD["binary"]("ne", self, other)
        return self is not other

    def __hash__(self) -> int:
        return id(self) >> 4

    def __neg__(self) -> Any:
        return BUILD["unary"]("neg", self)

    def __invert__(self) -> Any:
        return BUILD["unary"]("invert", self)

    def __bool__(self) -> bool:
        return bool(BUILD["truth"](self))

    __array_ufunc__ = None  # np.maximum(x, 0) must not take a graph value for a Python object

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(_NOT_AN_ARRAY)

    def __float__(self) -> float:
        raise TypeError(f"a symbolic value has no number while the program is built ({type(self).__name__})")

    def __getitem__(self, index: Any) -> Any:
        return BUILD["getitem"](self, index)

    def __iter__(self) -> Any:
        ty = getattr(self, "ty", None)
        if not isinstance(ty, TupleType):
            raise TypeError(f"cannot iterate over {type(self).__name__}: only a tuple of known length can be unpacked")
        return iter([self[i] for i in range(len(ty.fields))])

    def __call__(self, *args: Any) -> Any:
        return BUILD["call"](self, args)

    def equal(self, other: Any) -> Any:
        """``self == other`` as a value, on scalars and on tensors."""
        return BUILD["binary"]("eq", self, other)

    def astype(self, dtype: str) -> Any:
        """The value converted to another dtype."""
        return BUILD["astype"](self, dtype)
