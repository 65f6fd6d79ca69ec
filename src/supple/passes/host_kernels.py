"""Calls of kernels in host code: arguments are matched with parameters, symbols solved, sizes checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from supple.base.errors import NotSupportedError, TypeCheckError
from supple.base.source import Span
from supple.ir import expr as E
from supple.ir import host as H
from supple.ir.expr import Var, int64
from supple.ir.host import HostVar, show
from supple.ir.loop import buffer_type
from supple.ir.node import Expr
from supple.ir.types import BufferType
from supple.ir.walk import free_symbols
from supple.passes.host_values import (
    Checker,
    NumberValue,
    TensorValue,
    Value,
    Where,
    bare_symbol,
    shape_text,
    widen,
)
from supple.runtime.abi import ErrorSite
from supple.sym.simplify import SHAPES, from_poly, solve_linear


@dataclass(frozen=True)
class KernelInfo:
    """What host code must know of a kernel: its symbol, parameters in order, the dimensions and workspace it wants."""

    symbol: str
    params: tuple[Var, ...]
    symbols: tuple[Var, ...]
    workspace_bytes: Expr


class KernelCalls:
    """Emits the kernel calls of one function, whose name and checker it shares."""

    def __init__(self, name: str, check: Checker) -> None:
        self.name = name
        self.check = check
        self.entry_symbols: set[int] = set()  # symbols that have values before the body runs, by id

    def known_at_entry(self, nbytes: Expr) -> bool:
        """Whether a size can be part of the arena: computed before the body runs, from symbols that are sizes."""
        return all(id(s) in self.entry_symbols and id(s) not in self.check.signed for s in free_symbols(nbytes))

    def bind(self, name: str, info: KernelInfo, values: list[Value], span: Span | None) -> None:
        """Match arguments with a kernel's parameters, solve its symbols, check what is not proved, call it."""
        what = f"{self.name}: call_tir of {name}"
        if len(values) != len(info.params):
            raise TypeCheckError(
                f"{what}: {name} has {len(info.params)} parameters, the call passes {len(values)}", span=span
            )
        mapping: dict[int, Expr] = {}
        buffers: list[tuple[Var, TensorValue, tuple[Expr, ...]]] = []
        scalars: list[Expr] = []
        for param, value in zip(info.params, values, strict=True):
            if isinstance(param.ty, BufferType):
                tensor = self._tensor(what, param, value, span)
                assert tensor.shape is not None
                buffers.append((param, tensor, tensor.shape))
            else:
                if not isinstance(value, NumberValue):
                    raise TypeCheckError(f"{what}: parameter {param.name} is a scalar", span=span)
                wanted = E.scalar_dtype(param)
                given = E.scalar_dtype(value.value)
                scalars.append(value.value if given == wanted else E.Cast(wanted, value.value))
                mapping[id(param)] = value.value
        waiting: list[tuple[Var, int, Expr, Expr]] = []
        for param, _, shape in buffers:
            for axis, (dim, actual) in enumerate(zip(buffer_type(param).shape, shape, strict=True)):
                symbol = bare_symbol(dim)
                if symbol is not None and id(symbol) not in mapping:
                    mapping[id(symbol)] = actual
                else:
                    waiting.append((param, axis, dim, actual))
        self._solve(what, info, mapping, waiting, span)
        for param, axis, dim, actual in waiting:
            self._require_equal(f"{what}: buffer {param.name}: dimension {axis}", widen(dim, mapping), actual, span)
        self.run(info, tuple(t.memory for _, t, _ in buffers), tuple(scalars), mapping, span)

    def _tensor(self, what: str, param: Var, value: Value, span: Span | None) -> TensorValue:
        ty = buffer_type(param)
        if not isinstance(value, TensorValue):
            raise TypeCheckError(f"{what}: parameter {param.name} is a buffer", span=span, actual=type(value).__name__)
        if value.shape is None or value.dtype is None:
            assert value.object is not None
            wanted = f"{ty.dtype} of rank {len(ty.shape)}"
            where = Where("match", f"{what}: buffer {param.name}", wanted, param.name, span)
            value = self.check.adopt_tensor(value.object, ty.dtype, None, len(ty.shape), where)
        if value.dtype != ty.dtype or value.shape is None or len(value.shape) != len(ty.shape):
            raise TypeCheckError(
                f"{what}: buffer {param.name} does not fit",
                span=span,
                expected=shape_text(ty.shape, ty.dtype),
                actual=shape_text(value.shape or (), value.dtype or "unknown"),
            )
        return value

    def _solve(
        self,
        what: str,
        info: KernelInfo,
        mapping: dict[int, Expr],
        waiting: list[tuple[Var, int, Expr, Expr]],
        span: Span | None,
    ) -> None:
        """Symbols that only appear inside expressions (``n * 2``)."""
        progress = True
        while progress:
            progress = False
            for _, _, dim, actual in waiting:
                unknown = [s for s in free_symbols(dim) if id(s) not in mapping]
                if len(unknown) != 1 or (found := solve_linear(dim, unknown[0])) is None:
                    continue
                rest = widen(from_poly(found[1]), mapping)
                difference = E.Sub(actual, rest)
                mapping[id(unknown[0])] = difference if found[0] == 1 else E.FloorDiv(difference, int64(found[0]))
                progress = True
        for symbol in info.symbols:
            if id(symbol) not in mapping:
                raise NotSupportedError(f"{what}: the symbol {symbol.name} cannot be determined from the buffers", span)

    def _require_equal(self, what: str, expected: Expr, actual: Expr, span: Span | None) -> None:
        verdict = SHAPES.equal(expected, actual)
        if verdict is False:
            raise TypeCheckError(f"{what} does not fit", span=span, expected=show(expected), actual=show(actual))
        if verdict is None:
            site = ErrorSite("match", f"{what}: expected {show(expected)} = {{0}}, got {show(actual)} = {{1}}", span)
            self.check.out.append(H.Require(E.EQ(expected, actual), (expected, actual), site))

    def run(
        self,
        info: KernelInfo,
        buffers: tuple[HostVar, ...],
        scalars: tuple[Expr, ...],
        mapping: Mapping[int, Expr],
        span: Span | None,
    ) -> None:
        """Call a kernel, with the workspace that it wants."""
        symbols = tuple(widen(mapping.get(id(s), s), {}) for s in info.symbols)
        nbytes = widen(info.workspace_bytes, mapping)
        workspace: HostVar | None = None
        if SHAPES.equal(nbytes, int64(0)) is not True:
            workspace = self.check.fresh("workspace", "memory")
            if self.known_at_entry(nbytes):
                self.check.out.append(H.Alloc(workspace, nbytes, span=span))
            else:
                space = self.check.fresh("workspace.object")
                self.check.out.append(H.NewTensor(space, (nbytes,), "uint8", span=span))
                self.check.out.append(H.DataOf(workspace, space))
        self.check.out.append(H.KernelCall(info.symbol, buffers, scalars, symbols, workspace, span=span))
