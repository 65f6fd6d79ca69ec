"""Calls whose result's size only the data says, as functions of calls whose sizes are symbols.

Before::

    gv: R.Tensor(dtype="int64", ndim=2) = R.nonzero(x)

After, in a private function that the call becomes a call of::

    bound = R.call_tir(cls.nonzero_bound, (x,), out_ty=[R.Tensor((2, n * m), "int64"), R.Tensor((1,), "int64")])
    sizes = R.tensor_to_shape(bound[1])
    _ = R.match_cast(sizes, R.Shape([count]))
    result = R.call_tir(cls.nonzero, (x, bound[0]), out_ty=R.Tensor((2, count), "int64"))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from supple.base.errors import NotSupportedError
from supple.build.block_builder import BlockBuilder
from supple.ir.expr import Call, IntImm, TupleGetItem, Var
from supple.ir.graph import GlobalVar, ShapeExpr
from supple.ir.node import Expr
from supple.ir.op import Op
from supple.ir.types import ShapeType, TensorType, TupleType, prim_type
from supple.ops.dynamic import Dynamic
from supple.ops.forms import tensor_to_shape
from supple.sym.relate import tensor_dims
from supple.sym.simplify import SHAPES


class DynamicResults:
    """Makes the functions; calls of one operator on operands of one kind share one."""

    def __init__(self, builder: BlockBuilder) -> None:
        self.builder = builder
        self._known: dict[Any, GlobalVar] = {}

    def lowered(self, call: Call, op: Op) -> Call:
        """The call of a function that computes it. Raises `NotSupportedError` where an operand's rank or dtype is not
        known."""
        types = [_named_type(a, call, op) for a in call.args]
        key = (op.name, tuple(_kind(t) for t in types), repr(sorted(call.attrs.items())))
        if key not in self._known:
            self._known[key] = self._function(call, op, types)
        return Call(self._known[key], call.args, span=call.span, ty=call.ty)

    def _function(self, call: Call, op: Op, types: Sequence[TensorType]) -> GlobalVar:
        definition: Dynamic = op.facts["dynamic"]
        name = op.short_name.rpartition(".")[2]
        fresh: dict[Any, Var] = {}
        params = [Var(f"x{n}", _own(t, fresh)) for n, t in enumerate(types)]
        build = self.builder
        build.begin_function(f"{name}_dynamic", params)
        made = build.emit(build.call_te(definition.bound, *params, primfunc_name_hint=f"{name}_bound", **call.attrs))
        buffers = [made]
        if isinstance(made.ty, TupleType):
            buffers = [build.emit(TupleGetItem(made, n, field)) for n, field in enumerate(made.ty.fields)]
        symbols = [Var(f"count{n}", prim_type("int64")) for n in range(definition.count(types))]
        build.match_cast(build.emit(tensor_to_shape(buffers.pop())), ShapeType(tuple(symbols)))
        result = build.call_te(definition.trim, params, buffers, symbols, primfunc_name_hint=name, **call.attrs)
        return build.emit_func_output(build.emit(result))


def _own(ty: TensorType, fresh: dict[Any, Var]) -> TensorType:
    """The type with symbols of its own: one for each different dimension that is no number."""
    dims = []
    for dim in tensor_dims(ty) or ():
        if not isinstance(dim, IntImm):
            key = SHAPES.canonical(dim)
            dim = fresh.setdefault(key, Var(f"n{len(fresh)}", prim_type("int64")))
        dims.append(dim)
    return TensorType(ShapeExpr(tuple(dims)), ty.dtype)


def _kind(ty: TensorType) -> Any:
    return ty.dtype, tuple(SHAPES.canonical(d) for d in tensor_dims(ty) or ())


def _named_type(arg: Expr, call: Call, op: Op) -> TensorType:
    """An operand's type, with a symbol for each dimension where only the rank is known."""
    ty = getattr(arg, "ty", None)
    assert isinstance(ty, TensorType)
    if ty.dtype is None or ty.ndim == -1:
        raise NotSupportedError(
            f"{op.name}: native code needs operands of known rank and dtype",
            span=call.span,
            expected="R.Tensor(ndim=..., dtype=...)",
            actual=str(ty),
            hint="use R.match_cast(value, R.Tensor((n, ...), dtype)) to name the dimensions",
            rule="legalize",
        )
    if tensor_dims(ty) is not None:
        return ty
    return TensorType(ShapeExpr(tuple(Var(f"d{n}", prim_type("int64")) for n in range(ty.ndim))), ty.dtype)
