"""Compiled modules: the executable, its functions, the virtual machine that runs them."""

from __future__ import annotations

import ctypes
import functools
import os
import re
import struct
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from supple.base.errors import ArgumentError, ExecutionError, InternalError, MissingFunctionError
from supple.base.registry import did_you_mean
from supple.runtime import abi
from supple.runtime.abi import Status
from supple.runtime.activation import Activation, fail_assertion, print_values, require_headroom
from supple.runtime.boxing import RESULT_KINDS, box, box_none, describe
from supple.runtime.closure import Closure
from supple.runtime.entry import FastEntry
from supple.runtime.library import load_program, save_program
from supple.runtime.native import Library, load_objects, runtime
from supple.runtime.packed import get_global_func
from supple.runtime.program import PackedCall, Program
from supple.runtime.signature import (
    FunctionInfo,
    TensorSpec,
    fast_plan,
    header_words,
    in_order,
    make_converter,
    wrong_count,
)
from supple.runtime.tensor import NDArray

_KEPT_ACTIVATIONS = 8


class Executable:
    """A compiled module. Its code is in memory as long as the executable or any function taken from it is."""

    def __init__(self, program: Program) -> None:
        if program.results not in RESULT_KINDS:
            raise ValueError(f"results: expected one of {', '.join(RESULT_KINDS)}, got {program.results!r}")
        self.program = program
        self.machine: weakref.ref[Any] = weakref.ref(self)
        """The machine for calls that come from none: the first that is made of the executable."""
        self.watched: Callable[[str], WatchedExecutable] | None = None
        """Compiles the module again for `VirtualMachine.set_instrument`; None when there is no module any more."""
        self._constants = _Constants(program.constants)
        self.constants_address = self._constants.address
        entries = dict.fromkeys(f.symbol for f in (*program.functions, *program.closures))
        self._library: Library = load_objects(program.objects, entries)
        self._functions: dict[str, CompiledFunction] = {}
        self._closures: dict[int, CompiledFunction] = {}
        for info in program.functions:
            self._functions[info.name] = compiled_function(self, info, self._library.addresses[info.symbol])

    @property
    def functions(self) -> list[str]:
        """The names of the functions that can be called."""
        return list(self._functions)

    @property
    def passes_machine(self) -> bool:
        """Whether its functions call others that get the virtual machine."""
        return any(call.kind == "context" for call in self.program.calls)

    @property
    def timings(self) -> Mapping[str, float]:
        """Seconds that each step of the compilation took."""
        return self.program.timings

    def __getitem__(self, name: str) -> CompiledFunction:
        """The function of that name; raises ``KeyError`` with close names for a miss."""
        return function_named(self._functions, name)

    def __contains__(self, name: object) -> bool:
        return name in self._functions

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call ``main``, or the only function there is; raises ``TypeError`` where it is not clear which."""
        names = self.functions
        if "main" not in self._functions and len(names) != 1:
            raise TypeError(
                f"no function to call: expected main, or one function alone, found {', '.join(names) or 'none'}; "
                f"take one by its name, as in executable[{names[0] if names else 'main'!r}]"
            )
        return self["main" if "main" in self._functions else names[0]](*args, **named)

    def export_library(self, file_name: str | os.PathLike[str], **options: Any) -> None:
        """Write the compiled module to a file, which `load_module` reads on machines of the same kind.

        It is Supple's own kind of file (object code and plain data), whatever its name ends in. Raises ``TypeError``
        for options, which are those of a C compiler in Relax."""
        if options:
            raise TypeError(f"export_library: unknown option {next(iter(options))!r}: no other compiler is called")
        save_program(self.program, file_name)

    def jit(self) -> Executable:
        """The executable itself: its code is loaded already."""
        return self

    def as_text(self) -> str:
        """The functions and the host code that calls the kernels, for reading."""
        heads = "\n".join(str(info) for info in self.program.functions)
        return f"{heads}\n\n{self.program.text}"

    def stats(self) -> str:
        """What the executable holds: its constants and functions, and what it calls in Python."""
        program = self.program
        names = [*self._functions, *dict.fromkeys(call.name for call in program.calls if call.name)]
        shown = [c if c is None or isinstance(c, str) else f"{c.shape} {c.dtype}" for c in program.constants]
        constants = ", ".join(map(str, shown))
        return (
            "Relax VM executable statistics:\n"
            f"  Constant pool (# {len(program.constants)}): [{constants}]\n"
            f"  Globals (#{len(names)}): [{', '.join(names)}]\n"
        )

    def show(self) -> None:
        """Print `as_text`."""
        print(self.as_text())

    def packed_function(self, call: int) -> Callable[..., Any]:
        """The Python function of a call from compiled code; raises `RegistryError` when it is not registered."""
        target = self.program.calls[call]
        return _PYTHON[target.kind](self, target)

    def call_closure(self, closure: Closure, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """Call the function behind a closure, on what it captured and the arguments."""
        index = ctypes.c_int32.from_address(closure.address + abi.OBJECT_CODE).value
        function = self._closures.get(index)
        if function is None:
            info = self.program.closures[index]
            function = CompiledFunction(self, info, self._library.addresses[info.symbol])
            self._closures[index] = function
        return function.call_captured(closure, args, named)


def load_module(path: str | os.PathLike[str]) -> Executable:
    """The executable that `Executable.export_library` wrote to a file.

    Raises ``FileNotFoundError`` when there is none, `LibraryError` (a ``ValueError``) for a file that is no compiled
    program or was damaged, `NotSupportedError` for one that is for another processor. A file holds machine code: load
    only what you trust."""
    return Executable(load_program(path))


@dataclass(frozen=True)
class WatchedExecutable:
    """An executable whose calls go through registered functions. ``loops``: the loop functions that are called, each
    with how many numbers stand between its inputs and results, and how many results; ``packed``: the registered
    functions."""

    executable: Executable
    loops: Mapping[str, tuple[int, int]]
    packed: frozenset[str]


class CompiledFunction:
    """A compiled function. Calling it checks the arguments, runs native code once, and returns Python values.

    Arrays are numpy arrays, `Tensor`, torch tensors or CPU DLPack objects, shared without copies (views that are not
    compact are copied). Raises `ArgumentError` for arguments that do not fit the signature, `ExecutionError` for
    failures inside, and whatever a packed function raised.
    """

    def __init__(self, executable: Executable, info: FunctionInfo, address: int) -> None:
        self.executable = executable
        self.info = info
        self.__name__ = info.name
        self._native = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(address)
        self._results = executable.program.results
        self._calls_python = bool(executable.program.calls)
        self._free: list[Activation] = []
        layout = Activation(executable, info)
        self._converters = tuple(
            make_converter(info.title, i, param, at)
            for i, (param, at) in enumerate(zip(info.params, layout.header_at, strict=True))
        )
        self._plan = fast_plan(info.params, layout.header_at)
        self._written = tuple(i for i, p in enumerate(info.params) if p.written)
        self._free.append(layout)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the function; where `compiled_function` found a faster way, this is what that falls back on."""
        if named:
            args = self.in_order(args, named)
        return self._call(args, (), "tensor")

    def call_captured(self, closure: Closure, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """Call the function of a closure: what it captured comes before the arguments."""
        length = ctypes.c_int64.from_address(closure.address + abi.LIST_LENGTH).value
        captured = (ctypes.c_uint64 * length).from_address(closure.address + abi.CLOSURE_CAPTURED)[:]
        if named:
            args = self.in_order(args, named, length)
        return self._call(args, captured, closure.kind)

    def _call(self, args: tuple[Any, ...], captured: Sequence[int], kind: str) -> Any:
        converters = self._converters[len(captured) :] if captured else self._converters
        if len(args) != len(converters):
            raise wrong_count(self.info.title, self._names(len(captured)), len(args))
        if self._calls_python:
            require_headroom()
        try:
            activation = self._free.pop()
        except IndexError:
            activation = Activation(self.executable, self.info)
        try:
            activation.begin(args, captured)
            if self._plan is not None and activation.bind(args, self._plan):
                activation.kind = "numpy"
            else:
                for convert, value in zip(converters, args):
                    convert(activation, value)
            if self._written:
                self._refuse_overlap(activation)
            status = self._native(activation.address, activation.args_address, activation.result_address)
            if status:
                raise self._failure(activation, status, args)
            return activation.take_result(self._results if self._results != "match" else activation.kind or kind)
        finally:
            activation.end()
            if len(self._free) < _KEPT_ACTIVATIONS:
                self._free.append(activation)

    def fast_entry(self, address: int) -> FastEntry | None:
        """The entry that runs no Python, for functions from numpy arrays to a tensor, or to a tuple of tensors, that
        call nothing in Python."""
        numpy_results = self._results in ("match", "numpy")
        if self._plan is None or self._calls_python or self.info.result_dtypes is None or not numpy_results:
            return None
        layout = Activation(self.executable, self.info)
        return FastEntry(address, self.info, self._plan, layout, self, CompiledFunction.__call__)

    def __repr__(self) -> str:
        return f"<compiled function {self.info}>"

    def in_order(self, args: tuple[Any, ...], named: Mapping[str, Any], captured: int = 0) -> tuple[Any, ...]:
        """All arguments in the order of the parameters (but the first ``captured``); raises `ArgumentError` where names
        or number do not fit."""
        return in_order(self.info.title, self._names(captured), args, named)

    def _names(self, captured: int) -> list[str]:
        return [p.name for p in self.info.params[captured:]]

    def _refuse_overlap(self, activation: Activation) -> None:
        ranges: list[tuple[int, int, str] | None] = []
        for param, at in zip(self.info.params, activation.header_at, strict=True):
            if header_words(param.spec):
                start = activation.words[at + abi.TENSOR_DATA // 8]
                ranges.append((start, start + activation.words[at + abi.TENSOR_NBYTES // 8], param.name))
            else:
                ranges.append(None)
        for i in self._written:
            output = ranges[i]
            for j, other in enumerate(ranges):
                if i != j and output and other and output[0] < other[1] and other[0] < output[1]:
                    raise ArgumentError(
                        f"{self.info.title}: parameter {output[2]}: the function writes into it, "
                        f"but its memory overlaps parameter {other[2]}"
                    )

    def _failure(self, activation: Activation, status: int, args: tuple[object, ...]) -> BaseException:
        name = self.info.title
        if status == Status.PYTHON_EXCEPTION:
            error = activation.exception
            if error is None:
                error = ExecutionError(f"{name}: a call into Python could not be completed (its recursion limit?)")
            return error
        if status == Status.RECURSION:
            return RecursionError(f"{name}: compiled functions call each other too deeply")
        if status == Status.OUT_OF_MEMORY:
            return MemoryError(f"{name}: not enough memory for an intermediate or a result")
        if status not in (Status.ERROR_SITE, Status.BAD_SIZE):
            return InternalError(f"{name}: native code returned the unknown status {status}")
        number, _, *values = struct.unpack(f"<ii{abi.CONTEXT_VALUE_COUNT}q", ctypes.string_at(activation.address, 56))
        site = self.executable.program.sites[number]
        actual = _object_came(values) if site.detail == "{object}" else _fill(site.detail, values)
        outermost = values[5] == activation.words[abi.CONTEXT_DEPTH // 8] + 1
        place = -1 if site.param is None else site.param - activation.captured
        if site.kind == "parameter" and site.param is not None and outermost and place >= 0:
            actual = _shape_of(args[place], self.info.params[site.param].spec, actual)
        message = _fill(site.message, values).replace("{actual}", actual)
        if site.kind == "parameter":
            return ArgumentError(message)
        span = site.span
        called = activation.words[abi.CONTEXT_PLACE // 8]
        if span is None and called != abi.NO_PLACE:
            span = self.executable.program.sites[called].span
        return ExecutionError(message, span, _fill(site.expected, values) or None)


def compiled_function(executable: Executable, info: FunctionInfo, address: int) -> CompiledFunction:
    """The Python object of a compiled function. Python looks ``__call__`` up in the type, so a function with a fast
    entry has a type of its own, whose ``__call__`` is the entry."""
    own = type("CompiledFunction", (CompiledFunction,), {"__doc__": CompiledFunction.__doc__})
    function: CompiledFunction = own(executable, info, address)
    entry = function.fast_entry(address)
    if entry is not None:
        own.__call__ = entry.call  # type: ignore[method-assign]
    return function


_PYTHON: Mapping[str, Callable[[Executable, PackedCall], Callable[..., Any]]] = {
    "registered": lambda executable, call: _registered(call.name),
    "context": lambda executable, call: functools.partial(_registered(call.name), running_machine(executable)),
    "function": lambda executable, call: lambda: _registered(call.name),
    "invoke": lambda executable, call: lambda function, *args: function(*args),
    "partial": lambda executable, call: functools.partial,
    "print": lambda executable, call: functools.partial(print_values, format=call.format),
    "assert": lambda executable, call: functools.partial(fail_assertion, format=call.format),
}
"""What compiled code calls in Python, by the kind of the call."""


Found = TypeVar("Found")


def function_named(functions: Mapping[str, Found], name: object) -> Found:
    """One of an executable's functions; raises `MissingFunctionError` with close names for a miss."""
    function = functions.get(name) if isinstance(name, str) else None
    if function is None:
        known = ", ".join(functions) or "none"
        close = did_you_mean(str(name), functions)
        raise MissingFunctionError(f"the executable has no function {name!r}{close} (functions: {known})")
    return function


class Running(threading.local):
    """The executable that a virtual machine runs in this thread, and the machine; None in other calls."""

    executable: object = None
    machine: Any = None


RUNNING = Running()
MACHINE: list[Callable[[Executable], Any]] = []
"""What makes a virtual machine of an executable (it stands above this module, and puts itself here)."""


def running_machine(executable: Executable) -> Any:
    """The virtual machine that ``R.call_builtin_with_ctx`` passes on; one is made where none runs."""
    if RUNNING.executable is executable:
        return RUNNING.machine
    known = executable.machine()
    return MACHINE[0](executable) if known is None or known is executable else known


def _registered(name: str) -> Callable[..., Any]:
    function = get_global_func(name)
    assert function is not None
    return function


def _shape_of(value: object, spec: object, otherwise: str) -> str:
    if isinstance(spec, TensorSpec):
        shape = getattr(value, "shape", None)
        return str(tuple(shape)) if shape is not None else otherwise
    return describe(value) if not isinstance(value, (tuple, list)) else otherwise


def _object_came(values: Sequence[int]) -> str:
    """What a native object is, by its kind, dtype code and rank or length."""
    kind, code, count = values[:3]
    if kind == abi.Kind.TENSOR:
        return f"a tensor of {abi.DTYPE_OF_CODE[code]}" + (f" with {count} dimensions" if count >= 0 else "")
    if kind == abi.Kind.INT or kind == abi.Kind.FLOAT:
        return f"a number ({abi.DTYPE_OF_CODE.get(code, 'unknown dtype')})"
    names = {
        abi.Kind.TUPLE: "a tuple",
        abi.Kind.SHAPE: "a shape",
        abi.Kind.PYTHON: "a string or another Python object",
        abi.Kind.CLOSURE: "a function",
    }
    return names[abi.Kind(kind)] + (f" of {count}" if count >= 0 else "")


def _fill(message: str, values: Sequence[int]) -> str:
    return re.sub(r"\{([0-5])\}", lambda match: str(values[int(match[1])]), message)


class _Constants:
    """Constants in memory, 64-byte aligned, and the table of pointers that compiled code reads."""

    def __init__(self, constants: Sequence[NDArray | str | None]) -> None:
        self._arrays = [_aligned(c) for c in constants if c is not None and not isinstance(c, str)]
        arrays = iter(self._arrays)
        self._objects: list[int] = []
        pointers: list[int] = []
        for constant in constants:
            if constant is None or isinstance(constant, str):
                self._objects.append(box_none() if constant is None else box(constant))
                pointers.append(self._objects[-1])
            else:
                pointers.append(next(arrays).ctypes.data)
        self._table = (ctypes.c_void_p * max(1, len(pointers)))(*pointers)
        self.address = ctypes.addressof(self._table)
        self._decref = runtime().decref

    def __del__(self) -> None:
        for address in getattr(self, "_objects", ()):
            self._decref(address)


def _aligned(array: NDArray) -> NDArray:
    """A copy at an address that is a multiple of 64."""
    memory = np.empty(array.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copy: NDArray = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
