"""How passes are made and run: pass objects, `Sequential`, and `PassContext` with its instruments.

A pass takes a module and returns a new one. Users write their own with the decorators below: of a whole module, of each
graph function, of each dataflow block, of each loop function::

    @relax.transform.function_pass(opt_level=1)
    def mark(func, mod, context):
        return func.with_attr("marked", True)

    mod = mark(mod)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from supple.base.errors import DiagnosticError
from supple.base.registry import Registry, did_you_mean
from supple.ir.expr import DataflowVar, Var
from supple.ir.graph import DataflowBlock, Function
from supple.ir.loop import PrimFunc
from supple.ir.module import IRModule
from supple.ir.node import Node, children
from supple.ir.types import PrimType
from supple.ir.walk import pre_order, transform


@dataclass(frozen=True, slots=True)
class PassInfo:
    """What is known of a pass before it runs. ``required`` are full names of passes that a `Sequential` runs first."""

    opt_level: int
    name: str
    required: tuple[str, ...] = ()
    traceable: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.required, str) or not isinstance(self.required, (list, tuple)):
            raise TypeError(f"{self.name}: required is a list or a tuple of names, got {self.required!r}")
        object.__setattr__(self, "required", tuple(self.required))

    def __str__(self) -> str:
        return (
            f'transform.PassInfo(opt_level={self.opt_level}, name="{self.name}", required={self.required!r}, '
            f"traceable={self.traceable})"
        )

    __repr__ = __str__


OPTIONS = frozenset(
    {
        "relax.FuseOps.max_depth",
        "relax.backend.use_cuda_graph",
        "relax.fallback_device_type",
        "relax.lift_transform_params.consume_params",
        "relax.transform.apply_legalize_ops",
        "s_tir.HoistExpression",
        "s_tir.HoistIfThenElse",
        "s_tir.InjectDoubleBuffer",
        "s_tir.LoopPartition",
        "s_tir.instr_siblings",
        "s_tir.lwp_disable_func_prof",
        "s_tir.lwp_max_depth",
        "s_tir.lwp_min_height",
        "s_tir.reset_start_id",
        "testing.immutable_module",
        "tirx.RemoveNoOp",
        "tirx.StmtSimplify",
        "tirx.UnrollLoop",
        "tirx.add_lower_pass",
        "tirx.debug_keep_trivial_loop",
        "tirx.disable_assert",
        "tirx.disable_cse_tir",
        "tirx.disable_storage_rewrite",
        "tirx.disable_vectorize",
        "tirx.enable_buffer_level_predication",
        "tirx.enable_debug",
        "tirx.enable_fast_math",
        "tirx.instrument_bound_checkers",
        "tirx.instrument_lwp",
        "tirx.is_entry_func",
        "tirx.merge_static_smem",
        "tirx.noalias",
        "tirx.s_tir.ldg32",
        "tirx.use_async_copy",
        "tirx.vtcm_capacity",
    }
)
"""The options that Relax's passes know. They are taken from scripts that have them; a name beside them is a mistake."""


class PassContext:
    """Settings for the passes that run inside ``with PassContext(...):``.

    ``opt_level``: passes of a higher level are left out of a `Sequential`; ``required_pass`` and ``disabled_pass``
    name passes that run, or do not, whatever their level; ``config`` holds options by name; ``instruments`` are
    objects with any of ``enter_pass_ctx()``, ``exit_pass_ctx()``, ``should_run(mod, info)``,
    ``run_before_pass(mod, info)`` and ``run_after_pass(mod, info)``, where ``info`` is a `PassInfo`.

    Each thread has contexts of its own. An instrument that raises when a context begins or ends goes, with all others
    of the context; those that had been told of its begin are told of its end.
    """

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
        for name in self.config:
            if name not in OPTIONS:
                raise AttributeError(f"PassContext: there is no option {name!r}{did_you_mean(name, OPTIONS)}")

    def __enter__(self) -> PassContext:
        self._begin()
        _active.contexts.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if not _active.contexts or _active.contexts[-1] is not self:
            raise RuntimeError("PassContext: contexts end in the order opposite to that in which they began")
        _active.contexts.pop()
        self._end()

    def __repr__(self) -> str:
        names = f"required_pass={self.required_pass!r}, disabled_pass={self.disabled_pass!r}"
        rest = f"instruments={self.instruments!r}, config={self.config!r}"
        return f"transform.PassContext(opt_level={self.opt_level}, {names}, {rest})"

    def tell(self, event: str, *args: Any) -> None:
        """Call a method of every instrument that has it."""
        for instrument in self.instruments:
            _tell(instrument, event, *args)

    def override_instruments(self, instruments: Sequence[Any] | None) -> None:
        """Replace the instruments: those that go are told that the context ends, those that come that it begins."""
        self._end()
        self.instruments = list(instruments or ())
        self._begin()

    def _begin(self) -> None:
        told: list[Any] = []
        try:
            for instrument in self.instruments:
                _tell(instrument, "enter_pass_ctx")
                told.append(instrument)
        except BaseException:
            self.instruments = []
            for instrument in told:
                _tell(instrument, "exit_pass_ctx")
            raise

    def _end(self) -> None:
        try:
            self.tell("exit_pass_ctx")
        except BaseException:
            self.instruments = []
            raise

    @staticmethod
    def current() -> PassContext:
        """The innermost context, or one with the defaults."""
        return _active.contexts[-1] if _active.contexts else PassContext()

    def allows(self, one: Pass) -> bool:
        """Whether a pass of a `Sequential` runs here."""
        if one.name in self.disabled_pass:
            return False
        return one.name in self.required_pass or one.opt_level <= self.opt_level


class _Active(threading.local):
    """The contexts that a thread is in, the innermost last."""

    def __init__(self) -> None:
        self.contexts: list[PassContext] = []


_active = _Active()


def _tell(instrument: Any, event: str, *args: Any) -> Any:
    """What an instrument's method returns; None where it has no such method."""
    method = getattr(instrument, event, None)
    return None if method is None else method(*args)


class Pass:
    """A step from module to module, with its `PassInfo`."""

    kind = "transform.ModulePass"

    def __init__(
        self,
        name: str,
        run: Callable[[IRModule], IRModule],
        opt_level: int = 0,
        required: Sequence[str] = (),
        traceable: bool = False,
    ) -> None:
        self.info = PassInfo(opt_level, name, required, traceable)  # type: ignore[arg-type]
        self._run = run

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def opt_level(self) -> int:
        return self.info.opt_level

    def __call__(self, mod: IRModule) -> IRModule:
        """The module after the pass. Raises ``TypeError`` for anything but a module."""
        if not isinstance(mod, IRModule):
            raise TypeError(f"{self.name}: expected an IRModule, got {type(mod).__name__}")
        context = PassContext.current()
        wanted = [_tell(i, "should_run", mod, self.info) for i in context.instruments if hasattr(i, "should_run")]
        if not all(wanted):
            return mod
        context.tell("run_before_pass", mod, self.info)
        result = self._run(mod)
        if not isinstance(result, IRModule):
            raise TypeError(f"{self.name}: a pass must return an IRModule, got {type(result).__name__}")
        context.tell("run_after_pass", result, self.info)
        return result

    def __repr__(self) -> str:
        return f"{self.kind}(pass_info={self.info})"


class ModulePass(Pass):
    """A pass made by `module_pass`."""


class FunctionPass(Pass):
    """A pass made by `function_pass`."""

    kind = "relax.FunctionPass"


class DataflowBlockPass(Pass):
    """A pass made by `dataflowblock_pass`."""

    kind = "relax.DataflowBlockPass"


class PrimFuncPass(Pass):
    """A pass made by `prim_func_pass`."""

    kind = "tirx.PrimFuncPass"


class Sequential(Pass):
    """Passes in order, each after those that it requires; what the current `PassContext` leaves out does not run."""

    kind = "transform.Sequential"

    def __init__(
        self,
        passes: Sequence[Pass],
        opt_level: int = 0,
        name: str = "sequential",
        required: Sequence[str] = (),
        traceable: bool = False,
    ) -> None:
        self.passes = list(passes)
        for one in self.passes:
            if not isinstance(one, Pass):
                raise TypeError(f"{name}: expected passes, got {one!r}")
        super().__init__(name, self._all, opt_level, required, traceable)

    def _all(self, mod: IRModule) -> IRModule:
        for one in self.passes:
            if PassContext.current().allows(one):
                for name in one.info.required:
                    mod = PASSES.get(name)()(mod)
                mod = one(mod)
        return mod


PASSES: Registry[Callable[[], Pass]] = Registry("pass", "supple.transform")
"""What makes a pass that others may require, by full name (``"relax.transform.FoldConstant"``)."""


# ------------------------------------------------------------------------------------------------- passes by decorators


def module_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Any:
    """Make a pass of ``f(mod, context)``, which returns a module, or of a class whose objects have
    ``transform_module(mod, context)``; without ``pass_func``, a decorator. ``opt_level`` must be given."""

    def runner(transform_module: Any, label: str) -> Callable[[IRModule], IRModule]:
        return lambda mod: transform_module(mod, PassContext.current())

    return _decorated(ModulePass, "transform_module", runner, pass_func, opt_level, name, required, traceable)


def function_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Any:
    """Make a pass of ``f(func, mod, context)``, which returns the graph function that takes the place of ``func``, or
    of a class whose objects have ``transform_function(func, mod, context)``; without ``pass_func``, a decorator."""
    return _of_functions(FunctionPass, Function, pass_func, opt_level, name, required, traceable)


def prim_func_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Any:
    """Like `function_pass`, for the module's loop functions."""
    return _of_functions(PrimFuncPass, PrimFunc, pass_func, opt_level, name, required, traceable)


def dataflowblock_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Any:
    """Make a pass of ``f(block, mod, context)``, which returns the dataflow block that takes the place of ``block``, or
    of a class whose objects have ``transform_dataflowblock(block, mod, context)``; without ``pass_func``, a decorator.

    What the block gives to the rest of the function stays bound: its output variables and the symbols that it
    defines. A `DiagnosticError` (a ``ValueError``) says which one is missing.
    """

    def runner(transform_block: Any, label: str) -> Callable[[IRModule], IRModule]:
        def run(mod: IRModule) -> IRModule:
            context = PassContext.current()

            def rewrite(node: Node) -> Node | None:
                if not isinstance(node, DataflowBlock):
                    return None
                made = transform_block(node, mod, context)
                if not isinstance(made, DataflowBlock):
                    raise _wrong_result(label, DataflowBlock, made)
                _check_outputs(label, node, made)
                return made

            changed = mod.clone()
            for var, func in mod.items():
                if isinstance(func, Function):
                    changed[var] = transform(func, rewrite, into_types=False)  # type: ignore[assignment]
            return changed

        return run

    return _decorated(
        DataflowBlockPass, "transform_dataflowblock", runner, pass_func, opt_level, name, required, traceable
    )


def _of_functions(made: type[Pass], kind: type[Function | PrimFunc], pass_func: Any, *details: Any) -> Any:
    def runner(transform_function: Any, label: str) -> Callable[[IRModule], IRModule]:
        def run(mod: IRModule) -> IRModule:
            context, changed = PassContext.current(), mod.clone()
            for var, func in mod.items():
                if isinstance(func, kind):
                    new = transform_function(func, mod, context)
                    if not isinstance(new, kind):
                        raise _wrong_result(label, kind, new)
                    changed[var] = new
            return changed

        return run

    return _decorated(made, "transform_function", runner, pass_func, *details)


def _wrong_result(label: str, expected: type, actual: object) -> TypeError:
    return TypeError(f"{label}: the pass must return a {expected.__name__}, got {type(actual).__name__}")


def _check_outputs(label: str, before: DataflowBlock, after: DataflowBlock) -> None:
    bound = {id(b.var) for b in after.bindings}  # type: ignore[attr-defined]
    for binding in before.bindings:
        var: Var = binding.var  # type: ignore[attr-defined]
        if not isinstance(var, DataflowVar) and id(var) not in bound:
            raise _lost(label, "output variable", var)
    kept = _symbols(after)
    for symbol in _symbols(before).values():
        if id(symbol) not in kept and not isinstance(symbol, DataflowVar):
            raise _lost(label, "symbol", symbol)


def _symbols(block: DataflowBlock) -> dict[int, Var]:
    """The symbols in the types that a block matches, by id: it may define them."""
    types = [ty for b in block.bindings for ty in children(b) if isinstance(ty, Node) and hasattr(b, "ty")]
    return {id(v): v for ty in types for v in pre_order(ty) if isinstance(v, Var) and isinstance(v.ty, PrimType)}


def _lost(label: str, what: str, var: Var) -> DiagnosticError:
    return DiagnosticError(
        f"{label}: a pass of dataflow blocks neither replaces nor deletes what the rest of the function may use: "
        f"the {what} {var.name} is not bound any more",
        var.span,
        rule="dataflowblock_pass",
    )


Runner = Callable[[Any, str], Callable[[IRModule], IRModule]]


def _decorated(
    kind: type[Pass],
    method: str,
    runner: Runner,
    pass_func: Any,
    opt_level: int | None,
    name: str | None,
    required: Sequence[str] | None,
    traceable: bool,
) -> Any:
    """A pass of a function, a class of passes of a class, or (without ``pass_func``) what makes one of them."""
    if opt_level is None:
        raise ValueError(f"{kind.__name__}: the opt_level must be given, as in @...(opt_level=0)")
    details = (opt_level, () if required is None else required, traceable)

    def make(given: Any) -> Any:
        if not callable(given):
            raise TypeError(f"{kind.__name__}: expected a function or a class, got {given!r}")
        label = name or str(getattr(given, "__name__", type(given).__name__))
        PassInfo(opt_level, label, details[1], traceable)  # type: ignore[arg-type]  # refuses what does not fit now
        if isinstance(given, type):
            return _class_of_passes(kind, given, method, runner, label, details)
        return kind(label, runner(given, label), *details)

    return make if pass_func is None else make(pass_func)


def _class_of_passes(
    kind: type[Pass], made_by: type, method: str, runner: Runner, label: str, details: tuple[Any, ...]
) -> type[Pass]:
    """A class like ``made_by`` whose objects are passes; other attributes are those of an object of ``made_by``."""

    class Made(kind):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self._inner = made_by(*args, **kwargs)
            if not callable(getattr(self._inner, method, None)):
                raise TypeError(f"{label}: a class of passes needs a method {method}")
            super().__init__(label, runner(getattr(self._inner, method), label), *details)

        def __getattr__(self, attribute: str) -> Any:
            if attribute == "_inner":
                raise AttributeError(attribute)
            return getattr(self._inner, attribute)

    for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(Made, attribute, getattr(made_by, attribute))
    return Made
