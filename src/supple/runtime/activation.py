"""One running call of a compiled function: its context, argument headers, and the way back into Python."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from supple.base.errors import ExecutionError
from supple.runtime import abi
from supple.runtime.boxing import Arguments, box_for, is_kept, owned_array, present, unbox
from supple.runtime.closure import Home
from supple.runtime.native import runtime
from supple.runtime.platforms import stack_budget
from supple.runtime.signature import FastPlan, FunctionInfo, TensorSpec, header_words

DEPTH_LIMIT = 5000
"""Nested calls of compiled functions before ``RecursionError`` (deep frames hit the stack's budget before that)."""


class Host(Home, Protocol):
    """What an activation needs of its executable."""

    constants_address: int

    def packed_function(self, call: int) -> Callable[..., Any]:
        """The Python function of a call from compiled code."""


class _Thread(threading.local):
    """The call of this thread that is waiting for a Python callback, and how much stack the thread may use."""

    parent: Activation | None = None

    def __init__(self) -> None:
        self.budget = stack_budget()


_thread = _Thread()


_NDARRAY = id(np.ndarray)
_RESULT = abi.CONTEXT_BYTES // 8
_FIRST_ARGUMENT = (abi.CONTEXT_BYTES + abi.RESULT_BYTES) // 8


class Activation:
    """Memory of one call: context, result, argument pointers and tensor headers, in one buffer of fixed layout.

    Activations are reused for later calls of the same function; one call owns it from start to end.
    """

    __slots__ = (
        "__weakref__",
        "_bind_arrays",
        "_buffer",
        "address",
        "args",
        "args_address",
        "arguments",
        "boxed",
        "captured",
        "end_address",
        "exception",
        "executable",
        "header_at",
        "keep",
        "kind",
        "objects_offset",
        "result_address",
        "words",
    )

    def __init__(self, executable: Host, info: FunctionInfo) -> None:
        count = len(info.params)
        self.header_at: list[int] = []
        at = _FIRST_ARGUMENT + count
        for param in info.params:
            self.header_at.append(at)
            at += header_words(param.spec)
        self.objects_offset = 8 * at
        at += count
        self._bind_arrays = runtime().bind_arrays
        self._buffer = (ctypes.c_int64 * at)()
        self.address = ctypes.addressof(self._buffer)
        self.end_address = self.address + 8 * at
        self.words: memoryview[int] = memoryview(self._buffer).cast("B").cast("q")
        self.result_address = self.address + 8 * _RESULT
        self.args_address = self.address + 8 * _FIRST_ARGUMENT
        self.executable = executable
        self.kind: str | None = None
        self.captured = 0
        self.keep: dict[int, object] = {}
        self.boxed: list[int] = []
        self.arguments = Arguments()
        self.exception: BaseException | None = None
        self.args: tuple[object, ...] = ()
        self._prepare(info)

    def _prepare(self, info: FunctionInfo) -> None:
        words = self.words
        words[abi.CONTEXT_DEPTH_LIMIT // 8] = DEPTH_LIMIT
        words[abi.CONTEXT_API // 8] = runtime().api_address
        words[abi.CONTEXT_CONSTANTS // 8] = self.executable.constants_address
        words[abi.CONTEXT_CALLBACK // 8] = _DISPATCH_ADDRESS
        words[abi.CONTEXT_ACTIVATION // 8] = id(self)
        for i, (param, at) in enumerate(zip(info.params, self.header_at, strict=True)):
            if not header_words(param.spec):
                continue
            assert isinstance(param.spec, TensorSpec)
            assert param.spec.dtype is not None
            address = self.address + 8 * at
            words[_FIRST_ARGUMENT + i] = address
            words[at] = 1
            words[at + 1] = abi.Kind.TENSOR | (abi.dtype_code(param.spec.dtype) << 32)
            words[at + abi.TENSOR_NDIM // 8] = param.spec.ndim

    def begin(self, args: tuple[object, ...], captured: Sequence[int] = ()) -> None:
        """Start a call: inherit depth and stack limit from a call of this thread that waits for a callback.

        ``captured`` are native objects (borrowed) that are the first arguments; ``args`` are the others.
        """
        words = self.words
        parent = _thread.parent
        if parent is None:
            words[abi.CONTEXT_DEPTH // 8] = 0
            words[abi.CONTEXT_STACK_LIMIT // 8] = 0
            words[abi.CONTEXT_STACK_BUDGET // 8] = _thread.budget
        else:
            words[abi.CONTEXT_DEPTH // 8] = parent.words[abi.CONTEXT_DEPTH // 8]
            words[abi.CONTEXT_STACK_LIMIT // 8] = parent.words[abi.CONTEXT_STACK_LIMIT // 8]
        words[_RESULT] = 0
        for i, address in enumerate(captured, _FIRST_ARGUMENT):
            words[i] = address
        self.captured = len(captured)
        self.args = args

    def put_boxed(self, position: int, address: int, value: object) -> None:
        """Pass a boxed value; the call owns its reference."""
        self.boxed.append(address)
        self.words[_FIRST_ARGUMENT + position] = address

    def argument_map(self) -> Arguments:
        """Native objects of the arguments -> what the caller passed (made when it is first needed)."""
        if not self.arguments:
            for i, value in enumerate(self.args, _FIRST_ARGUMENT + self.captured):
                self.arguments[self.words[i]] = value
            self.arguments.memory = {self.address + 8 * header: array for header, array in self.keep.items()}
        return self.arguments

    def end(self) -> None:
        """Finish a call: give up what it holds."""
        result = self.words[_RESULT]
        if result:
            self.words[_RESULT] = 0
            runtime().decref(result)
        if self.boxed:
            decref = runtime().decref
            for address in self.boxed:
                decref(address)
            self.boxed.clear()
        if self.keep:
            self.keep.clear()
        if self.arguments:
            self.arguments = Arguments()
        self.kind = None
        self.args = ()
        self.exception = None

    def bind(self, args: tuple[object, ...], plan: FastPlan) -> bool:
        """Take all arguments at once if they are plain numpy arrays that need no conversion."""
        plan.pack_into(self._buffer, self.objects_offset, *map(id, args))
        objects = self.address + self.objects_offset
        taken: int = self._bind_arrays(plan.address, plan.count, objects, self.address, _NDARRAY)
        return taken == 1

    def take_result(self, kind: str) -> Any:
        """The result as a Python value. The native reference goes with a fresh tensor, else `end` gives it up."""
        words = self.words
        address, head, data, owner, ndim = words[_RESULT : _RESULT + 5].tolist()
        if head & 0xFFFFFFFF == abi.Kind.TENSOR and not owner and ndim <= abi.RESULT_DESCRIBED_DIMS:
            if not self.address <= address < self.end_address and not is_kept(address):
                shape = tuple(words[_RESULT + 5 : _RESULT + 5 + ndim])
                words[_RESULT] = 0
                return present(owned_array(address, data, shape, head >> 32), kind)
        return unbox(address, self.argument_map(), kind, self.executable)

    def call_python(self, function: Callable[..., Any], args_address: int, count: int, result_address: int) -> None:
        """Call a packed function on native objects and store its boxed result."""
        addresses = (ctypes.c_uint64 * count).from_address(args_address)[:] if count else []
        arguments = self.argument_map()
        values = [unbox(a, arguments, "tensor", self.executable, originals=False) for a in addresses]
        before = _thread.parent
        _thread.parent = self
        native = runtime()
        with native.callbacks_lock:
            native.callbacks_active.value += 1
        try:
            result = function(*values)
        finally:
            _thread.parent = before
            with native.callbacks_lock:
                native.callbacks_active.value -= 1
        ctypes.c_uint64.from_address(result_address).value = box_for(result, self.executable)


def _dispatch(context: int, call: int, args: int, count: int, result: int) -> int:
    """Every call from compiled code into Python comes through here; an exception is kept for the entry to raise."""
    identity = ctypes.c_size_t.from_address(context + abi.CONTEXT_ACTIVATION).value
    activation: Activation = ctypes.cast(identity, ctypes.py_object).value
    status = abi.Status.OK
    try:
        activation.call_python(activation.executable.packed_function(call), args, count, result)
    except BaseException as error:
        activation.exception = error
        status = abi.Status.PYTHON_EXCEPTION
    activation.words[abi.CONTEXT_ANSWER // 8] = status + 1
    return status


_DISPATCH = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
)(_dispatch)
_DISPATCH_ADDRESS = ctypes.cast(_DISPATCH, ctypes.c_void_p).value or 0


def require_headroom(frames: int = 40) -> None:
    """Raise ``RecursionError`` now if Python is too near its recursion limit for a callback to be entered."""
    if frames:
        require_headroom(frames - 1)


def print_values(*values: Any, format: str = "") -> None:
    """What ``R.print`` calls: with a format, ``format.format(*values)``, else the values as ``print`` shows them."""
    shown = _shown(values)
    sys.stdout.write((format.format(*shown) if format else " ".join(str(v) for v in shown)) + "\n")


def fail_assertion(*values: Any, format: str = "") -> None:
    """What ``R.assert_op`` calls when its condition is false; raises `ExecutionError`."""
    shown = _shown(values)
    text = format.format(*shown) if format else ", ".join(str(v) for v in shown)
    raise ExecutionError(f"assert_op: {text}" if text else "assert_op: the condition is false")


def _shown(values: Sequence[Any]) -> list[Any]:
    return [np.asarray(v) if hasattr(v, "__array__") else v for v in values]
