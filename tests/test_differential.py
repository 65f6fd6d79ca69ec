"""Generated graph modules: the interpreter on operators, the interpreter on loop functions, and native code agree."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import supple
from supple.base.errors import ExecutionError, TypeCheckError
from supple.build.block_builder import BlockBuilder
from supple.interp.graph import Interpreter
from supple.ir.expr import Call, TupleGetItem, Var, as_expr
from supple.ir.graph import ShapeExpr, constant
from supple.ir.module import IRModule
from supple.ir.op import Op
from supple.ir.types import TensorType, TupleType, prim_type
from supple.passes.dead_code import dead_code
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


Pool = list[Var]


@st.composite
def modules(draw: Any) -> IRModule:
    """A function of three tensors with dimensions among n, m and small numbers, and up to ten operators."""
    n, m = (Var(name, prim_type("int64")) for name in "nm")
    width = draw(st.sampled_from([1, 3, 7, 16]))
    params = [tensor("x", n, width), tensor("y", width), tensor("z", width, m)]
    bb = BlockBuilder()
    with bb.function("main", params):
        pool: Pool = list(params)
        exact = {id(p) for p in params}  # computed to the same bits everywhere: order and equality mean something
        with bb.dataflow():
            for _ in range(draw(st.integers(1, 10))):
                made = emit_one(draw, bb, pool, exact)
                if made is not None:
                    pool.append(made)
            if draw(st.integers(0, 3)) == 0:
                pool.extend(emit_dynamic(draw, bb, [p for p in pool if id(p) in exact]))
            outs = [bb.emit_output(v) for v in pool[-draw(st.integers(1, 3)) :]]
        bb.emit_func_output(outs[0] if len(outs) == 1 else outs)
    return bb.finalize()


def op(name: str, *args: Any, **attrs: Any) -> Call:
    return Op.get(f"relax.{name}")(*args, **attrs)


ROUNDED = ("unary", "reduce", "matmul", "softmax", "cumsum", "einsum", "spread", "narrow")
MOVING = ("binary", "permute", "concat", "reshape", "where", "take", "slice", "pad", "repeat", "tile", "flip", "stack")
MOVING += ("expand", "split", "extreme", "gather", "clip", "sort", "order", "symbolic")
ON_AXES = (
    "permute",
    "reduce",
    "softmax",
    "cumsum",
    "spread",
    "take",
    "slice",
    "pad",
    "repeat",
    "flip",
    "split",
    "gather",
)
ON_AXES += ("sort", "order", "extreme", "concat", "symbolic")


def emit_one(draw: Any, bb: BlockBuilder, pool: Pool, exact: set[int]) -> Var | None:
    """One more value, or None where the drawn operator does not fit."""
    kind = draw(st.sampled_from(ROUNDED + MOVING))
    x = draw(st.sampled_from(pool))
    if kind in ("sort", "order", "gather") and id(x) not in exact:
        return None
    if kind in ON_AXES and not dims_of(x):
        return None
    call, used = drawn(draw, kind, x, pool)
    if call is None:
        return None
    try:
        made = bb.emit(call)
    except TypeCheckError:  # sizes that are not proved to fit
        return None
    if isinstance(made.ty, TupleType):
        made = bb.emit(TupleGetItem(made, draw(st.integers(0, len(made.ty.fields) - 1))))
    if kind in MOVING and all(id(u) in exact for u in used):
        exact.add(id(made))
    return made


def drawn(draw: Any, kind: str, x: Var, pool: Pool) -> tuple[Call | None, list[Var]]:
    """A call of that kind on ``x``, and its operands."""
    dims, ndim = dims_of(x), len(dims_of(x))
    axis = draw(st.integers(-ndim, ndim - 1)) if ndim else 0
    few, some = draw(st.integers(1, 3)), draw(st.integers(-4, 9))

    def other(fits: Callable[[Any, Any], bool]) -> Var | None:
        found = [y for y in pool if fits(dims, dims_of(y))]
        return draw(st.sampled_from(found)) if found else None

    if kind in ("binary", "where"):
        y = other(broadcasts)
        assert y is not None
        if kind == "binary":
            return Op.get(draw(st.sampled_from(BINARY)))(x, y), [x, y]
        return op("where", op("less", x, constant(np.float32(0.1))), x, y), [x, y]
    if kind in ("matmul", "concat", "stack"):
        y = other({"matmul": multiplies, "concat": joins, "stack": alike}[kind])
        if y is None:
            return None, []
        if kind == "matmul":
            return op("matmul", x, y), [x, y]
        return op(kind, [x, y], axis=-1), [x, y]
    indices = constant(np.array(draw(st.lists(st.integers(-9, 9), max_size=4)), "int64"))
    begin, end = some, draw(st.integers(-4, 9))
    widths = [0] * ndim * 2
    if ndim:
        widths[2 * (axis % ndim)], widths[2 * (axis % ndim) + 1] = few - 1, few
    calls: dict[str, Callable[[], Call | None]] = {
        "unary": lambda: Op.get(draw(st.sampled_from(UNARY)))(x),
        "permute": lambda: op("permute_dims", x, axes=draw(st.permutations(range(ndim)))),
        "reshape": lambda: op("reshape", x, draw(st.sampled_from([(-1,), (1, -1), (*dims, 1)]))),
        "reduce": lambda: Op.get(draw(st.sampled_from(REDUCE)))(x, axis=[axis], keepdims=draw(st.booleans())),
        "extreme": lambda: op(draw(st.sampled_from(["max", "min"])), x, axis=[axis], keepdims=True),
        "softmax": lambda: op(draw(st.sampled_from(["nn.softmax", "nn.log_softmax"])), x, axis=axis),
        "spread": lambda: op(draw(st.sampled_from(["variance", "std", "prod"])), x, axis=[axis], keepdims=True),
        "cumsum": lambda: op("cumsum", x, axis=axis),
        "einsum": lambda: op("einsum", [x, x], subscripts="...,...->..."),
        "narrow": lambda: op("astype", op("astype", x, draw(st.sampled_from(["float16", "bfloat16"]))), "float32"),
        "take": lambda: op("take", x, indices, axis=axis, mode=draw(st.sampled_from(["fast", "clip", "wrap"]))),
        "slice": lambda: op("strided_slice", x, [axis], [begin], [end], [draw(st.sampled_from([1, 2, -1, -2]))]),
        "symbolic": lambda: op("strided_slice", x, [axis], [dims[axis] - few], [dims[axis]]),
        "pad": lambda: op("nn.pad", x, widths, pad_value=1.5),
        "repeat": lambda: op("repeat", x, few, axis=axis),
        "tile": lambda: op("tile", x, (few, 1)) if ndim < 4 else None,
        "flip": lambda: op("flip", x, axis=axis),
        "expand": lambda: op("expand_dims", x, [draw(st.integers(0, ndim))]) if ndim < 4 else None,
        "split": lambda: op("split", x, [few], axis=axis),
        "clip": lambda: op("clip", x, as_expr(-0.25), as_expr(0.5)),
        "sort": lambda: op("sort", x, axis=axis, descending=draw(st.booleans())),
        "order": lambda: op("astype", op("argsort", x, axis=axis, descending=draw(st.booleans())), "float32"),
        "gather": lambda: op("gather_elements", x, op("argsort", x, axis=axis, dtype="int64"), axis=axis),
    }
    return calls[kind](), [x]


def emit_dynamic(draw: Any, bb: BlockBuilder, pool: Pool) -> list[Var]:
    """Values whose size only the data says, combined."""
    a, b = (bb.emit(op("unique", bb.emit(op("flatten", draw(st.sampled_from(pool)))))) for _ in range(2))
    joined = bb.emit(op("concat", [a, b], axis=0))
    places = bb.emit(op("flatten", bb.emit(op("nonzero", joined))))
    return [joined, bb.emit(op("take", joined, places, axis=0)), bb.emit(op("maximum", a, b))][
        : draw(st.integers(1, 3))
    ]


def same(a: Any, b: Any) -> bool:
    return SHAPES.equal(a, b) is True


def broadcasts(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    one = as_expr(1)
    return all(same(x, y) or same(x, one) or same(y, one) for x, y in zip(reversed(a), reversed(b), strict=False))


def multiplies(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return bool(a) and bool(b) and same(a[-1], b[0] if len(b) == 1 else b[-2]) and max(len(a), len(b)) <= 2


def alike(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return len(a) == len(b) < 4 and all(same(x, y) for x, y in zip(a, b, strict=True))


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


def outcome(function: Callable[..., Any], args: list[Any]) -> Any:
    """The results, or that it failed while it ran."""
    try:
        with np.errstate(all="ignore"):
            return function(*args)
    except ExecutionError as error:
        assert error.span is None or str(error.span)
        return None


EXAMPLES = int(os.environ.get("SUPPLE_EXAMPLES", "20"))


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(modules(), st.lists(SIZES, min_size=2, max_size=2))
def test_three_ways_agree(mod: IRModule, sizes: list[tuple[int, int]]) -> None:
    check_module(mod)
    mod = dead_code(mod)  # what fails and is not used does not fail in compiled code
    lowered = legalize(mod, keep_views=False)
    check_module(lowered)
    vm = supple.relax.VirtualMachine(supple.compile(mod), supple.cpu())
    for n, m in sizes:
        rng = np.random.default_rng(n * 10 + m)
        width = dims_of(mod["main"].params[1])[0].value  # type: ignore[union-attr]
        args = [rng.uniform(-1, 1, s).astype("float32") for s in ((n, width), (width,), (width, m))]
        expected = outcome(lambda *a: Interpreter(mod).run("main", *a), args)
        loops = outcome(lambda *a: Interpreter(lowered).run("main", *a), args)
        native = outcome(vm["main"], args)
        if expected is None:
            assert loops is None and native is None
        else:
            compare(loops, expected, "interpreted loop functions")
            compare(native, expected, "native code")
