"""Compiled programs in files: ``executable.export_library(path)`` and ``load_module(path)``.

A file holds plain data and object code, no Python: a first line with the format's number, a checksum of all that
follows, the length of a JSON text that describes the program, that text, and the bytes that it refers to. Object code
is machine code: load files that you trust.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import secrets
import struct
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.base.errors import NotSupportedError, SuppleError
from supple.base.source import Span
from supple.base.target import host
from supple.runtime.abi import ErrorSite
from supple.runtime.program import PackedCall, Program
from supple.runtime.signature import (
    AnySpec,
    CallableSpec,
    FunctionInfo,
    NumberSpec,
    ParamSpec,
    ShapeSpec,
    StringSpec,
    TensorSpec,
    TupleSpec,
)

_MAGIC = b"supple executable 1\n"
"""Ends in the number of the format and of the calling convention: whoever changes either raises it."""
_DIGEST = 32
_CLASSES = {
    cls.__name__: cls
    for cls in (
        AnySpec, CallableSpec, ErrorSite, FunctionInfo, NumberSpec, PackedCall, ParamSpec, Program, ShapeSpec, Span,
        StringSpec, TensorSpec, TupleSpec,
    )
}  # fmt: skip


class LibraryError(SuppleError, ValueError):
    """A file is not a compiled program, or not one for this machine."""


def save_program(program: Program, path: str | os.PathLike[str]) -> None:
    """Write a program to a file, whole or not at all."""
    blobs: list[bytes] = []
    text = json.dumps(_plain(dataclasses.replace(program, timings={}), blobs)).encode()
    body = struct.pack("<Q", len(text)) + text + b"".join(blobs)
    target = Path(path)
    draft = target.with_name(f"{secrets.token_hex(8)}.part")  # its own: others may be writing the same file
    try:
        draft.write_bytes(_MAGIC + hashlib.blake2b(body, digest_size=_DIGEST).digest() + body)
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def load_program(path: str | os.PathLike[str]) -> Program:
    """Read what `save_program` wrote. Raises `LibraryError` for any other file, ``FileNotFoundError`` for none."""
    data = Path(path).read_bytes()
    if not data.startswith(_MAGIC):
        raise LibraryError(f"{path} is not a compiled program of this version of Supple")
    body = data[len(_MAGIC) + _DIGEST :]
    if hashlib.blake2b(body, digest_size=_DIGEST).digest() != data[len(_MAGIC) : len(_MAGIC) + _DIGEST]:
        raise LibraryError(f"{path} is damaged: its checksum does not fit")
    try:
        (length,) = struct.unpack_from("<Q", body)
        program = _object(json.loads(body[8 : 8 + length]), memoryview(body)[8 + length :])
    except (SuppleError, ValueError, ArithmeticError, LookupError, TypeError, struct.error, RecursionError) as error:
        raise LibraryError(f"{path} is not a compiled program: {error}") from error
    if not isinstance(program, Program):
        raise LibraryError(f"{path} is not a compiled program")
    _check_machine(path, program)
    return program


def _check_machine(path: object, program: Program) -> None:
    if program.machine:
        mine = host()
        have = {mine.arch, *mine.features.split(",")}
        absent = [feature for feature in program.machine if feature not in have]
        if absent:
            raise NotSupportedError(f"{path} is for another processor: this machine has no {', '.join(absent)}")


def _plain(value: Any, blobs: list[bytes]) -> Any:
    """A value as JSON: dataclasses by name, bytes and arrays by their place in what follows the text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return [_plain(item, blobs) for item in value]
    if isinstance(value, bytes):
        return {"bytes": _kept(value, blobs)}
    if isinstance(value, np.ndarray):
        place = _kept(np.ascontiguousarray(value).tobytes(), blobs)
        return {"array": [dtypes.from_numpy(value.dtype), list(value.shape), *place]}
    if type(value).__name__ in _CLASSES and dataclasses.is_dataclass(value):
        names = [f.name for f in dataclasses.fields(value) if not isinstance(getattr(value, f.name), dict)]
        return {type(value).__name__: {name: _plain(getattr(value, name), blobs) for name in names}}
    raise NotSupportedError(f"export_library: a program with a {type(value).__name__} cannot be written to a file")


def _kept(data: bytes, blobs: list[bytes]) -> list[int]:
    start = sum(map(len, blobs))
    blobs.append(data)
    return [start, len(data)]


def _object(value: Any, blobs: memoryview) -> Any:
    if isinstance(value, list):
        return tuple(_object(item, blobs) for item in value)
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise ValueError(f"expected one kind of value, found {', '.join(value) or 'none'}")
    ((kind, content),) = value.items()
    if kind == "bytes":
        return _blob(blobs, *content)
    if kind == "array":
        dtype, shape, start, size = content
        return np.frombuffer(_blob(blobs, start, size), dtypes.to_numpy(dtype)).reshape(shape)
    if kind not in _CLASSES or not isinstance(content, dict):
        raise ValueError(f"unknown kind of value {kind!r}")
    fields = {name: _object(item, blobs) for name, item in content.items()}
    for name, hint in _hints(_CLASSES[kind]).items():
        if name in fields and not _fits(fields[name], hint):
            raise ValueError(f"{kind}.{name}: expected {hint}, found {fields[name]!r:.40}")
    return _CLASSES[kind](**fields)


@functools.cache
def _hints(cls: type) -> Mapping[str, Any]:
    return typing.get_type_hints(cls)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a field's type: compiled code relies on what it says."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return any(_fits(value, part) for part in args)
    if origin is tuple:
        kinds = [args[0]] * len(value) if args[1:] == (...,) and isinstance(value, tuple) else args
        return isinstance(value, tuple) and len(value) == len(kinds) and all(map(_fits, value, kinds))
    kind = origin or hint
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _blob(blobs: memoryview, start: int, size: int) -> bytes:
    if not 0 <= start <= start + size <= len(blobs):
        raise ValueError("bytes beyond the end of the file")
    return bytes(blobs[start : start + size])
