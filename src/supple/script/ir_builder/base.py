"""The builder that collects what its frames make."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

from supple.base.errors import DiagnosticError
from supple.ir.expr import Var
from supple.ir.graph import Function
from supple.ir.module import IRModule
from supple.ir.node import set_field

V = TypeVar("V")


class IRBuilder:
    """Holds the frames that are open and, at the end, the program: a function, or a module."""

    _entered: ClassVar[list[IRBuilder]] = []

    def __init__(self) -> None:
        self.frames: list[Any] = []
        self.result: Any = None

    def __enter__(self) -> IRBuilder:
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

    def get(self) -> Function | IRModule:
        """The program that was built; raises ``ValueError`` when there is none."""
        if self.result is None:
            raise ValueError("IRBuilder.get: nothing was built")
        result: Function | IRModule = self.result
        return result

    @staticmethod
    def name(name: str, value: V) -> V:
        """Give a variable another name, while its program is still being built."""
        if isinstance(value, Var):
            set_field(value, "name", name)
        return value

    @staticmethod
    def name_many(names: list[str], values: list[V]) -> list[V]:
        """Give several variables other names."""
        return [IRBuilder.name(name, value) for name, value in zip(names, values, strict=True)]

    def frame(self, kind: type[V], what: str, around: str = "R.function()") -> V:
        """The innermost open frame of a kind; raises `DiagnosticError` with what must be ``around``."""
        for frame in reversed(self.frames):
            if isinstance(frame, kind):
                return frame
        raise DiagnosticError(f"{what} stands inside of 'with {around}:'", rule="ir_builder")

    @contextmanager
    def opened(self, frame: V) -> Iterator[V]:
        """The frame is open inside of the ``with`` block."""
        self.frames.append(frame)
        try:
            yield frame
        finally:
            self.frames.pop()

    @property
    def module(self) -> IRModule | None:
        """The innermost module that is open."""
        return next((f for f in reversed(self.frames) if isinstance(f, IRModule)), None)

    def finish(self, made: Any, name: str) -> None:
        """Take a finished function: into the module that is open, or as the result."""
        mod = self.module
        if mod is not None:
            mod[name] = made
        else:
            self.result = made
