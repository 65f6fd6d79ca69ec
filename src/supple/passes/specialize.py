"""Loop functions with the sizes of their calls: a symbol that a call fixes to a constant becomes that constant."""

from __future__ import annotations

from supple.build.block_builder import BlockBuilder
from supple.ir.expr import Call, IntImm, Var
from supple.ir.graph import Function, GlobalVar, Tuple
from supple.ir.loop import Buffer, PrimFunc, buffer_type
from supple.ir.module import IRModule
from supple.ir.node import Expr, Node, replace
from supple.ir.types import BufferType, TensorType, result_types
from supple.ir.walk import transform
from supple.ops.calls import CALL_TIR
from supple.passes.fuse_tir import instantiate
from supple.sym.relate import tensor_dims


def specialize(mod: IRModule) -> IRModule:
    """Give calls of loop functions whose symbols they fix to constants a copy with those constants.

    Before::

        lv = R.call_tir(cls.linear, (x, w, b), out_ty=R.Tensor((n, 10), dtype="float32"))    # linear: M, N, K

    After::

        lv = R.call_tir(cls.linear1, (x, w, b), out_ty=R.Tensor((n, 10), dtype="float32"))   # linear1: M, 10, 128

    Calls alike share a copy. Functions that are not called any more stay until `dead_code`.
    """
    builder = BlockBuilder(mod)
    known: dict[tuple[str, tuple[int | None, ...]], GlobalVar | None] = {}

    def rewrite(node: Node) -> Node | None:
        if not isinstance(node, Call) or node.op is not CALL_TIR or len(node.args) != 2:
            return None
        callee, args = node.args
        func = mod[callee] if isinstance(callee, GlobalVar) else None
        if not isinstance(func, PrimFunc) or not isinstance(args, Tuple) or not _has_symbols(func):
            return None
        assert isinstance(callee, GlobalVar)
        shapes = _shapes([*(getattr(a, "ty", None) for a in args.fields), *result_types(node.ty_args)])
        if shapes is None or len(shapes) != len(func.params):
            return None
        sizes = tuple(d.value if isinstance(d, IntImm) else None for shape in shapes for d in shape)
        key = (callee.name_hint, sizes)
        if key not in known:
            made = _with_sizes(func, shapes)
            known[key] = None if made is None else builder.add_func(made, callee.name_hint)
        found = known[key]
        return None if found is None else replace(node, args=(found, args))

    for var, func in mod.items():
        if isinstance(func, Function):
            made = transform(func, rewrite, into_types=False)
            if made is not func:
                builder.update_func(var, made)  # type: ignore[arg-type]
    return builder.get()


def _has_symbols(func: PrimFunc) -> bool:
    return all(isinstance(p.ty, BufferType) for p in func.params) and any(
        not isinstance(dim, IntImm) for p in func.params for dim in buffer_type(p).shape
    )


def _shapes(types: list[object]) -> list[tuple[Expr, ...]] | None:
    found: list[tuple[Expr, ...]] = []
    for ty in types:
        dims = tensor_dims(ty) if isinstance(ty, TensorType) else None
        if dims is None:
            return None
        found.append(dims)
    return found


def _with_sizes(func: PrimFunc, shapes: list[tuple[Expr, ...]]) -> PrimFunc | None:
    """The function with symbols that stand for constants replaced; None when there are none, or where it cannot be."""
    fixed: dict[int, Expr] = {}
    for param, shape in zip(func.params, shapes, strict=True):
        dims = buffer_type(param).shape
        if len(dims) != len(shape):
            return None
        for dim, actual in zip(dims, shape, strict=True):
            if isinstance(dim, Var) and isinstance(actual, IntImm):
                fixed.setdefault(id(dim), IntImm(actual.value, dim.dtype))
    if not fixed:
        return None
    fresh: dict[int, Expr] = {}

    def dim_of(dim: Expr) -> Expr | None:
        if isinstance(dim, IntImm):
            return dim
        if not isinstance(dim, Var):
            return None
        return fixed.get(id(dim)) or fresh.setdefault(id(dim), Var(dim.name, dim.ty))

    operands: list[Var] = []
    for param in func.params:
        ty = buffer_type(param)
        made = [dim_of(d) for d in ty.shape]
        if any(d is None for d in made):
            return None
        operands.append(Buffer(param.name, tuple(d for d in made if d is not None), ty.dtype, ty.scope))
    copied = instantiate(func, operands)
    if copied is None:
        return None
    attrs = {k: v for k, v in func.attrs.items() if k != "global_symbol"}
    return PrimFunc(tuple(operands), copied, func.ret_ty, attrs, span=func.span)
