"""The builder that collects what its frames make."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

from supple.base.errors import DiagnosticError
from supple.ir.expr import Var
from supple.ir.graph import Function
from supple.ir.loop import IterVar
from supple.ir.module import IRModule
from supple.ir.node import Stmt, set_field

V = TypeVar("V")


class IRBuilder:
    """Holds the frames that are open and, at the end, the program: a function, a module, or a lone statement."""

    _entered: ClassVar[list[IRBuilder]] = []

    def __init__(self) -> None:
        self.frames: list[Any] = []
        self.result: Any = None
        self.loose: Any = None  # the state of statements outside of any function

    def __enter__(self) -> Self:
        IRBuilder._entered.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        IRBuilder._entered.pop()

    @staticmethod
    def current() -> IRBuilder:
        """The builder that is entered; raises `DiagnosticError` outside of one."""
        if not IRBuilder._entered:
            raise DiagnosticError("there is no builder", hint="with IRBuilder() as ib: ...", rule="ir_builder")
        return IRBuilder._entered[-1]

    @staticmethod
    def is_in_scope() -> bool:
        """Whether a builder is entered."""
        return bool(IRBuilder._entered)

    def same_as(self, other: object) -> bool:
        """Whether ``other`` is this builder."""
        return self is other

    def get(self) -> Function | IRModule | Stmt:
        """What was built; raises ``ValueError`` when there is nothing."""
        if self.result is None:
            raise ValueError("IRBuilder.get: nothing was built")
        result: Function | IRModule | Stmt = self.result
        return result

    @staticmethod
    def name(name: str, value: V) -> V:
        """Give a variable another name, while its program is still being built. Raises ``TypeError`` for others."""
        named = value.var if isinstance(value, IterVar) else value
        if not isinstance(named, Var):
            raise TypeError(f"IRBuilder.name: expected a variable, got {type(value).__name__}")
        set_field(named, "name", name)
        return value

    @staticmethod
    def name_many(names: list[str], values: list[V]) -> list[V]:
        """Give several variables other names. Raises ``ValueError`` for another number of names than of variables."""
        return [IRBuilder.name(name, value) for name, value in zip(names, values, strict=True)]

    def find(self, kind: type[V]) -> V | None:
        """The innermost open frame of a kind, if there is one."""
        return next((frame for frame in reversed(self.frames) if isinstance(frame, kind)), None)

    def frame(self, kind: type[V], what: str, around: str = "R.function()") -> V:
        """The innermost open frame of a kind; raises `DiagnosticError` with what must be ``around``."""
        found = self.find(kind)
        if found is None:
            raise DiagnosticError(f"{what} stands inside of 'with {around}:'", rule="ir_builder")
        return found

    def keep(self, made: Any) -> None:
        """Take the result. Raises `DiagnosticError` when there is one: a builder makes one program."""
        if self.result is not None:
            raise DiagnosticError(
                "the builder has a result already",
                hint="build the second one in its own IRBuilder()",
                rule="ir_builder",
            )
        self.result = made


class IRBuilderFrame:
    """What ``with`` opens. A kind of frame says in `body` what entering and leaving do."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[[], None]] = []
        self._running: tuple[IRBuilder, AbstractContextManager[Any]] | None = None

    def body(self) -> Iterator[Any]:
        """Yields once: what ``as`` names. Before it the frame is entered, after it what was built inside is used."""
        raise NotImplementedError

    def add_callback(self, callback: Callable[[], None]) -> None:
        """Call a function when the frame is left without an exception; the last one added is called first."""
        self._callbacks.append(callback)

    def same_as(self, other: object) -> bool:
        """Whether ``other`` is this frame."""
        return self is other

    def __enter__(self) -> Any:
        builder, running = IRBuilder.current(), contextmanager(self.body)()
        named = running.__enter__()
        builder.frames.append(self)
        self._running = builder, running
        return named

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._running is None:
            raise DiagnosticError("the frame is not entered", rule="ir_builder")
        builder, running = self._running
        del builder.frames[builder.frames.index(self) :]
        if kind is None:
            for callback in reversed(self._callbacks):
                callback()
        running.__exit__(kind, error, trace)
