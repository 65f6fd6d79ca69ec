"""Constant right operands of contractions are stored in panels, as kernels read them: packed once, while compiling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.analysis.contraction import operand_load, read_contraction
from supple.analysis.fusion import summarize
from supple.analysis.regions import infer_regions
from supple.base import dtypes
from supple.base.target import Target
from supple.build.block_builder import BlockBuilder
from supple.ir import expr as E
from supple.ir.expr import BufferLoad, Call, IntImm, Var
from supple.ir.graph import Constant, Function, GlobalVar, ShapeExpr, Tuple
from supple.ir.loop import Buffer, PrimFunc, SBlock, buffer_type
from supple.ir.module import IRModule
from supple.ir.node import Node, replace
from supple.ir.types import TensorType
from supple.ir.walk import free_symbols, substitute, transform
from supple.ops.calls import CALL_TIR
from supple.passes.fuse_tir import instantiate
from supple.schedule.operands import multiplies_pairs
from supple.schedule.tiles import tiles


def pack_constants(mod: IRModule, target: Target) -> IRModule:
    """Store constant right operands of contractions in panels of the target's tile width.

    Before::

        lv = R.call_tir(cls.matmul, (x, metadata[...]), out_ty=...)         # W[k, j]: (784, 128)

    After (a tile has 16 columns)::

        lv = R.call_tir(cls.matmul_packed, (x, metadata[...]), out_ty=...)  # W[j // 16, k, j % 16]: (8, 784, 16)

    The columns of the last panel are filled up with zeros. float8 constants stay as they are. Sums and their order
    stay. A constant that is read by several calls is packed once.
    """
    run = _Run(mod, target)
    for var, func in mod.items():
        if isinstance(func, Function):
            made = transform(func, run.call, into_types=False)
            if made is not func:
                run.builder.update_func(var, made)  # type: ignore[arg-type]
    return run.builder.get()


@dataclass(frozen=True)
class _Operand:
    """A parameter that can be packed: its position, whether it is stored ``[j, k]``, and the panels' width."""

    position: int
    transposed: bool
    width: int


class _Run:
    def __init__(self, mod: IRModule, target: Target) -> None:
        self.mod = mod
        self.target = target
        self.builder = BlockBuilder(mod)
        self._operands: dict[str, _Operand | None] = {}
        self._functions: dict[str, GlobalVar | None] = {}
        self._packed: dict[tuple[int, bool, int], tuple[Constant, Constant]] = {}  # with the original, so ids stay

    def call(self, node: Node) -> Node | None:
        """The call on a packed operand, or None to leave it."""
        if not isinstance(node, Call) or node.op is not CALL_TIR or len(node.args) != 2:
            return None
        callee, args = node.args
        if not isinstance(callee, GlobalVar) or not isinstance(args, Tuple):
            return None
        operand = self._operand(callee)
        if operand is None or operand.position >= len(args.fields):
            return None
        weights = args.fields[operand.position]
        if not isinstance(weights, Constant) or sum(a is weights for a in args.fields) != 1:
            return None
        name = callee.name_hint
        if name not in self._functions:
            func = self.mod[callee]
            assert isinstance(func, PrimFunc)
            made = _on_panels(func, operand)
            self._functions[name] = None if made is None else self.builder.add_func(made, f"{name}_packed")
        target = self._functions[name]
        if target is None:
            return None
        fields = tuple(self._constant(weights, operand) if a is weights else a for a in args.fields)
        return replace(node, args=(target, Tuple(fields)))

    def _operand(self, callee: GlobalVar) -> _Operand | None:
        name = callee.name_hint
        if name not in self._operands:
            func = self.mod[callee]
            self._operands[name] = _packable(func, self.target) if isinstance(func, PrimFunc) else None
        return self._operands[name]

    def _constant(self, weights: Constant, operand: _Operand) -> Constant:
        key = (id(weights.data), operand.transposed, operand.width)
        if key not in self._packed:
            data = weights.data.T if operand.transposed else weights.data
            self._packed[key] = (_panels(data, operand.width, weights), weights)
        return self._packed[key][0]


def _packable(func: PrimFunc, target: Target) -> _Operand | None:
    """The parameter that a function's one contraction reads as its right operand, and nothing else does."""
    summary = summarize(func)
    for step in summary.steps:
        c = read_contraction(step.nest)
        if c is None or c.panel is not None or c.init is None or c.batch or len(c.columns) != 1:
            continue
        load = operand_load(c.right)
        if dtypes.row(load.dtype).is_coded and dtypes.row(load.dtype).bits == 8:
            return None  # widening takes several instructions: better once for all rows, in panels made at run time
        if multiplies_pairs(c, target):
            continue  # in pairs, which are joined when it runs
        position = next((n for n, p in enumerate(func.params) if p is load.buffer), None)
        dims = buffer_type(load.buffer).shape
        if position is None or len(dims) != 2 or any(not isinstance(d, IntImm) or d.value < 1 for d in dims):
            return None
        if len(summary.reads(load.buffer)) != 1:
            return None
        return _Operand(position, c.right_is_transposed, tiles(target, c.dtype)[0].columns)
    return None


def _panels(data: Any, width: int, like: Constant) -> Constant:
    """``(K, N)`` data in panels ``(ceil(N / width), K, width)``, aligned for vectors."""
    depth, columns = data.shape
    panels = -(-columns // width)
    raw = np.zeros(panels * depth * width * data.dtype.itemsize + 64, np.uint8)
    start = -raw.ctypes.data % 64
    packed = raw[start : start + panels * depth * width * data.dtype.itemsize].view(data.dtype)
    packed = packed.reshape(panels, depth, width)
    for panel in range(panels):
        part = data[:, panel * width : (panel + 1) * width]
        packed[panel, :, : part.shape[1]] = part
    packed.flags.writeable = False
    assert isinstance(like.ty, TensorType)
    shape = ShapeExpr(tuple(IntImm(extent, "int64") for extent in packed.shape))
    return Constant(packed, TensorType(shape, like.ty.dtype))


def _on_panels(func: PrimFunc, operand: _Operand) -> PrimFunc | None:
    """The function reading one parameter in panels."""
    fresh: dict[Var, Node] = {s: Var(s.name, s.ty) for p in func.params for s in free_symbols(buffer_type(p))}
    params: list[Var] = [Var(p.name, substitute(p.ty, fresh), span=p.span) for p in func.params]  # type: ignore[arg-type]
    body = instantiate(func, params)
    if body is None:
        return None
    old = params[operand.position]
    depth, columns = (buffer_type(old).shape[n] for n in ((1, 0) if operand.transposed else (0, 1)))
    width = IntImm(operand.width, "int64")
    assert isinstance(columns, IntImm)
    panels = IntImm(-(-columns.value // operand.width), "int64")
    new = Buffer(f"{old.name}_panels", (panels, depth, width), buffer_type(old).dtype)

    def rewrite(node: Node) -> Node | None:
        if isinstance(node, BufferLoad) and node.buffer is old:
            k, j = node.indices[:: -1 if operand.transposed else 1]
            j = E.cast("int64", j)
            return BufferLoad(new, (E.FloorDiv(j, width), k, E.FloorMod(j, width)), span=node.span)
        if isinstance(node, SBlock) and any(r.buffer is old for r in node.reads):
            reads, writes = infer_regions(node.body, node.init)
            return replace(node, reads=reads, writes=writes)
        return None

    made = transform(body, rewrite)
    params[operand.position] = new
    attrs = {k: v for k, v in func.attrs.items() if k != "global_symbol"}
    return PrimFunc(tuple(params), made, func.ret_ty, attrs, span=func.span)  # type: ignore[arg-type]
