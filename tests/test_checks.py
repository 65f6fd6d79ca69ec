"""Checks that no other test deletes: each refusal below is made by one statement of the verifier or the builder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from supple import relax, te
from supple.base.errors import DiagnosticError, InternalError, TypeCheckError
from supple.build.functions import bind_params, bind_symbolic_vars, get_shape_of, inline_functions, make_shape
from supple.build.infer import infer
from supple.ir.expr import Broadcast, Call, DataflowVar, Range, TupleGetItem, Var, const, int64
from supple.ir.graph import BindingBlock, Function, GlobalVar, SeqExpr, ShapeExpr, Tuple, VarBinding
from supple.ir.loop import (
    Buffer,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IterType,
    IterVar,
    PrimFunc,
    SBlock,
    SBlockRealize,
)
from supple.ir.module import IRModule
from supple.ir.op import Op
from supple.ir.types import AnyType, FuncType, TensorType, TupleType, prim_type
from supple.ops.calls import CALL_TIR
from supple.script import from_source
from supple.verify.well_formed import check_module

F32 = TensorType(ShapeExpr((int64(4),)), "float32")
ADD = Op.get("relax.add")
X = Var("x", F32)


def graph(*bindings: VarBinding, result: Any = X, others: dict[str, Any] | None = None) -> IRModule:
    body = SeqExpr((BindingBlock(tuple(bindings)),), result)
    return IRModule({**(others or {}), "main": Function((X,), body, F32, True, {"global_symbol": "main"})})


def loops(body: Any, *params: Any) -> IRModule:
    return IRModule({"f": PrimFunc(params, body, None, {"global_symbol": "f"})})


def refused(mod: IRModule, rule: str, message: str) -> None:
    with pytest.raises(DiagnosticError, match=message) as caught:
        check_module(mod)
    assert caught.value.rule == rule


# ---------------------------------------------------------------------------------------------------------- verifier


def test_a_loop_s_extent_uses_an_unknown_variable() -> None:
    n, i = Var("n", prim_type("int32")), Var("i", prim_type("int32"))
    body = For(i, const(0), n, ForKind.SERIAL, Evaluate(const(0)))
    refused(loops(body), "undefined", "the variable n is not defined")


def test_a_vector_is_stored_at_one_place() -> None:
    buffer = Buffer("A", (int64(4),), "float32")
    store = BufferStore(buffer, Broadcast(const(0.0, "float32"), 2), (int64(0),))
    refused(loops(store, buffer), "store_dtype", "the value stored in A has another dtype")


def test_a_block_binds_a_variable_twice() -> None:
    v = Var("v", prim_type("int32"))
    twice = (IterVar(Range(const(0), const(4)), v, IterType.DATA_PAR),) * 2
    block = SBlock(twice, (), (), "b", Evaluate(v))
    refused(loops(SBlockRealize((const(0), const(0)), const(True), block)), "block_bindings", "binds a variable twice")


def test_a_dataflow_variable_is_bound_in_a_plain_block() -> None:
    v = DataflowVar("v", F32)
    refused(graph(VarBinding(v, Call(ADD, (X, X), ty=F32)), result=v), "dataflow", "outside a dataflow block")


def test_an_operand_is_a_field_of_a_tuple() -> None:
    pair = Tuple((X, X), TupleType((F32, F32)))
    t, v = Var("t", pair.ty), Var("v", F32)
    nested = Call(ADD, (TupleGetItem(t, 0, F32), X), ty=F32)
    refused(graph(VarBinding(t, pair), VarBinding(v, nested)), "anf", "operand is not in normal form")


def test_call_tir_of_a_graph_function() -> None:
    other = Function((X,), SeqExpr((), X), F32, True, {"global_symbol": "g"})
    call = Call(CALL_TIR, (GlobalVar("g", other.ty), Tuple((X,), TupleType((F32,)))), {}, (F32,), ty=F32)
    refused(graph(VarBinding(Var("v", F32), call), others={"g": other}), "call_tir", "calls loop functions only")


LOOP = """
from supple.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        for i in range(4):
            BODY

    @R.function
    def main(x: R.Tensor((SIZE,), "float32")):
        y = R.call_tir(Module.f, (x,), out_ty=R.Tensor((4,), "float32"))
        return y
"""


def test_call_tir_of_another_shape_and_of_a_function_that_writes_nothing() -> None:
    with pytest.raises(TypeCheckError, match=r"argument 0 \(a\) does not fit"):
        from_source(LOOP.replace("BODY", "b[i] = a[i]").replace("SIZE", "5"))
    with pytest.raises(DiagnosticError, match="no statement of f writes into b"):
        from_source(LOOP.replace("BODY", "T.evaluate(a[i])").replace("SIZE", "4"))


@pytest.mark.parametrize(
    ("param", "argument", "expected"),
    [
        ("n: T.float32", 'R.Tensor((4,), "float32")', "a float32 scalar"),
        ("n: T.float32", 'R.Prim("int64")', "a float32 scalar"),
        ('a: T.Buffer((4,), "float32")', "R.Shape([4])", "a tensor of float32"),
        ('a: T.Buffer((4,), "float32")', 'R.Tensor((4,), "float64")', 'R.Tensor((4,), dtype="float32")'),
        ('a: T.Buffer((4,), "float32")', 'R.Tensor(dtype="float32", ndim=2)', 'R.Tensor((4,), dtype="float32")'),
    ],
)
def test_call_tir_of_another_kind(param: str, argument: str, expected: str) -> None:
    text = LOOP.replace('a: T.Buffer((4,), "float32")', param).replace("BODY", "b[i] = T.float32(0)")
    with pytest.raises(TypeCheckError, match=r"argument 0 .* does not fit") as caught:
        from_source(text.replace('R.Tensor((SIZE,), "float32")', argument))
    assert caught.value.expected == expected and caught.value.rule == "call_tir"
    assert caught.value.span is not None and caught.value.span.line == 14


# -------------------------------------------------------------------------------------------------- builder and types


def inside(body: Callable[[relax.BlockBuilder], Any]) -> None:
    builder = relax.BlockBuilder()
    with builder.function("main", [X]):
        body(builder)


def in_dataflow(body: Callable[[relax.BlockBuilder], Any]) -> None:
    def run(builder: relax.BlockBuilder) -> None:
        with builder.dataflow():
            body(builder)

    inside(run)


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda: inside(lambda b: b.emit(relax.op.exp(X))), DiagnosticError, "returns nothing"),
        (lambda: inside(lambda b: (b.begin_branch(), b.end_function(X))), InternalError, "still open"),
        (lambda: in_dataflow(lambda b: b.emit_func_output(X)), DiagnosticError, "return inside a dataflow block"),
        (lambda: in_dataflow(lambda b: b.begin_dataflow()), DiagnosticError, "cannot hold another"),
        (lambda: inside(lambda b: b.end_dataflow()), InternalError, "without begin_dataflow"),
        (lambda: inside(lambda b: b.end_branch(X)), InternalError, "without begin_branch"),
        (lambda: inside(lambda b: b.emit_output(X)), DiagnosticError, "emit_output is for dataflow blocks"),
        (lambda: relax.BlockBuilder().emit(relax.op.exp(X)), DiagnosticError, "no function to emit into"),
    ],
)
def test_the_builder_s_order(act: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        act()


def test_a_fraction_beside_integers_whose_dtype_is_known_late() -> None:
    y = Var("y", TensorType(ShapeExpr((int64(4),)), "int32"))
    weak = relax.op.add(relax.op.abs(y), 1.5)  # the dtype of abs(y) is deduced when it is emitted
    with pytest.raises(TypeCheckError, match="would lose its fraction"):
        inside(lambda b: b.emit(weak))


def _calling(callee: Any, *args: Any) -> Any:
    return infer(Call(callee, args))


def _function_var(ret: Any = F32, *params: Any) -> Var:
    return Var("g", FuncType(params, ret))


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda: make_shape(3), ValueError, "expected a list or tuple"),
        (lambda: get_shape_of(Var("t", TupleType(()))), TypeError, "expected a tensor"),
        (lambda: infer(Var("u")), TypeCheckError, "type of u is not known"),
        (lambda: _calling(X, X), TypeCheckError, "is not a function"),
        (lambda: _calling(_function_var(F32, F32)), TypeCheckError, "takes 1 arguments, got 0"),
        (lambda: _calling(_function_var(F32, TupleType(())), X), TypeCheckError, "argument 0 does not fit"),
        (lambda: infer(TupleGetItem(X, 0)), TypeCheckError, "only a tuple has fields"),
        (lambda: infer(TupleGetItem(Var("t", TupleType((F32,))), 1)), TypeCheckError, "no field 1"),
        (lambda: _calling(Op.get("tirx.exp"), X), TypeCheckError, "no type rule"),
    ],
)
def test_types_and_small_constructors(act: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        act()
    assert isinstance(_calling(Var("any", AnyType()), X), AnyType)


def test_whole_functions() -> None:
    n = Var("n", prim_type("int64"))
    p = Var("p", TensorType(ShapeExpr((n,)), "float32"))
    func = Function((p,), SeqExpr((), p), p.ty, True, {"global_symbol": "main"})
    with pytest.raises(ValueError, match="'q' is not one of p"):
        bind_params(func, {Var("q", F32): [1.0]})
    with pytest.raises(ValueError, match="'n' is bound twice"):
        bind_symbolic_vars(func, {n: 3, "n": 4})
    with pytest.raises(TypeError, match="f is not a graph function, but a PrimFunc"):
        inline_functions(func, {"f": PrimFunc((), Evaluate(const(0)))})
    mod = from_source(
        """
from supple.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def f(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = Module.f(x)
        return y

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        y = Module.f(x)
        return y
"""
    )
    with pytest.raises(ValueError, match="f calls itself: f -> f"):
        mod["main"].inline_functions({"f": mod["f"]})


def test_compute_definitions() -> None:
    a = te.placeholder((4, 5), "float32", "a")
    k = te.reduce_axis((0, 5), "k")
    with pytest.raises(TypeError, match="takes 1 indices, but the shape has 2 dimensions"):
        te.compute((4, 5), lambda i: a[i, i])
    with pytest.raises(TypeError, match="takes 2 indices, but the shape has 1 dimensions"):
        te.compute((4,), lambda i, j: a[i, j])
    with pytest.raises(TypeError, match="a reduction must stand at the top"):
        te.compute((4,), lambda i: te.sum(a[i, k], axis=k) + 1.0)
    plain = IterVar(Range(int64(0), int64(5)), Var("j", prim_type("int64")), IterType.DATA_PAR)
    with pytest.raises(TypeError, match=r"made by te\.reduce_axis"):
        te.sum(a[0, plain.var], axis=plain)
    for unknown in (TensorType(None, "float32", 2), TensorType(ShapeExpr((int64(4),)), None)):
        with pytest.raises(TypeError, match="a known shape and dtype"):
            relax.BlockBuilder().call_te(lambda t: t, Var("u", unknown))
