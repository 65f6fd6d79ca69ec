"""The compiler on one page: a module of graph and loop functions in, an executable out."""

from __future__ import annotations

import contextlib
import functools
import gc
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from supple.base import dtypes
from supple.base.config import config
from supple.base.errors import DiagnosticError, NotSupportedError
from supple.base.named_target import NamedTarget, machine_of
from supple.base.target import Target
from supple.codegen import program_cache
from supple.codegen.host import emit_host
from supple.codegen.host_emitter import entry_symbol
from supple.codegen.kernel import KernelCode, emit_kernel
from supple.codegen.llvm import compile_text
from supple.codegen.llvm_pool import ObjectCompiler
from supple.ir.graph import Function
from supple.ir.host import show_type
from supple.ir.loop import PrimFunc
from supple.ir.module import IRModule
from supple.ir.node import Type
from supple.ir.types import AnyType, BufferType, FuncType, PrimType, ShapeType, StringType, TensorType, TupleType
from supple.passes.cast_values import bind_cast_values
from supple.passes.dead_code import dead_code
from supple.passes.escape import functions_that_keep
from supple.passes.fold_constant import fold_constant
from supple.passes.fuse_ops import fuse_ops
from supple.passes.fuse_tir import fuse_tir
from supple.passes.host_kernels import KernelInfo
from supple.passes.host_values import shape_text
from supple.passes.instrument import instrument
from supple.passes.legalize import legalize
from supple.passes.lift_functions import lift_functions
from supple.passes.noalias import mark_noalias, written_buffers
from supple.passes.pack_constants import pack_constants
from supple.passes.plan_memory import plan_memory
from supple.passes.specialize import specialize
from supple.passes.to_host import to_host
from supple.runtime.abi import ErrorSite
from supple.runtime.executable import Executable, WatchedExecutable
from supple.runtime.program import Program
from supple.runtime.signature import (
    AnySpec,
    CallableSpec,
    FunctionInfo,
    NumberSpec,
    ParamSpec,
    ShapeSpec,
    Spec,
    StringSpec,
    TensorSpec,
    TupleSpec,
)
from supple.schedule.default import schedule_func
from supple.verify.well_formed import check_module


@dataclass(frozen=True)
class Pass:
    """One step of the pipeline on modules, and why it is where it is."""

    name: str
    run: Callable[[IRModule, Target], IRModule]
    reason: str


def _schedule(mod: IRModule, target: Target) -> IRModule:
    scheduled = mod.clone()
    for var, func in mod.items():
        if isinstance(func, PrimFunc):
            scheduled[var] = schedule_func(func, target)
    return scheduled


PIPELINE: tuple[Pass, ...] = (
    Pass("bind_cast_values", lambda mod, _: bind_cast_values(mod), "the others look for calls in bound values"),
    Pass("lift_functions", lambda mod, _: lift_functions(mod), "the others then see functions of the module"),
    Pass("remove_unused", lambda mod, _: dead_code(mod), "what no result needs costs compile time in every step"),
    Pass("legalize", lambda mod, _: legalize(mod), "operators become call_tir and loop functions"),
    Pass("fold_constant", lambda mod, _: fold_constant(mod, exact=True), "known now, and to the same bits"),
    Pass(
        "fuse_ops",
        lambda mod, _: fuse_ops(mod, moves=True),
        "groups are found on the graph, which shows all users of a value",
    ),
    Pass("fuse_tir", lambda mod, _: fuse_tir(mod), "each group becomes one loop function that the schedule sees whole"),
    Pass("specialize", lambda mod, _: specialize(mod), "sizes that the calls fix become constants, for the schedule"),
    Pass("pack_constants", pack_constants, "sizes and tiles are known; packing while compiling is packing once"),
    Pass("dead_code", lambda mod, _: dead_code(mod), "functions that were fused or copied are not called any more"),
    Pass("noalias", lambda mod, _: mark_noalias(mod), "all calls of loop functions are visible now"),
    Pass("schedule", _schedule, "last, on loop functions as they will run: tiles, vectors, packing"),
)
"""The steps from the module as written to the module whose loop functions become kernels one by one."""


@dataclass
class Context:
    """What the steps of one compilation share: seconds by step, and where dumps go."""

    timings: dict[str, float] = field(default_factory=dict)
    dump_dir: Path | None = None
    _count: int = 0

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time a step."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.timings[name] = self.timings.get(name, 0.0) + time.perf_counter() - start

    def report(self) -> str:
        """The steps that took a millisecond or more, in order, and the whole."""
        total = sum(self.timings.values())
        rows = [(name, seconds) for name, seconds in self.timings.items() if seconds >= 0.001]
        lines = [f"  {name:<16} {seconds * 1000:8.1f} ms  {seconds / total:4.0%}" for name, seconds in rows]
        return "\n".join([f"supple: compiled in {total * 1000:.1f} ms", *lines])

    def dump(self, name: str, text: str, suffix: str = "py") -> None:
        """Write a step's result to ``NN_name.py`` in the dump directory, if there is one."""
        if self.dump_dir is not None:
            self.dump_dir.mkdir(parents=True, exist_ok=True)
            (self.dump_dir / f"{self._count:02d}_{name}.{suffix}").write_text(text, encoding="utf-8")
            self._count += 1


def compile(
    mod: IRModule | Function | PrimFunc,
    target: str | Target | NamedTarget | Mapping[str, Any] | None = None,
    *,
    results: str = "match",
    dump: str | Path | None = None,
) -> Executable:
    """Compile a module, or a single function, for a target: by default ``Target.current()``, else this machine.

    ``results`` fixes how array results appear: ``"match"`` (as the first array argument), ``"numpy"``, ``"tensor"``
    or ``"torch"``. ``dump`` is a directory that receives the module after every step (default: ``SUPPLE_DUMP``).

    What was compiled once is kept on disk (``SUPPLE_CACHE``) and only loaded the next time.

    A bare function is reachable under its own name and as ``main``. Private functions cannot be called from outside.
    Raises `DiagnosticError` for a module that is not well formed, `NotSupportedError` naming what native code cannot
    do yet, ``ValueError`` for an unknown target.
    """
    machine = machine_of(target)
    if not machine.is_host:
        raise NotSupportedError(f"target {machine} is not this machine: code for it cannot be loaded here")
    context = Context(dump_dir=Path(dump) if dump is not None else config.dump_dir)
    with _collections.fewer():
        module, alias = _as_module(mod)
        with context.step("cache"):
            key = None if context.dump_dir is not None else program_cache.key_of(module, machine, results, alias)
            kept = None if key is None else program_cache.load(key)
        if kept is not None:
            program = replace(kept, timings=context.timings)
        else:
            lowered = run_passes(module, machine, context)
            program = _generate(lowered, machine, context, results, alias)
            if key is not None:
                with context.step("cache"):
                    program_cache.store(key, program)
        with context.step("load"):
            executable = Executable(program)
        executable.watched = functools.partial(_watched, module, machine, results, alias)
    if config.time_passes:
        print(context.report(), file=sys.stderr)
    return executable


def _watched(mod: IRModule, target: Target, results: str, alias: str | None, prefix: str) -> WatchedExecutable:
    """The module compiled so that every call of a loop or packed function goes through ``prefix + name``."""
    with _collections.fewer():
        made = instrument(run_passes(mod, target), prefix)
        executable = Executable(_generate(made.mod, target, Context(), results, alias))
    return WatchedExecutable(executable, made.loops, made.packed)


def lower(
    mod: IRModule | Function | PrimFunc, target: str | Target | NamedTarget | Mapping[str, Any] | None = None
) -> IRModule:
    """The module just before code generation: ``call_tir`` and scheduled loop functions, printable and runnable.

    Raises what `compile` raises for a module that is not well formed.
    """
    with _collections.fewer():
        return run_passes(_as_module(mod)[0], machine_of(target))


def run_passes(mod: IRModule, target: Target, context: Context | None = None) -> IRModule:
    """The module after `PIPELINE`: ``call_tir`` and scheduled loop functions."""
    context = context if context is not None else Context()
    with context.step("verify"):
        check_module(mod)
    context.dump("input", _text(mod) if context.dump_dir else "")
    for step in PIPELINE:
        before = mod
        with context.step(step.name):
            mod = step.run(mod, target)
        if config.check and not _same_functions(mod, before):
            with context.step("verify"):
                check_module(mod)
        context.dump(step.name, _text(mod) if context.dump_dir else "")
    return mod


def _same_functions(mod: IRModule, other: IRModule) -> bool:
    """Whether two modules hold the same objects (which never change) under the same names."""
    return len(mod) == len(other) and all(
        var is var2 and func is func2
        for (var, func), (var2, func2) in zip(mod.items(), other.items(), strict=True)
    )  # fmt: skip


def _generate(mod: IRModule, target: Target, context: Context, results: str, alias: str | None) -> Program:
    """Kernels, then host code that calls them, then object code of both."""
    sites: list[ErrorSite] = []
    kernels: dict[str, KernelCode] = {}
    with ObjectCompiler(target) as compiler:
        with context.step("kernels"):
            for index, (var, func) in enumerate(mod.items()):
                if isinstance(func, PrimFunc):
                    symbol = f"kernel.{index}.{re.sub(r'[^A-Za-z0-9_]', '_', var.name_hint)}"
                    with _placed(func):
                        code = emit_kernel(func, symbol, target, sites, title=var.name_hint)
                    context.dump(code.name, code.llvm_text, "ll")
                    kernels[var.name_hint] = code
                    compiler.add(code.llvm_text)
        with context.step("llvm kernels"):
            objects = compiler.results()
    infos = {n: KernelInfo(c.name, c.params, c.symbols, c.workspace_bytes) for n, c in kernels.items()}
    with context.step("host"):
        host = to_host(mod, infos)
        planned = [plan_memory(function) for function in host.functions]
        public = [f.name for f in planned if "global_symbol" in mod[f.name].attrs]
        text = emit_host(planned, public, sites, host.closures)
    readable = "\n\n".join(function.text() for function in planned)
    context.dump("host", readable, "txt")
    context.dump("host", text, "ll")
    with context.step("llvm host"):
        objects.append(compile_text(text, target, level=0, passes=False))
    kept = functions_that_keep(mod)
    functions = _functions(mod, public, alias, kept)
    closures = tuple(_info(mod, name, name, True) for name in host.closures)
    return Program(
        tuple(objects), functions, tuple(host.constants), tuple(sites), tuple(host.calls), readable, results,
        context.timings, closures, (target.arch, *(f for f in target.features.split(",") if f.startswith("+"))),
    )  # fmt: skip


@contextlib.contextmanager
def _placed(func: PrimFunc) -> Iterator[None]:
    """An error without a place is one of the function."""
    try:
        yield
    except DiagnosticError as error:
        if error.span is None:
            error.span = func.span
        raise


def _functions(mod: IRModule, public: list[str], alias: str | None, kept: set[str]) -> tuple[FunctionInfo, ...]:
    infos: list[FunctionInfo] = []
    for name in public:
        infos.append(_info(mod, name, name, name in kept))
        if name == alias:
            infos.append(replace(infos[-1], name="main", label=name))
    return tuple(infos)


def _info(mod: IRModule, name: str, symbol: str, kept: bool) -> FunctionInfo:
    """A function's signature as plain data. ``kept``: its tensors may outlive the call, or be written."""
    func = mod[name]
    assert isinstance(func, (Function, PrimFunc))
    params = _loop_params(func) if isinstance(func, PrimFunc) else _graph_params(func, kept)
    result = "" if isinstance(func, PrimFunc) else show_type(func.ret_ty)
    in_tuple = isinstance(func.ret_ty, TupleType)
    fields = func.ret_ty.fields if isinstance(func.ret_ty, TupleType) else (func.ret_ty,)
    found = tuple(field.dtype for field in fields if isinstance(field, TensorType) and field.dtype is not None)
    result_dtypes = found if found and len(found) == len(fields) else None
    return FunctionInfo(name, entry_symbol(symbol), params, result, result_dtypes=result_dtypes, in_tuple=in_tuple)


def _graph_params(func: Function, kept: bool) -> tuple[ParamSpec, ...]:
    return tuple(ParamSpec(p.name, spec_of(p.ty, kept)) for p in func.params)


def _loop_params(func: PrimFunc) -> tuple[ParamSpec, ...]:
    written = written_buffers(func)
    params: list[ParamSpec] = []
    for p in func.params:
        if isinstance(p.ty, BufferType):
            spec = TensorSpec(shape_text(p.ty.shape, p.ty.dtype), p.ty.dtype, len(p.ty.shape))
            params.append(ParamSpec(p.name, spec, id(p) in written))
        else:
            params.append(ParamSpec(p.name, spec_of(p.ty)))
    return tuple(params)


def spec_of(ty: Type | None, kept: bool = False) -> Spec:
    """A parameter's type as plain data."""
    text = show_type(ty)
    if isinstance(ty, TensorType):
        return TensorSpec(text, ty.dtype, ty.ndim, kept)
    if isinstance(ty, TupleType):
        return TupleSpec(text, tuple(spec_of(f, kept) for f in ty.fields))
    if isinstance(ty, FuncType):
        return CallableSpec(text)
    if isinstance(ty, ShapeType):
        return ShapeSpec(text, ty.ndim)
    if isinstance(ty, PrimType) and dtypes.row(ty.dtype).kind != "handle":
        return NumberSpec(text, ty.dtype)
    if isinstance(ty, StringType):
        return StringSpec(text)
    if ty is None or isinstance(ty, AnyType):
        return AnySpec(text)
    raise NotSupportedError(f"parameters of type {text} are not supported by native code")


def _as_module(mod: Any) -> tuple[IRModule, str | None]:
    """The module to compile, and the name that is reachable as ``main`` as well."""
    if isinstance(mod, IRModule):
        return mod, None
    if not isinstance(mod, (Function, PrimFunc)):
        raise TypeError(f"compile: expected an IRModule or a function, got {type(mod).__name__}")
    name = str(mod.attrs.get("global_symbol", "main"))
    func = mod.with_attr("global_symbol", name)
    return IRModule({name: func}), None if name == "main" else name


def _text(mod: IRModule) -> str:
    return mod.script(style="supple")  # which runs as a file


class _Collections:
    """Garbage is collected less often while anything is compiled: a compilation makes many nodes and little garbage."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._before = (0, 0, 0)

    @contextlib.contextmanager
    def fewer(self) -> Iterator[None]:
        """For the time of one compilation; the settings come back with the end of the last that runs."""
        with self._lock:
            if self._running == 0:
                self._before = gc.get_threshold()
                gc.set_threshold(200_000, 50, 50)
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                if self._running == 0:
                    gc.set_threshold(*self._before)


_collections = _Collections()
