"""The calling convention in numbers: layouts of native objects, the activation's context, status codes.

Every value that crosses a native function boundary is a pointer to a reference-counted **object**:

======  ==========================================================================================
offset  field
======  ==========================================================================================
0       ``i64 references`` (changed atomically)
8       ``i32 kind`` (`Kind`)
12      ``i32 code``: the dtype of a tensor or number (`dtype_code`), else 0
16      ``ptr deleter``: ``void(ptr object)`` run when the last reference goes; null: nothing to free
24...   by kind (below)
======  ==========================================================================================

* ``TENSOR``: 24 ``ptr data``, 32 ``ptr owner`` (object that owns the data, or null), 40 ``i64 ndim``,
  48 ``i64 nbytes``, 56 ``i64 flags``, 64 ``i64 dims[ndim]``. Tensors are compact and row-major. Flag `WRITABLE`: the
  memory may be written in place (it is native, or a caller's array that is not read-only).
* ``TUPLE``: 24 ``i64 length``, 32 ``ptr fields[length]``. ``SHAPE``: 24 ``i64 length``, 32 ``i64 values[length]``.
* ``INT`` (and bool): 24 ``i64``. ``FLOAT``: 24 ``double``.
* ``PYTHON``: an object that only Python looks into (strings, opaque values); Python keeps it by the object's address.
  Its code is `CALLABLE` for a Python callable, else 0.
* ``CLOSURE``: a function of the executable with its first arguments: 24 ``i64 length``, 32 ``ptr code``, 40 ``i64
  params`` (how many the function has), 48 ``ptr captured[length]``; its code is the function's index in the
  executable's closures. ``code`` is ``i32(ptr ctx, ptr closure, ptr args, ptr result)``. A closure is only seen by the
  code of its own executable; elsewhere it is a Python callable.

A function borrows its arguments and gives one reference of its result to the caller.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from supple.base import dtypes
from supple.base.source import Span


class Kind(enum.IntEnum):
    """What a native object is."""

    TENSOR = 1
    TUPLE = 2
    SHAPE = 3
    INT = 4
    FLOAT = 5
    PYTHON = 6
    CLOSURE = 7


class Status(enum.IntEnum):
    """What a native function returns."""

    OK = 0
    ERROR_SITE = 1
    PYTHON_EXCEPTION = 2
    RECURSION = 3
    OUT_OF_MEMORY = 4
    BAD_SIZE = 5


OBJECT_REFERENCES = 0
OBJECT_KIND = 8
OBJECT_CODE = 12
OBJECT_DELETER = 16
TENSOR_DATA = 24
TENSOR_OWNER = 32
TENSOR_NDIM = 40
TENSOR_NBYTES = 48
TENSOR_FLAGS = 56
TENSOR_DIMS = 64
WRITABLE = 1
CALLABLE = 1
LIST_LENGTH = 24
LIST_ITEMS = 32
NUMBER_VALUE = 24
CLOSURE_CODE = 32
CLOSURE_PARAMS = 40
CLOSURE_CAPTURED = 48

CONTEXT_SITE = 0
CONTEXT_RETURNED = 4
CONTEXT_VALUES = 8
CONTEXT_VALUE_COUNT = 6
CONTEXT_DEPTH = 56
CONTEXT_DEPTH_LIMIT = 64
CONTEXT_STACK_LIMIT = 72
CONTEXT_API = 80
CONTEXT_CONSTANTS = 88
CONTEXT_CALLBACK = 96
CONTEXT_ACTIVATION = 104
CONTEXT_STACK_BUDGET = 112
CONTEXT_ANSWER = 120
CONTEXT_PLACE = 128
NO_PLACE = -1
CONTEXT_BYTES = 136
RESULT_DESCRIBED_DIMS = 8
RESULT_BYTES = 8 * (5 + RESULT_DESCRIBED_DIMS)
"""The context of one activation: ``{i32 site, i32 returned, [6 x i64] values, i64 depth, i64 depth limit,
ptr stack limit, ptr api, ptr constants, ptr callback, i64 activation, i64 stack budget, i64 answer, i64 place}``.

``place`` is the site of the call in which a site without a span failed (`NO_PLACE`: no call has one).

A kernel that returns a number sets ``returned`` to 1 and stores the number as value 0 (integers in 64 bits, floats as
float64).

The callback stores its status plus one as ``answer``: when Python cannot even enter it (its recursion limit), compiled
code finds the zero that it put there before.

``api`` is the table of the runtime's native functions in the order of `API`; ``callback`` is
``i32(ptr ctx, i64 call, ptr args, i64 count, ptr result)``."""

# Behind the context of a call from Python: ``{ptr result, i32 kind, i32 code, ptr data, ptr owner, i64 ndim,
# [8 x i64] dims}``; what follows the pointer describes a result that is a tensor of at most 8 dimensions, so that
# Python need not read the object.

API = (
    "incref",  # void(ptr object)             null is fine
    "decref",  # void(ptr object)             null is fine
    "tensor_new",  # ptr(i64 ndim, i32 dtype code, i64 nbytes)   null when out of memory; dims are left to the caller
    "tensor_view",  # ptr(i64 ndim, i32 dtype code, i64 nbytes, ptr data, ptr owner)   takes a reference of the owner
    "tuple_new",  # ptr(i64 length)           fields are null
    "shape_new",  # ptr(i64 length)           values are left to the caller
    "closure_new",  # ptr(i64 length, ptr code, i64 params, i32 index)   what is captured is null
    "closure_extend",  # ptr(ptr closure, i64 more)   a longer copy; what is captured in addition is null
    "int_new",  # ptr(i64 value, i32 dtype code)
    "float_new",  # ptr(double value, i32 dtype code)
    "arena_get",  # ptr(i64 bytes)            64-byte aligned; null when out of memory
    "arena_put",  # void(ptr arena)           null is fine
    "describe",  # void(ptr result)           fills in what follows the pointer to the result
    "parallel",  # i32(ptr ctx, body, env, i64 extent, i64 scratch bytes, ptr workspace, i64 most chunks, i64 a thread)
)
"""Names and signatures of the runtime's functions, in table order."""


def dtype_code(name: str) -> int:
    """The number that stands for a scalar dtype in native objects."""
    row = dtypes.row(name)
    return row.dlpack * 256 + row.bits


DTYPE_OF_CODE: dict[int, str] = {dtype_code(name): name for name in dtypes.DTYPES}


@dataclass(frozen=True, slots=True)
class ErrorSite:
    """One place in compiled code that can fail, by index in the executable's table.

    ``kind`` chooses the exception: ``"parameter"`` gives `ArgumentError`, all others (``"match"``, ``"index"``,
    ``"assert"``, ``"size"``...) `ExecutionError`. ``message`` may refer to the context's values as ``{0}`` to ``{5}``;
    other braces are text.

    A ``"parameter"`` site checks the parameter of index ``param``; its message has ``{actual}``, which is what the
    caller passed when the function was called from Python, and ``detail`` when compiled code called it; it stores the
    depth of the call as value 5.

    ``expected`` says what was expected, with the context's values like the message.
    """

    kind: str
    message: str
    span: Span | None = None
    param: int | None = None
    detail: str = ""
    expected: str = ""
