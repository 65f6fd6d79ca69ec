"""Generated graph modules: the interpreter on operators, the interpreter on loop functions, and native code agree."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import supple
from supple.build.block_builder import BlockBuilder
from supple.interp.graph import Interpreter
from supple.ir.expr import Var, as_expr
from supple.ir.graph import ShapeExpr
from supple.ir.module import IRModule
from supple.ir.op import Op
from supple.ir.types import TensorType, prim_type
from supple.passes.legalize import legalize
from supple.sym.relate import tensor_dims
from supple.sym.simplify import SHAPES
from supple.verify.well_formed import check_module

UNARY = ["relax.nn.relu", "relax.tanh", "relax.negative", "relax.exp", "relax.abs", "relax.sigmoid"]
BINARY = ["relax.add", "relax.subtract", "relax.multiply", "relax.maximum", "relax.minimum"]
REDUCE = ["relax.sum", "relax.max", "relax.mean"]
SIZES = st.tuples(st.sampled_from([0, 1, 2, 5, 17]), st.sampled_from([1, 3, 8]))


def tensor(name: str, *dims: Any) -> Var:
    return Var(name, TensorType(ShapeExpr(tuple(as_expr(d) for d in dims)), "float32"))


def dims_of(x: Var) -> tuple[Any, ...]:
    dims = tensor_dims(x.ty)  # type: ignore[arg-type]
    assert dims is not None
    return dims


@st.composite
def modules(draw: Any) -> IRModule:
    """A function of three tensors with dimensions among n, m and small numbers, and up to eight operators."""
    n, m = (Var(name, prim_type("int64")) for name in "nm")
    width = draw(st.sampled_from([1, 3, 7, 16]))
    params = [tensor("x", n, width), tensor("y", width), tensor("z", width, m)]
    bb = BlockBuilder()
    with bb.function("main", params):
        pool: list[Var] = list(params)
        with bb.dataflow():
            for _ in range(draw(st.integers(1, 8))):
                made = emit_one(draw, bb, pool)
                if made is not None:
                    pool.append(made)
            outs = [bb.emit_output(v) for v in pool[-draw(st.integers(1, 2)) :]]
        bb.emit_func_output(outs[0] if len(outs) == 1 else outs)
    return bb.finalize()


def emit_one(draw: Any, bb: BlockBuilder, pool: list[Var]) -> Var | None:
    x = draw(st.sampled_from(pool))
    kind = draw(st.sampled_from(["unary", "binary", "reduce", "matmul", "permute", "concat", "softmax", "reshape"]))
    if kind == "unary":
        return bb.emit(Op.get(draw(st.sampled_from(UNARY)))(x))
    if kind == "binary":
        fits = [y for y in pool if broadcasts(dims_of(x), dims_of(y))]
        return bb.emit(Op.get(draw(st.sampled_from(BINARY)))(x, draw(st.sampled_from(fits))))
    if kind == "matmul":
        fits = [y for y in pool if multiplies(dims_of(x), dims_of(y))]
        return bb.emit(Op.get("relax.matmul")(x, draw(st.sampled_from(fits)))) if fits else None
    if kind == "concat":
        fits = [y for y in pool if joins(dims_of(x), dims_of(y))]
        return bb.emit(Op.get("relax.concat")([x, draw(st.sampled_from(fits))], axis=-1)) if fits else None
    ndim = len(dims_of(x))
    if ndim == 0:
        return None
    if kind == "permute":
        return bb.emit(Op.get("relax.permute_dims")(x, axes=draw(st.permutations(range(ndim)))))
    if kind == "reshape":
        return bb.emit(Op.get("relax.reshape")(x, (-1,)))
    axis = draw(st.integers(-ndim, ndim - 1))
    if kind == "softmax":
        return bb.emit(Op.get("relax.nn.softmax")(x, axis=axis))
    return bb.emit(Op.get(draw(st.sampled_from(REDUCE)))(x, axis=[axis], keepdims=draw(st.booleans())))


def same(a: Any, b: Any) -> bool:
    return SHAPES.equal(a, b) is True


def broadcasts(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    one = as_expr(1)
    return all(same(x, y) or same(x, one) or same(y, one) for x, y in zip(reversed(a), reversed(b), strict=False))


def multiplies(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return bool(a) and bool(b) and same(a[-1], b[0] if len(b) == 1 else b[-2]) and max(len(a), len(b)) <= 2


def joins(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return len(a) == len(b) > 0 and all(same(x, y) for x, y in zip(a[:-1], b[:-1], strict=True))


def compare(actual: Any, expected: Any, what: str) -> None:
    if isinstance(expected, tuple):
        assert isinstance(actual, tuple) and len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            compare(a, e, what)
        return
    a, e = np.asarray(actual), np.asarray(expected)
    assert a.shape == e.shape and a.dtype == e.dtype, what
    finite = np.isfinite(e)
    scale = float(np.max(np.abs(e[finite]), initial=1.0))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(a, e, rtol=2e-4, atol=2e-5 * scale, equal_nan=True, err_msg=what)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(modules(), st.lists(SIZES, min_size=2, max_size=2))
def test_three_ways_agree(mod: IRModule, sizes: list[tuple[int, int]]) -> None:
    check_module(mod)
    lowered = legalize(mod, keep_views=False)
    check_module(lowered)
    vm = supple.relax.VirtualMachine(supple.compile(mod), supple.cpu())
    for n, m in sizes:
        rng = np.random.default_rng(n * 10 + m)
        width = dims_of(mod["main"].params[1])[0].value  # type: ignore[union-attr]
        args = [rng.uniform(-1, 1, s).astype("float32") for s in ((n, width), (width,), (width, m))]
        with np.errstate(all="ignore"):
            expected = Interpreter(mod).run("main", *args)
            loops = Interpreter(lowered).run("main", *args)
        compare(loops, expected, "interpreted loop functions")
        compare(vm["main"](*args), expected, "native code")
