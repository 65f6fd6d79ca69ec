"""Compiled programs on disk: by everything that they follow from.

The key is made of the module's text with names and places (error messages show them), the target, how results appear,
and the versions of LLVM, numpy and Supple, its source files' sizes and times included. What a user's own operator
lowers to is not known from its name, so a module with such an operator is compiled anew.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from supple.base.disk_cache import shared_cache
from supple.base.target import Target
from supple.ir.module import IRModule
from supple.ir.op import Op
from supple.ir.serialize import fingerprint
from supple.runtime.program import Program

LARGEST = 256 << 20  # bytes of one program: larger ones are mostly weights, which are quicker to pack than to read


class _Unknown(Exception):  # noqa: N818 - control flow, not an error
    """Something that the key cannot describe."""


def key_of(mod: IRModule, target: Target, results: str, alias: str | None) -> str | None:
    """The name of a program on disk; None when it cannot be kept."""
    if shared_cache() is None:
        return None
    try:
        whole = fingerprint(mod, _check_op)
    except (_Unknown, TypeError):  # values that JSON cannot hold (a Python function of the module)
        return None
    parts = (whole.hex(), repr(target), results, repr(alias), _versions())
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=20).hexdigest()


def _check_op(op: Op) -> None:
    for function in (op.lower, op.infer):
        if function is not None and not function.__module__.startswith("supple."):
            raise _Unknown


def load(key: str) -> Program | None:
    """The program of a key, or None."""
    cache = shared_cache()
    data = None if cache is None else cache.get(key)
    if data is None:
        return None
    try:
        program = pickle.loads(data)
    except Exception:  # whatever a damaged entry makes pickle raise: it is compiled again, and replaced
        return None
    return program if isinstance(program, Program) else None


def store(key: str, program: Program) -> None:
    """Keep a program, unless it is very large."""
    cache = shared_cache()
    if cache is not None and sum(getattr(c, "nbytes", 0) for c in program.constants) <= LARGEST:
        cache.put(key, pickle.dumps(program, protocol=pickle.HIGHEST_PROTOCOL))


@functools.cache
def _versions() -> str:
    """What decides how a program is compiled, beside the program."""
    root = Path(__file__).parents[1]
    sources = hashlib.blake2b(digest_size=16)
    for folder, _, files in sorted(os.walk(root)):
        for name in sorted(files):
            if name.endswith(".py"):
                status = os.stat(os.path.join(folder, name))
                sources.update(f"{folder}/{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    llvm_version = ".".join(map(str, llvm.llvm_version_info))
    return f"{sources.hexdigest()} {llvmlite.__version__} {llvm_version} {np.__version__}"
