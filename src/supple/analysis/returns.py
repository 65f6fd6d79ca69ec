"""What a loop function returns."""

from __future__ import annotations

from supple.base.errors import NotSupportedError
from supple.ir.expr import scalar_dtype
from supple.ir.loop import PrimFunc, Return
from supple.ir.types import PrimType
from supple.ir.walk import statements


def result_dtype(func: PrimFunc) -> str | None:
    """The dtype of the number that a loop function returns: the declared one, or that of all its ``T.ret``; None when
    it returns nothing. Raises `NotSupportedError` when it declares none and returns numbers of several dtypes.
    """
    found = {scalar_dtype(n.value): n for n in statements(func.body) if isinstance(n, Return) and n.value is not None}
    if isinstance(func.ret_ty, PrimType):
        return func.ret_ty.dtype if found else None
    if len(found) > 1:
        last = list(found.values())[-1]
        raise NotSupportedError(
            f"a loop function that returns {', '.join(found)} must declare which: -> T.{next(iter(found))}", last.span
        )
    return next(iter(found), None)
