"""DLPack for dtypes that numpy does not exchange: bfloat16 and the float8 kinds travel as integers of their size, with
the type's code rewritten in the capsule (fresh at each exchange, and seen by nobody else yet)."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from supple.base import dtypes

NDArray = npt.NDArray[Any]

_TYPE_AT = {b"dltensor": 20, b"dltensor_versioned": 52}
"""Where a capsule's struct holds {u8 code, u8 bits, u16 lanes}, by the capsule's name (``dlpack.h`` 1.1)."""

_UNSIGNED = 1
_CODED = {(row.dlpack, row.bits): name for name, row in dtypes.DTYPES.items() if row.is_coded}
_NAMES = frozenset(_CODED.values())

_name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _type_field(capsule: object) -> Any:
    """The type field of a capsule's tensor, writable; None for anything but a fresh DLPack capsule."""
    if type(capsule).__name__ != "PyCapsule":
        return None
    name = _name_of(capsule)
    if name not in _TYPE_AT:
        return None
    return (ctypes.c_uint8 * 4).from_address(_pointer_of(capsule, name) + _TYPE_AT[name])


class _Relabelled:
    """A DLPack object whose capsule says unsigned integers where it has floats that numpy does not know."""

    __slots__ = ("dtype", "source")

    def __init__(self, source: Any) -> None:
        self.source = source
        self.dtype: str | None = None

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self.source.__dlpack__(**options)
        field = _type_field(capsule)
        if field is not None and field[2] == 1 and field[3] == 0:
            self.dtype = _CODED.get((field[0], field[1]))
            if self.dtype is not None:
                field[0] = _UNSIGNED
        return capsule

    def __dlpack_device__(self) -> Any:
        return self.source.__dlpack_device__()


def share(source: Any) -> NDArray:
    """The numpy array over the memory of a CPU DLPack object.

    Raises what numpy raises (``BufferError``, ``RuntimeError``, ``ValueError``) when it cannot be shared.
    """
    if str(getattr(source, "dtype", "")).rpartition(".")[2] not in _NAMES:  # torch.bfloat16, bfloat16
        return np.from_dlpack(source)
    relabelled = _Relabelled(source)
    array = np.from_dlpack(relabelled)
    return array if relabelled.dtype is None else array.view(dtypes.to_numpy(relabelled.dtype))


def export(array: NDArray, **options: Any) -> Any:
    """The DLPack capsule of an array (``array.__dlpack__``, also for bfloat16 and the float8 kinds)."""
    if array.dtype.isbuiltin == 1:
        return array.__dlpack__(**options)
    row = dtypes.row(dtypes.from_numpy(array.dtype))
    capsule = array.view(f"u{row.nbytes}").__dlpack__(**options)
    field = _type_field(capsule)
    assert field is not None, "numpy made the capsule"
    field[0] = row.dlpack
    return capsule
