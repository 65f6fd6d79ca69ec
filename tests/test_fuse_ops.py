"""FuseOps and FuseTIR: what becomes one kernel, what does not and why, and that no bit changes by it."""

from __future__ import annotations

import numpy as np
import pytest

import supple
from supple import driver
from supple.analysis.fusion import summarize
from supple.interp.graph import Interpreter
from supple.ir.graph import Function
from supple.ir.loop import PrimFunc
from supple.ir.module import IRModule
from supple.ir.op import Fusion
from supple.ir.structural import assert_structural_equal
from supple.passes.annotate_pattern import annotate_pattern
from supple.passes.dead_code import dead_code
from supple.passes.fuse_ops import fuse_ops
from supple.passes.fuse_tir import fuse_tir
from supple.passes.legalize import legalize
from supple.passes.remarks import Remarks
from supple.passes.specialize import specialize
from supple.script import from_source
from supple.verify.well_formed import check_module

HEAD = "from supple.script import ir as I, relax as R, tirx as T\n\n"


def graph(params: str, body: str) -> IRModule:
    """A module of one function ``main`` whose dataflow block has the lines of ``body``; the last is the result."""
    lines = "\n".join(f"            {line.strip()}" for line in body.strip().splitlines())
    result = body.strip().splitlines()[-1].split("=")[0].strip()
    text = f"""{HEAD}@I.ir_module
class Module:
    @R.function
    def main({params}):
        with R.dataflow():
{lines}
            R.output({result})
        return {result}
"""
    made = from_source(text)
    assert isinstance(made, IRModule)
    return made


def fused(mod: IRModule, remarks: Remarks | None = None, moves: bool = False) -> IRModule:
    """The module after fusion, every step checked."""
    for step in (legalize, lambda m: fuse_ops(m, remarks, moves=moves), lambda m: fuse_tir(m, remarks), dead_code):
        mod = step(mod)
        check_module(mod)
    return mod


def kernels(mod: IRModule) -> list[str]:
    return sorted(v.name_hint for v, f in mod.items() if isinstance(f, PrimFunc))


def test_a_chain_becomes_one_function() -> None:
    before = from_source(
        HEAD
        + """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def add(A: T.Buffer(("m", "k"), "float32"), B: T.Buffer(("k",), "float32"), C: T.Buffer(("m", "k"), "float32")):
        m, k = T.int64(), T.int64()
        for i, j in T.grid(m, k):
            with T.sblock("C"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                C[v_i, v_j] = A[v_i, v_j] + B[v_j]

    @T.prim_func(private=True)
    def relu(A: T.Buffer(("m", "k"), "float32"), C: T.Buffer(("m", "k"), "float32")):
        m, k = T.int64(), T.int64()
        for i, j in T.grid(m, k):
            with T.sblock("C"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                C[v_i, v_j] = T.max(A[v_i, v_j], T.float32(0))

    @R.function
    def main(x: R.Tensor(("n", 8), "float32"), b: R.Tensor((8,), "float32")) -> R.Tensor(("n", 8), "float32"):
        cls = Module
        n = T.int64()
        with R.dataflow():
            lv = R.call_tir(cls.add, (x, b), out_ty=R.Tensor((n, 8), "float32"))
            gv = R.call_tir(cls.relu, (lv,), out_ty=R.Tensor((n, 8), "float32"))
            R.output(gv)
        return gv
"""
    )
    grouped = from_source(
        HEAD
        + """
@I.ir_module
class Module:
    @R.function(private=True)
    def fused_add_relu(
        x: R.Tensor(("n", 8), "float32"), b: R.Tensor((8,), "float32")
    ) -> R.Tensor(("n", 8), "float32"):
        R.func_attr({"Primitive": True})
        cls = Module
        n = T.int64()
        with R.dataflow():
            lv = R.call_tir(cls.add, (x, b), out_ty=R.Tensor((n, 8), "float32"))
            gv = R.call_tir(cls.relu, (lv,), out_ty=R.Tensor((n, 8), "float32"))
            R.output(gv)
        return gv

    @T.prim_func(private=True)
    def add(A: T.Buffer(("m", "k"), "float32"), B: T.Buffer(("k",), "float32"), C: T.Buffer(("m", "k"), "float32")):
        m, k = T.int64(), T.int64()
        for i, j in T.grid(m, k):
            with T.sblock("C"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                C[v_i, v_j] = A[v_i, v_j] + B[v_j]

    @R.function
    def main(x: R.Tensor(("n", 8), "float32"), b: R.Tensor((8,), "float32")) -> R.Tensor(("n", 8), "float32"):
        cls = Module
        with R.dataflow():
            gv = cls.fused_add_relu(x, b)
            R.output(gv)
        return gv

    @T.prim_func(private=True)
    def relu(A: T.Buffer(("m", "k"), "float32"), C: T.Buffer(("m", "k"), "float32")):
        m, k = T.int64(), T.int64()
        for i, j in T.grid(m, k):
            with T.sblock("C"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                C[v_i, v_j] = T.max(A[v_i, v_j], T.float32(0))
"""
    )
    after = from_source(
        HEAD
        + """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def fused_add_relu(
        x: T.Buffer(("n", T.int64(8)), "float32"), b: T.Buffer((T.int64(8),), "float32"),
        gv: T.Buffer(("n", T.int64(8)), "float32"),
    ):
        n = T.int64()
        for i, j in T.grid(n, T.int64(8)):
            with T.sblock("C"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                gv[v_i, v_j] = T.max(x[v_i, v_j] + b[v_j], T.float32(0))

    @R.function
    def main(x: R.Tensor(("n", 8), "float32"), b: R.Tensor((8,), "float32")) -> R.Tensor(("n", 8), "float32"):
        cls = Module
        n = T.int64()
        with R.dataflow():
            gv = R.call_tir(cls.fused_add_relu, (x, b), out_ty=R.Tensor((n, 8), "float32"))
            R.output(gv)
        return gv
"""
    )
    made = fuse_ops(before)
    assert_structural_equal(made, grouped)
    assert_structural_equal(dead_code(fuse_tir(made)), after)
    assert_structural_equal(from_source(made.script()), made)  # every stage reads back
    assert_structural_equal(from_source(fuse_tir(made).script()), fuse_tir(made))


MLP = """
    lv0 = R.add(R.matmul(x, w0), b0)
    lv1 = R.nn.relu(lv0)
    lv2 = R.add(R.matmul(lv1, w1), b1)
"""
MLP_PARAMS = (
    'x: R.Tensor(("n", 24), "float32"), w0: R.Tensor((24, 40), "float32"), b0: R.Tensor((40,), "float32"), '
    'w1: R.Tensor((40, 10), "float32"), b1: R.Tensor((10,), "float32")'
)


def test_bias_and_relu_run_in_the_matmuls_store() -> None:
    mod = graph(MLP_PARAMS, MLP)
    made = fused(mod)
    assert kernels(made) == ["fused_matmul1_add1", "fused_matmul_add_relu"]
    scheduled = driver.lower(mod)["fused_matmul_add_relu"].script()
    assert "lv" not in scheduled.replace("lv1", "")  # the sums wait in no buffer of the result's size
    assert scheduled.count("T.max(") >= 1


CASES: dict[str, tuple[str, str, list[str]]] = {
    "diamond": ('x: R.Tensor(("n", "m"), "float32")', """
        a = R.exp(x)
        b = R.tanh(a)
        c = R.sqrt(a)
        d = R.multiply(b, c)
        """, ["fused_tir_exp_tir_tanh_tir_sqrt_multiply"]),
    "escapes in the middle": ('x: R.Tensor(("n",), "float32")', """
        a = R.exp(x)
        b = R.tanh(a)
        c = R.concat((a, b), axis=0)
        """, ["concatenate", "tir_exp", "tir_tanh"]),
    "broadcast would repeat work": ('x: R.Tensor(("n", 8), "float32"), b: R.Tensor((8,), "float32")', """
        a = R.exp(b)
        c = R.add(x, a)
        """, ["add", "tir_exp"]),
    "two matmuls": ('x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 8), "float32")', """
        a = R.matmul(x, w)
        b = R.matmul(a, w)
        c = R.add(a, b)
        """, ["fused_matmul_add", "matmul"]),
    "silu of a matmul": ('x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 20), "float32")', """
        a = R.matmul(x, w)
        s = R.sigmoid(a)
        c = R.multiply(a, s)
        """, ["fused_matmul_tir_sigmoid_multiply"]),
    "residual": ('x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 8), "float32")', """
        a = R.matmul(x, w)
        r = R.multiply(x, x)
        c = R.add(a, r)
        """, ["fused_matmul_multiply_add"]),
    "into a sum": ('x: R.Tensor(("n", "m"), "float32")', """
        a = R.exp(x)
        s = R.sum(a, axis=1)
        """, ["fused_tir_exp_sum"]),
    "a product is not rounded otherwise": ('x: R.Tensor(("n", "m"), "float32")', """
        a = R.multiply(x, x)
        s = R.sum(a, axis=1)
        """, ["multiply", "sum"]),
    "transpose between": ('x: R.Tensor(("n", "m"), "float32")', """
        a = R.exp(x)
        t = R.permute_dims(a)
        c = R.nn.relu(t)
        """, ["fused_tir_exp_transpose_relu"]),
    "softmax stays whole": ('x: R.Tensor(("n", 12), "float32"), y: R.Tensor(("n", 12), "float32")', """
        a = R.add(x, y)
        s = R.nn.softmax(a, axis=-1)
        c = R.multiply(s, y)
        """, ["add", "multiply", "softmax"]),
    "an operand of a matmul": ('x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 5), "float32")', """
        a = R.nn.relu(x)
        c = R.matmul(a, w)
        """, ["matmul", "relu"]),
    "the same value twice": ('x: R.Tensor(("n", 3), "float32")', """
        a = R.add(x, x)
        b = R.multiply(a, a)
        """, ["fused_add_multiply"]),
    "integers": ('x: R.Tensor(("n", 3), "int32")', """
        a = R.add(x, x)
        b = R.floor_divide(a, R.const(3, "int32"))
        c = R.astype(b, "float32")
        """, ["fused_add_floor_divide_cast"]),
}  # fmt: skip


def arrays(mod: IRModule, n: int, m: int) -> list[np.ndarray]:
    main = mod["main"]
    assert isinstance(main, Function)
    rng = np.random.default_rng(n * 31 + m)
    sizes = {"n": n, "m": m}
    made = []
    for param in main.params:
        shape = [d.value if hasattr(d, "value") else sizes[d.name] for d in param.ty.shape.values]
        values = rng.standard_normal(shape) * 3
        made.append(values.astype(param.ty.dtype))
    return made


@pytest.mark.parametrize("name", CASES)
def test_groups_and_their_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    params, body, expected = CASES[name]
    mod = graph(params, body)
    made = fused(mod)
    names = [k.replace("permute_dims", "transpose") for k in kernels(made)]
    assert names == sorted(expected)
    assert_structural_equal(from_source(made.script()), made)
    check_bits(mod, monkeypatch)


def check_bits(mod: IRModule, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled module computes what it computes without fusion, to the bit, and what the interpreter computes."""
    compiled = supple.relax.VirtualMachine(supple.compile(mod), supple.cpu())["main"]
    without = [p for p in driver.PIPELINE if not p.name.startswith("fuse")]
    monkeypatch.setattr(driver, "PIPELINE", tuple(without))
    unfused = supple.relax.VirtualMachine(supple.compile(mod), supple.cpu())["main"]
    for n, m in ((0, 3), (1, 1), (2, 0), (7, 13), (17, 31), (64, 5)):
        args = arrays(mod, n, m)
        ours, theirs = compiled(*args), unfused(*args)
        assert ours.shape == theirs.shape
        assert ours.tobytes() == theirs.tobytes(), (n, m)
        with np.errstate(all="ignore"):
            reference = Interpreter(mod).run("main", *args)
        np.testing.assert_allclose(ours, reference, rtol=2e-5, atol=1e-4)


MOVES = {
    "weights stored by output": ('x: R.Tensor(("n", 8), "float32"), w: R.Tensor((21, 8), "float32")', """
        t = R.permute_dims(w)
        c = R.matmul(x, t)
        """, ["fused_transpose_matmul"]),
    "with bias and relu": (
        'x: R.Tensor(("n", 8), "float32"), w: R.Tensor(("m", 8), "float32"), b: R.Tensor(("m",), "float32")', """
        t = R.permute_dims(w)
        a = R.matmul(x, t)
        s = R.add(a, b)
        c = R.nn.relu(s)
        """, ["fused_transpose_matmul_add_relu"]),
    "scores of heads": (
        'q: R.Tensor((2, "n", 3, 8), "float32"), k: R.Tensor((2, "m", 3, 8), "float32")', """
        a = R.permute_dims(q, axes=[0, 2, 1, 3])
        b = R.permute_dims(k, axes=[0, 2, 3, 1])
        c = R.matmul(a, b)
        """, ["fused_transpose_transpose1_matmul"]),
    "values of heads": (
        'p: R.Tensor((2, 3, "n", "m"), "float32"), v: R.Tensor((2, "m", 3, 9), "float32")', """
        b = R.permute_dims(v, axes=[0, 2, 1, 3])
        c = R.matmul(p, b)
        """, ["fused_transpose_matmul"]),
    "a left operand stored by columns": ('x: R.Tensor((8, "n"), "float32"), w: R.Tensor((8, 25), "float32")', """
        t = R.permute_dims(x)
        c = R.matmul(t, w)
        """, ["matmul", "transpose"]),
    "the same for few columns": ('x: R.Tensor((8, "n"), "float32"), w: R.Tensor((8, 24), "float32")', """
        t = R.permute_dims(x)
        c = R.matmul(t, w)
        """, ["fused_transpose_matmul"]),
    "contiguous along the batch": ('x: R.Tensor((3, "n", 8), "float32"), w: R.Tensor((8, "m", 3), "float32")', """
        t = R.permute_dims(w, axes=[2, 0, 1])
        c = R.matmul(x, t)
        """, ["matmul", "transpose"]),
    "two readers": ('x: R.Tensor((8, 8), "float32"), w: R.Tensor((8, 8), "float32")', """
        t = R.permute_dims(w)
        a = R.matmul(x, t)
        b = R.matmul(t, x)
        c = R.add(a, b)
        """, ["fused_matmul_add", "matmul", "transpose"]),
    "more than a permutation": ('x: R.Tensor(("n", 8), "float32"), w: R.Tensor((5, 8), "float32")', """
        e = R.exp(w)
        t = R.permute_dims(e)
        c = R.matmul(x, t)
        """, ["fused_tir_exp_transpose_matmul"]),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_contractions_read_permuted_operands_where_they_lie(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    params, body, expected = MOVES[name]
    mod = graph(params, body)
    assert kernels(fused(mod, moves=True)) == sorted(expected)
    assert not any("transpose_" in k for k in kernels(fused(mod)))  # Relax's own pass does not
    check_bits(mod, monkeypatch)


def test_a_consumer_may_read_a_sum_more_than_once() -> None:
    scheduled = driver.lower(graph(*CASES["silu of a matmul"][:2]))["fused_matmul_tir_sigmoid_multiply"].script()
    assert "a = " not in scheduled  # no buffer for the sums


def test_rows_have_the_same_bits_in_every_batch() -> None:
    run = supple.relax.VirtualMachine(supple.compile(graph(MLP_PARAMS, MLP)), supple.cpu())["main"]
    x, *w = arrays(graph(MLP_PARAMS, MLP), 130, 0)
    whole = run(x, *w)
    for n in (1, 2, 3, 5, 6, 7, 64, 129):
        assert run(x[:n].copy(), *w).tobytes() == whole[:n].tobytes()


def test_remarks_say_what_was_fused_and_what_was_not() -> None:
    remarks = Remarks()
    fused(graph(*CASES["two matmuls"][:2]), remarks)
    texts = [str(r) for r in remarks.items]
    assert "fuse_ops: main.c: fused: fused_matmul_add" in texts
    assert any(t.startswith("fuse_ops: main.a: two sums") for t in texts)


def test_long_chains_are_cut_and_groups_alike_share_a_function() -> None:
    lines = ["a0 = R.exp(x)"] + [f"a{i} = R.add(a{i - 1}, x)" for i in range(1, 150)]
    mod = graph('x: R.Tensor(("n",), "float32")', "\n".join(lines))
    made = fused(mod)
    assert len(kernels(made)) == 2  # of 64, 64 and 22 calls: two are alike
    assert made["main"].script().count("call_tir") == 3


def test_values_that_double_stay_small() -> None:
    lines = ["a0 = R.exp(x)"] + [f"a{i} = R.add(a{i - 1}, a{i - 1})" for i in range(1, 40)]
    mod = graph('x: R.Tensor(("n",), "float32")', "\n".join(lines))
    made = fused(mod)
    assert sum(len(made[name].script()) for name in kernels(made)) < 300_000
    run = supple.relax.VirtualMachine(supple.compile(mod), supple.cpu())["main"]
    x = np.linspace(-3, 3, 37, dtype="float32")
    np.testing.assert_allclose(run(x), np.exp(x) * 2.0**39, rtol=1e-6)


def test_kinds_by_analysis() -> None:
    body = MLP + "    lv3 = R.sum(lv2, axis=1)\n    lv4 = R.nn.softmax(lv2)"
    mod = annotate_pattern(legalize(graph(MLP_PARAMS, body)))
    kinds = {v.name_hint: f.attrs.get("op_pattern") for v, f in mod.items() if isinstance(f, PrimFunc)}
    assert kinds == {
        "matmul": 4, "matmul1": 4, "add": 1, "add1": 1, "relu": 0, "sum": 3, "softmax": 8,
    }  # fmt: skip


BODIES = [
    ("Y[i] = X[i]", "", Fusion.OPAQUE, "its body has no blocks"),
    ("Y[v] = X[v] + T.float32(1)", "n", Fusion.ELEMENTWISE, ""),
    ("Y[v] = X[n - 1 - v]", "n", Fusion.INJECTIVE, ""),
    ("Y[v] = X[v]", "n - 1", Fusion.OPAQUE, "not proved to write all of Y"),
    ("Y[v] = Y[v] + X[v]", "n", Fusion.OPAQUE, "read before it is written"),
]


@pytest.mark.parametrize(("store", "extent", "kind", "reason"), BODIES)
def test_hand_written_functions_are_read(store: str, extent: str, kind: Fusion, reason: str) -> None:
    block = f"""with T.sblock("a"):
            v = T.axis.spatial({extent}, i)
            {store}"""
    func = from_source(f"""from supple.script import tirx as T

@T.prim_func(private=True)
def f(x: T.handle, y: T.handle):
    n = T.int64()
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    for i in range({extent or "n"}):
        {block if extent else store}
""")
    assert isinstance(func, PrimFunc)
    summary = summarize(func)
    assert summary.kind is kind
    assert reason in summary.reason


def test_specialize_gives_calls_their_sizes() -> None:
    text = (
        HEAD
        + """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def scale(A: T.Buffer(("m", "k"), "float32"), C: T.Buffer(("m", "k"), "float32")):
        m, k = T.int64(), T.int64()
        for i, j in T.grid(m, k):
            with T.sblock("C"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                C[v_i, v_j] = A[v_i, v_j] * T.float32(2)
{extra}
    @R.function
    def main(x: R.Tensor(("n", 8), "float32")) -> R.Tensor(("n", 8), "float32"):
        cls = Module
        n = T.int64()
        lv = R.call_tir(cls.{first}, (x,), out_ty=R.Tensor((n, 8), "float32"))
        gv = R.call_tir(cls.{first}, (lv,), out_ty=R.Tensor((n, 8), "float32"))
        return gv
"""
    )
    copy = """
    @T.prim_func(private=True)
    def scale1(A: T.Buffer(("m", T.int64(8)), "float32"), C: T.Buffer(("m", T.int64(8)), "float32")):
        m = T.int64()
        for i, j in T.grid(m, T.int64(8)):
            with T.sblock("C"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                C[v_i, v_j] = A[v_i, v_j] * T.float32(2)
"""
    before = from_source(text.format(extra="", first="scale"))
    after = from_source(text.format(extra=copy, first="scale1"))
    made = specialize(before)
    check_module(made)
    assert_structural_equal(made["scale1"], after["scale1"])
    assert kernels(dead_code(made)) == ["scale1"]
