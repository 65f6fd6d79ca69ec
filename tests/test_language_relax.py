"""The public face of ``relax``: nodes, operators, builder, analysis, patterns, rewriting, Python modules."""

from __future__ import annotations

import numpy as np
import pytest

import supple
from supple import relax, tirx
from supple.base.errors import ArgumentError, DiagnosticError
from supple.interp.graph import Interpreter
from supple.ir.structural import assert_structural_equal, structural_equal
from supple.relax.analysis import free_vars, well_formed
from supple.relax.binding_rewrite import DataflowBlockRewrite
from supple.relax.dpl import is_op, rewrite_call, wildcard
from supple.relax.expr_functor import PyExprMutator, mutator
from supple.script import from_source
from supple.script import ir as I
from supple.script import relax as R
from supple.script import tirx as T
from supple.script.ir_builder import IRBuilder
from supple.script.ir_builder import ir as build_ir
from supple.script.ir_builder import relax as B


def round_trip(program):
    again = from_source(program.script(show_meta=True))
    assert_structural_equal(program, again)
    return again


# ---------------------------------------------------------------------------------------------------------------- nodes


def test_types_take_lists_ints_and_names():
    n = tirx.Var("n", "int64")
    assert str(relax.TensorType([32, 24], "float32")) == 'R.Tensor((32, 24), dtype="float32")'
    assert str(relax.TensorType([n, 4])) == 'R.Tensor((n, 4), dtype="float32")'
    assert str(relax.TensorType(dtype="float32", ndim=2)) == 'R.Tensor(dtype="float32", ndim=2)'
    assert str(relax.TensorType([2], "")) == "R.Tensor((2,))"
    assert str(relax.TensorType([2], "int8", "llvm:1")) == (
        'R.Tensor((2,), dtype="int8", vdevice=I.vdevice("llvm", 1, "global"))'
    )
    assert str(relax.ShapeType([n, 3])) == "R.Shape([n, 3])"
    assert str(relax.TupleType([relax.ShapeType(ndim=2)])) == "R.Tuple(R.Shape(ndim=2))"
    assert str(relax.FuncType([relax.AnyType()], relax.AnyType())) == "R.Callable((R.Any,), R.Any)"
    assert str(relax.FuncType.opaque_func()) == "R.Callable()"
    assert relax.Var("x", R.Tensor((3,), "float32")).ty.ndim == 1
    assert str(relax.Var("x", R.Tensor).ty) == "R.Tensor"
    with pytest.raises(TypeError, match="expected a type"):
        relax.Var("x", 3)
    with pytest.raises(ValueError, match="vdevice"):
        relax.TensorType([2], "int8", "llvm:x")


def test_expressions_take_relax_s_argument_order():
    x = relax.Var("x", relax.TensorType([2, 3], "float32"))
    assert relax.ShapeExpr([1, tirx.Var("m", "int64")]).values[0].dtype == "int64"
    assert len(relax.Tuple([x, x])) == 2
    shape = relax.ShapeExpr([1, 2])
    assert shape[0].value == 1 and len(shape) == 2 and [v.value for v in shape] == [1, 2]
    call = relax.Call("relax.nn.relu", [x])
    assert call.op is supple.relax.op.nn.relu and call.args == (x,)
    y = relax.Var("y", relax.TensorType([2, 3], "float32"))
    binding = relax.MatchCast(y, x, relax.TensorType([2, 3], "float32"))
    assert binding.var is y and binding.value is x
    block = relax.BindingBlock([relax.VarBinding(y, call)])
    func = relax.Function([x], relax.SeqExpr([block], y), relax.TensorType([2, 3], "float32"))
    assert str(func.ret_ty) == 'R.Tensor((2, 3), dtype="float32")'
    bare = relax.Function([x], x, None)
    assert isinstance(bare.body, relax.SeqExpr) and bare.ret_ty is x.ty
    round_trip(func.with_attrs({"global_symbol": "f"}))
    assert tirx.IntImm("int64", 3).value == 3 and tirx.FloatImm("float16", 1.5).dtype == "float16"
    assert relax.const(1.5).data.dtype == "float32" and relax.const([1, 2]).data.tolist() == [1, 2]
    assert relax.prim_value(1).dtype == "int64" and relax.prim_value(0.5).dtype == "float64"
    assert relax.extern("a.b").global_symbol == "a.b"
    assert relax.get_shape_of(x) is x.ty.shape
    with pytest.raises(TypeError, match="scalar"):
        relax.prim_value(x)


def test_call_attributes_read_as_fields():
    x = relax.Var("x", relax.TensorType([2, 3], "float32"))
    call = relax.op.sum(x, axis=1)
    assert call.attrs.axis == (1,) and call.attrs["keepdims"] is False
    with pytest.raises(AttributeError, match="it has"):
        call.attrs.nothing


def test_loop_nodes_take_relax_s_argument_order():
    buffer = tirx.Buffer("A", [tirx.IntImm(4, "int32")], "float32")
    i, vi = tirx.Var("i", "int32"), tirx.Var("vi", "int32")
    store = tirx.BufferStore(buffer, 1.0, [vi])
    iter_var = tirx.IterVar(tirx.Range(tirx.IntImm(0), tirx.IntImm(4)), vi, tirx.IterVar.DataPar)
    block = tirx.SBlock([iter_var], [], [tirx.BufferRegion(buffer, [iter_var.dom])], "b", store)
    loop = tirx.For(i, 0, 4, tirx.ForKind.SERIAL, tirx.SBlockRealize([i], True, block))
    func = tirx.PrimFunc([buffer], loop).with_attr("global_symbol", "f")
    assert "with T.sblock" in func.script() and "root_block=False" in func.script()
    round_trip(func)
    wide = tirx.PrimFunc([buffer], tirx.For(i, tirx.IntImm(0, "int64"), tirx.IntImm(4, "int64"), tirx.ForKind.SERIAL,
                                            tirx.BufferStore(buffer, 1.0, [i])))  # fmt: skip
    assert 'dtype="int32"' in wide.script()
    round_trip(wide)


def test_blocks_that_stand_one_after_another_stay_apart():
    x = relax.Var("x", relax.TensorType([2], "float32"))
    a, b = (relax.Var(name, x.ty) for name in "ab")
    blocks = [
        relax.BindingBlock([relax.VarBinding(a, x)]),
        relax.BindingBlock([relax.VarBinding(b, a)]),
        relax.BindingBlock([]),
        relax.DataflowBlock([]),
    ]
    func = relax.Function([x], relax.SeqExpr(blocks, b), x.ty).with_attr("global_symbol", "f")
    assert len(round_trip(func).body.blocks) == 4


def test_an_if_may_be_declared_wider_than_its_branches():
    @R.function
    def f(c: R.Tensor((), "bool"), x: R.Tensor((2,), "float32")):
        if c:
            a = R.add(x, x)
            y: R.Tensor(ndim=1, dtype="float32") = a
        else:
            y: R.Tensor(ndim=1, dtype="float32") = x
        return y

    assert str(f.ret_ty) == 'R.Tensor(dtype="float32", ndim=1)'
    assert len(f.body.blocks[0].bindings) == 1
    round_trip(f)


def test_a_recursive_function_needs_its_type():
    text = """
@R.function
def main(x: R.Tensor((2,), "float32")):
    @R.function
    def f(a: R.Tensor((2,), "float32")):
        return f(a)
    return f(x)
"""
    with pytest.raises(DiagnosticError, match="calls itself"):
        from_source(text)


# ------------------------------------------------------------------------------------------------------ whole functions


@R.function
def linear(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, "m"), "float32")) -> R.Tensor(("n", "m"), "float32"):
    with R.dataflow():
        y = R.matmul(x, w)
        R.output(y)
    return y


def test_parameters_are_fixed_to_values():
    weights = np.arange(12, dtype="float32").reshape(4, 3)
    bound = linear.bind_params({"w": weights})
    assert [p.name for p in bound.params] == ["x"]
    assert str(bound.ret_ty) == 'R.Tensor((n, 3), dtype="float32")'
    well_formed(supple.IRModule.from_expr(bound))
    x = np.ones((2, 4), "float32")
    np.testing.assert_allclose(Interpreter(bound).run("linear", x), x @ weights)
    with pytest.raises(ValueError, match="did you mean"):
        linear.bind_params({"ww": weights})
    with pytest.raises(ValueError, match="has type"):
        linear.bind_params({"w": weights.astype("int32")})


def test_symbols_are_fixed():
    bound = linear.bind_symbolic_vars({"n": 7})
    assert str(bound.params[0].ty) == 'R.Tensor((7, 4), dtype="float32")'
    assert str(bound.ret_ty) == 'R.Tensor((7, m), dtype="float32")'
    with pytest.raises(ValueError, match="no one variable"):
        linear.bind_symbolic_vars({"k": 7})


def test_functions_are_inlined():
    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor((3, 4), "float32"), w: R.Tensor((4, 5), "float32")):
            y = M.linear(x, w)
            return R.add(y, y)

        @R.function(private=True)
        def linear(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, "m"), "float32")) -> R.Tensor(
            ("n", "m"), "float32"
        ):
            with R.dataflow():
                y = R.matmul(x, w)
                R.output(y)
            return y

    inlined = M["main"].inline_functions({"linear": M["linear"]})
    assert "linear" not in inlined.script() and "R.matmul" in inlined.script()
    assert str(inlined.ret_ty) == 'R.Tensor((3, 5), dtype="float32")'
    well_formed(supple.IRModule({"main": inlined}))
    recursive = from_source("""
@R.function
def f(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
    return x
""")
    again = relax.utils.copy_with_new_vars(recursive)
    assert_structural_equal(recursive, again)
    assert again.params[0] is not recursive.params[0]


# ----------------------------------------------------------------------------------------- builder, patterns, rewriting


def test_a_program_built_with_the_public_names():
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([tirx.Var("n", "int64"), 4], "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            lv = bb.emit(relax.op.add(x, relax.const(1, "float32")))
            gv = bb.emit_output(relax.op.nn.relu(lv))
        bb.emit_func_output(gv)
    mod = bb.finalize()
    round_trip(mod)
    assert free_vars(mod["main"]) == []
    assert mod.get_global_var("main").name_hint == "main"


def test_rewriting_by_pattern():
    pattern = is_op("relax.add")(wildcard(), wildcard())

    @R.function
    def f(x: R.Tensor((2,), "float32")):
        with R.dataflow():
            y = R.add(x, x)
            R.output(y)
        return y

    changed = rewrite_call(pattern, lambda call, _: relax.op.multiply(*call.args), f)
    assert "R.multiply(x, x)" in changed.script()


def test_the_rewriter_of_two_functions():
    @R.rewriter
    class AddToMultiply:
        @R.function
        def pattern(a: R.Tensor(("n",), "float32"), b: R.Tensor(("n",), "float32")):
            with R.dataflow():
                c = R.add(a, b)
                d = R.nn.relu(c)
                R.output(d)
            return d

        @R.function
        def replacement(a: R.Tensor(("n",), "float32"), b: R.Tensor(("n",), "float32")):
            with R.dataflow():
                d = R.maximum(R.add(a, b), R.const(0.0, "float32"))
                R.output(d)
            return d

    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
            with R.dataflow():
                a = R.add(x, y)
                b = R.nn.relu(a)
                R.output(b)
            return b

    after = AddToMultiply(Before)
    assert "R.nn.relu" not in after.script() and "R.maximum" in after.script()
    well_formed(after)
    assert (AddToMultiply | AddToMultiply)(Before["main"]).script() == after["main"].script()


def test_editing_a_dataflow_block():
    @R.function
    def f(x: R.Tensor((2,), "float32")):
        with R.dataflow():
            a = R.add(x, x)
            b = R.multiply(a, x)
            R.output(b)
        return b

    block = f.body.blocks[0]
    rewrite = DataflowBlockRewrite(block, f)
    rewrite.add(relax.op.nn.relu(f.params[0]), name="c", is_dfvar=True)
    new = rewrite.mutated_dfb().bindings[1].var
    assert new.name == "c" and isinstance(new, relax.DataflowVar)
    with pytest.raises(ValueError, match="is used"):
        rewrite.remove_unused(block.bindings[0].var)
    rewrite.remove_all_unused()
    assert len(rewrite.mutated_dfb().bindings) == 2
    rewrite.replace_all_uses(block.bindings[0].var, f.params[0])
    rewrite.remove_all_unused()
    assert "R.multiply(x, x)" in rewrite.mutated_root_fn().script()
    mod = supple.IRModule({"f": f})
    assert len(rewrite.mutate_irmodule(mod)["f"].body.blocks[0].bindings) == 1


def test_editing_a_block_inside_of_a_branch():
    @R.function
    def f(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")):
        if c:
            with R.dataflow():
                a = R.exp(x)
                b = R.exp(a)
                d = R.sin(a)
                e = R.cos(a)
                m = R.match_cast(a, R.Tensor((4,), "float32"))
                R.output(d, e)
            r = R.add(d, d)
        else:
            r = x
        return r

    block = f.body.blocks[0].bindings[0].value.true_branch.blocks[0]
    a, _, d, e, _ = (binding.var for binding in block.bindings)
    rewrite = DataflowBlockRewrite(block, f)
    rewrite.add(relax.op.add(a, f.params[0]), name="q")
    assert [b.var.name for b in rewrite.mutated_dfb().bindings] == ["a", "q", "b", "d", "e", "m"]
    rewrite.remove_all_unused()  # outputs too; a check stays
    assert [b.var.name for b in rewrite.mutated_dfb().bindings] == ["a", "d", "m"]
    with pytest.raises(ValueError, match="d is used"):  # outside of the block
        rewrite.remove_unused(d)
    rewrite.replace_all_uses(d, a)
    rewrite.remove_unused(d)
    text = rewrite.mutated_root_fn().script()
    assert "R.sin" not in text and "R.add(a, a)" in text and "R.sin" in f.script()
    rewrite.replace_all_uses(f.params[0], f.params[0])
    assert rewrite.mutated_root_fn().params[0] is f.params[0]
    for old, new in ((e, a), (a, e)):
        with pytest.raises(ValueError, match="e is no variable of the function"):
            rewrite.replace_all_uses(old, new)
    with pytest.raises(TypeError, match="expected a dataflow block"):
        DataflowBlockRewrite(f.body.blocks[0], f)
    with pytest.raises(ValueError, match="not one of the function's"):
        DataflowBlockRewrite(relax.DataflowBlock([]), f)


def test_parameters_and_what_stands_outside_are_replaced():
    @R.function
    def f(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.add(x, y)
            R.output(a)
        z = R.add(a, x)
        return R.exp(z)

    block, z = f.body.blocks[0], f.body.blocks[1].bindings[0].var
    rewrite = DataflowBlockRewrite(block, f)
    rewrite.replace_all_uses(f.params[0], f.params[1])
    rewrite.replace_all_uses(z, block.bindings[0].var)
    changed = rewrite.mutated_root_fn()
    assert changed.params == f.params and changed.body.blocks[1].bindings[1].value.args[0] is block.bindings[0].var
    assert changed.body.blocks[1].bindings[0].var is z
    assert "R.add(y, y)" in changed.script() and "R.add(a, y)" in changed.script()


def test_a_mutator():
    @mutator
    class Double(PyExprMutator):
        def visit_call_(self, call):
            return relax.op.add(call, call)

    @R.function
    def f(x: R.Tensor((2,), "float32")):
        return R.nn.relu(x)

    assert "R.add(lv, lv)" in Double().visit_expr(f).script() or "R.add(" in Double().visit_expr(f).script()


# ------------------------------------------------------------------------------------------------------- Python modules


@I.ir_module
class Mixed(relax.BasePyModule):
    @I.pyfunc
    def scaled(self, x):
        doubled = self.call_tir(self.double, [x], out_ty=R.Tensor((4,), "float32"))
        return doubled + 1

    @I.pyfunc
    def plus_one(x):
        return np.asarray(x) + 1

    @T.prim_func
    def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i] * T.float32(2)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            y = R.call_py_func("plus_one", (x,), out_ty=R.Tensor((4,), "float32"))
            z = R.add(y, x)
            R.output(z)
        return z


def test_python_functions_and_compiled_ones_in_one_class():
    x = np.arange(4, dtype="float32")
    m = Mixed(supple.cpu())
    assert m.list_functions() == {"python": ["scaled", "plus_one"], "relax": ["main"], "tir": ["double"]}
    np.testing.assert_allclose(m.scaled(x), 2 * x + 1)
    np.testing.assert_allclose(np.asarray(m.main(x)), 2 * x + 1)
    np.testing.assert_allclose(Interpreter(Mixed).run("main", x), 2 * x + 1)
    m.add_python_function("three", lambda: 3)
    assert m.call_py_func("three", []) == 3
    with pytest.raises(ArgumentError, match="did you mean"):
        m.call_py_func("thre", [])
    with pytest.raises(AttributeError, match="did you mean"):
        m.mai
    assert structural_equal(from_source(Mixed.script()), Mixed)


# ----------------------------------------------------------------------------------------------- statement by statement


def test_functions_built_statement_by_statement():
    @R.function
    def expected(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")) -> R.Tensor(ndim=1, dtype="float32"):
        R.func_attr({"a": 1})
        with R.dataflow():
            lv = R.exp(x)
            gv = R.add(lv, lv)
            R.output(gv)
        m = T.int64()
        cast = R.match_cast(gv, R.Tensor((m,), "float32"))
        if c:
            y = R.add(cast, cast)
        else:
            y = R.multiply(cast, cast)
        return y

    with IRBuilder() as ib, B.function():
        B.func_name("expected")
        B.func_attr({"a": 1})
        x = B.arg("x", relax.TensorType([4], "float32"))
        c = B.arg("c", R.Tensor((), "bool"))
        B.func_ret_ty(relax.TensorType(dtype="float32", ndim=1))
        with B.dataflow() as df:
            lv = B.emit(B.exp(x))
            gv = B.emit(B.add(lv, lv))
            B.output(gv)
        (gv,) = df.output_vars
        m = tirx.Var("m", "int64")
        cast = IRBuilder.name("cast", B.emit_match_cast(gv, relax.TensorType([m], "float32")))
        with B.If(c) as branch:
            with B.Then():
                IRBuilder.name("y", B.emit(B.add(cast, cast)))
            with B.Else():
                IRBuilder.name("y", B.emit(B.multiply(cast, cast)))
        B.func_ret_value(branch.var)
    assert_structural_equal(ib.get(), expected)
    round_trip(ib.get())


def test_modules_built_statement_by_statement():
    with IRBuilder() as ib, build_ir.ir_module(), B.function(is_private=True):
        B.func_name("f")
        x = B.arg("x", relax.TensorType([4], "float32"))
        B.func_ret_value(B.emit_te(lambda a: supple.te.compute(a.shape, lambda i: a[i] + a[i]), x))
    mod = ib.get()
    assert len(mod) == 2 and "global_symbol" not in mod["f"].attrs
    with pytest.raises(DiagnosticError, match="no builder"):
        B.emit(1)
    with pytest.raises(DiagnosticError, match="has no name"), IRBuilder(), build_ir.ir_module(), B.function():
        B.func_ret_value(B.arg("x", R.Tensor))
    with pytest.raises(DiagnosticError, match="returns nothing"), IRBuilder(), B.function():
        B.func_name("f")
    half = pytest.raises(DiagnosticError, match=r"R\.If needs R\.Then and R\.Else")
    with half, IRBuilder(), B.function(), B.If(B.arg("c", R.Tensor((), "bool"))), B.Then():
        B.emit(B.arg("x", R.Tensor((4,), "float32")))
    empty = pytest.raises(DiagnosticError, match=r"R\.Then binds nothing")
    with empty, IRBuilder(), B.function(), B.If(B.arg("c", R.Tensor((), "bool"))), B.Then():
        pass
    with pytest.raises(ValueError, match="nothing was built"):
        IRBuilder().get()


@pytest.mark.parametrize("indices", ["[]", "[0, 1]", "[7]", "[-2]"])
def test_wrong_inplace_indices(indices):
    text = f"""
@I.ir_module
class Module:
    @T.prim_func
    def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i] * T.float32(2)

    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")):
        a = R.add(x, x)
        return R.call_tir_inplace(Module.double, (x, a), {indices}, out_ty=R.Tensor((4,), "float32"))
"""
    with pytest.raises(DiagnosticError, match="one index of an argument"):
        from_source(text)


def test_a_buffer_is_no_result():
    with pytest.raises(DiagnosticError, match="expected a scalar"):
        from_source('@T.prim_func\ndef f(A: T.Buffer((1,), "float32")):\n    T.Return(A)\n')


class TestSeveralResults:
    """A pattern that returns a tuple replaces values that are computed apart."""

    @staticmethod
    def rule():
        @R.rewriter
        class SumAndDifference:
            @R.function
            def pattern(a: R.Tensor(("n",), "float32"), b: R.Tensor(("n",), "float32")):
                s = R.add(a, b)
                d = R.subtract(a, b)
                return (s, d)

            @R.function
            def replacement(a: R.Tensor(("n",), "float32"), b: R.Tensor(("n",), "float32")):
                e = R.exp(b)
                p = R.multiply(e, a)
                q = R.multiply(e, e)
                return (p, q)

        return SumAndDifference

    def test_all_of_them_are_replaced_and_nothing_is_computed_twice(self):
        @R.function
        def f(x: R.Tensor((7,), "float32"), y: R.Tensor((7,), "float32")):
            with R.dataflow():
                s = R.add(x, y)
                t = R.exp(s)
                d = R.subtract(x, y)
                z = R.multiply(t, d)
                R.output(z)
            return z

        @R.function
        def expected(x: R.Tensor((7,), "float32"), y: R.Tensor((7,), "float32")):
            with R.dataflow():
                e = R.exp(y)
                s = R.multiply(e, x)
                d = R.multiply(e, e)
                t = R.exp(s)
                z = R.multiply(t, d)
                R.output(z)
            return z

        after = self.rule()(f)
        assert_structural_equal(after, expected.with_attr("global_symbol", "f"))
        well_formed(after)

    def test_one_alone_stays(self):
        @R.function
        def f(x: R.Tensor((7,), "float32"), y: R.Tensor((7,), "float32")):
            s = R.add(x, y)
            d = R.subtract(y, x)
            return (s, d)

        assert_structural_equal(self.rule()(f), f)

    def test_a_result_that_is_needed_before_an_input_is_known_stays(self):
        @R.rewriter
        class Rule:
            @R.function
            def pattern(a: R.Tensor((4,), "float32"), b: R.Tensor((4,), "float32")):
                s = R.exp(a)
                d = R.sin(b)
                return (s, d)

            @R.function
            def replacement(a: R.Tensor((4,), "float32"), b: R.Tensor((4,), "float32")):
                s = R.cos(a)
                d = R.tan(b)
                return (s, d)

        @R.function
        def f(x: R.Tensor((4,), "float32")):
            s = R.exp(x)
            y = R.negative(s)
            d = R.sin(y)
            return (s, d)

        assert_structural_equal(Rule(f), f)

    def test_every_pair_in_a_branch_and_across_blocks(self):
        @R.function
        def f(c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
            if c:
                s = R.add(x, y)
                d = R.subtract(x, y)
                r = R.add(s, d)
            else:
                s = R.add(y, x)
                d = R.subtract(y, x)
                r = R.multiply(s, d)
            return r

        text = self.rule()(f).script()
        assert text.count("R.exp") == 2 and "R.subtract" not in text

    def test_counts_must_agree(self):
        with pytest.raises(ValueError, match="'pattern' has 2 results, 'replacement' 1"):

            @R.rewriter
            class Rule:
                @R.function
                def pattern(a: R.Tensor((4,), "float32")):
                    s = R.exp(a)
                    d = R.sin(a)
                    return (s, d)

                @R.function
                def replacement(a: R.Tensor((4,), "float32")):
                    return R.exp(a)


def test_constants_answer_numpy():
    value = relax.const(np.arange(3, dtype="float32"))
    copy = value.data.numpy()
    copy[0] = 5
    assert type(copy) is np.ndarray and value.data[0] == 0 and type(value.data + 1) is np.ndarray


def test_results_live_where_their_operands_live():
    @I.ir_module
    class Placed:
        I.module_global_infos({"vdevice": [I.vdevice("llvm", 0), I.vdevice("llvm", 0, "local")]})

        @R.function
        def main(
            x: R.Tensor((4, 4), "float32", "vdevice:1"), y: R.Tensor((4, 4), "float32", "llvm:1"), z: R.Tensor((4, 4))
        ):
            a = R.matmul(R.exp(R.add(x, y)), z)
            b = R.split(a, 2, axis=0)
            return b[1]

    assert Placed["main"].ret_ty.vdevice.memory_scope == "local"
    with pytest.raises(DiagnosticError, match="different virtual devices"):

        @I.ir_module
        class Apart:
            I.module_global_infos({"vdevice": [I.vdevice("llvm", 0), I.vdevice("llvm", 0, "local")]})

            @R.function
            def main(x: R.Tensor((4,), "float32", "llvm:0"), y: R.Tensor((4,), "float32", "llvm:1")):
                return R.add(x, y)
