"""Names that mean something to the parser: ``T.grid``, ``T.sblock``, ``R.dataflow``, ``R.Tensor``.

Python evaluates annotations and decorators itself, so every name is a real object. Called by Python, a `Form` makes
a `FormCall`, which the parser gives a meaning where it stands; the parser itself evaluates bodies from the syntax tree.
"""

from __future__ import annotations

import ast
import functools
import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from supple.base import dtypes
from supple.base.source import Span
from supple.ir.expr import ExprLike, StringImm, Var, cast, const
from supple.ir.node import Expr
from supple.ir.types import PointerType, PrimType, prim_type


@dataclass(frozen=True, eq=False)
class Form:
    """A name that the parser interprets. ``name`` is what users write: ``"T.grid"``."""

    name: str
    doc: str = ""
    regions: bool = False  # its arguments are regions of buffers: a slice stays a slice

    def __call__(self, *args: Any, **kwargs: Any) -> FormCall:
        return FormCall(self, args, kwargs)

    def __getitem__(self, item: Any) -> FormCall:
        return FormCall(self, (item,), {})

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class FormCall:
    """A form with its arguments, evaluated."""

    form: Form
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"{self.form.name}(...)"


@dataclass(frozen=True, eq=False)
class DtypeForm(Form):
    """``T.int64``: annotation, literal ``T.int64(3)``, conversion ``T.int64(x)``, new variable ``T.int64()``."""

    @property
    def dtype(self) -> str:
        return self.name.partition(".")[2]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A literal, a conversion, or (without arguments) a new variable of the dtype."""
        return self._build(*args, **kwargs)

    def _build(self, value: ExprLike = None, scope: str = "global") -> Expr:
        if value is None:
            return Var("v", prim_type(self.dtype))
        if self.dtype == "handle":
            element = value.dtype if isinstance(value, DtypeForm) else value
            if element == "void":
                return Var("v", prim_type("handle"))  # a pointer to anything
            return Var("ptr", PointerType(dtypes.check_dtype(element), scope))
        text = value.value if isinstance(value, StringImm) else value
        if isinstance(text, str):
            if not dtypes.is_float(self.dtype) or text not in ("inf", "-inf", "nan"):
                raise ValueError(f"{self.name}: expected a number (floats also 'inf', '-inf', 'nan'), got {text!r}")
            return const(float(text), self.dtype)
        return cast(self.dtype, _exact(self, text))


def _exact(form: DtypeForm, value: Any) -> Any:
    """A number that the dtype can hold as written: ``T.int32(0.5)`` is refused rather than cut."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, float) and not dtypes.is_float(form.dtype):
        raise TypeError(f"{form.name}: expected an integer, got {value!r}")
    if not isinstance(value, (bool, int, float)):
        if hasattr(value, "__index__"):
            return value.__index__()
        if hasattr(value, "__float__"):
            return float(value)
        raise TypeError(f"{form.name}: expected a number or a scalar expression, got {type(value).__name__}")
    return value


@dataclass(eq=False)
class Declaration:
    """A value that takes its name from the variable it is assigned to: ``vi = T.axis.spatial(4, i)``."""

    make: Callable[[str, Span | None], Any]


@dataclass(eq=False)
class Fresh:
    """``n = T.int64()``: the function's symbol of that name, or a new variable."""

    dtype: str

    @property
    def ty(self) -> PrimType:
        """``T.handle().ty``: the type, where a dtype is wanted."""
        return prim_type(self.dtype)


@dataclass(eq=False)
class EnvThread:
    """``bx = T.env_thread("blockIdx.x")``: a thread axis, launched later under its name."""

    tag: str
    dtype: str
    name: str


@dataclass(eq=False)
class MetaVar:
    """``x = T.meta_var(value)``: the name stands for the value while parsing; nothing is emitted."""

    value: Any


class Namespace:
    """Base of groups of names below ``T`` or ``R``; ``__all__`` and attribute access work as on a module."""


Handler = Callable[..., Any]


@functools.lru_cache(maxsize=512)
def _signature(handler: Handler) -> inspect.Signature:
    return inspect.signature(handler)


def add_attrs(attrs: dict[str, Any], said: set[str], given: dict[str, Any], what: str) -> None:
    """Add attributes; ``said`` holds the names that ``what`` gave before, which it must not give again."""
    for name in given:
        if name in said:
            raise TypeError(f"{what}: the attribute {name!r} is given twice")
    said.update(given)
    attrs.update(given)


def bind_form(call: FormCall, handler: Handler, *leading: Any) -> Any:
    """Call a form's handler; arguments that do not fit its signature raise ``TypeError`` in the form's name."""
    try:
        bound = _signature(handler).bind(*leading, *call.args, **call.kwargs)
    except TypeError as error:
        raise TypeError(f"{call.form.name}: {error}") from None
    return handler(*bound.args, **bound.kwargs)


def is_script_module(value: object) -> bool:
    """Whether ``value`` is one of the modules ``T``, ``R``, ``I``, or a group of operators in one (``R.nn``)."""
    if isinstance(value, types.ModuleType):
        return value.__name__.startswith("supple.script.")
    return isinstance(value, Namespace)


def as_name(value: Any, what: str) -> str:
    """A Python string from a string or string literal node."""
    text = value.value if isinstance(value, StringImm) else value
    if not isinstance(text, str):
        raise TypeError(f"{what}: expected a string, got {type(value).__name__}")
    return text


def as_dtype(value: Any, what: str) -> str:
    """A dtype's name from a string, ``T.float32`` or a numpy dtype."""
    if isinstance(value, (DtypeForm, PrimType)):
        return value.dtype
    if isinstance(value, str):
        return dtypes.check_dtype(value)
    if isinstance(value, StringImm):
        return dtypes.check_dtype(value.value)
    try:
        return dtypes.from_numpy(value)
    except TypeError:
        raise TypeError(f"{what}: expected a dtype such as 'float32', got {value!r}") from None


def check_flags(**flags: Any) -> None:
    """Options of decorators that must be bools; anything else raises ``TypeError``."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise TypeError(f"{name}: expected True or False, got {value!r}")


def check_name(name: Any) -> str | None:
    """A decorator's ``name=``: a string or nothing."""
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name: expected a string, got {name!r}")
    return name


def statement_name(statement: ast.AST) -> str:
    """How users call a kind of Python statement: ``try``, ``class``, ``import``."""
    return {
        "AsyncFor": "async for", "AsyncWith": "async with", "AsyncFunctionDef": "async def", "FunctionDef": "def",
        "ClassDef": "class", "ImportFrom": "from ... import", "Import": "import", "Try": "try", "TryStar": "try",
        "Raise": "raise", "Delete": "del", "Global": "global", "Nonlocal": "nonlocal", "Match": "match", "With": "with",
        "For": "for", "While": "while", "If": "if", "Return": "return", "AugAssign": "augmented assignment (+=)",
        "AnnAssign": "annotated assignment", "Pass": "pass", "Break": "break", "Continue": "continue",
        "Assert": "assert", "Expr": "expression statement", "Assign": "assignment", "TypeAlias": "type",
        "Await": "await", "Yield": "yield", "YieldFrom": "yield from", "NamedExpr": "assignment expression (:=)",
    }.get(type(statement).__name__, type(statement).__name__)  # fmt: skip
