"""Operators look and behave to Python as Relax's: signatures, attributes, types where sizes are not related, refusals,
and LegalizeOps' options. Comparisons with the oracle are in ``tests/oracle/operator_*.py``."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import supple
from supple import relax
from supple.base.errors import ArgumentError, ExecutionError, RegistryError, TypeCheckError
from supple.build.block_builder import BlockBuilder
from supple.interp.graph import Interpreter
from supple.ir.expr import Call, Var
from supple.ir.module import IRModule
from supple.ir.op import OPS
from supple.relax.transform import LegalizeOps
from supple.script import from_source
from supple.script import relax as R

HEADER = "from supple.script import ir as I, relax as R, tirx as T\n@I.ir_module\nclass M:\n    @R.function\n"
XY = 'x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")'


def module(params: str, *lines: str) -> IRModule:
    made = from_source(HEADER + f"    def main({params}):\n" + "".join(f"        {line}\n" for line in lines))
    assert isinstance(made, IRModule)
    return made


def names(mod: IRModule) -> list[str]:
    return sorted(v.name_hint for v in mod.functions)


def operators(mod: IRModule) -> list[str]:
    """What the calls of main call, in order."""
    values = [b.value for block in mod["main"].body.blocks for b in block.bindings]  # type: ignore[union-attr]
    return [v.op.short_name for v in values if isinstance(v, Call)]  # type: ignore[attr-defined]


# ---------------------------------------------------------------------------------------------------- faces to Python


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (R.nn.softmax, "(data, axis=-1)"),
        (R.nn.relu, "(data)"),
        (R.eye, "(n, m=None, k=0, dtype='float32')"),
        (R.median, "(x, axis=None, keepdims=False)"),
        (R.print, "(*values, format='')"),
        (R.nn.attention, "(query, key, value, bias=None, scale=None, causal_mask=None, window_size=None)"),
        (relax.op.call_py_func, "(func_name, args, out_ty)"),
    ],
)
def test_signatures_are_python_signatures(function: Any, text: str) -> None:
    found = inspect.signature(function).replace(return_annotation=inspect.Signature.empty)
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()]
    assert str(found.replace(parameters=bare)) == text


def test_every_operator_has_a_signature() -> None:
    for name, op in OPS.items():
        if name.startswith("relax."):
            assert isinstance(inspect.signature(op), inspect.Signature)  # type: ignore[arg-type]
            assert op.__name__ == name.rpartition(".")[2]


def test_attributes_are_read_by_kind() -> None:
    x = Var("x", R.Tensor((1, 3, 8, 8), "float32"))
    attrs = R.nn.max_pool2d(x, padding=1).attrs
    assert attrs.get_int_tuple("padding") == (1, 1, 1, 1) and attrs.get_str("layout") == "NCHW"
    assert attrs.get_int("ceil_mode") is False
    with pytest.raises(AttributeError, match="has no attribute 'axis'"):
        attrs.get_int("axis")


def test_functions_beside_the_operators() -> None:
    x, mask = Var("x", R.Tensor((2, 3), "float32")), Var("m", R.Tensor((2, 3), "bool"))
    filled = relax.op.masked_fill(x, mask, relax.const(2.0, "float32"))
    assert str(filled) == 'R.where(m, R.full_like(x, R.const(2.0, "float32"), dtype="float32"), x)'
    assert relax.op.roi_align is R.vision.roi_align
    asserted = relax.op.assert_op(relax.const(True), [x], "x is {}")
    assert asserted.attrs["format"] == "x is {}" and len(asserted.args) == 2
    resized = BlockBuilder().normalize(R.image.resize2d(Var("i", R.Tensor((1, 1, 4, 4), "float32")), (2, 2), roi=None))
    assert isinstance(resized, Call) and resized.attrs["roi"] == (0.0,) * 4


def test_operands_that_do_not_fit_are_every_kind_of_error() -> None:
    x = Var("x", R.Tensor((2, 3), "float32"))
    for kind in (TypeError, ValueError, supple.error.SuppleError, ArgumentError):
        with pytest.raises(kind, match="parameter dtype: unknown dtype 'bad'"):
            R.astype(x, "bad")


@pytest.mark.parametrize(
    "make",
    [
        lambda: R.hamming_window(8, "bad", 0.54, 0.46, dtype="float32"),
        lambda: R.eye("bad"),
        lambda: R.tril(Var("x", R.Tensor((2, 3), "float32")), "bad"),
        lambda: R.full([2], "bad"),
        lambda: R.strided_slice(Var("x", R.Tensor((2, 3), "float32")), [0], ["bad"], [1]),
        lambda: R.clip(Var("x", R.Tensor((2, 3), "float32")), Var("y", R.Tensor((), "float32")), 1),
    ],
)
def test_what_is_no_number_is_refused(make: Any) -> None:
    with pytest.raises(ArgumentError, match="expected"):
        make()


# ------------------------------------------------------------------------------------------- sizes that nothing relates


UNRELATED = {
    "concat": ('x: R.Tensor(("n", 2), "float32"), y: R.Tensor(("m", 2), "float32")', "R.concat((x, y), axis=1)",
               lambda x, y: np.concatenate((x, y), 1)),
    "stack": ('x: R.Tensor(("n", 2), "float32"), y: R.Tensor(("m", 2), "float32")', "R.stack((x, y))",
              lambda x, y: np.stack((x, y))),
    "rms_norm": ('x: R.Tensor(("n", 2), "float32"), y: R.Tensor(("m",), "float32")',
                 "R.nn.rms_norm(R.permute_dims(x), y, axes=[-1])",
                 lambda x, y: x.T / np.sqrt(np.mean(x.T * x.T, -1, keepdims=True) + 1e-5) * y),
}  # fmt: skip


@pytest.mark.parametrize("name", UNRELATED)
def test_where_sizes_are_not_related_the_type_says_the_rank(name: str) -> None:
    params, call, meaning = UNRELATED[name]
    mod = module(params, f"z = {call}", "return z")
    result = mod["main"].ret_ty  # type: ignore[union-attr]
    assert result.shape is None and result.ndim >= 2 and result.dtype == "float32"  # type: ignore[union-attr]
    x = np.arange(6, dtype="float32").reshape(3, 2)
    y = x + 1 if name != "rms_norm" else np.arange(1, 4, dtype="float32")
    vm = relax.VirtualMachine(supple.compile(mod, results="numpy"), supple.cpu())
    for run in (lambda *a: Interpreter(mod).run("main", *a), vm["main"]):
        np.testing.assert_allclose(np.asarray(run(x, y)), meaning(x, y), rtol=1e-5)
        with pytest.raises((ExecutionError, ArgumentError)):
            run(x, y[:2])


def test_ranks_that_follow() -> None:
    build = BlockBuilder()

    def ty(call: Call) -> str:
        return str(build.normalize(call).ty)  # type: ignore[attr-defined]

    u = Var("u", R.Tensor("float32", ndim=3))
    i = Var("i", R.Tensor((4, 2), "int64"))
    assert ty(R.gather_nd(u, i)) == 'R.Tensor(dtype="float32", ndim=2)'
    assert ty(R.argmax(u)) == 'R.Tensor((), dtype="int64")'
    assert ty(R.split(i, 1)) == 'R.Tensor((4, 2), dtype="int64")'


def test_weights_of_norms_have_the_inputs_dtype() -> None:
    x, w = Var("x", R.Tensor((2, 3), "float32")), Var("w", R.Tensor((3,), "float16"))
    for call in (R.nn.layer_norm(x, w, w, axes=-1), R.nn.rms_norm(x, w), R.nn.batch_norm(x, w, w, w, w, axis=1)):
        with pytest.raises(TypeCheckError, match="different dtypes"):
            BlockBuilder().normalize(call)


# ----------------------------------------------------------------------------------------------- options of LegalizeOps


def test_operators_to_skip_stay() -> None:
    mod = module(XY, "z = R.add(x, y)", "r = R.multiply(y, z)", "return r")
    assert operators(LegalizeOps(skip_ops=["relax.add"])(mod)) == ["add", "call_tir"]
    assert operators(LegalizeOps({"relax.add": lambda bb, call: call.args[0]}, ["relax.add"])(mod)) == [
        "add",
        "call_tir",
    ]
    with pytest.raises(RegistryError, match="did you mean"):
        LegalizeOps(skip_ops=["relax.ad"])(mod)
    with pytest.raises(RegistryError):
        LegalizeOps({"relax.ad": lambda bb, call: call})(mod)


def _emits(bb: BlockBuilder, call: Call) -> Any:
    return R.multiply(bb.emit(R.exp(call.args[0])), call.args[1])


def _nests(bb: BlockBuilder, call: Call) -> Any:
    return R.exp(R.subtract(*call.args))


RULES = {
    "emits": (_emits, ["main", "multiply", "tir_exp"], lambda x, y: np.exp(x) * y),
    "nests": (_nests, ["main", "multiply", "subtract", "tir_exp"], lambda x, y: np.exp(x - y)),
    "an operand": (lambda bb, call: call.args[0], ["main", "multiply"], lambda x, y: x),
    "a tensor expression": (lambda bb, call: bb.emit_te(supple.topi.subtract, *call.args),
                            ["main", "multiply", "subtract"], lambda x, y: x - y),
    "the call itself": (lambda bb, call: call, ["main", "multiply"], lambda x, y: x + y),
}  # fmt: skip


@pytest.mark.parametrize("dataflow", [False, True])
@pytest.mark.parametrize("name", RULES)
def test_rules_of_the_user_may_emit(name: str, dataflow: bool) -> None:
    rule, functions, meaning = RULES[name]
    lines = ["z = R.add(x, y)", "r = R.multiply(y, z)"]
    if dataflow:
        lines = ["with R.dataflow():", *(f"    {line}" for line in (*lines, "R.output(r)"))]
    legal = LegalizeOps({"relax.add": rule})(module(XY, *lines, "return r"))
    assert names(legal) == functions
    x, y = np.float32([[1, 2, 3], [4, 5, 6]]) / 4, np.float32([[6, 5, 4], [3, 2, 1]])
    np.testing.assert_allclose(np.asarray(Interpreter(legal).run("main", x, y)), y * meaning(x, y), rtol=1e-6)


def test_several_results_of_destination_passing_are_declared_as_one_tuple() -> None:
    """As Relax keeps them; the lists of forms that return values stay lists."""
    ty = R.Tensor((2,), "float32")
    x = Var("x", ty)
    split = BlockBuilder()
    with split.function("main", [x]):
        split.emit_func_output(split.emit_te(supple.topi.split, x, 2))
    legal = split.get()["main"].body.blocks[0].bindings[0].value  # type: ignore[union-attr]
    made = (
        legal,
        R.call_dps_packed("f", (x,), [ty, ty]),
        R.call_py_func("f", (x,), out_ty=[ty, ty]),
    )
    assert [[type(t).__name__ for t in call.ty_args] for call in made] == [["TupleType"]] * len(made)
    assert len(R.call_pure_packed("f", x, ty_args=[ty, ty]).ty_args) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"customize_legalize_map": {relax.op.add: _emits}}, "operators are given by their full names"),
        ({"skip_ops": [relax.op.add]}, "operators are given by their full names"),
        ({"customize_legalize_map": {"relax.add": 3}}, "the rule of relax.add is a function"),
    ],
)
def test_options_of_legalization_that_have_no_meaning_are_refused(options: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        LegalizeOps(**options)(module(XY, "z = R.add(x, y)", "return z"))


def test_numbers_of_one_hot_have_their_own_dtype() -> None:
    mod = module('i: R.Tensor((2,), "int64")', "z = R.one_hot(i, R.prim_value(2.5), R.prim_value(-1.0), 3)", "return z")
    assert mod["main"].ret_ty.dtype == "float64"  # type: ignore[union-attr]
    found = Interpreter(mod).run("main", np.array([2, 0], "int64"))
    np.testing.assert_array_equal(found, [[-1, -1, 2.5], [2.5, -1, -1]])


def test_what_has_no_definition_is_named() -> None:
    mod = module(
        'x: R.Tensor((2,), "float32")',
        "z = R.call_pure_packed('f', x, ty_args=R.Tensor((2,), 'float32'))",
        "a = R.null_value()",
        "return z",
    )
    with pytest.warns(UserWarning, match=r"relax.null_value has no compute definition") as seen:
        LegalizeOps(enable_warning=True)(mod)
    assert len(seen) == 1


def test_calls_of_unknown_rank_stay() -> None:
    mod = module('x: R.Tensor(("n", 1, 3), "float32")', "y = R.exp(x)", "z = R.squeeze(y)", "return z")
    assert operators(LegalizeOps()(mod)) == ["call_tir", "squeeze"]
    with pytest.raises(supple.error.NotSupportedError, match="needs to know its result's shape"):
        supple.compile(mod)


def test_loop_functions_have_relaxs_names() -> None:
    lines = (
        "a = R.permute_dims(x)",
        "b = R.concat((a, a), axis=1)",
        "c = R.astype(b, 'int32')",
        "d = R.nn.pad(c, [1, 1, 1, 1], pad_mode='reflect')",
        "e = R.abs(d)",
        "f = R.zeros_like(e)",
        "g = R.layout_transform(x, lambda i, j: (i // 2, j, i % 2))",
        "h = R.layout_transform(x, lambda i, j: (i, j // 2, j % 2))",
        "return f",
    )
    mod = module('x: R.Tensor((2, 3), "float32")', *lines)
    layouts = ["te_layout_transform", "te_layout_transform_with_pad"]
    plain = ["cast", "concatenate", "main", "reflect_pad", *layouts, "tir_abs", "transpose", "zeros"]
    assert names(LegalizeOps()(mod)) == plain


def test_loop_functions_take_what_relaxs_take() -> None:
    """Tensors of which only the type counts are no operands; `bucketize` gives its boundaries first."""
    params = 'x: R.Tensor(("n", "m"), "float32"), v: R.Tensor((), "float32"), e: R.Tensor(("m",), "float32")'
    mod = module(
        params, "a = R.zeros_like(x)", "b = R.ones_like(e, 'int32')", "c = R.full_like(x, v)", "d = R.full_like(e, v)",
        "f = R.eye_like(x, 1)", "g = R.collapse_sum_like(x, e)", "h = R.bucketize(x, e)", "i = R.full_like(x, v)",
        "return (a, b, c, d, f, g, h, i)",
    )  # fmt: skip
    legal = LegalizeOps()(mod)
    calls = [b.value for block in legal["main"].body.blocks for b in block.bindings]  # type: ignore[union-attr]
    given = [str(call.args[1]) for call in calls if isinstance(call, Call)]
    assert given == ["()", "()", "(v,)", "(v,)", "()", "(x,)", "(e, x)", "(v,)"]
    args = np.arange(6, dtype="float32").reshape(2, 3), np.float32(2), np.array([1, 3, 4], "float32")
    wanted = Interpreter(mod).run("main", *args)
    for found in (Interpreter(legal).run("main", *args), supple.compile(mod)["main"](*args)):
        for one, other in zip(wanted, found, strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
