"""Every rule of well-formedness is needed: for each, a program that it refuses and that all others accept.

So deleting any single rule makes a test here fail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import supple
from supple import relax
from supple.base.errors import DiagnosticError
from supple.ir import loop as L
from supple.ir.expr import BufferLoad, Call, DataflowVar, Range, Var, const, int64
from supple.ir.graph import (
    BindingBlock,
    DataflowBlock,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    SeqExpr,
    ShapeExpr,
    Tuple,
    VarBinding,
    constant,
)
from supple.ir.loop import Buffer, BufferStore, For, ForKind, IfThenElse, IterVar, PrimFunc, SBlock, SBlockRealize
from supple.ir.module import IRModule
from supple.ir.op import Op
from supple.ir.structural import structural_equal
from supple.ir.types import TensorType, prim_type
from supple.ops import calls  # declares the operators
from supple.script import from_source
from supple.verify import loops, well_formed

F32 = TensorType(ShapeExpr((int64(4),)), "float32")
ADD = Op.get("relax.add")


def call(op: Any, *args: Any, ty: Any = F32, **rest: Any) -> Call:
    return Call(op, args, ty=ty, **rest)


def function(bindings: list[Any], result: Any, *, params: Any = None, ret: Any = F32, pure: bool = True) -> IRModule:
    """A module with ``main(x)``; ``bindings`` are blocks, or bindings of one plain block."""
    blocks = bindings if bindings and isinstance(bindings[0], BindingBlock) else [BindingBlock(tuple(bindings))]
    body = SeqExpr(tuple(blocks) if bindings else (), result)
    return IRModule({"main": Function(params or (X,), body, ret, pure, {"global_symbol": "main"})})


X = Var("x", F32)


def used_before_it_is_bound() -> IRModule:
    y = Var("y", F32)
    return function([VarBinding(Var("z", F32), call(ADD, y, X))], X)


def branch_in_dataflow() -> IRModule:
    lv = DataflowVar("lv", F32)
    choice = If(constant(np.array(True)), SeqExpr((), X), SeqExpr((), X), ty=F32)
    return function([DataflowBlock((VarBinding(lv, choice), VarBinding(y := Var("y", F32), lv)))], y)


def branch_on_a_number() -> IRModule:
    y = Var("y", F32)
    return function([VarBinding(y, If(constant(np.float32(1)), SeqExpr((), X), SeqExpr((), X), ty=F32))], y)


def undefined_symbol() -> IRModule:
    n = Var("n", prim_type("int64"))
    made = TensorType(ShapeExpr((n,)), "float32")
    y = Var("y", made)
    zeros = Op.get("relax.zeros")
    value = Call(zeros, (ShapeExpr((n,)),), {"dtype": "float32"}, ty=made)
    return function([VarBinding(y, value)], X)


def impure_in_dataflow() -> IRModule:
    y = Var("y", F32)
    value = call(ExternFunc("f"), X, ty_args=(F32,))
    return function([DataflowBlock((VarBinding(y, value),))], y, pure=False)


def impure_in_pure() -> IRModule:
    y = Var("y", F32)
    return function([VarBinding(y, call(ExternFunc("f"), X, ty_args=(F32,)))], y)


def nested_call() -> IRModule:
    y = Var("y", F32)
    return function([VarBinding(y, call(ADD, call(ADD, X, X), X))], y)


def missing_function() -> IRModule:
    y = Var("y", F32)
    return function([VarBinding(y, call(calls.CALL_TIR, GlobalVar("k"), Tuple((X,)), ty_args=(F32,)))], y)


def loop_function(*params: Var) -> PrimFunc:
    i = Var("i", prim_type("int64"))
    body = For(i, int64(0), int64(4), ForKind.SERIAL, BufferStore(params[-1], const(0.0, "float32"), (i,)))
    return PrimFunc(params, body)


def call_tir_of_too_few() -> IRModule:
    y = Var("y", F32)
    mod = function([VarBinding(y, call(calls.CALL_TIR, GlobalVar("k"), Tuple((X,)), ty_args=(F32,)))], y)
    mod["k"] = loop_function(*(Buffer(name, (int64(4),), "float32") for name in "ABC"))
    return mod


def wrong_type_of_a_variable() -> IRModule:
    y = Var("y", TensorType(ShapeExpr((int64(5),)), "float32"))
    return function([VarBinding(y, call(ADD, X, X))], X)


GRAPH: dict[Callable[..., Any], Callable[[], IRModule]] = {
    well_formed.variables_are_defined_once: used_before_it_is_bound,
    well_formed.dataflow_variables_stay_in_dataflow: branch_in_dataflow,
    well_formed.symbols_are_defined: undefined_symbol,
    well_formed.dataflow_blocks_are_pure: impure_in_dataflow,
    well_formed.pure_functions_make_pure_calls: impure_in_pure,
    well_formed.values_are_in_normal_form: nested_call,
    well_formed.conditions_are_scalar_bools: branch_on_a_number,
    well_formed.global_functions_exist: missing_function,
    well_formed.call_tir_fits_the_loop_function: call_tir_of_too_few,
    well_formed.bound_types_hold: wrong_type_of_a_variable,
}

A = Buffer("A", (int64(4),), "float32")
B = Buffer("B", (int64(4),), "float32")
I = Var("i", prim_type("int64"))


def loop(body: Any, var: Var = I) -> For:
    return For(var, int64(0), int64(4), ForKind.SERIAL, body)


def tensor_parameter() -> PrimFunc:
    return PrimFunc((A, Var("h", TensorType(None, "float32"))), BufferStore(A, const(0.0, "float32"), (int64(0),)))


def undefined_index() -> PrimFunc:
    return PrimFunc((A,), BufferStore(A, const(0.0, "float32"), (Var("j", prim_type("int64")),)))


def one_variable_of_two_loops() -> PrimFunc:
    store = BufferStore(A, const(0.0, "float32"), (I,))
    return PrimFunc((A,), L.SeqStmt((loop(store), loop(BufferStore(A, const(1.0, "float32"), (I,))))))


def store_of_another_dtype() -> PrimFunc:
    return PrimFunc((A,), loop(BufferStore(A, const(0.0, "float64"), (I,))))


def float_index() -> PrimFunc:
    place = BufferLoad(B, (I,))
    return PrimFunc((A, B), loop(BufferStore(A, const(0.0, "float32"), (place,))))


def condition_that_is_no_bool() -> PrimFunc:
    return PrimFunc((A,), loop(IfThenElse(I, BufferStore(A, const(0.0, "float32"), (I,)))))


def block_without_its_value() -> PrimFunc:
    v = IterVar(Range(int64(0), int64(4)), Var("v", prim_type("int64")))
    block = SBlock((v,), (), (), "b", BufferStore(A, const(0.0, "float32"), (v.var,)))
    return PrimFunc((A,), loop(SBlockRealize((), const(True), block)))


LOOPS: dict[Callable[..., Any], Callable[[], PrimFunc]] = {
    loops.scalars_are_of_known_kinds: tensor_parameter,
    loops.loop_variables_are_defined: undefined_index,
    loops.variables_are_bound_once: one_variable_of_two_loops,
    loops.stores_have_the_buffer_s_dtype: store_of_another_dtype,
    loops.indices_are_integers: float_index,
    loops.conditions_are_bools: condition_that_is_no_bool,
    loops.blocks_bind_their_variables: block_without_its_value,
}


def name_of(value: Any) -> str:
    return getattr(value, "__name__", "")


def test_every_rule_has_a_program() -> None:
    assert set(GRAPH) == set(well_formed.RULES) and set(LOOPS) == set(loops.LOOP_RULES)


@pytest.mark.parametrize("rule", well_formed.RULES, ids=name_of)
def test_a_graph_rule_is_the_only_one_to_refuse_its_program(rule: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mod = GRAPH[rule]()
    with pytest.raises(DiagnosticError):
        well_formed.check_module(mod)
    monkeypatch.setattr(well_formed, "RULES", tuple(r for r in well_formed.RULES if r is not rule))
    well_formed.check_module(mod)


@pytest.mark.parametrize("rule", loops.LOOP_RULES, ids=name_of)
def test_a_loop_rule_is_the_only_one_to_refuse_its_program(rule: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mod = IRModule({"k": LOOPS[rule]()})
    with pytest.raises(DiagnosticError):
        well_formed.check_module(mod)
    monkeypatch.setattr(well_formed, "LOOP_RULES", tuple(r for r in loops.LOOP_RULES if r is not rule))
    well_formed.check_module(mod)


def test_a_dataflow_variable_outside_its_block_is_named_with_a_hint() -> None:
    lv = DataflowVar("lv", F32)
    mod = function([DataflowBlock((VarBinding(lv, call(ADD, X, X)), VarBinding(Var("y", F32), lv)))], lv)
    with pytest.raises(DiagnosticError, match=r"the dataflow variable lv is used outside its block") as caught:
        well_formed.check_module(mod)
    assert caught.value.hint is not None and "R.output(lv)" in caught.value.hint


def test_a_variable_bound_twice_is_refused() -> None:
    y = Var("y", F32)
    mod = function([VarBinding(y, call(ADD, X, X)), VarBinding(y, call(ADD, X, X))], y)
    with pytest.raises(DiagnosticError, match="y is bound twice"):
        well_formed.check_module(mod)
    assert not well_formed.well_formed(mod)


def test_a_return_type_that_does_not_hold_is_refused() -> None:
    mod = function([], X, ret=TensorType(ShapeExpr((int64(5),)), "float32"))
    with pytest.raises(DiagnosticError, match="declared return type"):
        well_formed.check_module(mod)


def test_depth_and_length_are_no_limit() -> None:
    bindings = []
    last = X
    for k in range(10_000):
        y = Var(f"y{k}", F32)
        bindings.append(VarBinding(y, call(ADD, last, X)))
        last = y
    well_formed.check_module(function(bindings, last))
    e: Any = I
    for _ in range(5_000):
        e = e + 1
    func = PrimFunc((A,), loop(BufferStore(A, const(0.0, "float32"), (e,))))
    well_formed.check_module(IRModule({"k": func}))


# ------------------------------------------------------------------------------------- modules that are built by hand

F4 = relax.TensorType((4,), "float32")


def by_hand(params: Any, blocks: Any, result: Any, ret: Any = F4, name: str = "main", **attrs: Any) -> IRModule:
    function = relax.Function(params, relax.SeqExpr(blocks, result), ret, True, attrs)
    return IRModule({name: function})


def added(a: Any, b: Any) -> Any:
    return relax.BlockBuilder().normalize(relax.op.add(a, b))


def test_names_of_functions_agree() -> None:
    x = relax.Var("x", F4)
    relax.analysis.well_formed(by_hand([x], [], x))
    relax.analysis.well_formed(by_hand([x], [], x, global_symbol="main"))
    with pytest.raises(DiagnosticError, match="another global_symbol"):
        relax.analysis.well_formed(by_hand([x], [], x, global_symbol="other"))


def test_functions_have_variables_of_their_own() -> None:
    n = supple.tirx.Var("n", "int64")
    x, y, z = relax.Var("x", F4), relax.Var("y", relax.TensorType((n,))), relax.Var("z", relax.TensorType((n,)))
    for first, second, shared in ((x, x, "x"), (y, z, "n")):
        mod = by_hand([first], [], first, first.ty)
        mod.update(by_hand([second], [], second, second.ty, name="other"))
        with pytest.raises(DiagnosticError, match=f"{shared} belongs to two functions, main and other"):
            relax.analysis.well_formed(mod)
        assert not relax.analysis.check_well_formed(mod)
        supple.lower(mod)  # which does not mind


def test_dataflow_parameters_and_results_in_normal_form() -> None:
    x, a = relax.Var("x", F4), relax.DataflowVar("a", F4)
    pair = relax.TupleType([F4, F4])
    for mod, message in (
        (by_hand([a], [], a), "a is a dataflow variable, but a parameter"),
        (by_hand([x], [], added(x, x)), "a result is not in normal form"),
        (by_hand([x], [], relax.TupleGetItem(relax.Tuple([x, x]), 0)), "a result is not in normal form"),
        (by_hand([x], [], relax.Tuple([added(x, x), x]), pair), "a nested call is not bound"),
    ):
        with pytest.raises(DiagnosticError, match=message):
            relax.analysis.well_formed(mod)
    relax.analysis.well_formed(by_hand([x], [], relax.Tuple([x, relax.Tuple([x])]), None))


def test_types_of_external_functions() -> None:
    x = relax.Var("x", F4)
    plain, typed = relax.ExternFunc("e"), relax.ExternFunc("e", relax.FuncType([F4], F4))
    assert (str(plain.ty), plain.ty.purity, typed.ty.purity) == ("R.Callable()", False, True)
    with pytest.raises(TypeError, match="expected a function's type"):
        relax.ExternFunc("e", F4)
    bb = relax.BlockBuilder()
    assert str(bb.normalize(relax.Call(plain, [x])).ty) == "R.Any"
    assert structural_equal(bb.normalize(relax.Call(typed, [x])).ty, F4)
    with pytest.raises(DiagnosticError, match="e takes 1 arguments, got 2"):
        bb.normalize(relax.Call(typed, [x, x]))
    call = "@R.function\ndef f(x: R.Tensor((4,), 'float32'), g: {}):\n    y = g(x)\n    return y\n"
    from_source(call.format("R.Callable(purity=True)"))
    from_source(call.format("R.Callable((R.Tensor((4,), 'float32'),), R.Any)"))
    for opaque in ("R.Callable", "R.Callable()", "R.Callable(ret=R.Any)"):
        with pytest.raises(DiagnosticError, match="marked pure"):
            from_source(call.format(opaque))
        from_source(call.format(opaque).replace("@R.function", "@R.function(pure=False)"))
    bound = (
        "@R.function\ndef f(x: R.Tensor((4,), 'float32')):\n    g = R.ExternFunc('e', R.Callable((R.Any,), R.Any))\n"
    )
    made = from_source(f"{bound}    return x\n")
    for style in ("supple", "relax"):
        again = from_source(made.script(style=style))
        assert structural_equal(again, made)
        assert again.body.blocks[0].bindings[0].value.ty.params is not None


@pytest.mark.parametrize(
    ("ty", "fits"),
    [
        (relax.TensorType((), "bool"), True),
        (relax.TensorType(None, "bool"), True),
        (relax.TensorType((), None), True),
        (relax.AnyType(), True),
        (relax.PrimType("bool"), True),
        (relax.PrimType("int64"), False),
        (relax.TensorType((), "float32"), False),
        (relax.TensorType((1,), "bool"), False),
        (relax.TupleType([]), False),
        (relax.ShapeType([2]), False),
    ],
)
def test_conditions_of_branches(ty: Any, fits: bool) -> None:
    c, x, g = relax.Var("c", ty), relax.Var("x", F4), relax.Var("g", F4)
    branch = relax.If(c, relax.SeqExpr([], x), relax.SeqExpr([], x))
    mod = by_hand([c, x], [relax.BindingBlock([relax.VarBinding(g, branch)])], g, global_symbol="main")
    if fits:
        supple.lower(mod)
    else:
        with pytest.raises(DiagnosticError, match="the condition of an if must be a scalar bool"):
            supple.compile(mod)
