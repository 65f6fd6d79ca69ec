"""Updates of reductions: ``C[..] = C[..] + a * b`` and its relatives, recognised by structure."""

from __future__ import annotations

from supple.base import dtypes
from supple.ir import expr as E
from supple.ir import intrinsics as _rows  # registers the operators  # noqa: F401
from supple.ir.expr import BufferLoad, Call, IntImm, Var
from supple.ir.loop import BufferStore
from supple.ir.node import Expr, Node, Stmt, fields
from supple.ir.op import OPS
from supple.ir.types import prim_type
from supple.ir.walk import transform

FMA = OPS.get("tirx.fma")
"""``T.fma(a, b, c)``: ``a * b + c`` rounded once."""


def fma(a: Expr, b: Expr, c: Expr) -> Call:
    """The fused multiply-add of three scalars (or vectors) of one floating-point dtype."""
    return Call(FMA, (a, b, c), ty=prim_type(E.scalar_dtype(c)))


def fuse_multiply_add(body: Stmt) -> Stmt:
    """``C[i] = C[i] + a * b`` (either order) on floats becomes ``C[i] = T.fma(a, b, C[i])``."""

    def rewrite(node: Node) -> Node | None:
        if not isinstance(node, BufferStore):
            return None
        update = multiply_add(node)
        if update is None:
            return None
        a, b, load = update
        return BufferStore(node.buffer, fma(a, b, load), node.indices, span=node.span)

    fused = transform(body, rewrite)
    assert isinstance(fused, Stmt)
    return fused


def multiply_add(store: BufferStore) -> tuple[Expr, Expr, BufferLoad] | None:
    """``(a, b, C[i])`` when the store is ``C[i] = C[i] + a * b`` on floats (or the fused form of it)."""
    value = store.value
    if not dtypes.is_float(E.scalar_dtype(value)):
        return None
    if isinstance(value, Call) and value.op is FMA:
        a, b, c = value.args
        return (a, b, c) if isinstance(c, BufferLoad) and is_same_place(store, c) else None
    if not isinstance(value, E.Add):
        return None
    for load, product in ((value.a, value.b), (value.b, value.a)):
        if isinstance(load, BufferLoad) and is_same_place(store, load) and isinstance(product, E.Mul):
            return product.a, product.b, load
    return None


def is_same_place(store: BufferStore, load: BufferLoad) -> bool:
    """Whether a load reads exactly the element that a store writes (by structure)."""
    return store.buffer is load.buffer and all(
        same_expr(a, b) for a, b in zip(store.indices, load.indices, strict=True)
    )


def same_expr(a: Expr, b: Expr) -> bool:
    """Whether two scalar expressions are the same tree over the same variables."""
    stack: list[tuple[object, object]] = [(a, b)]
    while stack:
        x, y = stack.pop()
        if x is y:
            continue
        if isinstance(x, Var) or type(x) is not type(y):
            return False
        if isinstance(x, IntImm) and isinstance(y, IntImm):
            if x.value != y.value:
                return False
        elif isinstance(x, Node):
            assert isinstance(y, Node)
            stack.extend((getattr(x, name), getattr(y, name)) for name, _ in fields(type(x)) if name != "span")
        elif isinstance(x, tuple):
            assert isinstance(y, tuple)
            if len(x) != len(y):
                return False
            stack.extend(zip(x, y, strict=True))
        elif x != y and not (x != x and y != y):
            return False
    return True
