"""Passes under Relax's public names (``relax.transform``): objects that take a module and return a new one.

mod = supple.transform.Sequential([FuseOps(), FuseTIR()])(mod)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

from supple.build.block_builder import BlockBuilder
from supple.ir.expr import Call
from supple.ir.module import IRModule
from supple.ir.node import Expr
from supple.passes.annotate_pattern import annotate_pattern
from supple.passes.bind_params import bind_params
from supple.passes.dead_code import dead_code
from supple.passes.fold_constant import fold_constant
from supple.passes.fuse_ops import MAX_GROUP, fuse_ops
from supple.passes.fuse_tir import fuse_tir
from supple.passes.legalize import legalize
from supple.passes.lift_functions import lift_functions


class PassContext:
    """Settings for the passes that run inside ``with PassContext(...):``.

    ``opt_level``: passes of a higher level are left out of a `Sequential`; ``required_pass`` and ``disabled_pass``
    name passes that run, or do not, whatever their level; ``config`` holds options by name; ``instruments`` are
    objects with any of ``enter_pass_ctx()``, ``exit_pass_ctx()``, ``should_run(mod, info)``,
    ``run_before_pass(mod, info)`` and ``run_after_pass(mod, info)``, where ``info`` is the pass.
    """

    _stack: list[PassContext] = []

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Sequence[str] | None = None,
        disabled_pass: Sequence[str] | None = None,
        instruments: Sequence[Any] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.opt_level = opt_level
        self.required_pass = list(required_pass or ())
        self.disabled_pass = list(disabled_pass or ())
        self.instruments = list(instruments or ())
        self.config = dict(config or {})

    def __enter__(self) -> PassContext:
        self._tell("enter_pass_ctx")
        self._stack.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.pop()
        self._tell("exit_pass_ctx")

    def _tell(self, event: str, *args: Any) -> None:
        for instrument in self.instruments:
            if hasattr(instrument, event):
                getattr(instrument, event)(*args)

    @staticmethod
    def current() -> PassContext:
        """The innermost context, or one with the defaults."""
        return PassContext._stack[-1] if PassContext._stack else PassContext()

    def allows(self, one: Pass) -> bool:
        """Whether a pass of a `Sequential` runs here."""
        if one.name in self.disabled_pass:
            return False
        return one.name in self.required_pass or one.opt_level <= self.opt_level


class Pass:
    """A step from module to module. ``name`` and ``opt_level`` are what `PassContext` looks at."""

    def __init__(self, name: str, run: Callable[[IRModule], IRModule], opt_level: int = 0) -> None:
        self.name = name
        self.opt_level = opt_level
        self._run = run

    @property
    def info(self) -> Pass:
        """Name and level, under Relax's name for them."""
        return self

    def __call__(self, mod: IRModule) -> IRModule:
        """The module after the pass. Raises ``TypeError`` for anything but a module."""
        if not isinstance(mod, IRModule):
            raise TypeError(f"{self.name}: expected an IRModule, got {type(mod).__name__}")
        context = PassContext.current()
        for instrument in context.instruments:
            if hasattr(instrument, "should_run") and not instrument.should_run(mod, self):
                return mod
        context._tell("run_before_pass", mod, self)
        result = self._run(mod)
        if not isinstance(result, IRModule):
            raise TypeError(f"{self.name}: a pass must return an IRModule, got {type(result).__name__}")
        context._tell("run_after_pass", result, self)
        return result

    def __repr__(self) -> str:
        return f"{self.name}(opt_level={self.opt_level})"


class Sequential(Pass):
    """Passes in order; those that the current `PassContext` leaves out do not run."""

    def __init__(self, passes: Sequence[Pass], opt_level: int = 0, name: str = "Sequential") -> None:
        self.passes = list(passes)
        for one in self.passes:
            if not isinstance(one, Pass):
                raise TypeError(f"{name}: expected passes, got {one!r}")
        super().__init__(name, self._all, opt_level)

    def _all(self, mod: IRModule) -> IRModule:
        for one in self.passes:
            if PassContext.current().allows(one):
                mod = one(mod)
        return mod


def module_pass(run: Any = None, opt_level: int = 0, name: str = "") -> Any:
    """Make a pass of ``run(mod, context)``, or of a class whose objects have ``transform_module(mod, context)``; also
    as a decorator with arguments."""

    def make(function: Any) -> Any:
        label = name or getattr(function, "__name__", "pass")
        if isinstance(function, type):
            return _class_of_passes(function, label, opt_level)
        return Pass(label, lambda mod: function(mod, PassContext.current()), opt_level)

    return make if run is None else make(run)


def _class_of_passes(made_by: type, label: str, opt_level: int) -> type[Pass]:
    """A class like ``made_by`` whose objects are passes."""

    class Made(Pass):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self._inner = made_by(*args, **kwargs)
            transform = self._inner.transform_module
            super().__init__(label, lambda mod: transform(mod, PassContext.current()), opt_level)

        def __getattr__(self, attribute: str) -> Any:
            if attribute == "_inner":
                raise AttributeError(attribute)
            return getattr(self._inner, attribute)

    Made.__name__, Made.__doc__ = made_by.__name__, made_by.__doc__
    return Made


def LambdaLift() -> Pass:
    """Local functions become private functions of the module, and closures where they are values."""
    return Pass("LambdaLift", lift_functions)


def LegalizeOps(
    customize_legalize_map: Mapping[str, Callable[[BlockBuilder, Call], Expr]] | None = None,
    skip_ops: Sequence[str] | None = None,
    enable_warning: bool = False,
) -> Pass:
    """Operators become ``call_tir`` of loop functions. The map replaces the definition of some by full name; those in
    ``skip_ops`` stay; with ``enable_warning`` those that stay for want of a definition are named."""

    def run(mod: IRModule) -> IRModule:
        return legalize(
            mod,
            customize_legalize_map,
            skip=skip_ops or (),
            keep_marks=True,
            keep_unknown=True,
            warn=enable_warning,
        )

    return Pass("LegalizeOps", run)


def AnnotateTIROpPattern() -> Pass:
    """Loop functions get their kind for fusion (``op_pattern``)."""
    return Pass("AnnotateTIROpPattern", annotate_pattern)


def FuseOps(fuse_opt_level: int = -1) -> Pass:
    """Calls that can run as one kernel become calls of functions that group them (``fuse_opt_level=0``: none)."""
    return Pass("FuseOps", lambda mod: fuse_ops(mod, max_group=1 if fuse_opt_level == 0 else MAX_GROUP))


def FuseTIR() -> Pass:
    """Each group becomes one loop function; loop functions that nothing calls any more go."""
    return Pass("FuseTIR", lambda mod: dead_code(fuse_tir(mod)))


def DeadCodeElimination(entry_functions: Sequence[str] | None = None) -> Pass:
    """Unused bindings and unreachable private functions go (with ``entry_functions``, all that they do not reach)."""
    return Pass("DeadCodeElimination", lambda mod: dead_code(mod, entry_functions or None))


def FoldConstant() -> Pass:
    """What depends on constants only is computed now."""
    return Pass("FoldConstant", fold_constant)


def BindParams(func_name: str, params: Mapping[Any, Any]) -> Pass:
    """Parameters of a function, by name or variable, become constants."""
    return Pass("BindParams", lambda mod: bind_params(mod, func_name, params))


__all__ = [
    "AnnotateTIROpPattern",
    "BindParams",
    "DeadCodeElimination",
    "FoldConstant",
    "FuseOps",
    "FuseTIR",
    "LambdaLift",
    "LegalizeOps",
    "Pass",
    "PassContext",
    "Sequential",
    "module_pass",
]
