"""Calls of loop functions and packed functions go through registered functions, which may look at every one."""

from __future__ import annotations

from dataclasses import dataclass

from supple.ir.expr import Call
from supple.ir.graph import ExternFunc, Function, GlobalVar, ShapeExpr, Tuple
from supple.ir.loop import PrimFunc
from supple.ir.module import IRModule
from supple.ir.node import Node, replace
from supple.ir.op import Op
from supple.ir.types import result_types
from supple.ir.walk import transform
from supple.ops.calls import CALL_DPS_PACKED, CALL_PURE_PACKED, CALL_TIR


@dataclass(frozen=True)
class Watched:
    """A module whose calls can be watched. ``loops``: for each loop function that is called, how many numbers come
    between inputs and results, and how many results; ``packed``: the registered functions that are called."""

    mod: IRModule
    loops: dict[str, tuple[int, int]]
    packed: frozenset[str]


def instrument(mod: IRModule, prefix: str) -> Watched:
    """The module with each call of ``f`` a call of the registered function ``prefix + f``.

    Before::

        lv = R.call_tir(cls.f, (x,), out_ty=R.Tensor((n,), "float32"))
        lv1 = R.call_packed("g", lv, ty_args=R.Tensor((n,), "float32"))

    After::

        lv = R.call_dps_packed("prefix.f", (x,), out_ty=R.Tensor((n,), "float32"))
        lv1 = R.call_packed("prefix.g", lv, ty_args=R.Tensor((n,), "float32"))

    Loop functions become public, so that they can be called by name. In-place calls stay as they are.
    """
    loops: dict[str, tuple[int, int]] = {}
    packed: set[str] = set()

    def watched(name: str) -> ExternFunc:
        return ExternFunc(prefix + name)

    def rewrite(node: Node) -> Node | None:
        if not isinstance(node, Call):
            return None
        if isinstance(node.op, ExternFunc):
            packed.add(node.op.global_symbol)
            return replace(node, op=watched(node.op.global_symbol))
        if not isinstance(node.op, Op) or not node.args:
            return None
        callee = node.args[0]
        if node.op is CALL_TIR and isinstance(callee, GlobalVar):
            args = node.args[1]
            fields = args.fields if isinstance(args, Tuple) else (args,)
            numbers = node.args[2].values if len(node.args) > 2 and isinstance(node.args[2], ShapeExpr) else ()
            loops[callee.name_hint] = len(numbers), len(result_types(node.ty_args))
            operands = (watched(callee.name_hint), Tuple((*fields, *numbers)))
            return Call(CALL_DPS_PACKED, operands, {}, node.ty_args, span=node.span, ty=node.ty)
        if node.op in (CALL_PURE_PACKED, CALL_DPS_PACKED) and isinstance(callee, ExternFunc):
            packed.add(callee.global_symbol)
            return replace(node, args=(watched(callee.global_symbol), *node.args[1:]))
        return None

    made = mod.clone()
    for var, func in mod.items():
        if isinstance(func, Function):
            changed = transform(func, rewrite, into_types=False)
            assert isinstance(changed, Function)
            made[var] = changed
        elif isinstance(func, PrimFunc) and "global_symbol" not in func.attrs:
            made[var] = func.with_attr("global_symbol", var.name_hint)
    return Watched(made, loops, frozenset(packed))
