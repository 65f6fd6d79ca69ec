"""What an operator asks of its operands' sizes: proved while the program is built, or checked when it runs.

A type rule says ``require_equal(...)``. Sizes that differ for all values of the symbols are refused at once; where it
depends on the symbols, the rule goes on, and the requirement is checked when the call runs: the interpreter checks
what `requirements_of` a call says, and LegalizeOps writes the checks into the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from supple.base import dtypes
from supple.base.errors import TypeCheckError
from supple.ir import expr as E
from supple.ir.expr import Call, IntImm, int64
from supple.ir.node import Expr
from supple.ir.op import Op
from supple.ir.types import TensorType
from supple.ops.declare import fail
from supple.sym.relate import dim_text, dims_text
from supple.sym.simplify import SHAPES, same_shape


@dataclass(frozen=True, slots=True)
class Requirement:
    """Two sizes that must be equal; ``text`` is what is wrong where they are not."""

    text: str
    expected: Expr
    actual: Expr


class ValuesError(TypeCheckError):
    """A call whose type is right (`require_values`), and which cannot be computed."""


_OPEN: ContextVar[list[Requirement] | None] = ContextVar("open requirements", default=None)


def require_equal(text: str, expected: Expr, actual: Expr, shown: str | None = None, came: str | None = None) -> bool:
    """Refuse sizes that differ, with ``shown`` as what is expected and ``came`` as what is given; note a
    requirement where the symbols decide. Returns whether they are proved equal: where Relax
    says less of a result whose sizes are not, so do we."""
    same = SHAPES.equal(expected, actual)
    if same is False:
        fail(text, shown or dim_text(expected), came or dim_text(actual))
    noted = _OPEN.get()
    if same is None and noted is not None:
        noted.append(Requirement(text, expected, actual))
    return same is True


def require_shape(text: str, expected: Sequence[Expr], actual: Sequence[Expr]) -> None:
    """`require_equal` for each dimension of two shapes; refuses different ranks."""
    if same_shape(tuple(expected), tuple(actual)) is False:
        fail(text, dims_text(expected), dims_text(actual))
    for one, other in zip(expected, actual, strict=True):
        require_equal(text, one, other)


def require_related(text: str, expected: Sequence[Expr], actual: Sequence[Expr]) -> None:
    """`require_shape` where Relax refuses shapes that are not proved equal, too: those of several operands of
    which none is spread or made to fit."""
    if same_shape(tuple(expected), tuple(actual)) is not True:
        hint = "R.match_cast(x, R.Tensor(...)) says which sizes are one"
        fail(text, dims_text(expected), dims_text(actual), hint=hint)


def require_whole(name: str, **scalars: Expr) -> None:
    """Refuse numbers with a fraction, or that may have one, where a size or a place is meant."""
    for what, scalar in scalars.items():
        if not dtypes.is_int(E.scalar_dtype(scalar)):
            fail(f"{name}: {what} is no integer", "an integer", str(scalar))


def require_at_least(text: str, least: int, actual: Expr) -> None:
    """Refuse a size that is smaller, as `require_equal` does."""
    require_equal(text, int64(least), E.Min(actual, int64(least)), f"at least {least}")


def require_spread(text: str, target: Sequence[Expr], given: Sequence[Expr]) -> None:
    """What is ``given`` spreads to a target shape: its last dimensions are the target's, or known to be 1."""
    if len(given) > len(target):
        fail(text, dims_text(target), dims_text(given))
    for one, other in zip(reversed(target), reversed(given), strict=False):
        if not (isinstance(other, IntImm) and other.value == 1):
            require_equal(text, one, other, f"{dim_text(one)} or 1")


def require_values(text: str, expected: str, actual: str | None, hint: str | None = None) -> None:
    """Refuse to compute a call whose operands have no such values, such as the bits of floats: the type rule accepts
    it, as Relax's does, and the interpreter and LegalizeOps raise `ValuesError`."""
    if _OPEN.get() is not None:
        raise ValuesError(text, expected=expected, actual=actual, hint=hint, rule="operator")


def require_floats(name: str, *tensors: TensorType) -> None:
    """`require_values` of floating-point tensors."""
    for x in tensors:
        if x.dtype is not None and not dtypes.is_float(x.dtype):
            text = f"{name}: needs a floating-point tensor"
            require_values(text, "a floating-point dtype", x.dtype, "x.astype(...)")


def require_numbers(name: str, x: TensorType) -> TensorType:
    """`require_values` of a tensor of numbers: no bools."""
    if x.dtype == "bool":
        require_values(f"{name}: needs a tensor of numbers", "a number dtype", "bool", 'x.astype("int32")')
    return x


def assumptions_of(call: Call) -> list[Requirement]:
    """What a call asks of its operands' sizes (see `requirements_of`). Raises as its type rule does for what does not
    hold."""
    assert isinstance(call.op, Op) and call.op.infer is not None
    assumed: list[Requirement] = []
    token = _OPEN.set(assumed)
    try:
        call.op.infer(call)
    finally:
        _OPEN.reset(token)
    return assumed


def requirements_of(call: Call) -> list[Requirement]:
    """What a call asks of its operands' sizes that is not proved; nothing where the type rule refuses the call (one
    built by hand, with a type of its own)."""
    assert isinstance(call.op, Op) and call.op.infer is not None
    noted: list[Requirement] = []
    token = _OPEN.set(noted)
    try:
        call.op.infer(call)
    except ValuesError as error:
        error.span = error.span or call.span
        raise
    except TypeCheckError:
        return []
    finally:
        _OPEN.reset(token)
    return noted
