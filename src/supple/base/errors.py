"""Error classes. Each carries what a reader needs to mend the cause: a place, what was expected, what came, a hint."""

from __future__ import annotations

from dataclasses import dataclass, field

from supple.base.source import Span, excerpt


class SuppleError(RuntimeError):
    """Base of every error that Supple raises on purpose (a ``RuntimeError``, as Relax's errors are)."""


class InternalError(SuppleError):
    """A fault of Supple itself: an invariant did not hold. Please report it."""


@dataclass
class Note:
    """A second place that helps to understand an error, such as the definition of a misused variable."""

    message: str
    span: Span | None = None

    def __str__(self) -> str:
        where = f"\n{excerpt(self.span)}" if self.span is not None else ""
        return f"note: {self.message}{where}"


@dataclass(eq=False)
class DiagnosticError(SuppleError, ValueError):
    """A program was refused.

    ``str(error)`` shows file, line and column, the source line with a caret, what was expected and what came,
    and a hint where there is a common mistake. ``rule`` is the short name of the check that refused it.
    """

    message: str
    span: Span | None = None
    expected: str | None = None
    actual: str | None = None
    hint: str | None = None
    rule: str | None = None
    notes: list[Note] = field(default_factory=list)

    def __post_init__(self) -> None:
        Exception.__init__(self, self.message)

    def __str__(self) -> str:
        head = f"error: {self.message}" + (f" [{self.rule}]" if self.rule else "")
        lines = _report(head, self.span, self.expected, self.actual, self.hint)
        return "\n".join([*lines, *(str(note) for note in self.notes)])


def _report(head: str, span: Span | None, expected: str | None, actual: str | None, hint: str | None) -> list[str]:
    """What `DiagnosticError` and `ExecutionError` show, line by line."""
    lines = [head]
    if span is not None:
        lines.append(excerpt(span))
    named = (("expected: ", expected), ("actual:   ", actual), ("hint:     ", hint))
    return [*lines, *(f"  {name}{text}" for name, text in named if text is not None)]


class TypeCheckError(DiagnosticError, TypeError):
    """An expression's type does not fit where it is used (also a ``TypeError``)."""


class FieldError(TypeCheckError, IndexError):
    """A tuple has no field of that number (also an ``IndexError``)."""


class NotSupportedError(DiagnosticError, NotImplementedError):
    """The construct is understood but not supported (yet); the message names it."""


class RefusedNameError(NotSupportedError, AttributeError):
    """A name of a module that is known and not supported (also an ``AttributeError``: ``hasattr`` says no)."""


class TextTooLongError(NotSupportedError):
    """What a program shares would have to be written out so often that the text has no end."""


class ArgumentError(SuppleError, TypeError, ValueError):
    """A compiled function or an operator was called with arguments that do not fit its signature."""


class ComputeError(SuppleError, TypeError, AssertionError):
    """A compute definition got what it cannot take or returned what is no tensor (Relax asserts these)."""


@dataclass(eq=False)
class ExecutionError(SuppleError):
    """A compiled or interpreted function failed while it ran (an index out of bounds, a size that does not fit).

    ``str(error)`` shows what failed, where the program says so (file, line, column, the line with a caret), and what
    was expected, what came and a hint where that helps.
    """

    message: str
    span: Span | None = None
    expected: str | None = None
    actual: str | None = None
    hint: str | None = None

    def __post_init__(self) -> None:
        Exception.__init__(self, self.message)

    def __str__(self) -> str:
        return "\n".join(_report(self.message, self.span, self.expected, self.actual, self.hint))


def out_of_bounds(index: str, axis: int, name: str, size: str, from_end: bool) -> tuple[str, str]:
    """The message of an index out of bounds and what is expected, for numbers or the places that they will have in a
    message. ``from_end``: negative indices count from the end."""
    low = f"-{size}" if from_end else "0"
    message = f"index {index} is out of bounds for axis {axis} of {name}, whose size is {size}"
    return message, f"{low} <= index < {size}"


class MissingFunctionError(SuppleError, KeyError, ValueError, AttributeError):
    """A module or an executable has no function of that name (a ``KeyError``, as for a mapping; a ``ValueError`` or an
    ``AttributeError``, as in Relax)."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class NumberRangeError(OverflowError, ValueError):
    """A number does not fit in its dtype (a ``ValueError`` as well, as in Relax)."""


class UnknownDtypeError(TypeError, ValueError):
    """There is no dtype of that name (a ``ValueError`` as well, as in Relax)."""


class RegistryError(SuppleError, KeyError, ValueError):
    """A name was registered twice, or looked up and not found (a ``ValueError`` as well, as in Relax)."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class UnknownOperatorError(RegistryError, AttributeError):
    """There is no operator of that name (an ``AttributeError`` as well, as in Relax)."""
