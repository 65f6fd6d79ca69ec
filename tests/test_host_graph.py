"""Graph constructs in native code: branches, tuples, match_cast, shapes, reshapes, calls between functions."""

from __future__ import annotations

import numpy as np
import pytest
from host_tools import build, machine, op, sym, tensor

import supple
from supple.error import ArgumentError, ExecutionError, NotSupportedError
from supple.ir.expr import LT, Add, Call, FloorDiv, FloorMod, Max, Min, Mul, Sub, TupleGetItem, Var, int64
from supple.ir.graph import BindingBlock, Function, SeqExpr, ShapeExpr, Tuple, VarBinding, constant
from supple.ir.types import ShapeType, TensorType, prim_type
from supple.ops.calls import call_packed, call_tir
from supple.script import tirx as T


def branch(bb, cond, then, otherwise):
    """``then() if cond else otherwise()``."""
    bodies = []
    for make in (then, otherwise):
        bb.begin_branch()
        bodies.append(bb.end_branch(make()))
    return bb.emit_if(cond, *bodies)


def test_branches_on_tensors_and_numbers():
    n = sym("n")
    cond = Var("cond", tensor(dtype="bool"))

    def body(bb, cond, x):
        y = bb.emit(op("add", x, x))
        return branch(bb, cond, lambda: bb.emit(op("add", y, x)), lambda: bb.emit(op("multiply", y, y)))

    f = machine(build([cond, Var("x", tensor(n))], body))["main"]
    x = np.arange(4, dtype="f4")
    np.testing.assert_array_equal(f(np.array(True), x), 3 * x)
    np.testing.assert_array_equal(f(np.array(False), x), 4 * x * x)

    k = Var("k", prim_type("int64"))

    def compare(bb, k, x):
        return branch(bb, LT(k, n), lambda: x, lambda: bb.emit(op("add", x, x)))

    f = machine(build([k, Var("x", tensor(n))], compare))
    assert f["main"](3, x) is x
    np.testing.assert_array_equal(f["main"](4, x), 2 * x)


def test_nested_branches_share_the_arena():
    n = sym("n")
    a, b = Var("a", tensor(dtype="bool")), Var("b", tensor(dtype="bool"))

    def body(bb, a, b, x):
        def inner():
            t = bb.emit(op("add", x, x))
            return branch(bb, b, lambda: bb.emit(op("multiply", t, t)), lambda: bb.emit(op("add", t, x)))

        def other():
            u = bb.emit(op("multiply", x, x))
            v = bb.emit(op("add", u, x))
            return bb.emit(op("add", u, v))

        value = branch(bb, a, inner, other)
        return bb.emit(op("add", value, x))

    f = machine(build([a, b, Var("x", tensor(n))], body))["main"]
    x = np.arange(5, dtype="f4")
    yes, no = np.array(True), np.array(False)
    np.testing.assert_array_equal(f(yes, yes, x), 4 * x * x + x)
    np.testing.assert_array_equal(f(yes, no, x), 4 * x)
    np.testing.assert_array_equal(f(no, yes, x), 2 * x * x + 2 * x)


def test_branches_that_give_numbers_tuples_and_inputs():
    n = sym("n")
    cond = Var("cond", tensor(dtype="bool"))

    def number(bb, cond, x):
        return branch(bb, cond, lambda: Add(n, int64(1)), lambda: Mul(n, int64(2)))

    f = machine(build([cond, Var("x", tensor(n))], number))["main"]
    x = np.ones(5, "f4")
    assert f(np.array(True), x) == 6
    assert f(np.array(False), x) == 10

    def pair(bb, cond, x):
        t = branch(
            bb, cond, lambda: bb.emit(Tuple((x, bb.emit(op("add", x, x))))),
            lambda: bb.emit(Tuple((bb.emit(op("add", x, x)), x))),
        )  # fmt: skip
        return bb.emit(op("subtract", bb.emit(TupleGetItem(t, 0)), bb.emit(TupleGetItem(t, 1))))

    f = machine(build([cond, Var("x", tensor(n))], pair))["main"]
    np.testing.assert_array_equal(f(np.array(True), x), -x)
    np.testing.assert_array_equal(f(np.array(False), x), x)


def test_tuples_nest_and_come_back():
    n = sym("n")

    def body(bb, x):
        a = bb.emit(op("add", x, x))
        t = bb.emit(Tuple((a, Tuple((x, a)), constant(np.float32(3)))))
        inner = bb.emit(TupleGetItem(t, 1))
        return bb.emit(Tuple((inner, bb.emit(TupleGetItem(inner, 1)), t)))

    f = machine(build([Var("x", tensor(n))], body))["main"]
    x = np.ones(2, "f4")
    (first, second), third, (fourth, (fifth, _), sixth) = f(x)
    assert first is x
    assert fifth is x
    for value in (second, third, fourth):
        np.testing.assert_array_equal(value, [2, 2])
    assert sixth == 3
    assert machine(build([], lambda bb: bb.emit(Tuple(()))))["main"]() == ()


def test_match_cast_binds_and_checks():
    m, k = sym("m"), sym("k")

    def body(bb, x):
        y = bb.match_cast(x, tensor(m, k))
        z = bb.emit(op("add", y, y))
        return bb.emit(Tuple((z, ShapeExpr((m, k)))))

    f = machine(build([Var("x", TensorType(None, "float32", 2))], body))["main"]
    z, shape = f(np.ones((2, 3), "f4"))
    assert shape == (2, 3)
    np.testing.assert_array_equal(z, np.full((2, 3), 2))
    with pytest.raises(ArgumentError, match="ndim=2"):
        f(np.ones(3, "f4"))

    n = sym("n")
    g = machine(build([Var("x", tensor(n))], lambda bb, x: bb.match_cast(x, tensor(4))))["main"]
    np.testing.assert_array_equal(g(np.ones(4, "f4")), np.ones(4))
    with pytest.raises(ExecutionError, match=r"main: match_cast of x: expected .*4.*, got dimension 0 = 5"):
        g(np.ones(5, "f4"))

    def twice(bb, x, y):
        a = bb.match_cast(x, tensor(m))
        b = bb.match_cast(y, tensor(m))
        return bb.emit(op("add", a, b))

    vector = TensorType(None, "float32", 1)
    h = machine(build([Var("x", vector), Var("y", vector)], twice))["main"]
    np.testing.assert_array_equal(h(np.ones(2, "f4"), np.ones(2, "f4")), [2, 2])
    with pytest.raises(ExecutionError, match=r"m is 2 .*and 3"):
        h(np.ones(2, "f4"), np.ones(3, "f4"))

    ints = tensor(m, dtype="int32")
    i = machine(build([Var("x", TensorType(None, None))], lambda bb, x: bb.match_cast(x, ints)))["main"]
    assert i(np.ones(2, "i4")).dtype == np.int32
    with pytest.raises(ExecutionError, match="match_cast of x"):
        i(np.ones(2, "f4"))


def test_sizes_known_late_get_memory_of_their_own():
    m = sym("m")
    name = "test.nonzero"
    supple.register_global_func(name, lambda x: np.asarray(x)[np.asarray(x) > 0], override=True)

    def body(bb, x):
        y = bb.emit(call_packed(name, x, ty_args=TensorType(None, "float32", 1)))
        z = bb.match_cast(y, tensor(m))
        a = bb.emit(op("add", z, z))
        return bb.emit(op("multiply", a, a))

    f = machine(build([Var("x", tensor(sym("n")))], body, pure=False))["main"]
    np.testing.assert_array_equal(f(np.array([1, -1, 2], "f4")), [4, 16])
    np.testing.assert_array_equal(f(np.array([-1], "f4")), [])
    supple.remove_global_func(name)


def test_reshape_is_a_view_and_is_checked():
    n = sym("n")
    f = machine(build([Var("x", tensor(n, 6))], lambda bb, x: bb.emit(op("reshape", x, (n, 2, 3)))))["main"]
    x = np.arange(12, dtype="f4").reshape(2, 6)
    assert np.shares_memory(f(x), x)
    np.testing.assert_array_equal(f(x), x.reshape(2, 2, 3))

    def checked(bb, x):
        return bb.emit(op("reshape", x, ShapeExpr((FloorDiv(n, int64(2)), int64(12)))))

    g = machine(build([Var("x", tensor(n, 6))], checked))["main"]  # not the same size for every n
    np.testing.assert_array_equal(g(x), x.reshape(1, 12))
    with pytest.raises(ExecutionError, match="n \\* 6 is 18"):
        g(np.ones((3, 6), "f4"))


def test_shape_arithmetic_is_checked():
    n, m = sym("n"), sym("m")
    shapes = [Var("s", ShapeType((n, m)))]

    def run(value):
        return machine(build(shapes, lambda bb, s: bb.emit(ShapeExpr((value,)))))["main"]

    big = 1 << 62
    assert run(Mul(n, m))((3, 5)) == (15,)
    with pytest.raises(ExecutionError, match=r"main: n \* m does not fit in 64 bits \(n = \d+, m = 2\)"):
        run(Mul(n, m))((big, 2))
    with pytest.raises(ExecutionError, match=r"n \+ m does not fit"):
        run(Add(n, m))((big, big))
    assert run(FloorDiv(n, m))((7, 2)) == (3,)
    assert run(FloorDiv(n, m))((7, 0)) == (0,)
    assert run(FloorMod(n, m))((7, 4)) == (3,)
    assert run(FloorMod(Sub(n, int64(9)), m))((7, 4)) == (2,)
    assert run(Max(n, m))((7, 4)) == (7,)
    assert run(Min(n, m))((7, 4)) == (4,)


def test_negative_and_overflowing_sizes_are_errors():
    n = sym("n")

    @T.prim_func(private=True)
    def head(X: T.Buffer(("n",), "float32"), Y: T.Buffer(("m",), "float32")):
        n, m = T.int64(), T.int64()
        for i in T.serial(m):
            Y[i] = X[i]

    def shorter(bb, x):
        var = bb.add_func(head, "head")
        y = bb.emit(call_tir(var, (x,), tensor(Sub(n, int64(2)))))
        return bb.emit(op("add", y, y))

    f = machine(build([Var("x", tensor(n))], shorter))["main"]
    np.testing.assert_array_equal(f(np.arange(4, dtype="f4")), [0, 2])
    assert f(np.ones(2, "f4")).shape == (0,)
    with pytest.raises(ExecutionError, match=r"main: the dimension n - 2 is negative: -1"):
        f(np.ones(1, "f4"))

    def huge(bb, s):
        var = bb.add_func(head, "head")
        return bb.emit(call_tir(var, (constant(np.ones(1, "f4")),), tensor(Mul(n, n))))

    g = machine(build([Var("s", ShapeType((n,)))], huge))["main"]
    with pytest.raises(ExecutionError, match="does not fit in 64 bits"):
        g((1 << 31,))
    with pytest.raises(MemoryError):
        g((1 << 29,))


def test_numbers_as_sizes_may_be_negative():
    k = Var("k", prim_type("int64"))

    @T.prim_func(private=True)
    def fill(Y: T.Buffer(("m",), "float32")):
        m = T.int64()
        for i in T.serial(m):
            Y[i] = T.float32(1)

    def body(bb, k):
        var = bb.add_func(fill, "fill")
        y = bb.emit(call_tir(var, (), tensor(k)))
        return bb.emit(op("add", y, y))

    f = machine(build([k], body))["main"]
    np.testing.assert_array_equal(f(3), [2, 2, 2])
    with pytest.raises(ExecutionError, match="the dimension k is negative: -5"):
        f(-5)


def test_calls_unify_symbols_of_the_callee():
    n, m = sym("n"), sym("m")
    params = [Var("a", tensor(m)), Var("b", tensor(m))]
    mod = build(params, lambda bb, a, b: bb.emit(op("add", a, b)), "inner", private=True)
    inner = mod.get_global_var("inner")
    mod = build([Var("x", tensor(n, 2))], lambda bb, x: bb.emit(Call(inner, (
        bb.emit(op("reshape", x, (Mul(n, int64(2)),))), bb.emit(op("reshape", bb.emit(op("add", x, x)), (-1,))),
    ))), mod=mod)  # fmt: skip
    vm = machine(mod)
    assert "inner" not in vm
    x = np.arange(6, dtype="f4").reshape(3, 2)
    np.testing.assert_array_equal(vm["main"](x), 3 * x.reshape(-1))
    with pytest.raises(KeyError, match="no function 'inner'"):
        vm["inner"]


def test_a_callee_checks_what_was_not_proved():
    n = sym("n")
    mod = build([Var("a", tensor(4))], lambda bb, a: bb.emit(op("add", a, a)), "inner")
    inner = mod.get_global_var("inner")
    x = Var("x", TensorType(None, "float32", 1))
    y = Var("y", tensor(4))
    body = SeqExpr((BindingBlock((VarBinding(y, Call(inner, (x,), ty=tensor(4))),)),), y)
    mod["main"] = Function((x,), body, tensor(4), True, {"global_symbol": "main"})
    vm = machine_unchecked(mod)
    np.testing.assert_array_equal(vm["main"](np.ones(4, "f4")), [2, 2, 2, 2])
    with pytest.raises(ArgumentError, match=r"inner: parameter a: expected .*, got dimension 0 = 5"):
        vm["main"](np.ones(5, "f4"))
    with pytest.raises(ArgumentError, match=r"inner: parameter a: expected Tensor\(\(4,\), float32\), got \(5,\)"):
        vm["inner"](np.ones(5, "f4"))
    assert n is not None


def machine_unchecked(mod):
    """Compile a module that the verifier may refuse, to see that native code is safe on its own."""
    from supple.base.target import target
    from supple.driver import Context, _generate, run_passes
    from supple.runtime import Executable, VirtualMachine

    context = Context()
    return VirtualMachine(Executable(_generate(run_passes(mod, target(), context), target(), context, "match", None)))


def test_loop_functions_are_checked_against_their_arguments():
    @T.prim_func(private=True)
    def scale(X: T.Buffer(("n", 4), "float32"), Y: T.Buffer(("n", 4), "float32"), k: T.int64):
        n = T.int64()
        for i, j in T.grid(n, 4):
            Y[i, j] = X[i, j] * T.Cast("float32", k)

    n = sym("n")

    def body(bb, x):
        var = bb.add_func(scale, "scale")
        return bb.emit(call_tir(var, (x,), tensor(n, 4), tir_vars=ShapeExpr((Add(n, int64(1)),))))

    f = machine(build([Var("x", tensor(n, 4))], body))["main"]
    x = np.ones((3, 4), "f4")
    np.testing.assert_array_equal(f(x), 4 * x)


def test_public_loop_functions_are_called_by_destination():
    @T.prim_func
    def axpy(X: T.Buffer(("n",), "float32"), k: T.float32, Y: T.Buffer(("n",), "float32")):
        n = T.int64()
        for i in T.serial(n):
            Y[i] = X[i] * k + Y[i]

    vm = machine(axpy)
    x, y = np.arange(4, dtype="f4"), np.ones(4, "f4")
    assert vm["axpy"](x, 2.0, y) == ()
    np.testing.assert_array_equal(y, 2 * x + 1)
    vm["main"](x, 1.0, y)
    np.testing.assert_array_equal(y, 3 * x + 1)
    with pytest.raises(ArgumentError, match=r"axpy: parameter Y: .*n is 4 \(X.shape\[0\]\) and 3"):
        vm["axpy"](x, 1.0, np.ones(3, "f4"))
    with pytest.raises(ArgumentError, match="axpy: parameter Y: the function writes into it, but its memory overlaps"):
        vm["axpy"](y, 1.0, y)
    frozen = np.ones(4, "f4")
    frozen.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        vm["axpy"](x, 1.0, frozen)
    with pytest.raises(ArgumentError, match="not compact"):
        vm["axpy"](x, 1.0, np.ones(8, "f4")[::2])
    vm["axpy"](np.ones(8, "f4")[::2], 1.0, y)


def test_an_index_out_of_bounds_is_reported():
    @T.prim_func
    def gather(X: T.Buffer((4,), "float32"), I: T.Buffer(("n",), "int32"), Y: T.Buffer(("n",), "float32")):
        n = T.int64()
        for i in T.serial(n):
            Y[i] = X[I[i]]

    f = machine(gather)["gather"]
    y = np.zeros(2, "f4")
    f(np.arange(4, dtype="f4"), np.array([3, 0], "i4"), y)
    np.testing.assert_array_equal(y, [3, 0])
    with pytest.raises(ExecutionError, match="X"):
        f(np.arange(4, dtype="f4"), np.array([4, 0], "i4"), y)


def test_what_is_not_supported_is_named():
    with pytest.raises(NotSupportedError, match="scalars of dtype handle"):
        machine(build([Var("k", prim_type("handle"))], lambda bb, k: k))
    with pytest.raises(NotSupportedError, match="shape_of a tensor of unknown rank"):
        machine(build([Var("x", TensorType(dtype="float32"))], lambda bb, x: bb.emit(op("shape_of", x))))


def test_constants_are_aligned_and_shared():
    n = sym("n")
    weight = constant(np.arange(8, dtype="f4").reshape(2, 4))

    def body(bb, x):
        y = bb.emit(op("matmul", x, weight))
        return bb.emit(op("add", y, bb.emit(op("matmul", x, weight))))

    ex = supple.compile(build([Var("x", tensor(n, 2))], body))
    assert len(ex.program.constants) == 1
    x = np.ones((3, 2), "f4")
    np.testing.assert_allclose(ex["main"](x), 2 * (x @ np.asarray(weight.data)))


def test_results_are_checked_against_a_weaker_body():
    x = Var("x", TensorType(None, "float32", 1))
    n = sym("n")
    mod = supple.IRModule()
    y = Var("y", tensor(n))
    mod["main"] = Function((y, x), SeqExpr((), x), tensor(n), True, {"global_symbol": "main"})
    f = machine_unchecked(mod)["main"]
    x = np.ones(3, "f4")
    assert f(x, x) is x
    with pytest.raises(ExecutionError, match=r"main: result: expected Tensor\(\(n,\), float32\), got dimension 0 = 4"):
        f(x, np.ones(4, "f4"))


def test_deeply_nested_branches():
    c, x = Var("c", tensor(dtype="bool")), Var("x", tensor(3))
    inner = SeqExpr((), x)
    for i in range(400):
        result = Var(f"r{i}", tensor(3))
        binding = supple.relax.VarBinding(result, supple.relax.If(c, inner, SeqExpr((), x), ty=tensor(3)))
        inner = SeqExpr((supple.relax.BindingBlock((binding,)),), result)
    f = machine(Function((c, x), inner, tensor(3), True, {"global_symbol": "main"}))["main"]
    value = np.ones(3, "f4")
    assert f(np.array(True), value) is value
    assert f(np.array(False), value) is value
