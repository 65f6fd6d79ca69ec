"""Builds the fast entry of a compiled function: see ``entry_ir`` for what it does."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.base.once import once
from supple.runtime import abi
from supple.runtime.activation import Activation
from supple.runtime.entry_ir import ENTRY_IR
from supple.runtime.native import Library, load_text, runtime
from supple.runtime.signature import FastPlan, FunctionInfo

STACK_BUDGET = 200_000
"""Stack that compiled code may use when it is entered here: little, since nothing is known of the thread. A call that
needs more fails, and is started again through Python, which knows."""

_PYTHON = (
    "PyLong_AsVoidPtr",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "PyObject_Vectorcall",
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyTuple_Size",
    "PyCapsule_New",
    "PyCapsule_GetPointer",
    "Py_IncRef",
    "Py_DecRef",
)
_NUMPY = {"PyArray_NewFromDescr": 94, "PyArray_SetBaseObject": 282}
"""Places of functions in numpy's C API table, part of its stable ABI (``numpy/__multiarray_api.h``)."""

_METH_FASTCALL, _METH_KEYWORDS = 0x80, 0x02


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def _address(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


@once
def _numpy_table() -> Any:
    """numpy's C API: an array of addresses."""
    core: Any = getattr(np, "_core", None) or np.core
    capsule = core._multiarray_umath._ARRAY_API
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = (ctypes.c_void_p * 300).from_address(get(capsule, None))
    if table[2] != id(np.ndarray):  # the entry that is the array type itself
        raise ImportError("numpy's C API table is not where it should be")
    return table


@once
def _library() -> Library:
    """The entry's code; loaded once, never freed."""
    imports = {name: _address(getattr(ctypes.pythonapi, name)) for name in _PYTHON}
    table = _numpy_table()
    imports.update((name, table[place]) for name, place in _NUMPY.items())
    own = runtime().library.addresses
    imports.update({name: own[name] for name in ("bind_arrays", "incref", "decref", "callbacks_active")})
    return load_text(ENTRY_IR, ("fast_call",), imports)


@once
def _method() -> _MethodDef:
    """The definition that all entries share."""
    address = _library().addresses["fast_call"]
    return _MethodDef(b"compiled_function", address, _METH_FASTCALL | _METH_KEYWORDS, b"Call compiled code.")


class FastEntry:
    """The record of one function, and the Python callable that uses it. The callable keeps the record alive; it borrows
    the instance (which is being called whenever the record is read) and the function that goes through Python."""

    __slots__ = ("_dtypes", "_layout", "_plan", "_record", "_rows", "call")

    def __init__(
        self, code: int, info: FunctionInfo, plan: FastPlan, layout: Activation, instance: object, function: object
    ) -> None:
        assert info.result_dtypes is not None
        self._plan = plan
        self._layout = layout
        self._dtypes = [dtypes.to_numpy(dtype) for dtype in info.result_dtypes]
        self._rows = (ctypes.c_int64 * len(self._dtypes))(*map(id, self._dtypes))
        layout.executable = None  # type: ignore[assignment] # a template only: it must not keep the code alive
        layout.words[abi.CONTEXT_STACK_BUDGET // 8] = STACK_BUDGET
        self._record = (ctypes.c_int64 * 13)(
            code,
            len(info.params),
            plan.address,
            layout.address,
            layout.end_address - layout.address,
            id(np.ndarray),
            id(function),
            id(instance),
            ctypes.addressof(self._rows),
            0,
            layout.args_address - layout.address,
            layout.result_address - layout.address,
            len(self._dtypes) if info.in_tuple else -1,
        )
        new = ctypes.pythonapi.PyCFunction_NewEx
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
        self.call: Any = new(ctypes.addressof(_method()), ctypes.addressof(self._record), self)
