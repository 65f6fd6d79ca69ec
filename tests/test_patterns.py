"""Patterns over graph expressions: kinds, constraints, sequences, rewriting."""

from __future__ import annotations

import pytest

import supple
from supple import relax
from supple.analysis.graph import get_var2val
from supple.analysis.pattern_makers import (
    has_dtype,
    is_call_packed,
    is_call_tir,
    is_const,
    is_gv,
    is_op,
    is_shape,
    is_tuple,
    is_tuple_get_item,
    is_var,
    make_fused_bias_activation_pattern,
    wildcard,
)
from supple.analysis.patterns import (
    PatternContext,
)
from supple.base.errors import RegistryError
from supple.ir.graph import Function
from supple.ir.module import IRModule
from supple.ir.op import Op
from supple.ir.structural import assert_structural_equal
from supple.passes.pattern_rewriter import PatternMatchingRewriter
from supple.passes.rewrite_patterns import rewrite_bindings, rewrite_call
from supple.script import from_source
from supple.script import ir as I
from supple.script import relax as R


def parse(body: str) -> Function:
    params = 'x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 4), "float32"), b: R.Tensor((4,), "float32")'
    text = f"from supple.script import relax as R\n\n@R.function\ndef main({params}):\n{body}\n"
    func = from_source(text)
    assert isinstance(func, Function)
    return func


DENSE = parse(
    """    with R.dataflow():
        lv = R.matmul(x, w)
        lv1 = R.add(lv, b)
        lv2 = R.nn.relu(lv1)
        lv3 = R.concat((lv2, lv1), axis=0)
        lv4 = R.multiply(lv3, R.const(2.0, "float32"))
        R.output(lv4)
    return lv4"""
)
VALUES = get_var2val(DENSE)
BY_NAME = {var.name: var for var in VALUES}


def matches(pattern: object, name: str) -> bool:
    return pattern.match(BY_NAME[name], VALUES)  # type: ignore[attr-defined, no-any-return]


def test_calls_and_parts() -> None:
    x, w, b = wildcard(), wildcard(), wildcard()
    dense = is_op("relax.add")(is_op("relax.matmul")(x, w), b)
    found = dense.extract_matched_expr(BY_NAME["lv1"], VALUES)
    assert found is not None
    assert [found[p].name for p in (x, w, b)] == ["x", "w", "b"]  # type: ignore[attr-defined]
    assert not matches(dense, "lv2")
    assert not dense.match(BY_NAME["lv1"])  # without the values, a variable is opaque
    assert matches(
        make_fused_bias_activation_pattern("relax.matmul", with_bias=True, activation="relax.nn.relu"), "lv2"
    )


def test_alternatives_and_constraints() -> None:
    relu, add = is_op("relax.nn.relu")(wildcard()), is_op("relax.add")(wildcard(), wildcard())
    assert matches(relu | add, "lv1") and matches(relu | add, "lv2") and not matches(relu & add, "lv1")
    assert matches(~relu, "lv1") and not matches(~relu, "lv2")
    assert matches(wildcard().has_dtype("float32"), "lv") and not matches(has_dtype("float16"), "lv")
    n = DENSE.params[0].ty.shape.values[0]  # type: ignore[union-attr]
    assert matches(wildcard().has_shape((n, 4)), "lv") and not matches(wildcard().has_shape((n, 5)), "lv")
    assert matches(wildcard().has_ty(BY_NAME["lv"].ty), "lv1")  # type: ignore[arg-type]
    assert matches(is_op("relax.concat")(wildcard()).has_attr({"axis": 0}), "lv3")
    assert not matches(is_op("relax.concat")(wildcard()).has_attr({"axis": 1}), "lv3")
    assert matches(is_op("relax.multiply")(wildcard(), is_const()), "lv4")
    assert not matches(is_var("lv"), "lv")  # its value is known, so it stands for that
    assert is_var("lv").match(BY_NAME["lv"]) and not is_var("lw").match(BY_NAME["lv"])


def test_the_same_pattern_matches_the_same_expression() -> None:
    x = wildcard()
    assert not matches(is_op("relax.add")(x, x), "lv1")
    double = parse("    y = R.add(x, x)\n    return y")
    values = get_var2val(double)
    assert is_op("relax.add")(x, x).match(next(iter(values)), values)
    assert x.dup() is not x


def test_tuples_in_and_out_of_order() -> None:
    relu, add = is_op("relax.nn.relu")(wildcard()), is_op("relax.add")(wildcard(), wildcard())
    assert matches(is_op("relax.concat")(is_tuple([relu, add])), "lv3")
    assert not matches(is_op("relax.concat")(is_tuple([add, relu])), "lv3")
    assert matches(is_op("relax.concat")(is_tuple([add, relu], unordered=True)), "lv3")
    func = parse("    t = (x, w)\n    y = t[1]\n    return y")
    values = get_var2val(func)
    y = next(v for v in values if v.name == "y")
    assert is_tuple_get_item(wildcard(), 1).match(y, values) and not is_tuple_get_item(wildcard(), 0).match(y, values)


def test_packed_and_loop_function_calls() -> None:
    mod = from_source(
        """
from supple.script import ir as I, relax as R, tirx as T

@I.ir_module
class M:
    @T.prim_func(private=True)
    def copy(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi]

    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")):
        cls = M
        y = R.call_tir(cls.copy, (x,), out_ty=R.Tensor((4,), dtype="float32"))
        z = R.call_packed("f", y, ty_args=R.Tensor((4,), dtype="float32"))
        s = R.shape([4, 4])
        return z
"""
    )
    assert isinstance(mod, IRModule)
    func = mod["main"]
    assert isinstance(func, Function)
    values = get_var2val(func)
    y, z, s = values
    assert is_call_tir("copy").match(y, values) and not is_call_tir("other").match(y, values)
    assert is_call_tir("copy", [is_var("x")]).match(y, values)
    assert is_call_packed("f").match(z, values) and not is_call_packed("g").match(z, values)
    assert is_shape([4, 4]).match(s, values) and not is_shape([4]).match(s, values)
    assert is_gv("copy").match(values[y].args[0])  # type: ignore[attr-defined]


def test_sequences_in_a_block() -> None:
    block = DENSE.body.blocks[0]
    with PatternContext() as ctx:
        matmul = is_op("relax.matmul")(wildcard(), wildcard())
        add = is_op("relax.add")(wildcard(), wildcard())
        matmul >> add
        found = ctx.match_dfb(block)
    assert found is not None and found[matmul].name == "lv" and found[add].name == "lv1"
    with PatternContext() as ctx:
        add = is_op("relax.add")(wildcard(), wildcard())
        relu = is_op("relax.nn.relu")(wildcard())
        add >> relu  # but concat uses the sum as well
        assert ctx.match_dfb(block) is None
    with PatternContext() as ctx:
        add ^ relu
        assert ctx.match_dfb(block) is not None


def test_rewrite_call_replaces_and_drops_what_is_unused() -> None:
    x, w, b = wildcard(), wildcard(), wildcard()
    pattern = is_op("relax.nn.relu")(x)
    after = rewrite_call(pattern, lambda expr, found: Op.get("relax.tanh")(found[x]), DENSE)
    assert_structural_equal(
        after,
        parse(
            """    with R.dataflow():
        lv = R.matmul(x, w)
        lv1 = R.add(lv, b)
        lv2 = R.tanh(lv1)
        lv3 = R.concat((lv2, lv1), axis=0)
        lv4 = R.multiply(lv3, R.const(2.0, "float32"))
        R.output(lv4)
    return lv4"""
        ),
    )
    both = is_op("relax.add")(is_op("relax.matmul")(x, w), b)
    dropped = rewrite_call(both, lambda expr, found: Op.get("relax.add")(found[x], found[b]), DENSE)
    assert "matmul" not in dropped.script()
    same = rewrite_call(pattern, lambda expr, found: expr, DENSE)
    assert_structural_equal(same, DENSE)


def test_rewrite_bindings_merges_two_products() -> None:
    func = parse(
        """    with R.dataflow():
        a = R.matmul(x, w)
        c = R.nn.relu(a)
        R.output(c)
    return c"""
    )
    with PatternContext() as ctx:
        a = is_op("relax.matmul")(wildcard(), wildcard())
        c = is_op("relax.nn.relu")(wildcard())
        a >> c

    def rewriter(found, bindings):  # type: ignore[no-untyped-def]
        return {found[c]: Op.get("relax.negative")(bindings[found[a]])}

    after = rewrite_bindings(ctx, rewriter, func)
    assert_structural_equal(
        after,
        parse(
            """    with R.dataflow():
        a = R.matmul(x, w)
        c = R.negative(a)
        R.output(c)
    return c"""
        ),
    )


def test_an_unknown_operator_is_refused() -> None:
    with pytest.raises(RegistryError, match="did you mean"):
        is_op("relax.nn.rleu")


def test_calls_inside_of_a_context_are_matched_with_their_arguments() -> None:
    """Without any sequence: calls written in the context must be found, and what their arguments are is told."""
    func = parse(
        """    with R.dataflow():
        a = R.matmul(x, w)
        c = R.exp(a)
        d = R.add(a, c)
        R.output(d)
    return d
"""
    )
    block = func.body.blocks[0]
    with PatternContext() as ctx:
        left = wildcard()
        product = is_op("relax.matmul")(left, wildcard())
        grown = is_op("relax.exp")(product)
        found = ctx.match_dfb(block)
    assert found is not None and [found[p].name for p in (left, product, grown)] == ["x", "a", "c"]
    after = rewrite_bindings(ctx, lambda found, _: {found[grown]: Op.get("relax.negative")(found[product])}, func)
    assert "c = R.negative(a)" in after.script()
    with PatternContext() as ctx:
        is_op("relax.exp")(wildcard())
        is_op("relax.subtract")(wildcard(), wildcard())  # it must be found as well
        assert ctx.match_dfb(block) is None
    with PatternContext() as ctx:
        wildcard()
        assert ctx.match_dfb(block) is None, "there is nothing to look for"


def test_arguments_of_calls_in_a_context_stand_for_different_variables() -> None:
    func = parse(
        """    with R.dataflow():
        a = R.add(x, x)
        c = R.exp(a)
        d = R.multiply(c, a)
        R.output(d)
    return d
"""
    )
    block = func.body.blocks[0]
    with PatternContext() as ctx:
        is_op("relax.add")(wildcard(), wildcard())
        assert ctx.match_dfb(block) is None
    with PatternContext() as ctx:
        same = wildcard()
        is_op("relax.add")(same, same)
        found = ctx.match_dfb(block)
        assert found is not None and found[same].name == "x"
    with PatternContext() as ctx:
        is_op("relax.multiply")(is_op("relax.exp")(wildcard()), wildcard())  # both a
        assert ctx.match_dfb(block) is None
    with PatternContext() as ctx:
        grown, product = is_op("relax.exp")(wildcard()), is_op("relax.multiply")
        grown >> product(wildcard(), is_op("relax.add")(same, same))  # a is the exponential's wildcard
        assert ctx.match_dfb(block) is None


def test_matches_are_values_and_rewriting_uses_their_variables() -> None:
    @R.function(private=True)
    def chain(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.cos(a)
            c = R.sin(b)
            R.output(c)
        return c

    inner = is_op("relax.exp")(wildcard())
    outer = is_op("relax.cos")(inner)
    found: list[type] = []

    def tan(_: object, matches: dict) -> object:  # type: ignore[type-arg]
        found.append(type(matches[inner]))
        return relax.op.tan(matches[inner])

    rewritten = rewrite_call(outer, tan, chain)
    assert found == [relax.Call]
    assert [str(b.value) for b in rewritten.body.blocks[0].bindings] == ["R.exp(x)", "R.tan(a)", "R.sin(b)"]

    any_value = wildcard()
    shorter = rewrite_call(is_op("relax.cos")(any_value), lambda _, m: m[any_value], chain)
    assert [str(b.value) for b in shorter.body.blocks[0].bindings] == ["R.exp(x)", "R.sin(a)"]


def test_a_value_of_a_dataflow_block_is_computed_again_outside() -> None:
    @R.function(private=True)
    def two(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.cos(a)
            R.output(b)
        return R.sin(b)

    value = is_op("relax.exp")(wildcard())
    whole = is_op("relax.sin")(is_op("relax.cos")(value))
    rewritten = rewrite_call(whole, lambda _, m: relax.op.tan(m[value]), two)
    relax.analysis.well_formed(supple.IRModule({"main": rewritten}))
    assert "R.tan" in str(rewritten) and "R.cos" not in str(rewritten)


def test_rewriters_are_passes() -> None:
    p, q = wildcard(), wildcard()
    first = PatternMatchingRewriter.from_pattern(is_op("relax.nn.relu")(p), lambda _, m: relax.op.tanh(m[p]))
    second = PatternMatchingRewriter.from_pattern(is_op("relax.tanh")(q), lambda _, m: relax.op.sin(m[q]))

    @I.ir_module
    class Relu:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            return R.nn.relu(x)

    made = supple.transform.Sequential([first, second])(Relu)
    assert "R.sin(x)" in made.script() and "relu" not in made.script()


def test_values_that_share_a_part_are_rewritten_once() -> None:
    block = "        a = R.cos(x)\n        c = R.sin(a)\n        d = R.add(a, c)\n        R.output(d)\n"
    func = parse(f"    with R.dataflow():\n{block}    return d")
    with PatternContext() as context:
        one, two = is_op("relax.cos")(wildcard()), is_op("relax.sin")(wildcard())
        one.used_by(two)
    both = relax.op.exp(func.params[0])

    def rewriter(matches: dict[object, relax.Var], bindings: object) -> dict[relax.Var, object]:
        return {matches[one]: relax.op.add(both, both), matches[two]: relax.op.multiply(both, both)}

    changed = rewrite_bindings(context, rewriter, func)
    assert changed.script().count("R.exp(x)") == 1


def test_rewriters_bring_functions_and_split_results() -> None:
    @R.rewriter
    class Rewriter:
        @R.function(private=True)
        def pattern(A: R.Tensor((4,), "float32"), B: R.Tensor((4,), "float32")):
            return (R.add(A, B), R.multiply(A, B))

        @R.function(private=True)
        def replacement(A: R.Tensor((4,), "float32"), B: R.Tensor((4,), "float32")):
            return Rewriter.both(A, B)

        @R.function(private=True)
        def both(A: R.Tensor((4,), "float32"), B: R.Tensor((4,), "float32")) -> R.Tuple(
            R.Tensor((4,), "float32"), R.Tensor((4,), "float32")
        ):
            return (R.exp(A), R.sin(B))

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
            a = R.add(x, y)
            c = R.multiply(x, y)
            return R.subtract(a, c)

    changed = Rewriter(Module)
    assert "both" in changed and changed["main"].script().count("both(") == 1
    assert Rewriter(relax.const(1.0)).data == 1.0
    other = Module.clone()
    other["both"] = Module["main"]
    with pytest.raises(ValueError, match="another function 'both'"):
        Rewriter(other)


def test_alternatives_run_until_nothing_changes() -> None:
    a = wildcard()
    first = PatternMatchingRewriter.from_pattern(is_op("relax.exp")(a), lambda e, found: relax.op.sin(found[a]))
    second = PatternMatchingRewriter.from_pattern(is_op("relax.cos")(a), lambda e, found: relax.op.exp(found[a]))
    text = (first | second)(parse("    return R.cos(x)")).script()
    assert "R.sin(x)" in text and "exp" not in text


def test_patterns_have_lengths_and_take_patterns() -> None:
    pair, sizes = is_tuple([wildcard(), is_const()]), is_shape([1, 2])
    assert len(pair) == 2 and pair[1].index == 1 and len(sizes) == 2 and str(sizes) == "PrimArrPattern((1, 2))"
    assert str(wildcard() >> is_const()) == "[* ^ ConstantPattern()]"
    for wrong in (
        lambda: wildcard() | 3,
        lambda: wildcard() & 3,
        lambda: wildcard() >> 3,
        lambda: is_op("relax.exp")(3),
    ):
        with pytest.raises(TypeError, match="patterns"):
            wrong()
    with pytest.raises(IndexError, match="no field 2"):
        pair[2]
