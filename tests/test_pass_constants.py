"""DeadCodeElimination, FoldConstant, BindParams, and the public names of passes."""

from __future__ import annotations

import numpy as np
import pytest

import supple
from supple import transform
from supple.ir.graph import Constant, Function
from supple.ir.loop import PrimFunc
from supple.ir.module import IRModule
from supple.ir.structural import assert_structural_equal
from supple.passes.bind_params import bind_params
from supple.passes.dead_code import dead_code
from supple.passes.fold_constant import fold_constant
from supple.passes.legalize import legalize
from supple.passes.remarks import Remarks
from supple.script import from_source
from supple.verify.well_formed import check_module

HEAD = "from supple.script import ir as I, relax as R, tirx as T\n\n"
PARAMS = 'x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 2), "float32")'


def module(body: str, params: str = PARAMS, more: str = "") -> IRModule:
    lines = "\n".join(f"        {line}" for line in body.strip("\n").splitlines())
    head = f"{HEAD}@I.ir_module\nclass Module:\n{more}\n"
    made = from_source(f"{head}    @R.function\n    def main({params}):\n{lines}\n")
    assert isinstance(made, IRModule)
    return made


def test_dead_bindings_and_functions_go() -> None:
    helper = """
    @T.prim_func(private=True)
    def unused(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i] = T.float32(0)
"""
    before = module(
        """
with R.dataflow():
    a = R.exp(x)
    b = R.tanh(a)
    c = R.add(x, x)
    d = R.sqrt(c)
    R.output(d)
return d""",
        more=helper,
    )
    after = module("""
with R.dataflow():
    c = R.add(x, x)
    d = R.sqrt(c)
    R.output(d)
return d""")
    assert_structural_equal(dead_code(before), after)


def test_effects_scalars_and_checks_stay() -> None:
    before = from_source(
        HEAD
        + """
@R.function(pure=False)
def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(ndim=1, dtype="float32")):
    n, m = T.int64(), T.int64()
    R.print(x, format="{}")
    unused = R.exp(x)
    z = R.match_cast(y, R.Tensor((m,), "float32"))
    s = R.prim_value(n + 1)
    lv = R.full(R.shape([m]), R.const(1.0, "float32"))
    return (s, lv)
"""
    )
    made = dead_code(IRModule.from_expr(before))
    text = made["main"].script()
    assert "R.exp" not in text
    assert "R.print" in text and "match_cast" in text and "n + 1" in text
    check_module(made)


def test_dead_code_is_linear_in_a_long_dead_chain() -> None:
    lines = ["a0 = R.exp(x)"] + [f"a{i} = R.add(a{i - 1}, x)" for i in range(1, 400)] + ["return x"]
    made = dead_code(module("\n".join(lines), 'x: R.Tensor(("n",), "float32")'))
    func = made["main"]
    assert isinstance(func, Function)
    assert func.body.blocks == ()


def test_entry_functions() -> None:
    mod = from_source(
        HEAD
        + """
@I.ir_module
class Module:
    @R.function
    def f(x: R.Tensor((2,), "float32")):
        return x

    @R.function
    def g(x: R.Tensor((2,), "float32")):
        return x
"""
    )
    assert [v.name_hint for v in dead_code(mod, ["g"])] == ["g"]
    with pytest.raises(KeyError, match="h"):
        dead_code(mod, ["h"])


FOLD = """
with R.dataflow():
    c = R.const([1.0, 2.0, 3.0, 4.0], "float32")
    d = R.add(c, R.const(1.0, "float32"))
    e = R.multiply(d, d)
    f = R.exp(x)
    g = R.add(f, e)
    R.output(g)
return g"""


def test_constants_are_computed() -> None:
    made = dead_code(fold_constant(module(FOLD)))
    check_module(made)
    func = made["main"]
    assert isinstance(func, Function)
    assert [b.var.name for block in func.body.blocks for b in block.bindings] == ["f", "g"]
    folded = func.body.blocks[0].bindings[1].value.args[1]
    assert isinstance(folded, Constant)
    np.testing.assert_array_equal(folded.data, np.float32([4, 9, 16, 25]))


def test_exact_folding_leaves_what_may_round_otherwise() -> None:
    mod = legalize(
        module("""
with R.dataflow():
    a = R.exp(R.const([1.0, 2.0], "float32"))
    b = R.add(R.const([1.0, 2.0], "float32"), R.const(1.0, "float32"))
    s = R.sum(R.const([1.0, 2.0], "float32"))
    r = R.add(R.add(a, b), s)
    R.output(r)
return r""")
    )
    remarks = Remarks()
    made = fold_constant(mod, remarks, exact=True)
    check_module(made)
    assert [r.place for r in remarks.items] == ["main.b"]
    assert [r.place for r in _remarks(mod)] == ["main.a", "main.b", "main.s", "main.lv", "main.r"]


def _remarks(mod: IRModule) -> list:
    remarks = Remarks()
    fold_constant(mod, remarks)
    return remarks.items


def test_large_results_and_failures_stay() -> None:
    remarks = Remarks()
    mod = module("""
with R.dataflow():
    a = R.zeros((100, 100), "float32")
    b = R.take(R.const([1.0, 2.0], "float32"), R.const([5], "int64"), axis=0)
    c = R.add(R.sum(a), b)
    R.output(c)
return c""")
    made = fold_constant(mod, remarks)
    check_module(made)
    assert "R.zeros" in made["main"].script()


def test_bound_parameters() -> None:
    w = np.arange(8, dtype="float32").reshape(4, 2)
    made = bind_params(module("return R.matmul(x, w)"), "main", {"w": w})
    check_module(made)
    run = supple.relax.VirtualMachine(supple.compile(made), supple.cpu())["main"]
    x = np.ones((3, 4), "float32")
    np.testing.assert_array_equal(run(x), x @ w)
    with pytest.raises(ValueError, match="v"):
        bind_params(module("return R.matmul(x, w)"), "main", {"v": w})
    with pytest.raises(KeyError):
        bind_params(made, "other", {})


def test_public_names_and_sequences() -> None:
    mod = module("return R.nn.relu(R.add(x, x))")
    dataflow = module("""
with R.dataflow():
    a = R.add(x, x)
    b = R.nn.relu(a)
    R.output(b)
return b""")
    steps = [transform.LegalizeOps(), transform.AnnotateTIROpPattern(), transform.FoldConstant(), transform.FuseOps(),
             transform.FuseTIR(), transform.DeadCodeElimination()]  # fmt: skip
    made = transform.Sequential(steps)(dataflow)
    assert [v.name_hint for v, f in made.items() if isinstance(f, PrimFunc)] == ["fused_add_relu"]
    with transform.PassContext(opt_level=3, disabled_pass=["FuseOps"]) as context:
        assert transform.PassContext.current() is context
        alone = transform.Sequential(steps)(dataflow)
    assert len([f for f in alone.functions.values() if isinstance(f, PrimFunc)]) == 2
    assert transform.PassContext.current().opt_level == 2
    with pytest.raises(TypeError, match="IRModule"):
        transform.FuseOps()(mod["main"])
    with pytest.raises(TypeError, match="passes"):
        transform.Sequential([lambda m: m])

    class Watch:
        seen: list[str] = []

        def run_before_pass(self, mod: IRModule, info: transform.PassInfo) -> None:
            self.seen.append(info.name)

    with transform.PassContext(instruments=[Watch()]):
        transform.LegalizeOps()(mod)
    assert Watch.seen == ["LegalizeOps"]

    @transform.module_pass(opt_level=1, name="nothing")
    def nothing(mod: IRModule, context: transform.PassContext) -> IRModule:
        return mod

    assert nothing(mod) is mod and nothing.name == "nothing"


def test_a_symbol_that_only_a_result_mentions_is_used() -> None:
    function = from_source(
        """from supple.script import relax as R, tirx as T

@R.function
def f(x: R.Tensor(ndim=1, dtype="float32"), y: R.Tensor(ndim=1, dtype="float32")):
    n = T.int64()
    m = T.int64()
    with R.dataflow():
        a = R.match_cast(x, R.Tensor((n,), "float32"))
        b = R.match_cast(y, R.Tensor((m,), "float32"))
        R.output()
    return R.shape([n + 1])
"""
    )
    text = supple.relax.analysis.remove_all_unused(function).script()
    assert "R.match_cast(x" in text and "R.match_cast(y" not in text
