"""Programs as users of Relax's API write them: the builder's names and normal form, compute definitions of several
values, underlined text, mismatches, and the analyses' ideas of variables."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import supple
from supple import relax, te, tirx
from supple.ir.access_path import AccessPath
from supple.ir.structural import assert_structural_equal, find_mismatch, structural_equal
from supple.relax import analysis
from supple.script import from_source
from supple.script import relax as R

op = relax.op
n, m, k = (tirx.Var(name, "int64") for name in "nmk")


def x(*shape: Any, dtype: str = "float32", name: str = "x") -> relax.Var:
    return relax.Var(name, relax.TensorType(shape, dtype))


def test_names_are_given_once() -> None:
    bb, a = relax.BlockBuilder(), x(2)
    with bb.function("f", [a]):
        hints = ("a", "a", "", "b", "a1", "a", "gv2", "", "", "z.w")
        names = [bb.emit(op.exp(a), hint).name for hint in hints]
        assert names == ["a", "a1", "gv", "b", "a11", "a2", "gv2", "gv1", "gv3", "z_w"]
        bb.emit_func_output(a)


def text(bb: relax.BlockBuilder) -> str:
    return str(bb.get().script(style="relax"))


def test_branches_sequences_and_local_functions_are_put_into_normal_form() -> None:
    bb, a, c = relax.BlockBuilder(), x(2), relax.Var("c", relax.TensorType((), "bool"))
    inner, v = x(2, name="p"), x(2, name="v")
    with bb.function("f", [c, a]):
        branch = bb.emit(relax.If(c, op.exp(a), op.exp(op.exp(a))))
        local = bb.emit(relax.Function([inner], op.exp(op.exp(inner)), R.Tensor((2,))), "local")
        block = relax.BindingBlock([relax.VarBinding(v, op.exp(a))])
        whole = bb.emit(relax.SeqExpr([block], op.add(v, op.exp(v))))
        bb.emit_func_output((branch, local(a), whole))
    mod = bb.get()
    assert analysis.check_well_formed(mod)
    written = text(bb)
    assert "R.exp(R.exp" not in written and "v: R.Tensor" in written and "R.seq" not in written
    assert structural_equal(from_source(written), mod)


def test_what_is_in_normal_form_stays_itself() -> None:
    func = from_source("@R.function\ndef f(x: R.Tensor((2,), 'float32')):\n    y = R.exp(x)\n    return y")
    assert relax.BlockBuilder().normalize(func) is func


def test_functions_are_added_once() -> None:
    func = from_source("@R.function\ndef f(x: R.Tensor((2,), 'float32')):\n    return x")
    bb = relax.BlockBuilder()
    first, again, other = (bb.add_func(f, "f") for f in (func, func, func.with_attr("z", 1)))
    assert (first is again, first.name_hint, other.name_hint) == (True, "f", "f1")


def both(left: Any, right: Any) -> Any:
    return tirx.Select(left[1] >= right[1], left[0], right[0]), tirx.Max(left[1], right[1])


def test_reductions_of_the_programs_own() -> None:
    best = te.comm_reducer(both, lambda i, v: (tirx.const(-1, i), tirx.min_value(v)), "best")
    product = te.comm_reducer(lambda a, b: a * b, lambda dtype: tirx.const(1, dtype), "product")

    def argmax(t: Any) -> Any:
        r = te.reduce_axis((0, 8), "r")
        return te.compute((4,), lambda i: best((tirx.Cast("int32", r.var), t[i, r]), axis=r), "best")

    def multiplied(t: Any) -> Any:
        r = te.reduce_axis((0, 8), "r")
        return te.compute((4,), lambda i: product(t[i, r], axis=r), "product")

    bb, a = relax.BlockBuilder(), x(4, 8)
    with bb.function("main", [a]):
        pair = bb.emit_te(argmax, a, primfunc_attrs={"kind": "argmax"})
        bb.emit_func_output((pair[0], pair[1], bb.emit_te(multiplied, a)))
    mod = bb.get()
    assert mod["argmax"].attrs["kind"] == "argmax" and structural_equal(from_source(mod.script()), mod)
    data = np.random.default_rng(0).standard_normal((4, 8), dtype="float32")
    index, value, whole = supple.compile(mod)["main"](data)
    np.testing.assert_array_equal(index, data.argmax(1))
    np.testing.assert_array_equal(value, data.max(1))
    np.testing.assert_allclose(whole, data.prod(1), rtol=1e-5)


def test_formulas_of_several_values_and_statements_of_the_programs_own() -> None:
    a = te.placeholder((4,), "float32", "A")
    one, two = te.compute((4,), lambda i: (a[i] + 1.0, a[i] * 2.0), "B")
    assert (one.name, two.name, one.op is two.op, two.value_index) == ("B_v0", "B_v1", True, 1)

    def body(ins: Any, outs: Any) -> Any:
        i = tirx.Var("i", "int64")
        store = tirx.BufferStore(outs[0], tirx.BufferLoad(ins[0], [i]) * 3.0, [i])
        return tirx.For(i, 0, 4, tirx.ForKind.SERIAL, store)

    three = te.extern((4,), [a], body, "C")
    func = te.create_prim_func([a, one, two, three])
    out = [np.zeros(4, "float32") for _ in range(3)]
    supple.compile(supple.IRModule({"main": func}))["main"](np.arange(4, dtype="float32"), *out)
    np.testing.assert_array_equal(np.array(out), [[1, 2, 3, 4], [0, 2, 4, 6], [0, 3, 6, 9]])
    assert (a + a).name == "T_add" and isinstance(a.op, te.PlaceholderOp) and one.op.input_tensors == [a]
    with pytest.raises(TypeError, match="say dtype"):
        te.extern((4,), [], body)


def test_what_compute_definitions_refuse() -> None:
    bb, a = relax.BlockBuilder(), x(2)
    with pytest.raises(AssertionError, match="returns te tensors"), bb.function("f", [a]):
        bb.emit_te(lambda t: 3, a)
    with pytest.raises(AssertionError, match="known shape"), bb.function("f", [a]):
        bb.emit_te(lambda t: t, relax.Var("y", relax.TensorType(None, "float32", 2)))


FUNC = """
@R.function
def main(x: R.Tensor((4, 8), "float32"), y: R.Tensor((4, 8), "float32")):
    with R.dataflow():
        a = R.add(y, y)
        z = R.sum(a, axis=[0], keepdims=True)
        R.output(z)
    return z
"""
ROOT = AccessPath.root()
BINDING = ROOT.attr("body").attr("blocks").array_item(0).attr("bindings")


def underlined(node: Any, **options: Any) -> list[str]:
    """What is underlined, each line's part."""
    lines = node.script(style="relax", **options).split("\n")
    found = []
    for above, line in pairwise(lines):
        if line.strip() and not line.strip("^ "):
            start = line.index("^")
            found.append(above[start : len(line)])
    return found


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (BINDING.array_item(0).attr("value"), ["R.add(y, y)"]),
        (BINDING.array_item(0).attr("value").attr("args").array_item(1), ["y"]),
        (BINDING.array_item(0).attr("value").attr("op"), ["R.add"]),
        (BINDING.array_item(1).attr("value").attr("attrs").attr("keepdims"), ["True"]),
        (BINDING.array_item(1).attr("var"), ["z"]),
        (ROOT.attr("params").array_item(1).attr("ty").attr("dtype"), ['"float32"']),
        (ROOT.attr("body").attr("body"), ["z"]),
        (ROOT.attr("body").attr("blocks").array_item(0), ["with R.dataflow():", "R.output(z)"]),
    ],
)
def test_paths_are_underlined(path: AccessPath, expected: list[str]) -> None:
    found = underlined(from_source(FUNC), path_to_underline=[path])
    assert (found if len(expected) == 1 else [found[0], found[-1]]) == expected


def test_objects_are_underlined_and_annotated() -> None:
    func = from_source(FUNC)
    first, second = func.body.blocks[0].bindings
    assert underlined(func, obj_to_underline=[func.params[1]]) == ["y, y"]
    assert underlined(func, obj_to_underline=[second])[0].endswith("= R.sum(a, axis=[0], keepdims=True)")
    noted = func.script(style="relax", obj_to_annotate={first: "the sum"})
    assert "R.add(y, y)  # the sum" in noted and "Access path" not in noted
    hidden = func.script(style="relax", path_to_underline=[ROOT.attr("nothing")])
    assert hidden.startswith("Access path: <root>.nothing\nNote: The underlined object is the nearest visible parent")
    near = func.script(style="relax", obj_to_underline=[second.value], num_context_lines=0)
    assert near.count("lines skipped") == 2 and "R.add" not in near


def test_the_first_difference_is_shown() -> None:
    func = from_source(FUNC)
    other = from_source(FUNC.replace("R.add", "R.multiply"))
    found = find_mismatch(func, other)
    assert found is not None and str(found.path) == "<root>.body.blocks[0].bindings[0].value.op"
    with pytest.raises(ValueError, match=r"caused by lhs at <root>\.body") as caught:
        assert_structural_equal(func, other)
    assert (
        "R.add" in str(caught.value)
        and "^^^^^\n" in str(caught.value)
        and "relax.multiply" in caught.value.__notes__[0]
    )
    missing = find_mismatch([1, 2], [1])
    assert missing is not None and (str(missing.path), str(missing.other_path)) == ("<root>[1]", "<root>[<missing:1>]")
    keys = find_mismatch({"a": 1}, {"b": 1})
    assert keys is not None and str(keys.other_path) == '<root>[<missing:"a">]'


def test_symbols_of_shapes_are_variables() -> None:
    func = from_source("""
@R.function
def f(x: R.Tensor(("a", "b"), "float32")):
    a, b, q = T.int64(), T.int64(), T.int64()
    y = R.reshape(x, R.shape([a * b]))
    z = R.match_cast(y, R.Tensor((q,), "float32"))
    return z
""")

    def names(variables: list[relax.Var]) -> list[str]:
        return [v.name for v in variables]

    assert names(analysis.bound_vars(func)) == ["x", "a", "b", "y", "z", "q"] and analysis.free_vars(func) == []
    assert names(analysis.free_vars(func.body)) == ["x", "a", "b"]
    assert names(analysis.all_vars(op.reshape(x(n, m), (n * m,)))) == ["x", "n", "m"]
    function_type = relax.FuncType([relax.TensorType((n,))], relax.TensorType((m,)))
    assert names(analysis.definable_tir_vars_in_type(function_type)) == ["n", "m"]


def test_types_are_equal_by_structure() -> None:
    assert relax.TensorType((1, n), "int8") == relax.TensorType((1, n), "int8") != relax.TensorType((1, m), "int8")
    assert len({relax.ShapeType([1]), relax.ShapeType([1])}) == 1


def test_parts_of_tvms_source_tree_import_under_the_alias() -> None:
    program = (
        "from supple.compat import install_as_tvm; install_as_tvm()\n"
        "import tvm.relax.op.nn as nn\n"
        "from tvm.relax.op.unary import exp\n"
        "from tvm.relax.op.vision import roi_align\n"
        "from tvm.relax.op import roi_pool, masked_fill\n"
        "from tvm.ir.expr import GlobalVar\n"
        "from tvm.ir.op import Op\n"
        "from tvm.tirx.analysis import undefined_vars, verify_ssa\n"
        "from tvm.te.tensor import Tensor\n"
        "from tvm import tirx\n"
        "assert Op.get('relax.add').num_inputs == 2 and nn.relu\n"
        "v = tirx.Var('v', 'int32')\n"
        "assert undefined_vars(tirx.Evaluate(v + 1)) == [v] and not undefined_vars(tirx.Evaluate(v), [v])\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_refused_parts() -> None:
    with pytest.raises(TypeError, match="parameters are variables"):
        relax.Function([1], relax.SeqExpr([], x(2)))  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"relax\.Var"), relax.BlockBuilder().function("f", [1]):  # type: ignore[list-item]
        pass
    with pytest.raises(TypeError, match=r"got 1\.5"):
        relax.TensorType((1.5,), "float32")  # type: ignore[arg-type]


def test_what_is_visited_and_what_a_function_returns() -> None:
    n = tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType([n], "float32"))
    seen: list[str] = []
    analysis.post_order_visit(relax.op.add(x, x), lambda e: seen.append(type(e).__name__))
    assert seen == ["Op", "Var", "ShapeExpr", "Var", "Var", "ShapeExpr", "Var", "Call"]
    assert str(relax.Function([x], x, relax.AnyType()).ret_ty) == str(x.ty)
    func = relax.Function([x], x, relax.TensorType(None, "float32", 1)).with_attr("global_symbol", "f")
    assert str(func.ret_ty) == str(x.ty)


def test_patterns_of_one_shape_in_a_context() -> None:
    x = relax.Var("x", relax.TensorType([2, 3], "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(relax.op.sum(bb.emit(relax.op.sin(bb.emit(relax.op.exp(x)))), axis=1))
        bb.emit_func_output(out)
    block = bb.get()["main"].body.blocks[0]
    for second, found in (("relax.sin", True), ("relax.sum", False)):
        with relax.dpl.PatternContext() as context:
            first = relax.dpl.is_op("relax.exp" if found else "relax.sin")(relax.dpl.wildcard())
            last = relax.dpl.is_op(second)(relax.dpl.wildcard())
            first.used_by(last)
            relax.dpl.SameShapeConstraint(first, last)
            assert (context.match_dfb(block) is not None) == found


def test_mutators_keep_variables_whose_types_stay() -> None:
    source = '@R.function\ndef f(x: R.Tensor(("n", 3), "float32")):\n    n = T.int64()\n    with R.dataflow():\n'
    source += "        a = R.exp(x)\n        b = (a, R.sin(a))\n"
    source += '        d = R.match_cast(b[1], R.Tensor((n, 3), "float32"))\n        R.output(d)\n    return d\n'
    f = from_source(source)
    seen: list[Any] = []

    class Identity(relax.PyExprMutator):
        def visit_tuple_getitem_(self, op: Any) -> Any:  # an expression that is not visited stays valid
            seen.append(self.lookup_binding(op.tuple_value))
            return op

    same = Identity().visit_expr(f)
    assert structural_equal(same, f) and isinstance(seen[0], relax.Tuple)
    bound = [b.var for block in f.body.blocks for b in block.bindings]
    assert [b.var for block in same.body.blocks for b in block.bindings] == bound

    class Halves(relax.PyExprMutator):
        def visit_call_(self, op: Any) -> Any:
            call = self.visit_expr_post_order(op)
            return relax.op.astype(call, "float16") if call.op.short_name == "sin" else call

    with pytest.raises(supple.base.errors.TypeCheckError, match="match_cast"):
        Halves().visit_expr(f)


def test_shared_operands_are_bound_once_in_a_block() -> None:
    bb, a = relax.BlockBuilder(), x(2)
    shared = op.exp(a)
    with bb.function("f", [a]):
        with bb.dataflow():
            first = bb.emit(op.add(shared, a))
            second = bb.emit_output(op.multiply(shared, first))
        third = bb.emit(op.add(shared, second))  # the variable of the block is not visible here
        bb.emit_func_output(third)
    assert text(bb).count("R.exp(x)") == 2


def test_variables_without_a_type_get_their_values() -> None:
    bb, a, v, w = relax.BlockBuilder(), x(2), relax.Var("v"), relax.Var("w")
    bindings = [relax.VarBinding(v, op.add(a, a)), relax.MatchCast(w, v, relax.TensorType((2,), "float32"))]
    with bb.function("f", [a]):
        bb.emit_func_output(bb.emit(relax.SeqExpr([relax.BindingBlock(bindings)], op.exp(w))))
    assert v.ty == a.ty and w.ty == a.ty and "R.exp(w)" in text(bb)


def test_visitors_see_the_shapes_in_types() -> None:
    bb, a = relax.BlockBuilder(), x(n, 3)
    seen: list[str] = []

    class Visitor(relax.PyExprVisitor):
        def visit_var_(self, op: Any) -> None:
            seen.append(op.name)

        def visit_var_def_(self, var: Any) -> None:
            seen.append(f"def {var.name}")

    with bb.function("f", [a]):
        bb.emit_func_output(bb.emit(op.exp(a), "e"))
    Visitor().visit_expr(bb.get()["f"])
    assert seen == ["def x", "x", "n", "def e", "e", "n"]
    with pytest.raises(NotImplementedError, match="visit_call_"):
        relax.ExprFunctor().visit_expr(op.exp(a))


def test_sizes_are_computed_where_symbols_are_fixed() -> None:
    f = from_source('@R.function\ndef f(x: R.Tensor(("n", "m"), "float32")):\n    return R.reshape(x, (-1,))\n')
    fixed = f.bind_symbolic_vars({"n": 3, "m": 4})
    assert fixed.ret_ty == relax.TensorType((12,), "float32") and "12" in fixed.script() and "*" not in fixed.script()
    four = analysis.erase_to_well_defined(relax.TensorType((n + 1,), "float32"), {n: tirx.IntImm("int64", 3)})
    assert four.shape.values[0].value == 4
    zero = {n: tirx.IntImm("int64", 0)}
    gone = analysis.erase_to_well_defined(relax.TensorType((n * 3, m + n), "float32"), {**zero, m: k})
    assert gone.shape.values[0].value == 0 and gone.shape.values[1] is k


def test_nodes_take_what_relax_takes() -> None:
    a = x(2)
    f = relax.Function([a], a, a.ty)
    assert isinstance(f(a), relax.Call) and f(a).op is f
    assert [v.value for v in relax.Tuple([1, 2]).fields] == [1, 2]
    assert tirx.Range(0, 4) == tirx.Range(0, 4) if hasattr(tirx, "Range") else True
    for wrong in (lambda: relax.Var(3), lambda: relax.GlobalVar(3)):
        with pytest.raises(TypeError, match="string"):
            wrong()
    for wrong in (lambda: tirx.IntImm("int8", 300), lambda: relax.TensorType((2,), "nope")):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(AttributeError, match="did you mean"):
        supple.ir.op.Op.get("relax.ad")
    one, other = relax.const(np.ones(2, "float32")), relax.const(np.zeros(2, "float32"))
    assert not structural_equal(one, other) and structural_equal(one, other, skip_tensor_content=True)
    assert supple.ir.serialize.load_json(supple.ir.serialize.save_json([1, {"a": (2.5, None)}])) == [
        1,
        {"a": (2.5, None)},
    ]


def test_a_scalar_parameter_is_named_in_types_after_it() -> None:
    size, bb = relax.Var("n", supple.ir.types.PrimType("int64")), relax.BlockBuilder()
    a = x(size, 2)
    with bb.function("f", [size, a]):
        bb.emit_func_output(a)
    assert "def f(n: T.int64, x: R.Tensor((n, 2)" in text(bb)


def test_impure_functions_that_are_only_defined_do_not_count() -> None:
    body = "    @R.function(pure=False)\n    def inner(y: R.Tensor((2,), 'float32')) -> R.Tensor((2,), 'float32'):\n"
    body += "        _ = R.print(y, format='{}')\n        return y\n    return x\n"
    f = from_source("@R.function\ndef f(x: R.Tensor((2,), 'float32')):\n" + body)
    assert not analysis.contains_impure_call(f)


def test_inlined_results_take_the_place_of_calls() -> None:
    source = "@I.ir_module\nclass M:\n    @R.function\n    def a(x: R.Tensor((2,), 'float32')):\n        cls = M\n"
    source += "        s = cls.b(x)\n        return s\n    @R.function(private=True)\n"
    source += "    def b(x: R.Tensor((2,), 'float32')) -> R.Tensor((2,), 'float32'):\n"
    source += "        t = R.sin(x)\n        return t\n"
    mod = from_source(source)
    assert [b.var.name for b in mod["a"].inline_functions({"b": mod["b"]}).body.blocks[0].bindings] == ["t"]


def test_sizes_keep_the_order_they_are_written_in() -> None:
    bb, a = relax.BlockBuilder(), x(n, m)
    with bb.function("f", [a]):
        flat = bb.emit(op.reshape(a, (n * m,)))
        twice = bb.emit(op.concat([a, a], 0))
        bb.emit_func_output((flat, twice, bb.emit(op.reshape(a, (m * n,)))))
    shapes = [b.var.ty.shape.script(style="relax") for b in bb.get()["f"].body.blocks[0].bindings]
    assert "n * m" in shapes[0] and "n * 2" in shapes[1] and "m * n" in shapes[2]
    assert structural_equal(flat.ty, relax.TensorType((m * n,), "float32"))
    with pytest.raises(TypeError, match="mapping"):
        supple.IRModule(3)  # type: ignore[arg-type]
