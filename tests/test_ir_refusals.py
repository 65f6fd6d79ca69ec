"""Every check of a node's construction is needed: for each, what it refuses, by its message."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from supple import relax, tirx
from supple.ir import expr as E
from supple.ir import expr_operators, intrinsics, loop, module
from supple.ir.expr import Var, const, int64
from supple.ir.graph import Function, SeqExpr, ShapeExpr, Tuple, constant
from supple.ir.host import HostStmt, _line
from supple.ir.module import IRModule
from supple.ir.node import children
from supple.ir.op import Op
from supple.ir.print_metadata import _TENSOR, read_relax_metadata, relax_metadata
from supple.ir.region import region
from supple.ir.serialize import save_json
from supple.ir.types import DeviceMesh, DTensorType, ShapeType, TensorType, VDevice, prim_type
from supple.script import tirx as T

F32, I32, H = const(1.0, "float32"), const(1, "int32"), Var("h", prim_type("handle"))
N = Var("n", prim_type("int64"))
V = Var("v", TensorType(ShapeExpr((int64(4),)), "float32"))
A = loop.Buffer("A", (int64(4), int64(4)), "float32")
FOUR = TensorType(ShapeExpr((int64(4),)), "float32")
MESH = DeviceMesh((2,), (0, 1))
ADD = Op.get("relax.add")


def write_twice() -> None:
    I32.value = 2  # type: ignore[misc]


def call_a_module() -> None:
    known = module.MODULE_CALL[:]
    module.MODULE_CALL.clear()
    try:
        IRModule({})()
    finally:
        module.MODULE_CALL.extend(known)


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    # scalars
    (lambda: N.scope(), TypeError, "n.scope: only buffers have it"),
    (lambda: E.IntImm(1, "float32"), TypeError, "IntImm: expected an integer or bool dtype"),
    (lambda: E.FloatImm(1.0, "int32"), TypeError, "FloatImm: expected a floating-point dtype"),
    (lambda: E.Add(F32, I32), TypeError, "Add: operands must have one dtype, got float32 and int32"),
    (lambda: E.Select(const(True), F32, I32), TypeError, "Select: both values must have one dtype"),
    (lambda: E.BufferLoad(N, (int64(0),)), TypeError, "n is not a buffer: it cannot be indexed here"),
    (lambda: E.as_expr(object()), TypeError, "expected an expression or a number"),
    (lambda: E.match_dtypes(E.Broadcast(F32, 2), E.Broadcast(F32, 3)), TypeError, "vectors of 2 and 3 lanes"),
    (lambda: E.Shuffle(F32, (0,)), TypeError, "Shuffle: vectors must be a list or a tuple, got T.float32"),
    (lambda: E.Shuffle([F32], 0), TypeError, "Shuffle: indices must be a list or a tuple, got 0"),
    (lambda: E.Shuffle([F32], "0"), TypeError, "Shuffle: indices must be a list or a tuple, got '0'"),
    (lambda: E.Shuffle(["a"], [0]), TypeError, "expected an expression or a number, got 'a'"),
    (lambda: E.Shuffle([F32], [True]), TypeError, "Shuffle: indices must be integer literals"),
    (lambda: E.Shuffle([F32], [0.0]), TypeError, "Shuffle: indices must be integer literals"),
    (lambda: E.Add(F32, "a"), TypeError, "expected an expression or a number, got 'a'"),
    (lambda: E.Ramp(0, 1, 0), ValueError, "Ramp: expected at least one lane, got 0"),
    (lambda: E.Ramp(0, 1, N), TypeError, "Ramp: lanes must be an integer literal, got n"),
    (lambda: E.Ramp(0, 1, True), TypeError, "Ramp: lanes must be an integer literal, got True"),
    (lambda: E.Ramp(E.Ramp(0, 1, 2), 1, 2), TypeError, "Ramp: base and stride must be scalars, got int32x2 and int32"),
    (lambda: E.Broadcast(E.Ramp(0, 1, 2), 2), TypeError, "Broadcast: expected a scalar, got int32x2"),
    (lambda: relax.op.zeros((1.5,), "float32"), TypeError, "expected an integer, got 1.5"),
    (lambda: relax.op.reshape(V, (F32, 4)), TypeError, "a shape's values must be int64 scalars, got T.float32"),
    (lambda: relax.op.broadcast_to(V, (4.5, 4)), TypeError, "expected an integer, got 4.5"),
    (lambda: tirx.decl_buffer((1.5,), "float32"), TypeError, "a buffer's shape must be integers, got T.float32"),
    (lambda: loop.Buffer("B", (F32,)), TypeError, "a buffer's shape must be integers, got T.float32"),
    (lambda: loop.Buffer("B", (N,), strides=(F32,)), TypeError, "a buffer's strides must be integers, got T.float32"),
    (lambda: E.BufferLoad(A, (0, 1.5)), TypeError, "expected an integer, got 1.5"),
    (lambda: A[0, 1.5], TypeError, "expected an integer, got 1.5"),
    (lambda: loop.BufferStore(A, F32, [0, np.float32(1.5)]), TypeError, "expected an integer, got .*1.5"),
    (lambda: E.Shuffle((), (int64(0),)), ValueError, "Shuffle: expected at least one vector and one index"),
    (lambda: E.Shuffle((F32,), ()), ValueError, "Shuffle: expected at least one vector and one index"),
    (lambda: E.Shuffle((F32, I32), (int64(0),)), TypeError, "one element dtype, got float32, int32"),
    (lambda: E.Shuffle((F32,), (N,)), TypeError, "Shuffle: indices must be integer literals"),
    (lambda: E.Shuffle((E.Broadcast(F32, 3),), (int64(3),)), ValueError, "expected indices from 0 to 2, got 3"),
    (lambda: E.match_dtypes(H, F32), TypeError, "cannot combine handle and float32"),
    (lambda: E.match_dtypes(F32, H), TypeError, "cannot combine float32 and handle"),
    (lambda: bool(N + 1), ValueError, "the truth of a symbolic value is not known"),
    (lambda: bool(relax.op.exp(V)), ValueError, "the truth of a symbolic value is not known"),
    (lambda: bool(V), ValueError, "the truth of a symbolic value is not known"),
    (lambda: expr_operators._tensor("odd", V), TypeError, "tensors have no operator 'odd'"),
    (lambda: bool(N < 4), ValueError, "cannot decide '<' of symbolic expressions"),
    (lambda: Var("u", TensorType(dtype=None)).dtype, AttributeError, "Var of type R.Tensor has no known dtype"),
    (lambda: Var("u", TensorType(dtype=None)).shape, AttributeError, "Var of type R.Tensor has no known shape"),
    (lambda: np.asarray(V), TypeError, "numpy functions do not take the values"),
    (lambda: float(N), TypeError, r"a symbolic value has no number while the program is built \(Var\)"),
    (lambda: iter(V), TypeError, "only a tuple of known length can be unpacked"),
    (lambda: setattr(object.__new__(E.IntImm), "value", 2), AttributeError, "IntImm.value: IR nodes are immutable"),
    (lambda: setattr(E.Add(F32, F32), "dtype", "int32"), AttributeError, "Add.dtype: IR nodes are immutable"),
    (write_twice, AttributeError, "IntImm.value: IR nodes are immutable"),
    # intrinsics
    (lambda: T.ldexp(F32, F32), TypeError, "T.ldexp: expected a float and an integer"),
    (lambda: T.ldexp(I32, I32), TypeError, "T.ldexp: expected a float and an integer"),
    (
        lambda: intrinsics._choice_rule("bool", "int32", "float32"),
        TypeError,
        "T.if_then_else: both values must have one",
    ),
    (lambda: intrinsics.intrinsic("dot_pairs", F32, F32), TypeError, "T.dot_pairs: expected int32"),
    (lambda: intrinsics._not_computable(1), NotImplementedError, "the intrinsic has no numpy meaning"),
    (lambda: intrinsics.opaque("call_llvm_intrin"), TypeError, "T.call_llvm_intrin: the dtype is missing"),
    (lambda: intrinsics.opaque("vscale", 1), TypeError, "T.vscale: expected 0 operands, got 1"),
    (lambda: T.call_extern("int32", 3), TypeError, "T.call_extern: expected the function's name, got 3"),
    (lambda: T.infinity("float8_e4m3fn"), TypeError, "float8_e4m3fn has no infinity"),
    # loops
    (lambda: loop.buffer_type(N), TypeError, "n is not a buffer"),
    (lambda: loop.AssertStmt(const(True), 3), TypeError, "AssertStmt: the message must be a string"),  # type: ignore
    (lambda: loop.IterVar(E.Range(int64(0), int64(4)), N, "odd"), ValueError, "IterVar: the kinds are"),  # type: ignore
    (lambda: loop.IndexMap.from_func(lambda *i: i), TypeError, "the number of indices must be given"),
    (lambda: loop.IndexMap.from_func(lambda i: V), TypeError, "index_map: expected integer indices, got v"),
    (lambda: loop.IndexMap.from_func(lambda i: i).map_indices([1, 2]), ValueError, "expected 1 indices, got 2"),
    (lambda: region(A, (int64(0),)), IndexError, "A has 2 dimensions, but 1 indices were given"),
    (lambda: region(A, (slice(0, 4, 2), int64(0))), IndexError, "a region of a buffer has no step"),
    # graphs, modules, types
    (lambda: constant("text"), TypeError, "expected a number, a list of numbers or an array"),
    (lambda: ShapeExpr((I32,)), TypeError, "a shape's values must be int64 scalars"),
    (
        lambda: ShapeExpr((Var("i", TensorType(FOUR.shape, "int64")),)),
        TypeError,
        "a shape's values must be int64 scalars",
    ),
    (lambda: TensorType(3, "float32"), TypeError, r"expected a shape such as \[n, 4\], got 3"),  # type: ignore[arg-type]
    (lambda: Function((Var("u"),), SeqExpr((), V), FOUR).ty, ValueError, "the function's type is not known before"),
    (lambda: Function((V,), SeqExpr((), Var("u")), None).ty, ValueError, "the function's type is not known before"),
    (lambda: _line(HostStmt()), TypeError, "unknown host statement HostStmt"),
    (call_a_module, TypeError, "a module is not callable before supple.relax is imported"),
    (lambda: IRModule({}).__setitem__("f", V), TypeError, "a module holds functions, got Var"),  # type: ignore[arg-type]
    (lambda: IRModule({})["f"], KeyError, "the module has no function 'f'"),
    (lambda: ADD(V, x1=V), TypeError, "relax.add: parameter x1 was given twice"),
    (lambda: relax.op.exp("text"), TypeError, "expected a tensor, got 'text'"),
    (lambda: relax.op.concat("text"), TypeError, "expected a tuple of tensors, got 'text'"),
    (lambda: save_json(Function((V,), SeqExpr((), V), V.ty, True, {"a": object()})), TypeError, "cannot save a object"),
    (lambda: TensorType(ShapeExpr((int64(4),)), "float32", 2), ValueError, "ndim=2 contradicts the shape of 1"),
    (lambda: ShapeType((int64(4),), 2), ValueError, "ShapeType: ndim=2 contradicts 1 values"),
    (lambda: VDevice.parse(":1"), ValueError, "vdevice: expected 'kind'"),
    (lambda: DeviceMesh((2,), (0,)), ValueError, "has 2 places, but 1 devices"),
    (lambda: DTensorType(FOUR, MESH, "X"), ValueError, r"placement: expected 'R' or 'S\[axis\]'"),
    (lambda: DTensorType(FOUR, MESH, "R, R"), ValueError, "placement: 2 entries for a mesh of 1 axes"),
    (lambda: Tuple(()).script(buffer_dtype="int8"), NotImplementedError, "buffer_dtype: buffers that are not float32"),
]


@pytest.mark.parametrize(("act", "error", "message"), REFUSED, ids=[message for _, _, message in REFUSED])
def test_a_node_is_refused(act: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        act()


def changed(*, extent: int = 2, **fields: int) -> Callable[[Any], Any]:
    """Another head of the tensor's bytes."""

    def change(graph: Any) -> None:
        row = graph["nodes"][10]
        raw = base64.b64decode(row["data"])
        names = ("magic", "reserved", "device", "index", "rank", "code", "bits", "lanes")
        head = {**dict(zip(names, _TENSOR.unpack_from(raw), strict=True)), **fields}
        rest = extent.to_bytes(8, "little", signed=True) + raw[_TENSOR.size + 8 :]
        row["data"] = base64.b64encode(_TENSOR.pack(*head.values()) + rest).decode()

    return change


def short(graph: Any) -> None:
    row = next(row for row in graph["nodes"] if row["type"] == "ffi.Tensor")
    row["data"] = base64.b64encode(base64.b64decode(row["data"])[:-4]).decode()


METADATA: list[tuple[Callable[[Any], Any], str]] = [
    (lambda graph: graph.update(root_index=-1), "no node -1"),
    (lambda graph: graph["nodes"][0].update(data="relax.Constant"), r"only ir\.GenericConst can be read"),
    (lambda graph: graph["nodes"][11].update(type="relax.Constant"), r"expected a constant, got relax\.Constant"),
    (lambda graph: graph["nodes"][13].update(type="ffi.Array"), "the root is no map"),
    (lambda graph: graph["nodes"][10].update(data="AAAA"), "requires a buffer"),
    (lambda graph: graph.update(root_index="13"), "no node '13'"),
    (lambda graph: graph["nodes"][12].update(data=3), r"only ir\.GenericConst can be read"),
    (lambda graph: graph["nodes"][13].update(data=3), "the root is no map"),
    (lambda graph: graph["nodes"][13].update(data=[0, 12, 0]), "the root is no map"),
    (changed(magic=3), "no tensor that Supple has"),
    (changed(device=2), "no tensor that Supple has"),
    (changed(code=99), "no tensor that Supple has"),
    (changed(lanes=2), "no tensor that Supple has"),
    (changed(rank=65), "no tensor that Supple has"),
    (changed(rank=-1), "no tensor that Supple has"),
    (changed(extent=3), "the data does not fit the shape"),
    (changed(extent=-2), "the data does not fit the shape"),
    (short, "the data does not fit the shape"),
]


@pytest.mark.parametrize(("change", "message"), METADATA, ids=range(len(METADATA)))
def test_metadata_that_is_no_graph_of_constants(change: Callable[[Any], Any], message: str) -> None:
    text = relax_metadata([constant([1.0, 2.0])])
    graph = json.loads(text[text.index('"""') + 3 : text.rindex('"""')].replace('\\"', '"'))
    assert len(read_relax_metadata(json.dumps(graph))) == 1
    change(graph)
    with pytest.raises(ValueError, match=f"metadata: not a graph of constants .*{message}"):
        read_relax_metadata(json.dumps(graph))


def test_operands_may_be_python_numbers() -> None:
    x = Var("x", prim_type("int32"))
    made: list[tuple[Any, str]] = [
        (E.Add(x, 2), "x + 2"), (E.LT(1, x), "1 < x"), (E.Not(True), "not T.bool(True)"),
        (E.Cast("int8", 1), "T.Cast('int8', 1)"),
        (E.Select(True, x, 2), "T.Select(T.bool(True), x, 2)"), (E.Ramp(0, 1, const(4)), "T.Ramp(0, 1, 4)"),
        (E.Ramp(N, 1, 4), "T.Ramp(n, T.int64(1), 4)"), (E.Broadcast(1.5, 4), "T.Broadcast(T.float32(1.5), 4)"),
        (E.Shuffle([1.0, 2.0], [1, np.int64(0)]), "T.Shuffle([T.float32(1.0), T.float32(2.0)], [1, 0])"),
        (E.Let(x, 1, x), "T.Let(x, where={x: 1})"),
    ]  # fmt: skip
    for expr, text in made:
        assert str(expr).splitlines()[-1].replace('"', "'") == text
        assert all(isinstance(part, E.Expr) for part in children(expr) if part is not None)


def test_deep_shuffles_take_no_longer_for_each_level() -> None:
    """Types are asked for at every level, so a node keeps its own."""
    value: E.Expr = E.Ramp(0, 1, 4)
    for n in range(2000):
        value = E.Shuffle([value, value] if n % 2 else [value], [n % 4, 1, 2, 3])
    assert value.ty == prim_type("int32x4")
