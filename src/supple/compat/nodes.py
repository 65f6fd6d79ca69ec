"""Names of ``tvm.ir`` that have no counterpart of the same form in Supple, with their meaning here."""

from __future__ import annotations

import enum
import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from supple.base.errors import NotSupportedError, SuppleError
from supple.base.source import SourceName
from supple.base.source import Span as _Span
from supple.ir.op import Op
from supple.ir.serialize import load_json, save_json
from supple.ir.structural import assert_structural_equal, structural_equal, structural_hash
from supple.runtime.packed import get_global_func


class _OurObjects(type):
    """``isinstance(x, Object)``: whether ``x`` is anything that Supple made."""

    def __instancecheck__(cls, instance: object) -> bool:
        if cls is not Object:
            return super().__instancecheck__(instance)
        return type(instance).__module__.partition(".")[0] == "supple"


class Object(metaclass=_OurObjects):
    """The base of all objects of the compiler."""


class _Sequences(type):
    """``isinstance`` knows tuples, which fields of nodes hold, and lists."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (tuple, list))


class Array(tuple[Any, ...], metaclass=_Sequences):
    """``Array([...])``: a tuple that is added and compared to lists as well; its parts are lists."""

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return Array((*self, *other)) if isinstance(other, (tuple, list)) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return Array((*other, *self)) if isinstance(other, (tuple, list)) else NotImplemented

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return list(found) if isinstance(index, slice) else found

    def __eq__(self, other: object) -> bool:
        return super().__eq__(tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


class _Spans(type):
    """``Span(source_name, line, end_line, column, end_column)``; ``isinstance`` knows the spans of nodes."""

    def __call__(cls, source_name: Any, line: int, end_line: int, column: int, end_column: int) -> _Span:
        return _Span(str(getattr(source_name, "name", source_name)), line, column, end_line, end_column)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Span)


class Span(metaclass=_Spans):
    """A range of source text."""


@dataclass(frozen=True)
class SequentialSpan:
    """Several ranges of source text."""

    spans: Sequence[_Span]


@dataclass(frozen=True)
class EnvFunc:
    """A global function by its name: `EnvFunc.get`. Raises what the registry raises for a name it does not have."""

    name: str
    func: Callable[..., Any]

    @staticmethod
    def get(name: str) -> EnvFunc:
        """The global function of that name."""
        found = get_global_func(name, allow_missing=True)
        if found is None:
            raise SuppleError(f"there is no global function {name!r}")
        return EnvFunc(name, found)

    def __call__(self, *args: Any) -> Any:
        return self.func(*args)


class CallingConv(enum.IntEnum):
    """How compiled functions are called."""

    DEFAULT = 0
    C_PACKED_FUNC = 1
    DEVICE_KERNEL_LAUNCH = 2


class DataTypeCode(enum.IntEnum):
    """The kinds of dtypes, by DLPack's numbers."""

    INT = 0
    UINT = 1
    FLOAT = 2
    HANDLE = 3
    BFLOAT = 4
    BOOL = 6
    Float8E3M4 = 7
    Float8E4M3 = 8
    Float8E4M3B11FNUZ = 9
    Float8E4M3FN = 10
    Float8E4M3FNUZ = 11
    Float8E5M2 = 12
    Float8E5M2FNUZ = 13
    Float8E8M0FNU = 14
    Float6E2M3FN = 15
    Float6E3M2FN = 16
    Float4E2M1FN = 17


class UniqueNameSupply:
    """Names that are given out once: ``fresh_name("x")`` is ``x``, then ``x_1``..."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self._taken: set[str] = set()

    def _full(self, name: str, add_prefix: bool) -> str:
        return f"{self.prefix}_{name}" if self.prefix and add_prefix else name

    def fresh_name(self, name: str, add_prefix: bool = True, add_underscore: bool = True) -> str:
        """The name, or the name with the first number that is free; it is taken from now on."""
        wanted = unique = self._full(name, add_prefix)
        count = 0
        while unique in self._taken:
            count += 1
            unique = f"{wanted}_{count}" if add_underscore else f"{wanted}{count}"
        self._taken.add(unique)
        return unique

    def reserve_name(self, name: str, add_prefix: bool = True) -> str:
        """Take a name, whether it is free or not."""
        full = self._full(name, add_prefix)
        self._taken.add(full)
        return full

    def contains_name(self, name: str, add_prefix: bool = True) -> bool:
        """Whether a name is taken."""
        return self._full(name, add_prefix) in self._taken


class OpError(SuppleError):
    """An operator is used in a way it does not allow."""


class OpAttributeInvalid(OpError, AttributeError):  # noqa: N818 - Relax's name
    """An attribute has a value that the operator does not allow."""


class OpAttributeRequired(OpError, AttributeError):  # noqa: N818 - Relax's name
    """An attribute that the operator needs is not given."""


def derived_object(cls: type) -> type:
    """Classes derived from Supple's visitors, mutators and passes need no wrapping: the class itself."""
    return cls


def register_object(type_key: Any = None) -> Any:
    """Refused: Supple's nodes are Python classes, and there is no other class of them to give a Python face to.

    Raises `NotSupportedError` when it decorates a class.
    """

    def refuse(cls: type) -> type:
        raise NotSupportedError(
            f"register_object: {cls.__name__} has no type in a native registry to register for ({type_key!r})",
            hint="a plain Python class needs no registration",
        )

    return refuse(type_key) if isinstance(type_key, type) else refuse


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """Keep an attribute of an operator under a name, for `Op.get_attr`; without a value, a decorator that does.

    Of two values for one name the one with the higher level is kept. Raises ``ValueError`` for the same level twice.
    """
    if value is not None:
        Op.get(op_name).set_attr(attr_key, value, level)
        return value
    return lambda given: register_op_attr(op_name, attr_key, given, level)


def deprecated(method_name: str, new_method_name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: calls of the function warn that another name took its place."""

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            warnings.warn(f"{method_name} is deprecated, use {new_method_name} instead", stacklevel=2)
            return func(*args, **kwargs)

        return wrapper

    return decorate


Map = dict

__all__ = [
    "Array",
    "CallingConv",
    "DataTypeCode",
    "EnvFunc",
    "Map",
    "Object",
    "OpAttributeInvalid",
    "OpAttributeRequired",
    "OpError",
    "SequentialSpan",
    "SourceName",
    "Span",
    "UniqueNameSupply",
    "assert_structural_equal",
    "deprecated",
    "derived_object",
    "get_global_func",
    "load_json",
    "register_object",
    "register_op_attr",
    "save_json",
    "structural_equal",
    "structural_hash",
]
