"""Compile one loop function and call it on numpy arrays, without the graph level."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from supple.base.target import Target, host
from supple.codegen.kernel import KernelCode, emit_kernel
from supple.codegen.llvm import compile_text
from supple.ir.loop import PrimFunc, buffer_type
from supple.ir.types import PrimType
from supple.runtime.abi import CONTEXT_API, CONTEXT_BYTES, ErrorSite
from supple.runtime.native import load_objects, runtime
from supple.schedule.default import schedule_func
from supple.sym.simplify import evaluate, solve_linear

_C = {"int8": ctypes.c_int8, "int16": ctypes.c_int16, "int32": ctypes.c_int32, "int64": ctypes.c_int64,
      "uint8": ctypes.c_uint8, "uint16": ctypes.c_uint16, "uint32": ctypes.c_uint32, "uint64": ctypes.c_uint64,
      "float32": ctypes.c_float, "float64": ctypes.c_double, "bool": ctypes.c_bool}  # fmt: skip


class KernelError(Exception):
    """The kernel returned an error status."""


class Kernel:
    """A loaded kernel: ``kernel(a, b, out)`` runs it; symbols are read from the arrays' shapes."""

    def __init__(self, func: PrimFunc, *, schedule: bool = True, target: Target | None = None,
                 distrust: bool = False) -> None:  # fmt: skip
        self.target = target or host()
        self.sites: list[ErrorSite] = []
        self.scheduled = schedule_func(func, self.target) if schedule else func
        self.code: KernelCode = emit_kernel(self.scheduled, "kernel", self.target, self.sites,
                                            distrust=distrust)  # fmt: skip
        self.object = compile_text(self.code.llvm_text, self.target)
        self.library = load_objects([self.object], ["kernel"])
        self.address = self.library.addresses["kernel"]

    def prepare(self, *args: Any) -> tuple[Any, list[Any]]:
        """The ctypes function and its arguments (the arrays are kept alive by the caller)."""
        values: dict[Any, int] = {}
        buffers = [(p, a) for p, a in zip(self.code.params, args, strict=True) if not isinstance(p.ty, PrimType)]
        scalars = [(p, a) for p, a in zip(self.code.params, args, strict=True) if isinstance(p.ty, PrimType)]
        for param, array in buffers:
            assert isinstance(array, np.ndarray) and array.flags.c_contiguous
            for extent, size in zip(buffer_type(param).shape, array.shape, strict=True):
                for symbol in self.code.symbols:
                    if symbol in values:
                        continue
                    found = solve_linear(extent, symbol)
                    if found is not None and found[0] == 1 and found[1].constant == 0:
                        values[symbol] = size
        workspace_bytes = evaluate(self.code.workspace_bytes, values)
        self.workspace = np.zeros(workspace_bytes + 64, np.uint8)
        start = -(-self.workspace.ctypes.data // 64) * 64
        self.context = np.zeros(CONTEXT_BYTES // 8, np.int64)
        self.context[CONTEXT_API // 8] = runtime().api_address
        types: list[Any] = [ctypes.c_void_p] + [ctypes.c_void_p] * len(buffers)
        types += [_C[p.dtype] for p, _ in scalars]
        types += [ctypes.c_int64] * len(self.code.symbols) + [ctypes.c_void_p]
        call: list[Any] = [self.context.ctypes.data, *(a.ctypes.data for _, a in buffers)]
        call += [a for _, a in scalars] + [values[s] for s in self.code.symbols] + [start]
        return ctypes.CFUNCTYPE(ctypes.c_int32, *types)(self.address), call

    def __call__(self, *args: Any) -> None:
        function, call = self.prepare(*args)
        status = function(*call)
        if status == 1:
            site = self.sites[int(self.context[0]) & 0xFFFFFFFF]
            raise KernelError(site.message.format(*self.context[1:7].tolist()))
        assert status == 0


def run(func: PrimFunc, args: Sequence[Any], **options: Any) -> None:
    """Compile and run once; the arrays hold the results."""
    Kernel(func, **options)(*args)
