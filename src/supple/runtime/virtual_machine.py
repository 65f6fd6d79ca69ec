"""``relax.VirtualMachine``: the functions of an executable, inputs set ahead of a call, and timing."""

from __future__ import annotations

import enum
import functools
import itertools
import statistics
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.base.errors import NotSupportedError
from supple.runtime.device import Device, require_cpu
from supple.runtime.executable import MACHINE, RUNNING, CompiledFunction, Executable
from supple.runtime.instructions import InstructionExecutable, InstructionFunction
from supple.runtime.packed import get_global_func, register_global_func, remove_global_func

_NOTHING = object()
_prefixes = itertools.count()


class VMInstrumentReturnKind(enum.IntEnum):
    """What an instrument's return says about the call that comes: run it, or leave it out (its results are zeros)."""

    NO_OP = 0
    SKIP_RUN = 1


Instrument = Callable[..., int | None]
"""``instrument(function, name, before_run, result, *args)``, see `VirtualMachine.set_instrument`."""


@dataclass(frozen=True)
class BenchmarkResult:
    """Times of a function: ``results`` are seconds per call, one average for each repeat."""

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.results)

    @property
    def median(self) -> float:
        return statistics.median(self.results)

    @property
    def min(self) -> float:
        return min(self.results)

    @property
    def max(self) -> float:
        return max(self.results)

    @property
    def std(self) -> float:
        """The standard deviation of the population."""
        return statistics.pstdev(self.results)

    def __str__(self) -> str:
        names = ("mean", "median", "max", "min", "std")
        return "\n".join(f"{name:>8} {getattr(self, name) * 1000:10.4f} ms" for name in names)


class VirtualMachine:
    """Runs an executable's functions: ``vm["main"](x, w)``.

    ``device`` is accepted for the sake of Relax's signature; it must be the CPU. Several threads may call the same
    machine at once. `set_input`, `invoke_stateful` and `get_outputs` keep one call per function name.
    """

    def __init__(
        self,
        executable: Executable | InstructionExecutable,
        device: Device | Sequence[Device] | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(executable, (Executable, InstructionExecutable)):
            raise TypeError(
                f"VirtualMachine: expected an Executable, got {type(executable).__name__}; "
                "compile the module first: supple.compile(mod)"
            )
        if options:
            raise TypeError(f"VirtualMachine: unknown option {next(iter(options))!r}")
        devices = [device] if isinstance(device, Device) else list(device or ())
        for one in devices:
            require_cpu(one, "VirtualMachine")
        self.module = executable
        if not isinstance(executable.machine(), VirtualMachine):
            executable.machine = weakref.ref(self)
        self._watched: Executable | None = None
        self.instrument: Callable[[Callable[..., Any], str, tuple[Any, ...]], Any] | None = None
        """What calls a registered function where instructions are interpreted, see `set_instrument`."""
        self._saved: dict[str, Callable[[], Any]] = {}
        self._inputs: dict[str, tuple[Any, ...]] = {}
        self._outputs: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """A function of the executable, or one of `save_function`; raises ``KeyError`` with close names for a miss."""
        return self._saved.get(name) or self._own(self._watched or self.module, name)

    def _own(self, executable: Executable | InstructionExecutable, name: str) -> Any:
        """A function of an executable; where its callees ask for the machine, they get this one."""
        function = executable[name]
        return _OnMachine(self, function) if executable.passes_machine else function

    def __contains__(self, name: object) -> bool:
        return name in self._saved or name in self.module

    def save_function(
        self, func_name: str, saved_name: str, *args: Any, include_return: bool = True, **kwargs: Any
    ) -> None:
        """Make ``vm[saved_name]()`` the call of a function with these arguments (the arrays are kept, not copied).

        With ``include_return=False`` the result is dropped. Raises `ArgumentError` for arguments that the parameters
        do not have, and ``ValueError`` when the name is taken by a function of the executable.
        """
        if saved_name in self.module:
            raise ValueError(f"save_function: the executable has a function {saved_name!r} already")
        function = self._own(self.module, func_name)
        call = functools.partial(function, *function.in_order(args, kwargs))
        self._saved[saved_name] = call if include_return else lambda: (call(), None)[1]

    def set_instrument(self, instrument: Instrument | None) -> None:
        """Call a function before and after every call of a loop function or packed function; None removes it.

        ``instrument(function, name, before_run, result, *args)`` gets the callee, its name, whether it is about to
        run, its result (None before; None for a loop function, whose last arguments are its results), and the
        arguments. Returning `VMInstrumentReturnKind.SKIP_RUN` before leaves the call out: the results of a loop
        function are zeros then, that of a packed function is None. The machine runs another build of the same module
        meanwhile, with one call into Python for each call; in-place calls are not shown. Functions taken from the
        machine before keep running as they were. Raises `NotSupportedError` for an executable without its module.
        """
        if instrument is None:
            self._watched = self.instrument = None
            return
        if not callable(instrument):
            raise TypeError(f"set_instrument: expected a function or None, got {instrument!r}")
        if isinstance(self.module, InstructionExecutable):
            self.instrument = functools.partial(_watched_call, instrument)
            return
        if self.module.watched is None:
            raise NotSupportedError("set_instrument: the executable has no module; compile it in this process")
        prefix = f"vm.instrument.{next(_prefixes)}."
        made = self.module.watched(prefix)
        for name, (numbers, results) in made.loops.items():
            run = functools.partial(_run, weakref.ref(made.executable), name)
            register_global_func(prefix + name, _loop_watch(instrument, name, run, numbers, results))
        for name in made.packed:
            register_global_func(prefix + name, _packed_watch(instrument, name))
        names = [prefix + name for name in (*made.loops, *made.packed)]
        weakref.finalize(made.executable, _unregister, names)  # its functions and closures may outlive the machine
        self._watched = made.executable

    def set_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Keep the arguments for `invoke_stateful`; raises `ArgumentError` when their number or names do not fit."""
        self._inputs[func_name] = self.module[func_name].in_order(args, kwargs)
        self._outputs.pop(func_name, None)

    def invoke_stateful(self, func_name: str) -> None:
        """Call a function with the arguments of `set_input`; `get_outputs` has the result.

        Raises ``ValueError`` before `set_input`, and what the call raises.
        """
        function = self._own(self.module, func_name)
        inputs = self._inputs.get(func_name)
        if inputs is None and function.info.params:
            raise ValueError(f"invoke_stateful: no input for {func_name!r}; call set_input({func_name!r}, ...) first")
        self._outputs[func_name] = function(*(inputs or ()))

    def get_outputs(self, func_name: str) -> Any:
        """The result of the last `invoke_stateful`; raises ``ValueError`` when there was none."""
        result = self._outputs.get(func_name, _NOTHING)
        if result is _NOTHING:
            raise ValueError(f"get_outputs: {func_name!r} has not run; call invoke_stateful({func_name!r}) first")
        return result

    def time_evaluator(
        self,
        func_name: str,
        dev: Device | None = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
        f_preproc: str = "",
    ) -> Callable[..., BenchmarkResult]:
        """A callable that times a function: ``vm.time_evaluator("main", supple.cpu())(x, w).mean`` seconds.

        After one call to warm up, each of ``repeat`` results is the average of ``number`` calls, of more when they
        take less than ``min_repeat_ms``; after every ``repeats_to_cooldown`` results it sleeps
        ``cooldown_interval_ms``. ``func_name`` may be ``"invoke_stateful"``. The time is that of calls from Python.
        """
        if f_preproc:
            raise NotSupportedError(f"time_evaluator: f_preproc={f_preproc!r} is not supported")
        if number < 1 or repeat < 1 or repeats_to_cooldown < 1:
            raise ValueError("time_evaluator: number, repeat and repeats_to_cooldown must be at least 1")
        function = self.invoke_stateful if func_name == "invoke_stateful" else self[func_name]

        def evaluate(*args: Any) -> BenchmarkResult:
            function(*args)
            calls, results = number, []
            for done in range(1, repeat + 1):
                spent = _seconds(function, args, calls)
                while spent * 1000 < min_repeat_ms:
                    calls = max(calls + 1, int(calls * min(10.0, 1.1 * min_repeat_ms / max(spent * 1000, 1e-3))))
                    spent = _seconds(function, args, calls)
                results.append(spent / calls)
                if cooldown_interval_ms and done % repeats_to_cooldown == 0:
                    time.sleep(cooldown_interval_ms / 1000)
            return BenchmarkResult(tuple(results))

        return evaluate


class _OnMachine:
    """A compiled function whose calls of ``R.call_builtin_with_ctx`` get a machine; all else is the function's own."""

    def __init__(self, machine: VirtualMachine, function: CompiledFunction | InstructionFunction) -> None:
        self._machine = machine
        self._function = function

    def __call__(self, *args: Any, **named: Any) -> Any:
        before = RUNNING.executable, RUNNING.machine
        RUNNING.executable, RUNNING.machine = self._function.executable, self._machine
        try:
            return self._function(*args, **named)
        finally:
            RUNNING.executable, RUNNING.machine = before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __repr__(self) -> str:
        return repr(self._function)


MACHINE.append(VirtualMachine)


def _seconds(function: Callable[..., Any], args: tuple[Any, ...], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        function(*args)
    return time.perf_counter() - start


def _run(executable: weakref.ref[Executable], name: str, *args: Any) -> Any:
    """A loop function of an executable that this does not keep alive; while it is called, its caller does."""
    alive = executable()
    if alive is None:
        raise RuntimeError(f"instrument: the executable of {name} is gone")
    return alive[name](*args)


def _skips(answer: Any) -> bool:
    """Whether an instrument's return leaves the call out; raises ``TypeError`` for one that says nothing."""
    if answer is None:
        return False
    if answer not in tuple(VMInstrumentReturnKind):
        raise TypeError(f"instrument: expected None or a VMInstrumentReturnKind as its result, got {answer!r}")
    return bool(answer == VMInstrumentReturnKind.SKIP_RUN)


def _loop_watch(
    instrument: Instrument, name: str, run: Callable[..., Any], numbers: int, results: int
) -> Callable[..., None]:
    """The registered function in the place of a loop function: its results come last, numbers before them."""

    def call(*args: Any) -> None:
        end = len(args) - results
        inputs, given, outputs = args[: end - numbers], args[end - numbers : end], args[end:]
        operands = (*inputs, *outputs, *given)
        if _skips(instrument(run, name, True, None, *operands)):
            for output in outputs:
                output.copyfrom(np.zeros_like(output.numpy()))
            return
        run(*operands)
        instrument(run, name, False, None, *operands)

    return call


def _packed_watch(instrument: Instrument, name: str) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        function = get_global_func(name)
        assert function is not None, "a miss raises"
        return _watched_call(instrument, function, name, args)

    return call


def _watched_call(instrument: Instrument, function: Callable[..., Any], name: str, args: tuple[Any, ...]) -> Any:
    """A call of a registered function between two calls of an instrument."""
    if _skips(instrument(function, name, True, None, *args)):
        return None
    result = function(*args)
    instrument(function, name, False, result, *args)
    return result


def _unregister(names: list[str]) -> None:
    for name in names:
        remove_global_func(name)
